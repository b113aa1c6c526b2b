#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"

import gridbuf.alloc;
import gridbuf.base;

namespace gridbuf {
namespace {

// A block over a local array that counts how often it is released.
struct Released {
  std::array<std::byte, 64> bytes{};
  int times = 0;

  Block block() { return Block(bytes.data(), 64, {bytes.data(), 64, &release, this}); }
  static void release(void* context, void* /*allocation*/) noexcept {
    ++static_cast<Released*>(context)->times;
  }
};

TEST(Block, ReleasesExactlyOnceWhenItGoes) {
  Released released;
  {
    const Block block = released.block();
    EXPECT_EQ(block.data(), released.bytes.data());
    EXPECT_EQ(block.total_bytes(), 64);
    EXPECT_EQ(released.times, 0);
  }
  EXPECT_EQ(released.times, 1);
}

TEST(Block, MovesLeaveAnEmptyBlockBehind) {
  Released released;
  {
    Block first = released.block();
    const Block second = std::move(first);
    EXPECT_FALSE(first);  // NOLINT(bugprone-use-after-move): tests the state after a move
    EXPECT_EQ(first.total_bytes(), 0);
    EXPECT_TRUE(second);
  }
  EXPECT_EQ(released.times, 1);
}

TEST(Block, AssignmentReleasesWhatWasHeld) {
  Released first;
  Released second;
  Block block = first.block();
  block = second.block();
  EXPECT_EQ(first.times, 1);
  EXPECT_EQ(second.times, 0);
  block = Block();
  EXPECT_EQ(second.times, 1);
}

TEST(Block, SelfAssignmentKeepsTheMemory) {
  Released released;
  Block block = released.block();
  Block& same = block;
  block = std::move(same);
  EXPECT_TRUE(block);
  EXPECT_EQ(released.times, 0);
}

TEST(Place, PutsAnUnconstrainedStartOnACacheLine) {
  const auto placement = place({.total_bytes = 100, .aligned_offset_bytes = 8});
  ASSERT_TRUE(placement.ok());
  EXPECT_EQ(*placement, (Placement{64, 0, 163}));
}

TEST(Place, SolvesForTheStartFromTheOffset) {
  // Element at byte 40 on a multiple of 64: the start is 24 modulo 64.
  EXPECT_EQ(*place({.total_bytes = 1, .alignment_bytes = 64, .aligned_offset_bytes = 40}),
            (Placement{64, 24, 64}));
}

TEST(Place, GivesElementsTheirAlignmentBesidesAnOddOne) {
  EXPECT_EQ(*place({.alignment_bytes = 3, .aligned_offset_bytes = 8}), (Placement{48, 16, 47}));
  EXPECT_EQ(*place({.alignment_bytes = 24, .aligned_offset_bytes = 8}), (Placement{48, 16, 47}));
  // Byte 2 on a multiple of 12 fixes the start at 2 modulo 4.
  EXPECT_EQ(*place({.alignment_bytes = 12, .aligned_offset_bytes = 2}), (Placement{12, 10, 11}));
}

// The postcondition of place and place_in: aligned, first fitting, inside the block.
TEST(Place, HoldsItsPostconditionsForRandomRequests) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20000; ++i) {
    AllocationRequest request;
    request.total_bytes = static_cast<std::int64_t>(random() % 10000);
    request.alignment_bytes = 1 + static_cast<std::int64_t>(random() % (1U << (random() % 21)));
    request.aligned_offset_bytes = static_cast<std::int64_t>(random() % 100000);
    const auto placement = place(request);
    ASSERT_TRUE(placement.ok());
    ASSERT_EQ(placement->modulus_bytes % request.alignment_bytes, 0);
    ASSERT_EQ((placement->remainder_bytes + request.aligned_offset_bytes) % request.alignment_bytes,
              0);
    // Addresses are never read, so any number serves.
    auto* block = reinterpret_cast<std::byte*>(4096 + random() % (std::uint64_t{1} << 40));
    const std::int64_t forward = place_in(*placement, block) - block;
    ASSERT_GE(forward, 0);
    ASSERT_LT(forward, placement->modulus_bytes);
    ASSERT_LE(forward + request.total_bytes, placement->block_bytes);
    const auto start = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(block)) + forward;
    ASSERT_EQ(start % placement->modulus_bytes, placement->remainder_bytes);
  }
}

TEST(Place, NamesValueAndBoundOfABadRequest) {
  const absl::Status status = place({.total_bytes = 8, .alignment_bytes = 0}).status();
  EXPECT_EQ(error_class_of(status), ErrorClass::kValue);
  EXPECT_EQ(
      status.message(),
      "alignment_bytes is 0, but must be an integer from 1 to 1048576; pass 1 for no constraint");
}

TEST(Place, RefusesASumThatLeaves64Bits) {
  const absl::Status status = place({.total_bytes = INT64_MAX - 62}).status();
  EXPECT_EQ(error_class_of(status), ErrorClass::kValue);
  EXPECT_NE(status.message().find("9223372036854775745 bytes"), std::string::npos)
      << status.message();
  EXPECT_TRUE(place({.total_bytes = INT64_MAX - 63}).ok());
}

TEST(Share, ReleasesWithTheLastShare) {
  Released released;
  {
    absl::StatusOr<Owner> owner = share(released.block());
    ASSERT_TRUE(owner.ok());
    Owner other = *owner;
    owner->reset();
    EXPECT_EQ(released.times, 0);
  }
  EXPECT_EQ(released.times, 1);
}

// Run under ThreadSanitizer: the release must see every write made by the threads that held a
// share.
TEST(Share, MayBeDroppedOnAnyThread) {
  for (int round = 0; round < 50; ++round) {
    Released released;
    {
      Owner owner = *share(released.block());
      std::vector<std::thread> threads;
      for (int t = 0; t < 4; ++t) {
        threads.emplace_back([mine = owner, &released, t]() mutable {
          for (int i = 0; i < 100; ++i) Owner(mine).reset();
          released.bytes[static_cast<std::size_t>(t)] = std::byte{1};
          mine.reset();
        });
      }
      owner.reset();
      for (std::thread& thread : threads) thread.join();
    }
    EXPECT_EQ(released.times, 1);
  }
}

// [example]
// A resource over a private arena: `place` computes the start of a block, so the alignment rule is
// kept.
class ArenaResource final : public MemoryResource {
 public:
  absl::StatusOr<Block> allocate(const AllocationRequest& request) override {
    const absl::StatusOr<Placement> placement = place(request);
    if (!placement.ok()) return placement.status();
    if (placement->block_bytes > std::ssize(arena_) - used_bytes_) {
      return out_of_memory(request, name(), "the arena is full");
    }
    std::byte* start = place_in(*placement, arena_.data() + used_bytes_);
    used_bytes_ += placement->block_bytes;
    return Block(start, request.total_bytes, {});  // nothing to release: the arena goes as a whole
  }
  std::string_view name() const noexcept override { return "arena"; }

 private:
  std::array<std::byte, 1024> arena_{};
  std::int64_t used_bytes_ = 0;
};
// [/example]

TEST(Example, OfTheReadme) {
  ArenaResource arena;
  const absl::StatusOr<Block> block =
      arena.allocate({.total_bytes = 100, .alignment_bytes = 48, .aligned_offset_bytes = 16});
  ASSERT_TRUE(block.ok());
  EXPECT_EQ((reinterpret_cast<std::uintptr_t>(block->data()) + 16) % 48, 0U);
  EXPECT_EQ(error_class_of(arena.allocate({.total_bytes = 1000}).status()), ErrorClass::kMemory);
}

TEST(OutOfMemory, SaysHowMuchFromWhereAndWhy) {
  const absl::Status status =
      out_of_memory({.total_bytes = 2048, .alignment_bytes = 64}, "host", "no block");
  EXPECT_EQ(error_class_of(status), ErrorClass::kMemory);
  EXPECT_EQ(
      status.message(),
      "cannot allocate 2.0 KiB (2048 bytes) with alignment 64 at byte 0 from host: no block; ask "
      "for a smaller shape or free some arrays");
}

}  // namespace
}  // namespace gridbuf
