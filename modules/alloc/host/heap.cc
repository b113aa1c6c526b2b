module;

#include <malloc.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
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

// The bytes from `data` to the end of its allocation.
std::size_t capacity_of(const Header& header, const void* data) {
  const auto* const begin = static_cast<const std::byte*>(data);
  if (!header.is_large()) {
    const auto* const block = static_cast<const std::byte*>(header.block());
    return malloc_usable_size(header.block()) - static_cast<std::size_t>(begin - block);
  }
  const Block& block = header.large();
  return static_cast<std::size_t>(block.data() + block.total_bytes() - begin);
}

}  // namespace

// glibc gives freed memory back to the system if it is twice as long as the longest block that it
// freed. Large blocks are not glibc's here, so it would return the memory of a few arrays of 1 MiB
// at every turn of a loop. One freed block without pages keeps it from that.
Heap::Heap(HostResource& resource, const Options& options)
    : resource_(resource), options_(options) {
  if (!kSanitized && options_.keep && resource.keeps_blocks()) {
    free_to_libc(allocate_from_libc(kFreedOnceBytes, false), false);
  }
}

void* Heap::allocate(std::size_t bytes, bool zeroed) noexcept {
  bytes = std::max<std::size_t>(bytes, 1);
  if (bytes >= static_cast<std::size_t>(kLargeBlockBytes)) return allocate_large(bytes, zeroed);
  return allocate_small(bytes, zeroed);
}

// The C library's addresses are multiples of 16. So the next multiple of the alignment is 16 bytes
// or more behind the begin of the block.
void* Heap::allocate_small(std::size_t bytes, bool zeroed) noexcept {
  const auto alignment = static_cast<std::uintptr_t>(options_.alignment_bytes);
  const bool set_zeros = zeroed && bytes < kShortZerosBytes;
  void* block = allocate_from_libc(bytes + alignment, zeroed && !set_zeros);
  if (block == nullptr && resource_.trim() > 0) {
    block = allocate_from_libc(bytes + alignment, zeroed && !set_zeros);
  }
  if (block == nullptr) return nullptr;
  const auto address = reinterpret_cast<std::uintptr_t>(block);
  const std::uintptr_t offset = alignment - (address & (alignment - 1));
  std::byte* const data = static_cast<std::byte*>(block) + offset;
  if (set_zeros) std::memset(data, 0, bytes);
  if (!zeroed && resource_.poisons()) std::memset(data, static_cast<int>(kPoison), bytes);
  return write_header(data, address, bytes);
}

void* Heap::allocate_large(std::size_t bytes, bool zeroed) noexcept {
  const std::int64_t before_bytes = std::max(options_.alignment_bytes, kLargeHeaderBytes);
  if (bytes > static_cast<std::size_t>(checked::kMaxBytes)) return nullptr;
  const auto total_bytes = checked::add(static_cast<std::int64_t>(bytes), before_bytes);
  if (!total_bytes) return nullptr;
  absl::StatusOr<Block> block = resource_.allocate_large(
      {.total_bytes = *total_bytes, .alignment_bytes = options_.alignment_bytes, .zeroed = zeroed},
      {.huge_pages = options_.huge_pages, .keep = options_.keep, .lazy_zeros = true});
  if (!block.ok()) return nullptr;
  std::byte* const data = block->data() + before_bytes;
  std::byte* const place = data - kLargeHeaderBytes;
  return write_header(
      data, reinterpret_cast<std::uintptr_t>(new (place) Block(*std::move(block))) | kIsLarge,
      bytes);
}

void* Heap::reallocate(void* data, std::size_t bytes) noexcept {
  if (data == nullptr) return allocate(bytes, false);
  bytes = std::max<std::size_t>(bytes, 1);
  const Header header = read_header(data);
  const std::size_t capacity = capacity_of(header, data);
  const bool fits = bytes <= capacity;
  // A block that fits stays, unless more than half of it would be unused.
  void* const moved = fits && bytes >= capacity / 2 ? nullptr : allocate(bytes, false);
  if (moved == nullptr) {
    return fits ? write_header(static_cast<std::byte*>(data), header.origin, bytes) : nullptr;
  }
  std::memcpy(moved, data, std::min(header.bytes, bytes));
  release(data);
  return moved;
}

void Heap::release(void* data) noexcept {
  if (data == nullptr) return;
  const Header header = read_header(data);
  if (header.is_large()) {
    const Block released(std::move(header.large()));
    return;
  }
  unpoison_bytes(header_address(data), sizeof(Header));  // the C library reads it
  const auto alignment = static_cast<std::size_t>(options_.alignment_bytes);
  const bool long_enough = header.bytes + alignment >= kShortestSpareBytes;
  free_to_libc(header.block(), long_enough && resource_.keeps_blocks());
}

std::size_t Heap::bytes_of(const void* data) noexcept { return read_header(data).bytes; }

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
