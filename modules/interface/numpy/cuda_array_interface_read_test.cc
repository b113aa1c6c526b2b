#include <cstdint>
#include <optional>
#include <string>

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

using Number = Found<std::int64_t>;

RawExtents raw(const Extents& values) { return {.count = values.size(), .values = values}; }

RawCudaArrayInterface three_doubles() {
  RawCudaArrayInterface found;
  found.shape = Found<RawExtents>::of(raw({3}));
  found.typestr = Found<std::string>::of("<f8");
  found.data = Found<RawPointer>::of({.address = 4096});
  found.version = Number::of(3);
  found.stream = Number::of(7);
  return found;
}

std::string rule_of(const RawCudaArrayInterface& found,
                    const std::optional<PointerInfo>& info = std::nullopt) {
  const auto view = read_cuda_array_interface(found, info);
  return view.ok() ? "none" : std::string(view.status().message()).substr(0, 6);
}
ErrorClass class_of(const RawCudaArrayInterface& found) {
  return error_class_of(read_cuda_array_interface(found).status());
}

TEST(ReadCudaArrayInterface, ReadsWhatIsRight) {
  const auto view = read_cuda_array_interface(three_doubles());
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(view->memory.block, reinterpret_cast<std::byte*>(4096));
  EXPECT_EQ(view->memory.device, (Device{DeviceType::kCuda, 0}));
  EXPECT_EQ(view->stream, std::optional<std::uint64_t>(7));
}

TEST(ReadCudaArrayInterface, Cai02AsksForItsKeys) {
  RawCudaArrayInterface found = three_doubles();
  found.version = {};
  EXPECT_EQ(rule_of(found), "CAI-02");
  found = three_doubles();
  found.shape = {};
  EXPECT_EQ(rule_of(found), "CAI-02");
  found = three_doubles();
  found.data = {};
  EXPECT_EQ(rule_of(found), "CAI-02");
}

TEST(ReadCudaArrayInterface, Cai03AsksForATupleOfExtents) {
  RawCudaArrayInterface found = three_doubles();
  found.shape = Found<RawExtents>::wrong_kind("[3]");
  EXPECT_EQ(rule_of(found), "CAI-03");
  EXPECT_EQ(class_of(found), ErrorClass::kType);
  found.shape = Found<RawExtents>::of(raw({-1}));
  EXPECT_EQ(rule_of(found), "CAI-03");
  found.shape = Found<RawExtents>::of(raw({std::int64_t{1} << 62, 8}));
  EXPECT_EQ(rule_of(found), "CAI-03");
  found.shape = Found<RawExtents>::of({.count = 65, .values = Extents(64, 1)});
  EXPECT_EQ(rule_of(found), "CAI-03");
}

TEST(ReadCudaArrayInterface, Cai04ChecksTheTypestr) {
  RawCudaArrayInterface found = three_doubles();
  for (const char* typestr : {"|i", "bfloat16", "<f3", "|t8"}) {
    found.typestr = Found<std::string>::of(typestr);
    EXPECT_EQ(rule_of(found), "CAI-04") << typestr;
  }
}

TEST(ReadCudaArrayInterface, Cai05NeverTakesNone) {
  RawCudaArrayInterface found = three_doubles();
  found.data = Found<RawPointer>::wrong_kind("(None, False)");
  EXPECT_EQ(rule_of(found), "CAI-05");
  EXPECT_EQ(class_of(found), ErrorClass::kType);
}

TEST(ReadCudaArrayInterface, Cai06And07TakeAddressZeroOnlyWithoutElements) {
  RawCudaArrayInterface found = three_doubles();
  found.data.value.address = 0;
  EXPECT_EQ(rule_of(found), "CAI-07");
  found.shape = Found<RawExtents>::of(raw({0}));
  EXPECT_EQ(rule_of(found), "none");
}

TEST(ReadCudaArrayInterface, Cai07RefusesMemoryThatDevicesDoNotReach) {
  const PointerInfo host;
  EXPECT_EQ(rule_of(three_doubles(), host), "CAI-07");
  RawCudaArrayInterface empty = three_doubles();
  empty.shape = Found<RawExtents>::of(raw({0}));
  EXPECT_EQ(rule_of(empty, host), "none");
}

TEST(ReadCudaArrayInterface, Cai08KeepsTheReadOnlyFlag) {
  RawCudaArrayInterface found = three_doubles();
  found.data.value.readonly = true;
  EXPECT_TRUE(read_cuda_array_interface(found)->memory.readonly);
}

TEST(ReadCudaArrayInterface, Cai09KnowsVersions0To3) {
  RawCudaArrayInterface found = three_doubles();
  for (const std::int64_t version : {0, 1, 2, 3}) {
    found.version = Number::of(version);
    EXPECT_EQ(rule_of(found), "none") << version;
  }
  for (const std::int64_t version : {-1, 4}) {
    found.version = Number::of(version);
    EXPECT_EQ(rule_of(found), "CAI-09") << version;
  }
  found.version = Number::wrong_kind("'3'");
  EXPECT_EQ(rule_of(found), "CAI-09");
}

TEST(ReadCudaArrayInterface, Cai10And11TakeThreeSpellingsOfStrides) {
  RawCudaArrayInterface found = three_doubles();
  EXPECT_EQ(rule_of(found), "none");
  found.strides_bytes = Found<RawExtents>::none();
  EXPECT_EQ(rule_of(found), "none");
  found.strides_bytes = Found<RawExtents>::of(raw({8}));
  EXPECT_EQ(rule_of(found), "none");
  found.strides_bytes = Found<RawExtents>::wrong_kind("[8]");
  EXPECT_EQ(rule_of(found), "CAI-11");
  found.strides_bytes = Found<RawExtents>::of(raw({8, 8}));
  EXPECT_EQ(rule_of(found), "CAI-11");
}

TEST(ReadCudaArrayInterface, Cai12StaysInTheAllocation) {
  PointerInfo info{.device = {DeviceType::kCuda, 1},
                   .base = 4000,
                   .length_bytes = 120,
                   .device_accessible = true};
  EXPECT_EQ(rule_of(three_doubles(), info), "none");
  EXPECT_EQ(read_cuda_array_interface(three_doubles(), info)->memory.device, info.device);
  info.length_bytes = 119;
  EXPECT_EQ(rule_of(three_doubles(), info), "CAI-12");
  RawCudaArrayInterface found = three_doubles();
  found.strides_bytes = Found<RawExtents>::of(raw({std::int64_t{1} << 62}));
  EXPECT_EQ(rule_of(found), "CAI-12");
}

TEST(ReadCudaArrayInterface, Cai14AddsUpFields) {
  RawCudaArrayInterface found = three_doubles();
  found.descr = Found<RawDescr>::of(
      {.fields =
           {{.name = "", .typestr = Found<std::string>::of("<f4"), .fields = {}, .repeat = {}}},
       .literal = ""});
  EXPECT_EQ(rule_of(found), "CAI-14");
}

TEST(ReadCudaArrayInterface, Cai15RefusesMasks) {
  RawCudaArrayInterface found = three_doubles();
  found.has_mask = true;
  EXPECT_EQ(rule_of(found), "CAI-15");
  EXPECT_EQ(class_of(found), ErrorClass::kBuffer);
}

TEST(ReadCudaArrayInterface, Cai16And17CheckTheStream) {
  RawCudaArrayInterface found = three_doubles();
  found.stream = Number::of(0);
  EXPECT_EQ(rule_of(found), "CAI-16");
  found.stream = Number::wrong_kind("True");
  EXPECT_EQ(rule_of(found), "CAI-16");
  EXPECT_EQ(class_of(found), ErrorClass::kType);
  found.stream = Number::of(-1);
  EXPECT_EQ(rule_of(found), "CAI-17");
  found.stream = Number::none();
  EXPECT_EQ(read_cuda_array_interface(found)->stream, std::nullopt);
  found.stream = {};
  EXPECT_EQ(read_cuda_array_interface(found)->stream, std::nullopt);
}

TEST(ReadCudaArrayInterface, Cai26KeepsTheByteOrder) {
  RawCudaArrayInterface found = three_doubles();
  found.typestr = Found<std::string>::of(">f4");
  EXPECT_EQ(read_cuda_array_interface(found)->memory.dtype.typestr(), ">f4");
}

TEST(ReadCudaArrayInterface, Cai29TakesZeroDimensions) {
  RawCudaArrayInterface found = three_doubles();
  found.shape = Found<RawExtents>::of(raw({}));
  EXPECT_EQ(rule_of(found), "none");
  found.strides_bytes = Found<RawExtents>::of(raw({}));
  EXPECT_EQ(rule_of(found), "none");
  found.shape = Found<RawExtents>::none();
  EXPECT_EQ(rule_of(found), "CAI-03");
}

}  // namespace
}  // namespace gridbuf
