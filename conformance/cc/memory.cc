#include "conformance/cc/memory.h"

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <limits>
#include <string>

namespace gridbuf::conformance {

MemoryMap MemoryMap::now() {
  MemoryMap map;
  std::ifstream file("/proc/self/maps");
  for (std::string line; std::getline(file, line);) {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    char permissions[5] = {};
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %4s", &begin, &end, permissions) ==
        3) {
      map.ranges_.push_back(
          {begin, end, permissions[0] == 'r', permissions[1] == 'w', permissions[2] == 'x'});
    }
  }
  return map;
}

template <class Permission>
bool MemoryMap::covers(std::uintptr_t begin, std::uint64_t bytes, Permission permits) const {
  if (bytes > std::numeric_limits<std::uintptr_t>::max() - begin) return false;
  const std::uintptr_t end = begin + bytes;
  for (const Range& range : ranges_) {
    if (range.end <= begin) continue;
    if (range.begin > begin || !permits(range)) return false;
    if (range.end >= end) return true;
    begin = range.end;
  }
  return false;
}

bool MemoryMap::is_readable(std::uintptr_t begin, std::uint64_t bytes) const {
  return covers(begin, bytes, [](const Range& range) { return range.read; });
}

bool MemoryMap::is_writable(std::uintptr_t begin, std::uint64_t bytes) const {
  return covers(begin, bytes, [](const Range& range) { return range.write; });
}

bool MemoryMap::is_executable(std::uintptr_t address) const {
  return covers(address, 1, [](const Range& range) { return range.execute; });
}

}  // namespace gridbuf::conformance
