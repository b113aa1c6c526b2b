module;

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.interface.dlpack;

import gridbuf.alloc;
import gridbuf.error;
import gridbuf.interface;
import gridbuf.interface.dtype;
import gridbuf.layout.checked;
import gridbuf.layout.extents;
import gridbuf.layout.view;

namespace gridbuf::dlpack {
namespace {

// Whether the stride of `axis` says anything (DP-33).
bool stride_matters(const StridedView& view, int axis) {
  return view.shape[axis] > 1 && !is_empty(view.shape);
}

struct StreamAnswer {
  StreamOrder order;
  std::uint64_t stream = 0;
};

absl::Status bad_stream(std::int64_t stream, std::string_view bound, std::string_view advice) {
  return make_error(ErrorClass::kValue, {"stream", std::to_string(stream), bound, advice});
}

// DP-16.
absl::StatusOr<StreamAnswer> cuda_stream(std::optional<std::int64_t> stream) {
  switch (stream.value_or(1)) {
    case -1:
      return StreamAnswer{StreamOrder::kNothing};
    case 1:
      return StreamAnswer{StreamOrder::kLegacyDefault};
    case 2:
      return StreamAnswer{StreamOrder::kPerThreadDefault};
    default:
      break;
  }
  if (*stream > 2) return StreamAnswer{StreamOrder::kHandle, static_cast<std::uint64_t>(*stream)};
  return bad_stream(*stream, "None, -1, 1, 2 or a stream handle on CUDA",
                    "pass 1 for the legacy default stream (0 is ambiguous)");
}

// DP-17.
absl::StatusOr<StreamAnswer> rocm_stream(std::optional<std::int64_t> stream) {
  switch (stream.value_or(0)) {
    case -1:
      return StreamAnswer{StreamOrder::kNothing};
    case 0:
      return StreamAnswer{StreamOrder::kLegacyDefault};
    default:
      break;
  }
  if (*stream > 2) return StreamAnswer{StreamOrder::kHandle, static_cast<std::uint64_t>(*stream)};
  return bad_stream(*stream, "None, -1, 0 or a stream handle on ROCm",
                    "pass 0 for the default stream");
}

// DP-15, DP-24: the host has no streams, so work that devices still do on the memory must have
// ended.
absl::StatusOr<StreamAnswer> host_stream(DeviceType own, std::optional<std::int64_t> stream) {
  if (stream) return bad_stream(*stream, "None for memory on the host", "leave `stream` out");
  return StreamAnswer{own == DeviceType::kHost ? StreamOrder::kNothing : StreamOrder::kFinish};
}

// The order of work on memory that lies on `own` and is exported as lying on `exported`.
absl::StatusOr<StreamAnswer> stream_for(DeviceType own, DeviceType exported,
                                        std::optional<std::int64_t> stream) {
  switch (exported) {
    case DeviceType::kHost:
      return host_stream(own, stream);
    case DeviceType::kCuda:
    case DeviceType::kCudaHost:
    case DeviceType::kCudaManaged:
      return cuda_stream(stream);
    case DeviceType::kRocm:
    case DeviceType::kRocmHost:
      return rocm_stream(stream);
  }
  return bad_stream(stream.value_or(0), "for a device that gridbuf knows", "export from the host");
}

// DP-23: the device it lies on, or the host where the host can read it as it is.
absl::StatusOr<Device> device_for(const BufferDescriptor& descriptor,
                                  const std::optional<ExportRequest::WantedDevice>& wanted) {
  const Device own = descriptor.device;
  if (!wanted) return own;
  if (wanted->type == static_cast<std::int64_t>(own.type) && wanted->id == own.id) return own;
  const bool wants_host = wanted->type == static_cast<std::int64_t>(DeviceType::kHost);
  if (wants_host && wanted->id == 0 && is_host_readable(own.type)) return Device{};
  return make_error(
      ErrorClass::kBuffer,
      {"dl_device", "(" + std::to_string(wanted->type) + ", " + std::to_string(wanted->id) + ")",
       "the array's own device (" + to_string(own) + ")" +
           (is_host_readable(own.type) ? " or the host, (1, 0)" : ""),
       "leave it out and move the array yourself"});
}

// The first minor version that has the element type's code: FP8, FP6 and FP4 came with 1.1.
std::uint32_t first_minor_version(const DlpackType& type) { return type.code >= 7 ? 1 : 0; }

// DP-11, DP-12. `minor_version` is only used for versioned exports.
void choose_version(const std::optional<ExportRequest::Version>& most, const DlpackType& type,
                    ExportPlan& plan) {
  plan.versioned = most && most->major >= kMajorVersion;
  const bool same_major = most && most->major == kMajorVersion;
  const auto consumer = same_major ? std::clamp<std::int64_t>(most->minor, 0, kMinorVersion)
                                   : std::int64_t{kMinorVersion};
  plan.minor_version = std::max(static_cast<std::uint32_t>(consumer), first_minor_version(type));
}

absl::Status check_legacy(const BufferDescriptor& descriptor, bool readonly) {
  if (readonly) {
    return make_error(ErrorClass::kBuffer,
                      {"the array", "read-only",
                       "writable for a DLPack capsule without a version, which cannot say so",
                       "pass max_version=(1, 0) or more, or copy=True"});
  }
  if (descriptor.dtype.is_padded_subbyte()) {
    return make_error(ErrorClass::kBuffer, {"dtype", descriptor.dtype.name(),
                                            "of whole bytes for a DLPack capsule without a version",
                                            "pass max_version=(1, 0) or more"});
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status check_exportable(const BufferDescriptor& descriptor) {
  if (const auto type = descriptor.dtype.dlpack(); !type.ok()) return type.status();
  const StridedView& view = descriptor.view;
  for (int axis = 0; axis < view.ndim(); ++axis) {
    if (!stride_matters(view, axis)) continue;
    if (view.strides_bytes[axis] % view.itemsize_bytes == 0) continue;
    return make_error(ErrorClass::kBuffer,
                      {"stride of axis " + std::to_string(axis),
                       std::to_string(view.strides_bytes[axis]) + " bytes",
                       "a multiple of the itemsize, " + std::to_string(view.itemsize_bytes) +
                           " bytes, for DLPack",
                       "copy the array, or use the array interface or the buffer protocol"});
  }
  return absl::OkStatus();
}

absl::StatusOr<ExportPlan> negotiate(const BufferDescriptor& descriptor,
                                     const ExportRequest& request) {
  const absl::StatusOr<Device> device = device_for(descriptor, request.dl_device);
  if (!device.ok()) return device.status();
  const absl::StatusOr<StreamAnswer> stream =
      stream_for(descriptor.device.type, device->type, request.stream);
  if (!stream.ok()) return stream.status();
  const absl::StatusOr<DlpackType> type = descriptor.dtype.dlpack();
  if (!type.ok()) return type.status();
  ExportPlan plan;
  plan.copy = request.copy.value_or(false);
  plan.device = *device;
  plan.stream_order = stream->order;
  plan.stream = stream->stream;
  choose_version(request.max_version, *type, plan);
  // A copy gets strides of its own and may be written.
  if (!plan.copy) {
    if (absl::Status status = check_exportable(descriptor); !status.ok()) return status;
  }
  if (!plan.versioned) {
    const bool readonly = descriptor.readonly && !plan.copy;
    if (absl::Status status = check_legacy(descriptor, readonly); !status.ok()) return status;
  }
  return plan;
}

namespace {

// A managed tensor with all it points to, in one allocation: the struct, the owner, then shape and
// strides.
template <class Managed>
struct Export {
  Managed managed;
  Owner owner;

  std::int64_t* shape() { return reinterpret_cast<std::int64_t*>(this + 1); }

  static void destroy(Managed* managed) noexcept {
    if (managed == nullptr) return;
    auto* self = static_cast<Export*>(managed->manager_ctx);
    self->~Export();
    ::operator delete(self);
  }
};

// Element strides: those of the view where they matter, else those of a dense array (DL-09, DP-33).
void fill_strides(const StridedView& view, std::int64_t* strides_elements) {
  std::int64_t dense = 1;
  for (int axis = view.ndim() - 1; axis >= 0; --axis) {
    strides_elements[axis] =
        stride_matters(view, axis) ? view.strides_bytes[axis] / view.itemsize_bytes : dense;
    // Cannot leave 64 bits: the extents' product fits, by `describe`, and zeros are left out.
    if (view.shape[axis] != 0) {
      dense = checked::mul(dense, view.shape[axis]).value_or(checked::kMaxBytes);
    }
  }
}

void fill_tensor(const BufferDescriptor& descriptor, const DlpackType& type, std::int64_t* shape,
                 DLTensor& tensor) {
  const StridedView& view = descriptor.view;
  const int ndim = view.ndim();
  std::copy(view.shape.begin(), view.shape.end(), shape);
  fill_strides(view, shape + ndim);
  tensor.data = descriptor.is_empty() ? nullptr : descriptor.first_element();
  tensor.device = {static_cast<std::int32_t>(descriptor.device.type), descriptor.device.id};
  tensor.ndim = ndim;
  tensor.dtype = {type.code, type.bits, type.lanes};
  // A 0-d tensor has neither; null can be taken for nothing else (DL-13).
  tensor.shape = ndim == 0 ? nullptr : shape;
  tensor.strides = ndim == 0 ? nullptr : shape + ndim;
  tensor.byte_offset = 0;
}

// Builds an Export; the result's managed tensor is all but for version and flags.
template <class Managed>
absl::StatusOr<Managed*> make_export(const BufferDescriptor& descriptor,
                                     DLTensor Managed::* tensor) {
  static_assert(sizeof(Export<Managed>) % alignof(std::int64_t) == 0);
  if (absl::Status status = check_exportable(descriptor); !status.ok()) return status;
  const auto extents = static_cast<std::size_t>(2 * descriptor.view.ndim());
  void* memory =
      ::operator new(sizeof(Export<Managed>) + extents * sizeof(std::int64_t), std::nothrow);
  if (memory == nullptr) {
    return make_error(ErrorClass::kMemory,
                      "no memory for a DLPack export; free some arrays and try again");
  }
  auto* made = new (memory) Export<Managed>{{}, descriptor.owner};
  fill_tensor(descriptor, *descriptor.dtype.dlpack(), made->shape(), made->managed.*tensor);
  made->managed.manager_ctx = made;
  made->managed.deleter = &Export<Managed>::destroy;
  return &made->managed;
}

}  // namespace

absl::StatusOr<LegacyExport> export_legacy(const BufferDescriptor& descriptor) {
  if (absl::Status status = check_legacy(descriptor, descriptor.readonly); !status.ok()) {
    return status;
  }
  const auto managed = make_export(descriptor, &DLManagedTensor::dl_tensor);
  if (!managed.ok()) return managed.status();
  return LegacyExport(*managed);
}

absl::StatusOr<VersionedExport> export_versioned(const BufferDescriptor& descriptor, bool copied,
                                                 std::uint32_t minor_version) {
  const auto managed = make_export(descriptor, &DLManagedTensorVersioned::dl_tensor);
  if (!managed.ok()) return managed.status();
  (*managed)->version = {kMajorVersion, minor_version};
  (*managed)->flags = (descriptor.readonly ? kFlagReadOnly : 0) | (copied ? kFlagIsCopied : 0) |
                      (descriptor.dtype.is_padded_subbyte() ? kFlagSubbytePadded : 0);
  return VersionedExport(*managed);
}

}  // namespace gridbuf::dlpack
