#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

import gridbuf.alloc;
import gridbuf.alloc.host;

namespace gridbuf {
namespace {

using pages::Mapping;

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

// A mapping without memory: the cache only needs the numbers.
Mapping mapping(std::uintptr_t number, std::int64_t length_bytes) {
  return {reinterpret_cast<std::byte*>(number << 40), length_bytes, PageKind::kHuge};
}

std::uintptr_t number_of(const Mapping& mapping) {
  return reinterpret_cast<std::uintptr_t>(mapping.address) >> 40;
}

std::uintptr_t number_of(const std::optional<Mapping>& mapping) {
  return mapping ? number_of(*mapping) : 0;
}

// The usual give() of the tests: the mapping served its whole length.
std::vector<std::uintptr_t> give(MappingCache& cache, const Mapping& mapping) {
  std::vector<std::uintptr_t> numbers;
  MappingCache::Victims victims;
  cache.give(mapping, mapping.length_bytes, victims);
  for (const Mapping& victim : victims) numbers.push_back(number_of(victim));
  return numbers;
}

// Without a bound of the surplus.
std::optional<Mapping> take(MappingCache& cache, std::int64_t length_bytes) {
  return cache.take(length_bytes, PageKind::kHuge);
}

using Numbers = std::vector<std::uintptr_t>;

TEST(MappingCache, GivesBackWhatItWasGiven) {
  MappingCache cache(100 * kMiB);
  EXPECT_FALSE(take(cache, kMiB));
  EXPECT_EQ(give(cache, mapping(1, 4 * kMiB)), Numbers());
  EXPECT_EQ(cache.cached_bytes(), 4 * kMiB);
  EXPECT_EQ(number_of(take(cache, 4 * kMiB)), 1U);
  EXPECT_EQ(cache.cached_bytes(), 0);
  EXPECT_FALSE(take(cache, 4 * kMiB));
}

TEST(MappingCache, WastesAtMostAQuarterOfAMapping) {
  MappingCache cache(100 * kMiB);
  give(cache, mapping(1, 8 * kMiB));
  EXPECT_FALSE(take(cache, 8 * kMiB + 1));
  EXPECT_FALSE(take(cache, 6 * kMiB - 1));
  EXPECT_FALSE(cache.take(6 * kMiB, PageKind::kSmall));
  EXPECT_FALSE(cache.take(6 * kMiB, PageKind::kHuge, 2 * kMiB - 1)) << "too much in all";
  EXPECT_EQ(number_of(take(cache, 6 * kMiB)), 1U);
}

TEST(MappingCache, CutsLongerMappings) {
  MappingCache cache(100 * kMiB);
  give(cache, mapping(1, 10 * kMiB));
  give(cache, mapping(2, 50 * kMiB));
  give(cache, mapping(3, 20 * kMiB));
  EXPECT_FALSE(cache.take_part(12 * kMiB, PageKind::kSmall));
  const std::optional<Mapping> part = cache.take_part(12 * kMiB, PageKind::kHuge);
  ASSERT_TRUE(part);
  EXPECT_EQ(number_of(part), 3U);
  EXPECT_EQ(part->length_bytes, 12 * kMiB);
  EXPECT_EQ(cache.surplus_bytes(), 0);
  EXPECT_EQ(cache.cached_bytes(), 68 * kMiB);
  const std::optional<Mapping> rest = take(cache, 8 * kMiB);
  ASSERT_TRUE(rest);
  EXPECT_EQ(rest->address, part->address + 12 * kMiB);
}

TEST(MappingCache, DoesNotKeepRestsThatServeNothing) {
  MappingCache cache(100 * kMiB);
  give(cache, mapping(1, 5 * kMiB));
  const std::optional<Mapping> part = cache.take_part(4 * kMiB, PageKind::kHuge);
  ASSERT_TRUE(part);
  EXPECT_EQ(part->length_bytes, 5 * kMiB);
  EXPECT_EQ(cache.surplus_bytes(), kMiB);
  EXPECT_EQ(cache.count(), 0);
}

TEST(MappingCache, GivesTheLongestOfShorterMappings) {
  MappingCache cache(100 * kMiB);
  give(cache, mapping(1, 4 * kMiB));
  give(cache, mapping(2, 9 * kMiB));
  give(cache, mapping(3, 6 * kMiB));
  const std::optional<Mapping> part = cache.take_part(30 * kMiB, PageKind::kHuge);
  EXPECT_EQ(number_of(part), 2U);
  EXPECT_EQ(part->length_bytes, 9 * kMiB);
  EXPECT_EQ(cache.surplus_bytes(), 0);
  EXPECT_EQ(cache.cached_bytes(), 10 * kMiB);
}

TEST(MappingCache, DropsWhatTwoEpochsDidNotUse) {
  MappingCache cache(100 * kMiB);
  const auto begin_epoch = [&] {
    MappingCache::Victims victims;
    cache.begin_epoch(victims);
    return victims.count();
  };
  give(cache, mapping(1, 4 * kMiB));
  give(cache, mapping(2, 40 * kMiB));
  EXPECT_EQ(begin_epoch(), 0);
  give(cache, *take(cache, 40 * kMiB));
  EXPECT_EQ(begin_epoch(), 1);
  EXPECT_EQ(cache.cached_bytes(), 40 * kMiB);
  EXPECT_EQ(begin_epoch(), 1);
  EXPECT_EQ(cache.count(), 0);
}

TEST(MappingCache, TakesTheBestFitAndOfEqualOnesTheLastUsed) {
  MappingCache cache(1000 * kMiB);
  give(cache, mapping(1, 108 * kMiB));
  give(cache, mapping(2, 102 * kMiB));
  give(cache, mapping(3, 104 * kMiB));
  give(cache, mapping(4, 102 * kMiB));
  EXPECT_EQ(number_of(take(cache, 100 * kMiB)), 4U);
  EXPECT_EQ(number_of(take(cache, 100 * kMiB)), 2U);
  EXPECT_EQ(number_of(take(cache, 103 * kMiB)), 3U);
  EXPECT_EQ(number_of(take(cache, 100 * kMiB)), 1U);
}

TEST(MappingCache, KeepsNoMoreThanItsLimitAndDropsTheOldest) {
  MappingCache cache(10 * kMiB);
  give(cache, mapping(1, 4 * kMiB));
  give(cache, mapping(2, 5 * kMiB));
  EXPECT_EQ(give(cache, mapping(3, 2 * kMiB)), Numbers({1}));
  EXPECT_EQ(cache.cached_bytes(), 7 * kMiB);
  EXPECT_EQ(give(cache, mapping(4, 10 * kMiB)), Numbers({2, 3}));
  EXPECT_EQ(give(cache, mapping(5, 11 * kMiB)), Numbers({5}));  // longer than the limit
  EXPECT_EQ(cache.cached_bytes(), 10 * kMiB);
}

TEST(MappingCache, ALimitOfNothingKeepsNothing) {
  MappingCache cache(0);
  EXPECT_EQ(give(cache, mapping(1, kMiB)), Numbers({1}));
  EXPECT_EQ(cache.count(), 0);
}

TEST(MappingCache, HasSixtyFourPlaces) {
  MappingCache cache(1000 * kMiB);
  for (std::uintptr_t i = 1; i <= 64; ++i) EXPECT_EQ(give(cache, mapping(i, kMiB)), Numbers());
  EXPECT_EQ(give(cache, mapping(65, kMiB)), Numbers({1}));
  EXPECT_EQ(cache.count(), 64);
}

TEST(MappingCache, CountsSurplusInUseAgainstTheLimit) {
  MappingCache cache(10 * kMiB);
  give(cache, mapping(1, 9 * kMiB));
  const std::optional<Mapping> taken = take(cache, 8 * kMiB);
  EXPECT_EQ(cache.surplus_bytes(), kMiB);
  EXPECT_EQ(give(cache, mapping(2, 10 * kMiB)), Numbers({2}));
  EXPECT_EQ(give(cache, mapping(3, 9 * kMiB)), Numbers());
  MappingCache::Victims victims;
  cache.give(*taken, 8 * kMiB, victims);
  EXPECT_EQ(victims.count(), 1);
  EXPECT_EQ(victims.total_bytes(), 9 * kMiB);
  EXPECT_EQ(cache.surplus_bytes(), 0);
}

TEST(MappingCache, ForgetsTheSurplusOfWhatIsGone) {
  MappingCache cache(10 * kMiB);
  give(cache, mapping(1, 9 * kMiB));
  const std::optional<Mapping> taken = take(cache, 8 * kMiB);
  cache.forget(*taken, 8 * kMiB);
  EXPECT_EQ(cache.surplus_bytes(), 0);
  EXPECT_EQ(cache.cached_bytes(), 0);
}

TEST(MappingCache, TrimsTheOldestFirst) {
  MappingCache cache(100 * kMiB);
  for (std::uintptr_t i = 1; i <= 4; ++i) give(cache, mapping(i, 10 * kMiB));
  MappingCache::Victims victims;
  cache.trim(25 * kMiB, victims);
  ASSERT_EQ(victims.count(), 2);
  EXPECT_EQ(number_of(victims.begin()[0]), 1U);
  EXPECT_EQ(number_of(victims.begin()[1]), 2U);
  cache.trim(0, victims);
  EXPECT_EQ(victims.count(), 4);
  cache.trim(0, victims);
  EXPECT_EQ(victims.count(), 4);
}

TEST(MappingCache, ALowerLimitHoldsAtOnce) {
  MappingCache cache(100 * kMiB);
  for (std::uintptr_t i = 1; i <= 4; ++i) give(cache, mapping(i, 10 * kMiB));
  MappingCache::Victims victims;
  cache.set_limit(20 * kMiB, victims);
  EXPECT_EQ(victims.count(), 2);
  EXPECT_EQ(cache.cached_bytes(), 20 * kMiB);
}

// Compared with a model of whole mebibytes: none is lost or kept twice, and the limit holds after
// every step.
TEST(MappingCacheProperty, LosesNothingAndKeepsItsLimit) {
  std::mt19937_64 random(20261121);
  MappingCache cache(200 * kMiB);
  std::set<std::uintptr_t> kept;                       // the addresses of their mebibytes
  std::vector<std::pair<Mapping, std::int64_t>> held;  // with the requested length
  std::uintptr_t made = 0;
  const auto each = [](const Mapping& mapping, const auto& visit) {
    for (std::int64_t at = 0; at < mapping.length_bytes; at += kMiB) {
      ASSERT_TRUE(visit(reinterpret_cast<std::uintptr_t>(mapping.address + at)));
    }
  };
  const auto is_removed = [&](std::uintptr_t address) { return kept.erase(address) == 1; };
  const auto is_added = [&](std::uintptr_t address) { return kept.insert(address).second; };
  for (int step = 0; step < 20000; ++step) {
    MappingCache::Victims victims;
    const std::int64_t length = (1 + static_cast<std::int64_t>(random() % 40)) * kMiB;
    const auto choice = random() % 16;
    if (choice < 8 || held.empty()) {
      std::optional<Mapping> taken = take(cache, length);
      if (taken) {
        ASSERT_GE(taken->length_bytes, length);
        ASSERT_LE(taken->length_bytes - length, taken->length_bytes / 4);
      } else if (choice % 2 == 0) {
        taken = cache.take_part(length, PageKind::kHuge);
        if (taken) ASSERT_LT(taken->length_bytes - length, 2 * kMiB);
      }
      if (taken) each(*taken, is_removed);
      const Mapping given = taken ? *taken : mapping(++made, length);
      held.emplace_back(given, std::min(length, given.length_bytes));
    } else if (choice < 15) {
      std::swap(held[random() % held.size()], held.back());
      each(held.back().first, is_added);
      cache.give(held.back().first, held.back().second, victims);
      held.pop_back();
    } else if (random() % 8 == 0) {
      cache.begin_epoch(victims);
    } else {
      cache.trim(static_cast<std::int64_t>(random() % 300) * kMiB, victims);
    }
    for (const Mapping& victim : victims) each(victim, is_removed);
    ASSERT_EQ(cache.cached_bytes(), std::ssize(kept) * kMiB);
    ASSERT_GE(cache.surplus_bytes(), 0);
    ASSERT_LE(cache.cached_bytes() + cache.surplus_bytes(), 200 * kMiB);
  }
}

// ---- What is worth keeping. ----

constexpr std::int64_t kLong = 1000;  // seconds after which an epoch has certainly ended

TEST(Demand, IsAThirdOfThePeakAtFirst) {
  Demand demand;
  demand.note(90, 0);
  EXPECT_EQ(demand.worth_keeping(), 0);  // in use and kept are at most the peak
  demand.note(70, 0);
  EXPECT_EQ(demand.worth_keeping(), 20);
  demand.note(0, 0);
  EXPECT_EQ(demand.worth_keeping(), 30);
}

TEST(Demand, IsWhatWasUsedAgain) {
  Demand demand;
  for (const std::int64_t live : {40, 100, 40, 100, 40}) demand.note(live, 0);
  EXPECT_EQ(demand.worth_keeping(), 60);
  demand.note(80, 0);
  EXPECT_EQ(demand.worth_keeping(), 20);
  demand.note(0, 0);  // less than where a rise began: the program may be at its end
  EXPECT_EQ(demand.worth_keeping(), 33);
}

TEST(Demand, IsNotTheFirstRise) {
  Demand demand;
  for (const std::int64_t live : {10, 0, 10, 1000, 0}) demand.note(live, 0);
  EXPECT_EQ(demand.worth_keeping(), 333);
}

TEST(Demand, IsNotASmallRiseFarBelow) {
  Demand demand;
  for (const std::int64_t live : {5, 0, 5, 600, 1000, 500, 1000, 0}) demand.note(live, 0);
  EXPECT_EQ(demand.worth_keeping(), 333);
}

TEST(Demand, ForgetsAfterTwoEpochs) {
  Demand demand;
  for (const std::int64_t live : {90, 0, 90, 0}) demand.note(live, 0);
  EXPECT_EQ(demand.worth_keeping(), 90);
  EXPECT_TRUE(demand.note(30, kLong));
  EXPECT_FALSE(demand.note(0, kLong));
  EXPECT_EQ(demand.worth_keeping(), 90);
  demand.note(30, 2 * kLong);
  demand.note(0, 2 * kLong);
  EXPECT_EQ(demand.worth_keeping(), 30);  // a rise up to 30, which came twice
}

// After each step of any history: kept and used memory fit below the peak of the last two epochs.
TEST(DemandProperty, KeepsAndUsesAtMostThePeak) {
  std::mt19937_64 random(20261128);
  Demand demand;
  std::int64_t live = 0;
  std::int64_t now = 0;
  std::int64_t peak = 0;
  std::int64_t previous_peak = 0;
  for (int step = 0; step < 100000; ++step) {
    const auto change = static_cast<std::int64_t>(random() % 1000);
    const std::int64_t before = live;
    live = random() % 2 == 0 ? live + change : std::max<std::int64_t>(live - change, 0);
    if (random() % 500 == 0) live = 0;
    if (random() % 100 == 0) now += static_cast<std::int64_t>(random() % 10);
    if (demand.note(live, now)) previous_peak = std::exchange(peak, before);
    peak = std::max(peak, live);
    ASSERT_EQ(demand.live_bytes(), live);
    ASSERT_GE(demand.worth_keeping(), 0);
    ASSERT_LE(live + demand.worth_keeping(), std::max(peak, previous_peak)) << step;
    ASSERT_GE(demand.worth_keeping(),
              std::min(std::max(peak, previous_peak) - live, std::max(peak, previous_peak) / 3));
  }
}

}  // namespace
}  // namespace gridbuf
