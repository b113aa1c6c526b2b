// gridbuf.alloc.host: memory of this process, the small blocks and the large ones.
//
// Two sources behind one door, because no single one is good at both. Blocks below 2 MiB come from
// the C library: malloc of a slightly larger block plus an offset, calloc where zeros are asked
// for. glibc serves them four times faster than its aligned functions do; what we add is a few
// freed blocks of some kilobytes per thread, for which glibc has no list. From 2 MiB on, where the
// time of a block is the time of its pages, gridbuf.alloc.large takes over: huge pages, a cache of
// freed mappings, parallel first touch, staggered starts.
//
// The border is the length of a huge page: a shorter block could not have one. It is compared with
// what was asked for and not with what placement adds, so that equal requests go the same way.
//
// `host_resource` is the one that a process uses. It may be used at any time, from any thread and
// in a child after fork, and it is never destroyed: blocks may be released at any moment of the
// exit. Its kept mappings are given back when the C library has no memory for a small block, too.
module;

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

export module gridbuf.alloc.host;

import gridbuf.alloc.large;
import gridbuf.alloc;

export namespace gridbuf {

/// Blocks of this length and more have pages of their own.
inline constexpr std::int64_t kLargeBlockBytes = std::int64_t{1} << 21;

/// So many freed blocks of a thread, no shorter and no longer than this, wait for the next ones
/// that are shorter by an eighth at most. None waits while the cache of large ones is off, in
/// poison mode, and in builds with a sanitizer.
inline constexpr int kSpareBlocks = 4;
inline constexpr std::size_t kShortestSpareBytes = std::size_t{1} << 10;
inline constexpr std::size_t kLongestSpareBytes = std::size_t{1} << 15;
inline constexpr std::size_t kSpareWasteDivisor = 8;

/// What can be set, and what is counted: of large blocks. (Small ones are the C library's; counting
/// them would cost as much as they do.) `poison` holds for all.
using HostOptions = LargeOptions;
using HostStatistics = LargeStatistics;

class HostResource final : public MemoryResource {
 public:
  /// `source` is where the pages of large blocks come from: the kernel if null.
  explicit HostResource(const HostOptions& options = {}, PageSource* source = nullptr)
      : large_("host", options, source) {}

  /// Errors: kValue for a bad request; kMemory if there is none, or, with `populate`, if the
  /// machine or a cgroup could not commit that much (nothing is then touched).
  absl::StatusOr<Block> allocate(const AllocationRequest& request) override;

  std::string_view name() const noexcept override { return "host"; }

  HostOptions options() const { return large_.options(); }
  /// Error: kValue for negative limits.
  absl::Status configure(const HostOptions& options) { return large_.configure(options); }
  HostStatistics statistics() const { return large_.statistics(); }
  /// Gives kept mappings back until at most `keep_bytes` are left; returns how many bytes went.
  /// (Not counted: the calling thread's few small blocks, which go as well.)
  std::int64_t trim(std::int64_t keep_bytes = 0);
  /// How pages are chosen for large blocks now, for people.
  std::string page_policy_text() const { return large_.page_policy_text(); }
  /// Poison mode: fresh bytes hold kPoison, freed large blocks fault.
  bool poisons() const { return large_.poisons(); }

 private:
  friend HostResource& host_resource();

  bool keeps_blocks() const { return large_.keeps_blocks(); }
  static void release_small(void* self, void* allocation) noexcept;
  absl::StatusOr<Block> allocate_small(const AllocationRequest& request);
  void survive_forks();

  LargeResource large_;
};

/// The process's host memory. Never destroyed.
HostResource& host_resource();

}  // namespace gridbuf
