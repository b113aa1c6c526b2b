// gridbuf.alloc.pages: whether memory that was granted is really there.
//
// Linux grants address space generously and finds the pages at the first touch; if there are none
// left then, it kills a process. Whoever asked for `populate` wants the answer at the allocation,
// as a status. Two steps give it:
//
//   1. `committable_bytes` reads how much the system (and every memory cgroup around this process)
//   could still hand
//      out. A request beyond that is refused before a page is touched, because committing it would
//      end in the out-of-memory killer, which no program survives to report.
//   2. `commit` makes the pages present: MADV_POPULATE_WRITE (Linux 5.14), which returns an error
//   where touching would
//      kill, else one write per page.
//
// Step 1 is a snapshot: another process may take the memory in between. It turns the common
// accident (a shape with a zero too many) into an error; it is no guarantee against a machine that
// is full.
module;

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

#include "absl/status/status.h"

export module gridbuf.alloc.pages;

export namespace gridbuf::pages {

/// What `committable_bytes` answers where nothing limits memory, or nothing could be read.
inline constexpr std::int64_t kUnlimitedBytes = std::numeric_limits<std::int64_t>::max();

/// Where Linux reports memory. Tests point these at files of their own.
struct MemoryReports {
  std::string meminfo = "/proc/meminfo";
  std::string own_cgroups = "/proc/self/cgroup";
  std::string cgroup_mount = "/sys/fs/cgroup";
};

/// How many bytes could be committed now without the out-of-memory killer: the least of what the
/// system has (MemAvailable + SwapFree) and what each memory cgroup from this process's own to the
/// root still allows (its limit less what it holds, file pages not counted, as they are given up
/// first). Unreadable reports limit nothing.
std::int64_t committable_bytes(const MemoryReports& reports = {});

/// Makes every page of [data, data + total_bytes) present and writable, its bytes unchanged. The
/// memory must be writable and must not be used by another thread meanwhile. 0 bytes: nothing
/// happens. Error: kMemory if the kernel has no pages for it. (Where it cannot say so, it may still
/// kill: see above.)
absl::Status commit(std::byte* data, std::int64_t total_bytes);

/// The fallback of `commit` on kernels without MADV_POPULATE_WRITE: rewrites one byte of each page.
void touch(std::byte* data, std::int64_t total_bytes);

}  // namespace gridbuf::pages
