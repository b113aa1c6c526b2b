#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"

import gridbuf.alloc;
import gridbuf.alloc.host;
import gridbuf.alloc.testing;
import gridbuf.base;
import gridbuf.layout;
import gridbuf.layout.view;

namespace gridbuf::testing {
namespace {

std::string name_of(const ::testing::TestParamInfo<ContractCheck>& info) {
  return std::string(info.param.name);
}

class AdaptorContract : public ::testing::TestWithParam<ContractCheck> {
 protected:
  static void expect_holds(MemoryResource& resource) {
    for (const std::string& violation : GetParam().run(resource)) ADD_FAILURE() << violation;
  }
};

TEST_P(AdaptorContract, HoldsForCounting) {
  CountingResource resource(host_resource());
  expect_holds(resource);
  EXPECT_EQ(resource.counts().live_blocks, 0);
  EXPECT_EQ(resource.counts().live_bytes, 0);
}

TEST_P(AdaptorContract, HoldsForFailingThatDoesNot) {
  FailingResource resource(host_resource(), 0);
  expect_holds(resource);
}

TEST_P(AdaptorContract, HoldsForAStackOfAll) {
  CountingResource counting(host_resource());
  FailingResource failing(counting, 0);
  expect_holds(failing);
  EXPECT_EQ(failing.name(), "failing(counting(host))");
  EXPECT_EQ(counting.counts().live_blocks, 0);
}

INSTANTIATE_TEST_SUITE_P(Adaptors, AdaptorContract, ::testing::ValuesIn(resource_contract()),
                         name_of);

TEST(CountingResource, CountsBlocksBytesAndThePeak) {
  CountingResource resource(host_resource());
  Block first = *resource.allocate({.total_bytes = 100});
  {
    const Block second = *resource.allocate({.total_bytes = 50});
    EXPECT_EQ(resource.counts(), (AllocationCounts{2, 0, 2, 150, 150}));
  }
  EXPECT_EQ(resource.counts(), (AllocationCounts{2, 0, 1, 100, 150}));
  EXPECT_FALSE(resource.allocate({.total_bytes = -1}).ok());
  first = Block();
  EXPECT_EQ(resource.counts(), (AllocationCounts{2, 1, 0, 0, 150}));
}

TEST(FailingResource, FailsTheNthCallOnly) {
  FailingResource resource(host_resource(), 2);
  EXPECT_TRUE(resource.allocate({.total_bytes = 1}).ok());
  const absl::StatusOr<Block> second = resource.allocate({.total_bytes = 1});
  EXPECT_EQ(error_class_of(second.status()), ErrorClass::kMemory);
  EXPECT_NE(second.status().message().find("call 2 was made to fail"), std::string::npos);
  EXPECT_TRUE(resource.allocate({.total_bytes = 1}).ok());
  EXPECT_EQ(resource.calls(), 3);
}

TEST(FailingResource, FailsARangeOfCalls) {
  FailingResource resource(host_resource(), 1, 2);
  EXPECT_FALSE(resource.allocate({.total_bytes = 1}).ok());
  EXPECT_FALSE(resource.allocate({.total_bytes = 1}).ok());
  EXPECT_TRUE(resource.allocate({.total_bytes = 1}).ok());
}

// [example]
// Runs `operation` with its first, second, … allocation failing, until it succeeds. Each failure
// must be reported and must not leak. Returns the number of allocations of the operation.
template <class Operation>
std::int64_t fail_each_allocation(const Operation& operation) {
  CountingResource counting(host_resource());
  for (std::int64_t n = 1;; ++n) {
    FailingResource failing(counting, n);
    const absl::Status status = operation(failing);
    EXPECT_EQ(counting.counts().live_blocks, 0);
    if (status.ok()) return n - 1;
    EXPECT_EQ(error_class_of(status), ErrorClass::kMemory);
  }
}
// [/example]

absl::Status allocate_three(MemoryResource& resource) {
  const absl::StatusOr<Block> first = resource.allocate({.total_bytes = 10});
  if (!first.ok()) return first.status();
  const absl::StatusOr<Block> second = resource.allocate({.total_bytes = 20});
  if (!second.ok()) return second.status();
  return resource.allocate({.total_bytes = 30}).status();
}

TEST(Example, OfTheReadme) { EXPECT_EQ(fail_each_allocation(&allocate_three), 3); }

// 3 rows of 2 elements of 4 bytes in rows of 12: 4 bytes of padding a row, the last row's included.
const StridedView kPadded{.shape = {3, 2}, .strides_bytes = {12, 4}, .itemsize_bytes = 4};

TEST(PaddingGuard, GuardsTheBytesOfNoElement) {
  const Block block = *host_resource().allocate({.total_bytes = 36, .zeroed = true});
  const PaddingGuard guard(block.data(), 36, kPadded);
  EXPECT_EQ(guard.padding_bytes(), 12);
  for (const int used : {0, 7, 12, 19, 24, 31}) block.data()[used] = std::byte{1};
  EXPECT_TRUE(guard.intact());
}

TEST(PaddingGuard, SeesAWriteIntoAnyPaddingByte) {
  if (poison_is_fatal()) GTEST_SKIP() << "AddressSanitizer ends the process first: see below";
  const Block block = *host_resource().allocate({.total_bytes = 36, .zeroed = true});
  for (const int padding : {8, 11, 20, 23, 32, 35}) {
    const PaddingGuard guard(block.data(), 36, kPadded);
    block.data()[padding] = ~block.data()[padding];
    EXPECT_FALSE(guard.intact()) << padding;
  }
}

TEST(PaddingGuardDeathTest, MakesTouchingPaddingFatalUnderAddressSanitizer) {
  if (!poison_is_fatal()) GTEST_SKIP() << "needs AddressSanitizer: run with --config=asan";
  const Block block = *host_resource().allocate({.total_bytes = 48, .zeroed = true});
  const StridedView wide{.shape = {3, 2}, .strides_bytes = {16, 4}, .itemsize_bytes = 4};
  const PaddingGuard guard(block.data(), 48, wide);
  for (const int padding : {8, 15, 24, 31, 40, 47}) {
    volatile std::byte* stray = block.data() + padding;
    EXPECT_DEATH(*stray = std::byte{0}, "use-after-poison") << padding;
    EXPECT_DEATH(std::printf("%d", static_cast<int>(*stray)), "use-after-poison") << padding;
  }
}

TEST(PaddingGuard, GuardsEverythingOfAnEmptyView) {
  const Block block = *host_resource().allocate({.total_bytes = 16});
  const StridedView empty{.shape = {0, 3}, .strides_bytes = {24, 8}, .itemsize_bytes = 8};
  EXPECT_EQ(PaddingGuard(block.data(), 16, empty).padding_bytes(), 16);
}

TEST(PaddingGuard, GuardsNothingOfADenseView) {
  const Block block = *host_resource().allocate({.total_bytes = 16});
  const StridedView dense{
      .shape = {2}, .strides_bytes = {-8}, .offset_bytes = 8, .itemsize_bytes = 8};
  EXPECT_EQ(PaddingGuard(block.data(), 16, dense).padding_bytes(), 0);
}

}  // namespace
}  // namespace gridbuf::testing
