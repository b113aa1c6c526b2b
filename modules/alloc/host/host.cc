module;

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "modules/base/process_wide.h"

module gridbuf.alloc.host;

import gridbuf.alloc;

namespace gridbuf {
namespace {

// kMemory. Without memory for its message the status is bare.
absl::Status no_small_block(const AllocationRequest& request, std::string_view cause) noexcept {
  try {
    return out_of_memory(request, "host", cause);
  } catch (const std::bad_alloc&) {
    return absl::Status(absl::StatusCode::kResourceExhausted, "");
  }
}

void* allocate_from_libc(std::size_t bytes, bool zeroed) {
  return zeroed ? std::calloc(bytes, 1) : std::malloc(bytes);
}

}  // namespace

absl::StatusOr<Block> HostResource::allocate(const AllocationRequest& request) {
  return request.total_bytes >= large_block_bytes_ ? allocate_large(request, {})
                                                   : allocate_small(request);
}

absl::StatusOr<Block> HostResource::allocate_small(const AllocationRequest& request) {
  const absl::StatusOr<Placement> placement = place(request);
  if (!placement.ok()) return placement.status();
  const auto bytes = static_cast<std::size_t>(placement->block_bytes);
  void* allocation = allocate_from_libc(bytes, request.zeroed);
  if (allocation == nullptr && trim() > 0) {
    allocation = allocate_from_libc(bytes, request.zeroed);
  }
  if (allocation == nullptr) {
    return no_small_block(request, "the C library has no block of that length");
  }
  absl::StatusOr<Block> block(
      absl::in_place, place_in(*placement, static_cast<std::byte*>(allocation)),
      request.total_bytes,
      Block::Allocation{
          .address = allocation,
          .allocation_bytes = placement->block_bytes,
          .release = [](void* /*context*/, void* address) noexcept { std::free(address); },
          .info = {.resource_name = "host"}});
  if (request.populate) {
    const absl::Status status = pages::commit(block->data(), block->total_bytes());
    if (!status.ok()) return no_small_block(request, status.message());
  }
  if (poisons() && !request.zeroed) {
    std::memset(block->data(), static_cast<int>(kPoison),
                static_cast<std::size_t>(request.total_bytes));
  }
  return block;
}

HostResource& host_resource() {
  static auto& resource = process_wide<HostResource>("host", []() -> void* {
    auto* const made = new HostResource;
    made->survive_forks();
    return made;
  });
  return resource;
}
// Before any thread: see modules/base/fork.h.
[[maybe_unused]] const HostResource& resource_at_load = host_resource();

}  // namespace gridbuf
