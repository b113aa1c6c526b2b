#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"

import gridbuf.alloc;
import gridbuf.alloc.host;
import gridbuf.alloc.testing;
import gridbuf.base;
import gridbuf.layout;
import gridbuf.layout.view;
import gridbuf.transfer;

namespace gridbuf {
namespace {

using Bytes = std::vector<std::byte>;

Bytes counted_bytes(std::int64_t length_bytes, int first = 0) {
  Bytes bytes(static_cast<std::size_t>(length_bytes));
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>((static_cast<std::size_t>(first) + i * 7) % 251);
  }
  return bytes;
}

// Calls `visit(index)` for every index of `shape` in row-major order.
template <class Visit>
void for_each_index(const Extents& shape, const Visit& visit) {
  if (is_empty(shape)) return;
  Extents index(shape.size(), 0);
  while (true) {
    visit(index);
    int axis = shape.size() - 1;
    while (axis >= 0 && ++index[axis] == shape[axis]) index[axis--] = 0;
    if (axis < 0) return;
  }
}

// The definition in the module's description: read all, then write in row-major order.
Bytes expected_copy(const Bytes& target_bytes, const StridedView& target, const Bytes& source_bytes,
                    const StridedView& source, std::int64_t swap_unit_bytes = 1) {
  std::vector<Bytes> elements;
  for_each_index(source.shape, [&](const Extents& index) {
    const auto first = source_bytes.begin() + byte_offset(source, index);
    Bytes element(first, first + source.itemsize_bytes);
    for (auto at = element.begin(); at != element.end() && swap_unit_bytes > 1;
         at += swap_unit_bytes) {
      std::reverse(at, at + swap_unit_bytes);
    }
    elements.push_back(element);
  });
  Bytes result = target_bytes;
  auto next = elements.begin();
  for_each_index(target.shape, [&](const Extents& index) {
    std::copy(next->begin(), next->end(), result.begin() + byte_offset(target, index));
    ++next;
  });
  return result;
}

StridedView reversed(std::int64_t extent, std::int64_t itemsize_bytes) {
  return {.shape = {extent, extent},
          .strides_bytes = {itemsize_bytes, extent * itemsize_bytes},
          .itemsize_bytes = itemsize_bytes};
}

StridedView plain(std::int64_t extent, std::int64_t itemsize_bytes) {
  return {.shape = {extent, extent},
          .strides_bytes = {extent * itemsize_bytes, itemsize_bytes},
          .itemsize_bytes = itemsize_bytes};
}

// --- Examples ------------------------------------------------------------------------------------

TEST(CopyElements, CopiesEqualLayouts) {
  const StridedView view{.shape = {2, 3}, .strides_bytes = {24, 8}, .itemsize_bytes = 8};
  const Bytes source = counted_bytes(48);
  Bytes target(48);
  ASSERT_TRUE(copy_elements(target.data(), view, source.data(), view).ok());
  EXPECT_EQ(target, source);
}

TEST(CopyElements, TransposesFortranToC) {
  const std::array<std::int16_t, 6> source{1, 2, 3, 4, 5, 6};  // columns of a 2 × 3 matrix
  std::array<std::int16_t, 6> target{};
  const StridedView c{.shape = {2, 3}, .strides_bytes = {6, 2}, .itemsize_bytes = 2};
  const StridedView f{.shape = {2, 3}, .strides_bytes = {2, 4}, .itemsize_bytes = 2};
  ASSERT_TRUE(copy_elements(reinterpret_cast<std::byte*>(target.data()), c,
                            reinterpret_cast<const std::byte*>(source.data()), f)
                  .ok());
  EXPECT_EQ(target, (std::array<std::int16_t, 6>{1, 3, 5, 2, 4, 6}));
}

TEST(CopyElements, CopiesOneElementOfAZeroDimensionalView) {
  const StridedView view{.shape = {}, .strides_bytes = {}, .offset_bytes = 4, .itemsize_bytes = 4};
  const Bytes source = counted_bytes(8, 1);
  Bytes target(8);
  ASSERT_TRUE(copy_elements(target.data(), view, source.data(), view).ok());
  EXPECT_TRUE(std::equal(target.begin() + 4, target.end(), source.begin() + 4));
  EXPECT_EQ(target[3], std::byte{0});
}

TEST(CopyElements, TouchesNothingForAnEmptyShape) {
  const StridedView view{.shape = {3, 0, 2}, .strides_bytes = {1000, -8, 77}, .itemsize_bytes = 8};
  EXPECT_TRUE(copy_elements(nullptr, view, nullptr, view).ok());
  EXPECT_TRUE(fill_elements(nullptr, view, counted_bytes(8)).ok());
}

TEST(CopyElements, IgnoresStridesOfExtentOne) {
  const std::int64_t junk = std::numeric_limits<std::int64_t>::max();
  const StridedView view{.shape = {1, 2}, .strides_bytes = {junk, 4}, .itemsize_bytes = 4};
  const StridedView plain{.shape = {1, 2}, .strides_bytes = {8, 4}, .itemsize_bytes = 4};
  const Bytes source = counted_bytes(8);
  Bytes target(8);
  ASSERT_TRUE(copy_elements(target.data(), view, source.data(), plain).ok());
  EXPECT_EQ(target, source);
}

TEST(CopyElements, RepeatsABroadcastSource) {
  const StridedView target_view{.shape = {2, 3}, .strides_bytes = {3, 1}, .itemsize_bytes = 1};
  const StridedView source_view{.shape = {2, 3}, .strides_bytes = {0, 1}, .itemsize_bytes = 1};
  const Bytes source = counted_bytes(3, 1);
  Bytes target(6);
  ASSERT_TRUE(copy_elements(target.data(), target_view, source.data(), source_view).ok());
  EXPECT_EQ(target, expected_copy(Bytes(6), target_view, source, source_view));
}

TEST(CopyElements, ShiftsARowWithinItself) {
  for (const bool forwards : {true, false}) {
    Bytes block = counted_bytes(40);
    const StridedView low{.shape = {9}, .strides_bytes = {4}, .itemsize_bytes = 4};
    StridedView high = low;
    high.offset_bytes = 4;
    const StridedView& target = forwards ? high : low;
    const StridedView& source = forwards ? low : high;
    const Bytes expected = expected_copy(block, target, block, source);
    ASSERT_TRUE(copy_elements(block.data(), target, block.data(), source).ok());
    EXPECT_EQ(block, expected);
  }
}

TEST(CopyElements, ReversesARowInPlace) {
  Bytes block = counted_bytes(40);
  const StridedView up{.shape = {10}, .strides_bytes = {4}, .itemsize_bytes = 4};
  const StridedView down{
      .shape = {10}, .strides_bytes = {-4}, .offset_bytes = 36, .itemsize_bytes = 4};
  const Bytes expected = expected_copy(block, up, block, down);
  ASSERT_TRUE(copy_elements(block.data(), up, block.data(), down).ok());
  EXPECT_EQ(block, expected);
}

TEST(CopyElements, WritesARepeatedTargetInRowMajorOrder) {
  // All indices of the target are one element: the last element of the source must remain.
  const StridedView target_view{.shape = {2, 3}, .strides_bytes = {0, 0}, .itemsize_bytes = 1};
  const StridedView source_view{.shape = {2, 3}, .strides_bytes = {1, 2}, .itemsize_bytes = 1};
  const Bytes source = counted_bytes(6, 1);
  Bytes target(1);
  ASSERT_TRUE(copy_elements(target.data(), target_view, source.data(), source_view).ok());
  EXPECT_EQ(target[0], source[5]);
}

// A thread's state after a copy must not change copies between other views.
TEST(CopyElements, AgainAndAgainBetweenViewsThatDiffer) {
  const Bytes source = counted_bytes(4096, 3);
  std::vector<std::pair<StridedView, StridedView>> pairs;
  for (const std::int64_t extent : {9, 8}) {
    for (const std::int64_t itemsize : {8, 4}) {
      StridedView moved = reversed(extent, itemsize);
      moved.offset_bytes = 16;
      pairs.emplace_back(reversed(extent, itemsize), plain(extent, itemsize));
      pairs.emplace_back(moved, plain(extent, itemsize));
      pairs.emplace_back(plain(extent, itemsize), plain(extent, itemsize));
    }
  }
  std::mt19937_64 random(20261122);
  for (int step = 0; step < 400; ++step) {
    const auto& [to, from] = pairs[random() % (step % 3 == 0 ? pairs.size() : 2)];
    const std::int64_t swap = random() % 4 == 0 ? 2 : 1;
    Bytes target(4096, std::byte{9});
    const std::size_t first = random() % 3 * 64;
    Bytes expected = target;
    {
      const Bytes part(target.begin() + static_cast<std::ptrdiff_t>(first), target.end());
      const Bytes copied = expected_copy(part, to, source, from, swap);
      std::copy(copied.begin(), copied.end(),
                expected.begin() + static_cast<std::ptrdiff_t>(first));
    }
    ASSERT_TRUE(
        copy_elements(target.data() + first, to, source.data(), from, {.swap_unit_bytes = swap})
            .ok());
    ASSERT_EQ(target, expected) << "step " << step;
  }
}

TEST(CopyElements, AgainWithBlocksThatOverlapOrAreNone) {
  const StridedView to = reversed(16, 8);
  const StridedView from = plain(16, 8);
  Bytes block = counted_bytes(4096);
  const Bytes before = block;
  ASSERT_TRUE(copy_elements(block.data() + 2048, to, block.data(), from).ok());
  EXPECT_FALSE(copy_elements(nullptr, to, block.data(), from).ok());
  EXPECT_FALSE(copy_elements(block.data(), to, nullptr, from).ok());
  block = before;
  ASSERT_TRUE(copy_elements(block.data() + 1024, to, block.data(), from).ok());
  const Bytes part(before.begin() + 1024, before.end());
  EXPECT_EQ(Bytes(block.begin() + 1024, block.end()), expected_copy(part, to, before, from));
}

TEST(CopyElements, SwapsTheBytesOfEachUnit) {
  const StridedView view{.shape = {2}, .strides_bytes = {8}, .itemsize_bytes = 8};
  const Bytes source = counted_bytes(16, 1);
  for (const std::int64_t unit : {2, 4, 8}) {
    Bytes target(16);
    ASSERT_TRUE(
        copy_elements(target.data(), view, source.data(), view, {.swap_unit_bytes = unit}).ok());
    EXPECT_EQ(target, expected_copy(Bytes(16), view, source, view, unit)) << unit;
  }
}

TEST(CopyElements, SwapsInPlace) {
  const StridedView view{.shape = {3}, .strides_bytes = {4}, .itemsize_bytes = 4};
  Bytes block = counted_bytes(12, 1);
  const Bytes expected = expected_copy(block, view, block, view, 4);
  ASSERT_TRUE(copy_elements(block.data(), view, block.data(), view, {.swap_unit_bytes = 4}).ok());
  EXPECT_EQ(block, expected);
}

TEST(CopyElements, CopiesBeyondFourGibibytesOfAddresses) {
#if __has_feature(thread_sanitizer)
  GTEST_SKIP() << "ThreadSanitizer's calloc writes the zeros itself, with shadow: some 20 GiB";
#endif
  // Two rows, 5 GiB apart in lazily committed memory: offsets beyond 32 bits.
  constexpr std::int64_t kApart = std::int64_t{5} << 30;
  const auto block = host_resource().allocate({.total_bytes = kApart + 4096, .zeroed = true});
  if (!block.ok()) GTEST_SKIP() << "this machine has no 5 GiB: " << block.status();
  const StridedView far{.shape = {2, 16}, .strides_bytes = {kApart, 8}, .itemsize_bytes = 8};
  const StridedView near{.shape = {2, 16}, .strides_bytes = {128, 8}, .itemsize_bytes = 8};
  const Bytes source = counted_bytes(256, 3);
  Bytes back(256);
  ASSERT_TRUE(copy_elements(block->data(), far, source.data(), near).ok());
  ASSERT_TRUE(copy_elements(back.data(), near, block->data(), far).ok());
  EXPECT_EQ(back, source);
}

// Long fills are cut into chunks for several threads. Elements must not be cut, and bytes next to
// the row must stay.
TEST(FillElements, FillsLongRowsWithAllThreads) {
  constexpr std::int64_t kMiB = std::int64_t{1} << 20;
  for (const int threads : {1, 2, 5}) {
    ASSERT_TRUE(set_thread_count(threads).ok());
    for (const std::int64_t itemsize : {1L, 8L, 12L, 3 * kMiB + 1}) {
      const std::int64_t extent = (9 * kMiB + itemsize) / itemsize;
      const StridedView target{.shape = {extent},
                               .strides_bytes = {itemsize},
                               .offset_bytes = 5,
                               .itemsize_bytes = itemsize};
      Bytes bytes(static_cast<std::size_t>(5 + extent * itemsize + 5), std::byte{0xEE});
      const Bytes element = counted_bytes(itemsize, 3);
      ASSERT_TRUE(fill_elements(bytes.data(), target, element).ok());
      for (std::int64_t i = 0; i < extent; ++i) {
        ASSERT_EQ(std::memcmp(bytes.data() + 5 + i * itemsize, element.data(), element.size()), 0)
            << threads << " threads, item " << i << " of " << itemsize << " bytes";
      }
      for (std::size_t i = 0; i < 5; ++i) {
        EXPECT_EQ(bytes[i], std::byte{0xEE});
        EXPECT_EQ(bytes[bytes.size() - 1 - i], std::byte{0xEE});
      }
    }
  }
}

// [example]
// Copies a matrix of floats from column-major to row-major order with rows padded to 64 bytes.
absl::Status to_padded_rows(std::byte* target, const std::byte* source, std::int64_t rows,
                            std::int64_t columns) {
  const StridedView by_columns{
      .shape = {rows, columns}, .strides_bytes = {4, 4 * rows}, .itemsize_bytes = 4};
  const std::optional<std::int64_t> row_bytes = checked::align_up(4 * columns, 64);
  const StridedView by_rows{
      .shape = {rows, columns}, .strides_bytes = {*row_bytes, 4}, .itemsize_bytes = 4};
  return copy_elements(target, by_rows, source, by_columns);
}
// [/example]

TEST(Example, OfTheReadme) {
  const std::array<float, 6> source{1, 2, 3, 4, 5, 6};
  std::array<float, 32> target{};
  ASSERT_TRUE(to_padded_rows(reinterpret_cast<std::byte*>(target.data()),
                             reinterpret_cast<const std::byte*>(source.data()), 2, 3)
                  .ok());
  EXPECT_EQ(target[1], 3);
  EXPECT_EQ(target[16], 2);
  EXPECT_EQ(target[3], 0);
}

// --- Fills ---------------------------------------------------------------------------------------

TEST(FillElements, WritesThePatternAndNothingElse) {
  const StridedView view{.shape = {3, 2}, .strides_bytes = {16, 6}, .itemsize_bytes = 3};
  const Bytes element = counted_bytes(3, 100);
  Bytes target = counted_bytes(48);
  const StridedView repeated{.shape = {3, 2}, .strides_bytes = {0, 0}, .itemsize_bytes = 3};
  const Bytes expected = expected_copy(target, view, element, repeated);
  ASSERT_TRUE(fill_elements(target.data(), view, element).ok());
  EXPECT_EQ(target, expected);
}

TEST(FillElements, FillsLongDenseRowsOfEveryItemsize) {
  for (const std::int64_t itemsize : {1, 2, 3, 4, 5, 8, 12, 16, 24, 100, 9000}) {
    for (const std::int64_t extent : {1, 2, 3, 7, 64, 1000}) {
      const Bytes element = counted_bytes(itemsize, 5);
      Bytes target(static_cast<std::size_t>(extent * itemsize + 1), std::byte{0xEE});
      const StridedView view{
          .shape = {extent}, .strides_bytes = {itemsize}, .itemsize_bytes = itemsize};
      ASSERT_TRUE(fill_elements(target.data(), view, element).ok());
      for (std::int64_t i = 0; i < extent; ++i) {
        ASSERT_TRUE(std::equal(element.begin(), element.end(), target.begin() + i * itemsize))
            << itemsize << " " << i;
      }
      EXPECT_EQ(target.back(), std::byte{0xEE});
    }
  }
}

TEST(FillElements, TakesAnElementOfTheTargetItself) {
  const StridedView view{.shape = {5}, .strides_bytes = {4}, .itemsize_bytes = 4};
  Bytes block = counted_bytes(20);
  const Bytes element(block.begin() + 8, block.begin() + 12);
  ASSERT_TRUE(fill_elements(block.data(), view, std::span(block).subspan(8, 4)).ok());
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(std::equal(element.begin(), element.end(), block.begin() + 4 * i));
  }
}

// --- Random views --------------------------------------------------------------------------------

class RandomViews {
 public:
  explicit RandomViews(std::uint64_t seed) : random_(seed) {}

  std::int64_t below(std::int64_t bound) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(bound));
  }

  Extents shape() {
    Extents shape;
    const std::int64_t ndim = below(5);
    for (std::int64_t axis = 0; axis < ndim; ++axis) {
      shape.push_back(below(12) == 0 ? 0 : 1 + below(5));
    }
    return shape;
  }

  std::int64_t itemsize() {
    constexpr std::array<std::int64_t, 9> kItemsizes{1, 2, 3, 4, 6, 8, 12, 16, 24};
    return kItemsizes[static_cast<std::size_t>(below(9))];
  }

  // Axes in any order, gaps between rows, some axes reversed. Elements do not share bytes. The view
  // is in [0, length of its hull + a gap at the end).
  StridedView separate(const Extents& shape, std::int64_t itemsize) {
    std::vector<int> order(static_cast<std::size_t>(shape.size()));
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random_);
    StridedView view{
        .shape = shape, .strides_bytes = Extents(shape.size(), 0), .itemsize_bytes = itemsize};
    std::int64_t reach = itemsize;
    for (const int axis : order) {
      view.strides_bytes[axis] = reach + (below(2) == 0 ? below(9) : 0);
      reach = view.strides_bytes[axis] * std::max<std::int64_t>(shape[axis], 1);
    }
    turn_some_axes(view);
    return view;
  }

  // Any strides that stay small: 0, negative, overlapping.
  StridedView any(const Extents& shape, std::int64_t itemsize) {
    StridedView view{
        .shape = shape, .strides_bytes = Extents(shape.size(), 0), .itemsize_bytes = itemsize};
    for (std::int64_t& stride : view.strides_bytes) stride = below(3 * itemsize + 1);
    turn_some_axes(view);
    return view;
  }

 private:
  void turn_some_axes(StridedView& view) {
    for (int axis = 0; axis < view.ndim(); ++axis) {
      if (below(3) != 0 || view.shape[axis] == 0) continue;
      view.offset_bytes += (view.shape[axis] - 1) * view.strides_bytes[axis];
      view.strides_bytes[axis] *= -1;
    }
  }

  std::mt19937_64 random_;
};

// The length of a block for the view, with some additional bytes.
std::int64_t block_bytes(const StridedView& view) { return byte_hull(view)->highest_bytes + 5; }

std::int64_t random_swap(RandomViews& random, std::int64_t itemsize) {
  const std::int64_t unit = 1 + random.below(itemsize);
  return itemsize % unit == 0 ? unit : 1;
}

TEST(CopyElementsProperty, MatchesTheDefinitionForSeparateBlocks) {
  RandomViews random(1);
  for (int round = 0; round < 4000; ++round) {
    const Extents shape = random.shape();
    const std::int64_t itemsize = random.itemsize();
    const bool orderly = random.below(2) == 0;
    const StridedView target =
        orderly ? random.separate(shape, itemsize) : random.any(shape, itemsize);
    const StridedView source = random.any(shape, itemsize);
    const std::int64_t swap = random_swap(random, itemsize);
    const Bytes source_bytes = counted_bytes(block_bytes(source), round);
    Bytes target_bytes = counted_bytes(block_bytes(target), round + 100);
    const Bytes expected = expected_copy(target_bytes, target, source_bytes, source, swap);
    ASSERT_TRUE(copy_elements(target_bytes.data(), target, source_bytes.data(), source,
                              {.swap_unit_bytes = swap})
                    .ok());
    ASSERT_EQ(target_bytes, expected)
        << to_string(target) << " from " << to_string(source) << " swapping " << swap;
  }
}

TEST(CopyElementsProperty, MatchesTheDefinitionForOverlappingViews) {
  RandomViews random(2);
  for (int round = 0; round < 4000; ++round) {
    const Extents shape = random.shape();
    const std::int64_t itemsize = random.itemsize();
    StridedView target = random.any(shape, itemsize);
    StridedView source = random.any(shape, itemsize);
    target.offset_bytes += random.below(20);
    source.offset_bytes += random.below(20);
    if (random.below(4) == 0) source = target;
    const std::int64_t swap = random_swap(random, itemsize);
    Bytes block = counted_bytes(std::max(block_bytes(target), block_bytes(source)), round);
    const Bytes expected = expected_copy(block, target, block, source, swap);
    ASSERT_TRUE(
        copy_elements(block.data(), target, block.data(), source, {.swap_unit_bytes = swap}).ok());
    ASSERT_EQ(block, expected) << to_string(target) << " from " << to_string(source);
  }
}

// AddressSanitizer poisons the guards, so a read of padding ends the test.
TEST(CopyElementsProperty, NeverTouchesPadding) {
  RandomViews random(3);
  for (int round = 0; round < 1000; ++round) {
    const Extents shape = random.shape();
    const std::int64_t itemsize = random.itemsize();
    const StridedView target = random.separate(shape, itemsize);
    const StridedView source = random.separate(shape, itemsize);
    const Block target_block = *host_resource().allocate({.total_bytes = block_bytes(target)});
    const Block source_block = *host_resource().allocate({.total_bytes = block_bytes(source)});
    const testing::PaddingGuard target_guard(target_block.data(), target_block.total_bytes(),
                                             target);
    const testing::PaddingGuard source_guard(source_block.data(), source_block.total_bytes(),
                                             source);
    const Bytes element = counted_bytes(itemsize, round);
    ASSERT_TRUE(fill_elements(source_block.data(), source, element).ok());
    ASSERT_TRUE(copy_elements(target_block.data(), target, source_block.data(), source).ok());
    ASSERT_TRUE(target_guard.intact()) << to_string(target);
    ASSERT_TRUE(source_guard.intact()) << to_string(source);
    for_each_index(shape, [&](const Extents& index) {
      const std::byte* found = target_block.data() + byte_offset(target, index);
      ASSERT_EQ(std::memcmp(found, element.data(), element.size()), 0);
    });
  }
}

TEST(FillElementsProperty, MatchesTheDefinition) {
  RandomViews random(4);
  for (int round = 0; round < 3000; ++round) {
    const Extents shape = random.shape();
    const std::int64_t itemsize = random.itemsize();
    const StridedView target = random.any(shape, itemsize);
    const StridedView repeated{
        .shape = shape, .strides_bytes = Extents(shape.size(), 0), .itemsize_bytes = itemsize};
    const Bytes element = counted_bytes(itemsize, round);
    Bytes bytes = counted_bytes(block_bytes(target), 3);
    const Bytes expected = expected_copy(bytes, target, element, repeated);
    ASSERT_TRUE(fill_elements(bytes.data(), target, element).ok());
    ASSERT_EQ(bytes, expected) << to_string(target);
  }
}

// --- Errors --------------------------------------------------------------------------------------

class Refusal : public ::testing::Test {
 protected:
  void expect_value_error(const StridedView& target, const StridedView& source,
                          const std::string& part, const CopyOptions& options = {}) {
    const Bytes before = counted_bytes(64);
    Bytes target_bytes = before;
    const Bytes source_bytes(64);
    const absl::Status status =
        copy_elements(target_bytes.data(), target, source_bytes.data(), source, options);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(error_class_of(status), ErrorClass::kValue);
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
    EXPECT_EQ(target_bytes, before);
  }

  const StridedView view_{.shape = {2, 3}, .strides_bytes = {12, 4}, .itemsize_bytes = 4};
};

TEST_F(Refusal, OfDifferentShapes) {
  const StridedView other{.shape = {3, 2}, .strides_bytes = {8, 4}, .itemsize_bytes = 4};
  expect_value_error(view_, other, "(3, 2)");
}

TEST_F(Refusal, OfDifferentItemsizes) {
  const StridedView other{.shape = {2, 3}, .strides_bytes = {24, 8}, .itemsize_bytes = 8};
  expect_value_error(view_, other, "itemsize_bytes is 8");
}

TEST_F(Refusal, OfAMissingStride) {
  const StridedView bad{.shape = {2, 3}, .strides_bytes = {12}, .itemsize_bytes = 4};
  expect_value_error(bad, view_, "as many strides");
  expect_value_error(view_, bad, "as many strides");
}

TEST_F(Refusal, OfAHullBeyond64Bits) {
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const StridedView bad{.shape = {2, 3}, .strides_bytes = {most, most}, .itemsize_bytes = 4};
  expect_value_error(bad, view_, "2^63 - 1 bytes");
}

TEST_F(Refusal, OfASwapUnitThatDoesNotDivide) {
  expect_value_error(view_, view_, "swap_unit_bytes is 3", {.swap_unit_bytes = 3});
  expect_value_error(view_, view_, "swap_unit_bytes is -4", {.swap_unit_bytes = -4});
}

TEST_F(Refusal, OfNullWithElements) {
  Bytes bytes(64);
  const absl::Status status = copy_elements(nullptr, view_, bytes.data(), view_);
  EXPECT_EQ(error_class_of(status), ErrorClass::kValue);
  EXPECT_NE(status.message().find("null"), std::string::npos) << status.message();
  EXPECT_FALSE(copy_elements(bytes.data(), view_, nullptr, view_).ok());
  EXPECT_FALSE(fill_elements(nullptr, view_, counted_bytes(4)).ok());
}

TEST_F(Refusal, OfAFillElementOfAnotherLength) {
  Bytes bytes(64);
  const absl::Status status = fill_elements(bytes.data(), view_, counted_bytes(8));
  EXPECT_EQ(error_class_of(status), ErrorClass::kValue);
  EXPECT_NE(status.message().find("8 bytes long"), std::string::npos) << status.message();
}

TEST(Scratch, IsAskedForOnlyByOverlappingViewsAndGivenBack) {
  testing::CountingResource counting(host_resource());
  const StridedView low{.shape = {4}, .strides_bytes = {4}, .itemsize_bytes = 4};
  StridedView high = low;
  high.offset_bytes = 4;
  Bytes block = counted_bytes(20);
  Bytes other(20);
  ASSERT_TRUE(copy_elements(other.data(), low, block.data(), high, {.scratch = &counting}).ok());
  EXPECT_EQ(counting.counts().allocations, 0);
  // A copy onto itself does not need scratch memory.
  ASSERT_TRUE(copy_elements(block.data(), low, block.data(), low, {.scratch = &counting}).ok());
  EXPECT_EQ(counting.counts().allocations, 0);
  ASSERT_TRUE(copy_elements(block.data(), high, block.data(), low, {.scratch = &counting}).ok());
  EXPECT_EQ(counting.counts().allocations, 1);
  EXPECT_EQ(counting.counts().live_blocks, 0);
}

TEST(Scratch, FailureLeavesTheTargetAsItWas) {
  testing::FailingResource failing(host_resource(), 1);
  const StridedView low{.shape = {4}, .strides_bytes = {4}, .itemsize_bytes = 4};
  StridedView high = low;
  high.offset_bytes = 4;
  Bytes block = counted_bytes(20);
  const Bytes before = block;
  const absl::Status status =
      copy_elements(block.data(), high, block.data(), low, {.scratch = &failing});
  EXPECT_EQ(error_class_of(status), ErrorClass::kMemory);
  EXPECT_NE(status.message().find("overlapping views"), std::string::npos) << status.message();
  EXPECT_EQ(block, before);
}

}  // namespace
}  // namespace gridbuf
