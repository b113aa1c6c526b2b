// Reading an entry of a `__gt_data_interface__` that somebody else wrote.

module;

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.interface.data_interface;

import gridbuf.error;
import gridbuf.interface;
import gridbuf.interface.array_interface;
import gridbuf.interface.cuda_array_interface;
import gridbuf.interface.imported;
import gridbuf.layout.extents;
import gridbuf.layout.halo;

namespace gridbuf {
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
  if (absl::Status status = check_hook(raw.acquire, kAcquireKey); !status.ok()) return status;
  if (absl::Status status = check_hook(raw.release, kReleaseKey); !status.ok()) return status;
  return check_hook(raw.touch, kTouchKey);
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
      raw.side == DataSide::kHost
          ? read_array_interface(of_version(raw.host, kArrayInterfaceVersion))
          : read_cuda_array_interface(of_version(raw.gpu, kCudaArrayInterfaceVersion), facts);
  if (!view.ok()) return view.status();
  absl::StatusOr<EntryMeaning> meaning = read_meaning(raw, view->memory.view.shape);
  if (!meaning.ok()) return meaning.status();
  return ImportedEntry{.view = *std::move(view), .meaning = *std::move(meaning)};
}

}  // namespace gridbuf
