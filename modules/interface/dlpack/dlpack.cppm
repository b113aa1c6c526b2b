// gridbuf.interface.dlpack: DLPack's structs, the rules of its negotiation, exports that own their
// memory, imports, and the C exchange API.
//
// The ABI (version 1, DL-01) is defined here, so that DLPack's header is not needed. The bindings
// make capsules and decide when a deleter is called.
//
// Exports. `negotiate` takes the arguments of __dlpack__ (DP-11 … DP-25) and returns the plan of
// the export, or the error; it does not access memory. An export holds a share of the C++ owner and
// not of the Python object. So its deleter may run on any thread, with or without the GIL, before
// or after the interpreter's end (DL-20).
//
// Imports (DL-07 … DL-30, DP-05 … DP-09, DP-31 … DP-33). Reading and owning are one step: `take`
// always takes over the struct. Either the returned view owns it, or its deleter has run.
// (Libraries that took over first and checked later freed such tensors twice: pytorch #56789, numpy
// #32697.) In structs of a newer major version only the deleter is used (DL-22).
//
// The exchange API (DX-01 … DX-12) is a static table of functions on an array type, so that C code
// reads arrays without Python calls. The fields after its header belong to one major version. So a
// reader first reads `version.major`, and follows `prev_api` to a version that it knows (DX-03).
module;

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

export module gridbuf.interface.dlpack;

export import gridbuf.interface;

export namespace gridbuf::dlpack {

// ---- The ABI. Names and order are the standard's (dlpack.h, 1.x). ----

/// DLPack's struct of this name.
struct DLDevice {
  std::int32_t device_type;
  std::int32_t device_id;
};

/// DLPack's struct of this name.
struct DLDataType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};

/// DLPack's struct of this name.
struct DLTensor {
  void* data;
  DLDevice device;
  std::int32_t ndim;
  DLDataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;  // in elements
  std::uint64_t byte_offset;
};

/// DLPack's struct of this name: a tensor and its deleter.
struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor* self);
};

/// DLPack's struct of this name.
struct DLPackVersion {
  std::uint32_t major;
  std::uint32_t minor;
};

/// DLPack's struct of this name: a tensor with version, flags and deleter.
struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* manager_ctx;
  void (*deleter)(DLManagedTensorVersioned* self);
  std::uint64_t flags;
  DLTensor dl_tensor;
};

static_assert(sizeof(DLDevice) == 8 && sizeof(DLDataType) == 4 && alignof(DLDataType) == 2);
static_assert(sizeof(DLTensor) == 48 && offsetof(DLTensor, dtype) == 20);
static_assert(offsetof(DLTensor, shape) == 24 && offsetof(DLTensor, byte_offset) == 40);
static_assert(sizeof(DLManagedTensor) == 64 && offsetof(DLManagedTensor, deleter) == 56);
static_assert(sizeof(DLManagedTensorVersioned) == 80);
static_assert(offsetof(DLManagedTensorVersioned, deleter) == 16);
static_assert(offsetof(DLManagedTensorVersioned, flags) == 24);
static_assert(offsetof(DLManagedTensorVersioned, dl_tensor) == 32);

inline constexpr std::uint64_t kFlagReadOnly = 1;
inline constexpr std::uint64_t kFlagIsCopied = 2;
inline constexpr std::uint64_t kFlagSubbytePadded = 4;

/// The newest version of DLPack that these exports follow.
inline constexpr std::uint32_t kMajorVersion = 1;
inline constexpr std::uint32_t kMinorVersion = 3;

/// Capsule names. They must be static (DP-03, DP-08, DP-10).
inline constexpr char kLegacyName[] = "dltensor";
inline constexpr char kVersionedName[] = "dltensor_versioned";
inline constexpr char kUsedLegacyName[] = "used_dltensor";
inline constexpr char kUsedVersionedName[] = "used_dltensor_versioned";

/// The arguments of __dlpack__. Nothing: the keyword was None or not given.
struct ExportRequest {
  /// A version of DLPack.
  struct Version {
    std::int64_t major = 0;
    std::int64_t minor = 0;
  };
  /// The device that the consumer asks for, as DLPack numbers it.
  struct WantedDevice {
    std::int64_t type = 0;
    std::int64_t id = 0;
  };
  std::optional<std::int64_t> stream;
  std::optional<Version> max_version;
  std::optional<WantedDevice> dl_device;
  std::optional<bool> copy;
};

/// What the producer must do before the consumer may use the memory on its stream.
enum class StreamOrder : std::uint8_t {
  kNothing,           // host memory, or the consumer takes care (-1)
  kLegacyDefault,     // order pending work before the legacy default stream
  kPerThreadDefault,  // order it before the calling thread's default stream
  kHandle,            // order it before ExportPlan::stream
  kFinish,  // wait until pending work has ended: device-visible memory goes out as host memory
};

/// What an export gives and what its producer does before; see `negotiate`.
struct ExportPlan {
  bool versioned = false;
  std::uint32_t minor_version = 0;  // of a versioned export
  bool copy = false;  // the caller copies first, to memory of `device`, and exports the copy
  Device device;      // of the exported tensor
  DlpackType type;    // of the exported tensor
  StreamOrder stream_order = StreamOrder::kNothing;
  std::uint64_t stream = 0;  // for kHandle
};

/// The plan of an export of `descriptor` for `request`. Errors: kValue for a stream that the device
/// does not have (DP-15 … DP-17); kBuffer for a device to which gridbuf cannot export (DP-23), for
/// a forbidden copy that is needed (DP-21), for read-only memory without a version (DP-27), and as
/// check_exportable.
absl::StatusOr<ExportPlan> negotiate(const BufferDescriptor& descriptor,
                                     const ExportRequest& request);

/// OK if DLPack can describe the memory. Error kBuffer: an element type without a code, a byte
/// order that is not native (DL-16), strides that are not multiples of the itemsize (DP-26).
absl::Status check_exportable(const BufferDescriptor& descriptor);

/// An export that a capsule takes over by release(); otherwise its deleter runs.
struct CallDeleter {
  void operator()(DLManagedTensor* tensor) const noexcept { tensor->deleter(tensor); }
  void operator()(DLManagedTensorVersioned* tensor) const noexcept { tensor->deleter(tensor); }
};
/// An export without a version.
using LegacyExport = std::unique_ptr<DLManagedTensor, CallDeleter>;
/// An export with version and flags.
using VersionedExport = std::unique_ptr<DLManagedTensorVersioned, CallDeleter>;

/// The memory as a managed tensor; `descriptor.owner` lives until its deleter has run. `data` is
/// the address of element (0, …, 0), or null without elements (DL-12). byte_offset is 0, because
/// some consumers ignore it. Strides are always set, in elements (DL-08, DL-09). Errors: kBuffer as
/// check_exportable, and for read-only memory in the legacy form; kMemory.
absl::StatusOr<LegacyExport> export_legacy(const BufferDescriptor& descriptor);

/// As export_legacy, with version and flags: read-only from the descriptor (DL-04), copied from the
/// caller (DL-05).
absl::StatusOr<VersionedExport> export_versioned(const BufferDescriptor& descriptor,
                                                 bool copied = false,
                                                 std::uint32_t minor_version = kMinorVersion);

/// The export that `negotiate` planned, without a second check. `descriptor` is the negotiated
/// memory, or the planned copy. Requires a legacy or a versioned plan. Error: kMemory.
absl::StatusOr<LegacyExport> export_legacy(const BufferDescriptor& descriptor,
                                           const ExportPlan& plan);
absl::StatusOr<VersionedExport> export_versioned(const BufferDescriptor& descriptor,
                                                 const ExportPlan& plan);

/// The memory as a tensor without ownership. It refers to the descriptor's shape and to
/// `strides_elements`, which this function writes (DX-07). Errors as check_exportable.
absl::Status describe_tensor(const BufferDescriptor& descriptor, Extents& strides_elements,
                             DLTensor& tensor);

// ---- Imports. ----

/// The version and flags around a tensor.
struct TensorForm {
  bool versioned = false;
  std::uint32_t minor_version = 0;  // of versioned tensors; newer versions are accepted
  std::uint64_t flags = 0;          // unknown bits are ignored
};

/// The memory that `tensor` describes, with an empty owner. Errors, all kBuffer, begin with the id
/// of the broken rule.
absl::StatusOr<ImportedView> read_tensor(const DLTensor& tensor, const TensorForm& form);

/// Takes over `managed`, which must not be null, and reads it. The view's owner calls the deleter
/// (which may be null, DL-19), on any thread. After an error the deleter has run.
absl::StatusOr<ImportedView> take(DLManagedTensor* managed);
absl::StatusOr<ImportedView> take(DLManagedTensorVersioned* managed);

// ---- The C exchange API. ----

// All functions return 0, or -1 with a Python exception set. The allocator may run without the GIL,
// so it reports through `set_error` (DX-05, DX-10). Objects are PyObject pointers.

/// The attribute that holds the table (DX-01).
inline constexpr char kExchangeAttribute[] = "__dlpack_c_exchange_api__";
inline constexpr char kExchangeCapsuleName[] = "dlpack_exchange_api";

extern "C" {

/// Makes a tensor with dtype, ndim, shape and device of `prototype`. Calls `set_error(error_ctx,
/// kind, message)` exactly when it fails (DX-10).
using ManagedTensorAllocator = int (*)(DLTensor* prototype, DLManagedTensorVersioned** out,
                                       void* error_ctx,
                                       void (*set_error)(void* error_ctx, const char* kind,
                                                         const char* message));

/// Exports an object of the table's type without synchronizing a stream (DX-06).
using ManagedTensorFromPyObject = int (*)(void* py_object, DLManagedTensorVersioned** out);

/// Makes an object of the table's type; always takes over the tensor (DX-08).
using ManagedTensorToPyObject = int (*)(DLManagedTensorVersioned* tensor, void** out_py_object);

/// Describes an object without owning it: valid until control returns to its holder (DX-07).
using TensorFromPyObject = int (*)(void* py_object, DLTensor* out);

/// The stream on which the library works now; null for the host (DX-09).
using CurrentWorkStream = int (*)(std::int32_t device_type, std::int32_t device_id,
                                  void** out_current_stream);

}  // extern "C"

/// The begin of DLPack's C exchange table.
struct ExchangeApiHeader {
  DLPackVersion version;
  ExchangeApiHeader* prev_api;  // an older version of the table, or null
};

/// DLPack's C exchange table.
struct ExchangeApi {
  ExchangeApiHeader header;
  ManagedTensorAllocator managed_tensor_allocator;
  ManagedTensorFromPyObject managed_tensor_from_py_object_no_sync;
  ManagedTensorToPyObject managed_tensor_to_py_object_no_sync;
  TensorFromPyObject dltensor_from_py_object_no_sync;  // may be null (DX-04)
  CurrentWorkStream current_work_stream;
};

static_assert(sizeof(ExchangeApiHeader) == 16 && offsetof(ExchangeApiHeader, prev_api) == 8);
static_assert(sizeof(ExchangeApi) == 56 && offsetof(ExchangeApi, managed_tensor_allocator) == 16);
static_assert(offsetof(ExchangeApi, managed_tensor_from_py_object_no_sync) == 24);
static_assert(offsetof(ExchangeApi, managed_tensor_to_py_object_no_sync) == 32);
static_assert(offsetof(ExchangeApi, dltensor_from_py_object_no_sync) == 40);
static_assert(offsetof(ExchangeApi, current_work_stream) == 48);

/// The first table of major version 1 in the chain if it has all required functions (DX-04), else
/// null. `header` may be null.
const ExchangeApi* find_exchange_api(const ExchangeApiHeader* header);

}  // namespace gridbuf::dlpack
