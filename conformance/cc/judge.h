// The judge: asks a producer all plans, and says of each rule what became of it.
//
// It is the Python suite's judge for what a C++ program can see: the same plans, rules,
// preconditions and outcomes. It runs in the producer's process, so a producer that crashes ends
// the program; with GRIDBUF_CONFORMANCE_TRACE=1 in the environment each plan is named before it is
// asked.
#ifndef GRIDBUF_CONFORMANCE_CC_JUDGE_H_
#define GRIDBUF_CONFORMANCE_CC_JUDGE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/cc/catalogue.h"
#include "conformance/cc/producer.h"

namespace gridbuf::conformance {

/// Worst first: a rule's outcome over many plans is the worst of its verdicts.
enum class Outcome : std::uint8_t {
  kFail,      // a MUST is broken
  kAdvisory,  // a SHOULD is not met
  kPass,
  kBlocked,      // a precondition failed, so this rule could not be judged
  kUntested,     // this machine or this build cannot decide it
  kUnsupported,  // the producer declined, or the plan does not concern the rule
};

std::string_view to_string(Outcome outcome);

/// What became of one rule, with the simplest plan that broke it.
struct RuleReport {
  const Rule* rule = nullptr;
  Outcome outcome = Outcome::kUnsupported;
  int plans_judged = 0;
  int plans_failed = 0;
  const Plan* plan = nullptr;  // of the finding; null if there is none, or no plan caused it
  std::string expected = {};
  std::string actual = {};
  std::string note = {};  // why nothing was judged

  /// The finding as people read it: requirement, expected, actual, plan, how to run it again.
  std::string text() const;
};

struct Report {
  std::string producer;
  int plans_asked = 0;
  int plans_declined = 0;
  std::vector<RuleReport> rules;  // in the order of the catalogue

  /// The ids of the rules that failed, in order.
  std::vector<std::string> failed() const;
  const RuleReport& of(std::string_view id) const;
};

/// Judges on all plans that concern what the producer declares, or on the one that the environment
/// variable GRIDBUF_CONFORMANCE_PLAN names.
Report judge(const Producer& producer);

}  // namespace gridbuf::conformance

#endif  // GRIDBUF_CONFORMANCE_CC_JUDGE_H_
