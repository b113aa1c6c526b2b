#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"

import gridbuf.base;
import gridbuf.interface;
import gridbuf.layout;
import gridbuf.layout.view;

namespace gridbuf {
namespace {

constexpr ArrayRules kRules{.ndim = "T-01",
                            .extents = "T-02",
                            .size = "T-03",
                            .strides = "T-04",
                            .hull = "T-05",
                            .null = "T-06",
                            .inside = "T-07"};
constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();

RawExtents raw(const Extents& values) { return {.count = values.size(), .values = values}; }

RawArray array_at(std::uintptr_t address, const Extents& shape) {
  return {.address = address,
          .shape = raw(shape),
          .strides_bytes = std::nullopt,
          .dtype = DType(),
          .readonly = false,
          .memory = std::nullopt};
}

std::string rule_of(const absl::StatusOr<ImportedView>& result) {
  return result.ok() ? "none" : std::string(result.status().message()).substr(0, 4);
}

// [example]
// A view of `count` doubles at `address`, if they are inside the exported buffer.
absl::StatusOr<ImportedView> doubles_in(const KnownMemory& exported, std::uintptr_t address,
                                        std::int64_t count) {
  const ArrayRules rules{.ndim = "X-1",
                         .extents = "X-2",
                         .size = "X-3",
                         .strides = "X-4",
                         .hull = "X-5",
                         .null = "X-6",
                         .inside = "X-7"};
  return check_array({.address = address,
                      .shape = {.count = 1, .values = {count}},
                      .strides_bytes = std::nullopt,
                      .dtype = DType(),
                      .readonly = true,
                      .memory = exported},
                     rules);
}
// [/example]

TEST(CheckArray, ExampleOfTheReadme) {
  EXPECT_TRUE(doubles_in({.address = 4096, .length_bytes = 32}, 4104, 3).ok());
  const auto refused = doubles_in({.address = 4096, .length_bytes = 32}, 4104, 4);
  EXPECT_EQ(
      refused.status().message(),
      "X-7: the array within the memory that was exported is in bytes 8 to 40, but must be in "
      "bytes 0 to 32; correct the object that exports it");
}

TEST(CheckArray, FillsInStridesOfCOrder) {
  const auto view = check_array(array_at(4096, {3, 4}), kRules);
  ASSERT_TRUE(view.ok());
  EXPECT_EQ(view->memory.view.strides_bytes, (Extents{32, 8}));
  EXPECT_EQ(view->memory.block, reinterpret_cast<std::byte*>(4096));
  EXPECT_TRUE(view->is_aligned);
}

TEST(CheckArray, Dp33ReplacesStridesWithoutMeaning) {
  RawArray array = array_at(4096, {1, 4});
  array.strides_bytes = raw({std::numeric_limits<std::int64_t>::min(), 16});
  auto view = check_array(array, kRules);
  ASSERT_TRUE(view.ok());
  EXPECT_EQ(view->memory.view.strides_bytes, (Extents{32, 16}));
  array = array_at(0, {0, 4});
  array.strides_bytes = raw({kLargest, kLargest});
  view = check_array(array, kRules);
  ASSERT_TRUE(view.ok());
  EXPECT_EQ(view->memory.view.strides_bytes, (Extents{32, 8}));
}

TEST(CheckArray, CountsDimensionsExtentsAndStrides) {
  RawArray array = array_at(4096, {2});
  array.shape.count = 65;
  EXPECT_EQ(rule_of(check_array(array, kRules)), "T-01");
  EXPECT_EQ(rule_of(check_array(array_at(4096, {2, -1}), kRules)), "T-02");
  array = array_at(4096, {2, 2});
  array.strides_bytes = raw({8});
  EXPECT_EQ(rule_of(check_array(array, kRules)), "T-04");
}

TEST(CheckArray, RefusesSizesThatDoNotFit) {
  EXPECT_EQ(rule_of(check_array(array_at(4096, {std::int64_t{1} << 62, 8}), kRules)), "T-03");
  EXPECT_EQ(rule_of(check_array(array_at(4096, {std::int64_t{1} << 60}), kRules)), "T-03");
  EXPECT_EQ(rule_of(check_array(array_at(4096, {0, kLargest}), kRules)), "T-03");
}

TEST(CheckArray, RefusesHullsThatLeaveTheAddressSpace) {
  RawArray array = array_at(4096, {2});
  array.strides_bytes = raw({-4104});
  EXPECT_EQ(rule_of(check_array(array, kRules)), "T-05");
  array.strides_bytes = raw({-4096});
  EXPECT_TRUE(check_array(array, kRules).ok());
  array = array_at(~std::uintptr_t{0} - 7, {1});
  EXPECT_EQ(rule_of(check_array(array, kRules)), "T-05");
  array = array_at(4096, {3});
  array.strides_bytes = raw({std::int64_t{1} << 62});
  EXPECT_EQ(rule_of(check_array(array, kRules)), "T-05");
}

TEST(CheckArray, RefusesAddressZeroWhereThereAreBytes) {
  EXPECT_EQ(rule_of(check_array(array_at(0, {1}), kRules)), "T-06");
  EXPECT_EQ(rule_of(check_array(array_at(0, {}), kRules)), "T-06");
  EXPECT_TRUE(check_array(array_at(0, {0, 3}), kRules).ok());
}

TEST(CheckArray, StaysInTheExportedMemory) {
  RawArray array = array_at(4096, {4});
  array.memory = KnownMemory{.address = 4096, .length_bytes = 32};
  EXPECT_TRUE(check_array(array, kRules).ok());
  array.memory->length_bytes = 31;
  EXPECT_EQ(rule_of(check_array(array, kRules)), "T-07");
  array.memory = KnownMemory{.address = 4104, .length_bytes = 32};
  EXPECT_EQ(rule_of(check_array(array, kRules)), "T-07");
  array = array_at(4096 + 24, {4});
  array.strides_bytes = raw({-8});
  array.memory = KnownMemory{.address = 4096, .length_bytes = 32};
  EXPECT_TRUE(check_array(array, kRules).ok());
  array.memory = KnownMemory{.address = 4097, .length_bytes = 32};
  EXPECT_EQ(rule_of(check_array(array, kRules)), "T-07");
}

TEST(CheckArray, Ai31RecordsOddAddresses) {
  EXPECT_FALSE(check_array(array_at(4097, {2}), kRules)->is_aligned);
  RawArray array = array_at(4096, {2});
  array.strides_bytes = raw({12});
  EXPECT_FALSE(check_array(array, kRules)->is_aligned);
  array.dtype = *DType::from_name("uint8");
  EXPECT_TRUE(check_array(array, kRules)->is_aligned);
}

TEST(CheckArray, NamesFieldsThatAreNotThere) {
  const auto missing = refuse_field("AI-02", Found<std::int64_t>(), "version", "an int", "add it");
  EXPECT_EQ(missing.message(), "AI-02: version is missing, but must be an int; add it");
  EXPECT_EQ(error_class_of(missing), ErrorClass::kValue);
  const auto wrong =
      refuse_field("AI-27", Found<std::int64_t>::wrong_kind("'3'"), "version", "an int", "add it");
  EXPECT_EQ(wrong.message(), "AI-27: version is '3', but must be an int; add it");
  EXPECT_EQ(error_class_of(wrong), ErrorClass::kType);
}

// The verdict of 128-bit integers, which cannot overflow here: at most 4 dimensions of 2^63.
bool fits_by_wide_integers(const RawArray& array) {
  using Wide = __int128;
  constexpr Wide kMost = kLargest;
  Wide elements_bytes = array.dtype.itemsize_bytes();
  bool empty = false;
  for (const std::int64_t extent : array.shape.values) {
    empty = empty || extent == 0;
    if (extent != 0) elements_bytes *= extent;
    if (elements_bytes > kMost) return false;
  }
  if (empty) return true;
  Wide lowest = 0;
  Wide highest = array.dtype.itemsize_bytes();
  for (int axis = 0; axis < array.shape.values.size(); ++axis) {
    const Wide reach = Wide{array.shape.values[axis] - 1} * array.strides_bytes->values[axis];
    (reach < 0 ? lowest : highest) += reach;
  }
  const Wide address = array.address;
  return array.address != 0 && lowest >= -kMost && highest <= kMost && highest - lowest <= kMost &&
         address + lowest >= 0 && address + highest <= Wide{~std::uint64_t{0}};
}

TEST(CheckArrayProperty, AgreesWithWideIntegers) {
  std::mt19937_64 random(20261121);
  constexpr std::array<std::int64_t, 12> kNumbers{0,
                                                  1,
                                                  2,
                                                  3,
                                                  7,
                                                  4096,
                                                  std::int64_t{1} << 31,
                                                  std::int64_t{1} << 32,
                                                  std::int64_t{1} << 61,
                                                  kLargest - 1,
                                                  kLargest,
                                                  std::int64_t{1} << 45};
  int accepted = 0;
  for (int round = 0; round < 200'000; ++round) {
    RawArray array = array_at(random() >> (random() % 64), {});
    const int ndim = static_cast<int>(random() % 4);
    array.strides_bytes.emplace();
    for (int axis = 0; axis < ndim; ++axis) {
      const std::int64_t stride = kNumbers[random() % kNumbers.size()];
      array.shape.values.push_back(kNumbers[random() % kNumbers.size()]);
      array.strides_bytes->values.push_back(random() % 2 == 0 ? stride : -stride);
    }
    array.shape.count = array.strides_bytes->count = ndim;
    const auto result = check_array(array, kRules);
    ASSERT_EQ(result.ok(), fits_by_wide_integers(array))
        << to_string(array.shape.values) << to_string(array.strides_bytes->values) << " at "
        << array.address << " " << result.status();
    accepted += result.ok() ? 1 : 0;
  }
  EXPECT_GT(accepted, 10'000);
  EXPECT_LT(accepted, 190'000);
}

}  // namespace
}  // namespace gridbuf
