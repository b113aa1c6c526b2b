#include <csignal>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <sys/wait.h>
#include <unistd.h>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"

import gridbuf.alloc;
import gridbuf.alloc.host;
import gridbuf.base;

namespace gridbuf {
namespace {

const AllocationRequest kRequest{
    .total_bytes = 5 << 20, .alignment_bytes = 1 << 16, .aligned_offset_bytes = 1000};

Block made(MemoryResource& resource, const AllocationRequest& request = kRequest) {
  absl::StatusOr<Block> block = resource.allocate(request);
  EXPECT_TRUE(block.ok()) << block.status().message();
  return *std::move(block);
}

std::uintptr_t aligned_place(const Block& block) {
  return reinterpret_cast<std::uintptr_t>(block.data() + kRequest.aligned_offset_bytes);
}

TEST(SharedMemory, IsTheSameAtEachAddressWithTheSameAlignment) {
  const Block one = made(shared_resource());
  SharedMemory attached(shared_handle(one.data()));
  const Block other = made(attached);
  EXPECT_NE(one.data(), other.data());
  for (const Block* block : {&one, &other}) EXPECT_EQ(aligned_place(*block) % (1 << 16), 0U);
  EXPECT_EQ(other.data()[123], std::byte{0});
  one.data()[123] = std::byte{7};
  EXPECT_EQ(other.data()[123], std::byte{7});
  other.data()[(5 << 20) - 1] = std::byte{9};
  EXPECT_EQ(one.data()[(5 << 20) - 1], std::byte{9});
  EXPECT_EQ(shared_handle(other.data()).inode, shared_handle(one.data()).inode);
}

TEST(SharedMemory, LivesAsLongAsOneHasIt) {
  Block one = made(shared_resource());
  const SharedHandle first = shared_handle(one.data());
  SharedMemory attached(first);
  const Block other = made(attached);
  other.data()[5] = std::byte{1};
  one = Block();
  EXPECT_EQ(other.data()[5], std::byte{1});
  SharedMemory gone(first);
  EXPECT_EQ(error_class_of(gone.allocate(kRequest).status()), ErrorClass::kBuffer);
  SharedMemory again(shared_handle(other.data()));
  EXPECT_EQ(made(again).data()[5], std::byte{1});
}

TEST(SharedMemory, AChildThatIsKilledLeavesWhatItWrote) {
  const Block one = made(shared_resource());
  const pid_t child = fork();
  if (child == 0) {
    one.data()[1] = std::byte{3};
    raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(one.data()[1], std::byte{3});
}

TEST(SharedMemory, AnotherRequestIsAnError) {
  const Block one = made(shared_resource());
  SharedMemory attached(shared_handle(one.data()));
  EXPECT_EQ(error_class_of(attached.allocate({.total_bytes = 1}).status()), ErrorClass::kValue);
  EXPECT_EQ(error_class_of(attached.allocate({.total_bytes = 50 << 20}).status()),
            ErrorClass::kValue);
  SharedHandle wrong = shared_handle(one.data());
  wrong.inode += 1;
  EXPECT_EQ(error_class_of(SharedMemory(wrong).allocate(kRequest).status()), ErrorClass::kBuffer);
  wrong = {.process_id = getpid(), .descriptor = 1 << 20};
  EXPECT_EQ(error_class_of(SharedMemory(wrong).allocate(kRequest).status()), ErrorClass::kBuffer);
  const absl::StatusOr<Block> odd =
      shared_resource().allocate({.total_bytes = 100, .alignment_bytes = 3});
  EXPECT_EQ(error_class_of(odd.status()), ErrorClass::kValue);
}

TEST(SharedMemory, OfNoBytesIsABlock) {
  const Block one = made(shared_resource(), {.total_bytes = 0, .populate = true});
  EXPECT_NE(one.data(), nullptr);
  SharedMemory attached(shared_handle(one.data()));
  EXPECT_NE(made(attached, {.total_bytes = 0}).data(), one.data());
}

}  // namespace
}  // namespace gridbuf
