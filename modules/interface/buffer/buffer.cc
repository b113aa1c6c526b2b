module;

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "modules/base/status_macros.h"

module gridbuf.interface.buffer;

namespace gridbuf {
namespace {

constexpr int kKnownFlags = pybuf::kWritable | pybuf::kFormat | pybuf::kCContiguous |
                            pybuf::kFContiguous | pybuf::kAnyContiguous | pybuf::kIndirect;

constexpr bool asks(int flags, int request) { return (flags & request) == request; }

std::string hexadecimal(int flags) { return absl::StrCat("0x", absl::Hex(flags)); }

bool are_known_flags(int flags) {
  const bool stray_bits = (flags & ~kKnownFlags) != 0;
  const bool indirect_without_strides = (flags & 0x100) != 0 && !asks(flags, pybuf::kIndirect);
  const bool contiguity_without_strides = (flags & 0xE0) != 0 && !asks(flags, pybuf::kStrides);
  const bool strides_without_shape = (flags & 0x10) != 0 && !asks(flags, pybuf::kStrides);
  return !stray_bits && !indirect_without_strides && !contiguity_without_strides &&
         !strides_without_shape;
}

absl::Status refused(int flags, std::string_view memory, std::string_view bound,
                     std::string_view advice) {
  const std::string name = "the memory behind buffer request " + hexadecimal(flags);
  return make_error(ErrorClass::kBuffer, {name, memory, bound, advice});
}

// Checks the contiguity that the consumer requires. Computes only the necessary part, because
// nearly every request accepts any strides.
absl::Status check_contiguity(const StridedView& view, int flags) {
  constexpr std::string_view kAdvice = "ask for strides, or copy the array";
  if (!asks(flags, pybuf::kStrides) && !is_c_contiguous(view)) {  // PB-11
    return refused(flags, "not C-contiguous", "C-contiguous without strides", kAdvice);
  }
  if (asks(flags, pybuf::kCContiguous) && !is_c_contiguous(view)) {  // PB-12
    return refused(flags, "not C-contiguous", "C-contiguous", kAdvice);
  }
  if (asks(flags, pybuf::kFContiguous) && !is_f_contiguous(view)) {
    return refused(flags, "not Fortran-contiguous", "Fortran-contiguous", kAdvice);
  }
  if (asks(flags, pybuf::kAnyContiguous) && !is_c_contiguous(view) && !is_f_contiguous(view)) {
    return refused(flags, "not contiguous", "C- or Fortran-contiguous", kAdvice);
  }
  return absl::OkStatus();
}

absl::Status check_request(const BufferDescriptor& descriptor, int flags, const char* format) {
  if (!is_host_readable(descriptor.device.type)) {
    return make_error(ErrorClass::kNoSuchBuffer,
                      {"device", to_string(descriptor.device), "readable by the host",
                       "copy the array to the host, or use DLPack"});
  }
  if (!are_known_flags(flags)) {  // PB-01, PB-31: flags that requests cannot have
    return make_error(ErrorClass::kBuffer,
                      {"buffer request", hexadecimal(flags), "one of the PyBUF_ requests",
                       "use PyBUF_FULL_RO or a memoryview"});
  }
  if (asks(flags, pybuf::kFormat) && !asks(flags, pybuf::kNd)) {
    return make_error(ErrorClass::kBuffer,
                      {"buffer request", hexadecimal(flags), "FORMAT together with ND or more",
                       "leave FORMAT out: a request without shape is for unsigned bytes"});
  }
  if (asks(flags, pybuf::kWritable) && descriptor.readonly) {  // PB-13
    return refused(flags, "read-only", "writable", "ask without PyBUF_WRITABLE, or copy the array");
  }
  if (asks(flags, pybuf::kFormat) && format == nullptr) {  // PB-07
    return refused(flags, "of dtype " + descriptor.dtype.name(),
                   "of a type that PEP 3118 has a format for",
                   "use the array interface or DLPack, or ask without PyBUF_FORMAT");
  }
  return check_contiguity(descriptor.view, flags);
}

}  // namespace

absl::StatusOr<BufferFields> answer_buffer_request(const BufferDescriptor& descriptor, int flags) {
  const char* const format = asks(flags, pybuf::kFormat) ? descriptor.dtype.format() : nullptr;
  GRIDBUF_RETURN_IF_ERROR(check_request(descriptor, flags, format));
  const StridedView& view = descriptor.view;
  BufferFields fields;
  fields.buf = descriptor.first_element();
  fields.len_bytes = descriptor.nbytes();
  fields.itemsize_bytes = view.itemsize_bytes;
  fields.readonly = descriptor.readonly;
  fields.ndim = asks(flags, pybuf::kNd) ? view.ndim() : std::min(view.ndim(), 1);
  fields.format = format;
  if (view.ndim() == 0) return fields;
  if (asks(flags, pybuf::kNd)) fields.shape = view.shape.data();
  if (asks(flags, pybuf::kStrides)) fields.strides_bytes = view.strides_bytes.data();
  return fields;
}

// ---- Reading a Py_buffer that an exporter filled in. ----

namespace {

constexpr ArrayRules kRules{.ndim = "PB-16",
                            .extents = "PB-17",
                            .size = "PB-03",
                            .strides = "PB-09",
                            .hull = "PB-18",
                            .null = "PB-02",
                            .inside = "PB-18"};
constexpr std::string_view kAdvice = "correct the exporter, or copy the array";

absl::Status refused(std::string_view rule, std::string_view name, std::string_view found,
                     std::string_view bound) {
  return refuse(rule, ErrorClass::kBuffer, {name, found, bound, kAdvice});
}

absl::StatusOr<DType> read_format(const ForeignBuffer& found) {
  absl::StatusOr<DType> type = DType::from_format(found.format.value_or("B"), found.itemsize_bytes);
  if (type.ok()) return type;
  const std::string_view message = type.status().message();
  // A wrong length is an error of the format (PB-04), or of a missing format (PB-07).
  const bool length = message.find("itemsize_bytes") == 0;
  const std::string_view rule = !found.format ? "PB-07" : length ? "PB-04" : "PB-20";
  return make_error(ErrorClass::kBuffer, absl::StrCat(rule, ": ", message));
}

/// PB-03: elements × itemsize, also for strided memory.
absl::Status check_length(const ForeignBuffer& found, const ImportedView& view) {
  const std::int64_t expected = view.memory.nbytes();
  if (found.len_bytes == expected) return absl::OkStatus();
  return refused("PB-03", "len", std::to_string(found.len_bytes),
                 std::to_string(expected) + " bytes, elements times itemsize");
}

}  // namespace

absl::Status check_counts(const ForeignBuffer& found) {
  if (found.ndim < 0 || found.ndim > kMaxNdim) {
    return refused("PB-16", "ndim", std::to_string(found.ndim),
                   "from 0 to " + std::to_string(kMaxNdim));
  }
  if (found.ndim > 0 && found.shape == nullptr) {
    return refused("PB-08", "shape", "null", "an array of ndim entries");
  }
  if (found.itemsize_bytes < 1) {
    return refused("PB-02", "itemsize", std::to_string(found.itemsize_bytes), "1 or more");
  }
  if (found.len_bytes < 0) {
    return refused("PB-03", "len", std::to_string(found.len_bytes), "0 or more");
  }
  for (int axis = 0; found.suboffsets != nullptr && axis < found.ndim; ++axis) {
    if (found.suboffsets[axis] < 0) continue;
    return refused("PB-32", "suboffsets[" + std::to_string(axis) + "]",
                   std::to_string(found.suboffsets[axis]), "negative, or suboffsets null");
  }
  return absl::OkStatus();
}

absl::StatusOr<ImportedView> read_buffer(const ForeignBuffer& found) {
  GRIDBUF_RETURN_IF_ERROR(check_counts(found));
  GRIDBUF_ASSIGN_OR_RETURN(auto& dtype, read_format(found));
  RawArray array{.address = reinterpret_cast<std::uintptr_t>(found.buf),
                 .shape = RawExtents::of(found.shape, found.ndim),
                 .strides_bytes = std::nullopt,
                 .dtype = std::move(dtype),
                 .readonly = found.readonly,
                 .memory = std::nullopt};
  if (found.strides_bytes != nullptr) {
    array.strides_bytes = RawExtents::of(found.strides_bytes, found.ndim);
  }
  GRIDBUF_ASSIGN_OR_RETURN(auto& view, check_array(array, kRules, ErrorClass::kBuffer));
  GRIDBUF_RETURN_IF_ERROR(check_length(found, view));
  return std::move(view);
}

}  // namespace gridbuf
