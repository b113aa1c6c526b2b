// gridbuf.interface.dlpack: DLPack's structs, the rules of its negotiation, exports that own their
// memory, tensors that come in, and the C exchange API.
//
// The ABI (version 1, DL-01) is defined here, so that no header is needed. Capsules, and when a
// deleter is called, are the bindings'.
//
// Exports. `negotiate` takes what a consumer asked of __dlpack__ (DP-11 … DP-25) and says what it
// gets, or the error; it touches no memory. An export holds a share of the C++ owner and not of the
// Python object: its deleter may run on any thread, with or without the GIL, before or after the
// interpreter's end (DL-20).
//
// Imports (DL-07 … DL-30, DP-05 … DP-09, DP-31 … DP-33). Reading and owning are one step: `take`
// takes the struct over in every case. Either the returned view owns it, or it is refused and its
// deleter has run. (Libraries that took first and checked later freed such tensors twice; pytorch
// #56789, numpy #32697.) Of a newer major version only the deleter is touched (DL-22).
//
// The exchange API (DX-01 … DX-12) is a static table of functions on an array type, so that C code
// reads arrays without Python calls. What follows its header belongs to one major version: a reader
// looks at `version.major` first and walks `prev_api` for one that it knows (DX-03).
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

struct DLDevice {
  std::int32_t device_type;
  std::int32_t device_id;
};

struct DLDataType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};

struct DLTensor {
  void* data;
  DLDevice device;
  std::int32_t ndim;
  DLDataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;  // in elements
  std::uint64_t byte_offset;
};

struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor* self);
};

struct DLPackVersion {
  std::uint32_t major;
  std::uint32_t minor;
};

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

/// The newest version whose rules these exports follow.
inline constexpr std::uint32_t kMajorVersion = 1;
inline constexpr std::uint32_t kMinorVersion = 3;

/// Capsule names, static as they must be (DP-03, DP-08, DP-10).
inline constexpr char kLegacyName[] = "dltensor";
inline constexpr char kVersionedName[] = "dltensor_versioned";
inline constexpr char kUsedLegacyName[] = "used_dltensor";
inline constexpr char kUsedVersionedName[] = "used_dltensor_versioned";

/// What __dlpack__ was called with. Nothing: the keyword was None or not given.
struct ExportRequest {
  struct Version {
    std::int64_t major = 0;
    std::int64_t minor = 0;
  };
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
  kPerThreadDefault,  // … before the calling thread's default stream
  kHandle,            // … before ExportPlan::stream
  kFinish,  // wait until pending work has ended: device-visible memory goes out as host memory
};

struct ExportPlan {
  bool versioned = false;
  std::uint32_t minor_version = 0;  // what a versioned export is stamped with
  bool copy = false;  // the caller copies first, to memory of `device`, and exports the copy
  Device device;      // where the export says that it lies
  DlpackType type;    // what it says that an element is
  StreamOrder stream_order = StreamOrder::kNothing;
  std::uint64_t stream = 0;  // for kHandle
};

/// What a consumer that asks `request` of `descriptor` gets. Errors: kValue for a stream the device
/// has not (DP-15 … DP-17); kBuffer for a device it cannot be put on (DP-23), or not without the
/// copy that was forbidden (DP-21), for read-only memory without a version (DP-27), and as
/// check_exportable.
absl::StatusOr<ExportPlan> negotiate(const BufferDescriptor& descriptor,
                                     const ExportRequest& request);

/// Whether DLPack has words for this memory. Error kBuffer: an element type without a code, not the
/// native byte order (DL-16), strides that are not multiples of the itemsize (DP-26).
absl::Status check_exportable(const BufferDescriptor& descriptor);

/// An export until a capsule takes it: release() hands it over, otherwise its deleter runs.
struct CallDeleter {
  void operator()(DLManagedTensor* tensor) const noexcept { tensor->deleter(tensor); }
  void operator()(DLManagedTensorVersioned* tensor) const noexcept { tensor->deleter(tensor); }
};
using LegacyExport = std::unique_ptr<DLManagedTensor, CallDeleter>;
using VersionedExport = std::unique_ptr<DLManagedTensorVersioned, CallDeleter>;

/// The memory as a managed tensor; `descriptor.owner` lives until its deleter has run. `data` is
/// element (0, …, 0), null if there are none (DL-12), and byte_offset 0 (consumers have lost it).
/// Strides are always there, in elements (DL-08, DL-09). Errors: kBuffer as check_exportable, and
/// for read-only memory in the legacy form; kMemory.
absl::StatusOr<LegacyExport> export_legacy(const BufferDescriptor& descriptor);

/// The same, with version and flags: read-only as the descriptor says (DL-04), copied as the caller
/// says (DL-05).
absl::StatusOr<VersionedExport> export_versioned(const BufferDescriptor& descriptor,
                                                 bool copied = false,
                                                 std::uint32_t minor_version = kMinorVersion);

/// The same as `negotiate` planned, without checking again. `descriptor` is what was negotiated, or
/// the copy that was planned. Requires a legacy or a versioned plan. Error: kMemory.
absl::StatusOr<LegacyExport> export_legacy(const BufferDescriptor& descriptor,
                                           const ExportPlan& plan);
absl::StatusOr<VersionedExport> export_versioned(const BufferDescriptor& descriptor,
                                                 const ExportPlan& plan);

/// The memory as a tensor that owns nothing: it refers to the descriptor's shape and to
/// `strides_elements`, which is written (DX-07). Errors as check_exportable.
absl::Status describe_tensor(const BufferDescriptor& descriptor, Extents& strides_elements,
                             DLTensor& tensor);

// ---- Tensors that come in. ----

/// What surrounds a tensor and decides how it is read.
struct TensorForm {
  bool versioned = false;
  std::uint32_t minor_version = 0;  // of versioned tensors; newer ones than ours are fine
  std::uint64_t flags = 0;          // unknown bits are ignored
};

/// The memory that `tensor` describes; nobody owns it. Errors, all kBuffer, begin with the id of
/// the rule that is broken.
absl::StatusOr<ImportedView> read_tensor(const DLTensor& tensor, const TensorForm& form);

/// Takes `managed` over, which must not be null, and reads it. The view's owner calls the deleter
/// (which may be null, DL-19), on any thread. On an error the deleter has been called.
absl::StatusOr<ImportedView> take(DLManagedTensor* managed);
absl::StatusOr<ImportedView> take(DLManagedTensorVersioned* managed);

// ---- The C exchange API. ----

// All functions return 0, or -1 with a Python exception set; the allocator, which may run without
// the GIL, reports through `set_error` (DX-05, DX-10). Objects are PyObject pointers.

/// Where the table lies (DX-01).
inline constexpr char kExchangeAttribute[] = "__dlpack_c_exchange_api__";
inline constexpr char kExchangeCapsuleName[] = "dlpack_exchange_api";

extern "C" {

/// Makes a tensor as `prototype` says, of which only dtype, ndim, shape and device are read.
/// Calls `set_error(error_ctx, kind, message)` exactly when it fails (DX-10).
using ManagedTensorAllocator = int (*)(DLTensor* prototype, DLManagedTensorVersioned** out,
                                       void* error_ctx,
                                       void (*set_error)(void* error_ctx, const char* kind,
                                                         const char* message));

/// Exports an object of the table's own type, without synchronizing any stream (DX-06).
using ManagedTensorFromPyObject = int (*)(void* py_object, DLManagedTensorVersioned** out);

/// Makes an object of the table's own type; takes the tensor over in every case (DX-08).
using ManagedTensorToPyObject = int (*)(DLManagedTensorVersioned* tensor, void** out_py_object);

/// Describes an object without owning it: valid until control returns to its holder (DX-07).
using TensorFromPyObject = int (*)(void* py_object, DLTensor* out);

/// The stream that the library works on now; null for the host (DX-09).
using CurrentWorkStream = int (*)(std::int32_t device_type, std::int32_t device_id,
                                  void** out_current_stream);

}  // extern "C"

struct ExchangeApiHeader {
  DLPackVersion version;
  ExchangeApiHeader* prev_api;  // an older version of the table, or null
};

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

/// The first table of major version 1 in the chain, if all its functions are there that must be
/// (DX-04); null if there is none. `header` may be null.
const ExchangeApi* find_exchange_api(const ExchangeApiHeader* header);

}  // namespace gridbuf::dlpack
