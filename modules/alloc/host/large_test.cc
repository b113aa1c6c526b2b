#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"

import gridbuf.alloc;
import gridbuf.alloc.host;
import gridbuf.alloc.testing;
import gridbuf.base;

// A sanitizer's malloc ends the process where that of the C library returns null, which the
// contract tests.
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }
extern "C" const char* __tsan_default_options() { return "allocator_may_return_null=1"; }

// ---- A failing operator new. (Sanitizers replace it, so it cannot fail there.) ----

#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define GRIDBUF_SANITIZED 1
#endif

namespace {
std::atomic<std::int64_t> failing_new = 0;  // which call from now on fails; 0: none

[[maybe_unused]] bool next_new_fails() {
  if (failing_new.load(std::memory_order_relaxed) == 0) return false;
  return failing_new.fetch_sub(1, std::memory_order_relaxed) == 1;
}
}  // namespace

#ifndef GRIDBUF_SANITIZED
void* operator new(std::size_t length) {
  void* const memory = next_new_fails() ? nullptr : std::malloc(length == 0 ? 1 : length);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void* operator new(std::size_t length, const std::nothrow_t&) noexcept {
  return next_new_fails() ? nullptr : std::malloc(length == 0 ? 1 : length);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
#endif

namespace gridbuf {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr std::int64_t kGiB = std::int64_t{1} << 30;
constexpr std::int64_t kStaggerBytes = 128 << 10;  // the range of starts

// ---- The contract, for every way to be configured. ----

struct Setting {
  std::string_view name;
  HostOptions options;
};

const std::array<Setting, 6> kSettings{{
    {"AsItComes", {}},
    {"CacheOn", {.cache_limit_bytes = 256 * kMiB}},
    {"CacheOff", {.cache_limit_bytes = 0}},
    {"TinyCache", {.cache_limit_bytes = 3 * kMiB}},
    {"SmallPages", {.cache_limit_bytes = 64 * kMiB, .huge_pages = false}},
    {"Poison", {.cache_limit_bytes = 64 * kMiB, .poison = true}},
}};

class LargeContract : public ::testing::TestWithParam<std::tuple<Setting, testing::ContractCheck>> {
};

TEST_P(LargeContract, Holds) {
  const auto& [setting, check] = GetParam();
  HostResource resource(setting.options, nullptr, 0);
  for (const std::string& violation : check.run(resource)) ADD_FAILURE() << violation;
  EXPECT_EQ(resource.statistics().live_blocks, 0);
  EXPECT_EQ(resource.statistics().live_bytes, 0);
}

INSTANTIATE_TEST_SUITE_P(Settings, LargeContract,
                         ::testing::Combine(::testing::ValuesIn(kSettings),
                                            ::testing::ValuesIn(testing::resource_contract())),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param).name) + "_" +
                                  std::string(std::get<1>(info.param).name);
                         });

// ---- A simulated kernel. ----

// Counts, and fails on demand.
class FailingSource final : public PageSource {
 public:
  absl::StatusOr<pages::Mapping> map(std::int64_t length_bytes, PageKind kind) override {
    ++maps;
    if (failing_maps > 0) {
      --failing_maps;
      return make_error(ErrorClass::kMemory, "no pages in this test; advice");
    }
    absl::StatusOr<pages::Mapping> mapping = PageSource::map(length_bytes, kind);
    if (mapping.ok()) mapped_bytes += mapping->length_bytes;
    return mapping;
  }
  void unmap(const pages::Mapping& mapping) noexcept override {
    mapped_bytes -= mapping.length_bytes;
    PageSource::unmap(mapping);
  }
  std::optional<pages::Mapping> resize(const pages::Mapping& mapping,
                                       std::int64_t length_bytes) noexcept override {
    if (fail_resizes) return std::nullopt;
    const std::optional<pages::Mapping> resized = PageSource::resize(mapping, length_bytes);
    if (resized) mapped_bytes += length_bytes - mapping.length_bytes;
    if (length_bytes > mapping.length_bytes) ++growths;
    return resized;
  }
  std::int64_t seconds() noexcept override { return now; }
  absl::Status commit(std::byte* data, std::int64_t total_bytes) override {
    ++commits;
    if (fail_commits) return make_error(ErrorClass::kMemory, "no commit in this test; advice");
    return PageSource::commit(data, total_bytes);
  }
  std::int64_t committable_bytes() override {
    ++readings;
    return committable;
  }

  std::atomic<int> maps = 0;
  std::atomic<int> growths = 0;
  std::atomic<int> failing_maps = 0;
  std::atomic<int> commits = 0;
  bool fail_commits = false;
  bool fail_resizes = false;
  std::atomic<std::int64_t> now = 1000;
  std::atomic<int> readings = 0;
  std::atomic<std::int64_t> committable = 64 * kGiB;
  std::atomic<std::int64_t> mapped_bytes = 0;
};

class LargeBlocks : public ::testing::Test {
 protected:
  LargeBlocks() { EXPECT_TRUE(set_thread_count(2).ok()); }
  ~LargeBlocks() override {
    resource_.reset();
    EXPECT_EQ(source_.mapped_bytes, 0) << "something was never given back to the kernel";
  }

  HostResource& with(const HostOptions& options) {
    resource_ = std::make_unique<HostResource>(options, &source_, 0);
    return *resource_;
  }

  FailingSource source_;
  std::unique_ptr<HostResource> resource_;
};

std::uintptr_t address_of(const Block& block) {
  return reinterpret_cast<std::uintptr_t>(block.data());
}

// How many bytes of the block are in memory, whole pages.
std::int64_t present_bytes(const Block& block) {
  const auto page = static_cast<std::uintptr_t>(system::page_bytes());
  const std::uintptr_t first = address_of(block) / page * page;
  const std::uintptr_t length =
      address_of(block) + static_cast<std::uintptr_t>(block.total_bytes()) - first;
  std::vector<unsigned char> present(length / page + 1);
  if (mincore(reinterpret_cast<void*>(first), length, present.data()) != 0) return -1;
  return system::page_bytes() * std::count_if(present.begin(), present.end(),
                                              [](unsigned char flags) { return (flags & 1) != 0; });
}

// ---- The cache. ----

TEST_F(LargeBlocks, AreKeptForTheNextOne) {
  HostResource& resource = with({.cache_limit_bytes = 64 * kMiB});
  const auto begin_of = [](const Block& block) {
    return address_of(block) - static_cast<std::uintptr_t>(block.info().stagger_bytes);
  };
  std::uintptr_t begin = 0;
  {
    const absl::StatusOr<Block> first = resource.allocate({.total_bytes = 8 * kMiB});
    ASSERT_TRUE(first.ok());
    EXPECT_FALSE(first->info().from_cache);
    begin = begin_of(*first);
  }
  const absl::StatusOr<Block> second = resource.allocate({.total_bytes = 8 * kMiB});
  ASSERT_TRUE(second.ok());
  EXPECT_TRUE(second->info().from_cache);
  EXPECT_EQ(begin_of(*second), begin);
  EXPECT_EQ(source_.maps, 1);
  const HostStatistics found = resource.statistics();
  EXPECT_EQ(found.hits, 1);
  EXPECT_EQ(found.misses, 1);
  EXPECT_EQ(found.live_blocks, 1);
  EXPECT_EQ(found.live_bytes, second->allocation_bytes());
  EXPECT_EQ(found.peak_live_bytes, second->allocation_bytes());
  EXPECT_EQ(found.cached_blocks, 0);
}

TEST_F(LargeBlocks, AreNotKeptWithTheCacheOff) {
  HostResource& resource = with({.cache_limit_bytes = 0});
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(resource.allocate({.total_bytes = 4 * kMiB}).ok());
  EXPECT_EQ(source_.maps, 3);
  EXPECT_EQ(source_.mapped_bytes, 0);
  EXPECT_EQ(resource.statistics().cached_bytes, 0);
}

TEST_F(LargeBlocks, AreKeptUpToTheLimit) {
  HostResource& resource = with({.cache_limit_bytes = 20 * kMiB});
  {
    std::vector<Block> blocks;
    for (int i = 0; i < 5; ++i) blocks.push_back(*resource.allocate({.total_bytes = 8 * kMiB}));
  }
  const HostStatistics found = resource.statistics();
  EXPECT_LE(found.cached_bytes, 20 * kMiB);
  EXPECT_EQ(found.cached_blocks, 2);
  EXPECT_EQ(found.cached_bytes, source_.mapped_bytes);
}

TEST_F(LargeBlocks, AreGivenBackByTrim) {
  HostResource& resource = with({.cache_limit_bytes = 64 * kMiB});
  {
    std::vector<Block> blocks;
    for (int i = 0; i < 3; ++i) blocks.push_back(*resource.allocate({.total_bytes = 8 * kMiB}));
  }
  const std::int64_t cached_bytes = resource.statistics().cached_bytes;
  EXPECT_EQ(resource.trim(cached_bytes - 1), cached_bytes / 3);
  EXPECT_EQ(resource.trim(), cached_bytes / 3 * 2);
  EXPECT_EQ(resource.trim(), 0);
  EXPECT_EQ(source_.mapped_bytes, 0);
}

// Without a limit the cache keeps what is worth keeping, and at most a quarter of the committable
// memory.
TEST_F(LargeBlocks, AreKeptAsTheMachineAllows) {
#ifdef GRIDBUF_SANITIZED
  GTEST_SKIP() << "with a sanitizer the cache is off unless a limit is given";
#endif
  source_.committable = 40 * kMiB;
  HostResource& resource = with({});
  for (int turn = 0; turn < 3; ++turn) {
    ASSERT_TRUE(resource.allocate({.total_bytes = 11 * kMiB}).ok());
    EXPECT_LE(resource.statistics().cached_bytes, 10 * kMiB);
  }
  EXPECT_EQ(resource.statistics().cache_limit_bytes, 10 * kMiB);
  resource.trim();
  for (int turn = 0; turn < 3; ++turn) {
    ASSERT_TRUE(resource.allocate({.total_bytes = 7 * kMiB}).ok());
  }
  EXPECT_EQ(resource.statistics().cached_blocks, 1);
  // Memory becomes short, and the next new block lowers the limit.
  source_.committable = 4 * kMiB;
  resource.trim();
  ASSERT_TRUE(resource.allocate({.total_bytes = 2 * kMiB}).ok());
  EXPECT_EQ(resource.statistics().cached_blocks, 0);
}

TEST_F(LargeBlocks, ReadTheMachineNotMoreOftenThanNeeded) {
  HostResource& resource = with({});
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(resource.allocate({.total_bytes = 2 * kMiB}).ok());
  }
#ifndef GRIDBUF_SANITIZED          // where the cache is off, and the limit is not read
  EXPECT_EQ(source_.readings, 3);  // at the start, and for two blocks until one is kept
#endif
}

// Any lengths, with at most 20 blocks at a time: kept memory is within its bounds at each step, and
// the mapped memory within an eighth of the peak.
TEST_F(LargeBlocks, OfAnyLengthsCostLittleMoreThanTheirPeak) {
#ifdef GRIDBUF_SANITIZED
  GTEST_SKIP() << "with a sanitizer the cache is off unless a limit is given";
#endif
  for (const bool huge_pages : {true, false}) {
    HostResource& resource = with({.huge_pages = huge_pages});
    std::mt19937_64 random(20261128);
    std::vector<Block> blocks(20);
    std::int64_t peak = 0;  // of the bytes asked for
    for (int step = 0; step < 1000; ++step) {
      Block& block = blocks[random() % blocks.size()];
      block = Block();
      const auto total_bytes = static_cast<std::int64_t>(random() % (64 * kMiB));
      if (random() % 8 != 0) block = *resource.allocate({.total_bytes = total_bytes});
      std::int64_t live = 0;
      for (const Block& one : blocks) live += one.total_bytes();
      peak = std::max(peak, live);
      const HostStatistics found = resource.statistics();
      ASSERT_LE(found.cached_bytes + found.live_bytes, found.peak_live_bytes);
      ASSERT_EQ(found.cached_bytes + found.live_bytes, source_.mapped_bytes);
      ASSERT_LE(source_.mapped_bytes, peak + peak / 8 + 20 * 2 * kMiB) << step;
      if (block)
        std::memset(block.data(), 1, static_cast<std::size_t>(std::min(total_bytes, kMiB)));
    }
    const HostStatistics found = resource.statistics();
    EXPECT_GT(found.hits, 8 * found.misses);
    blocks.clear();
    EXPECT_LE(resource.statistics().cached_bytes, found.peak_live_bytes / 3);
    resource_.reset();
  }
}

TEST_F(LargeBlocks, AreGivenBackWhenTheyAreNotUsedAnyMore) {
  HostResource& resource = with({.cache_limit_bytes = 64 * kMiB});
  ASSERT_TRUE(resource.allocate({.total_bytes = 20 * kMiB}).ok());
  const Block other = *resource.allocate({.total_bytes = 30 * kMiB});
  ASSERT_TRUE(resource.allocate({.total_bytes = 20 * kMiB}).ok());
  EXPECT_EQ(resource.statistics().cached_blocks, 1);
  for (int epoch = 0; epoch < 3; ++epoch) {
    source_.now += 60;
    const Block small = *resource.allocate({.total_bytes = 20 * kMiB, .alignment_bytes = 64});
    EXPECT_EQ(small.info().from_cache, true);
  }
  for (int epoch = 0; epoch < 3; ++epoch) {
    source_.now += 60;
    ASSERT_TRUE(resource.allocate_large({.total_bytes = kMiB}, {.huge_pages = false}).ok());
  }
  EXPECT_LE(resource.statistics().cached_bytes, 2 * kMiB);
}

// A time step: fields that stay, and temporary fields of several lengths, some at a time.
TEST_F(LargeBlocks, OfATimeStepTakeNoNewPages) {
#ifdef GRIDBUF_SANITIZED
  GTEST_SKIP() << "with a sanitizer the cache is off unless a limit is given";
#endif
  HostResource& resource = with({});
  std::vector<Block> fields;
  for (int i = 0; i < 3; ++i) fields.push_back(*resource.allocate({.total_bytes = 8 * kMiB}));
  for (const int seconds : {1, 3, 600}) {
    int maps = 0;
    for (int step = 0; step < 20; ++step) {
      std::vector<Block> temporaries;
      for (const std::int64_t length : {8, 8, 3, 30, 8}) {
        temporaries.push_back(*resource.allocate({.total_bytes = length * kMiB}));
        if (length == 3) temporaries.erase(temporaries.begin());
      }
      if (step == 3) maps = source_.maps + source_.growths;
      source_.now += seconds;
    }
    EXPECT_EQ(source_.maps + source_.growths, maps) << seconds;
  }
}

TEST_F(LargeBlocks, GrowFromKeptOnes) {
  HostResource& resource = with({.cache_limit_bytes = 64 * kMiB});
  for (const bool fail : {false, true}) {
    source_.fail_resizes = fail;
    for (const std::int64_t total_bytes : {4 * kMiB, 40 * kMiB}) {
      const Block block = *resource.allocate({.total_bytes = total_bytes, .zeroed = true});
      EXPECT_EQ(std::count(block.data(), block.data() + total_bytes, std::byte{0}), total_bytes);
      std::memset(block.data(), 0xFF, static_cast<std::size_t>(total_bytes));
      if (total_bytes > 4 * kMiB) EXPECT_EQ(block.info().from_cache, !fail);
    }
    resource.trim();
  }
  EXPECT_EQ(resource.statistics().live_bytes, 0);
}

// ---- Where they start. ----

TEST_F(LargeBlocks, StartOnDifferentCacheLines) {
  HostResource& resource = with({.cache_limit_bytes = 0});
  std::set<std::uintptr_t> lines;
  std::vector<Block> blocks;
  for (int i = 0; i < 64; ++i) {
    blocks.push_back(*resource.allocate({.total_bytes = 2 * kMiB, .alignment_bytes = 64}));
    EXPECT_EQ(address_of(blocks.back()) % 64, 0U);
    lines.insert(address_of(blocks.back()) % 4096);
    // Counted from the first page: huge pages begin at multiples of 2 MiB, small pages anywhere.
    const std::int64_t page = blocks.back().info().pages == PageKind::kHuge ? kStaggerBytes : 4096;
    EXPECT_EQ(static_cast<std::int64_t>(address_of(blocks.back())) % page,
              blocks.back().info().stagger_bytes % page);
  }
  EXPECT_EQ(lines.size(), 64U);
}

TEST_F(LargeBlocks, ThatFollowOneAnotherStartFarApart) {
  HostResource& resource = with({.cache_limit_bytes = 0});
  std::vector<Block> blocks;
  std::vector<std::int64_t> starts;
  for (int i = 0; i < 12; ++i) {
    blocks.push_back(*resource.allocate({.total_bytes = 2 * kMiB, .alignment_bytes = 64}));
    starts.push_back(blocks.back().info().stagger_bytes);
  }
  // The distance on a circle: the last byte is next to the first.
  const auto apart = [&](std::size_t one, std::size_t other) {
    const std::int64_t gap = std::abs(starts[one] - starts[other]);
    return std::min(gap, kStaggerBytes - gap);
  };
  for (std::size_t one = 0; one < starts.size(); ++one) {
    for (std::size_t other = 0; other < one; ++other) {
      const std::int64_t least = one - other < 4 ? 19 * 1024 : 2048;
      EXPECT_GE(apart(one, other), least) << other << " and " << one;
    }
  }
}

TEST_F(LargeBlocks, KeepTheAlignmentAtTheirOffset) {
  HostResource& resource = with({.cache_limit_bytes = 64 * kMiB});
  for (const std::int64_t alignment : {3, 24, 64, 100, 128, 4096, 65536, 1 << 20}) {
    std::set<std::uintptr_t> remainders;
    for (int i = 0; i < 5; ++i) {
      const Block block = *resource.allocate(
          {.total_bytes = 3 * kMiB, .alignment_bytes = alignment, .aligned_offset_bytes = 1000});
      EXPECT_EQ((address_of(block) + 1000) % static_cast<std::uintptr_t>(alignment), 0U);
      remainders.insert(address_of(block) % static_cast<std::uintptr_t>(alignment));
      if (alignment > kStaggerBytes) EXPECT_EQ(block.info().stagger_bytes, 0);
    }
    EXPECT_EQ(remainders.size(), 1U) << alignment;
  }
}

// ---- Touched pages. ----

TEST_F(LargeBlocks, OfZerosAreTouchedAtOnce) {
#if __has_feature(thread_sanitizer)
  GTEST_SKIP() << "ThreadSanitizer's own pages are counted, too";
#endif
  HostResource& resource = with({.cache_limit_bytes = 0});
  const Block block = *resource.allocate({.total_bytes = 64 * kMiB, .zeroed = true});
  EXPECT_GE(present_bytes(block), 64 * kMiB);
  EXPECT_EQ(source_.commits, 1);
}

TEST_F(LargeBlocks, OfZerosStayLazyWhereThatIsBetter) {
  HostResource& resource = with({.cache_limit_bytes = 0});
  source_.committable = 8 * 64 * kMiB - 1;
  EXPECT_LT(present_bytes(*resource.allocate({.total_bytes = 64 * kMiB, .zeroed = true})), 8 * kMiB)
      << "more than an eighth of the machine";
  EXPECT_TRUE(resource.allocate({.total_bytes = 8 * kMiB - 1, .zeroed = true}).ok());
  ASSERT_TRUE(set_thread_count(1).ok());
  EXPECT_TRUE(resource.allocate({.total_bytes = 32 * kMiB, .zeroed = true}).ok());
  EXPECT_EQ(source_.commits, 0);
}

TEST_F(LargeBlocks, OfZerosHoldZerosAndWhatIsWritten) {
  HostResource& resource = with({.cache_limit_bytes = 0});
  constexpr std::int64_t kBytes = 128 * kMiB;
  for (const std::int64_t stride_bytes : {std::int64_t{64}, std::int64_t{4096}}) {
    const Block block = *resource.allocate({.total_bytes = kBytes, .zeroed = true});
    std::byte* const data = block.data();
    for (std::int64_t at = 0; at < kBytes; at += stride_bytes) data[at] = std::byte{7};
    std::int64_t wrong = 0;
    for (std::int64_t at = 0; at < kBytes; at += 32) {
      const std::byte expected = at % stride_bytes == 0 ? std::byte{7} : std::byte{0};
      wrong += data[at] == expected ? 0 : 1;
    }
    EXPECT_EQ(wrong, 0);
  }
}

TEST_F(LargeBlocks, OfZerosAreTouchedOnceIfTheyArePopulated) {
#if __has_feature(thread_sanitizer)
  GTEST_SKIP() << "ThreadSanitizer's own pages are counted, too";
#endif
  HostResource& resource = with({.cache_limit_bytes = 0});
  const Block block =
      *resource.allocate({.total_bytes = 128 * kMiB, .zeroed = true, .populate = true});
  EXPECT_GE(present_bytes(block), 128 * kMiB);
  EXPECT_EQ(source_.commits, 1);
}

TEST_F(LargeBlocks, OfUndefinedBytesAreNotTouched) {
  HostResource& resource = with({.cache_limit_bytes = 0});
  EXPECT_LT(present_bytes(*resource.allocate({.total_bytes = 64 * kMiB})), 8 * kMiB);
  EXPECT_EQ(source_.commits, 0);
}

TEST_F(LargeBlocks, OfZerosAreZeroWhateverWasThere) {
  HostResource& resource = with({.cache_limit_bytes = 256 * kMiB});
  // 64 MiB are zeroed by non-temporal stores; odd lengths have heads and tails.
  for (const std::int64_t total_bytes : {3 * kMiB + 1, 40 * kMiB + 7, 64 * kMiB}) {
    for (const std::int64_t offset : {0, 3}) {
      const AllocationRequest request{.total_bytes = total_bytes,
                                      .alignment_bytes = 64,
                                      .aligned_offset_bytes = offset,
                                      .zeroed = true};
      {
        const Block block = *resource.allocate(request);
        std::memset(block.data(), 0xFF, static_cast<std::size_t>(total_bytes));
      }
      const Block block = *resource.allocate(request);
      EXPECT_TRUE(block.info().from_cache);
      EXPECT_EQ(std::count(block.data(), block.data() + total_bytes, std::byte{0}), total_bytes);
    }
  }
}

// ---- Limits and failures. ----

TEST_F(LargeBlocks, AreRefusedBeyondTheLimit) {
  HostResource& resource = with({.cache_limit_bytes = 64 * kMiB, .limit_bytes = 24 * kMiB});
  {
    const Block block = *resource.allocate({.total_bytes = 10 * kMiB});
  }
  const Block first = *resource.allocate({.total_bytes = 15 * kMiB});  // unmaps the kept mapping
  EXPECT_EQ(resource.statistics().cached_bytes, 0);
  const absl::StatusOr<Block> second = resource.allocate({.total_bytes = 10 * kMiB});
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(error_class_of(second.status()), ErrorClass::kMemory);
  EXPECT_NE(second.status().message().find("the limit is 24.0 MiB"), std::string::npos)
      << second.status();
  EXPECT_EQ(resource.statistics().refusals, 1);
  EXPECT_EQ(resource.statistics().live_blocks, 1);
  EXPECT_TRUE(resource.allocate({.total_bytes = 5 * kMiB}).ok());
}

TEST_F(LargeBlocks, TakeTheKeptOnesMemoryBeforeTheyFail) {
  if (pages::kind_for(30 * kMiB, true, system::huge_pages()) == PageKind::kSmall) {
    GTEST_SKIP() << "needs two kinds of pages";
  }
  HostResource& resource = with({.cache_limit_bytes = 64 * kMiB});
  {
    const Block block = *resource.allocate({.total_bytes = 10 * kMiB});
  }
  source_.failing_maps = 1;
  // Of the other kind of pages, which the kept block does not have.
  EXPECT_TRUE(resource.allocate_large({.total_bytes = 30 * kMiB}, {.huge_pages = false}).ok());
  EXPECT_EQ(source_.maps, 3);
  EXPECT_EQ(resource.statistics().refusals, 0);
}

TEST_F(LargeBlocks, FailWithoutATraceWhereTheKernelHasNoPages) {
  HostResource& resource = with({.cache_limit_bytes = 0});
  source_.failing_maps = 2;
  const absl::StatusOr<Block> block = resource.allocate({.total_bytes = 10 * kMiB});
  ASSERT_FALSE(block.ok());
  EXPECT_EQ(error_class_of(block.status()), ErrorClass::kMemory);
  const std::string message(block.status().message());
  EXPECT_NE(message.find("10.0 MiB"), std::string::npos) << message;
  EXPECT_NE(message.find("no pages in this test (large blocks in use: 0 bytes)"), std::string::npos)
      << message;
  HostStatistics wanted;
  wanted.refusals = 1;
  EXPECT_EQ(resource.statistics(), wanted);
}

TEST_F(LargeBlocks, FailWithoutATraceWhereTheyCannotBeCommitted) {
  HostResource& resource = with({.cache_limit_bytes = 0});
  source_.fail_commits = true;
  EXPECT_EQ(
      error_class_of(resource.allocate({.total_bytes = 10 * kMiB, .populate = true}).status()),
      ErrorClass::kMemory);
  EXPECT_EQ(source_.mapped_bytes, 0);
  EXPECT_EQ(resource.statistics().live_blocks, 0);
  // The early touch of zeros is optional: after a failure they stay lazy.
  EXPECT_TRUE(resource.allocate({.total_bytes = 10 * kMiB, .zeroed = true}).ok());
}

TEST_F(LargeBlocks, AreNotPopulatedBeyondWhatTheMachineHas) {
  HostResource& resource = with({.cache_limit_bytes = 64 * kMiB});
  source_.committable = 20 * kMiB;
  const absl::StatusOr<Block> block =
      resource.allocate({.total_bytes = 21 * kMiB, .populate = true});
  EXPECT_EQ(error_class_of(block.status()), ErrorClass::kMemory);
  EXPECT_NE(block.status().message().find("could be committed now"), std::string::npos);
  EXPECT_EQ(source_.maps, 0);
  EXPECT_TRUE(resource.allocate({.total_bytes = 20 * kMiB, .populate = true}).ok());
}

// Every operator new inside an allocation fails in turn: the result is kMemory, and memory does not
// leak.
TEST_F(LargeBlocks, SurviveEveryFailureOfTheHeap) {
#ifdef GRIDBUF_SANITIZED
  GTEST_SKIP() << "a sanitizer's operator new cannot be replaced";
#endif
  for (const bool maps_fail : {false, true}) {
    HostResource& resource = with({.cache_limit_bytes = 64 * kMiB});
    const HostStatistics before = resource.statistics();
    for (std::int64_t n = 1;; ++n) {
      ASSERT_LT(n, 200);
      source_.failing_maps = maps_fail ? 2 : 0;
      failing_new = n;
      absl::StatusOr<Block> block =
          resource.allocate({.total_bytes = 9 * kMiB, .zeroed = true, .populate = true});
      const bool all_were_made = failing_new.exchange(0) > 0;
      if (!block.ok()) {
        ASSERT_EQ(error_class_of(block.status()), ErrorClass::kMemory) << block.status();
      }
      block = absl::UnknownError("dropped");
      resource.trim();
      ASSERT_EQ(resource.statistics().live_bytes, before.live_bytes) << n;
      ASSERT_EQ(source_.mapped_bytes, 0) << n;
      if (all_were_made) break;
    }
    resource_.reset();
  }
}

TEST_F(LargeBlocks, RefuseLengthsThatNoMachineHas) {
  HostResource& resource = with({});
  for (const std::int64_t total_bytes : {std::int64_t{1} << 60, INT64_MAX - 63}) {
    const absl::StatusOr<Block> block = resource.allocate({.total_bytes = total_bytes});
    EXPECT_EQ(error_class_of(block.status()), ErrorClass::kMemory) << total_bytes;
  }
  EXPECT_EQ(error_class_of(resource.allocate({.total_bytes = INT64_MAX - 62}).status()),
            ErrorClass::kValue);
  EXPECT_EQ(source_.maps, 0);
}

TEST_F(LargeBlocks, AreConfiguredAtAnyTime) {
  HostResource& resource = with({.cache_limit_bytes = 64 * kMiB});
  {
    const Block block = *resource.allocate({.total_bytes = 10 * kMiB});
  }
  EXPECT_EQ(resource.statistics().cached_blocks, 1);
  const HostOptions off{.cache_limit_bytes = 0, .huge_pages = false};
  ASSERT_TRUE(resource.configure(off).ok());
  EXPECT_EQ(resource.options(), off);
  EXPECT_EQ(resource.statistics().cached_blocks, 0);
  EXPECT_EQ(resource.allocate({.total_bytes = 10 * kMiB})->info().pages, PageKind::kSmall);
  EXPECT_EQ(error_class_of(resource.configure({.cache_limit_bytes = -1})), ErrorClass::kValue);
  EXPECT_EQ(error_class_of(resource.configure({.limit_bytes = -5})), ErrorClass::kValue);
  EXPECT_EQ(resource.options(), off);
}

// ---- What it costs. ----

// The bound that users can count on: the padded size, one alignment, 2 MiB and 128 KiB for each
// block, and the limit of the cache on top of all of them.
TEST_F(LargeBlocks, CostNoMoreThanTheBound) {
  constexpr std::int64_t kCacheLimit = 100 * kMiB;
  HostResource& resource = with({.cache_limit_bytes = kCacheLimit});
  std::mt19937_64 random(20261121);
  std::vector<std::pair<Block, std::int64_t>> held;  // with its part of the bound
  std::int64_t bound = 0;
  for (int step = 0; step < 3000; ++step) {
    if (random() % 2 == 0 || held.empty()) {
      const AllocationRequest request{
          .total_bytes = 2 * kMiB + static_cast<std::int64_t>(random() % (20 * kMiB)),
          .alignment_bytes = std::int64_t{1} << (random() % 21)};
      held.emplace_back(*resource.allocate(request),
                        request.total_bytes + request.alignment_bytes + 2 * kMiB + kStaggerBytes);
      bound += held.back().second;
    } else {
      std::swap(held[random() % held.size()], held.back());
      bound -= held.back().second;
      held.pop_back();
    }
    ASSERT_LE(source_.mapped_bytes, bound + kCacheLimit) << "step " << step;
  }
}

// The same bound for the kernel's count: resident memory of a child that touches all its memory.
int populate_within_the_bound() {
  constexpr std::int64_t kCacheLimit = 32 * kMiB;
  const auto peak_bytes = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss * 1024;
  };
  HostResource resource({.cache_limit_bytes = kCacheLimit});
  const std::int64_t before = peak_bytes();
  std::int64_t bound = kCacheLimit;
  std::vector<Block> blocks;
  for (int i = 0; i < 10; ++i) {
    const std::int64_t total_bytes = 5 * kMiB + i * 777'777;
    {
      const auto warm = resource.allocate({.total_bytes = total_bytes + kMiB, .populate = true});
    }
    blocks.push_back(
        *resource.allocate({.total_bytes = total_bytes, .alignment_bytes = 128, .populate = true}));
    bound += total_bytes + 128 + 2 * kMiB + kStaggerBytes;
  }
  const std::int64_t cost = peak_bytes() - before;
  std::fprintf(stderr, "%ld bytes of %ld\n", static_cast<long>(cost), static_cast<long>(bound));
  return cost <= bound ? 0 : 1;
}

TEST(LargeBlocksDeathTest, AreNoLargerInMemoryThanTheBound) {
#ifdef GRIDBUF_SANITIZED
  GTEST_SKIP() << "a sanitizer's own memory is counted, too";
#endif
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(std::_Exit(populate_within_the_bound()), ::testing::ExitedWithCode(0), "");
}

// ---- Poison. ----

TEST_F(LargeBlocks, InPoisonModeHoldAnAbsurdPattern) {
  HostResource& resource = with({.poison = true});
  const Block block = *resource.allocate({.total_bytes = 3 * kMiB});
  EXPECT_EQ(std::count(block.data(), block.data() + 3 * kMiB, kPoison), 3 * kMiB);
  const Block zeros = *resource.allocate({.total_bytes = 3 * kMiB, .zeroed = true});
  EXPECT_EQ(std::count(zeros.data(), zeros.data() + 3 * kMiB, std::byte{0}), 3 * kMiB);
}

TEST(PoisonDeathTest, EndsTheProcessAtAUseAfterFree) {
  HostResource resource({.cache_limit_bytes = 64 * kMiB, .poison = true});
  volatile std::byte* stray = nullptr;
  {
    const Block block = *resource.allocate({.total_bytes = 3 * kMiB});
    stray = block.data() + kMiB;
    *stray = std::byte{1};
  }
  EXPECT_DEATH(*stray = std::byte{1}, "");
  EXPECT_DEATH(std::printf("%d", static_cast<int>(*stray)), "");
}

TEST_F(LargeBlocks, InPoisonModeAreUnmappedInTheEnd) {
  HostResource& resource = with({.poison = true});
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(resource.allocate({.total_bytes = 2 * kMiB}).ok());
  EXPECT_LE(source_.mapped_bytes, 33 * 4 * kMiB);
  EXPECT_EQ(resource.statistics().cached_bytes, 0);
  resource.trim();
  EXPECT_EQ(source_.mapped_bytes, 0);
}

TEST(PoisonDeathTest, CoversKeptBlocksUnderAddressSanitizer) {
  if (!poison_is_fatal()) GTEST_SKIP() << "needs AddressSanitizer: run with --config=asan";
  HostResource resource({.cache_limit_bytes = 64 * kMiB});
  volatile std::byte* stray = nullptr;
  {
    stray = resource.allocate({.total_bytes = 3 * kMiB})->data();
  }
  EXPECT_DEATH(*stray = std::byte{1}, "use-after-poison");
  const Block again = *resource.allocate({.total_bytes = 3 * kMiB});
  EXPECT_TRUE(again.info().from_cache);
  std::memset(again.data(), 1, 3 * kMiB);
}

// ---- Threads. ----

TEST_F(LargeBlocks, ServeManyThreads) {
  HostResource& resource = with({.cache_limit_bytes = 24 * kMiB});
  std::atomic<int> damaged = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(static_cast<std::uint64_t>(t));
      for (int i = 0; i < 150; ++i) {
        const auto total_bytes = static_cast<std::int64_t>(2 * kMiB + random() % (4 * kMiB));
        const bool zeroed = i % 3 == 0;
        const Block block = *resource.allocate({.total_bytes = total_bytes, .zeroed = zeroed});
        if (zeroed &&
            (block.data()[0] != std::byte{0} || block.data()[total_bytes - 1] != std::byte{0}))
          ++damaged;
        block.data()[0] = block.data()[total_bytes - 1] = static_cast<std::byte>(t + 1);
        std::this_thread::yield();
        if (block.data()[0] != static_cast<std::byte>(t + 1)) ++damaged;
        if (block.data()[total_bytes - 1] != static_cast<std::byte>(t + 1)) ++damaged;
        if (i % 50 == 0) resource.trim();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(damaged, 0);
  const HostStatistics found = resource.statistics();
  EXPECT_EQ(found.live_blocks, 0);
  EXPECT_EQ(found.hits + found.misses, 600);
  EXPECT_EQ(found.cached_bytes, source_.mapped_bytes);
}

}  // namespace
}  // namespace gridbuf
