// gridbuf.layout.draw: a picture, in text, of where a plan puts its elements.
//
// Purpose. Strides are hard to read and easy to get wrong; a picture settles most questions. `draw`
// shows memory as it lies: each line is a row along the contiguous dimension, lines follow in order
// of address, and the mark of a cell says what it is: domain, halo, padding or an aligned element.
//
// Key choice. The picture is made from the plan's strides and padded shape and never from its
// layout map, so a wrong plan gives a wrong picture. It is bounded, whatever the plan: of a long
// row or many rows the beginning and the end are shown (padding is at the end), with a count of
// what is left out. Plain ASCII, so that it survives logs, issues and terminals.

module;

#include <string>

export module gridbuf.layout.draw;

export import gridbuf.layout;

export namespace gridbuf {

/// How much to draw, and what is known about the dimensions.
struct DrawOptions {
  Dims dims = {};        // Empty = default names.
  Halo halo = {};        // Empty = none.
  int max_columns = 24;  // Cells per row, >= 1.
  int max_rows = 32;     // Rows, >= 1.
};

/// The plan in one line and what a row is; then, for each row of memory, its byte offset, the
/// indices of the other dimensions and a mark per cell: `o` element, `h` halo, `A` (in the halo
/// `a`) element whose address is a multiple of the alignment, `.` padding; then a key. Names or a
/// halo that do not fit the plan are taken as not given.
std::string draw(const LayoutPlan& plan, const DrawOptions& options = {});

}  // namespace gridbuf
