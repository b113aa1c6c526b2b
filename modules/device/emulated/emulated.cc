module;

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.device.emulated;

import gridbuf.base;

namespace gridbuf {

using emulated::Memory;
using emulated::Operation;
using emulated::Point;
using emulated::Points;
using emulated::Range;
using emulated::RangePtr;
using emulated::RangeState;
using emulated::Verdict;

// How much released memory may wait for streams before a release runs what it waits for.
constexpr std::int64_t kHeldBytes = std::int64_t{256} << 20;

// What a block holds until its release.
struct EmulatedDriver::BlockRecord {
  EmulatedDriver* driver;
  RangePtr range;
  Point home;  // the queue of its stream, which may outlive the stream
};

EmulatedDriver& emulated_driver() {
  static EmulatedDriver& driver = *new EmulatedDriver;
  return driver;
}

// --- Blocks --------------------------------------------------------------------------------------

// Memory that waits for a stream to be given back is got back before a request is refused.
absl::StatusOr<RangePtr> EmulatedDriver::map(MemoryKind kind, const AllocationRequest& request,
                                             std::int64_t block_bytes) {
  const RangeState state = kind == MemoryKind::kDevice ? RangeState::kOrdered : RangeState::kLive;
  const auto try_it = [&] {
    return memory_.map(kind, block_bytes, state, request.zeroed && kind != MemoryKind::kDevice,
                       request.populate);
  };
  absl::StatusOr<RangePtr> range = try_it();
  if (range.ok() || emulated::inside_work()) return range;
  const emulated::MemoryStatistics now = memory_.statistics();
  if (now.held_bytes == now.live_bytes) return range;
  streams_.run_device(/*may_wait=*/false);
  return try_it();
}

absl::StatusOr<Block> EmulatedDriver::allocate(MemoryKind kind, const AllocationRequest& request) {
  const absl::StatusOr<Placement> placement = place(request);
  if (!placement.ok()) return placement.status();
  const std::string_view name = resource(kind).name();
  const StreamHandle stream = current_stream();
  Verdict verdict;
  if (absl::Status status = enter(Operation::kAllocate, verdict); !status.ok()) return status;
  absl::StatusOr<Points> home = streams_.pending_now(stream);
  if (!home.ok()) return with_context(home.status(), "allocate on the current stream");
  absl::StatusOr<RangePtr> range = map(kind, request, placement->block_bytes);
  if (!range.ok()) {
    if (error_class_of(range.status()) != ErrorClass::kMemory) return range.status();
    return out_of_memory(request, name, range.status().message());
  }
  const bool ordered = kind == MemoryKind::kDevice;
  auto record = std::make_unique<BlockRecord>(BlockRecord{this, *range, home->back()});
  std::byte* data = place_in(*placement, reinterpret_cast<std::byte*>((*range)->begin));
  if (ordered) {
    if (absl::Status status = start_block(*range, request, data, stream); !status.ok()) {
      return status;
    }
  }
  const BlockFacts facts{.resource_name = name,
                         .device = device_of(kind, 0),
                         .pages = PageKind::kSmall,
                         .stream = ordered ? stream : 0};
  return Block(data, request.total_bytes,
               {record.release(), placement->block_bytes, &release, nullptr, facts});
}

// The allocation, and its zeros, happen on the stream.
absl::Status EmulatedDriver::start_block(const RangePtr& range, const AllocationRequest& request,
                                         const std::byte* data, StreamHandle stream) {
  const std::int64_t zeros_bytes = request.zeroed ? request.total_bytes : 0;
  const auto offset = reinterpret_cast<std::uintptr_t>(data) - range->begin;
  const auto start = [this, range, zeros_bytes, offset] {
    memory_.set_state(*range, RangeState::kLive);
    std::memset(range->bytes + offset, 0, static_cast<std::size_t>(zeros_bytes));
    return absl::OkStatus();
  };
  return streams_.enqueue(stream, start);
}

void EmulatedDriver::release(void* /*context*/, void* allocation) noexcept {
  auto* record = static_cast<BlockRecord*>(allocation);
  // A child after fork has none of the streams, and an exiting process no time: the memory is left
  // to the system.
  if (process_is_exiting() || !record->driver->process_.is_this_process()) return;
  try {
    record->driver->release(*record);
    delete record;
  } catch (const std::bad_alloc&) {
    // Without memory for the order to free there is only keeping it: nothing of the record is lost
    // that could still be used, and the statistics go on counting it as held.
  }
}

void EmulatedDriver::release(BlockRecord& record) {
  memory_.set_state(*record.range, RangeState::kReleased);
  Points points = streams_.refreshed(take_uses(*record.range));
  const auto free_it = [this, range = std::move(record.range)] {
    memory_.set_state(*range, RangeState::kGone);
    return absl::OkStatus();
  };
  streams_.enqueue_last(record.home, free_it, std::move(points));
  const emulated::MemoryStatistics now = memory_.statistics();
  if (now.held_bytes - now.live_bytes > kHeldBytes) streams_.run_without_waiting(record.home);
}

// --- Uses on other streams -----------------------------------------------------------------------

void EmulatedDriver::add_use(const RangePtr& range, const Point& point) {
  const std::lock_guard lock(mutex_);
  Points& points = uses_[range->begin];
  for (const Point& known : points) {
    if (known.queue == point.queue) return;
  }
  points.push_back(point);
}

Points EmulatedDriver::take_uses(const Range& range) {
  const std::lock_guard lock(mutex_);
  const auto found = uses_.find(range.begin);
  if (found == uses_.end()) return {};
  Points points = std::move(found->second);
  uses_.erase(found);
  return points;
}

void EmulatedDriver::note_use(const void* address, StreamHandle stream) noexcept {
  if (!process_.is_this_process()) return;
  const RangePtr range = memory_.find(address);
  if (range == nullptr || memory_.was_released(address)) return;
  const absl::StatusOr<Points> points = streams_.pending_now(stream);
  if (points.ok()) add_use(range, points->back());
}

// --- Facts ---------------------------------------------------------------------------------------

absl::StatusOr<Device> EmulatedDriver::current_device() {
  if (absl::Status status = process_.check("the emulated device"); !status.ok()) return status;
  return Device{DeviceType::kCuda, 0};
}

absl::StatusOr<PointerInfo> EmulatedDriver::pointer_info(const void* address) {
  Verdict verdict;
  if (absl::Status status = enter(Operation::kPointerInfo, verdict); !status.ok()) return status;
  const absl::StatusOr<RangePtr> range = memory_.range_of("address", address, 0);
  if (!range.ok()) return range.status();
  if (*range == nullptr) return PointerInfo{};
  const MemoryKind kind = (*range)->kind;
  return PointerInfo{.device = device_of(kind, 0),
                     .base = (*range)->begin,
                     .length_bytes = (*range)->length_bytes,
                     .host_accessible = kind != MemoryKind::kDevice,
                     .device_accessible = true};
}

bool EmulatedDriver::owns(const void* address) {
  return memory_.find(address) != nullptr || memory_.was_released(address);
}

void EmulatedDriver::set_capacity(std::int64_t capacity_bytes) {
  memory_.set_capacity(capacity_bytes);
}

EmulatedStatistics EmulatedDriver::statistics() {
  return {memory_.statistics(), streams_.pending_operations(), streams_.live_streams(),
          host_to_device_bytes_, device_to_host_bytes_};
}

std::vector<std::pair<std::string, std::string>> EmulatedDriver::facts() {
  const EmulatedStatistics now = statistics();
  return {{"device 0", "emulated in the memory of the host; there is no GPU in it"},
          {"live memory",
           bytes_text(now.live_bytes) + " in " + std::to_string(now.live_blocks) + " blocks"},
          {"pending operations", std::to_string(now.pending_operations)}};
}

}  // namespace gridbuf
