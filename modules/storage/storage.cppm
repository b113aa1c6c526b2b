// gridbuf.storage: arrays with a meaning, on the host, on a device, or on both.
//
// Purpose. A `Storage` is memory with a layout plan, names of dimensions, a halo and an aligned
// index, on one side or on two: the host's, the device's, one buffer that both reach (managed by
// CUDA), or a pair of buffers that gridbuf keeps equal (managed by software).
//
// Key choice: each access says what it is for. `read` brings the view's elements up to date on a
// side; `begin_write` and `end_write` mark what is changed. So a change on one side is recorded
// where it was made, and the other side gets exactly that when it is next asked: a halo update
// copies a halo. In C++ take the guards `ReadAccess` and `WriteAccess`, which pair these calls:
// what you may do with an element follows from the guard that you hold, and a write that is not
// marked does not compile. Writes through `export_side` are not seen; an export counts while it
// lives (gridbuf.storage.sync says what is presumed of it).
//
// A transfer is planned, copied, waited for and only then committed. One that fails leaves the
// state as it was, and what it had enqueued is waited for before the memory is used again.
//
// A Storage is a handle: copies of it, and views, share memory and state. All work on the device is
// ordered: each access comes after the last one, whatever their streams, and is ready on the
// thread's current stream. Copies between the sides are complete when the access returns. Work that
// others enqueued, through an export or before an explicit mark, may be on any stream; then the
// whole device is waited for.
//
// Threads never corrupt the state. Reads may run at once; a writer needs its own order with threads
// that use the same elements, as with any array. Functions that may wait (read, begin_write, the
// explicit ones, copies) must be called without Python's lock; is_ready, end_write and exports
// never wait.
module;

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

export module gridbuf.storage;

import gridbuf.alloc;
import gridbuf.device;
export import gridbuf.array;
export import gridbuf.interface;
export import gridbuf.layout.view;
export import gridbuf.storage.sync;

namespace gridbuf {

struct StorageBase;

}  // namespace gridbuf

export namespace gridbuf {

enum class StorageKind : std::uint8_t {
  kCpu,              // host memory
  kGpu,              // device memory
  kSoftwareManaged,  // pinned host memory and device memory, kept equal by gridbuf
  kCudaManaged,      // one buffer of managed memory
};

/// "CPU", "GPU", "software-managed GPU", "CUDA-managed GPU".
std::string_view to_string(StorageKind kind);

/// Whether a write gives every element of its view a value.
enum class Coverage : std::uint8_t { kAll, kPart };

/// New memory. A layout without names gets the default ones, one without a halo gets (0, 0).
struct StorageRequest {
  Layout layout = {};
  DType dtype = {};
  StorageKind kind = StorageKind::kCpu;
  bool zeroed = false;
  bool populate = false;
};

/// Existing memory of one array on one side or both. Names, halo and alignment are those of the
/// host's array, or of the device's if that is the only one.
struct StorageParts {
  std::optional<Array> host = std::nullopt;
  std::optional<Array> device = std::nullopt;
  StorageKind kind = StorageKind::kCpu;
  std::shared_ptr<SyncState> sync = nullptr;  // required for two buffers of kSoftwareManaged
};

class Storage {
 public:
  /// New memory, on the current stream. Both buffers of a software-managed storage have one layout.
  /// Errors: kMemory, naming the request; kDeviceUnavailable; kValue if dtype is not of the
  /// layout's item size. Nothing leaks.
  static absl::StatusOr<Storage> allocate(const StorageRequest& request);

  /// A storage over existing memory; the arrays' owners are kept. Errors, all kValue: a
  /// missing or superfluous buffer for the kind, buffers of different shape or type, dims, halo or
  /// aligned index that do not fit, memory on the wrong side, a state that is that of other buffers
  /// or none for two buffers.
  static absl::StatusOr<Storage> wrap(const StorageParts& parts);

  StorageKind kind() const;
  const Extents& shape() const { return seen_.shape(); }
  /// Of the host's buffer, or of the device's if that is the only one.
  const Extents& strides_bytes() const { return seen_.strides_bytes(); }
  int ndim() const { return seen_.ndim(); }
  const DType& dtype() const;
  /// Without padding.
  std::int64_t nbytes() const;
  const Dims& dims() const { return seen_.dims(); }
  const Halo& halo() const { return seen_.halo(); }
  const LayoutMap& layout() const { return seen_.layout(); }
  const Extents& aligned_index() const { return seen_.aligned_index(); }
  std::int64_t alignment_bytes() const { return seen_.alignment_bytes(); }
  /// Whether one of its buffers must not be written.
  bool readonly() const;
  bool has(Side side) const;
  /// Of the side's memory. Requires has(side).
  const Device& device(Side side) const;
  /// Whether its device is the emulated one.
  bool is_emulated() const;

  /// Of this handle alone. Never re-aligns. kValue if it does not fit.
  absl::Status set_halo(const Halo& halo);

  /// The view that `map`, made for this shape, describes.
  Storage view(const IndexMap& map) const;
  /// Without the halo.
  Storage domain_view() const;

  /// The elements on a side; synchronises nothing. Requires has(side).
  Array array(Side side) const;
  /// Where they are.
  BufferDescriptor memory(Side side) const;
  /// The box of the base around the elements.
  Box hull() const { return gridbuf::hull(map_); }

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
  /// A writable export whose end is never told: an address was given away.
  void note_unknown_export(Side side) const noexcept;
  /// A writable export begins and ends; for those that keep the storage alive themselves.
  void add_export(Side side) const noexcept;
  void drop_export(Side side) const noexcept;

  // --- The whole base of a software-managed storage; nothing happens on others -------------------

  /// Copies what is newer (or presumed to be) on one side to the other. With `force` everything,
  /// and the state is clean.
  absl::Status device_to_host(bool force = false) const;
  absl::Status host_to_device(bool force = false) const;
  /// Both ways.
  absl::Status synchronize() const;
  /// Marks this view. kSyncConflict, with nothing changed, where the other side is marked.
  absl::Status set_host_modified() const;
  absl::Status set_device_modified() const;
  void set_synchronized() const;

  // --- Copies ------------------------------------------------------------------------------------

  /// A new storage with the same parameters and elements.
  absl::StatusOr<Storage> copy() const;
  /// Copies the elements of `source`, which has this shape and item size, into this storage, on the
  /// side where that moves least. They may overlap. kValue if shapes differ.
  absl::Status copy_from(const Storage& source) const;

 private:
  class ExportShare;
  using BasePtr = std::shared_ptr<const StorageBase>;

  Storage(BasePtr base, const Layout& seen)
      : base_(std::move(base)), map_(seen.shape()), seen_(seen) {}
  // A view, whose parts are made in their places.
  inline Storage(const Storage& source, const IndexMap& map)
      : base_(source.base_), map_(source.map_.through(map)), seen_(apply(map, source.seen_)) {}

  absl::Status check_side(Side side) const;
  absl::Status prepare(Side side) const;
  absl::Status take_over(Side side, const Box& box) const;
  absl::Status transfer(Side target, bool force) const;
  absl::Status mark(Side side) const;
  absl::Status copy_on_host(const Storage& source) const;
  absl::Status copy_by_device(const Storage& source) const;

  BasePtr base_;
  IndexMap map_;  // from the base to this view
  Layout seen_;   // its memory is the main side's: the host's if there is one
};

// --- Guards over accesses ------------------------------------------------------------------------
//
// On the device they give the address and strides, for a kernel; on the host also the elements, by
// index. The element type is checked when the access begins. Indices are checked in debug builds
// only, as those of a std::span. Write accesses that are open on both sides at once must not
// overlap (kSyncConflict): each would undo the other's writes.

/// The elements, up to date on one side, to be read. Holds the memory; marks nothing.
template <class T>
class ReadAccess : public Elements<const T> {
 public:
  /// Errors: kType for another element type; those of Storage::read.
  static absl::StatusOr<ReadAccess> begin(const Storage& storage, Side side = Side::kHost) {
    if (absl::Status status =
            check_element_type("the storage's dtype", storage.dtype(), element_name<T>());
        !status.ok()) {
      return status;
    }
    if (absl::Status status = storage.read(side); !status.ok()) return status;
    return ReadAccess(storage, side);
  }

 private:
  ReadAccess(const Storage& storage, Side side)
      : Elements<const T>(storage.memory(side)), owner_(storage.memory(side).owner) {}
  Owner owner_;
};

/// A write that is open until it is destroyed.
class OpenWrite {
 public:
  /// Errors: those of Storage::begin_write, and kSyncConflict.
  static absl::StatusOr<OpenWrite> begin(const Storage& storage, Side side, Coverage coverage);
  OpenWrite(OpenWrite&& other) noexcept
      : storage_(other.storage_), side_(other.side_), open_(std::exchange(other.open_, false)) {}
  OpenWrite& operator=(OpenWrite&&) = delete;
  ~OpenWrite();

 private:
  OpenWrite(const Storage& storage, Side side) : storage_(storage), side_(side) {}
  Storage storage_;
  Side side_;
  bool open_ = true;
};

/// The elements to be written on one side, and read with kPart. Marks them.
template <class T>
class WriteAccess : public Elements<T> {
 public:
  /// With kAll every element will be written and none read before: nothing is copied. Errors: kType
  /// for another element type; those of OpenWrite::begin.
  static absl::StatusOr<WriteAccess> begin(const Storage& storage, Side side = Side::kHost,
                                           Coverage coverage = Coverage::kPart) {
    if (absl::Status status =
            check_element_type("the storage's dtype", storage.dtype(), element_name<T>());
        !status.ok()) {
      return status;
    }
    absl::StatusOr<OpenWrite> open = OpenWrite::begin(storage, side, coverage);
    if (!open.ok()) return open.status();
    return WriteAccess(storage, side, *std::move(open));
  }

 private:
  WriteAccess(const Storage& storage, Side side, OpenWrite open)
      : Elements<T>(storage.memory(side)), open_(std::move(open)) {}
  OpenWrite open_;
};

}  // namespace gridbuf

// --- For the files of this library alone ---------------------------------------------------------

namespace gridbuf {

/// The memory that all views of one storage share, and how its two buffers are kept equal. All but
/// the state and the order of device work is fixed when it is made.
struct StorageBase {
  StorageKind kind = StorageKind::kCpu;
  Array host;
  Array device;                   // of managed memory the same as the host's
  std::int64_t common_bytes = 0;  // of two buffers of one plan, padding included; 0: they are not
  DeviceDriver* driver = nullptr;
  std::shared_ptr<SyncState> sync;     // software-managed
  std::shared_ptr<DeviceOrder> order;  // with a device

  StorageBase() = default;
  StorageBase(const StorageBase&) = delete;
  StorageBase& operator=(const StorageBase&) = delete;

  Array& array_of(Side side) { return side == Side::kHost ? host : device; }
  const BufferDescriptor& of(Side side) const {
    return (side == Side::kHost ? host : device).memory;
  }
  bool has(Side side) const;
  /// The host's buffer, or the device's if that is the only one.
  const Array& main() const { return kind == StorageKind::kGpu ? device : host; }

  /// Makes state and order, once the buffers are there. Errors: kMemory; kValue for the state of
  /// other buffers.
  absl::Status start();

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
  /// Copies a side's dirty regions to the other side, so that it has none.
  absl::Status empty_out(Side side) const;

 private:
  absl::Status attach();
  StridedView box_view(const Box& box, Side side) const;
  absl::Status wait_for_foreign_work() const;
  absl::Status copy_box(const Box& box, Side target) const;
  absl::Status carry_out(const TransferPlan& plan) const;
};

}  // namespace gridbuf
