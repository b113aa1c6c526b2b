// The suite is tested as the Python one is: producers that are wrong in one thing each, and the
// exact set of rules that each breaks. The strict producer breaks none.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "conformance/cc/catalogue.h"
#include "conformance/cc/checks.h"
#include "conformance/cc/judge.h"
#include "conformance/cc/producer.h"
#include "conformance/cc/reference.h"
#include "conformance/cc/suite.h"
#include "conformance/cc/wrong_producers.h"

GRIDBUF_CONFORMANCE_SUITE(reference, Reference);

namespace gridbuf::conformance {
namespace {

using Ids = std::vector<std::string>;

Ids with_outcome(const Report& report, Outcome outcome) {
  Ids ids;
  for (const RuleReport& rule : report.rules) {
    if (rule.outcome == outcome) ids.push_back(rule.rule->id);
  }
  return ids;
}

const WrongProducer& wrong(const std::string& name) {
  return *std::ranges::find(wrong_producers(), name,
                            [](const WrongProducer& one) { return one.producer.name; });
}

// ---- The suite's own parts. ----

std::uint32_t crc32_of(const std::vector<std::byte>& bytes) {
  std::uint32_t crc = ~0U;
  for (const std::byte byte : bytes) {
    crc ^= std::to_integer<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (0xEDB88320U & (0U - (crc & 1U)));
  }
  return ~crc;
}

TEST(Plans, ContentIsWhatThePythonSuiteSays) {
  int compared = 0;
  for (const Plan& plan : plans()) {
    if (!plan.dlpack) continue;
    EXPECT_EQ(crc32_of(plan.content()), expected_crc32(plan)) << plan.name;
    ++compared;
  }
  EXPECT_GT(compared, 150);
}

TEST(Catalogue, EveryRuleHasACheckAndATest) {
  std::set<std::string> tests;
  const auto& unit = *::testing::UnitTest::GetInstance();
  for (int suite = 0; suite < unit.total_test_suite_count(); ++suite) {
    const auto& one = *unit.GetTestSuite(suite);
    if (!std::string(one.name()).starts_with("reference/")) continue;
    for (int test = 0; test < one.total_test_count(); ++test) {
      tests.insert(one.GetTestInfo(test)->name());
    }
  }
  EXPECT_EQ(tests.erase("SomethingIsMade"), 1U);
  for (const Rule& rule : rules()) {
    EXPECT_NE(check_of(rule.id), nullptr) << rule.id;
    std::string name = rule.id;
    std::ranges::replace(name, '-', '_');
    EXPECT_EQ(tests.erase(name), 1U) << rule.id;
  }
  EXPECT_TRUE(tests.empty()) << *tests.begin();
}

TEST(Reference, EveryRuleIsJudgedAndHolds) {
  const Report report =
      judge({.name = "reference", .declares = Reference::kDeclares, .make = &Reference::make});
  EXPECT_EQ(report.failed(), Ids{});
  for (const RuleReport& rule : report.rules) {
    // No strict producer has an element of several lanes, or answers a plan of swapped byte order.
    const bool never = rule.rule->id == "DL-30" || rule.rule->id == "DL-16";
    EXPECT_EQ(rule.outcome, never ? Outcome::kUnsupported : Outcome::kPass) << rule.rule->id;
  }
  EXPECT_GT(report.plans_asked, 180);
}

TEST(Legacy, TensorsAreJudgedAsFarAsTheyCanSay) {
  const Report report = judge(wrong("LegacyTensors").producer);
  EXPECT_EQ(report.of("DL-02").outcome, Outcome::kUnsupported);
  EXPECT_EQ(report.of("XA-08").outcome, Outcome::kPass);
}

// ---- Wrong producers: exactly the rules of the table break. ----

class Wrong : public ::testing::TestWithParam<WrongProducer> {};

TEST_P(Wrong, BreaksTheRulesOfTheTable) {
  const WrongProducer& wrong = GetParam();
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
  if (wrong.producer.name == "DeleterThatFreesNothing") {
    GTEST_SKIP() << "NOT tested with a sanitizer: its allocator cannot be counted";
  }
#endif
  const Report report = judge(wrong.producer);
  EXPECT_EQ(with_outcome(report, Outcome::kFail), wrong.breaks);
  EXPECT_EQ(with_outcome(report, Outcome::kAdvisory), wrong.advises);
}

INSTANTIATE_TEST_SUITE_P(, Wrong, ::testing::ValuesIn(wrong_producers()),
                         [](const auto& info) { return info.param.producer.name; });

// ---- What people see. ----

TEST(Text, AFailureSaysRuleExpectedActualPlanAndReplay) {
  const Report report = judge(wrong("StridesInBytes").producer);
  EXPECT_EQ(report.of("DL-09").text(),
            "DL-09  MUST  FAIL  on " + std::to_string(report.of("DL-09").plans_failed) + " of " +
                std::to_string(report.of("DL-09").plans_judged) +
                " plans\n"
                "  requirement  strides count elements, not bytes.\n"
                "  expected     strides in elements\n"
                "  actual       (8) reach the elements only when taken as bytes\n"
                "  plan         shape_2  {\"shape\":[2],\"dtype\":\"float64\",\"fill\":1}\n"
                "  replay       GRIDBUF_CONFORMANCE_PLAN='shape_2' in the environment\n"
                "  to fix it    Divide byte strides by itemsize.");
}

TEST(Text, OnePlanCanBeRunAlone) {
  setenv("GRIDBUF_CONFORMANCE_PLAN", "shape_2x3", 1);
  const Report report =
      judge({.name = "reference", .declares = Reference::kDeclares, .make = &Reference::make});
  unsetenv("GRIDBUF_CONFORMANCE_PLAN");
  EXPECT_EQ(report.plans_asked, 1);
  EXPECT_EQ(report.failed(), Ids{});
}

}  // namespace
}  // namespace gridbuf::conformance
