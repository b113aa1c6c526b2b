#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

import gridbuf.layout;

namespace gridbuf {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

static_assert(HaloWidth::symmetric(3) == HaloWidth{3, 3});
static_assert(no_halo(2) == Halo{{0, 0}, {0, 0}});
static_assert(first_domain_index(Halo{{2, 1}, {0, 3}}, Extents{5, 3}) == Extents{2, 0});
static_assert(halo_of_slice({2, 2}, 10, 1, 1, 8) == HaloWidth{1, 1});

void expect_value_error(const absl::Status& status, std::string_view text) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find(text), std::string_view::npos) << status.message();
}

TEST(Halo, MustFitTheExtents) {
  EXPECT_TRUE(validate_halo({{1, 2}, {0, 0}}, {3, 0}).ok());
  EXPECT_TRUE(validate_halo({}, {}).ok());
  expect_value_error(validate_halo({{1, 2}, {2, 2}}, {3, 3}),
                     "halo[1] is (2, 2), but must be two widths >= 0 whose sum is at most the "
                     "extent 3");
  expect_value_error(validate_halo({{-1, 0}}, {3}), "halo[0] is (-1, 0)");
  expect_value_error(validate_halo({{0, -1}}, {3}), "halo[0] is (0, -1)");
  expect_value_error(validate_halo({{kMax, kMax}}, {3}), "halo[0]");
  expect_value_error(validate_halo({{0, 0}}, {3, 4}), "is 1, but must be 2");
}

TEST(Halo, OneNumberMeansBothEnds) {
  EXPECT_EQ(HaloWidth::symmetric(2), (HaloWidth{2, 2}));
  EXPECT_TRUE(validate_halo({HaloWidth::symmetric(2)}, {4}).ok());
  EXPECT_FALSE(validate_halo({HaloWidth::symmetric(2)}, {3}).ok());
}

TEST(Halo, LowerWidthsAreTheDefaultAlignedIndex) {
  EXPECT_EQ(first_domain_index({{2, 1}, {0, 0}, {1, 1}}, {6, 0, 2}), (Extents{2, 0, 1}));
}

TEST(Halo, ALowerWidthOfTheWholeExtentGivesTheLastIndex) {
  EXPECT_EQ(first_domain_index({{4, 0}}, {4}), (Extents{3}));
}

// The definition: count the view's points that show halo points of the source.
HaloWidth counted(HaloWidth halo, std::int64_t extent, const std::vector<std::int64_t>& points,
                  bool backwards) {
  HaloWidth result{};
  for (const std::int64_t point : points) {
    const bool below = point < halo.lower;
    const bool above = point >= extent - halo.upper;
    result.lower += backwards ? above : below;
    result.upper += backwards ? below : above;
  }
  return result;
}

TEST(HaloOfSlice, CountsTheHaloPointsThatAreKept) {
  for (std::int64_t extent = 1; extent <= 7; ++extent) {
    for (std::int64_t lower = 0; lower <= extent; ++lower) {
      for (std::int64_t upper = 0; lower + upper <= extent; ++upper) {
        for (std::int64_t start = 0; start < extent; ++start) {
          for (const std::int64_t step : {1, 2, 3, 5, -1, -2, -3}) {
            std::vector<std::int64_t> points;
            for (std::int64_t p = start; p >= 0 && p < extent; p += step) {
              points.push_back(p);
              const auto count = static_cast<std::int64_t>(points.size());
              ASSERT_EQ(halo_of_slice({lower, upper}, extent, start, step, count),
                        counted({lower, upper}, extent, points, step < 0))
                  << "extent " << extent << ", halo " << lower << ":" << upper << ", start "
                  << start << ", step " << step << ", points " << count;
            }
          }
        }
      }
    }
  }
}

TEST(HaloOfSlice, OfNoPointsIsNothing) {
  EXPECT_EQ(halo_of_slice({2, 3}, 7, 0, 1, 0), (HaloWidth{0, 0}));
}

TEST(HaloOfSlice, DoesNotOverflow) {
  EXPECT_EQ(halo_of_slice({kMax, 0}, kMax, 0, kMax - 1, 2), (HaloWidth{2, 0}));
  EXPECT_EQ(halo_of_slice({0, kMax}, kMax, kMax - 1, -(kMax - 1), 2), (HaloWidth{2, 0}));
}

TEST(Halo, PrintsAsATuple) {
  EXPECT_EQ(to_string(Halo{{1, 2}, {0, 0}}), "((1, 2), (0, 0))");
  EXPECT_EQ(to_string(Halo{{1, 2}}), "((1, 2),)");
}

}  // namespace
}  // namespace gridbuf
