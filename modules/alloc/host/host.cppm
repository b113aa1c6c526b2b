// gridbuf.alloc.host: memory of this process, from the C library.
//
// malloc of a slightly larger block plus an offset, calloc where zeros are asked for. That is all
// on purpose. glibc serves small blocks from per-thread lists in about 25 ns, four times faster
// than its aligned functions, and calloc of a large block is fresh pages of the kernel that are
// zero already: nothing is written and nothing is committed until the first touch. Pools and huge
// pages belong to a resource above this one.
//
// The resource has no state. It may be used before and after main, from any thread, in a child
// after fork, and its blocks may outlive everything but the process.
module;

#include <string_view>

#include "absl/status/statusor.h"

export module gridbuf.alloc.host;

import gridbuf.alloc;

export namespace gridbuf {

class HostResource final : public MemoryResource {
 public:
  /// Errors: kValue for a bad request; kMemory if the C library has none, or, with `populate`, if
  /// the machine or a cgroup could not commit that much (nothing is then touched).
  absl::StatusOr<Block> allocate(const AllocationRequest& request) override;

  std::string_view name() const noexcept override { return "host"; }
};

/// The process's host memory. Never destroyed, so blocks may be released at any moment of the exit.
HostResource& host_resource();

}  // namespace gridbuf
