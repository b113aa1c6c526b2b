#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

import gridbuf.layout;
import gridbuf.layout.view;

namespace gridbuf {
namespace {

constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

constexpr StridedView kField{
    .shape = {3, 4, 5}, .strides_bytes = {8, 120, 24}, .itemsize_bytes = 8};

static_assert(byte_hull(kField) == checked::ByteHull{0, 480});
static_assert(byte_offset(kField, {2, 3, 4}) == 472);
static_assert(Viewable<StridedView> && !Viewable<int> && !Viewable<Extents>);

constexpr StridedView reversed_at_compile_time() {
  IndexMap map(kField.shape);
  map.keep(0, slice_points({.step = -1}, 3));
  return apply(map, kField);
}
static_assert(reversed_at_compile_time().strides_bytes == Extents{-8, 120, 24});
static_assert(reversed_at_compile_time().offset_bytes == 16);
static_assert(byte_hull(reversed_at_compile_time()) == checked::ByteHull{0, 480});

static_assert(is_c_contiguous({.shape = {3, 4}, .strides_bytes = {32, 8}, .itemsize_bytes = 8}));
static_assert(!is_f_contiguous({.shape = {3, 4}, .strides_bytes = {32, 8}, .itemsize_bytes = 8}));

TEST(View, OperationsDoWhatTheirNamesSay) {
  EXPECT_EQ(*index(kField, 1, 2), (StridedView{{3, 5}, {8, 24}, 240, 8}));
  EXPECT_EQ(*slice(kField, 2, {.start = 1, .step = 2}),
            (StridedView{{3, 4, 2}, {8, 120, 48}, 24, 8}));
  EXPECT_EQ(*slice(kField, 2, {.start = 3, .stop = 0, .step = -1}),
            (StridedView{{3, 4, 3}, {8, 120, -24}, 72, 8}));
  EXPECT_EQ(*reverse(kField, 0), (StridedView{{3, 4, 5}, {-8, 120, 24}, 16, 8}));
  EXPECT_EQ(*transpose(kField, {2, 0, 1}), (StridedView{{5, 3, 4}, {24, 8, 120}, 0, 8}));
  EXPECT_EQ(*transpose(kField), (StridedView{{5, 4, 3}, {24, 120, 8}, 0, 8}));
  EXPECT_EQ(*new_axis(kField, 1), (StridedView{{3, 1, 4, 5}, {8, 160, 120, 24}, 0, 8}));
  EXPECT_EQ(*broadcast_to(kField, {2, 3, 4, 5}),
            (StridedView{{2, 3, 4, 5}, {0, 8, 120, 24}, 0, 8}));
  const std::vector<SubscriptItem> items{std::int64_t{1}, Ellipsis{}, NewAxis{}};
  EXPECT_EQ(*subscript(kField, items), (StridedView{{4, 5, 1}, {120, 24, 8}, 8, 8}));
}

TEST(View, OperationsLeaveTheirArgumentAlone) {
  const StridedView before = kField;
  ASSERT_TRUE(reverse(before, 0).ok());
  EXPECT_EQ(before, kField);
  EXPECT_EQ(*reverse(before, 0), *reverse(before, 0));
}

TEST(View, ReversingTwiceAndTransposingBackAreTheIdentity) {
  EXPECT_EQ(*reverse(*reverse(kField, 1), 1), kField);
  EXPECT_EQ(*transpose(*transpose(kField, {2, 0, 1}), {1, 2, 0}), kField);
}

TEST(View, OperationsPassOnTheErrorsOfTheirMaps) {
  EXPECT_EQ(index(kField, 0, 3).status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(slice(kField, 0, {.step = 0}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(broadcast_to(kField, {3, 4, 6}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(View, StridesWithoutMeaningAreThoseOfADenseArrayAndNeverMultiplied) {
  const StridedView one{.shape = {1, 4}, .strides_bytes = {kMin, 8}, .itemsize_bytes = 8};
  EXPECT_EQ(reverse(one, 0)->strides_bytes, (Extents{32, 8}));
  EXPECT_EQ(slice(one, 0, {.step = 9})->strides_bytes, (Extents{32, 8}));
  EXPECT_EQ(new_axis(one, 1)->strides_bytes, (Extents{32, 32, 8}));
  const StridedView repeated = *broadcast_to(one, {kMax / 64, 1, 4});
  EXPECT_EQ(repeated.strides_bytes, (Extents{0, 32, 8}));
  EXPECT_EQ(new_axis(repeated, 0)->strides_bytes[0], kMax / 64 * 32);
  const StridedView none{.shape = {0, kMax}, .strides_bytes = {8, kMax}, .offset_bytes = 5};
  ASSERT_TRUE(byte_hull(none));
  const StridedView sliced = *slice(none, 1, {.start = kMax / 2, .step = -3});
  EXPECT_EQ(sliced.offset_bytes, 5);
  EXPECT_EQ(sliced.strides_bytes, (Extents{sliced.shape[1] * sliced.itemsize_bytes, 1}));
  EXPECT_EQ(index(none, 1, kMax - 1)->offset_bytes, 5);
}

TEST(View, TheLargestSoundViewsDoNotOverflow) {
  const StridedView vast{.shape = {kMax}, .strides_bytes = {1}, .itemsize_bytes = 1};
  ASSERT_TRUE(byte_hull(vast));
  const StridedView ends = *slice(vast, 0, {.step = kMax - 1});
  EXPECT_EQ(ends.strides_bytes[0], kMax - 1);
  EXPECT_EQ(byte_hull(ends), byte_hull(vast));
  EXPECT_EQ(byte_hull(*reverse(vast, 0)), byte_hull(vast));
}

TEST(Hull, IsNothingForMalformedViews) {
  EXPECT_EQ(byte_hull({.shape = {3}, .strides_bytes = {}}), std::nullopt);
  EXPECT_EQ(byte_hull({.shape = {3}, .strides_bytes = {kMax}}), std::nullopt);
}

TEST(Contiguity, IgnoresExtentsOfOne) {
  const StridedView view{
      .shape = {1, 3, 1, 4}, .strides_bytes = {kMin, 32, 7, 8}, .itemsize_bytes = 8};
  EXPECT_TRUE(is_c_contiguous(view));
  EXPECT_FALSE(is_f_contiguous(view));
  const StridedView row{.shape = {1, 4}, .strides_bytes = {999, 8}, .itemsize_bytes = 8};
  EXPECT_TRUE(is_c_contiguous(row) && is_f_contiguous(row));
}

TEST(Contiguity, HoldsForArraysWithoutElements) {
  const StridedView view{.shape = {3, 0}, .strides_bytes = {-7, 99}, .itemsize_bytes = 8};
  EXPECT_TRUE(is_c_contiguous(view) && is_f_contiguous(view));
}

TEST(Contiguity, HoldsForOneElement) { EXPECT_TRUE(is_c_contiguous({}) && is_f_contiguous({})); }

TEST(Contiguity, FailsForGapsReversalsAndRepetitions) {
  EXPECT_FALSE(is_c_contiguous({.shape = {3, 4}, .strides_bytes = {40, 8}, .itemsize_bytes = 8}));
  EXPECT_FALSE(is_c_contiguous({.shape = {3}, .strides_bytes = {-8}, .itemsize_bytes = 8}));
  EXPECT_FALSE(is_c_contiguous({.shape = {3}, .strides_bytes = {0}, .itemsize_bytes = 8}));
  EXPECT_FALSE(is_f_contiguous({.shape = {3, 4}, .strides_bytes = {8, 32}, .itemsize_bytes = 8}));
}

TEST(Contiguity, CannotOverflow) {
  EXPECT_FALSE(is_c_contiguous({.shape = {3, kMax}, .strides_bytes = {8, 8}, .itemsize_bytes = 8}));
}

TEST(View, Prints) {
  EXPECT_EQ(to_string(kField),
            "shape (3, 4, 5), strides (8, 120, 24) bytes, offset 0 bytes, itemsize 8 bytes");
}

// A user's type gets all operations with two functions.
struct Tagged {
  StridedView view;
  int tag = 0;
  friend const StridedView& memory_of(const Tagged& value) { return value.view; }
  friend Tagged apply(const IndexMap& map, const Tagged& value) {
    return {apply(map, value.view), value.tag};
  }
};
static_assert(Viewable<Tagged>);

TEST(View, OperationsWorkOnTypesOfUsers) {
  const absl::StatusOr<Tagged> reversed = reverse(Tagged{kField, 7}, 0);
  ASSERT_TRUE(reversed.ok());
  EXPECT_EQ(reversed->tag, 7);
  EXPECT_EQ(reversed->view, *reverse(kField, 0));
}

}  // namespace
}  // namespace gridbuf
