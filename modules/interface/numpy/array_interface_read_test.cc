#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"

import gridbuf.base;
import gridbuf.interface;
import gridbuf.interface.numpy;
import gridbuf.layout;
import gridbuf.layout.view;

namespace gridbuf {
namespace {

using Number = Found<std::int64_t>;

RawExtents raw(const Extents& values) { return {.count = values.size(), .values = values}; }

// Three doubles at 4096.
RawArrayInterface three_doubles() {
  RawArrayInterface found;
  found.shape = Found<RawExtents>::of(raw({3}));
  found.typestr = Found<std::string>::of("<f8");
  found.data = Found<RawPointer>::of({.address = 4096});
  found.version = Number::of(3);
  return found;
}

RawDescrField leaf(std::string name, std::string typestr, std::vector<std::int64_t> repeat = {}) {
  return {.name = std::move(name),
          .typestr = Found<std::string>::of(std::move(typestr)),
          .fields = {},
          .repeat = std::move(repeat)};
}

std::string rule_of(const RawArrayInterface& found) {
  const auto view = read_array_interface(found);
  return view.ok() ? "none" : std::string(view.status().message()).substr(0, 5);
}
ErrorClass class_of(const RawArrayInterface& found) {
  return error_class_of(read_array_interface(found).status());
}

TEST(ReadArrayInterface, ReadsWhatIsRight) {
  const auto view = read_array_interface(three_doubles());
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(view->memory.block, reinterpret_cast<std::byte*>(4096));
  EXPECT_EQ(view->memory.view.shape, (Extents{3}));
  EXPECT_EQ(view->memory.view.strides_bytes, (Extents{8}));
  EXPECT_FALSE(view->memory.readonly);
  EXPECT_TRUE(view->is_aligned);
}

TEST(ReadArrayInterface, Ai02AsksForShapeAndVersion) {
  RawArrayInterface found = three_doubles();
  found.version = {};
  EXPECT_EQ(rule_of(found), "AI-02");
  found = three_doubles();
  found.shape = {};
  EXPECT_EQ(rule_of(found), "AI-02");
}

TEST(ReadArrayInterface, Ai03AsksForATupleOfExtents) {
  RawArrayInterface found = three_doubles();
  found.shape = Found<RawExtents>::wrong_kind("[3]");
  EXPECT_EQ(rule_of(found), "AI-03");
  EXPECT_EQ(class_of(found), ErrorClass::kType);
  found.shape = Found<RawExtents>::of(raw({-3}));
  EXPECT_EQ(rule_of(found), "AI-03");
  EXPECT_EQ(class_of(found), ErrorClass::kValue);
  found.shape = Found<RawExtents>::none();
  EXPECT_EQ(rule_of(found), "AI-03");
}

TEST(ReadArrayInterface, Ai04BoundsTheDimensions) {
  RawArrayInterface found = three_doubles();
  found.shape = Found<RawExtents>::of({.count = 1000, .values = Extents(64, 1)});
  EXPECT_EQ(rule_of(found), "AI-04");
}

TEST(ReadArrayInterface, Ai05BoundsTheBytes) {
  RawArrayInterface found = three_doubles();
  found.shape = Found<RawExtents>::of(raw({std::int64_t{1} << 62, 8}));
  EXPECT_EQ(rule_of(found), "AI-05");
  found.shape = Found<RawExtents>::out_of_range("(18446744073709551616,)");
  EXPECT_EQ(rule_of(found), "AI-05");
}

TEST(ReadArrayInterface, Ai06And07CheckTheTypestr) {
  RawArrayInterface found = three_doubles();
  for (const char* typestr : {"f8", "|i", "<x4", "<f", "", "=f8", "<f-8", "<f8x"}) {
    found.typestr = Found<std::string>::of(typestr);
    EXPECT_EQ(rule_of(found), "AI-06") << typestr;
  }
  for (const char* typestr : {"<i3", "|b4", "|f8", "|S0", "|V0", "<f8[ns]", "|O8"}) {
    found.typestr = Found<std::string>::of(typestr);
    EXPECT_EQ(rule_of(found), "AI-07") << typestr;
  }
  found.typestr = Found<std::string>::wrong_kind("b'<f8'");
  EXPECT_EQ(rule_of(found), "AI-06");
  EXPECT_EQ(class_of(found), ErrorClass::kType);
}

TEST(ReadArrayInterface, Ai10RefusesPackedBits) {
  RawArrayInterface found = three_doubles();
  found.typestr = Found<std::string>::of("|t1");
  EXPECT_EQ(rule_of(found), "AI-10");
}

TEST(ReadArrayInterface, Ai11AddsUpFields) {
  RawArrayInterface found = three_doubles();
  found.typestr = Found<std::string>::of("|V8");
  RawDescr descr{.fields = {leaf("a", "<i4"), leaf("b", "<i2", {2})}, .literal = "[...]"};
  found.descr = Found<RawDescr>::of(descr);
  auto view = read_array_interface(found);
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(view->memory.dtype.kind(), Kind::kStructured);
  EXPECT_EQ(view->memory.dtype.descr(), "[...]");

  RawDescr nested{.fields = {{.name = "r", .typestr = {}, .fields = descr.fields, .repeat = {}}},
                  .literal = "[...]"};
  found.descr = Found<RawDescr>::of(nested);
  EXPECT_EQ(rule_of(found), "none");
  descr.fields.push_back(leaf("c", "|u1"));
  found.descr = Found<RawDescr>::of(descr);
  EXPECT_EQ(rule_of(found), "AI-11");
  found.descr = Found<RawDescr>::of({.fields = {leaf("a", "|u1", {-8})}, .literal = ""});
  EXPECT_EQ(rule_of(found), "AI-11");
  found.descr = Found<RawDescr>::wrong_kind("'<f8'");
  EXPECT_EQ(rule_of(found), "AI-11");
  // The default, written out: raw bytes.
  found.descr = Found<RawDescr>::of({.fields = {leaf("", "|V8")}, .literal = "[('', '|V8')]"});
  EXPECT_EQ(read_array_interface(found)->memory.dtype.kind(), Kind::kVoid);
}

TEST(ReadArrayInterface, Ai11SurvivesDeepNesting) {
  RawArrayInterface found = three_doubles();
  found.typestr = Found<std::string>::of("|V8");
  RawDescrField field = leaf("x", "|V8");
  for (int depth = 0; depth < 40; ++depth) {
    field = {.name = "x", .typestr = {}, .fields = {field}, .repeat = {}};
  }
  found.descr = Found<RawDescr>::of({.fields = {field}, .literal = ""});
  EXPECT_EQ(rule_of(found), "AI-11");
}

TEST(ReadArrayInterface, Ai12And13CheckFieldsThatAreThere) {
  RawArrayInterface found = three_doubles();
  found.descr = Found<RawDescr>::of({.fields = {leaf("", "<f4")}, .literal = ""});
  EXPECT_EQ(rule_of(found), "AI-13");
  found.descr =
      Found<RawDescr>::of({.fields = {leaf("re", "<f4"), leaf("im", "<f4")}, .literal = ""});
  EXPECT_EQ(read_array_interface(found)->memory.dtype, DType());
  found.descr =
      Found<RawDescr>::of({.fields = {leaf("x", "<f4"), leaf("x", "<f4")}, .literal = ""});
  EXPECT_EQ(rule_of(found), "AI-12");
}

TEST(ReadArrayInterface, Ai14AsksForAnAddress) {
  RawArrayInterface found = three_doubles();
  found.data = Found<RawPointer>::wrong_kind("(None, False)");
  EXPECT_EQ(rule_of(found), "AI-14");
  EXPECT_EQ(class_of(found), ErrorClass::kType);
  found.data = {};
  EXPECT_EQ(rule_of(found), "AI-14");
}

TEST(ReadArrayInterface, Ai16StaysInTheBuffer) {
  RawArrayInterface found = three_doubles();
  found.data = {};
  found.exported = RawBuffer{.memory = {.address = 4096, .length_bytes = 24}, .readonly = true};
  auto view = read_array_interface(found);
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_TRUE(view->memory.readonly);
  found.exported->memory.length_bytes = 23;
  EXPECT_EQ(rule_of(found), "AI-16");
  found.exported->memory.length_bytes = 32;
  found.offset_bytes = Number::of(8);
  EXPECT_EQ(read_array_interface(found)->memory.block, reinterpret_cast<std::byte*>(4104));
  found.offset_bytes = Number::of(16);
  EXPECT_EQ(rule_of(found), "AI-16");
  found.offset_bytes = Number::of(33);
  EXPECT_EQ(rule_of(found), "AI-16");
}

TEST(ReadArrayInterface, Ai18AsksForANonNegativeOffset) {
  RawArrayInterface found = three_doubles();
  found.data = {};
  found.exported = RawBuffer{.memory = {.address = 4096, .length_bytes = 4096}};
  found.offset_bytes = Number::of(-64);
  EXPECT_EQ(rule_of(found), "AI-18");
  found.offset_bytes = Number::wrong_kind("'8'");
  EXPECT_EQ(rule_of(found), "AI-18");
  EXPECT_EQ(class_of(found), ErrorClass::kType);
  found.offset_bytes = Number::out_of_range("18446744073709551616");
  EXPECT_EQ(class_of(found), ErrorClass::kValue);
}

TEST(ReadArrayInterface, Ai15IgnoresTheOffsetNextToATuple) {
  RawArrayInterface found = three_doubles();
  found.offset_bytes = Number::of(-64);
  EXPECT_EQ(read_array_interface(found)->memory.block, reinterpret_cast<std::byte*>(4096));
}

TEST(ReadArrayInterface, Ai20RefusesAddressZero) {
  RawArrayInterface found = three_doubles();
  found.data = Found<RawPointer>::of({.address = 0});
  EXPECT_EQ(rule_of(found), "AI-20");
  found.shape = Found<RawExtents>::of(raw({0}));
  EXPECT_EQ(rule_of(found), "none");
}

TEST(ReadArrayInterface, Ai21To23TakeStridesThatFit) {
  RawArrayInterface found = three_doubles();
  found.strides_bytes = Found<RawExtents>::none();
  EXPECT_EQ(rule_of(found), "none");
  found.strides_bytes = Found<RawExtents>::of(raw({8}));
  EXPECT_EQ(rule_of(found), "none");
  found.strides_bytes = Found<RawExtents>::of(raw({-8}));
  EXPECT_EQ(rule_of(found), "none");
  found.strides_bytes = Found<RawExtents>::of(raw({8, 8}));
  EXPECT_EQ(rule_of(found), "AI-21");
  found.strides_bytes = Found<RawExtents>::wrong_kind("[8]");
  EXPECT_EQ(rule_of(found), "AI-21");
  found.strides_bytes = Found<RawExtents>::of(raw({-4096}));
  EXPECT_EQ(rule_of(found), "AI-22");
  found.strides_bytes = Found<RawExtents>::of(raw({std::int64_t{1} << 62}));
  EXPECT_EQ(rule_of(found), "AI-22");
}

TEST(ReadArrayInterface, Ai24TakesZeroDimensions) {
  RawArrayInterface found = three_doubles();
  found.shape = Found<RawExtents>::of(raw({}));
  EXPECT_EQ(rule_of(found), "none");
}

TEST(ReadArrayInterface, Ai25KeepsTheReadOnlyFlag) {
  RawArrayInterface found = three_doubles();
  found.data.value.readonly = true;
  EXPECT_TRUE(read_array_interface(found)->memory.readonly);
}

TEST(ReadArrayInterface, Ai26RefusesMasks) {
  RawArrayInterface found = three_doubles();
  found.has_mask = true;
  EXPECT_EQ(rule_of(found), "AI-26");
  EXPECT_EQ(class_of(found), ErrorClass::kBuffer);
}

TEST(ReadArrayInterface, Ai27AsksForAnIntAndTakesAnyNumber) {
  RawArrayInterface found = three_doubles();
  found.version = Number::of(99);
  EXPECT_EQ(rule_of(found), "none");
  found.version = Number::out_of_range("18446744073709551616");
  EXPECT_EQ(rule_of(found), "none");
  found.version = Number::wrong_kind("'3'");
  EXPECT_EQ(rule_of(found), "AI-27");
}

TEST(ReadArrayInterface, Ai31RecordsOddAddresses) {
  RawArrayInterface found = three_doubles();
  found.data.value.address = 4097;
  EXPECT_FALSE(read_array_interface(found)->is_aligned);
}

TEST(ReadArrayInterface, Ai34KeepsTheByteOrder) {
  RawArrayInterface found = three_doubles();
  found.typestr = Found<std::string>::of(">f4");
  EXPECT_EQ(read_array_interface(found)->memory.dtype.typestr(), ">f4");
}

}  // namespace
}  // namespace gridbuf
