#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

import gridbuf.layout;

namespace gridbuf {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr Extents kShape{3, 4, 5};

// ---- At compile time. ----

constexpr Layout constant_plan(const LayoutRequest& request) {
  Layout plan;
  return plan_layout(request, plan).ok() ? plan : Layout();
}
constexpr Layout dense_plan(const LayoutMap& layout) {
  return constant_plan({.shape = kShape, .itemsize_bytes = 8, .layout = layout});
}
// Every permutation. Only the first two, the 3-cycles, distinguish ranks from their inverse.
static_assert(dense_plan({2, 0, 1}).strides_bytes() == Extents{8, 120, 24});
static_assert(dense_plan({1, 2, 0}).strides_bytes() == Extents{32, 8, 96});
static_assert(dense_plan({0, 2, 1}).strides_bytes() == Extents{160, 8, 32});
static_assert(dense_plan({0, 1, 2}).strides_bytes() == Extents{160, 40, 8});
static_assert(dense_plan({2, 1, 0}).strides_bytes() == Extents{8, 24, 96});
static_assert(dense_plan({1, 0, 2}).strides_bytes() == Extents{40, 120, 8});
static_assert(dense_plan({}) == dense_plan({0, 1, 2}));

constexpr Layout kPadded = constant_plan({.shape = {3, 4, 5},
                                          .itemsize_bytes = 8,
                                          .layout = {2, 0, 1},
                                          .alignment_bytes = 64,
                                          .aligned_index = {1, 2, 3}});
static_assert(kPadded.padded_shape() == Extents{8, 4, 5});
static_assert(kPadded.strides_bytes() == Extents{8, 320, 64});
static_assert(kPadded.element_count() == 60 && kPadded.nbytes() == 480);
static_assert(kPadded.total_bytes() == 1280);
static_assert(kPadded.aligned_offset_bytes() == 8 + 2 * 320 + 3 * 64);
static_assert(kPadded.contiguous_axis() == 0);
static_assert(kPadded.view().shape == Extents{3, 4, 5});
static_assert(kPadded.row_padding() == 5);

// Bad requests are found at compile time, too.
constexpr bool is_plannable(std::int64_t extent, std::int64_t alignment_bytes) {
  Layout plan;
  return plan_layout({.shape = {extent}, .alignment_bytes = alignment_bytes}, plan).ok();
}
static_assert(is_plannable(3, 64) && is_plannable(0, 1));
static_assert(!is_plannable(-1, 1));
static_assert(!is_plannable(3, 0) && !is_plannable(3, kMaxAlignmentBytes + 1));

// More dimensions than a list has entries in place.
static_assert(constant_plan({.shape = Extents(12, 2), .itemsize_bytes = 4}).nbytes() == 4 << 12);

static_assert(std::is_nothrow_move_constructible_v<Layout>);
static_assert(std::is_nothrow_move_assignable_v<Layout>);
static_assert(!std::is_nothrow_copy_constructible_v<Layout>);  // See SmallVec.

// ---- Examples. ----

Layout plan_of(const LayoutRequest& request) {
  const absl::StatusOr<Layout> plan = make_plan(request);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? *plan : Layout();
}

void expect_value_error(const absl::Status& status, std::string_view text) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find(text), std::string_view::npos) << status.message();
}

void expect_value_error(const LayoutRequest& request, std::vector<std::string_view> texts) {
  const absl::StatusOr<Layout> plan = make_plan(request);
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument);
  for (const std::string_view text : texts) {
    EXPECT_NE(plan.status().message().find(text), std::string_view::npos)
        << "\"" << text << "\" in: " << plan.status().message();
  }
}

TEST(Layout, RankZeroIsTheLargestStride) {
  for (const LayoutMap& layout : {LayoutMap{2, 0, 1}, LayoutMap{1, 2, 0}}) {
    const Layout plan = plan_of({.shape = kShape, .itemsize_bytes = 8, .layout = layout});
    for (int a = 0; a < 3; ++a) {
      for (int b = 0; b < 3; ++b) {
        if (layout[a] < layout[b]) {
          EXPECT_GT(plan.strides_bytes()[a], plan.strides_bytes()[b]);
        }
      }
    }
  }
}

TEST(Layout, AnEmptyLayoutMapIsCOrder) {
  EXPECT_EQ(plan_of({.shape = kShape}).layout_map(), (LayoutMap{0, 1, 2}));
}

TEST(Layout, PadsOnlyTheContiguousDimension) {
  for (const LayoutMap& layout : {LayoutMap{2, 0, 1}, LayoutMap{1, 2, 0}, LayoutMap{0, 1, 2}}) {
    const Layout plan =
        plan_of({.shape = kShape, .itemsize_bytes = 8, .layout = layout, .alignment_bytes = 64});
    for (int axis = 0; axis < 3; ++axis) {
      const bool contiguous = layout[axis] == 2;
      EXPECT_EQ(plan.padded_shape()[axis], contiguous ? 8 : kShape[axis]);
    }
  }
}

TEST(Layout, PadsByTheLeastCommonMultiple) {
  // 12 does not divide 64: rows become multiples of lcm(12, 64) = 192 bytes, which are 16 elements.
  EXPECT_EQ(plan_of({.shape = {5, 17}, .itemsize_bytes = 12, .alignment_bytes = 64}).padded_shape(),
            (Extents{5, 32}));
  // An alignment that divides the itemsize needs no padding.
  EXPECT_EQ(plan_of({.shape = {5, 7}, .itemsize_bytes = 16, .alignment_bytes = 8}).padded_shape(),
            (Extents{5, 7}));
}

TEST(Layout, DoesNotPadOneDimension) {
  const Layout plan = plan_of({.shape = {5}, .itemsize_bytes = 8, .alignment_bytes = 64});
  EXPECT_EQ(plan.padded_shape(), (Extents{5}));
  EXPECT_EQ(plan.total_bytes(), 40);
}

TEST(Layout, AlignmentOneMeansNoConstraint) {
  const Layout plan = plan_of({.shape = {3, 5}, .itemsize_bytes = 7});
  EXPECT_EQ(plan.padded_shape(), plan.shape());
  EXPECT_EQ(plan.total_bytes(), plan.nbytes());
}

TEST(Layout, AlignmentIsAnyIntegerUpToOneMebibyte) {
  for (const std::int64_t alignment : {1, 3, 24, 100, 1000003, 1 << 20}) {
    EXPECT_TRUE(make_plan({.shape = {2, 2}, .alignment_bytes = alignment}).ok()) << alignment;
  }
  for (const std::int64_t alignment : {std::int64_t{0}, std::int64_t{-1}, kMaxAlignmentBytes + 1}) {
    expect_value_error({.shape = {2, 2}, .alignment_bytes = alignment},
                       {"alignment_bytes is " + std::to_string(alignment), "from 1 to 1048576"});
  }
}

TEST(Layout, TheHaloGivesTheDefaultOfTheAlignedIndex) {
  LayoutRequest request{.shape = {10, 4, 6},
                        .itemsize_bytes = 8,
                        .alignment_bytes = 64,
                        .halo = {{3, 1}, {4, 0}, {2, 2}}};
  const Layout plan = plan_of(request);
  EXPECT_EQ(plan.aligned_index(), (Extents{3, 3, 2}));  // (3, 4, 2), of which 4 is not an index.
  EXPECT_EQ(plan.aligned_offset_bytes(), byte_offset(plan.view(), {3, 3, 2}));
  request.aligned_index = {0, 0, 0};
  EXPECT_EQ(plan_of(request).aligned_index(), (Extents{0, 0, 0}));
}

TEST(Layout, AlignedIndexDefaultsToZeros) {
  EXPECT_EQ(plan_of({.shape = kShape}).aligned_index(), (Extents{0, 0, 0}));
}

TEST(Layout, AlignedIndexMustBeAnIndex) {
  EXPECT_TRUE(make_plan({.shape = {3, 4}, .aligned_index = {2, 3}}).ok());
  EXPECT_TRUE(make_plan({.shape = {3, 0}, .aligned_index = {2, 0}}).ok());
  expect_value_error({.shape = {3, 4}, .aligned_index = {0, 4}},
                     {"aligned_index[1] is 4, but must be in [0, 4)"});
  expect_value_error({.shape = {3, 4}, .aligned_index = {-1, 0}}, {"aligned_index[0] is -1"});
  expect_value_error({.shape = {3, 0}, .aligned_index = {0, 1}},
                     {"must be 0, because the extent is 0"});
  expect_value_error({.shape = {3, 4}, .aligned_index = {0}}, {"is 1, but must be 2"});
}

TEST(Layout, RefusesNegativeSizes) {
  expect_value_error({.shape = {3, -4}}, {"shape[1] is -4, but must be >= 0"});
  expect_value_error({.shape = {3}, .itemsize_bytes = -1}, {"itemsize_bytes is -1"});
}

TEST(Layout, RefusesWhatIsNoLayoutMap) {
  expect_value_error({.shape = {3, 4}, .layout = {0, 0}},
                     {"layout is (0, 0), but must be a permutation of 0 to 1"});
  expect_value_error({.shape = {3, 4}, .layout = {0}}, {"layout is (0,)"});
}

TEST(Layout, ZeroExtentsTouchNoByte) {
  const Layout plan = plan_of({.shape = {3, 0, 5},
                               .itemsize_bytes = 8,
                               .layout = {1, 2, 0},
                               .alignment_bytes = 64,
                               .aligned_index = {2, 0, 4}});
  EXPECT_EQ(plan.element_count(), 0);
  EXPECT_EQ(plan.nbytes(), 0);
  EXPECT_EQ(plan.total_bytes(), 0);
  EXPECT_EQ(byte_hull(plan.view())->length_bytes(), 0);
  EXPECT_EQ(plan.strides_bytes(), (Extents{8, 8, 24}));
}

TEST(Layout, NoDimensionsAreOneElement) {
  const Layout plan = plan_of({.itemsize_bytes = 8, .alignment_bytes = 64});
  EXPECT_EQ(plan.ndim(), 0);
  EXPECT_EQ(plan.element_count(), 1);
  EXPECT_EQ(plan.total_bytes(), 8);
  EXPECT_EQ(plan.aligned_offset_bytes(), 0);
  EXPECT_EQ(plan.contiguous_axis(), -1);
}

TEST(Layout, ItemsMayHaveNoBytes) {
  const Layout plan = plan_of({.shape = {3, 4}, .itemsize_bytes = 0, .alignment_bytes = 64});
  EXPECT_EQ(plan.strides_bytes(), (Extents{0, 0}));
  EXPECT_EQ(plan.element_count(), 12);
  EXPECT_EQ(plan.total_bytes(), 0);
}

TEST(Layout, HoldsTheMostDimensions) {
  const Layout plan = plan_of({.shape = Extents(kMaxNdim, 1), .itemsize_bytes = 8});
  EXPECT_EQ(plan.ndim(), 64);
  EXPECT_EQ(plan.total_bytes(), 8);
}

TEST(Layout, FieldsPast2To31And2To32BytesAreExact) {
  EXPECT_EQ(plan_of({.shape = {1024, 1024, 384}, .itemsize_bytes = 8}).nbytes(), 3221225472);
  const Layout plan = plan_of({.shape = {1025, 1024, 1024},
                               .itemsize_bytes = 8,
                               .layout = {2, 0, 1},
                               .alignment_bytes = 32});
  EXPECT_EQ(plan.padded_shape()[0], 1028);
  EXPECT_EQ(plan.total_bytes(), std::int64_t{1028} * 1024 * 1024 * 8);
}

TEST(Layout, OverflowNamesShapeItemAndLimit) {
  const std::int64_t big = std::int64_t{1} << 31;
  expect_value_error({.shape = {big, big, 2}, .itemsize_bytes = 1},
                     {"(2147483648, 2147483648, 2)", "itemsize 1 bytes", "9223372036854775807"});
  expect_value_error({.shape = {big, big}, .itemsize_bytes = 8, .dtype_name = "float64"},
                     {"dtype float64 (8 bytes)", "9223372036854775807"});
}

TEST(Layout, OverflowOfEachStepIsFound) {
  const std::int64_t big = std::int64_t{1} << 32;
  const std::string limit = "9223372036854775807";
  expect_value_error({.shape = {big, big}, .itemsize_bytes = 1}, {limit});  // The count,
  expect_value_error({.shape = {big, big}, .itemsize_bytes = 0}, {limit});  // even without bytes,
  expect_value_error({.shape = {big}, .itemsize_bytes = big}, {limit});     // the bytes,
  expect_value_error({.shape = {1, kMax - 3}, .alignment_bytes = 64}, {limit});  // rounding up,
  expect_value_error({.shape = {std::int64_t{1} << 44, 1}, .alignment_bytes = 1 << 20},
                     {limit});  // and rows of rounded length.
  EXPECT_TRUE(make_plan({.shape = {kMax}}).ok());
}

TEST(Layout, AZeroExtentDoesNotHideAnOverflow) {
  const std::int64_t big = std::int64_t{1} << 62;
  expect_value_error({.shape = {big, 0, big}}, {"(4611686018427387904, 0, 4611686018427387904)"});
}

TEST(Layout, HoldsTheNamesAndHaloOfItsRequest) {
  const Layout plan = plan_of({.shape = {3, 4}, .dims = {kDimJ, kDimI}, .halo = {{1, 1}, {0, 4}}});
  EXPECT_EQ(plan.dims(), (Dims{kDimJ, kDimI}));
  EXPECT_EQ(plan.halo(), (Halo{{1, 1}, {0, 4}}));
  EXPECT_TRUE(plan_of({.shape = {3, 4}}).dims().empty());
  expect_value_error({.shape = {3, 4}, .dims = {kDimI}}, {"dims", "is 1, but must be 2"});
  expect_value_error({.shape = {3, 4}, .dims = {kDimI, kDimI}}, {"dims[1] is \"I\""});
  expect_value_error({.shape = {3, 4}, .halo = {{0, 0}, {3, 2}}}, {"halo[1] is (3, 2)"});
  EXPECT_TRUE(
      std::string_view(to_string(plan)).ends_with("dims ('J', 'I'), halo ((1, 1), (0, 4))"));
}

TEST(Layout, PrintsEverything) {
  EXPECT_EQ(
      to_string(kPadded),
      "shape (3, 4, 5), itemsize 8 bytes, layout (2, 0, 1), strides (8, 320, 64) bytes, padded "
      "shape (8, 4, 5), alignment 64 bytes at index (1, 2, 3) (offset 840 bytes), 480 bytes of "
      "elements, 1280 bytes in all");
  std::ostringstream stream;
  stream << kPadded;
  EXPECT_EQ(stream.str(), to_string(kPadded));
}

TEST(Layout, PrintsTheRuleOfOffsets) {
  EXPECT_EQ(offset_rule(kPadded), "offset(i0, i1, i2) = 8*i0 + 320*i1 + 64*i2 bytes");
  EXPECT_EQ(offset_rule(Layout()), "offset() = 0 bytes");
}

TEST(Layout, ComparesByValue) {
  const LayoutRequest request{.shape = kShape, .itemsize_bytes = 8, .layout = {2, 0, 1}};
  EXPECT_EQ(plan_of(request), plan_of(request));
  LayoutRequest other = request;
  other.alignment_bytes = 8;  // Changes nothing but the promise.
  EXPECT_NE(plan_of(request), plan_of(other));
  EXPECT_EQ(difference(plan_of(request), plan_of(request)), "");
  EXPECT_EQ(difference(plan_of(request), plan_of(other)), "alignment_bytes: wanted 1, found 8\n");
  other.layout = {1, 2, 0};
  EXPECT_EQ(difference(plan_of(request), plan_of(other)),
            "layout: wanted (2, 0, 1), found (1, 2, 0)\nalignment_bytes: wanted 1, found 8\n"
            "strides_bytes: wanted (8, 120, 24), found (32, 8, 96)\n");
}

// ---- Properties, against wide arithmetic and by enumeration. ----

struct Draws {
  std::mt19937_64 engine;

  std::int64_t below(std::int64_t bound) {
    return static_cast<std::int64_t>(engine() % static_cast<std::uint64_t>(bound));
  }
  LayoutMap layout(int ndim) {
    std::vector<int> ranks(static_cast<std::size_t>(ndim));
    std::iota(ranks.begin(), ranks.end(), 0);
    std::shuffle(ranks.begin(), ranks.end(), engine);
    return LayoutMap(std::span<const int>(ranks));
  }
  LayoutRequest small() {
    LayoutRequest request;
    const int ndim = static_cast<int>(below(5));
    for (int axis = 0; axis < ndim; ++axis) request.shape.push_back(1 + below(6));
    request.itemsize_bytes = 1 + below(20);
    request.layout = layout(ndim);
    request.alignment_bytes = 1 + below(below(2) ? 64 : 1000);
    for (const std::int64_t extent : request.shape) request.aligned_index.push_back(below(extent));
    return request;
  }
};

// Calls `visit` with every index of `shape`.
template <class F>
void for_each_index(const Extents& shape, F visit) {
  if (is_empty(shape)) return;
  Extents index(shape.size(), 0);
  for (;;) {
    visit(index);
    int axis = shape.size() - 1;
    while (axis >= 0 && ++index[axis] == shape[axis]) index[axis--] = 0;
    if (axis < 0) return;
  }
}

TEST(LayoutProperty, ElementsSharingTheContiguousIndexAreAligned) {
  Draws draws{std::mt19937_64(11)};
  for (int round = 0; round < 2000; ++round) {
    const LayoutRequest request = draws.small();
    const Layout plan = plan_of(request);
    // The allocator's promise: this address is a multiple of the alignment.
    const std::int64_t base = -plan.aligned_offset_bytes();
    const int contiguous = plan.contiguous_axis();
    for_each_index(plan.shape(), [&](const Extents& index) {
      if (contiguous < 0 || index[contiguous] != plan.aligned_index()[contiguous]) return;
      const std::int64_t address = base + byte_offset(plan.view(), index);
      ASSERT_EQ(address % plan.alignment_bytes(), 0)
          << to_string(plan) << " at " << to_string(index);
    });
  }
}

TEST(LayoutProperty, ElementsAreDisjointAndInsideTheTotal) {
  Draws draws{std::mt19937_64(12)};
  for (int round = 0; round < 1000; ++round) {
    const Layout plan = plan_of(draws.small());
    std::set<std::int64_t> offsets;
    for_each_index(plan.shape(),
                   [&](const Extents& index) { offsets.insert(byte_offset(plan.view(), index)); });
    ASSERT_EQ(static_cast<std::int64_t>(offsets.size()), plan.element_count());
    std::int64_t end = 0;
    for (const std::int64_t offset : offsets) {
      ASSERT_GE(offset, end) << to_string(plan);
      end = offset + plan.itemsize_bytes();
    }
    ASSERT_LE(end, plan.total_bytes());
    ASSERT_EQ(*byte_hull(plan.view()), (checked::ByteHull{0, end}));
    ASSERT_EQ(*byte_hull({plan.padded_shape(), plan.strides_bytes(), 0, plan.itemsize_bytes()}),
              (checked::ByteHull{0, plan.total_bytes()}));
  }
}

TEST(LayoutProperty, LayoutOfAPlanIsItsLayoutMap) {
  Draws draws{std::mt19937_64(13)};
  for (int round = 0; round < 1000; ++round) {
    LayoutRequest request = draws.small();
    for (std::int64_t& extent : request.shape) ++extent;  // No extents of 1: they carry no order.
    const Layout plan = plan_of(request);
    ASSERT_EQ(layout_of(plan.shape(), plan.strides_bytes()), plan.layout_map()) << to_string(plan);
  }
}

TEST(LayoutProperty, TheSameRequestGivesTheSamePlan) {
  Draws draws{std::mt19937_64(14)};
  for (int round = 0; round < 1000; ++round) {
    const LayoutRequest request = draws.small();
    ASSERT_EQ(plan_of(request), plan_of(request));
  }
}

// The total in wide arithmetic that saturates where 128 bits could overflow; nothing if too large.
std::optional<std::int64_t> wide_total(const LayoutRequest& request) {
  const auto times = [](__int128 a, __int128 b) {
    return a > kMax ? a : a * b;  // Past the limit it stays there: all factors are >= 1.
  };
  __int128 total = request.itemsize_bytes;
  __int128 count = 1;
  const __int128 row = std::lcm(request.alignment_bytes, request.itemsize_bytes);
  bool empty = false;
  for (int axis = 0; axis < request.shape.size(); ++axis) {
    const __int128 extent = request.shape[axis];
    empty = empty || extent == 0;
    __int128 padded = extent;
    const bool contiguous = request.layout[axis] == request.shape.size() - 1;
    if (contiguous && request.shape.size() > 1) {
      padded = (extent * request.itemsize_bytes + row - 1) / row * row / request.itemsize_bytes;
    }
    total = times(total, padded == 0 ? 1 : padded);
    count = times(count, extent == 0 ? 1 : extent);
  }
  if (total > kMax || count > kMax) return std::nullopt;
  return empty ? 0 : static_cast<std::int64_t>(total);
}

TEST(LayoutProperty, TotalsAreExactOrRefusedAtAnySize) {
  Draws draws{std::mt19937_64(15)};
  int refused = 0;
  constexpr int kRounds = 50'000;
  for (int round = 0; round < kRounds; ++round) {
    LayoutRequest request;
    const int ndim = static_cast<int>(1 + draws.below(5));
    for (int axis = 0; axis < ndim; ++axis) {
      request.shape.push_back(
          draws.below(std::int64_t{1} << (1 + draws.below(62 / ndim + 6) % 62)));
    }
    request.itemsize_bytes = 1 + draws.below(64);
    request.layout = draws.layout(ndim);
    request.alignment_bytes = 1 + draws.below(kMaxAlignmentBytes);
    const std::optional<std::int64_t> wanted = wide_total(request);
    const absl::StatusOr<Layout> plan = make_plan(request);
    ASSERT_EQ(plan.ok(), wanted.has_value()) << to_string(request.shape);
    if (plan.ok()) {
      ASSERT_EQ(plan->total_bytes(), *wanted) << to_string(*plan);
      ASSERT_LE(plan->nbytes(), std::max(plan->total_bytes(), plan->nbytes()));
      for (const std::int64_t stride : plan->strides_bytes()) ASSERT_GE(stride, 0);
    }
    refused += wanted ? 0 : 1;
  }
  EXPECT_GT(refused, kRounds / 20);
  EXPECT_LT(refused, kRounds * 19 / 20);
}

TEST(Layout, IsTheSameAtCompileTimeAndAtRunTime) {
  EXPECT_EQ(kPadded, plan_of({.shape = {3, 4, 5},
                              .itemsize_bytes = 8,
                              .layout = {2, 0, 1},
                              .alignment_bytes = 64,
                              .aligned_index = {1, 2, 3}}));
}

TEST(LayoutMap, IsAPermutationOfTheRanks) {
  EXPECT_TRUE(validate_layout_map(LayoutMap{2, 0, 1}, 3).ok());
  EXPECT_TRUE(validate_layout_map(LayoutMap{}, 0).ok());
  expect_value_error(validate_layout_map(LayoutMap{0, 0, 1}, 3),
                     "layout is (0, 0, 1), but must be a permutation of 0 to 2");
  expect_value_error(validate_layout_map(LayoutMap{0, 1}, 3), "layout is (0, 1)");
  expect_value_error(validate_layout_map(LayoutMap{0}, 0), "must be empty");
}

TEST(LayoutMap, AxesByRankIsItsInverse) {
  for (int ndim = 0; ndim <= 6; ++ndim) {
    std::vector<int> ranks(static_cast<std::size_t>(ndim));
    std::iota(ranks.begin(), ranks.end(), 0);
    do {
      const LayoutMap layout{std::span<const int>(ranks)};
      const Axes axes = axes_by_rank(layout);
      for (int rank = 0; rank < ndim; ++rank) ASSERT_EQ(layout[axes[rank]], rank);
    } while (std::next_permutation(ranks.begin(), ranks.end()));
  }
}

TEST(LayoutOf, FollowsDescendingMagnitudesOfStrides) {
  EXPECT_EQ(layout_of({3, 4, 5}, {8, 120, 24}), (LayoutMap{2, 0, 1}));
  EXPECT_EQ(layout_of({3, 4, 5}, {32, 8, 96}), (LayoutMap{1, 2, 0}));
  EXPECT_EQ(layout_of({3, 4, 5}, {32, -8, -96}), (LayoutMap{1, 2, 0}));
  EXPECT_EQ(layout_of({}, {}), (LayoutMap{}));
  const std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
  EXPECT_EQ(layout_of({2, 2}, {8, lowest}), (LayoutMap{1, 0}));
}

TEST(LayoutOf, KeepsThePositionOfTies) {
  EXPECT_EQ(layout_of({3, 4, 5}, {0, 0, 8}), (LayoutMap{1, 2, 0}));
  EXPECT_EQ(layout_of({3, 4}, {8, -8}), (LayoutMap{0, 1}));
}

TEST(LayoutOf, ExtentsOfOneKeepTheirPosition) {
  EXPECT_EQ(layout_of({5, 1, 4}, {8, 123456, 40}), (LayoutMap{2, 1, 0}));
  EXPECT_EQ(layout_of({5, 1, 4}, {8, 0, 40}), (LayoutMap{2, 1, 0}));
  EXPECT_EQ(layout_of({1, 1}, {0, 99}), (LayoutMap{0, 1}));
}

TEST(LayoutOf, AnArrayWithoutElementsIsInCOrder) {
  EXPECT_EQ(layout_of({5, 0, 4}, {8, 40, 40}), (LayoutMap{0, 1, 2}));
}

}  // namespace
}  // namespace gridbuf
