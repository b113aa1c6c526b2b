#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"

import gridbuf.alloc;
import gridbuf.base;
import gridbuf.interface;
import gridbuf.interface.buffer;
import gridbuf.layout;
import gridbuf.layout.view;

namespace gridbuf {
namespace {

alignas(8) std::byte bytes[4096] = {};

BufferDescriptor descriptor(const Extents& shape, const Extents& strides_bytes,
                            std::int64_t offset_bytes = 0) {
  return {.block = bytes,
          .view = {.shape = shape,
                   .strides_bytes = strides_bytes,
                   .offset_bytes = offset_bytes,
                   .itemsize_bytes = 8},
          .dtype = DType(),
          .readonly = false,
          .device = {},
          .owner = {}};
}

// The named requests of CPython, with whether they ask for C, F or any contiguity.
const std::vector<int> kRequests{pybuf::kSimple,
                                 pybuf::kWritable,
                                 pybuf::kNd,
                                 pybuf::kStrides,
                                 pybuf::kCContiguous,
                                 pybuf::kFContiguous,
                                 pybuf::kAnyContiguous,
                                 pybuf::kIndirect,
                                 pybuf::kNd | pybuf::kWritable,
                                 pybuf::kNd,
                                 pybuf::kStrided,
                                 pybuf::kStridedRo,
                                 pybuf::kRecords,
                                 pybuf::kRecordsRo,
                                 pybuf::kFull,
                                 pybuf::kFullRo,
                                 pybuf::kNd | pybuf::kFormat,
                                 pybuf::kCContiguous | pybuf::kFormat,
                                 pybuf::kFContiguous | pybuf::kFormat | pybuf::kWritable};

TEST(BufferFlags, HaveCPythonsValues) {
  EXPECT_EQ(pybuf::kStrides, 0x18);
  EXPECT_EQ(pybuf::kCContiguous, 0x38);
  EXPECT_EQ(pybuf::kFContiguous, 0x58);
  EXPECT_EQ(pybuf::kAnyContiguous, 0x98);
  EXPECT_EQ(pybuf::kIndirect, 0x118);
  EXPECT_EQ(pybuf::kStrided, 0x19);
  EXPECT_EQ(pybuf::kRecords, 0x1D);
  EXPECT_EQ(pybuf::kRecordsRo, 0x1C);
  EXPECT_EQ(pybuf::kFull, 0x11D);
  EXPECT_EQ(pybuf::kFullRo, 0x11C);
}

TEST(BufferRequest, FillsWhatIsAlwaysFilled) {
  const BufferDescriptor array = descriptor({3, 2}, {32, 8}, 16);
  for (const int flags : kRequests) {
    const auto fields = answer_buffer_request(array, flags);
    if (!fields.ok()) continue;
    EXPECT_EQ(fields->buf, bytes + 16) << flags;
    EXPECT_EQ(fields->len_bytes, 48) << flags;
    EXPECT_EQ(fields->itemsize_bytes, 8) << flags;
    EXPECT_EQ(fields->ndim, 2) << flags;
    EXPECT_FALSE(fields->readonly) << flags;
  }
}

TEST(BufferRequest, GivesExactlyWhatWasAsked) {
  const BufferDescriptor array = descriptor({3, 2}, {16, 8});
  for (const int flags : kRequests) {
    if ((flags & 0xC0) == 0x40) continue;  // not F-contiguous
    const auto fields = answer_buffer_request(array, flags);
    ASSERT_TRUE(fields.ok()) << flags << fields.status();
    EXPECT_EQ(fields->shape != nullptr, (flags & 0x8) != 0) << flags;
    EXPECT_EQ(fields->strides_bytes != nullptr, (flags & 0x10) != 0) << flags;
    EXPECT_EQ(fields->format != nullptr, (flags & 0x4) != 0) << flags;
  }
  const auto full = answer_buffer_request(array, pybuf::kFullRo);
  EXPECT_EQ(full->shape, array.view.shape.data());
  EXPECT_EQ(full->strides_bytes, array.view.strides_bytes.data());
  EXPECT_STREQ(full->format, "d");
}

TEST(BufferRequest, ShowsOneDimensionOfBytesWithoutShape) {
  const auto fields = answer_buffer_request(descriptor({3, 2}, {16, 8}), pybuf::kSimple);
  ASSERT_TRUE(fields.ok());
  EXPECT_EQ(fields->ndim, 1);
  EXPECT_EQ(fields->len_bytes, 48);
  EXPECT_EQ(fields->itemsize_bytes, 8);
}

// [example]
// The work of a getbufferproc: answer and copy the fields, or raise BufferError.
std::string answer_text(const BufferDescriptor& array, int flags) {
  const absl::StatusOr<BufferFields> fields = answer_buffer_request(array, flags);
  if (!fields.ok()) return "BufferError: " + std::string(fields.status().message());
  return std::to_string(fields->len_bytes) + " bytes in " + std::to_string(fields->ndim) +
         " dimensions of " + (fields->format == nullptr ? "bytes" : fields->format);
}
// [/example]

TEST(Example, OfTheReadme) {
  const BufferDescriptor array = descriptor({3, 2}, {32, 8});
  EXPECT_EQ(answer_text(array, pybuf::kFullRo), "48 bytes in 2 dimensions of d");
  EXPECT_EQ(answer_text(array, pybuf::kSimple).substr(0, 12), "BufferError:");
}

TEST(BufferRequest, GivesNoPointersForZeroDimensions) {
  for (const int flags : kRequests) {
    const BufferDescriptor scalar = descriptor({}, {});
    const auto fields = answer_buffer_request(scalar, flags);
    ASSERT_TRUE(fields.ok()) << flags;
    EXPECT_EQ(fields->ndim, 0);
    EXPECT_EQ(fields->len_bytes, 8);
    EXPECT_EQ(fields->shape, nullptr);
    EXPECT_EQ(fields->strides_bytes, nullptr);
  }
}

TEST(BufferRequest, TakesEmptyArraysForContiguous) {
  for (const int flags : kRequests) {
    const auto fields = answer_buffer_request(descriptor({3, 0}, {-7, 99}), flags);
    ASSERT_TRUE(fields.ok()) << flags;
    EXPECT_EQ(fields->len_bytes, 0);
  }
}

// Whether the request can be met, by the words of the documents.
bool can_be_met(const StridedView& view, bool readonly, int flags) {
  if ((flags & pybuf::kWritable) != 0 && readonly) return false;
  const bool c = is_c_contiguous(view);
  const bool f = is_f_contiguous(view);
  if ((flags & 0x10) == 0 && !c) return false;
  if ((flags & 0x20) != 0 && !c) return false;
  if ((flags & 0x40) != 0 && !f) return false;
  return (flags & 0x80) == 0 || c || f;
}

TEST(BufferRequestProperty, MeetsARequestExactlyWhenItCan) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 5000; ++round) {
    Extents shape;
    Extents strides;
    const int ndim = static_cast<int>(random() % 4);
    for (int axis = 0; axis < ndim; ++axis) {
      shape.push_back(static_cast<std::int64_t>(random() % 3));
      strides.push_back((static_cast<std::int64_t>(random() % 5) - 1) * 8);
    }
    BufferDescriptor array = descriptor(shape, strides, 1024);
    array.readonly = random() % 2 == 0;
    for (const int flags : kRequests) {
      const auto fields = answer_buffer_request(array, flags);
      ASSERT_EQ(fields.ok(), can_be_met(array.view, array.readonly, flags))
          << to_string(array.view) << " flags " << flags;
      if (!fields.ok()) {
        ASSERT_EQ(error_class_of(fields.status()), ErrorClass::kBuffer);
        continue;
      }
      ASSERT_EQ(fields->readonly, array.readonly);
    }
  }
}

TEST(BufferRequest, SaysWhatWasAskedAndWhatTheMemoryIs) {
  BufferDescriptor array = descriptor({3, 2}, {8, 24});
  EXPECT_EQ(answer_buffer_request(array, pybuf::kCContiguous).status().message(),
            "the memory behind buffer request 0x38 is not C-contiguous, but must be C-contiguous; "
            "ask for strides, or copy the array");
  array.readonly = true;
  EXPECT_NE(answer_buffer_request(array, pybuf::kFull).status().message().find("read-only"),
            std::string::npos);
}

TEST(BufferRequest, RefusesFlagsThatAreNoRequest) {
  const BufferDescriptor array = descriptor({3}, {8});
  // READ and WRITE, parts of named requests, unknown bits, FORMAT alone.
  for (const int flags : {0x100, 0x200, 0x10, 0x20, 0x40, 0x80, 0x30, 0x108, 0x400, -1, 0x4, 0x5}) {
    const auto fields = answer_buffer_request(array, flags);
    ASSERT_FALSE(fields.ok()) << flags;
    EXPECT_EQ(error_class_of(fields.status()), ErrorClass::kBuffer) << flags;
  }
}

TEST(BufferRequest, RefusesAFormatThatDoesNotExist) {
  BufferDescriptor dates = descriptor({3}, {8});
  dates.dtype = *DType::from_typestr("<M8[ns]");
  const auto fields = answer_buffer_request(dates, pybuf::kFullRo);
  EXPECT_EQ(error_class_of(fields.status()), ErrorClass::kBuffer);
  EXPECT_NE(fields.status().message().find("datetime64[ns]"), std::string::npos);
  EXPECT_TRUE(answer_buffer_request(dates, pybuf::kStridedRo).ok());
}

TEST(BufferRequest, RefusesDeviceMemory) {
  BufferDescriptor device = descriptor({3}, {8});
  device.device = {DeviceType::kCuda, 0};
  EXPECT_EQ(error_class_of(answer_buffer_request(device, pybuf::kFullRo).status()),
            ErrorClass::kNoSuchBuffer);
}

}  // namespace
}  // namespace gridbuf
