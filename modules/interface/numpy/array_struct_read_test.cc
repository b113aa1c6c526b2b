#include <cstdint>
#include <limits>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"

import gridbuf.base;
import gridbuf.interface;
import gridbuf.interface.numpy;
import gridbuf.layout;
import gridbuf.layout.view;

namespace gridbuf::array_struct {
namespace {

class ReadArrayStruct : public ::testing::Test {
 protected:
  // Rows of two doubles in memory of four.
  ArrayStruct found() {
    return {.two = 2,
            .nd = 2,
            .typekind = 'f',
            .itemsize = 8,
            .flags = kAligned | kNotSwapped | kWritable,
            .shape = shape_,
            .strides = strides_,
            .data = data_,
            .descr = nullptr};
  }

  std::string rule_of(const ArrayStruct& array, const Found<RawDescr>& descr = {}) {
    const auto view = read_array_struct(array, descr);
    return view.ok() ? "none" : std::string(view.status().message()).substr(0, 5);
  }

  std::intptr_t shape_[2] = {3, 2};
  std::intptr_t strides_[2] = {32, 8};
  double data_[12] = {};
};

TEST_F(ReadArrayStruct, ReadsWhatIsRight) {
  const auto view = read_array_struct(found());
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(view->memory.view.shape, (Extents{3, 2}));
  EXPECT_EQ(view->memory.view.strides_bytes, (Extents{32, 8}));
  EXPECT_EQ(view->memory.dtype, DType());
  EXPECT_FALSE(view->memory.readonly);
}

TEST_F(ReadArrayStruct, As02AsksForTwo) {
  ArrayStruct array = found();
  array.two = 3;
  EXPECT_EQ(rule_of(array), "AS-02");
}

TEST_F(ReadArrayStruct, As03ChecksCountsAndKind) {
  for (const std::int32_t nd : {-1, 65, std::numeric_limits<std::int32_t>::max()}) {
    ArrayStruct array = found();
    array.nd = nd;
    EXPECT_EQ(rule_of(array), "AS-03") << nd;
  }
  ArrayStruct array = found();
  array.itemsize = 0;
  EXPECT_EQ(rule_of(array), "AS-03");
  for (const char kind : {'d', '\0', 'O', 't', '['}) {
    array = found();
    array.typekind = kind;
    EXPECT_EQ(rule_of(array), "AS-03") << kind;
  }
  array = found();
  array.typekind = 'U';
  array.itemsize = 7;
  EXPECT_EQ(rule_of(array), "AS-03");
}

TEST_F(ReadArrayStruct, As04AsksForShapeAndStrides) {
  ArrayStruct array = found();
  array.strides = nullptr;
  EXPECT_EQ(rule_of(array), "AS-04");
  array = found();
  array.shape = nullptr;
  EXPECT_EQ(rule_of(array), "AS-04");
  array.nd = 0;
  array.strides = nullptr;
  EXPECT_EQ(rule_of(array), "none");
  array = found();
  array.data = nullptr;
  EXPECT_EQ(rule_of(array), "AS-04");
  shape_[0] = -1;
  EXPECT_EQ(rule_of(found()), "AS-04");
  shape_[0] = 3;
  strides_[0] = std::numeric_limits<std::intptr_t>::min();
  EXPECT_EQ(rule_of(found()), "AS-04");
}

TEST_F(ReadArrayStruct, As05BelievesOrderAndWritabilityAlone) {
  ArrayStruct array = found();
  array.flags = kCContiguous | kFContiguous | kAligned;  // Wrong, but not used.
  const auto view = read_array_struct(array);
  ASSERT_TRUE(view.ok());
  EXPECT_TRUE(view->memory.readonly);
  EXPECT_FALSE(view->memory.dtype.is_native());
  EXPECT_EQ(view->memory.view.strides_bytes, (Extents{32, 8}));
}

TEST_F(ReadArrayStruct, As06AddsUpFields) {
  ArrayStruct array = found();
  array.typekind = 'V';
  const auto leaf = [](const char* name, const char* typestr) {
    return RawDescrField{
        .name = name, .typestr = Found<std::string>::of(typestr), .fields = {}, .repeat = {}};
  };
  EXPECT_EQ(read_array_struct(array)->memory.dtype.kind(), Kind::kVoid);
  const auto good =
      Found<RawDescr>::of({.fields = {leaf("a", "<i4"), leaf("b", "<f4")}, .literal = ""});
  EXPECT_EQ(read_array_struct(array, good)->memory.dtype.kind(), Kind::kStructured);
  const auto bad = Found<RawDescr>::of({.fields = {leaf("a", "<i4")}, .literal = ""});
  EXPECT_EQ(rule_of(array, bad), "AS-06");
}

}  // namespace
}  // namespace gridbuf::array_struct
