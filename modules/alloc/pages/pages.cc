module;

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>

#include "absl/status/status.h"

module gridbuf.alloc.pages;

import gridbuf.error;

namespace gridbuf::pages {
namespace {

std::uintptr_t page_bytes() {
  static const auto bytes = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

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

// Asks the kernel to commit whole pages; 0 or the error number.
int populate([[maybe_unused]] std::uintptr_t first, [[maybe_unused]] std::size_t length_bytes) {
#ifdef MADV_POPULATE_WRITE
  int result = 0;
  do {
    result = madvise(reinterpret_cast<void*>(first), length_bytes, MADV_POPULATE_WRITE);
  } while (result != 0 && (errno == EAGAIN || errno == EINTR));
  return result == 0 ? 0 : errno;
#else
  return EINVAL;
#endif
}

// Whether this kernel knows the advice. It says EINVAL both when it does not and when a mapping may
// not be written, so it is asked once about a page where only the first can be meant.
bool kernel_populates() {
  static const bool answer = [] {
    void* page =
        mmap(nullptr, page_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return false;
    const int error = populate(reinterpret_cast<std::uintptr_t>(page), page_bytes());
    munmap(page, page_bytes());
    return error == 0;
  }();
  return answer;
}

std::int64_t system_bytes(const MemoryReports& reports, std::int64_t swap_bytes) {
  const auto available = read_keyed(reports.meminfo, "MemAvailable:");
  return available ? *available * 1024 + swap_bytes : kUnlimitedBytes;
}

// What one cgroup still allows, given the names of its limit and use files.
std::int64_t group_bytes(const std::string& folder, const char* limit_name, const char* use_name,
                         const char* file_prefix, std::int64_t swap_bytes) {
  const auto limit = read_number(folder + "/" + limit_name);
  const auto used = read_number(folder + "/" + use_name);
  if (!limit || !used) return kUnlimitedBytes;
  // A first-version cgroup says "no limit" with a number near 2^63.
  if (*limit >= (std::int64_t{1} << 60)) return kUnlimitedBytes;
  const std::string stat = folder + "/memory.stat";
  const std::string prefix(file_prefix);
  const std::int64_t file_bytes = read_keyed(stat, prefix + "inactive_file").value_or(0) +
                                  read_keyed(stat, prefix + "active_file").value_or(0);
  return std::max<std::int64_t>(0, *limit - *used + file_bytes) + swap_bytes;
}

// The least over a cgroup and its ancestors. `path` is "/a/b" or "/", relative to `mount`.
std::int64_t branch_bytes(const std::string& mount, std::string path, bool second_version,
                          std::int64_t swap_bytes) {
  std::int64_t least = kUnlimitedBytes;
  while (true) {
    const std::string folder = mount + (path == "/" ? "" : path);
    least = std::min(
        least, second_version ? group_bytes(folder, "memory.max", "memory.current", "", swap_bytes)
                              : group_bytes(folder, "memory.limit_in_bytes",
                                            "memory.usage_in_bytes", "total_", swap_bytes));
    if (path.empty() || path == "/") return least;
    path.resize(path.find_last_of('/'));
  }
}

std::int64_t cgroup_bytes(const MemoryReports& reports, std::int64_t swap_bytes) {
  std::int64_t least = kUnlimitedBytes;
  std::ifstream file(reports.own_cgroups);
  // A line is "hierarchy:controllers:path"; the second version has hierarchy 0 and no controllers.
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string path = line.substr(second + 1);
    if (controllers == ",,") {
      least = std::min(least, branch_bytes(reports.cgroup_mount, path, true, swap_bytes));
    } else if (controllers.find(",memory,") != std::string::npos) {
      least =
          std::min(least, branch_bytes(reports.cgroup_mount + "/memory", path, false, swap_bytes));
    }
  }
  return least;
}

}  // namespace

std::int64_t committable_bytes(const MemoryReports& reports) {
  const std::int64_t swap_bytes = read_keyed(reports.meminfo, "SwapFree:").value_or(0) * 1024;
  return std::min(system_bytes(reports, swap_bytes), cgroup_bytes(reports, swap_bytes));
}

void touch(std::byte* data, std::int64_t total_bytes) {
  if (total_bytes <= 0) return;
  const auto page = static_cast<std::int64_t>(page_bytes());
  const auto rewrite = [](std::byte* address) {
    volatile std::byte* byte = address;
    *byte = *byte;
  };
  for (std::int64_t offset = 0; offset < total_bytes; offset += page) rewrite(data + offset);
  rewrite(data + total_bytes - 1);
}

absl::Status commit(std::byte* data, std::int64_t total_bytes) {
  if (total_bytes <= 0) return absl::OkStatus();
  if (!kernel_populates()) {
    touch(data, total_bytes);
    return absl::OkStatus();
  }
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  const std::uintptr_t first = address & ~(page_bytes() - 1);
  const int error = populate(first, address + static_cast<std::uintptr_t>(total_bytes) - first);
  if (error == 0) return absl::OkStatus();
  return make_error(ErrorClass::kMemory, "the kernel could not commit " + bytes_text(total_bytes) +
                                             " (" + std::strerror(error) +
                                             "); ask for a smaller shape or free some memory");
}

}  // namespace gridbuf::pages
