// gridbuf.system: what Linux tells about this machine and this process.
//
// How much memory could still be committed, how many processors this process may use, whether there
// are transparent huge pages and how many a range of memory really got. Every answer is read from a
// report of the kernel (/proc, /sys, the control groups around the process) and from nothing else.
//
// The key choice: readings are here, decisions are elsewhere. A cache's limit, the number of
// threads and the page policy each have their module; all of them see the machine through this one,
// so that a container's limit is understood once, and a test can put a machine of its own before
// any of them: the paths of all reports are a value, `Reports`, and not constants.
//
// A report that is absent or unreadable limits nothing and promises nothing: containers hide files,
// and a program that stopped for it would be the worse answer. All functions are safe on any thread
// and read anew at each call (some tens of microseconds); whoever needs an answer often keeps it
// for a while.
module;

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

export module gridbuf.system;

export namespace gridbuf::system {

/// What the functions answer where nothing limits memory, or nothing could be read.
inline constexpr std::int64_t kUnlimitedBytes = std::numeric_limits<std::int64_t>::max();

/// Where Linux reports. Tests point these at files of their own.
struct Reports {
  std::string meminfo = "/proc/meminfo";
  std::string own_cgroups = "/proc/self/cgroup";
  std::string cgroup_mount = "/sys/fs/cgroup";
  std::string transparent_hugepage = "/sys/kernel/mm/transparent_hugepage";
  std::string own_mappings = "/proc/self/smaps";
};

/// How many bytes could be committed now without the out-of-memory killer: the least of what the
/// system has (MemAvailable + SwapFree) and what each memory cgroup from this process's own to the
/// root still allows (its limit less what it holds, file pages not counted, as they are given up
/// first).
std::int64_t committable_bytes(const Reports& reports = {});

/// The processors that this process may use, at least 1: those of its affinity mask, and no more
/// than the processor time that its cgroups grant (a quota of 1.5 processors counts as 2).
int usable_cpu_count(const Reports& reports = {});

/// The length of an ordinary page.
std::int64_t page_bytes();

/// Who gets transparent huge pages, by the system's setting.
enum class HugePageMode : std::uint8_t {
  kAbsent,   // no report: the kernel has none, or hides them
  kNever,    // nobody
  kMadvise,  // who asks
  kAlways,   // everybody
};

/// "absent", "never", "madvise", "always": the words of the report.
std::string_view to_string(HugePageMode mode);

struct HugePageReport {
  HugePageMode mode = HugePageMode::kAbsent;
  std::int64_t page_bytes = std::int64_t{1} << 21;  // 2 MiB where the report does not say

  friend bool operator==(const HugePageReport&, const HugePageReport&) = default;
};

HugePageReport huge_pages(const Reports& reports = {});

/// What is in memory of the mappings that a range touches. The kernel joins neighbouring mappings
/// and counts by mapping: the figures are those of the range, or an upper bound of them.
struct MappedPages {
  std::int64_t mapped_bytes = 0;    // the length of those mappings
  std::int64_t resident_bytes = 0;  // in memory
  std::int64_t huge_bytes = 0;      // in memory on transparent huge pages

  friend bool operator==(const MappedPages&, const MappedPages&) = default;
};

/// Nothing if the kernel does not tell.
std::optional<MappedPages> mapped_pages(const void* address, std::int64_t length_bytes,
                                        const Reports& reports = {});

}  // namespace gridbuf::system
