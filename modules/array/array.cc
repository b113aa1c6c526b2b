module;

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

absl::StatusOr<Block> block_of(const ArrayOptions& options, const AllocationRequest& request) {
  if (options.resource != nullptr) return options.resource->allocate(request);
  if (options.memory == MemoryKind::kHost) return host_resource().allocate(request);
  const absl::StatusOr<MemoryResource*> resource = memory_resource(options.memory);
  if (!resource.ok()) return resource.status();
  return (*resource)->allocate(request);
}

// The status with the parameters of the request if it is kMemory.
absl::Status with_request(const absl::Status& status, const Layout& layout,
                          std::string_view dtype_name, MemoryKind kind) {
  if (error_class_of(status) != ErrorClass::kMemory) return status;
  return with_context(
      status, "no memory for shape " + to_string(layout.shape()) + ", dtype " +
                  std::string(dtype_name) + ", layout " + to_string(layout.layout_map()) +
                  ", padded shape " + to_string(layout.padded_shape()) + ", alignment " +
                  std::to_string(layout.alignment_bytes()) + " bytes at index " +
                  to_string(layout.aligned_index()) + ", memory " + std::string(to_string(kind)) +
                  ", " + bytes_text(layout.total_bytes()));
}

// In poison mode no thread may touch the padding of the rows.
absl::StatusOr<Block> allocate_block(const Layout& layout, const DType& dtype,
                                     const ArrayOptions& options) {
  const bool on_host = options.memory == MemoryKind::kHost;
  const bool padding_alone = options.zeroed_padding && !options.zeroed && on_host &&
                             layout.total_bytes() > kFewBytes && dtype.parts() == nullptr;
  const bool zeroed = options.zeroed || (options.zeroed_padding && !padding_alone);
  absl::StatusOr<Block> block =
      block_of(options, {.total_bytes = layout.total_bytes(),
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

}  // namespace

// --- Making arrays -------------------------------------------------------------------------------

absl::StatusOr<ArrayMemory> Array::allocate_memory(const Layout& layout, const DType& dtype,
                                                   const ArrayOptions& options) {
  const auto failed = [&](const absl::Status& status) {
    const std::string name =
        options.dtype_name.empty() ? dtype.name() : std::string(options.dtype_name);
    return with_request(status, layout, name, options.memory);
  };
  absl::StatusOr<Block> block = allocate_block(layout, dtype, options);
  if (!block.ok()) return failed(block.status());
  std::byte* const data = block->data();
  ArrayInfo info{.block = block->info(), .allocation_bytes = block->allocation_bytes()};
  // Pinned and managed memory is not made on a stream, but worked on, and exported, on a stream.
  if (info.block.stream == 0 && options.memory != MemoryKind::kHost) {
    info.block.stream = current_stream();
  }
  absl::StatusOr<Owner> owner = share(*std::move(block));
  if (!owner.ok()) return failed(owner.status());
  return absl::StatusOr<ArrayMemory>(std::in_place, data, *std::move(owner), info);
}

absl::StatusOr<Array> Array::allocate(const Layout& layout, const DType& dtype,
                                      const ArrayOptions& options) {
  absl::StatusOr<ArrayMemory> memory = allocate_memory(layout, dtype, options);
  if (!memory.ok()) return memory.status();
  return absl::StatusOr<Array>(std::in_place, *std::move(memory), layout, dtype);
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
  if (absl::Status status = made->fill(element); !status.ok()) return status;
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
      given.alignment_bytes,
      given.aligned_index.empty() ? default_aligned_index(given.halo, view.shape)
                                  : given.aligned_index,
      given.dims.empty() ? default_dims(ndim) : given.dims, given.halo);
  if (absl::Status status = check_alignment(*checked, layout); !status.ok()) return status;
  return Array(*std::move(checked), layout);
}

absl::StatusOr<Array> Array::from_elements(std::span<const std::byte> elements,
                                           std::string_view dtype, bool readonly,
                                           LayoutRequest given, Owner owner) {
  const absl::StatusOr<DType> type = DType::from_name(dtype);
  if (!type.ok()) return type.status();
  given.itemsize_bytes = type->itemsize_bytes();
  const absl::StatusOr<Layout> dense = make_plan(
      {.shape = given.shape, .itemsize_bytes = given.itemsize_bytes, .layout = given.layout});
  if (!dense.ok()) return dense.status();
  if (dense->nbytes() != std::ssize(elements)) {
    return make_error(ErrorClass::kValue,
                      {"the span", bytes_text(std::ssize(elements)),
                       bytes_text(dense->nbytes()) + ", as shape " + to_string(given.shape) +
                           " has of " + std::string(dtype),
                       "pass all elements and no more"});
  }
  return from({.block = reinterpret_cast<std::byte*>(const_cast<std::byte*>(elements.data())),
               .view = dense->view(),
               .dtype = *type,
               .readonly = readonly,
               .device = {},
               .owner = std::move(owner)},
              given);
}

absl::StatusOr<Array> Array::from_strided(const void* first, bool readonly, const StridedView& view,
                                          std::string_view dtype, const LayoutRequest& given,
                                          Owner owner) {
  absl::StatusOr<DType> type = DType::from_name(dtype);
  if (!type.ok()) return type.status();
  absl::StatusOr<BufferDescriptor> memory =
      describe({.block = static_cast<std::byte*>(const_cast<void*>(first)),
                .view = view,
                .dtype = *std::move(type),
                .readonly = readonly,
                .device = {},
                .owner = std::move(owner)});
  if (!memory.ok()) return memory.status();
  return from(*std::move(memory), given);
}

absl::StatusOr<Extents> mdspan_strides(StridedView view, std::span<const std::int64_t> fixed,
                                       std::int64_t largest) {
  const auto refused = [&](const std::string& bound, std::string_view remedy) {
    return make_error(ErrorClass::kValue, {"the array", to_string(view), bound, remedy});
  };
  if (view.ndim() != std::ssize(fixed)) {
    return refused("of " + std::to_string(fixed.size()) + " dimensions for this mdspan",
                   "use an mdspan of the array's rank");
  }
  replace_meaningless_strides(view);
  Extents strides = view.strides_bytes;
  for (int axis = 0; axis < view.ndim(); ++axis) {
    if (fixed[axis] >= 0 && fixed[axis] != view.shape[axis]) {
      return refused("of extent " + std::to_string(fixed[axis]) + " in dimension " +
                         std::to_string(axis) + " for this mdspan",
                     "use an mdspan with dynamic extents");
    }
    if (strides[axis] <= 0 || strides[axis] % view.itemsize_bytes != 0) {
      return refused("of strides that are positive multiples of the item size for an mdspan",
                     "copy it first");
    }
    strides[axis] /= view.itemsize_bytes;
    if (std::max(view.shape[axis], strides[axis]) > largest) {
      return refused("of extents and strides up to " + std::to_string(largest) +
                         ", in elements, for this mdspan",
                     "use an mdspan with a longer index_type");
    }
  }
  return strides;
}

// --- Views ---------------------------------------------------------------------------------------

Array apply(const IndexMap& map, const Array& array) {
  const BufferDescriptor& memory = array.memory();
  return Array({.block = memory.block,
                .view = apply(map, memory.view),
                .dtype = memory.dtype,
                .readonly = memory.readonly,
                .device = memory.device,
                .owner = memory.owner},
               SeenParts{map, array.layout()}, array.info());
}

Array Array::view(const IndexMap& map) const { return apply(map, *this); }

Array Array::domain_view() const {
  return layout_.halo().empty() ? *this : view(domain_map(shape(), layout_.halo()));
}

absl::StatusOr<Array> Array::with_halo(const Halo& halo) const {
  const absl::StatusOr<Layout> changed = with_meaning(layout_, layout_.dims(), halo);
  if (!changed.ok()) return changed.status();
  return Array(memory_, *changed, info_);
}

Array Array::as_readonly() const {
  Array seen = *this;
  seen.memory_.readonly = true;
  return seen;
}

// --- Copies --------------------------------------------------------------------------------------

LayoutRequest Array::request() const {
  return {.shape = layout_.shape(),
          .itemsize_bytes = layout_.itemsize_bytes(),
          .layout = layout_.layout_map(),
          .alignment_bytes = layout_.alignment_bytes(),
          .aligned_index = layout_.aligned_index(),
          .dims = layout_.dims(),
          .halo = layout_.halo()};
}

absl::StatusOr<Array> Array::copy(std::optional<MemoryKind> wanted) const {
  absl::StatusOr<Array> made =
      empty(request(), memory_.dtype,
            {.memory = wanted.value_or(memory_kind(memory_.device.type)), .zeroed_padding = true});
  if (!made.ok()) return made;
  if (absl::Status status = made->copy_from(*this); !status.ok()) return status;
  return made;
}

StreamHandle Array::stream() const {
  return info_.block.stream == 0 ? kLegacyDefaultStream : info_.block.stream;
}

// The driver that made the memory; null for host memory, and for memory that no driver knows.
DeviceDriver* Array::driver() const {
  if (memory_.device.type == DeviceType::kHost || memory_.block == nullptr) return nullptr;
  return driver_of(memory_.block);
}

absl::Status Array::wait() const {
  DeviceDriver* const made_by = driver();
  return made_by == nullptr ? absl::OkStatus() : made_by->synchronize(stream());
}

namespace {

// Of an element; none if all bytes have a value. An extended long double of x86 has 10 of 16.
std::optional<ElementParts> value_bytes(const DType& type) {
  constexpr std::int64_t kLongBytes = 16;
  if (type.parts() != nullptr) return *type.parts();
  const bool is_long = type.kind() == Kind::kFloat || type.kind() == Kind::kComplex;
  if (!is_long || type.swap_unit_bytes() != kLongBytes) return {};
  if (std::numeric_limits<long double>::digits != 64) return {};
  ElementParts parts;
  for (std::int64_t at = 0; at < type.itemsize_bytes(); at += kLongBytes) {
    parts.push_back({.offset_bytes = at, .itemsize_bytes = 10});
  }
  return parts;
}

}  // namespace

absl::StatusOr<Digest> Array::digest() const {
  const Array domain = domain_view();
  const DType& type = memory_.dtype;
  if (!type.is_native() || !is_host_readable(memory_.device.type)) {
    const absl::StatusOr<Array> copied =
        allocate(domain.layout(), type.is_native() ? type : type.byteswapped());
    if (!copied.ok()) return copied.status();
    const absl::Status status = copied->copy_from(domain);
    return status.ok() ? copied->digest() : status;
  }
  std::vector<std::string> names;
  std::vector<DigestDim> dims;
  for (const Dim dim : domain.layout().dims()) names.push_back(to_string(dim));
  for (int axis = 0; axis < domain.layout().ndim(); ++axis) {
    const Dim dim = domain.layout().dims()[axis];
    dims.push_back({names[static_cast<std::size_t>(axis)], dim.has_start() ? dim.start() : 0});
  }
  const std::optional<ElementParts> parts = value_bytes(type);
  return digest_elements(domain.memory().block, domain.memory().view, dims,
                         type.name() + type.descr(), parts ? &*parts : nullptr);
}

absl::Status Array::check_writable() const {
  if (!memory_.readonly) return absl::OkStatus();
  return make_error(ErrorClass::kValue,
                    {"the target", "read-only", "writable", "copy it, and write to the copy"});
}

std::optional<Number> number_of(const DType& type) {
  const std::int64_t bits = type.bits();
  const bool is_int = type.kind() == Kind::kInt;
  const bool is_float = type.kind() == Kind::kFloat;
  if (is_float && bits == 64) return Number::kFloat64;
  if (is_float && bits == 32) return Number::kFloat32;
  if (is_float && bits == 16) return Number::kFloat16;
  if (is_int && bits == 64) return Number::kInt64;
  if (is_int && bits == 32) return Number::kInt32;
  return std::nullopt;
}

bool can_convert(const DType& to, const DType& from) {
  const std::optional<Number> target = number_of(to);
  const std::optional<Number> source = number_of(from);
  return target && source && can_convert(*target, *source);
}

absl::Status check_copied_type(const DType& to, const DType& from) {
  if (to == from || to == from.byteswapped() || can_convert(to, from)) return absl::OkStatus();
  return make_error(ErrorClass::kType,
                    {"the source's element type", from.name(),
                     "one that a copy converts to " + to.name() +
                         ": between float16, float32 and float64, or from int32 or int64 to "
                         "float32 or float64",
                     "convert the elements first"});
}

namespace {

// Of equal shapes, by the host. The types have passed check_copied_type.
absl::Status copy_on_host(const BufferDescriptor& to, const BufferDescriptor& from,
                          const StridedView& source) {
  const bool swaps = !(to.dtype == from.dtype);
  if (!swaps || to.dtype == from.dtype.byteswapped()) {
    return copy_elements(
        to.block, to.view, from.block, source,
        {.swap_unit_bytes = swaps ? to.dtype.swap_unit_bytes() : 1, .parts = to.dtype.parts()});
  }
  return convert_elements(to.block, to.view, *number_of(to.dtype), from.block, source,
                          *number_of(from.dtype),
                          {.target_is_swapped = !to.dtype.is_native(),
                           .source_is_swapped = !from.dtype.is_native()})
      .status();
}

}  // namespace

absl::Status Array::copy_from(const Array& source) const {
  const BufferDescriptor& from = source.memory_;
  if (absl::Status status = check_copied_type(memory_.dtype, from.dtype); !status.ok()) {
    return status;
  }
  const absl::StatusOr<StridedView> repeated = broadcast_to(from.view, shape());
  if (!repeated.ok()) return repeated.status();
  if (absl::Status status = check_writable(); !status.ok()) return status;
  if (memory_.is_empty()) return absl::OkStatus();
  if (!is_host_readable(from.device.type) || !is_host_readable(memory_.device.type)) {
    return memory_.dtype == from.dtype ? copy_by_device(source) : convert_by_host(source);
  }
  for (const Array* array : {this, &source}) {
    if (absl::Status status = array->wait(); !status.ok()) return status;
  }
  return copy_on_host(memory_, from, *repeated);
}

absl::Status Array::convert_by_host(const Array& source) const {
  const absl::StatusOr<Array> read = source.copy(MemoryKind::kHost);
  if (!read.ok()) return read.status();
  const absl::StatusOr<Array> converted = empty({.shape = source.shape()}, memory_.dtype);
  if (!converted.ok()) return converted.status();
  if (absl::Status status = converted->copy_from(*read); !status.ok()) return status;
  return copy_from(*converted);
}

namespace {

// At least one end is of a device. `from` is broadcast to the shape of `to`; a single element of
// the host is a fill.
absl::Status enqueue_copy(DeviceDriver& driver, const BufferDescriptor& to,
                          const BufferDescriptor& from, StreamHandle stream) {
  const absl::StatusOr<StridedView> repeated = broadcast_to(from.view, to.view.shape);
  if (!repeated.ok()) return repeated.status();
  // Managed memory may have work that is pending on the stream.
  const bool is_hosts =
      is_host_readable(from.device.type) && memory_kind(from.device.type) != MemoryKind::kManaged;
  if (is_hosts && checked::product(from.view.shape.span()) == 1) {
    const std::span element(from.first_element(),
                            static_cast<std::size_t>(from.view.itemsize_bytes));
    return fill_elements_on(driver, to.block, to.view, element, stream, to.dtype.parts());
  }
  return copy_elements_on(driver, to.block, to.view, from.block, *repeated, stream,
                          to.dtype.parts());
}

}  // namespace

absl::Status Array::copy_by_device(const Array& source) const {
  const bool to_device = !is_host_readable(memory_.device.type);
  const Array& leader = to_device ? *this : source;
  DeviceDriver* const device = leader.driver();
  if (device == nullptr) {
    return make_error(ErrorClass::kDeviceUnavailable,
                      "no device knows this memory; copy it with the library that it came from");
  }
  const StreamHandle stream = leader.stream();
  for (const Array* array : {this, &source}) {
    if (array->driver() == nullptr) continue;
    absl::Status status = device->order_after(array->stream(), stream);
    if (!status.ok()) return status;
  }
  absl::Status status = device->order_after(current_stream(), stream);
  if (status.ok()) status = enqueue_copy(*device, memory_, source.memory_, stream);
  if (!status.ok()) return status;
  if (!to_device || is_host_readable(source.memory_.device.type)) {
    return device->synchronize(stream);
  }
  device->note_use(source.memory_.block, stream);  // It may be freed before the copy has run.
  return device->order_after(stream, current_stream());
}

absl::Status Array::fill(std::span<const std::byte> element) const {
  if (absl::Status status = check_writable(); !status.ok()) return status;
  if (memory_.is_empty()) return absl::OkStatus();
  if (is_host_readable(memory_.device.type)) {
    return fill_elements(memory_.block, memory_.view, element, {.parts = memory_.dtype.parts()});
  }
  const absl::StatusOr<DeviceDriver*> driver = device_driver();
  if (!driver.ok()) return driver.status();
  return fill_elements_on(**driver, memory_.block, memory_.view, element, stream(),
                          memory_.dtype.parts());
}

// --- Elements ------------------------------------------------------------------------------------

absl::Status check_element_type(std::string_view what, const DType& found, std::string_view name) {
  const absl::StatusOr<DType> wanted = DType::from_name(name);
  if (wanted.ok() && *wanted == found) return absl::OkStatus();
  return make_error(ErrorClass::kType, {what, found.name(), std::string(name) + " for this access",
                                        "access it with its element type"});
}

absl::Status Array::check_access(std::string_view dtype, bool reads_only) const {
  if (!is_host_readable(memory_.device.type)) {
    return make_error(ErrorClass::kNoSuchBuffer,
                      {"the array's memory", to_string(memory_.device), "readable by the host",
                       "copy(MemoryKind::kHost) makes an array of the host"});
  }
  if (memory_.readonly && !reads_only) {
    return make_error(ErrorClass::kValue, {"the array", "read-only", "writable for this access",
                                           "ask for elements of a const type"});
  }
  return check_element_type("the array's dtype", memory_.dtype, dtype);
}

}  // namespace gridbuf
