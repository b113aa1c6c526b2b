module;

#include <cstddef>
#include <cstdint>

module gridbuf.call;

import gridbuf.interface;

namespace gridbuf {

FieldArgument field_argument(const Storage& storage, Side side) {
  FieldArgument argument;
  argument.array = storage.array(side);
  return argument;
}

std::byte* element_at_origin(const BoundField& field, std::byte* first) {
  if (is_empty(field.memory.shape)) return first;
  for (int i = 0; i < field.memory.ndim(); ++i) {
    const std::int64_t origin = field.origin[i];
    // An origin at the end of its dimension does not have an element.
    if (origin < field.memory.shape[i]) first += origin * field.memory.strides_bytes[i];
  }
  return first;
}

}  // namespace gridbuf
