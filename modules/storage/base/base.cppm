// gridbuf.storage.base: the memory of a storage, and how its two buffers are kept equal.
//
// Purpose. All views of one storage share a `StorageBase`: one buffer or two, the state that says
// how they differ, and the order of the device's work on them. This module carries out what
// gridbuf.storage.sync plans. Users hold a Storage, and never see this.
//
// Key choice: a transfer is planned, copied, waited for and only then committed. An enqueued copy
// has not succeeded; one that fails leaves the state as it was, and what it had enqueued is waited
// for before anything else is done with the memory, so that it cannot overwrite what is written
// meanwhile.
//
// Work on the device is ordered by events: each access comes after the last one, and the base knows
// the stream of that. What others have enqueued, through an export or before an explicit mark, may
// be on any stream; then the whole device is waited for.
//
// Functions that say so need order->transfers held by the caller.
module;

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

export module gridbuf.storage.base;

import gridbuf.alloc;
import gridbuf.alloc.device;
import gridbuf.interface.dtype;
import gridbuf.layout.view;
import gridbuf.storage.regions;
import gridbuf.storage.sync;

export namespace gridbuf {

enum class StorageKind : std::uint8_t {
  kCpu,              // host memory
  kGpu,              // device memory
  kSoftwareManaged,  // pinned host memory and device memory, kept equal by gridbuf
  kCudaManaged,      // one buffer of managed memory
};

/// "CPU", "GPU", "software-managed GPU", "CUDA-managed GPU".
std::string_view to_string(StorageKind kind);

/// The memory itself. All but the state and the order of device work is fixed when it is made.
struct StorageBase {
  struct Buffer {
    std::byte* block = nullptr;
    StridedView view = {};
    Device device = {};
    bool readonly = false;
    Owner owner = nullptr;
    BlockFacts facts = {};
  };

  StorageKind kind = StorageKind::kCpu;
  DType dtype;
  Buffer host;
  Buffer device;                  // of managed memory the same as the host's
  std::int64_t common_bytes = 0;  // of two buffers of one plan, padding included; 0: they are not
  DeviceDriver* driver = nullptr;
  std::shared_ptr<SyncState> sync;     // software-managed
  std::shared_ptr<DeviceOrder> order;  // with a device

  StorageBase() = default;
  StorageBase(const StorageBase&) = delete;
  StorageBase& operator=(const StorageBase&) = delete;

  Buffer& of(Side side);
  const Buffer& of(Side side) const;
  bool has(Side side) const;

  /// Makes state and order, once the buffers are there. Errors: kMemory; kValue for the state of
  /// other buffers.
  absl::Status start();

  /// The elements that a window of this shape shows on a side.
  StridedView seen_through(const Window& window, const Extents& shape, Side side) const;

  /// A writable export begins and ends. Never waits.
  void add_export(Side side, const Box& box) const noexcept;
  void drop_export(Side side, const Box& box) const noexcept;

  // With order->transfers held:

  /// Work on the current stream comes after what was done last.
  absl::Status enter_stream() const;
  /// Managed memory: the host waits for what the device does with it.
  absl::Status wait_for_device() const;
  /// Waits for what a transfer that failed has left behind.
  absl::Status finish() const;
  /// Brings a side up to date in a box, or everywhere; `force` copies everything, dirty or not.
  absl::Status bring(Side target, const Box& hull) const;
  absl::Status bring_all(Side target, bool force) const;
  /// Copies a side's dirt to the other side, so that it has none.
  absl::Status empty_out(Side side) const;

 private:
  absl::Status attach();
  StridedView box_view(const Box& box, Side side) const;
  absl::Status wait_for_foreign_work() const;
  absl::Status copy_box(const Box& box, Side target) const;
  absl::Status carry_out(const TransferPlan& plan) const;
};

}  // namespace gridbuf
