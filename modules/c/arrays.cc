// The functions of arrays.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "modules/base/status_macros.h"
#include "modules/c/gridbuf.h"

import gridbuf.c;
import gridbuf.device.registry;
import gridbuf.interface.dlpack;

namespace gridbuf::c {
namespace {

// The end of wrapped memory. Without `release` until nothing can fail any more.
struct WrappedMemory {
  gridbuf_release release = nullptr;
  void* context = nullptr;

  WrappedMemory() = default;
  WrappedMemory(const WrappedMemory&) = delete;
  WrappedMemory& operator=(const WrappedMemory&) = delete;
  ~WrappedMemory() {
    if (release != nullptr) release(context);
  }
};

absl::StatusOr<StridedView> view_of(const Options& field, const std::int64_t* strides_bytes) {
  LayoutRequest dense = field.request;
  dense.alignment_bytes = 1;
  GRIDBUF_ASSIGN_OR_RETURN(const auto& layout, make_plan(dense));
  StridedView view = layout.view();
  if (strides_bytes == nullptr) return view;
  for (int axis = 0; axis < view.ndim(); ++axis) view.strides_bytes[axis] = strides_bytes[axis];
  return view;
}

absl::StatusOr<Array> wrap(void* data, const std::int64_t* strides_bytes, const Options& field,
                           Owner owner) {
  if ((field.flags & ~static_cast<std::uint32_t>(GRIDBUF_READONLY)) != 0) {
    return bad({"options->flags", std::to_string(field.flags), "0 or GRIDBUF_READONLY",
                "leave out the flags of new memory"});
  }
  GRIDBUF_ASSIGN_OR_RETURN(const auto& view, view_of(field, strides_bytes));
  const DeviceType memory = field.memory.value_or(DeviceType::kHost);
  GRIDBUF_ASSIGN_OR_RETURN(auto& descriptor,
                           describe({.block = static_cast<std::byte*>(data),
                                     .view = view,
                                     .dtype = field.dtype,
                                     .readonly = (field.flags & GRIDBUF_READONLY) != 0,
                                     .device = device_of(memory, field.device_id),
                                     .owner = std::move(owner)}));
  LayoutRequest given = field.request;
  // Strides that were passed decide the order.
  if (strides_bytes != nullptr) given.layout = {};
  return Array::from(std::move(descriptor), given);
}

absl::StatusOr<Array> create(const Options& field) {
  if ((field.flags & (GRIDBUF_READONLY | GRIDBUF_DELAYED)) != 0) {
    return bad({"options->flags", "GRIDBUF_READONLY or DELAYED",
                "0 or more of GRIDBUF_ZEROED and POPULATE",
                "wrap memory to make it read-only; make a storage to delay it"});
  }
  if (field.kind || !field.device_layout.empty() || field.device_alignment_bytes != 0) {
    return bad({"options->kind, device_layout or device_alignment_bytes", "set", "0 for an array",
                "make a storage, or pass memory"});
  }
  const MemoryKind preset = field.wants_device ? MemoryKind::kDevice : MemoryKind::kHost;
  return Array::empty(field.request, field.dtype,
                      {.memory = field.memory ? memory_kind(*field.memory) : preset,
                       .zeroed = (field.flags & GRIDBUF_ZEROED) != 0,
                       .populate = (field.flags & GRIDBUF_POPULATE) != 0});
}

absl::StatusOr<Array> import(DLManagedTensorVersioned* tensor, const gridbuf_options* options) {
  GRIDBUF_ASSIGN_OR_RETURN(
      auto& view, dlpack::take(reinterpret_cast<dlpack::DLManagedTensorVersioned*>(tensor)));
  GRIDBUF_ASSIGN_OR_RETURN(const auto& given, read_meaning(options, view.memory.view.ndim()));
  return Array::from(std::move(view.memory), given);
}

absl::Status check_emulated(const BufferDescriptor& memory) {
  if (memory.device.type == DeviceType::kHost || emulated_device_is_on()) return absl::OkStatus();
  const DeviceDriver* driver = driver_of(memory.block);
  if (driver == nullptr || !driver->is_emulated()) return absl::OkStatus();
  return make_error(ErrorClass::kBuffer,
                    "the array's memory is the emulated device's, which is switched off; switch it "
                    "on with gridbuf_use_emulated_device");
}

}  // namespace
}  // namespace gridbuf::c

using gridbuf::Array;
using namespace gridbuf::c;

extern "C" {

gridbuf_status gridbuf_array_create(const gridbuf_options* options, gridbuf_array** out) {
  return made(out, [&]() -> absl::Status {
    GRIDBUF_ASSIGN_OR_RETURN(const auto& field, read_options(options));
    return give(create(field), out);
  });
}

gridbuf_status gridbuf_array_wrap(void* data, const int64_t* strides_bytes,
                                  const gridbuf_options* options, gridbuf_release release,
                                  void* context, gridbuf_array** out) {
  return made(out, [&]() -> absl::Status {
    GRIDBUF_ASSIGN_OR_RETURN(const auto& field, read_options(options));
    const auto foreign = std::make_shared<WrappedMemory>();
    GRIDBUF_RETURN_IF_ERROR(
        give(wrap(data, strides_bytes, field, gridbuf::Owner(foreign, data)), out));
    foreign->context = context;
    foreign->release = release;
    return absl::OkStatus();
  });
}

gridbuf_status gridbuf_array_release(gridbuf_array* array) {
  return guarded([&] { return release(inside(array)); });
}

gridbuf_status gridbuf_array_info(const gridbuf_array* array, gridbuf_info* info) {
  return with(array, [&](const Array& shown) {
    return write_info(shown, 0, shown.memory().first_element(), info);
  });
}

gridbuf_status gridbuf_array_dim(const gridbuf_array* array, int32_t axis, char* name,
                                 int32_t* kind) {
  return with(array, [&](const Array& shown) {
    return write_dim(shown.layout().dims(), axis, name, kind);
  });
}

gridbuf_status gridbuf_array_view(const gridbuf_array* array, const gridbuf_item* items,
                                  int32_t count, gridbuf_array** out) {
  return made_with(array, out, [&](const Array& source) {
    return apply_or_error(read_items(source.shape(), items, count), source);
  });
}

gridbuf_status gridbuf_array_transpose(const gridbuf_array* array, const int32_t* axes,
                                       gridbuf_array** out) {
  return made_with(array, out, [&](const Array& source) {
    return apply_or_error(read_axes(source.shape(), axes), source);
  });
}

gridbuf_status gridbuf_array_domain(const gridbuf_array* array, gridbuf_array** out) {
  return made_with(array, out, [](const Array& source) -> absl::StatusOr<Array> {
    return source.domain_view();
  });
}

gridbuf_status gridbuf_array_copy(const gridbuf_array* array, int32_t memory, gridbuf_array** out) {
  return made_with(array, out, [&](const Array& source) -> absl::StatusOr<Array> {
    if (memory == 0) return source.copy();
    GRIDBUF_ASSIGN_OR_RETURN(const auto& type, read_memory(memory));
    return source.copy(memory_kind(type));
  });
}

gridbuf_status gridbuf_array_copy_from(const gridbuf_array* array, const gridbuf_array* source) {
  return with(array, [&](const Array& target) -> absl::Status {
    GRIDBUF_RETURN_IF_ERROR(check(inside(source)));
    return target.copy_from(value_of(source));
  });
}

gridbuf_status gridbuf_array_fill(const gridbuf_array* array, const void* element) {
  return with(array, [&](const Array& target) -> absl::Status {
    const auto bytes = static_cast<std::size_t>(target.memory().dtype.itemsize_bytes());
    if (bytes > 0) GRIDBUF_RETURN_IF_ERROR(require(element, "element"));
    return target.fill({static_cast<const std::byte*>(element), bytes});
  });
}

gridbuf_status gridbuf_array_wait(const gridbuf_array* array) {
  return with(array, [](const Array& used) { return used.wait(); });
}

gridbuf_status gridbuf_array_to_dlpack(const gridbuf_array* array,
                                       struct DLManagedTensorVersioned** out) {
  return made(out, [&]() -> absl::Status {
    GRIDBUF_RETURN_IF_ERROR(check(inside(array)));
    const gridbuf::BufferDescriptor& memory = inside(array)->value.memory();
    GRIDBUF_RETURN_IF_ERROR(check_emulated(memory));
    GRIDBUF_ASSIGN_OR_RETURN(auto& tensor, gridbuf::dlpack::export_versioned(memory));
    *out = reinterpret_cast<DLManagedTensorVersioned*>(tensor.release());
    return absl::OkStatus();
  });
}

gridbuf_status gridbuf_array_from_dlpack(struct DLManagedTensorVersioned* tensor,
                                         const gridbuf_options* options, gridbuf_array** out) {
  if (tensor == nullptr || out == nullptr) {
    // The tensor is taken over in every case.
    using Tensor = gridbuf::dlpack::DLManagedTensorVersioned;
    if (tensor != nullptr)
      guarded([&] { return gridbuf::dlpack::take(reinterpret_cast<Tensor*>(tensor)).status(); });
    if (out != nullptr) *out = nullptr;
    return guarded([&] { return require(nullptr, tensor == nullptr ? "tensor" : "out"); });
  }
  return made(out, [&] { return give(import(tensor, options), out); });
}

}  // extern "C"
