module;

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "modules/base/process_wide.h"
#include "modules/base/status_macros.h"

module gridbuf.device.emulated;

import gridbuf.base;
import gridbuf.layout;

namespace gridbuf::emulated {
absl::StatusOr<Operation> operation(std::string_view name) {
  const auto* found = std::find(kOperationNames.begin(), kOperationNames.end(), name);
  if (found != kOperationNames.end()) {
    return static_cast<Operation>(found - kOperationNames.begin());
  }
  return make_error(
      ErrorClass::kValue,
      {"operation", "'" + std::string(name) + "'",
       absl::StrCat("one of ", absl::StrJoin(kOperationNames, ", ")), "or None for any"});
}

std::int64_t Faults::inject(const Fault& fault) {
  const std::lock_guard lock(mutex_);
  armed_.push_back({++last_number_, fault});
  return last_number_;
}

void Faults::remove(std::int64_t number) {
  const std::lock_guard lock(mutex_);
  std::erase_if(armed_, [number](const Armed& armed) { return armed.number == number; });
}

void Faults::clear() {
  const std::lock_guard lock(mutex_);
  armed_.clear();
}

Verdict Faults::judge(Operation operation) {
  const std::lock_guard lock(mutex_);
  ++calls_[static_cast<std::size_t>(operation)];
  Verdict verdict;
  for (Armed& armed : armed_) {
    const Fault& fault = armed.fault;
    if (fault.operation && *fault.operation != operation) continue;
    ++armed.seen;
    const bool strikes =
        armed.seen >= fault.first_call && armed.seen - fault.first_call < fault.call_count;
    if (!strikes) continue;
    verdict.delay_milliseconds += fault.delay_milliseconds;
    absl::Status& error = fault.when_run ? verdict.when_run : verdict.at_call;
    if (error.ok()) error = fault.error;
  }
  return verdict;
}

std::int64_t Faults::calls(std::optional<Operation> operation) {
  const std::lock_guard lock(mutex_);
  if (operation) return calls_[static_cast<std::size_t>(*operation)];
  return std::accumulate(calls_.begin(), calls_.end(), std::int64_t{0});
}

}  // namespace gridbuf::emulated

namespace gridbuf {

using emulated::Memory;
using emulated::Operation;
using emulated::Point;
using emulated::Points;
using emulated::Range;
using emulated::RangePtr;
using emulated::RangeState;
using emulated::Verdict;
using emulated::Work;

// The limit of released memory that waits for streams. Beyond it, a release runs the pending work.
constexpr std::int64_t kHeldBytes = std::int64_t{256} << 20;

// The data of a block until its release.
struct EmulatedDriver::BlockRecord {
  EmulatedDriver* driver;
  RangePtr range;
  Point home;  // the queue of its stream, which may outlive the stream
};

namespace {
// At load, before any thread: see modules/base/fork.h.
std::atomic<EmulatedDriver*>& driver =
    process_wide<std::atomic<EmulatedDriver*>>("emulated driver");
}  // namespace

EmulatedDriver& emulated_driver() {
  if (driver == nullptr) {
    // Without a lock, which a fork would have to hold: the driver's own locks enter the list of
    // ForkSafe, and a fork holds that list first.
    auto made = std::make_unique<EmulatedDriver>();
    EmulatedDriver* none = nullptr;
    if (driver.compare_exchange_strong(none, made.get())) made.release();
  }
  return *driver;
}

// --- Blocks --------------------------------------------------------------------------------------

// Before it refuses a request, runs the streams for which released memory waits.
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
  GRIDBUF_ASSIGN_OR_RETURN(const auto& placement, place(request));
  const std::string_view name = resource(kind).name();
  const StreamHandle stream = current_stream();
  GRIDBUF_RETURN_IF_ERROR(enter(Operation::kAllocate));
  absl::StatusOr<Points> home = streams_.pending_now(stream);
  if (!home.ok()) return with_context(home.status(), "allocate on the current stream");
  absl::StatusOr<RangePtr> range = map(kind, request, placement.block_bytes);
  if (!range.ok()) {
    if (error_class_of(range.status()) != ErrorClass::kMemory) return range.status();
    return out_of_memory(request, name, range.status().message());
  }
  const bool ordered = kind == MemoryKind::kDevice;
  auto record = std::make_unique<BlockRecord>(BlockRecord{this, *range, home->back()});
  std::byte* data = place_in(placement, reinterpret_cast<std::byte*>((*range)->begin));
  if (ordered) {
    GRIDBUF_RETURN_IF_ERROR(start_block(*range, request, data, stream));
  }
  const BlockInfo info{.resource_name = name,
                       .device = cuda_device(kind, 0),
                       .pages = PageKind::kSmall,
                       .stream = ordered ? stream : 0};
  return Block(data, request.total_bytes,
               {record.release(), placement.block_bytes, &release, nullptr, info});
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
  // A child after fork does not have the streams, so it leaves the memory to the system.
  if (process_is_exiting() || !record->driver->process_.is_this_process()) return;
  try {
    record->driver->release(*record);
    delete record;
  } catch (const std::bad_alloc&) {
    // Without memory to enqueue the free, the block leaks, and the statistics count it as held.
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

// --- Info ----------------------------------------------------------------------------------------

absl::StatusOr<Device> EmulatedDriver::current_device() {
  GRIDBUF_RETURN_IF_ERROR(process_.check("the emulated device"));
  return Device{DeviceType::kCuda, 0};
}

absl::StatusOr<PointerInfo> EmulatedDriver::pointer_info(const void* address) {
  GRIDBUF_RETURN_IF_ERROR(enter(Operation::kPointerInfo));
  GRIDBUF_ASSIGN_OR_RETURN(const auto& range, memory_.range_of("address", address, 0));
  if (range == nullptr) return PointerInfo{};
  const MemoryKind kind = range->kind;
  return PointerInfo{.device = cuda_device(kind, 0),
                     .base = range->begin,
                     .length_bytes = range->length_bytes,
                     .host_accessible = kind != MemoryKind::kDevice,
                     .device_accessible = true};
}

LiveBytes EmulatedDriver::live_bytes() { return memory_.statistics().live_bytes_of_kind; }

EmulatedStatistics EmulatedDriver::statistics() {
  return {memory_.statistics(), streams_.pending_operations(), streams_.live_streams(),
          host_to_device_bytes_, device_to_host_bytes_};
}

std::vector<std::pair<std::string, std::string>> EmulatedDriver::info() {
  const EmulatedStatistics now = statistics();
  return {{"device 0", "emulated in the memory of the host, without a GPU"},
          {"live memory",
           bytes_text(now.live_bytes) + " in " + std::to_string(now.live_blocks) + " blocks"},
          {"pending operations", std::to_string(now.pending_operations)}};
}

// ==== Work on streams: copies, fills and kernels when they run. ====

namespace {

using Clock = std::chrono::steady_clock;

// Pageable sources longer than this are copied before `copy` returns; shorter ones are read then
// and written late.
constexpr std::int64_t kStagedBytes = std::int64_t{64} << 20;

std::size_t size_of(std::int64_t length_bytes) { return static_cast<std::size_t>(length_bytes); }

// One end of a copy: memory of the device, or ordinary ("pageable") memory of the host.
struct End {
  std::string role;
  std::byte* address = nullptr;
  RangePtr range = nullptr;
  std::shared_ptr<std::vector<std::byte>> staged = nullptr;  // copy of a pageable source

  bool is_pageable() const { return range == nullptr; }
};

absl::StatusOr<End> find_end(Memory& memory, std::string_view role, const void* address,
                             std::int64_t length_bytes) {
  GRIDBUF_ASSIGN_OR_RETURN(auto& range, memory.range_of(role, address, length_bytes));
  return End{std::string(role), static_cast<std::byte*>(const_cast<void*>(address)),
             std::move(range)};
}

// Where the bytes of one end are when the work runs.
absl::StatusOr<std::byte*> bytes_of(Memory& memory, const End& end) {
  if (end.staged != nullptr) return end.staged->data();
  if (end.is_pageable()) return end.address;
  return memory.translate(end.role, *end.range, end.address);
}

absl::Status unknown_to_device(std::string_view role) {
  return make_error(ErrorClass::kValue,
                    {role, "ordinary memory of the host", "memory that the device knows",
                     "allocate it as pinned, managed or device memory"});
}

// A call whose work refers to memory of its caller, and is complete when the call returns. If the
// wait fails, the enqueued work must not run later, because that memory may be freed.
class Call {
 public:
  explicit Call(bool waits) : state_(waits ? std::make_shared<State>() : nullptr) {}
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call() {
    if (state_ == nullptr) return;
    const std::lock_guard lock(state_->mutex);
    state_->is_over = true;
  }

  // `work` while the call lasts, then nothing.
  template <class... Arguments, class W>
  auto bound(W work) const {
    return [state = state_, work = std::move(work)](Arguments... arguments) -> absl::Status {
      std::unique_lock<std::mutex> running;
      if (state != nullptr) {
        running = std::unique_lock(state->mutex);
        if (state->is_over) return absl::OkStatus();
      }
      return work(arguments...);
    };
  }

 private:
  struct State {
    std::mutex mutex;  // held while the work runs
    bool is_over = false;
  };
  std::shared_ptr<State> state_;
};

// memmove and not memcpy: a copy of memory onto itself is undefined on a GPU, and must be harmless
// here.
void move_rows(std::byte* target, const std::byte* source, const RowCopy& rows) {
  for (std::int64_t row = 0; row < rows.row_count; ++row) {
    std::memmove(target + row * rows.target_pitch_bytes, source + row * rows.source_pitch_bytes,
                 size_of(rows.row_bytes));
  }
}

}  // namespace

// --- Entering and enqueuing ----------------------------------------------------------------------

// Every function begins here, because a test may let the operation fail.
absl::Status EmulatedDriver::enter(Operation operation, Verdict* verdict) {
  GRIDBUF_RETURN_IF_ERROR(process_.check("the emulated device"));
  Verdict judged = faults_.judge(operation);
  absl::Status status = judged.at_call;
  if (verdict != nullptr) *verdict = std::move(judged);
  return status;
}

// As enter, for operations that wait.
absl::Status EmulatedDriver::enter_waiting(Operation operation) {
  if (emulated::inside_work()) {
    return make_error(ErrorClass::kInternal,
                      "a kernel of the emulated device waits for a stream, which would never end; "
                      "wait before or after the kernel, as CUDA demands");
  }
  return enter(operation);
}

absl::Status EmulatedDriver::enqueue(StreamHandle stream, const Verdict& verdict, Work work,
                                     const std::vector<RangePtr>& used) {
  GRIDBUF_ASSIGN_OR_RETURN(const auto& points, streams_.pending_now(stream));
  for (const RangePtr& range : used) {
    if (range != nullptr) add_use(range, points.back());
  }
  const auto due = Clock::now() + std::chrono::milliseconds(verdict.delay_milliseconds);
  return streams_.enqueue(stream, [due, error = verdict.when_run, work = std::move(work)] {
    std::this_thread::sleep_until(due);
    return error.ok() ? work() : error;
  });
}

// --- Copies and fills ----------------------------------------------------------------------------

// Managed memory does not count for a side; ordinary memory of the host does not have a range.
void EmulatedDriver::count_moved(const emulated::Range* target, const emulated::Range* source,
                                 std::int64_t bytes) {
  const auto is_host = [](const emulated::Range* range) {
    return range == nullptr || range->kind == MemoryKind::kPinned;
  };
  const auto is_device = [](const emulated::Range* range) {
    return range != nullptr && range->kind == MemoryKind::kDevice;
  };
  if (is_device(target) && is_host(source)) host_to_device_bytes_ += bytes;
  if (is_host(target) && is_device(source)) device_to_host_bytes_ += bytes;
}

absl::Status EmulatedDriver::copy(void* target, const void* source, std::int64_t length_bytes,
                                  StreamHandle stream) {
  return copy_rows({target, length_bytes, source, length_bytes, length_bytes, 1}, stream);
}

absl::Status EmulatedDriver::copy_rows(const RowCopy& rows, StreamHandle stream) {
  GRIDBUF_ASSIGN_OR_RETURN(const auto& extents, check(rows));
  Verdict verdict;
  GRIDBUF_RETURN_IF_ERROR(enter(Operation::kCopy, &verdict));
  GRIDBUF_RETURN_IF_ERROR(streams_.check(stream));
  if (extents.target_bytes == 0) return absl::OkStatus();
  GRIDBUF_ASSIGN_OR_RETURN(
      auto& target, find_end(memory_, "the copy's target", rows.target, extents.target_bytes));
  GRIDBUF_ASSIGN_OR_RETURN(
      auto& source, find_end(memory_, "the copy's source", rows.source, extents.source_bytes));

  const bool stages = source.is_pageable() && extents.source_bytes <= kStagedBytes;
  if (stages) {
    const auto* begin = static_cast<const std::byte*>(rows.source);
    source.staged = std::make_shared<std::vector<std::byte>>(begin, begin + extents.source_bytes);
  }
  const bool waits = target.is_pageable() || (source.is_pageable() && !stages);
  if (waits && emulated::inside_work()) return enter_waiting(Operation::kCopy);
  const std::vector<RangePtr> used{target.range, source.range};
  const Call call(waits);
  const auto work = [this, rows, target = std::move(target), source = std::move(source)] {
    GRIDBUF_ASSIGN_OR_RETURN(const auto& to, bytes_of(memory_, target));
    GRIDBUF_ASSIGN_OR_RETURN(const auto& from, bytes_of(memory_, source));
    move_rows(to, from, rows);
    count_moved(target.range.get(), source.range.get(), rows.row_bytes * rows.row_count);
    return absl::OkStatus();
  };
  GRIDBUF_RETURN_IF_ERROR(enqueue(stream, verdict, call.bound(work), used));
  return waits ? streams_.synchronize(stream) : absl::OkStatus();
}

absl::Status EmulatedDriver::fill(void* target, std::byte value, std::int64_t length_bytes,
                                  StreamHandle stream) {
  Verdict verdict;
  GRIDBUF_RETURN_IF_ERROR(enter(Operation::kFill, &verdict));
  GRIDBUF_RETURN_IF_ERROR(streams_.check(stream));
  GRIDBUF_RETURN_IF_ERROR(check_length("length_bytes", length_bytes));
  if (length_bytes == 0) return absl::OkStatus();
  GRIDBUF_ASSIGN_OR_RETURN(auto& end, find_end(memory_, "the fill's target", target, length_bytes));
  if (end.is_pageable()) return unknown_to_device(end.role);
  const std::vector<RangePtr> used{end.range};
  const auto work = [this, end = std::move(end), value, length_bytes] {
    GRIDBUF_ASSIGN_OR_RETURN(const auto& bytes, bytes_of(memory_, end));
    std::memset(bytes, std::to_integer<int>(value), size_of(length_bytes));
    return absl::OkStatus();
  };
  return enqueue(stream, verdict, work, used);
}

// --- Kernels -------------------------------------------------------------------------------------

absl::StatusOr<std::byte*> KernelMemory::at(const void* address, std::int64_t length_bytes) {
  constexpr std::string_view kRole = "a kernel's operand";
  absl::StatusOr<RangePtr> range = memory_.range_in_work(kRole, address, length_bytes);
  if (!range.ok()) return make_error(ErrorClass::kInternal, range.status().message());
  if (*range == nullptr) {
    if (memory_.was_released(address)) {
      return make_error(ErrorClass::kInternal,
                        {kRole, "memory that was freed", "memory that lives while the kernel runs",
                         "order the stream that frees it after the kernel's"});
    }
    return make_error(ErrorClass::kInternal, unknown_to_device(kRole).message());
  }
  used_.push_back(*range);
  return memory_.translate(kRole, **range, address);
}

absl::Status EmulatedDriver::launch(StreamHandle stream, Kernel kernel) {
  Verdict verdict;
  GRIDBUF_RETURN_IF_ERROR(enter(Operation::kLaunch, &verdict));
  const auto work = [this, kernel = std::move(kernel)] {
    KernelMemory memory(memory_);
    return kernel(memory);
  };
  return enqueue(stream, verdict, work, {});
}

absl::Status EmulatedDriver::run(StreamHandle stream, const Kernel& kernel) {
  if (emulated::inside_work()) return enter_waiting(Operation::kLaunch);
  const Call call(/*waits=*/true);
  GRIDBUF_RETURN_IF_ERROR(launch(stream, call.bound<KernelMemory&>(std::cref(kernel))));
  return synchronize(stream);
}

absl::Status EmulatedDriver::launch(const DeviceKernel& kernel, StreamHandle stream) {
  Verdict verdict;
  GRIDBUF_RETURN_IF_ERROR(enter(Operation::kLaunch, &verdict));
  GRIDBUF_RETURN_IF_ERROR(streams_.check(stream));
  std::vector<RangePtr> used;
  std::vector<End> operands;
  for (const KernelOperand& operand : kernel.operands) {
    GRIDBUF_ASSIGN_OR_RETURN(auto& end,
                             find_end(memory_, operand.role, operand.begin, operand.length_bytes));
    if (end.is_pageable()) return unknown_to_device(end.role);
    used.push_back(end.range);
    operands.push_back(std::move(end));
  }
  const std::vector<std::byte> arguments(kernel.arguments.begin(), kernel.arguments.end());
  const auto work = [this, on_host = kernel.on_host, arguments, operands = std::move(operands)] {
    std::vector<std::byte*> addresses;
    for (const End& operand : operands) {
      GRIDBUF_ASSIGN_OR_RETURN(auto* const bytes, bytes_of(memory_, operand));
      addresses.push_back(bytes);
    }
    on_host(arguments.data(), addresses);
    return absl::OkStatus();
  };
  return enqueue(stream, verdict, work, used);
}

// --- Streams -------------------------------------------------------------------------------------

absl::Status EmulatedDriver::synchronize(StreamHandle stream) {
  GRIDBUF_RETURN_IF_ERROR(enter_waiting(Operation::kSynchronize));
  return streams_.synchronize(stream);
}

absl::Status EmulatedDriver::synchronize_device() {
  GRIDBUF_RETURN_IF_ERROR(enter_waiting(Operation::kSynchronize));
  return streams_.synchronize_device();
}

absl::Status EmulatedDriver::order_after(StreamHandle producer, StreamHandle consumer) {
  GRIDBUF_RETURN_IF_ERROR(enter(Operation::kOrder));
  return streams_.order_after(producer, consumer);
}

absl::StatusOr<StreamHandle> EmulatedDriver::create_stream(StreamKind kind) {
  GRIDBUF_RETURN_IF_ERROR(enter(Operation::kStream));
  return streams_.create(kind);
}

absl::Status EmulatedDriver::destroy_stream(StreamHandle stream) {
  GRIDBUF_RETURN_IF_ERROR(enter(Operation::kStream));
  return streams_.destroy(stream);
}

absl::Status EmulatedDriver::check_stream(StreamHandle stream) {
  GRIDBUF_RETURN_IF_ERROR(enter(Operation::kStream));
  return streams_.check(stream);
}

absl::StatusOr<bool> EmulatedDriver::is_idle(StreamHandle stream) {
  GRIDBUF_RETURN_IF_ERROR(enter_waiting(Operation::kStream));
  return streams_.is_idle(stream);
}

}  // namespace gridbuf
