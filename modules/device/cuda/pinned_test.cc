#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"

import gridbuf.alloc;
import gridbuf.alloc.host;
import gridbuf.base;
import gridbuf.device.cuda;

namespace gridbuf {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

// A lock that records the locked pages, and refuses on demand.
struct Locks {
  std::map<void*, std::int64_t> locked;
  bool refuses = false;

  PageLock functions() {
    return {[this](void* address, std::int64_t length_bytes) {
              if (refuses) return make_error(ErrorClass::kMemory, "refused");
              locked[address] = length_bytes;
              return absl::OkStatus();
            },
            [this](void* address) { EXPECT_EQ(locked.erase(address), 1U); }};
  }
  std::int64_t locked_bytes() const {
    std::int64_t bytes = 0;
    for (const auto& [address, length_bytes] : locked) bytes += length_bytes;
    return bytes;
  }
};

TEST(PinnedPages, AreLockedOnceAndServeAgain) {
  Locks locks;
  PinnedPages pinned(locks.functions());
  const PinnedPages::Pages first = *pinned.take(5 * kMiB);
  EXPECT_FALSE(first.from_cache);
  EXPECT_EQ(locks.locked.size(), 1U);
  pinned.give(first);
  const PinnedPages::Pages second = *pinned.take(5 * kMiB);
  EXPECT_TRUE(second.from_cache);
  EXPECT_EQ(second.mapping.address, first.mapping.address);
  EXPECT_EQ(locks.locked.size(), 1U);  // the lock stayed
  pinned.give(second);
  pinned.trim();
  EXPECT_EQ(locks.locked_bytes(), 0);
}

TEST(PinnedPages, AreWritableToTheLastByte) {
  Locks locks;
  PinnedPages pinned(locks.functions(), 0);
  for (const std::int64_t length : {std::int64_t{1}, 4097 * std::int64_t{1}, 3 * kMiB}) {
    const PinnedPages::Pages pages = *pinned.take(length);
    EXPECT_GE(pages.mapping.length_bytes, length);
    EXPECT_EQ(pages.mapping.address[length - 1], std::byte{0});
    pages.mapping.address[length - 1] = std::byte{1};
    pinned.give(pages);
  }
  EXPECT_EQ(locks.locked_bytes(), 0);  // nothing is kept
}

TEST(PinnedPages, KeepNoMoreThanTheirLimit) {
  Locks locks;
  PinnedPages pinned(locks.functions(), 8 * kMiB);
  std::vector<PinnedPages::Pages> taken;
  for (int i = 0; i < 6; ++i) taken.push_back(*pinned.take(2 * kMiB));
  for (const PinnedPages::Pages& pages : taken) pinned.give(pages);
  EXPECT_LE(pinned.cached_bytes(), 8 * kMiB);
  EXPECT_EQ(locks.locked_bytes(), pinned.cached_bytes());
  pinned.trim();
  EXPECT_EQ(locks.locked_bytes(), 0);
}

TEST(PinnedPages, LeaveNothingBehindWhereTheLockIsRefused) {
  Locks locks;
  locks.refuses = true;
  PinnedPages pinned(locks.functions());
  const absl::Status status = pinned.take(kMiB).status();
  EXPECT_EQ(status.message(), "refused");
  EXPECT_EQ(pinned.cached_bytes(), 0);
  EXPECT_EQ(error_class_of(pinned.take(std::int64_t{1} << 58).status()), ErrorClass::kMemory);
}

}  // namespace
}  // namespace gridbuf
