// gridbuf.device.cuda: CUDA devices.
//
// The DeviceDriver over the CUDA runtime, through a table of C functions (runtime/). No CUDA
// function is called before the first request for a device, none while the process ends, and none
// in a child after fork.
//
// Device memory comes from the device's default pool (cudaMallocAsync), or from cudaMalloc where a
// device has no pools. The pool keeps an eighth of the device's memory: by default it gives
// everything back at every synchronisation, and the next allocation is slow. Pinned memory
// (`PinnedPages`) is pages of our own: the driver's allocator touches small pages on one thread, at
// 1 to 2 GB/s. Ours are huge, and several threads touch them before the driver locks them.
//
// Key decision: when memory is freed. A block is freed in the order of the stream that made it.
// Work that this driver enqueues on other streams is remembered by an event, and the free waits for
// it on the device. Streams that an export named (note_use) may have work that this driver does not
// know: the release waits for blocking ones through the legacy default stream. A non-blocking
// stream may be gone by then: the release waits for the device, as cudaFree does.
module;

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "modules/device/cuda/runtime/runtime.h"

export module gridbuf.device.cuda;

import gridbuf.alloc;
import gridbuf.alloc.host;
import gridbuf.device;

namespace gridbuf::cuda {
struct Record;
}

export namespace gridbuf {

struct PageLock {
  std::function<absl::Status(void* address, std::int64_t length_bytes)> lock;
  std::function<void(void* address)> unlock;
};

/// Locked pages. Those that are given back stay locked and are kept for reuse, up to a limit. Safe
/// on any thread.
class PinnedPages {
 public:
  /// The default limit is enough for the staging of two fields.
  explicit PinnedPages(PageLock lock, std::int64_t limit_bytes = std::int64_t{256} << 20);

  struct Pages {
    pages::Mapping mapping;
    std::int64_t length_bytes = 0;  // what it serves
    bool from_cache = false;        // its bytes are then what they were
  };
  /// Locked, present pages of at least `length_bytes` ≥ 1. Errors: kMemory if the kernel has none;
  /// what `lock` answers (nothing stays mapped then).
  absl::StatusOr<Pages> take(std::int64_t length_bytes);
  /// Keeps or unlocks and unmaps them. The device must not use them any more.
  void give(const Pages& pages) noexcept;

  /// Gives up everything that is kept.
  void trim();
  std::int64_t cached_bytes();

 private:
  void drop(const MappingCache::Victims& victims) noexcept;

  PageLock lock_;
  std::mutex mutex_;
  MappingCache cache_;
};

class CudaDriver final : public DeviceDriver {
 public:
  /// cudaMemcpy2D takes no longer pitches; rows further apart are copied one by one.
  static constexpr std::int64_t kLongestPitchBytes = (std::int64_t{1} << 31) - 1;

  /// The runtime must have a device. Everyone but tests takes cuda_driver().
  explicit CudaDriver(const gridbuf_cuda_runtime& runtime);

  std::string_view name() const noexcept override { return "cuda"; }
  bool is_emulated() const noexcept override { return false; }
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

  /// Whether the address lies in a block of this driver.
  bool owns(const void* address);
  /// Blocks that were not released.
  std::int64_t live_blocks();
  PinnedPages& pinned_pages() { return pinned_; }

 private:
  using RecordPtr = std::shared_ptr<cuda::Record>;

  absl::Status enter(StreamHandle stream) const;
  absl::Status checked(int error, std::string_view call) const;
  absl::StatusOr<int> current_ordinal() const;
  absl::StatusOr<const gridbuf_cuda_device*> info_of(int device);
  absl::StatusOr<Block> allocate(DeviceType kind, const AllocationRequest& request) override;
  absl::Status obtain(cuda::Record& record, std::int64_t block_bytes);
  int obtain_device(cuda::Record& record, std::uint64_t block_bytes);
  absl::Status obtain_pinned(cuda::Record& record, std::int64_t block_bytes);
  absl::Status zero(const cuda::Record& record, std::byte* data, std::int64_t length_bytes);
  void free_memory(cuda::Record& record) noexcept;
  void give_back(cuda::Record& record) noexcept;
  int wait_for_uses(cuda::Record& record) noexcept;
  static void release(void* context, void* allocation) noexcept;
  RecordPtr record_around(const void* address);
  absl::Status enqueued(std::initializer_list<const void*> addresses, StreamHandle stream);
  int order(StreamHandle producer, StreamHandle consumer) const;

  const gridbuf_cuda_runtime& runtime_;
  DriverProcess process_;
  PinnedPages pinned_;
  std::mutex mutex_;                             // of what follows
  std::map<std::uintptr_t, RecordPtr> records_;  // by begin of the allocation
  std::map<int, gridbuf_cuda_device> devices_;
  std::set<StreamHandle> own_streams_;
};

/// The process's CUDA driver; started at the first call and not destroyed. Error:
/// kDeviceUnavailable if gridbuf was built without CUDA, or there is no driver or no device.
absl::StatusOr<CudaDriver*> cuda_driver();

/// The driver if it has been started, else null.
CudaDriver* started_cuda_driver() noexcept;

/// Why `runtime` has no device to offer, or OK. Starts CUDA's driver.
absl::Status find_cuda_device(const gridbuf_cuda_runtime* runtime);

/// What is known of CUDA without starting it: ("cuda driver", "not found: …"), ….
std::vector<std::pair<std::string, std::string>> cuda_info();

}  // namespace gridbuf
