// gridbuf.storage.sync: which side of a storage is current, and where.
//
// Purpose. A software-managed storage has a buffer on the host and one on the device. A `SyncState`
// records how they differ: for each side the boxes in which it is newer (its *dirty regions*), and
// its writable exports. It does not copy. `plan` returns the boxes that a transfer must copy, and
// `commit` records that they were copied. So a failure between the two does not change the state.
//
// Accesses mark their writes. gridbuf cannot see writes through an exported array, which are
// possible at any time, so it counts exports while they live. While only one side has writable
// exports, that side is *presumed* modified inside them, except where the opposite side is dirty.
// While both sides have writable exports, gridbuf does not presume anything, and users must mark
// their writes.
//
// Key decision: each side has at most 16 disjoint boxes, in coordinates of the whole array (the
// *base*). That is enough for the halos of a field (6 faces, or 26 pieces that merge), and it
// bounds every operation. Two boxes become one if the box around them is hardly larger, or if the
// limit is reached. A wrong mark on a clean point costs a copy; a lost mark on a dirty point loses
// data. So merging adds marks. It refuses only where the opposite side may have the only new values
// (in its dirty regions or exports), because a wrong mark there would destroy them.
//
// Two locks. `mutex_` guards the record. It is held for a few comparisons and never during a wait,
// so a thread with Python's lock may take it: an export ends on the thread where an array dies.
// DeviceOrder is itself a lock, held while a transfer is planned, copied and committed. Wait for it
// only without Python's lock, because the emulated device runs kernels in Python. Marks during a
// transfer are counted, and the commit does not clear marks that are newer than the plan.
//
// Fork. A fork waits for `mutex_`, but not for a transfer: that may need Python's lock, which the
// thread that forks has. So in the child a transfer of another thread's has not been committed, and
// DeviceOrder is free.
module;

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "modules/base/fork.h"

export module gridbuf.storage.sync;

import gridbuf.device;
import gridbuf.layout;
import gridbuf.layout.view;

export namespace gridbuf {

// --- Boxes ---------------------------------------------------------------------------------------

/// The points with lower[i] <= index[i] < upper[i]. Empty unless lower < upper in every dimension.
/// Boxes of an array without dimensions have one dimension, [0:1]: a box without dimensions could
/// not be empty. Never on the heap, because notes of writes and exports must not fail.
struct Box {
  using Corner = SmallVec<std::int64_t, kMaxNdim>;
  Corner lower = {};
  Corner upper = {};

  friend bool operator==(const Box&, const Box&) = default;
};

/// All points of an array of this shape.
Box whole_box(const Extents& shape);

/// The number of points; 0 for empty boxes. It fits in 64 bits for boxes within an array.
std::int64_t volume(const Box& box);
/// Whether the box has no point.
bool is_empty(const Box& box);

/// The common points; may be empty.
Box intersection(const Box& a, const Box& b);
/// Whether the boxes have a common point.
bool overlap(const Box& a, const Box& b);
/// Whether `outer` has every point of `inner`.
bool contains(const Box& outer, const Box& inner);
/// The smallest box around both; an empty box is ignored.
Box hull(const Box& a, const Box& b);

/// "[0:3, 5:8]".
std::string to_string(const Box& box);

/// The smallest box of a map's source around the points that the view shows.
Box hull(const IndexMap& map);
/// Whether the view shows every point of its hull: all steps are -1, 0 or 1.
bool is_dense(const IndexMap& map);

// --- The state of two buffers --------------------------------------------------------------------

/// The values of SyncState::state; both bits if each side has dirty regions.
inline constexpr int kSyncClean = 0;
inline constexpr int kSyncHostDirty = 1;
inline constexpr int kSyncDeviceDirty = 2;

/// The order of a storage's device work: each access comes after the previous access.
class DeviceOrder {
 public:
  /// Held during transfers and changes of stream. Never wait for it with Python's lock. Recursive,
  /// because a kernel of the emulated device runs on the thread that waits for it. If the kernel
  /// uses the storage that waits, it must get an error instead of a deadlock.
  void lock();
  void unlock() { transfers_.unlock(); }

  /// Detects that case. Guarded by the lock.
  bool copying = false;
  /// Of the last device work.
  std::atomic<StreamHandle> stream = kLegacyDefaultStream;
  /// Foreign work may be pending on unknown streams: wait for the whole device.
  std::atomic<bool> foreign_work = false;
  /// A transfer failed, and its enqueued work may not have run. Wait for it, or it overwrites newer
  /// values.
  std::atomic<bool> unfinished = false;
  /// Managed memory: the device may work on it, so the host must wait before an access.
  std::atomic<bool> busy = false;
  /// Managed memory: the number of live device exports. Exports without a known end are never
  /// subtracted.
  std::atomic<std::int64_t> device_exports = 0;

 private:
  std::recursive_mutex transfers_;
  std::atomic<int> generation_ = fork_generation();  // that may hold the lock
};

/// The identity of the two buffers of a base.
struct SyncedBuffers {
  Extents shape = {};
  std::int64_t itemsize_bytes = 1;
  std::array<const std::byte*, 2> first_element{};  // by Side
  std::array<Extents, 2> strides_bytes{};

  friend bool operator==(const SyncedBuffers&, const SyncedBuffers&) = default;
};

/// The boxes that a transfer to `target` must copy.
struct TransferPlan {
  Side target = Side::kHost;
  Box hull = {};                // the requested box
  std::vector<Box> boxes = {};  // disjoint, of the base
  std::uint64_t marks = 0;      // of the source side when it was planned
};

struct Forbidden;

/// Which regions of two buffers are newer on which side.
class SyncState {
 public:
  /// A state that is clean, or dirty everywhere on one side. kValue for other numbers; kMemory.
  static absl::StatusOr<std::shared_ptr<SyncState>> make(int state = kSyncClean);

  explicit SyncState(int initial_state);
  SyncState(const SyncState&) = delete;
  SyncState& operator=(const SyncState&) = delete;
  ~SyncState();

  /// Makes this the state of `buffers`. kValue if it belongs to other buffers; kMemory.
  absl::Status attach(const SyncedBuffers& buffers);
  bool is_attached() const;

  int state() const;

  // The functions below require an attached state, and boxes within its base.

  /// Whether the side's elements in the box are current, as far as gridbuf can know.
  bool is_current(Side side, const Box& box) const;
  /// As is_current for the whole base, by one atomic load; never wrongly true.
  bool is_surely_current(Side side) const noexcept;

  /// Marks the box as modified on the side, on a user's request. kSyncConflict, without a change,
  /// if the opposite side is dirty in the box. False if the boxes of the side are full: copy its
  /// dirty regions to the opposite side first.
  absl::StatusOr<bool> mark(Side side, const Box& box);

  /// Begins a write that does not need the old values: the box becomes dirty on this side and clean
  /// on the opposite side. If the boxes of a side are full, returns that side without a change:
  /// copy its dirty regions to the opposite side first.
  std::optional<Side> take_over(Side side, const Box& box);

  /// Notes a possible write to the box: it becomes dirty except where the opposite side is dirty.
  /// Never fails: a box that does not fit is presumed dirty, once.
  void note_written(Side side, const Box& box) noexcept;

  /// Notes that both sides are equal, because a user says so or because everything was copied.
  void set_clean();

  /// Opens a write access to the box on this side. kSyncConflict if an open access on the opposite
  /// side overlaps it.
  absl::Status open_write(Side side, const Box& box);
  void close_write(Side side, const Box& box) noexcept;

  /// Adds a writable export; the side must be current in its box. These functions never wait. If it
  /// is the side's first export and the opposite side has exports, the presumption for those ends.
  /// So all that they may have written outside the box becomes dirty.
  void add_export(Side side, const Box& box) noexcept;
  /// Removes an export. Notes its box as written, unless the opposite side has exports.
  void drop_export(Side side, const Box& box) noexcept;
  /// Adds an export without an end.
  void keep_export(Side side, const Box& box) noexcept;
  bool has_exports(Side side) const noexcept;

  /// The boxes to copy so that `target` is current in `hull`. Throws std::bad_alloc. Hold
  /// order() until the commit.
  TransferPlan plan(Side target, const Box& hull) const;
  /// Records that all boxes of the plan were copied. With kDone they are clean.
  enum class Commit : std::uint8_t {
    kDone,
    kOvertaken,  // the source was marked meanwhile: no change, plan again
    kFull,       // the rest needs too many boxes: no change, copy all dirty regions
  };
  Commit commit(const TransferPlan& plan) noexcept;

  DeviceOrder& order() { return order_; }

 private:
  using Lock = std::lock_guard<std::mutex>;
  struct SideRecord;
  struct Record;

  Forbidden forbidden_to(Side side) const;
  SideRecord& of(Side side) const;
  bool presumes(Side side) const;
  void add_presumed(TransferPlan& plan) const;
  void end_presumption(Side side, const Box& current) noexcept;
  void note_written_locked(Side side, const Box& box) noexcept;
  void publish() noexcept;

  DeviceOrder order_;
  const int initial_state_;
  ForkSafe<std::mutex>& mutex_;     // of what follows; shared with other states
  std::unique_ptr<Record> record_;  // null until attached
  SyncedBuffers buffers_;
  // Of the record, for reads without a lock. Released, so that a thread that sees a side become
  // current also sees the bytes of the transfer.
  std::atomic<unsigned> flags_ = 0;
};

// --- Sets of boxes: for the files and tests of this library only ---------------------------------
//
// Only their constructors allocate, for the given number of dimensions. Operations do not allocate
// and do not throw.

/// Counted boxes. At most kMostBoxes different boxes are distinguished. Further boxes share one box
/// around them until all of them are removed.
class HeldBoxes {
 public:
  static constexpr int kMostBoxes = 8;

  explicit HeldBoxes(int ndim);

  void hold(const Box& box);
  /// Removes `box` once. Requires that it was added.
  void let_go(const Box& box);
  /// Adds `box` without an end.
  void keep(const Box& box);

  bool empty() const { return held_ == 0 && !kept_; }
  bool overlaps(const Box& box) const;
  /// Appends the boxes, which may overlap.
  void append(std::vector<Box>& boxes) const;

 private:
  int find(const Box& box) const;
  std::int64_t* corners_of(int slot) const;
  Box slot(int slot) const;

  int ndim_;
  std::int64_t held_ = 0;
  bool kept_ = false;
  std::array<std::int64_t, kMostBoxes + 1> counts_{};  // the last one: the shared box
  std::unique_ptr<std::int64_t[]> corners_;            // and after it the kept box
};

class Regions;

/// Points that merging must not add, because the opposite side may have the only new values there.
/// Each pointer may be null.
struct Forbidden {
  const Regions* dirty = nullptr;
  const HeldBoxes* held = nullptr;
  const Box* box = nullptr;

  Forbidden(const Regions& regions) : dirty(&regions) {}  // NOLINT: the usual case
  Forbidden(const Regions* regions, const HeldBoxes* held_boxes, const Box* one_box)
      : dirty(regions), held(held_boxes), box(one_box) {}
  bool overlaps(const Box& other) const;
};

/// A set of points of one array, as at most kMostBoxes disjoint boxes. An operation that refuses
/// does not change the set.
class Regions {
 public:
  static constexpr int kMostBoxes = 16;

  /// The empty set, of an array with `ndim` dimensions. Throws std::bad_alloc.
  explicit Regions(int ndim);

  bool empty() const { return count_ == 0; }
  int size() const { return count_; }
  Box box(int position) const;

  bool overlaps(const Box& box) const;
  /// Whether one of the boxes contains `box`. True is certain; false is not.
  bool covers(const Box& box) const;

  void clear() { count_ = 0; }
  /// Copies `set`, which must have the same number of dimensions.
  void assign(const Regions& set);

  /// Adds a box. The set may get additional points, but not of `forbidden`. False if that needs
  /// more than kMostBoxes boxes.
  bool add(const Box& box, const Forbidden& forbidden);

  /// Removes the points of `box`. If the rest needs too many boxes, it may get additional points as
  /// above, but not of `box` or `forbidden`. False if that is impossible.
  bool subtract(const Box& box, const Forbidden& forbidden);

  /// Appends the intersection of this set and `box` to `parts`, as disjoint boxes.
  void cut(const Box& box, std::vector<Box>& parts) const;

  friend void swap(Regions& a, Regions& b) noexcept;

 private:
  // A box is two corners of ndim_ numbers; boxes follow each other. Operations work in the second
  // half of the memory until they succeed.
  struct Draft;
  std::int64_t* corners_of(int half, int position) const;
  void store(int half, int position, const Box& box);
  Box load(int half, int position) const;
  void adopt(const Draft& draft);

  int ndim_;
  int count_ = 0;
  int half_ = 0;
  std::unique_ptr<std::int64_t[]> corners_;
};

/// Appends the points of `box` outside `holes` to `parts`, as disjoint boxes.
void subtract(const Box& box, const Regions& holes, std::vector<Box>& parts);
void subtract(const Box& box, const Box& hole, std::vector<Box>& parts);

}  // namespace gridbuf
