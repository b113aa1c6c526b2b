#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <span>
#include <vector>

import gridbuf.layout.sizes;

namespace gridbuf::checked {
namespace {

using Wide = __int128;  // The oracle: wide enough for every sum and product of two int64.

constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
constexpr int kRounds = 100'000;

// The value if it is inside the limits, as a wide computation sees it.
std::optional<std::int64_t> narrowed(Wide value) {
  if (value > kMaxBytes || value < -Wide{kMaxBytes}) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

// Numbers near the edges as often as anywhere else: random bits, cut to a random width.
class Numbers {
 public:
  explicit Numbers(std::uint64_t seed) : engine_(seed) {}
  std::int64_t any() {
    const auto bits = static_cast<std::int64_t>(engine_() >> (1 + engine_() % 63));
    const std::int64_t near[] = {bits, -bits, kMaxBytes - bits % 3, kMin + bits % 3};
    return near[engine_() % 4];
  }
  std::int64_t below(std::int64_t bound) {
    return static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(bound));
  }

 private:
  std::mt19937_64 engine_;
};

static_assert(kMaxBytes == 9223372036854775807);
static_assert(mul(std::int64_t{1} << 31, 4) == std::int64_t{1} << 33);
static_assert(!mul(std::int64_t{1} << 32, std::int64_t{1} << 31));
static_assert(!mul(kMin, 1) && !mul(kMin, -1));
static_assert(add(kMaxBytes, -1) == kMaxBytes - 1);
static_assert(!add(kMaxBytes, 1) && !add(-kMaxBytes, -1));
static_assert(align_up(10, 8) == 16 && align_up(16, 8) == 16 && align_up(10, 12) == 12);
static_assert(!align_up(kMaxBytes, 64));
static_assert(padding_multiple(64, 8) == 8 && padding_multiple(64, 12) == 16);
static_assert(byte_hull({}, {}, 8) == ByteHull{0, 8});

TEST(Multiply, AgreesWithWideArithmetic) {
  Numbers numbers(1);
  for (int round = 0; round < kRounds; ++round) {
    const std::int64_t a = numbers.any();
    const std::int64_t b = numbers.any();
    ASSERT_EQ(mul(a, b), narrowed(Wide{a} * b)) << a << " * " << b;
  }
}

TEST(Add, AgreesWithWideArithmetic) {
  Numbers numbers(2);
  for (int round = 0; round < kRounds; ++round) {
    const std::int64_t a = numbers.any();
    const std::int64_t b = numbers.any();
    ASSERT_EQ(add(a, b), narrowed(Wide{a} + b)) << a << " + " << b;
  }
}

TEST(AlignUp, IsTheSmallestMultipleAndNeverWraps) {
  Numbers numbers(3);
  for (int round = 0; round < kRounds; ++round) {
    const std::int64_t value = numbers.any();
    const std::int64_t multiple = numbers.any();
    const std::optional<std::int64_t> result = align_up(value, multiple);
    if (value < 0 || multiple < 1) {
      ASSERT_EQ(result, std::nullopt) << value << ", " << multiple;
      continue;
    }
    const Wide wanted = (Wide{value} + multiple - 1) / multiple * multiple;
    ASSERT_EQ(result, narrowed(wanted)) << value << " to a multiple of " << multiple;
  }
}

TEST(Product, AgreesWithWideArithmeticAndCountsZerosAsOneForTheLimit) {
  Numbers numbers(4);
  for (int round = 0; round < kRounds; ++round) {
    std::vector<std::int64_t> extents;
    Wide product = 1;
    bool zero = false;
    bool fits = true;
    for (std::int64_t i = numbers.below(6); i > 0; --i) {
      extents.push_back(numbers.below(std::int64_t{1} << (1 + numbers.below(40))));
      zero = zero || extents.back() == 0;
      if (extents.back() != 0 && fits) product *= extents.back();
      fits = fits && product <= kMaxBytes;
    }
    const std::optional<std::int64_t> wanted =
        fits ? std::optional<std::int64_t>(zero ? 0 : static_cast<std::int64_t>(product))
             : std::nullopt;
    ASSERT_EQ(gridbuf::checked::product(extents), wanted);
  }
}

TEST(Product, OfNothingIsOne) { EXPECT_EQ(product({}), 1); }

TEST(Product, RefusesNegativeExtents) {
  EXPECT_EQ(product(std::array<std::int64_t, 2>{3, -1}), std::nullopt);
  EXPECT_EQ(product(std::array<std::int64_t, 2>{0, kMin}), std::nullopt);
}

TEST(Product, AZeroDoesNotHideAnOverflow) {
  const std::int64_t big = std::int64_t{1} << 62;
  EXPECT_EQ(product(std::array{big, std::int64_t{0}, big}), std::nullopt);
  EXPECT_EQ(product(std::array{big, std::int64_t{0}}), 0);
}

TEST(PaddingMultiple, MakesRowsWholeAlignments) {
  for (std::int64_t alignment = 1; alignment <= 130; ++alignment) {
    for (std::int64_t itemsize = 1; itemsize <= 40; ++itemsize) {
      const std::int64_t multiple = padding_multiple(alignment, itemsize);
      EXPECT_EQ(multiple * itemsize % alignment, 0);
      for (std::int64_t smaller = 1; smaller < multiple; ++smaller) {
        ASSERT_NE(smaller * itemsize % alignment, 0) << alignment << ", " << itemsize;
      }
    }
  }
  EXPECT_EQ(padding_multiple(64, 0), 1);
}

// The hull by definition: the least and greatest of all corners, in wide arithmetic.
std::optional<ByteHull> hull_of_corners(const std::vector<std::int64_t>& shape,
                                        const std::vector<std::int64_t>& strides,
                                        std::int64_t itemsize, std::int64_t offset) {
  Wide lowest = offset;
  Wide highest = offset;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] == 0) return ByteHull{offset, offset};
  }
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    const Wide reach = Wide{shape[axis] - 1} * strides[axis];
    (reach < 0 ? lowest : highest) += reach;
  }
  highest += itemsize;
  if (!narrowed(lowest) || !narrowed(highest) || !narrowed(highest - lowest)) return std::nullopt;
  return ByteHull{static_cast<std::int64_t>(lowest), static_cast<std::int64_t>(highest)};
}

TEST(Hull, AgreesWithWideArithmetic) {
  Numbers numbers(5);
  int refused = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<std::int64_t> shape;
    std::vector<std::int64_t> strides;
    for (std::int64_t i = numbers.below(5); i > 0; --i) {
      shape.push_back(numbers.below(std::int64_t{1} << (1 + numbers.below(30))));
      const std::int64_t stride = numbers.any() >> numbers.below(60);
      strides.push_back(stride);
    }
    const std::int64_t itemsize = numbers.below(1000);
    const std::int64_t offset = numbers.any() / (1 + numbers.below(3));
    if (offset < -kMaxBytes) continue;
    const std::optional<ByteHull> wanted = hull_of_corners(shape, strides, itemsize, offset);
    ASSERT_EQ(byte_hull(shape, strides, itemsize, offset), wanted);
    refused += wanted ? 0 : 1;
  }
  EXPECT_GT(refused, kRounds / 20);  // The edge was really tried,
  EXPECT_LT(refused, kRounds / 2);   // and so was the inside.
}

TEST(Hull, OfNegativeStrides) {
  const std::array<std::int64_t, 2> shape{3, 4};
  const std::array<std::int64_t, 2> strides{-32, 8};
  EXPECT_EQ(byte_hull(shape, strides, 8, 64), (ByteHull{0, 96}));
  EXPECT_EQ(byte_hull(shape, strides, 8, 64)->length_bytes(), 96);
}

TEST(Hull, IgnoresStridesOfExtentsOfOneAndOfEmptyArrays) {
  const std::array<std::int64_t, 2> strides{kMin, 8};
  EXPECT_EQ(byte_hull(std::array<std::int64_t, 2>{1, 4}, strides, 8), (ByteHull{0, 32}));
  EXPECT_EQ(byte_hull(std::array<std::int64_t, 2>{kMaxBytes, 0}, strides, 8, 5), (ByteHull{5, 5}));
}

TEST(Hull, RefusesWhatIsMalformed) {
  const std::array<std::int64_t, 1> three{3};
  EXPECT_EQ(byte_hull(three, {}, 8), std::nullopt);
  EXPECT_EQ(byte_hull(three, three, -1), std::nullopt);
  EXPECT_EQ(byte_hull(std::array<std::int64_t, 1>{-3}, three, 8), std::nullopt);
  EXPECT_EQ(byte_hull({}, {}, 8, kMin), std::nullopt);
}

TEST(Hull, RefusesALengthPastTheLimitEvenIfBothEndsFit) {
  const std::int64_t half = std::int64_t{1} << 62;
  const std::array<std::int64_t, 2> shape{2, 2};
  const std::array<std::int64_t, 2> strides{half, -half};
  EXPECT_EQ(byte_hull(shape, strides, 8), std::nullopt);
}

}  // namespace
}  // namespace gridbuf::checked
