// Compares layouts with GridTools' C++ storages: strides, padding and the aligned element must be
// equal.
//
// GridTools knows layouts at compile time and does not name dimensions, so each comparison is one
// instantiation with many shapes. Tests name the intended differences.

#include <gtest/gtest.h>

#ifdef GRIDBUF_HAS_GRIDTOOLS

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/status/statusor.h"
#include "gridtools/common/integral_constant.hpp"
#include "gridtools/common/layout_map.hpp"
#include "gridtools/storage/builder.hpp"
#include "gridtools/storage/cpu_ifirst.hpp"
#include "gridtools/storage/cpu_kfirst.hpp"
#include "gridtools/storage/data_store.hpp"
#include "gridtools/storage/traits.hpp"

import gridbuf.layout;
import gridbuf.layout.preset;

namespace gridtools_test {

// GridTools' header for GPUs needs CUDA's headers; this has its layout and alignment.
struct GpuLayout {
  template <std::size_t dims, class = std::make_index_sequence<dims>>
  struct Reversed;
  template <std::size_t dims, std::size_t... positions>
  struct Reversed<dims, std::index_sequence<positions...>> {
    using type = gridtools::layout_map<static_cast<int>(dims - 1 - positions)...>;
  };

  friend std::true_type storage_is_host_referenceable(GpuLayout) { return {}; }
  template <std::size_t dims>
  friend typename Reversed<dims>::type storage_layout(GpuLayout,
                                                      std::integral_constant<std::size_t, dims>) {
    return {};
  }
  friend gridtools::integral_constant<std::size_t, 128> storage_alignment(GpuLayout) { return {}; }
  template <class Lazy, class T = typename Lazy::type>
  friend auto storage_allocate(GpuLayout, Lazy, std::size_t count) {
    return std::make_unique<T[]>(count);
  }
};

}  // namespace gridtools_test

namespace {

using gridbuf::Dims;
using gridbuf::Extents;
using gridbuf::Layout;

template <std::size_t dims>
using Shape = std::array<int, dims>;

// A record whose length is not a power of two.
struct Record {
  std::array<std::int32_t, 3> values;
};

std::string text(const auto& array) {
  std::string text;
  for (const auto entry : array) text += std::to_string(entry) + " ";
  return text;
}

template <class Traits, class T, std::size_t dims, std::size_t... positions>
void compare_one(std::string_view preset_name, const Shape<dims>& shape, const Shape<dims>& halos,
                 std::string_view names, std::index_sequence<positions...>) {
  const auto theirs = gridtools::storage::builder<Traits>.template type<T>().dimensions(
      shape[positions]...).halos(halos[positions]...).build();

  const gridbuf::Preset preset = gridbuf::find_preset(preset_name).value();
  const Dims our_dims = gridbuf::parse_dims(names, static_cast<int>(dims)).value();
  gridbuf::LayoutRequest request;
  for (const int extent : shape) request.shape.push_back(extent);
  for (const int halo : halos) request.aligned_index.push_back(halo);
  request.itemsize_bytes = sizeof(T);
  request.layout = gridbuf::preset_layout(preset, our_dims);
  request.alignment_bytes = preset.alignment_bytes;
  const absl::StatusOr<Layout> ours = gridbuf::make_plan(request);
  ASSERT_TRUE(ours.ok()) << ours.status();

  const std::string what = std::string(preset_name) + " " + std::string(names) + " shape " +
                           text(shape) + "halos " + text(halos) + "items of " +
                           std::to_string(sizeof(T));
  std::int64_t aligned_element = 0;
  for (std::size_t axis = 0; axis < dims; ++axis) {
    const auto stride = static_cast<std::int64_t>(theirs->strides()[axis]);
    EXPECT_EQ(ours->strides_bytes()[static_cast<int>(axis)],
              stride * static_cast<std::int64_t>(sizeof(T)))
        << what << ", axis " << axis;
    aligned_element += stride * halos[axis];
  }
  EXPECT_EQ(ours->aligned_offset_bytes(), aligned_element * static_cast<std::int64_t>(sizeof(T)))
      << what;
  const auto address =
      reinterpret_cast<std::uintptr_t>(theirs->get_const_target_ptr() + aligned_element);
  EXPECT_EQ(address % static_cast<std::uintptr_t>(preset.alignment_bytes), 0u)
      << what << ": GridTools aligns another element";
}

template <class Traits, class T, std::size_t dims>
void compare(std::string_view preset, std::string_view names) {
  // From one element to a few cache lines, for the contiguous dimension.
  constexpr std::array<int, 6> kExtents{1, 2, 7, 16, 33, 65};
  for (const int first : kExtents) {
    for (const int last : kExtents) {
      Shape<dims> shape;
      Shape<dims> halos;
      for (std::size_t axis = 0; axis < dims; ++axis) {
        shape[axis] = axis == 0 ? first : axis + 1 == dims ? last : 3;
        halos[axis] = shape[axis] / 3;
      }
      compare_one<Traits, T>(preset, shape, halos, names, std::make_index_sequence<dims>());
    }
  }
}

template <class Traits, class T>
void compare_dimensions(std::string_view preset) {
  compare<Traits, T, 3>(preset, "IJK");
  compare<Traits, T, 4>(preset, "IJK0");
}

template <class Traits>
void compare_items(std::string_view preset) {
  compare_dimensions<Traits, std::int8_t>(preset);
  compare_dimensions<Traits, float>(preset);
  compare_dimensions<Traits, double>(preset);
  compare_dimensions<Traits, std::complex<double>>(preset);
  compare_dimensions<Traits, Record>(preset);
}

TEST(GridTools, AllocatesKFirstStoragesAsWePlan) {
  compare_items<gridtools::storage::cpu_kfirst>("gt:cpu_kfirst");
}

TEST(GridTools, AllocatesIFirstStoragesAsWePlan) {
  compare_items<gridtools::storage::cpu_ifirst>("gtmc");
}

TEST(GridTools, AllocatesGpuStoragesAsWePlan) {
  compare_items<gridtools_test::GpuLayout>("gt:gpu");
}

TEST(GridTools, PutsTheFirstOfTwoDataDimensionsOutermostForKFirstOnly) {
  compare<gridtools::storage::cpu_kfirst, double, 5>("gt:cpu_kfirst", "IJK01");
  // GridTools reverses data dimensions in other layouts. In gridbuf the lowest number is outermost
  // in every preset (docs/spec.md 1.12).
  const auto theirs = gridtools::storage::builder<gridtools::storage::cpu_ifirst>.type<double>()
                          .dimensions(8, 3, 4, 5, 6)
                          .build();
  EXPECT_GT(theirs->strides()[4], theirs->strides()[3]);
  const gridbuf::Preset preset = gridbuf::find_preset("gtmc").value();
  const gridbuf::LayoutMap ours =
      gridbuf::preset_layout(preset, gridbuf::parse_dims("IJK01", 5).value());
  EXPECT_LT(ours[3], ours[4]);
}

}  // namespace

#else

namespace {

TEST(GridTools, IsNotHereToCompareWith) {
  GTEST_SKIP() << "GridTools' headers were not found, so its storages were not compared with ours; "
                  "install them with ./bazelw --peers, or set GRIDTOOLS_INCLUDE";
}

}  // namespace

#endif
