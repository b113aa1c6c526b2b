module;

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.device.emulated;

import gridbuf.base;

// Work on streams: what copies, fills and kernels do when they run, and when that is.

namespace gridbuf {

using emulated::Memory;
using emulated::Operation;
using emulated::Points;
using emulated::RangePtr;
using emulated::Verdict;
using emulated::Work;

namespace {

using Clock = std::chrono::steady_clock;

// Pageable sources longer than this are copied before `copy` returns; shorter ones are read then
// and written late.
constexpr std::int64_t kStagedBytes = std::int64_t{64} << 20;

std::size_t size_of(std::int64_t length_bytes) { return static_cast<std::size_t>(length_bytes); }

// One end of a copy: memory that the device knows, or the host's own ("pageable").
struct End {
  std::string role;
  std::byte* address = nullptr;
  RangePtr range = nullptr;
  std::shared_ptr<std::vector<std::byte>> staged = nullptr;  // what a pageable source held

  bool is_pageable() const { return range == nullptr; }
};

absl::StatusOr<End> find_end(Memory& memory, std::string_view role, const void* address,
                             std::int64_t length_bytes) {
  absl::StatusOr<RangePtr> range = memory.range_of(role, address, length_bytes);
  if (!range.ok()) return range.status();
  return End{std::string(role), static_cast<std::byte*>(const_cast<void*>(address)),
             *std::move(range)};
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

// A copy from or to ordinary memory of the host is over when the call that asks for it returns,
// however that ends: if the wait fails, for want of memory, what is still enqueued does nothing,
// for whose memory it was may be gone.
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

  struct State {
    std::mutex mutex;  // held while bytes are moved
    bool is_over = false;
  };
  const std::shared_ptr<State>& state() const { return state_; }

 private:
  std::shared_ptr<State> state_;
};

// Rows are moved, not copied: memory copied onto itself is undefined on a GPU and harmless here.
void move_rows(std::byte* target, const std::byte* source, const RowCopy& rows) {
  for (std::int64_t row = 0; row < rows.row_count; ++row) {
    std::memmove(target + row * rows.target_pitch_bytes, source + row * rows.source_pitch_bytes,
                 size_of(rows.row_bytes));
  }
}

}  // namespace

// --- Entering and enqueuing ----------------------------------------------------------------------

// Every function begins here: the process must be the one that started the device, and the
// operation may be one that a test lets fail.
absl::Status EmulatedDriver::enter(Operation operation, Verdict& verdict) {
  if (absl::Status status = process_.check("the emulated device"); !status.ok()) return status;
  verdict = faults_.judge(operation);
  return verdict.at_call;
}

// The same for what waits.
absl::Status EmulatedDriver::enter_waiting(Operation operation) {
  if (emulated::inside_work()) {
    return make_error(ErrorClass::kInternal,
                      "a kernel of the emulated device waits for a stream, which would never end; "
                      "wait before or after the kernel, as CUDA demands");
  }
  Verdict verdict;
  return enter(operation, verdict);
}

absl::Status EmulatedDriver::enqueue(StreamHandle stream, const Verdict& verdict, Work work,
                                     const std::vector<RangePtr>& used) {
  const absl::StatusOr<Points> points = streams_.pending_now(stream);
  if (!points.ok()) return points.status();
  for (const RangePtr& range : used) {
    if (range != nullptr) add_use(range, points->back());
  }
  const auto due = Clock::now() + std::chrono::milliseconds(verdict.delay_milliseconds);
  return streams_.enqueue(stream, [due, error = verdict.when_run, work = std::move(work)] {
    std::this_thread::sleep_until(due);
    return error.ok() ? work() : error;
  });
}

// --- Copies and fills ----------------------------------------------------------------------------

// Managed memory is on neither side, and ordinary memory of the host in no range.
void EmulatedDriver::count_moved(const emulated::Range* target, const emulated::Range* source,
                                 std::int64_t bytes) {
  const auto is_hosts = [](const emulated::Range* range) {
    return range == nullptr || range->kind == MemoryKind::kPinned;
  };
  const auto is_devices = [](const emulated::Range* range) {
    return range != nullptr && range->kind == MemoryKind::kDevice;
  };
  if (is_devices(target) && is_hosts(source)) host_to_device_bytes_ += bytes;
  if (is_hosts(target) && is_devices(source)) device_to_host_bytes_ += bytes;
}

absl::Status EmulatedDriver::copy(void* target, const void* source, std::int64_t length_bytes,
                                  StreamHandle stream) {
  return copy_rows({target, length_bytes, source, length_bytes, length_bytes, 1}, stream);
}

absl::Status EmulatedDriver::copy_rows(const RowCopy& rows, StreamHandle stream) {
  Verdict verdict;
  if (absl::Status status = enter(Operation::kCopy, verdict); !status.ok()) return status;
  if (absl::Status status = streams_.check(stream); !status.ok()) return status;
  const absl::StatusOr<RowExtents> extents = check(rows);
  if (!extents.ok()) return extents.status();
  if (extents->target_bytes == 0) return absl::OkStatus();
  absl::StatusOr<End> target =
      find_end(memory_, "the copy's target", rows.target, extents->target_bytes);
  if (!target.ok()) return target.status();
  absl::StatusOr<End> source =
      find_end(memory_, "the copy's source", rows.source, extents->source_bytes);
  if (!source.ok()) return source.status();

  const bool stages = source->is_pageable() && extents->source_bytes <= kStagedBytes;
  if (stages) {
    const auto* begin = static_cast<const std::byte*>(rows.source);
    source->staged = std::make_shared<std::vector<std::byte>>(begin, begin + extents->source_bytes);
  }
  const bool waits = target->is_pageable() || (source->is_pageable() && !stages);
  if (waits && emulated::inside_work()) return enter_waiting(Operation::kCopy);
  const std::vector<RangePtr> used{target->range, source->range};
  const Call call(waits);
  const auto work = [this, rows, target = *std::move(target), source = *std::move(source),
                     state = call.state()] {
    std::unique_lock<std::mutex> moving;
    if (state != nullptr) {
      moving = std::unique_lock(state->mutex);
      if (state->is_over) return absl::OkStatus();
    }
    const absl::StatusOr<std::byte*> to = bytes_of(memory_, target);
    if (!to.ok()) return to.status();
    const absl::StatusOr<std::byte*> from = bytes_of(memory_, source);
    if (!from.ok()) return from.status();
    move_rows(*to, *from, rows);
    count_moved(target.range.get(), source.range.get(), rows.row_bytes * rows.row_count);
    return absl::OkStatus();
  };
  if (absl::Status status = enqueue(stream, verdict, work, used); !status.ok()) return status;
  return waits ? streams_.synchronize(stream) : absl::OkStatus();
}

absl::Status EmulatedDriver::fill(void* target, std::byte value, std::int64_t length_bytes,
                                  StreamHandle stream) {
  Verdict verdict;
  if (absl::Status status = enter(Operation::kFill, verdict); !status.ok()) return status;
  if (absl::Status status = streams_.check(stream); !status.ok()) return status;
  if (absl::Status status = check_length("length_bytes", length_bytes); !status.ok()) return status;
  if (length_bytes == 0) return absl::OkStatus();
  absl::StatusOr<End> end = find_end(memory_, "the fill's target", target, length_bytes);
  if (!end.ok()) return end.status();
  if (end->is_pageable()) return unknown_to_device(end->role);
  const std::vector<RangePtr> used{end->range};
  const auto work = [this, end = *std::move(end), value, length_bytes] {
    const absl::StatusOr<std::byte*> bytes = bytes_of(memory_, end);
    if (!bytes.ok()) return bytes.status();
    std::memset(*bytes, std::to_integer<int>(value), size_of(length_bytes));
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
  if (absl::Status status = enter(Operation::kLaunch, verdict); !status.ok()) return status;
  const auto work = [this, kernel = std::move(kernel)] {
    KernelMemory memory(memory_);
    return kernel(memory);
  };
  return enqueue(stream, verdict, work, {});
}

// What a launch keeps until it runs.
struct LateKernel {
  void (*on_host)(const void* arguments, std::span<std::byte* const> operands);
  std::vector<std::byte> arguments;
  std::vector<End> operands;

  absl::Status run(Memory& memory) const {
    std::vector<std::byte*> addresses;
    for (const End& operand : operands) {
      const absl::StatusOr<std::byte*> bytes = bytes_of(memory, operand);
      if (!bytes.ok()) return bytes.status();
      addresses.push_back(*bytes);
    }
    on_host(arguments.data(), addresses);
    return absl::OkStatus();
  }
};

absl::Status EmulatedDriver::launch(const DeviceKernel& kernel, StreamHandle stream) {
  Verdict verdict;
  if (absl::Status status = enter(Operation::kLaunch, verdict); !status.ok()) return status;
  if (absl::Status status = streams_.check(stream); !status.ok()) return status;
  auto late = std::make_shared<LateKernel>();
  late->on_host = kernel.on_host;
  late->arguments.assign(kernel.arguments.begin(), kernel.arguments.end());
  std::vector<RangePtr> used;
  for (const KernelOperand& operand : kernel.operands) {
    absl::StatusOr<End> end = find_end(memory_, operand.role, operand.begin, operand.length_bytes);
    if (!end.ok()) return end.status();
    if (end->is_pageable()) return unknown_to_device(end->role);
    used.push_back(end->range);
    late->operands.push_back(*std::move(end));
  }
  return enqueue(stream, verdict, [this, late] { return late->run(memory_); }, used);
}

// --- Streams -------------------------------------------------------------------------------------

absl::Status EmulatedDriver::synchronize(StreamHandle stream) {
  if (absl::Status status = enter_waiting(Operation::kSynchronize); !status.ok()) return status;
  return streams_.synchronize(stream);
}

absl::Status EmulatedDriver::synchronize_device() {
  if (absl::Status status = enter_waiting(Operation::kSynchronize); !status.ok()) return status;
  return streams_.synchronize_device();
}

absl::Status EmulatedDriver::order_after(StreamHandle producer, StreamHandle consumer) {
  Verdict verdict;
  if (absl::Status status = enter(Operation::kOrder, verdict); !status.ok()) return status;
  return streams_.order_after(producer, consumer);
}

absl::StatusOr<StreamHandle> EmulatedDriver::create_stream(StreamKind kind) {
  Verdict verdict;
  if (absl::Status status = enter(Operation::kStream, verdict); !status.ok()) return status;
  return streams_.create(kind);
}

absl::Status EmulatedDriver::destroy_stream(StreamHandle stream) {
  Verdict verdict;
  if (absl::Status status = enter(Operation::kStream, verdict); !status.ok()) return status;
  return streams_.destroy(stream);
}

absl::Status EmulatedDriver::check_stream(StreamHandle stream) {
  Verdict verdict;
  if (absl::Status status = enter(Operation::kStream, verdict); !status.ok()) return status;
  return streams_.check(stream);
}

absl::StatusOr<bool> EmulatedDriver::is_idle(StreamHandle stream) {
  if (absl::Status status = enter_waiting(Operation::kStream); !status.ok()) return status;
  return streams_.is_idle(stream);
}

}  // namespace gridbuf
