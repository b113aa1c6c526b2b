module;

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

module gridbuf.alloc.policy;

import gridbuf.alloc;
import gridbuf.system;

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

// Old figures fade: beyond a few trials' worth, both sums are halved. Two threads at once may lose
// one record or halve twice; a running average bears that.
void PagePolicy::Measured::add(std::int64_t more_mebibytes, std::int64_t more_nanoseconds) {
  nanoseconds.fetch_add(more_nanoseconds, std::memory_order_relaxed);
  const std::int64_t sum =
      mebibytes.fetch_add(more_mebibytes, std::memory_order_relaxed) + more_mebibytes;
  if (sum < 4 * kTrialMebibytes) return;
  mebibytes.store(sum / 2, std::memory_order_relaxed);
  nanoseconds.store(nanoseconds.load(std::memory_order_relaxed) / 2, std::memory_order_relaxed);
}

std::int64_t PagePolicy::Measured::rate() const {
  const std::int64_t sum = mebibytes.load(std::memory_order_relaxed);
  return sum < kTrialMebibytes ? 0 : nanoseconds.load(std::memory_order_relaxed) / sum;
}

void PagePolicy::Measured::forget() {
  mebibytes.store(0, std::memory_order_relaxed);
  nanoseconds.store(0, std::memory_order_relaxed);
}

bool PagePolicy::system_has_them() const {
  return report_.mode == system::HugePageMode::kMadvise ||
         report_.mode == system::HugePageMode::kAlways;
}

bool PagePolicy::huge_is_suspicious() const { return huge_.rate() > kSuspiciousNanoseconds; }

PageKind PagePolicy::faster() const {
  const bool small = huge_is_suspicious() && (small_.rate() == 0 || small_.rate() < huge_.rate());
  return small ? PageKind::kSmall : PageKind::kHuge;
}

PageKind PagePolicy::choose(std::int64_t length_bytes) {
  if (!system_has_them() || length_bytes < report_.page_bytes) return PageKind::kSmall;
  if (wish() == HugePages::kAlways) return PageKind::kHuge;
  if (wish() == HugePages::kNever) return PageKind::kSmall;
  const PageKind best = faster();
  if (!huge_is_suspicious() || small_.rate() == 0) return best;
  if (choices_.fetch_add(1, std::memory_order_relaxed) < kChoicesBetweenTrials) return best;
  // The slower kind is measured afresh, with what is allocated next.
  choices_.store(0, std::memory_order_relaxed);
  Measured& slower = best == PageKind::kSmall ? huge_ : small_;
  slower.forget();
  return best == PageKind::kSmall ? PageKind::kHuge : PageKind::kSmall;
}

void PagePolicy::record(PageKind pages, std::int64_t length_bytes, std::int64_t nanoseconds) {
  if (length_bytes < kMiB) return;
  (pages == PageKind::kHuge ? huge_ : small_).add(length_bytes / kMiB, nanoseconds);
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
  if (faster() == PageKind::kHuge) return "huge pages: " + setting + measured + compared;
  return "small pages: huge ones are slow here" + measured + compared;
}

}  // namespace gridbuf
