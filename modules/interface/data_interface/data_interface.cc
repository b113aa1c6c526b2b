module;

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.interface.data_interface;

import gridbuf.alloc;
import gridbuf.interface;
import gridbuf.interface.array_interface;
import gridbuf.interface.cuda_array_interface;
import gridbuf.layout.dims;
import gridbuf.layout.extents;
import gridbuf.layout.halo;
import gridbuf.layout.view;

namespace gridbuf {
namespace {

/// What both array interfaces say, whichever it is.
template <class ArrayFields>
DataInterfaceFields common_fields(ArrayFields fields, const BufferDescriptor& descriptor) {
  DataInterfaceFields entry;
  entry.shape = fields.shape;
  entry.typestr = std::move(fields.typestr);
  entry.data_address = fields.data_address;
  entry.readonly = fields.readonly;
  entry.strides_bytes = descriptor.view.strides_bytes;
  entry.descr = std::move(fields.descr);
  entry.version = fields.version;
  return entry;
}

absl::StatusOr<DataInterfaceFields> entry_of(const BufferDescriptor& descriptor, DataSide side,
                                             std::uint64_t stream) {
  if (side == DataSide::kHost) {
    absl::StatusOr<ArrayInterfaceFields> fields = array_interface(descriptor);
    if (!fields.ok()) return fields.status();
    return common_fields(*std::move(fields), descriptor);
  }
  absl::StatusOr<CudaArrayInterfaceFields> fields = cuda_array_interface(descriptor, stream);
  if (!fields.ok()) return fields.status();
  DataInterfaceFields entry = common_fields(*std::move(fields), descriptor);
  entry.stream = stream;
  return entry;
}

}  // namespace

bool has_side(const BufferDescriptor& descriptor, DataSide side) {
  return side == DataSide::kHost ? is_host_readable(descriptor.device.type)
                                 : is_cuda_accessible(descriptor.device.type);
}

absl::StatusOr<DataInterfaceFields> data_interface(const BufferDescriptor& descriptor,
                                                   DataSide side, const Dims& dims,
                                                   const Halo& halo, std::uint64_t stream) {
  const Extents& shape = descriptor.view.shape;
  if (absl::Status status = validate_dims(dims, shape.size()); !status.ok()) return status;
  const Halo whole_halo = halo.empty() ? no_halo(shape.size()) : halo;
  if (absl::Status status = validate_halo(whole_halo, shape); !status.ok()) return status;
  absl::StatusOr<DataInterfaceFields> entry = entry_of(descriptor, side, stream);
  if (!entry.ok()) return entry.status();
  entry->dims = dims;
  entry->halo = whole_halo;
  return entry;
}

}  // namespace gridbuf
