#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"

import gridbuf.alloc;
import gridbuf.alloc.host;
import gridbuf.base;

namespace gridbuf {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

std::unique_ptr<Workspace> workspace(std::int64_t limit_bytes) {
  absl::StatusOr<std::unique_ptr<Workspace>> made = Workspace::reserve(limit_bytes);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return *std::move(made);
}

std::uintptr_t number_of(const std::byte* address) {
  return reinterpret_cast<std::uintptr_t>(address);
}

TEST(Workspace, CommitsWhatIsTouched) {
  const auto space = workspace(std::int64_t{1} << 33);
  EXPECT_EQ(space->committed_bytes(), 0);
  const absl::StatusOr<std::byte*> block = space->push(5 * kMiB);
  ASSERT_TRUE(block.ok());
  std::fill_n(*block, 5 * kMiB, std::byte{1});
  EXPECT_GE(space->committed_bytes(), 5 * kMiB);
  EXPECT_LE(space->committed_bytes(), 8 * kMiB);
  space->trim();
  EXPECT_EQ(std::count(*block, *block + 5 * kMiB, std::byte{1}), 5 * kMiB) << "it is in use";
  EXPECT_TRUE(space->pop(*block).ok());
  EXPECT_GE(space->trim(), 5 * kMiB);
  EXPECT_EQ(space->committed_bytes(), 0);
  EXPECT_EQ(space->peak_bytes(), 5 * kMiB);
}

TEST(Workspace, BlocksAreAlignedAndDoNotOverlap) {
  std::mt19937 random(1);
  const auto space = workspace(4 * kMiB);
  struct Held {
    std::byte* data;
    std::int64_t bytes;
    std::byte value;
  };
  std::vector<Held> held;
  std::int64_t peak = 0;
  for (int step = 0; step < 20000; ++step) {
    if (random() % 2 == 0) {
      const auto bytes = static_cast<std::int64_t>(random() % 100000);
      const std::int64_t alignment = std::int64_t{1} << (random() % 16);
      const absl::StatusOr<std::byte*> block = space->push(bytes, alignment);
      if (!block.ok()) {
        EXPECT_EQ(error_class_of(block.status()), ErrorClass::kMemory);
        const std::int64_t top =
            held.empty() ? 0 : held.back().data + held.back().bytes - space->data();
        EXPECT_GT(top + alignment + bytes, 4 * kMiB);
        continue;
      }
      EXPECT_EQ(number_of(*block) % static_cast<std::uintptr_t>(alignment), 0U);
      const auto value = static_cast<std::byte>(random());
      std::fill_n(*block, bytes, value);
      held.push_back({*block, bytes, value});
      peak = std::max(peak, *block + bytes - space->data());
    } else if (!held.empty()) {
      const Held last = held.back();
      EXPECT_EQ(std::count(last.data, last.data + last.bytes, last.value), last.bytes);
      EXPECT_FALSE(space->pop(last.data + 1).ok());
      ASSERT_TRUE(space->pop(last.data).ok());
      held.pop_back();
    }
  }
  EXPECT_EQ(space->peak_bytes(), peak);
}

TEST(Workspace, ThreadsPushAtOnce) {
  const auto space = workspace(64 * kMiB);
  std::vector<std::thread> threads;
  for (int n = 0; n < 4; ++n) {
    threads.emplace_back([&] {
      for (int step = 0; step < 2000; ++step) EXPECT_TRUE(space->push(64).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(space->peak_bytes(), 4 * 2000 * 64);
}

TEST(Workspace, PoisonModeOverwritesWhatIsLeft) {
  HostResource& resource = host_resource();
  const HostOptions before = resource.options();
  ASSERT_TRUE(resource.configure({.poison = true}).ok());
  const auto space = workspace(kMiB);
  const absl::StatusOr<std::byte*> block = space->push(100);
  ASSERT_TRUE(block.ok());
  EXPECT_EQ(std::count(*block, *block + 100, kPoison), 100);
  **block = std::byte{1};
  EXPECT_TRUE(space->pop(*block).ok());
  ASSERT_TRUE(space->push(10).ok());
  EXPECT_EQ(*space->data(), kPoison);
  EXPECT_TRUE(resource.configure(before).ok());
}

TEST(Workspace, RefusesWhatItCannotHave) {
  for (const std::int64_t bytes : {std::int64_t{0}, std::int64_t{-1}, INT64_MAX}) {
    EXPECT_EQ(error_class_of(Workspace::reserve(bytes).status()), ErrorClass::kValue);
  }
  EXPECT_EQ(error_class_of(Workspace::reserve(std::int64_t{1} << 62).status()),
            ErrorClass::kMemory);
  const auto space = workspace(100);
  EXPECT_EQ(error_class_of(space->push(101).status()), ErrorClass::kMemory);
  EXPECT_EQ(error_class_of(space->push(INT64_MAX).status()), ErrorClass::kMemory);
  EXPECT_EQ(error_class_of(space->push(-1).status()), ErrorClass::kValue);
  EXPECT_EQ(error_class_of(space->push(1, 0).status()), ErrorClass::kValue);
  EXPECT_EQ(error_class_of(space->push(1, kMaxAlignmentBytes + 1).status()), ErrorClass::kValue);
  EXPECT_EQ(error_class_of(space->pop(nullptr)), ErrorClass::kValue);
}

}  // namespace
}  // namespace gridbuf
