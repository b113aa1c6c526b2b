#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"

import gridbuf.alloc;
import gridbuf.alloc.host;

namespace gridbuf {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr std::size_t kLarge = std::size_t{3} << 20;

std::byte* bytes_of(void* data) { return static_cast<std::byte*>(data); }

bool is_filled(const void* data, std::size_t count, std::byte value) {
  const auto* const begin = static_cast<const std::byte*>(data);
  return count == 0 || (*begin == value && std::memcmp(begin, begin + 1, count - 1) == 0);
}

class HeapBlocks : public ::testing::TestWithParam<std::int64_t> {
 protected:
  HostResource resource_{{.cache_limit_bytes = 64 * kMiB}};
  Heap heap_{resource_, {.alignment_bytes = GetParam()}};
};

TEST_P(HeapBlocks, AreAlignedAndKeepTheirBytesThroughAnyHistory) {
  struct Made {
    std::byte* data;
    std::size_t bytes;
    std::byte value;
  };
  std::mt19937_64 random(20261127);
  const auto draw_bytes = [&]() -> std::size_t {
    // Of any magnitude up to 4 MiB; the lengths around the limit of large blocks often.
    if (random() % 16 == 0) return static_cast<std::size_t>(kLargeBlockBytes) - 2 + random() % 4;
    return random() % (std::size_t{1} << (random() % 23));
  };
  std::vector<Made> made;
  for (int step = 0; step < 10000; ++step) {
    const std::byte value{static_cast<unsigned char>(random() % 255 + 1)};
    const bool add = made.size() < 2 || (made.size() < 12 && random() % 2 == 0);
    if (add) {
      const bool zeroed = random() % 2 == 0;
      const std::size_t bytes = draw_bytes();
      void* const data = heap_.allocate(bytes, zeroed);
      ASSERT_NE(data, nullptr);
      if (zeroed) ASSERT_TRUE(is_filled(data, bytes, std::byte{0}));
      made.push_back({bytes_of(data), bytes, value});
    } else {
      std::swap(made[random() % made.size()], made.back());
      Made& last = made.back();
      ASSERT_TRUE(is_filled(last.data, last.bytes, last.value)) << step;
      if (random() % 2 == 0) {
        heap_.release(last.data);
        made.pop_back();
        continue;
      }
      const std::size_t bytes = draw_bytes();
      last.data = bytes_of(heap_.reallocate(last.data, bytes));
      ASSERT_NE(last.data, nullptr);
      ASSERT_TRUE(is_filled(last.data, std::min(bytes, last.bytes), last.value)) << step;
      last = {last.data, bytes, value};
    }
    const Made& last = made.back();
    ASSERT_EQ(reinterpret_cast<std::uintptr_t>(last.data) % GetParam(), 0U);
    ASSERT_EQ(heap_.report(last.data).total_bytes, std::max<std::size_t>(last.bytes, 1));
    std::memset(last.data, static_cast<int>(last.value), last.bytes);
  }
  for (const Made& one : made) heap_.release(one.data);
  EXPECT_EQ(resource_.statistics().live_blocks, 0);
  EXPECT_EQ(resource_.statistics().live_bytes, 0);
}

INSTANTIATE_TEST_SUITE_P(Alignments, HeapBlocks,
                         ::testing::Values(16, 32, 64, 128, 4096, kMaxAlignmentBytes),
                         [](const auto& info) { return std::to_string(info.param); });

// Any lengths, small and large, in steps of a kibibyte up to half the length.
TEST_P(HeapBlocks, GrowAndShrinkWithTheirBytes) {
  std::mt19937_64 random(20261128);
  std::size_t bytes = 1000;
  std::byte* data = bytes_of(heap_.allocate(bytes, false));
  const auto value = [](std::size_t at) { return static_cast<std::byte>(at * 31 >> 10); };
  const auto write = [&](std::size_t begin) {
    for (std::size_t at = begin + 508 - (begin + 508) % 509; at < bytes; at += 509)
      data[at] = value(at);
  };
  write(0);
  for (int step = 0; step < 400; ++step) {
    const std::size_t before = bytes;
    const std::size_t more = random() % 2 == 0 ? 1024 : bytes / 2;
    bytes = bytes > 8 * kLarge ? bytes / (random() % 100 + 1) + 1 : bytes + more;
    data = bytes_of(heap_.reallocate(data, bytes));
    ASSERT_NE(data, nullptr);
    ASSERT_EQ(reinterpret_cast<std::uintptr_t>(data) % GetParam(), 0U);
    ASSERT_EQ(heap_.report(data).total_bytes, static_cast<std::int64_t>(bytes));
    for (std::size_t at = 0; at < std::min(before, bytes); at += 509)
      ASSERT_EQ(data[at], value(at));
    write(std::min(before, bytes));
  }
  heap_.release(data);
  EXPECT_EQ(resource_.statistics().live_bytes, 0);
}

// A block that grows by small steps is not copied: its pages stay or move. The bytes that are
// copied would take many seconds.
TEST(Heap, GrowsWithoutACopy) {
  HostResource resource({.cache_limit_bytes = 64 * kMiB});
  for (const bool huge_pages : {true, false}) {
    Heap heap(resource, {.alignment_bytes = kMaxAlignmentBytes, .huge_pages = huge_pages});
    std::size_t bytes = 16 * kLarge;
    void* data = heap.allocate(bytes, true);
    std::memset(data, 5, bytes);
    // A neighbour at each end, so that it must move at times.
    std::vector<void*> others;
    for (int step = 0; step < 1000; ++step) {
      if (step % 100 == 0) others.push_back(heap.allocate(kLarge, false));
      data = heap.reallocate(data, bytes += 4096);
      ASSERT_NE(data, nullptr);
      ASSERT_EQ(reinterpret_cast<std::uintptr_t>(data) % kMaxAlignmentBytes, 0U);
    }
    EXPECT_TRUE(is_filled(data, 16 * kLarge, std::byte{5}));
    EXPECT_EQ(resource.statistics().live_blocks, 11);
    EXPECT_GE(resource.statistics().live_bytes, static_cast<std::int64_t>(bytes));
    heap.release(data);
    for (void* const other : others) heap.release(other);
  }
  // 22 allocations. Without huge pages, ten of the second half take the kept blocks of the first.
  const bool has_huge_pages =
      pages::kind_for(16 * kLarge, true, system::huge_pages()) == PageKind::kHuge;
  EXPECT_EQ(resource.statistics().misses, has_huge_pages ? 22 : 12) << "a growth took a new block";
}

TEST(Heap, ShrinksInPlaceAndGivesPagesBack) {
  HostResource resource({.cache_limit_bytes = 64 * kMiB});
  Heap heap(resource, {});
  void* const data = heap.allocate(16 * kLarge, false);
  std::memset(data, 3, 16 * kLarge);
  EXPECT_EQ(heap.reallocate(data, 12 * kLarge), data);
  EXPECT_GE(resource.statistics().live_bytes, static_cast<std::int64_t>(16 * kLarge));
  EXPECT_EQ(heap.reallocate(data, kLarge), data);
  EXPECT_LE(resource.statistics().live_bytes, static_cast<std::int64_t>(2 * kLarge));
  EXPECT_TRUE(is_filled(data, kLarge, std::byte{3}));
  heap.release(data);
  EXPECT_EQ(resource.statistics().live_bytes, 0);
}

TEST(Heap, CountsLargeBlocksAndKeepsThem) {
  HostResource resource({.cache_limit_bytes = 64 * kMiB});
  Heap heap(resource, {});
  void* const small = heap.allocate(1000, false);
  EXPECT_EQ(resource.statistics().live_blocks, 0);
  EXPECT_EQ(heap.report(small).info.pages, PageKind::kShared);
  EXPECT_GE(heap.report(small).allocation_bytes, 1000);
  void* const large = heap.allocate(kLarge, false);
  EXPECT_EQ(resource.statistics().live_blocks, 1);
  EXPECT_FALSE(heap.report(large).info.from_cache);
  EXPECT_NE(heap.report(large).info.pages, PageKind::kShared);
  heap.release(large);
  EXPECT_EQ(resource.statistics().cached_blocks, 1);
  void* const again = heap.allocate(kLarge, false);
  EXPECT_TRUE(heap.report(again).info.from_cache);
  heap.release(again);
  heap.release(small);
  heap.release(nullptr);
}

TEST(Heap, ReturnsBlocksThatItDoesNotKeep) {
  HostResource resource({.cache_limit_bytes = 64 * kMiB});
  Heap heap(resource, {.keep = false});
  heap.release(heap.allocate(kLarge, true));
  EXPECT_EQ(resource.statistics().cached_blocks, 0);
  EXPECT_EQ(resource.statistics().live_bytes, 0);
}

TEST(Heap, TakesNoHugePagesWhereItDoesNotWantThem) {
  HostResource resource({.cache_limit_bytes = 64 * kMiB});
  Heap huge(resource, {});
  Heap small(resource, {.huge_pages = false});
  huge.release(huge.allocate(kLarge, false));
  void* const data = small.allocate(kLarge, false);
  EXPECT_EQ(small.report(data).info.pages, PageKind::kSmall);
  small.release(data);
}

TEST(Heap, HasTheLimitOfItsResource) {
  HostResource resource({.cache_limit_bytes = 64 * kMiB, .limit_bytes = 8 * kMiB});
  Heap heap(resource, {});
  void* const data = heap.allocate(kLarge, true);
  ASSERT_NE(data, nullptr);
  EXPECT_EQ(heap.allocate(2 * kLarge, false), nullptr);
  EXPECT_EQ(heap.reallocate(data, 3 * kLarge), nullptr);
  EXPECT_TRUE(is_filled(data, kLarge, std::byte{0}));
  EXPECT_EQ(resource.statistics().refusals, 2);
  heap.release(data);
}

TEST(Heap, RefusesLengthsThatNoMachineHas) {
  Heap heap(host_resource(), {});
  for (const std::size_t bytes :
       {std::numeric_limits<std::size_t>::max(),
        static_cast<std::size_t>(std::numeric_limits<std::int64_t>::max()), std::size_t{1} << 62}) {
    EXPECT_EQ(heap.allocate(bytes, false), nullptr);
    EXPECT_EQ(heap.allocate(bytes, true), nullptr);
  }
}

// Zeros of kept blocks that were written, below and above the length from which they are lazy.
TEST(Heap, HasZerosInKeptBlocks) {
  HostResource resource({.cache_limit_bytes = 256 * kMiB});
  Heap heap(resource, {});
  for (const std::size_t bytes : {kLarge, std::size_t{48} << 20}) {
    void* const first = heap.allocate(bytes, false);
    std::memset(first, 7, bytes);
    heap.release(first);
    void* const second = heap.allocate(bytes, true);
    EXPECT_TRUE(heap.report(second).info.from_cache);
    EXPECT_TRUE(is_filled(second, bytes, std::byte{0}));
    heap.release(second);
  }
}

TEST(Heap, FillsFreshBytesInPoisonMode) {
  HostResource resource({.poison = true});
  Heap heap(resource, {});
  for (const std::size_t bytes : {std::size_t{100}, kLarge}) {
    void* const data = heap.allocate(bytes, false);
    EXPECT_TRUE(is_filled(data, bytes, kPoison));
    heap.release(data);
    void* const zeros = heap.allocate(bytes, true);
    EXPECT_TRUE(is_filled(zeros, bytes, std::byte{0}));
    heap.release(zeros);
  }
}

TEST(Heap, ReleasesOnOtherThreads) {
  HostResource resource({.cache_limit_bytes = 64 * kMiB});
  Heap heap(resource, {});
  std::vector<std::vector<void*>> made(4);
  const auto in_threads = [&](const auto& work) {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < made.size(); ++i) threads.emplace_back([&, i] { work(i); });
  };
  for (int round = 0; round < 20; ++round) {
    in_threads([&](std::size_t i) {
      for (std::size_t n = 0; n < 40; ++n) {
        made[i].push_back(heap.allocate(n % 10 == 0 ? kLarge : n * 500, n % 2 == 0));
      }
    });
    in_threads([&](std::size_t i) {
      std::vector<void*>& others = made[(i + 1) % made.size()];
      for (void* const data : others) heap.release(data);
      others.clear();
    });
  }
  EXPECT_EQ(resource.statistics().live_blocks, 0);
}

#if __has_feature(address_sanitizer)
TEST(HeapDeathTest, AWriteBeforeTheDataIsFound) {
  Heap heap(host_resource(), {});
  for (const std::size_t bytes : {std::size_t{100}, kLarge}) {
    auto* const data = static_cast<volatile char*>(heap.allocate(bytes, true));
    EXPECT_DEATH(data[-1] = 1, "AddressSanitizer");
    heap.release(const_cast<char*>(data));
  }
}
#endif

}  // namespace
}  // namespace gridbuf
