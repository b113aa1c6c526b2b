// Compares copies and fills with their definition, for every instruction set of this machine. The
// cases are thousands of random pairs of views, every pair of extents around the edges of blocks,
// and large arrays with threads and non-temporal stores. Every byte of both blocks is compared, and
// blocks end at inaccessible pages.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
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
import gridbuf.transfer.loops;
import gridbuf.transfer.testing;

namespace gridbuf {
namespace {

using loops::CopyLimits;
using testing::Bytes;
using testing::CopyCase;
using testing::FencedMemory;
using testing::RandomViews;

constexpr std::array<int, 4> kThreadCounts{1, 2, 3, 7};

// Not std::ranges::equal, which takes half of the time of these tests in builds without
// optimisation.
bool same_bytes(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

Bytes copy_of(std::span<const std::byte> bytes) {
  Bytes copy(bytes.size());
  if (!bytes.empty()) std::memcpy(copy.data(), bytes.data(), bytes.size());
  return copy;
}

// Limits at which the smallest copy uses threads, non-temporal stores, or both, and the default
// limits.
CopyLimits random_limits(RandomViews& random) {
  constexpr std::int64_t kNever = std::int64_t{1} << 40;
  const std::int64_t piece_bytes = random.one_of({1, 64, 700, 4096, 40'000});
  switch (random.below(4)) {
    case 0:
      return {.stream_bytes = 1,
              .stream_rows_bytes = 1,
              .parallel_bytes = 1,
              .piece_bytes = piece_bytes};
    case 1:
      return {.stream_bytes = 1,
              .stream_rows_bytes = 1,
              .parallel_bytes = kNever,
              .piece_bytes = piece_bytes};
    case 2:
      return {.stream_bytes = kNever,
              .stream_rows_bytes = kNever,
              .parallel_bytes = 1,
              .piece_bytes = piece_bytes};
    default:
      return {};
  }
}

// Room for every case: untouched pages do not need memory.
constexpr std::int64_t kMostBytes = std::int64_t{1} << 28;

std::string name_of_path(const ::testing::TestParamInfo<Simd>& info) {
  return std::string(to_string(info.param));
}

// One instruction set, and blocks for its cases.
class OnEveryPath : public ::testing::TestWithParam<Simd> {
 protected:
  void SetUp() override { ASSERT_TRUE(set_simd(GetParam()).ok()); }
  void TearDown() override { ASSERT_TRUE(set_simd(supported_simd().back()).ok()); }

  // A block for a view. It begins or ends at a border of pages.
  static std::span<std::byte> place(FencedMemory& memory, const StridedView& view,
                                    RandomViews& random) {
    const std::int64_t length_bytes = std::max<std::int64_t>(0, testing::bytes_up_to_the_end(view));
    if (random.once_in(2)) return memory.before_fence(length_bytes);
    return memory.behind_fence(length_bytes + random.below(100));
  }

  // Copies between two blocks with one of the numbers of threads, and compares.
  void expect_as_defined(const CopyCase& copy, RandomViews& random, int round) {
    const std::span<std::byte> target = place(target_memory_, copy.target, random);
    const std::span<std::byte> source = place(source_memory_, copy.source, random);
    ASSERT_TRUE(set_thread_count(kThreadCounts[static_cast<std::size_t>(random.below(4))]).ok());
    expect_as_defined(copy, random_limits(random), target, source, round);
  }

  void expect_as_defined(const CopyCase& copy, const CopyLimits& limits,
                         std::span<std::byte> target, std::span<std::byte> source, int round) {
    testing::write_random(target, static_cast<std::uint64_t>(round));
    testing::write_random(source, static_cast<std::uint64_t>(round) + 1'000'000);
    Bytes expected = copy_of(target);
    const Bytes kept = copy_of(source);
    testing::define_copy(expected.data(), copy.target, source.data(), copy.source,
                         copy.swap_unit_bytes);
    copy_between(copy, limits, target, source);
    ASSERT_TRUE(same_bytes(target, expected)) << difference(copy, target, expected, round);
    ASSERT_TRUE(same_bytes(source, kept)) << to_string(copy) << ": the source changed";
  }

  // As copy_elements for disjoint blocks, with other limits. Views without bytes are not copied.
  static void copy_between(const CopyCase& copy, const CopyLimits& limits,
                           std::span<std::byte> target, std::span<const std::byte> source) {
    if (is_empty(copy.target.shape) || copy.target.itemsize_bytes == 0) return;
    loops::copy_view(target.data(), copy.target, source.data(), copy.source, copy.swap_unit_bytes,
                     limits);
  }

  static std::string difference(const CopyCase& copy, std::span<const std::byte> found,
                                const Bytes& expected, int round) {
    const auto [at, ignored] = std::ranges::mismatch(found, expected);
    return to_string(copy) + ", round " + std::to_string(round) + ", with " +
           std::to_string(thread_count()) + " threads: byte " + std::to_string(at - found.begin()) +
           " of the block at " +
           std::to_string(reinterpret_cast<std::uintptr_t>(found.data()) % 4096) + " of a page";
  }

  FencedMemory target_memory_{kMostBytes};
  FencedMemory source_memory_{kMostBytes};
};

INSTANTIATE_TEST_SUITE_P(Path, OnEveryPath, ::testing::ValuesIn(supported_simd()), name_of_path);

// ---- Random pairs. ----

// The largest number of elements of a random case: mostly few, so that many cases run.
std::int64_t most_elements(RandomViews& random) {
  if (random.once_in(100)) return 513 * 513;
  return random.once_in(6) ? 20'000 : 2'000;
}

TEST_P(OnEveryPath, RandomCopiesAreAsDefined) {
  RandomViews random(11);
  for (int round = 0; round < 11'000; ++round) {
    const Extents shape =
        random.once_in(3) ? random.small_shape() : random.edge_shape(most_elements(random));
    expect_as_defined(random.copy_of(shape), random, round);
    if (HasFatalFailure()) return;
  }
}

// Both views in one block, at random distances: all elements are read before the first write.
TEST_P(OnEveryPath, RandomOverlapsAreAsDefined) {
  RandomViews random(12);
  for (int round = 0; round < 4'000; ++round) {
    const Extents shape = random.once_in(2) ? random.small_shape()
                                            : random.edge_shape(random.once_in(20) ? 20'000 : 800);
    CopyCase copy = random.copy_of(shape);
    if (random.once_in(4)) {  // a part of an array onto another part of it
      copy.source = copy.target;
      copy.source.offset_bytes += copy.target.itemsize_bytes * random.below(4);
    }
    const auto length_bytes = static_cast<std::size_t>(std::max<std::int64_t>(
        {0, testing::bytes_up_to_the_end(copy.target), testing::bytes_up_to_the_end(copy.source)}));
    const std::span<std::byte> block =
        target_memory_.before_fence(static_cast<std::int64_t>(length_bytes));
    testing::write_random(block, static_cast<std::uint64_t>(round));
    Bytes expected = copy_of(block);
    testing::define_copy(expected.data(), copy.target, expected.data(), copy.source,
                         copy.swap_unit_bytes);
    ASSERT_TRUE(copy_elements(block.data(), copy.target, block.data(), copy.source,
                              {.swap_unit_bytes = copy.swap_unit_bytes})
                    .ok());
    ASSERT_TRUE(same_bytes(block, expected)) << difference(copy, block, expected, round);
  }
}

TEST_P(OnEveryPath, RandomFillsAreAsDefined) {
  RandomViews random(13);
  for (int round = 0; round < 11'000; ++round) {
    const Extents shape =
        random.once_in(3) ? random.small_shape() : random.edge_shape(most_elements(random));
    CopyCase fill = random.copy_of(shape);
    const std::int64_t itemsize = fill.target.itemsize_bytes;
    fill.source = {
        .shape = shape, .strides_bytes = Extents(shape.size(), 0), .itemsize_bytes = itemsize};
    fill.swap_unit_bytes = 1;
    Bytes element = testing::random_bytes(itemsize, static_cast<std::uint64_t>(round));
    if (random.once_in(3)) std::ranges::fill(element, element[0]);
    const std::span<std::byte> block = place(target_memory_, fill.target, random);
    testing::write_random(block, static_cast<std::uint64_t>(round));
    Bytes expected = copy_of(block);
    testing::define_copy(expected.data(), fill.target, element.data(), fill.source);
    ASSERT_TRUE(set_thread_count(kThreadCounts[static_cast<std::size_t>(random.below(4))]).ok());
    ASSERT_TRUE(fill_elements(block.data(), fill.target, element).ok());
    ASSERT_TRUE(same_bytes(block, expected)) << difference(fill, block, expected, round);
  }
}

// The bytes between the rows are neither read nor written. (AddressSanitizer poisons them.)
TEST_P(OnEveryPath, PaddingIsNeverTouched) {
  RandomViews random(14);
  for (int round = 0; round < 2'000; ++round) {
    const Extents shape = random.edge_shape(1'000);
    const std::int64_t itemsize = random.itemsize_bytes();
    const CopyCase copy{.target = random.separate(shape, itemsize),
                        .source = random.separate(shape, itemsize),
                        .swap_unit_bytes = random.swap_unit_bytes(itemsize)};
    const std::span<std::byte> target = place(target_memory_, copy.target, random);
    const std::span<std::byte> source = place(source_memory_, copy.source, random);
    testing::write_random(source, static_cast<std::uint64_t>(round));
    const testing::PaddingGuard target_guard(target.data(), std::ssize(target), copy.target);
    const testing::PaddingGuard source_guard(source.data(), std::ssize(source), copy.source);
    const Bytes element = testing::random_bytes(itemsize, static_cast<std::uint64_t>(round));
    ASSERT_TRUE(fill_elements(target.data(), copy.target, element).ok());
    copy_between(copy, random_limits(random), target, source);
    ASSERT_TRUE(target_guard.intact()) << to_string(copy);
    ASSERT_TRUE(source_guard.intact()) << to_string(copy);
  }
}

// ---- Edges of blocks. ----

std::vector<std::int64_t> edges() {
  std::vector<std::int64_t> edges{1, 2, 3, 5};
  for (const std::int64_t edge : {8, 16, 32, 64, 128}) {
    for (const std::int64_t extent : {edge - 1, edge, edge + 1}) edges.push_back(extent);
  }
  return edges;
}

// A matrix by rows from one by columns, of every pair of extents; rows start anywhere.
TEST_P(OnEveryPath, TransposesOfEveryEdgeAreAsDefined) {
  RandomViews random(15);
  int round = 0;
  for (const std::int64_t itemsize : {1, 2, 3, 4, 8, 12, 16}) {
    for (const std::int64_t rows : edges()) {
      for (const std::int64_t columns : edges()) {
        CopyCase copy;
        copy.target = {.shape = {rows, columns},
                       .strides_bytes = {columns * itemsize, itemsize},
                       .offset_bytes = random.below(64),
                       .itemsize_bytes = itemsize};
        copy.source = {.shape = {rows, columns},
                       .strides_bytes = {itemsize, rows * itemsize},
                       .offset_bytes = random.below(64),
                       .itemsize_bytes = itemsize};
        expect_as_defined(copy, random, ++round);
        if (HasFatalFailure()) return;
      }
    }
  }
}

// ---- Large arrays. ----

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

// A view of `shape` whose axis order[0] is contiguous, order[1] next, …; rows have a gap.
StridedView laid_out(const Extents& shape, const std::array<int, 3>& order, std::int64_t itemsize,
                     std::int64_t row_gap_bytes) {
  StridedView view{.shape = shape, .strides_bytes = Extents(3, 0), .itemsize_bytes = itemsize};
  std::int64_t stride = itemsize;
  for (const int axis : order) {
    view.strides_bytes[axis] = stride;
    stride *= shape[axis];
    if (axis == order[0]) stride += row_gap_bytes;
  }
  return view;
}

constexpr std::array<std::array<int, 3>, 6> kOrders{
    {{2, 1, 0}, {1, 2, 0}, {2, 0, 1}, {0, 2, 1}, {1, 0, 2}, {0, 1, 2}}};

// Shapes of about `elements`: odd extents, powers of two, and one short axis.
std::array<Extents, 3> shapes_of(std::int64_t elements) {
  const std::int64_t plane = elements / 128;
  return {Extents{127, 129, plane / 129}, Extents{128, 64, plane / 64}, Extents{plane / 9, 9, 127}};
}

TEST_P(OnEveryPath, LargeCopiesAreAsDefined) {
  RandomViews random(16);
  int round = 0;
  for (const std::int64_t itemsize : {1, 2, 4, 8, 16}) {
    for (const std::array<int, 3>& order : kOrders) {
      const std::int64_t elements = 5 * kMiB / 2 / itemsize;
      const Extents shape = shapes_of(elements)[static_cast<std::size_t>(random.below(3))];
      CopyCase copy{.target = laid_out(shape, {2, 1, 0}, itemsize, itemsize * random.below(3)),
                    .source = laid_out(shape, order, itemsize, itemsize * random.below(3))};
      if (random.once_in(2)) copy.target.offset_bytes = itemsize * random.below(64);
      if (random.once_in(4)) copy.target.offset_bytes += random.below(itemsize);
      if (random.once_in(2)) copy.source.offset_bytes = random.below(64);
      expect_as_defined(copy, random, ++round);
      if (HasFatalFailure()) return;
    }
  }
}

// Extents for which lines of many columns of the target are in one cache set: with whole and cut
// columns, and with planes that are adjacent in the target and that are not.
TEST_P(OnEveryPath, CopiesToConflictingLinesAreAsDefined) {
  constexpr std::int64_t kNever = std::int64_t{1} << 40;
  RandomViews random(18);
  int round = 0;
  for (const std::int64_t itemsize : {1, 2, 4}) {
    for (const std::array<int, 3>& order : kOrders) {
      for (const std::int64_t rows : {64, 96, 4096}) {
        const Extents shape{66, rows == 4096 ? 3 : 128, rows};
        const CopyCase copy{
            .target = laid_out(shape, {2, 1, 0}, itemsize, random.once_in(2) ? 64 : 0),
            .source = laid_out(shape, order, itemsize, itemsize * random.below(2))};
        expect_as_defined(
            copy, {.stream_bytes = kNever, .stream_rows_bytes = kNever, .parallel_bytes = 1},
            place(target_memory_, copy.target, random), place(source_memory_, copy.source, random),
            ++round);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(OnEveryPath, CopiesOfThirtyMebibytesAreAsDefined) {
  RandomViews random(17);
  int round = 0;
  for (const std::array<int, 3>& order : {kOrders[1], kOrders[3], kOrders[5]}) {
    for (const int threads : {2, 7}) {
      const Extents shape{160, 161, 162};
      const CopyCase copy{.target = laid_out(shape, {2, 1, 0}, 8, 8 * random.below(8)),
                          .source = laid_out(shape, order, 8, 8 * random.below(8))};
      ASSERT_TRUE(set_thread_count(threads).ok());
      expect_as_defined(copy, CopyLimits{},
                        target_memory_.behind_fence(testing::bytes_up_to_the_end(copy.target)),
                        source_memory_.before_fence(testing::bytes_up_to_the_end(copy.source)),
                        ++round);
      if (HasFatalFailure()) return;
    }
  }
}

// Byte counts and offsets beyond 32 bits, in lazily committed memory.
TEST_P(OnEveryPath, TransposesBeyondFourGibibytesOfAddresses) {
#if __has_feature(thread_sanitizer)
  GTEST_SKIP() << "ThreadSanitizer's calloc writes the zeros itself, with shadow: some 20 GiB";
#endif
  constexpr std::int64_t kRowBytes = (std::int64_t{1} << 27) + 64;
  constexpr std::int64_t kRows = 40;
  constexpr std::int64_t kColumns = 48;
  const auto block = host_resource().allocate({.total_bytes = kRows * kRowBytes});
  if (!block.ok()) GTEST_SKIP() << "this machine has no 5 GiB: " << block.status();
  const StridedView far{
      .shape = {kRows, kColumns}, .strides_bytes = {kRowBytes, 8}, .itemsize_bytes = 8};
  const StridedView near{
      .shape = {kRows, kColumns}, .strides_bytes = {8, 8 * kRows}, .itemsize_bytes = 8};
  const Bytes source = testing::random_bytes(8 * kRows * kColumns, 1);
  Bytes back(source.size());
  ASSERT_TRUE(copy_elements(block->data(), far, source.data(), near).ok());
  for (std::int64_t row = 0; row < kRows; ++row) {
    for (std::int64_t column = 0; column < kColumns; ++column) {
      const Extents index{row, column};
      ASSERT_EQ(std::memcmp(block->data() + byte_offset(far, index),
                            source.data() + byte_offset(near, index), 8),
                0);
    }
  }
  ASSERT_TRUE(copy_elements(back.data(), near, block->data(), far).ok());
  EXPECT_EQ(back, source);
}

}  // namespace
}  // namespace gridbuf
