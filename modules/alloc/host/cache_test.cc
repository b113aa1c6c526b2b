#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
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

using Numbers = std::vector<std::uintptr_t>;

TEST(MappingCache, GivesBackWhatItWasGiven) {
  MappingCache cache(100 * kMiB);
  EXPECT_FALSE(cache.take(kMiB));
  EXPECT_EQ(give(cache, mapping(1, 4 * kMiB)), Numbers());
  EXPECT_EQ(cache.cached_bytes(), 4 * kMiB);
  EXPECT_EQ(number_of(cache.take(4 * kMiB)), 1U);
  EXPECT_EQ(cache.cached_bytes(), 0);
  EXPECT_FALSE(cache.take(4 * kMiB));
}

TEST(MappingCache, WastesAtMostAnEighthOfTheRequest) {
  MappingCache cache(100 * kMiB);
  give(cache, mapping(1, 9 * kMiB));
  EXPECT_FALSE(cache.take(9 * kMiB + 1));
  EXPECT_FALSE(cache.take(8 * kMiB - 1));
  EXPECT_EQ(number_of(cache.take(8 * kMiB)), 1U);
}

TEST(MappingCache, TakesTheBestFitAndOfEqualOnesTheLastUsed) {
  MappingCache cache(1000 * kMiB);
  give(cache, mapping(1, 108 * kMiB));
  give(cache, mapping(2, 102 * kMiB));
  give(cache, mapping(3, 104 * kMiB));
  give(cache, mapping(4, 102 * kMiB));
  EXPECT_EQ(number_of(cache.take(100 * kMiB)), 4U);
  EXPECT_EQ(number_of(cache.take(100 * kMiB)), 2U);
  EXPECT_EQ(number_of(cache.take(103 * kMiB)), 3U);
  EXPECT_EQ(number_of(cache.take(100 * kMiB)), 1U);
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
  const std::optional<Mapping> taken = cache.take(8 * kMiB);
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
  const std::optional<Mapping> taken = cache.take(8 * kMiB);
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

// Compared with a model: mappings are neither lost nor kept twice, and the limit holds after every
// step.
TEST(MappingCacheProperty, LosesNothingAndKeepsItsLimit) {
  std::mt19937_64 random(20261121);
  MappingCache cache(200 * kMiB);
  std::map<std::uintptr_t, std::int64_t> kept;         // number → length
  std::vector<std::pair<Mapping, std::int64_t>> held;  // with the requested length
  std::uintptr_t made = 0;
  const auto drop = [&](const MappingCache::Victims& victims) {
    for (const Mapping& victim : victims) ASSERT_EQ(kept.erase(number_of(victim)), 1U);
  };
  for (int step = 0; step < 20000; ++step) {
    MappingCache::Victims victims;
    const std::int64_t length = (1 + static_cast<std::int64_t>(random() % 40)) * kMiB;
    if (random() % 2 == 0) {
      const std::optional<Mapping> taken = cache.take(length);
      if (taken) {
        ASSERT_EQ(kept.erase(number_of(*taken)), 1U);
        ASSERT_GE(taken->length_bytes, length);
        ASSERT_LE(taken->length_bytes - length, length / 8);
      }
      held.emplace_back(taken ? *taken : mapping(++made, length), length);
    } else if (!held.empty()) {
      std::swap(held[random() % held.size()], held.back());
      kept[number_of(held.back().first)] = held.back().first.length_bytes;
      cache.give(held.back().first, held.back().second, victims);
      held.pop_back();
    } else {
      cache.trim(static_cast<std::int64_t>(random() % 300) * kMiB, victims);
    }
    drop(victims);
    std::int64_t total = 0;
    for (const auto& [number, bytes] : kept) total += bytes;
    ASSERT_EQ(cache.cached_bytes(), total);
    ASSERT_EQ(cache.count(), std::ssize(kept));
    ASSERT_GE(cache.surplus_bytes(), 0);
    ASSERT_LE(cache.cached_bytes() + cache.surplus_bytes(), 200 * kMiB);
  }
}

}  // namespace
}  // namespace gridbuf
