// gridbuf.storage.sync: which side of a storage is current, and where.
//
// Purpose. A software-managed storage has a buffer on the host and one on the device. A `SyncState`
// records how they differ: per side the boxes in which it is newer (its *dirty regions*), and the
// exports that may be written. It copies nothing. `plan` says what a transfer must copy, and
// `commit` is told that it was copied, so that a failure in between changes nothing.
//
// Writes by gridbuf are marked. Writes through an exported array are not seen, because its holder
// can write at any time. So exports are counted while they live. While only one side has writable
// exports, that side is *presumed* modified wherever they reach and the other side is not dirty
// itself. While both sides have some, nothing is presumed, and the holders must mark their writes.
//
// Key choice: at most 16 disjoint boxes per side, in coordinates of the whole array (the *base*),
// whatever view a write was made through. That is enough for the halos of a field (6 faces, or 26
// pieces that merge), and it bounds every operation. Two boxes become one where the box around them
// is hardly larger, or where there is no room for another box. To mark a clean point costs a copy;
// to lose a dirty one loses data. So decisions err to the first, except where the other side may
// hold values that only it has (its dirty regions or exports): there a wrong mark would destroy
// them, and merging refuses.
//
// Two locks. `mutex_` guards the record; it is held for a few comparisons and never while anything
// waits, so a thread that holds Python's lock may take it (an export ends wherever an array dies).
// DeviceOrder::transfers is held while a transfer is planned, copied and committed; it must be
// waited for without Python's lock, because the emulated device runs kernels in Python. Marks that
// are made during a transfer are counted, and its commit takes back nothing that is newer than its
// plan.
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

export module gridbuf.storage.sync;

import gridbuf.device;
import gridbuf.layout;
import gridbuf.layout.view;

export namespace gridbuf {

enum class Side : std::uint8_t { kHost, kDevice };

constexpr Side other(Side side) { return side == Side::kHost ? Side::kDevice : Side::kHost; }
/// "host", "device".
std::string_view to_string(Side side);

// --- Boxes ---------------------------------------------------------------------------------------

/// The points with lower[i] <= index[i] < upper[i]. Empty unless lower < upper everywhere; the box
/// without dimensions has one point.
struct Box {
  Extents lower = {};
  Extents upper = {};

  friend bool operator==(const Box&, const Box&) = default;
};

/// All points of an array of this shape.
Box whole_box(const Extents& shape);

/// The number of points; 0 for empty boxes. Boxes within an array have one that fits.
std::int64_t volume(const Box& box);
bool is_empty(const Box& box);

/// The common points. Empty if there are none.
Box intersection(const Box& a, const Box& b);
bool overlap(const Box& a, const Box& b);
/// Whether every point of `inner` is one of `outer`.
bool contains(const Box& outer, const Box& inner);
/// The smallest box around both; an empty one does not count.
Box hull(const Box& a, const Box& b);

/// "[0:3, 5:8]".
std::string to_string(const Box& box);

/// The smallest box of a map's source around the points that the view shows.
Box hull(const IndexMap& map);
/// Whether the view shows every point of its hull: no steps.
bool is_dense(const IndexMap& map);

// --- The state of two buffers --------------------------------------------------------------------

/// The values of SyncState::state; both bits where disjoint regions are dirty on both sides.
inline constexpr int kSyncClean = 0;
inline constexpr int kSyncHostDirty = 1;
inline constexpr int kSyncDeviceDirty = 2;

/// The order of a storage's device work, whatever its kind: each access comes after the last one.
struct DeviceOrder {
  /// Held during transfers and changes of stream. Never wait for it with Python's lock held.
  /// Recursive, because a kernel of the emulated device runs on the thread that waits for it, and
  /// one that asks for the storage that is waiting must get an error instead of a deadlock …
  std::recursive_mutex transfers;
  /// … which this flag detects. With `transfers` held.
  bool copying = false;
  /// Of the last device work.
  std::atomic<StreamHandle> stream = kLegacyDefaultStream;
  /// Others may have work pending on unknown streams: wait for the whole device.
  std::atomic<bool> foreign_work = false;
  /// A transfer failed, and what it had enqueued may not have run: it must not overwrite later
  /// what is written meanwhile.
  std::atomic<bool> unfinished = false;
  /// Managed memory: the device may be at work on it, so the host must wait before it touches it.
  std::atomic<bool> busy = false;
  /// Managed memory: device exports that live; those of unknown life are never subtracted.
  std::atomic<std::int64_t> device_exports = 0;
};

/// The two buffers of a base, for recognising them.
struct SyncedBuffers {
  Extents shape = {};
  std::int64_t itemsize_bytes = 1;
  std::array<const std::byte*, 2> first_element{};  // by Side
  std::array<Extents, 2> strides_bytes{};

  friend bool operator==(const SyncedBuffers&, const SyncedBuffers&) = default;
};

/// What a transfer to `target` has to copy.
struct TransferPlan {
  Side target = Side::kHost;
  Box hull = {};                // what it was planned for
  std::vector<Box> boxes = {};  // disjoint, of the base
  std::uint64_t marks = 0;      // of the source side when it was planned
};

struct Forbidden;

class SyncState {
 public:
  /// Clean, or wholly dirty on one side. kValue for other numbers; kMemory.
  static absl::StatusOr<std::shared_ptr<SyncState>> make(int state = kSyncClean);

  explicit SyncState(int initial_state);
  SyncState(const SyncState&) = delete;
  SyncState& operator=(const SyncState&) = delete;
  ~SyncState();

  /// Makes it the state of these buffers, from now on. kValue if it is that of others; kMemory.
  absl::Status attach(const SyncedBuffers& buffers);
  bool is_attached() const;

  int state() const;

  // What follows needs an attached state, and boxes within its base.

  /// Whether the side's elements in the box are the newest ones, as far as can be known.
  bool is_current(Side side, const Box& box) const;
  /// The same for the whole base, in one atomic look; never wrongly true.
  bool is_surely_current(Side side) const noexcept;

  /// Marks the box as modified on the side, for users who say so. kSyncConflict, with nothing
  /// changed, where the other side is dirty in it too. False: there is no room for the box before
  /// the side's dirty regions have been copied to the other side.
  absl::StatusOr<bool> mark(Side side, const Box& box);

  /// A write begins that needs nothing of what the box holds: from now on the box is dirty on this
  /// side, and clean on the other. Returns the side whose dirty regions must be copied to the other
  /// side first because its boxes have no room; then nothing is changed.
  std::optional<Side> take_over(Side side, const Box& box);

  /// The side may have been written in the box: all of it becomes dirty except for what is dirty on
  /// the other side. Never fails: what has no room is presumed, once.
  void note_written(Side side, const Box& box) noexcept;

  /// Both sides are equal everywhere, because the user says so or everything was copied.
  void set_clean();

  /// A write access that writes nothing but the box is open on this side. kSyncConflict if one is
  /// open on the other side and they overlap.
  absl::Status open_write(Side side, const Box& box);
  void close_write(Side side, const Box& box) noexcept;

  /// A writable export lives; the side is current in its box. None of these waits. If it is the
  /// side's first and the other side has some, what those may have written elsewhere becomes dirty,
  /// because it is not presumed any more.
  void add_export(Side side, const Box& box) noexcept;
  /// Notes the box as written, unless the other side has exports.
  void drop_export(Side side, const Box& box) noexcept;
  /// An export that never ends.
  void keep_export(Side side, const Box& box) noexcept;
  bool has_exports(Side side) const noexcept;

  /// What must be copied so that the side is current in `hull`. Throws std::bad_alloc. Hold
  /// order().transfers from here to the commit.
  TransferPlan plan(Side target, const Box& hull) const;
  /// All of the plan has been copied: what it held is clean.
  enum class Commit : std::uint8_t {
    kDone,
    kOvertaken,  // the source was marked meanwhile: nothing is clean, plan again
    kFull,       // what is left takes too many boxes: nothing is clean, copy all dirty regions
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
  mutable std::mutex mutex_;        // of what follows
  std::unique_ptr<Record> record_;  // null until attached
  SyncedBuffers buffers_;
  std::atomic<unsigned> flags_ = 0;  // of the record, for looks without a lock
};

// --- Sets of boxes: for the files and tests of this library alone --------------------------------
//
// They allocate once, when they are made, in the size that their number of dimensions needs. No
// operation allocates afterwards, and none throws.

/// Boxes that are held, each counted as often as it was added. At most kMostBoxes different ones
/// are told apart; those beyond share one box around them until all of them are gone.
class HeldBoxes {
 public:
  static constexpr int kMostBoxes = 8;

  explicit HeldBoxes(int ndim);

  void hold(const Box& box);
  /// Requires that `box` was held.
  void let_go(const Box& box);
  /// Holds it without an end.
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
  std::unique_ptr<std::int64_t[]> corners_;            // … and after it the kept one
};

class Regions;

/// What merging must not add points of: where the other side may hold values that only it has. Any
/// of it may be null.
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
/// changes nothing.
class Regions {
 public:
  static constexpr int kMostBoxes = 16;

  /// The empty set, of an array with `ndim` dimensions. Throws std::bad_alloc.
  explicit Regions(int ndim);

  bool empty() const { return count_ == 0; }
  int size() const { return count_; }
  Box box(int position) const;

  bool overlaps(const Box& box) const;
  /// Whether one of the boxes holds all of `box`: sure of "yes" only.
  bool covers(const Box& box) const;

  void clear() { count_ = 0; }
  /// Becomes equal to a set of as many dimensions.
  void assign(const Regions& set);

  /// Adds a box. The set may then hold more points than it was given, but no further ones of
  /// `forbidden`. False where that is impossible with kMostBoxes boxes.
  bool add(const Box& box, const Forbidden& forbidden);

  /// Removes the points of `box`, and no others. Where what is left takes too many boxes it is
  /// rounded up as above, to no point of `box` nor of `forbidden`; false where that is impossible.
  bool subtract(const Box& box, const Forbidden& forbidden);

  /// Appends what this set and `box` have in common to `parts`, as disjoint boxes.
  void cut(const Box& box, std::vector<Box>& parts) const;

  friend void swap(Regions& a, Regions& b) noexcept;

 private:
  // Boxes are pairs of corners of ndim_ numbers each, one after the other; the second half of the
  // memory is where an operation works until it is sure to succeed.
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

/// Appends the points of `box` that are in none of `holes`, as disjoint boxes, to `parts`.
void subtract(const Box& box, const Regions& holes, std::vector<Box>& parts);
void subtract(const Box& box, const Box& hole, std::vector<Box>& parts);

}  // namespace gridbuf
