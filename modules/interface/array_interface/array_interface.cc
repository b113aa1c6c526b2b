module;

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.interface.array_interface;

import gridbuf.alloc;
import gridbuf.error;
import gridbuf.interface;
import gridbuf.interface.dtype;
import gridbuf.layout.view;

namespace gridbuf {

absl::StatusOr<ArrayInterfaceFields> array_interface(const BufferDescriptor& descriptor) {
  if (!is_host_readable(descriptor.device.type)) {
    return make_error(
        ErrorClass::kNoSuchBuffer,
        {"device", to_string(descriptor.device), "readable by the host for __array_interface__",
         "copy the array to the host, or use the CUDA array interface or DLPack"});
  }
  ArrayInterfaceFields fields;
  fields.shape = descriptor.view.shape;
  fields.typestr = descriptor.dtype.typestr();
  fields.data_address = reinterpret_cast<std::uintptr_t>(descriptor.first_element());
  fields.readonly = descriptor.readonly;
  if (!is_c_contiguous(descriptor.view)) fields.strides_bytes = descriptor.view.strides_bytes;
  fields.descr = descriptor.dtype.descr();
  return fields;
}

}  // namespace gridbuf
