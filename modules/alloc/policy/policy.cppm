// gridbuf.alloc.policy: which pages a large block gets.
//
// Transparent huge pages make the first touch of memory four to nine times faster and its use a
// little: one entry of the address-translation cache covers 2 MiB and not 4 KiB. But they are not
// free everywhere. An administrator may forbid them, and where memory is fragmented the kernel has
// to move other pages to make room, which can cost more than small pages do.
//
// So the choice is adaptive, and visible. The system's setting comes first: "never" is never. Then
// the user's wish. With the wish kAuto the policy measures: every first touch that is timed anyway
// (zeros, populate) is recorded here. While huge pages come at the usual speed there is nothing to
// decide. Where four in a row come so slowly that small ones may be worth it, small ones are tried,
// and taken from then on if they come eight times faster; the other kind is tried again now and
// then, because fragmentation comes and goes. A first touch is paid once and a field is used often:
// what is slower to come by a small factor is still the better memory. Disturbances only ever make
// a touch slower (the first one of a virtual machine takes twenty times as long), so the best of
// the last four stands for a kind.
//
// The key choice: no fixed verdict by machine, kernel or size, because reports differ by a factor
// of ten in both directions between machines of one kind; and no measurement of its own, because
// that would cost every short program what only long ones can earn back.
module;

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

export module gridbuf.alloc.policy;

import gridbuf.alloc;
import gridbuf.base;

export namespace gridbuf {

/// What the user wants.
enum class HugePages : std::uint8_t {
  kAuto,    // as the measurements say
  kAlways,  // wherever the system allows
  kNever,
};

/// "auto", "always", "never".
std::string_view to_string(HugePages wish);

/// Chooses pages. Safe on any thread, without locks.
class PagePolicy {
 public:
  /// Small pages are taken where their first touch is so many times faster.
  static constexpr std::int64_t kWorth = 8;
  /// First touches slower than this per mebibyte make the policy try small pages. Usual are 45 to
  /// 90 µs on huge pages, and 200 to 500 µs on small ones; virtual machines whose own memory must
  /// first be given to them were seen to take 900 µs on huge ones.
  static constexpr std::int64_t kSuspiciousNanoseconds = 1'000'000;
  /// So many first touches make a measurement; the fastest counts.
  static constexpr int kTouches = 4;
  /// First touches of shorter ranges say nothing.
  static constexpr std::int64_t kShortestBytes = std::int64_t{1} << 23;
  /// After so many choices of the better kind the other one is tried again.
  static constexpr int kChoicesBetweenTrials = 16;

  explicit PagePolicy(const system::HugePageReport& report = system::huge_pages())
      : report_(report) {}

  HugePages wish() const { return wish_.load(std::memory_order_relaxed); }
  void set_wish(HugePages wish) { wish_.store(wish, std::memory_order_relaxed); }

  /// The pages for a block of this length: kHuge or kSmall. Blocks shorter than a huge page, and
  /// systems that have none for us, get small ones.
  PageKind choose(std::int64_t length_bytes);

  /// That the first touch of `length_bytes` on such pages took so long.
  void record(PageKind pages, std::int64_t length_bytes, std::int64_t nanoseconds);

  /// The decision for people: "huge pages (system: madvise)", "small pages: the system's setting is
  /// never", "small pages: measured 500 µs per MiB on huge ones and 210 µs on small ones".
  std::string text() const;

 private:
  // The last first touches on one kind of pages, in nanoseconds per mebibyte.
  class Measured {
   public:
    void add(std::int64_t rate);
    /// The fastest of the last kTouches; 0 before there are as many.
    std::int64_t rate() const;

   private:
    std::array<std::atomic<std::int64_t>, kTouches> rates_{};
    std::atomic<std::uint32_t> count_ = 0;
  };

  bool system_has_them() const;
  bool huge_is_suspicious() const;
  PageKind better() const;

  const system::HugePageReport report_;
  std::atomic<HugePages> wish_ = HugePages::kAuto;
  Measured huge_;
  Measured small_;
  std::atomic<int> choices_ = 0;  // since the last trial
};

}  // namespace gridbuf
