#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"

import gridbuf.alloc;
import gridbuf.base;
import gridbuf.interface;
import gridbuf.layout;
import gridbuf.layout.view;

namespace gridbuf {
namespace {

class Describe : public ::testing::Test {
 protected:
  BufferDescriptor descriptor() {
    return {.block = bytes_,
            .view = {.shape = {2, 3},
                     .strides_bytes = {-32, 8},
                     .offset_bytes = 32,
                     .itemsize_bytes = 8},
            .dtype = DType(),
            .readonly = false,
            .device = {},
            .owner = {}};
  }

  static void expect_refused(const BufferDescriptor& descriptor, const std::string& part) {
    const absl::StatusOr<BufferDescriptor> described = describe(descriptor);
    ASSERT_FALSE(described.ok());
    EXPECT_EQ(error_class_of(described.status()), ErrorClass::kValue);
    EXPECT_NE(described.status().message().find(part), std::string::npos) << described.status();
  }

  alignas(8) std::byte bytes_[64] = {};
};

TEST_F(Describe, FindsTheFirstElementAndCountsBytesWithoutPadding) {
  const absl::StatusOr<BufferDescriptor> described = describe(descriptor());
  ASSERT_TRUE(described.ok()) << described.status();
  EXPECT_EQ(described->first_element(), bytes_ + 32);
  EXPECT_EQ(described->nbytes(), 48);
  EXPECT_FALSE(described->is_empty());
}

TEST_F(Describe, TakesNullWithoutElements) {
  BufferDescriptor empty = descriptor();
  empty.block = nullptr;
  empty.view = {.shape = {0, 3}, .strides_bytes = {24, 8}, .offset_bytes = 0, .itemsize_bytes = 8};
  const absl::StatusOr<BufferDescriptor> described = describe(empty);
  ASSERT_TRUE(described.ok()) << described.status();
  EXPECT_EQ(described->nbytes(), 0);
  EXPECT_TRUE(described->is_empty());
}

TEST_F(Describe, RefusesNullWithElements) {
  BufferDescriptor bad = descriptor();
  bad.block = nullptr;
  expect_refused(bad, "memory for 6 elements");
}

TEST_F(Describe, RefusesAnotherItemsize) {
  BufferDescriptor bad = descriptor();
  bad.dtype = *DType::from_name("float32");
  expect_refused(bad, "itemsize_bytes is 8, but must be 4, that of float32");
}

TEST_F(Describe, RefusesMalformedViews) {
  BufferDescriptor bad = descriptor();
  bad.view.strides_bytes = {8};
  expect_refused(bad, "as many strides");
  bad = descriptor();
  bad.view.shape = {-1, 3};
  expect_refused(bad, "non-negative extents");
}

TEST_F(Describe, RefusesWhat64BitsCannotHold) {
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  BufferDescriptor bad = descriptor();
  bad.view.strides_bytes = {most, most};
  expect_refused(bad, "2^63 - 1 bytes");
  // A small hull, but too many (repeated) elements to count their bytes.
  bad = descriptor();
  bad.view.shape = {most / 8, 3};
  bad.view.strides_bytes = {0, 8};
  expect_refused(bad, "2^63 - 1 bytes");
}

// [example]
// Describes rows x columns doubles in `memory`, which `owner` keeps alive.
absl::StatusOr<BufferDescriptor> describe_matrix(double* memory, std::int64_t rows,
                                                 std::int64_t columns, Owner owner) {
  return describe({.block = reinterpret_cast<std::byte*>(memory),
                   .view = {.shape = {rows, columns},
                            .strides_bytes = {columns * 8, 8},
                            .offset_bytes = 0,
                            .itemsize_bytes = 8},
                   .dtype = DType(),
                   .readonly = false,
                   .device = {},
                   .owner = std::move(owner)});
}
// [/example]

TEST(InterfaceExample, OfTheReadme) {
  auto memory = std::make_shared<std::array<double, 6>>();
  const auto descriptor = describe_matrix(memory->data(), 2, 3, memory);
  ASSERT_TRUE(descriptor.ok());
  EXPECT_EQ(descriptor->nbytes(), 48);
  EXPECT_EQ(memory.use_count(), 2);
}

TEST(Device, HasANameForEveryType) {
  EXPECT_EQ(to_string(Device{}), "host");
  EXPECT_EQ(to_string(Device{DeviceType::kCuda, 1}), "cuda:1");
  EXPECT_EQ(to_string(Device{DeviceType::kCudaManaged, 0}), "managed (CUDA)");
  EXPECT_EQ(to_string(Device{static_cast<DeviceType>(7), 3}), "device type 7:3");
}

TEST(Device, IsHostReadableUnlessItIsDeviceMemory) {
  for (const DeviceType type : {DeviceType::kHost, DeviceType::kCudaHost, DeviceType::kRocmHost,
                                DeviceType::kCudaManaged}) {
    EXPECT_TRUE(is_host_readable(type));
  }
  EXPECT_FALSE(is_host_readable(DeviceType::kCuda));
  EXPECT_FALSE(is_host_readable(DeviceType::kRocm));
}

}  // namespace
}  // namespace gridbuf
