#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"

import gridbuf.base;
import gridbuf.interface;
import gridbuf.interface.buffer;
import gridbuf.layout;
import gridbuf.layout.view;

namespace gridbuf {
namespace {

class ReadBuffer : public ::testing::Test {
 protected:
  ForeignBuffer found() {
    ForeignBuffer buffer;
    buffer.buf = data_;
    buffer.len_bytes = 48;
    buffer.itemsize_bytes = 8;
    buffer.ndim = 2;
    buffer.format = "d";
    buffer.shape = shape_;
    buffer.strides_bytes = strides_;
    return buffer;
  }

  static std::string rule_of(const ForeignBuffer& buffer) {
    const auto view = read_buffer(buffer);
    if (view.ok()) return "none";
    EXPECT_EQ(error_class_of(view.status()), ErrorClass::kBuffer);
    return std::string(view.status().message()).substr(0, 5);
  }

  std::int64_t shape_[2] = {3, 2};
  std::int64_t strides_[2] = {32, 8};
  double data_[12] = {};
};

TEST_F(ReadBuffer, ReadsWhatIsRight) {
  const auto view = read_buffer(found());
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(view->memory.view.shape, (Extents{3, 2}));
  EXPECT_EQ(view->memory.view.strides_bytes, (Extents{32, 8}));
  EXPECT_EQ(view->memory.dtype, DType());
}

TEST_F(ReadBuffer, Pb03ChecksTheLength) {
  ForeignBuffer buffer = found();
  buffer.len_bytes = 3;
  EXPECT_EQ(rule_of(buffer), "PB-03");
  shape_[0] = std::int64_t{1} << 62;
  EXPECT_EQ(rule_of(found()), "PB-03");
}

TEST_F(ReadBuffer, Pb04And20CheckTheFormat) {
  ForeignBuffer buffer = found();
  buffer.format = "f";
  EXPECT_EQ(rule_of(buffer), "PB-04");
  for (const char* format : {"", "y", "<", "O", "&d", "dd"}) {
    buffer.format = format;
    EXPECT_EQ(rule_of(buffer), "PB-20") << format;
  }
  buffer.format = "T{i:a:f:b:}";
  EXPECT_EQ(read_buffer(buffer)->memory.dtype.kind(), Kind::kStructured);
}

TEST_F(ReadBuffer, Pb07TakesNoFormatForBytes) {
  ForeignBuffer buffer = found();
  buffer.format = std::nullopt;
  EXPECT_EQ(rule_of(buffer), "PB-07");
  buffer.itemsize_bytes = 1;
  buffer.len_bytes = 6;
  strides_[1] = 1;
  EXPECT_EQ(read_buffer(buffer)->memory.dtype.name(), "uint8");
}

TEST_F(ReadBuffer, Pb08And09AskForAShapeButNotForStrides) {
  ForeignBuffer buffer = found();
  buffer.shape = nullptr;
  EXPECT_EQ(rule_of(buffer), "PB-08");
  buffer = found();
  buffer.strides_bytes = nullptr;
  EXPECT_EQ(read_buffer(buffer)->memory.view.strides_bytes, (Extents{16, 8}));
}

TEST_F(ReadBuffer, Pb15TakesZeroDimensions) {
  ForeignBuffer buffer = found();
  buffer.ndim = 0;
  buffer.len_bytes = 8;
  buffer.shape = buffer.strides_bytes = nullptr;
  EXPECT_EQ(rule_of(buffer), "none");
}

TEST_F(ReadBuffer, Pb16BoundsTheDimensions) {
  ForeignBuffer buffer = found();
  for (const int ndim : {-1, 65, std::numeric_limits<int>::max()}) {
    buffer.ndim = ndim;
    EXPECT_EQ(rule_of(buffer), "PB-16") << ndim;
  }
}

TEST_F(ReadBuffer, Pb17And18BoundExtentsAndHull) {
  shape_[1] = -2;
  EXPECT_EQ(rule_of(found()), "PB-17");
  shape_[1] = 2;
  strides_[0] = std::numeric_limits<std::int64_t>::min();
  EXPECT_EQ(rule_of(found()), "PB-18");
}

TEST_F(ReadBuffer, Pb32RefusesSuboffsets) {
  ForeignBuffer buffer = found();
  const std::int64_t none[2] = {-1, -1};
  buffer.suboffsets = none;
  EXPECT_EQ(rule_of(buffer), "none");
  const std::int64_t some[2] = {0, -1};
  buffer.suboffsets = some;
  EXPECT_EQ(rule_of(buffer), "PB-32");
}

TEST_F(ReadBuffer, Pb32TakesNegativeAndZeroStrides) {
  strides_[0] = 0;
  strides_[1] = -8;
  EXPECT_EQ(read_buffer(found())->memory.view.strides_bytes, (Extents{0, -8}));
}

TEST_F(ReadBuffer, Pb02RefusesANullBufferWithElements) {
  ForeignBuffer buffer = found();
  buffer.buf = nullptr;
  EXPECT_EQ(rule_of(buffer), "PB-02");
  shape_[0] = 0;
  buffer.len_bytes = 0;
  EXPECT_EQ(rule_of(buffer), "none");
  buffer.itemsize_bytes = 0;
  EXPECT_EQ(rule_of(buffer), "PB-02");
}

}  // namespace
}  // namespace gridbuf
