#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"

import gridbuf.alloc;
import gridbuf.device;
import gridbuf.device.emulated;
import gridbuf.device.registry;
import gridbuf.storage;
import gridbuf.storage.testing;

// Several threads use one storage. As with an array, they may all read, and each may write separate
// elements. The state is never corrupted, and a thread never sees an old value of its elements. For
// ThreadSanitizer; without it the test checks the values.

namespace gridbuf {
namespace {

constexpr int kThreads = 4;
constexpr int kRounds = 60;

class StorageThreads : public ::testing::Test {
 protected:
  void SetUp() override { before_ = switch_emulated_device(true); }
  void TearDown() override { switch_emulated_device(before_); }

  static Storage managed() {
    return *Storage::allocate({.layout = *make_plan({.shape = {8, 40}, .itemsize_bytes = 8}),
                               .kind = StorageKind::kSoftwareManaged,
                               .zeroed = true});
  }
  static Storage rows(const Storage& storage, std::int64_t start, std::int64_t stop) {
    IndexMap map(storage.shape());
    map.keep(0, slice_points({start, stop}, storage.shape()[0]));
    return storage.view(map);
  }
  template <class Work>
  static void run(const Work& work) {
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) threads.emplace_back([&work, i] { work(i); });
    for (std::thread& thread : threads) thread.join();
  }

 private:
  bool before_ = false;
};

TEST_F(StorageThreads, ReadAtOnce) {
  const Storage storage = managed();
  testing::Values values(320, 7);
  ASSERT_TRUE(testing::write_values(storage, Side::kDevice, Coverage::kAll, values).ok());
  std::atomic<int> wrong = 0;
  run([&](int i) {
    for (int round = 0; round < kRounds; ++round) {
      const Storage view = rows(storage, (i + round) % 8, 8);
      const absl::StatusOr<testing::Values> seen = testing::read_values(view, Side::kHost);
      if (!seen.ok() || *seen != testing::Values(seen->size(), 7)) ++wrong;
      if (!view.read(Side::kDevice).ok()) ++wrong;
    }
  });
  EXPECT_EQ(wrong, 0);
}

// Each thread has two rows, writes them on one side and reads them on the opposite side. Meanwhile,
// other threads mark, export and sync the whole storage.
TEST_F(StorageThreads, WriteSeparateElements) {
  const Storage storage = managed();
  std::atomic<int> wrong = 0;
  run([&](int i) {
    const StreamHandle stream = *emulated_driver().create_stream(StreamKind::kBlocking);
    {
      const ScopedStream scope(stream);
      const Storage mine = rows(storage, 2 * i, 2 * i + 2);
      for (int round = 0; round < kRounds; ++round) {
        const Side side = round % 2 == 0 ? Side::kHost : Side::kDevice;
        const testing::Values values(80, round + 1000 * i);
        const Coverage coverage = round % 3 == 0 ? Coverage::kPart : Coverage::kAll;
        if (!testing::write_values(mine, side, coverage, values).ok()) ++wrong;
        if (round % 7 == 0 && !storage.synchronize().ok()) ++wrong;
        // The storage orders its work on the device, and this thread's stream with it.
        const absl::StatusOr<testing::Values> seen = testing::read_values(mine, other(side));
        if (!seen.ok() || *seen != values) ++wrong;
        (void)storage.sync_state()->state();
        (void)storage.is_ready(side);
      }
    }
    if (!emulated_driver().synchronize(stream).ok()) ++wrong;
    if (!emulated_driver().destroy_stream(stream).ok()) ++wrong;
  });
  EXPECT_EQ(wrong, 0);
}

// Exports come and go on all threads, and keep the memory.
TEST_F(StorageThreads, ExportsEndAnywhere) {
  std::vector<Owner> owners(kThreads);
  std::atomic<int> wrong = 0;
  {
    const Storage storage = managed();
    run([&](int i) {
      const Storage mine = rows(storage, 2 * i, 2 * i + 2);
      for (int round = 0; round < kRounds; ++round) {
        absl::StatusOr<Owner> owner = mine.export_side(Side::kHost, true);
        if (!owner.ok()) {
          ++wrong;
          continue;
        }
        if (!testing::poke_values(mine, Side::kHost, testing::Values(80, round)).ok()) ++wrong;
        owners[static_cast<std::size_t>(i)] = *std::move(owner);
      }
    });
    EXPECT_EQ(*testing::read_values(storage, Side::kDevice), testing::Values(320, kRounds - 1));
  }
  run([&](int i) { owners[static_cast<std::size_t>((i + 1) % kThreads)].reset(); });
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace gridbuf
