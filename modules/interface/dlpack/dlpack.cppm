// gridbuf.interface.dlpack: DLPack's structs, the rules of its negotiation, and exports that own
// their memory.
//
// DLPack hands a tensor across libraries as a C struct with a deleter. This module has its own
// definition of the ABI (version 1, DL-01), so that no header is needed; static assertions pin
// every offset.
//
// Two halves. `negotiate` takes what a consumer asked of __dlpack__ (stream, max_version,
// dl_device, copy: DP-11 … DP-25) and says what it gets: a legacy or a versioned capsule, with or
// without a copy, or the error. It is pure: it touches no memory, and every combination is tested.
// Copying is the caller's, who knows layout and allocator. Then `export_legacy` or
// `export_versioned` builds the struct.
//
// The key choice: an export holds a share of the C++ owner, not of the Python object. Its deleter
// drops that share and nothing else, so it may run on any thread, with or without the GIL, before
// or after the interpreter's end (DL-20) — where deleters that call into Python have crashed every
// library that had them.
module;

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

export module gridbuf.interface.dlpack;

import gridbuf.alloc;
import gridbuf.interface;
import gridbuf.interface.dtype;
import gridbuf.layout.extents;

export namespace gridbuf::dlpack {

// The ABI. Names and order are the standard's (dlpack.h, 1.x).

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

/// What a consumer that asks `request` of `descriptor` gets. Memory that the host cannot read goes
/// to it as a copy; pinned and managed memory as it is, when its pending work has ended. Errors:
/// kValue for a stream the device has not (DP-15 … DP-17); kBuffer for a device it cannot be put on
/// (DP-23), or not without the copy that was forbidden (DP-21), read-only memory asked for without
/// a version, as a legacy capsule cannot say so (DP-27), and everything DLPack cannot describe: see
/// `check_exportable`.
absl::StatusOr<ExportPlan> negotiate(const BufferDescriptor& descriptor,
                                     const ExportRequest& request);

/// Whether DLPack has words for this memory. Error kBuffer: an element type without a code, not the
/// native byte order (DL-16), strides that are no multiple of the itemsize on an axis of more than
/// one element (DP-26).
absl::Status check_exportable(const BufferDescriptor& descriptor);

/// An export until a capsule takes it: release() hands it over, otherwise its deleter runs.
struct CallDeleter {
  void operator()(DLManagedTensor* tensor) const noexcept { tensor->deleter(tensor); }
  void operator()(DLManagedTensorVersioned* tensor) const noexcept { tensor->deleter(tensor); }
};
using LegacyExport = std::unique_ptr<DLManagedTensor, CallDeleter>;
using VersionedExport = std::unique_ptr<DLManagedTensorVersioned, CallDeleter>;

/// The memory as a managed tensor; `descriptor.owner` lives until its deleter has run. `data` is
/// element (0, …, 0), byte_offset 0 (consumers have lost it), null if there are no elements
/// (DL-12). Strides are always there, in elements (DL-08, DL-09); where they carry no meaning they
/// are those of a dense array (DP-33). Errors: kBuffer as check_exportable, and for read-only
/// memory in the legacy form; kMemory.
absl::StatusOr<LegacyExport> export_legacy(const BufferDescriptor& descriptor);

/// The same, with version and flags: read-only as the descriptor says (DL-04), copied as the caller
/// says (DL-05).
absl::StatusOr<VersionedExport> export_versioned(const BufferDescriptor& descriptor,
                                                 bool copied = false,
                                                 std::uint32_t minor_version = kMinorVersion);

/// The same as `negotiate` planned, without checking again: device, element type, version and the
/// copied flag are the plan's. `descriptor` is what was negotiated, or the copy that was planned.
/// Requires a legacy or a versioned plan. Error: kMemory.
absl::StatusOr<LegacyExport> export_legacy(const BufferDescriptor& descriptor,
                                           const ExportPlan& plan);
absl::StatusOr<VersionedExport> export_versioned(const BufferDescriptor& descriptor,
                                                 const ExportPlan& plan);

/// The memory as a tensor that owns nothing: its shape is the descriptor's, its strides are written
/// to `strides_elements`, and both must stay while it is used (DX-07). Errors as check_exportable.
absl::Status describe_tensor(const BufferDescriptor& descriptor, Extents& strides_elements,
                             DLTensor& tensor);

}  // namespace gridbuf::dlpack
