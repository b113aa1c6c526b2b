// gridbuf.transfer.walk: two views walked together, and what that may assume.
//
// Every copy between two layouts is the same walk, whoever moves the bytes (memcpy, a 2-D copy of a
// device, a kernel): the axes of both views side by side, put into the order that suits the target,
// neighbours merged where one pass of the inner axis is one step of the outer one on both sides.
// This module is that walk without the moving, and the questions of overlap that decide whether
// the order may be changed at all.
//
// Nothing here reads memory; addresses are numbers. Views must be sound (`byte_hull` has a value),
// so no product of extents and strides overflows.
module;

#include <cstddef>
#include <cstdint>
#include <optional>

export module gridbuf.transfer.walk;

import gridbuf.layout.view;
import gridbuf.layout;

export namespace gridbuf::walk {

/// One axis of both views.
struct Axis {
  std::int64_t extent;
  std::int64_t target_stride_bytes;
  std::int64_t source_stride_bytes;
};

/// Two views of one shape, outermost axis first; axes of extent 1 are left out.
struct Walk {
  std::byte* target;        // of the first element
  const std::byte* source;  // of the first element
  SmallVec<Axis> axes;
};

/// The walk in row-major order of the index.
Walk make_walk(std::byte* target_block, const StridedView& target, const std::byte* source_block,
               const StridedView& source);

/// Turns axes round so that the target is walked upwards, and sorts them so that its smallest
/// stride runs innermost. Changes the order of writing: only where the target has no byte twice.
void order_by_target(Walk& walk);

/// Merges an axis with the next inner one where one step of it is a whole pass of the inner one on
/// both sides.
void merge_axes(Walk& walk);

/// Both, and true; or false, and nothing is changed, where two indices of the target may name a
/// common byte (as may_overlap_itself).
bool arrange(Walk& walk, std::int64_t itemsize_bytes);

/// The length of the one run of bytes that an arranged walk is on both sides; nothing if it is more
/// than that.
std::optional<std::int64_t> dense_run_bytes(const Walk& walk, std::int64_t itemsize_bytes);

/// Whether two indices of the view may name a common byte. Sure of "no" for views of ordinary
/// arrays (each stride steps over all that the smaller ones reach); says "maybe" otherwise.
bool may_overlap_itself(const StridedView& view);

struct AddressRange {
  std::uintptr_t begin;
  std::uintptr_t end;
};
AddressRange range_of(const std::byte* block, const StridedView& view);
AddressRange range_of(const std::byte* block, const checked::ByteHull& hull);
bool overlap(const AddressRange& a, const AddressRange& b);

/// Whether every element of the source is the target's element at the same index.
bool same_elements(const std::byte* target_block, const StridedView& target,
                   const std::byte* source_block, const StridedView& source);

/// The same elements without gaps, row-major from offset 0; nothing if they are too many bytes for
/// 64 bits.
std::optional<StridedView> packed(const StridedView& view);

}  // namespace gridbuf::walk
