#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

import gridbuf.layout;
import gridbuf.layout.view;

namespace gridbuf {
namespace {

constexpr Layout kPlan = [] {
  Layout plan;
  const LayoutFault fault = plan_layout({.shape = {6, 7, 8},
                                         .itemsize_bytes = 8,
                                         .layout = {2, 0, 1},
                                         .alignment_bytes = 64,
                                         .aligned_index = {2, 1, 3}},
                                        plan);
  return fault.ok() ? plan : Layout();
}();
static_assert(kPlan.ndim() == 3);
constexpr Halo kHalo{{2, 2}, {1, 0}, {3, 1}};

static_assert(Viewable<Layout>);
static_assert(unused_data_dim(Dims{kDimI, Dim::data(0), Dim::data(2)}) == Dim::data(1));
static_assert(apply(IndexMap(Extents{6, 7, 8}), kHalo) == kHalo);
static_assert(apply(IndexMap(Extents{6, 7}), Dims{kDimK, kDimI}) == Dims{kDimK, kDimI});
static_assert(apply_to_index(IndexMap(Extents{6, 7}), Extents{2, 3}) == Extents{2, 3});

Layout field() { return *with_meaning(kPlan, {}, kHalo); }

Layout domain_of(const Layout& layout) {
  return apply(domain_map(layout.shape(), layout.halo()), layout);
}

void expect_value_error(const absl::Status& status, std::string_view text) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find(text), std::string_view::npos) << status.message();
}

TEST(WithMeaning, HoldsNamesAndHalo) {
  EXPECT_EQ(field().view(), kPlan.view());
  EXPECT_EQ(field().dims(), (Dims{kDimI, kDimJ, kDimK}));
  EXPECT_EQ(field().halo(), kHalo);
  EXPECT_EQ(field().aligned_index(), (Extents{2, 1, 3}));
  EXPECT_EQ(field().alignment_bytes(), 64);
  EXPECT_EQ(field().padded_shape(), kPlan.padded_shape());
  EXPECT_EQ(with_meaning(kPlan)->halo(), no_halo(3));
}

TEST(WithMeaning, ChecksNamesAndHalo) {
  expect_value_error(with_meaning(kPlan, {kDimI, kDimI, kDimK}).status(), "dims[1] is \"I\"");
  expect_value_error(with_meaning(kPlan, {}, {{0, 0}, {4, 4}, {0, 0}}).status(),
                     "halo[1] is (4, 4)");
}

TEST(LayoutView, AnIndexTakesNameHaloAndAlignedIndexWithIt) {
  const Layout view = *index(field(), 1, 4);
  EXPECT_EQ(view.dims(), (Dims{kDimI, kDimK}));
  EXPECT_EQ(view.halo(), (Halo{{2, 2}, {3, 1}}));
  EXPECT_EQ(view.aligned_index(), (Extents{2, 3}));
  EXPECT_EQ(view.alignment_bytes(),
            64);  // J is not contiguous: whole alignments between its planes.
}

TEST(LayoutView, ASliceKeepsTheHaloPointsItKeeps) {
  EXPECT_EQ(slice(field(), 0, {.start = 1, .stop = -1})->halo()[0], (HaloWidth{1, 1}));
  EXPECT_EQ(slice(field(), 0, {.start = 2, .stop = 4})->halo()[0], (HaloWidth{0, 0}));
  EXPECT_EQ(slice(field(), 2, {.step = 2})->halo()[2], (HaloWidth{2, 0}));  // 0 2 | 4 6
  EXPECT_EQ(slice(field(), 2, {.step = -1})->halo()[2], (HaloWidth{1, 3}));
  EXPECT_EQ(slice(field(), 0, {.stop = 2})->halo()[0], (HaloWidth{2, 0}));  // Nothing but halo.
  EXPECT_EQ(slice(field(), 0, {.start = 4})->halo()[0], (HaloWidth{0, 2}));
}

TEST(LayoutView, ASliceKeepsTheAlignedPointIfItCan) {
  EXPECT_EQ(slice(field(), 0, {.start = 1})->aligned_index()[0], 1);
  EXPECT_EQ(slice(field(), 0, {.step = 2})->aligned_index()[0], 1);
  EXPECT_EQ(slice(field(), 0, {.step = -1})->aligned_index()[0], 3);
  EXPECT_EQ(slice(field(), 0, {.start = 1})->alignment_bytes(), 64);
  EXPECT_EQ(slice(field(), 0, {.step = -1})->alignment_bytes(), 64);
}

TEST(LayoutView, ASliceWithoutTheAlignedPointPromisesOnlyWhatHolds) {
  const Layout later = *slice(field(), 0, {.start = 3});
  EXPECT_EQ(later.aligned_index()[0], 0);  // One element of 8 bytes past the aligned one.
  EXPECT_EQ(later.alignment_bytes(), 8);
  const Layout earlier = *slice(field(), 0, {.stop = 2});
  EXPECT_EQ(earlier.aligned_index()[0], 1);
  EXPECT_EQ(earlier.alignment_bytes(), 8);
  EXPECT_EQ(slice(field(), 1, {.start = 2})->alignment_bytes(), 64);  // Whole planes away.
}

TEST(LayoutView, TransposePermutesEverything) {
  const Layout view = *transpose(field(), {2, 0, 1});
  EXPECT_EQ(view.shape(), (Extents{8, 6, 7}));
  EXPECT_EQ(view.dims(), (Dims{kDimK, kDimI, kDimJ}));
  EXPECT_EQ(view.halo(), (Halo{{3, 1}, {2, 2}, {1, 0}}));
  EXPECT_EQ(view.aligned_index(), (Extents{3, 2, 1}));
  EXPECT_EQ(view.alignment_bytes(), 64);
}

TEST(LayoutView, NewAxesAreNamedByTheLowestFreeNumber) {
  EXPECT_EQ(new_axis(field(), 0)->dims(), (Dims{Dim::data(0), kDimI, kDimJ, kDimK}));
  const Layout named = *with_meaning(kPlan, {Dim::data(0), kDimI, Dim::data(2)});
  const std::vector<SubscriptItem> items{NewAxis{}, Ellipsis{}, NewAxis{}};
  EXPECT_EQ(subscript(named, items)->dims(),
            (Dims{Dim::data(1), Dim::data(0), kDimI, Dim::data(2), Dim::data(3)}));
  EXPECT_EQ(new_axis(field(), 3)->halo()[3], (HaloWidth{0, 0}));
}

TEST(LayoutView, ADimensionStaysStretchableUntilItsExtentChanges) {
  const Layout added = *new_axis(field(), 0);
  EXPECT_TRUE(added.dims()[0].is_unnamed() && added.dims()[0].is_stretchable());
  EXPECT_TRUE(transpose(added)->dims()[3].is_unnamed());
  EXPECT_TRUE(slice(added, 0, {.step = -1})->dims()[0].is_unnamed());
  EXPECT_TRUE(index(added, 1, 2)->dims()[0].is_unnamed());
  EXPECT_FALSE(slice(added, 0, {.stop = 0})->dims()[0].is_stretchable());
  EXPECT_FALSE(broadcast_to(added, {5, 6, 7, 8})->dims()[0].is_stretchable());
  EXPECT_FALSE(slice(field(), 0, {.stop = 1})->dims()[0].is_stretchable());
  const Dim mean = kDimI.stretchable();
  EXPECT_EQ(mean, kDimI);
  EXPECT_TRUE(mean.is_stretchable() && !mean.is_unnamed() && !mean.plain().is_stretchable());
}

TEST(LayoutView, ADroppedNameIsFreeAgain) {
  const Layout named = *with_meaning(kPlan, {Dim::data(0), kDimI, kDimJ});
  EXPECT_EQ(new_axis(*index(named, 0, 0), 2)->dims(), (Dims{kDimI, kDimJ, Dim::data(0)}));
}

TEST(LayoutView, BroadcastDimensionsKeepTheirNameAndHaveNoHalo) {
  const Layout point = *slice(field(), 0, {.start = 1, .stop = 2});
  EXPECT_EQ(point.halo()[0], (HaloWidth{1, 0}));
  const Layout view = *broadcast_to(point, {5, 7, 8});
  EXPECT_EQ(view.dims(), (Dims{kDimI, kDimJ, kDimK}));
  EXPECT_EQ(view.halo()[0], (HaloWidth{0, 0}));
  EXPECT_EQ(view.aligned_index()[0], 0);
  EXPECT_EQ(view.strides_bytes()[0], 0);
}

TEST(LayoutView, DomainViewStartsAtTheFirstDomainPoint) {
  const Layout domain = domain_of(field());
  EXPECT_EQ(domain.shape(), (Extents{2, 6, 4}));
  EXPECT_EQ(domain.view().offset_bytes, byte_offset(kPlan.view(), {2, 1, 3}));
  EXPECT_EQ(domain.halo(), no_halo(3));
  EXPECT_EQ(domain.aligned_index(), (Extents{0, 0, 0}));
  EXPECT_EQ(domain.alignment_bytes(), 64);
}

TEST(LayoutView, ADomainMayBeEmpty) {
  const Layout all_halo = *with_meaning(field(), field().dims(), {{3, 3}, {0, 0}, {0, 0}});
  EXPECT_EQ(domain_of(all_halo).shape(), (Extents{0, 7, 8}));
}

TEST(LayoutView, SettingTheHaloNeverRealigns) {
  const Layout changed = *with_meaning(field(), field().dims(), no_halo(3));
  EXPECT_EQ(changed.aligned_index(), field().aligned_index());
  EXPECT_EQ(changed.view(), field().view());
  expect_value_error(with_meaning(field(), field().dims(), {{0, 0}}).status(),
                     "is 1, but must be 3");
}

TEST(LayoutView, Prints) {
  EXPECT_EQ(to_string(*index(field(), 1, 0)),
            "shape (6, 8), itemsize 8 bytes, layout (1, 0), strides (8, 64) bytes, padded shape "
            "(6, 8), alignment 64 bytes at index (2, 3) (offset 208 bytes), 384 bytes of elements, "
            "496 bytes in all, dims ('I', 'K'), halo ((2, 2), (3, 1))");
}

TEST(LayoutView, HasNoPaddingAndTheBytesItTouches) {
  const Layout view = *slice(field(), 0, {.step = -2});
  EXPECT_EQ(view.padded_shape(), (Extents{3, 7, 8}));
  EXPECT_EQ(view.layout_map(), kPlan.layout_map());
  EXPECT_EQ(view.element_count(), 3 * 7 * 8);
  EXPECT_EQ(view.nbytes(), 8 * 3 * 7 * 8);
  EXPECT_EQ(view.total_bytes(), byte_hull(view.view())->length_bytes());
  EXPECT_EQ(view.aligned_offset_bytes(), byte_offset(view.view(), view.aligned_index()));
}

// ---- Properties of random chains of operations. ----

struct Draws {
  std::mt19937_64 engine;

  std::int64_t below(std::int64_t bound) {
    return static_cast<std::int64_t>(engine() % static_cast<std::uint64_t>(bound));
  }
  Layout plan() {
    LayoutRequest request{.itemsize_bytes = 1 + below(12), .alignment_bytes = 1 + below(96)};
    const int ndim = static_cast<int>(1 + below(3));
    Halo halo;
    for (int axis = 0; axis < ndim; ++axis) {
      request.shape.push_back(1 + below(6));
      request.aligned_index.push_back(below(request.shape[axis]));
      const std::int64_t lower = below(request.shape[axis] + 1);
      halo.push_back({lower, below(request.shape[axis] - lower + 1)});
      request.layout.insert(static_cast<int>(below(axis + 1)), axis);
    }
    return *with_meaning(*make_plan(request), {}, halo);
  }
  absl::StatusOr<Layout> operate(const Layout& plan) {
    const Extents& shape = plan.shape();
    const int ndim = plan.ndim();
    if (ndim == 0 || below(8) == 0) return new_axis(plan, static_cast<int>(below(ndim + 1)));
    const int axis = static_cast<int>(below(ndim));
    switch (below(6)) {
      case 0:
        return index(plan, axis, below(2 * shape[axis] + 1) - shape[axis]);
      case 1:
        return transpose(plan, rotated(ndim));
      case 2: {
        Extents target = shape;
        if (target[axis] == 1) target[axis] = below(4);
        return broadcast_to(plan, target);
      }
      default:
        return slice(plan, axis,
                     {.start = end(shape[axis]), .stop = end(shape[axis]), .step = step()});
    }
  }
  Axes rotated(int ndim) {
    Axes axes;
    const int first = static_cast<int>(below(ndim));
    for (int i = 0; i < ndim; ++i) axes.push_back((first + i) % ndim);
    return axes;
  }
  std::optional<std::int64_t> end(std::int64_t extent) {
    if (below(3) == 0) return std::nullopt;
    return below(2 * extent + 3) - extent - 1;
  }
  std::int64_t step() { return below(2) == 0 ? 1 + below(3) : -1 - below(3); }
};

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

TEST(LayoutViewProperty, WhatAViewPromisesHolds) {
  Draws draws{std::mt19937_64(21)};
  int operations = 0;
  for (int round = 0; round < 3000; ++round) {
    const Layout whole = draws.plan();
    // The allocator's promise, as a base address: the whole plan's aligned element is aligned.
    const std::int64_t base = -byte_offset(whole.view(), whole.aligned_index());
    Layout view = whole;
    for (int step = 0; step < 4; ++step) {
      const absl::StatusOr<Layout> next = draws.operate(view);
      if (!next.ok()) continue;
      view = *next;
      ++operations;
      ASSERT_EQ(view.dims().size(), view.ndim());
      ASSERT_TRUE(validate_dims(view.dims(), view.ndim()).ok()) << to_string(view);
      ASSERT_TRUE(validate_halo(view.halo(), view.shape()).ok()) << to_string(view);
      ASSERT_EQ(view.aligned_index().size(), view.ndim());
      ASSERT_EQ(whole.alignment_bytes() % view.alignment_bytes(), 0);
      if (is_empty(view.shape())) continue;
      for (int axis = 0; axis < view.ndim(); ++axis) {
        ASSERT_GE(view.aligned_index()[axis], 0);
        ASSERT_LT(view.aligned_index()[axis], view.shape()[axis]) << to_string(view);
      }
      // The largest possible promise at that element is a multiple of the one that is made.
      ASSERT_EQ((base + byte_offset(view.view(), view.aligned_index())) % view.alignment_bytes(), 0)
          << to_string(view);
      // Inside what the whole plan touches.
      const auto hull = byte_hull(view.view());
      const auto outer = byte_hull(whole.view());
      ASSERT_TRUE(hull && hull->lowest_bytes >= outer->lowest_bytes &&
                  hull->highest_bytes <= outer->highest_bytes)
          << to_string(view);
    }
  }
  EXPECT_GT(operations, 6000);
}

TEST(LayoutViewProperty, ElementsSharingTheContiguousIndexAreAlignedInEveryView) {
  Draws draws{std::mt19937_64(22)};
  for (int round = 0; round < 2000; ++round) {
    const Layout whole = draws.plan();
    if (whole.ndim() < 2) continue;
    const std::int64_t base = -byte_offset(whole.view(), whole.aligned_index());
    Layout view = whole;
    for (int step = 0; step < 3; ++step) {
      const absl::StatusOr<Layout> next = draws.operate(view);
      if (next.ok()) view = *next;
    }
    // The contiguous dimension: the least stride of those that lead to other elements.
    int contiguous = -1;
    for (int axis = 0; axis < view.ndim(); ++axis) {
      const std::int64_t stride = std::abs(view.strides_bytes()[axis]);
      if (view.shape()[axis] < 2 || stride == 0) continue;
      if (contiguous < 0 || stride < std::abs(view.strides_bytes()[contiguous])) contiguous = axis;
    }
    for_each_index(view.shape(), [&](const Extents& index) {
      if (contiguous >= 0 && index[contiguous] != view.aligned_index()[contiguous]) return;
      ASSERT_EQ((base + byte_offset(view.view(), index)) % view.alignment_bytes(), 0)
          << to_string(view) << " at " << to_string(index);
    });
  }
}

TEST(LayoutViewProperty, DomainsNestWithSlices) {
  Draws draws{std::mt19937_64(23)};
  for (int round = 0; round < 1000; ++round) {
    const Layout plan = draws.plan();
    // Cutting the halo off in two steps is cutting it off at once.
    Layout inner = plan;
    for (int axis = 0; axis < plan.ndim(); ++axis) {
      if (plan.halo()[axis].lower > 0) inner = *slice(inner, axis, {.start = 1});
    }
    const Layout at_once = domain_of(plan);
    const Layout in_steps = domain_of(inner);
    ASSERT_EQ(at_once.shape(), in_steps.shape());
    if (!is_empty(at_once.shape())) {
      ASSERT_EQ(at_once.view().offset_bytes, in_steps.view().offset_bytes);
    }
  }
}

}  // namespace
}  // namespace gridbuf
