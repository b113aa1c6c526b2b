#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"

import gridbuf.alloc;
import gridbuf.alloc.host;
import gridbuf.base;

namespace gridbuf {
namespace {

constexpr std::int64_t kAlignmentBytes = 1 << 16;
const AllocationRequest kRequest{
    .total_bytes = 5 << 20, .alignment_bytes = kAlignmentBytes, .aligned_offset_bytes = 1000};

Block made(const AllocationRequest& request = kRequest) {
  absl::StatusOr<Block> block = shared_resource().allocate(request);
  EXPECT_TRUE(block.ok()) << block.status().message();
  return *std::move(block);
}

Block attached(const SharedHandle& handle) {
  absl::StatusOr<Block> block = attach_shared(handle);
  EXPECT_TRUE(block.ok()) << block.status().message();
  return *std::move(block);
}

TEST(SharedMemory, HasTheSameBytesAndAlignmentAtEachAddress) {
  const Block one = made();
  const SharedPlace place = *shared_place(one.data());
  const Block all = attached(place.handle);
  std::byte* const other = all.data() + place.offset_bytes;
  EXPECT_NE(one.data(), other);
  for (std::byte* const block : {one.data(), other}) {
    EXPECT_EQ((reinterpret_cast<std::uintptr_t>(block) + 1000) % kAlignmentBytes, 0U);
  }
  EXPECT_EQ(other[123], std::byte{0});
  one.data()[123] = std::byte{7};
  EXPECT_EQ(other[123], std::byte{7});
  other[(5 << 20) - 1] = std::byte{9};
  EXPECT_EQ(one.data()[(5 << 20) - 1], std::byte{9});
  EXPECT_EQ(shared_place(other + 8)->handle.inode, place.handle.inode);
  EXPECT_EQ(shared_place(other + 8)->offset_bytes, place.offset_bytes + 8);
  int local = 0;
  EXPECT_FALSE(shared_place(&local).has_value());
  EXPECT_FALSE(shared_place(nullptr).has_value());
}

TEST(SharedMemory, LivesAsLongAsOneHasIt) {
  Block one = made();
  const SharedHandle handle = shared_place(one.data())->handle;
  const Block other = attached(handle);
  other.data()[5] = std::byte{1};
  one = Block();
  EXPECT_EQ(other.data()[5], std::byte{1});
  EXPECT_EQ(error_class_of(attach_shared(handle).status()), ErrorClass::kBuffer);
  EXPECT_EQ(attached(shared_place(other.data())->handle).data()[5], std::byte{1});
}

TEST(SharedMemory, AChildThatIsKilledLeavesWhatItWrote) {
  const Block one = made();
  const pid_t child = fork();
  if (child == 0) {
    one.data()[1] =
        shared_place(one.data())->handle.process_id == getpid() ? std::byte{3} : std::byte{4};
    raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(one.data()[1], std::byte{3});
}

TEST(SharedMemory, WhatIsNotThereIsAnError) {
  const Block one = made();
  const SharedHandle right = shared_place(one.data())->handle;
  std::vector<SharedHandle> wrong(5, right);
  wrong[0].inode += 1;
  wrong[1].descriptor = 1 << 20;
  wrong[2].process_id = -1;
  wrong[3].length_bytes += 4096;
  wrong[4].descriptor = -1;
  for (const SharedHandle& handle : wrong) {
    EXPECT_EQ(error_class_of(attach_shared(handle).status()), ErrorClass::kBuffer);
  }
  const absl::StatusOr<Block> odd =
      shared_resource().allocate({.total_bytes = 100, .alignment_bytes = 3});
  EXPECT_EQ(error_class_of(odd.status()), ErrorClass::kValue);
}

TEST(SharedMemory, OfNoBytesIsABlock) {
  const Block one = made({.total_bytes = 0, .populate = true});
  EXPECT_NE(one.data(), nullptr);
  EXPECT_TRUE(shared_place(one.data()).has_value());
}

TEST(SharedMemory, ThreadsMakeAndEndIt) {
  std::vector<std::thread> threads;
  for (int n = 0; n < 4; ++n) {
    threads.emplace_back([] {
      for (int step = 0; step < 200; ++step) {
        const Block one = made({.total_bytes = 100});
        const Block other = attached(shared_place(one.data())->handle);
        one.data()[0] = static_cast<std::byte>(step);
        EXPECT_EQ(*(other.data() + shared_place(one.data())->offset_bytes), one.data()[0]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace gridbuf
