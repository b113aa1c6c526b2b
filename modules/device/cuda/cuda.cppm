// gridbuf.device.cuda: CUDA devices.
//
// The DeviceDriver for the CUDA runtime, which it calls through a table of C functions (runtime/).
// It does not call CUDA before the first request for a device, at the exit, or in a child after
// fork.
//
// Device memory comes from the device's default pool (cudaMallocAsync), or from cudaMalloc on a
// device without pools. The pool keeps an eighth of the device's memory. By default it would return
// all memory at every synchronisation, and the next allocation would be slow. Pinned memory
// (`PinnedPages`) is pages that gridbuf maps and CUDA locks: CUDA's allocator touches small pages
// on one thread, at 1 to 2 GB/s. gridbuf maps huge pages, and several threads touch them before the
// lock.
//
// Key decision: when memory is freed. A block is freed in the order of the stream on which it was
// allocated. For work that this driver enqueues on other streams it records an event, and the free
// waits for the event on the device. Streams that an export named (note_use) may have other work.
// The release waits for blocking streams through the legacy default stream. A non-blocking stream
// may no longer exist then, so the release waits for the device, as cudaFree does.
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
#include "modules/base/fork.h"
#include "modules/device/cuda/runtime/runtime.h"

export module gridbuf.device.cuda;

import gridbuf.alloc;
import gridbuf.alloc.host;
export import gridbuf.device;

namespace gridbuf::cuda {
struct Record;
}

export namespace gridbuf {

/// The functions that lock and unlock pages for a device.
struct PageLock {
  std::function<absl::Status(void* address, std::int64_t length_bytes)> lock;
  std::function<void(void* address)> unlock;
};

/// Locked pages. Returned pages stay locked and are kept for reuse, up to a limit. Safe on any
/// thread.
class PinnedPages {
 public:
  /// The default limit is enough for the staging of two fields.
  explicit PinnedPages(PageLock lock, std::int64_t limit_bytes = std::int64_t{256} << 20);

  /// Locked pages for one request.
  struct Pages {
    pages::Mapping mapping;
    std::int64_t length_bytes = 0;  // of the request
    bool from_cache = false;        // then the bytes have old values
  };
  /// Locked, present pages of at least `length_bytes` ≥ 1. Errors: kMemory if the kernel lacks
  /// pages; the error of `lock`, after which the pages are unmapped.
  absl::StatusOr<Pages> take(std::int64_t length_bytes);
  /// Keeps the pages, or unlocks and unmaps them. The device must no longer use them.
  void give(const Pages& pages) noexcept;

  /// Unlocks and unmaps all kept pages.
  void trim();
  std::int64_t cached_bytes();

 private:
  void drop(const MappingCache::Victims& victims) noexcept;

  PageLock lock_;
  ForkSafe<std::mutex> mutex_;
  MappingCache cache_;
};

/// The driver of CUDA devices.
class CudaDriver final : public DeviceDriver {
 public:
  /// The bound of cudaMemcpy2D. Rows further apart are copied one by one.
  static constexpr std::int64_t kLongestPitchBytes = (std::int64_t{1} << 31) - 1;

  /// For tests; other code calls cuda_driver(). The runtime must have a device.
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
  bool owns(const void* address) override;
  DeviceInfo info() override;
  LiveBytes live_bytes() override;

  /// The number of blocks that were not released.
  std::int64_t live_blocks();
  PinnedPages& pinned_pages() { return pinned_; }

 private:
  using RecordPtr = std::shared_ptr<cuda::Record>;

  absl::Status enter(StreamHandle stream) const;
  absl::Status checked(int error, std::string_view call) const;
  absl::StatusOr<int> current_ordinal() const;
  absl::StatusOr<const gridbuf_cuda_device*> info_of(int device);
  absl::StatusOr<Block> allocate(MemoryKind kind, const AllocationRequest& request) override;
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
  ForkSafe<std::mutex> mutex_;                   // of what follows
  std::map<std::uintptr_t, RecordPtr> records_;  // by begin of the allocation
  std::map<int, gridbuf_cuda_device> devices_;
  std::set<StreamHandle> own_streams_;
};

/// The process's CUDA driver, started at the first call and never destroyed. Error:
/// kDeviceUnavailable if gridbuf was built without CUDA, or if the machine lacks a driver or a
/// device.
absl::StatusOr<CudaDriver*> cuda_driver();

/// The driver if it has been started, else null.
CudaDriver* started_cuda_driver() noexcept;

/// OK if `runtime` has a device, else the reason. Starts CUDA's driver.
absl::Status find_cuda_device(const gridbuf_cuda_runtime* runtime);

/// Info on CUDA without starting it: ("cuda driver", "not found: …"), …, and that of the driver if
/// it has been started.
DeviceInfo cuda_info();

}  // namespace gridbuf
