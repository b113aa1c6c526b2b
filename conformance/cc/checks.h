// One function per rule: its verdict on one tensor, given the plan and the measurements.
#ifndef GRIDBUF_CONFORMANCE_CC_CHECKS_H_
#define GRIDBUF_CONFORMANCE_CC_CHECKS_H_

#include <optional>
#include <string>
#include <string_view>

#include "conformance/cc/judge.h"
#include "conformance/cc/measure.h"
#include "conformance/cc/producer.h"

namespace gridbuf::conformance {

/// What a rule says of one plan. `expected` and `actual` are short sentences without addresses.
struct Verdict {
  Outcome outcome = Outcome::kPass;
  std::string expected;
  std::string actual;
  std::string note;
};

Verdict pass();
Verdict fail(std::string expected, std::string actual);
Verdict unsupported(std::string note);
Verdict untested(std::string note);

/// All that a check may look at.
struct Subject {
  const Plan* plan = nullptr;
  Info info;
  std::optional<Info> second;  // of the same plan, asked again while the first was held
  std::string changed;         // what became of shape, strides and memory meanwhile; empty: nothing
  Bytes wanted;                // the elements that the plan asks for, in row-major order

  bool walks_as_wanted() const { return info.walk && *info.walk == wanted; }
};

/// The elements of the array or the view that a plan asks for, in row-major order.
Bytes wanted_elements(const Plan& plan);

/// The check of a rule of the catalogue; null for an id that has none.
using Check = Verdict (*)(const Subject& subject);
Check check_of(std::string_view rule);

}  // namespace gridbuf::conformance

#endif  // GRIDBUF_CONFORMANCE_CC_CHECKS_H_
