module;

#include <cstddef>
#include <cstdint>

module gridbuf.call.field;

import gridbuf.interface;

namespace gridbuf {

FieldArgument field_argument(const Storage& storage, Side side) {
  const BufferDescriptor memory = storage.memory(side);
  FieldArgument argument;
  argument.memory = memory.view;
  argument.address = reinterpret_cast<std::uintptr_t>(memory.first_element());
  argument.dtype = storage.dtype();
  argument.dims = storage.dims();
  argument.halo = storage.halo();
  return argument;
}

FieldPlace place_field(const BoundField& field, std::byte* first) {
  FieldPlace place;
  std::int64_t offset_bytes = 0;
  const bool has_elements = !is_empty(field.memory.shape);
  for (int i = 0; i < field.memory.ndim(); ++i) {
    const std::int64_t origin = field.origin[i];
    // An origin at the end of its dimension is a place without points.
    if (has_elements && origin < field.memory.shape[i]) {
      offset_bytes += origin * field.memory.strides_bytes[i];
    }
    place.strides_bytes.push_back(field.memory.strides_bytes[i]);
    place.lower.push_back(origin);
    place.upper.push_back(field.memory.shape[i] - origin);
  }
  place.origin = first + offset_bytes;
  return place;
}

}  // namespace gridbuf
