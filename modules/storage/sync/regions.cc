module;

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

module gridbuf.storage.sync;

import gridbuf.layout;
import gridbuf.layout.view;

namespace gridbuf {

// --- Boxes ---------------------------------------------------------------------------------------

Box whole_box(const Extents& shape) {
  if (shape.empty()) return {{0}, {1}};
  return {Box::Corner(shape.size(), 0), shape};
}

std::int64_t volume(const Box& box) {
  std::int64_t points = 1;
  for (int axis = 0; axis < box.lower.size(); ++axis) {
    const std::int64_t extent = box.upper[axis] - box.lower[axis];
    if (extent <= 0) return 0;
    points = checked::mul(points, extent).value_or(checked::kMaxBytes);
  }
  return points;
}

bool is_empty(const Box& box) { return volume(box) == 0; }

Box intersection(const Box& a, const Box& b) {
  Box common = a;
  for (int axis = 0; axis < a.lower.size(); ++axis) {
    common.lower[axis] = std::max(a.lower[axis], b.lower[axis]);
    common.upper[axis] = std::max(common.lower[axis], std::min(a.upper[axis], b.upper[axis]));
  }
  return common;
}

bool overlap(const Box& a, const Box& b) {
  for (int axis = 0; axis < a.lower.size(); ++axis) {
    if (std::max(a.lower[axis], b.lower[axis]) >= std::min(a.upper[axis], b.upper[axis])) {
      return false;
    }
  }
  return true;
}

bool contains(const Box& outer, const Box& inner) {
  if (is_empty(inner)) return true;
  for (int axis = 0; axis < outer.lower.size(); ++axis) {
    if (inner.lower[axis] < outer.lower[axis] || inner.upper[axis] > outer.upper[axis]) {
      return false;
    }
  }
  return true;
}

Box hull(const Box& a, const Box& b) {
  if (is_empty(a)) return b;
  if (is_empty(b)) return a;
  Box around = a;
  for (int axis = 0; axis < a.lower.size(); ++axis) {
    around.lower[axis] = std::min(a.lower[axis], b.lower[axis]);
    around.upper[axis] = std::max(a.upper[axis], b.upper[axis]);
  }
  return around;
}

std::string to_string(const Box& box) {
  std::string text = "[";
  for (int axis = 0; axis < box.lower.size(); ++axis) {
    if (axis > 0) text += ", ";
    text += std::to_string(box.lower[axis]) + ":" + std::to_string(box.upper[axis]);
  }
  return text + "]";
}

namespace {

// Two boxes are merged if the box around them has at most this many tenths of their points.
constexpr std::int64_t kNoWasteTenths = 11;

// Calls `take` with disjoint boxes that together are `box` without `hole`: in each dimension the
// part before and the part after the hole. Requires that they overlap.
template <class Take>
void split(Box box, const Box& hole, const Take& take) {
  for (int axis = 0; axis < box.lower.size(); ++axis) {
    if (box.lower[axis] < hole.lower[axis]) {
      Box before = box;
      before.upper[axis] = hole.lower[axis];
      take(before);
      box.lower[axis] = hole.lower[axis];
    }
    if (hole.upper[axis] < box.upper[axis]) {
      Box behind = box;
      behind.lower[axis] = hole.upper[axis];
      take(behind);
      box.upper[axis] = hole.upper[axis];
    }
  }
}

}  // namespace

void subtract(const Box& box, const Box& hole, std::vector<Box>& parts) {
  if (is_empty(box)) return;
  if (is_empty(hole) || !overlap(box, hole)) {
    parts.push_back(box);
    return;
  }
  split(box, hole, [&parts](const Box& part) { parts.push_back(part); });
}

void subtract(const Box& box, const Regions& holes, std::vector<Box>& parts) {
  std::vector<Box> left;
  if (!is_empty(box)) left.push_back(box);
  for (int i = 0; i < holes.size(); ++i) {
    std::vector<Box> next;
    for (const Box& part : left) subtract(part, holes.box(i), next);
    left = std::move(next);
  }
  parts.insert(parts.end(), left.begin(), left.end());
}

bool Forbidden::overlaps(const Box& other) const {
  return (dirty != nullptr && dirty->overlaps(other)) ||
         (held != nullptr && held->overlaps(other)) || (box != nullptr && overlap(*box, other));
}

// --- Regions -------------------------------------------------------------------------------------

// The intermediate result of an operation, in the unused half of the memory. It has room for one
// additional box.
struct Regions::Draft {
  Regions& owner;
  const Forbidden& forbidden;
  const Box* hole;  // its points must not be added again; or null
  int count = 0;

  /// Adds the points of the box. False if they do not fit.
  bool insert(const Box& box);

 private:
  // Two boxes as one, with all boxes that the box around them touches.
  struct Merger {
    Box around;
    std::int64_t part_points;
  };
  Box box(int position) const { return owner.load(1 - owner.half_, position); }
  void store(int position, const Box& box) const { owner.store(1 - owner.half_, position, box); }
  // A merger that adds points must not cover forbidden ones.
  bool is_allowed(const Merger& merger) const {
    if (volume(merger.around) == merger.part_points) return true;
    if (hole != nullptr && overlap(*hole, merger.around)) return false;
    return !forbidden.overlaps(merger.around);
  }
  Merger merger_of(int i, int j) const;
  void carry_out(const Merger& merger);
  bool merge_newest();
  bool make_room();
};

Regions::Draft::Merger Regions::Draft::merger_of(int i, int j) const {
  Merger merger{hull(box(i), box(j)), 0};
  for (bool grew = true; grew;) {
    grew = false;
    merger.part_points = 0;
    for (int k = 0; k < count; ++k) {
      const Box part = box(k);
      if (!overlap(part, merger.around)) continue;
      merger.part_points += volume(part);
      if (contains(merger.around, part)) continue;
      merger.around = hull(merger.around, part);
      grew = true;
    }
  }
  return merger;
}

void Regions::Draft::carry_out(const Merger& merger) {
  int kept = 0;
  for (int k = 0; k < count; ++k) {
    const Box part = box(k);
    if (!overlap(part, merger.around)) store(kept++, part);
  }
  store(kept, merger.around);
  count = kept + 1;
}

// Merges the newest box with another if the box around them is hardly larger.
bool Regions::Draft::merge_newest() {
  for (int i = 0; i < count - 1; ++i) {
    const Merger merger = merger_of(i, count - 1);
    const std::int64_t most_points =
        merger.part_points / 10 * kNoWasteTenths + merger.part_points % 10 * kNoWasteTenths / 10;
    if (volume(merger.around) > most_points || !is_allowed(merger)) continue;
    carry_out(merger);
    return true;
  }
  return false;
}

// Merges the two boxes that may be merged and add the fewest points.
bool Regions::Draft::make_room() {
  constexpr int kBoxes = kMostBoxes + 1;
  std::array<bool, kBoxes * kBoxes> refused{};
  while (true) {
    int best = -1;
    std::int64_t fewest_points = 0;
    for (int i = 0; i < count; ++i) {
      for (int j = i + 1; j < count; ++j) {
        if (refused[static_cast<std::size_t>(i * kBoxes + j)]) continue;
        const std::int64_t added = volume(hull(box(i), box(j))) - volume(box(i)) - volume(box(j));
        if (best >= 0 && added >= fewest_points) continue;
        best = i * kBoxes + j;
        fewest_points = added;
      }
    }
    if (best < 0) return false;
    const Merger merger = merger_of(best / kBoxes, best % kBoxes);
    if (is_allowed(merger)) {
      carry_out(merger);
      return true;
    }
    refused[static_cast<std::size_t>(best)] = true;
  }
}

bool Regions::Draft::insert(const Box& added) {
  for (int k = 0; k < count; ++k) {
    const Box old = box(k);
    if (!overlap(old, added)) continue;
    bool fits = true;
    split(added, old, [&](const Box& part) { fits = fits && insert(part); });
    return fits;
  }
  store(count++, added);
  while (merge_newest()) continue;
  return count <= kMostBoxes || make_room();
}

namespace {

std::unique_ptr<std::int64_t[]> make_corners(int boxes, int ndim) {
  // Extents are 64 at most, so this cannot overflow.
  return std::make_unique_for_overwrite<std::int64_t[]>(static_cast<std::size_t>(boxes) * 2U *
                                                        static_cast<std::size_t>(ndim));
}

void write_box(std::int64_t* corners, int ndim, const Box& box) {
  std::copy_n(box.lower.begin(), ndim, corners);
  std::copy_n(box.upper.begin(), ndim, corners + ndim);
}

Box read_box(const std::int64_t* corners, int ndim) {
  const auto length = static_cast<std::size_t>(ndim);
  return {Box::Corner(std::span<const std::int64_t>(corners, length)),
          Box::Corner(std::span<const std::int64_t>(corners + ndim, length))};
}

}  // namespace

Regions::Regions(int ndim) : ndim_(ndim), corners_(make_corners(2 * (kMostBoxes + 1), ndim)) {}

std::int64_t* Regions::corners_of(int half, int position) const {
  return corners_.get() + (half * (kMostBoxes + 1) + position) * 2 * ndim_;
}
void Regions::store(int half, int position, const Box& box) {
  write_box(corners_of(half, position), ndim_, box);
}
Box Regions::load(int half, int position) const {
  return read_box(corners_of(half, position), ndim_);
}
Box Regions::box(int position) const { return load(half_, position); }

void Regions::adopt(const Draft& draft) {
  half_ = 1 - half_;
  count_ = draft.count;
}

bool Regions::overlaps(const Box& other) const {
  for (int i = 0; i < count_; ++i) {
    if (overlap(box(i), other)) return true;
  }
  return false;
}

bool Regions::covers(const Box& other) const {
  for (int i = 0; i < count_; ++i) {
    if (contains(box(i), other)) return true;
  }
  return false;
}

void Regions::assign(const Regions& set) {
  half_ = 0;
  count_ = set.count_;
  std::copy_n(set.corners_of(set.half_, 0), count_ * 2 * ndim_, corners_of(0, 0));
}

bool Regions::add(const Box& added, const Forbidden& forbidden) {
  if (is_empty(added) || covers(added)) return true;
  Draft draft{*this, forbidden, nullptr};
  bool fits = true;
  for (int i = 0; i < count_ && fits; ++i) {
    const Box old = box(i);
    if (!overlap(old, added)) {
      fits = draft.insert(old);
    } else if (!contains(added, old)) {
      split(old, added, [&](const Box& part) { fits = fits && draft.insert(part); });
    }
  }
  if (fits) fits = draft.insert(added);
  if (fits) adopt(draft);
  return fits;
}

bool Regions::subtract(const Box& removed, const Forbidden& forbidden) {
  if (is_empty(removed) || !overlaps(removed)) return true;
  Draft draft{*this, forbidden, &removed};
  bool fits = true;
  for (int i = 0; i < count_ && fits; ++i) {
    const Box old = box(i);
    if (!overlap(old, removed)) {
      fits = draft.insert(old);
    } else {
      split(old, removed, [&](const Box& part) { fits = fits && draft.insert(part); });
    }
  }
  if (fits) adopt(draft);
  return fits;
}

void Regions::cut(const Box& other, std::vector<Box>& parts) const {
  for (int i = 0; i < count_; ++i) {
    const Box common = intersection(box(i), other);
    if (!is_empty(common)) parts.push_back(common);
  }
}

void swap(Regions& a, Regions& b) noexcept {
  std::swap(a.ndim_, b.ndim_);
  std::swap(a.count_, b.count_);
  std::swap(a.half_, b.half_);
  std::swap(a.corners_, b.corners_);
}

// --- Counted boxes -------------------------------------------------------------------------------

namespace {

constexpr int kShared = HeldBoxes::kMostBoxes;
constexpr int kKept = HeldBoxes::kMostBoxes + 1;

}  // namespace

HeldBoxes::HeldBoxes(int ndim) : ndim_(ndim), corners_(make_corners(kKept + 1, ndim)) {}

std::int64_t* HeldBoxes::corners_of(int slot) const { return corners_.get() + slot * 2 * ndim_; }
Box HeldBoxes::slot(int slot) const { return read_box(corners_of(slot), ndim_); }

// The slot that counts the box, or must count it.
int HeldBoxes::find(const Box& held) const {
  int free = kShared;
  for (int i = kMostBoxes - 1; i >= 0; --i) {
    if (counts_[static_cast<std::size_t>(i)] == 0) {
      free = i;
    } else if (slot(i) == held) {
      return i;
    }
  }
  return free;
}

void HeldBoxes::hold(const Box& held) {
  const int found = find(held);
  std::int64_t& count = counts_[static_cast<std::size_t>(found)];
  write_box(corners_of(found), ndim_, count == 0 ? held : hull(held, slot(found)));
  ++count;
  ++held_;
}

void HeldBoxes::let_go(const Box& held) {
  int found = find(held);
  // A box that was added when all slots were in use is in the shared slot, even if other slots are
  // free now.
  if (counts_[static_cast<std::size_t>(found)] == 0) found = kShared;
  --counts_[static_cast<std::size_t>(found)];
  --held_;
}

void HeldBoxes::keep(const Box& box) {
  write_box(corners_of(kKept), ndim_, kept_ ? hull(box, slot(kKept)) : box);
  kept_ = true;
}

void HeldBoxes::append(std::vector<Box>& boxes) const {
  for (int i = 0; i <= kShared; ++i) {
    if (counts_[static_cast<std::size_t>(i)] > 0) boxes.push_back(slot(i));
  }
  if (kept_) boxes.push_back(slot(kKept));
}

bool HeldBoxes::overlaps(const Box& other) const {
  for (int i = 0; i <= kShared; ++i) {
    if (counts_[static_cast<std::size_t>(i)] > 0 && overlap(slot(i), other)) return true;
  }
  return kept_ && overlap(slot(kKept), other);
}

// --- Hulls of views ------------------------------------------------------------------------------

Box hull(const IndexMap& map) {
  Box box{map.start(), map.start()};
  if (box.lower.empty()) box = {{0}, {0}};
  for (std::int64_t& bound : box.upper) ++bound;
  for (const ViewAxis& axis : map.axes()) {
    if (axis.extent == 0) return {box.lower, box.lower};
    if (!axis.has_source() || axis.extent == 1) continue;
    const std::int64_t reach = axis.step * (axis.extent - 1);
    (reach < 0 ? box.lower : box.upper)[axis.source] += reach;
  }
  return box;
}

bool is_dense(const IndexMap& map) {
  for (const ViewAxis& axis : map.axes()) {
    if (axis.has_source() && axis.extent > 1 && axis.step * axis.step > 1) return false;
  }
  return true;
}

}  // namespace gridbuf
