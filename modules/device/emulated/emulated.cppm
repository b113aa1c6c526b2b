// gridbuf.device.emulated: a device in host memory, as strict as a real one may be.
//
// It finds the mistakes that a GPU forgives, on a machine without one. A host that touches device
// memory gets a segmentation fault. Work on a stream runs as late as CUDA's rules allow, so a
// missing wait reads old bytes every time. Memory that is used before its allocation or after its
// release, and copies beyond an allocation, are errors that say so. Any operation fails or is
// delayed on demand. Rules and codes are CUDA's (device type kCuda, device 0, stream handles 1 and
// 2). It is not a fallback and not a model of time.
//
// Key decision: memory. Device memory is two mappings of equal length. The public one is where the
// users' addresses point to: it is PROT_NONE, so a host that touches it faults at that instruction.
// The bytes are in the other one, the alias, whose address stays in this library. Managed and
// pinned memory is one ordinary mapping.
//
// Key decision: streams. Every stream is a queue, and this library has no threads: the thread that
// synchronises runs what it waits for, and nothing else. A run can then be repeated. No lock is
// held while work runs, so work may take a lock (Python's) that a thread which only enqueues holds.
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

export module gridbuf.device.emulated;

import gridbuf.alloc;
import gridbuf.device;

namespace gridbuf::emulated {
struct Queue;
}

export namespace gridbuf::emulated {

// ---- Failures and delays on demand ----

// Any operation can fail: "the third copy from now fails". A failure is either *at the call*, as
// when a stream is invalid, or *when run*: the call succeeds and the next synchronisation reports
// it, as CUDA reports the failures of kernels.

/// The operations that can be made to fail, as tests name them.
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

struct Fault {
  std::optional<Operation> operation = {};  // none: any
  std::int64_t first_call = 1;              // counted from the injection
  std::int64_t call_count = 1;
  absl::Status error = {};  // what the call, or the work, answers; OK: it is only delayed
  bool when_run = false;    // for copy, fill and launch: the work fails, not the call
  std::int64_t delay_milliseconds = 0;
};

/// What an operation has to do besides.
struct Verdict {
  absl::Status at_call = {};
  absl::Status when_run = {};
  std::int64_t delay_milliseconds = 0;  // after the call, at least, before the work runs
};

class Faults {
 public:
  /// Returns a number for `remove`.
  std::int64_t inject(const Fault& fault);
  void remove(std::int64_t number);
  void clear();

  /// Counts the call. Of several failures the first one injected counts, of delays the sum.
  Verdict judge(Operation operation);
  /// How often an operation (none: any) was called.
  std::int64_t calls(std::optional<Operation> operation);

 private:
  struct Armed {
    std::int64_t number;
    Fault fault;
    std::int64_t seen = 0;
  };
  std::mutex mutex_;
  std::int64_t last_number_ = 0;
  std::vector<Armed> armed_;
  std::array<std::int64_t, kOperationNames.size()> calls_{};
};

// ---- Memory ----

enum class RangeState : std::uint8_t {
  kOrdered,   // its allocation is enqueued on a stream and has not run
  kLive,      // usable
  kReleased,  // its owner gave it back; work enqueued before may still use it
  kGone,      // no work may use it any more
};

/// One allocation. Its bytes live while a pointer to it does.
struct Range {
  DeviceType kind = DeviceType::kCuda;
  std::uintptr_t begin = 0;  // the public address …
  std::int64_t length_bytes = 0;
  std::byte* bytes = nullptr;  // … and where its bytes are
};
using RangePtr = std::shared_ptr<const Range>;

struct MemoryStatistics {
  std::int64_t live_blocks = 0;  // not yet released by their owner
  std::int64_t live_bytes = 0;   // of those, what placement costs included
  std::int64_t held_bytes = 0;   // not yet given back: live, or waiting for a stream
  std::int64_t peak_live_bytes = 0;

  friend bool operator==(const MemoryStatistics&, const MemoryStatistics&) = default;
};

/// Released addresses stay out of use for a while, so that a stale pointer is found.
class Memory {
 public:
  /// What a fresh byte holds unless zeros were asked for; of larger ranges the first kFreshBytes.
  static constexpr std::byte kFresh{0xCB};
  static constexpr std::int64_t kFreshBytes = std::int64_t{16} << 20;
  /// Device and managed addresses are multiples of this and of no more, as with CUDA.
  static constexpr std::int64_t kAlignmentBytes = 256;
  /// How much address space of released ranges is kept out of use, and how many of them.
  static constexpr std::int64_t kQuarantineBytes = std::int64_t{1} << 32;
  static constexpr std::size_t kQuarantineRanges = 4096;

  Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  /// A new range of `length_bytes` > 0. With `populate` its pages are committed. Errors: kMemory if
  /// the machine has none, or beyond the capacity.
  absl::StatusOr<RangePtr> map(DeviceType kind, std::int64_t length_bytes, RangeState state,
                               bool zeroed, bool populate);

  /// What all ranges together may hold; kMemory beyond it. Default: what the machine has.
  void set_capacity(std::int64_t capacity_bytes);

  void set_state(const Range& range, RangeState state);
  RangeState state(const Range& range);

  /// The range around the address in any state but given back; null if there is none.
  RangePtr find(const void* address);
  /// Whether released memory was at this address lately.
  bool was_released(const void* address);

  /// The range that holds [address, address + length_bytes); null for ordinary memory of the host.
  /// kValue, naming `role` ("copy source"), if it reaches beyond the range or was released.
  absl::StatusOr<RangePtr> range_of(std::string_view role, const void* address,
                                    std::int64_t length_bytes);

  /// The same for work that runs now, which may use what its owner has released meanwhile.
  absl::StatusOr<RangePtr> range_in_work(std::string_view role, const void* address,
                                         std::int64_t length_bytes);

  /// Where work of the device finds the bytes of `address` now. kInternal if the allocation has not
  /// run yet, or the range is gone.
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

  std::mutex mutex_;
  std::map<std::uintptr_t, Record> records_;  // by begin
  std::deque<Quarantined> quarantine_;        // oldest first
  std::int64_t quarantine_bytes_ = 0;
  std::int64_t capacity_bytes_ = INT64_MAX;
  MemoryStatistics statistics_;
};

// ---- Streams ----

/// A piece of work. A failure is kept and reported by the next synchronisation.
using Work = std::function<absl::Status()>;

/// A position in a queue: everything enqueued there so far.
struct Point {
  std::shared_ptr<Queue> queue;
  std::uint64_t position = 0;
};
using Points = std::vector<Point>;

/// An operation runs when those before it in its own queue have run and those it is *after*:
///   * of an event wait: all that the producer had pending at the time of the record;
///   * on the legacy default stream: all that blocking streams (the per-thread default streams too)
///     had pending; and an operation on one of those is after all that the legacy stream had.
/// These are operations that were enqueued before, so there are no cycles.
class LateStreams {
 public:
  /// A queue runs its oldest operations when it holds more than this.
  static constexpr std::size_t kMostPending = 4096;
  /// A stream that is asked this often whether it is idle, with nothing in between, is run.
  static constexpr int kPatience = 16;

  LateStreams();

  StreamHandle create(StreamKind kind);
  /// kValue for what `create` did not give. Pending work stays.
  absl::Status destroy(StreamHandle stream);
  /// kValue for 0 and for what is no live stream.
  absl::Status check(StreamHandle stream);

  /// Adds work, after `points` too.
  absl::Status enqueue(StreamHandle stream, Work work, Points points = {});
  absl::Status order_after(StreamHandle producer, StreamHandle consumer);
  /// What the stream has pending now, for enqueue.
  absl::StatusOr<Points> pending_now(StreamHandle stream);
  /// The same queues, with all that they have pending now.
  Points refreshed(const Points& points);
  /// Adds work to a queue that may have lost its stream, for memory outlives streams. It runs at
  /// once if it has nothing to wait for.
  void enqueue_last(const Point& point, Work work, Points points);
  /// Runs what the queue has pending as far as that needs no other thread's work.
  void run_without_waiting(const Point& point);

  /// Runs what is pending and returns the first failure since the last synchronisation.
  absl::Status synchronize(StreamHandle stream);
  absl::Status synchronize_device();
  /// The same without the report. If it may not wait, as far as that needs no other thread's work.
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

  std::mutex mutex_;
  std::condition_variable progress_;
  std::uint64_t id_;  // of this object, for queues kept by threads
  StreamHandle next_handle_;
  std::shared_ptr<Queue> legacy_;
  std::unordered_map<StreamHandle, std::shared_ptr<Queue>> streams_;
  std::vector<std::shared_ptr<Queue>> queues_;  // all that may have work, legacy_ first
  absl::Status first_error_;
};

/// Whether this thread is running work of a stream: it must not wait for streams then.
bool inside_work() noexcept;

}  // namespace gridbuf::emulated

export namespace gridbuf {

// ---- The driver ----

/// What a kernel of the emulated device sees of memory.
class KernelMemory {
 public:
  explicit KernelMemory(emulated::Memory& memory) : memory_(memory) {}
  /// Where the kernel finds the bytes [address, address + length_bytes) of the device; valid until
  /// the kernel ends. kInternal for addresses that a device could not reach.
  absl::StatusOr<std::byte*> at(const void* address, std::int64_t length_bytes);

 private:
  emulated::Memory& memory_;
  std::vector<emulated::RangePtr> used_;  // kept until the kernel ends
};

/// Runs on the thread that waits for its stream. It must not wait for a stream itself.
using Kernel = std::function<absl::Status(KernelMemory&)>;

struct EmulatedStatistics : emulated::MemoryStatistics {
  std::int64_t pending_operations = 0;
  std::int64_t live_streams = 0;  // created and not destroyed
  // What copies have moved between memory of the host (pinned or not) and of the device.
  std::int64_t host_to_device_bytes = 0;
  std::int64_t device_to_host_bytes = 0;
};

class EmulatedDriver final : public DeviceDriver {
 public:
  /// Drivers of tests must outlive their blocks; everyone else takes emulated_driver().
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
  std::vector<std::pair<std::string, std::string>> info() override;

  // --- What only the emulated device has ---------------------------------------------------------

  /// Enqueues a kernel of a test, which finds its operands itself.
  absl::Status launch(StreamHandle stream, Kernel kernel);
  /// Whether the address is, or lately was, memory of this driver.
  bool owns(const void* address) {
    return memory_.find(address) != nullptr || memory_.was_released(address);
  }
  EmulatedStatistics statistics();
  /// How many bytes the device has; allocations beyond are kMemory.
  void set_capacity(std::int64_t capacity_bytes) { memory_.set_capacity(capacity_bytes); }
  emulated::Faults& faults() { return faults_; }

 private:
  struct BlockRecord;
  absl::Status enter(emulated::Operation operation, emulated::Verdict* verdict = nullptr);
  absl::Status enter_waiting(emulated::Operation operation);
  absl::Status enqueue(StreamHandle stream, const emulated::Verdict& verdict, emulated::Work work,
                       const std::vector<emulated::RangePtr>& used);
  absl::StatusOr<Block> allocate(DeviceType kind, const AllocationRequest& request) override;
  absl::StatusOr<emulated::RangePtr> map(DeviceType kind, const AllocationRequest& request,
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
  std::mutex mutex_;                                           // of what follows
  std::unordered_map<std::uintptr_t, emulated::Points> uses_;  // by range: other streams' uses
  std::atomic<std::int64_t> host_to_device_bytes_ = 0;
  std::atomic<std::int64_t> device_to_host_bytes_ = 0;
};

/// The process's emulated device. Not destroyed: memory may be released at the exit.
EmulatedDriver& emulated_driver();

}  // namespace gridbuf
