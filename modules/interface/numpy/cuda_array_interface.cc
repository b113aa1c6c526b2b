module;

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.interface.numpy;

namespace gridbuf {

// ---- Export. ----

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
                       "pass 1 for the legacy default stream, 2 for the thread's own"});
  }
  CudaArrayInterfaceFields fields;
  fields.shape = descriptor.view.shape;
  fields.typestr = descriptor.dtype.typestr();
  if (!descriptor.is_empty()) {
    fields.data_address = reinterpret_cast<std::uintptr_t>(descriptor.first_element());
  }
  fields.readonly = descriptor.readonly;
  if (!is_c_contiguous(descriptor.view)) fields.strides_bytes = descriptor.view.strides_bytes;
  fields.descr = descriptor.dtype.descr();
  fields.stream = stream;
  return fields;
}

// ---- Import. ----

namespace {

using Integer = Found<std::int64_t>;

constexpr ArrayRules kRules{.ndim = "CAI-03",
                            .extents = "CAI-03",
                            .size = "CAI-03",
                            .strides = "CAI-11",
                            .hull = "CAI-12",
                            .null = "CAI-07",
                            .inside = "CAI-12"};
constexpr ElementTypeRules kTypeRules{.typestr = "CAI-04", .length = "CAI-04", .descr = "CAI-14"};

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

/// CAI-16, CAI-17: nothing if no work is pending.
absl::StatusOr<std::optional<std::uint64_t>> read_stream(const Integer& stream) {
  if (stream.is_missing()) return std::optional<std::uint64_t>();
  constexpr std::string_view kBound = "None, 1, 2 or a stream handle";
  constexpr std::string_view kAdvice =
      "write 1 for the legacy default stream, 2 for the thread's own (0 could mean either)";
  if (!stream.has_value()) {
    const bool wrong_kind = stream.state == Integer::State::kWrongKind;
    return refuse_field(wrong_kind ? "CAI-16" : "CAI-17", stream, "stream", kBound, kAdvice);
  }
  if (stream.value > 0) return std::optional(static_cast<std::uint64_t>(stream.value));
  return refuse(stream.value == 0 ? "CAI-16" : "CAI-17", ErrorClass::kValue,
                {"stream", std::to_string(stream.value), kBound, kAdvice});
}

absl::Status check_fields(const RawCudaArrayInterface& raw) {
  if (absl::Status status = check_version(raw.version); !status.ok()) return status;
  if (raw.has_mask) {
    return refuse("CAI-15", ErrorClass::kBuffer,
                  {"mask", "given", "None, because this consumer has no masked arrays",
                   "fill the masked elements and leave the mask out"});
  }
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

absl::Status check_facts(const RawPointer& data, const PointerFacts& facts) {
  if (facts.device_accessible) return absl::OkStatus();
  return refuse(
      "CAI-07", ErrorClass::kBuffer,
      {"address " + std::to_string(data.address), "in memory of " + to_string(facts.device),
       "reached by the device", "export host memory through __array_interface__"});
}

}  // namespace

absl::StatusOr<ImportedView> read_cuda_array_interface(const RawCudaArrayInterface& raw,
                                                       const std::optional<PointerFacts>& facts) {
  if (absl::Status status = check_fields(raw); !status.ok()) return status;
  absl::StatusOr<std::optional<std::uint64_t>> stream = read_stream(raw.stream);
  if (!stream.ok()) return stream.status();
  absl::StatusOr<DType> dtype = read_element_type(raw.typestr, raw.descr, kTypeRules);
  if (!dtype.ok()) return dtype.status();
  absl::StatusOr<std::optional<RawExtents>> strides = read_strides(raw.strides_bytes, "CAI-11");
  if (!strides.ok()) return strides.status();
  RawArray array{.address = raw.data.value.address,
                 .shape = raw.shape.value,
                 .strides_bytes = *std::move(strides),
                 .dtype = *std::move(dtype),
                 .readonly = raw.data.value.readonly,
                 .memory = facts ? facts->allocation : std::nullopt};
  absl::StatusOr<ImportedView> view = check_array(array, kRules);
  if (!view.ok()) return view;
  view->memory.device = facts ? facts->device : Device{DeviceType::kCuda, 0};
  view->stream = *stream;
  if (facts && !view->memory.is_empty()) {
    if (absl::Status status = check_facts(raw.data.value, *facts); !status.ok()) return status;
  }
  return view;
}

}  // namespace gridbuf
