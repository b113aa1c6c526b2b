module;

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

module gridbuf.layout;

namespace gridbuf {
namespace {

std::string to_string(const HaloWidth& width) {
  return absl::StrCat("(", width.lower, ", ", width.upper, ")");
}

}  // namespace

absl::Status validate_halo(const Halo& halo, const Extents& shape) {
  if (halo.size() != shape.size()) {
    return make_error(ErrorClass::kValue,
                      {.name = "the number of entries of halo",
                       .found = absl::StrCat(halo.size()),
                       .bound = absl::StrCat(shape.size(), ", one per dimension"),
                       .advice = "give a width or a (lower, upper) pair for every dimension"});
  }
  for (int axis = 0; axis < shape.size(); ++axis) {
    if (!fits(halo[axis], shape[axis])) {
      return make_error(
          ErrorClass::kValue,
          {.name = absl::StrCat("halo[", axis, "]"),
           .found = to_string(halo[axis]),
           .bound = absl::StrCat("two widths >= 0 whose sum is at most the extent ", shape[axis]),
           .advice = halo[axis].lower < 0 || halo[axis].upper < 0
                         ? "count the points outside of the domain, 0 for none"
                         : "make the halo narrower or the shape larger"});
    }
  }
  return absl::OkStatus();
}

std::string to_string(const Halo& halo) {
  std::string text = "(";
  for (int axis = 0; axis < halo.size(); ++axis) {
    absl::StrAppend(&text, axis > 0 ? ", " : "", to_string(halo[axis]));
  }
  absl::StrAppend(&text, halo.size() == 1 ? ",)" : ")");
  return text;
}

}  // namespace gridbuf
