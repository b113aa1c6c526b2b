// gridbuf's own buffers under the suite: described by gridbuf.interface, exported by
// gridbuf.interface.dlpack in both forms. gridbuf's reader takes each tensor back first, from a
// separate export.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gridbuf_conformance.h"

import gridbuf.alloc;
import gridbuf.alloc.host;
import gridbuf.interface;
import gridbuf.interface.dlpack;
import gridbuf.layout;

namespace gridbuf::conformance {
namespace {

// An element type as gridbuf knows it, of the plan's byte order.
absl::StatusOr<DType> dtype_of(const Plan& plan) {
  absl::StatusOr<DType> dtype = DType::from_name(plan.dtype);
  return dtype.ok() && plan.swapped ? dtype->byteswapped() : dtype;
}

void fill(const Plan& plan, const StridedView& view, std::byte* first) {
  const std::vector<std::byte> content = plan.content();
  const auto itemsize = static_cast<std::size_t>(plan.itemsize_bytes);
  Extents index(view.ndim(), 0);
  for (std::size_t place = 0; place < content.size(); place += itemsize) {
    std::memcpy(first + byte_offset(view, index), content.data() + place, itemsize);
    for (int axis = view.ndim(); axis-- > 0 && ++index[axis] == view.shape[axis];) index[axis] = 0;
  }
}

// The plan's view of a whole array.
StridedView viewed(const View& wanted, const StridedView& whole) {
  StridedView view = {
      .shape = {}, .strides_bytes = {}, .offset_bytes = 0, .itemsize_bytes = whole.itemsize_bytes};
  for (int axis = 0; axis < whole.ndim(); ++axis) {
    view.offset_bytes += wanted.start[static_cast<std::size_t>(axis)] * whole.strides_bytes[axis];
  }
  for (std::size_t axis = 0; axis < wanted.shape.size(); ++axis) {
    const int base = wanted.axes[axis];
    view.shape.push_back(wanted.shape[axis]);
    view.strides_bytes.push_back(base < 0 ? 0 : wanted.steps[axis] * whole.strides_bytes[base]);
  }
  return view;
}

absl::StatusOr<BufferDescriptor> buffer_of(const Plan& plan) {
  const absl::StatusOr<DType> dtype = dtype_of(plan);
  if (!dtype.ok()) return dtype.status();
  const absl::StatusOr<Layout> layout =
      make_plan({.shape = Extents(std::span<const std::int64_t>(plan.shape)),
                 .itemsize_bytes = plan.itemsize_bytes,
                 .layout = LayoutMap(std::span<const int>(plan.layout)),
                 .alignment_bytes = plan.alignment_size,
                 .aligned_index = Extents(std::span<const std::int64_t>(plan.aligned_index))});
  if (!layout.ok()) return layout.status();
  absl::StatusOr<Block> block =
      host_resource().allocate({.total_bytes = layout->total_bytes(),
                                .alignment_bytes = layout->alignment_bytes(),
                                .aligned_offset_bytes = layout->aligned_offset_bytes()});
  if (!block.ok()) return block.status();
  std::byte* const data = block->data();
  fill(plan, layout->view(), data);
  absl::StatusOr<Owner> owner = share(*std::move(block));
  if (!owner.ok()) return owner.status();
  return describe({.block = data,
                   .view = viewed(plan.view, layout->view()),
                   .dtype = *dtype,
                   .readonly = plan.readonly,
                   .device = {},
                   .owner = *std::move(owner)});
}

void require_same(const ImportedView& taken, const BufferDescriptor& buffer) {
  const auto& memory = taken.memory;
  const bool is_same = memory.view.shape == buffer.view.shape && memory.dtype == buffer.dtype &&
                       memory.readonly == buffer.readonly &&
                       (buffer.is_empty() || memory.first_element() == buffer.first_element());
  if (!is_same) throw std::runtime_error("gridbuf's reader takes another array than was exported");
}

template <class T>
T value_or_decline(absl::StatusOr<T> result) {
  if (!result.ok()) throw Unsupported{std::string(result.status().message())};
  return *std::move(result);
}

struct Buffers {
  static constexpr Declares kDeclares = {.layout = true, .alignment = true, .views = true};
  static BufferDescriptor make(const Plan& plan) {
    BufferDescriptor buffer = value_or_decline(buffer_of(plan));
    const absl::StatusOr<ImportedView> taken =
        dlpack::take(value_or_decline(dlpack::export_versioned(buffer)).release());
    if (!taken.ok()) throw std::runtime_error(std::string(taken.status().message()));
    require_same(*taken, buffer);
    return buffer;
  }
  static Answer to_dlpack(const BufferDescriptor& buffer, const Plan& plan) {
    if (plan.legacy) return value_or_decline(dlpack::export_legacy(buffer)).release();
    return value_or_decline(dlpack::export_versioned(buffer)).release();
  }
};

}  // namespace
}  // namespace gridbuf::conformance

GRIDBUF_CONFORMANCE_SUITE(gridbuf, gridbuf::conformance::Buffers);
