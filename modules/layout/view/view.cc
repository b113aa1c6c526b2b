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

}  // namespace gridbuf
