#include <cstdint>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"

import gridbuf.base;
import gridbuf.device.registry;
import gridbuf.storage;
import gridbuf.storage.testing;

namespace gridbuf {
namespace {

class Access : public ::testing::Test {
 protected:
  void SetUp() override { before_ = switch_emulated_device(true); }
  void TearDown() override { switch_emulated_device(before_); }

  static Storage make(StorageKind kind) {
    return *Storage::allocate({.layout = *make_plan({.shape = {3, 4}, .itemsize_bytes = 8}),
                               .kind = kind,
                               .zeroed = true});
  }

 private:
  bool before_ = false;
};

// [example]
// The mean of a field's neighbours goes into its first row. Reads do not mark. The next access on
// the device copies the written row.
absl::Status smooth_first_row(const Storage& field) {
  const absl::StatusOr<ReadAccess<double>> in = ReadAccess<double>::begin(field);
  if (!in.ok()) return in.status();
  IndexMap first_row(field.shape());
  first_row.fix(0, 0);
  const auto out = WriteAccess<double>::begin(field.view(first_row), Side::kHost, Coverage::kAll);
  if (!out.ok()) return out.status();
  for (std::int64_t j = 0; j < field.shape()[1]; ++j) {
    (*out)(j) = ((*in)(1, j) + (*in)(2, j)) / 2;
  }
  return absl::OkStatus();
}
// [/example]

TEST_F(Access, ReadingMarksNothingAndWritingItsOwn) {
  const Storage field = make(StorageKind::kSoftwareManaged);
  ASSERT_TRUE(testing::write_values(field, Side::kDevice, Coverage::kAll,
                                    {0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8})
                  .ok());
  ASSERT_TRUE(smooth_first_row(field).ok());
  EXPECT_EQ(field.sync_state()->state(), kSyncHostDirty);
  EXPECT_EQ(*testing::read_values(field, Side::kDevice),
            (testing::Values{3, 4, 5, 6, 1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST_F(Access, IsOfTheElementTypeOrNotAtAll) {
  const Storage field = make(StorageKind::kCpu);
  EXPECT_EQ(error_class_of(ReadAccess<float>::begin(field).status()), ErrorClass::kType);
  EXPECT_EQ(error_class_of(WriteAccess<std::int64_t>::begin(field).status()), ErrorClass::kType);
  EXPECT_TRUE(ReadAccess<double>::begin(field).ok());
  EXPECT_EQ(element_name<std::uint16_t>(), "uint16");
  EXPECT_EQ(element_name<float>(), "float32");
  EXPECT_EQ(element_name<bool>(), "bool");
}

TEST_F(Access, OnBothSidesAtOnceMustNotOverlap) {
  const Storage field = make(StorageKind::kSoftwareManaged);
  IndexMap lower(field.shape());
  lower.keep(0, slice_points({0, 2}, 3));
  IndexMap upper(field.shape());
  upper.keep(0, slice_points({1, 3}, 3));
  IndexMap last(field.shape());
  last.keep(0, slice_points({2, 3}, 3));
  auto open = WriteAccess<double>::begin(field.view(lower), Side::kHost);
  ASSERT_TRUE(open.ok());
  EXPECT_EQ(error_class_of(WriteAccess<double>::begin(field.view(upper), Side::kDevice).status()),
            ErrorClass::kSyncConflict);
  EXPECT_TRUE(WriteAccess<double>::begin(field.view(last), Side::kDevice).ok());
  {
    const auto ends = *std::move(open);
  }
  EXPECT_TRUE(WriteAccess<double>::begin(field.view(upper), Side::kDevice).ok());
}

TEST_F(Access, OfAMissingSideIsAnError) {
  EXPECT_EQ(error_class_of(ReadAccess<double>::begin(make(StorageKind::kGpu)).status()),
            ErrorClass::kNoSuchBuffer);
  EXPECT_EQ(
      error_class_of(WriteAccess<double>::begin(make(StorageKind::kCpu), Side::kDevice).status()),
      ErrorClass::kNoSuchBuffer);
}

}  // namespace
}  // namespace gridbuf
