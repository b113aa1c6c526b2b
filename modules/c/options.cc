// What a caller passes, in the types of the library, and back.
module;

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "modules/base/status_macros.h"
#include "modules/c/gridbuf.h"

module gridbuf.c;

import gridbuf.layout.preset;

namespace gridbuf::c {
namespace {

static_assert(GRIDBUF_MAX_NDIM == kMaxNdim && GRIDBUF_NAME_BYTES == kMaxNameLength + 1);
static_assert(static_cast<int>(DimKind::kData) == GRIDBUF_DATA);
static_assert(static_cast<int>(ErrorClass::kInternal) + 1 == GRIDBUF_INTERNAL);

// In bytes, of the first version of each struct.
constexpr std::size_t kFirstOptions = 120;
constexpr std::size_t kFirstInfo = sizeof(gridbuf_info);
static_assert(sizeof(gridbuf_options) == kFirstOptions && sizeof(gridbuf_info) == 2944);

// In the order of GRIDBUF_STORAGE_HOST, …
constexpr std::array kKinds{StorageKind::kCpu, StorageKind::kGpu, StorageKind::kSoftwareManaged,
                            StorageKind::kCudaManaged};

absl::Status check_ndim(std::int32_t ndim) {
  if (ndim >= 0 && ndim <= kMaxNdim) return absl::OkStatus();
  return bad({"options->ndim", std::to_string(ndim), "0 to " + std::to_string(kMaxNdim),
              "pass the number of dimensions"});
}

absl::StatusOr<DType> read_dtype(const char* dtype) {
  if (dtype == nullptr) return DType();
  const std::string_view text(dtype, strnlen(dtype, 256));
  const bool is_typestr = !text.empty() && (text[0] == '<' || text[0] == '>' || text[0] == '|');
  return is_typestr ? DType::from_typestr(text) : DType::from_name(text);
}

absl::StatusOr<Dims> read_dims(const gridbuf_options& options, int ndim) {
  if (options.dims == nullptr) return default_dims(ndim);
  std::vector<std::string_view> names;
  for (int axis = 0; axis < ndim; ++axis) {
    const char* name = options.dims[axis];
    GRIDBUF_RETURN_IF_ERROR(require(name, "options->dims[" + std::to_string(axis) + "]"));
    names.emplace_back(name, strnlen(name, 2 * GRIDBUF_NAME_BYTES));
  }
  if (options.dim_kinds == nullptr) return parse_dims(names, ndim);
  Dims dims;
  for (int axis = 0; axis < ndim; ++axis) {
    const std::int32_t kind = options.dim_kinds[axis];
    if (kind < GRIDBUF_HORIZONTAL || kind > GRIDBUF_DATA) {
      return bad({"options->dim_kinds[" + std::to_string(axis) + "]", std::to_string(kind),
                  "0 to 3", "pass GRIDBUF_HORIZONTAL, LOCAL, VERTICAL or DATA"});
    }
    GRIDBUF_ASSIGN_OR_RETURN(const auto& dim, make_dim(names[static_cast<std::size_t>(axis)],
                                                       static_cast<DimKind>(kind)));
    dims.push_back(dim);
  }
  GRIDBUF_RETURN_IF_ERROR(validate_dims(dims, ndim));
  return dims;
}

template <class List, class Value>
List list_of(const Value* values, int count) {
  List list;
  for (int i = 0; values != nullptr && i < count; ++i) list.push_back(values[i]);
  return list;
}

// The parameters that do not depend on the memory.
absl::StatusOr<LayoutRequest> meaning_of(const gridbuf_options& options, int ndim) {
  LayoutRequest request;
  GRIDBUF_ASSIGN_OR_RETURN(request.dims, read_dims(options, ndim));
  if (options.halo != nullptr) {
    GRIDBUF_ASSIGN_OR_RETURN(request.halo, read_halo(options.halo, ndim));
  }
  request.aligned_index = list_of<Extents>(options.aligned_index, ndim);
  return request;
}

}  // namespace

absl::StatusOr<DeviceType> read_memory(std::int32_t memory) {
  for (const MemoryKind kind :
       {MemoryKind::kHost, MemoryKind::kDevice, MemoryKind::kPinned, MemoryKind::kManaged}) {
    const DeviceType type = cuda_device(kind, 0).type;
    if (memory == static_cast<std::int32_t>(type)) return type;
  }
  return bad({"memory", std::to_string(memory), "1, 2, 3 or 13", "pass a GRIDBUF_MEMORY_…"});
}

absl::StatusOr<StorageKind> read_kind(std::int32_t kind) {
  if (kind >= 1 && kind <= 4) return kKinds[static_cast<std::size_t>(kind - 1)];
  return bad({"kind", std::to_string(kind), "1 to 4", "pass a GRIDBUF_STORAGE_…"});
}

std::int32_t number_of(StorageKind kind) {
  return static_cast<std::int32_t>(std::ranges::find(kKinds, kind) - kKinds.begin()) + 1;
}

absl::StatusOr<Side> read_side(std::int32_t side) {
  if (side == GRIDBUF_HOST) return Side::kHost;
  if (side == GRIDBUF_DEVICE) return Side::kDevice;
  return bad({"side", std::to_string(side), "0 or 1", "pass GRIDBUF_HOST or GRIDBUF_DEVICE"});
}

absl::StatusOr<Halo> read_halo(const std::int64_t* halo, int ndim) {
  GRIDBUF_RETURN_IF_ERROR(require(halo, "halo"));
  Halo widths;
  for (int axis = 0; axis < ndim; ++axis) {
    widths.push_back({.lower = halo[2 * axis], .upper = halo[2 * axis + 1]});
  }
  return widths;
}

absl::StatusOr<Options> read_options(const gridbuf_options* given) {
  GRIDBUF_ASSIGN_OR_RETURN(const auto& options, read_struct("options", given, kFirstOptions));
  GRIDBUF_RETURN_IF_ERROR(check_ndim(options.ndim));
  const int ndim = options.ndim;
  if (ndim > 0) GRIDBUF_RETURN_IF_ERROR(require(options.shape, "options->shape"));
  Options field;
  GRIDBUF_ASSIGN_OR_RETURN(field.dtype, read_dtype(options.dtype));
  GRIDBUF_ASSIGN_OR_RETURN(field.request, meaning_of(options, ndim));
  field.request.shape = list_of<Extents>(options.shape, ndim);
  field.request.itemsize_bytes = field.dtype.itemsize_bytes();
  if (options.backend != nullptr) {
    GRIDBUF_ASSIGN_OR_RETURN(
        const auto& preset,
        find_preset(std::string_view(options.backend, strnlen(options.backend, 256))));
    field.request.layout = preset_layout(preset, field.request.dims);
    field.request.alignment_bytes = preset.alignment_bytes;
    field.wants_device = preset.on_device;
  }
  if (options.layout != nullptr) field.request.layout = list_of<LayoutMap>(options.layout, ndim);
  if (options.alignment_bytes != 0) field.request.alignment_bytes = options.alignment_bytes;
  if (options.memory != 0) {
    GRIDBUF_ASSIGN_OR_RETURN(field.memory, read_memory(options.memory));
  }
  if (options.kind != 0) {
    GRIDBUF_ASSIGN_OR_RETURN(field.kind, read_kind(options.kind));
  }
  constexpr std::uint32_t kKnown =
      GRIDBUF_ZEROED | GRIDBUF_POPULATE | GRIDBUF_READONLY | GRIDBUF_DELAYED;
  if ((options.flags & ~kKnown) != 0 || options.reserved != 0) {
    return bad({"options->flags or options->reserved", std::to_string(options.flags),
                "GRIDBUF_ZEROED, POPULATE, READONLY and DELAYED, and 0",
                "use GRIDBUF_OPTIONS_INIT"});
  }
  field.flags = options.flags;
  field.device_id = options.device_id;
  field.device_layout = list_of<LayoutMap>(options.device_layout, ndim);
  field.device_alignment_bytes = options.device_alignment_bytes;
  return field;
}

absl::StatusOr<LayoutRequest> read_meaning(const gridbuf_options* given, int ndim) {
  if (given == nullptr) return LayoutRequest{};
  GRIDBUF_ASSIGN_OR_RETURN(const auto& options, read_struct("options", given, kFirstOptions));
  if (options.ndim == ndim) return meaning_of(options, ndim);
  return bad({"options->ndim", std::to_string(options.ndim),
              "that of the array, " + std::to_string(ndim), "pass dims and halo of the array"});
}

absl::StatusOr<std::optional<Layout>> device_layout_of(const Options& field,
                                                       const LayoutRequest& host) {
  if (field.device_layout.empty() && field.device_alignment_bytes == 0) return std::nullopt;
  LayoutRequest request = host;
  if (!field.device_layout.empty()) request.layout = field.device_layout;
  if (field.device_alignment_bytes != 0) request.alignment_bytes = field.device_alignment_bytes;
  GRIDBUF_ASSIGN_OR_RETURN(const auto& layout, make_plan(request));
  return std::optional(layout);
}

absl::StatusOr<IndexMap> read_items(const Extents& shape, const gridbuf_item* items, int count) {
  // Each dimension may have one item, and a few more are new axes.
  if (count < 0 || count > 3 * kMaxNdim) {
    return bad({"count", std::to_string(count), "0 to " + std::to_string(3 * kMaxNdim),
                "pass the number of items"});
  }
  if (count > 0) GRIDBUF_RETURN_IF_ERROR(require(items, "items"));
  std::vector<SubscriptItem> read;
  const auto end = [](std::int64_t position) {
    return position == GRIDBUF_NONE ? std::nullopt : std::optional(position);
  };
  for (const gridbuf_item& item : std::span(items, static_cast<std::size_t>(count))) {
    switch (item.kind) {
      case GRIDBUF_INDEX_AT:
        read.emplace_back(item.start);
        break;
      case GRIDBUF_SLICE:
        read.emplace_back(Slice{end(item.start), end(item.stop), item.step});
        break;
      case GRIDBUF_NEW_AXIS:
        read.emplace_back(NewAxis{});
        break;
      case GRIDBUF_ELLIPSIS:
        read.emplace_back(Ellipsis{});
        break;
      default:
        return bad({"the kind of item " + std::to_string(read.size()), std::to_string(item.kind),
                    "0 to 3", "pass GRIDBUF_INDEX_AT, SLICE, NEW_AXIS or ELLIPSIS"});
    }
  }
  return subscript_map(shape, read);
}

absl::StatusOr<IndexMap> read_axes(const Extents& shape, const std::int32_t* axes) {
  return transpose_map(shape, list_of<Axes>(axes, shape.size()));
}

absl::Status write_info(const Array& array, std::int32_t kind, void* data, gridbuf_info* out) {
  GRIDBUF_RETURN_IF_ERROR(require(out, "info"));
  GRIDBUF_RETURN_IF_ERROR(check_struct("info", out->struct_bytes, kFirstInfo));
  const BufferDescriptor& memory = array.memory();
  const Layout& layout = array.layout();
  const int ndim = layout.ndim();
  gridbuf_info info = {};
  info.data = data;
  info.ndim = ndim;
  info.memory = static_cast<std::int32_t>(memory.device.type);
  info.device_id = memory.device.id;
  info.kind = kind;
  info.readonly = memory.readonly ? 1 : 0;
  if (const absl::StatusOr<DlpackType> type = memory.dtype.dlpack(); type.ok()) {
    info.dlpack_code = type->code;
    info.dlpack_bits = type->bits;
  }
  const std::string name = memory.dtype.name();
  std::memcpy(info.dtype, name.data(), std::min(name.size(), sizeof(info.dtype) - 1));
  info.itemsize_bytes = memory.dtype.itemsize_bytes();
  info.nbytes = memory.nbytes();
  info.alignment_bytes = layout.alignment_bytes();
  for (int axis = 0; axis < ndim; ++axis) {
    info.shape[axis] = layout.shape()[axis];
    info.strides_bytes[axis] = memory.view.strides_bytes[axis];
    info.lower_halo[axis] = layout.halo().empty() ? 0 : layout.halo()[axis].lower;
    info.upper_halo[axis] = layout.halo().empty() ? 0 : layout.halo()[axis].upper;
    info.aligned_index[axis] = layout.aligned_index()[axis];
    info.layout[axis] = layout.layout_map()[axis];
  }
  write_struct(info, out);
  return absl::OkStatus();
}

absl::Status write_dim(const Dims& dims, int axis, char* name, std::int32_t* kind) {
  GRIDBUF_RETURN_IF_ERROR(require(name, "name"));
  if (axis < 0 || axis >= dims.size()) {
    return make_error(ErrorClass::kIndex,
                      {"axis", std::to_string(axis), "0 to " + std::to_string(dims.size() - 1),
                       "pass the position of a dimension"});
  }
  const std::string text = to_string(dims[axis]);
  std::memcpy(name, text.c_str(), std::min(text.size() + 1, std::size_t{GRIDBUF_NAME_BYTES}));
  if (kind != nullptr) *kind = static_cast<std::int32_t>(dims[axis].kind());
  return absl::OkStatus();
}

}  // namespace gridbuf::c
