module;

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.interface.numpy;

namespace gridbuf {

// ---- Export. ----

namespace {

/// What both array interfaces say, whichever it is.
template <class ArrayFields>
DataInterfaceFields common_fields(ArrayFields fields, const BufferDescriptor& descriptor) {
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

absl::StatusOr<DataInterfaceFields> entry_of(const BufferDescriptor& descriptor, DeviceType side,
                                             std::uint64_t stream) {
  if (side == DeviceType::kHost) {
    absl::StatusOr<ArrayInterfaceFields> fields = array_interface(descriptor);
    if (!fields.ok()) return fields.status();
    return common_fields(*std::move(fields), descriptor);
  }
  absl::StatusOr<CudaArrayInterfaceFields> fields = cuda_array_interface(descriptor, stream);
  if (!fields.ok()) return fields.status();
  DataInterfaceFields entry = common_fields(*std::move(fields), descriptor);
  entry.stream = stream;
  return entry;
}

}  // namespace

bool has_side(const BufferDescriptor& descriptor, DeviceType side) {
  return side == DeviceType::kHost ? is_host_readable(descriptor.device.type)
                                   : is_cuda_accessible(descriptor.device.type);
}

absl::StatusOr<DataInterfaceFields> data_interface(const BufferDescriptor& descriptor,
                                                   DeviceType side, const Dims& dims,
                                                   const Halo& halo, std::uint64_t stream) {
  const Extents& shape = descriptor.view.shape;
  if (absl::Status status = validate_dims(dims, shape.size()); !status.ok()) return status;
  const Halo whole_halo = halo.empty() ? no_halo(shape.size()) : halo;
  if (absl::Status status = validate_halo(whole_halo, shape); !status.ok()) return status;
  absl::StatusOr<DataInterfaceFields> entry = entry_of(descriptor, side, stream);
  if (!entry.ok()) return entry.status();
  entry->dims = dims;
  entry->halo = whole_halo;
  return entry;
}

// ---- Import. ----

namespace {

absl::Status check_hook(const Found<bool>& hook, std::string_view name) {
  if (hook.is_missing() || hook.has_value()) return absl::OkStatus();
  return refuse_field("GT-03", hook, name, "None or a function without arguments",
                      "leave it out if there is nothing to do");
}

/// GT-04: one name per dimension, none twice.
absl::StatusOr<std::vector<std::string>> read_dims(const Found<std::vector<std::string>>& dims,
                                                   int ndim) {
  if (dims.is_missing()) return std::vector<std::string>();
  constexpr std::string_view kAdvice = "name every dimension of the array";
  const std::string bound = std::to_string(ndim) + " different names, one per dimension";
  if (!dims.has_value()) return refuse_field("GT-04", dims, "dims", bound, kAdvice);
  std::string text;
  bool repeated = false;
  for (std::size_t i = 0; i < dims.value.size(); ++i) {
    text += (i == 0 ? "'" : ", '") + dims.value[i] + "'";
    for (std::size_t j = 0; j < i; ++j) repeated = repeated || dims.value[i] == dims.value[j];
  }
  if (repeated || dims.value.size() != static_cast<std::size_t>(ndim)) {
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

/// The proposal lists no version among the keys of an entry, which the array interfaces demand
/// (GT-02): an entry without one is of today's.
template <class Raw>
Raw of_version(Raw raw, int version) {
  using Version = decltype(raw.version);
  if (raw.version.state == Version::State::kAbsent) raw.version = Version::of(version);
  return raw;
}

}  // namespace

absl::Status check_hooks(const RawDataInterface& raw) {
  if (absl::Status status = check_hook(raw.acquire, "acquire"); !status.ok()) return status;
  if (absl::Status status = check_hook(raw.release, "release"); !status.ok()) return status;
  return check_hook(raw.touch, "touch");
}

absl::StatusOr<EntryMeaning> read_meaning(const RawDataInterface& raw, const Extents& shape) {
  absl::StatusOr<std::vector<std::string>> dims = read_dims(raw.dims, shape.size());
  if (!dims.ok()) return dims.status();
  const absl::StatusOr<Halo> halo = read_halo(raw.halo, shape);
  if (!halo.ok()) return halo.status();
  return EntryMeaning{.dims = *std::move(dims), .halo = *halo};
}

absl::StatusOr<ImportedEntry> read_data_interface(const RawDataInterface& raw,
                                                  const std::optional<PointerFacts>& facts) {
  if (absl::Status status = check_hooks(raw); !status.ok()) return status;
  absl::StatusOr<ImportedView> view =
      raw.side == DeviceType::kHost
          ? read_array_interface(of_version(raw.host, kArrayInterfaceVersion))
          : read_cuda_array_interface(of_version(raw.gpu, kCudaArrayInterfaceVersion), facts);
  if (!view.ok()) return view.status();
  absl::StatusOr<EntryMeaning> meaning = read_meaning(raw, view->memory.view.shape);
  if (!meaning.ok()) return meaning.status();
  return ImportedEntry{.view = *std::move(view), .meaning = *std::move(meaning)};
}

}  // namespace gridbuf
