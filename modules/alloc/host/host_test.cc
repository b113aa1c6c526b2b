#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"

import gridbuf.alloc;
import gridbuf.alloc.host;
import gridbuf.alloc.testing;
import gridbuf.base;

namespace gridbuf {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr std::int64_t kGiB = std::int64_t{1} << 30;

// The process's own host memory.
class HostContract : public ::testing::TestWithParam<testing::ContractCheck> {};

TEST_P(HostContract, Holds) {
  for (const std::string& violation : GetParam().run(host_resource())) ADD_FAILURE() << violation;
}

TEST_P(HostContract, HoldsWithATinyCache) {
  HostResource resource({.cache_limit_bytes = 3 * kMiB});
  for (const std::string& violation : GetParam().run(resource)) ADD_FAILURE() << violation;
}

TEST_P(HostContract, HoldsWithTheCacheOff) {
  HostResource resource({.cache_limit_bytes = 0});
  for (const std::string& violation : GetParam().run(resource)) ADD_FAILURE() << violation;
}

TEST_P(HostContract, HoldsInPoisonMode) {
  HostResource resource({.poison = true});
  for (const std::string& violation : GetParam().run(resource)) ADD_FAILURE() << violation;
}

INSTANTIATE_TEST_SUITE_P(Host, HostContract, ::testing::ValuesIn(testing::resource_contract()),
                         [](const auto& info) { return std::string(info.param.name); });

// How many bytes of the block are in memory, whole pages.
std::int64_t present_bytes(const Block& block) {
  const std::int64_t page = sysconf(_SC_PAGESIZE);
  const auto address = reinterpret_cast<std::uintptr_t>(block.data());
  const std::uintptr_t first =
      address / static_cast<std::uintptr_t>(page) * static_cast<std::uintptr_t>(page);
  const std::uintptr_t length = address + static_cast<std::uintptr_t>(block.total_bytes()) - first;
  std::vector<unsigned char> present(length / static_cast<std::uintptr_t>(page) + 1);
  if (mincore(reinterpret_cast<void*>(first), length, present.data()) != 0) return -1;
  return page * std::count_if(present.begin(), present.end(),
                              [](unsigned char flags) { return (flags & 1) != 0; });
}

// An untouched field that is a large part of the machine's memory is free, with and without zeros.
TEST(HostResource, LeavesTheLargestZerosToTheFirstTouch) {
  const std::int64_t total_bytes = system::committable_bytes() / 4;
  const absl::StatusOr<Block> block =
      host_resource().allocate({.total_bytes = total_bytes, .alignment_bytes = 64, .zeroed = true});
  ASSERT_TRUE(block.ok()) << block.status();
  EXPECT_LT(present_bytes(*block), 8 * kMiB);
  EXPECT_EQ(block->data()[total_bytes / 2], std::byte{0});
}

TEST(HostResource, GivesSeparatePagesOnlyToLargeBlocks) {
  const Block small = *host_resource().allocate({.total_bytes = kLargeBlockBytes - 1});
  EXPECT_EQ(small.info().pages, PageKind::kShared);
  EXPECT_EQ(small.info().resource_name, "host");
  const Block large = *host_resource().allocate({.total_bytes = kLargeBlockBytes});
  EXPECT_NE(large.info().pages, PageKind::kShared);
  EXPECT_EQ(large.info().resource_name, "host");
}

TEST(HostResource, SaysWhichPagesLargeBlocksGet) {
  const std::string mode(system::to_string(system::huge_pages().mode));
  const std::string text = HostResource().page_text();
  EXPECT_NE(text.find(" pages: the system's setting is " + mode), std::string::npos) << text;
  const std::string small = HostResource({.huge_pages = false}).page_text();
  EXPECT_EQ(small.rfind("small pages: ", 0), 0U) << small;
}

TEST(HostResource, FillsFreshBytesInPoisonMode) {
  HostResource resource({.poison = true});
  for (const std::int64_t total_bytes : {100L, 3 * kMiB}) {
    const Block block = *resource.allocate({.total_bytes = total_bytes});
    EXPECT_EQ(std::count(block.data(), block.data() + total_bytes, kPoison), total_bytes);
  }
}

TEST(HostResource, PopulateCommitsEveryPageNow) {
  const absl::StatusOr<Block> block = host_resource().allocate(
      {.total_bytes = 32 * kMiB, .alignment_bytes = 100, .populate = true});
  ASSERT_TRUE(block.ok()) << block.status();
  EXPECT_GE(present_bytes(*block), 32 * kMiB);
}

TEST(HostResource, ServesThreeGibibytesToTheLastByte) {
  const absl::StatusOr<Block> block = host_resource().allocate(
      {.total_bytes = 3 * kGiB, .alignment_bytes = 128, .aligned_offset_bytes = 24});
  ASSERT_TRUE(block.ok()) << block.status();
  block->data()[0] = std::byte{1};
  block->data()[3 * kGiB - 1] = std::byte{2};
  EXPECT_EQ(block->data()[0], std::byte{1});
  EXPECT_EQ(block->data()[3 * kGiB - 1], std::byte{2});
}

// [example]
// A zeroed plane of 100 x 64 doubles with its second interior point on a cache line, shared by two
// exports.
absl::StatusOr<Owner> aligned_plane() {
  absl::StatusOr<Block> block = host_resource().allocate({.total_bytes = 100 * 64 * 8,
                                                          .alignment_bytes = 64,
                                                          .aligned_offset_bytes = 2 * 8,
                                                          .zeroed = true});
  if (!block.ok()) return block.status();
  return share(*std::move(block));
}
// [/example]

TEST(Example, OfTheReadme) {
  const absl::StatusOr<Owner> owner = aligned_plane();
  ASSERT_TRUE(owner.ok());
  EXPECT_EQ((reinterpret_cast<std::uintptr_t>(owner->get()) + 16) % 64, 0U);
}

TEST(HostResource, CostsLittleMoreThanWasAsked) {
  const absl::StatusOr<Block> block =
      host_resource().allocate({.total_bytes = 1000, .alignment_bytes = 64});
  ASSERT_TRUE(block.ok());
  EXPECT_GE(block->allocation_bytes(), 1063);
  EXPECT_LE(block->allocation_bytes(), 1063 + 64);
}

// Without the check the kernel would run out of pages half way, and its out-of-memory killer would
// end the process.
TEST(HostResource, RefusesToPopulateMoreThanTheMachineHas) {
  const std::int64_t committable = system::committable_bytes();
  const absl::StatusOr<Block> block =
      host_resource().allocate({.total_bytes = committable + kGiB, .populate = true});
  ASSERT_FALSE(block.ok());
  EXPECT_EQ(error_class_of(block.status()), ErrorClass::kMemory);
  EXPECT_NE(block.status().message().find("could be committed now"), std::string::npos)
      << block.status();
}

std::int64_t address_space_bytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  long pages = 0;
  if (file == nullptr || std::fscanf(file, "%ld", &pages) != 1) std::abort();
  std::fclose(file);
  return pages * sysconf(_SC_PAGESIZE);
}

// In a child with an address-space limit: 0 if the limit became a kMemory status and the resource
// went on.
int allocate_under_a_limit() {
  const auto limit = static_cast<rlim_t>(address_space_bytes() + 64 * kMiB);
  const rlimit limits{limit, limit};
  if (setrlimit(RLIMIT_AS, &limits) != 0) return 2;
  const absl::StatusOr<Block> block = host_resource().allocate({.total_bytes = kGiB});
  if (block.ok() || error_class_of(block.status()) != ErrorClass::kMemory) return 3;
  return host_resource().allocate({.total_bytes = kMiB}).ok() ? 0 : 4;
}

TEST(HostResourceDeathTest, TurnsAnAddressSpaceLimitIntoAStatus) {
  if (std::getenv("GRIDBUF_EMULATED") != nullptr) {
    GTEST_SKIP() << "the emulator does not limit the memory of its program";
  }
  EXPECT_EXIT(std::_Exit(allocate_under_a_limit()), ::testing::ExitedWithCode(0), "");
}

// In a child after fork: the cache is empty, and memory works.
int use_memory_in_a_child() {
  if (host_resource().statistics().cached_blocks != 0) return 1;
  for (int i = 0; i < 3; ++i) {
    const auto block = host_resource().allocate({.total_bytes = 10 * kMiB, .zeroed = true});
    if (!block.ok()) return 2;
    for (std::int64_t at = 0; at < 10 * kMiB; at += 4096) {
      if (block->data()[at] != std::byte{0}) return 3;
    }
    std::fill_n(block->data(), 10 * kMiB, std::byte{0xFF});
  }
  return 0;
}

// The process's memory with a cache, in every build; the destructor restores the setting.
class WithCache {
 public:
  WithCache() : before_(host_resource().options()) {
    EXPECT_TRUE(host_resource().configure({.cache_limit_bytes = 256 * kMiB}).ok());
  }
  ~WithCache() { EXPECT_TRUE(host_resource().configure(before_).ok()); }

 private:
  HostOptions before_;
};

TEST(HostResourceFork, LeavesTheKeptBlocksToTheParent) {
  const WithCache cache;
  const Block held = *host_resource().allocate({.total_bytes = 4 * kMiB});
  std::fill_n(held.data(), 4 * kMiB, std::byte{7});
  {
    const Block block = *host_resource().allocate({.total_bytes = 10 * kMiB});
  }
  ASSERT_EQ(host_resource().statistics().cached_blocks, 1);
  const pid_t child = fork();
  if (child == 0) {
    if (held.data()[4 * kMiB - 1] != std::byte{7}) std::_Exit(4);
    std::_Exit(use_memory_in_a_child());
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(host_resource().statistics().cached_blocks, 1);
  EXPECT_TRUE(host_resource().allocate({.total_bytes = 10 * kMiB})->info().from_cache);
}

// A child has the zeros of its parent. Later writes of parent and child are separate.
TEST(HostResourceFork, GivesBothTheZerosOfTheParent) {
#if __has_feature(thread_sanitizer)
  GTEST_SKIP() << "ThreadSanitizer allows no new threads in a child of a process with threads";
#endif
  constexpr std::int64_t kBytes = 256 * kMiB;
  for (int i = 0; i < 5; ++i) {
    absl::StatusOr<Block> block = host_resource().allocate({.total_bytes = kBytes, .zeroed = true});
    ASSERT_TRUE(block.ok());
    block->data()[kBytes / 2] = std::byte{5};
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);  // for a lock that is never opened
      const bool kept = block->data()[kBytes / 2] == std::byte{5};
      const bool zero = block->data()[kBytes - 1] == std::byte{0};
      const int failure = use_memory_in_a_child();
      *block = Block();
      std::_Exit(kept && zero ? failure : 4);
    }
    block->data()[kBytes - 1] = std::byte{6};
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(block->data()[kBytes - 2], std::byte{0});
  }
}

// Forks during allocations of other threads: a child must never find a taken lock or half-written
// metadata.
TEST(HostResourceFork, MayHappenWhileOtherThreadsAllocate) {
#if __has_feature(thread_sanitizer)
  GTEST_SKIP() << "ThreadSanitizer allows no new threads in a child of a process with threads";
#endif
  const WithCache cache;
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&stop, t] {
      while (!stop) {
        const auto block = host_resource().allocate({.total_bytes = (2 + t) * kMiB});
        if (!block.ok()) std::abort();
        block->data()[0] = std::byte{1};
      }
    });
  }
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);  // for a lock that stays closed
      std::_Exit(use_memory_in_a_child());
    }
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << "child " << i;
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

// In a child with an address-space limit: lack of memory empties the cache, for blocks of any
// length.
int take_the_cache_back() {
  HostResource& host = host_resource();
  if (!host.configure({.cache_limit_bytes = kGiB}).ok()) return 2;
  const auto limit = static_cast<rlim_t>(address_space_bytes() + 300 * kMiB);
  const rlimit limits{limit, limit};
  if (setrlimit(RLIMIT_AS, &limits) != 0) return 3;
  {
    const auto block = host.allocate({.total_bytes = 200 * kMiB});
  }
  if (host.statistics().cached_blocks != 1) return 4;
  if (!host.allocate({.total_bytes = 250 * kMiB}).ok()) return 5;  // does not fit with the cache
  if (host.statistics().cached_blocks != 1) return 6;
  std::vector<Block> small;
  while (host.statistics().cached_blocks > 0) {
    absl::StatusOr<Block> block = host.allocate({.total_bytes = kLargeBlockBytes - 1});
    if (!block.ok()) return 7;  // the cache was not emptied for it
    small.push_back(*std::move(block));
  }
  return 0;
}

TEST(HostResourceDeathTest, GivesTheCacheUpBeforeItRefuses) {
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  GTEST_SKIP() << "a sanitizer maps memory for itself, and ends without";
#endif
  if (std::getenv("GRIDBUF_EMULATED") != nullptr) {
    GTEST_SKIP() << "the emulator does not limit the memory of its program";
  }
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(std::_Exit(take_the_cache_back()), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace gridbuf
