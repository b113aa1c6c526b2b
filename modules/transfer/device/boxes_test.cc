#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"

import gridbuf.alloc;
import gridbuf.base;
import gridbuf.device;
import gridbuf.device.emulated;
import gridbuf.layout;
import gridbuf.layout.view;
import gridbuf.transfer;
import gridbuf.transfer.device;

namespace gridbuf {
namespace {

using Bytes = std::vector<std::byte>;

EmulatedDriver& driver() { return emulated_driver(); }

// A field of doubles on both sides, with equal bytes at first, and the expected bytes of each side.
class Field {
 public:
  Field(const Extents& shape, const Extents& host_strides, const Extents& device_strides,
        MemoryKind host_kind)
      : host_view{shape, host_strides, 0, 8}, device_view{shape, device_strides, 0, 8} {
    expected_host = random_bytes(byte_hull(host_view)->highest_bytes);
    expected_device = random_bytes(byte_hull(device_view)->highest_bytes);
    if (host_kind == MemoryKind::kHost) {
      pageable_ = expected_host;
    } else {
      pinned_ = *driver().resource(host_kind).allocate({.total_bytes = std::ssize(expected_host)});
      std::memcpy(pinned_.data(), expected_host.data(), expected_host.size());
    }
    device_ = *driver()
                   .resource(MemoryKind::kDevice)
                   .allocate({.total_bytes = std::ssize(expected_device)});
    EXPECT_TRUE(
        driver().copy(device_.data(), expected_device.data(), std::ssize(expected_device), 1).ok());
  }

  std::byte* host() { return pageable_.empty() ? pinned_.data() : pageable_.data(); }
  std::byte* device() { return device_.data(); }

  void expect_equal() {
    EXPECT_TRUE(driver().synchronize(1).ok());
    Bytes found(expected_device.size());
    EXPECT_TRUE(driver().copy(found.data(), device_.data(), std::ssize(found), 1).ok());
    EXPECT_TRUE(found == expected_device);
    EXPECT_EQ(std::memcmp(host(), expected_host.data(), expected_host.size()), 0);
  }

  StridedView host_view;
  StridedView device_view;
  Bytes expected_host;
  Bytes expected_device;

 private:
  static Bytes random_bytes(std::int64_t length) {
    static std::mt19937_64 random(3);
    Bytes bytes(static_cast<std::size_t>(length));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    return bytes;
  }
  Bytes pageable_;
  Block pinned_;
  Block device_;
};

absl::Status to_device(Field& field, const StridedView& device, const StridedView& host) {
  return copy_elements_on(driver(), field.device(), device, field.host(), host, 1);
}
absl::Status to_host(Field& field, const StridedView& host, const StridedView& device) {
  return copy_elements_on(driver(), field.host(), host, field.device(), device, 1);
}

StridedView box_of(const StridedView& view, const Extents& lower, const Extents& upper) {
  IndexMap map(view.shape);
  for (int axis = 0; axis < view.ndim(); ++axis) {
    map.keep(axis, slice_points({lower[axis], upper[axis]}, view.shape[axis]));
  }
  return apply(map, view);
}

// Copies a box both ways, and by the reference.
void check_box(Field& field, const Extents& lower, const Extents& upper) {
  const StridedView on_host = box_of(field.host_view, lower, upper);
  const StridedView on_device = box_of(field.device_view, lower, upper);
  ASSERT_TRUE(to_device(field, on_device, on_host).ok());
  ASSERT_TRUE(
      copy_elements(field.expected_device.data(), on_device, field.expected_host.data(), on_host)
          .ok());
  field.expect_equal();
  // Different values are copied back.
  ASSERT_TRUE(
      driver().fill(field.device(), std::byte{9}, std::ssize(field.expected_device), 1).ok());
  std::memset(field.expected_device.data(), 9, field.expected_device.size());
  ASSERT_TRUE(to_host(field, on_host, on_device).ok());
  ASSERT_TRUE(
      copy_elements(field.expected_host.data(), on_host, field.expected_device.data(), on_device)
          .ok());
  field.expect_equal();
}

class CopyBoxes : public ::testing::TestWithParam<MemoryKind> {};

// Every byte of both buffers is compared: nothing outside the box may change.
TEST_P(CopyBoxes, EqualTheReference) {
  const Extents shape{20, 22, 24};
  const std::vector<Extents> layouts{{22 * 256, 256, 8}, {8, 256, 22 * 256}, {256, 20 * 256, 8}};
  for (const Extents& host : layouts) {
    for (const Extents& device : layouts) {
      Field field(shape, host, device, GetParam());
      check_box(field, {0, 0, 0}, {20, 22, 24});
      check_box(field, {0, 0, 0}, {20, 22, 3});  // narrow where K is contiguous
      check_box(field, {0, 0, 21}, {20, 22, 24});
      check_box(field, {0, 0, 0}, {3, 22, 24});  // narrow where I is
      check_box(field, {2, 3, 4}, {8, 9, 5});
      check_box(field, {4, 4, 4}, {5, 5, 5});
      check_box(field, {4, 4, 4}, {4, 5, 5});  // nothing
    }
  }
}

INSTANTIATE_TEST_SUITE_P(HostMemory, CopyBoxes,
                         ::testing::Values(MemoryKind::kPinned, MemoryKind::kHost),
                         [](const auto& info) { return std::string(to_string(info.param)); });

struct Cost {
  std::int64_t copies;
  std::int64_t kernels;
  std::int64_t to_device_bytes;
  std::int64_t to_host_bytes;

  friend bool operator==(const Cost&, const Cost&) = default;
};

template <class Work>
Cost cost_of(const Work& work) {
  const auto now = [] {
    EXPECT_TRUE(driver().synchronize_device().ok());
    const EmulatedStatistics bytes = driver().statistics();
    return Cost{driver().faults().calls(emulated::Operation::kCopy),
                driver().faults().calls(emulated::Operation::kLaunch), bytes.host_to_device_bytes,
                bytes.device_to_host_bytes};
  };
  const Cost before = now();
  work();
  const Cost after = now();
  return {after.copies - before.copies, after.kernels - before.kernels,
          after.to_device_bytes - before.to_device_bytes,
          after.to_host_bytes - before.to_host_bytes};
}

// The lower halo of the contiguous dimension: 3 elements of each of 3000 rows. They cross in one
// copy, and a kernel puts them in their places.
TEST(CopyBoxesCost, NarrowRowsCrossInOneCopy) {
  const Extents strides{60 * 640, 640, 8};
  Field field({50, 60, 80}, strides, strides, MemoryKind::kPinned);
  const StridedView halo = box_of(field.host_view, {0, 0, 0}, {50, 60, 3});
  const Cost cost = cost_of([&] { EXPECT_TRUE(to_device(field, halo, halo).ok()); });
  EXPECT_EQ(cost, (Cost{1, 1, 50 * 60 * 3 * 8, 0}));
}

// Few or wide rows do not need staging.
TEST(CopyBoxesCost, RowsThatTheBusTakesWellGoStraight) {
  const Extents strides{60 * 640, 640, 8};
  Field few({50, 60, 80}, strides, strides, MemoryKind::kPinned);
  const StridedView halo = box_of(few.host_view, {0, 0, 0}, {50, 3, 80});
  const std::int64_t peak = driver().statistics().peak_live_bytes;
  const Cost cost = cost_of([&] { EXPECT_TRUE(to_host(few, halo, halo).ok()); });
  EXPECT_EQ(cost, (Cost{1, 0, 0, 50 * 3 * 80 * 8}));
  const Extents wide_strides{8192, 8};
  Field wide({300, 1024}, wide_strides, wide_strides, MemoryKind::kPinned);
  const StridedView inner = box_of(wide.host_view, {0, 0}, {300, 513});
  const std::int64_t live = driver().statistics().live_bytes;
  EXPECT_EQ(cost_of([&] { EXPECT_TRUE(to_device(wide, inner, inner).ok()); }),
            (Cost{1, 0, 300 * 513 * 8, 0}));
  EXPECT_EQ(driver().statistics().live_bytes, live);
  EXPECT_GE(driver().statistics().peak_live_bytes, peak);
}

// A whole array that has another order on the device: it crosses in the order of the host's memory.
TEST(CopyBoxesCost, AnotherOrderOnTheDeviceIsTheKernelsBusiness) {
  Field field({30, 40, 50}, {40 * 50 * 8, 50 * 8, 8}, {8, 30 * 8, 30 * 40 * 8}, MemoryKind::kHost);
  check_box(field, {0, 0, 0}, {30, 40, 50});
  const Cost cost =
      cost_of([&] { EXPECT_TRUE(to_host(field, field.host_view, field.device_view).ok()); });
  EXPECT_EQ(cost, (Cost{1, 1, 0, 30 * 40 * 50 * 8}));
}

// Longer boxes go in pieces through the same memory.
TEST(CopyBoxesCost, StagingMemoryIsBounded) {
  const Extents strides{1200 * 24, 24, 8};
  Field field({1000, 1200, 3}, strides, strides, MemoryKind::kPinned);
  const StridedView part = box_of(field.host_view, {0, 0, 0}, {1000, 1200, 1});
  ASSERT_GT(1000 * 1200 * 8, kStagingBytes);
  const std::int64_t live = driver().statistics().live_bytes;
  check_box(field, {0, 0, 0}, {1000, 1200, 1});
  const Cost cost = cost_of([&] { EXPECT_TRUE(to_device(field, part, part).ok()); });
  EXPECT_EQ(cost, (Cost{2, 2, 1000 * 1200 * 8, 0}));  // two pieces
  EXPECT_EQ(driver().statistics().live_bytes, live);
}

TEST(CopyBoxesErrors, WithoutStagingMemoryRowsAreCopiedOneByOne) {
  const Extents strides{60 * 640, 640, 8};
  Field field({10, 60, 80}, strides, strides, MemoryKind::kPinned);
  driver().set_capacity(driver().statistics().held_bytes);
  check_box(field, {0, 0, 0}, {10, 60, 3});
  driver().set_capacity(INT64_MAX);
}

TEST(CopyBoxesErrors, OfTheDriverAreReportedAndLeakNothing) {
  const Extents strides{60 * 640, 640, 8};
  Field field({10, 60, 80}, strides, strides, MemoryKind::kPinned);
  const StridedView halo = box_of(field.host_view, {0, 0, 0}, {10, 60, 3});
  ASSERT_TRUE(driver().synchronize_device().ok());
  const std::int64_t live = driver().statistics().live_blocks;
  for (const bool back : {false, true}) {
    for (std::int64_t n = 1;; ++n) {
      const std::int64_t fault = driver().faults().inject(
          {.first_call = n, .error = make_error(ErrorClass::kInternal, "injected")});
      const absl::Status status = back ? to_host(field, halo, halo) : to_device(field, halo, halo);
      driver().faults().remove(fault);
      EXPECT_TRUE(driver().synchronize_device().ok());
      EXPECT_EQ(driver().statistics().live_blocks, live);
      if (status.ok()) {
        EXPECT_GT(n, 5);
        break;
      }
      EXPECT_NE(status.message().find("injected"), std::string::npos) << status;
    }
  }
  const StridedView other{{4}, {8}, 0, 8};
  EXPECT_EQ(error_class_of(to_host(field, other, halo)), ErrorClass::kValue);
}

}  // namespace
}  // namespace gridbuf
