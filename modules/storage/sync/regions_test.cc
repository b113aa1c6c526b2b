#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"

import gridbuf.layout;
import gridbuf.layout.view;
import gridbuf.storage.sync;

namespace gridbuf {
namespace {

using Points = std::set<std::vector<std::int64_t>>;

void add_points(const Box& box, Points& points) {
  if (is_empty(box)) return;
  std::vector<std::int64_t> index(box.lower.begin(), box.lower.end());
  while (true) {
    points.insert(index);
    int axis = box.lower.size() - 1;
    for (; axis >= 0; --axis) {
      const auto position = static_cast<std::size_t>(axis);
      if (++index[position] < box.upper[axis]) break;
      index[position] = box.lower[axis];
    }
    if (axis < 0) return;
  }
}

Points points_of(const Box& box) {
  Points points;
  add_points(box, points);
  return points;
}

Points points_of(const Regions& regions) {
  Points points;
  for (int i = 0; i < regions.size(); ++i) add_points(regions.box(i), points);
  return points;
}

Box random_box(std::mt19937_64& random, int ndim, std::int64_t extent) {
  Box box;
  for (int axis = 0; axis < ndim; ++axis) {
    const auto length = 1 + static_cast<std::int64_t>(random() % 4);
    const auto lower =
        static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(extent - length + 1));
    box.lower.push_back(lower);
    box.upper.push_back(lower + length);
  }
  return box;
}

bool includes(const Points& all, const Points& some) {
  return std::includes(all.begin(), all.end(), some.begin(), some.end());
}
bool disjoint(const Points& a, const Points& b) {
  return std::none_of(a.begin(), a.end(), [&b](const auto& point) { return b.contains(point); });
}

TEST(Box, HasTheVolumeOfItsPoints) {
  EXPECT_EQ(volume({{0, 1}, {2, 4}}), 6);
  EXPECT_EQ(volume({{0, 4}, {2, 4}}), 0);
  EXPECT_EQ(volume(whole_box({})), 1);  // the element of an array without dimensions
  EXPECT_EQ(to_string(Box{{0, 5}, {3, 8}}), "[0:3, 5:8]");
}

TEST(Box, ArithmeticIsThatOfSetsOfPoints) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 2000; ++i) {
    const Box a = random_box(random, 2, 7);
    const Box b = random_box(random, 2, 7);
    Points common;
    const Points ours = points_of(a);
    const Points theirs = points_of(b);
    std::set_intersection(ours.begin(), ours.end(), theirs.begin(), theirs.end(),
                          std::inserter(common, common.begin()));
    ASSERT_EQ(points_of(intersection(a, b)), common);
    ASSERT_EQ(overlap(a, b), !common.empty());
    ASSERT_EQ(contains(a, b), includes(ours, theirs));
    ASSERT_TRUE(includes(points_of(hull(a, b)), ours) && includes(points_of(hull(a, b)), theirs));
    std::vector<Box> rest;
    subtract(a, b, rest);
    std::int64_t volumes = 0;
    Points left;
    for (const Box& box : rest) {
      volumes += volume(box);
      add_points(box, left);
    }
    ASSERT_EQ(volumes, static_cast<std::int64_t>(left.size())) << "they overlap";
    ASSERT_TRUE(disjoint(left, theirs));
    left.merge(common);
    ASSERT_EQ(left, ours);
  }
}

// Two halos of a field, which a third change joins.
TEST(Regions, KeepHalosApart) {
  const Regions nothing_forbidden(2);
  Regions changed(2);
  EXPECT_TRUE(changed.add({{0, 0}, {3, 100}}, nothing_forbidden));
  EXPECT_TRUE(changed.add({{97, 0}, {100, 100}}, nothing_forbidden));
  EXPECT_EQ(changed.size(), 2);
  EXPECT_EQ(points_of(changed).size(), 600U);
  EXPECT_TRUE(changed.add({{3, 0}, {97, 100}}, nothing_forbidden));
  EXPECT_EQ(changed.size(), 1);
}

TEST(Regions, MergeWhereThatIsNoWaste) {
  const Regions none(1);
  Regions regions(1);
  ASSERT_TRUE(regions.add({{0}, {10}}, none));
  ASSERT_TRUE(regions.add({{12}, {22}}, none));  // 22 points around 20: 1.1
  EXPECT_EQ(regions.size(), 1);
  ASSERT_TRUE(regions.add({{26}, {36}}, none));  // 36 around 32
  EXPECT_EQ(regions.size(), 2);
}

TEST(Regions, OfOneElementWithoutDimensions) {
  const Regions none(0);
  Regions regions(0);
  EXPECT_TRUE(regions.add(Box{}, none));
  EXPECT_TRUE(regions.covers(Box{}));
  EXPECT_EQ(points_of(regions).size(), 1U);
  EXPECT_TRUE(regions.subtract(Box{}, none));
  EXPECT_TRUE(regions.empty());
}

TEST(Regions, OfTheMostDimensions) {
  const Box box{Extents(kMaxNdim, 0), Extents(kMaxNdim, 1)};
  const Regions none(kMaxNdim);
  Regions regions(kMaxNdim);
  EXPECT_TRUE(regions.add(box, none));
  EXPECT_EQ(regions.box(0), box);
}

// Checks that the boxes are disjoint, few enough, and merged if that does not add many points.
void expect_sound(const Regions& regions) {
  ASSERT_LE(regions.size(), Regions::kMostBoxes);
  std::int64_t volumes = 0;
  for (int i = 0; i < regions.size(); ++i) volumes += volume(regions.box(i));
  ASSERT_EQ(volumes, static_cast<std::int64_t>(points_of(regions).size()));
}

// Two disjoint sets, as on the two sides of a storage. Each operation keeps the required points,
// does not add points of the opposite set, and does not change the set when it refuses.
void run_property(int ndim, std::int64_t extent, std::uint64_t seed, int steps) {
  std::mt19937_64 random(seed);
  Regions ours(ndim);
  Regions theirs(ndim);
  int refusals = 0;
  for (int step = 0; step < steps; ++step) {
    const Box box = random_box(random, ndim, extent);
    const Points change = points_of(box);
    const Points before = points_of(ours);
    const Points forbidden = points_of(theirs);
    if (random() % 3 != 0) {
      if (theirs.overlaps(box)) continue;
      const bool done = ours.add(box, theirs);
      refusals += done ? 0 : 1;
      const Points after = points_of(ours);
      ASSERT_TRUE(done ? includes(after, before) && includes(after, change) : after == before)
          << "seed " << seed << ", step " << step;
      ASSERT_TRUE(disjoint(after, forbidden)) << "seed " << seed << ", step " << step;
    } else {
      const bool done = ours.subtract(box, theirs);
      refusals += done ? 0 : 1;
      const Points after = points_of(ours);
      ASSERT_TRUE(disjoint(after, forbidden));
      if (!done) {
        ASSERT_EQ(after, before);
      } else {
        ASSERT_TRUE(disjoint(after, change)) << "seed " << seed << ", step " << step;
        Points kept;
        std::set_difference(before.begin(), before.end(), change.begin(), change.end(),
                            std::inserter(kept, kept.begin()));
        ASSERT_TRUE(includes(after, kept)) << "seed " << seed << ", step " << step;
      }
    }
    expect_sound(ours);
    if (random() % 2 == 0) swap(ours, theirs);
    if (random() % 64 == 0) ours.clear();
  }
  if (ndim == 1) EXPECT_EQ(refusals, 0);  // 17 pieces do not fit into 24 points
}

TEST(RegionsProperty, InOneDimension) { run_property(1, 24, 20261121, 4000); }
TEST(RegionsProperty, InTwoDimensions) { run_property(2, 16, 20261122, 4000); }
TEST(RegionsProperty, InThreeDimensions) { run_property(3, 9, 20261123, 3000); }

// The gaps between 17 single points must not be covered, so the last point does not fit.
TEST(Regions, RefuseRatherThanCoverWhatIsForbidden) {
  Regions ours(1);
  Regions theirs(1);
  const Regions none(1);
  for (std::int64_t i = 0; i < Regions::kMostBoxes; ++i) {
    ASSERT_TRUE(ours.add({{4 * i}, {4 * i + 1}}, none));
    ASSERT_TRUE(theirs.add({{4 * i + 2}, {4 * i + 3}}, none));
  }
  ASSERT_EQ(ours.size(), Regions::kMostBoxes);
  const Points before = points_of(ours);
  EXPECT_FALSE(ours.add({{100}, {101}}, theirs));
  EXPECT_EQ(points_of(ours), before);
  EXPECT_TRUE(ours.add({{100}, {101}}, none));
  EXPECT_EQ(ours.size(), Regions::kMostBoxes);
}

TEST(Regions, CutAndSubtractAsSets) {
  const Regions none(1);
  Regions regions(1);
  ASSERT_TRUE(regions.add({{0}, {4}}, none));
  ASSERT_TRUE(regions.add({{10}, {14}}, none));
  std::vector<Box> parts;
  regions.cut({{2}, {12}}, parts);
  EXPECT_EQ(parts, (std::vector<Box>{{{2}, {4}}, {{10}, {12}}}));
  parts.clear();
  subtract({{2}, {12}}, regions, parts);
  EXPECT_EQ(parts, (std::vector<Box>{{{4}, {10}}}));
}

TEST(HeldBoxes, AreCountedAndOverflowIntoOne) {
  HeldBoxes held(1);
  EXPECT_TRUE(held.empty());
  held.hold({{0}, {2}});
  held.hold({{0}, {2}});
  held.let_go({{0}, {2}});
  EXPECT_TRUE(held.overlaps({{1}, {2}}));
  held.let_go({{0}, {2}});
  EXPECT_TRUE(held.empty());
  const std::int64_t many = 3 * HeldBoxes::kMostBoxes;
  for (std::int64_t i = 0; i < many; ++i) held.hold({{10 * i}, {10 * i + 1}});
  for (std::int64_t i = 0; i < many; ++i) EXPECT_TRUE(held.overlaps({{10 * i}, {10 * i + 1}}));
  for (std::int64_t i = 0; i < many; ++i) held.let_go({{10 * i}, {10 * i + 1}});
  EXPECT_TRUE(held.empty());
  held.keep({{5}, {6}});
  EXPECT_TRUE(held.overlaps({{5}, {6}}));
  EXPECT_FALSE(held.overlaps({{4}, {5}}));
}

// A view of views shows the same elements as indexing.
TEST(ViewProperty, HullHoldsWhatTheViewShows) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 3000; ++i) {
    const Extents base{5, 6, 7};
    IndexMap seen(base);
    Extents shape = base;
    // By brute force: the base index of every view index along each dimension.
    std::vector<std::vector<std::int64_t>> shown(3);
    std::vector<int> dimension{0, 1, 2};
    for (int axis = 0; axis < 3; ++axis) {
      for (std::int64_t k = 0; k < base[axis]; ++k) {
        shown[static_cast<std::size_t>(axis)].push_back(k);
      }
    }
    for (int round = 0; round < 3 && shape.size() > 0; ++round) {
      IndexMap map(shape);
      const int axis = static_cast<int>(random() % static_cast<std::uint64_t>(shape.size()));
      const auto at = static_cast<std::size_t>(axis);
      const auto source = static_cast<std::size_t>(dimension[at]);
      const auto extent = shape[axis];
      if (random() % 3 == 0 && extent > 0) {
        const auto index = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(extent));
        map.fix(axis, index);
        shown[source] = {shown[source][static_cast<std::size_t>(index)]};
        dimension.erase(dimension.begin() + axis);
      } else {
        std::int64_t step = static_cast<std::int64_t>(random() % 7) - 3;
        if (step == 0) step = 1;
        const SlicePoints points = slice_points({static_cast<std::int64_t>(random() % 5),
                                                 static_cast<std::int64_t>(random() % 6), step},
                                                extent);
        map.keep(axis, points);
        std::vector<std::int64_t> next;
        for (std::int64_t k = 0; k < points.extent; ++k) {
          next.push_back(shown[source][static_cast<std::size_t>(points.start + points.step * k)]);
        }
        shown[source] = next;
      }
      seen = seen.through(map);
      shape = map.shape();
    }
    bool empty = false;
    for (const auto& indices : shown) empty = empty || indices.empty();
    const Box box = hull(seen);
    ASSERT_EQ(is_empty(box), empty);
    if (empty) continue;
    bool dense = true;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const auto [lowest, highest] = std::minmax_element(shown[axis].begin(), shown[axis].end());
      ASSERT_EQ(box.lower[static_cast<int>(axis)], *lowest);
      ASSERT_EQ(box.upper[static_cast<int>(axis)], *highest + 1);
      dense = dense && *highest - *lowest + 1 == std::ssize(shown[axis]);
    }
    ASSERT_EQ(is_dense(seen), dense);
  }
}

TEST(View, TransposedAndWithNewDimensions) {
  IndexMap map(Extents{4, 5});
  map.permute({1, 0});
  map.insert(1);
  map.stretch(1, 3);
  const IndexMap seen = IndexMap(Extents{4, 5}).through(map);
  EXPECT_EQ(hull(seen), (Box{{0, 0}, {4, 5}}));
  EXPECT_TRUE(is_dense(seen));
  EXPECT_EQ(seen.axes()[0], (ViewAxis{1, 1, 5}));
}

}  // namespace
}  // namespace gridbuf
