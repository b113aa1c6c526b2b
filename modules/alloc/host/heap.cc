module;

#include <malloc.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"

module gridbuf.alloc.host;

import gridbuf.alloc;
import gridbuf.layout.sizes;

namespace gridbuf {
namespace {

constexpr std::uintptr_t kIsLarge = 1;

// The 16 bytes before the data.
struct Header {
  std::uintptr_t origin;  // the address of the C library's block, or of a `Block` plus kIsLarge
  std::size_t bytes;      // of the data

  bool is_large() const { return (origin & kIsLarge) != 0; }
  void* block() const { return reinterpret_cast<void*>(origin); }
  Block& large() const { return *reinterpret_cast<Block*>(origin - kIsLarge); }
};
static_assert(sizeof(Header) == 16 && alignof(Block) <= 16);

// glibc counts blocks up to 32 MiB.
constexpr std::size_t kFreedOnceBytes = std::size_t{16} << 20;
// For shorter blocks than this, glibc's malloc and memset take less time than its calloc.
constexpr std::size_t kShortZerosBytes = 1024;

// The memory before the data of a large block holds its Block and its header.
constexpr std::int64_t kLargeHeaderBytes = 128;
static_assert(sizeof(Block) + sizeof(Header) <= kLargeHeaderBytes);

std::byte* header_address(const void* data) {
  return static_cast<std::byte*>(const_cast<void*>(data)) - sizeof(Header);
}

Header& header_of(const void* data) {
  return *std::launder(reinterpret_cast<Header*>(header_address(data)));
}

// With AddressSanitizer the header is poisoned, so that a write before the data is found.
Header read_header(const void* data) {
  unpoison_bytes(header_address(data), sizeof(Header));
  const Header header = header_of(data);
  poison_bytes(header_address(data), sizeof(Header));
  return header;
}

void* write_header(std::byte* data, std::uintptr_t origin, std::size_t bytes) {
  unpoison_bytes(header_address(data), sizeof(Header));
  new (header_address(data)) Header{origin, bytes};
  poison_bytes(header_address(data), sizeof(Header));
  return data;
}

// The first multiple of the alignment that is 16 bytes or more behind the begin of the C library's
// block, whose address is a multiple of 16.
std::byte* data_in(void* block, std::int64_t alignment_bytes) {
  const auto alignment = static_cast<std::uintptr_t>(alignment_bytes);
  const std::uintptr_t past = reinterpret_cast<std::uintptr_t>(block) & (alignment - 1);
  return static_cast<std::byte*>(block) + (alignment - past);
}

}  // namespace

// glibc gives freed memory back to the system if it is twice as long as the longest block that it
// freed. Large blocks are not glibc's here, so it would return the memory of a few arrays of 1 MiB
// at every turn of a loop. One freed block without pages keeps it from that.
Heap::Heap(HostResource& resource, const Options& options)
    : resource_(resource), options_(options) {
  if (!kSanitized && options_.keep && resource.keeps_blocks()) {
    void* volatile block = std::malloc(kFreedOnceBytes);  // the compiler must not remove the pair
    std::free(block);
  }
}

void* Heap::allocate(std::size_t bytes, bool zeroed) noexcept {
  bytes = std::max<std::size_t>(bytes, 1);
  if (bytes >= static_cast<std::size_t>(kLargeBlockBytes)) return allocate_large(bytes, zeroed);
  return allocate_small(bytes, zeroed);
}

void* Heap::allocate_small(std::size_t bytes, bool zeroed) noexcept {
  const auto alignment = static_cast<std::size_t>(options_.alignment_bytes);
  const bool set_zeros = zeroed && bytes < kShortZerosBytes;
  const auto obtain = [&] {
    return zeroed && !set_zeros ? std::calloc(bytes + alignment, 1)
                                : std::malloc(bytes + alignment);
  };
  void* block = obtain();
  if (block == nullptr && resource_.trim() > 0) block = obtain();
  if (block == nullptr) return nullptr;
  std::byte* const data = data_in(block, options_.alignment_bytes);
  if (set_zeros) std::memset(data, 0, bytes);
  if (!zeroed && resource_.poisons()) std::memset(data, static_cast<int>(kPoison), bytes);
  return write_header(data, reinterpret_cast<std::uintptr_t>(block), bytes);
}

// The length of the Block with `bytes` of data; none if no block is that long.
std::optional<std::int64_t> Heap::large_bytes(std::size_t bytes) const noexcept {
  if (bytes > static_cast<std::size_t>(checked::kMaxBytes)) return std::nullopt;
  return checked::add(static_cast<std::int64_t>(bytes), large_offset());
}

// Writes the owner and the header of a large block before its data.
void* Heap::place_large(Block block, std::size_t bytes) const noexcept {
  std::byte* const data = block.data() + large_offset();
  auto* const owner = new (data - kLargeHeaderBytes) Block(std::move(block));
  return write_header(data, reinterpret_cast<std::uintptr_t>(owner) | kIsLarge, bytes);
}

std::int64_t Heap::large_offset() const noexcept {
  return std::max(options_.alignment_bytes, kLargeHeaderBytes);
}

void* Heap::allocate_large(std::size_t bytes, bool zeroed) noexcept {
  const std::optional<std::int64_t> total_bytes = large_bytes(bytes);
  if (!total_bytes) return nullptr;
  absl::StatusOr<Block> block = resource_.allocate_large(
      {.total_bytes = *total_bytes, .alignment_bytes = options_.alignment_bytes, .zeroed = zeroed},
      {.huge_pages = options_.huge_pages, .keep = options_.keep, .lazy_zeros = true});
  return block.ok() ? place_large(*std::move(block), bytes) : nullptr;
}

void* Heap::reallocate(void* data, std::size_t bytes) noexcept {
  if (data == nullptr) return allocate(bytes, false);
  bytes = std::max<std::size_t>(bytes, 1);
  const Header header = read_header(data);
  const bool is_large = bytes >= static_cast<std::size_t>(kLargeBlockBytes);
  if (header.is_large() == is_large && !resource_.poisons()) {
    void* const resized = is_large ? resize_large(data, bytes) : resize_small(data, bytes);
    if (resized != nullptr) return resized;
  }
  void* const moved = allocate(bytes, false);
  if (moved == nullptr) return nullptr;
  std::memcpy(moved, data, std::min(header.bytes, bytes));
  release(data);
  return moved;
}

// The C library keeps the distance from the begin of the block, but not the alignment.
void* Heap::resize_small(void* data, std::size_t bytes) noexcept {
  const Header header = read_header(data);
  const auto alignment = static_cast<std::size_t>(options_.alignment_bytes);
  const std::ptrdiff_t offset =
      static_cast<std::byte*>(data) - static_cast<std::byte*>(header.block());
  unpoison_bytes(header_address(data), sizeof(Header));  // the C library reads it
  void* const block = std::realloc(header.block(), bytes + alignment);
  if (block == nullptr) {
    write_header(static_cast<std::byte*>(data), header.origin, header.bytes);
    return nullptr;
  }
  const std::byte* const moved = static_cast<std::byte*>(block) + offset;
  std::byte* const place = data_in(block, options_.alignment_bytes);
  if (place != moved) std::memmove(place, moved, std::min(header.bytes, bytes));
  return write_header(place, reinterpret_cast<std::uintptr_t>(block), bytes);
}

void* Heap::resize_large(void* data, std::size_t bytes) noexcept {
  const std::optional<std::int64_t> total_bytes = large_bytes(bytes);
  if (!total_bytes) return nullptr;
  const Header header = read_header(data);
  Block block(std::move(header.large()));  // out of the memory that may move
  const bool resized = resource_.resize_large(block, *total_bytes);
  void* const place = place_large(std::move(block), resized ? bytes : header.bytes);
  return resized ? place : nullptr;
}

void Heap::release(void* data) noexcept {
  if (data == nullptr) return;
  const Header header = read_header(data);
  if (header.is_large()) {
    const Block released(std::move(header.large()));
    return;
  }
  unpoison_bytes(header_address(data), sizeof(Header));  // the C library reads it
  std::free(header.block());
}

Heap::BlockReport Heap::report(const void* data) const {
  const Header header = read_header(data);
  const auto bytes = static_cast<std::int64_t>(header.bytes);
  if (header.is_large()) {
    return {bytes, header.large().allocation_bytes(), header.large().info()};
  }
  const auto length = static_cast<std::int64_t>(malloc_usable_size(header.block()));
  return {bytes, length, {.resource_name = resource_.name()}};
}

}  // namespace gridbuf
