module;

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>

#include "modules/base/status_macros.h"

module gridbuf.interface.dlpack;

namespace gridbuf::dlpack {
namespace {

// Divides byte strides by an itemsize, by a shift if it is a power of two: a few divisions take as
// long as the rest of an export.
class ElementUnit {
 public:
  explicit ElementUnit(std::int64_t itemsize_bytes) : itemsize_bytes_(itemsize_bytes) {
    const auto bits = static_cast<std::uint64_t>(itemsize_bytes);
    if (std::has_single_bit(bits)) shift_ = std::countr_zero(bits);
  }

  bool divides(std::int64_t stride_bytes) const {
    return shift_ >= 0 ? (stride_bytes & (itemsize_bytes_ - 1)) == 0
                       : stride_bytes % itemsize_bytes_ == 0;
  }
  // Requires divides(stride_bytes).
  std::int64_t elements(std::int64_t stride_bytes) const {
    return shift_ >= 0 ? stride_bytes >> shift_ : stride_bytes / itemsize_bytes_;
  }

 private:
  std::int64_t itemsize_bytes_;
  int shift_ = -1;
};

struct StreamAnswer {
  StreamOrder order;
  std::uint64_t stream = 0;
};

absl::Status bad_stream(std::int64_t stream, std::string_view bound, std::string_view advice) {
  return make_error(ErrorClass::kValue, {"stream", std::to_string(stream), bound, advice});
}

// DP-16 for CUDA; DP-17 for ROCm, where 0 is the default stream, and 1 and 2 are not streams.
absl::StatusOr<StreamAnswer> device_stream(bool is_cuda, std::optional<std::int64_t> stream) {
  const std::int64_t legacy = is_cuda ? 1 : 0;
  const std::int64_t asked = stream.value_or(legacy);
  if (asked == -1) return StreamAnswer{StreamOrder::kNothing};
  if (asked == legacy) return StreamAnswer{StreamOrder::kLegacyDefault};
  if (asked == 2 && is_cuda) return StreamAnswer{StreamOrder::kPerThreadDefault};
  if (asked > 2) return StreamAnswer{StreamOrder::kHandle, static_cast<std::uint64_t>(asked)};
  return is_cuda ? bad_stream(asked, "None, -1, 1, 2 or a stream handle on CUDA",
                              "pass 1 for the legacy default stream (0 is ambiguous)")
                 : bad_stream(asked, "None, -1, 0 or a stream handle on ROCm",
                              "pass 0 for the default stream");
}

// The order of work on memory of device type `own` that is exported as `exported`. The host does
// not have streams, so an export to it waits for the devices' work on the memory (DP-15, DP-24).
absl::StatusOr<StreamAnswer> stream_for(DeviceType own, DeviceType exported,
                                        std::optional<std::int64_t> stream) {
  if (exported == DeviceType::kHost) {
    if (stream) return bad_stream(*stream, "None for memory on the host", "leave `stream` out");
    return StreamAnswer{own == DeviceType::kHost ? StreamOrder::kNothing : StreamOrder::kFinish};
  }
  const bool is_rocm = exported == DeviceType::kRocm || exported == DeviceType::kRocmHost;
  return device_stream(!is_rocm, stream);
}

struct DeviceAnswer {
  Device device;
  bool copy = false;
};

// DP-20 … DP-23: the device of the memory, or the host: without a copy if the host can read it,
// else with a copy.
absl::StatusOr<DeviceAnswer> device_for(const BufferDescriptor& descriptor,
                                        const ExportRequest& request) {
  const Device own = descriptor.device;
  const bool copy = request.copy.value_or(false);
  const auto& wanted = request.dl_device;
  if (!wanted || (wanted->type == static_cast<std::int64_t>(own.type) && wanted->id == own.id)) {
    return DeviceAnswer{own, copy};
  }
  const bool wants_host =
      wanted->type == static_cast<std::int64_t>(DeviceType::kHost) && wanted->id == 0;
  if (!wants_host) {
    return make_error(
        ErrorClass::kBuffer,
        {"dl_device", "(" + std::to_string(wanted->type) + ", " + std::to_string(wanted->id) + ")",
         "the array's own device (" + to_string(own) + ") or the host, (1, 0)",
         "leave it out and move the array yourself"});
  }
  if (is_host_readable(own.type)) return DeviceAnswer{Device{}, copy};
  if (request.copy == false) {
    return make_error(ErrorClass::kBuffer,
                      {"copy", "False with dl_device (1, 0)",
                       "True or None for memory that the host cannot read (" + to_string(own) + ")",
                       "leave copy out"});
  }
  return DeviceAnswer{Device{}, true};
}

// DP-11, DP-12. `minor_version` is only used for versioned exports.
void choose_version(const std::optional<ExportRequest::Version>& most, const DlpackType& type,
                    ExportPlan& plan) {
  plan.versioned = most && most->major >= kMajorVersion;
  const bool same_major = most && most->major == kMajorVersion;
  const auto consumer = same_major ? std::clamp<std::int64_t>(most->minor, 0, kMinorVersion)
                                   : std::int64_t{kMinorVersion};
  const std::uint32_t first = type.code >= 7 ? 1 : 0;  // FP8, FP6 and FP4 came with 1.1
  plan.minor_version = std::max(static_cast<std::uint32_t>(consumer), first);
}

absl::Status check_legacy(const BufferDescriptor& descriptor, bool readonly) {
  if (readonly) {
    return make_error(
        ErrorClass::kBuffer,
        {"the array", "read-only",
         "writable for a DLPack capsule without a version, which lacks a read-only flag",
         "pass max_version=(1, 0) or more, or copy=True"});
  }
  if (descriptor.dtype.is_padded_subbyte()) {
    return make_error(ErrorClass::kBuffer, {"dtype", descriptor.dtype.name(),
                                            "of whole bytes for a DLPack capsule without a version",
                                            "pass max_version=(1, 0) or more"});
  }
  return absl::OkStatus();
}

absl::Status check_strides(const StridedView& view) {
  if (is_empty(view.shape)) return absl::OkStatus();  // DP-33
  const ElementUnit unit(view.itemsize_bytes);
  for (int axis = 0; axis < view.ndim(); ++axis) {
    if (view.shape[axis] == 1 || unit.divides(view.strides_bytes[axis])) continue;
    return make_error(ErrorClass::kBuffer,
                      {"stride of axis " + std::to_string(axis),
                       std::to_string(view.strides_bytes[axis]) + " bytes",
                       "a multiple of the itemsize, " + std::to_string(view.itemsize_bytes) +
                           " bytes, for DLPack",
                       "copy the array, or use the array interface or the buffer protocol"});
  }
  return absl::OkStatus();
}

// The element type, if DLPack can describe the memory.
absl::StatusOr<DlpackType> exportable_type(const BufferDescriptor& descriptor) {
  GRIDBUF_ASSIGN_OR_RETURN(auto& type, descriptor.dtype.dlpack());
  GRIDBUF_RETURN_IF_ERROR(check_strides(descriptor.view));
  return std::move(type);
}

}  // namespace

absl::Status check_exportable(const BufferDescriptor& descriptor) {
  return exportable_type(descriptor).status();
}

absl::StatusOr<ExportPlan> negotiate(const BufferDescriptor& descriptor,
                                     const ExportRequest& request) {
  GRIDBUF_ASSIGN_OR_RETURN(const auto& device, device_for(descriptor, request));
  GRIDBUF_ASSIGN_OR_RETURN(const auto& stream,
                           stream_for(descriptor.device.type, device.device.type, request.stream));
  GRIDBUF_ASSIGN_OR_RETURN(const auto& type, descriptor.dtype.dlpack());
  ExportPlan plan;
  plan.copy = device.copy;
  plan.device = device.device;
  plan.type = type;
  plan.stream_order = stream.order;
  plan.stream = stream.stream;
  choose_version(request.max_version, type, plan);
  // A copy has new strides and is writable.
  if (!plan.copy) {
    GRIDBUF_RETURN_IF_ERROR(check_strides(descriptor.view));
  }
  if (!plan.versioned) {
    const bool readonly = descriptor.readonly && !plan.copy;
    GRIDBUF_RETURN_IF_ERROR(check_legacy(descriptor, readonly));
  }
  return plan;
}

namespace {

// A managed tensor and its data in one allocation: the struct, the owner, then shape and strides.
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

// Element strides: those of the view if they have a meaning, else those of a dense array (DL-09,
// DP-33).
void fill_strides(const StridedView& view, std::int64_t* strides_elements) {
  const ElementUnit unit(view.itemsize_bytes);
  const bool empty = is_empty(view.shape);
  std::int64_t dense = 1;
  for (int axis = view.ndim() - 1; axis >= 0; --axis) {
    const std::int64_t extent = view.shape[axis];
    strides_elements[axis] = extent > 1 && !empty ? unit.elements(view.strides_bytes[axis]) : dense;
    // Fits in 64 bits: `describe` has checked the product of the extents, and zeros are left out.
    if (extent != 0) dense = checked::mul(dense, extent).value_or(checked::kMaxBytes);
  }
}

// Fills the tensor, which points to `shape` and `strides_elements`.
void fill_tensor(const BufferDescriptor& descriptor, const Device& device, const DlpackType& type,
                 std::int64_t* shape, std::int64_t* strides_elements, DLTensor& tensor) {
  const int ndim = descriptor.view.ndim();
  tensor.data = descriptor.is_empty() ? nullptr : descriptor.first_element();
  tensor.device = {static_cast<std::int32_t>(device.type), device.id};
  tensor.ndim = ndim;
  tensor.dtype = {type.code, type.bits, type.lanes};
  // Null for a 0-d tensor, so that consumers cannot misread it (DL-13).
  tensor.shape = ndim == 0 ? nullptr : shape;
  tensor.strides = ndim == 0 ? nullptr : strides_elements;
  tensor.byte_offset = 0;
}

// Builds an Export, complete except for version and flags. Null: out of memory.
template <class Managed>
Managed* make_export(const BufferDescriptor& descriptor, const ExportPlan& plan,
                     DLTensor Managed::* tensor) {
  static_assert(sizeof(Export<Managed>) % alignof(std::int64_t) == 0);
  const StridedView& view = descriptor.view;
  const auto extents = static_cast<std::size_t>(2 * view.ndim());
  void* memory =
      ::operator new(sizeof(Export<Managed>) + extents * sizeof(std::int64_t), std::nothrow);
  if (memory == nullptr) return nullptr;
  auto* made = new (memory) Export<Managed>{{}, descriptor.owner};
  std::int64_t* const shape = made->shape();
  std::copy(view.shape.begin(), view.shape.end(), shape);
  fill_strides(view, shape + view.ndim());
  fill_tensor(descriptor, plan.device, plan.type, shape, shape + view.ndim(),
              made->managed.*tensor);
  made->managed.manager_ctx = made;
  made->managed.deleter = &Export<Managed>::destroy;
  return &made->managed;
}

absl::Status no_memory() {
  return make_error(ErrorClass::kMemory,
                    "no memory for a DLPack export; free some arrays and try again");
}

// The plan of an export without negotiation: without a copy, on its device.
absl::StatusOr<ExportPlan> plain_plan(const BufferDescriptor& descriptor) {
  GRIDBUF_ASSIGN_OR_RETURN(const auto& type, exportable_type(descriptor));
  ExportPlan plan;
  plan.device = descriptor.device;
  plan.type = type;
  return plan;
}

}  // namespace

absl::StatusOr<LegacyExport> export_legacy(const BufferDescriptor& descriptor,
                                           const ExportPlan& plan) {
  DLManagedTensor* const managed = make_export(descriptor, plan, &DLManagedTensor::dl_tensor);
  if (managed == nullptr) return no_memory();
  return LegacyExport(managed);
}

absl::StatusOr<VersionedExport> export_versioned(const BufferDescriptor& descriptor,
                                                 const ExportPlan& plan) {
  DLManagedTensorVersioned* const managed =
      make_export(descriptor, plan, &DLManagedTensorVersioned::dl_tensor);
  if (managed == nullptr) return no_memory();
  managed->version = {kMajorVersion, plan.minor_version};
  managed->flags = (descriptor.readonly ? kFlagReadOnly : 0) | (plan.copy ? kFlagIsCopied : 0) |
                   (descriptor.dtype.is_padded_subbyte() ? kFlagSubbytePadded : 0);
  return VersionedExport(managed);
}

absl::StatusOr<LegacyExport> export_legacy(const BufferDescriptor& descriptor) {
  GRIDBUF_RETURN_IF_ERROR(check_legacy(descriptor, descriptor.readonly));
  GRIDBUF_ASSIGN_OR_RETURN(const auto& plan, plain_plan(descriptor));
  return export_legacy(descriptor, plan);
}

absl::StatusOr<VersionedExport> export_versioned(const BufferDescriptor& descriptor, bool copied,
                                                 std::uint32_t minor_version) {
  GRIDBUF_ASSIGN_OR_RETURN(auto& plan, plain_plan(descriptor));
  plan.copy = copied;
  plan.minor_version = minor_version;
  return export_versioned(descriptor, plan);
}

absl::Status describe_tensor(const BufferDescriptor& descriptor, Extents& strides_elements,
                             DLTensor& tensor) {
  GRIDBUF_ASSIGN_OR_RETURN(const auto& type, exportable_type(descriptor));
  Extents strides = descriptor.view.strides_bytes;
  fill_strides(descriptor.view, strides.data());
  // A consumer of an earlier call may be reading them.
  if (strides_elements != strides) strides_elements = strides;
  fill_tensor(descriptor, descriptor.device, type,
              const_cast<std::int64_t*>(descriptor.view.shape.data()), strides_elements.data(),
              tensor);
  return absl::OkStatus();
}

}  // namespace gridbuf::dlpack
