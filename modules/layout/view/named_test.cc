#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <numeric>
#include <random>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

import gridbuf.layout;
import gridbuf.layout.preset;
import gridbuf.layout.view;

namespace gridbuf {
namespace {

constexpr Dim kData0 = Dim::data(0);
constexpr Dim kData2 = Dim::data(2);
constexpr Dim kData10 = Dim::data(10);

constexpr LayoutRequest kSurface{.shape = {7, 8},
                                 .layout = {1, 0},
                                 .alignment_bytes = 48,
                                 .aligned_index = {1, 0},
                                 .dims = {kDimI, kDimJ},
                                 .halo = {{1, 2}, {0, 3}}};
constexpr LayoutRequest kProfile{.shape = {5},
                                 .layout = {0},
                                 .alignment_bytes = 64,
                                 .aligned_index = {1},
                                 .dims = {kDimK},
                                 .halo = {{1, 1}}};

void expect_value_error(const absl::Status& status, std::string_view text) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find(text), std::string_view::npos) << status.message();
}

// Of every kind.
std::vector<Dim> any_dims() {
  return {kDimI,
          kDimJ,
          kDimK,
          kData0,
          kData2,
          *parse_dim("Cell"),
          *make_dim("E2C", DimKind::kLocal),
          *make_dim("Level", DimKind::kVertical),
          *make_dim("tracer", DimKind::kData)};
}

// A field without halo in C order.
LayoutRequest plain(const Dims& dims, const Extents& shape) {
  return {.shape = shape,
          .layout = c_order(dims.size()),
          .aligned_index = Extents(dims.size(), 0),
          .dims = dims,
          .halo = no_halo(dims.size())};
}

absl::StatusOr<LayoutRequest> join_of(const std::vector<LayoutRequest>& fields,
                                      const std::vector<NamedShape>& others = {},
                                      const Dims& order = {}) {
  return join(fields, others, order);
}

TEST(Join, TakesTheLeastCommonAlignmentWithinTheBound) {
  EXPECT_EQ(common_alignment_bytes(48, 64), 192);
  EXPECT_FALSE(common_alignment_bytes((1 << 20) - 1, 2).has_value());
}

TEST(ExtendedLayout, KeepsTheOrderThatIsThere) {
  EXPECT_EQ(extended_layout({kDimJ, kDimK}, {1, 0}, {kDimI, kDimJ, kDimK}), (LayoutMap{2, 1, 0}));
  EXPECT_EQ(extended_layout({kDimK, kDimI}, {1, 0}, {kDimK, kDimI, kDimJ, kData0}),
            (LayoutMap{3, 1, 2, 0}));
  EXPECT_EQ(extended_layout({}, {}, {kDimK, kDimJ, kDimI}), (LayoutMap{2, 1, 0}));
}

TEST(ReducedLayout, DropsTheAxis) {
  EXPECT_EQ(reduced_layout(kSurface, {0}, /*keep=*/false), (LayoutRequest{.shape = {8},
                                                                          .layout = {0},
                                                                          .alignment_bytes = 48,
                                                                          .aligned_index = {0},
                                                                          .dims = {kDimJ},
                                                                          .halo = {{0, 3}}}));
}

TEST(Join, PairsDimensionsByName) {
  EXPECT_EQ(*join_of({kSurface, kProfile}), (LayoutRequest{.shape = {7, 8, 5},
                                                           .layout = {2, 1, 0},
                                                           .alignment_bytes = 192,
                                                           .aligned_index = {1, 0, 1},
                                                           .dims = {kDimI, kDimJ, kDimK},
                                                           .halo = {{1, 2}, {0, 3}, {1, 1}}}));
}

TEST(Join, TakesTheOrderOfTheFirstFieldThatHasAllDimensions) {
  const LayoutRequest kji = plain({kDimK, kDimJ, kDimI}, {4, 3, 2});
  const LayoutRequest jki = plain({kDimJ, kDimK, kDimI}, {3, 4, 2});
  const LayoutRequest i = plain({kDimI}, {2});
  EXPECT_EQ(join_of({i, kji, jki})->dims, kji.dims);
  EXPECT_EQ(join_of({jki, kji})->dims, jki.dims);
  EXPECT_EQ(join_of({jki, kji})->shape, (Extents{3, 4, 2}));
}

TEST(Join, ElseTheOrderIsSpatialThenDataByNumber) {
  const absl::StatusOr<LayoutRequest> result =
      join_of({plain({kData10, kDimK}, {3, 4}), plain({kDimI, kData2}, {5, 6})});
  EXPECT_EQ(result->dims, (Dims{kDimI, kDimK, kData2, kData10}));
  EXPECT_EQ(result->shape, (Extents{5, 4, 6, 3}));
}

TEST(Join, ExtentsOfOneNameMustBeEqualAndOneIsNotStretched) {
  const LayoutRequest ij = plain({kDimI, kDimJ}, {7, 8});
  expect_value_error(join_of({ij, plain({kDimJ}, {9})}).status(),
                     "the extent of dimension \"J\" is 9, but must be 8, as in the other operand");
  expect_value_error(join_of({ij, plain({kDimI}, {1})}).status(),
                     "select the point with an integer index");
  expect_value_error(join_of({ij}, {{{kDimI}, {6}}}).status(), "dimension \"I\" is 6");
  EXPECT_TRUE(join_of({plain({kDimI}, {1}), plain({kDimI, kDimJ}, {1, 8})}).ok());
}

TEST(Join, AStretchableDimensionTakesTheOthersExtent) {
  const LayoutRequest field = *join_of({kSurface, kProfile});
  const LayoutRequest mean = reduced_layout(field, {0, 2}, /*keep=*/true);
  for (const auto& joined : {join_of({field, mean}), join_of({mean, field})}) {
    EXPECT_EQ(joined->shape, field.shape);
    EXPECT_EQ(joined->halo, field.halo);
    EXPECT_EQ(joined->aligned_index, field.aligned_index);
    for (const Dim dim : joined->dims) EXPECT_FALSE(dim.is_stretchable());
  }
  const absl::StatusOr<LayoutRequest> twice = join_of({mean, mean});
  EXPECT_EQ(twice->shape, mean.shape);
  EXPECT_TRUE(twice->dims[0].is_stretchable() && !twice->dims[1].is_stretchable());
  // Another extent of 1 makes an ordinary dimension, as does an extent that is given.
  EXPECT_FALSE(join_of({mean, plain({kDimI}, {1})})->dims[0].is_stretchable());
  EXPECT_EQ(join_of({mean}, {{{kDimI}, {6}}})->shape, (Extents{6, 8, 1}));
}

TEST(Join, TakesTheOrderThatIsGiven) {
  const LayoutRequest field = plain({kDimI, kDimJ}, {2, 3});
  const Dims order{kDimK, kDimJ, kDimI};
  EXPECT_EQ(join_of({field}, {{{kDimK}, {4}}}, order)->dims, order);
  EXPECT_EQ(join_of({field}, {{{kDimK}, {4}}}, order)->shape, (Extents{4, 3, 2}));
  expect_value_error(join_of({field}, {}, order).status(), "the order of the result's dimensions");
  expect_value_error(join_of({field}, {}, {kDimI, kDimI}).status(), "an order of ('I', 'J')");
}

TEST(Join, HasAtMost64Dimensions) {
  LayoutRequest even;
  LayoutRequest odd;
  for (int number = 0; number < kMaxNdim; ++number) {
    even.dims.push_back(Dim::data(2 * number));
    odd.dims.push_back(Dim::data(2 * number + 1));
  }
  even = plain(even.dims, Extents(kMaxNdim, 1));
  odd = plain(odd.dims, Extents(kMaxNdim, 1));
  EXPECT_TRUE(join_of({even, even}).ok());
  expect_value_error(join_of({even, odd}).status(), "more than 64");
}

TEST(Join, HaloAndAlignedIndexAreTheLargestPerDimension) {
  LayoutRequest a = plain({kDimI, kDimJ}, {10, 10});
  LayoutRequest b = a;
  a.halo = {{1, 4}, {2, 2}};
  a.aligned_index = {5, 0};
  b.halo = {{3, 0}, {2, 3}};
  b.aligned_index = {3, 2};
  const absl::StatusOr<LayoutRequest> result = join_of({a, b});
  EXPECT_EQ(result->halo, (Halo{{3, 4}, {2, 3}}));
  EXPECT_EQ(result->aligned_index, (Extents{5, 2}));
}

TEST(Join, AHaloThatDoesNotFitIsTheFirstFieldsThatHasTheDimension) {
  LayoutRequest a = plain({kDimI}, {6});
  LayoutRequest b = plain({kDimI}, {6});
  a.halo = {{0, 4}};
  b.halo = {{3, 0}};
  EXPECT_EQ(join_of({a, b})->halo, (Halo{{0, 4}}));
  EXPECT_EQ(join_of({plain({kDimJ}, {2}), b, a})->halo, (Halo{{3, 0}, {0, 0}}));
}

TEST(Join, AnAlignmentOutOfBoundsIsTheFirstFields) {
  LayoutRequest a = plain({kDimI}, {6});
  LayoutRequest b = a;
  a.alignment_bytes = 96;
  b.alignment_bytes = 80;
  EXPECT_EQ(join_of({a, b})->alignment_bytes, 480);
  b.alignment_bytes = (1 << 20) - 1;
  EXPECT_EQ(join_of({a, b})->alignment_bytes, 96);
  EXPECT_EQ(join_of({b, a, a})->alignment_bytes, (1 << 20) - 1);
}

TEST(Join, ArraysThatAreNoFieldsGiveNamesAndExtentsOnly) {
  const absl::StatusOr<LayoutRequest> result = join_of({kSurface}, {{{kDimK}, {5}}});
  EXPECT_EQ(result->dims, (Dims{kDimI, kDimJ, kDimK}));
  EXPECT_EQ(result->halo, (Halo{{1, 2}, {0, 3}, {0, 0}}));
  EXPECT_EQ(result->layout, (LayoutMap{2, 1, 0}));
  EXPECT_EQ(join_of({}, {{{kDimK, kDimI}, {5, 2}}})->dims, (Dims{kDimI, kDimK}));
}

TEST(ExtendedLayout, MissingDataDimensionsGoOutermostTheLowestFirst) {
  EXPECT_EQ(extended_layout({kDimI, kDimJ}, {0, 1}, {kDimI, kDimJ, kData10, kData2}),
            (LayoutMap{2, 3, 1, 0}));
}

TEST(ExtendedLayout, ADataDimensionOfTheFieldStaysWhereItIs) {
  // Vectors with adjacent components keep them adjacent.
  EXPECT_EQ(extended_layout({kDimI, kData0}, {0, 1}, {kDimI, kDimJ, kDimK, kData0}),
            (LayoutMap{0, 1, 2, 3}));
  EXPECT_EQ(extended_layout({kDimI, kData0}, {1, 0}, {kDimI, kDimJ, kDimK, kData0}),
            (LayoutMap{1, 2, 3, 0}));
}

TEST(ExtendedLayout, IsThePresetsForEveryPartOfAPresetsField) {
  // The base ranks of a part are known only if it has all three axes. The result must be the first
  // base ranks that agree with the part, and must keep its order.
  const Dims target{kDimJ, kData0, kDimK, kDimI};
  for (const std::array<int, 3>& base : kBaseRanks) {
    for (unsigned present = 0; present < 8; ++present) {
      Dims part;
      for (int axis = 0; axis < kSpatialAxes; ++axis) {
        if ((present >> axis & 1) != 0) part.push_back(Dim::spatial(axis));
      }
      const LayoutMap own = layout_by_name(base, part);
      const auto chosen = std::find_if(
          kBaseRanks.begin(), kBaseRanks.end(),
          [&](const std::array<int, 3>& ranks) { return layout_by_name(ranks, part) == own; });
      ASSERT_NE(chosen, kBaseRanks.end());
      EXPECT_EQ(extended_layout(part, own, target), layout_by_name(*chosen, target))
          << to_string(part) << " in " << to_string(own);
    }
  }
}

TEST(ExtendedLayout, OtherNamesFollowTheirKinds) {
  const Dim cell = *parse_dim("Cell"), edge = *parse_dim("Edge");
  const Dim local = *make_dim("E2C", DimKind::kLocal);
  // Levels are outside of cells, so that they are outside of edges, too.
  EXPECT_EQ(extended_layout({cell, kDimK}, {1, 0}, {cell, edge, kDimK}), (LayoutMap{2, 1, 0}));
  EXPECT_EQ(extended_layout({cell, kDimK}, {0, 1}, {cell, edge, kDimK}), (LayoutMap{0, 1, 2}));
  EXPECT_EQ(extended_layout({edge}, {0}, {edge, local, kDimK}), (LayoutMap{0, 1, 2}));
  // An order that no preset has stays; K is added directly inside of what is outside of it.
  EXPECT_EQ(extended_layout({edge, local}, {1, 0}, {edge, local, kDimK}), (LayoutMap{2, 0, 1}));
}

TEST(Join, OneNameHasOneKind) {
  const Dim level = *make_dim("OneLevel", DimKind::kVertical);
  const Dim flat = *make_dim("OneLevel", DimKind::kHorizontal);
  expect_value_error(join_of({plain({kDimI, level}, {2, 3}), plain({flat}, {3})}).status(),
                     "the kind of dimension \"OneLevel\" is horizontal, but must be vertical");
  expect_value_error(named_map({{flat}, {3}}, {kDimI, level}).status(), "must be vertical");
  expect_value_error(named_map({{level}, {3}}, {flat}).status(),
                     "the kind of dimension \"OneLevel\" is vertical, but must be horizontal");
}

TEST(Join, ADimensionAndItsStaggeredHalfAreNotInOneResult) {
  const Dim half = *parse_dim("_StaggeredI");
  const Dim own = *parse_dim("Staggered");
  const Dim half_of_own = *parse_dim("_StaggeredStaggered");
  const char* const text = "a dimension next to \"I\" is \"_StaggeredI\", but must be another";
  expect_value_error(join_of({plain({kDimI}, {2}), plain({half}, {2})}).status(), text);
  expect_value_error(join_of({plain({half_of_own}, {2}), plain({own}, {2})}).status(),
                     "a dimension next to \"_StaggeredStaggered\" is \"Staggered\"");
  expect_value_error(named_map({{half}, {3}}, {kDimJ, kDimI}).status(), text);
  EXPECT_TRUE(join_of({plain({kDimJ}, {2}), plain({half}, {2})}).ok());
  EXPECT_TRUE(join_of({plain({half}, {2}), plain({half}, {2})}).ok());
  EXPECT_TRUE(join_of({plain({own}, {2}), plain({half}, {2})}).ok());
}

TEST(Join, KnownStartsGiveTheCommonPoints) {
  const auto ranged = [](Dim dim, std::int64_t start, std::int64_t extent) {
    return plain({dim.starting_at(start)}, {extent});
  };
  const LayoutRequest both = *join_of({ranged(kDimI, 0, 4), ranged(kDimI, 1, 4)});
  EXPECT_EQ(both.shape, (Extents{3}));
  EXPECT_EQ(both.dims[0].start(), 1);
  const LayoutRequest none = *join_of({ranged(kDimI, 0, 4), ranged(kDimI, 6, 4)});
  EXPECT_EQ(none.shape, (Extents{0}));
  EXPECT_EQ(none.dims[0].start(), 0);
  // An operand that does not know its start has the extent of the others.
  const LayoutRequest known = *join_of({plain({kDimI}, {4}), ranged(kDimI, 7, 4)});
  EXPECT_EQ(known.dims[0].start(), 7);
  expect_value_error(
      join_of({ranged(kDimI, 0, 4), ranged(kDimI, 1, 4), plain({kDimI}, {4})}).status(),
      "the extent of dimension \"I\"");
  // A stretchable one does not know it either.
  EXPECT_EQ(join_of({plain({kDimI.stretchable()}, {1}), ranged(kDimI, 7, 4)})->dims[0].start(), 7);

  LayoutRequest wide = ranged(kDimI, -3, 10);  // the points -3 to 6, the halo is -3, -2, -1 and 6
  wide.halo = {{3, 1}};
  wide.aligned_index = {3};
  const LayoutRequest part = *join_of({wide, ranged(kDimI, -1, 20)});
  EXPECT_EQ(part.shape, (Extents{8}));
  EXPECT_EQ(part.halo, (Halo{{1, 1}}));
  EXPECT_EQ(part.aligned_index, (Extents{1}));
}

TEST(NamedBroadcastMap, ReadsTheTargetsPointsByTheirIndices) {
  const NamedShape value{{kDimI.starting_at(-2), kDimJ}, {10, 3}};
  const auto map_to = [&value](std::int64_t start, std::int64_t extent) {
    return named_broadcast_map(value, {{kDimJ, kDimI.starting_at(start)}, {3, extent}});
  };
  const IndexMap map = *map_to(1, 4);
  EXPECT_EQ(map.shape(), (Extents{3, 4}));
  EXPECT_EQ(map.start(), (Extents{3, 0}));
  EXPECT_TRUE(map_to(-2, 10).ok());
  EXPECT_TRUE(map_to(30, 0).ok());
  expect_value_error(map_to(5, 4).status(),
                     "the range of dimension \"I\" of what is written is 5:9, but must be within "
                     "that of the value, -2:8");
  expect_value_error(map_to(-3, 4).status(), "is -3:1,");
  EXPECT_TRUE(common_points_map(value, {{kDimI, kDimJ.starting_at(5)}, {4, 2}})->is_identity());
}

TEST(LayoutView, ASliceBeginsAtTheIndexOfItsFirstPoint) {
  const Dims dims{kDimI.starting_at(5), kDimJ};
  IndexMap map({8, 3});
  map.keep(0, slice_points({.start = 2, .stop = 6}, 8));
  EXPECT_EQ(apply(map, dims)[0].start(), 7);
  EXPECT_FALSE(apply(map, dims)[1].has_start());
  map.keep(0, slice_points({.step = 2}, 4));
  EXPECT_FALSE(apply(map, dims)[0].has_start());
  IndexMap point({8, 3});
  point.keep(0, slice_points({.start = 4, .stop = 3, .step = -1}, 8));
  EXPECT_EQ(apply(point, dims)[0].start(), 9);
  IndexMap backwards({8, 3});
  backwards.keep(0, slice_points({.step = -1}, 8));
  EXPECT_FALSE(apply(backwards, dims)[0].has_start());
}

TEST(ReducedLayout, DropsOrKeepsWhatIsReduced) {
  const LayoutRequest field = *join_of({kSurface, kProfile});
  const LayoutRequest dropped = reduced_layout(field, {0, 2}, /*keep=*/false);
  EXPECT_EQ(dropped.dims, (Dims{kDimJ}));
  EXPECT_EQ(dropped.halo, (Halo{{0, 3}}));
  const LayoutRequest kept = reduced_layout(field, {0, 2}, /*keep=*/true);
  EXPECT_EQ(kept.dims, field.dims);
  EXPECT_EQ(kept.shape, (Extents{1, 8, 1}));
  EXPECT_EQ(kept.halo, (Halo{{0, 0}, {0, 3}, {0, 0}}));
  EXPECT_EQ(kept.layout, field.layout);
  EXPECT_EQ(reduced_layout(field, {0, 1, 2}, /*keep=*/false).dims, Dims{});
}

TEST(NamedMap, PermutesAndPutsInAxesOfExtentOne) {
  const NamedShape array{{kDimK, kDimI}, {4, 2}};
  EXPECT_EQ(named_map(array, {kDimI, kDimJ, kDimK})->shape(), (Extents{2, 1, 4}));
  EXPECT_EQ(named_map(array, {kDimI, kDimJ, kDimK})->axis(2).source, 0);
  expect_value_error(named_map(array, {kDimI, kDimJ}).status(),
                     "a dimension of the operand is \"K\", but must be one of the target's "
                     "dimensions ('I', 'J')");
}

TEST(NamedBroadcastMap, RepeatsAlongMissingDimensionsAndChecksTheOthers) {
  const NamedShape profile{{kDimK}, {4}};
  const NamedShape target{{kDimI, kDimJ, kDimK}, {2, 3, 4}};
  const absl::StatusOr<IndexMap> map = named_broadcast_map(profile, target);
  EXPECT_EQ(apply(*map, StridedView{{4}, {16}, 8, 8}), (StridedView{{2, 3, 4}, {0, 0, 16}, 8, 8}));
  expect_value_error(named_broadcast_map({{kDimK}, {5}}, target).status(), "\"K\" is 5");
  expect_value_error(named_broadcast_map({{kData0}, {5}}, target).status(), "is \"0\"");
  EXPECT_EQ(named_broadcast_map({}, target)->shape(), target.shape);  // One element everywhere.
}

TEST(NamedBroadcastMap, RepeatsStretchableDimensionsAndLeavesUnnamedOnesOut) {
  const NamedShape target{{kDimI, kDimJ, kDimK}, {2, 3, 4}};
  const NamedShape mean{{kData0.unnamed(), kDimJ, kDimK.stretchable()}, {1, 3, 1}};
  const absl::StatusOr<IndexMap> map = named_broadcast_map(mean, target);
  EXPECT_EQ(apply(*map, StridedView{{1, 3, 1}, {72, 24, 8}, 8, 8}),
            (StridedView{{2, 3, 4}, {0, 24, 0}, 8, 8}));
  expect_value_error(named_broadcast_map({{kDimK}, {1}}, target).status(), "keepdims=True");
  expect_value_error(named_broadcast_map({{kData0.stretchable()}, {1}}, target).status(),
                     "is \"0\"");
}

// ---- Against points that know their names. ----

struct Draws {
  std::mt19937_64 random;

  int below(int bound) { return static_cast<int>(random() % static_cast<unsigned>(bound)); }

  // Some dimensions in any order, with the extents that all arrays of a round share.
  LayoutRequest field(const std::map<Dim, std::int64_t>& extents) {
    std::vector<Dim> dims;
    for (const auto& [dim, extent] : extents) {
      if (below(2) == 0) dims.push_back(dim);
    }
    std::shuffle(dims.begin(), dims.end(), random);
    LayoutRequest result = plain(Dims(std::span<const Dim>(dims)), {});
    std::vector<int> ranks(dims.size());
    std::iota(ranks.begin(), ranks.end(), 0);
    std::shuffle(ranks.begin(), ranks.end(), random);
    result.layout = LayoutMap(std::span<const int>(ranks));
    for (std::size_t axis = 0; axis < dims.size(); ++axis) {
      const int extent = static_cast<int>(extents.at(dims[axis]));
      result.shape.push_back(extent);
      result.aligned_index[static_cast<int>(axis)] = extent == 0 ? 0 : below(extent);
      const int lower = below(extent + 1);
      result.halo[static_cast<int>(axis)] = {lower, below(extent - lower + 1)};
    }
    result.alignment_bytes = 1 + below(200);
    return result;
  }
};

TEST(NamedProperty, AJoinIsAValidFieldThatFollowsTheRules) {
  Draws draws{std::mt19937_64(31)};
  for (int round = 0; round < 3000; ++round) {
    std::map<Dim, std::int64_t> extents;
    for (const Dim dim : any_dims()) extents[dim] = draws.below(5);
    std::vector<LayoutRequest> fields;
    for (int i = 0; i <= draws.below(3); ++i) fields.push_back(draws.field(extents));
    const absl::StatusOr<LayoutRequest> result = join_of(fields);
    ASSERT_TRUE(result.ok()) << result.status();
    ASSERT_TRUE(validate_dims(result->dims, result->shape.size()).ok());
    ASSERT_TRUE(validate_halo(result->halo, result->shape).ok()) << to_string(result->halo);
    ASSERT_TRUE(is_permutation(result->layout));

    // The first field's dimensions keep their order in memory.
    const LayoutRequest& first = fields.front();
    for (int a = 0; a < first.dims.size(); ++a) {
      for (int b = 0; b < first.dims.size(); ++b) {
        const int in_a = position_of(first.dims[a], result->dims);
        const int in_b = position_of(first.dims[b], result->dims);
        ASSERT_EQ(first.layout[a] < first.layout[b], result->layout[in_a] < result->layout[in_b]);
      }
    }
    // Every name is that of an operand, with its extent. Every field's halo is in the result's
    // halo, or did not fit.
    std::size_t names = 0;
    for (const auto& [dim, extent] : extents) {
      const bool used = std::any_of(fields.begin(), fields.end(), [&](const LayoutRequest& field) {
        return position_of(dim, field.dims) >= 0;
      });
      names += used ? 1 : 0;
      const int axis = position_of(dim, result->dims);
      ASSERT_EQ(used, axis >= 0);
      if (!used) continue;
      ASSERT_EQ(result->shape[axis], extent);
      HaloWidth halo{};
      for (const LayoutRequest& field : fields) {
        const int position = position_of(dim, field.dims);
        if (position < 0) continue;
        halo.lower = std::max(halo.lower, field.halo[position].lower);
        halo.upper = std::max(halo.upper, field.halo[position].upper);
        ASSERT_GE(result->aligned_index[axis], field.aligned_index[position]);
        ASSERT_TRUE(extent == 0 || result->aligned_index[axis] < extent);
      }
      if (halo.lower + halo.upper <= extent) {
        ASSERT_EQ(result->halo[axis], halo);
      }
    }
    ASSERT_EQ(names, static_cast<std::size_t>(result->dims.size()));
    ASSERT_LE(result->alignment_bytes, 1 << 20);
    ASSERT_EQ(result->alignment_bytes % first.alignment_bytes, 0);
  }
}

template <class Visit>
void for_each_index(const Extents& shape, Visit visit) {
  if (is_empty(shape)) return;
  Extents index(shape.size(), 0);
  for (;;) {
    visit(index);
    int axis = shape.size() - 1;
    while (axis >= 0 && ++index[axis] == shape[axis]) index[axis--] = 0;
    if (axis < 0) return;
  }
}

TEST(NamedProperty, AnOperandShowsThePointOfTheSameNames) {
  Draws draws{std::mt19937_64(32)};
  int points = 0;
  for (int round = 0; round < 1000; ++round) {
    std::map<Dim, std::int64_t> extents;
    for (const Dim dim : any_dims()) extents[dim] = draws.below(5);
    const std::vector<LayoutRequest> fields{draws.field(extents), draws.field(extents)};
    const LayoutRequest result = *join_of(fields);
    for (const LayoutRequest& field : fields) {
      // Strides that give every element a different offset: the digits of the point in base 8.
      StridedView memory{.shape = field.shape, .itemsize_bytes = 1};
      for (int axis = 0; axis < field.dims.size(); ++axis) {
        memory.strides_bytes.push_back(std::int64_t{1} << (3 * axis));
      }
      const absl::StatusOr<IndexMap> map =
          named_broadcast_map({field.dims, field.shape}, {result.dims, result.shape});
      ASSERT_TRUE(map.ok()) << map.status();
      const StridedView seen = apply(*map, memory);
      ASSERT_EQ(seen.shape, result.shape);
      for_each_index(result.shape, [&](const Extents& index) {
        std::int64_t expected = 0;
        for (int axis = 0; axis < field.dims.size(); ++axis) {
          expected += index[position_of(field.dims[axis], result.dims)] << (3 * axis);
        }
        ASSERT_EQ(byte_offset(seen, index), expected);
        ++points;
      });
    }
  }
  EXPECT_GT(points, 10000);
}

}  // namespace
}  // namespace gridbuf
