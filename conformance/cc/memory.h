// The memory map of the process, which the suite reads before it follows an address of a tensor.
#ifndef GRIDBUF_CONFORMANCE_CC_MEMORY_H_
#define GRIDBUF_CONFORMANCE_CC_MEMORY_H_

#include <cstdint>
#include <vector>

namespace gridbuf::conformance {

/// The process's memory at one moment, from /proc/self/maps.
class MemoryMap {
 public:
  static MemoryMap now();

  /// Whether the system told anything; elsewhere than on Linux it does not, and no address is
  /// followed.
  bool is_known() const { return !ranges_.empty(); }
  bool is_readable(std::uintptr_t begin, std::uint64_t bytes) const;
  bool is_writable(std::uintptr_t begin, std::uint64_t bytes) const;
  bool is_executable(std::uintptr_t address) const;

 private:
  struct Range {
    std::uintptr_t begin;
    std::uintptr_t end;
    bool read;
    bool write;
    bool execute;
  };
  template <class Permission>
  bool covers(std::uintptr_t begin, std::uint64_t bytes, Permission permits) const;

  std::vector<Range> ranges_;  // ascending
};

}  // namespace gridbuf::conformance

#endif  // GRIDBUF_CONFORMANCE_CC_MEMORY_H_
