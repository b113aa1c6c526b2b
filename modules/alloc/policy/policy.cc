module;

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

module gridbuf.alloc.policy;

import gridbuf.alloc;
import gridbuf.base;

namespace gridbuf {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

std::string microseconds(std::int64_t nanoseconds) {
  return std::to_string(nanoseconds / 1000) + " µs";
}

}  // namespace

std::string_view to_string(HugePages wish) {
  switch (wish) {
    case HugePages::kAlways:
      return "always";
    case HugePages::kNever:
      return "never";
    case HugePages::kAuto:
      break;
  }
  return "auto";
}

void PagePolicy::Measured::add(std::int64_t rate) {
  const std::uint32_t place = count_.fetch_add(1, std::memory_order_relaxed) % kTouches;
  rates_[place].store(std::max<std::int64_t>(rate, 1), std::memory_order_relaxed);
}

std::int64_t PagePolicy::Measured::rate() const {
  std::int64_t fastest = rates_[0].load(std::memory_order_relaxed);
  for (const std::atomic<std::int64_t>& rate : rates_) {
    fastest = std::min(fastest, rate.load(std::memory_order_relaxed));
  }
  return fastest;  // a place that was not written yet holds 0
}

bool PagePolicy::system_has_them() const {
  return report_.mode == system::HugePageMode::kMadvise ||
         report_.mode == system::HugePageMode::kAlways;
}

bool PagePolicy::huge_is_suspicious() const { return huge_.rate() > kSuspiciousNanoseconds; }

PageKind PagePolicy::better() const {
  // A rate of small pages that is not known yet, 0, lets them be tried.
  const bool small = huge_is_suspicious() && small_.rate() < huge_.rate() / kWorth;
  return small ? PageKind::kSmall : PageKind::kHuge;
}

PageKind PagePolicy::choose(std::int64_t length_bytes) {
  if (!system_has_them() || length_bytes < report_.page_bytes) return PageKind::kSmall;
  if (wish() == HugePages::kAlways) return PageKind::kHuge;
  if (wish() == HugePages::kNever) return PageKind::kSmall;
  const PageKind best = better();
  if (!huge_is_suspicious() || small_.rate() == 0) return best;
  if (choices_.fetch_add(1, std::memory_order_relaxed) < kChoicesBetweenTrials) return best;
  choices_.store(0, std::memory_order_relaxed);
  return best == PageKind::kSmall ? PageKind::kHuge : PageKind::kSmall;
}

void PagePolicy::record(PageKind pages, std::int64_t length_bytes, std::int64_t nanoseconds) {
  if (length_bytes < kShortestBytes) return;
  (pages == PageKind::kHuge ? huge_ : small_).add(nanoseconds / (length_bytes / kMiB));
}

std::string PagePolicy::text() const {
  const std::string setting = "the system's setting is " + std::string(to_string(report_.mode));
  if (!system_has_them()) return "small pages: " + setting;
  if (wish() == HugePages::kNever) return "small pages: asked for";
  const std::string measured =
      huge_.rate() == 0 ? "" : "; measured " + microseconds(huge_.rate()) + " per MiB";
  const std::string compared =
      small_.rate() == 0 ? "" : ", " + microseconds(small_.rate()) + " on small ones";
  if (wish() == HugePages::kAlways) return "huge pages: asked for, " + setting + measured;
  if (better() == PageKind::kHuge) return "huge pages: " + setting + measured + compared;
  return "small pages: huge ones are slow here" + measured + compared;
}

}  // namespace gridbuf
