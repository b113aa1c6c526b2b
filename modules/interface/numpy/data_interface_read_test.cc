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

// Of an array of four by two elements.
absl::StatusOr<EntryMeaning> read(const RawDataInterface& found) {
  if (absl::Status status = check_hooks(found); !status.ok()) return status;
  return read_meaning(found, {4, 2});
}
std::string rule_of(const RawDataInterface& found) {
  const auto entry = read(found);
  return entry.ok() ? "none" : std::string(entry.status().message()).substr(0, 5);
}
ErrorClass class_of(const RawDataInterface& found) { return error_class_of(read(found).status()); }

TEST(ReadDataInterface, Gt03AsksForFunctions) {
  RawDataInterface found;
  found.acquire = Found<bool>::none();
  found.touch = Found<bool>::of(true);
  EXPECT_EQ(rule_of(found), "none");
  found.release = Found<bool>::wrong_kind("7");
  EXPECT_EQ(rule_of(found), "GT-03");
  EXPECT_EQ(class_of(found), ErrorClass::kType);
}

TEST(ReadDataInterface, Gt04CountsNames) {
  RawDataInterface found;
  found.dims = Names::of({"lat", "K"});
  const auto entry = read(found);
  ASSERT_TRUE(entry.ok());
  EXPECT_EQ(entry->dims, (std::vector<std::string>{"lat", "K"}));
  found.dims = Names::of({"I"});
  EXPECT_EQ(rule_of(found), "GT-04");
  found.dims = Names::of({"I", "I"});
  EXPECT_EQ(rule_of(found), "GT-04");
  found.dims = Names::wrong_kind("7");
  EXPECT_EQ(class_of(found), ErrorClass::kType);
}

TEST(ReadDataInterface, Gt05ChecksTheHalo) {
  RawDataInterface found;
  found.halo = Widths::of({{1, 2}, {0, 0}});
  const auto entry = read(found);
  ASSERT_TRUE(entry.ok());
  EXPECT_EQ(entry->halo, (Halo{{1, 2}, {0, 0}}));
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
