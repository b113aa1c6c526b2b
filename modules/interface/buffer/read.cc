// Reading a Py_buffer that somebody else filled in.

module;

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.interface.buffer;

namespace gridbuf {
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
  for (int axis = 0; found.suboffsets != nullptr && axis < found.ndim; ++axis) {
    if (found.suboffsets[axis] < 0) continue;
    return refused("PB-32", "suboffsets[" + std::to_string(axis) + "]",
                   std::to_string(found.suboffsets[axis]), "negative, or suboffsets null");
  }
  return absl::OkStatus();
}

absl::StatusOr<DType> read_format(const ForeignBuffer& found) {
  absl::StatusOr<DType> type = DType::from_format(found.format.value_or("B"), found.itemsize_bytes);
  if (type.ok()) return type;
  const absl::Status& cause = type.status();
  const std::string message(cause.message());
  // A length that disagrees is the format's (PB-04), or that of a format left out (PB-07).
  const bool length = message.find("itemsize_bytes") == 0;
  const std::string_view rule = !found.format ? "PB-07" : length ? "PB-04" : "PB-20";
  return make_error(ErrorClass::kBuffer, std::string(rule).append(": ").append(message));
}

RawExtents extents_of(const std::int64_t* values, int count) {
  RawExtents extents{.count = count, .values = {}};
  for (int axis = 0; axis < count; ++axis) extents.values.push_back(values[axis]);
  return extents;
}

/// PB-03: elements × itemsize, also for strided memory.
absl::Status check_length(const ForeignBuffer& found, const ImportedView& view) {
  const std::int64_t expected = view.memory.nbytes();
  if (found.len_bytes == expected) return absl::OkStatus();
  return refused("PB-03", "len", std::to_string(found.len_bytes),
                 std::to_string(expected) + " bytes, elements times itemsize");
}

}  // namespace

absl::StatusOr<ImportedView> read_buffer(const ForeignBuffer& found) {
  if (absl::Status status = check_counts(found); !status.ok()) return status;
  absl::StatusOr<DType> dtype = read_format(found);
  if (!dtype.ok()) return dtype.status();
  RawArray array{.address = reinterpret_cast<std::uintptr_t>(found.buf),
                 .shape = extents_of(found.shape, found.ndim),
                 .strides_bytes = std::nullopt,
                 .dtype = *std::move(dtype),
                 .readonly = found.readonly,
                 .memory = std::nullopt};
  if (found.strides_bytes != nullptr) {
    array.strides_bytes = extents_of(found.strides_bytes, found.ndim);
  }
  absl::StatusOr<ImportedView> view = check_array(array, kRules, ErrorClass::kBuffer);
  if (!view.ok()) return view;
  if (absl::Status status = check_length(found, *view); !status.ok()) return status;
  return view;
}

}  // namespace gridbuf
