module;

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.interface;

namespace gridbuf {

absl::StatusOr<BufferDescriptor> describe(BufferDescriptor descriptor) {
  const StridedView& view = descriptor.view;
  const auto elements = checked::product(view.shape.span());
  if (!byte_hull(view) || !elements || !checked::mul(*elements, view.itemsize_bytes)) {
    return make_error(
        ErrorClass::kValue,
        {"array", to_string(view), "as many strides as non-negative extents, within 2^63 - 1 bytes",
         "check shape and strides"});
  }
  if (view.itemsize_bytes != descriptor.dtype.itemsize_bytes()) {
    return make_error(ErrorClass::kValue, {"itemsize_bytes", std::to_string(view.itemsize_bytes),
                                           std::to_string(descriptor.dtype.itemsize_bytes()) +
                                               ", that of " + descriptor.dtype.name(),
                                           "plan the layout for the element type"});
  }
  if (descriptor.block == nullptr && *elements != 0) {
    return make_error(ErrorClass::kValue,
                      {"block", "null", "memory for " + std::to_string(*elements) + " elements",
                       "allocate before describing"});
  }
  return descriptor;
}

}  // namespace gridbuf
