#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

import gridbuf.layout;

namespace gridbuf {
namespace {

// The picture without its first line, which is the plan printed.
std::string body(const LayoutRequest& request, const DrawOptions& options = {}) {
  const Layout plan = *make_plan(request);
  const std::string text = draw(plan, options);
  const std::string head = to_string(plan) + "\n";
  EXPECT_EQ(text.substr(0, head.size()), head);
  return "\n" + text.substr(std::min(head.size(), text.size()));
}

TEST(Draw, ShowsPaddingHaloAndAlignedElements) {
  EXPECT_EQ(
      body({.shape = {3, 5}, .itemsize_bytes = 8, .alignment_bytes = 32, .aligned_index = {1, 1}},
           {.halo = {{1, 1}, {1, 1}}}),
      R"(
rows run along J: 5 elements and 3 of padding, 8 bytes apart
        +0  I=0 | h a h h h . . . |
       +64  I=1 | h A o o h . . . |
      +128  I=2 | h a h h h . . . |
o element   h halo   A (a in the halo) address is a multiple of 32 bytes   . padding
)");
}

TEST(Draw, ShowsRowsInOrderOfAddressForA3Cycle) {
  EXPECT_EQ(
      body({.shape = {3, 2, 2}, .itemsize_bytes = 8, .layout = {2, 0, 1}, .alignment_bytes = 16},
           {.dims = {kDimK, kDimI, kDimJ}}),
      R"(
rows run along K: 3 elements and 1 of padding, 8 bytes apart
        +0  I=0 J=0 | A o A . |
       +32  I=0 J=1 | A o A . |
       +64  I=1 J=0 | A o A . |
       +96  I=1 J=1 | A o A . |
o element   A address is a multiple of 16 bytes   . padding
)");
}

TEST(Draw, IsBoundedAndShowsTheEnd) {
  EXPECT_EQ(body({.shape = {100, 100}, .itemsize_bytes = 8, .alignment_bytes = 128},
                 {.max_columns = 12, .max_rows = 3}),
            R"(
rows run along J: 100 elements and 12 of padding, 8 bytes apart
        +0  I=0 | A o o o o o o o ..100 more.. . . . . |
      +896  I=1 | A o o o o o o o ..100 more.. . . . . |
  ... 97 more rows ...
    +88704  I=99 | A o o o o o o o ..100 more.. . . . . |
o element   A address is a multiple of 128 bytes   . padding
)");
}

TEST(Draw, OfAVastPlanIsAsShort) {
  const std::string text =
      body({.shape = {1 << 30, 1 << 30}, .itemsize_bytes = 4}, {.max_columns = 0, .max_rows = -1});
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 5);
  EXPECT_LT(text.size(), 300u);
}

TEST(Draw, OfOneElementAndOfNone) {
  EXPECT_EQ(body({.itemsize_bytes = 8}),
            "\none element, no dimensions\n        +0  | o |\no element\n");
  EXPECT_EQ(body({.shape = {3, 0}}), "\nno elements, no bytes\n");
}

TEST(Draw, TakesNamesAndHaloThatDoNotFitAsNotGiven) {
  const LayoutRequest request{.shape = {2, 2}};
  EXPECT_EQ(body(request, {.dims = {kDimK}, .halo = {{1, 0}}}), body(request));
}

}  // namespace
}  // namespace gridbuf
