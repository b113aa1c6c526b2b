// gridbuf.layout.draw: a picture, in text, of where a plan puts its elements.
//
// Purpose. Strides are hard to read and easy to get wrong; a picture settles most questions. `draw`
// shows memory as it lies: each line is a row along the contiguous dimension, lines follow in order
// of address, and the mark of a cell says what it is: domain, halo, padding or an aligned element.
//
// Key choice. The picture is made from the plan's strides and padded shape alone (never from the
// layout map), so a wrong plan gives a wrong picture. Its size is bounded, whatever the plan: long
// rows and many rows are cut in the middle of nowhere with a count of what is left out. Plain
// ASCII, so that it survives logs, issues and terminals.

module;

#include <string>

export module gridbuf.layout.draw;

export import gridbuf.layout;

export namespace gridbuf {

/// How much to draw, and what is known about the dimensions.
struct DrawOptions {
  Dims dims = {};        // Empty = default names.
  Halo halo = {};        // Empty = none. Must fit the plan (gridbuf.layout.halo).
  int max_columns = 24;  // Cells per row, >= 1.
  int max_rows = 32;     // Rows, >= 1.
};

/// A head line (shape, strides, alignment), then a line per row of memory with its byte offset, the
/// indices of the other dimensions and one mark per cell: `A` aligned (its address is a multiple of
/// the alignment), `o` domain, `h` halo, `.` padding; then a key.
std::string draw(const LayoutPlan& plan, const DrawOptions& options = {});

}  // namespace gridbuf
