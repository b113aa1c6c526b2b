module;

#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "modules/base/status_macros.h"

module gridbuf.interface.dlpack;

namespace gridbuf::dlpack {
namespace {

constexpr ArrayRules kRules{.ndim = "DL-07",
                            .extents = "DL-07",
                            .size = "DL-14",
                            .strides = "DL-08",
                            .hull = "DL-14",
                            .null = "DL-27",
                            .inside = "DL-14"};
constexpr std::string_view kAdvice =
    "correct the library that exported it, or copy the array there";

/// The first minor version in which strides may not be null (DL-08).
constexpr std::uint32_t kStridesRequiredSince = 2;

absl::Status refused(std::string_view rule, std::string_view name, std::string_view found,
                     std::string_view bound) {
  return refuse(rule, ErrorClass::kBuffer, {name, found, bound, kAdvice});
}

/// The device, if gridbuf can use its memory (DL-17, DL-23).
absl::StatusOr<Device> read_device(const DLDevice& device) {
  const std::string found = absl::StrCat("(", device.device_type, ", ", device.device_id, ")");
  switch (static_cast<DeviceType>(device.device_type)) {
    case DeviceType::kHost:
      if (device.device_id == 0) return Device{};
      break;
    case DeviceType::kCuda:
    case DeviceType::kCudaHost:
    case DeviceType::kRocm:
    case DeviceType::kRocmHost:
    case DeviceType::kCudaManaged:
      if (device.device_id >= 0) {
        return Device{static_cast<DeviceType>(device.device_type), device.device_id};
      }
      break;
    default:
      return refused("DL-23", "the tensor's device type", found,
                     "the host, CUDA or ROCm (1, 2, 3, 10, 11, 13)");
  }
  return refused("DL-17", "the tensor's device", found, "one that exists; the host's id is 0");
}

absl::StatusOr<DType> read_type(const DLDataType& found, const TensorForm& form) {
  const DlpackType type{found.code, found.bits, found.lanes};
  const std::string text =
      absl::StrCat("code ", type.code, ", ", type.bits, " bits, ", type.lanes, " lanes");
  if (type.lanes == 0 || type.bits == 0) {
    return refused("DL-15", "the tensor's type", text, "of at least one bit and one lane");
  }
  if (type.lanes != 1) return refused("DL-30", "the tensor's type", text, "of one lane");
  absl::StatusOr<DType> dtype = DType::from_dlpack(type);
  if (!dtype.ok()) return with_context(dtype.status(), "DL-23");
  if (dtype->is_padded_subbyte() && (form.flags & kFlagSubbytePadded) == 0) {
    return refused("DL-25", "the tensor's type", text + ", packed into bytes",
                   "padded to one byte per element");
  }
  return dtype;
}

/// Strides in bytes. Those of extents of 1 and of empty tensors may be any number (DP-33).
absl::StatusOr<std::optional<RawExtents>> read_strides(const DLTensor& tensor,
                                                       const TensorForm& form, const Extents& shape,
                                                       std::int64_t itemsize_bytes) {
  if (tensor.ndim == 0) return std::optional<RawExtents>();  // Never read (DL-13).
  if (tensor.strides == nullptr) {
    if (!form.versioned || form.minor_version < kStridesRequiredSince) {
      return std::optional<RawExtents>();
    }
    return refused("DL-08", "strides", "null", "given since version 1.2");
  }
  RawExtents strides = RawExtents::of(tensor.strides, tensor.ndim);
  for (int axis = 0; axis < shape.size(); ++axis) {
    const auto bytes = checked::mul(strides.values[axis], itemsize_bytes);
    const bool matters = shape[axis] > 1 && !is_empty(shape);
    if (!bytes && matters) {
      return refused("DL-14", "strides[" + std::to_string(axis) + "]",
                     std::to_string(strides.values[axis]) + " elements of " +
                         std::to_string(itemsize_bytes) + " bytes",
                     "within 2^63 - 1 bytes");
    }
    strides.values[axis] = bytes.value_or(0);
  }
  return std::optional(strides);
}

/// Element 0: data + byte_offset (DL-10, DL-24).
absl::StatusOr<std::uintptr_t> read_address(const DLTensor& tensor, bool empty) {
  const auto data = reinterpret_cast<std::uintptr_t>(tensor.data);
  if (empty) return data;
  if (data == 0) {
    return refused("DL-27", "data", "null", "the address of a tensor that has elements");
  }
  std::uintptr_t address = 0;
  if (__builtin_add_overflow(data, tensor.byte_offset, &address)) {
    return refused("DL-24", "byte_offset", std::to_string(tensor.byte_offset),
                   "a number of bytes that stays in the address space");
  }
  return address;
}

absl::Status check_counts(const DLTensor& tensor) {
  if (tensor.ndim < 0 || tensor.ndim > kMaxNdim) {
    return refused("DL-07", "ndim", std::to_string(tensor.ndim),
                   "from 0 to " + std::to_string(kMaxNdim));
  }
  if (tensor.ndim > 0 && tensor.shape == nullptr) {
    return refused("DL-07", "shape", "null", "given where there are dimensions");
  }
  return absl::OkStatus();
}

/// The struct's deleter, which also frees the struct.
struct Return {
  template <class Managed>
  void operator()(Managed* managed) const noexcept {
    if (managed->deleter != nullptr) managed->deleter(managed);
  }
};

absl::Status no_tensor() { return refused("DX-05", "the managed tensor", "null", "a tensor"); }

/// Makes the view the owner of `managed`. From here on one unique or shared pointer holds it.
template <class Managed>
absl::StatusOr<ImportedView> own(std::unique_ptr<Managed, Return> managed,
                                 absl::StatusOr<ImportedView> view) {
  if (!view.ok()) return view;
  try {
    view->memory.owner = Owner(std::shared_ptr<Managed>(std::move(managed)));
  } catch (const std::bad_alloc&) {  // The pointer has returned the tensor.
    return make_error(ErrorClass::kMemory,
                      "no memory to hold a DLPack tensor; free some arrays and try again");
  }
  return view;
}

}  // namespace

absl::StatusOr<ImportedView> read_tensor(const DLTensor& tensor, const TensorForm& form) {
  GRIDBUF_RETURN_IF_ERROR(check_counts(tensor));
  GRIDBUF_ASSIGN_OR_RETURN(const auto& device, read_device(tensor.device));
  GRIDBUF_ASSIGN_OR_RETURN(auto& dtype, read_type(tensor.dtype, form));
  const RawExtents shape = RawExtents::of(tensor.shape, tensor.ndim);
  GRIDBUF_ASSIGN_OR_RETURN(auto& strides,
                           read_strides(tensor, form, shape.values, dtype.itemsize_bytes()));
  GRIDBUF_ASSIGN_OR_RETURN(const auto& address, read_address(tensor, is_empty(shape.values)));
  GRIDBUF_ASSIGN_OR_RETURN(auto& view, check_array({.address = address,
                                                    .shape = shape,
                                                    .strides_bytes = std::move(strides),
                                                    .dtype = std::move(dtype),
                                                    .readonly = (form.flags & kFlagReadOnly) != 0,
                                                    .memory = std::nullopt},
                                                   kRules, ErrorClass::kBuffer));
  view.memory.device = device;
  view.is_copied = (form.flags & kFlagIsCopied) != 0;
  return std::move(view);
}

absl::StatusOr<ImportedView> take(DLManagedTensor* managed) {
  if (managed == nullptr) return no_tensor();
  std::unique_ptr<DLManagedTensor, Return> owned(managed);
  absl::StatusOr<ImportedView> view = read_tensor(managed->dl_tensor, {});
  return own(std::move(owned), std::move(view));
}

absl::StatusOr<ImportedView> take(DLManagedTensorVersioned* managed) {
  if (managed == nullptr) return no_tensor();
  std::unique_ptr<DLManagedTensorVersioned, Return> owned(managed);
  if (managed->version.major != kMajorVersion) {
    return refused("DL-22", "the tensor's version",
                   absl::StrCat(managed->version.major, ".", managed->version.minor), "1.x");
  }
  absl::StatusOr<ImportedView> view = read_tensor(
      managed->dl_tensor,
      {.versioned = true, .minor_version = managed->version.minor, .flags = managed->flags});
  return own(std::move(owned), std::move(view));
}

// ---- The exchange API. ----

namespace {

/// The most tables that a chain may have before it counts as a loop (DX-03).
constexpr int kMaxExchangeVersions = 64;

bool is_complete(const ExchangeApi& api) {
  return api.managed_tensor_allocator != nullptr &&
         api.managed_tensor_from_py_object_no_sync != nullptr &&
         api.managed_tensor_to_py_object_no_sync != nullptr && api.current_work_stream != nullptr;
}

}  // namespace

const ExchangeApi* find_exchange_api(const ExchangeApiHeader* header) {
  for (int tables = 0; header != nullptr && tables < kMaxExchangeVersions; ++tables) {
    if (header->version.major == kMajorVersion) {
      const auto* api = reinterpret_cast<const ExchangeApi*>(header);
      return is_complete(*api) ? api : nullptr;
    }
    header = header->prev_api;
  }
  return nullptr;
}

}  // namespace gridbuf::dlpack
