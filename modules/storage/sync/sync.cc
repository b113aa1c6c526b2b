module;

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "modules/base/fork.h"

module gridbuf.storage.sync;

import gridbuf.base;

namespace gridbuf {
namespace {

// Bits of SyncState::flags_, per side.
enum Flag : unsigned { kDirty = 1, kExported = 2, kOnce = 4 };

unsigned bits(Side side, unsigned flags) { return side == Side::kHost ? flags : flags << 8U; }

absl::Status no_memory() {
  return make_error(ErrorClass::kMemory,
                    "no memory for the state of a storage; free some arrays and try again");
}

// Few locks for many states, so that a fork takes few.
auto& locks_of_states = *new std::array<ForkSafe<std::mutex>, 16>;

ForkSafe<std::mutex>& lock_for_a_state() {
  static std::atomic<std::size_t> states = 0;  // relaxed: it only spreads them
  return locks_of_states[states.fetch_add(1, std::memory_order_relaxed) % locks_of_states.size()];
}

// Held while the lock of a DeviceOrder is made again.
ForkSafe<std::mutex>& renewing = *new ForkSafe<std::mutex>;

}  // namespace

// In a child after fork the thread that held the lock may not exist. Nor does the work that its
// transfer had enqueued.
void DeviceOrder::lock() {
  if (generation_ != fork_generation()) {
    const std::lock_guard guard(renewing);
    if (generation_ != fork_generation()) {
      std::construct_at(&transfers_);
      copying = false;
      unfinished = false;
      generation_ = fork_generation();
    }
  }
  transfers_.lock();
}

struct SyncState::SideRecord {
  explicit SideRecord(int ndim) : dirty(ndim), exports(ndim), open_writes(ndim) {}
  Regions dirty;
  HeldBoxes exports;
  HeldBoxes open_writes;
  std::optional<Box> once = {};  // presumed until the next transfer
  std::uint64_t marks = 0;       // counts marks of dirty regions
};

struct SyncState::Record {
  explicit Record(int ndim) : host(ndim), device(ndim), draft(ndim) {}
  SideRecord host;
  SideRecord device;
  Regions draft;  // for changes that must succeed together
};

// --- Life ----------------------------------------------------------------------------------------

SyncState::SyncState(int initial_state)
    : initial_state_(initial_state), mutex_(lock_for_a_state()) {}
SyncState::~SyncState() = default;

SyncState::SideRecord& SyncState::of(Side side) const {
  return side == Side::kHost ? record_->host : record_->device;
}

absl::StatusOr<std::shared_ptr<SyncState>> SyncState::make(int state) {
  if (state < kSyncClean || state > kSyncDeviceDirty) {
    return make_error(ErrorClass::kValue,
                      {"state", std::to_string(state),
                       "SYNC_CLEAN (0), SYNC_HOST_DIRTY (1) or SYNC_DEVICE_DIRTY (2)",
                       "name the side with the newer buffer"});
  }
  try {
    return std::make_shared<SyncState>(state);
  } catch (const std::bad_alloc&) {
    return no_memory();
  }
}

absl::Status SyncState::attach(const SyncedBuffers& buffers) {
  const Lock lock(mutex_);
  if (record_ != nullptr) {
    if (buffers == buffers_) return absl::OkStatus();
    return make_error(ErrorClass::kValue,
                      {"sync_state", "that of other buffers", "that of the two buffers passed",
                       "pass both buffers of the storage that it was taken from, whole, or a new "
                       "SyncState"});
  }
  const Box whole = whole_box(buffers.shape);
  try {
    buffers_ = buffers;
    record_ = std::make_unique<Record>(whole.lower.size());
  } catch (const std::bad_alloc&) {
    return no_memory();
  }
  if (initial_state_ == kSyncHostDirty) of(Side::kHost).dirty.add(whole, of(Side::kDevice).dirty);
  if (initial_state_ == kSyncDeviceDirty) of(Side::kDevice).dirty.add(whole, of(Side::kHost).dirty);
  publish();
  return absl::OkStatus();
}

bool SyncState::is_attached() const {
  const Lock lock(mutex_);
  return record_ != nullptr;
}

int SyncState::state() const {
  const Lock lock(mutex_);
  if (record_ == nullptr) return initial_state_;
  return (record_->host.dirty.empty() ? kSyncClean : kSyncHostDirty) |
         (record_->device.dirty.empty() ? kSyncClean : kSyncDeviceDirty);
}

void SyncState::publish() noexcept {
  unsigned flags = 0;
  for (const Side side : {Side::kHost, Side::kDevice}) {
    const SideRecord& record = of(side);
    flags |= bits(side, (record.dirty.empty() ? 0U : kDirty) |
                            (record.exports.empty() ? 0U : kExported) | (record.once ? kOnce : 0U));
  }
  flags_.store(flags, std::memory_order_release);
}

// --- The current side ----------------------------------------------------------------------------

bool SyncState::is_surely_current(Side side) const noexcept {
  const unsigned flags = flags_.load(std::memory_order_acquire);
  if ((flags & bits(other(side), kDirty | kOnce)) != 0) return false;
  return (flags & bits(other(side), kExported)) == 0 || (flags & bits(side, kExported)) != 0;
}

// Whether the side is presumed modified inside its exports.
bool SyncState::presumes(Side side) const {
  return !of(side).exports.empty() && of(other(side)).exports.empty();
}

bool SyncState::is_current(Side side, const Box& box) const {
  if (is_surely_current(side)) return true;
  const Lock lock(mutex_);
  const SideRecord& source = of(other(side));
  if (source.dirty.overlaps(box)) return false;
  if (of(side).dirty.covers(box)) return true;
  if (source.once && overlap(*source.once, box)) return false;
  return !presumes(other(side)) || !source.exports.overlaps(box);
}

// Points that merging must not add to a side's dirty regions: the opposite side may have the only
// new values there.
Forbidden SyncState::forbidden_to(Side side) const {
  const SideRecord& others = of(other(side));
  return {&others.dirty, &others.exports, others.once ? &*others.once : nullptr};
}

// --- Marks ---------------------------------------------------------------------------------------

absl::StatusOr<bool> SyncState::mark(Side side, const Box& box) {
  const Lock lock(mutex_);
  const Regions& newer = of(other(side)).dirty;
  for (int i = 0; i < newer.size(); ++i) {
    const Box common = intersection(newer.box(i), box);
    if (is_empty(common)) continue;
    const std::string name(to_string(side));
    const std::string other_name(to_string(other(side)));
    return make_error(ErrorClass::kSyncConflict,
                      {"the region marked on the " + name, to_string(box),
                       "clean on the " + other_name + ", which is newer in " + to_string(common),
                       "synchronize() first, or discard one side's changes: " + other_name +
                           "_to_" + name + "(force=True), set_synchronized()"});
  }
  if (!of(side).dirty.add(box, forbidden_to(side))) return false;
  ++of(side).marks;
  publish();
  return true;
}

std::optional<Side> SyncState::take_over(Side side, const Box& box) {
  const Lock lock(mutex_);
  SideRecord& own = of(side);
  SideRecord& others = of(other(side));
  record_->draft.assign(others.dirty);
  if (!record_->draft.subtract(box, forbidden_to(other(side)))) return other(side);
  Forbidden forbidden = forbidden_to(side);
  forbidden.dirty = &record_->draft;
  if (!own.dirty.add(box, forbidden)) return side;
  swap(others.dirty, record_->draft);
  ++own.marks;
  publish();
  return std::nullopt;
}

void SyncState::note_written(Side side, const Box& box) noexcept {
  const Lock lock(mutex_);
  note_written_locked(side, box);
  publish();
}

void SyncState::note_written_locked(Side side, const Box& box) noexcept {
  SideRecord& own = of(side);
  if (is_empty(box)) return;
  ++own.marks;
  if (own.dirty.covers(box)) return;
  bool fits = true;
  try {
    std::vector<Box> parts;
    subtract(box, of(other(side)).dirty, parts);
    for (const Box& part : parts) fits = fits && own.dirty.add(part, forbidden_to(side));
  } catch (const std::bad_alloc&) {
    fits = false;
  }
  if (!fits) own.once = own.once ? hull(*own.once, box) : box;
}

void SyncState::set_clean() {
  const Lock lock(mutex_);
  for (const Side side : {Side::kHost, Side::kDevice}) {
    of(side).dirty.clear();
    of(side).once.reset();
  }
  publish();
}

// --- Accesses and exports ------------------------------------------------------------------------

absl::Status SyncState::open_write(Side side, const Box& box) {
  const Lock lock(mutex_);
  if (of(other(side)).open_writes.overlaps(box)) {
    const std::string other_name(to_string(other(side)));
    return make_error(
        ErrorClass::kSyncConflict,
        {"the write access on the " + std::string(to_string(side)), to_string(box),
         "apart from the write access that is open on the " + other_name, "end that access first"});
  }
  of(side).open_writes.hold(box);
  return absl::OkStatus();
}

void SyncState::close_write(Side side, const Box& box) noexcept {
  const Lock lock(mutex_);
  of(side).open_writes.let_go(box);
}

void SyncState::add_export(Side side, const Box& box) noexcept {
  if (is_empty(box)) return;
  const Lock lock(mutex_);
  const bool presumed = presumes(other(side));
  of(side).exports.hold(box);
  if (presumed) end_presumption(side, box);
  publish();
}

// Marks what the opposite side's exports may have written outside `current`, which was just copied.
void SyncState::end_presumption(Side side, const Box& current) noexcept {
  try {
    std::vector<Box> held;
    std::vector<Box> parts;
    of(other(side)).exports.append(held);
    for (const Box& box : held) subtract(box, current, parts);
    for (const Box& part : parts) note_written_locked(other(side), part);
  } catch (const std::bad_alloc&) {
    of(other(side)).once = whole_box(buffers_.shape);
  }
}

// While the opposite side has exports, the end of an export does not mark its box: the mark would
// hide all later writes of the opposite side's holders.
void SyncState::drop_export(Side side, const Box& box) noexcept {
  if (is_empty(box)) return;
  const Lock lock(mutex_);
  if (presumes(side)) note_written_locked(side, box);
  of(side).exports.let_go(box);
  publish();
}

void SyncState::keep_export(Side side, const Box& box) noexcept {
  if (is_empty(box)) return;
  const Lock lock(mutex_);
  const bool presumed = presumes(other(side));
  of(side).exports.keep(box);
  if (presumed) end_presumption(side, box);
  publish();
}

bool SyncState::has_exports(Side side) const noexcept {
  return (flags_.load(std::memory_order_acquire) & bits(side, kExported)) != 0;
}

// --- Transfers -----------------------------------------------------------------------------------

// Adds presumed regions, without the target's dirty regions and the boxes already planned.
void SyncState::add_presumed(TransferPlan& plan) const {
  const SideRecord& source = of(other(plan.target));
  std::vector<Box> held;
  if (presumes(other(plan.target))) source.exports.append(held);
  if (source.once) held.push_back(*source.once);
  for (const Box& box : held) {
    std::vector<Box> parts;
    subtract(intersection(box, plan.hull), of(plan.target).dirty, parts);
    for (const Box& planned : plan.boxes) {
      std::vector<Box> rest;
      for (const Box& part : parts) subtract(part, planned, rest);
      parts = std::move(rest);
    }
    plan.boxes.insert(plan.boxes.end(), parts.begin(), parts.end());
  }
}

TransferPlan SyncState::plan(Side target, const Box& hull) const {
  const Lock lock(mutex_);
  TransferPlan plan{.target = target, .hull = hull};
  plan.marks = of(other(target)).marks;
  of(other(target)).dirty.cut(hull, plan.boxes);
  add_presumed(plan);
  return plan;
}

SyncState::Commit SyncState::commit(const TransferPlan& plan) noexcept {
  const Lock lock(mutex_);
  const Side side = other(plan.target);
  SideRecord& source = of(side);
  if (source.marks != plan.marks) return Commit::kOvertaken;
  // All dirty points of the hull were copied. One subtraction, so that merging does not add copied
  // points again.
  if (!source.dirty.subtract(plan.hull, forbidden_to(side))) return Commit::kFull;
  if (source.once && contains(plan.hull, *source.once)) source.once.reset();
  publish();
  return Commit::kDone;
}

}  // namespace gridbuf
