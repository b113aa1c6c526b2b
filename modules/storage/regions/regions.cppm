// gridbuf.storage.regions: which part of an array differs between its two sides.
//
// Purpose. A storage with a buffer on the host and one on the device remembers where one of them is
// newer, so that an update of a halo moves a halo and not the field. "Where" is a set of points;
// this module keeps such sets as a few boxes and does their arithmetic. It knows no memory.
//
// Key choice. At most 16 disjoint boxes, in coordinates of the whole array (the *base*), whatever
// view a change was made through. That is enough for the halos of a field (6 faces, or 26 pieces
// that merge), and every operation is bounded by it. Two boxes become one where the box around them
// is hardly larger (at most 1.1 times their points), or where there is no room for a 17th. The
// second kind of merging adds points that nobody changed. To call a point newer that is equal on
// both sides costs a little copying; to call one newer whose other side is newer would lose data.
// So merging is told what must not be covered, and refuses where it cannot help it.
//
// A view's points are a `Window`: a start in the base and a step per dimension. Its hull is the
// smallest box around them; windows of windows are windows.
//
// A Regions object allocates once, when it is made, in the size that its number of dimensions
// needs. No operation allocates afterwards, none fails, and one that refuses changes nothing.
module;

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

export module gridbuf.storage.regions;

import gridbuf.layout.extents;
import gridbuf.layout.index_map;

export namespace gridbuf {

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
/// The smallest box around both; an empty one counts for nothing.
Box hull(const Box& a, const Box& b);

/// "[0:3, 5:8]".
std::string to_string(const Box& box);

/// Boxes that are held by somebody: each counted as often as it was added. At most kMostBoxes
/// different ones are told apart; those beyond share one box around them until all of them are
/// gone. Allocates when it is made, and never after.
class HeldBoxes {
 public:
  static constexpr int kMostBoxes = 8;

  explicit HeldBoxes(int ndim);

  void hold(const Box& box);
  /// Requires that `box` was held.
  void let_go(const Box& box);
  /// Holds it for ever.
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

/// What merging must not add points of: where the other side may hold something of its own. Any of
/// it may be null.
struct Forbidden {
  const Regions* dirt = nullptr;
  const HeldBoxes* held = nullptr;
  const Box* box = nullptr;

  Forbidden(const Regions& regions) : dirt(&regions) {}  // NOLINT: the usual case
  Forbidden(const Regions* regions, const HeldBoxes* held_boxes, const Box* one_box)
      : dirt(regions), held(held_boxes), box(one_box) {}
  bool overlaps(const Box& other) const;
};

/// A set of points of one array, as at most kMostBoxes disjoint boxes.
class Regions {
 public:
  static constexpr int kMostBoxes = 16;

  /// The empty set, of an array with `ndim` dimensions. Throws std::bad_alloc.
  explicit Regions(int ndim);

  bool empty() const { return count_ == 0; }
  int size() const { return count_; }
  Box box(int position) const;
  std::int64_t points() const;

  bool overlaps(const Box& box) const;
  /// Whether one of the boxes holds all of `box`: sure of "yes" only.
  bool covers(const Box& box) const;

  void clear() { count_ = 0; }
  /// Becomes equal to a set of as many dimensions.
  void assign(const Regions& set);

  /// Adds a box. The set may then hold more points than it was given, but no further ones of
  /// `forbidden`. False, with nothing changed, where that is impossible with kMostBoxes boxes.
  bool add(const Box& box, const Forbidden& forbidden);

  /// Removes the points of `box`, and of no other. Where what is left takes too many boxes it is
  /// rounded up as above, to no point of `box` nor of `forbidden`; false, with nothing changed,
  /// where that is impossible.
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

/// Which points of a base a view shows.
class Window {
 public:
  Window() = default;
  /// All points of the base.
  explicit Window(const Extents& base_shape);

  /// The points that a view of this view shows. Requires the shape map.source_shape().
  Window through(const IndexMap& map) const;

  const Extents& start() const { return start_; }
  const SmallVec<ViewAxis>& axes() const { return axes_; }

  /// The smallest box of the base around the points.
  Box hull() const;
  /// Whether every point of the hull is shown: no steps.
  bool is_dense() const;

 private:
  Extents start_;            // per dimension of the base
  SmallVec<ViewAxis> axes_;  // per dimension of the view
};

}  // namespace gridbuf
