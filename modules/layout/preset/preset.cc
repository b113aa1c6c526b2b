module;

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "modules/base/fork.h"
#include "modules/base/process_wide.h"

module gridbuf.layout.preset;

import gridbuf.base;
import gridbuf.layout;

namespace gridbuf {
namespace {

struct BuiltinPreset {
  std::string_view name;
  Preset preset;
};

constexpr PresetOrder kIJK = PresetOrder::by_name(0, 1, 2);
constexpr PresetOrder kKJI = PresetOrder::by_name(2, 1, 0);
constexpr bool kHost = false;
constexpr bool kGpu = true;

// 128 bytes are one warp of float32. `dace:gpu` is not aligned, so that Fortran arrays can be used
// without a copy. The ranks of `gtmc` are those of GridTools' ifirst layout.
constexpr std::array<BuiltinPreset, 15> kBuiltinPresets{{
    {"debug", {kHost, 1, kIJK}},
    {"numpy", {kHost, 1, kIJK}},
    {"gt:cpu_kfirst", {kHost, 1, kIJK}},
    {"gtx86", {kHost, 1, kIJK}},
    {"gt:cpu_ifirst", {kHost, 64, kKJI}},
    {"gtmc", {kHost, 64, PresetOrder::by_name(2, 0, 1)}},
    {"gt:gpu", {kGpu, 128, kKJI}},
    {"gtcuda", {kGpu, 128, kKJI}},
    {"dace:cpu", {kHost, 1, PresetOrder::by_name(1, 2, 0)}},
    {"dace:cpu_kfirst", {kHost, 1, kIJK}},
    {"dace:cpu_KJI", {kHost, 1, kKJI}},
    {"dace:gpu", {kGpu, 1, kKJI}},
    {"dace:gpu_IJK", {kGpu, 1, kIJK}},
    {"C", {kHost, 1, PresetOrder::row_major()}},
    {"F", {kHost, 1, PresetOrder::column_major()}},
}};

constexpr std::size_t kMaxMatches = 3;
constexpr std::size_t kComparedLetters = 64;  // Distances cost a product of lengths.

std::optional<Preset> find_builtin(std::string_view name) {
  for (const BuiltinPreset& builtin : kBuiltinPresets) {
    if (builtin.name == name) return builtin.preset;
  }
  return std::nullopt;
}

// The presets that users registered.
class Registry {
 public:
  std::optional<Preset> find(std::string_view name) const {
    const std::shared_lock lock(mutex_);
    const auto found = presets_.find(name);
    return found == presets_.end() ? std::nullopt : std::optional(found->second);
  }

  // Registers `preset` unless `name` has a preset. Returns the preset of `name`.
  Preset find_or_insert(std::string_view name, const Preset& preset) {
    const std::unique_lock lock(mutex_);
    return presets_.try_emplace(std::string(name), preset).first->second;
  }

  void append_names(std::vector<std::string>& names) const {
    const std::shared_lock lock(mutex_);
    for (const auto& entry : presets_) names.push_back(entry.first);
  }

 private:
  mutable ForkSafe<std::shared_mutex> mutex_;
  std::map<std::string, Preset, std::less<>> presets_;
};

// Never destroyed: threads may still allocate while the process exits.
Registry& registry() {
  static Registry& instance = process_wide<Registry>("presets");
  return instance;
}
// Before any thread: see modules/base/fork.h.
[[maybe_unused]] const Registry& made_at_load = registry();

// The number of letters to insert, remove or replace to get from `a` to `b` (Levenshtein).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

// The distance of `candidate` from `name`, or nothing if they do not resemble each other.
std::optional<std::size_t> closeness(std::string_view name, std::string_view candidate) {
  const std::string a = absl::AsciiStrToLower(name.substr(0, kComparedLetters));
  const std::string b = absl::AsciiStrToLower(candidate.substr(0, kComparedLetters));
  const std::size_t distance = edit_distance(a, b);
  const std::size_t limit = std::max<std::size_t>(1, std::max(a.size(), b.size()) / 3);
  if (distance <= limit) return distance;
  constexpr std::size_t kShortestPart = 3;
  const bool contained = std::min(a.size(), b.size()) >= kShortestPart &&
                         (a.find(b) != std::string::npos || b.find(a) != std::string::npos);
  return contained ? std::optional(distance) : std::nullopt;
}

// Up to three of `candidates` that resemble `name`, the closest first.
std::vector<std::string> close_matches(std::string_view name,
                                       const std::vector<std::string>& candidates) {
  std::vector<std::pair<std::size_t, std::size_t>> close;  // Distance and position.
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const std::optional<std::size_t> distance = closeness(name, candidates[i]);
    if (distance) close.emplace_back(*distance, i);
  }
  std::sort(close.begin(), close.end());
  std::vector<std::string> matches;
  for (std::size_t i = 0; i < std::min(close.size(), kMaxMatches); ++i) {
    matches.push_back(candidates[close[i].second]);
  }
  return matches;
}

absl::Status unknown_preset(std::string_view name) {
  const std::vector<std::string> names = preset_names();
  const std::vector<std::string> matches = close_matches(name, names);
  const std::string hint =
      matches.empty() ? absl::StrCat("there are ", absl::StrJoin(names, ", "))
                      : absl::StrCat("did you mean \"", absl::StrJoin(matches, "\" or \""), "\"?");
  return make_error(ErrorClass::kValue,
                    absl::StrCat("unknown preset ", quoted_name(name), "; ", hint));
}

// The horizontal dimension that stands for I.
std::optional<Dim> first_horizontal(const Dims& dims) {
  std::optional<Dim> first;
  for (const Dim dim : dims) {
    if (dim == kDimI) return dim;
    if (dim.is_named() && dim.kind() == DimKind::kHorizontal && (!first || dim < *first)) {
      first = dim;
    }
  }
  return first;
}

// -1 for data, else the base rank of the spatial axis that `dim` stands for.
int group_of(Dim dim, const Dims& dims, const std::array<int, kSpatialAxes>& base_ranks) {
  if (dim.is_spatial()) return base_ranks[dim.spatial_axis()];
  switch (dim.kind()) {
    case DimKind::kData:
      return -1;
    case DimKind::kVertical:
      return group_of(kDimK, dims, base_ranks);
    case DimKind::kLocal:
      return group_of(kDimI, dims, base_ranks);
    case DimKind::kHorizontal:
      break;
  }
  return group_of(dim == first_horizontal(dims) ? kDimI : kDimJ, dims, base_ranks);
}

}  // namespace

LayoutMap layout_by_name(const std::array<int, kSpatialAxes>& base_ranks, const Dims& dims) {
  // The group of each dimension, in the order of the strides: data, then the spatial axes by their
  // base ranks, each with the dimensions that stand for it.
  std::array<int, kMaxNdim> groups;
  for (int axis = 0; axis < dims.size(); ++axis) {
    const Dim dim = dims[axis];
    groups[axis] =
        dim.is_spatial() ? base_ranks[dim.spatial_axis()] : group_of(dim, dims, base_ranks);
  }
  // Those that stand for J are in the direction from I to J.
  const auto precedes = [&](int a, int b) {
    if (groups[a] != groups[b] || a == b) return groups[a] < groups[b];
    const bool is_reversed = groups[a] == base_ranks[1] && base_ranks[1] < base_ranks[0];
    return (dims[a] < dims[b]) != is_reversed;
  };
  LayoutMap layout;
  for (int axis = 0; axis < dims.size(); ++axis) {
    int rank = 0;
    for (int other = 0; other < dims.size(); ++other) rank += precedes(other, axis) ? 1 : 0;
    layout.push_back(rank);
  }
  return layout;
}

LayoutMap preset_layout(const Preset& preset, const Dims& dims) {
  switch (preset.order.kind) {
    case PresetOrder::Kind::kRowMajor:
      return c_order(dims.size());
    case PresetOrder::Kind::kColumnMajor:
      return f_order(dims.size());
    case PresetOrder::Kind::kByName:
      break;
  }
  return layout_by_name(preset.order.base_ranks, dims);
}

absl::StatusOr<Preset> find_preset(std::string_view name) {
  std::optional<Preset> preset = find_builtin(name);
  if (!preset) preset = registry().find(name);
  if (!preset) return unknown_preset(name);
  return *preset;
}

absl::Status register_preset(std::string_view name, const Preset& preset) {
  if (name.empty()) {
    return make_error(ErrorClass::kValue, {.name = "the name of a preset",
                                           .found = "\"\"",
                                           .bound = "a text of at least one character",
                                           .advice = "choose a name"});
  }
  if (preset.alignment_bytes < 1 || preset.alignment_bytes > checked::kMaxAlignmentBytes) {
    return make_error(ErrorClass::kValue,
                      {.name = "alignment_bytes",
                       .found = absl::StrCat(preset.alignment_bytes),
                       .bound = absl::StrCat("an integer from 1 to ", checked::kMaxAlignmentBytes),
                       .advice = "pass 1 for no constraint"});
  }
  const LayoutMap ranks(std::span<const int>(preset.order.base_ranks));
  if (!is_permutation(ranks)) {
    return make_error(ErrorClass::kValue, {.name = "base ranks of (I, J, K)",
                                           .found = to_string(ranks),
                                           .bound = "a permutation of (0, 1, 2)",
                                           .advice = "use every rank once (0 = largest stride)"});
  }
  const std::optional<Preset> builtin = find_builtin(name);
  const Preset registered = builtin ? *builtin : registry().find_or_insert(name, preset);
  if (registered != preset) {
    return make_error(ErrorClass::kValue, {.name = "the name of a preset",
                                           .found = quoted_name(name),
                                           .bound = "a name without another preset",
                                           .advice = "choose another name"});
  }
  return absl::OkStatus();
}

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const BuiltinPreset& builtin : kBuiltinPresets) names.emplace_back(builtin.name);
  registry().append_names(names);
  return names;
}

}  // namespace gridbuf
