#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"

import gridbuf.alloc;
import gridbuf.base;
import gridbuf.interface;
import gridbuf.interface.numpy;
import gridbuf.layout;
import gridbuf.layout.view;

namespace gridbuf {
namespace {

class CudaArrayInterface : public ::testing::Test {
 protected:
  BufferDescriptor descriptor(const Extents& shape, const Extents& strides_bytes) {
    return {.block = bytes_,
            .view = {.shape = shape,
                     .strides_bytes = strides_bytes,
                     .offset_bytes = 16,
                     .itemsize_bytes = 8},
            .dtype = DType(),
            .readonly = false,
            .device = {DeviceType::kCuda, 1},
            .owner = {}};
  }

  alignas(8) std::byte bytes_[256] = {};
};

TEST_F(CudaArrayInterface, DescribesAPaddedArray) {
  const auto fields = cuda_array_interface(descriptor({3, 2}, {32, 8}), 7777);
  ASSERT_TRUE(fields.ok());
  EXPECT_EQ(fields->shape, (Extents{3, 2}));
  EXPECT_EQ(fields->typestr, "<f8");
  EXPECT_EQ(fields->data_address, reinterpret_cast<std::uintptr_t>(bytes_ + 16));
  EXPECT_FALSE(fields->readonly);
  EXPECT_EQ(fields->strides_bytes, std::optional(Extents{32, 8}));
  EXPECT_EQ(fields->descr, "[('', '<f8')]");
  EXPECT_EQ(fields->stream, 7777U);
  EXPECT_EQ(fields->version, 3);
}

// [example]
// The stream that a consumer must wait for before it reads the array.
std::uint64_t stream_to_wait_on(const BufferDescriptor& array) {
  const auto fields = cuda_array_interface(array, /*stream=*/1);
  return fields.ok() ? fields->stream : 0;
}
// [/example]

TEST_F(CudaArrayInterface, ExampleOfTheReadme) {
  EXPECT_EQ(stream_to_wait_on(descriptor({3}, {8})), 1U);
}

TEST_F(CudaArrayInterface, Cai10LeavesOutStridesOfContiguousArrays) {
  EXPECT_EQ(cuda_array_interface(descriptor({3, 2}, {16, 8}), 1)->strides_bytes, std::nullopt);
  EXPECT_EQ(cuda_array_interface(descriptor({}, {}), 1)->strides_bytes, std::nullopt);
}

TEST_F(CudaArrayInterface, Cai06HasAddressZeroWithoutElements) {
  EXPECT_EQ(cuda_array_interface(descriptor({3, 0}, {-16, 8}), 1)->data_address, 0U);
}

TEST_F(CudaArrayInterface, Cai08SaysReadOnlyAndByteOrder) {
  BufferDescriptor constant = descriptor({3}, {8});
  constant.readonly = true;
  constant.dtype = constant.dtype.byteswapped();
  EXPECT_TRUE(cuda_array_interface(constant, 2)->readonly);
  EXPECT_EQ(cuda_array_interface(constant, 2)->typestr, ">f8");
}

TEST_F(CudaArrayInterface, Cai16RefusesStreamZero) {
  const auto fields = cuda_array_interface(descriptor({3}, {8}), 0);
  EXPECT_EQ(error_class_of(fields.status()), ErrorClass::kValue);
}

TEST_F(CudaArrayInterface, Cai07IsForMemoryThatCudaDevicesReach) {
  BufferDescriptor memory = descriptor({3}, {8});
  for (const DeviceType type :
       {DeviceType::kCuda, DeviceType::kCudaHost, DeviceType::kCudaManaged}) {
    memory.device = {type, 0};
    EXPECT_TRUE(cuda_array_interface(memory, 1).ok()) << to_string(memory.device);
  }
  for (const DeviceType type : {DeviceType::kHost, DeviceType::kRocm, DeviceType::kRocmHost}) {
    memory.device = {type, 0};
    const auto fields = cuda_array_interface(memory, 1);
    EXPECT_EQ(error_class_of(fields.status()), ErrorClass::kNoSuchBuffer);
    EXPECT_NE(fields.status().message().find(to_string(memory.device)), std::string::npos);
  }
}

}  // namespace
}  // namespace gridbuf
