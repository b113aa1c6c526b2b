#include <cstdint>
#include <string>

#include "gtest/gtest.h"

import gridbuf.alloc.policy;
import gridbuf.alloc;
import gridbuf.base;

namespace gridbuf {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr std::int64_t kUsual = 60'000;  // nanoseconds per MiB
constexpr std::int64_t kSlow = 5'000'000;

PagePolicy with_mode(system::HugePageMode mode) {
  return PagePolicy(system::HugePageReport{mode, 2 * kMiB});
}

void record(PagePolicy& policy, PageKind pages, std::int64_t nanoseconds_per_mebibyte,
            int touches = PagePolicy::kTouches) {
  for (int i = 0; i < touches; ++i) {
    policy.record(pages, 64 * kMiB, 64 * nanoseconds_per_mebibyte);
  }
}

TEST(PagePolicy, TheSystemsNeverIsNever) {
  for (const auto mode : {system::HugePageMode::kNever, system::HugePageMode::kAbsent}) {
    for (const HugePages wish : {HugePages::kAuto, HugePages::kAlways, HugePages::kNever}) {
      PagePolicy policy = with_mode(mode);
      policy.set_wish(wish);
      EXPECT_EQ(policy.choose(1024 * kMiB), PageKind::kSmall);
      EXPECT_EQ(policy.text(),
                "small pages: the system's setting is " + std::string(system::to_string(mode)));
    }
  }
}

TEST(PagePolicy, TakesHugePagesFromOneWholeOneOn) {
  for (const auto mode : {system::HugePageMode::kMadvise, system::HugePageMode::kAlways}) {
    PagePolicy policy = with_mode(mode);
    EXPECT_EQ(policy.choose(2 * kMiB - 1), PageKind::kSmall);
    EXPECT_EQ(policy.choose(2 * kMiB), PageKind::kHuge);
    EXPECT_EQ(policy.text(),
              "huge pages: the system's setting is " + std::string(system::to_string(mode)));
  }
}

TEST(PagePolicy, TheWishIsObeyed) {
  PagePolicy policy = with_mode(system::HugePageMode::kMadvise);
  policy.set_wish(HugePages::kNever);
  EXPECT_EQ(policy.choose(64 * kMiB), PageKind::kSmall);
  EXPECT_EQ(policy.text(), "small pages: asked for");
  policy.set_wish(HugePages::kAlways);
  record(policy, PageKind::kHuge, kSlow);
  EXPECT_EQ(policy.choose(64 * kMiB), PageKind::kHuge);
  EXPECT_EQ(policy.text(),
            "huge pages: asked for, the system's setting is madvise; measured 5000 µs per MiB");
}

TEST(PagePolicy, StaysWithHugePagesOfUsualSpeed) {
  PagePolicy policy = with_mode(system::HugePageMode::kMadvise);
  for (int i = 0; i < 300; ++i) {
    record(policy, PageKind::kHuge, kUsual);
    EXPECT_EQ(policy.choose(64 * kMiB), PageKind::kHuge);
  }
  EXPECT_EQ(policy.text(), "huge pages: the system's setting is madvise; measured 60 µs per MiB");
}

TEST(PagePolicy, DisturbancesSayNothing) {
  PagePolicy policy = with_mode(system::HugePageMode::kMadvise);
  for (int i = 0; i < 10; ++i) {
    record(policy, PageKind::kHuge, 100 * kSlow, PagePolicy::kTouches - 1);
    EXPECT_EQ(policy.choose(64 * kMiB), PageKind::kHuge);
    record(policy, PageKind::kHuge, kUsual, 1);
  }
  policy.record(PageKind::kHuge, PagePolicy::kShortestBytes - 1, 1'000'000'000);
  EXPECT_EQ(policy.choose(64 * kMiB), PageKind::kHuge);
}

TEST(PagePolicy, TriesSmallPagesWhereHugeOnesAreSlowAndTakesThoseThatAreMuchFaster) {
  PagePolicy policy = with_mode(system::HugePageMode::kMadvise);
  record(policy, PageKind::kHuge, kSlow);
  EXPECT_EQ(policy.choose(64 * kMiB), PageKind::kSmall);  // the trial
  record(policy, PageKind::kSmall, kSlow / 10);
  EXPECT_EQ(policy.choose(64 * kMiB), PageKind::kSmall);
  EXPECT_EQ(policy.text(),
            "small pages: huge ones are slow here; measured 5000 µs per MiB, 500 µs on small ones");
}

TEST(PagePolicy, GoesBackToHugePagesWhereSmallOnesAreNotMuchFaster) {
  for (const std::int64_t small : {kSlow / PagePolicy::kWorth, kSlow / 2, 2 * kSlow}) {
    PagePolicy policy = with_mode(system::HugePageMode::kMadvise);
    record(policy, PageKind::kHuge, kSlow);
    EXPECT_EQ(policy.choose(64 * kMiB), PageKind::kSmall);
    record(policy, PageKind::kSmall, small);
    EXPECT_EQ(policy.choose(64 * kMiB), PageKind::kHuge) << small;
  }
}

TEST(PagePolicy, StaysWithHugePagesThatComeSlowlyButNotTooSlowly) {
  PagePolicy policy = with_mode(system::HugePageMode::kMadvise);
  for (int i = 0; i < 100; ++i) {
    record(policy, PageKind::kHuge, 900'000);
    EXPECT_EQ(policy.choose(64 * kMiB), PageKind::kHuge) << i;
  }
}

TEST(PagePolicy, TriesTheSlowerKindAgainNowAndThen) {
  PagePolicy policy = with_mode(system::HugePageMode::kMadvise);
  record(policy, PageKind::kHuge, kSlow);
  record(policy, PageKind::kSmall, kSlow / 10);
  for (int i = 0; i < PagePolicy::kChoicesBetweenTrials; ++i) {
    EXPECT_EQ(policy.choose(64 * kMiB), PageKind::kSmall) << i;
  }
  EXPECT_EQ(policy.choose(64 * kMiB), PageKind::kHuge);  // fragmentation may be over
  record(policy, PageKind::kHuge, kUsual, 1);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(policy.choose(64 * kMiB), PageKind::kHuge) << i;
}

TEST(PagePolicy, FollowsTheLastTouches) {
  PagePolicy policy = with_mode(system::HugePageMode::kMadvise);
  for (int i = 0; i < 100; ++i) record(policy, PageKind::kHuge, kUsual);
  record(policy, PageKind::kHuge, kSlow);
  EXPECT_EQ(policy.choose(64 * kMiB), PageKind::kSmall);
}

TEST(HugePages, HaveTheWordsOfTheSettings) {
  EXPECT_EQ(to_string(HugePages::kAuto), "auto");
  EXPECT_EQ(to_string(HugePages::kAlways), "always");
  EXPECT_EQ(to_string(HugePages::kNever), "never");
}

}  // namespace
}  // namespace gridbuf
