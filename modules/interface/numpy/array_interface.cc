module;

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.interface.numpy;

namespace gridbuf {

// ---- Export. ----

absl::StatusOr<ArrayInterfaceFields> array_interface(const BufferDescriptor& descriptor) {
  if (!is_host_readable(descriptor.device.type)) {
    return make_error(
        ErrorClass::kNoSuchBuffer,
        {"device", to_string(descriptor.device), "readable by the host for __array_interface__",
         "copy the array to the host, or use the CUDA array interface or DLPack"});
  }
  ArrayInterfaceFields fields;
  fields.shape = descriptor.view.shape;
  fields.typestr = descriptor.dtype.typestr();
  fields.data_address = reinterpret_cast<std::uintptr_t>(descriptor.first_element());
  fields.readonly = descriptor.readonly;
  if (!is_c_contiguous(descriptor.view)) fields.strides_bytes = descriptor.view.strides_bytes;
  fields.descr = descriptor.dtype.descr();
  return fields;
}

// ---- Import. ----

namespace {

constexpr ArrayRules kRules{.ndim = "AI-04",
                            .extents = "AI-03",
                            .size = "AI-05",
                            .strides = "AI-21",
                            .hull = "AI-22",
                            .null = "AI-20",
                            .inside = "AI-16"};
constexpr ElementTypeRules kTypeRules{.typestr = "AI-06", .length = "AI-07", .descr = "AI-11"};

/// How deep records may lie in records: more than anybody writes, less than the stack holds.
constexpr int kMaxDescrDepth = 32;

/// An order, a kind, digits and, for dates alone, a unit: the grammar without its meaning.
bool has_typestr_grammar(std::string_view text) {
  if (text.size() < 3 || std::string_view("<>|").find(text[0]) == std::string_view::npos) {
    return false;
  }
  if (std::string_view("tbiufcmMOSUV").find(text[1]) == std::string_view::npos) return false;
  const std::string_view rest = text.substr(2, text.find('[') - 2);
  if (rest.empty()) return false;
  for (const char letter : rest) {
    if (letter < '0' || letter > '9') return false;
  }
  return true;
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
    // Bits are the one kind whose digits count no bytes (AI-10).
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

/// AI-12: names that can be told apart. Empty ones are padding.
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

/// Where the array starts, and the memory it must lie in if that is known.
absl::StatusOr<RawArray> read_data(const RawArrayInterface& raw) {
  RawArray array;
  if (raw.data.has_value()) {  // An offset says nothing here (AI-15).
    array.address = raw.data.value.address;
    array.readonly = raw.data.value.readonly;
    return array;
  }
  if (!raw.lent) {
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
  const KnownMemory& memory = raw.lent->memory;
  if (offset_bytes > memory.length_bytes) {
    return refuse("AI-16", ErrorClass::kValue,
                  {"offset", std::to_string(offset_bytes) + " bytes",
                   "within the buffer of " + std::to_string(memory.length_bytes) + " bytes",
                   "lend the whole buffer"});
  }
  array.address = memory.address + static_cast<std::uintptr_t>(offset_bytes);
  array.readonly = raw.lent->readonly;
  array.memory = memory;
  return array;
}

absl::Status check_mask_and_version(const RawArrayInterface& raw) {
  if (!raw.version.has_value() && raw.version.state != Found<std::int64_t>::State::kOutOfRange) {
    const std::string_view rule =
        raw.version.state == Found<std::int64_t>::State::kAbsent ? "AI-02" : "AI-27";
    return refuse_field(rule, raw.version, "version", "an int", "write 'version': 3");
  }
  if (raw.has_mask) {
    return refuse("AI-26", ErrorClass::kBuffer,
                  {"mask", "given", "None, because this consumer has no masked arrays",
                   "fill the masked elements and leave the mask out"});
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<DType> read_element_type(const Found<std::string>& typestr,
                                        const Found<RawDescr>& descr,
                                        const ElementTypeRules& rules) {
  absl::StatusOr<DType> type = read_typestr(typestr, rules);
  if (!type.ok()) return type;
  ElementTypeRules own = rules;
  // AI-13 is AI-11 for types that are no raw bytes.
  if (type->kind() != Kind::kVoid && rules.descr == kTypeRules.descr) own.descr = "AI-13";
  if (absl::Status status = check_descr(descr, *type, own); !status.ok()) return status;
  if (type->kind() != Kind::kVoid || !descr.has_value() || is_default(descr.value)) return type;
  return DType::structured(type->itemsize_bytes(), "", descr.value.literal);
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
  if (absl::Status status = check_mask_and_version(raw); !status.ok()) return status;
  if (!raw.shape.has_value()) {
    const bool absent = raw.shape.state == Found<RawExtents>::State::kAbsent;
    const bool large = raw.shape.state == Found<RawExtents>::State::kOutOfRange;
    return refuse_field(absent  ? "AI-02"
                        : large ? "AI-05"
                                : "AI-03",
                        raw.shape, "shape", "a tuple of non-negative ints",
                        "write () for a single element");
  }
  absl::StatusOr<RawArray> array = read_data(raw);
  if (!array.ok()) return array.status();
  absl::StatusOr<DType> dtype = read_element_type(raw.typestr, raw.descr, kTypeRules);
  if (!dtype.ok()) return dtype.status();
  absl::StatusOr<std::optional<RawExtents>> strides = read_strides(raw.strides_bytes, "AI-21");
  if (!strides.ok()) return strides.status();
  array->shape = raw.shape.value;
  array->dtype = *std::move(dtype);
  array->strides_bytes = *std::move(strides);
  return check_array(*array, kRules);
}

}  // namespace gridbuf
