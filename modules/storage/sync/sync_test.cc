#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <latch>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"

import gridbuf.base;
import gridbuf.storage.sync;

namespace gridbuf {
namespace {

constexpr Side kHost = Side::kHost;
constexpr Side kDevice = Side::kDevice;

std::shared_ptr<SyncState> attached(int state = kSyncClean) {
  const std::shared_ptr<SyncState> sync = *SyncState::make(state);
  SyncedBuffers buffers;
  buffers.shape = {100};
  EXPECT_TRUE(sync->attach(buffers).ok());
  return sync;
}

// [example]
// The device wrote the first ten points. The host lacks these, and nothing after they are copied.
TEST(SyncState, PlansWhatASideLacks) {
  const std::shared_ptr<SyncState> sync = attached();
  EXPECT_FALSE(sync->take_over(kDevice, {{0}, {10}}));
  EXPECT_EQ(sync->state(), kSyncDeviceDirty);
  const TransferPlan plan = sync->plan(kHost, {{5}, {50}});
  EXPECT_EQ(plan.boxes, (std::vector<Box>{{{5}, {10}}}));
  // … the caller copies …
  EXPECT_EQ(sync->commit(plan), SyncState::Commit::kDone);
  EXPECT_TRUE(sync->is_current(kHost, {{5}, {50}}));
  EXPECT_FALSE(sync->is_current(kHost, {{0}, {50}}));
}
// [/example]

TEST(SyncState, StartsAsItIsTold) {
  EXPECT_EQ((*SyncState::make(kSyncHostDirty))->state(), kSyncHostDirty);
  EXPECT_FALSE(attached(kSyncHostDirty)->is_current(kDevice, {{99}, {100}}));
  EXPECT_TRUE(attached(kSyncDeviceDirty)->is_current(kDevice, {{0}, {100}}));
  EXPECT_EQ(error_class_of(SyncState::make(3).status()), ErrorClass::kValue);
}

TEST(SyncState, AMarkDuringATransferIsNotTakenBack) {
  const std::shared_ptr<SyncState> sync = attached();
  ASSERT_FALSE(sync->take_over(kDevice, {{0}, {10}}));
  const TransferPlan plan = sync->plan(kHost, {{0}, {100}});
  ASSERT_TRUE(*sync->mark(kDevice, {{3}, {4}}));
  EXPECT_EQ(sync->commit(plan), SyncState::Commit::kOvertaken);
  EXPECT_FALSE(sync->is_current(kHost, {{3}, {4}}));
  const TransferPlan again = sync->plan(kHost, {{0}, {100}});
  EXPECT_EQ(sync->commit(again), SyncState::Commit::kDone);
  EXPECT_EQ(sync->state(), kSyncClean);
}

TEST(SyncState, WritesTakeOverAndMarksConflict) {
  const std::shared_ptr<SyncState> sync = attached();
  ASSERT_FALSE(sync->take_over(kHost, {{0}, {10}}));
  ASSERT_FALSE(sync->take_over(kDevice, {{5}, {20}}));
  EXPECT_TRUE(sync->is_current(kDevice, {{5}, {20}}));
  EXPECT_EQ(error_class_of(sync->mark(kHost, {{7}, {8}}).status()), ErrorClass::kSyncConflict);
  EXPECT_EQ(error_class_of(sync->mark(kDevice, {{0}, {8}}).status()), ErrorClass::kSyncConflict);
  EXPECT_TRUE(*sync->mark(kDevice, {{30}, {40}}));
}

// The presumption: the exports of one side, without the dirty regions of the opposite side.
TEST(SyncState, PresumesWhatOneSidesExportsReach) {
  const std::shared_ptr<SyncState> sync = attached();
  sync->add_export(kHost, {{0}, {50}});
  ASSERT_FALSE(sync->take_over(kDevice, {{10}, {20}}));
  const TransferPlan plan = sync->plan(kDevice, {{0}, {100}});
  EXPECT_EQ(plan.boxes, (std::vector<Box>{{{0}, {10}}, {{20}, {50}}}));
  EXPECT_EQ(sync->commit(plan), SyncState::Commit::kDone);
  EXPECT_FALSE(sync->is_current(kDevice, {{0}, {5}}));  // it may be written again at any time
  sync->add_export(kDevice, {{90}, {100}});
  EXPECT_TRUE(sync->has_exports(kDevice));
  // From now on the state does not presume writes; earlier possible writes are marked.
  EXPECT_EQ(sync->state(), kSyncHostDirty | kSyncDeviceDirty);
  sync->drop_export(kDevice, {{90}, {100}});
  sync->drop_export(kHost, {{0}, {50}});
  EXPECT_FALSE(sync->has_exports(kHost));
  EXPECT_TRUE(sync->is_current(kDevice, {{60}, {80}}));
}

// An export on the host that only reads, next to an endless export of the device, must not hide
// later writes on the device.
TEST(SyncState, AnExportThatEndsNextToOthersNotesNothing) {
  const std::shared_ptr<SyncState> sync = attached();
  sync->keep_export(kDevice, {{0}, {100}});
  for (int look = 0; look < 3; ++look) {
    const TransferPlan plan = sync->plan(kHost, {{0}, {100}});
    EXPECT_EQ(plan.boxes, (std::vector<Box>{{{0}, {100}}})) << "look " << look;
    EXPECT_EQ(sync->commit(plan), SyncState::Commit::kDone);
    sync->add_export(kHost, {{0}, {100}});
    sync->drop_export(kHost, {{0}, {100}});
  }
}

// The possible writes of an export do not fit in the boxes, which cannot be merged. They are
// presumed once, and then copied.
TEST(SyncState, WhatHasNoRoomIsPresumedOnce) {
  const std::shared_ptr<SyncState> sync = attached();
  for (std::int64_t i = 0; i < Regions::kMostBoxes; ++i) {
    ASSERT_FALSE(sync->take_over(kHost, {{4 * i}, {4 * i + 1}}));
    ASSERT_FALSE(sync->take_over(kDevice, {{4 * i + 2}, {4 * i + 3}}));
  }
  EXPECT_EQ(sync->take_over(kHost, {{90}, {91}}), kHost);
  EXPECT_FALSE(*sync->mark(kHost, {{90}, {91}}));
  sync->note_written(kHost, {{90}, {91}});
  EXPECT_FALSE(sync->is_current(kDevice, {{90}, {91}}));
  const TransferPlan plan = sync->plan(kDevice, {{90}, {91}});
  EXPECT_EQ(plan.boxes, (std::vector<Box>{{{90}, {91}}}));
  EXPECT_EQ(sync->commit(plan), SyncState::Commit::kDone);
  EXPECT_TRUE(sync->is_current(kDevice, {{90}, {91}}));
}

TEST(SyncState, OpenWritesOfBothSidesMustNotOverlap) {
  const std::shared_ptr<SyncState> sync = attached();
  ASSERT_TRUE(sync->open_write(kHost, {{0}, {10}}).ok());
  EXPECT_EQ(error_class_of(sync->open_write(kDevice, {{9}, {12}})), ErrorClass::kSyncConflict);
  EXPECT_TRUE(sync->open_write(kDevice, {{10}, {12}}).ok());
  sync->close_write(kHost, {{0}, {10}});
  EXPECT_TRUE(sync->open_write(kDevice, {{0}, {5}}).ok());
}

TEST(SyncState, BelongsToItsBuffersForGood) {
  const std::shared_ptr<SyncState> sync = attached();
  SyncedBuffers others;
  others.shape = {99};
  EXPECT_EQ(error_class_of(sync->attach(others)), ErrorClass::kValue);
  others.shape = {100};
  EXPECT_TRUE(sync->attach(others).ok());
}

// Transfers may be long, so a fork does not wait for them.
TEST(DeviceOrder, IsFreeInAChildAlthoughAnotherThreadHoldsIt) {
  DeviceOrder order;
  std::latch held(1);
  std::latch done(1);
  std::thread transfer([&] {
    const std::lock_guard lock(order);
    order.copying = true;
    order.unfinished = true;
    held.count_down();
    done.wait();
  });
  held.wait();
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    const std::lock_guard lock(order);
    const std::lock_guard recursive(order);
    std::_Exit(order.copying || order.unfinished ? 1 : 0);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  done.count_down();
  transfer.join();
}

}  // namespace
}  // namespace gridbuf
