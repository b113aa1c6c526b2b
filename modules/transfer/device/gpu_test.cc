#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"

import gridbuf.alloc;
import gridbuf.base;
import gridbuf.device;
import gridbuf.device.cuda;
import gridbuf.layout;
import gridbuf.layout.view;
import gridbuf.transfer;
import gridbuf.transfer.device;

// The kernels on a GPU: tests beyond the host's build of their index logic. Without a GPU every
// test here is skipped with a message, and its checks are not done.

namespace gridbuf {
namespace {

using Bytes = std::vector<std::byte>;

#define GRIDBUF_NEEDS_GPU()                                                                      \
  const absl::StatusOr<CudaDriver*> found = cuda_driver();                                       \
  if (!found.ok()) {                                                                             \
    ASSERT_EQ(error_class_of(found.status()), ErrorClass::kDeviceUnavailable) << found.status(); \
    GTEST_SKIP() << "NOT RUN, no GPU: " << found.status().message();                             \
  }                                                                                              \
  CudaDriver& driver = **found

Bytes random_bytes(std::mt19937_64& random, std::int64_t length) {
  Bytes bytes(static_cast<std::size_t>(length));
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

Block on_device(CudaDriver& driver, const Bytes& bytes) {
  absl::StatusOr<Block> block =
      driver.resource(MemoryKind::kDevice).allocate({.total_bytes = std::ssize(bytes)});
  EXPECT_TRUE(block.ok()) << block.status();
  EXPECT_TRUE(driver.copy(block->data(), bytes.data(), std::ssize(bytes), 1).ok());
  return *std::move(block);
}

Bytes read(CudaDriver& driver, const Block& block) {
  Bytes bytes(static_cast<std::size_t>(block.total_bytes()));
  EXPECT_TRUE(driver.copy(bytes.data(), block.data(), std::ssize(bytes), 1).ok());
  const absl::Status status = driver.synchronize(1);  // reports errors of kernels
  EXPECT_TRUE(status.ok()) << status;
  return bytes;
}

// A view that grows from `order`'s last axis to its first, rows padded by `pad_items`.
StridedView laid_out(const Extents& shape, const std::array<int, 3>& order, std::int64_t itemsize,
                     std::int64_t pad_items) {
  StridedView view{shape, {0, 0, 0}, 0, itemsize};
  std::int64_t stride = itemsize;
  for (int i = 2; i >= 0; --i) {
    view.strides_bytes[order[static_cast<std::size_t>(i)]] = stride;
    stride *= shape[order[static_cast<std::size_t>(i)]];
    if (i == 2) stride += pad_items * itemsize;
  }
  return view;
}

constexpr std::array<std::array<int, 3>, 6> kOrders{
    {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}};

// All layouts of three axes, items of all lengths, extents around the edges of tiles, rows with and
// without the alignment of vectors. Every byte of the target, including padding, must be that of
// the host's copy.
TEST(KernelsGpu, CopyEveryPermutationAsTheHostDoes) {
  GRIDBUF_NEEDS_GPU();
  std::mt19937_64 random(1);
  for (const std::int64_t itemsize : {1, 2, 4, 8, 16, 12}) {
    for (const Extents& shape : {Extents{64, 32, 128}, Extents{65, 33, 127}, Extents{3, 257, 5}}) {
      for (const std::array<int, 3>& order : kOrders) {
        for (const std::int64_t pad : {0, 3}) {
          const StridedView source = laid_out(shape, kOrders[0], itemsize, 0);
          const StridedView target = laid_out(shape, order, itemsize, pad);
          const Bytes from = random_bytes(random, byte_hull(source)->highest_bytes);
          Bytes expected = random_bytes(random, byte_hull(target)->highest_bytes);
          const Block to_device = on_device(driver, expected);
          const Block from_device = on_device(driver, from);
          ASSERT_TRUE(copy_elements(expected.data(), target, from.data(), source).ok());
          ASSERT_TRUE(
              copy_elements_on(driver, to_device.data(), target, from_device.data(), source, 1)
                  .ok());
          ASSERT_TRUE(read(driver, to_device) == expected)
              << to_string(target) << " from " << to_string(source);
        }
      }
    }
  }
}

// Odd addresses, where a wrong vector access ends the kernel.
TEST(KernelsGpu, CopyAndFillAtEveryAlignment) {
  GRIDBUF_NEEDS_GPU();
  std::mt19937_64 random(2);
  for (const std::int64_t itemsize : {1, 2, 4, 8, 16}) {
    for (std::int64_t shift = 0; shift < 16; ++shift) {
      const StridedView source{{30, 300}, {301 * itemsize, itemsize}, shift, itemsize};
      const StridedView target{{30, 300}, {itemsize, 30 * itemsize}, 16 - shift, itemsize};
      const Bytes from = random_bytes(random, byte_hull(source)->highest_bytes);
      Bytes expected = random_bytes(random, byte_hull(target)->highest_bytes);
      const Block to_device = on_device(driver, expected);
      const Block from_device = on_device(driver, from);
      ASSERT_TRUE(copy_elements(expected.data(), target, from.data(), source).ok());
      ASSERT_TRUE(
          copy_elements_on(driver, to_device.data(), target, from_device.data(), source, 1).ok());
      ASSERT_TRUE(read(driver, to_device) == expected) << itemsize << " at " << shift;
      const Bytes element = random_bytes(random, itemsize);
      Bytes filled = from;
      ASSERT_TRUE(fill_elements(filled.data(), source, element).ok());
      ASSERT_TRUE(fill_elements_on(driver, from_device.data(), source, element, 1).ok());
      ASSERT_TRUE(read(driver, from_device) == filled) << itemsize << " at " << shift;
    }
  }
}

TEST(KernelsGpu, CrossTheBusInBothDirections) {
  GRIDBUF_NEEDS_GPU();
  std::mt19937_64 random(3);
  const Extents shape{70, 80, 90};
  for (const std::array<int, 3>& order : kOrders) {
    const StridedView host_view = laid_out(shape, kOrders[0], 8, 5);  // narrow rows
    const StridedView device_view = laid_out(shape, order, 8, 0);
    Bytes host = random_bytes(random, byte_hull(host_view)->highest_bytes);
    Bytes expected = random_bytes(random, byte_hull(device_view)->highest_bytes);
    const Block device = on_device(driver, expected);
    ASSERT_TRUE(copy_elements(expected.data(), device_view, host.data(), host_view).ok());
    ASSERT_TRUE(
        copy_elements_on(driver, device.data(), device_view, host.data(), host_view, 1).ok());
    ASSERT_TRUE(read(driver, device) == expected);
    Bytes back = random_bytes(random, std::ssize(host));
    Bytes expected_back = back;
    ASSERT_TRUE(copy_elements(expected_back.data(), host_view, host.data(), host_view).ok());
    ASSERT_TRUE(
        copy_elements_on(driver, back.data(), host_view, device.data(), device_view, 1).ok());
    ASSERT_TRUE(driver.synchronize(1).ok());
    ASSERT_TRUE(back == expected_back);
  }
}

// More than 2^32 bytes on each side, and strides beyond 2^31.
TEST(KernelsGpu, ReachBeyond32Bits) {
  GRIDBUF_NEEDS_GPU();
  const std::int64_t plane = (std::int64_t{5} << 29) + 512;
  const absl::StatusOr<Block> block =
      driver.resource(MemoryKind::kDevice).allocate({.total_bytes = 2 * plane});
  if (!block.ok()) GTEST_SKIP() << "NOT RUN, too little device memory: " << block.status();
  const StridedView spread{{2, 1000}, {plane, 8}, 0, 8};
  std::mt19937_64 random(4);
  const Bytes elements = random_bytes(random, 16000);
  const StridedView dense{{2, 1000}, {8, 16}, 0, 8};
  ASSERT_TRUE(copy_elements_on(driver, block->data(), spread, elements.data(), dense, 1).ok());
  const Block back = on_device(driver, Bytes(16000));
  ASSERT_TRUE(copy_elements_on(driver, back.data(), dense, block->data(), spread, 1).ok());
  EXPECT_TRUE(read(driver, back) == elements);
  const Bytes element(8, std::byte{3});
  const StridedView all{{2 * plane / 16}, {16}, 0, 8};
  ASSERT_TRUE(fill_elements_on(driver, block->data(), all, element, 1).ok());
  std::byte last{};
  ASSERT_TRUE(driver.copy(&last, block->data() + 2 * plane - 16, 1, 1).ok());
  ASSERT_TRUE(driver.synchronize(1).ok());
  EXPECT_EQ(last, std::byte{3});
}

}  // namespace
}  // namespace gridbuf
