#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"

import gridbuf.alloc;
import gridbuf.base;
import gridbuf.interface;
import gridbuf.interface.numpy;
import gridbuf.layout;
import gridbuf.layout.view;

namespace gridbuf::array_struct {
namespace {

class ArrayStructs : public ::testing::Test {
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

  alignas(16) std::byte bytes_[256] = {};
};

// [example]
// The address of the element in row `row` and column `column`, as a C reader computes it.
void* element(const ArrayStruct& array, std::intptr_t row, std::intptr_t column) {
  return static_cast<std::byte*>(array.data) + row * array.strides[0] + column * array.strides[1];
}
// [/example]

TEST_F(ArrayStructs, ExampleOfTheReadme) {
  const auto exported = export_array_struct(descriptor({3, 2}, {32, 8}));
  ASSERT_TRUE(exported.ok());
  EXPECT_EQ(element(**exported, 1, 1), bytes_ + 16 + 40);
}

TEST_F(ArrayStructs, As02To04DescribeAPaddedArray) {
  const auto exported = export_array_struct(descriptor({3, 2}, {32, 8}));
  ASSERT_TRUE(exported.ok());
  const ArrayStruct& found = **exported;
  EXPECT_EQ(found.two, 2);
  EXPECT_EQ(found.nd, 2);
  EXPECT_EQ(found.typekind, 'f');
  EXPECT_EQ(found.itemsize, 8);
  EXPECT_EQ(found.shape[0], 3);
  EXPECT_EQ(found.shape[1], 2);
  EXPECT_EQ(found.strides[0], 32);
  EXPECT_EQ(found.strides[1], 8);
  EXPECT_EQ(found.data, bytes_ + 16);
  EXPECT_EQ(found.descr, nullptr);
}

TEST_F(ArrayStructs, As05FlagsAreTrueOfTheMemory) {
  EXPECT_EQ(true_flags(descriptor({3, 2}, {16, 8})),
            kCContiguous | kAligned | kNotSwapped | kWritable);
  EXPECT_EQ(true_flags(descriptor({3, 2}, {8, 24})),
            kFContiguous | kAligned | kNotSwapped | kWritable);
  EXPECT_EQ(true_flags(descriptor({3, 2}, {32, 8})), kAligned | kNotSwapped | kWritable);
  EXPECT_EQ(true_flags(descriptor({3}, {8})),
            kCContiguous | kFContiguous | kAligned | kNotSwapped | kWritable);
  EXPECT_EQ(true_flags(descriptor({3}, {12})) & kAligned, 0);

  BufferDescriptor odd = descriptor({3}, {8});
  odd.view.offset_bytes = 17;
  EXPECT_EQ(true_flags(odd) & kAligned, 0);
  BufferDescriptor swapped = descriptor({3}, {8});
  swapped.dtype = swapped.dtype.byteswapped();
  EXPECT_EQ(true_flags(swapped) & kNotSwapped, 0);
  BufferDescriptor constant = descriptor({3}, {8});
  constant.readonly = true;
  EXPECT_EQ(true_flags(constant) & kWritable, 0);
  BufferDescriptor record = descriptor({3}, {8});
  record.dtype = *DType::structured(8, "T{i:a:f:b:}", "");
  EXPECT_EQ(true_flags(record) & kAligned, 0);
}

TEST_F(ArrayStructs, As03CountsBytesOfText) {
  BufferDescriptor text = descriptor({3}, {8});
  text.dtype = *DType::from_typestr("<U2");
  const auto exported = export_array_struct(text);
  ASSERT_TRUE(exported.ok());
  EXPECT_EQ((*exported)->typekind, 'U');
  EXPECT_EQ((*exported)->itemsize, 8);
}

TEST_F(ArrayStructs, As03RefusesWhatALetterCannotSay) {
  BufferDescriptor array = descriptor({3}, {8});
  array.dtype = *DType::from_typestr("<M8[ns]");
  EXPECT_EQ(error_class_of(export_array_struct(array).status()), ErrorClass::kBuffer);
  array.dtype = *DType::from_name("bfloat16");
  array.view.itemsize_bytes = 2;
  EXPECT_EQ(error_class_of(export_array_struct(array).status()), ErrorClass::kBuffer);
  array.dtype = *DType::structured(0, "", "");
  array.view.itemsize_bytes = 0;
  EXPECT_EQ(error_class_of(export_array_struct(array).status()), ErrorClass::kBuffer);
}

TEST_F(ArrayStructs, RefusesDeviceMemory) {
  BufferDescriptor device = descriptor({3}, {8});
  device.device = {DeviceType::kCuda, 0};
  EXPECT_EQ(error_class_of(export_array_struct(device).status()), ErrorClass::kNoSuchBuffer);
  device.device = {DeviceType::kCudaHost, 0};
  EXPECT_TRUE(export_array_struct(device).ok());
}

TEST_F(ArrayStructs, As07HoldsTheOwnerUntilDestroyed) {
  auto owner = std::make_shared<int>(1);
  BufferDescriptor array = descriptor({}, {});
  array.owner = owner;
  auto exported = export_array_struct(array);
  ASSERT_TRUE(exported.ok());
  array.owner = {};
  EXPECT_EQ(owner.use_count(), 2);
  destroy(exported->release());
  EXPECT_EQ(owner.use_count(), 1);
}

}  // namespace
}  // namespace gridbuf::array_struct
