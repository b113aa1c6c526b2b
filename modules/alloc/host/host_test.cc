#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"

import gridbuf.alloc;
import gridbuf.alloc.host;
import gridbuf.alloc.testing.contract;
import gridbuf.error;
import gridbuf.system;

// A sanitizer's malloc ends the process where the C library's answers null; the contract is about
// the answer.
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }
extern "C" const char* __tsan_default_options() { return "allocator_may_return_null=1"; }

namespace gridbuf {
namespace {

class HostContract : public ::testing::TestWithParam<testing::ContractCheck> {};

TEST_P(HostContract, Holds) {
  for (const std::string& violation : GetParam().run(host_resource())) ADD_FAILURE() << violation;
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

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr std::int64_t kGiB = std::int64_t{1} << 30;

TEST(HostResource, LeavesLargeZerosToTheFirstTouch) {
#if __has_feature(thread_sanitizer)
  GTEST_SKIP() << "ThreadSanitizer's calloc writes the zeros itself";
#endif
  const absl::StatusOr<Block> block =
      host_resource().allocate({.total_bytes = 256 * kMiB, .alignment_bytes = 64, .zeroed = true});
  ASSERT_TRUE(block.ok()) << block.status();
  EXPECT_LT(present_bytes(*block), 8 * kMiB);
  EXPECT_EQ(block->data()[128 * kMiB], std::byte{0});
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
// A plane of 100 x 64 doubles whose second interior point lies on a cache line, zeroed, shared by
// two exports.
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
  const auto* block = static_cast<const Block*>(owner->get());
  EXPECT_EQ((reinterpret_cast<std::uintptr_t>(block->data()) + 16) % 64, 0U);
}

TEST(HostResource, CostsLittleMoreThanWasAsked) {
  const absl::StatusOr<Block> block =
      host_resource().allocate({.total_bytes = 1000, .alignment_bytes = 64});
  ASSERT_TRUE(block.ok());
  EXPECT_EQ(block->allocation_bytes(), 1063);
}

// Without the check the kernel would find no pages half way, and its out-of-memory killer would end
// the process.
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
  EXPECT_EXIT(std::_Exit(allocate_under_a_limit()), ::testing::ExitedWithCode(0), "");
}

TEST(HostResource, ServesAChildAfterFork) {
  EXPECT_EXIT(
      {
        const auto block = host_resource().allocate({.total_bytes = kMiB, .zeroed = true});
        std::_Exit(block.ok() ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace gridbuf
