#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"

import gridbuf.alloc;
import gridbuf.alloc.host;
import gridbuf.alloc.testing;
import gridbuf.base;

extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }
extern "C" const char* __tsan_default_options() { return "allocator_may_return_null=1"; }

namespace gridbuf::testing {
namespace {

// A resource over the host's with one bug: it may change the request before and the block after an
// allocation.
class FaultyResource final : public MemoryResource {
 public:
  using Request = AllocationRequest (*)(AllocationRequest);
  using Answer = absl::StatusOr<Block> (*)(const AllocationRequest&, absl::StatusOr<Block>);

  FaultyResource(Request request, Answer answer) : request_(request), answer_(answer) {}
  absl::StatusOr<Block> allocate(const AllocationRequest& request) override {
    return answer_(request, host_resource().allocate(request_(request)));
  }
  std::string_view name() const noexcept override { return "faulty"; }

 private:
  Request request_;
  Answer answer_;
};

AllocationRequest same(AllocationRequest request) { return request; }

absl::StatusOr<Block> pass(const AllocationRequest& /*request*/, absl::StatusOr<Block> block) {
  return block;
}

// A view into `block` moved by `offset_bytes`. The result owns `block`.
Block moved_by(Block block, std::int64_t offset_bytes, std::int64_t total_bytes) {
  auto* kept = new Block(std::move(block));
  const auto release = [](void* context, void* /*allocation*/) noexcept {
    delete static_cast<Block*>(context);
  };
  return Block(kept->data() + offset_bytes, total_bytes, {nullptr, 0, release, kept});
}

struct Fault {
  std::string_view name;
  std::string_view caught_by;  // at least this check must report it
  FaultyResource::Request request;
  FaultyResource::Answer answer;
};

// Faults as functions, one table.
AllocationRequest align_the_start(AllocationRequest request) {
  request.aligned_offset_bytes = 0;
  return request;
}
AllocationRequest round_down_to_a_power_of_two(AllocationRequest request) {
  std::int64_t power = 1;
  while (power * 2 <= request.alignment_bytes) power *= 2;
  if (request.alignment_bytes >= 1) request.alignment_bytes = power;
  return request;
}
AllocationRequest forget_zeros(AllocationRequest request) {
  request.zeroed = false;
  return request;
}
AllocationRequest accept_a_negative_offset(AllocationRequest request) {
  if (request.aligned_offset_bytes < 0) request.aligned_offset_bytes = 0;
  return request;
}
AllocationRequest one_byte_more(AllocationRequest request) {
  if (request.total_bytes >= 0 && request.total_bytes < 1 << 28) request.total_bytes += 64;
  return request;
}
absl::StatusOr<Block> eight_bytes_late(const AllocationRequest& request,
                                       absl::StatusOr<Block> block) {
  if (!block.ok() || request.alignment_bytes != 1) return block;
  return moved_by(*std::move(block), 8, request.total_bytes);
}
absl::StatusOr<Block> start_on_any_byte(const AllocationRequest& request,
                                        absl::StatusOr<Block> block) {
  if (!block.ok() || request.alignment_bytes % 2 == 0) return block;
  // Correct modulo an odd alignment, but not aligned to elements.
  if (request.alignment_bytes < 3 || request.alignment_bytes > 64) return block;
  return moved_by(*std::move(block), request.alignment_bytes, request.total_bytes);
}
absl::StatusOr<Block> refuse_zero_bytes(const AllocationRequest& request,
                                        absl::StatusOr<Block> block) {
  if (request.total_bytes == 0) return absl::InvalidArgumentError("no bytes");
  return block;
}
absl::StatusOr<Block> null_for_zero_bytes(const AllocationRequest& request,
                                          absl::StatusOr<Block> block) {
  if (request.total_bytes == 0) return Block();
  return block;
}
absl::StatusOr<Block> call_every_error_internal(const AllocationRequest& /*request*/,
                                                absl::StatusOr<Block> block) {
  if (block.ok()) return block;
  return make_error(ErrorClass::kInternal, block.status().message());
}
absl::StatusOr<Block> hide_the_amount(const AllocationRequest& /*request*/,
                                      absl::StatusOr<Block> block) {
  if (block.ok() || error_class_of(block.status()) != ErrorClass::kMemory) return block;
  return make_error(ErrorClass::kMemory, "out of memory");
}
absl::StatusOr<Block> lend_one_arena_to_all(const AllocationRequest& request,
                                            absl::StatusOr<Block> block) {
  alignas(64) static std::array<std::byte, 8192> arena;
  if (!block.ok() || request.alignment_bytes != 1 || request.total_bytes > 8192) return block;
  return Block(arena.data(), request.total_bytes, {});
}
absl::StatusOr<Block> drift(const AllocationRequest& request, absl::StatusOr<Block> block) {
  static int calls = 0;
  if (!block.ok() || request.total_bytes > 10000) return block;
  return moved_by(*std::move(block), 16 * (++calls % 4), request.total_bytes);
}

constexpr std::array<Fault, 13> kFaults{{
    {"AlignsTheStart", "AlignsAnyInteger", &align_the_start, &pass},
    {"OnlyPowersOfTwo", "AlignsRandomRequests", &round_down_to_a_power_of_two, &pass},
    {"ForgetsZeros", "ZeroesReusedMemory", &forget_zeros, &pass},
    {"AcceptsANegativeOffset", "RefusesBadRequests", &accept_a_negative_offset, &pass},
    {"StartsOffTheCacheLine", "StartsUnconstrainedBlocksOnACacheLine", &one_byte_more,
     &eight_bytes_late},
    {"SplitsElements", "AlignsElements", &one_byte_more, &start_on_any_byte},
    {"RefusesZeroBytes", "ServesZeroBytes", &same, &refuse_zero_bytes},
    {"NullForZeroBytes", "ServesZeroBytes", &same, &null_for_zero_bytes},
    {"OneClassForAllErrors", "RefusesBadRequests", &same, &call_every_error_internal},
    {"OneClassForMemoryErrors", "ReportsOutOfMemory", &same, &call_every_error_internal},
    {"HidesTheAmount", "ReportsOutOfMemory", &same, &hide_the_amount},
    {"LendsOneArenaToAll", "LendsEveryByteToOneBlock", &same, &lend_one_arena_to_all},
    {"Drifts", "RepeatsTheAddressModuloTheAlignment", &one_byte_more, &drift},
}};

class ContractCatches : public ::testing::TestWithParam<Fault> {};

TEST_P(ContractCatches, TheFault) {
  FaultyResource resource(GetParam().request, GetParam().answer);
  bool found = false;
  for (const ContractCheck& check : resource_contract()) {
    if (check.name != GetParam().caught_by) continue;
    found = true;
    EXPECT_FALSE(check.run(resource).empty()) << check.promise;
  }
  EXPECT_TRUE(found) << "no check is called " << GetParam().caught_by;
}

INSTANTIATE_TEST_SUITE_P(Faults, ContractCatches, ::testing::ValuesIn(kFaults),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Contract, PassesAFaultlessResourceThroughTheSameWrapper) {
  FaultyResource resource(&same, &pass);
  for (const ContractCheck& check : resource_contract()) {
    EXPECT_TRUE(check.run(resource).empty()) << check.name;
  }
}

}  // namespace
}  // namespace gridbuf::testing
