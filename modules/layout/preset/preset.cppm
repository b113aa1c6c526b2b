// gridbuf.layout.preset: device, alignment and order of dimensions for a backend, by name.
//
// A preset orders dimensions by name and not by position: a (K, J, I) array gets the memory layout
// of an (I, J, K) array. Presets that a program registers are known to the whole process.
module;

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

export module gridbuf.layout.preset;

import gridbuf.layout;

export namespace gridbuf {

/// How a preset orders the dimensions.
struct PresetOrder {
  /// The rule of an order.
  enum class Kind {
    kByName,       // By the base ranks of I, J and K.
    kRowMajor,     // By position: the last dimension is contiguous.
    kColumnMajor,  // By position: the first dimension is contiguous.
  };
  Kind kind = Kind::kByName;
  std::array<int, kSpatialAxes> base_ranks = {0, 1, 2};  // Of I, J, K; used by kByName.

  static constexpr PresetOrder by_name(int rank_i, int rank_j, int rank_k) noexcept {
    return {Kind::kByName, {rank_i, rank_j, rank_k}};
  }
  static constexpr PresetOrder row_major() noexcept { return {Kind::kRowMajor, {0, 1, 2}}; }
  static constexpr PresetOrder column_major() noexcept { return {Kind::kColumnMajor, {0, 1, 2}}; }

  friend constexpr bool operator==(const PresetOrder&, const PresetOrder&) noexcept = default;
};

/// The parameters that a preset sets.
struct Preset {
  bool on_device = false;
  std::int64_t alignment_bytes = 1;
  PresetOrder order = {};

  friend constexpr bool operator==(const Preset&, const Preset&) noexcept = default;
};

/// The layout map of an array with these dimensions, from the base ranks of I, J and K. In the
/// order of Dim, the first horizontal dimension stands for I (unless I is there) and the others for
/// J; vertical dimensions stand for K. Local dimensions are directly inside the first horizontal
/// one, data dimensions outermost. Requires that `base_ranks` is a permutation of 0, 1, 2 and that
/// the names are distinct.
LayoutMap layout_by_name(const std::array<int, kSpatialAxes>& base_ranks, const Dims& dims);

/// The layout map that `preset` gives to an array with these dimensions.
LayoutMap preset_layout(const Preset& preset, const Dims& dims);

/// The preset of that name, or InvalidArgument that lists close matches and all names.
absl::StatusOr<Preset> find_preset(std::string_view name);

/// Makes `preset` known under `name`. InvalidArgument for an empty name, an alignment outside
/// 1 .. 2^20, base ranks that are not a permutation of 0, 1, 2, or a name that has another preset.
absl::Status register_preset(std::string_view name, const Preset& preset);

/// All names: built-in names in the order of the documentation, then registered names, sorted.
std::vector<std::string> preset_names();

}  // namespace gridbuf
