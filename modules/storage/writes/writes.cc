module;

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.storage.writes;

import gridbuf.alloc;
import gridbuf.base;
import gridbuf.layout.view;
import gridbuf.storage.regions;

namespace gridbuf {
namespace {

const Forbidden kNothingForbidden(nullptr, nullptr, nullptr);

absl::Status no_memory() {
  return make_error(ErrorClass::kMemory,
                    "no memory for a record of writes; free some arrays and try again");
}

}  // namespace

// --- The log -------------------------------------------------------------------------------------

WriteLog::WriteLog(const Extents& shape, const Holders& holders, std::array<const Owner*, 2> owners)
    : shape_(shape), holders_(holders), owners_(owners), exports_(shape.size()) {}

void WriteLog::note(const Box& box) noexcept {
  if (is_empty(box)) return;
  const Lock lock(mutex_);
  // Nothing is forbidden, so there is always a pair of boxes to merge, and this never fails.
  for (Entry* entry : entries_) entry->written.add(box, kNothingForbidden);
}

void WriteLog::begin_export(const Box& box) noexcept {
  const Lock lock(mutex_);
  exports_.hold(box);
  ++known_exports_;
}

void WriteLog::end_export(const Box& box) noexcept {
  const Lock lock(mutex_);
  exports_.let_go(box);
  --known_exports_;
  if (is_empty(box)) return;
  for (Entry* entry : entries_) {
    if (entry->presume == Presume::kWritten) entry->written.add(box, kNothingForbidden);
  }
}

void WriteLog::keep_export(const Box& box) noexcept {
  const Lock lock(mutex_);
  exports_.keep(box);
}

// By somebody whose box is not known. A share that was dropped has done its writing before.
bool WriteLog::is_held_elsewhere() const noexcept {
  if (holders_.foreign || holders_.unknown.load() || holders_.exports.load() > known_exports_) {
    return true;
  }
  const auto [host, device] = owners_;
  const bool is_one = host != nullptr && device != nullptr && !host->owner_before(*device) &&
                      !device->owner_before(*host);
  const bool is_shared = std::ranges::any_of(owners_, [is_one](const Owner* owner) {
    return owner != nullptr && owner->use_count() > (is_one ? 2 : 1);
  });
  std::atomic_thread_fence(std::memory_order_acquire);
  return is_shared;
}

// --- Records -------------------------------------------------------------------------------------

WriteRecord::WriteRecord(const std::shared_ptr<WriteLog>& log, const Window& window, int base_ndim,
                         Presume presume)
    : log_(log), window_(window), entry_(base_ndim, presume), draft_(base_ndim) {}

absl::StatusOr<std::unique_ptr<WriteRecord>> WriteRecord::begin(
    const std::shared_ptr<WriteLog>& log, const Window& window, Presume presume) {
  try {
    std::unique_ptr<WriteRecord> made(new WriteRecord(log, window, log->shape_.size(), presume));
    made->entry_.written.add(whole_box(log->shape_), kNothingForbidden);
    const WriteLog::Lock lock(log->mutex_);
    log->entries_.push_back(&made->entry_);
    log->is_on_ = true;
    return made;
  } catch (const std::bad_alloc&) {
    return no_memory();
  }
}

WriteRecord::~WriteRecord() {
  const std::shared_ptr<WriteLog> log = log_.lock();
  if (log == nullptr) return;
  const WriteLog::Lock lock(log->mutex_);
  std::erase(log->entries_, &entry_);
  log->is_on_ = !log->entries_.empty();
}

bool WriteRecord::is_of(const WriteLog* log, const Window& window) const noexcept {
  return log != nullptr && log_.lock().get() == log && window_ == window;
}

absl::StatusOr<std::vector<std::vector<Box>>> WriteRecord::take(std::span<const Box> parts) {
  const std::shared_ptr<WriteLog> log = log_.lock();
  try {
    std::vector<std::vector<Box>> taken(parts.size());
    if (log == nullptr) return taken;
    const WriteLog::Lock lock(log->mutex_);
    draft_.assign(entry_.written);
    bool is_held = false;
    if (entry_.presume == Presume::kWritten) {
      is_held = log->is_held_elsewhere();
      std::vector<Box> held;
      if (is_held || entry_.was_held) held.push_back(whole_box(log->shape_));
      log->exports_.append(held);
      for (const Box& box : held) draft_.add(box, kNothingForbidden);
    }
    for (int i = 0; i < draft_.size(); ++i) {
      const std::optional<Box> seen = window_.seen(draft_.box(i));
      if (!seen) continue;
      for (std::size_t k = 0; k < parts.size(); ++k) {
        const Box common = intersection(*seen, parts[k]);
        if (!is_empty(common)) taken[k].push_back(common);
      }
    }
    entry_.written.clear();
    entry_.was_held = is_held;
    return taken;
  } catch (const std::bad_alloc&) {
    return no_memory();
  }
}

void WriteRecord::forget(const Box& seen) noexcept {
  const std::shared_ptr<WriteLog> log = log_.lock();
  if (log == nullptr || !window_.is_dense()) return;
  Extents shape;
  for (const ViewAxis& axis : window_.axes()) shape.push_back(axis.extent);
  IndexMap map(shape);
  for (int axis = 0; axis < map.ndim(); ++axis) {
    map.keep(axis,
             {.start = seen.lower[axis], .step = 1, .extent = seen.upper[axis] - seen.lower[axis]});
  }
  const Box box = window_.through(map).hull();
  const WriteLog::Lock lock(log->mutex_);
  entry_.written.subtract(box, kNothingForbidden);
}

}  // namespace gridbuf
