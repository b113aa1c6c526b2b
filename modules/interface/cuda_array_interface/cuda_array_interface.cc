module;

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.interface.cuda_array_interface;

import gridbuf.alloc;
import gridbuf.error;
import gridbuf.interface;
import gridbuf.interface.dtype;
import gridbuf.layout.view;

namespace gridbuf {

absl::StatusOr<CudaArrayInterfaceFields> cuda_array_interface(const BufferDescriptor& descriptor,
                                                              std::uint64_t stream) {
  if (!is_cuda_accessible(descriptor.device.type)) {
    return make_error(
        ErrorClass::kNoSuchBuffer,
        {"device", to_string(descriptor.device),
         "reached by CUDA devices (device, managed or pinned) for __cuda_array_interface__",
         "copy the array to a device, or use __array_interface__ or DLPack"});
  }
  if (stream == 0) {
    return make_error(ErrorClass::kValue,
                      {"stream", "0", "1, 2 or a stream handle",
                       "pass 1 for the legacy default stream, 2 for the thread's own"});
  }
  CudaArrayInterfaceFields fields;
  fields.shape = descriptor.view.shape;
  fields.typestr = descriptor.dtype.typestr();
  if (!descriptor.is_empty()) {
    fields.data_address = reinterpret_cast<std::uintptr_t>(descriptor.first_element());
  }
  fields.readonly = descriptor.readonly;
  if (!is_c_contiguous(descriptor.view)) fields.strides_bytes = descriptor.view.strides_bytes;
  fields.descr = descriptor.dtype.descr();
  fields.stream = stream;
  return fields;
}

}  // namespace gridbuf
