// gridbuf.layout.preset: the memory layouts that stencil backends want, by name.
//
// Purpose. Each backend runs best with a device, an alignment and an order of dimensions of its
// own. A preset holds these three under the backend's name, so that users write "gt:gpu" and not
// (2, 1, 0) and 128. Users register presets of their own.
//
// Key choice. A preset's order belongs to the *names* of the dimensions, not to their positions. It
// gives base ranks for I, J and K. For an array with some of them, in any order, and data
// dimensions: the ranks of the axes that are present keep their order, data dimensions go outermost
// with the lowest number outermost, and all is renumbered to 0 .. ndim - 1. So a (K, J, I) array
// gets the same memory as an (I, J, K) one. Only "C" and "F" go by position, as arrays shared with
// C and Fortran programs do.
//
// Presets are fixed when they are registered: a name that has a preset keeps it, so that no import
// changes what another part of the program allocates. Registering the same again is allowed. All
// functions may be called from any thread.

module;

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

export module gridbuf.layout.preset;

export import gridbuf.layout.dims;
export import gridbuf.layout.extents;

export namespace gridbuf {

/// Where a preset's arrays live.
enum class PresetDevice { kHost, kGpu };

/// How a preset orders the dimensions.
struct PresetOrder {
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

/// What a preset gives.
struct Preset {
  PresetDevice device = PresetDevice::kHost;
  std::int64_t alignment_bytes = 1;
  PresetOrder order = {};

  friend constexpr bool operator==(const Preset&, const Preset&) noexcept = default;
};

/// The layout map that `base_ranks` of I, J, K give to an array with these dimensions. Requires a
/// permutation of 0, 1, 2 and distinct names.
constexpr LayoutMap layout_by_name(const std::array<int, kSpatialAxes>& base_ranks,
                                   const Dims& dims) noexcept {
  // A key per dimension that orders as the strides do: data dimensions by number, then base ranks.
  const auto precedes = [&base_ranks](Dim a, Dim b) {
    if (a.is_spatial() != b.is_spatial()) return b.is_spatial();
    if (!a.is_spatial()) return a.number() < b.number();
    return base_ranks[a.spatial_axis()] < base_ranks[b.spatial_axis()];
  };
  LayoutMap layout;
  for (const Dim dim : dims) {
    int rank = 0;
    for (const Dim other : dims) rank += precedes(other, dim) ? 1 : 0;
    layout.push_back(rank);
  }
  return layout;
}

/// The layout map that `preset` gives to an array with these dimensions.
constexpr LayoutMap preset_layout(const Preset& preset, const Dims& dims) noexcept {
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

/// The preset of that name, or InvalidArgument listing close matches and all names.
absl::StatusOr<Preset> find_preset(std::string_view name);

/// Makes `preset` known under `name`. InvalidArgument for an empty name, an alignment outside
/// 1 .. 2^20, base ranks that are no permutation of 0, 1, 2, or a name that has another preset.
absl::Status register_preset(std::string_view name, const Preset& preset);

/// All names: the built-in ones in the order of the documentation, then registered ones sorted.
std::vector<std::string> preset_names();

/// Up to three of `candidates` that `name` may have been meant for, the closest first: few letters
/// to change (upper and lower case alike), or one contained in the other.
std::vector<std::string> close_matches(std::string_view name,
                                       const std::vector<std::string>& candidates);

}  // namespace gridbuf
