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

class ArrayInterface : public ::testing::Test {
 protected:
  BufferDescriptor descriptor(const Extents& shape, const Extents& strides_bytes) {
    return {.block = bytes_,
            .view = {.shape = shape,
                     .strides_bytes = strides_bytes,
                     .offset_bytes = 16,
                     .itemsize_bytes = 8},
            .dtype = DType(),
            .readonly = false,
            .device = {},
            .owner = {}};
  }

  alignas(8) std::byte bytes_[256] = {};
};

TEST_F(ArrayInterface, DescribesAPaddedArray) {
  const auto fields = array_interface(descriptor({3, 2}, {32, 8}));
  ASSERT_TRUE(fields.ok());
  EXPECT_EQ(fields->shape, (Extents{3, 2}));
  EXPECT_EQ(fields->typestr, "<f8");
  EXPECT_EQ(fields->data_address, reinterpret_cast<std::uintptr_t>(bytes_ + 16));
  EXPECT_FALSE(fields->readonly);
  EXPECT_EQ(fields->strides_bytes, std::optional(Extents{32, 8}));
  EXPECT_EQ(fields->descr, "[('', '<f8')]");
  EXPECT_EQ(fields->version, 3);
}

// [example]
// The dict of a descriptor as a Python literal, without strides.
std::string literal(const ArrayInterfaceFields& fields) {
  return "{'version': " + std::to_string(fields.version) + ", 'typestr': '" + fields.typestr +
         "', 'shape': " + to_string(fields.shape) + ", 'data': (" +
         std::to_string(fields.data_address) + ", " + (fields.readonly ? "True" : "False") + ")}";
}
// [/example]

TEST_F(ArrayInterface, ExampleOfTheReadme) {
  const std::string address = std::to_string(reinterpret_cast<std::uintptr_t>(bytes_ + 16));
  EXPECT_EQ(literal(*array_interface(descriptor({3, 2}, {16, 8}))),
            "{'version': 3, 'typestr': '<f8', 'shape': (3, 2), 'data': (" + address + ", False)}");
}

TEST_F(ArrayInterface, LeavesOutStridesOfContiguousArrays) {
  EXPECT_EQ(array_interface(descriptor({3, 2}, {16, 8}))->strides_bytes, std::nullopt);
  EXPECT_EQ(array_interface(descriptor({}, {}))->strides_bytes, std::nullopt);
  // Strides of extent 1 and of empty arrays carry no meaning.
  EXPECT_EQ(array_interface(descriptor({1, 2}, {777, 8}))->strides_bytes, std::nullopt);
  EXPECT_EQ(array_interface(descriptor({0, 2}, {777, -8}))->strides_bytes, std::nullopt);
}

TEST_F(ArrayInterface, PointsAtTheFirstElementOfAReversedArray) {
  BufferDescriptor reversed = descriptor({3}, {-8});
  reversed.view.offset_bytes = 32;
  EXPECT_EQ(array_interface(reversed)->data_address, reinterpret_cast<std::uintptr_t>(bytes_ + 32));
}

TEST_F(ArrayInterface, SaysReadOnlyAndByteOrder) {
  BufferDescriptor constant = descriptor({3}, {8});
  constant.readonly = true;
  constant.dtype = constant.dtype.byteswapped();
  EXPECT_TRUE(array_interface(constant)->readonly);
  EXPECT_EQ(array_interface(constant)->typestr, ">f8");
}

TEST_F(ArrayInterface, PassesOnTheDescrOfAStructuredType) {
  BufferDescriptor structured = descriptor({3}, {8});
  structured.dtype = *DType::structured(8, "T{i:a:f:b:}", "[('a', '<i4'), ('b', '<f4')]");
  EXPECT_EQ(array_interface(structured)->typestr, "|V8");
  EXPECT_EQ(array_interface(structured)->descr, "[('a', '<i4'), ('b', '<f4')]");
}

TEST_F(ArrayInterface, RefusesDeviceMemory) {
  BufferDescriptor device = descriptor({3}, {8});
  device.device = {DeviceType::kCuda, 0};
  const auto fields = array_interface(device);
  EXPECT_EQ(error_class_of(fields.status()), ErrorClass::kNoSuchBuffer);
  EXPECT_NE(fields.status().message().find("cuda:0"), std::string::npos);
  device.device = {DeviceType::kCudaManaged, 0};
  EXPECT_TRUE(array_interface(device).ok());
}

}  // namespace
}  // namespace gridbuf
