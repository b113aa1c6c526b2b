module;

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "modules/base/status_macros.h"

module gridbuf.storage;

import gridbuf.base;

// How deep halos are valid.

namespace gridbuf {

namespace {

std::atomic<StaleHook> stale_hook = nullptr;

// Whether it became less.
bool lessen(std::atomic<std::int64_t>& depth, std::int64_t bound) noexcept {
  std::int64_t found = depth;
  while (found > bound) {
    if (depth.compare_exchange_weak(found, bound)) return true;
  }
  return false;
}

}  // namespace

void set_stale_hook(StaleHook hook) { stale_hook = hook; }

HaloDepth::HaloDepth(const Extents& shape, const Halo& halo)
    : shape_(shape), axes_(static_cast<std::size_t>(shape.size())) {
  set_halo(halo);
}

template <class Of>
Halo HaloDepth::each(const Of& of) const {
  Halo found = no_halo(shape_.size());
  for (int axis = 0; axis < shape_.size(); ++axis) {
    for (const int end : {0, 1}) found[axis].at(end) = of(axes_[axis][end]);
  }
  return found;
}

Halo HaloDepth::halo() const {
  return each([](const End& one) { return one.width.load(); });
}

Halo HaloDepth::stale() const {
  return each([](const End& one) { return one.width - one.depth; });
}

Halo HaloDepth::expected() const {
  return each([](const End& one) { return std::max(one.depth.load(), one.coming.load()); });
}

void HaloDepth::set_halo(const Halo& halo) noexcept {
  for (int axis = 0; axis < shape_.size(); ++axis) {
    for (const int end : {0, 1}) {
      End& one = axes_[axis][end];
      one.width = halo[axis].at(end);
      one.depth = one.is_closed ? one.width.load() : 0;
    }
  }
}

void HaloDepth::set(const Halo& depth) noexcept {
  for (int axis = 0; axis < shape_.size(); ++axis) {
    for (const int end : {0, 1}) {
      End& one = axes_[axis][end];
      if (!one.is_closed) one.depth = depth[axis].at(end);
    }
  }
}

void HaloDepth::expect(const Halo& depth) noexcept {
  for (int axis = 0; axis < shape_.size(); ++axis) {
    for (const int end : {0, 1}) {
      End& one = axes_[axis][end];
      one.coming = depth[axis].at(end);
      if (!one.is_closed) lessen(one.depth, one.coming);
    }
  }
}

void HaloDepth::close(const std::vector<HaloEnd>& ends) noexcept {
  for (Axis& axis : axes_) {
    for (End& one : axis) one.is_closed = false;
  }
  for (const HaloEnd& place : ends) {
    End& one = axes_[place.axis][place.end];
    one.is_closed = true;
    one.depth = one.width.load();
  }
}

std::vector<HaloEnd> HaloDepth::closed() const {
  std::vector<HaloEnd> ends;
  for (int axis = 0; axis < shape_.size(); ++axis) {
    for (const int end : {0, 1}) {
      if (axes_[axis][end].is_closed) ends.push_back({axis, end});
    }
  }
  return ends;
}

void HaloDepth::note_write(const Box& box, const Halo* left) noexcept {
  // How far the box ends before an end of the domain; and how far it begins behind it. Negative for
  // a box that crosses it.
  std::array<std::array<std::int64_t, 2>, kMaxNdim> before;
  std::array<std::array<std::int64_t, 2>, kMaxNdim> behind;
  bool is_outside = false;
  bool has_domain = true;
  for (int axis = 0; axis < shape_.size(); ++axis) {
    const std::int64_t first = axes_[axis][0].width;
    const std::int64_t last = shape_[axis] - axes_[axis][1].width;
    before[axis] = {box.lower[axis] - first, last - box.upper[axis]};
    behind[axis] = {first - box.upper[axis], box.lower[axis] - last};
    is_outside = is_outside || behind[axis][0] >= 0 || behind[axis][1] >= 0;
    has_domain = has_domain && before[axis][0] <= 0 && before[axis][1] <= 0;
  }
  bool is_less = false;
  for (int axis = 0; axis < shape_.size(); ++axis) {
    for (const int end : {0, 1}) {
      End& one = axes_[axis][end];
      if (one.is_closed) continue;
      std::int64_t bound = std::numeric_limits<std::int64_t>::max();
      // All ranks write such a box, so the neighbour at this end has written near its other end.
      if (!is_outside) bound = std::min(bound, before[axis][1 - end]);
      // Points of the halo are overwritten. A box that is outside along several axes is in a
      // corner, and there one axis is enough, but which one the neighbour fills is not known here.
      if (is_outside ? behind[axis][end] >= 0 : before[axis][end] < 0) {
        bound = std::min(bound, behind[axis][end]);
      }
      bound = std::max<std::int64_t>(bound, 0);
      lessen(one.coming, bound);
      const std::int64_t known = left != nullptr && has_domain ? (*left)[axis].at(end) : 0;
      if (lessen(one.depth, std::max(bound, known))) is_less = true;
      if (one.depth < known) one.depth = known;
    }
  }
  const StaleHook hook = is_less ? stale_hook.load() : nullptr;
  if (hook != nullptr) place = hook();
}

// --- Of a storage ------------------------------------------------------------------------------

namespace {

absl::Status check_depth(const Halo& depth, const Halo& halo) {
  bool fits = depth.size() == halo.size();
  for (int axis = 0; fits && axis < halo.size(); ++axis) {
    for (const int end : {0, 1}) {
      const std::int64_t points = depth[axis].at(end);
      fits = fits && points >= 0 && points <= halo[axis].at(end);
    }
  }
  if (fits) return absl::OkStatus();
  return make_error(ErrorClass::kValue,
                    {"the valid depth", to_string(depth), "at most the halo, " + to_string(halo),
                     "count points next to the domain, per dimension and end"});
}

}  // namespace

absl::StatusOr<HaloDepth*> Storage::made_depth() const {
  if (!map_.is_identity()) {
    return make_error(ErrorClass::kValue,
                      {"a halo to mark", "that of a view", "that of a whole storage",
                       "mark the storage of which this is a view"});
  }
  HaloDepth* found = base_->depth;
  if (found == nullptr) {
    HaloDepth* made = nullptr;
    try {
      made = new HaloDepth(shape(), halo());
    } catch (const std::bad_alloc&) {
      return make_error(ErrorClass::kMemory, "no memory for the depth of a halo; free some arrays");
    }
    if (base_->depth.compare_exchange_strong(found, made)) return made;
    delete made;
  }
  if (found->halo() != halo()) found->set_halo(halo());
  return found;
}

Halo Storage::valid_halo() const {
  const HaloDepth* const state = base_->depth;
  const auto seen = [this](const Halo& whole) {
    return map_.is_identity() ? whole : apply(map_, whole);
  };
  // With another halo other points have a neighbour's values.
  if (state == nullptr || seen(state->halo()) != halo()) return no_halo(ndim());
  // Points of the whole storage that are not valid are a halo around those that are.
  const Halo stale = seen(state->stale());
  Halo depth = halo();
  for (int axis = 0; axis < depth.size(); ++axis) {
    if (map_.axis(axis).step == 0) depth[axis] = {};  // one point, which may be of the halo
    for (const int end : {0, 1}) {
      const std::int64_t points = depth[axis].at(end) - stale[axis].at(end);
      depth[axis].at(end) = std::max<std::int64_t>(points, 0);
    }
  }
  return depth;
}

absl::Status Storage::mark_halo_valid(const Halo& depth) const {
  GRIDBUF_RETURN_IF_ERROR(check_depth(depth, halo()));
  GRIDBUF_ASSIGN_OR_RETURN(HaloDepth* const state, made_depth());
  state->set(depth);
  return absl::OkStatus();
}

absl::Status Storage::expect_halo(const Halo& depth) const {
  if (!map_.is_identity()) return absl::OkStatus();
  GRIDBUF_RETURN_IF_ERROR(check_depth(depth, halo()));
  GRIDBUF_ASSIGN_OR_RETURN(HaloDepth* const state, made_depth());
  state->expect(depth);
  return absl::OkStatus();
}

Halo Storage::expected_halo() const {
  const HaloDepth* const state = base_->depth;
  return state == nullptr || !map_.is_identity() ? valid_halo() : state->expected();
}

void Storage::halo_arrives(const Halo& depth) const noexcept {
  if (!map_.is_identity() || !check_depth(depth, halo()).ok()) return;
  const absl::StatusOr<HaloDepth*> state = made_depth();
  if (!state.ok()) return;  // without memory for it no point is valid
  (*state)->expect(no_halo(ndim()));
  (*state)->set(depth);
}

void Storage::mark_halo_stale() const noexcept {
  HaloDepth* const state = base_->depth;
  if (state != nullptr) state->note_write(whole_box(base_->first.shape()));
}

absl::Status Storage::close_halo(const std::vector<HaloEnd>& closed, int check) const {
  for (const HaloEnd& place : closed) {
    if (place.axis >= 0 && place.axis < ndim() && (place.end == 0 || place.end == 1)) continue;
    return make_error(
        ErrorClass::kValue,
        {"an end of a halo",
         "(" + std::to_string(place.axis) + ", " + std::to_string(place.end) + ")",
         "a dimension below " + std::to_string(ndim()) + ", and 0 or 1", "count from 0"});
  }
  GRIDBUF_ASSIGN_OR_RETURN(HaloDepth* const state, made_depth());
  state->close(closed);
  state->check = check;
  return absl::OkStatus();
}

bool Storage::tracks_halo() const noexcept { return base_->depth.load() != nullptr; }

bool Storage::was_exported() const noexcept { return base_->was_exported; }
void Storage::note_exported() const noexcept { base_->was_exported = true; }

absl::Status Storage::copy_halo_depth(const Storage& other, bool valid) const {
  const HaloDepth* const state = other.base_->depth;
  if (state == nullptr || shape() != other.shape() || halo() != other.halo()) {
    return absl::OkStatus();
  }
  if (state->check >= 0 && other.map_.is_identity()) {
    GRIDBUF_RETURN_IF_ERROR(close_halo(state->closed(), state->check));
  }
  return valid ? mark_halo_valid(other.valid_halo()) : absl::OkStatus();
}

int Storage::halo_check() const noexcept {
  const HaloDepth* const state = base_->depth;
  return state == nullptr ? -1 : state->check.load();
}

int Storage::stale_place() const noexcept {
  const HaloDepth* const state = base_->depth;
  return state == nullptr ? 0 : state->place.load();
}

void Storage::note_written() const noexcept {
  HaloDepth* const state = base_->depth;
  if (state == nullptr) return;
  const Box box = hull();
  if (!is_empty(box)) state->note_write(box);
}

void Storage::note_written(const Box& box, const Halo& depth) const noexcept {
  HaloDepth* const state = base_->depth;
  if (state == nullptr || is_empty(box)) return;
  if (!map_.is_identity() || state->halo() != halo()) return note_written();
  state->note_write(box, &depth);
}

}  // namespace gridbuf
