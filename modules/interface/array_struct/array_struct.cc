module;

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.interface.array_struct;

import gridbuf.alloc;
import gridbuf.error;
import gridbuf.interface;
import gridbuf.interface.dtype;
import gridbuf.layout.extents;
import gridbuf.layout.view;

namespace gridbuf::array_struct {
namespace {

/// The alignment that makes every element fit for its type's loads; 0 where that is not known.
std::int64_t element_alignment_bytes(const DType& dtype) {
  return dtype.kind() == Kind::kStructured ? 0 : dtype.swap_unit_bytes();
}

bool is_aligned(const BufferDescriptor& descriptor) {
  const std::int64_t alignment_bytes = element_alignment_bytes(descriptor.dtype);
  if (alignment_bytes == 0) return false;
  const StridedView& view = descriptor.view;
  const auto address = reinterpret_cast<std::uintptr_t>(descriptor.first_element());
  bool aligned = address % static_cast<std::uintptr_t>(alignment_bytes) == 0;
  for (int axis = 0; axis < view.ndim(); ++axis) {
    // The strides of other axes are never used.
    if (view.shape[axis] <= 1) continue;
    aligned = aligned && view.strides_bytes[axis] % alignment_bytes == 0;
  }
  return aligned;
}

/// AS-03: a letter and a length are all that the struct says of an element.
absl::Status check_dtype(const DType& dtype) {
  const Kind kind = dtype.kind();
  if (kind == Kind::kNarrow || kind == Kind::kDatetime || kind == Kind::kTimedelta) {
    return make_error(ErrorClass::kBuffer,
                      {"dtype", dtype.name(), "one that __array_struct__ has a letter for",
                       "use DLPack, or __array_interface__ for dates"});
  }
  constexpr std::int64_t kMostBytes = std::numeric_limits<std::int32_t>::max();
  if (dtype.itemsize_bytes() < 1 || dtype.itemsize_bytes() > kMostBytes) {
    return make_error(ErrorClass::kBuffer,
                      {"itemsize_bytes", std::to_string(dtype.itemsize_bytes()),
                       "from 1 to " + std::to_string(kMostBytes) + " for __array_struct__",
                       "use __array_interface__"});
  }
  return absl::OkStatus();
}

/// The struct, the owner, then shape and strides.
struct OwnedStruct {
  ArrayStruct described;
  Owner owner;

  std::intptr_t* extents() { return reinterpret_cast<std::intptr_t*>(this + 1); }
};
static_assert(offsetof(OwnedStruct, described) == 0);
static_assert(sizeof(OwnedStruct) % alignof(std::intptr_t) == 0);

}  // namespace

std::int32_t true_flags(const BufferDescriptor& descriptor) {
  std::int32_t flags = 0;
  if (is_c_contiguous(descriptor.view)) flags |= kCContiguous;
  if (is_f_contiguous(descriptor.view)) flags |= kFContiguous;
  if (is_aligned(descriptor)) flags |= kAligned;
  if (descriptor.dtype.is_native()) flags |= kNotSwapped;
  if (!descriptor.readonly) flags |= kWritable;
  return flags;
}

void destroy(ArrayStruct* exported) noexcept {
  if (exported == nullptr) return;
  auto* owned = reinterpret_cast<OwnedStruct*>(exported);
  owned->~OwnedStruct();
  ::operator delete(owned);
}

absl::StatusOr<Export> export_array_struct(const BufferDescriptor& descriptor) {
  if (!is_host_readable(descriptor.device.type)) {
    return make_error(
        ErrorClass::kNoSuchBuffer,
        {"device", to_string(descriptor.device), "readable by the host for __array_struct__",
         "copy the array to the host, or use the CUDA array interface or DLPack"});
  }
  if (absl::Status status = check_dtype(descriptor.dtype); !status.ok()) return status;
  const StridedView& view = descriptor.view;
  const auto ndim = static_cast<std::size_t>(view.ndim());
  void* memory =
      ::operator new(sizeof(OwnedStruct) + 2 * ndim * sizeof(std::intptr_t), std::nothrow);
  if (memory == nullptr) {
    return make_error(ErrorClass::kMemory,
                      "no memory for an __array_struct__; free some arrays and try again");
  }
  auto* owned = new (memory) OwnedStruct{{}, descriptor.owner};
  std::intptr_t* const shape = owned->extents();
  std::copy(view.shape.begin(), view.shape.end(), shape);
  std::copy(view.strides_bytes.begin(), view.strides_bytes.end(), shape + ndim);
  owned->described = {.two = 2,
                      .nd = view.ndim(),
                      .typekind = descriptor.dtype.typestr()[1],
                      .itemsize = static_cast<std::int32_t>(view.itemsize_bytes),
                      .flags = true_flags(descriptor),
                      .shape = shape,
                      .strides = shape + ndim,
                      .data = descriptor.first_element(),
                      .descr = nullptr};
  return Export(&owned->described);
}

}  // namespace gridbuf::array_struct
