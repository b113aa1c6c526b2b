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
    static constexpr std::size_t static_extent(std::size_t axis) {
      return axis == 0 ? static_cast<std::size_t>(-1) : 4;
    }
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
  std::vector<char> bytes(24);
  auto* const odd = reinterpret_cast<double*>(bytes.data() + 1);
  EXPECT_EQ(status_of([&] { array<double>::wrap(odd, shape_of({1})).elements(); },
                      "must be a multiple of 8"),
            GRIDBUF_VALUE);
}

TEST(View, HasTheAxesAndIndicesOfItsRank) {
  std::vector<float> memory(24);
  const auto wrapped = array<float>::wrap(memory.data(), shape_of({2, 3, 4}));
  const gridbuf::view<float> any = wrapped.elements();
  const gridbuf::view<float, 3> three(memory.data(), wrapped.info());
  for (const int axis : {-4, -3, -1, 3, 4, 5, 6, 64}) {
    const std::string text =
        "axis is " + std::to_string(axis) + ", but must be 0 to 2; pass a dimension of the view";
    EXPECT_EQ(status_of([&] { (void)any.extent(axis); }, text), GRIDBUF_INDEX);
    EXPECT_EQ(status_of([&] { (void)any.stride(axis); }, text), GRIDBUF_INDEX);
    EXPECT_EQ(status_of([&] { (void)three.extent(axis); }, text), GRIDBUF_INDEX);
    EXPECT_EQ(status_of([&] { (void)three.stride(axis); }, text), GRIDBUF_INDEX);
  }
  EXPECT_EQ(any.extent(2), 4);
  EXPECT_EQ(three.stride(2), 1);
  EXPECT_EQ(status_of([&] { (void)any(1, 2); }, "the rank is 3, but must be 2"), GRIDBUF_VALUE);
  EXPECT_EQ(status_of([&] { (void)any(); }, "the rank is 3, but must be 0"), GRIDBUF_VALUE);
  EXPECT_EQ(status_of([&] { (void)any(1, 2, 3, 0); }, "must be 4"), GRIDBUF_VALUE);
  EXPECT_EQ(&three(1, 2, 3), &memory[23]);
  EXPECT_EQ(status_of([&] { gridbuf::view<float, 2>(memory.data(), wrapped.info()); },
                      "the rank is 3, but must be 2"),
            GRIDBUF_VALUE);
}

TEST(View, AnMdspanHasTheExtentsThatItsTypeFixes) {
  std::vector<double> memory(12);
  const auto wrapped = array<double>::wrap(memory.data(), shape_of({4, 3}));
  EXPECT_EQ(status_of([&] { wrapped.elements().as<Strided>(); }, "axis 1 has the extent 3"),
            GRIDBUF_VALUE);
  const std::int64_t shape[] = {std::int64_t{1} << 32, 4}, strides[] = {4, 1};
  const gridbuf::view<double> longer(memory.data(), 2, shape, strides);
  EXPECT_EQ(status_of([&] { longer.as<Strided>(); }, "axis 0 has the extent 4294967296"),
            GRIDBUF_VALUE);
}

// Each class takes the handles of one element type.
template <class T>
void takes_only(const std::string& name) {
  for (const char* other :
       {"bool",    "int8",       "int16",     "int32",      "int64",    "uint8",
        "uint16",  "uint32",     "uint64",    "float16",    "bfloat16", "float32",
        "float64", "longdouble", "complex64", "complex128", ">f4",      ">f8",
        ">i4",     "<M8[s]",     "|S8",       "|V8"}) {
    gridbuf_options wanted = GRIDBUF_OPTIONS_INIT;
    const std::int64_t shape = 3;
    wanted.ndim = 1, wanted.shape = &shape, wanted.dtype = other;
    gridbuf_array* made = nullptr;
    gridbuf_storage* stored = nullptr;
    gridbuf::check(gridbuf_array_create(&wanted, &made));
    gridbuf::check(gridbuf_storage_create(&wanted, &stored));
    gridbuf_info info;
    info.struct_bytes = sizeof info;
    gridbuf::check(gridbuf_array_info(made, &info));
    const gridbuf_status expected = name == other ? GRIDBUF_OK : GRIDBUF_TYPE;
    T element{};
    EXPECT_EQ(status_of([&] { gridbuf::view<T>(&element, info); }, "but must be " + name),
              expected);
    EXPECT_EQ(status_of([&] { array<T>{made}; }, "but must be " + name), expected) << other;
    EXPECT_EQ(status_of([&] { storage<T>{stored}; }, "but must be " + name), expected) << other;
  }
}

TEST(Array, TakesHandlesOfItsElementTypeOnly) {
  takes_only<bool>("bool");
  takes_only<std::int8_t>("int8");
  takes_only<std::uint16_t>("uint16");
  takes_only<std::int32_t>("int32");
  takes_only<long>("int64");
  takes_only<long long>("int64");
  takes_only<float>("float32");
  takes_only<double>("float64");
  takes_only<std::complex<float>>("complex64");
  takes_only<std::complex<double>>("complex128");
}

TEST(Array, EveryElementTypeHasItsName) {
  EXPECT_EQ(std::string(array<bool>(shape_of({1})).info().dtype), "bool");
  EXPECT_EQ(std::string(array<std::uint16_t>(shape_of({1})).info().dtype), "uint16");
  EXPECT_EQ(std::string(array<std::int64_t>(shape_of({1})).info().dtype), "int64");
  EXPECT_EQ(std::string(array<std::complex<float>>(shape_of({1})).info().dtype), "complex64");
}

TEST(Workspace, BlocksEndInTheOppositeOrder) {
  // [workspace]
  const gridbuf::workspace space(std::int64_t{1} << 30);
  {
    const gridbuf::workspace::block<double> flux(space, 1000);
    const gridbuf::workspace::block<std::int32_t> mask(space, 10, 4096);  // on 4096 bytes
    std::fill(flux.begin(), flux.end(), 1.5);
    mask[9] = 3;
  }  // the blocks end
  EXPECT_GE(space.peak_bytes(), 8040);
  // [/workspace]
  {
    const gridbuf::workspace::block<double> first(space, 1000);
    const gridbuf::workspace::block<std::int32_t> second(space, 10, 4096);
    std::fill(first.begin(), first.end(), 1.5);
    second[9] = 3;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(second.data()) % 4096, 0U);
    EXPECT_EQ(std::count(first.begin(), first.end(), 1.5), 1000);
    EXPECT_THROW(gridbuf::workspace::block<double>(space, INT64_MAX / 4), gridbuf::error);
    EXPECT_THROW(gridbuf::workspace::block<double>(space, std::int64_t{1} << 30), gridbuf::error);
  }
  EXPECT_GT(space.trim(), 0);
  EXPECT_THROW(gridbuf::workspace(0), gridbuf::error);
}

TEST(Storage, CopiesWhatHasChanged) {
  std::int32_t before = 0;
  gridbuf::check(gridbuf_use_emulated_device(1, &before));
  options wanted = shape_of({4, 5});
  wanted.halo = {{1, 1}, {0, 0}};
  wanted.backend = "gt:gpu";
  const storage<double> field(wanted);
  field.mark_halo();
  EXPECT_EQ(field.valid_halo(), (std::vector<std::int64_t>{1, 1, 0, 0}));
  EXPECT_THROW(field.mark_halo({1, 1}), gridbuf::error);
  const auto f = field.write(side::host);
  EXPECT_EQ(field.valid_halo(), std::vector<std::int64_t>(4));
  field.mark_halo({0, 1, 0, 0});
  EXPECT_EQ(field.valid_halo()[1], 1);
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
