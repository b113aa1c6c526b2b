module;

#include <string>

#include "absl/strings/str_cat.h"

module gridbuf.layout.view;

namespace gridbuf {

std::string to_string(const StridedView& view) {
  return absl::StrCat("shape ", to_string(view.shape), ", strides ", to_string(view.strides_bytes),
                      " bytes, offset ", view.offset_bytes, " bytes, itemsize ",
                      view.itemsize_bytes, " bytes");
}

IndexMap domain_map(const Extents& shape, const Halo& halo) {
  IndexMap map(shape);
  for (int axis = 0; axis < shape.size(); ++axis) {
    const Slice domain{.start = halo[axis].lower, .stop = shape[axis] - halo[axis].upper};
    map.keep(axis, slice_points(domain, shape[axis]));
  }
  return map;
}

}  // namespace gridbuf
