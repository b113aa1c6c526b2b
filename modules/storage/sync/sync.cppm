// gridbuf.storage.sync: which side of a storage is current, and where.
//
// Purpose. A software-managed storage has a buffer on the host and one on the device. A `SyncState`
// is the record of how they differ: for each side the boxes in which it is newer (its *dirt*), and
// what others hold of it. It copies nothing. It says what a transfer must copy (`plan`), and is
// told when that has happened (`commit`), so that a failure in between leaves it as it was.
//
// Writes by gridbuf are seen and marked. Writes through an exported view are not: an array that
// somebody holds can be written at any time. So exports are counted while they live. While only one
// side has writable exports, that side is *presumed* modified wherever they reach and the other
// side is not itself dirty. When both sides have some there is nothing to presume, and the holders
// must say what they did.
//
// Key choice: two locks. `mutex_` guards the record; it is held for a few comparisons and never
// while anything waits, so even a thread that holds Python's lock may take it (an export ends
// wherever an array happens to die). DeviceOrder::transfers is held while a transfer is planned,
// copied and committed; it must be waited for without Python's lock, for the emulated device runs
// kernels in Python. Marks that are made during a transfer are counted, and its commit then takes
// nothing back that is newer than its plan.
//
// What is marked dirty although it is clean costs a copy, and the reverse loses data; so decisions
// err to the first side. But not where the other side may hold something of its own, its dirt or
// an export: there a mark that nobody made would let a copy destroy what somebody wrote.
module;

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

export module gridbuf.storage.sync;

import gridbuf.alloc.device;
import gridbuf.layout;
import gridbuf.storage.regions;

export namespace gridbuf {

enum class Side : std::uint8_t { kHost, kDevice };

constexpr Side other(Side side) { return side == Side::kHost ? Side::kDevice : Side::kHost; }
/// "host", "device".
std::string_view to_string(Side side);

/// The values of SyncState::state; both bits where disjoint regions are dirty on both sides.
inline constexpr int kSyncClean = 0;
inline constexpr int kSyncHostDirty = 1;
inline constexpr int kSyncDeviceDirty = 2;

/// The order of a storage's device work, whatever its kind: each access comes after the last one.
struct DeviceOrder {
  /// Held during transfers and changes of stream. Never wait for it with Python's lock held.
  /// Recursive, because a kernel of the emulated device runs on the thread that waits for it, and
  /// one that asks for the very storage that is waiting must get an error and not hang …
  std::recursive_mutex transfers;
  /// … which is how that is known. With `transfers` held.
  bool copying = false;
  /// Of the last device work.
  std::atomic<StreamHandle> stream = kLegacyDefaultStream;
  /// Others may have work pending on streams that nobody knows: wait for the whole device.
  std::atomic<bool> foreign_work = false;
  /// A transfer failed, and what it had enqueued may not have run: it must not write later what
  /// somebody else has written meanwhile.
  std::atomic<bool> unfinished = false;
  /// Managed memory: the device may be at work on it, so the host must wait before it touches it.
  std::atomic<bool> busy = false;
  /// Managed memory: device exports that live; those of unknown life are never taken off.
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
  bool presumed = false;        // part of it is there because somebody holds an export
  std::uint64_t marks = 0;      // of the source side when it was planned
};

class SyncState {
 public:
  /// Clean, or wholly dirty on one side. kValue for other numbers; kMemory.
  static absl::StatusOr<std::shared_ptr<SyncState>> make(int state = kSyncClean);

  explicit SyncState(int initial_state) : initial_state_(initial_state) {}
  SyncState(const SyncState&) = delete;
  SyncState& operator=(const SyncState&) = delete;

  /// Makes it the state of these buffers, for good. kValue if it is that of others; kMemory.
  absl::Status attach(const SyncedBuffers& buffers);
  bool is_attached() const;

  int state() const;

  // What follows needs an attached state, and boxes within its base.

  /// Whether the side's elements in the box are the newest ones, as far as can be known.
  bool is_current(Side side, const Box& box) const;
  /// The same for the whole base, in one atomic look; never wrongly true.
  bool is_surely_current(Side side) const noexcept;

  /// The side was modified in the box: for users who say so. kSyncConflict, with nothing changed,
  /// where the other side is dirty in it too. False: there is no room for the box before the side's
  /// dirt has been copied to the other side.
  absl::StatusOr<bool> mark(Side side, const Box& box);

  /// A write begins that needs nothing of what the box holds: it is the side's dirt from now on,
  /// and the other's no more. Answers with the side whose dirt must be copied to the other side
  /// first because its boxes have no room; then nothing is changed.
  std::optional<Side> take_over(Side side, const Box& box);

  /// The side may have been written in the box: all of it becomes its dirt but what is the other
  /// side's. Never fails: what has no room is presumed, once.
  void note_written(Side side, const Box& box) noexcept;

  /// Both sides are equal everywhere, because somebody says so or copied everything.
  void set_clean();

  /// A write access through which nothing but the box is written is open on this side.
  /// kSyncConflict if one is open on the other side and they overlap.
  absl::Status open_write(Side side, const Box& box);
  void close_write(Side side, const Box& box) noexcept;

  /// A writable export lives; the side is current in its box. None of these waits. If it is the
  /// side's first and the other side has some, what those may have written elsewhere becomes dirt,
  /// for it is presumed no more.
  void add_export(Side side, const Box& box) noexcept;
  /// Notes the box as written, unless the other side has some.
  void drop_export(Side side, const Box& box) noexcept;
  void keep_export(Side side, const Box& box) noexcept;  // lives for ever
  bool has_exports(Side side) const noexcept;

  /// What must be copied so that the side is current in `hull`. Throws std::bad_alloc. Hold
  /// order().transfers from here to the commit.
  TransferPlan plan(Side target, const Box& hull) const;
  /// All of the plan has been copied: what it held is clean.
  enum class Commit : std::uint8_t {
    kDone,
    kOvertaken,  // the source was marked meanwhile: nothing is clean, plan again
    kFull,       // what is left takes too many boxes: nothing is clean, copy all of the dirt
  };
  Commit commit(const TransferPlan& plan) noexcept;

  DeviceOrder& order() { return order_; }

 private:
  using Lock = std::lock_guard<std::mutex>;
  struct SideRecord {
    explicit SideRecord(int ndim) : dirt(ndim), exports(ndim), open_writes(ndim) {}
    Regions dirt;
    HeldBoxes exports;
    HeldBoxes open_writes;
    std::optional<Box> once = {};  // presumed until the next transfer
    std::uint64_t marks = 0;       // how often something became dirty
  };
  struct Record {
    explicit Record(int ndim) : host(ndim), device(ndim), draft(ndim) {}
    SideRecord host;
    SideRecord device;
    Regions draft;  // where changes are made that must all succeed
  };

  Forbidden forbidden_to(Side side) const;
  SideRecord& of(Side side) const { return side == Side::kHost ? record_->host : record_->device; }
  bool presumes(Side side) const;
  void add_presumed(const TransferPlan& plan, std::vector<Box>& boxes) const;
  void end_presumption(Side side, const Box& current) noexcept;
  void note_written_locked(Side side, const Box& box) noexcept;
  void publish() noexcept;

  DeviceOrder order_;
  const int initial_state_;
  mutable std::mutex mutex_;        // of what follows
  std::unique_ptr<Record> record_;  // null until attached
  SyncedBuffers buffers_;
  std::atomic<unsigned> facts_ = 0;  // of the record, for looks without a lock
};

}  // namespace gridbuf
