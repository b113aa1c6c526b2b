module;

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

module gridbuf.layout;

namespace gridbuf {
namespace {

// At most `limit` of `count` columns or rows are shown: the first `head` and the last `tail`. The
// end is shown because it has the padding.
struct Shown {
  std::int64_t head = 0;
  std::int64_t tail = 0;
  std::int64_t hidden = 0;
};

Shown shown_of(std::int64_t count, int limit) {
  const std::int64_t most = std::max(limit, 1);
  if (count <= most) return {count, 0, 0};
  const std::int64_t tail = most / 3;
  return {most - tail, tail, count - most};
}

// One drawing: a layout, the order of its dimensions in memory, their names and halo.
class Picture {
 public:
  Picture(const Layout& layout, const DrawOptions& options)
      : layout_(layout),
        options_(options),
        dims_(options.dims.size() == layout.ndim() ? options.dims : default_dims(layout.ndim())),
        halo_(options.halo.size() == layout.ndim() ? options.halo : no_halo(layout.ndim())) {
    for (int axis = 0; axis < layout.ndim(); ++axis) slow_axes_.push_back(axis);
    std::sort(slow_axes_.begin(), slow_axes_.end(), [&layout](int a, int b) {
      const Extents& strides = layout.strides_bytes();
      return strides[a] != strides[b] ? strides[a] > strides[b] : a < b;
    });
    if (layout.ndim() == 0) return;
    row_axis_ = slow_axes_[layout.ndim() - 1];
    slow_axes_.erase(layout.ndim() - 1);
  }

  std::string text() const {
    std::string text = absl::StrCat(to_string(layout_), "\n");
    if (layout_.element_count() == 0) return absl::StrCat(text, "no elements, no bytes\n");
    absl::StrAppend(&text, heading(), "\n");
    std::int64_t rows = 1;
    for (const int axis : slow_axes_) rows *= padded_shape_[axis];
    const Shown shown = shown_of(rows, options_.max_rows);
    for (std::int64_t row = 0; row < shown.head; ++row) text += line(row);
    if (shown.hidden > 0) absl::StrAppend(&text, "  ... ", shown.hidden, " more rows ...\n");
    for (std::int64_t row = rows - shown.tail; row < rows; ++row) text += line(row);
    return absl::StrCat(text, key(), "\n");
  }

 private:
  std::int64_t cells_per_row() const { return row_axis_ < 0 ? 1 : padded_shape_[row_axis_]; }

  std::string heading() const {
    if (row_axis_ < 0) return "one element, no dimensions";
    const std::int64_t extent = layout_.shape()[row_axis_];
    return absl::StrCat("rows run along ", to_string(dims_[row_axis_]), ": ", extent,
                        " elements and ", cells_per_row() - extent, " of padding, ",
                        layout_.strides_bytes()[row_axis_], " bytes apart");
  }

  std::string line(std::int64_t row) const {
    Extents index(layout_.ndim(), 0);
    for (int i = slow_axes_.size() - 1; i >= 0; --i) {
      const int axis = slow_axes_[i];
      index[axis] = row % padded_shape_[axis];
      row /= padded_shape_[axis];
    }
    std::string text =
        absl::StrFormat("%10s ", absl::StrCat("+", byte_offset(layout_.view(), index)));
    for (int axis = 0; axis < layout_.ndim(); ++axis) {
      if (axis != row_axis_) absl::StrAppend(&text, " ", to_string(dims_[axis]), "=", index[axis]);
    }
    return absl::StrCat(text, " |", cells(index), " |\n");
  }

  std::string cells(Extents index) const {
    const Shown shown = shown_of(cells_per_row(), options_.max_columns);
    std::string text;
    const auto append = [&](std::int64_t position) {
      if (row_axis_ >= 0) index[row_axis_] = position;
      text += {' ', mark(index)};
    };
    for (std::int64_t i = 0; i < shown.head; ++i) append(i);
    if (shown.hidden > 0) absl::StrAppend(&text, " ..", shown.hidden, " more..");
    for (std::int64_t i = cells_per_row() - shown.tail; i < cells_per_row(); ++i) append(i);
    return text;
  }

  char mark(const Extents& index) const {
    bool in_halo = false;
    for (int axis = 0; axis < layout_.ndim(); ++axis) {
      if (index[axis] >= layout_.shape()[axis]) return '.';
      in_halo = in_halo || index[axis] < halo_[axis].lower ||
                index[axis] >= layout_.shape()[axis] - halo_[axis].upper;
    }
    const std::int64_t distance =
        byte_offset(layout_.view(), index) - layout_.aligned_offset_bytes();
    const bool aligned = layout_.alignment_bytes() > 1 && distance % layout_.alignment_bytes() == 0;
    if (in_halo) return aligned ? 'a' : 'h';
    return aligned ? 'A' : 'o';
  }

  std::string key() const {
    const bool has_halo = halo_ != no_halo(layout_.ndim());
    std::string text = "o element";
    if (has_halo) absl::StrAppend(&text, "   h halo");
    if (layout_.alignment_bytes() > 1) {
      absl::StrAppend(&text, "   A", has_halo ? " (a in the halo)" : "",
                      " address is a multiple of ", layout_.alignment_bytes(), " bytes");
    }
    if (layout_.row_padding() != 0) absl::StrAppend(&text, "   . padding");
    return text;
  }

  const Layout& layout_;
  const Extents padded_shape_ = layout_.padded_shape();
  const DrawOptions& options_;
  Dims dims_;
  Halo halo_;
  Axes slow_axes_;  // All but the row's, from the largest stride to the smallest.
  int row_axis_ = -1;
};

}  // namespace

std::string draw(const Layout& layout, const DrawOptions& options) {
  return Picture(layout, options).text();
}

}  // namespace gridbuf
