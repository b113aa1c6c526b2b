#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"

import gridbuf.base;
import gridbuf.device.emulated;

namespace gridbuf::emulated {
namespace {

const absl::Status kFailure = make_error(ErrorClass::kInternal, "injected");

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

TEST(Faults, DelayWithoutFailing) {
  Faults faults;
  faults.inject({.call_count = 2, .delay_milliseconds = 3});
  faults.inject({.operation = Operation::kCopy, .delay_milliseconds = 5});
  const Verdict verdict = faults.judge(Operation::kCopy);
  EXPECT_EQ(verdict.delay_milliseconds, 8);
  EXPECT_TRUE(verdict.at_call.ok());
  EXPECT_EQ(faults.judge(Operation::kFill).delay_milliseconds, 3);
}

TEST(Faults, AreTakenBack) {
  Faults faults;
  const std::int64_t first = faults.inject({.call_count = 100, .error = kFailure});
  faults.inject({.operation = Operation::kCopy, .call_count = 100, .error = kFailure});
  faults.remove(first);
  EXPECT_TRUE(faults.judge(Operation::kFill).at_call.ok());
  EXPECT_FALSE(faults.judge(Operation::kCopy).at_call.ok());
  faults.clear();
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
