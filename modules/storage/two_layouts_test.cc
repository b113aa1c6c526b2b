#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"

import gridbuf.alloc.host;
import gridbuf.base;
import gridbuf.device;
import gridbuf.device.emulated;
import gridbuf.device.registry;
import gridbuf.storage;
import gridbuf.storage.testing;

// Storages whose sides have different layouts. Random accesses are in storage_model_test.cc.

namespace gridbuf {
namespace {

using testing::counting;
using testing::moved;
using testing::sliced;
using testing::Values;

constexpr Side kHost = Side::kHost;
constexpr Side kDevice = Side::kDevice;

// Layouts of one side.
struct SideLayout {
  LayoutMap order;
  std::int64_t alignment_bytes = 1;
};

class TwoLayoutsTest : public ::testing::Test {
 protected:
  void SetUp() override { before_ = switch_emulated_device(true); }
  void TearDown() override {
    EXPECT_TRUE(driver().synchronize_device().ok());
    switch_emulated_device(before_);
  }

  static EmulatedDriver& driver() { return emulated_driver(); }

  static Layout layout(const Extents& shape, const SideLayout& side, const Halo& halo = {}) {
    return *make_plan({.shape = shape,
                       .itemsize_bytes = 8,
                       .layout = side.order,
                       .alignment_bytes = side.alignment_bytes,
                       .halo = halo});
  }
  static Storage make(const Extents& shape, const SideLayout& host, const SideLayout& device,
                      const Halo& halo = {}) {
    absl::StatusOr<Storage> made = Storage::allocate({.layout = layout(shape, host, halo),
                                                      .kind = StorageKind::kSoftwareManaged,
                                                      .zeroed = true,
                                                      .device_layout = layout(shape, device)});
    EXPECT_TRUE(made.ok()) << made.status();
    return *std::move(made);
  }
  // I contiguous without padding on the host; K contiguous, rows of whole 128 bytes, on the device.
  static Storage fortran_and_padded() {
    return make({5, 6, 7}, {{2, 1, 0}}, {{0, 1, 2}, 128}, {{1, 1}, {1, 1}, {0, 0}});
  }

  static absl::Status write(const Storage& storage, Side side, double first) {
    return testing::write_values(storage, side, Coverage::kAll, counting(storage, first));
  }

 private:
  bool before_ = false;
};

TEST_F(TwoLayoutsTest, EachSideHasItsOrderPaddingAndAlignment) {
  const Storage field = fortran_and_padded();
  EXPECT_TRUE(field.has_two_layouts());
  EXPECT_EQ(field.strides_bytes(), (Extents{8, 40, 240}));
  EXPECT_EQ(field.layout_map(), (LayoutMap{2, 1, 0}));
  const Array device = field.array(kDevice);
  EXPECT_EQ(device.memory().view.strides_bytes, (Extents{768, 128, 8}));
  EXPECT_EQ(device.layout().layout_map(), (LayoutMap{0, 1, 2}));
  EXPECT_EQ(device.layout().alignment_bytes(), 128);
  EXPECT_EQ(device.layout().dims(), field.dims());
  EXPECT_EQ(device.layout().halo(), field.halo());
  for (const auto& [writer, first] : {std::pair(kHost, 1.0), std::pair(kDevice, 500.0)}) {
    ASSERT_TRUE(write(field, writer, first).ok());
    EXPECT_EQ(*testing::read_values(field, other(writer)), counting(field, first));
  }
}

// Equal layouts are one layout: a whole field is one copy of all bytes.
TEST_F(TwoLayoutsTest, EqualLayoutsAreOne) {
  const SideLayout padded{{0, 1, 2}, 64};
  const Storage field = make({5, 6, 7}, padded, padded);
  EXPECT_FALSE(field.has_two_layouts());
  ASSERT_TRUE(write(field, kHost, 1).ok());
  const auto bytes = moved([&] { EXPECT_TRUE(field.read(kDevice).ok()); });
  EXPECT_EQ(bytes.first, layout({5, 6, 7}, padded).total_bytes());
}

TEST_F(TwoLayoutsTest, ViewsFollowTheirSide) {
  const Storage field = fortran_and_padded();
  ASSERT_TRUE(write(field, kHost, 0).ok());
  IndexMap plane(field.shape());
  plane.fix(1, 2);
  IndexMap turned(field.shape());
  turned.permute({2, 0, 1});
  for (const Storage& view : {field.view(plane), field.view(turned), field.domain_view(),
                              sliced(field, 2, 6, -8, -2), sliced(field, 0, 1, 4)}) {
    EXPECT_EQ(*testing::read_values(view, kDevice), *testing::read_values(view, kHost));
    const Array device = view.array(kDevice);
    EXPECT_EQ(device.layout().dims(), view.dims());
    EXPECT_EQ(device.layout().halo(), view.halo());
    EXPECT_EQ(device.layout().layout_map(),
              layout_of(view.shape(), device.memory().view.strides_bytes));
  }
  EXPECT_EQ(field.view(plane).array(kDevice).layout().layout_map(), (LayoutMap{0, 1}));
  EXPECT_EQ(field.view(plane).layout_map(), (LayoutMap{1, 0}));
}

TEST_F(TwoLayoutsTest, CopiesKeepBoth) {
  const Storage field = fortran_and_padded();
  ASSERT_TRUE(write(field, kDevice, 3).ok());
  for (const Storage& view : {field, sliced(field, 1, 1, 5, 2), field.domain_view()}) {
    const absl::StatusOr<Storage> copied = view.copy();
    ASSERT_TRUE(copied.ok()) << copied.status();
    EXPECT_EQ(copied->layout_map(), (LayoutMap{2, 1, 0}));
    EXPECT_EQ(copied->array(kDevice).layout().layout_map(), (LayoutMap{0, 1, 2}));
    EXPECT_EQ(copied->array(kDevice).layout().alignment_bytes(),
              view.array(kDevice).layout().alignment_bytes());
    EXPECT_EQ(*testing::read_values(*copied, kHost), *testing::read_values(view, kDevice));
  }
}

// The dirty boxes are in names: a box on one side is the same points on the other side.
class HaloOfTwoLayouts : public TwoLayoutsTest,
                         public ::testing::WithParamInterface<std::array<LayoutMap, 2>> {};

TEST_P(HaloOfTwoLayouts, MovesItsBytesAndNoMore) {
  const Extents shape{256, 128, 80};
  const auto& [host, device] = GetParam();
  const Storage field = make(shape, {host}, {device, 128}, {{3, 3}, {3, 3}, {1, 1}});
  const std::int64_t halo_bytes = field.nbytes() - field.domain_view().nbytes();
  for (const Side writer : {kHost, kDevice}) {
    for (int axis = 0; axis < 3; ++axis) {
      const HaloWidth width = field.halo()[axis];
      for (const auto& [start, stop] : {std::pair(std::int64_t{0}, width.lower),
                                        std::pair(shape[axis] - width.upper, shape[axis])}) {
        ASSERT_TRUE(write(sliced(field, axis, start, stop), writer, 1000.0 * axis).ok());
      }
    }
    const auto [up, down] = moved([&] { ASSERT_TRUE(field.read(other(writer)).ok()); });
    const std::int64_t bytes = writer == kHost ? up : down;
    EXPECT_GE(bytes, halo_bytes);
    EXPECT_LE(static_cast<double>(bytes), 1.2 * static_cast<double>(halo_bytes));
    EXPECT_EQ(writer == kHost ? down : up, 0);
    EXPECT_EQ(field.sync_state()->state(), kSyncClean);
    EXPECT_EQ(*testing::peek_values(field, kHost), *testing::peek_values(field, kDevice));
  }
}

INSTANTIATE_TEST_SUITE_P(Orders, HaloOfTwoLayouts,
                         ::testing::Values(std::array<LayoutMap, 2>{{{2, 1, 0}, {0, 1, 2}}},
                                           std::array<LayoutMap, 2>{{{0, 1, 2}, {2, 1, 0}}},
                                           std::array<LayoutMap, 2>{{{2, 0, 1}, {1, 2, 0}}},
                                           std::array<LayoutMap, 2>{{{0, 1, 2}, {0, 1, 2}}}));

// A whole field crosses without its padding, and pinned staging serves short rows alone.
TEST_F(TwoLayoutsTest, AWholeFieldCrossesOnce) {
  const Storage field = make({64, 64, 80}, {{2, 1, 0}}, {{0, 1, 2}, 128});
  ASSERT_TRUE(write(field, kHost, 1).ok());
  const std::int64_t copies = driver().faults().calls(emulated::Operation::kCopy);
  const auto bytes = moved([&] { EXPECT_TRUE(field.read(kDevice).ok()); });
  EXPECT_EQ(bytes, std::pair(field.nbytes(), std::int64_t{0}));
  EXPECT_LE(driver().faults().calls(emulated::Operation::kCopy) - copies, 2);
}

// In poison mode rows have poisoned gaps, which differ on the two sides.
TEST_F(TwoLayoutsTest, PaddingIsNotCopied) {
  const Storage field = make({3, 4, 5}, {{0, 1, 2}, 64}, {{2, 1, 0}, 128});
  ASSERT_TRUE(write(field, kHost, 1).ok());
  const auto up = moved([&] { EXPECT_TRUE(field.read(kDevice).ok()); });
  EXPECT_EQ(up.first, field.nbytes());
  ASSERT_TRUE(write(field, kDevice, 70).ok());
  EXPECT_EQ(*testing::read_values(field, kHost), counting(field, 70));
}

TEST_F(TwoLayoutsTest, AWrappedArrayGetsABufferWithAnotherLayout) {
  const Extents shape{5, 6, 7};
  const Layout fortran = layout(shape, {{2, 1, 0}}, {{1, 1}, {0, 0}, {0, 0}});
  const Layout padded = layout(shape, {{0, 1, 2}, 128}, {{1, 1}, {0, 0}, {0, 0}});
  for (const Side given : {kHost, kDevice}) {
    const StorageKind kind = given == kHost ? StorageKind::kCpu : StorageKind::kGpu;
    const Storage wrapped = *Storage::allocate({.layout = fortran, .kind = kind, .zeroed = true});
    ASSERT_TRUE(write(wrapped, given, 8).ok());
    StorageParts parts{.kind = StorageKind::kSoftwareManaged, .missing_layout = padded};
    (given == kHost ? parts.host : parts.device) = wrapped.array(given);
    const absl::StatusOr<Storage> pair = Storage::wrap(parts);
    ASSERT_TRUE(pair.ok()) << pair.status();
    EXPECT_EQ(pair->memory(given).block, wrapped.memory(given).block);
    EXPECT_EQ(pair->memory(given).view, wrapped.memory(given).view);
    EXPECT_EQ(pair->array(other(given)).layout().alignment_bytes(), 128);
    EXPECT_EQ(pair->halo(), wrapped.halo());
    EXPECT_EQ(*testing::read_values(*pair, other(given)), counting(wrapped, 8));
  }
}

// Two buffers with a layout each; their arrays say which.
TEST_F(TwoLayoutsTest, TwoBuffersKeepTheirLayouts) {
  const Extents shape{4, 5, 6};
  const Storage host = *Storage::allocate({.layout = layout(shape, {{2, 1, 0}})});
  const Storage device =
      *Storage::allocate({.layout = layout(shape, {{1, 2, 0}, 64}), .kind = StorageKind::kGpu});
  ASSERT_TRUE(write(host, kHost, 1).ok());
  const absl::StatusOr<Storage> pair = Storage::wrap({.host = host.array(kHost),
                                                      .device = device.array(kDevice),
                                                      .kind = StorageKind::kSoftwareManaged,
                                                      .sync = *SyncState::make(kSyncHostDirty)});
  ASSERT_TRUE(pair.ok()) << pair.status();
  EXPECT_EQ(pair->layout_map(), (LayoutMap{2, 1, 0}));
  EXPECT_EQ(pair->array(kDevice).layout().layout_map(), (LayoutMap{1, 2, 0}));
  EXPECT_EQ(*testing::read_values(*pair, kDevice), counting(host, 1));
}

TEST_F(TwoLayoutsTest, WhatHasOneBufferOrAnotherShapeIsRefused) {
  const Extents shape{4, 5, 6};
  const Layout one = layout(shape, {{0, 1, 2}});
  const auto refused = [&](StorageKind kind, const Layout& second) {
    const absl::Status status =
        Storage::allocate({.layout = one, .kind = kind, .device_layout = second}).status();
    return error_class_of(status) == ErrorClass::kValue &&
           status.message().find("second layout") != std::string::npos;
  };
  for (const StorageKind kind : {StorageKind::kCpu, StorageKind::kGpu, StorageKind::kCudaManaged}) {
    EXPECT_TRUE(refused(kind, one));
  }
  EXPECT_TRUE(refused(StorageKind::kSoftwareManaged, layout({4, 6, 5}, {{0, 1, 2}})));
  EXPECT_TRUE(
      refused(StorageKind::kSoftwareManaged, *make_plan({.shape = shape, .itemsize_bytes = 4})));
  const Storage host = *Storage::allocate({.layout = one});
  EXPECT_EQ(
      error_class_of(Storage::wrap({.host = host.array(kHost), .missing_layout = one}).status()),
      ErrorClass::kValue);
}

// Out of memory on the second side leaves nothing.
TEST_F(TwoLayoutsTest, AFullDeviceIsReportedWithTheDevicesLayout) {
  const Extents shape{40, 50, 60};
  const std::int64_t before = driver().statistics().live_blocks;
  const std::int64_t number = driver().faults().inject(
      {.operation = emulated::Operation::kAllocate, .error = make_error(ErrorClass::kMemory, "x")});
  const absl::Status status = Storage::allocate({.layout = layout(shape, {{2, 1, 0}}),
                                                 .kind = StorageKind::kSoftwareManaged,
                                                 .device_layout = layout(shape, {{0, 1, 2}, 128})})
                                  .status();
  driver().faults().remove(number);
  EXPECT_EQ(error_class_of(status), ErrorClass::kMemory) << status;
  EXPECT_EQ(driver().statistics().live_blocks, before);
}

}  // namespace
}  // namespace gridbuf
