#include <cstdint>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "gtest/gtest.h"

import gridbuf.base;

namespace gridbuf {
namespace {

TEST(ErrorTable, RowsAreInTheOrderOfTheEnumeration) {
  for (std::size_t i = 0; i < kErrorTable.size(); ++i) {
    EXPECT_EQ(static_cast<std::size_t>(kErrorTable[i].error_class), i);
  }
  static_assert(error_row(ErrorClass::kInternal).python_name == "RuntimeError");
}

TEST(ErrorTable, NamesEveryErrorOfTheSpecification) {
  std::set<std::string> names;
  for (const ErrorRow& row : kErrorTable) names.emplace(row.python_name);
  const std::set<std::string> expected{
      "ValueError",        "TypeError",           "MemoryError",
      "BufferError",       "GTNoSuchBufferError", "DeviceUnavailableError",
      "SyncConflictError", "RuntimeError",        "IndexError"};
  EXPECT_EQ(names, expected);
}

TEST(ErrorTable, SubclassesNameTheirBase) {
  EXPECT_EQ(error_row(ErrorClass::kNoSuchBuffer).python_base, "BufferError");
  EXPECT_EQ(error_row(ErrorClass::kDeviceUnavailable).python_base, "RuntimeError");
  EXPECT_EQ(error_row(ErrorClass::kSyncConflict).python_base, "RuntimeError");
}

TEST(ErrorClassOf, RoundTripsEveryClass) {
  for (const ErrorRow& row : kErrorTable) {
    const absl::Status status = make_error(row.error_class, "text");
    EXPECT_EQ(status.code(), row.code);
    EXPECT_EQ(error_class_of(status), row.error_class) << row.python_name;
  }
}

TEST(ErrorClassOf, IsNotPrintedWithTheStatus) {
  EXPECT_EQ(make_error(ErrorClass::kType, "is a str").ToString(), "UNIMPLEMENTED: is a str");
}

TEST(ErrorClassOf, FallsBackToTheCodeOfAForeignStatus) {
  EXPECT_EQ(error_class_of(absl::InvalidArgumentError("x")), ErrorClass::kValue);
  EXPECT_EQ(error_class_of(absl::OutOfRangeError("x")), ErrorClass::kIndex);
  EXPECT_EQ(error_class_of(absl::ResourceExhaustedError("x")), ErrorClass::kMemory);
  EXPECT_EQ(error_class_of(absl::FailedPreconditionError("x")), ErrorClass::kBuffer);
  EXPECT_EQ(error_class_of(absl::UnavailableError("x")), ErrorClass::kDeviceUnavailable);
  EXPECT_EQ(error_class_of(absl::DataLossError("x")), ErrorClass::kInternal);
}

TEST(WithContext, KeepsClassAndCodeAndPrependsTheContext) {
  const absl::Status inner = make_error(ErrorClass::kType, "is a str");
  const absl::Status outer = with_context(inner, "shape");
  EXPECT_EQ(outer.message(), "shape: is a str");
  EXPECT_EQ(outer.code(), inner.code());
  EXPECT_EQ(error_class_of(outer), ErrorClass::kType);
}

TEST(WithContext, LeavesSuccessAlone) { EXPECT_TRUE(with_context(absl::OkStatus(), "shape").ok()); }

TEST(ProblemText, SaysValueBoundAndAdvice) {
  const Problem problem{"alignment_bytes", "0", "an integer from 1 to 1048576",
                        "pass 1 for no constraint"};
  const std::string expected =
      "alignment_bytes is 0, but must be an integer from 1 to 1048576; pass 1 for no constraint";
  EXPECT_EQ(problem_text(problem), expected);
  EXPECT_EQ(make_error(ErrorClass::kValue, problem).message(), expected);
}

// [example]
absl::Status check_extent(std::int64_t extent) {
  if (extent >= 0) return absl::OkStatus();
  return make_error(ErrorClass::kValue, {"extent", std::to_string(extent), "0 or more",
                                         "check how the shape was computed"});
}
// [/example]

TEST(ErrorExample, OfTheReadme) {
  EXPECT_TRUE(check_extent(0).ok());
  EXPECT_EQ(check_extent(-2).message(),
            "extent is -2, but must be 0 or more; check how the shape was computed");
  EXPECT_EQ(error_row(error_class_of(check_extent(-2))).python_name, "ValueError");
}

TEST(BytesText, ShowsTheExactNumberAndAReadableOne) {
  EXPECT_EQ(bytes_text(0), "0 bytes");
  EXPECT_EQ(bytes_text(1023), "1023 bytes");
  EXPECT_EQ(bytes_text(1024), "1.0 KiB (1024 bytes)");
  EXPECT_EQ(bytes_text(1610612736), "1.5 GiB (1610612736 bytes)");
  EXPECT_EQ(bytes_text(9223372036854775807), "8.0 EiB (9223372036854775807 bytes)");
}

}  // namespace
}  // namespace gridbuf
