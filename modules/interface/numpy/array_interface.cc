module;

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "modules/base/status_macros.h"

module gridbuf.interface.numpy;

namespace gridbuf {

// ---- __array_interface__: export. ----

namespace {

ArrayInterfaceFields fields_of(const BufferDescriptor& descriptor) {
  ArrayInterfaceFields fields;
  fields.shape = descriptor.view.shape;
  fields.typestr = descriptor.dtype.typestr();
  fields.data_address = reinterpret_cast<std::uintptr_t>(descriptor.first_element());
  fields.readonly = descriptor.readonly;
  if (!is_c_contiguous(descriptor.view)) fields.strides_bytes = descriptor.view.strides_bytes;
  fields.descr = descriptor.dtype.descr();
  return fields;
}

}  // namespace

absl::StatusOr<ArrayInterfaceFields> array_interface(const BufferDescriptor& descriptor) {
  if (!is_host_readable(descriptor.device.type)) {
    return make_error(
        ErrorClass::kNoSuchBuffer,
        {"device", to_string(descriptor.device), "readable by the host for __array_interface__",
         "copy the array to the host, or use the CUDA array interface or DLPack"});
  }
  return fields_of(descriptor);
}

// ---- __array_interface__: import. ----

namespace {

constexpr ArrayRules kRules{.ndim = "AI-04",
                            .extents = "AI-03",
                            .size = "AI-05",
                            .strides = "AI-21",
                            .hull = "AI-22",
                            .null = "AI-20",
                            .inside = "AI-16"};
constexpr ElementTypeRules kTypeRules{.typestr = "AI-06", .length = "AI-07", .descr = "AI-11"};

/// How deep records may be nested: more than programs use, less than the stack allows.
constexpr int kMaxDescrDepth = 32;

/// An order, a kind, digits and, for dates alone, a unit: the grammar without its meaning.
bool has_typestr_grammar(std::string_view text) {
  if (text.size() < 3 || std::string_view("<>|").find(text[0]) == std::string_view::npos) {
    return false;
  }
  if (std::string_view("tbiufcmMOSUV").find(text[1]) == std::string_view::npos) return false;
  const std::string_view rest = text.substr(2, text.find('[') - 2);
  return !rest.empty() && rest.find_first_not_of("0123456789") == std::string_view::npos;
}

absl::StatusOr<DType> read_typestr(const Found<std::string>& typestr,
                                   const ElementTypeRules& rules) {
  if (!typestr.has_value()) {
    return refuse_field(rules.typestr, typestr, "typestr", "a str such as '<f8'",
                        "write a NumPy dtype's own spelling");
  }
  if (!has_typestr_grammar(typestr.value)) {
    return refuse(
        rules.typestr, ErrorClass::kValue,
        {"typestr", "'" + typestr.value + "'", "a byte order (<, > or |), a kind and digits",
         "write a NumPy dtype's own spelling"});
  }
  absl::StatusOr<DType> type = DType::from_typestr(typestr.value);
  if (!type.ok()) {
    // Bit fields are the only kind whose digits do not count bytes (AI-10).
    const bool bits = typestr.value[1] == 't' && rules.typestr == kTypeRules.typestr;
    return with_context(type.status(), bits ? "AI-10" : rules.length);
  }
  if (type->itemsize_bytes() < 1) {
    return refuse(rules.length, ErrorClass::kValue,
                  {"typestr", "'" + typestr.value + "'", "a type of at least one byte",
                   "give it its length, as in '|S8'"});
  }
  return type;
}

std::optional<std::int64_t> fields_bytes(const std::vector<RawDescrField>& fields, int depth);

/// Bytes of one entry; nothing if it is malformed or too large.
std::optional<std::int64_t> field_bytes(const RawDescrField& field, int depth) {
  std::optional<std::int64_t> bytes;
  if (field.typestr.has_value()) {
    const absl::StatusOr<DType> type = DType::from_typestr(field.typestr.value);
    if (type.ok()) bytes = type->itemsize_bytes();
  } else if (field.typestr.is_missing()) {
    bytes = fields_bytes(field.fields, depth + 1);
  }
  for (const std::int64_t extent : field.repeat) {
    if (bytes && extent >= 0) bytes = checked::mul(*bytes, extent);
    if (extent < 0) bytes = std::nullopt;
  }
  return bytes;
}

std::optional<std::int64_t> fields_bytes(const std::vector<RawDescrField>& fields, int depth) {
  if (depth > kMaxDescrDepth) return std::nullopt;
  std::optional<std::int64_t> total = 0;
  for (const RawDescrField& field : fields) {
    const auto bytes = field_bytes(field, depth);
    total = total && bytes ? checked::add(*total, *bytes) : std::nullopt;
  }
  return total;
}

/// AI-12: a name that occurs twice. Empty names are padding.
std::optional<std::string> repeated_name(const std::vector<RawDescrField>& fields) {
  std::set<std::string_view> seen;
  for (const RawDescrField& field : fields) {
    if (!field.name.empty() && !seen.insert(field.name).second) return field.name;
  }
  return std::nullopt;
}

/// Whether the list only repeats the typestr: one entry without a name.
bool is_default(const RawDescr& descr) {
  return descr.fields.size() == 1 && descr.fields[0].name.empty() &&
         descr.fields[0].typestr.has_value() && descr.fields[0].repeat.empty();
}

absl::Status check_descr(const Found<RawDescr>& descr, const DType& type,
                         const ElementTypeRules& rules) {
  if (descr.is_missing()) return absl::OkStatus();
  constexpr std::string_view kAdvice = "leave it out, or write a NumPy dtype's own descr";
  if (!descr.has_value()) {
    return refuse_field(rules.descr, descr, "descr", "a list of (name, type) tuples", kAdvice);
  }
  const auto bytes = fields_bytes(descr.value.fields, 0);
  if (bytes != type.itemsize_bytes()) {
    const std::string found = bytes ? std::to_string(*bytes) + " bytes in all" : "malformed";
    return refuse(
        rules.descr, ErrorClass::kValue,
        {"descr", descr.value.literal + ", " + found,
         std::to_string(type.itemsize_bytes()) + " bytes, the typestr's length", kAdvice});
  }
  if (const auto name = repeated_name(descr.value.fields)) {
    return refuse(
        "AI-12", ErrorClass::kValue,
        {"descr", "a list with two fields '" + *name + "'", "without repeated names", kAdvice});
  }
  return absl::OkStatus();
}

/// The start of the array, and the memory around it if that is known.
absl::StatusOr<RawArray> read_data(const RawArrayInterface& raw) {
  RawArray array;
  if (raw.data.has_value()) {  // An offset is ignored here (AI-15).
    array.address = raw.data.value.address;
    array.readonly = raw.data.value.readonly;
    return array;
  }
  if (!raw.exported) {
    return refuse_field("AI-14", raw.data, "data", "a tuple (address, read-only flag) or a buffer",
                        "pass the address of the first element as an int");
  }
  std::int64_t offset_bytes = 0;
  if (!raw.offset_bytes.is_missing()) {
    if (!raw.offset_bytes.has_value() || raw.offset_bytes.value < 0) {
      const bool number = raw.offset_bytes.has_value();
      return refuse(
          "AI-18",
          raw.offset_bytes.state == Found<std::int64_t>::State::kWrongKind ? ErrorClass::kType
                                                                           : ErrorClass::kValue,
          {"offset", number ? std::to_string(raw.offset_bytes.value) : raw.offset_bytes.text,
           "a non-negative int", "leave it out if the data starts with the buffer"});
    }
    offset_bytes = raw.offset_bytes.value;
  }
  const KnownMemory& memory = raw.exported->memory;
  if (offset_bytes > memory.length_bytes) {
    return refuse("AI-16", ErrorClass::kValue,
                  {"offset", std::to_string(offset_bytes) + " bytes",
                   "within the buffer of " + std::to_string(memory.length_bytes) + " bytes",
                   "export the whole buffer"});
  }
  array.address = memory.address + static_cast<std::uintptr_t>(offset_bytes);
  array.readonly = raw.exported->readonly;
  array.memory = memory;
  return array;
}

absl::Status refuse_mask(std::string_view rule) {
  return refuse(rule, ErrorClass::kBuffer,
                {"mask", "given", "None, because this consumer does not support masks",
                 "fill the masked elements and leave the mask out"});
}

absl::Status check_mask_and_version(const RawArrayInterface& raw) {
  if (!raw.version.has_value() && raw.version.state != Found<std::int64_t>::State::kOutOfRange) {
    const std::string_view rule =
        raw.version.state == Found<std::int64_t>::State::kAbsent ? "AI-02" : "AI-27";
    return refuse_field(rule, raw.version, "version", "an int", "write 'version': 3");
  }
  return raw.has_mask ? refuse_mask("AI-26") : absl::OkStatus();
}

}  // namespace

absl::StatusOr<DType> read_element_type(const Found<std::string>& typestr,
                                        const Found<RawDescr>& descr,
                                        const ElementTypeRules& rules) {
  GRIDBUF_ASSIGN_OR_RETURN(auto& type, read_typestr(typestr, rules));
  ElementTypeRules own = rules;
  // AI-13 is AI-11 for types other than raw bytes.
  if (type.kind() != Kind::kVoid && rules.descr == kTypeRules.descr) own.descr = "AI-13";
  GRIDBUF_RETURN_IF_ERROR(check_descr(descr, type, own));
  if (type.kind() != Kind::kVoid || !descr.has_value() || is_default(descr.value))
    return std::move(type);
  return DType::structured(type.itemsize_bytes(), "", descr.value.literal);
}

absl::StatusOr<std::optional<RawExtents>> read_strides(const Found<RawExtents>& strides_bytes,
                                                       std::string_view rule) {
  if (strides_bytes.is_missing()) return std::optional<RawExtents>();
  if (!strides_bytes.has_value()) {
    return refuse_field(rule, strides_bytes, "strides", "None or a tuple of ints, in bytes",
                        "leave strides out for C order");
  }
  return std::optional(strides_bytes.value);
}

absl::StatusOr<ImportedView> read_array_interface(const RawArrayInterface& raw) {
  GRIDBUF_RETURN_IF_ERROR(check_mask_and_version(raw));
  if (!raw.shape.has_value()) {
    const bool absent = raw.shape.state == Found<RawExtents>::State::kAbsent;
    const bool large = raw.shape.state == Found<RawExtents>::State::kOutOfRange;
    return refuse_field(absent  ? "AI-02"
                        : large ? "AI-05"
                                : "AI-03",
                        raw.shape, "shape", "a tuple of non-negative ints",
                        "write () for a single element");
  }
  GRIDBUF_ASSIGN_OR_RETURN(auto& array, read_data(raw));
  GRIDBUF_ASSIGN_OR_RETURN(array.dtype, read_element_type(raw.typestr, raw.descr, kTypeRules));
  GRIDBUF_ASSIGN_OR_RETURN(array.strides_bytes, read_strides(raw.strides_bytes, "AI-21"));
  array.shape = raw.shape.value;
  return check_array(array, kRules);
}

// ---- __cuda_array_interface__: export. ----

absl::StatusOr<CudaArrayInterfaceFields> cuda_array_interface(const BufferDescriptor& descriptor,
                                                              std::uint64_t stream) {
  if (!is_cuda_accessible(descriptor.device.type)) {
    return make_error(
        ErrorClass::kNoSuchBuffer,
        {"device", to_string(descriptor.device),
         "reached by CUDA devices (device, managed or pinned) for __cuda_array_interface__",
         "copy the array to a device, or use __array_interface__ or DLPack"});
  }
  if (stream == 0) {
    return make_error(ErrorClass::kValue,
                      {"stream", "0", "1, 2 or a stream handle",
                       "pass 1 for the legacy default stream, 2 for the thread's default stream"});
  }
  CudaArrayInterfaceFields fields{fields_of(descriptor), stream};
  if (descriptor.is_empty()) fields.data_address = 0;
  return fields;
}

// ---- __cuda_array_interface__: import. ----

namespace {

using Integer = Found<std::int64_t>;

constexpr ArrayRules kCudaRules{.ndim = "CAI-03",
                                .extents = "CAI-03",
                                .size = "CAI-03",
                                .strides = "CAI-11",
                                .hull = "CAI-12",
                                .null = "CAI-07",
                                .inside = "CAI-12"};
constexpr ElementTypeRules kCudaTypeRules{
    .typestr = "CAI-04", .length = "CAI-04", .descr = "CAI-14"};

absl::Status check_version(const Integer& version) {
  constexpr std::string_view kBound = "an int from 0 to 3";
  constexpr std::string_view kAdvice = "write 'version': 3";
  if (!version.has_value()) {
    const bool absent = version.state == Integer::State::kAbsent;
    return refuse_field(absent ? "CAI-02" : "CAI-09", version, "version", kBound, kAdvice);
  }
  if (version.value >= 0 && version.value <= kCudaArrayInterfaceVersion) return absl::OkStatus();
  return refuse("CAI-09", ErrorClass::kValue,
                {"version", std::to_string(version.value), kBound, kAdvice});
}

/// CAI-16, CAI-17: nothing if work is not pending.
absl::StatusOr<std::optional<std::uint64_t>> read_stream(const Integer& stream) {
  if (stream.is_missing()) return std::optional<std::uint64_t>();
  constexpr std::string_view kBound = "None, 1, 2 or a stream handle";
  constexpr std::string_view kAdvice =
      "write 1 for the legacy default stream, 2 for the thread's default stream (0 could mean "
      "either)";
  if (!stream.has_value()) {
    const bool wrong_kind = stream.state == Integer::State::kWrongKind;
    return refuse_field(wrong_kind ? "CAI-16" : "CAI-17", stream, "stream", kBound, kAdvice);
  }
  if (stream.value > 0) return std::optional(static_cast<std::uint64_t>(stream.value));
  return refuse(stream.value == 0 ? "CAI-16" : "CAI-17", ErrorClass::kValue,
                {"stream", std::to_string(stream.value), kBound, kAdvice});
}

absl::Status check_fields(const RawCudaArrayInterface& raw) {
  GRIDBUF_RETURN_IF_ERROR(check_version(raw.version));
  if (raw.has_mask) return refuse_mask("CAI-15");
  if (!raw.shape.has_value()) {
    const bool absent = raw.shape.state == Found<RawExtents>::State::kAbsent;
    return refuse_field(absent ? "CAI-02" : "CAI-03", raw.shape, "shape",
                        "a tuple of non-negative ints", "write () for a single element");
  }
  if (!raw.data.has_value()) {
    const bool absent = raw.data.state == Found<RawPointer>::State::kAbsent;
    return refuse_field(absent ? "CAI-02" : "CAI-05", raw.data, "data",
                        "a tuple (address, read-only flag)",
                        "write address 0 for an array without elements");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ImportedView> read_cuda_array_interface(const RawCudaArrayInterface& raw,
                                                       const std::optional<PointerInfo>& info) {
  GRIDBUF_RETURN_IF_ERROR(check_fields(raw));
  GRIDBUF_ASSIGN_OR_RETURN(const auto& stream, read_stream(raw.stream));
  GRIDBUF_ASSIGN_OR_RETURN(auto& dtype, read_element_type(raw.typestr, raw.descr, kCudaTypeRules));
  GRIDBUF_ASSIGN_OR_RETURN(auto& strides, read_strides(raw.strides_bytes, "CAI-11"));
  RawArray array{.address = raw.data.value.address,
                 .shape = raw.shape.value,
                 .strides_bytes = std::move(strides),
                 .dtype = std::move(dtype),
                 .readonly = raw.data.value.readonly,
                 .memory = std::nullopt};
  if (info && info->length_bytes > 0) array.memory = {info->base, info->length_bytes};
  GRIDBUF_ASSIGN_OR_RETURN(auto& view, check_array(array, kCudaRules));
  view.memory.device = info ? info->device : Device{DeviceType::kCuda, 0};
  view.stream = stream;
  if (!info || info->device_accessible || view.memory.is_empty()) return std::move(view);
  return refuse(
      "CAI-07", ErrorClass::kBuffer,
      {absl::StrCat("address ", raw.data.value.address), "in memory of " + to_string(info->device),
       "reached by the device", "export host memory through __array_interface__"});
}

// ---- __gt_data_interface__: export. ----

namespace {

/// The fields that both array interfaces have.
DataInterfaceFields common_fields(ArrayInterfaceFields& fields,
                                  const BufferDescriptor& descriptor) {
  DataInterfaceFields entry;
  entry.shape = fields.shape;
  entry.typestr = std::move(fields.typestr);
  entry.data_address = fields.data_address;
  entry.readonly = fields.readonly;
  entry.strides_bytes = descriptor.view.strides_bytes;
  entry.descr = std::move(fields.descr);
  entry.version = fields.version;
  return entry;
}

absl::StatusOr<DataInterfaceFields> entry_of(const BufferDescriptor& descriptor, Side side,
                                             std::uint64_t stream) {
  if (side == Side::kHost) {
    GRIDBUF_ASSIGN_OR_RETURN(auto& fields, array_interface(descriptor));
    return common_fields(fields, descriptor);
  }
  GRIDBUF_ASSIGN_OR_RETURN(auto& fields, cuda_array_interface(descriptor, stream));
  DataInterfaceFields entry = common_fields(fields, descriptor);
  entry.stream = stream;
  return entry;
}

}  // namespace

bool has_side(const BufferDescriptor& descriptor, Side side) {
  return side == Side::kHost ? is_host_readable(descriptor.device.type)
                             : is_cuda_accessible(descriptor.device.type);
}

absl::StatusOr<DataInterfaceFields> data_interface(const BufferDescriptor& descriptor, Side side,
                                                   const Dims& dims, const Halo& halo,
                                                   std::uint64_t stream) {
  const Extents& shape = descriptor.view.shape;
  GRIDBUF_RETURN_IF_ERROR(validate_dims(dims, shape.size()));
  const Halo whole_halo = halo.empty() ? no_halo(shape.size()) : halo;
  GRIDBUF_RETURN_IF_ERROR(validate_halo(whole_halo, shape));
  GRIDBUF_ASSIGN_OR_RETURN(auto& entry, entry_of(descriptor, side, stream));
  entry.dims = dims;
  entry.halo = whole_halo;
  return std::move(entry);
}

// ---- __gt_data_interface__: import. ----

namespace {

absl::Status check_hook(const Found<bool>& hook, std::string_view name) {
  if (hook.is_missing() || hook.has_value()) return absl::OkStatus();
  return refuse_field("GT-03", hook, name, "None or a function without arguments",
                      "leave it out if there is nothing to do");
}

/// GT-04: one name per dimension, all distinct.
absl::StatusOr<std::vector<std::string>> read_dims(const Found<std::vector<std::string>>& dims,
                                                   int ndim) {
  if (dims.is_missing()) return std::vector<std::string>();
  constexpr std::string_view kAdvice = "name every dimension of the array";
  const std::string bound = std::to_string(ndim) + " different names, one per dimension";
  if (!dims.has_value()) return refuse_field("GT-04", dims, "dims", bound, kAdvice);
  const std::set<std::string_view> different(dims.value.begin(), dims.value.end());
  if (different.size() != dims.value.size() || std::ssize(dims.value) != ndim) {
    const std::string text =
        dims.value.empty() ? "" : "'" + absl::StrJoin(dims.value, "', '") + "'";
    return refuse("GT-04", ErrorClass::kValue, {"dims", "(" + text + ")", bound, kAdvice});
  }
  return dims.value;
}

/// GT-05: a pair per dimension that leaves a domain of 0 or more points.
absl::StatusOr<Halo> read_halo(const Found<std::vector<HaloWidth>>& found, const Extents& shape) {
  if (found.is_missing()) return Halo();
  constexpr std::string_view kAdvice = "leave it out for no halo";
  const std::string bound = std::to_string(shape.size()) + " pairs of non-negative ints";
  if (!found.has_value()) return refuse_field("GT-05", found, "halo", bound, kAdvice);
  if (found.value.size() != static_cast<std::size_t>(shape.size())) {
    return refuse("GT-05", ErrorClass::kValue,
                  {"halo", std::to_string(found.value.size()) + " pairs", bound, kAdvice});
  }
  Halo halo;
  for (const HaloWidth& width : found.value) halo.push_back(width);
  if (absl::Status status = validate_halo(halo, shape); !status.ok()) {
    return with_context(status, "GT-05");
  }
  return halo;
}

}  // namespace

absl::Status check_hooks(const RawDataInterface& raw) {
  GRIDBUF_RETURN_IF_ERROR(check_hook(raw.acquire, "acquire"));
  GRIDBUF_RETURN_IF_ERROR(check_hook(raw.release, "release"));
  return check_hook(raw.touch, "touch");
}

absl::StatusOr<EntryMeaning> read_meaning(const RawDataInterface& raw, const Extents& shape) {
  GRIDBUF_ASSIGN_OR_RETURN(auto& dims, read_dims(raw.dims, shape.size()));
  GRIDBUF_ASSIGN_OR_RETURN(const auto& halo, read_halo(raw.halo, shape));
  return EntryMeaning{.dims = std::move(dims), .halo = halo};
}

}  // namespace gridbuf
