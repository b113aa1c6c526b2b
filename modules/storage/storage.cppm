// gridbuf.storage: arrays on the host, on a device, or on both.
//
// Purpose. A `Storage` is memory with a layout, names of dimensions, a halo and an aligned index.
// Its kind is one of four: host memory, device memory, CUDA-managed memory (one buffer that both
// sides access), or software-managed memory (two buffers that gridbuf keeps equal).
//
// Key decision: each access declares its purpose. `read` brings the view's elements up to date on a
// side; `begin_write` and `end_write` mark the view as changed. The next read on the opposite side
// copies exactly the marked elements, so a halo update copies a halo. In C++ use the guards
// `ReadAccess` and `WriteAccess`, which pair these calls. The guard decides what you may do with an
// element: an unmarked write does not compile. gridbuf cannot see writes through `export_side`. It
// counts exports while they live; gridbuf.storage.sync describes the rules.
//
// A transfer is planned, copied, waited for and only then committed. A failed transfer does not
// change the state. The next use of the memory first waits for the work that the transfer had
// enqueued.
//
// The two buffers may have different layouts: for example a Fortran array on the host, and rows
// that are padded for a GPU on the device. Dimensions and dirty regions are common to both sides.
// Everything that is made of one side (memory, arrays, exports) has the layout of that side.
//
// A Storage is a handle: its copies and views share memory and state. Device accesses are ordered:
// each access comes after the previous access, on any stream, and is ready on the thread's current
// stream. Copies between the sides are complete when the access returns. Foreign work, enqueued
// through an export or before an explicit mark, may be on any stream. So gridbuf then waits for the
// whole device.
//
// Threads never corrupt the state. Reads may run concurrently. As with any array, the program must
// order a write with other uses of the elements. Functions that may wait (read, begin_write, the
// explicit functions, copies) must be called without Python's lock. is_ready, end_write and exports
// never wait.
module;

#include <array>
#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "modules/base/status_macros.h"

export module gridbuf.storage;

import gridbuf.alloc;
import gridbuf.device;
export import gridbuf.array;
export import gridbuf.interface;
export import gridbuf.layout.view;
export import gridbuf.storage.sync;

namespace gridbuf {

struct StorageBase;
class HaloDepth;

}  // namespace gridbuf

export namespace gridbuf {

/// Which memory a storage has.
enum class StorageKind : std::uint8_t {
  kCpu,              // host memory
  kGpu,              // device memory
  kSoftwareManaged,  // pinned host memory and device memory, kept equal by gridbuf
  kCudaManaged,      // one buffer of managed memory
};

/// "CPU", "GPU", "software-managed GPU", "CUDA-managed GPU".
std::string_view to_string(StorageKind kind);

/// Whether a write sets every element of its view.
enum class Coverage : std::uint8_t { kAll, kPart };

/// An end of a dimension of a halo: 0 is the lower, 1 the upper end.
struct HaloEnd {
  int axis = 0;
  int end = 0;
};

/// Called where a write makes points of a halo invalid, on the thread that writes; its result is
/// `Storage::stale_place`.
using StaleHook = int (*)();
/// Sets it for the process; null: none.
void set_stale_hook(StaleHook hook);

/// Parameters of new memory. Default names and a halo of (0, 0) complete the layout.
struct StorageRequest {
  /// Of the memory; of both sides unless `device_layout` is given.
  Layout layout = {};
  DType dtype = {};
  StorageKind kind = StorageKind::kCpu;
  bool zeroed = false;
  bool populate = false;
  /// Of the device's buffer of kSoftwareManaged; order, padding and alignment are used.
  std::optional<Layout> device_layout = std::nullopt;
  /// Of the host's memory, or of a storage's one buffer; must outlive it. Null: the library's.
  MemoryResource* resource = nullptr;
  /// As `resource`, of the device's buffer of kSoftwareManaged.
  MemoryResource* device_resource = nullptr;
};

/// Existing memory of one array on one side or both. Names and halo are those of the host's array,
/// or of the device's if there is only that. Each side has the layout of its array.
struct StorageParts {
  std::optional<Array> host = std::nullopt;
  std::optional<Array> device = std::nullopt;
  StorageKind kind = StorageKind::kCpu;
  std::shared_ptr<SyncState> sync = nullptr;  // required for two buffers of kSoftwareManaged
  /// Of the buffer that kSoftwareManaged lacks. Default: that of the given buffer.
  std::optional<Layout> missing_layout = std::nullopt;
};

/// An array on the host, on a device, or on both sides.
class Storage {
 public:
  /// New memory, on the current stream. Errors: kMemory, naming the request; kDeviceUnavailable;
  /// kValue if dtype does not have the layout's item size, if the device's layout has another shape
  /// or item size, if the device's layout or resource is given for a storage of one buffer, or if a
  /// resource's memory is not where the kind has it.
  static absl::StatusOr<Storage> allocate(const StorageRequest& request);

  /// A storage over existing memory; the arrays' owners are kept. Errors, all kValue: a missing or
  /// superfluous buffer for the kind; buffers of different shape or type; dims, halo or aligned
  /// index that do not fit; memory on the wrong side; a state of other buffers; two buffers without
  /// a state.
  static absl::StatusOr<Storage> wrap(const StorageParts& parts);

  /// Of this library, whose `allocate` and `wrap` make bases.
  Storage(std::shared_ptr<const StorageBase> base, const Layout& seen)
      : base_(std::move(base)), map_(seen.shape()), seen_(seen) {}

  StorageKind kind() const;
  const Extents& shape() const { return seen_.shape(); }
  /// Of the host's buffer; without a host side, of the device's.
  const Extents& strides_bytes() const { return seen_.strides_bytes(); }
  int ndim() const { return seen_.ndim(); }
  const DType& dtype() const;
  /// Without padding.
  std::int64_t nbytes() const { return seen_.nbytes(); }
  const Dims& dims() const { return seen_.dims(); }
  const Halo& halo() const { return seen_.halo(); }
  const LayoutMap& layout_map() const { return seen_.layout_map(); }
  const Extents& aligned_index() const { return seen_.aligned_index(); }
  std::int64_t alignment_bytes() const { return seen_.alignment_bytes(); }
  /// Whether at least one buffer is read-only.
  bool readonly() const;
  bool has(Side side) const;
  /// Of the side's memory. Requires has(side).
  const Device& device(Side side) const;
  /// Whether the sides may differ in order, padding or alignment: `array(side).layout()`. The
  /// attributes above are those of the host's side, or of the device's if there is only that.
  bool has_two_layouts() const;
  /// Whether its device is the emulated one.
  bool is_emulated() const;

  /// Changes only this handle, and not the alignment. kValue if the halo does not fit.
  absl::Status set_halo(const Halo& halo);
  /// Changes only this handle. Requires its own dims, with other starts.
  void set_starts(const Dims& dims) { seen_ = Layout(seen_, dims, halo()); }

  /// The view that `map`, made for this shape, describes.
  Storage view(const IndexMap& map) const;
  /// Without the halo.
  Storage domain_view() const;

  /// The elements on a side; synchronises nothing. The array keeps the memory alive or, if it is
  /// given, `share`, which `export_side` returned. Requires has(side).
  Array array(Side side, Owner share = nullptr) const;
  /// The memory of the elements.
  BufferDescriptor memory(Side side) const;
  /// The smallest box of the base around the elements.
  Box hull() const { return gridbuf::hull(map_); }

  /// Null unless it is software-managed.
  const std::shared_ptr<SyncState>& sync_state() const;
  /// Whether two handles show the same memory and state.
  bool shares_base(const Storage& other) const { return base_ == other.base_; }

  // --- Accesses ----------------------------------------------------------------------------------

  /// Whether `read` would return without a copy, a wait or a change of stream. True is certain;
  /// false is not.
  bool is_ready(Side side) const noexcept;
  /// Whether the side's elements are current, so that `read` would not copy.
  bool is_current(Side side) const;

  /// Brings the elements up to date on the side. Then the host, or work on the current stream, can
  /// read them. Errors: kNoSuchBuffer; those of the device, after which state and elements are
  /// unchanged.
  absl::Status read(Side side) const;
  /// Marks the elements; from now on they may be written on the side. With `is_noted` the caller
  /// says by `note_written` which of them were. Errors as read, and kValue for read-only memory.
  absl::Status begin_write(Side side, Coverage coverage, bool is_noted = false) const;
  /// Ends a write: the elements are written, or the work that writes them is enqueued on the
  /// current stream. Never waits.
  void end_write(Side side) const noexcept;

  /// Brings the side up to date and returns a share in its memory. The share counts as an export
  /// until it is dropped, on any thread. `writable`: whether the holder may write.
  absl::StatusOr<Owner> export_side(Side side, bool writable) const;
  /// A writable export without an end: gridbuf gave its address to a program.
  void note_unknown_export(Side side) const noexcept;
  /// Begin and end of a writable export whose holder keeps the storage alive.
  void add_export(Side side) const noexcept;
  void drop_export(Side side) const noexcept;

  // --- The depth to which the halo is valid ------------------------------------------------------
  //
  // Points of the halo are valid if they have the values of the neighbours' domains. Of new memory
  // none is. `begin_write` and marks of a side make those invalid that the write changes here, or,
  // since all ranks write such a box, in a neighbour's domain. The state is that of the base.

  /// The number of valid points next to the domain, per dimension and end; at most the halo.
  Halo valid_halo() const;
  /// Says that so many are valid. Errors: kValue if it is more than the halo, or if this is a view
  /// of a part; kMemory.
  absl::Status mark_halo_valid(const Halo& depth) const;
  /// An exchange begins: if it ended now, so many points would be valid, and until then no more
  /// are. Writes lessen that, too. It and `halo_arrives` have no effect on a view of a part. Errors
  /// as above.
  absl::Status expect_halo(const Halo& depth) const;
  /// What is left of it before the halo is written, and then for `halo_arrives`.
  Halo expected_halo() const;
  void halo_arrives(const Halo& depth) const noexcept;
  /// Says that none is, except at closed ends.
  void mark_halo_stale() const noexcept;
  /// Says at which ends there is no neighbour, so that the whole halo stays valid; and what reading
  /// an invalid point means (`check`, a number of the caller). Errors as above.
  absl::Status close_halo(const std::vector<HaloEnd>& closed, int check) const;
  /// Whether a depth was ever declared; else no point is valid.
  bool tracks_halo() const noexcept;
  /// Whether others have the memory, too, because it was wrapped or exported writable: there may be
  /// writes that are not declared.
  bool was_exported() const noexcept;
  void note_exported() const noexcept;
  /// Takes over from `other`, if it has this shape and halo, what close_halo said and, with
  /// `valid`, which points are valid. kMemory.
  absl::Status copy_halo_depth(const Storage& other, bool valid) const;
  /// The number that close_halo had; -1 without one.
  int halo_check() const noexcept;
  /// What the hook said of the write that made points invalid; 0 without one.
  int stale_place() const noexcept;
  /// A write of which `begin_write` was told that this follows: only `box` of this storage was
  /// written, and outside of the domain `depth` points have the values that the neighbours compute.
  void note_written(const Box& box, const Halo& depth) const noexcept;
  /// The same, of every element.
  void note_written() const noexcept;

  // --- The whole base of a software-managed storage; no effect on other kinds --------------------

  /// Copies the regions that are dirty, or presumed dirty, to the opposite side. With `force` it
  /// copies everything, and the state becomes clean.
  absl::Status device_to_host(bool force = false) const;
  absl::Status host_to_device(bool force = false) const;
  /// Copies in both directions.
  absl::Status synchronize() const;
  /// Marks this view as modified. kSyncConflict, without a change, if the opposite side is marked
  /// there.
  absl::Status set_host_modified() const;
  absl::Status set_device_modified() const;
  void set_synchronized() const;

  // --- Copies ------------------------------------------------------------------------------------

  /// A new storage with the same parameters and elements.
  absl::StatusOr<Storage> copy() const;
  /// Of the current elements: Array::digest.
  absl::StatusOr<Digest> digest() const;
  /// Copies the elements of `source` into this storage, on the side where that moves the fewest
  /// bytes; converted to this type, on the host where it can. The storages may overlap. kValue if
  /// shapes differ; kType as check_copied_type.
  absl::Status copy_from(const Storage& source) const;

 private:
  class ExportShare;

  inline Storage(const Storage& source, const IndexMap& map)
      : base_(source.base_), map_(source.map_.through(map)), seen_(apply(map, source.seen_)) {}

  absl::Status check_side(Side side) const;
  absl::Status prepare(Side side) const;
  absl::Status take_over(Side side, const Box& box) const;
  absl::Status transfer(Side target, bool force) const;
  absl::Status mark(Side side) const;
  absl::StatusOr<HaloDepth*> made_depth() const;

  std::shared_ptr<const StorageBase> base_;
  IndexMap map_;  // from the base to this view
  Layout seen_;   // of the main side: the host's, if it exists; names and halo of both sides
};

// --- Guards over accesses ------------------------------------------------------------------------
//
// On the device they give address and strides for a kernel; on the host also the elements, by
// index. The begin of an access checks the element type. Only debug builds check indices, as in
// std::span. Open write accesses on opposite sides must not overlap (kSyncConflict): each access
// would undo the writes of the other access.

/// Read access to the elements, up to date on one side. Keeps the memory alive; does not mark.
template <class T>
class ReadAccess : public Elements<const T> {
 public:
  /// Errors: kType for another element type; those of Storage::read.
  static absl::StatusOr<ReadAccess> begin(const Storage& storage, Side side = Side::kHost) {
    GRIDBUF_RETURN_IF_ERROR(
        check_element_type("the storage's dtype", storage.dtype(), element_name<T>()));
    GRIDBUF_RETURN_IF_ERROR(storage.read(side));
    return ReadAccess(storage, side);
  }

 private:
  ReadAccess(const Storage& storage, Side side)
      : Elements<const T>(storage.memory(side)), owner_(storage.memory(side).owner) {}
  Owner owner_;
};

/// A write that is open until the object is destroyed.
class OpenWrite {
 public:
  /// Errors: those of Storage::begin_write, and kSyncConflict.
  static absl::StatusOr<OpenWrite> begin(const Storage& storage, Side side, Coverage coverage);
  OpenWrite(OpenWrite&& other) noexcept
      : storage_(std::move(other.storage_)),
        side_(other.side_),
        open_(std::exchange(other.open_, false)) {}
  OpenWrite& operator=(OpenWrite&&) = delete;
  ~OpenWrite();

 private:
  OpenWrite(const Storage& storage, Side side) : storage_(storage), side_(side) {}
  Storage storage_;
  Side side_;
  bool open_ = true;
};

/// Write access to the elements on one side; with kPart they may be read, too. Marks them.
template <class T>
class WriteAccess : public Elements<T> {
 public:
  /// kAll promises that every element will be written before it is read, and saves the copy.
  /// Errors: kType for another element type; those of OpenWrite::begin.
  static absl::StatusOr<WriteAccess> begin(const Storage& storage, Side side = Side::kHost,
                                           Coverage coverage = Coverage::kPart) {
    GRIDBUF_RETURN_IF_ERROR(
        check_element_type("the storage's dtype", storage.dtype(), element_name<T>()));
    GRIDBUF_ASSIGN_OR_RETURN(auto& open, OpenWrite::begin(storage, side, coverage));
    return WriteAccess(storage, side, std::move(open));
  }

 private:
  WriteAccess(const Storage& storage, Side side, OpenWrite open)
      : Elements<T>(storage.memory(side)), open_(std::move(open)) {}
  OpenWrite open_;
};

}  // namespace gridbuf

// --- For the files of this library only ----------------------------------------------------------

namespace gridbuf {

/// How deep the halo of a base is valid. Without locks: writes only lessen the depths.
class HaloDepth {
 public:
  /// None of it is valid. Throws std::bad_alloc.
  HaloDepth(const Extents& shape, const Halo& halo);

  Halo halo() const;
  /// How many points of the halo are not valid.
  Halo stale() const;
  void set_halo(const Halo& halo) noexcept;
  void set(const Halo& depth) noexcept;
  void expect(const Halo& depth) noexcept;
  Halo expected() const;
  void close(const std::vector<HaloEnd>& ends) noexcept;
  std::vector<HaloEnd> closed() const;
  /// `left`, if not null, are the points that are valid after a write of the whole domain.
  void note_write(const Box& box, const Halo* left = nullptr) noexcept;

  std::atomic<int> check = -1;
  std::atomic<int> place = 0;

 private:
  struct End {
    std::atomic<std::int64_t> width = 0;
    std::atomic<std::int64_t> depth = 0;
    std::atomic<std::int64_t> coming = 0;  // the depth that an exchange under way gives
    std::atomic<bool> is_closed = false;
  };
  using Axis = std::array<End, 2>;

  /// `of(end)` for each end.
  template <class Of>
  Halo each(const Of& of) const;

  Extents shape_;
  std::vector<Axis> axes_;
};

/// The memory that all views of a storage share, and how its two buffers are kept equal. Only the
/// state and the order of device work change after construction.
struct StorageBase {
  StorageKind kind;
  Array first;                    // the host's, or the one buffer
  std::unique_ptr<Array> second;  // the device's, of kSoftwareManaged
  bool two_layouts = false;       // the buffers differ in order, padding or alignment
  bool owns_gaps = false;         // gridbuf made both, so no value is between fields of elements
  std::int64_t common_bytes = 0;  // of two buffers with one layout, including padding; else 0
  DeviceDriver* driver = nullptr;
  std::shared_ptr<SyncState> sync;                  // software-managed
  std::shared_ptr<DeviceOrder> order;               // with a device
  mutable std::atomic<HaloDepth*> depth = nullptr;  // made by the first mark
  mutable std::atomic<bool> was_exported = false;   // writable

  explicit StorageBase(StorageKind storage_kind) : kind(storage_kind) {}
  ~StorageBase() { delete depth.load(); }
  StorageBase(const StorageBase&) = delete;
  StorageBase& operator=(const StorageBase&) = delete;

  /// Error: kMemory.
  static absl::StatusOr<std::shared_ptr<StorageBase>> make(StorageKind kind);

  const Array& array_of(Side side) const {
    return side == Side::kDevice && second != nullptr ? *second : first;
  }
  const BufferDescriptor& of(Side side) const { return array_of(side).memory(); }
  bool has(Side side) const;
  /// Makes state and order. Requires the buffers. Errors: kMemory; kValue for the state of other
  /// buffers.
  absl::Status start();

  /// A writable export begins and ends. Never waits.
  void add_export(Side side, const Box& box) const noexcept;
  void drop_export(Side side, const Box& box) const noexcept;

  // With *order held:

  /// Orders the current stream after the last work.
  absl::Status enter_stream() const;
  /// Managed memory: the host waits for the device's work on it.
  absl::Status wait_for_device() const;
  /// Waits for the work that a failed transfer has left.
  absl::Status finish() const;
  /// Brings a side up to date in a box, or everywhere; `force` copies everything, dirty or not.
  absl::Status bring(Side target, const Box& hull) const;
  absl::Status bring_all(Side target, bool force) const;
  /// Copies a side's dirty regions to the opposite side; the side is then clean.
  absl::Status empty_out(Side side) const;

 private:
  absl::Status attach();
  StridedView box_view(const Box& box, Side side) const;
  absl::Status wait_for_foreign_work() const;
  absl::Status copy_box(const Box& box, Side target) const;
  absl::Status carry_out(const TransferPlan& plan) const;
};

}  // namespace gridbuf
