#include "conformance/cc/suite.h"

#include <gtest/gtest.h>

#include <iostream>
#include <string>
#include <string_view>

namespace gridbuf::conformance {

void expect_rule(const Report& report, std::string_view id) {
  const RuleReport& rule = report.of(id);
  ::testing::Test::RecordProperty("outcome", std::string(to_string(rule.outcome)));
  ::testing::Test::RecordProperty("plans", rule.plans_judged);
  switch (rule.outcome) {
    case Outcome::kFail:
      ADD_FAILURE() << rule.text();
      return;
    case Outcome::kAdvisory:
      std::cout << rule.text() << "\n";
      return;
    case Outcome::kPass:
      return;
    default:
      GTEST_SKIP() << to_string(rule.outcome) << ": " << rule.note;
  }
}

void expect_something_made(const Report& report) {
  EXPECT_LT(report.plans_declined, report.plans_asked)
      << "every plan was declined, or none was asked: nothing was judged";
}

}  // namespace gridbuf::conformance
