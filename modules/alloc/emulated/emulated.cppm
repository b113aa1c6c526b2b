// gridbuf.alloc.emulated: a device in host memory, as strict as a real one may be.
//
// The second implementation of DeviceDriver. Its purpose is to find the mistakes that a GPU
// forgives, on a machine without one:
//
//   * a host that touches device memory is ended by a segmentation fault (emulated.memory);
//   * work on a stream runs as late as CUDA's rules allow, so a missing wait reads old bytes every
//     time (emulated.streams);
//   * memory that is used before its allocation or after its release, and copies beyond an
//     allocation, are errors that say so;
//   * any operation fails or dawdles on demand (emulated.faults).
//
// It is CUDA by its rules and its codes (device type kCuda, device 0; stream handles 1 and 2; what
// is pageable, what is pinned), but never by stealth: it is used only where somebody switched it on
// (gridbuf.alloc.devices), and its name is in every text about it.
//
// Allocation is stream-ordered as cudaMallocAsync is: a block may be used by work on its own stream
// and on those ordered after it. It is freed in that stream too, after all work that this driver
// enqueued on it and after the streams of note_use.
//
// What it is not: fast, or a model of time. Kernels are functions of the host.
module;

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

export module gridbuf.alloc.emulated;

import gridbuf.alloc.device;
export import gridbuf.alloc.emulated.faults;
import gridbuf.alloc.emulated.memory;
import gridbuf.alloc.emulated.streams;
import gridbuf.alloc;

namespace gridbuf::emulated {
class Resource;
}

export namespace gridbuf {

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

/// A kernel: runs on whichever thread waits for its stream. It must not wait for a stream itself;
/// it may allocate, release and enqueue.
using Kernel = std::function<absl::Status(KernelMemory&)>;

struct EmulatedStatistics {
  std::int64_t live_blocks = 0;  // not yet released by their owner, all kinds
  std::int64_t live_bytes = 0;   // of those, what placement costs included
  std::int64_t held_bytes = 0;   // live, or waiting for a stream to be given back
  std::int64_t peak_live_bytes = 0;
  std::int64_t pending_operations = 0;
  std::int64_t live_streams = 0;  // created and not destroyed
  // What copies have moved between memory of the host (pinned or not) and of the device.
  std::int64_t host_to_device_bytes = 0;
  std::int64_t device_to_host_bytes = 0;
};

class EmulatedDriver final : public DeviceDriver {
 public:
  /// Pageable sources longer than this are copied before `copy` returns; shorter ones are read then
  /// and written late.
  static constexpr std::int64_t kStagedBytes = std::int64_t{64} << 20;

  /// How much released memory may wait for streams before a release runs what it waits for.
  static constexpr std::int64_t kHeldBytes = std::int64_t{256} << 20;

  /// Drivers of tests must outlive their blocks; everyone else takes emulated_driver().
  EmulatedDriver();
  ~EmulatedDriver() override;

  std::string_view name() const noexcept override { return "emulated"; }
  bool is_emulated() const noexcept override { return true; }
  MemoryResource& resource(MemoryKind kind) override;
  absl::StatusOr<Device> current_device() override;

  absl::Status copy(void* target, const void* source, std::int64_t length_bytes,
                    StreamHandle stream) override;
  absl::Status copy_rows(const RowCopy& rows, StreamHandle stream) override;
  absl::Status fill(void* target, std::byte value, std::int64_t length_bytes,
                    StreamHandle stream) override;
  absl::Status slow_fill(void* target, std::byte value, std::int64_t length_bytes,
                         std::uint32_t milliseconds, StreamHandle stream) override;
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
  void prefetch(const void* address, std::int64_t length_bytes, bool to_device,
                StreamHandle stream) noexcept override;
  void advise(const void* address, std::int64_t length_bytes, Advice advice) noexcept override;
  std::vector<std::pair<std::string, std::string>> facts() override;

  // --- What only the emulated device has ---------------------------------------------------------

  /// Enqueues a kernel of a test, which finds its operands itself.
  absl::Status launch(StreamHandle stream, Kernel kernel);
  /// Whether the address is, or lately was, memory of this driver.
  bool owns(const void* address);
  EmulatedStatistics statistics();
  /// How many bytes the device has; allocations beyond are kMemory.
  void set_capacity(std::int64_t capacity_bytes);
  emulated::Faults& faults() { return faults_; }
  /// How often prefetch and advise found memory that they are for.
  std::int64_t hints();

 private:
  friend class emulated::Resource;
  struct BlockRecord;
  absl::Status enter(emulated::Operation operation, emulated::Verdict& verdict);
  absl::Status enter_waiting(emulated::Operation operation);
  absl::Status enqueue(StreamHandle stream, const emulated::Verdict& verdict, emulated::Work work,
                       const std::vector<emulated::RangePtr>& used);
  absl::StatusOr<Block> allocate(MemoryKind kind, const AllocationRequest& request);
  absl::StatusOr<emulated::RangePtr> map(MemoryKind kind, const AllocationRequest& request,
                                         std::int64_t block_bytes);
  absl::Status start_block(const emulated::RangePtr& range, const AllocationRequest& request,
                           const std::byte* data, StreamHandle stream);
  static void release(void* context, void* allocation) noexcept;
  void release(BlockRecord& record);
  void add_use(const emulated::RangePtr& range, const emulated::Point& point);
  void take_hint(const void* address) noexcept;
  emulated::Points take_uses(const emulated::Range& range);
  void count_moved(const emulated::Range* target, const emulated::Range* source,
                   std::int64_t bytes);

  DriverProcess process_;
  emulated::Memory memory_;
  emulated::LateStreams streams_;
  emulated::Faults faults_;
  std::vector<std::unique_ptr<emulated::Resource>> resources_;  // pinned, managed, device
  std::mutex mutex_;                                            // of what follows
  std::unordered_map<std::uintptr_t, emulated::Points> uses_;   // by range: who else uses it
  std::int64_t hints_ = 0;
  std::atomic<std::int64_t> host_to_device_bytes_ = 0;
  std::atomic<std::int64_t> device_to_host_bytes_ = 0;
};

/// The process's emulated device. Never destroyed: memory may be released at any moment of the
/// exit.
EmulatedDriver& emulated_driver();

}  // namespace gridbuf
