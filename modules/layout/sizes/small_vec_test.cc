#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

import gridbuf.layout.sizes;

namespace gridbuf {
namespace {

constexpr Extents kShape{3, 4, 5};
static_assert(kShape.size() == 3 && kShape[2] == 5);
static_assert(Extents(2, 7) == Extents{7, 7});
static_assert(Extents{}.empty() && Extents{1} != Extents{2} && Extents{1} != Extents{1, 1});
static_assert(sizeof(Extents) == 72 && sizeof(SmallVec<int>) == 40);
static_assert(std::is_nothrow_move_constructible_v<Extents>);
static_assert(std::is_nothrow_move_assignable_v<Extents>);
static_assert(!std::is_nothrow_copy_constructible_v<Extents>);  // It may allocate.
using InPlace = SmallVec<std::int64_t, kMaxNdim>;
static_assert(std::is_nothrow_copy_constructible_v<InPlace>);
static_assert(std::is_nothrow_constructible_v<InPlace, const Extents&>);

constexpr Extents edited() {
  Extents values{1, 3};
  values.insert(1, 2);
  values.push_back(4);
  values.erase(0);
  return values;
}
static_assert(edited() == Extents{2, 3, 4});

constexpr bool keeps_values_on_the_heap() {
  Extents values(8, 1);
  const Extents before = values;
  values.insert(8, 2);
  Extents moved = std::move(values);
  if (!values.empty() || moved.size() != 9 || moved[8] != 2) return false;
  values = moved;
  if (values != moved) return false;
  values = before;
  moved.erase(8);
  const InPlace copied = moved;
  return values == before && moved == before && copied.span().size() == 8;
}
static_assert(keeps_values_on_the_heap());

TEST(SmallVec, DoesWhatAVectorDoes) {
  std::mt19937_64 engine(1);
  for (int round = 0; round < 1000; ++round) {
    Extents values;
    std::vector<std::int64_t> oracle;
    for (int step = 0; step < 100; ++step) {
      const auto number = static_cast<std::int64_t>(engine());
      const int position = static_cast<int>(engine() % (oracle.size() + 1));
      const bool grows = values.size() < kMaxNdim && (oracle.empty() || engine() % 3 > 0);
      if (grows) {
        values.insert(position, number);
        oracle.insert(oracle.begin() + position, number);
      } else {
        const int victim = static_cast<int>(engine() % oracle.size());
        values.erase(victim);
        oracle.erase(oracle.begin() + victim);
      }
    }
    const Extents copy = values;
    Extents assigned{9, 9};
    assigned = copy;
    ASSERT_EQ(std::vector(assigned.begin(), assigned.end()), oracle);
    ASSERT_EQ(copy, values);
    ASSERT_EQ(copy.span().size(), oracle.size());
    Extents swapped{1};
    std::swap(assigned, swapped);
    ASSERT_EQ(swapped, values);
    ASSERT_EQ(assigned, Extents{1});
    ASSERT_EQ(InPlace(values).span().size(), oracle.size());
  }
}

TEST(SmallVec, HoldsTheMostDimensions) {
  Extents values(kMaxNdim, 1);
  EXPECT_EQ(values.size(), 64);
  const Extents& same = values;
  values = same;
  EXPECT_EQ(values.size(), 64);
}

TEST(SmallVecDeathTest, TrapsInsteadOfWritingOutOfBounds) {
  Extents values(kMaxNdim, 1);
  EXPECT_DEATH(values.push_back(1), "");
  EXPECT_DEATH(values.insert(0, 1), "");
  EXPECT_DEATH(Extents(kMaxNdim + 1, 1), "");
  EXPECT_DEATH(Extents().erase(0), "");
}

TEST(ToString, WritesPythonTuples) {
  EXPECT_EQ(to_string(Extents{}), "()");
  EXPECT_EQ(to_string(Extents{3}), "(3,)");
  EXPECT_EQ(to_string(SmallVec<int>{2, 0, 1}), "(2, 0, 1)");
  EXPECT_EQ(to_string(Extents{-1, 9223372036854775807}), "(-1, 9223372036854775807)");
}

}  // namespace
}  // namespace gridbuf
