#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"

import gridbuf.alloc;
import gridbuf.base;
import gridbuf.interface;
import gridbuf.interface.dlpack;
import gridbuf.layout;
import gridbuf.layout.view;

namespace gridbuf::dlpack {
namespace {

int deleted = 0;

class DlpackReader : public ::testing::Test {
 protected:
  void SetUp() override { deleted = 0; }

  // Three rows of two doubles in rows of four.
  DLTensor tensor() {
    return {.data = data_,
            .device = {1, 0},
            .ndim = 2,
            .dtype = {kDlpackFloat, 64, 1},
            .shape = shape_,
            .strides = strides_,
            .byte_offset = 0};
  }

  // The structs live in the test: their deleters only count.
  DLManagedTensor* legacy(const DLTensor& described) {
    legacy_ = {.dl_tensor = described, .manager_ctx = nullptr, .deleter = [](DLManagedTensor*) {
                 ++deleted;
               }};
    return &legacy_;
  }
  DLManagedTensorVersioned* versioned(const DLTensor& described, std::uint64_t flags = 0,
                                      DLPackVersion version = {1, 3}) {
    versioned_ = {.version = version,
                  .manager_ctx = nullptr,
                  .deleter = [](DLManagedTensorVersioned*) { ++deleted; },
                  .flags = flags,
                  .dl_tensor = described};
    return &versioned_;
  }

  // The broken rule. Checks that the deleter ran once.
  std::string rule_of(const DLTensor& described, const TensorForm& form = {true, 3, 0}) {
    deleted = 0;
    std::string rule = "none";
    {
      const auto view = form.versioned
                            ? take(versioned(described, form.flags, {1, form.minor_version}))
                            : take(legacy(described));
      EXPECT_EQ(deleted, view.ok() ? 0 : 1);
      if (!view.ok()) {
        EXPECT_EQ(error_class_of(view.status()), ErrorClass::kBuffer);
        rule = std::string(view.status().message()).substr(0, 5);
      }
    }
    EXPECT_EQ(deleted, 1);
    return rule;
  }

  std::int64_t shape_[2] = {3, 2};
  std::int64_t strides_[2] = {4, 1};
  double data_[12] = {};
  DLManagedTensor legacy_;
  DLManagedTensorVersioned versioned_;
};

TEST_F(DlpackReader, ReadsWhatIsRight) {
  const auto view = take(versioned(tensor(), kFlagIsCopied));
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(view->memory.block, reinterpret_cast<std::byte*>(data_));
  EXPECT_EQ(view->memory.view.strides_bytes, (Extents{32, 8}));
  EXPECT_EQ(view->memory.dtype, DType());
  EXPECT_FALSE(view->memory.readonly);
  EXPECT_TRUE(view->is_copied);
  EXPECT_EQ(view->stream, std::nullopt);
}

// [example]
// The number of bytes of a tensor that a caller hands over. The tensor is always released.
absl::StatusOr<std::int64_t> count_bytes(DLManagedTensorVersioned* managed) {
  const absl::StatusOr<ImportedView> view = take(managed);
  if (!view.ok()) return view.status();
  return view->memory.nbytes();
}
// [/example]

TEST_F(DlpackReader, ExampleOfTheReadme) {
  EXPECT_EQ(*count_bytes(versioned(tensor())), 48);
  EXPECT_EQ(deleted, 1);
}

TEST_F(DlpackReader, Dl19TheDeleterRunsOnceWithTheLastShare) {
  auto view = take(versioned(tensor()));
  ASSERT_TRUE(view.ok());
  Owner share = view->memory.owner;
  view = absl::UnknownError("dropped");
  EXPECT_EQ(deleted, 0);
  std::thread([owner = std::move(share)]() mutable { owner.reset(); }).join();
  EXPECT_EQ(deleted, 1);
}

TEST_F(DlpackReader, Dl19ADeleterMayBeMissing) {
  DLManagedTensor* managed = legacy(tensor());
  managed->deleter = nullptr;
  EXPECT_TRUE(take(managed).ok());
  managed->dl_tensor.ndim = -1;
  EXPECT_FALSE(take(managed).ok());
}

TEST_F(DlpackReader, Dl22OfANewerMajorVersionOnlyTheDeleterIsTouched) {
  DLTensor poisoned = tensor();
  poisoned.shape = reinterpret_cast<std::int64_t*>(1);
  poisoned.strides = reinterpret_cast<std::int64_t*>(1);
  poisoned.ndim = 64;
  for (const std::uint32_t major : {0U, 2U, 0xFFFFFFFFU}) {
    deleted = 0;
    const auto view = take(versioned(poisoned, ~std::uint64_t{0}, {major, 0}));
    EXPECT_EQ(std::string(view.status().message()).substr(0, 5), "DL-22");
    EXPECT_EQ(deleted, 1);
  }
}

TEST_F(DlpackReader, Dl23TakesNewerMinorVersionsAndUnknownFlags) {
  EXPECT_EQ(rule_of(tensor(), {true, 99, ~std::uint64_t{0} - kFlagReadOnly}), "none");
}

TEST_F(DlpackReader, Dl23RefusesUnknownTypesAndDevices) {
  DLTensor found = tensor();
  found.dtype = {200, 64, 1};
  EXPECT_EQ(rule_of(found), "DL-23");
  found.dtype = {kDlpackFloat, 48, 1};
  EXPECT_EQ(rule_of(found), "DL-23");
  found.dtype = {3, 64, 1};  // An opaque handle.
  EXPECT_EQ(rule_of(found), "DL-23");
  found = tensor();
  for (const std::int32_t type : {0, 4, 8, 14, 200, -1}) {
    found.device = {type, 0};
    EXPECT_EQ(rule_of(found), "DL-23") << type;
  }
}

TEST_F(DlpackReader, Dl15And30RefuseLanes) {
  DLTensor found = tensor();
  found.dtype = {kDlpackFloat, 64, 0};
  EXPECT_EQ(rule_of(found), "DL-15");
  found.dtype = {kDlpackFloat, 16, 4};
  EXPECT_EQ(rule_of(found), "DL-30");
}

TEST_F(DlpackReader, Dl17KnowsTheDevice) {
  DLTensor found = tensor();
  found.device = {2, 3};
  EXPECT_EQ(take(versioned(found))->memory.device, (Device{DeviceType::kCuda, 3}));
  found.device = {1, 1};
  EXPECT_EQ(rule_of(found), "DL-17");
  found.device = {2, -1};
  EXPECT_EQ(rule_of(found), "DL-17");
}

TEST_F(DlpackReader, Dl07ChecksCountsAndShape) {
  DLTensor found = tensor();
  for (const std::int32_t ndim : {-1, 65, std::numeric_limits<std::int32_t>::max()}) {
    found.ndim = ndim;
    EXPECT_EQ(rule_of(found), "DL-07") << ndim;
  }
  found = tensor();
  found.shape = nullptr;
  EXPECT_EQ(rule_of(found), "DL-07");
  shape_[0] = -3;
  EXPECT_EQ(rule_of(tensor()), "DL-07");
}

TEST_F(DlpackReader, Dl08TakesNullStridesBefore1_2) {
  DLTensor found = tensor();
  found.strides = nullptr;
  EXPECT_EQ(rule_of(found, {true, 2, 0}), "DL-08");
  EXPECT_EQ(rule_of(found, {true, 1, 0}), "none");
  EXPECT_EQ(rule_of(found, {false, 0, 0}), "none");
  EXPECT_EQ(take(legacy(found))->memory.view.strides_bytes, (Extents{16, 8}));
}

TEST_F(DlpackReader, Dl10And24AddTheOffset) {
  DLTensor found = tensor();
  found.byte_offset = 8;
  EXPECT_EQ(take(versioned(found))->memory.block, reinterpret_cast<std::byte*>(data_ + 1));
  found.byte_offset = static_cast<std::uint64_t>(-40);
  EXPECT_EQ(rule_of(found), "DL-24");
}

TEST_F(DlpackReader, Dl12And27NeedMemoryForElements) {
  DLTensor found = tensor();
  found.data = nullptr;
  EXPECT_EQ(rule_of(found), "DL-27");
  found.byte_offset = 4096;
  EXPECT_EQ(rule_of(found), "DL-27");
  shape_[1] = 0;
  found = tensor();
  EXPECT_EQ(rule_of(found), "none");
  found.data = nullptr;
  EXPECT_EQ(rule_of(found), "none");
}

TEST_F(DlpackReader, Dl13NeverReadsTheShapeOfZeroDimensions) {
  DLTensor found = tensor();
  found.ndim = 0;
  found.shape = reinterpret_cast<std::int64_t*>(1);
  found.strides = nullptr;
  EXPECT_EQ(rule_of(found), "none");
}

TEST_F(DlpackReader, Dl14BoundsStrides) {
  strides_[0] = std::int64_t{1} << 62;
  EXPECT_EQ(rule_of(tensor()), "DL-14");
  strides_[0] = std::int64_t{1} << 59;
  shape_[0] = 1000;
  EXPECT_EQ(rule_of(tensor()), "DL-14");
  shape_[0] = 3;
  strides_[0] = -4;  // Negative and zero strides are fine.
  strides_[1] = 0;
  EXPECT_EQ(take(versioned(tensor()))->memory.view.strides_bytes, (Extents{-32, 0}));
}

TEST_F(DlpackReader, Dp33TakesJunkWhereStridesSayNothing) {
  shape_[0] = 1;
  strides_[0] = std::numeric_limits<std::int64_t>::min();
  EXPECT_EQ(rule_of(tensor()), "none");
  shape_[0] = 0;
  strides_[1] = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(rule_of(tensor()), "none");
}

TEST_F(DlpackReader, Dl25TakesSubbyteTypesOnlyPadded) {
  DLTensor found = tensor();
  found.dtype = {17, 4, 1};
  EXPECT_EQ(rule_of(found), "DL-25");
  EXPECT_EQ(rule_of(found, {true, 3, kFlagSubbytePadded}), "none");
  EXPECT_EQ(rule_of(found, {false, 0, 0}), "DL-25");
  found.dtype = {17, 8, 1};  // DL-26: FP4 has 4 bits.
  EXPECT_EQ(rule_of(found), "DL-23");
}

TEST_F(DlpackReader, Dp28KeepsTheReadOnlyFlag) {
  EXPECT_TRUE(take(versioned(tensor(), kFlagReadOnly))->memory.readonly);
  EXPECT_FALSE(take(versioned(tensor(), 0))->memory.readonly);
  EXPECT_FALSE(take(legacy(tensor()))->memory.readonly);
}

TEST_F(DlpackReader, Dl21WritesNothing) {
  const DLTensor before = tensor();
  ASSERT_TRUE(take(legacy(before)).ok());
  EXPECT_EQ(shape_[0], 3);
  EXPECT_EQ(strides_[0], 4);
}

TEST_F(DlpackReader, Xa15ReadsOurOwnExports) {
  const BufferDescriptor descriptor{
      .block = reinterpret_cast<std::byte*>(data_),
      .view = {.shape = {2, 3}, .strides_bytes = {8, -32}, .offset_bytes = 64, .itemsize_bytes = 8},
      .dtype = DType(),
      .readonly = true,
      .device = {},
      .owner = {}};
  auto exported = export_versioned(descriptor);
  ASSERT_TRUE(exported.ok());
  const auto view = take(exported->release());
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(view->memory.block, descriptor.first_element());
  EXPECT_EQ(view->memory.view.strides_bytes, descriptor.view.strides_bytes);
  EXPECT_TRUE(view->memory.readonly);
}

}  // namespace
}  // namespace gridbuf::dlpack
