#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"

import gridbuf.alloc;
import gridbuf.base;
import gridbuf.interface;
import gridbuf.interface.numpy;
import gridbuf.layout;

namespace gridbuf {
namespace {

using Names = Found<std::vector<std::string>>;
using Widths = Found<std::vector<HaloWidth>>;

// Four by two doubles.
RawDataInterface entry_of(DeviceType side) {
  RawDataInterface found;
  found.side = side;
  const auto shape = Found<RawExtents>::of({.count = 2, .values = {4, 2}});
  const auto typestr = Found<std::string>::of("<f8");
  const auto data = Found<RawPointer>::of({.address = 4096});
  const auto version = Found<std::int64_t>::of(3);
  found.host.shape = found.gpu.shape = shape;
  found.host.typestr = found.gpu.typestr = typestr;
  found.host.data = found.gpu.data = data;
  found.host.version = found.gpu.version = version;
  return found;
}

std::string rule_of(const RawDataInterface& found) {
  const auto entry = read_data_interface(found);
  return entry.ok() ? "none" : std::string(entry.status().message()).substr(0, 5);
}
ErrorClass class_of(const RawDataInterface& found) {
  return error_class_of(read_data_interface(found).status());
}

TEST(ReadDataInterface, Gt02ReadsAForwardedArrayInterface) {
  const auto host = read_data_interface(entry_of(DeviceType::kHost));
  ASSERT_TRUE(host.ok()) << host.status();
  EXPECT_EQ(host->view.memory.view.strides_bytes, (Extents{16, 8}));
  EXPECT_TRUE(host->meaning.dims.empty());
  EXPECT_TRUE(host->meaning.halo.empty());
  RawDataInterface device = entry_of(DeviceType::kCuda);
  device.gpu.stream = Found<std::int64_t>::of(2);
  const auto gpu = read_data_interface(device);
  ASSERT_TRUE(gpu.ok()) << gpu.status();
  EXPECT_EQ(gpu->view.memory.device, (Device{DeviceType::kCuda, 0}));
  EXPECT_EQ(gpu->view.stream, std::optional<std::uint64_t>(2));
}

TEST(ReadDataInterface, Gt02AsksForNoVersion) {
  for (const DeviceType side : {DeviceType::kHost, DeviceType::kCuda}) {
    RawDataInterface found = entry_of(side);
    found.host.version = found.gpu.version = {};
    EXPECT_EQ(rule_of(found), "none");
    found.host.version = found.gpu.version = Found<std::int64_t>::wrong_kind("'3'");
    EXPECT_EQ(rule_of(found), side == DeviceType::kHost ? "AI-27" : "CAI-0");
  }
}

TEST(ReadDataInterface, Gt02HasTheErrorsOfItsArrayInterface) {
  RawDataInterface found = entry_of(DeviceType::kHost);
  found.host.data = {};
  EXPECT_EQ(rule_of(found), "AI-14");
  found = entry_of(DeviceType::kCuda);
  found.gpu.stream = Found<std::int64_t>::of(0);
  EXPECT_EQ(rule_of(found), "CAI-1");
}

TEST(ReadDataInterface, Gt03AsksForFunctions) {
  RawDataInterface found = entry_of(DeviceType::kHost);
  found.acquire = Found<bool>::none();
  found.touch = Found<bool>::of(true);
  EXPECT_EQ(rule_of(found), "none");
  found.release = Found<bool>::wrong_kind("7");
  EXPECT_EQ(rule_of(found), "GT-03");
  EXPECT_EQ(class_of(found), ErrorClass::kType);
}

TEST(ReadDataInterface, Gt04CountsNames) {
  RawDataInterface found = entry_of(DeviceType::kHost);
  found.dims = Names::of({"lat", "K"});
  const auto entry = read_data_interface(found);
  ASSERT_TRUE(entry.ok());
  EXPECT_EQ(entry->meaning.dims, (std::vector<std::string>{"lat", "K"}));
  found.dims = Names::of({"I"});
  EXPECT_EQ(rule_of(found), "GT-04");
  found.dims = Names::of({"I", "I"});
  EXPECT_EQ(rule_of(found), "GT-04");
  found.dims = Names::wrong_kind("7");
  EXPECT_EQ(class_of(found), ErrorClass::kType);
}

TEST(ReadDataInterface, Gt05ChecksTheHalo) {
  RawDataInterface found = entry_of(DeviceType::kHost);
  found.halo = Widths::of({{1, 2}, {0, 0}});
  const auto entry = read_data_interface(found);
  ASSERT_TRUE(entry.ok());
  EXPECT_EQ(entry->meaning.halo, (Halo{{1, 2}, {0, 0}}));
  found.halo = Widths::of({{3, 2}, {0, 0}});
  EXPECT_EQ(rule_of(found), "GT-05");
  found.halo = Widths::of({{-1, 2}, {0, 0}});
  EXPECT_EQ(rule_of(found), "GT-05");
  found.halo = Widths::of({{0, 0}});
  EXPECT_EQ(rule_of(found), "GT-05");
  found.halo = Widths::wrong_kind("'1'");
  EXPECT_EQ(class_of(found), ErrorClass::kType);
}

}  // namespace
}  // namespace gridbuf
