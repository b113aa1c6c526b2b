#include <algorithm>
#include <array>
#include <cfenv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"

import gridbuf.alloc;
import gridbuf.alloc.host;
import gridbuf.alloc.testing;
import gridbuf.base;
import gridbuf.layout;
import gridbuf.layout.view;
import gridbuf.transfer;
import gridbuf.transfer.testing;

namespace gridbuf {
namespace {

using testing::Bytes;

// A conversion to test. Blocks begin before the views' lowest bytes.
struct Case {
  StridedView target = {};
  Number target_type = Number::kFloat64;
  StridedView source = {};
  Number source_type = Number::kFloat64;
  bool target_is_swapped = false;
  bool source_is_swapped = false;

  std::string text() const {
    return std::string(info_of(target_type).name) + (target_is_swapped ? " (swapped), " : ", ") +
           to_string(target) + " from " + std::string(info_of(source_type).name) +
           (source_is_swapped ? " (swapped), " : ", ") + to_string(source);
  }
};

std::vector<std::byte> read(const std::byte* at, Number type, bool is_swapped) {
  Bytes number(at, at + info_of(type).itemsize_bytes);
  if (is_swapped) std::reverse(number.begin(), number.end());
  return number;
}

// The definition: reads all elements, then converts and writes each element in row-major order.
bool define(const Case& one, std::byte* target, const std::byte* source) {
  std::vector<Bytes> numbers;
  testing::for_each_index(one.target.shape, [&](const Extents& index) {
    numbers.push_back(
        read(source + byte_offset(one.source, index), one.source_type, one.source_is_swapped));
  });
  bool warns = false;
  std::size_t next = 0;
  testing::for_each_index(one.target.shape, [&](const Extents& index) {
    Bytes result(static_cast<std::size_t>(one.target.itemsize_bytes));
    warns |= testing::define_conversion(result.data(), one.target_type, numbers[next++].data(),
                                        one.source_type);
    const Bytes written = read(result.data(), one.target_type, one.target_is_swapped);
    std::copy(written.begin(), written.end(), target + byte_offset(one.target, index));
  });
  return warns;
}

absl::StatusOr<bool> convert(const Case& one, std::byte* target, const std::byte* source,
                             MemoryResource* scratch = nullptr) {
  return convert_elements(target, one.target, one.target_type, source, one.source, one.source_type,
                          {.target_is_swapped = one.target_is_swapped,
                           .source_is_swapped = one.source_is_swapped,
                           .scratch = scratch});
}

// Draws cases. Most numbers fit in all types, so that not every case has a warning.
class RandomCases {
 public:
  explicit RandomCases(std::uint64_t seed) : views_(seed) {}

  Case next(const Extents& shape) {
    Case one;
    do {
      one.target_type = type();
      one.source_type = type();
    } while (!can_convert(one.target_type, one.source_type));
    one.target = view(shape, info_of(one.target_type).itemsize_bytes, 8);
    one.source = view(shape, info_of(one.source_type).itemsize_bytes, 3);
    one.target_is_swapped = views_.once_in(5);
    one.source_is_swapped = views_.once_in(5);
    return one;
  }

  Bytes numbers(const Case& one, std::int64_t length_bytes) {
    Bytes bytes = testing::random_bytes(
        length_bytes, static_cast<std::uint64_t>(views_.below(std::int64_t{1} << 40)));
    if (views_.once_in(3)) return bytes;
    const std::int64_t itemsize = one.source.itemsize_bytes;
    testing::for_each_index(one.source.shape, [&](const Extents& index) {
      const auto small = static_cast<std::int32_t>(views_.below(100));
      Bytes number(static_cast<std::size_t>(itemsize));
      testing::define_conversion(number.data(), one.source_type,
                                 reinterpret_cast<const std::byte*>(&small), Number::kInt32);
      const Bytes written = read(number.data(), one.source_type, one.source_is_swapped);
      std::copy(written.begin(), written.end(), bytes.begin() + byte_offset(one.source, index));
    });
    return bytes;
  }

  testing::RandomViews& views() { return views_; }

 private:
  Number type() { return static_cast<Number>(views_.below(kNumberCount)); }

  StridedView view(const Extents& shape, std::int64_t itemsize, std::int64_t any_once_in) {
    if (views_.once_in(any_once_in)) return views_.any(shape, itemsize);
    return views_.separate(shape, itemsize);
  }

  testing::RandomViews views_;
};

class ConvertElements : public ::testing::TestWithParam<Simd> {
 protected:
  void SetUp() override { ASSERT_TRUE(set_simd(GetParam()).ok()); }
  void TearDown() override { ASSERT_TRUE(set_simd(supported_simd().back()).ok()); }

  void check(const Case& one, const Bytes& before, const Bytes& source) {
    Bytes result = before;
    Bytes expected = before;
    const bool warns = define(one, expected.data(), source.data());
    const auto found = convert(one, result.data(), source.data());
    ASSERT_TRUE(found.ok()) << found.status() << one.text();
    ASSERT_TRUE(result == expected) << one.text();
    ASSERT_EQ(*found, warns) << one.text();
  }
};

TEST_P(ConvertElements, MatchTheDefinitionForSmallViews) {
  RandomCases random(1);
  for (int round = 0; round < 10000; ++round) {
    const Case one = random.next(random.views().small_shape());
    const Bytes source = random.numbers(one, testing::bytes_up_to_the_end(one.source) + 3);
    check(one, testing::random_bytes(testing::bytes_up_to_the_end(one.target) + 3, 5), source);
    if (HasFatalFailure()) return;
  }
}

TEST_P(ConvertElements, MatchTheDefinitionAroundTheEdgesOfVectorsAndBoxes) {
  RandomCases random(2);
  for (int round = 0; round < 1500; ++round) {
    // A box has at most 8192 elements.
    const bool is_large = random.views().once_in(8);
    const Case one = random.next(random.views().edge_shape(is_large ? 40'000 : 6000));
    const Bytes source = random.numbers(one, testing::bytes_up_to_the_end(one.source) + 3);
    check(one, testing::random_bytes(testing::bytes_up_to_the_end(one.target) + 3, 5), source);
    if (HasFatalFailure()) return;
  }
}

// Source and target in one block, at random offsets.
TEST_P(ConvertElements, MatchTheDefinitionForOverlappingViews) {
  RandomCases random(3);
  for (int round = 0; round < 4000; ++round) {
    Case one = random.next(random.views().small_shape());
    one.target.offset_bytes += random.views().below(40);
    one.source.offset_bytes += random.views().below(40);
    const std::int64_t length = std::max(testing::bytes_up_to_the_end(one.target),
                                         testing::bytes_up_to_the_end(one.source));
    const Bytes block = random.numbers(one, length);
    Bytes expected = block;
    const bool warns = define(one, expected.data(), expected.data());
    Bytes result = block;
    const auto found = convert(one, result.data(), result.data());
    ASSERT_TRUE(found.ok()) << found.status();
    ASSERT_EQ(result, expected) << one.text();
    ASSERT_EQ(*found, warns) << one.text();
  }
}

// Larger than a box and than the work of one thread: cut, shared, streamed and joined. The
// definition would take minutes here, so a simpler walk compares the parts.
TEST_P(ConvertElements, CutLargeViewsWithoutLossOrDoubling) {
  for (const int threads : {1, 3}) {
    ASSERT_TRUE(set_thread_count(threads).ok());
    for (const Extents& order : {Extents{0, 1, 2}, Extents{0, 2, 1}, Extents{2, 1, 0},
                                 Extents{1, 2, 0}, Extents{2, 0, 1}, Extents{1, 0, 2}}) {
      const Extents shape{67, 97, 203};
      StridedView target{.shape = shape, .strides_bytes = {0, 0, 0}, .itemsize_bytes = 8};
      target.strides_bytes = {97 * 208 * 8, 208 * 8, 8};
      target.offset_bytes = 24;
      StridedView source{.shape = shape, .strides_bytes = {0, 0, 0}, .itemsize_bytes = 4};
      std::int64_t stride = 4;
      for (int axis = 2; axis >= 0; --axis) {
        source.strides_bytes[static_cast<int>(order[axis])] = stride;
        stride *= shape[static_cast<int>(order[axis])];
      }
      std::vector<std::int32_t> numbers(67 * 97 * 203);
      for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::int32_t>(i);
      const double sentinel = -1;
      std::vector<double> result(67 * 97 * 208 + 8, sentinel);
      const auto warns = convert_elements(
          reinterpret_cast<std::byte*>(result.data()), target, Number::kFloat64,
          reinterpret_cast<const std::byte*>(numbers.data()), source, Number::kInt32);
      ASSERT_TRUE(warns.ok()) << warns.status();
      EXPECT_FALSE(*warns);
      std::size_t wrong = 0;
      testing::for_each_index({67, 97, 208}, [&](const Extents& index) {
        const double found =
            result[static_cast<std::size_t>(3 + (index[0] * 97 + index[1]) * 208 + index[2])];
        const double expected =
            index[2] < 203 ? numbers[static_cast<std::size_t>(byte_offset(source, index) / 4)]
                           : sentinel;
        wrong += found == expected ? 0 : 1;
      });
      EXPECT_EQ(wrong, 0U) << to_string(source) << " by " << threads << " threads";
    }
  }
  ASSERT_TRUE(set_thread_count(2).ok());
}

TEST_P(ConvertElements, ReportFromEveryThread) {
  ASSERT_TRUE(set_thread_count(3).ok());
  constexpr std::int64_t kCount = 3'000'000;
  const StridedView wide{.shape = {kCount}, .strides_bytes = {8}, .itemsize_bytes = 8};
  const StridedView narrow{.shape = {kCount}, .strides_bytes = {4}, .itemsize_bytes = 4};
  std::vector<double> numbers(kCount, 1.5);
  std::vector<float> floats(kCount);
  const auto source = reinterpret_cast<const std::byte*>(numbers.data());
  for (const std::size_t at : {0, 1'499'999, 2'999'999}) {
    numbers[at] = 1e300;
    EXPECT_TRUE(*convert_elements(reinterpret_cast<std::byte*>(floats.data()), narrow,
                                  Number::kFloat32, source, wide, Number::kFloat64));
    numbers[at] = 1.5;
  }
  EXPECT_FALSE(*convert_elements(reinterpret_cast<std::byte*>(floats.data()), narrow,
                                 Number::kFloat32, source, wide, Number::kFloat64));
  ASSERT_TRUE(set_thread_count(2).ok());
}

TEST_P(ConvertElements, DoNotDependOnTheRoundingModeOfTheThread) {
  const double number = 1 + 0x1p-24;  // halfway between two float32
  const StridedView wide{.shape = {1}, .strides_bytes = {8}, .itemsize_bytes = 8};
  const StridedView narrow{.shape = {1}, .strides_bytes = {4}, .itemsize_bytes = 4};
  float result = 0;
  ASSERT_EQ(std::fesetround(FE_UPWARD), 0);
  const auto warns =
      convert_elements(reinterpret_cast<std::byte*>(&result), narrow, Number::kFloat32,
                       reinterpret_cast<const std::byte*>(&number), wide, Number::kFloat64);
  EXPECT_EQ(std::fegetround(), FE_UPWARD);
  ASSERT_EQ(std::fesetround(FE_TONEAREST), 0);
  ASSERT_TRUE(warns.ok());
  EXPECT_EQ(result, 1.0F);
}

#if defined(__x86_64__) || defined(__aarch64__)
#if defined(__x86_64__)
constexpr std::uint64_t kFlush = 0x8040;  // of results and of operands
std::uint64_t float_control() { return __builtin_ia32_stmxcsr(); }
void set_float_control(std::uint64_t bits) { __builtin_ia32_ldmxcsr(static_cast<unsigned>(bits)); }
#else
constexpr std::uint64_t kFlush = std::uint64_t{1} << 24;
std::uint64_t float_control() {
  std::uint64_t bits = 0;
  asm volatile("mrs %0, fpcr" : "=r"(bits));
  return bits;
}
void set_float_control(std::uint64_t bits) { asm volatile("msr fpcr, %0" ::"r"(bits)); }
#endif

TEST_P(ConvertElements, KeepSubnormalsWhereTheThreadFlushesThem) {
  const double number = 0x1p-140;
  const StridedView wide{.shape = {1}, .strides_bytes = {8}, .itemsize_bytes = 8};
  const StridedView narrow{.shape = {1}, .strides_bytes = {4}, .itemsize_bytes = 4};
  float result = 0;
  const std::uint64_t before = float_control();
  set_float_control(before | kFlush);
  const auto warns =
      convert_elements(reinterpret_cast<std::byte*>(&result), narrow, Number::kFloat32,
                       reinterpret_cast<const std::byte*>(&number), wide, Number::kFloat64);
  const std::uint64_t after = float_control();
  set_float_control(before);
  EXPECT_EQ(after & kFlush, kFlush);
  ASSERT_TRUE(warns.ok());
  EXPECT_EQ(result, 0x1p-140F);
}
#endif

// A load or store outside the rows ends the process.
TEST_P(ConvertElements, StayWithinTheirBlocks) {
  RandomCases random(4);
  testing::FencedMemory target_memory(1 << 16);
  testing::FencedMemory source_memory(1 << 16);
  for (int round = 0; round < 2000; ++round) {
    const Case one = random.next(random.views().edge_shape(600));
    const std::int64_t target_bytes = testing::bytes_up_to_the_end(one.target);
    const std::int64_t source_bytes = testing::bytes_up_to_the_end(one.source);
    if (std::max(target_bytes, source_bytes) > 1 << 16) continue;
    const bool begin = round % 2 == 0;
    const auto hand_out = [&](testing::FencedMemory& memory, std::int64_t length) {
      return begin ? memory.behind_fence(length) : memory.before_fence(length);
    };
    const auto target = hand_out(target_memory, target_bytes);
    const auto source = hand_out(source_memory, source_bytes);
    const Bytes numbers = random.numbers(one, source_bytes);
    std::copy(numbers.begin(), numbers.end(), source.begin());
    ASSERT_TRUE(convert(one, target.data(), source.data()).ok()) << one.text();
  }
}

INSTANTIATE_TEST_SUITE_P(Paths, ConvertElements, ::testing::ValuesIn(supported_simd()),
                         [](const auto& path) { return std::string(to_string(path.param)); });

// --- Masked copies -------------------------------------------------------------------------------

class CopyElementsWhere : public ConvertElements {};

// Writes the elements of a copy that the mask selects, one by one.
Bytes expected_where(const Bytes& before, const testing::CopyCase& copy, const Bytes& source,
                     const Bytes& mask, const StridedView& mask_view) {
  Bytes expected = before;
  testing::for_each_index(copy.target.shape, [&](const Extents& index) {
    if (mask[static_cast<std::size_t>(byte_offset(mask_view, index))] == std::byte{0}) return;
    StridedView to{.offset_bytes = byte_offset(copy.target, index),
                   .itemsize_bytes = copy.target.itemsize_bytes};
    StridedView from = to;
    from.offset_bytes = byte_offset(copy.source, index);
    testing::define_copy(expected.data(), to, source.data(), from, copy.swap_unit_bytes);
  });
  return expected;
}

// Masks of all kinds: none, all, and random elements selected.
void thin_out(Bytes& mask, testing::RandomViews& random) {
  const std::byte kept = random.once_in(8)   ? std::byte{0}
                         : random.once_in(8) ? std::byte{0xff}
                                             : std::byte{0x11};
  const std::byte added = kept == std::byte{0xff} ? std::byte{0x20} : std::byte{0};
  for (std::byte& byte : mask) byte = (byte & kept) | added;
}

TEST_P(CopyElementsWhere, MatchTheDefinitionForEveryItemsize) {
  testing::RandomViews random(5);
  for (int round = 0; round < 6000; ++round) {
    const std::int64_t most = random.once_in(40) ? 40'000 : 2000;
    const testing::CopyCase copy =
        random.copy_of(random.once_in(3) ? random.edge_shape(most) : random.small_shape());
    const StridedView mask_view = random.separate(copy.target.shape, 1);
    const Bytes source = testing::random_bytes(testing::bytes_up_to_the_end(copy.source), 1);
    Bytes mask = testing::random_bytes(testing::bytes_up_to_the_end(mask_view), 2);
    thin_out(mask, random);
    const Bytes before = testing::random_bytes(testing::bytes_up_to_the_end(copy.target), 3);
    Bytes result = before;
    const absl::Status status =
        copy_elements_where(result.data(), copy.target, source.data(), copy.source, mask.data(),
                            mask_view, {.swap_unit_bytes = copy.swap_unit_bytes});
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_TRUE(result == expected_where(before, copy, source, mask, mask_view))
        << to_string(copy) << " where " << to_string(mask_view);
  }
}

// Source, target and mask in one block, at random offsets.
TEST_P(CopyElementsWhere, MatchTheDefinitionForOverlappingViews) {
  testing::RandomViews random(6);
  for (int round = 0; round < 3000; ++round) {
    const testing::CopyCase copy = random.copy_of(random.small_shape());
    const StridedView mask_view = random.separate(copy.target.shape, 1);
    const std::int64_t length = std::max({testing::bytes_up_to_the_end(copy.target),
                                          testing::bytes_up_to_the_end(copy.source),
                                          testing::bytes_up_to_the_end(mask_view)});
    Bytes block = testing::random_bytes(length, static_cast<std::uint64_t>(round));
    thin_out(block, random);
    Bytes result = block;
    const absl::Status status =
        copy_elements_where(result.data(), copy.target, result.data(), copy.source, result.data(),
                            mask_view, {.swap_unit_bytes = copy.swap_unit_bytes});
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_TRUE(result == expected_where(block, copy, block, block, mask_view))
        << to_string(copy) << " where " << to_string(mask_view);
  }
}

TEST_P(CopyElementsWhere, CutLargeViewsWithoutLossOrDoubling) {
  ASSERT_TRUE(set_thread_count(3).ok());
  for (const bool turned : {false, true}) {
    const Extents shape{301, 1999};
    const StridedView target{.shape = shape, .strides_bytes = {8 * 2000, 8}, .itemsize_bytes = 8};
    StridedView source{.shape = shape, .strides_bytes = {8 * 1999, 8}, .itemsize_bytes = 8};
    if (turned) source.strides_bytes = {8, 8 * 301};
    const StridedView mask_view{.shape = shape, .strides_bytes = {1, 301}, .itemsize_bytes = 1};
    const Bytes numbers = testing::random_bytes(testing::bytes_up_to_the_end(source), 1);
    Bytes mask = testing::random_bytes(testing::bytes_up_to_the_end(mask_view), 2);
    for (std::byte& byte : mask) byte &= std::byte{0x1};
    const Bytes before = testing::random_bytes(testing::bytes_up_to_the_end(target), 3);
    Bytes result = before;
    ASSERT_TRUE(
        copy_elements_where(result.data(), target, numbers.data(), source, mask.data(), mask_view)
            .ok());
    EXPECT_TRUE(result == expected_where(before, {target, source}, numbers, mask, mask_view));
  }
  ASSERT_TRUE(set_thread_count(2).ok());
}

// A load or store outside the rows ends the process.
TEST_P(CopyElementsWhere, StayWithinTheirBlocks) {
  testing::RandomViews random(7);
  testing::FencedMemory target_memory(1 << 18);
  testing::FencedMemory source_memory(1 << 18);
  testing::FencedMemory mask_memory(1 << 18);
  for (int round = 0; round < 1000; ++round) {
    const testing::CopyCase copy = random.copy_of(random.edge_shape(600));
    const StridedView mask_view = random.separate(copy.target.shape, 1);
    const std::int64_t target_bytes = testing::bytes_up_to_the_end(copy.target);
    const std::int64_t source_bytes = testing::bytes_up_to_the_end(copy.source);
    const std::int64_t mask_bytes = testing::bytes_up_to_the_end(mask_view);
    if (std::max({target_bytes, source_bytes, mask_bytes}) > 1 << 18) continue;
    const auto place = [&](testing::FencedMemory& memory, std::int64_t length) {
      return round % 2 == 0 ? memory.behind_fence(length) : memory.before_fence(length);
    };
    const auto target = place(target_memory, target_bytes);
    const auto source = place(source_memory, source_bytes);
    const auto mask = place(mask_memory, mask_bytes);
    testing::write_random(source, 1);
    testing::write_random(mask, static_cast<std::uint64_t>(round));
    for (std::byte& byte : mask) byte &= std::byte{0x11};
    ASSERT_TRUE(copy_elements_where(target.data(), copy.target, source.data(), copy.source,
                                    mask.data(), mask_view,
                                    {.swap_unit_bytes = copy.swap_unit_bytes})
                    .ok());
  }
}

TEST(CopyElementsWhereExample, KeepElementsLongerThanTheScratch) {
  constexpr std::int64_t kLong = 100'000;
  const StridedView view{.shape = {3}, .strides_bytes = {kLong}, .itemsize_bytes = kLong};
  const StridedView chosen{.shape = {3}, .strides_bytes = {1}, .itemsize_bytes = 1};
  const Bytes source = testing::random_bytes(3 * kLong, 1);
  const Bytes before = testing::random_bytes(3 * kLong, 2);
  const Bytes mask{std::byte{1}, std::byte{0}, std::byte{9}};
  const testing::CopyCase copy{view, view, 4};
  Bytes result = before;
  ASSERT_TRUE(copy_elements_where(result.data(), view, source.data(), view, mask.data(), chosen,
                                  {.swap_unit_bytes = 4})
                  .ok());
  EXPECT_TRUE(result == expected_where(before, copy, source, mask, chosen));
}

INSTANTIATE_TEST_SUITE_P(Paths, CopyElementsWhere, ::testing::ValuesIn(supported_simd()),
                         [](const auto& path) { return std::string(to_string(path.param)); });

// --- Examples ------------------------------------------------------------------------------------

// Copies a field of float32 columns to rows of float64; false if a number was not representable.
absl::StatusOr<bool> to_rows(double* target, const float* source, std::int64_t rows,
                             std::int64_t columns) {
  const StridedView by_rows{
      .shape = {rows, columns}, .strides_bytes = {8 * columns, 8}, .itemsize_bytes = 8};
  const StridedView by_columns{
      .shape = {rows, columns}, .strides_bytes = {4, 4 * rows}, .itemsize_bytes = 4};
  const absl::StatusOr<bool> warns =
      convert_elements(reinterpret_cast<std::byte*>(target), by_rows, Number::kFloat64,
                       reinterpret_cast<const std::byte*>(source), by_columns, Number::kFloat32);
  if (!warns.ok()) return warns.status();
  return !*warns;
}

TEST(ConvertElementsExample, CastByColumnsToRows) {
  const std::array<float, 6> source{1, 2, 3, 4, 5, 6};
  std::array<double, 6> target{};
  EXPECT_TRUE(*to_rows(target.data(), source.data(), 2, 3));
  EXPECT_EQ(target, (std::array<double, 6>{1, 3, 5, 2, 4, 6}));
}

// --- Errors --------------------------------------------------------------------------------------

class ConvertRefusal : public ::testing::Test {
 protected:
  void expect_value_error(const Case& one, const std::string& part, bool null_target = false) {
    const Bytes before = testing::random_bytes(64, 1);
    Bytes target = before;
    const Bytes source(64);
    const auto found = convert(one, null_target ? nullptr : target.data(), source.data());
    ASSERT_FALSE(found.ok());
    EXPECT_EQ(error_class_of(found.status()), ErrorClass::kValue);
    EXPECT_NE(found.status().message().find(part), std::string::npos) << found.status();
    EXPECT_EQ(target, before);
  }

  void expect_mask_error(const StridedView& mask, const std::string& part) {
    const Bytes before = testing::random_bytes(64, 1);
    Bytes target = before;
    const Bytes source(64, std::byte{1});
    const absl::Status status =
        copy_elements_where(target.data(), view_, source.data(), view_, source.data(), mask);
    EXPECT_EQ(error_class_of(status), ErrorClass::kValue);
    EXPECT_NE(status.message().find(part), std::string::npos) << status;
    EXPECT_EQ(target, before);
  }

  const StridedView bytes_{.shape = {2, 3}, .strides_bytes = {3, 1}, .itemsize_bytes = 1};
  const StridedView view_{.shape = {2, 3}, .strides_bytes = {12, 4}, .itemsize_bytes = 4};
  const Case good_{.target = view_,
                   .target_type = Number::kFloat32,
                   .source = view_,
                   .source_type = Number::kInt32};
};

TEST_F(ConvertRefusal, OfDifferentShapes) {
  Case one = good_;
  one.source.shape = {3, 2};
  expect_value_error(one, "the source's shape is (3, 2)");
  StridedView mask = bytes_;
  mask.shape = {2};
  expect_mask_error(mask, "the mask's shape is (2,)");
}

TEST_F(ConvertRefusal, OfItemsizesThatAreNotTheTypes) {
  Case one = good_;
  one.source_type = Number::kInt64;
  expect_value_error(one, "the source's itemsize_bytes is 4");
  one = good_;
  one.target.itemsize_bytes = 2;
  expect_value_error(one, "the target's itemsize_bytes is 2");
  StridedView mask = bytes_;
  mask.itemsize_bytes = 4;
  expect_mask_error(mask, "the mask's itemsize_bytes is 4");
}

TEST_F(ConvertRefusal, OfMalformedViews) {
  Case one = good_;
  one.source.strides_bytes = {12};
  expect_value_error(one, "as many strides");
  StridedView mask = bytes_;
  mask.strides_bytes = {std::numeric_limits<std::int64_t>::max(), 1};
  expect_mask_error(mask, "2^63 - 1 bytes");
}

TEST_F(ConvertRefusal, OfCastsThatAreNumPys) {
  Case one = good_;
  one.target_type = Number::kInt32;
  Bytes target(64);
  const Bytes source(64);
  const absl::Status status = convert(one, target.data(), source.data()).status();
  EXPECT_EQ(error_class_of(status), ErrorClass::kType) << status;
  EXPECT_NE(status.message().find("int32 to int32"), std::string::npos) << status;
}

TEST_F(ConvertRefusal, OfNullWithElements) {
  expect_value_error(good_, "null", /*null_target=*/true);
}

TEST_F(ConvertRefusal, OfASwapUnitThatDoesNotDivide) {
  Bytes bytes(64);
  const absl::Status status = copy_elements_where(bytes.data(), view_, bytes.data(), view_,
                                                  bytes.data(), bytes_, {.swap_unit_bytes = 3});
  EXPECT_EQ(error_class_of(status), ErrorClass::kValue);
  EXPECT_NE(status.message().find("swap_unit_bytes is 3"), std::string::npos) << status;
}

TEST(ConvertScratch, IsAskedForByOverlapsOnlyAndGivenBack) {
  testing::CountingResource counting(host_resource());
  const StridedView rows{.shape = {128, 128}, .strides_bytes = {512, 4}, .itemsize_bytes = 4};
  const StridedView columns{.shape = {128, 128}, .strides_bytes = {4, 512}, .itemsize_bytes = 4};
  Bytes target(128 * 512 + 4);
  const Bytes source(128 * 512);
  const auto run = [&](const StridedView& from, const std::byte* block) {
    return convert_elements(target.data(), rows, Number::kFloat32, block, from, Number::kInt32,
                            {.scratch = &counting});
  };
  ASSERT_TRUE(run(rows, source.data()).ok());
  EXPECT_EQ(counting.counts().allocations, 0);
  ASSERT_TRUE(run(columns, source.data()).ok());
  EXPECT_EQ(counting.counts().allocations, 0);
  ASSERT_TRUE(run(rows, target.data() + 4).ok());
  EXPECT_EQ(counting.counts().allocations, 1);
  EXPECT_EQ(counting.counts().live_blocks, 0);
}

TEST(ConvertScratch, FailureLeavesTheTargetAsItWas) {
  const StridedView rows{.shape = {128, 128}, .strides_bytes = {512, 4}, .itemsize_bytes = 4};
  const StridedView mask{.shape = {128, 128}, .strides_bytes = {128, 1}, .itemsize_bytes = 1};
  const Bytes before = testing::random_bytes(128 * 512 + 4, 1);
  Bytes target = before;
  testing::FailingResource first(host_resource(), 1);
  const auto found = convert_elements(target.data(), rows, Number::kFloat32, target.data() + 4,
                                      rows, Number::kInt32, {.scratch = &first});
  EXPECT_EQ(error_class_of(found.status()), ErrorClass::kMemory) << found.status();
  for (const int failing : {1, 2}) {  // the source's memory and the mask's
    testing::FailingResource resource(host_resource(), failing);
    const absl::Status status = copy_elements_where(target.data(), rows, target.data() + 4, rows,
                                                    target.data(), mask, {.scratch = &resource});
    EXPECT_EQ(error_class_of(status), ErrorClass::kMemory) << status;
  }
  EXPECT_EQ(target, before);
}

TEST(ConvertElementsExample, TouchNothingForAnEmptyShape) {
  const StridedView view{.shape = {3, 0}, .strides_bytes = {1000, -8}, .itemsize_bytes = 8};
  EXPECT_TRUE(
      convert_elements(nullptr, view, Number::kFloat64, nullptr, view, Number::kInt64).ok());
}

}  // namespace
}  // namespace gridbuf
