module;

#include <pthread.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.alloc.host;

import gridbuf.alloc;
import gridbuf.alloc.large;
import gridbuf.alloc.pages;

namespace gridbuf {
namespace {

// Small blocks begin with the room for the count of their owners. Not with the address sanitizer,
// which could not see that somebody writes before the elements.
#if __has_feature(address_sanitizer)
constexpr std::int64_t kRoomBytes = 0;
#else
constexpr std::int64_t kRoomBytes = kOwnerRoomBytes;
#endif

void release_to_libc(void* /*context*/, void* allocation) noexcept { std::free(allocation); }

void* allocate_from_libc(std::size_t bytes, bool zeroed) {
  return zeroed ? std::calloc(bytes, 1) : std::malloc(bytes);
}

// kMemory; a bare status where there is no memory for the message.
absl::Status no_small_block(const AllocationRequest& request, std::string_view cause) noexcept {
  try {
    return out_of_memory(request, "host", cause);
  } catch (const std::bad_alloc&) {
    return absl::Status(absl::StatusCode::kResourceExhausted, "");
  }
}

}  // namespace

absl::StatusOr<Block> HostResource::allocate(const AllocationRequest& request) {
  if (request.total_bytes >= kLargeBlockBytes) return large_.allocate(request);
  return allocate_small(request);
}

absl::StatusOr<Block> HostResource::allocate_small(const AllocationRequest& request) {
  const absl::StatusOr<Placement> placement = place(request);
  if (!placement.ok()) return placement.status();
  const std::int64_t allocation_bytes = placement->block_bytes + kRoomBytes;  // Few.
  const auto bytes = static_cast<std::size_t>(allocation_bytes);
  void* allocation = allocate_from_libc(bytes, request.zeroed);
  if (allocation == nullptr && large_.trim() > 0) {
    allocation = allocate_from_libc(bytes, request.zeroed);
  }
  if (allocation == nullptr) {
    return no_small_block(request, "the C library has no block of that length");
  }
  Block block(place_in(*placement, static_cast<std::byte*>(allocation) + kRoomBytes),
              request.total_bytes,
              {.address = allocation,
               .allocation_bytes = allocation_bytes,
               .release = &release_to_libc,
               .facts = {.resource_name = "host"},
               .owner_room = kRoomBytes > 0 ? allocation : nullptr});
  if (request.populate) {
    const absl::Status status = pages::commit(block.data(), block.total_bytes());
    if (!status.ok()) return no_small_block(request, status.message());
  }
  if (poisons() && !request.zeroed) {
    std::memset(block.data(), static_cast<int>(kPoison),
                static_cast<std::size_t>(request.total_bytes));
  }
  return block;
}

// Called once, for the process's own resource: handlers of a fork cannot be taken back.
void HostResource::survive_forks() {
  pthread_atfork([] { host_resource().large_.lock_for_fork(); },
                 [] { host_resource().large_.unlock_in_parent(); },
                 [] { host_resource().large_.unlock_in_child(); });
}

HostResource& host_resource() {
  static HostResource& resource = *[] {
    auto* const made = new HostResource;
    made->survive_forks();
    return made;
  }();
  return resource;
}

}  // namespace gridbuf
