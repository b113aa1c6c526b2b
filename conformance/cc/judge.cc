#include "conformance/cc/judge.h"

#include <malloc.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "conformance/cc/checks.h"
#include "conformance/cc/measure.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define GRIDBUF_CONFORMANCE_HAS_ASAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define GRIDBUF_CONFORMANCE_HAS_ASAN 1
#endif

namespace gridbuf::conformance {
namespace {

using Verdicts = std::map<std::string, Verdict>;

bool is_break(Outcome outcome) { return outcome == Outcome::kFail; }

// What GT-20 says when nothing can be measured; the rest can say nothing.
Verdicts only_gt20(std::string expected, std::string actual) {
  Verdicts verdicts;
  for (const Rule& rule : rules()) {
    verdicts[rule.id] = {Outcome::kBlocked, "", "", "GT-20: there is no tensor to judge"};
  }
  verdicts["GT-20"] = fail(std::move(expected), std::move(actual));
  return verdicts;
}

// A rule's verdict, unless a precondition (of a precondition …) failed.
const Verdict& judged(const Rule& rule, const Subject& subject, Verdicts& verdicts) {
  const auto known = verdicts.find(rule.id);
  if (known != verdicts.end()) return known->second;
  for (const std::string& id : rule.preconditions) {
    const auto other = std::ranges::find(rules(), id, &Rule::id);
    const Verdict& before = judged(*other, subject, verdicts);
    if (is_break(before.outcome) || before.outcome == Outcome::kBlocked) {
      const std::string first = is_break(before.outcome) ? id + " failed" : before.note;
      return verdicts[rule.id] = {Outcome::kBlocked, "", "", first};
    }
  }
  return verdicts[rule.id] = check_of(rule.id)(subject);
}

// All that may be asked of a struct of another major version (DL-22).
constexpr std::array<std::string_view, 4> kOfAnyVersion = {"DL-01", "DL-02", "DL-19", "DL-20"};

Verdicts judge_subject(const Subject& subject) {
  Verdicts verdicts;
  for (const Rule& rule : rules()) {
    const bool may_ask = subject.info.is_readable() ||
                         std::ranges::find(kOfAnyVersion, rule.id) != kOfAnyVersion.end();
    if (!may_ask) verdicts[rule.id] = {Outcome::kBlocked, "", "", "DL-02 failed"};
  }
  for (const Rule& rule : rules()) judged(rule, subject, verdicts);
  return verdicts;
}

// What `make` came to: an answer, or the text of what it threw.
std::pair<std::optional<Answer>, std::string> asked(const Producer& producer, const Plan& plan) {
  try {
    return {producer.make(plan), ""};
  } catch (const std::exception& error) {
    return {std::nullopt, error.what()};
  } catch (...) {
    return {std::nullopt, "an object that is not a std::exception"};
  }
}

// Makes and deletes an array of another shape while a tensor is held: its metadata must not care
// (DL-21).
void disturb(const Producer& producer, const Plan& held) {
  const Plan& other = plans()[held.name == plans()[1].name ? 2 : 1];
  const std::optional<Answer> answer = asked(producer, other).first;
  if (answer && !answer->is_unsupported() && answer->tensor() != nullptr) {
    dispose(*answer, measure(*answer));
  }
}

// The same plan again while the first tensor is held (GT-23).
std::optional<Info> asked_again(const Producer& producer, const Plan& plan) {
  const std::optional<Answer> answer = asked(producer, plan).first;
  if (!answer || answer->is_unsupported() || answer->tensor() == nullptr) return std::nullopt;
  Info info = measure(*answer);
  dispose(*answer, info);
  if (!info.is_plausible() || info.strides_bytes.size() != info.shape.size()) return std::nullopt;
  return info;
}

Verdicts judge_answer(const Producer& producer, const Plan& plan, const Answer& answer) {
  if (answer.tensor() == nullptr) return only_gt20("a tensor, or Unsupported", "a null pointer");
  Subject subject = {.plan = &plan,
                     .info = measure(answer),
                     .second = {},
                     .changed = "",
                     .wanted = wanted_elements(plan)};
  if (subject.info.is_plausible() && subject.info.is_described()) {
    subject.second = asked_again(producer, plan);
    disturb(producer, plan);
    subject.changed = changed_since(subject.info, answer);
  }
  Verdicts verdicts = judge_subject(subject);
  dispose(answer, subject.info);
  return verdicts;
}

// ---- Leaks. ----

constexpr int kRounds = 4;
constexpr int kCycles = 256;
constexpr std::size_t kLeastLeakBytes = 16;  // a cycle, in every round: less is noise

// Bytes that every round gained for each tensor made and deleted; nothing if that cannot be
// counted.
std::optional<std::size_t> leaked_bytes(const Producer& producer, const Plan& plan) {
#if defined(GRIDBUF_CONFORMANCE_HAS_ASAN)
  static_cast<void>(producer);
  static_cast<void>(plan);
  return std::nullopt;  // the sanitizer's allocator, which keeps freed memory; its own check
                        // tells more
#else
  std::size_t least = static_cast<std::size_t>(-1);
  for (int round = -1; round < kRounds; ++round) {
    const std::size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
    for (int cycle = 0; cycle < kCycles; ++cycle) {
      const std::optional<Answer> answer = asked(producer, plan).first;
      if (!answer || answer->is_unsupported()) return std::nullopt;
      if (answer->is_versioned()) {
        abi::delete_tensor(static_cast<abi::ManagedVersioned*>(answer->tensor()));
      } else {
        abi::delete_tensor(static_cast<abi::Managed*>(answer->tensor()));
      }
    }
    const std::size_t after = mallinfo2().uordblks + mallinfo2().hblkhd;
    // The first round fills the producer's own caches.
    if (round >= 0) least = std::min(least, after > before ? after - before : 0);
  }
  return least / kCycles >= kLeastLeakBytes ? least / kCycles : 0;
#endif
}

// ---- Tallies. ----

void add(RuleReport& report, const Plan& plan, const Verdict& verdict) {
  report.plans_judged += verdict.outcome <= Outcome::kPass ? 1 : 0;
  report.plans_failed += verdict.outcome < Outcome::kPass ? 1 : 0;
  const bool is_worse = verdict.outcome < report.outcome;
  const bool is_first_reason = verdict.outcome == report.outcome && report.note.empty();
  if (!is_worse && !is_first_reason) return;
  report.outcome = verdict.outcome;
  report.note = verdict.note;
  if (verdict.outcome < Outcome::kPass && is_worse) {
    report.plan = &plan;
    report.expected = verdict.expected;
    report.actual = verdict.actual;
  }
}

bool is_asked(const Producer& producer, const Plan& plan) {
  if (const char* only = std::getenv("GRIDBUF_CONFORMANCE_PLAN")) return plan.name == only;
  const Declares& declares = producer.declares;
  return (declares.layout || plan.layout.empty()) && (declares.views || !plan.has_views) &&
         (declares.alignment || plan.alignment_size == 1);
}

// A capability that is declared and never made is a broken promise.
struct Promise {
  const char* name;
  bool declared;
  std::function<bool(const Plan&)> uses;
  bool is_kept = false;
};

class Run {
 public:
  explicit Run(const Producer& producer) : producer_(producer) {
    report_.producer = producer.name;
    for (const Rule& rule : rules()) report_.rules.push_back({.rule = &rule});
    const Declares& can = producer.declares;
    promises_ = {
        {"layout", can.layout, [](const Plan& plan) { return !plan.layout.empty(); }},
        {"alignment", can.alignment, [](const Plan& plan) { return plan.alignment_size > 1; }},
        {"views", can.views, [](const Plan& plan) { return plan.has_views; }},
    };
  }

  Report finished() {
    for (const Plan& plan : plans()) {
      if (is_asked(producer_, plan)) ask(plan);
    }
    const bool is_whole = std::getenv("GRIDBUF_CONFORMANCE_PLAN") == nullptr;
    if (is_whole) judge_promises();
    judge_leaks();
    return std::move(report_);
  }

 private:
  RuleReport& of(std::string_view id) {
    return *std::ranges::find(report_.rules, id, [](const RuleReport& r) { return r.rule->id; });
  }

  void ask(const Plan& plan) {
    if (std::getenv("GRIDBUF_CONFORMANCE_TRACE") != nullptr) {
      std::fprintf(stderr, "%s: plan %s\n", producer_.name.c_str(), plan.name.c_str());
    }
    ++report_.plans_asked;
    const auto [answer, thrown] = asked(producer_, plan);
    if (answer && answer->is_unsupported()) {
      ++report_.plans_declined;
      for (RuleReport& rule : report_.rules) add(rule, plan, unsupported(answer->reason()));
      return;
    }
    for (Promise& promise : promises_) promise.is_kept |= promise.uses(plan);
    const Verdicts verdicts = answer
                                  ? judge_answer(producer_, plan, *answer)
                                  : only_gt20("a tensor, or Unsupported", "make threw: " + thrown);
    for (RuleReport& rule : report_.rules) add(rule, plan, verdicts.at(rule.rule->id));
    const auto is_sound = [](const auto& entry) { return !is_break(entry.second.outcome); };
    if (simplest_ == nullptr && std::ranges::all_of(verdicts, is_sound)) simplest_ = &plan;
  }

  void judge_promises() {
    for (const Promise& promise : promises_) {
      if (!promise.declared || promise.is_kept) continue;
      const auto plan = std::ranges::find_if(plans(), promise.uses);
      add(of("GT-20"), *plan,
          fail("the declared form (" + std::string(promise.name) + ") occurs at least once",
               "declined on all plans that use it"));
    }
  }

  void judge_leaks() {
    if (simplest_ == nullptr) return;
    const std::optional<std::size_t> leaked = leaked_bytes(producer_, *simplest_);
    if (!leaked || *leaked == 0) return;
    add(of("DL-19"), *simplest_,
        fail("a deleter that frees context, memory and struct",
             "at least " + std::to_string(*leaked) + " bytes left by each tensor"));
  }

  const Producer& producer_;
  Report report_;
  std::vector<Promise> promises_;
  const Plan* simplest_ = nullptr;  // that was made, and broke nothing
};

}  // namespace

std::string_view to_string(Outcome outcome) {
  constexpr std::string_view kNames[] = {"FAIL",    "ADVISORY", "PASS",
                                         "BLOCKED", "UNTESTED", "UNSUPPORTED"};
  return kNames[static_cast<std::size_t>(outcome)];
}

std::string RuleReport::text() const {
  std::string text = rule->id + "  " + (rule->is_must ? "MUST" : "SHOULD") + "  " +
                     std::string(to_string(outcome)) + "  on " + std::to_string(plans_failed) +
                     " of " + std::to_string(plans_judged) + " plans\n  requirement  " +
                     rule->requirement + "\n  expected     " + expected + "\n  actual       " +
                     actual;
  if (plan != nullptr) {
    text += "\n  plan         " + plan->name + "  " + plan->json +
            "\n  replay       GRIDBUF_CONFORMANCE_PLAN='" + plan->name + "' in the environment";
  }
  return text + "\n  to fix it    " + rule->fix;
}

std::vector<std::string> Report::failed() const {
  std::vector<std::string> ids;
  for (const RuleReport& report : rules) {
    if (report.outcome == Outcome::kFail) ids.push_back(report.rule->id);
  }
  return ids;
}

const RuleReport& Report::of(std::string_view id) const {
  return *std::ranges::find(rules, id, [](const RuleReport& r) { return r.rule->id; });
}

Report judge(const Producer& producer) { return Run(producer).finished(); }

}  // namespace gridbuf::conformance
