module;

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"

module gridbuf.base;

namespace gridbuf::system {
namespace {

// ---- Files of numbers. ----

// The number in a file that holds one, such as memory.max. Nothing if the file is absent or says
// "max".
std::optional<std::int64_t> read_number(const std::string& path) {
  std::ifstream file(path);
  std::int64_t number = 0;
  return file >> number ? std::optional(number) : std::nullopt;
}

// The number behind `key` in lines of "key number …" (meminfo, memory.stat).
std::optional<std::int64_t> read_keyed(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  std::string word;
  while (file >> word) {
    std::int64_t number = 0;
    if (word == key && file >> number) return number;
    file.clear();
    file.ignore(4096, '\n');
  }
  return std::nullopt;
}

// ---- The control groups around this process. ----

// Calls visit(folder, second_version) for the process's own cgroup of `controller` and each of its
// ancestors.
template <class Visit>
void for_each_cgroup(const Reports& reports, const std::string& controller, const Visit& visit) {
  std::ifstream file(reports.own_cgroups);
  // A line is "hierarchy:controllers:path"; the second version has hierarchy 0 and no controllers.
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool second_version = controllers == ",,";
    if (!second_version && controllers.find("," + controller + ",") == std::string::npos) continue;
    const std::string mount = reports.cgroup_mount + (second_version ? "" : "/" + controller);
    // `path` is "/a/b" or "/", relative to `mount`.
    for (std::string path = line.substr(second + 1);; path.resize(path.find_last_of('/'))) {
      visit(mount + (path == "/" ? "" : path), second_version);
      if (path.empty() || path == "/") break;
    }
  }
}

// ---- Memory. ----

// The bytes that one cgroup still allows.
std::int64_t group_bytes(const std::string& folder, bool second_version, std::int64_t swap_bytes) {
  const auto limit =
      read_number(folder + (second_version ? "/memory.max" : "/memory.limit_in_bytes"));
  const auto used =
      read_number(folder + (second_version ? "/memory.current" : "/memory.usage_in_bytes"));
  if (!limit || !used) return kUnlimitedBytes;
  // A first-version cgroup says "no limit" with a number near 2^63.
  if (*limit >= (std::int64_t{1} << 60)) return kUnlimitedBytes;
  const std::string stat = folder + "/memory.stat";
  const std::string prefix = second_version ? "" : "total_";
  const std::int64_t file_bytes = read_keyed(stat, prefix + "inactive_file").value_or(0) +
                                  read_keyed(stat, prefix + "active_file").value_or(0);
  return std::max<std::int64_t>(0, *limit - *used + file_bytes) + swap_bytes;
}

// ---- Processors. ----

int affinity_count() {
  // The mask type of the C library has 1024 processors; a larger machine needs a longer mask.
  for (int bits = 1024; bits <= 1 << 16; bits *= 2) {
    const std::size_t bytes = CPU_ALLOC_SIZE(bits);
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> mask(
        CPU_ALLOC(bits), [](cpu_set_t* owned) { CPU_FREE(owned); });
    if (mask == nullptr) break;
    if (sched_getaffinity(0, bytes, mask.get()) == 0) return CPU_COUNT_S(bytes, mask.get());
  }
  return static_cast<int>(std::thread::hardware_concurrency());
}

// The processors that one cgroup grants, rounded up; nothing if it sets no quota.
std::optional<std::int64_t> granted_cpus(const std::string& folder, bool second_version) {
  std::int64_t quota_us = 0;
  std::int64_t period_us = 0;
  if (second_version) {
    std::ifstream file(folder + "/cpu.max");  // "max 100000" or "150000 100000"
    if (!(file >> quota_us >> period_us)) return std::nullopt;
  } else {
    quota_us = read_number(folder + "/cpu.cfs_quota_us").value_or(-1);  // -1: none
    period_us = read_number(folder + "/cpu.cfs_period_us").value_or(0);
  }
  if (quota_us <= 0 || period_us <= 0) return std::nullopt;
  return (quota_us - 1) / period_us + 1;
}

// ---- Caches. ----

constexpr std::int64_t kUsualCacheBytes = std::int64_t{1} << 25;

// ---- Huge pages and mappings. ----

constexpr std::array<std::string_view, 4> kHugePageModes{"absent", "never", "madvise", "always"};

// Begin and end of a line "7f0000000000-7f0000200000 rw-p …"; nothing for lines of other kinds.
std::optional<std::pair<std::uintptr_t, std::uintptr_t>> mapping_of(const std::string& line) {
  std::istringstream text(line);
  std::pair<std::uintptr_t, std::uintptr_t> range;
  char dash = 0;
  if (!(text >> std::hex >> range.first >> dash >> range.second) || dash != '-') return {};
  return range;
}

// The number of a line "Rss:   12 kB" in bytes, if `line` begins with `key`.
std::optional<std::int64_t> bytes_of(const std::string& line, std::string_view key) {
  if (line.rfind(key, 0) != 0) return std::nullopt;
  std::istringstream text(line.substr(key.size()));
  std::int64_t kibibytes = 0;
  return text >> kibibytes ? std::optional(kibibytes * 1024) : std::nullopt;
}

}  // namespace

std::int64_t committable_bytes(const Reports& reports) {
  const std::int64_t swap_bytes = read_keyed(reports.meminfo, "SwapFree:").value_or(0) * 1024;
  const auto available = read_keyed(reports.meminfo, "MemAvailable:");
  std::int64_t least = available ? *available * 1024 + swap_bytes : kUnlimitedBytes;
  for_each_cgroup(reports, "memory", [&](const std::string& folder, bool second_version) {
    least = std::min(least, group_bytes(folder, second_version, swap_bytes));
  });
  return least;
}

int usable_cpu_count(const Reports& reports) {
  std::int64_t count = std::max(1, affinity_count());
  for_each_cgroup(reports, "cpu", [&](const std::string& folder, bool second_version) {
    count = std::min(count, granted_cpus(folder, second_version).value_or(count));
  });
  return static_cast<int>(count);
}

std::int64_t last_cache_bytes(const Reports& reports) {
  // A folder per cache, index0, index1, …, with its size as "32768K". The last level is the
  // largest.
  std::int64_t most = 0;
  for (int index = 0;; ++index) {
    const auto kibibytes = read_number(absl::StrCat(reports.caches, "/index", index, "/size"));
    if (!kibibytes) return most > 0 ? most : kUsualCacheBytes;
    most = std::max(most, *kibibytes * 1024);
  }
}

std::int64_t page_bytes() {
  static const auto bytes = static_cast<std::int64_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

std::string_view to_string(HugePageMode mode) {
  return kHugePageModes[static_cast<std::size_t>(mode)];
}

HugePageReport huge_pages(const Reports& reports) {
  HugePageReport report;
  if (const auto bytes = read_number(reports.transparent_hugepage + "/hpage_pmd_size")) {
    report.page_bytes = *bytes;
  }
  std::ifstream file(reports.transparent_hugepage + "/enabled");
  for (std::string word; file >> word;) {  // "always [madvise] never": the choice is in brackets
    for (std::size_t mode = 1; mode < kHugePageModes.size(); ++mode) {
      if (word == absl::StrCat("[", kHugePageModes[mode], "]")) {
        report.mode = static_cast<HugePageMode>(mode);
      }
    }
  }
  return report;
}

std::optional<MappedPages> mapped_pages(const void* address, std::int64_t length_bytes,
                                        const Reports& reports) {
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  const std::uintptr_t end = begin + static_cast<std::uintptr_t>(length_bytes);
  std::ifstream file(reports.own_mappings);
  if (!file) return std::nullopt;
  MappedPages pages;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (const auto mapping = mapping_of(line)) {
      inside = mapping->first < end && begin < mapping->second;
      if (inside) pages.mapped_bytes += static_cast<std::int64_t>(mapping->second - mapping->first);
    }
    if (!inside) continue;
    pages.resident_bytes += bytes_of(line, "Rss:").value_or(0);
    pages.huge_bytes += bytes_of(line, "AnonHugePages:").value_or(0);
  }
  if (pages.mapped_bytes == 0) return std::nullopt;
  pages.resident_bytes = std::min(pages.resident_bytes, length_bytes);
  pages.huge_bytes = std::min(pages.huge_bytes, length_bytes);
  return pages;
}

}  // namespace gridbuf::system
