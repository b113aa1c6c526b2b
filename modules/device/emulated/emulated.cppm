// gridbuf.device.emulated: a device in host memory, as strict as a real device may be.
//
// It finds mistakes that a GPU forgives, on a machine without a GPU. A host access to device memory
// is a segmentation fault. Work on a stream runs as late as CUDA's rules allow, so a missing wait
// reads old bytes every time. Use of memory before its allocation or after its release, and copies
// beyond an allocation, are errors. Any operation fails or is delayed on demand. Rules and codes
// are CUDA's (device type kCuda, device 0, stream handles 1 and 2). It is not a fallback for a GPU,
// and does not model time.
//
// Key decision: memory. Device memory is two mappings of equal length. The addresses of users point
// to the public mapping. It is PROT_NONE, so a host access faults at that instruction. The bytes
// are in the alias mapping; its address stays in this library. Managed and pinned memory is one
// ordinary mapping.
//
// Key decision: streams. Every stream is a queue, and this library does not start threads: the
// thread that synchronises runs exactly the work for which it waits. So runs are reproducible. No
// lock is held while work runs. So work may take Python's lock, even if a thread that enqueues
// holds it.
module;

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "modules/base/fork.h"

export module gridbuf.device.emulated;

import gridbuf.alloc;
export import gridbuf.device;

namespace gridbuf::emulated {
struct Queue;
}

export namespace gridbuf::emulated {

// ---- Failures and delays on demand ----

// Any operation can fail: "the third copy from now fails". A failure is *at the call*, like an
// invalid stream, or *when run*, like a failing CUDA kernel: the call succeeds, and the next
// synchronisation reports the failure.

/// The operations that can fail on demand, with their names in tests.
enum class Operation : std::uint8_t {
  kAllocate,
  kCopy,
  kFill,
  kLaunch,
  kSynchronize,
  kOrder,
  kStream,  // create, destroy and query a stream
  kPointerInfo,
};
inline constexpr std::array<std::string_view, 8> kOperationNames{
    "allocate", "copy", "fill", "launch", "synchronize", "order", "stream", "pointer_info"};

/// The operation of that name. Error: kValue, listing the names.
absl::StatusOr<Operation> operation(std::string_view name);

/// A failure or a delay to inject, and the calls that it is for.
struct Fault {
  std::optional<Operation> operation = {};  // none: any
  std::int64_t first_call = 1;              // counted from the injection
  std::int64_t call_count = 1;
  absl::Status error = {};  // the result of the call or of the work; OK: only a delay
  bool when_run = false;    // of copy, fill and launch: the work fails, not the call
  std::int64_t delay_milliseconds = 0;
};

/// The injected result of an operation.
struct Verdict {
  absl::Status at_call = {};
  absl::Status when_run = {};
  std::int64_t delay_milliseconds = 0;  // at least, from the call to the work
};

/// The injected failures and the calls so far. Safe on any thread.
class Faults {
 public:
  /// Returns the argument for `remove`.
  std::int64_t inject(const Fault& fault);
  void remove(std::int64_t number);
  void clear();

  /// Counts the call. Returns the failure that was injected first, and the sum of the delays.
  Verdict judge(Operation operation);
  /// How often an operation (none: any) was called.
  std::int64_t calls(std::optional<Operation> operation);

 private:
  struct Armed {
    std::int64_t number;
    Fault fault;
    std::int64_t seen = 0;
  };
  ForkSafe<std::mutex> mutex_;
  std::int64_t last_number_ = 0;
  std::vector<Armed> armed_;
  std::array<std::int64_t, kOperationNames.size()> calls_{};
};

// ---- Memory ----

/// What work may do with an allocation.
enum class RangeState : std::uint8_t {
  kOrdered,   // the allocation is enqueued on a stream and has not run
  kLive,      // usable
  kReleased,  // the owner released it; work enqueued before may still use it
  kGone,      // work must not use it
};

/// One allocation. Its bytes live while a pointer to it does.
struct Range {
  MemoryKind kind = MemoryKind::kDevice;
  std::uintptr_t begin = 0;  // the public address
  std::int64_t length_bytes = 0;
  std::byte* bytes = nullptr;  // the alias
};
/// Keeps the bytes of an allocation alive.
using RangePtr = std::shared_ptr<const Range>;

/// What the emulated memory holds.
struct MemoryStatistics {
  std::int64_t live_blocks = 0;  // not yet released by their owner
  std::int64_t live_bytes = 0;   // of live blocks, including placement
  std::int64_t held_bytes = 0;   // live, or waiting for a stream
  std::int64_t peak_live_bytes = 0;
  LiveBytes live_bytes_of_kind{};

  friend bool operator==(const MemoryStatistics&, const MemoryStatistics&) = default;
};

/// All ranges. Released addresses are not reused for a while, so that stale pointers are found.
class Memory {
 public:
  /// The value of a fresh byte unless zeros were requested; in larger ranges, of the first
  /// kFreshBytes.
  static constexpr std::byte kFresh{0xCB};
  static constexpr std::int64_t kFreshBytes = std::int64_t{16} << 20;
  /// The alignment of device and managed addresses, exactly as in CUDA.
  static constexpr std::int64_t kAlignmentBytes = 256;
  /// How much address space of released ranges is not reused, and of how many ranges.
  static constexpr std::int64_t kQuarantineBytes = std::int64_t{1} << 32;
  static constexpr std::size_t kQuarantineRanges = 4096;

  Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  /// A new range of `length_bytes` > 0. With `populate` its pages are committed. Errors: kMemory if
  /// the machine lacks memory, or beyond the capacity.
  absl::StatusOr<RangePtr> map(MemoryKind kind, std::int64_t length_bytes, RangeState state,
                               bool zeroed, bool populate);

  /// Limits the bytes of all ranges together; kMemory beyond it. Default: the memory of the
  /// machine.
  void set_capacity(std::int64_t capacity_bytes);

  void set_state(const Range& range, RangeState state);
  RangeState state(const Range& range);

  /// The range around the address, in any state but kGone; else null.
  RangePtr find(const void* address);
  /// Whether memory at this address was released lately.
  bool was_released(const void* address);

  /// The range around [address, address + length_bytes); null for ordinary memory of the host.
  /// kValue, naming `role` ("copy source"), if the bytes exceed the range or were released.
  absl::StatusOr<RangePtr> range_of(std::string_view role, const void* address,
                                    std::int64_t length_bytes);

  /// As range_of, for work that runs now. It may use memory that the owner has released since.
  absl::StatusOr<RangePtr> range_in_work(std::string_view role, const void* address,
                                         std::int64_t length_bytes);

  /// The alias of `address`, for work of the device that runs now. kInternal if the allocation has
  /// not run yet, or the range is gone.
  absl::StatusOr<std::byte*> translate(std::string_view role, const Range& range,
                                       const void* address);

  MemoryStatistics statistics();

 private:
  struct Record {
    std::weak_ptr<const Range> range;
    std::int64_t length_bytes;
    RangeState state;
  };
  struct Quarantined {
    std::uintptr_t begin;
    std::int64_t mapped_bytes;
  };
  absl::Status check_room(std::int64_t length_bytes, bool populate);
  void enter(const RangePtr& range, RangeState state);
  const Record* record_around(std::uintptr_t address) const;
  void give_back(const Range& range, std::uintptr_t mapping, std::int64_t mapped_bytes) noexcept;

  ForkSafe<std::mutex> mutex_;
  std::map<std::uintptr_t, Record> records_;  // by begin
  std::deque<Quarantined> quarantine_;        // the oldest first
  std::int64_t quarantine_bytes_ = 0;
  std::int64_t capacity_bytes_ = INT64_MAX;
  MemoryStatistics statistics_;
};

// ---- Streams ----

/// A piece of work. The next synchronisation reports its failure.
using Work = std::function<absl::Status()>;

/// A position in a queue: all work enqueued there so far.
struct Point {
  std::shared_ptr<Queue> queue;
  std::uint64_t position = 0;
};
/// Positions that work waits for.
using Points = std::vector<Point>;

/// An operation runs when two kinds of operations have run: those before it in its queue, and those
/// that it is *after*:
///   * of an event wait: all that the producer had pending at the time of the record;
///   * on the legacy default stream: all that blocking streams (the per-thread default streams too)
///     had pending; and an operation on one of those is after all that the legacy stream had.
/// All of them were enqueued before it, so cycles are impossible.
class LateStreams {
 public:
  /// A queue runs its oldest operations when it holds more than this.
  static constexpr std::size_t kMostPending = 4096;
  /// After so many consecutive queries whether a stream is idle, its work runs.
  static constexpr int kPatience = 16;

  LateStreams();

  StreamHandle create(StreamKind kind);
  /// kValue for a handle that `create` did not return. Pending work stays.
  absl::Status destroy(StreamHandle stream);
  /// kValue for 0 and for a handle that is not a live stream.
  absl::Status check(StreamHandle stream);

  /// Adds work, which is also after `points`.
  absl::Status enqueue(StreamHandle stream, Work work, Points points = {});
  absl::Status order_after(StreamHandle producer, StreamHandle consumer);
  /// The pending work of the stream, as an argument of enqueue.
  absl::StatusOr<Points> pending_now(StreamHandle stream);
  /// The queues of `points`, with all work that is pending now.
  Points refreshed(const Points& points);
  /// Adds work to a queue. Its stream may be destroyed, because memory outlives streams. The work
  /// runs at once if it need not wait.
  void enqueue_last(const Point& point, Work work, Points points);
  /// Runs pending work of the queue as long as it does not depend on another thread's work.
  void run_without_waiting(const Point& point);

  /// Runs all pending work and returns the first failure since the last synchronisation.
  absl::Status synchronize(StreamHandle stream);
  absl::Status synchronize_device();
  /// Runs all pending work without reporting. Without `may_wait`, as long as it does not depend on
  /// another thread's work.
  void run_device(bool may_wait);
  absl::StatusOr<bool> is_idle(StreamHandle stream);

  std::int64_t pending_operations();
  std::int64_t live_streams();

 private:
  using Lock = std::unique_lock<std::mutex>;
  absl::StatusOr<std::shared_ptr<Queue>> find(StreamHandle stream);
  std::shared_ptr<Queue> this_threads_queue();
  Points tails_of_blocking_queues();
  Points what_it_waits_for(const std::shared_ptr<Queue>& queue);
  void add(const std::shared_ptr<Queue>& queue, Work work, Points points);
  void forget_drained_queues();
  void run(Lock& lock, Points wanted, bool may_wait);
  void run_front(Lock& lock, Queue& queue);
  void bound_lateness(Lock& lock, const std::shared_ptr<Queue>& queue);
  absl::Status take_error();

  ForkSafe<std::mutex> mutex_;
  std::condition_variable progress_;
  std::uint64_t id_;  // of this object: threads cache their queue by it
  StreamHandle next_handle_;
  std::shared_ptr<Queue> legacy_;
  std::unordered_map<StreamHandle, std::shared_ptr<Queue>> streams_;
  std::vector<std::shared_ptr<Queue>> queues_;  // all queues that may have work, legacy_ first
  absl::Status first_error_;
};

/// Whether this thread runs work of a stream. It must then not wait for streams.
bool inside_work() noexcept;

}  // namespace gridbuf::emulated

export namespace gridbuf {

// ---- The driver ----

/// Access of a kernel of the emulated device to its memory.
class KernelMemory {
 public:
  explicit KernelMemory(emulated::Memory& memory) : memory_(memory) {}
  /// The address of the bytes [address, address + length_bytes) of the device for the kernel; valid
  /// until the kernel ends. kInternal for addresses that a device cannot access.
  absl::StatusOr<std::byte*> at(const void* address, std::int64_t length_bytes);

 private:
  emulated::Memory& memory_;
  std::vector<emulated::RangePtr> used_;  // kept until the kernel ends
};

/// Runs on the thread that waits for its stream. It must not wait for a stream itself.
using Kernel = std::function<absl::Status(KernelMemory&)>;

/// What the emulated device holds, and what it copied.
struct EmulatedStatistics : emulated::MemoryStatistics {
  std::int64_t pending_operations = 0;
  std::int64_t live_streams = 0;  // created and not destroyed
  // Bytes that copies moved between memory of the host (pinned or not) and of the device.
  std::int64_t host_to_device_bytes = 0;
  std::int64_t device_to_host_bytes = 0;
};

/// The driver of the emulated device.
class EmulatedDriver final : public DeviceDriver {
 public:
  /// For tests; other code calls emulated_driver(). The driver must outlive its blocks.
  EmulatedDriver() : DeviceDriver({"emulated pinned", "emulated managed", "emulated device"}) {}

  std::string_view name() const noexcept override { return "emulated"; }
  bool is_emulated() const noexcept override { return true; }
  absl::StatusOr<Device> current_device() override;

  absl::Status copy(void* target, const void* source, std::int64_t length_bytes,
                    StreamHandle stream) override;
  absl::Status copy_rows(const RowCopy& rows, StreamHandle stream) override;
  absl::Status fill(void* target, std::byte value, std::int64_t length_bytes,
                    StreamHandle stream) override;
  absl::Status launch(const DeviceKernel& kernel, StreamHandle stream) override;
  absl::Status synchronize(StreamHandle stream) override;
  absl::Status synchronize_device() override;
  absl::Status order_after(StreamHandle producer, StreamHandle consumer) override;

  absl::StatusOr<StreamHandle> create_stream(StreamKind kind) override;
  absl::Status destroy_stream(StreamHandle stream) override;
  absl::Status check_stream(StreamHandle stream) override;
  absl::StatusOr<bool> is_idle(StreamHandle stream) override;

  absl::StatusOr<PointerInfo> pointer_info(const void* address) override;
  void note_use(const void* address, StreamHandle stream) noexcept override;
  /// Also of memory that was released lately.
  bool owns(const void* address) override {
    return memory_.find(address) != nullptr || memory_.was_released(address);
  }
  DeviceInfo info() override;
  LiveBytes live_bytes() override;

  // --- Only on the emulated device ---------------------------------------------------------------

  /// Enqueues a kernel of a test. The kernel finds its operands through KernelMemory.
  absl::Status launch(StreamHandle stream, Kernel kernel);
  /// Enqueues a kernel and waits for it. At the return it has run, or will never run: it may refer
  /// to the caller's variables.
  absl::Status run(StreamHandle stream, const Kernel& kernel);
  EmulatedStatistics statistics();
  /// Sets the memory of the device in bytes; allocations beyond it are kMemory.
  void set_capacity(std::int64_t capacity_bytes) { memory_.set_capacity(capacity_bytes); }
  emulated::Faults& faults() { return faults_; }

 private:
  struct BlockRecord;
  absl::Status enter(emulated::Operation operation, emulated::Verdict* verdict = nullptr);
  absl::Status enter_waiting(emulated::Operation operation);
  absl::Status enqueue(StreamHandle stream, const emulated::Verdict& verdict, emulated::Work work,
                       const std::vector<emulated::RangePtr>& used);
  absl::StatusOr<Block> allocate(MemoryKind kind, const AllocationRequest& request) override;
  absl::StatusOr<emulated::RangePtr> map(MemoryKind kind, const AllocationRequest& request,
                                         std::int64_t block_bytes);
  absl::Status start_block(const emulated::RangePtr& range, const AllocationRequest& request,
                           const std::byte* data, StreamHandle stream);
  static void release(void* context, void* allocation) noexcept;
  void release(BlockRecord& record);
  void add_use(const emulated::RangePtr& range, const emulated::Point& point);
  emulated::Points take_uses(const emulated::Range& range);
  void count_moved(const emulated::Range* target, const emulated::Range* source,
                   std::int64_t bytes);

  DriverProcess process_;
  emulated::Memory memory_;
  emulated::LateStreams streams_;
  emulated::Faults faults_;
  ForkSafe<std::mutex> mutex_;                                 // of what follows
  std::unordered_map<std::uintptr_t, emulated::Points> uses_;  // by range: uses on other streams
  std::atomic<std::int64_t> host_to_device_bytes_ = 0;
  std::atomic<std::int64_t> device_to_host_bytes_ = 0;
};

/// The process's emulated device. Never destroyed, because memory may be released at the exit.
EmulatedDriver& emulated_driver();

}  // namespace gridbuf
