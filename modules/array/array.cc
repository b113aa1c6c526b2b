module;

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.array;

import gridbuf.alloc;
import gridbuf.alloc.host;
import gridbuf.base;
import gridbuf.device;
import gridbuf.device.registry;
import gridbuf.interface;
import gridbuf.layout;
import gridbuf.layout.view;
import gridbuf.transfer;
import gridbuf.transfer.device;

namespace gridbuf {

// --- Allocation ----------------------------------------------------------------------------------

namespace {

// Zeroing all of a smaller block is as fast as finding its padding.
constexpr std::int64_t kFewBytes = std::int64_t{1} << 16;

// New pages of the system are zero.
bool is_zero_already(const BlockInfo& info) {
  return info.pages != PageKind::kShared && !info.from_cache && !host_resource().poisons();
}

// The padding of the rows, as a view of bytes.
StridedView padding_of(const Layout& layout) {
  StridedView padding = layout.view();
  const int axis = layout.contiguous_axis();
  padding.offset_bytes = layout.shape()[axis] * layout.itemsize_bytes();
  padding.shape[axis] = layout.row_padding() * layout.itemsize_bytes();
  padding.strides_bytes[axis] = 1;
  padding.itemsize_bytes = 1;
  return padding;
}

// Poison mode: poisons the bytes between the rows until the memory is freed.
void poison_padding(const Layout& layout, const std::byte* first_element) {
  const int axis = layout.contiguous_axis();
  if (axis < 0) return;
  poison_row_padding(first_element, layout.total_bytes(),
                     (layout.shape()[axis] + layout.row_padding()) * layout.itemsize_bytes(),
                     layout.shape()[axis] * layout.itemsize_bytes());
}

absl::StatusOr<Block> block_of(DeviceType type, const AllocationRequest& request) {
  if (type == DeviceType::kHost) return host_resource().allocate(request);
  const absl::StatusOr<MemoryResource*> resource = memory_resource(type);
  if (!resource.ok()) return resource.status();
  return (*resource)->allocate(request);
}

absl::Status fill(const BufferDescriptor& memory, std::span<const std::byte> element) {
  if (memory.is_empty()) return absl::OkStatus();
  if (is_host_readable(memory.device.type)) {
    return fill_elements(memory.block, memory.view, element);
  }
  const absl::StatusOr<DeviceDriver*> driver = device_driver();
  if (!driver.ok()) return driver.status();
  return fill_elements_on(**driver, memory.block, memory.view, element, current_stream());
}

}  // namespace

absl::Status with_request(const absl::Status& status, const Layout& layout,
                          std::string_view dtype_name, DeviceType type) {
  if (error_class_of(status) != ErrorClass::kMemory) return status;
  return with_context(
      status, "no memory for shape " + to_string(layout.shape()) + ", dtype " +
                  std::string(dtype_name) + ", layout " + to_string(layout.layout()) +
                  ", padded shape " + to_string(layout.padded_shape()) + ", alignment " +
                  std::to_string(layout.alignment_bytes()) + " bytes at index " +
                  to_string(layout.aligned_index()) + ", memory " + std::string(memory_name(type)) +
                  ", " + bytes_text(layout.total_bytes()));
}

absl::StatusOr<Block> allocate_block(const Layout& layout, const ArrayOptions& options) {
  const bool on_host = options.memory == DeviceType::kHost;
  const bool padding_alone =
      options.zeroed_padding && !options.zeroed && on_host && layout.total_bytes() > kFewBytes;
  const bool zeroed = options.zeroed || (options.zeroed_padding && !padding_alone);
  absl::StatusOr<Block> block =
      block_of(options.memory, {.total_bytes = layout.total_bytes(),
                                .alignment_bytes = layout.alignment_bytes(),
                                .aligned_offset_bytes = layout.aligned_offset_bytes(),
                                .zeroed = zeroed,
                                .populate = options.populate});
  if (!block.ok() || !on_host) return block;
  if (padding_alone && !is_zero_already(block->info())) {
    const std::byte zero{0};
    absl::Status status = fill_elements(block->data(), padding_of(layout), std::span(&zero, 1));
    if (!status.ok()) return status;
  }
  if (host_resource().poisons()) poison_padding(layout, block->data());
  return block;
}

// --- Making arrays -------------------------------------------------------------------------------

absl::StatusOr<Array> Array::allocate(const Layout& layout, const DType& dtype,
                                      const ArrayOptions& options) {
  absl::StatusOr<Block> block = allocate_block(layout, options);
  if (!block.ok()) return with_request(block.status(), layout, dtype.name(), options.memory);
  std::byte* const data = block->data();
  const Device device = block->info().device;
  absl::StatusOr<Owner> owner = share(*std::move(block));
  if (!owner.ok()) return with_request(owner.status(), layout, dtype.name(), options.memory);
  return Array{.memory = {.block = data,
                          .view = layout.view(),
                          .dtype = dtype,
                          .device = device,
                          .owner = *std::move(owner)},
               .layout = layout};
}

absl::StatusOr<Array> Array::empty(LayoutRequest request, const DType& dtype,
                                   const ArrayOptions& options) {
  const std::string name = dtype.name();
  request.itemsize_bytes = dtype.itemsize_bytes();
  request.dtype_name = name;
  if (request.dims.empty()) request.dims = default_dims(request.shape.size());
  const absl::StatusOr<Layout> layout = make_plan(request);
  if (!layout.ok()) return layout.status();
  return allocate(*layout, dtype, options);
}

absl::StatusOr<Array> Array::zeros(const LayoutRequest& request, const DType& dtype,
                                   ArrayOptions options) {
  options.zeroed = true;
  return empty(request, dtype, options);
}

absl::StatusOr<Array> Array::filled(const LayoutRequest& request, std::string_view dtype,
                                    std::span<const std::byte> element,
                                    const ArrayOptions& options) {
  const absl::StatusOr<DType> type = DType::from_name(dtype);
  if (!type.ok()) return type.status();
  absl::StatusOr<Array> made = empty(request, *type, options);
  if (!made.ok()) return made;
  if (absl::Status status = fill(made->memory, element); !status.ok()) return status;
  return made;
}

namespace {

absl::Status check_meaning(const LayoutRequest& given, const Extents& shape) {
  const int ndim = shape.size();
  for (const absl::Status& status :
       {given.dims.empty() ? absl::OkStatus() : validate_dims(given.dims, ndim),
        given.halo.empty() ? absl::OkStatus() : validate_halo(given.halo, shape),
        given.layout.empty() ? absl::OkStatus() : validate_layout_map(given.layout, ndim)}) {
    if (!status.ok()) return status;
  }
  bool fits = given.aligned_index.empty() || given.aligned_index.size() == ndim;
  for (int axis = 0; fits && axis < given.aligned_index.size(); ++axis) {
    const std::int64_t index = given.aligned_index[axis];
    fits = index >= 0 && (index < shape[axis] || index == 0);
  }
  if (fits && given.alignment_bytes >= 1) return absl::OkStatus();
  return make_error(ErrorClass::kValue,
                    {"aligned_index", to_string(given.aligned_index),
                     "an index of shape " + to_string(shape) + ", with an alignment of 1 or more",
                     "leave both out"});
}

absl::Status check_alignment(const BufferDescriptor& memory, const Layout& layout) {
  if (memory.is_empty() || layout.alignment_bytes() == 1) return absl::OkStatus();
  const auto address = reinterpret_cast<std::uintptr_t>(
      memory.block + byte_offset(memory.view, layout.aligned_index()));
  const auto excess = address % static_cast<std::uintptr_t>(layout.alignment_bytes());
  if (excess == 0) return absl::OkStatus();
  return make_error(ErrorClass::kValue,
                    {"alignment_size", std::to_string(layout.alignment_bytes()),
                     "kept by the element at aligned_index " + to_string(layout.aligned_index()) +
                         ", whose address is " + std::to_string(excess) + " modulo it",
                     "leave it out, or copy the array"});
}

}  // namespace

absl::StatusOr<Array> Array::from(BufferDescriptor memory, const LayoutRequest& given) {
  absl::StatusOr<BufferDescriptor> checked = describe(std::move(memory));
  if (!checked.ok()) return checked.status();
  const StridedView& view = checked->view;
  const int ndim = view.ndim();
  if (absl::Status status = check_meaning(given, view.shape); !status.ok()) return status;
  const Layout layout(
      view, given.layout.empty() ? layout_of(view.shape, view.strides_bytes) : given.layout,
      given.alignment_bytes, given.aligned_index.empty() ? Extents(ndim, 0) : given.aligned_index,
      given.dims.empty() ? default_dims(ndim) : given.dims, given.halo);
  if (absl::Status status = check_alignment(*checked, layout); !status.ok()) return status;
  return Array{.memory = *std::move(checked), .layout = layout};
}

// --- Views ---------------------------------------------------------------------------------------

Array apply(const IndexMap& map, const Array& array) {
  const Layout seen = apply(map, array.layout);
  return {.memory = {.block = array.memory.block,
                     .view = seen.view(),
                     .dtype = array.memory.dtype,
                     .readonly = array.memory.readonly,
                     .device = array.memory.device,
                     .owner = array.memory.owner},
          .layout = seen};
}

Array Array::view(const IndexMap& map) const { return apply(map, *this); }

Array Array::domain_view() const {
  return layout.halo().empty() ? *this : view(domain_map(shape(), layout.halo()));
}

absl::StatusOr<Array> Array::with_halo(const Halo& halo) const {
  const absl::StatusOr<Layout> changed = with_meaning(layout, layout.dims(), halo);
  if (!changed.ok()) return changed.status();
  return Array{.memory = memory, .layout = *changed};
}

// --- Copies --------------------------------------------------------------------------------------

LayoutRequest Array::request() const {
  return {.shape = layout.shape(),
          .itemsize_bytes = layout.itemsize_bytes(),
          .layout = layout.layout(),
          .alignment_bytes = layout.alignment_bytes(),
          .aligned_index = layout.aligned_index(),
          .dims = layout.dims(),
          .halo = layout.halo()};
}

absl::StatusOr<Array> Array::copy(std::optional<DeviceType> wanted) const {
  absl::StatusOr<Array> made =
      empty(request(), memory.dtype,
            {.memory = wanted.value_or(memory.device.type), .zeroed_padding = true});
  if (!made.ok()) return made;
  if (absl::Status status = made->copy_from(*this); !status.ok()) return status;
  return made;
}

absl::Status enqueue_copy(DeviceDriver& driver, const BufferDescriptor& to,
                          const BufferDescriptor& from, StreamHandle stream) {
  const absl::StatusOr<StridedView> repeated = broadcast_to(from.view, to.view.shape);
  if (!repeated.ok()) return repeated.status();
  const bool from_host = is_host_readable(from.device.type);
  const bool to_host = is_host_readable(to.device.type);
  if (from_host && !to_host && checked::product(from.view.shape.span()) == 1) {
    const std::span element(from.first_element(),
                            static_cast<std::size_t>(from.view.itemsize_bytes));
    return fill_elements_on(driver, to.block, to.view, element, stream);
  }
  if (from_host == to_host) {
    return copy_elements_on(driver, to.block, to.view, from.block, *repeated, stream);
  }
  return to_host ? copy_to_host(driver, {to.block, to.view}, {from.block, *repeated}, stream)
                 : copy_to_device(driver, {to.block, to.view}, {from.block, *repeated}, stream);
}

absl::Status Array::copy_from(const Array& source) const {
  const BufferDescriptor& from = source.memory;
  if (shape() != source.shape() || memory.view.itemsize_bytes != from.view.itemsize_bytes) {
    return make_error(ErrorClass::kValue,
                      {"the source", to_string(from.view),
                       "of the target's shape and item size, " + to_string(memory.view),
                       "broadcast or convert it first"});
  }
  if (memory.readonly) {
    return make_error(ErrorClass::kValue,
                      {"the target", "read-only", "writable", "copy it, and write to the copy"});
  }
  const bool from_host = is_host_readable(from.device.type);
  const bool to_host = is_host_readable(memory.device.type);
  if (from_host && to_host) {
    return copy_elements(memory.block, memory.view, from.block, from.view);
  }
  const absl::StatusOr<DeviceDriver*> driver = device_driver();
  if (!driver.ok()) return driver.status();
  absl::Status status = enqueue_copy(**driver, memory, from, current_stream());
  const bool host_takes_part = from_host || to_host;
  return status.ok() && host_takes_part ? (*driver)->synchronize(current_stream()) : status;
}

// --- Elements ------------------------------------------------------------------------------------

absl::Status check_element_type(std::string_view what, const DType& found, std::string_view name) {
  const absl::StatusOr<DType> wanted = DType::from_name(name);
  if (wanted.ok() && *wanted == found) return absl::OkStatus();
  return make_error(ErrorClass::kType, {what, found.name(), std::string(name) + " for this access",
                                        "access it with its element type"});
}

absl::Status Array::check_access(std::string_view dtype, bool reads_only) const {
  if (!is_host_readable(memory.device.type)) {
    return make_error(ErrorClass::kNoSuchBuffer,
                      {"the array's memory", to_string(memory.device), "readable by the host",
                       "copy(DeviceType::kHost) makes an array of the host"});
  }
  if (memory.readonly && !reads_only) {
    return make_error(ErrorClass::kValue, {"the array", "read-only", "writable for this access",
                                           "ask for elements of a const type"});
  }
  return check_element_type("the array's dtype", memory.dtype, dtype);
}

}  // namespace gridbuf
