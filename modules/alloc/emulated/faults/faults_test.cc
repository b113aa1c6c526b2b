#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"

import gridbuf.alloc.emulated.faults;
import gridbuf.error;

namespace gridbuf::emulated {
namespace {

const absl::Status kFailure = make_error(ErrorClass::kInternal, "injected");

// [example]
TEST(Faults, StrikeTheCallsThatWereAskedFor) {
  Faults faults;
  faults.inject(
      {.operation = Operation::kCopy, .first_call = 2, .call_count = 2, .error = kFailure});
  EXPECT_TRUE(faults.judge(Operation::kCopy).at_call.ok());
  EXPECT_TRUE(faults.judge(Operation::kFill).at_call.ok());  // another operation
  EXPECT_EQ(faults.judge(Operation::kCopy).at_call, kFailure);
  EXPECT_EQ(faults.judge(Operation::kCopy).at_call, kFailure);
  EXPECT_TRUE(faults.judge(Operation::kCopy).at_call.ok());
}
// [/example]

TEST(Faults, CountFromNow) {
  Faults faults;
  faults.judge(Operation::kCopy);
  faults.inject({.first_call = 1, .error = kFailure});
  EXPECT_EQ(faults.judge(Operation::kOrder).at_call, kFailure);
  EXPECT_TRUE(faults.judge(Operation::kOrder).at_call.ok());
  EXPECT_EQ(faults.calls(Operation::kOrder), 2);
  EXPECT_EQ(faults.calls(std::nullopt), 3);
}

TEST(Faults, CanWaitForTheWork) {
  Faults faults;
  faults.inject({.operation = Operation::kFill, .error = kFailure, .when_run = true});
  const Verdict verdict = faults.judge(Operation::kFill);
  EXPECT_TRUE(verdict.at_call.ok());
  EXPECT_EQ(verdict.when_run, kFailure);
}

TEST(Faults, DelayAndClear) {
  Faults faults;
  faults.set_delay(std::nullopt, 3);
  faults.set_delay(Operation::kCopy, 5);
  faults.inject({.error = kFailure});
  EXPECT_EQ(faults.judge(Operation::kCopy).delay_milliseconds, 5);
  EXPECT_EQ(faults.judge(Operation::kFill).delay_milliseconds, 3);
  faults.clear();
  EXPECT_EQ(faults.judge(Operation::kFill).delay_milliseconds, 0);
  EXPECT_TRUE(faults.judge(Operation::kCopy).at_call.ok());
}

TEST(Faults, KnowTheirOperationsByName) {
  for (const auto name : kOperationNames) EXPECT_TRUE(operation(name).ok());
  EXPECT_EQ(*operation("pointer_info"), Operation::kPointerInfo);
  const absl::Status status = operation("memcpy").status();
  EXPECT_EQ(error_class_of(status), ErrorClass::kValue);
  EXPECT_NE(status.message().find("'memcpy'"), std::string::npos) << status;
}

}  // namespace
}  // namespace gridbuf::emulated
