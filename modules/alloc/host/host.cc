module;

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.alloc.host;

import gridbuf.alloc;
import gridbuf.alloc.pages;
import gridbuf.error;
import gridbuf.system;

namespace gridbuf {
namespace {

// Below this, reading the system's reports would cost far more than it could save.
constexpr std::int64_t kReportedCommitBytes = std::int64_t{1} << 20;

void release_to_libc(void* /*context*/, void* allocation) noexcept { std::free(allocation); }

// Refuses what the machine cannot hold, before anything is touched.
absl::Status check_committable(const AllocationRequest& request) {
  if (request.total_bytes < kReportedCommitBytes) return absl::OkStatus();
  const std::int64_t committable = system::committable_bytes();
  if (request.total_bytes <= committable) return absl::OkStatus();
  return out_of_memory(
      request, "host",
      "populate was asked for and only " + bytes_text(committable) + " could be committed now");
}

}  // namespace

absl::StatusOr<Block> HostResource::allocate(const AllocationRequest& request) {
  const absl::StatusOr<Placement> placement = place(request);
  if (!placement.ok()) return placement.status();
  if (request.populate) {
    if (absl::Status status = check_committable(request); !status.ok()) return status;
  }
  const auto bytes = static_cast<std::size_t>(placement->block_bytes);
  void* allocation = request.zeroed ? std::calloc(bytes, 1) : std::malloc(bytes);
  if (allocation == nullptr) {
    return out_of_memory(request, name(), "the C library has no block of that length");
  }
  Block block(
      place_in(*placement, static_cast<std::byte*>(allocation)), request.total_bytes,
      {allocation, placement->block_bytes, &release_to_libc, nullptr, {.resource_name = "host"}});
  if (request.populate) {
    if (absl::Status status = pages::commit(block.data(), block.total_bytes()); !status.ok()) {
      return out_of_memory(request, name(), status.message());
    }
  }
  return block;
}

HostResource& host_resource() {
  static HostResource& resource = *new HostResource;
  return resource;
}

}  // namespace gridbuf
