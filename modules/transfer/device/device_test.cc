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
import gridbuf.alloc.device;
import gridbuf.alloc.emulated;
import gridbuf.error;
import gridbuf.layout.extents;
import gridbuf.layout.view;
import gridbuf.transfer;
import gridbuf.transfer.device;

namespace gridbuf {
namespace {

using Bytes = std::vector<std::byte>;

// Bytes in memory of one kind of the device, with a copy on the host of what they should hold.
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

// A view of `shape` within kBlockBytes: axes in random order, padded, reversed now and then, and,
// for sources, broadcast.
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

struct Pair {
  MemoryKind target;
  MemoryKind source;
};

class CopyElementsOn : public ::testing::TestWithParam<Pair> {};

// gridbuf.transfer is the reference: every byte of the target's block is compared, so padding that
// was touched shows.
TEST_P(CopyElementsOn, EqualsTheReference) {
  std::mt19937_64 random(20261121);
  for (int i = 0; i < 150; ++i) {
    const Extents shape = random_shape(random);
    const std::int64_t itemsize = std::int64_t{1} << (random() % 5);
    const StridedView target = random_view(random, shape, itemsize, false);
    const StridedView source = random_view(random, shape, itemsize, true);
    ASSERT_LE(byte_hull(target)->highest_bytes, kBlockBytes);
    Side to(GetParam().target, kBlockBytes, random());
    Side from(GetParam().source, kBlockBytes, random());
    ASSERT_TRUE(copy_elements(to.expected.data(), target, from.expected.data(), source).ok());
    const absl::Status status =
        copy_elements_on(Side::driver(), to.data(), target, from.data(), source, 1);
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_TRUE(Side::driver().synchronize(1).ok());
    ASSERT_TRUE(to.read() == to.expected) << to_string(target) << " from " << to_string(source);
    ASSERT_TRUE(from.read() == from.expected);
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

// [example]
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
// [/example]

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

// Fails at the first, second, … operation of any kind until none fails: each failure is reported,
// and nothing stays allocated.
TEST(CopyElementsOnErrors, AtEveryOperationLeakNothing) {
  EmulatedDriver& driver = emulated_driver();
  const StridedView forwards{{4, 4}, {64, 8}, 0, 8};
  const StridedView backwards{{4, 4}, {-64, -8}, 216, 8};
  const Block block = *driver.resource(MemoryKind::kDevice).allocate({.total_bytes = 256});
  ASSERT_TRUE(driver.synchronize_device().ok());
  const std::int64_t live_blocks = driver.statistics().live_blocks;
  for (std::int64_t n = 1;; ++n) {
    const std::int64_t fault = driver.faults().inject(
        {.first_call = n, .error = make_error(ErrorClass::kInternal, "injected")});
    const absl::Status status =
        copy_elements_on(driver, block.data(), forwards, block.data(), backwards, 1);
    driver.faults().remove(fault);
    EXPECT_TRUE(driver.synchronize_device().ok());
    EXPECT_EQ(driver.statistics().live_blocks, live_blocks);
    if (status.ok()) {
      EXPECT_GT(n, 3);  // the stream's check, the scratch block, copies
      break;
    }
    EXPECT_NE(status.message().find("injected"), std::string::npos) << status;
  }
}

}  // namespace
}  // namespace gridbuf
