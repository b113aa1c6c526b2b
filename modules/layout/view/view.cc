module;

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

module gridbuf.layout.view;

namespace gridbuf {

std::string to_string(const StridedView& view) {
  return absl::StrCat("shape ", to_string(view.shape), ", strides ", to_string(view.strides_bytes),
                      " bytes, offset ", view.offset_bytes, " bytes, itemsize ",
                      view.itemsize_bytes, " bytes");
}

bool is_whole(const ElementParts& parts, std::int64_t itemsize_bytes) noexcept {
  return parts.size() == 1 && parts[0].ndim() == 0 && parts[0].itemsize_bytes == itemsize_bytes;
}

std::optional<StridedView> part_of_each(const StridedView& view, const StridedView& part) {
  StridedView seen{.offset_bytes = view.offset_bytes + part.offset_bytes,
                   .itemsize_bytes = part.itemsize_bytes};
  for (const StridedView* side : {&view, &part}) {
    for (int axis = 0; axis < side->ndim(); ++axis) {
      if (side->shape[axis] == 1) continue;
      if (seen.ndim() == kMaxNdim) return std::nullopt;
      seen.shape.push_back(side->shape[axis]);
      seen.strides_bytes.push_back(side->strides_bytes[axis]);
    }
  }
  return seen;
}

absl::Status too_many_axes() {
  return make_error(ErrorClass::kValue,
                    {"the number of dimensions of array and subarrays", "larger",
                     absl::StrCat("at most ", kMaxNdim), "copy the fields one by one"});
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
