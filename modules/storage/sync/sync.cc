module;

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

module gridbuf.storage.sync;

import gridbuf.base;
import gridbuf.storage.regions;

namespace gridbuf {
namespace {

// Bits of SyncState::facts_, per side.
enum Fact : unsigned { kDirty = 1, kExported = 2, kOnce = 4 };

unsigned bits(Side side, unsigned facts) { return side == Side::kHost ? facts : facts << 8U; }

absl::Status no_memory() {
  return make_error(ErrorClass::kMemory,
                    "no memory for the state of a storage; free some arrays and try again");
}

}  // namespace

std::string_view to_string(Side side) { return side == Side::kHost ? "host" : "device"; }

// --- Life ----------------------------------------------------------------------------------------

absl::StatusOr<std::shared_ptr<SyncState>> SyncState::make(int state) {
  if (state < kSyncClean || state > kSyncDeviceDirty) {
    return make_error(ErrorClass::kValue,
                      {"state", std::to_string(state),
                       "SYNC_CLEAN (0), SYNC_HOST_DIRTY (1) or SYNC_DEVICE_DIRTY (2)",
                       "name the side whose buffer is the newer one"});
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
  try {
    record_ = std::make_unique<Record>(buffers.shape.size());
  } catch (const std::bad_alloc&) {
    return no_memory();
  }
  buffers_ = buffers;
  const Box whole = whole_box(buffers.shape);
  if (initial_state_ == kSyncHostDirty) of(Side::kHost).dirt.add(whole, of(Side::kDevice).dirt);
  if (initial_state_ == kSyncDeviceDirty) of(Side::kDevice).dirt.add(whole, of(Side::kHost).dirt);
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
  return (record_->host.dirt.empty() ? kSyncClean : kSyncHostDirty) |
         (record_->device.dirt.empty() ? kSyncClean : kSyncDeviceDirty);
}

void SyncState::publish() noexcept {
  unsigned facts = 0;
  for (const Side side : {Side::kHost, Side::kDevice}) {
    const SideRecord& record = of(side);
    facts |= bits(side, (record.dirt.empty() ? 0U : kDirty) |
                            (record.exports.empty() ? 0U : kExported) | (record.once ? kOnce : 0U));
  }
  facts_.store(facts, std::memory_order_release);
}

// --- Who is current ------------------------------------------------------------------------------

bool SyncState::is_surely_current(Side side) const noexcept {
  const unsigned facts = facts_.load(std::memory_order_acquire);
  if ((facts & bits(other(side), kDirty | kOnce)) != 0) return false;
  return (facts & bits(other(side), kExported)) == 0 || (facts & bits(side, kExported)) != 0;
}

// Whether the side is taken for modified where its exports reach.
bool SyncState::presumes(Side side) const {
  return !of(side).exports.empty() && of(other(side)).exports.empty();
}

bool SyncState::is_current(Side side, const Box& box) const {
  if (is_surely_current(side)) return true;
  const Lock lock(mutex_);
  const SideRecord& source = of(other(side));
  if (source.dirt.overlaps(box)) return false;
  if (of(side).dirt.covers(box)) return true;
  if (source.once && overlap(*source.once, box)) return false;
  return !presumes(other(side)) || !source.exports.overlaps(box);
}

// What a side's dirt must not be rounded up to: whatever may be the other side's own.
Forbidden SyncState::forbidden_to(Side side) const {
  const SideRecord& others = of(other(side));
  return {&others.dirt, &others.exports, others.once ? &*others.once : nullptr};
}

// --- Marks ---------------------------------------------------------------------------------------

absl::StatusOr<bool> SyncState::mark(Side side, const Box& box) {
  const Lock lock(mutex_);
  const Regions& dirt = of(other(side)).dirt;
  for (int i = 0; i < dirt.size(); ++i) {
    const Box common = intersection(dirt.box(i), box);
    if (is_empty(common)) continue;
    const std::string name(to_string(side));
    const std::string other_name(to_string(other(side)));
    return make_error(
        ErrorClass::kSyncConflict,
        {"the region marked as modified on the " + name, to_string(box),
         "clean on the " + other_name + ", which holds newer data in " + to_string(common),
         "synchronize() before modifying, or call " + other_name + "_to_" + name +
             "(force=True) or set_synchronized() to give one side up"});
  }
  if (!of(side).dirt.add(box, forbidden_to(side))) return false;
  ++of(side).marks;
  publish();
  return true;
}

std::optional<Side> SyncState::take_over(Side side, const Box& box) {
  const Lock lock(mutex_);
  SideRecord& own = of(side);
  SideRecord& others = of(other(side));
  record_->draft.assign(others.dirt);
  if (!record_->draft.subtract(box, forbidden_to(other(side)))) return other(side);
  Forbidden forbidden = forbidden_to(side);
  forbidden.dirt = &record_->draft;
  if (!own.dirt.add(box, forbidden)) return side;
  swap(others.dirt, record_->draft);
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
  if (own.dirt.covers(box)) return;
  bool fits = true;
  try {
    std::vector<Box> parts;
    subtract(box, of(other(side)).dirt, parts);
    for (const Box& part : parts) fits = fits && own.dirt.add(part, forbidden_to(side));
  } catch (const std::bad_alloc&) {
    fits = false;
  }
  if (!fits) own.once = own.once ? hull(*own.once, box) : box;
}

void SyncState::set_clean() {
  const Lock lock(mutex_);
  for (const Side side : {Side::kHost, Side::kDevice}) {
    of(side).dirt.clear();
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
         "apart from the one that is open on the " + other_name, "end that one first"});
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

// What the other side's exports may have written outside of `current`, which was just copied.
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

// While the other side has exports nothing is presumed, neither at the end: what was noted here
// would hide everything that their holders write later.
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
  return (facts_.load(std::memory_order_acquire) & bits(side, kExported)) != 0;
}

// --- Transfers -----------------------------------------------------------------------------------

// What is presumed, without what is known: neither the target's dirt nor what is already planned.
void SyncState::add_presumed(const TransferPlan& plan, std::vector<Box>& boxes) const {
  const SideRecord& source = of(other(plan.target));
  std::vector<Box> held;
  if (presumes(other(plan.target))) source.exports.append(held);
  if (source.once) held.push_back(*source.once);
  for (const Box& box : held) {
    std::vector<Box> parts;
    subtract(intersection(box, plan.hull), of(plan.target).dirt, parts);
    for (const Box& planned : std::vector<Box>(boxes)) {
      std::vector<Box> rest;
      for (const Box& part : parts) subtract(part, planned, rest);
      parts = std::move(rest);
    }
    boxes.insert(boxes.end(), parts.begin(), parts.end());
  }
}

TransferPlan SyncState::plan(Side target, const Box& hull) const {
  const Lock lock(mutex_);
  TransferPlan plan{.target = target, .hull = hull};
  plan.marks = of(other(target)).marks;
  of(other(target)).dirt.cut(hull, plan.boxes);
  const std::size_t known = plan.boxes.size();
  add_presumed(plan, plan.boxes);
  plan.presumed = plan.boxes.size() > known;
  return plan;
}

SyncState::Commit SyncState::commit(const TransferPlan& plan) noexcept {
  const Lock lock(mutex_);
  const Side side = other(plan.target);
  SideRecord& source = of(side);
  if (source.marks != plan.marks) return Commit::kOvertaken;
  // All of the dirt in the hull was copied. At once, so that no rounding brings some of it back.
  if (!source.dirt.subtract(plan.hull, forbidden_to(side))) return Commit::kFull;
  if (source.once && contains(plan.hull, *source.once)) source.once.reset();
  publish();
  return Commit::kDone;
}

}  // namespace gridbuf
