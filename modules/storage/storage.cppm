// gridbuf.storage: arrays with a meaning, on the host, on a device, or on both.
//
// Purpose. A `Storage` is memory with a layout plan, names of dimensions, a halo and an aligned
// index, on one side or on two: the host's, the device's, one buffer that both reach (managed by
// CUDA), or a pair of buffers that gridbuf keeps equal (managed by software). It is composed of the
// floors below and computes no size, moves no byte and knows no device of its own.
//
// Key choice: data are reached through accesses that say what they are for. `read` brings the
// view's elements up to date on a side; `begin_write` and `end_write` mark what is changed. So a
// change on one side is seen, where it was made, and the other side gets exactly that when it is
// next asked: a halo update moves a halo. Users of C++ take `read_access` and `write_access`, which
// pair those calls: reading through the first marks nothing. What leaves through `export_side` is
// out of sight; it counts while it lives (gridbuf.storage.sync says what is presumed of it).
//
// A Storage is a handle: copies of it, and views, share memory and state. All work on the device is
// ordered: each access comes after the last one, whatever their streams, and is ready on the
// thread's current stream. Copies between the sides have been done when the access returns.
//
// Threads never corrupt the state. Reads may run at once; who writes elements that another uses
// needs an order of his own, as with any array. Functions that may wait (read, begin_write, the
// explicit ones, copies) must be called without Python's lock; is_ready, end_write, state and
// exports never wait.
module;

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

export module gridbuf.storage;

import gridbuf.alloc;
export import gridbuf.interface;
export import gridbuf.interface.dtype;
export import gridbuf.layout.viewed;
export import gridbuf.storage.base;
export import gridbuf.storage.regions;
export import gridbuf.storage.sync;

export namespace gridbuf {

/// What a program asks to keep its data equal on both sides.
enum class Managed : std::uint8_t { kNone, kSoftware, kCuda };

/// The kind for a device (or none) and its management, which matters only with a device.
constexpr StorageKind storage_kind(bool on_device, Managed managed) {
  if (!on_device) return StorageKind::kCpu;
  if (managed == Managed::kNone) return StorageKind::kGpu;
  return managed == Managed::kSoftware ? StorageKind::kSoftwareManaged : StorageKind::kCudaManaged;
}

/// Whether a write gives every element of its view a value.
enum class Coverage : std::uint8_t { kAll, kPart };

struct StorageRequest {
  LayoutPlan plan = {};
  Dims dims = {};  // empty: the default names
  Halo halo = {};  // empty: none
  DType dtype = {};
  StorageKind kind = StorageKind::kCpu;
  bool zeroed = false;
  bool populate = false;
};

/// Memory that is there, and what it means.
struct StorageParts {
  std::optional<BufferDescriptor> host = std::nullopt;
  std::optional<BufferDescriptor> device = std::nullopt;
  Dims dims = {};
  Halo halo = {};
  LayoutMap layout = {};             // empty: that of the strides
  Extents aligned_index = {};        // empty: zeros
  std::int64_t alignment_bytes = 1;  // holds at aligned_index
  StorageKind kind = StorageKind::kCpu;
  std::shared_ptr<SyncState> sync = nullptr;  // required for kSoftwareManaged
};

class Storage {
 public:
  /// New memory: as the plan says, on the current stream. Both buffers of a software-managed
  /// storage have one plan. Errors: kMemory, naming what was asked for; kDeviceUnavailable; kValue
  /// if dims or halo do not fit, or dtype is not of the plan's item size. Nothing leaks.
  static absl::StatusOr<Storage> allocate(const StorageRequest& request);

  /// A storage over memory that is there; the descriptors' owners are kept. Errors, all kValue: a
  /// missing or superfluous buffer for the kind, buffers of different shape or type, dims, halo or
  /// aligned index that do not fit, memory on the wrong side, a state that is that of other buffers
  /// or none for two buffers.
  static absl::StatusOr<Storage> wrap(const StorageParts& parts);

  StorageKind kind() const;
  const Extents& shape() const { return seen_.memory.shape; }
  /// Of the host's buffer, or of the device's if that is the only one.
  const Extents& strides_bytes() const { return seen_.memory.strides_bytes; }
  int ndim() const { return seen_.memory.ndim(); }
  const DType& dtype() const;
  /// Without padding.
  std::int64_t nbytes() const;
  const Dims& dims() const { return seen_.dims; }
  const Halo& halo() const { return seen_.halo; }
  const LayoutMap& layout() const { return layout_; }
  const Extents& aligned_index() const { return seen_.aligned_index; }
  std::int64_t alignment_bytes() const { return seen_.alignment_bytes; }
  /// Whether one of its buffers must not be written.
  bool readonly() const;
  bool has(Side side) const;
  /// Whether its device is the emulated one.
  bool is_emulated() const;
  /// How the side's memory came about; of memory that was wrapped only the device is known.
  const BlockFacts& facts(Side side) const;

  /// Of this handle alone. Never re-aligns. kValue if it does not fit.
  absl::Status set_halo(const Halo& halo);

  /// The view that `map`, made for this shape, describes.
  Storage view(const IndexMap& map) const;
  /// Without the halo.
  Storage domain_view() const;

  /// Where the elements lie; synchronises nothing. Requires has(side).
  BufferDescriptor memory(Side side) const;
  /// The box of the base around the elements.
  Box hull() const { return window_.hull(); }

  /// Null unless it is software-managed.
  const std::shared_ptr<SyncState>& sync_state() const;
  /// Whether two handles show the same memory and state.
  bool shares_base(const Storage& other) const { return base_ == other.base_; }

  // --- Accesses ----------------------------------------------------------------------------------

  /// Whether `read` would have nothing to do: no copy, no wait, no other stream. Sure of "yes".
  bool is_ready(Side side) const noexcept;
  /// Whether the side's elements are the newest ones: `read` would copy nothing.
  bool is_current(Side side) const;

  /// Brings the elements up to date on the side. Then the host can read them, or work that is
  /// enqueued on the current stream can. Errors: kNoSuchBuffer; those of the device, after which
  /// state and elements are as before.
  absl::Status read(Side side) const;
  /// The elements may be written on the side from now on; they are marked already. Errors as read,
  /// and kValue for memory that must not be written.
  absl::Status begin_write(Side side, Coverage coverage) const;
  /// They have been written, or work that does so is enqueued on the current stream. Never waits.
  void end_write(Side side) const noexcept;

  /// Brings the side up to date and gives a share in its memory, which counts as an export until it
  /// is dropped, on whatever thread. `writable` is whether the holder may write.
  absl::StatusOr<Owner> export_side(Side side, bool writable) const;
  /// Somebody was told where the elements are, and may write there for ever.
  void note_unknown_export(Side side) const noexcept;
  /// A writable export begins and ends; for those who keep the storage alive themselves.
  void add_export(Side side) const noexcept;
  void drop_export(Side side) const noexcept;

  // --- The whole base of a software-managed storage; nothing happens on others -------------------

  /// Copies what is newer (or presumed to be) on the one side to the other. With `force`
  /// everything, and the state is clean.
  absl::Status device_to_host(bool force = false) const;
  absl::Status host_to_device(bool force = false) const;
  /// Both ways.
  absl::Status synchronize() const;
  /// Marks this view. kSyncConflict, with nothing changed, where the other side is marked.
  absl::Status set_host_modified() const;
  absl::Status set_device_modified() const;
  void set_synchronized() const;

  // --- Copies ------------------------------------------------------------------------------------

  /// A storage of its own with the same parameters and elements.
  absl::StatusOr<Storage> copy() const;
  /// Copies the elements of `source`, which has this shape and item size, into this storage, on the
  /// side where that moves least. They may overlap. kValue if shapes differ.
  absl::Status copy_from(const Storage& source) const;

 private:
  class ExportShare;
  using BasePtr = std::shared_ptr<const StorageBase>;

  Storage(BasePtr base, const Window& window, const ViewedPlan& seen, const LayoutMap& layout)
      : base_(std::move(base)), window_(window), seen_(seen), layout_(layout) {}
  // A view, whose parts are made in their places.
  inline Storage(const Storage& source, const IndexMap& map)
      : base_(source.base_),
        window_(source.window_.through(map)),
        seen_(apply(map, source.seen_)),
        layout_(apply_to_layout(map, source.layout_)) {}

  absl::Status check_side(Side side) const;
  absl::Status prepare(Side side) const;
  absl::Status take_over(Side side, const Box& box) const;
  absl::Status transfer(Side target, bool force) const;
  absl::Status mark(Side side) const;
  absl::Status copy_on_host(const Storage& source) const;
  absl::Status copy_by_device(const Storage& source) const;

  BasePtr base_;
  Window window_;
  ViewedPlan seen_;  // its memory is the main side's: the host's if there is one
  LayoutMap layout_;
};

}  // namespace gridbuf
