#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "modules/device/testing/device_table.h"

import gridbuf.alloc;
import gridbuf.device;
import gridbuf.device.registry;
import gridbuf.device.testing;

namespace gridbuf {
namespace {

std::uint64_t number(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

struct DeviceTableTest : ::testing::Test {
  bool before = switch_emulated_device(true);
  const gridbuf_device_table& table = **device_table();
  Block block = *(*memory_resource(MemoryKind::kDevice))
                     ->allocate({.total_bytes = 64, .alignment_bytes = 64});
  std::uint64_t address = number(block.data());
  ~DeviceTableTest() override { switch_emulated_device(before); }
};

TEST_F(DeviceTableTest, SaysWhatItIs) {
  EXPECT_EQ(table.version, 1U);
  EXPECT_EQ(table.struct_bytes, sizeof(gridbuf_device_table));
  EXPECT_EQ(sizeof(gridbuf_device_table), 80U);
  EXPECT_EQ(sizeof(gridbuf_pointer_info), 32U);
  EXPECT_EQ(std::string(table.name), "emulated");
  EXPECT_EQ(*device_table(), &table);
}

// Bytes to the device and back, as a program in C would move them.
TEST_F(DeviceTableTest, CopiesThereAndBack) {
  const std::array<unsigned char, 4> sent{1, 2, 3, 4};
  std::array<unsigned char, 4> received{};
  EXPECT_EQ(table.copy(address, number(sent.data()), 4, 1), 0) << table.error_text();
  EXPECT_EQ(table.copy(number(received.data()), address, 4, 1), 0) << table.error_text();
  EXPECT_EQ(received, sent);
}

TEST_F(DeviceTableTest, AStreamThatIsNotWaitedForIsLate) {
  std::uint64_t stream = 0;
  ASSERT_EQ(table.stream_create(&stream), 0);
  ASSERT_EQ(table.slow_fill(address, 1, 64, 0, 1), 0);
  ASSERT_EQ(table.synchronize(1), 0) << table.error_text();
  ASSERT_EQ(table.slow_fill(address, 7, 64, 1, stream), 0);
  std::int32_t idle = 1;
  ASSERT_EQ(table.stream_query(stream, &idle), 0);
  EXPECT_EQ(idle, 0);
  unsigned char seen = 0;
  ASSERT_EQ(table.copy(number(&seen), address, 1, 1), 0);
  EXPECT_EQ(seen, 1);  // the fill is on another stream
  ASSERT_EQ(table.synchronize(stream), 0);
  ASSERT_EQ(table.copy(number(&seen), address, 1, 1), 0);
  EXPECT_EQ(seen, 7);
  ASSERT_EQ(table.stream_query(stream, &idle), 0);
  EXPECT_EQ(idle, 1);
  EXPECT_EQ(table.stream_destroy(stream), 0);
  EXPECT_NE(table.stream_query(stream, &idle), 0);
  EXPECT_EQ(table.synchronize(0), 0);
}

TEST_F(DeviceTableTest, KnowsPointers) {
  gridbuf_pointer_info info{};
  ASSERT_EQ(table.pointer_info(address + 3, &info), 0);
  EXPECT_EQ(info.device_type, 2);
  EXPECT_EQ(info.device_id, 0);
  EXPECT_LE(info.base, address);
  EXPECT_GE(info.base + info.length_bytes, address + 64);
  EXPECT_EQ(info.host_accessible, 0);
  EXPECT_EQ(info.device_accessible, 1);
  ASSERT_EQ(table.pointer_info(number(&info), &info), 0);
  EXPECT_EQ(info.device_type, 1);
  EXPECT_EQ(info.base, 0U);
  EXPECT_EQ(info.device_accessible, 0);
}

TEST_F(DeviceTableTest, ErrorsAreTextsOfTheirThread) {
  EXPECT_NE(table.copy(address, address, ~std::uint64_t{0}, 1), 0);
  EXPECT_NE(std::string(table.error_text()).find("within its allocation"), std::string::npos)
      << table.error_text();
  EXPECT_NE(table.copy(address, address, 1, 0), 0);
  EXPECT_NE(table.slow_fill(number(&table), 0, 1, 0, 1), 0);
  EXPECT_NE(table.synchronize(12345), 0);
  EXPECT_NE(table.stream_destroy(1), 0);
  std::thread([this] { EXPECT_EQ(std::string(table.error_text()), ""); }).join();
}

}  // namespace
}  // namespace gridbuf
