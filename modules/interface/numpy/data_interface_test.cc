#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
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

class DataInterface : public ::testing::Test {
 protected:
  BufferDescriptor descriptor(DeviceType type) {
    return {.block = bytes_,
            .view = {.shape = {3, 2},
                     .strides_bytes = {16, 8},
                     .offset_bytes = 16,
                     .itemsize_bytes = 8},
            .dtype = DType(),
            .readonly = false,
            .device = {type, 0},
            .owner = {}};
  }

  alignas(8) std::byte bytes_[256] = {};
  const Dims dims_{kDimK, kDimI};
};

TEST_F(DataInterface, Gt02To05DescribesTheHostSide) {
  const Halo halo{{1, 1}, {0, 1}};
  const auto entry = data_interface(descriptor(DeviceType::kHost), Side::kHost, dims_, halo, 1);
  ASSERT_TRUE(entry.ok());
  EXPECT_EQ(entry->shape, (Extents{3, 2}));
  EXPECT_EQ(entry->strides_bytes, (Extents{16, 8}));  // Written out, though contiguous.
  EXPECT_EQ(entry->typestr, "<f8");
  EXPECT_EQ(entry->data_address, reinterpret_cast<std::uintptr_t>(bytes_ + 16));
  EXPECT_EQ(entry->stream, std::nullopt);
  EXPECT_EQ(entry->version, 3);
  EXPECT_EQ(entry->dims, dims_);
  EXPECT_EQ(entry->halo, halo);
}

TEST_F(DataInterface, Gt02DescribesTheDeviceSideWithItsStream) {
  const auto entry = data_interface(descriptor(DeviceType::kCuda), Side::kDevice, dims_, {}, 2);
  ASSERT_TRUE(entry.ok());
  EXPECT_EQ(entry->stream, std::optional<std::uint64_t>(2));
  EXPECT_EQ(entry->halo, no_halo(2));
}

// [example]
// Whether the array has an entry for consumers on the GPU.
bool is_on_gpu(const BufferDescriptor& array) { return has_side(array, Side::kDevice); }
// [/example]

TEST_F(DataInterface, ExampleOfTheReadme) {
  EXPECT_TRUE(is_on_gpu(descriptor(DeviceType::kCudaManaged)));
  EXPECT_FALSE(is_on_gpu(descriptor(DeviceType::kHost)));
}

TEST_F(DataInterface, Gt01HasASideOnlyWhereItIsReached) {
  const auto host = descriptor(DeviceType::kHost);
  EXPECT_TRUE(has_side(host, Side::kHost));
  EXPECT_EQ(error_class_of(data_interface(host, Side::kDevice, dims_, {}, 1).status()),
            ErrorClass::kNoSuchBuffer);
  const auto device = descriptor(DeviceType::kCuda);
  EXPECT_FALSE(has_side(device, Side::kHost));
  EXPECT_EQ(error_class_of(data_interface(device, Side::kHost, dims_, {}, 1).status()),
            ErrorClass::kNoSuchBuffer);
  const auto managed = descriptor(DeviceType::kCudaManaged);
  EXPECT_TRUE(data_interface(managed, Side::kHost, dims_, {}, 1).ok());
  EXPECT_TRUE(data_interface(managed, Side::kDevice, dims_, {}, 1).ok());
}

TEST_F(DataInterface, Gt04And05RefuseWhatDoesNotFit) {
  const auto host = descriptor(DeviceType::kHost);
  EXPECT_EQ(error_class_of(data_interface(host, Side::kHost, {kDimI}, {}, 1).status()),
            ErrorClass::kValue);
  const Halo wide{{2, 2}, {0, 0}};
  EXPECT_EQ(error_class_of(data_interface(host, Side::kHost, dims_, wide, 1).status()),
            ErrorClass::kValue);
}

}  // namespace
}  // namespace gridbuf
