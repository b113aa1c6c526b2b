#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"

import gridbuf.alloc;
import gridbuf.layout.view;
import gridbuf.layout;
import gridbuf.storage.regions;
import gridbuf.storage.writes;

namespace gridbuf {
namespace {

using Boxes = std::vector<Box>;

// A field of 100 points whose memory is held by nobody but its base.
class WriteLogTest : public ::testing::Test {
 protected:
  static constexpr std::int64_t kPoints = 100;

  std::unique_ptr<WriteRecord> record(Presume presume = Presume::kWritten) const {
    absl::StatusOr<std::unique_ptr<WriteRecord>> made =
        WriteRecord::begin(log_, Window({kPoints}), presume);
    EXPECT_TRUE(made.ok()) << made.status();
    return *std::move(made);
  }
  static Boxes take(WriteRecord& record, const Box& part = whole()) {
    return record.take(std::array{part}).value()[0];
  }
  static Box whole() { return {{0}, {kPoints}}; }
  static Box points(std::int64_t lower, std::int64_t upper) { return {{lower}, {upper}}; }

  Owner memory_ = std::make_shared<int>(0);
  Holders holders_;
  std::shared_ptr<WriteLog> log_ = std::make_shared<WriteLog>(
      Extents{kPoints}, holders_, std::array<const Owner*, 2>{&memory_, nullptr});
};

// [example]
// Who sends the last ten points to a neighbour, again and again, sends those that were written.
TEST_F(WriteLogTest, SaysWhatWasWrittenSinceItWasLastTaken) {
  const std::unique_ptr<WriteRecord> sent = record();
  const Box strip = points(90, 100);
  EXPECT_EQ(take(*sent, strip), (Boxes{strip}));  // Nobody knows what was written before.
  log_->note(points(0, 80));
  EXPECT_EQ(take(*sent, strip), Boxes{});
  log_->note(points(70, 93));
  EXPECT_EQ(take(*sent, strip), (Boxes{points(90, 93)}));
  EXPECT_EQ(take(*sent, strip), Boxes{});
}
// [/example]

TEST_F(WriteLogTest, IsOnWhileSomebodyRecords) {
  EXPECT_FALSE(log_->is_on());
  std::unique_ptr<WriteRecord> first = record();
  const std::unique_ptr<WriteRecord> second = record();
  EXPECT_TRUE(log_->is_on());
  first.reset();
  EXPECT_TRUE(log_->is_on());
  EXPECT_EQ(take(*second).size(), 1U);
}

TEST_F(WriteLogTest, EveryAskerHasItsOwnSince) {
  const std::unique_ptr<WriteRecord> first = record();
  const std::unique_ptr<WriteRecord> second = record();
  take(*first);
  log_->note(points(3, 4));
  EXPECT_EQ(take(*first), (Boxes{points(3, 4)}));
  EXPECT_EQ(take(*second), (Boxes{whole()}));
  log_->note(points(5, 6));
  EXPECT_EQ(take(*first), (Boxes{points(5, 6)}));
  EXPECT_EQ(take(*second), (Boxes{points(5, 6)}));
}

TEST_F(WriteLogTest, AnExportCountsWhileItLivesAndOnceMore) {
  const std::unique_ptr<WriteRecord> careful = record();
  const std::unique_ptr<WriteRecord> trusting = record(Presume::kNothing);
  take(*careful);
  take(*trusting);
  holders_.exports = 1;
  log_->begin_export(points(10, 20));
  for (int look = 0; look < 2; ++look) EXPECT_EQ(take(*careful), (Boxes{points(10, 20)}));
  log_->end_export(points(10, 20));
  holders_.exports = 0;
  EXPECT_EQ(take(*careful), (Boxes{points(10, 20)}));
  EXPECT_EQ(take(*careful), Boxes{});
  EXPECT_EQ(take(*trusting), Boxes{});
}

TEST_F(WriteLogTest, OneOfUnknownLifeCountsForEver) {
  const std::unique_ptr<WriteRecord> careful = record();
  const std::unique_ptr<WriteRecord> trusting = record(Presume::kNothing);
  take(*careful);
  take(*trusting);
  log_->keep_export(points(10, 20));
  for (int look = 0; look < 3; ++look) EXPECT_EQ(take(*careful), (Boxes{points(10, 20)}));
  EXPECT_EQ(take(*trusting), Boxes{});
}

// Its box is not known: everything counts while it is there, and once more.
TEST_F(WriteLogTest, WhatWasHandedOutBeforeIsSeenWhileItLives) {
  Owner share = memory_;
  const std::unique_ptr<WriteRecord> sent = record();
  for (int look = 0; look < 3; ++look) EXPECT_EQ(take(*sent), (Boxes{whole()}));
  share.reset();
  EXPECT_EQ(take(*sent), (Boxes{whole()}));
  EXPECT_EQ(take(*sent), Boxes{});

  holders_.exports = 1;
  EXPECT_EQ(take(*sent), (Boxes{whole()}));
  holders_.exports = 0;
  EXPECT_EQ(take(*sent), (Boxes{whole()}));
  EXPECT_EQ(take(*sent), Boxes{});

  holders_.unknown = true;
  for (int look = 0; look < 3; ++look) EXPECT_EQ(take(*sent), (Boxes{whole()}));
}

TEST_F(WriteLogTest, ForeignMemoryIsAlwaysWritten) {
  holders_.foreign = true;
  const std::unique_ptr<WriteRecord> careful = record();
  const std::unique_ptr<WriteRecord> trusting = record(Presume::kNothing);
  take(*trusting);
  for (int look = 0; look < 3; ++look) EXPECT_EQ(take(*careful), (Boxes{whole()}));
  EXPECT_EQ(take(*trusting), Boxes{});
}

TEST_F(WriteLogTest, OneBufferOfTwoSidesHasTwoSharesOfItsOwn) {
  const Owner same = memory_;
  const auto log = std::make_shared<WriteLog>(Extents{kPoints}, holders_,
                                              std::array<const Owner*, 2>{&memory_, &same});
  const auto sent = WriteRecord::begin(log, Window({kPoints}), Presume::kWritten).value();
  EXPECT_EQ(take(*sent), (Boxes{whole()}));
  EXPECT_EQ(take(*sent), Boxes{});
  const Owner third = memory_;
  EXPECT_EQ(take(*sent), (Boxes{whole()}));
}

TEST_F(WriteLogTest, ForgettingTakesBackAndLeavesTheRest) {
  const std::unique_ptr<WriteRecord> sent = record();
  take(*sent);
  log_->note(points(0, 20));
  sent->forget(points(5, 10));
  EXPECT_EQ(take(*sent), (Boxes{points(0, 5), points(10, 20)}));
}

TEST_F(WriteLogTest, ARecordOutlivesTheLog) {
  const std::unique_ptr<WriteRecord> sent = record();
  EXPECT_TRUE(sent->is_of(log_.get(), Window({kPoints})));
  log_.reset();
  EXPECT_TRUE(sent->is_expired());
  EXPECT_EQ(take(*sent), Boxes{});
  sent->forget(points(0, 1));
}

// What a view's record hands over is what was noted of what it shows, in its own indices; never
// less, and of a few boxes never more.
TEST_F(WriteLogTest, PropertyNothingIsLost) {
  std::mt19937_64 random(3);
  IndexMap map(Extents{kPoints});
  map.keep(0, slice_points({.start = 95, .stop = 4, .step = -3}, kPoints));
  const Window window = Window({kPoints}).through(map);
  const std::int64_t extent = map.axis(0).extent;
  const auto sent = WriteRecord::begin(log_, window, Presume::kWritten).value();
  take(*sent, points(0, extent));
  for (int round = 0; round < 500; ++round) {
    std::set<std::int64_t> written;
    const int notes = static_cast<int>(random() % 40);
    for (int i = 0; i < notes; ++i) {
      const auto lower = static_cast<std::int64_t>(random() % kPoints);
      const std::int64_t upper = std::min<std::int64_t>(kPoints, lower + 3);
      log_->note(points(lower, upper));
      for (std::int64_t k = 0; k < extent; ++k) {
        const std::int64_t point = 95 - 3 * k;
        if (lower <= point && point < upper) written.insert(k);
      }
    }
    std::set<std::int64_t> taken;
    for (const Box& box : take(*sent, points(0, extent))) {
      for (std::int64_t k = box.lower[0]; k < box.upper[0]; ++k) {
        EXPECT_TRUE(taken.insert(k).second) << "boxes overlap";
      }
    }
    for (const std::int64_t k : written) EXPECT_TRUE(taken.contains(k));
    if (notes < 5) EXPECT_LE(taken.size(), written.size() + 2U * static_cast<std::size_t>(notes));
  }
}

}  // namespace
}  // namespace gridbuf
