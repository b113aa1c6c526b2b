// gridbuf.alloc.cuda.pinned: pinned memory in a fraction of the time.
//
// Pinned (page-locked) memory is what copies between host and device want, and the driver's own
// allocator makes it slowly: it touches small pages one after the other, on one thread, at 1 to 2
// GB/s. The pages are what takes the time, not the lock. So they are made here first, on
// transparent huge pages and with all threads (gridbuf.alloc.pages), and then registered with the
// driver; others have measured a fourth to an eighteenth of the time for it.
//
// Registered pages are kept when they are given back, up to a limit, for locking and unlocking cost
// again each time (gridbuf.alloc.cache keeps the books). A kept mapping stays locked.
//
// This module knows no CUDA: it is given two functions, one that locks pages and one that unlocks
// them. So its rules can be tested on any machine.
module;

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

export module gridbuf.alloc.cuda.pinned;

import gridbuf.alloc.cache;
import gridbuf.alloc.pages;

export namespace gridbuf {

struct PageLock {
  std::function<absl::Status(void* address, std::int64_t length_bytes)> lock;
  std::function<void(void* address)> unlock;
};

/// Locked pages, kept for reuse. Safe on any thread.
class PinnedPages {
 public:
  /// What is kept by default: enough for the staging of two fields, little beside any machine.
  static constexpr std::int64_t kDefaultLimitBytes = std::int64_t{256} << 20;
  /// From here on pages are huge.
  static constexpr std::int64_t kHugeBytes = std::int64_t{2} << 20;

  explicit PinnedPages(PageLock lock, std::int64_t limit_bytes = kDefaultLimitBytes);

  struct Pages {
    pages::Mapping mapping;
    std::int64_t length_bytes = 0;  // what it serves
    bool from_cache = false;        // its bytes are then what they were
  };
  /// Locked, present pages of at least `length_bytes` ≥ 1. Errors: kMemory if the kernel has none;
  /// what `lock` answers (nothing stays mapped then).
  absl::StatusOr<Pages> take(std::int64_t length_bytes);
  /// Keeps or unlocks and unmaps them. The device must have done with them.
  void give(const Pages& pages) noexcept;

  void set_limit(std::int64_t limit_bytes);
  /// Gives up everything that is kept.
  void trim();
  std::int64_t cached_bytes();

 private:
  void drop(const MappingCache::Victims& victims) noexcept;

  PageLock lock_;
  std::mutex mutex_;
  MappingCache cache_;
};

}  // namespace gridbuf
