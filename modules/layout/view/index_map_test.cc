#include <gtest/gtest.h>

#include <algorithm>
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

static_assert(slice_points({}, 5) == SlicePoints{0, 1, 5});
static_assert(slice_points({.step = -1}, 5) == SlicePoints{4, -1, 5});
static_assert(slice_points({.start = 1, .stop = -1, .step = 2}, 6) == SlicePoints{1, 2, 2});
static_assert(slice_points({.start = kMin, .stop = kMax}, 5) == SlicePoints{0, 1, 5});
static_assert(slice_points({.step = kMin}, 5) == SlicePoints{4, -1, 1});
static_assert(slice_points({.start = 3, .stop = 3}, 5) == SlicePoints{0, 1, 0});
static_assert(slice_points({}, 0) == SlicePoints{0, 1, 0});
static_assert(slice_points({.start = 2, .stop = 3, .step = 7}, 5) == SlicePoints{2, 1, 1});

// A chain of operations at compile time: a[::-1, 2, :, None] of shape (4, 5, 6).
constexpr IndexMap chained() {
  IndexMap map(Extents{4, 5, 6});
  map.keep(0, slice_points({.step = -1}, 4));
  map.fix(1, 2);
  map.insert(2);
  return map;
}
static_assert(chained().shape() == Extents{4, 6, 1});
static_assert(chained().start() == Extents{3, 2, 0});
static_assert(chained().axis(0) == ViewAxis{0, -1, 4} && chained().axis(1) == ViewAxis{2, 1, 6});
static_assert(!chained().axis(2).has_source());

void expect_error(const absl::StatusOr<IndexMap>& map, absl::StatusCode code,
                  std::string_view text) {
  ASSERT_FALSE(map.ok());
  EXPECT_EQ(map.status().code(), code);
  EXPECT_NE(map.status().message().find(text), std::string_view::npos) << map.status().message();
}
constexpr absl::StatusCode kValueError = absl::StatusCode::kInvalidArgument;
constexpr absl::StatusCode kIndexError = absl::StatusCode::kOutOfRange;

// Python's definition of a slice, written as a walk over candidates instead of as a formula.
std::vector<std::int64_t> walked(const Slice& slice, std::int64_t extent) {
  const auto from_end = [extent](std::int64_t p) { return p < 0 ? p + extent : p; };
  std::vector<std::int64_t> points;
  const std::int64_t first = slice.step > 0 ? 0 : extent - 1;
  const std::int64_t start = slice.start ? from_end(*slice.start) : first;
  for (std::int64_t p = first; p >= 0 && p < extent; p += slice.step > 0 ? 1 : -1) {
    const std::int64_t clipped =
        slice.step > 0 ? std::max<std::int64_t>(start, 0) : std::min(start, extent - 1);
    const std::int64_t gone = slice.step > 0 ? p - clipped : clipped - p;
    if (gone < 0 || gone % (slice.step > 0 ? slice.step : -slice.step) != 0) continue;
    if (slice.stop) {
      const std::int64_t stop = from_end(*slice.stop);
      if (slice.step > 0 ? p >= stop : p <= stop) break;
    }
    points.push_back(p);
  }
  return points;
}

TEST(SlicePoints, AreThoseOfPythonForAllSmallSlices) {
  std::vector<std::optional<std::int64_t>> ends{std::nullopt};
  for (std::int64_t end = -8; end <= 8; ++end) ends.emplace_back(end);
  for (std::int64_t extent = 0; extent <= 6; ++extent) {
    for (const auto& start : ends) {
      for (const auto& stop : ends) {
        for (const std::int64_t step : {1, 2, 3, 7, -1, -2, -3, -7}) {
          const std::vector<std::int64_t> wanted = walked({start, stop, step}, extent);
          const SlicePoints points = slice_points({start, stop, step}, extent);
          ASSERT_EQ(points.extent, static_cast<std::int64_t>(wanted.size()));
          for (std::int64_t k = 0; k < points.extent; ++k) {
            ASSERT_EQ(points.start + points.step * k, wanted[static_cast<std::size_t>(k)]);
          }
        }
      }
    }
  }
}

TEST(SlicePoints, StayInsideForExtremeNumbers) {
  for (const std::int64_t start : {kMin, kMin + 1, std::int64_t{-1}, std::int64_t{0}, kMax}) {
    for (const std::int64_t stop : {kMin, std::int64_t{-1}, std::int64_t{1}, kMax - 1, kMax}) {
      for (const std::int64_t step : {kMin, kMin + 1, std::int64_t{-1}, std::int64_t{1}, kMax}) {
        for (const std::int64_t extent : {std::int64_t{0}, std::int64_t{1}, kMax}) {
          const SlicePoints points = slice_points({start, stop, step}, extent);
          ASSERT_GE(points.extent, 0);
          if (points.extent == 0) continue;
          const __int128 last = points.start + __int128{points.step} * (points.extent - 1);
          ASSERT_TRUE(points.start >= 0 && points.start < extent);
          ASSERT_TRUE(last >= 0 && last < extent);
        }
      }
    }
  }
}

TEST(IndexMap, FixesWithNegativeIndicesAndAxes) {
  const absl::StatusOr<IndexMap> map = index_map({4, 5, 6}, -2, -1);
  ASSERT_TRUE(map.ok());
  EXPECT_EQ(map->shape(), (Extents{4, 6}));
  EXPECT_EQ(map->start(), (Extents{0, 4, 0}));
}

TEST(IndexMap, RefusesIndicesOutOfBounds) {
  expect_error(index_map({4, 5}, 1, 5), kIndexError,
               "index in dimension 1 is 5, but must be in [-5, 5)");
  expect_error(index_map({4, 5}, 0, -5), kIndexError, "-5");
  expect_error(index_map({4, 0}, 1, 0), kIndexError, "extent is 0");
  expect_error(index_map({4, 5}, 0, kMin), kIndexError, "-9223372036854775808");
}

TEST(IndexMap, RefusesAxesOutOfBounds) {
  expect_error(index_map({4, 5}, 2, 0), kIndexError, "axis is 2, but must be in [-2, 2)");
  expect_error(slice_map({4, 5}, -3, {}), kIndexError, "axis is -3");
  expect_error(reverse_map({}, 0), kIndexError, "whose shape is ()");
  expect_error(slice_map({4}, std::numeric_limits<int>::min(), {}), kIndexError, "axis is");
}

TEST(IndexMap, RefusesStepZero) {
  expect_error(slice_map({4, 5}, 0, {.step = 0}), kValueError, "slice step is 0");
}

TEST(IndexMap, TransposesByTheAxisThatComesFirst) {
  const absl::StatusOr<IndexMap> map = transpose_map({4, 5, 6}, {2, 0, 1});
  ASSERT_TRUE(map.ok());
  EXPECT_EQ(map->shape(), (Extents{6, 4, 5}));  // A 3-cycle: its inverse would give (5, 6, 4).
  EXPECT_EQ(transpose_map({4, 5, 6}, {})->shape(), (Extents{6, 5, 4}));
  EXPECT_EQ(transpose_map({4, 5, 6}, {-1, 0, -2})->shape(), (Extents{6, 4, 5}));
}

TEST(IndexMap, TransposesOnlyByPermutations) {
  expect_error(transpose_map({4, 5, 6}, {0, 1, 1}), kValueError, "(0, 1, 1)");
  expect_error(transpose_map({4, 5, 6}, {0, 1}), kValueError, "(0, 1)");
  expect_error(transpose_map({4, 5}, {0, 1, 0}), kValueError, "(0, 1, 0)");
  expect_error(transpose_map({4, 5}, {0, 2}), kIndexError, "axis is 2");
}

TEST(IndexMap, PutsNewAxesWhereNumPyDoes) {
  EXPECT_EQ(new_axis_map({4, 5}, 0)->shape(), (Extents{1, 4, 5}));
  EXPECT_EQ(new_axis_map({4, 5}, 2)->shape(), (Extents{4, 5, 1}));
  EXPECT_EQ(new_axis_map({4, 5}, -1)->shape(), (Extents{4, 5, 1}));
  EXPECT_EQ(new_axis_map({4, 5}, -3)->shape(), (Extents{1, 4, 5}));
  expect_error(new_axis_map({4, 5}, 3), kIndexError, "axis is 3");
  expect_error(new_axis_map(Extents(kMaxNdim, 1), 0), kValueError, "is 65, but must be at most 64");
}

TEST(IndexMap, BroadcastsByNumPysRule) {
  EXPECT_EQ(broadcast_map({1, 5}, {3, 4, 5}, 8)->shape(), (Extents{3, 4, 5}));
  EXPECT_EQ(broadcast_map({}, {2, 3}, 8)->shape(), (Extents{2, 3}));
  EXPECT_EQ(broadcast_map({1}, {0}, 8)->shape(), (Extents{0}));
  EXPECT_EQ(broadcast_map({0}, {3, 0}, 8)->shape(), (Extents{3, 0}));
  EXPECT_EQ(broadcast_map({3, 1}, {3, 4}, 8)->axis(1), (ViewAxis{1, 0, 4}));
}

TEST(IndexMap, RefusesBroadcastsThatDoNotFit) {
  expect_error(broadcast_map({4}, {5}, 8), kValueError, "dimension 0 would go from 4 to 5");
  expect_error(broadcast_map({4}, {1}, 8), kValueError, "from 4 to 1");
  expect_error(broadcast_map({0}, {1}, 8), kValueError, "from 0 to 1");
  expect_error(broadcast_map({3, 4}, {4}, 8), kValueError, "as many dimensions");
  expect_error(broadcast_map({1}, {-1}, 8), kValueError, "extents >= 0");
}

TEST(IndexMap, RefusesBroadcastsPastTheLimit) {
  const std::int64_t half = std::int64_t{1} << 31;
  EXPECT_TRUE(broadcast_map({1, 1}, {half, half}, 1).ok());
  expect_error(broadcast_map({1, 1}, {half, half}, 2), kValueError, "9223372036854775807");
  expect_error(broadcast_map({1, 1, 1}, {half, half, half}, 0), kValueError, "bytes");
}

absl::StatusOr<IndexMap> subscripted(const Extents& shape,
                                     const std::vector<SubscriptItem>& items) {
  return subscript_map(shape, items);
}

TEST(Subscript, TakesIntegersSlicesEllipsesAndNewAxes) {
  const absl::StatusOr<IndexMap> map =
      subscripted({4, 5, 6, 7}, {std::int64_t{-1}, NewAxis{}, Ellipsis{}, Slice{.step = -2}});
  ASSERT_TRUE(map.ok());
  EXPECT_EQ(map->shape(), (Extents{1, 5, 6, 4}));
  EXPECT_EQ(map->start(), (Extents{3, 0, 0, 6}));
  EXPECT_EQ(subscripted({4, 5}, {})->shape(), (Extents{4, 5}));
  EXPECT_EQ(subscripted({4, 5}, {Ellipsis{}, std::int64_t{0}})->shape(), (Extents{4}));
  EXPECT_EQ(subscripted({4, 5}, {std::int64_t{1}, std::int64_t{1}})->shape(), Extents{});
  EXPECT_EQ(subscripted({}, {Ellipsis{}, NewAxis{}})->shape(), (Extents{1}));
}

TEST(Subscript, NamesTheDimensionAsTheUserCounts) {
  expect_error(subscripted({4, 5, 6}, {std::int64_t{0}, std::int64_t{0}, std::int64_t{6}}),
               kIndexError, "index in dimension 2 is 6");
  expect_error(subscripted({4, 5, 6}, {NewAxis{}, Ellipsis{}, std::int64_t{9}}), kIndexError,
               "index in dimension 2 is 9");
}

TEST(Subscript, RefusesWhatNumPyRefuses) {
  expect_error(subscripted({4}, {std::int64_t{0}, Slice{}}), kIndexError, "is 2");
  expect_error(subscripted({4}, {Ellipsis{}, Ellipsis{}}), kIndexError, "ellipses");
  expect_error(subscripted({4}, {Slice{.step = 0}}), kValueError, "slice step");
  expect_error(subscripted({4}, std::vector<SubscriptItem>(64, NewAxis{})), kIndexError, "is 65");
  expect_error(subscripted({4}, std::vector<SubscriptItem>(100'000, std::int64_t{0})), kIndexError,
               "is 100000");
}

TEST(Subscript, MayPassTheMostDimensionsOnTheWay) {
  const absl::StatusOr<IndexMap> map =
      subscripted(Extents(kMaxNdim, 2), {NewAxis{}, NewAxis{}, std::int64_t{0}, std::int64_t{1}});
  ASSERT_TRUE(map.ok());
  EXPECT_EQ(map->ndim(), kMaxNdim);
  EXPECT_EQ(map->start()[1], 1);
}

TEST(IndexMap, ComposesLikeOneMap) {
  IndexMap twice(Extents{10});
  twice.keep(0, slice_points({.start = 1, .step = 2}, 10));  // 1 3 5 7 9
  twice.keep(0, slice_points({.step = -2}, 5));              // 9 5 1
  EXPECT_EQ(twice.start(), (Extents{9}));
  EXPECT_EQ(twice.axis(0), (ViewAxis{0, -4, 3}));
}

}  // namespace
}  // namespace gridbuf
