module;

#include <malloc.h>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "modules/base/process_wide.h"
#include "modules/base/thread_word.h"

module gridbuf.alloc.host;

import gridbuf.alloc;

namespace gridbuf {
namespace {

// Small blocks begin with the room for the count of their owners. Not with AddressSanitizer, which
// would then miss writes before the elements.
#if __has_feature(address_sanitizer)
constexpr std::int64_t kRoomBytes = 0;
#else
constexpr std::int64_t kRoomBytes = kOwnerRoomBytes;
#endif

constexpr std::size_t kLongestSpareBytes = std::size_t{1} << 15;

// Freed blocks of a few kilobytes, for the next requests of their length (or up to an eighth
// shorter) on this thread. The C library has such a list only for blocks up to a kilobyte; longer
// blocks take three to six times as many instructions.
//
// Not a thread-local variable: in a loaded library these take memory at their first use in a
// thread, and the C library ends the process if there is none.
class SpareBlocks {
 public:
  SpareBlocks() noexcept = default;
  SpareBlocks(const SpareBlocks&) = delete;
  SpareBlocks& operator=(const SpareBlocks&) = delete;
  ~SpareBlocks() { clear(); }

  // Those of this thread; null if it does not have any.
  static SpareBlocks* of_thread() noexcept { return reinterpret_cast<SpareBlocks*>(word().get()); }

  // As above, made if there are none. Null without memory.
  static SpareBlocks* make_of_thread() noexcept {
    if (SpareBlocks* const made = of_thread(); made != nullptr) return made;
    auto* const made = new (std::nothrow) SpareBlocks;
    if (made == nullptr || word().set(reinterpret_cast<std::uintptr_t>(made))) return made;
    delete made;
    return nullptr;
  }

  void* take(std::size_t bytes) noexcept {
    for (int place = count_ - 1; place >= 0; --place) {  // the last block is still in the caches
      const std::size_t length = blocks_[place].length_bytes;
      if (length >= bytes && length - bytes <= bytes / 8) return remove(place);
    }
    return nullptr;
  }

  void give(void* block, std::size_t length) noexcept {
    if (count_ == kCapacity) std::free(remove(0));
    blocks_[count_++] = {block, length};
  }

  void clear() noexcept {
    while (count_ > 0) std::free(remove(count_ - 1));
  }

 private:
  // The C library deletes the blocks when a thread ends, also those that are made meanwhile.
  static const ThreadWord& word() noexcept {
    static const auto& word = process_wide<ThreadWord>("spare blocks", []() -> void* {
      return new ThreadWord([](void* blocks) { delete static_cast<SpareBlocks*>(blocks); });
    });
    return word;
  }

  struct Spare {
    void* block;
    std::size_t length_bytes;
  };

  void* remove(int place) noexcept {
    void* const block = blocks_[place].block;
    for (--count_; place < count_; ++place) blocks_[place] = blocks_[place + 1];
    return block;
  }

  static constexpr int kCapacity = 4;
  Spare blocks_[kCapacity] = {};
  int count_ = 0;
};

// Before any thread: see modules/base/fork.h.
[[maybe_unused]] const SpareBlocks* const spares_at_load = SpareBlocks::of_thread();

// False if the block is not kept.
bool keep_block(void* block) noexcept {
  const std::size_t length = malloc_usable_size(block);
  if (kSanitized || length < kShortestSpareBytes || length > kLongestSpareBytes) return false;
  SpareBlocks* const blocks = SpareBlocks::make_of_thread();
  if (blocks != nullptr) blocks->give(block, length);
  return blocks != nullptr;
}

// kMemory. Without memory for its message the status is bare.
absl::Status no_small_block(const AllocationRequest& request, std::string_view cause) noexcept {
  try {
    return out_of_memory(request, "host", cause);
  } catch (const std::bad_alloc&) {
    return absl::Status(absl::StatusCode::kResourceExhausted, "");
  }
}

}  // namespace

void* allocate_from_libc(std::size_t bytes, bool zeroed) {
  if (bytes >= kShortestSpareBytes && bytes <= kLongestSpareBytes) {
    SpareBlocks* const blocks = SpareBlocks::of_thread();
    void* const spare = blocks != nullptr ? blocks->take(bytes) : nullptr;
    if (spare != nullptr) return zeroed ? std::memset(spare, 0, bytes) : spare;
  }
  return zeroed ? std::calloc(bytes, 1) : std::malloc(bytes);
}

void free_to_libc(void* block, bool keep) noexcept {
  if (!keep || !keep_block(block)) std::free(block);
}

absl::StatusOr<Block> HostResource::allocate(const AllocationRequest& request) {
  return request.total_bytes >= large_block_bytes_ ? allocate_large(request, {})
                                                   : allocate_small(request);
}

absl::StatusOr<Block> HostResource::allocate_small(const AllocationRequest& request) {
  const absl::StatusOr<Placement> placement = place(request);
  if (!placement.ok()) return placement.status();
  const std::int64_t allocation_bytes = placement->block_bytes + kRoomBytes;
  const auto bytes = static_cast<std::size_t>(allocation_bytes);
  void* allocation = allocate_from_libc(bytes, request.zeroed);
  if (allocation == nullptr && trim() > 0) {
    allocation = allocate_from_libc(bytes, request.zeroed);
  }
  if (allocation == nullptr) {
    return no_small_block(request, "the C library has no block of that length");
  }
  absl::StatusOr<Block> block(
      absl::in_place, place_in(*placement, static_cast<std::byte*>(allocation) + kRoomBytes),
      request.total_bytes,
      Block::Allocation{.address = allocation,
                        .allocation_bytes = allocation_bytes,
                        .release = &release_small,
                        .context = this,
                        .info = {.resource_name = "host"},
                        .owner_room = kRoomBytes > 0 ? allocation : nullptr});
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

void HostResource::release_small(void* self, void* allocation) noexcept {
  free_to_libc(allocation, static_cast<HostResource*>(self)->keeps_blocks());
}

void HostResource::free_spare_blocks() noexcept {
  if (SpareBlocks* const blocks = SpareBlocks::of_thread(); blocks != nullptr) blocks->clear();
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
