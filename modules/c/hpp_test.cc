#include "gridbuf.hpp"

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

#if __has_include(<mdspan>) && __cplusplus > 202002L
#include <mdspan>
#endif

namespace {

using gridbuf::array;
using gridbuf::ellipsis;
using gridbuf::error;
using gridbuf::new_axis;
using gridbuf::options;
using gridbuf::side;
using gridbuf::slice;
using gridbuf::storage;

static_assert(!std::is_copy_constructible_v<array<double>>);
static_assert(std::is_nothrow_move_constructible_v<storage<double>>);

// What an mdspan with a strided layout has for `as`.
struct Strided {
  static constexpr std::size_t kRank = 2;
  struct extents_type {
    static constexpr std::size_t rank() { return kRank; }
    explicit extents_type(std::array<int, kRank> given) : shape(given) {}
    std::array<int, kRank> shape;
  };
  struct mapping_type {
    mapping_type(extents_type given, std::array<int, kRank> steps)
        : extents(given), strides(steps) {}
    extents_type extents;
    std::array<int, kRank> strides;
  };
  using index_type = int;
  Strided(double* first, mapping_type given) : data(first), mapping(given) {}
  double* data;
  mapping_type mapping;
};

options shape_of(std::vector<std::int64_t> shape) {
  options wanted;
  wanted.shape = std::move(shape);
  return wanted;
}

gridbuf_status status_of(const std::function<void()>& work, const std::string& text) {
  try {
    work();
  } catch (const error& found) {
    EXPECT_NE(std::string(found.what()).find(text), std::string::npos) << found.what();
    return found.status();
  }
  return GRIDBUF_OK;
}

TEST(Array, ElementsViewsAndTensors) {
  std::vector<double> memory(12);
  const auto wrapped = array<double>::wrap(memory.data(), shape_of({3, 4}));
  wrapped.fill(1.5);
  const auto last = wrapped[{-1, slice({}, {}, -2)}];
  const auto seen = last.elements();
  EXPECT_EQ(seen.rank(), 1);
  EXPECT_EQ(seen.stride(0), -2);
  seen(0) = 7;
  EXPECT_EQ(memory[11], 7);
  EXPECT_EQ((wrapped[{new_axis, ellipsis}].info().ndim), 3);
  EXPECT_EQ(wrapped[0].elements()(3), 1.5);
  const auto back = array<double>::from_dlpack(wrapped.transpose().to_dlpack());
  EXPECT_EQ(back.elements()(3, 2), 7);
  EXPECT_EQ(back.elements().data(), memory.data());
  const auto copied = wrapped.copy();
  copied.fill(0);
  wrapped.copy_from(copied);
  EXPECT_EQ(memory[11], 0);
  const auto mapped = wrapped.elements().as<Strided>();
  EXPECT_EQ(mapped.mapping.strides, (std::array{4, 1}));
  EXPECT_EQ(mapped.mapping.extents.shape, (std::array{3, 4}));
#ifdef __cpp_lib_mdspan
  const auto span =
      wrapped.elements()
          .as<std::mdspan<double, std::dextents<std::size_t, 2>, std::layout_stride>>();
  span[2, 3] = 3;
  EXPECT_EQ(memory[11], 3);
#endif
}

TEST(Array, ErrorsNameTheValue) {
  const array<std::int32_t> small(shape_of({2}));
  EXPECT_EQ(status_of([] { array<float>{shape_of({-1})}; }, "-1"), GRIDBUF_VALUE);
  EXPECT_EQ(status_of(
                [] {
                  options wanted = shape_of({3, 4});
                  wanted.layout = {0};
                  array<float>{wanted};
                },
                "layout has 1"),
            GRIDBUF_VALUE);
  EXPECT_EQ(status_of([&] { array<float>::from_dlpack(small.to_dlpack()); },
                      "the element type is int32, but must be float32"),
            GRIDBUF_TYPE);
  EXPECT_EQ(status_of([&] { (void)small[5]; }, "5"), GRIDBUF_INDEX);
  const array<double> line(shape_of({2}));
  EXPECT_EQ(status_of([&] { line.elements().as<Strided>(); }, "the rank is 1"), GRIDBUF_VALUE);
  const double one = 1;
  const auto fixed = array<const double>::wrap(&one, shape_of({1}));
  EXPECT_EQ(fixed.elements()(0), 1);
  EXPECT_EQ(
      status_of([&] { array<double>::from_dlpack(fixed.to_dlpack()).elements(); }, "read-only"),
      GRIDBUF_VALUE);
}

TEST(Array, EveryElementTypeHasItsName) {
  EXPECT_EQ(std::string(array<bool>(shape_of({1})).info().dtype), "bool");
  EXPECT_EQ(std::string(array<std::uint16_t>(shape_of({1})).info().dtype), "uint16");
  EXPECT_EQ(std::string(array<std::int64_t>(shape_of({1})).info().dtype), "int64");
  EXPECT_EQ(std::string(array<std::complex<float>>(shape_of({1})).info().dtype), "complex64");
}

TEST(Storage, CopiesWhatHasChanged) {
  std::int32_t before = 0;
  gridbuf::check(gridbuf_use_emulated_device(1, &before));
  options wanted = shape_of({4, 5});
  wanted.halo = {{1, 1}, {0, 0}};
  wanted.backend = "gt:gpu";
  const storage<double> field(wanted);
  const auto f = field.write(side::host);
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 5; ++j) f(i, j) = 10 * i + j;
  }
  EXPECT_FALSE(field.is_current(side::device));
  field.domain().exported(side::device, true).fill(-1);
  EXPECT_TRUE(field.domain().is_current(side::device));
  EXPECT_FALSE(field.is_current(side::device));
  EXPECT_EQ(field.read(side::host)(0, 3), 3);
  EXPECT_EQ(field.read(side::host)(1, 3), -1);
  field[2].read_write(side::host)(4) = 5;
  const auto copied = field.copy();
  field.copy_from(copied);
  EXPECT_EQ(field.read(side::host)(2, 4), 5);
  field.synchronize();
  EXPECT_TRUE(field.is_current(side::device) && field.is_current(side::host));
  std::vector<double> model(6, 2.0);
  const auto shared =
      storage<double>::wrap(array<double>::wrap(model.data(), shape_of({6})), GRIDBUF_STORAGE_BOTH);
  shared.exported(side::device, true).fill(4);
  (void)shared.read(side::host);
  EXPECT_EQ(model[5], 4);
  gridbuf::check(gridbuf_use_emulated_device(before, nullptr));
}

}  // namespace
