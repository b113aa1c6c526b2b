module;

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.interface.buffer;

namespace gridbuf {
namespace {

constexpr int kKnownFlags = pybuf::kWritable | pybuf::kFormat | pybuf::kCContiguous |
                            pybuf::kFContiguous | pybuf::kAnyContiguous | pybuf::kIndirect;

constexpr bool asks(int flags, int request) { return (flags & request) == request; }

std::string hexadecimal(int flags) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string digits;
  for (auto rest = static_cast<unsigned>(flags); rest != 0 || digits.empty(); rest /= 16) {
    digits.insert(digits.begin(), kDigits[rest % 16]);
  }
  return "0x" + digits;
}

// Why a request is refused. Decided without a word being written: most requests are granted, and an
// array is handed over in less time than a message takes.
enum class Refusal {
  kNone,
  kNotOnHost,
  kUnknownFlags,        // PB-01, PB-31: flags that no request has, such as memoryview's own
  kFormatWithoutShape,  // such a request already means unsigned bytes
  kReadonly,            // PB-13
  kNoFormat,            // PB-07
  kNotCWithoutStrides,  // PB-11
  kNotC,                // PB-12
  kNotF,
  kNotContiguous,
};

bool are_known_flags(int flags) {
  const bool stray_bits = (flags & ~kKnownFlags) != 0;
  const bool indirect_without_strides = (flags & 0x100) != 0 && !asks(flags, pybuf::kIndirect);
  const bool contiguity_without_strides = (flags & 0xE0) != 0 && !asks(flags, pybuf::kStrides);
  const bool strides_without_shape = (flags & 0x10) != 0 && !asks(flags, pybuf::kStrides);
  return !stray_bits && !indirect_without_strides && !contiguity_without_strides &&
         !strides_without_shape;
}

// What the consumer can cope with against what the memory is. Only what was asked is computed:
// nearly every request takes any strides.
Refusal judge_contiguity(const StridedView& view, int flags) {
  if (!asks(flags, pybuf::kStrides) && !is_c_contiguous(view)) return Refusal::kNotCWithoutStrides;
  if (asks(flags, pybuf::kCContiguous) && !is_c_contiguous(view)) return Refusal::kNotC;
  if (asks(flags, pybuf::kFContiguous) && !is_f_contiguous(view)) return Refusal::kNotF;
  if (asks(flags, pybuf::kAnyContiguous) && !is_c_contiguous(view) && !is_f_contiguous(view)) {
    return Refusal::kNotContiguous;
  }
  return Refusal::kNone;
}

Refusal judge(const BufferDescriptor& descriptor, int flags, const char* format) {
  if (!is_host_readable(descriptor.device.type)) return Refusal::kNotOnHost;
  if (!are_known_flags(flags)) return Refusal::kUnknownFlags;
  if (asks(flags, pybuf::kFormat) && !asks(flags, pybuf::kNd)) return Refusal::kFormatWithoutShape;
  if (asks(flags, pybuf::kWritable) && descriptor.readonly) return Refusal::kReadonly;
  if (asks(flags, pybuf::kFormat) && format == nullptr) return Refusal::kNoFormat;
  return judge_contiguity(descriptor.view, flags);
}

absl::Status refuse(int flags, std::string_view memory, std::string_view bound,
                    std::string_view advice) {
  const std::string name = "the memory behind buffer request " + hexadecimal(flags);
  return make_error(ErrorClass::kBuffer, {name, memory, bound, advice});
}

absl::Status explain(Refusal refusal, const BufferDescriptor& descriptor, int flags) {
  constexpr std::string_view kStridesAdvice = "ask for strides, or copy the array";
  switch (refusal) {
    case Refusal::kNone:
      break;
    case Refusal::kNotOnHost:
      return make_error(ErrorClass::kNoSuchBuffer,
                        {"device", to_string(descriptor.device), "readable by the host",
                         "copy the array to the host, or use DLPack"});
    case Refusal::kUnknownFlags:
      return make_error(ErrorClass::kBuffer,
                        {"buffer request", hexadecimal(flags), "one of the PyBUF_ requests",
                         "use PyBUF_FULL_RO or a memoryview"});
    case Refusal::kFormatWithoutShape:
      return make_error(ErrorClass::kBuffer,
                        {"buffer request", hexadecimal(flags), "FORMAT together with ND or more",
                         "leave FORMAT out: a request without shape is for unsigned bytes"});
    case Refusal::kReadonly:
      return refuse(flags, "read-only", "writable",
                    "ask without PyBUF_WRITABLE, or copy the array");
    case Refusal::kNoFormat:
      return refuse(flags, "of dtype " + descriptor.dtype.name(),
                    "of a type that PEP 3118 has a format for",
                    "use the array interface or DLPack, or ask without PyBUF_FORMAT");
    case Refusal::kNotCWithoutStrides:
      return refuse(flags, "not C-contiguous", "C-contiguous without strides", kStridesAdvice);
    case Refusal::kNotC:
      return refuse(flags, "not C-contiguous", "C-contiguous", kStridesAdvice);
    case Refusal::kNotF:
      return refuse(flags, "not Fortran-contiguous", "Fortran-contiguous", kStridesAdvice);
    case Refusal::kNotContiguous:
      return refuse(flags, "not contiguous", "C- or Fortran-contiguous", kStridesAdvice);
  }
  return make_error(ErrorClass::kInternal, "a buffer request was refused without a reason");
}

}  // namespace

absl::StatusOr<BufferFields> answer_buffer_request(const BufferDescriptor& descriptor, int flags) {
  const char* const format = asks(flags, pybuf::kFormat) ? descriptor.dtype.format() : nullptr;
  const Refusal refusal = judge(descriptor, flags, format);
  if (refusal != Refusal::kNone) return explain(refusal, descriptor, flags);
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

}  // namespace gridbuf
