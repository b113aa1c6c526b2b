// gridbuf.alloc.large: large blocks on pages of their own, kept for a while after use.
//
// The C library's large blocks come from the kernel and go back to it at every free, on small
// pages, all at the same place of a page. Four things are done better here, and each can be seen in
// the facts of a block and in the statistics:
//
//   pages     transparent huge pages where they pay (gridbuf.alloc.policy).
//   kept      a freed mapping waits for the next block of its length (gridbuf.alloc.cache). The
//             limit follows the machine: a quarter of what could be committed now, looked up every
//             tenth of a second. The pages of long mappings are offered to the kernel meanwhile, so
//             memory pressure takes them without asking us; and a want of memory empties the cache
//             before anything is refused.
//   touched   zeros that must come from the kernel are touched early, by all threads, instead of
//             later by one. Only in blocks of kEagerBytes and up to an eighth of what could be
//             committed now: a field that is larger may never be touched as a whole, and stays
//             lazy. Of long ones the first piece is touched before they are handed out, and the
//             rest in the background while their user writes the beginning: the kernel commits
//             pages without looking at their bytes, so nobody can tell but by the clock. Memory
//             whose bytes do not matter (empty) is never touched here: its user's threads do
//             that, and so it comes to lie near them.
//   staggered the start moves by a number of cache lines that changes from block to block, so that
//             ten fields read in one loop do not fight for the same sets of the first and the
//             second-level cache (with huge pages, addresses choose both). The alignment at an
//             offset is kept, of course; equal requests start equal modulo their alignment.
//
// One lock guards the books; it is never held while pages are mapped, touched, zeroed or unmapped.
// A child after fork gets the books whole and drops the kept mappings: to write into them would
// copy them. In poison mode nothing is kept: the memory of a freed block is taken away and its
// addresses stay sealed for a while, so that a use after free ends the process there and then.
module;

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

export module gridbuf.alloc.large;

import gridbuf.alloc.cache;
import gridbuf.alloc.pages;
import gridbuf.alloc.policy;
import gridbuf.alloc;
import gridbuf.base;

export namespace gridbuf {

/// Zeros from the kernel are touched at once from this length on.
inline constexpr std::int64_t kEagerBytes = pages::kParallelBytes;
/// … and up to this part of what could be committed now.
inline constexpr std::int64_t kEagerDivisor = 8;
/// … but for so many blocks after a touch in which the threads did not run at the same time,
/// because others use the processors.
inline constexpr int kLazyBlocks = 8;
/// Zeros of this length and more are touched in the background, but for a piece at their begin:
/// this part of them, and kEagerBytes at least.
inline constexpr std::int64_t kBackgroundBytes = std::int64_t{1} << 27;
inline constexpr std::int64_t kForegroundDivisor = 16;
/// The part of what could be committed now that the cache may hold, unless a limit was given.
inline constexpr std::int64_t kCacheDivisor = 4;
/// The pages of kept mappings of this length and more are offered to the kernel.
inline constexpr std::int64_t kOfferedBytes = std::int64_t{1} << 25;
/// Starts move within so many bytes, which is what one way of common second-level caches
/// holds; alignments beyond it leave nothing to choose.
inline constexpr std::int64_t kStaggerBytes = std::int64_t{1} << 17;
inline constexpr std::int64_t kCacheLineBytes = 64;

struct LargeOptions {
  /// How many bytes of free mappings are kept; 0 switches the cache off; none: follows the machine
  /// (in builds with a sanitizer: off).
  std::optional<std::int64_t> cache_limit_bytes = std::nullopt;
  /// Blocks in use and kept ones together; a request beyond it is kMemory.
  std::int64_t limit_bytes = system::kUnlimitedBytes;
  HugePages huge_pages = HugePages::kAuto;
  /// Fresh bytes hold kPoison, freed blocks fault.
  bool poison = false;

  friend bool operator==(const LargeOptions&, const LargeOptions&) = default;
};

/// What a fresh byte holds in poison mode: an absurd number in every element type.
inline constexpr std::byte kPoison{0xCB};

/// Lengths are those of mappings: with placement, stagger and the rest of the last page.
struct LargeStatistics {
  std::int64_t live_blocks = 0;
  std::int64_t live_bytes = 0;
  std::int64_t peak_live_bytes = 0;
  std::int64_t cached_blocks = 0;
  std::int64_t cached_bytes = 0;
  std::int64_t cache_limit_bytes = 0;  // what holds now
  std::int64_t hits = 0;               // blocks served from the cache
  std::int64_t misses = 0;             // … from the kernel
  std::int64_t refusals = 0;           // want of memory, or of the limit

  friend bool operator==(const LargeStatistics&, const LargeStatistics&) = default;
};

/// Where pages come from. The kernel, but for tests. `commit` is called on several threads.
class PageSource {
 public:
  PageSource() = default;
  PageSource(const PageSource&) = delete;
  PageSource& operator=(const PageSource&) = delete;
  virtual ~PageSource() = default;

  virtual absl::StatusOr<pages::Mapping> map(std::int64_t length_bytes, PageKind pages);
  virtual void unmap(const pages::Mapping& mapping) noexcept;
  virtual absl::Status commit(std::byte* data, std::int64_t total_bytes);
  virtual std::int64_t committable_bytes();
  /// The processor time that all threads of this process have had.
  virtual std::int64_t processor_nanoseconds();
};

class LargeResource final : public MemoryResource {
 public:
  /// `name` (static text) is what messages and facts call it; `source` must outlive it.
  explicit LargeResource(std::string_view name = "large", const LargeOptions& options = {},
                         PageSource* source = nullptr);
  /// All blocks must be gone.
  ~LargeResource() override;

  /// Any length will do, but each block takes at least a page. Errors: kValue for a bad request;
  /// kMemory, after the cache was emptied in vain, if there is no memory, address space, or room
  /// under the limit; with `populate`, if the machine could not commit that much (nothing is then
  /// touched).
  absl::StatusOr<Block> allocate(const AllocationRequest& request) override;
  std::string_view name() const noexcept override { return name_; }

  LargeOptions options() const;
  /// Takes effect at once: what is kept beyond a new limit goes. Error: kValue for negative limits.
  absl::Status configure(const LargeOptions& options);

  LargeStatistics statistics() const;
  /// Gives kept mappings back until at most `keep_bytes` are left, those not used for longest
  /// first, and ends the sealing of freed ones. Returns how many bytes went, of memory or of
  /// sealed addresses.
  std::int64_t trim(std::int64_t keep_bytes = 0);

  bool poisons() const { return poison_.load(std::memory_order_relaxed); }
  /// Whether freed memory is kept at all: not with the cache off, nor in poison mode.
  bool keeps_blocks() const {
    return fixed_cache_limit_.load(std::memory_order_relaxed) != 0 && !poisons();
  }
  /// The page policy's decision, for people.
  std::string page_policy_text() const { return policy_.text(); }

  /// For pthread_atfork: no fork happens while the books are being written.
  void lock_for_fork() { mutex_.lock(); }
  void unlock_in_parent() { mutex_.unlock(); }
  void unlock_in_child();

 private:
  struct Lent;

  absl::Status obtain(Lent& lent);
  absl::StatusOr<pages::Mapping> map_or_trim(std::int64_t length_bytes, PageKind pages);
  absl::Status make_ready(const AllocationRequest& request, std::byte* data, Lent& lent);
  void touch_zeros(std::byte* data, std::int64_t total_bytes, Lent& lent);
  void touch_in_background(std::byte* from, std::int64_t length_bytes, Lent& lent);
  absl::Status touch(std::byte* data, std::int64_t total_bytes, const Lent& lent);
  std::int64_t next_stagger(const Placement& placement);
  absl::Status refuse(const AllocationRequest& request, std::string_view cause);

  std::int64_t read_committable() const noexcept;
  std::int64_t committable_bytes() const noexcept;
  bool may_commit_unasked(std::int64_t total_bytes) const noexcept;
  bool pays_to_touch(std::int64_t total_bytes) noexcept;
  bool could_commit(std::int64_t total_bytes);
  std::int64_t cache_limit() const noexcept;

  static void release(void* context, void* allocation) noexcept;
  void take_back(const Lent& lent) noexcept;
  void seal(const pages::Mapping& mapping) noexcept;
  void unmap_all(const MappingCache::Victims& victims) noexcept;

  // Under the lock.
  void enter(std::int64_t length_bytes);
  void count_up(std::int64_t& origin);
  void leave(std::int64_t length_bytes);

  void set(const LargeOptions& options);

  const std::string_view name_;
  PageSource& source_;
  PagePolicy policy_;
  std::atomic<bool> poison_ = false;
  std::atomic<std::int64_t> fixed_cache_limit_ = -1;  // -1: follows the machine
  std::atomic<std::uint32_t> blocks_ = 0;             // counts up; the stagger follows it
  std::atomic<int> lazy_blocks_ = 0;                  // so many zeros are not touched eagerly
  mutable std::atomic<std::int64_t> committable_ = 0;
  mutable std::atomic<std::int64_t> committable_read_at_ = 0;  // steady nanoseconds; 0: never

  mutable std::mutex mutex_;  // guards all below
  LargeOptions options_;
  LargeStatistics statistics_;
  MappingCache cache_;
  static constexpr std::size_t kSealed = 32;
  std::array<pages::Mapping, kSealed> sealed_;  // poison mode: of freed blocks, oldest first out
  std::size_t next_sealed_ = 0;
};

}  // namespace gridbuf
