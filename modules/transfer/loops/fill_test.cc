#include <sys/mman.h>

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

import gridbuf.base;
import gridbuf.layout;
import gridbuf.layout.view;
import gridbuf.transfer.loops;
import gridbuf.transfer.testing;

namespace gridbuf::loops {
namespace {

using testing::Bytes;
using testing::RandomViews;

StridedView repeated(const StridedView& target) {
  return {.shape = target.shape,
          .strides_bytes = Extents(target.ndim(), 0),
          .itemsize_bytes = target.itemsize_bytes};
}

// The definition of a fill: a copy from a view that repeats the element.
Bytes expected_fill(const Bytes& before, const StridedView& target, const Bytes& element) {
  return testing::expected_copy(before, target, element, repeated(target));
}

// Every interior point of a field with a halo of 1 becomes `value`; the halo stays.
void fill_interior(std::span<double> field, std::int64_t n, double value) {
  const StridedView interior{.shape = {n - 2, n - 2},
                             .strides_bytes = {8 * n, 8},
                             .offset_bytes = 8 * (n + 1),
                             .itemsize_bytes = 8};
  fill_view(std::as_writable_bytes(field).data(), interior, std::as_bytes(std::span(&value, 1)));
}

TEST(Example, OfTheReadme) {
  std::array<double, 16> field{};
  fill_interior(field, 4, 2.5);
  EXPECT_EQ(field,
            (std::array<double, 16>{0, 0, 0, 0, 0, 2.5, 2.5, 0, 0, 2.5, 2.5, 0, 0, 0, 0, 0}));
}

// So low that every piece is a separate job, and every long row is streamed.
constexpr FillLimits kLow{
    .parallel_bytes = 1000, .piece_bytes = 3000, .stream_zeros_bytes = 2000, .stream_bytes = 2000};
constexpr FillLimits kNoThreads{
    .parallel_bytes = 1 << 30, .piece_bytes = 1 << 20, .stream_zeros_bytes = 1, .stream_bytes = 1};

class FillViewTest : public ::testing::TestWithParam<Simd> {
 protected:
  void SetUp() override { ASSERT_TRUE(set_simd(GetParam()).ok()); }
  void TearDown() override {
    ASSERT_TRUE(set_simd(supported_simd().back()).ok());
    ASSERT_TRUE(set_thread_count(2).ok());
  }
};

INSTANTIATE_TEST_SUITE_P(Path, FillViewTest, ::testing::ValuesIn(supported_simd()),
                         [](const auto& info) { return std::string(to_string(info.param)); });

Bytes random_element(RandomViews& random, std::int64_t itemsize, int round) {
  Bytes element = testing::random_bytes(itemsize, static_cast<std::uint64_t>(round));
  const std::int64_t kind = random.below(4);
  if (kind == 0) std::ranges::fill(element, std::byte{0});
  if (kind == 1) std::ranges::fill(element, element[0]);
  return element;
}

TEST_P(FillViewTest, MatchesTheDefinitionUnderAllLimits) {
  RandomViews random(1);
  testing::FencedMemory memory(std::int64_t{1} << 28);
  for (int round = 0; round < 10'000; ++round) {
    const Extents shape = random.once_in(4)
                              ? random.small_shape()
                              : random.edge_shape(random.once_in(20) ? 30'000 : 2'000);
    if (is_empty(shape)) continue;
    const std::int64_t itemsize = random.itemsize_bytes();
    StridedView target =
        random.once_in(5) ? random.any(shape, itemsize) : random.separate(shape, itemsize);
    if (random.once_in(2)) target.offset_bytes += random.below(100);
    const Bytes element = random_element(random, itemsize, round);
    const FillLimits limits = random.once_in(2)   ? kLow
                              : random.once_in(2) ? kNoThreads
                                                  : FillLimits{};
    ASSERT_TRUE(set_thread_count(static_cast<int>(1 + random.below(4))).ok());
    const std::int64_t length_bytes = testing::bytes_up_to_the_end(target);
    const std::span<std::byte> block = random.once_in(2)
                                           ? memory.before_fence(length_bytes)
                                           : memory.behind_fence(length_bytes + random.below(80));
    testing::write_random(block, static_cast<std::uint64_t>(round));
    const Bytes expected = expected_fill(Bytes(block.begin(), block.end()), target, element);
    fill_view(block.data(), target, element, limits);
    ASSERT_EQ(std::memcmp(block.data(), expected.data(), expected.size()), 0)
        << to_string(target) << ", round " << round;
  }
}

// Lengths around the limit of patterns, and around those between elements and rows.
TEST_P(FillViewTest, TakesElementsOfEveryLength) {
  for (const std::int64_t itemsize :
       {1, 31, 32, 33, 63, 64, 65, 100, 127, 128, 129, 1023, 1024, 1025, 5000}) {
    for (const std::int64_t gap : {0, 1, 64}) {
      for (const std::int64_t extent : {1, 2, 3, 65}) {
        const StridedView target{.shape = {extent, 3},
                                 .strides_bytes = {3 * itemsize + gap, itemsize},
                                 .offset_bytes = 3,
                                 .itemsize_bytes = itemsize};
        const Bytes element = testing::random_bytes(itemsize, 7);
        Bytes block(static_cast<std::size_t>(testing::bytes_up_to_the_end(target) + 70));
        const Bytes expected = expected_fill(block, target, element);
        fill_view(block.data(), target, element, extent == 65 ? kLow : FillLimits{});
        ASSERT_EQ(block, expected) << itemsize << " " << gap << " " << extent;
      }
    }
  }
}

// Threads share the rows of a padded view like a long row; padding stays.
TEST_P(FillViewTest, FillsManyMebibytesOfPaddedRows) {
  for (const int threads : {1, 2, 3, 7}) {
    ASSERT_TRUE(set_thread_count(threads).ok());
    for (const std::int64_t itemsize : {1, 8, 12, 16}) {
      for (const bool zero : {false, true}) {
        const std::int64_t row_bytes = 1020 * itemsize;
        const std::int64_t rows = (std::int64_t{10} << 20) / row_bytes;
        const StridedView target{.shape = {rows, 1020},
                                 .strides_bytes = {row_bytes + 4 * itemsize, itemsize},
                                 .itemsize_bytes = itemsize};
        const Bytes element =
            zero ? Bytes(static_cast<std::size_t>(itemsize)) : testing::random_bytes(itemsize, 5);
        Bytes block(static_cast<std::size_t>(testing::bytes_up_to_the_end(target)), std::byte{9});
        const Bytes expected = expected_fill(block, target, element);
        fill_view(block.data(), target, element,
                  {.stream_zeros_bytes = 1 << 20, .stream_bytes = 1 << 20});
        ASSERT_TRUE(block == expected) << threads << " " << itemsize << " " << zero;
      }
    }
  }
}

// Partly fresh pages: streamed and ordinary stores give equal results.
TEST_P(FillViewTest, FillsFreshMemory) {
  const std::int64_t page = system::page_bytes();
  const std::int64_t length = 64 * page;
  void* const mapping = mmap(nullptr, static_cast<std::size_t>(length), PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(mapping, MAP_FAILED);
  auto* const bytes = static_cast<std::byte*>(mapping);
  for (std::int64_t touched = 0; touched < length; touched += 3 * page) bytes[touched] = {};
  const StridedView target{
      .shape = {length / 8 - 1}, .strides_bytes = {8}, .offset_bytes = 3, .itemsize_bytes = 8};
  const Bytes element = testing::random_bytes(8, 1);
  fill_view(bytes, target, element, kLow);
  const Bytes expected = expected_fill(Bytes(static_cast<std::size_t>(length)), target, element);
  EXPECT_EQ(std::memcmp(bytes, expected.data(), expected.size()), 0);
  munmap(mapping, static_cast<std::size_t>(length));
}

TEST(FillView, WritesElementsThatShareBytesInRowMajorOrder) {
  // Each element begins in the middle of the one before: the last one written is whole.
  for (const std::int64_t stride : {1, -1}) {
    const StridedView target{.shape = {4},
                             .strides_bytes = {stride},
                             .offset_bytes = stride < 0 ? 3 : 0,
                             .itemsize_bytes = 2};
    const Bytes element{std::byte{1}, std::byte{2}};
    Bytes block(5);
    const Bytes expected = expected_fill(block, target, element);
    fill_view(block.data(), target, element);
    EXPECT_EQ(block, expected) << stride;
  }
}

// Ten elements, each repeated 10^12 times: each is written once.
TEST(FillView, WritesARepeatedElementOnce) {
  const std::int64_t many = std::int64_t{1} << 20;
  const StridedView target{
      .shape = {many, 10, many}, .strides_bytes = {0, 8, 0}, .itemsize_bytes = 8};
  const Bytes element = testing::random_bytes(8, 3);
  Bytes block(80);
  fill_view(block.data(), target, element);
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(std::memcmp(block.data() + 8 * i, element.data(), 8), 0);
  }
}

}  // namespace
}  // namespace gridbuf::loops
