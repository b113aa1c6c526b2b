#include <cstdint>
#include <string>
#include <type_traits>

#include <gtest/gtest.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

import gridbuf.call;
import gridbuf.storage;

namespace gridbuf {
namespace {

using axis::I;
using axis::J;
using axis::K;

// [example]
// The five-point Laplacian on each level, for any halos and layouts of the fields. Reads one point
// around its domain.
absl::Status laplacian(const Storage& in, const Storage& out) {
  const auto u = ReadField<double, I, J, K>::open("in", in);
  if (!u.ok()) return u.status();
  const auto lap = WriteField<double, I, J, K>::open("out", out);
  if (!lap.ok()) return lap.status();
  const Extents& n = lap->domain();
  for (std::int64_t i = 0; i < n[0]; ++i) {
    for (std::int64_t j = 0; j < n[1]; ++j) {
      for (std::int64_t k = 0; k < n[2]; ++k) {
        (*lap)(i, j, k) = (*u)(i - 1, j, k) + (*u)(i + 1, j, k) + (*u)(i, j - 1, k) +
                          (*u)(i, j + 1, k) - 4 * (*u)(i, j, k);
      }
    }
  }
  return absl::OkStatus();
}
// [/example]

Storage make_storage(const Extents& shape, const Dims& dims, const Halo& halo) {
  const Layout plan =
      make_plan(
          {.shape = shape, .itemsize_bytes = 8, .alignment_bytes = 64, .dims = dims, .halo = halo})
          .value();
  return Storage::allocate({.layout = plan, .zeroed = true}).value();
}

/// i² + 3 j² + k at the point (i, j, k) of the domain, halo included.
void fill(const Storage& storage) {
  const auto field = WriteField<double, I, J, K>::open("field", storage);
  ASSERT_TRUE(field.ok()) << field.status();
  for (std::int64_t i = -field->lower(0); i < field->upper(0); ++i) {
    for (std::int64_t j = -field->lower(1); j < field->upper(1); ++j) {
      for (std::int64_t k = -field->lower(2); k < field->upper(2); ++k) {
        (*field)(i, j, k) = static_cast<double>(i * i + 3 * j * j + k);
      }
    }
  }
}

TEST(Field, ALaplacianOfAParabolaIsConstantWhateverTheLayoutsAndHalosAre) {
  const Storage in = make_storage({9, 8, 7}, {kDimK, kDimI, kDimJ}, {{0, 2}, {1, 2}, {3, 1}});
  const Storage out = make_storage({5, 3, 7}, {kDimI, kDimJ, kDimK}, no_halo(3));
  fill(in);
  ASSERT_TRUE(laplacian(in, out).ok());
  const auto lap = ReadField<double, I, J, K>::open("out", out);
  ASSERT_TRUE(lap.ok());
  for (int i = 0; i < 5; ++i) {
    for (int j = 0; j < 3; ++j) {
      for (int k = 0; k < 7; ++k) EXPECT_EQ((*lap)(i, j, k), 2 + 6) << i << j << k;
    }
  }
}

TEST(Field, TheElementAtZeroIsTheOrigin) {
  const Storage storage = make_storage({9, 8, 7}, {kDimK, kDimI, kDimJ}, {{0, 2}, {1, 2}, {3, 1}});
  const auto field = ReadField<double, I, J, K>::open("a", storage);
  ASSERT_TRUE(field.ok());
  const BufferDescriptor memory = storage.memory(Side::kHost);
  EXPECT_EQ(reinterpret_cast<const std::byte*>(field->data()),
            memory.block + byte_offset(memory.view, {0, 1, 3}));
  EXPECT_EQ(field->lower(0), 1);
  EXPECT_EQ(field->lower(1), 3);
  EXPECT_EQ(field->lower(2), 0);
  EXPECT_EQ(field->upper(0), 7);
  EXPECT_EQ(field->domain(), (Extents{5, 3, 7}));
}

TEST(Field, OriginAndDomainOfTheCallWin) {
  const Storage storage = make_storage({6, 6, 6}, {}, {{1, 1}, {1, 1}, {1, 1}});
  const CallRequest request{.origin = Extents{2, 3, 4}, .domain = Extents{1, 1, 1}};
  const auto field = ReadField<double, I, J, K>::open("a", storage, Side::kHost, request);
  ASSERT_TRUE(field.ok());
  EXPECT_EQ(field->lower(2), 4);
  EXPECT_EQ(field->domain(), (Extents{1, 1, 1}));
}

TEST(Field, WhatIsNotOfItsTypeOrDimensionsIsAnErrorThatNamesTheField) {
  const Storage storage = make_storage({6, 6, 6}, {}, no_halo(3));
  const auto typed = ReadField<float, I, J, K>::open("u", storage);
  ASSERT_FALSE(typed.ok());
  EXPECT_NE(std::string(typed.status().message()).find("field 'u'"), std::string::npos);
  EXPECT_FALSE((ReadField<double, I, J>::open("u", storage).ok()));
  EXPECT_FALSE((ReadField<double, I, J, axis::Data<0>>::open("u", storage).ok()));
  EXPECT_FALSE((ReadField<double, I, J, K>::open("u", storage, Side::kDevice).ok()));
}

TEST(Field, OnlyWhatWritesCanBeWrittenThrough) {
  static_assert(std::is_same_v<decltype(std::declval<const ReadField<int, I>&>()(0)), const int&>);
  static_assert(std::is_same_v<decltype(std::declval<const WriteField<int, I>&>()(0)), int&>);
  static_assert(!std::is_invocable_v<const ReadField<int, I>&, int, int>);
  static_assert(!are_in_order<J, I>());
  static_assert(are_in_order<I, K, axis::Data<0>, axis::Data<10>>());
}

TEST(Field, AnEmptyFieldHasNoPoints) {
  const Storage storage = make_storage({0, 4, 4}, {}, no_halo(3));
  const auto field = ReadField<double, I, J, K>::open("a", storage);
  ASSERT_TRUE(field.ok());
  EXPECT_EQ(field->upper(0), 0);
  EXPECT_EQ(field->domain(), (Extents{0, 4, 4}));
}

#ifndef NDEBUG
TEST(FieldDeathTest, AnIndexBeyondTheHaloIsFoundInDebugBuilds) {
  const Storage storage = make_storage({6, 6, 6}, {}, {{1, 1}, {0, 0}, {0, 0}});
  const auto field = ReadField<double, I, J, K>::open("a", storage);
  ASSERT_TRUE(field.ok());
  EXPECT_EQ((*field)(-1, 0, 0), 0);
  EXPECT_DEATH((*field)(-2, 0, 0), "outside of the field");
  EXPECT_DEATH((*field)(5, 0, 0), "outside of the field");
}
#endif

}  // namespace
}  // namespace gridbuf
