#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
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

// Bytes in one kind of memory of the device, with the expected bytes on the host.
class Side {
 public:
  Side(MemoryKind kind, std::int64_t length_bytes, std::uint64_t seed)
      : expected(static_cast<std::size_t>(length_bytes)) {
    std::mt19937_64 random(seed);
    for (std::byte& byte : expected) byte = static_cast<std::byte>(random());
    if (kind == MemoryKind::kHost) {
      host_ = expected;
      return;
    }
    block_ = *driver().resource(kind).allocate({.total_bytes = length_bytes});
    EXPECT_TRUE(driver().copy(block_.data(), expected.data(), length_bytes, 1).ok());
  }

  static EmulatedDriver& driver() { return emulated_driver(); }
  std::byte* data() { return host_.empty() ? block_.data() : host_.data(); }
  Bytes read() {
    if (!host_.empty()) return host_;
    Bytes bytes(expected.size());
    EXPECT_TRUE(driver().copy(bytes.data(), block_.data(), std::ssize(bytes), 1).ok());
    return bytes;
  }

  Bytes expected;

 private:
  Bytes host_;
  Block block_;
};

constexpr std::int64_t kBlockBytes = 4096;

// A view of `shape`, within kBlockBytes for small shapes: axes in random order, padded, reversed
// now and then, and, for sources, broadcast.
StridedView random_view(std::mt19937_64& random, const Extents& shape, std::int64_t itemsize,
                        bool may_broadcast) {
  StridedView view{shape, Extents(shape.size(), 0), 0, itemsize};
  std::vector<int> order(static_cast<std::size_t>(shape.size()));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  std::int64_t stride = itemsize;
  for (const int axis : order) {
    if (may_broadcast && random() % 6 == 0) continue;  // stride 0
    if (random() % 3 == 0) stride += itemsize * static_cast<std::int64_t>(random() % 3);
    const bool reversed = random() % 5 == 0;
    view.strides_bytes[axis] = reversed ? -stride : stride;
    if (reversed) view.offset_bytes += (shape[axis] - 1) * stride;
    stride *= shape[axis];
  }
  return view;
}

Extents random_shape(std::mt19937_64& random) {
  Extents shape;
  const int ndim = static_cast<int>(random() % 4);
  for (int i = 0; i < ndim; ++i) shape.push_back(1 + static_cast<std::int64_t>(random() % 4));
  return shape;
}

// More rows than are copied one by one.
Extents large_shape(std::mt19937_64& random) {
  const auto extent = [&](std::uint64_t most) {
    return 1 + static_cast<std::int64_t>(random() % most);
  };
  return {20 + extent(20), 17 + extent(20), 1 + extent(5)};
}

struct Pair {
  MemoryKind target;
  MemoryKind source;
};

class CopyElementsOn : public ::testing::TestWithParam<Pair> {};

// gridbuf.transfer is the reference. Every byte of the target's block is compared, so the test sees
// writes to padding.
void check_copy(std::mt19937_64& random, const Pair& memories, const Extents& shape) {
  const std::int64_t itemsize = random() % 8 == 0 ? 12 : std::int64_t{1} << (random() % 5);
  const StridedView target = random_view(random, shape, itemsize, false);
  const StridedView source = random_view(random, shape, itemsize, true);
  Side to(memories.target, byte_hull(target)->highest_bytes + 64, random());
  Side from(memories.source, byte_hull(source)->highest_bytes + 64, random());
  ASSERT_TRUE(copy_elements(to.expected.data(), target, from.expected.data(), source).ok());
  const absl::Status status =
      copy_elements_on(Side::driver(), to.data(), target, from.data(), source, 1);
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_TRUE(Side::driver().synchronize(1).ok());
  ASSERT_TRUE(to.read() == to.expected) << to_string(target) << " from " << to_string(source);
  ASSERT_TRUE(from.read() == from.expected);
}

TEST_P(CopyElementsOn, EqualsTheReference) {
  std::mt19937_64 random(20261121);
  for (int i = 0; i < 150 && !HasFatalFailure(); ++i) {
    check_copy(random, GetParam(), random_shape(random));
  }
}

TEST_P(CopyElementsOn, EqualsTheReferenceForManyRows) {
  std::mt19937_64 random(20261122);
  for (int i = 0; i < 60 && !HasFatalFailure(); ++i) {
    check_copy(random, GetParam(), large_shape(random));
  }
}

INSTANTIATE_TEST_SUITE_P(Memories, CopyElementsOn,
                         ::testing::Values(Pair{MemoryKind::kDevice, MemoryKind::kHost},
                                           Pair{MemoryKind::kHost, MemoryKind::kDevice},
                                           Pair{MemoryKind::kDevice, MemoryKind::kPinned},
                                           Pair{MemoryKind::kManaged, MemoryKind::kDevice},
                                           Pair{MemoryKind::kDevice, MemoryKind::kDevice}),
                         [](const auto& info) {
                           return std::string(to_string(info.param.source)) + "_to_" +
                                  std::string(to_string(info.param.target));
                         });

TEST(CopyElementsOnOneBlock, OverlappingViewsAsTheReference) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 150; ++i) {
    const Extents shape = random_shape(random);
    StridedView target = random_view(random, shape, 8, true);  // may write a byte twice
    StridedView source = random_view(random, shape, 8, true);
    target.offset_bytes += 8 * static_cast<std::int64_t>(random() % 8);
    Side block(MemoryKind::kDevice, kBlockBytes, random());
    ASSERT_TRUE(copy_elements(block.expected.data(), target, block.expected.data(), source).ok());
    const absl::Status status =
        copy_elements_on(Side::driver(), block.data(), target, block.data(), source, 1);
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_TRUE(block.read() == block.expected)
        << to_string(target) << " from " << to_string(source);
  }
}

std::int64_t copies() { return emulated_driver().faults().calls(emulated::Operation::kCopy); }

// The driver's calls in a piece of work.
struct Calls {
  std::int64_t copies;
  std::int64_t kernels;
  std::int64_t fills;
  std::int64_t crossed_bytes;

  friend bool operator==(const Calls&, const Calls&) = default;
};

template <class Work>
Calls calls_of(const Work& work) {
  EmulatedDriver& driver = emulated_driver();
  const auto now = [&] {
    EXPECT_TRUE(driver.synchronize_device().ok());
    const EmulatedStatistics bytes = driver.statistics();
    return Calls{copies(), driver.faults().calls(emulated::Operation::kLaunch),
                 driver.faults().calls(emulated::Operation::kFill),
                 bytes.host_to_device_bytes + bytes.device_to_host_bytes};
  };
  const Calls before = now();
  const absl::Status status = work();
  EXPECT_TRUE(status.ok()) << status;
  const Calls after = now();
  return {after.copies - before.copies, after.kernels - before.kernels, after.fills - before.fills,
          after.crossed_bytes - before.crossed_bytes};
}

StridedView rows_of(std::int64_t n) { return {{n, n}, {n * 8, 8}, 0, 8}; }
StridedView columns_of(std::int64_t n) { return {{n, n}, {8, n * 8}, 0, 8}; }

TEST(CopyElementsOnCalls, OnTheDeviceATranspositionIsOneKernel) {
  EmulatedDriver& driver = emulated_driver();
  Side to(MemoryKind::kDevice, 80000, 1);
  Side from(MemoryKind::kDevice, 80000, 2);
  const Calls calls = calls_of([&] {
    return copy_elements_on(driver, to.data(), rows_of(100), from.data(), columns_of(100), 1);
  });
  EXPECT_EQ(calls, (Calls{0, 1, 0, 0}));
  EXPECT_EQ(calls_of([&] {
              return copy_elements_on(driver, to.data(), rows_of(100), from.data(), rows_of(100),
                                      1);
            }),
            (Calls{1, 0, 0, 0}));
}

// One long row crosses the bus; the device reverses it.
TEST(CopyElementsOnCalls, OverTheBusATranspositionIsOneCopyAndOneKernel) {
  EmulatedDriver& driver = emulated_driver();
  for (const auto& [to_kind, from_kind] : {Pair{MemoryKind::kDevice, MemoryKind::kPinned},
                                           Pair{MemoryKind::kHost, MemoryKind::kDevice}}) {
    Side to(to_kind, 80000, 1);
    Side from(from_kind, 80000, 2);
    ASSERT_TRUE(
        copy_elements(to.expected.data(), rows_of(100), from.expected.data(), columns_of(100))
            .ok());
    const std::int64_t live_bytes = driver.statistics().live_bytes;
    EXPECT_EQ(calls_of([&] {
                return copy_elements_on(driver, to.data(), rows_of(100), from.data(),
                                        columns_of(100), 1);
              }),
              (Calls{1, 1, 0, 80000}));
    EXPECT_TRUE(to.read() == to.expected);
    EXPECT_EQ(driver.statistics().live_bytes, live_bytes);
  }
}

TEST(CopyElementsOnCalls, WhatTheHostRepeatsCrossesOnce) {
  EmulatedDriver& driver = emulated_driver();
  Side to(MemoryKind::kDevice, 80000, 1);
  Side from(MemoryKind::kHost, 800, 2);
  const StridedView row{{100, 100}, {0, 8}, 0, 8};
  ASSERT_TRUE(copy_elements(to.expected.data(), columns_of(100), from.expected.data(), row).ok());
  EXPECT_EQ(calls_of([&] {
              return copy_elements_on(driver, to.data(), columns_of(100), from.data(), row, 1);
            }),
            (Calls{1, 1, 0, 800}));
  EXPECT_TRUE(to.read() == to.expected);
}

// A copy longer than the memory for packed elements goes through it in pieces.
TEST(CopyElementsOnCalls, MemoryOnTheWayIsBounded) {
  EmulatedDriver& driver = emulated_driver();
  const std::int64_t n = 1500;  // 17 MiB
  std::vector<std::uint64_t> host(static_cast<std::size_t>(n * n));
  for (std::size_t i = 0; i < host.size(); ++i) host[i] = i * 0x9E3779B97F4A7C15;
  auto* const address = reinterpret_cast<std::byte*>(host.data());
  const Block device = *driver.resource(MemoryKind::kDevice).allocate({.total_bytes = n * n * 8});
  const Calls calls{3, 3, 0, n * n * 8};
  EXPECT_EQ(calls_of([&] {
              return copy_elements_on(driver, device.data(), rows_of(n), address, columns_of(n), 1);
            }),
            calls);
  std::vector<std::uint64_t> row(static_cast<std::size_t>(n));
  for (const std::int64_t i : {std::int64_t{0}, std::int64_t{1}, n - 1}) {
    EXPECT_TRUE(driver.copy(row.data(), device.data() + i * n * 8, n * 8, 1).ok());
    for (std::int64_t j = 0; j < n; ++j) {
      EXPECT_EQ(row[static_cast<std::size_t>(j)], host[static_cast<std::size_t>(j * n + i)]);
    }
  }
  const std::vector<std::uint64_t> expected = std::exchange(host, std::vector(host.size(), 0UL));
  EXPECT_EQ(calls_of([&] {
              return copy_elements_on(driver, reinterpret_cast<std::byte*>(host.data()),
                                      columns_of(n), device.data(), rows_of(n), 1);
            }),
            calls);
  EXPECT_TRUE(host == expected);
}

TEST(CopyElementsOnCalls, WithoutMemoryOnTheWayElementsAreCopiedOneByOne) {
  EmulatedDriver& driver = emulated_driver();
  Side to(MemoryKind::kDevice, 20000, 1);
  Side from(MemoryKind::kPinned, 20000, 2);
  ASSERT_TRUE(
      copy_elements(to.expected.data(), rows_of(50), from.expected.data(), columns_of(50)).ok());
  ASSERT_TRUE(driver.synchronize_device().ok());
  driver.set_capacity(driver.statistics().held_bytes);
  EXPECT_EQ(calls_of([&] {
              return copy_elements_on(driver, to.data(), rows_of(50), from.data(), columns_of(50),
                                      1);
            }),
            (Calls{50, 0, 0, 20000}));
  driver.set_capacity(INT64_MAX);
  EXPECT_TRUE(to.read() == to.expected);
}

// --- Fills ---------------------------------------------------------------------------------------

class FillElementsOn : public ::testing::TestWithParam<MemoryKind> {};

TEST_P(FillElementsOn, EqualsTheReference) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 200; ++i) {
    // Memory of the host is filled element by element, which is slow.
    const bool is_small =
        i % 2 == 0 || GetParam() == MemoryKind::kHost || GetParam() == MemoryKind::kPinned;
    const Extents shape = is_small ? random_shape(random) : large_shape(random);
    const std::int64_t itemsize = random() % 4 == 0 ? 1 + static_cast<std::int64_t>(random() % 40)
                                                    : std::int64_t{1} << (random() % 5);
    StridedView view = random_view(random, shape, itemsize, /*may_broadcast=*/i % 3 == 0);
    const std::int64_t block_bytes = byte_hull(view)->highest_bytes + 64;
    Side side(GetParam(), block_bytes, random());
    Bytes element(static_cast<std::size_t>(itemsize));
    for (std::byte& byte : element) byte = static_cast<std::byte>(random());
    if (random() % 4 == 0) std::fill(element.begin(), element.end(), std::byte{0});
    ASSERT_TRUE(fill_elements(side.expected.data(), view, element).ok());
    const absl::Status status = fill_elements_on(Side::driver(), side.data(), view, element, 1);
    ASSERT_TRUE(status.ok()) << status;
    std::fill(element.begin(), element.end(), std::byte{0x5A});  // has been read
    ASSERT_TRUE(Side::driver().synchronize(1).ok());
    ASSERT_TRUE(side.read() == side.expected) << to_string(view);
  }
}

INSTANTIATE_TEST_SUITE_P(Memories, FillElementsOn,
                         ::testing::Values(MemoryKind::kDevice, MemoryKind::kManaged,
                                           MemoryKind::kPinned, MemoryKind::kHost),
                         [](const auto& info) { return std::string(to_string(info.param)); });

TEST(FillElementsOnCalls, IsOneKernelOrOneFillOfBytes) {
  EmulatedDriver& driver = emulated_driver();
  Side side(MemoryKind::kDevice, 80000, 1);
  const auto fill = [&](const StridedView& view, const Bytes& element) {
    return calls_of([&] { return fill_elements_on(driver, side.data(), view, element, 1); });
  };
  const Bytes one{std::byte{0}, std::byte{0}, std::byte{0},    std::byte{0},
                  std::byte{0}, std::byte{0}, std::byte{0xF0}, std::byte{0x3F}};
  const StridedView padded{{50, 50}, {800, 8}, 0, 8};
  EXPECT_EQ(fill(rows_of(100), Bytes(8)), (Calls{0, 0, 1, 0}));
  EXPECT_EQ(fill(rows_of(100), one), (Calls{0, 1, 0, 0}));
  EXPECT_EQ(fill(padded, Bytes(8)), (Calls{0, 1, 0, 0}));
}

// An element that is too long for a kernel crosses once, and is repeated on the device.
TEST(FillElementsOnCalls, ALongElementCrossesOnce) {
  EmulatedDriver& driver = emulated_driver();
  const StridedView view{{300}, {600}, 0, 500};
  Side side(MemoryKind::kDevice, 180000, 1);
  Bytes element(500);
  for (std::size_t i = 0; i < element.size(); ++i) element[i] = static_cast<std::byte>(i % 251);
  ASSERT_TRUE(fill_elements(side.expected.data(), view, element).ok());
  EXPECT_EQ(calls_of([&] { return fill_elements_on(driver, side.data(), view, element, 1); }),
            (Calls{1, 1, 0, 500}));
  EXPECT_TRUE(side.read() == side.expected);
}

TEST(FillElementsOnErrors, AreFoundBeforeAnythingIsEnqueued) {
  EmulatedDriver& driver = emulated_driver();
  const Block device = *driver.resource(MemoryKind::kDevice).allocate({.total_bytes = 64});
  const StridedView four{{4}, {8}, 0, 8};
  const auto error = [&](std::byte* target, const StridedView& view, std::size_t length,
                         StreamHandle stream) {
    return error_class_of(fill_elements_on(driver, target, view, Bytes(length), stream));
  };
  EXPECT_EQ(error(device.data(), four, 4, 1), ErrorClass::kValue);
  EXPECT_EQ(error(device.data(), {{4}, {}, 0, 8}, 8, 1), ErrorClass::kValue);
  EXPECT_EQ(error(nullptr, four, 8, 1), ErrorClass::kValue);
  EXPECT_EQ(error(device.data(), four, 8, 0), ErrorClass::kValue);
  EXPECT_EQ(error(device.data(), {{40000}, {8}, 0, 8}, 8, 1), ErrorClass::kValue);
  EXPECT_TRUE(fill_elements_on(driver, nullptr, {{0}, {8}, 0, 8}, Bytes(8), 1).ok());
}

// The halo of a padded field goes to the device: one plane is one call, though its rows are padded
// on both sides.
TEST(CopyElementsOnCalls, APlaneOfPaddedRowsIsOneCall) {
  EmulatedDriver& driver = emulated_driver();
  const StridedView field{{3, 20, 10}, {20 * 128, 128, 8}, 0, 8};
  const StridedView plane = *index(field, 0, 2);
  std::vector<std::byte> host(3 * 20 * 128, std::byte{1});
  const Block device =
      *driver.resource(MemoryKind::kDevice).allocate({.total_bytes = 3 * 20 * 128});
  const std::int64_t before = copies();
  EXPECT_TRUE(
      copy_elements_on(driver, device.data(), plane, host.data(), plane, current_stream()).ok());
  EXPECT_EQ(copies() - before, 1);
}

TEST(CopyElementsOnCalls, EqualDenseLayoutsAreOneCall) {
  EmulatedDriver& driver = emulated_driver();
  const StridedView dense{{3, 20, 10}, {1600, 80, 8}, 0, 8};
  std::vector<std::byte> host(4800);
  const Block device = *driver.resource(MemoryKind::kDevice).allocate({.total_bytes = 4800});
  const std::int64_t before = copies();
  EXPECT_TRUE(copy_elements_on(driver, device.data(), dense, host.data(), dense, 1).ok());
  EXPECT_EQ(copies() - before, 1);
}

TEST(CopyElementsOnErrors, AreFoundBeforeAnythingIsEnqueued) {
  EmulatedDriver& driver = emulated_driver();
  std::vector<std::byte> host(64);
  const Block device = *driver.resource(MemoryKind::kDevice).allocate({.total_bytes = 64});
  const StridedView four{{4}, {8}, 0, 8};
  const StridedView five{{5}, {8}, 0, 8};
  const StridedView halves{{4}, {8}, 0, 4};
  const StridedView malformed{{4}, {}, 0, 8};
  const std::int64_t before = copies();
  const auto error = [&](std::byte* target, const StridedView& to, const StridedView& from,
                         StreamHandle stream) {
    return error_class_of(copy_elements_on(driver, target, to, host.data(), from, stream));
  };
  EXPECT_EQ(error(device.data(), four, five, 1), ErrorClass::kValue);
  EXPECT_EQ(error(device.data(), four, halves, 1), ErrorClass::kValue);
  EXPECT_EQ(error(device.data(), malformed, malformed, 1), ErrorClass::kValue);
  EXPECT_EQ(error(nullptr, four, four, 1), ErrorClass::kValue);
  EXPECT_EQ(error(device.data(), four, four, 0), ErrorClass::kValue);
  EXPECT_EQ(error(device.data(), four, four, 99), ErrorClass::kValue);
  EXPECT_EQ(copies(), before);
  const StridedView empty{{0}, {8}, 0, 8};
  EXPECT_TRUE(copy_elements_on(driver, nullptr, empty, nullptr, empty, 1).ok());
}

// The first, second, … operation of any kind fails, until all succeed. Each failure is reported,
// and memory does not leak.
template <class Work>
void fail_at_every_operation(std::int64_t operations, const Work& work) {
  EmulatedDriver& driver = emulated_driver();
  ASSERT_TRUE(driver.synchronize_device().ok());
  const std::int64_t live_blocks = driver.statistics().live_blocks;
  for (std::int64_t n = 1;; ++n) {
    const std::int64_t fault = driver.faults().inject(
        {.first_call = n, .error = make_error(ErrorClass::kInternal, "injected")});
    const absl::Status status = work();
    driver.faults().remove(fault);
    EXPECT_TRUE(driver.synchronize_device().ok());
    EXPECT_EQ(driver.statistics().live_blocks, live_blocks);
    if (status.ok()) {
      EXPECT_GT(n, operations);
      break;
    }
    EXPECT_NE(status.message().find("injected"), std::string::npos) << status;
  }
}

TEST(CopyElementsOnErrors, AtEveryOperationLeakNothing) {
  EmulatedDriver& driver = emulated_driver();
  const StridedView forwards{{4, 4}, {64, 8}, 0, 8};
  const StridedView backwards{{4, 4}, {-64, -8}, 216, 8};
  const Block block = *driver.resource(MemoryKind::kDevice).allocate({.total_bytes = 20000});
  // The stream's check, the scratch block, copies.
  fail_at_every_operation(3, [&] {
    return copy_elements_on(driver, block.data(), forwards, block.data(), backwards, 1);
  });
  // Two queries of addresses, an intermediate block, a copy, a kernel.
  Bytes host(20000);
  fail_at_every_operation(5, [&] {
    return copy_elements_on(driver, block.data(), rows_of(50), host.data(), columns_of(50), 1);
  });
  fail_at_every_operation(2, [&] {
    return fill_elements_on(driver, block.data(), rows_of(50), Bytes(8, std::byte{1}), 1);
  });
}

}  // namespace
}  // namespace gridbuf
