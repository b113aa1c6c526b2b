module;

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.alloc;

import gridbuf.base;
import gridbuf.layout.sizes;

namespace gridbuf {
namespace {

absl::Status check(const AllocationRequest& request) {
  if (request.total_bytes < 0) {
    return make_error(ErrorClass::kValue, {"total_bytes", std::to_string(request.total_bytes),
                                           "0 or more", "check how the size was computed"});
  }
  if (request.alignment_bytes < 1 || request.alignment_bytes > kMaxAlignmentBytes) {
    return make_error(
        ErrorClass::kValue,
        {"alignment_bytes", std::to_string(request.alignment_bytes),
         "an integer from 1 to " + std::to_string(kMaxAlignmentBytes), "pass 1 for no constraint"});
  }
  if (request.aligned_offset_bytes < 0) {
    return make_error(ErrorClass::kValue,
                      {"aligned_offset_bytes", std::to_string(request.aligned_offset_bytes),
                       "0 or more", "count it from element (0, ..., 0)"});
  }
  return absl::OkStatus();
}

// The smallest number that is `remainder` modulo `modulus` and a multiple of `multiple`, which must
// exist. Takes at most multiple / gcd steps.
std::int64_t next_multiple(std::int64_t remainder, std::int64_t modulus, std::int64_t multiple) {
  while (remainder % multiple != 0) remainder += modulus;
  return remainder;
}

Placement unsized_placement(std::int64_t alignment, std::int64_t offset) {
  if (alignment == 1) return {kUnconstrainedAlignmentBytes, 0, 0};
  const std::int64_t remainder = (alignment - offset % alignment) % alignment;
  const std::int64_t power_of_two = alignment & -alignment;
  // The request may fix the low bits of the address. If it does not (3, 12, …), the start also gets
  // the alignment of elements.
  const bool decided = power_of_two >= kElementAlignmentBytes || remainder % power_of_two != 0;
  if (decided) return {alignment, remainder, 0};
  return {alignment / power_of_two * kElementAlignmentBytes,
          next_multiple(remainder, alignment, kElementAlignmentBytes), 0};
}

}  // namespace

absl::StatusOr<Placement> place(const AllocationRequest& request) {
  if (absl::Status status = check(request); !status.ok()) return status;
  Placement placement = unsized_placement(request.alignment_bytes, request.aligned_offset_bytes);
  const std::optional<std::int64_t> block_bytes =
      checked::add(request.total_bytes, placement.modulus_bytes - 1);
  if (!block_bytes) {
    return make_error(ErrorClass::kValue,
                      {"total_bytes", bytes_text(request.total_bytes),
                       "at most " + bytes_text(checked::kMaxBytes) + " with " +
                           bytes_text(placement.modulus_bytes - 1) + " for the alignment",
                       "ask for a smaller shape"});
  }
  placement.block_bytes = *block_bytes;
  return placement;
}

std::byte* place_in(const Placement& placement, std::byte* block) {
  const auto modulus = static_cast<std::uint64_t>(placement.modulus_bytes);
  const auto remainder = static_cast<std::uint64_t>(placement.remainder_bytes);
  const auto address = reinterpret_cast<std::uintptr_t>(block);
  // A 64-bit division costs as much as a small malloc, and nearly every alignment is a power of
  // two.
  if ((modulus & (modulus - 1)) == 0) return block + ((remainder - address) & (modulus - 1));
  const std::uint64_t found = address % modulus;
  return block + (found <= remainder ? remainder - found : modulus - found + remainder);
}

absl::StatusOr<Owner> share(Block&& block) {
  const std::byte* const data = block.data();
  try {
    return Owner(std::make_shared<Block>(std::move(block)), data);
  } catch (const std::bad_alloc&) {
    return make_error(ErrorClass::kMemory,
                      "no memory for the owner of a block; free some arrays and try again");
  }
}

absl::Status out_of_memory(const AllocationRequest& request, std::string_view resource_name,
                           std::string_view cause) {
  std::string message = "cannot allocate " + bytes_text(request.total_bytes);
  message.append(" with alignment ").append(std::to_string(request.alignment_bytes));
  message.append(" at byte ").append(std::to_string(request.aligned_offset_bytes));
  message.append(" from ").append(resource_name).append(": ").append(cause);
  message.append("; ask for a smaller shape or free some arrays");
  return make_error(ErrorClass::kMemory, message);
}

}  // namespace gridbuf
