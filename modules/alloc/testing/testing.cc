module;

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.alloc.testing;

import gridbuf.alloc;
import gridbuf.alloc.host;
import gridbuf.layout;
import gridbuf.layout.view;

namespace gridbuf::testing {
namespace {

// A byte that depends on its position, so that a copy of one guarded byte over another is found.
std::byte trap(std::int64_t position) {
  return static_cast<std::byte>(0xA5 ^ (position * 29 & 0xFF));
}

void set_traps(std::byte* begin, std::int64_t length_bytes) {
  for (std::int64_t i = 0; i < length_bytes; ++i) begin[i] = trap(i);
  poison_bytes(begin, length_bytes);
}

bool traps_intact(const std::byte* begin, std::int64_t length_bytes) {
  unpoison_bytes(begin, length_bytes);
  for (std::int64_t i = 0; i < length_bytes; ++i) {
    if (begin[i] != trap(i)) return false;
  }
  return true;
}

std::string wrapped_name(std::string_view adaptor, const MemoryResource& upstream) {
  return std::string(adaptor).append("(").append(upstream.name()).append(")");
}

}  // namespace

struct CountingResource::Counted {
  Block block;
  CountingResource* resource;
};

CountingResource::CountingResource(MemoryResource& upstream)
    : upstream_(upstream), name_(wrapped_name("counting", upstream)) {}

absl::StatusOr<Block> CountingResource::allocate(const AllocationRequest& request) {
  absl::StatusOr<Block> block = upstream_.allocate(request);
  if (!block.ok()) {
    ++failures_;
    return block;
  }
  ++allocations_;
  ++live_blocks_;
  const std::int64_t live = live_bytes_ += block->total_bytes();
  std::int64_t peak = peak_live_bytes_;
  while (live > peak && !peak_live_bytes_.compare_exchange_weak(peak, live)) {
  }
  std::byte* data = block->data();
  const std::int64_t total_bytes = block->total_bytes();
  const std::int64_t allocation_bytes = block->allocation_bytes();
  const BlockInfo info = block->info();
  auto counted = std::make_unique<Counted>(*std::move(block), this);
  return Block(data, total_bytes, {nullptr, allocation_bytes, &release, counted.release(), info});
}

void CountingResource::release(void* context, void* /*allocation*/) noexcept {
  const std::unique_ptr<Counted> node(static_cast<Counted*>(context));
  node->resource->live_blocks_ -= 1;
  node->resource->live_bytes_ -= node->block.total_bytes();
}

AllocationCounts CountingResource::counts() const {
  return {allocations_, failures_, live_blocks_, live_bytes_, peak_live_bytes_};
}

FailingResource::FailingResource(MemoryResource& upstream, std::int64_t first_failing_call,
                                 std::int64_t last_failing_call)
    : upstream_(upstream),
      name_(wrapped_name("failing", upstream)),
      first_failing_call_(first_failing_call),
      last_failing_call_(last_failing_call) {}

absl::StatusOr<Block> FailingResource::allocate(const AllocationRequest& request) {
  const std::int64_t call = ++calls_;
  if (call < first_failing_call_ || call > last_failing_call_) return upstream_.allocate(request);
  if (const auto placement = place(request); !placement.ok()) return placement.status();
  return out_of_memory(request, name_, "call " + std::to_string(call) + " was made to fail");
}

namespace {

// Marks the bytes of every element of `view` in `used`.
void mark_elements(const StridedView& view, std::vector<bool>& used) {
  if (is_empty(view.shape)) return;
  Extents index(view.ndim(), 0);
  while (true) {
    const std::int64_t first = byte_offset(view, index);
    for (std::int64_t byte = 0; byte < view.itemsize_bytes; ++byte) {
      used[static_cast<std::size_t>(first + byte)] = true;
    }
    int axis = view.ndim() - 1;
    while (axis >= 0 && ++index[axis] == view.shape[axis]) index[axis--] = 0;
    if (axis < 0) return;
  }
}

}  // namespace

PaddingGuard::PaddingGuard(std::byte* block, std::int64_t total_bytes, const StridedView& view)
    : block_(block) {
  std::vector<bool> used(static_cast<std::size_t>(total_bytes), false);
  mark_elements(view, used);
  for (auto begin = used.begin(); begin != used.end();) {
    begin = std::find(begin, used.end(), false);
    const auto end = std::find(begin, used.end(), true);
    if (begin == end) break;
    runs_.push_back({block_ + (begin - used.begin()), end - begin});
    begin = end;
  }
  for (const Run& run : runs_) set_traps(run.begin, run.length_bytes);
}

PaddingGuard::~PaddingGuard() {
  for (const Run& run : runs_) unpoison_bytes(run.begin, run.length_bytes);
}

std::int64_t PaddingGuard::padding_bytes() const {
  std::int64_t total = 0;
  for (const Run& run : runs_) total += run.length_bytes;
  return total;
}

bool PaddingGuard::intact() const {
  bool all = true;
  for (const Run& run : runs_) {
    all = traps_intact(run.begin, run.length_bytes) && all;
    poison_bytes(run.begin, run.length_bytes);
  }
  return all;
}

}  // namespace gridbuf::testing
