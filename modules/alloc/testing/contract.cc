module;

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.alloc.testing;

import gridbuf.alloc;
import gridbuf.base;

namespace gridbuf::testing {
namespace {

using Violations = std::vector<std::string>;

std::string text_of(const AllocationRequest& request) {
  std::string text = std::to_string(request.total_bytes) + " bytes, alignment " +
                     std::to_string(request.alignment_bytes) + " at byte " +
                     std::to_string(request.aligned_offset_bytes);
  if (request.zeroed) text += ", zeroed";
  if (request.populate) text += ", populated";
  return text;
}

std::uintptr_t address_of(const Block& block) {
  return reinterpret_cast<std::uintptr_t>(block.data());
}

// Allocates, or notes the violation and gives an empty block.
Block must_allocate(MemoryResource& resource, const AllocationRequest& request,
                    Violations& violations) {
  absl::StatusOr<Block> block = resource.allocate(request);
  if (!block.ok()) {
    violations.push_back(text_of(request) + ": refused: " + block.status().ToString());
    return {};
  }
  if (!*block) violations.push_back(text_of(request) + ": data is null");
  if (block->total_bytes() != request.total_bytes) {
    violations.push_back(text_of(request) + ": total_bytes is " +
                         std::to_string(block->total_bytes()));
  }
  return *std::move(block);
}

AllocationRequest random_request(std::mt19937_64& random, std::int64_t most_bytes) {
  const auto below = [&random](std::int64_t bound) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(bound));
  };
  AllocationRequest request;
  request.total_bytes = below(most_bytes + 1);
  // Mostly small alignments, sometimes up to 2^14. A separate check has larger alignments.
  request.alignment_bytes = 1 + below(std::int64_t{1} << below(15));
  request.aligned_offset_bytes = below(request.total_bytes + 1);
  request.zeroed = below(2) == 0;
  return request;
}

constexpr std::array<std::int64_t, 22> kAlignments{1,
                                                   2,
                                                   3,
                                                   4,
                                                   5,
                                                   6,
                                                   7,
                                                   8,
                                                   12,
                                                   16,
                                                   24,
                                                   32,
                                                   48,
                                                   63,
                                                   64,
                                                   65,
                                                   100,
                                                   128,
                                                   4096,
                                                   65535,
                                                   kMaxAlignmentBytes - 1,
                                                   kMaxAlignmentBytes};

Violations has_a_name(MemoryResource& resource, ByteAccess& /*bytes*/) {
  return resource.name().empty() ? Violations{"name() is empty"} : Violations{};
}

Violations aligns_any_integer(MemoryResource& resource, ByteAccess& /*bytes*/) {
  Violations violations;
  for (const std::int64_t alignment : kAlignments) {
    for (const std::int64_t offset : {0, 1, 8, 40, 4095}) {
      const AllocationRequest request{
          .total_bytes = offset + 9, .alignment_bytes = alignment, .aligned_offset_bytes = offset};
      const Block block = must_allocate(resource, request, violations);
      const std::uintptr_t excess = (address_of(block) + static_cast<std::uintptr_t>(offset)) %
                                    static_cast<std::uintptr_t>(alignment);
      if (excess != 0)
        violations.push_back(text_of(request) + ": off by " + std::to_string(excess));
    }
  }
  return violations;
}

Violations aligns_random_requests(MemoryResource& resource, ByteAccess& /*bytes*/) {
  Violations violations;
  std::mt19937_64 random(20261121);
  for (int i = 0; i < 2000; ++i) {
    const AllocationRequest request = random_request(random, 4000);
    const Block block = must_allocate(resource, request, violations);
    const std::uintptr_t aligned =
        address_of(block) + static_cast<std::uintptr_t>(request.aligned_offset_bytes);
    const std::uintptr_t excess = aligned % static_cast<std::uintptr_t>(request.alignment_bytes);
    if (excess != 0) violations.push_back(text_of(request) + ": off by " + std::to_string(excess));
  }
  return violations;
}

Violations starts_unconstrained_blocks_on_a_cache_line(MemoryResource& resource,
                                                       ByteAccess& /*bytes*/) {
  Violations violations;
  for (const std::int64_t total_bytes : {0, 1, 63, 64, 65, 1000, 100000}) {
    const AllocationRequest request{.total_bytes = total_bytes, .aligned_offset_bytes = 24};
    const Block block = must_allocate(resource, request, violations);
    const std::uintptr_t excess = address_of(block) % kUnconstrainedAlignmentBytes;
    if (excess != 0) violations.push_back(text_of(request) + ": off by " + std::to_string(excess));
  }
  return violations;
}

Violations aligns_elements_where_the_request_leaves_room(MemoryResource& resource,
                                                         ByteAccess& /*bytes*/) {
  Violations violations;
  for (const std::int64_t alignment : {3, 5, 12, 24, 1000, 4095}) {
    for (const std::int64_t index : {0, 1, 2, 5}) {
      const AllocationRequest request{
          .total_bytes = 256, .alignment_bytes = alignment, .aligned_offset_bytes = index * 8};
      const Block block = must_allocate(resource, request, violations);
      if (address_of(block) % 8 != 0) {
        violations.push_back(text_of(request) + ": 8-byte elements are not aligned");
      }
    }
  }
  return violations;
}

Violations repeats_the_address_modulo_the_alignment(MemoryResource& resource,
                                                    ByteAccess& /*bytes*/) {
  Violations violations;
  std::mt19937_64 random(23);
  for (int i = 0; i < 100; ++i) {
    const AllocationRequest request = random_request(random, 2000);
    const Block first = must_allocate(resource, request, violations);
    const Block second = must_allocate(resource, request, violations);
    const auto alignment = static_cast<std::uintptr_t>(request.alignment_bytes);
    if (address_of(first) % alignment != address_of(second) % alignment) {
      violations.push_back(text_of(request) + ": two starts differ modulo the alignment");
    }
  }
  return violations;
}

Violations serves_zero_bytes(MemoryResource& resource, ByteAccess& /*bytes*/) {
  Violations violations;
  std::vector<Block> blocks;
  for (const std::int64_t alignment : {1, 7, 64}) {
    for (const bool flag : {false, true}) {
      blocks.push_back(must_allocate(
          resource,
          {.total_bytes = 0, .alignment_bytes = alignment, .zeroed = flag, .populate = flag},
          violations));
    }
  }
  return violations;
}

Violations zeroes_reused_memory(MemoryResource& resource, ByteAccess& bytes) {
  Violations violations;
  for (const std::int64_t total_bytes : {1, 8, 100, 1000, 5000, 200000, 3000000}) {
    for (const bool populate : {false, true}) {
      AllocationRequest request{.total_bytes = total_bytes, .alignment_bytes = 48};
      {
        const Block dirty = must_allocate(resource, request, violations);
        bytes.fill(dirty.data(), dirty.total_bytes(), std::byte{0xFF});
      }
      request.zeroed = true;
      request.populate = populate;
      const Block block = must_allocate(resource, request, violations);
      if (!bytes.holds(block.data(), block.total_bytes(), std::byte{0}))
        violations.push_back(text_of(request) + ": not all bytes are 0");
    }
  }
  return violations;
}

Violations lends_every_byte_to_one_block(MemoryResource& resource, ByteAccess& bytes) {
  Violations violations;
  std::mt19937_64 random(7);
  std::vector<Block> blocks;
  for (int i = 0; i < 250; ++i) {
    blocks.push_back(must_allocate(resource, random_request(random, 3000), violations));
    bytes.fill(blocks.back().data(), blocks.back().total_bytes(), static_cast<std::byte>(i));
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (!bytes.holds(blocks[i].data(), blocks[i].total_bytes(), static_cast<std::byte>(i))) {
      violations.push_back("block " + std::to_string(i) + " shares bytes with another");
    }
  }
  return violations;
}

Violations refuses_bad_requests(MemoryResource& resource, ByteAccess& /*bytes*/) {
  Violations violations;
  const std::array<AllocationRequest, 6> bad{{
      {.total_bytes = -1},
      {.total_bytes = 8, .alignment_bytes = 0},
      {.total_bytes = 8, .alignment_bytes = -64},
      {.total_bytes = 8, .alignment_bytes = kMaxAlignmentBytes + 1},
      {.total_bytes = 8, .aligned_offset_bytes = -8},
      {.total_bytes = INT64_MAX},
  }};
  for (const AllocationRequest& request : bad) {
    const absl::StatusOr<Block> block = resource.allocate(request);
    if (block.ok()) {
      violations.push_back(text_of(request) + ": accepted");
    } else if (error_class_of(block.status()) != ErrorClass::kValue) {
      violations.push_back(text_of(request) + ": not a value error: " + block.status().ToString());
    }
  }
  return violations;
}

Violations reports_want_of_memory(MemoryResource& resource, ByteAccess& /*bytes*/) {
  Violations violations;
  // More than the address space of any processor, whatever the system's overcommit policy.
  for (const bool flag : {false, true}) {
    const AllocationRequest request{
        .total_bytes = std::int64_t{1} << 58, .zeroed = flag, .populate = flag};
    const absl::StatusOr<Block> block = resource.allocate(request);
    if (block.ok()) {
      violations.push_back(text_of(request) + ": accepted");
      continue;
    }
    const std::string message(block.status().message());
    if (error_class_of(block.status()) != ErrorClass::kMemory) {
      violations.push_back(text_of(request) + ": not a memory error: " + message);
    }
    if (message.find("256.0 PiB") == std::string::npos) {
      violations.push_back("the message does not say how much was asked for: " + message);
    }
  }
  must_allocate(resource, {.total_bytes = 100}, violations);
  return violations;
}

Violations releases_on_another_thread(MemoryResource& resource, ByteAccess& /*bytes*/) {
  Violations violations;
  std::vector<Block> blocks;
  for (int i = 0; i < 100; ++i) {
    blocks.push_back(must_allocate(resource, {.total_bytes = i * 37}, violations));
  }
  std::thread([blocks = std::move(blocks)]() mutable { blocks.clear(); }).join();
  return violations;
}

Violations serves_threads_at_once(MemoryResource& resource, ByteAccess& bytes) {
  constexpr int kThreads = 4;
  std::array<Violations, kThreads> found;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&resource, &bytes, &mine = found[static_cast<std::size_t>(t)], t] {
      std::mt19937_64 random(static_cast<std::uint64_t>(t));
      std::vector<Block> held(8);
      for (int i = 0; i < 400; ++i) {
        Block block = must_allocate(resource, random_request(random, 2000), mine);
        bytes.fill(block.data(), block.total_bytes(), static_cast<std::byte>(t));
        Block& slot = held[random() % held.size()];
        if (!bytes.holds(slot.data(), slot.total_bytes(), static_cast<std::byte>(t))) {
          mine.push_back("thread " + std::to_string(t) + " found another's bytes in its block");
        }
        slot = std::move(block);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  Violations all;
  for (const Violations& violations : found)
    all.insert(all.end(), violations.begin(), violations.end());
  return all;
}

constexpr std::array<ContractCheck, 13> kContract{{
    {"HasAName", "messages can name the resource", &has_a_name},
    {"AlignsAnyInteger", "(data + offset) is a multiple of any alignment up to 2^20",
     &aligns_any_integer},
    {"AlignsRandomRequests", "the same for 2000 random requests", &aligns_random_requests},
    {"StartsUnconstrainedBlocksOnACacheLine", "alignment 1 gives a start on 64 bytes",
     &starts_unconstrained_blocks_on_a_cache_line},
    {"AlignsElements", "an odd alignment keeps the alignment of elements",
     &aligns_elements_where_the_request_leaves_room},
    {"RepeatsTheAddressModuloTheAlignment", "equal requests start equal modulo the alignment",
     &repeats_the_address_modulo_the_alignment},
    {"ServesZeroBytes", "0 bytes are legal and data is not null", &serves_zero_bytes},
    {"ZeroesReusedMemory", "zeroed memory is zero, even if it was used before",
     &zeroes_reused_memory},
    {"LendsEveryByteToOneBlock", "blocks never overlap and are writable to the last byte",
     &lends_every_byte_to_one_block},
    {"RefusesBadRequests", "a bad request is a value error", &refuses_bad_requests},
    {"ReportsOutOfMemory", "lack of memory is a memory error, and the resource goes on",
     &reports_want_of_memory},
    {"ReleasesOnAnotherThread", "a block may be released on any thread",
     &releases_on_another_thread},
    {"ServesThreadsAtOnce", "allocate and release are safe on any thread", &serves_threads_at_once},
}};

class HostAccess final : public ByteAccess {
 public:
  void fill(std::byte* begin, std::int64_t length_bytes, std::byte value) override {
    std::fill_n(begin, length_bytes, value);
  }
  bool holds(const std::byte* begin, std::int64_t length_bytes, std::byte value) override {
    return std::all_of(begin, begin + length_bytes,
                       [value](std::byte byte) { return byte == value; });
  }
};

}  // namespace

ByteAccess& host_access() {
  static HostAccess access;
  return access;
}

std::span<const ContractCheck> resource_contract() { return kContract; }

}  // namespace gridbuf::testing
