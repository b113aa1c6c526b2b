// gridbuf.interface.numpy: NumPy's array interface and the protocols derived from it.
//
// Four protocols share fields and checks: the dicts `__array_interface__` (AI-01 … AI-34) and
// `__cuda_array_interface__` (CAI-01 … CAI-30), the C struct `__array_struct__` (AS-01 … AS-08),
// and `__gt_data_interface__` (GT-01 … GT-10). The last is a dict of array interfaces. The bindings
// make the dicts and functions.
//
// Exports, where a protocol leaves a choice. `strides` is absent exactly when the memory is
// C-contiguous (AI-23, CAI-10); an entry of a data interface always has strides. `data` is an
// address and a flag, so that repeated queries agree (AI-19, AI-33). The CUDA `stream` is always
// set, because gridbuf cannot know whether work is pending (CAI-19). It is never 0, which could
// mean either default stream (CAI-16).
//
// Imports. A reader enforces the rules of the protocol, and accepts what the rules leave open:
// other keys, a newer version of NumPy's interface. It refuses a CUDA version beyond 3, because the
// last two versions changed what a consumer must do before an access. It refuses a mask, because a
// consumer that ignores the mask reads invalid values. `PointerInfo` has the data of the driver;
// without it the address is not checked. ROCm's pointers are not exported under CUDA's name
// (CAI-28).
module;

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

export module gridbuf.interface.numpy;

export import gridbuf.interface;

export namespace gridbuf {

// ---- __array_interface__ ----

inline constexpr int kArrayInterfaceVersion = 3;

/// The fields of an export through NumPy's array interface.
struct ArrayInterfaceFields {
  Extents shape;                         // AI-03
  std::string typestr;                   // AI-06; the order in memory (AI-09)
  std::uintptr_t data_address = 0;       // of element (0, …, 0) (AI-14, AI-15)
  bool readonly = false;                 // AI-25
  std::optional<Extents> strides_bytes;  // nothing: C-contiguous (AI-21)
  std::string descr;                     // a Python literal (AI-11)
  int version = kArrayInterfaceVersion;
};

/// The fields that describe `descriptor`. Error kNoSuchBuffer: the host cannot read the memory.
absl::StatusOr<ArrayInterfaceFields> array_interface(const BufferDescriptor& descriptor);

// ---- Import. ----

/// An entry of `descr`: (name, type) or (name, type, repeat). A type is a typestr or a list of
/// entries (AI-11).
struct RawDescrField {
  std::string name;
  Found<std::string> typestr;         // absent for a record
  std::vector<RawDescrField> fields;  // of a record
  std::vector<std::int64_t> repeat;
};

/// A `descr` as found.
struct RawDescr {
  std::vector<RawDescrField> fields;
  std::string literal;  // the list as Python writes it
};

/// `data` as a tuple (AI-14).
struct RawPointer {
  std::uintptr_t address = 0;
  bool readonly = false;
};

/// `data` as a buffer, or the object's buffer where `data` is None or absent (AI-16, AI-17).
struct RawBuffer {
  KnownMemory memory = {};
  bool readonly = false;
};

/// The dict, as found. `data` or `exported` has a value.
struct RawArrayInterface {
  Found<RawExtents> shape;
  Found<std::string> typestr;
  Found<RawDescr> descr;
  Found<RawPointer> data;
  std::optional<RawBuffer> exported;
  Found<std::int64_t> offset_bytes;
  Found<RawExtents> strides_bytes;
  bool has_mask = false;
  Found<std::int64_t> version;
};

/// The memory that the dict describes, on the host. An error begins with the id of the broken rule:
/// kType for a field of a wrong kind, kValue for a field out of its bounds, kBuffer for a mask
/// (AI-26).
absl::StatusOr<ImportedView> read_array_interface(const RawArrayInterface& raw);

// ---- __cuda_array_interface__ ----

inline constexpr int kCudaArrayInterfaceVersion = 3;

static_assert(kCudaArrayInterfaceVersion == kArrayInterfaceVersion);

/// The fields of ArrayInterfaceFields (CAI-03 … CAI-14); the address is 0 without elements
/// (CAI-06).
struct CudaArrayInterfaceFields : ArrayInterfaceFields {
  std::uint64_t stream = 1;  // the legacy default stream (CAI-16 … CAI-18)
};

/// The fields that describe `descriptor`, whose pending work is ordered before `stream`. Errors:
/// kNoSuchBuffer if CUDA devices cannot access the memory; kValue for stream 0.
absl::StatusOr<CudaArrayInterfaceFields> cuda_array_interface(const BufferDescriptor& descriptor,
                                                              std::uint64_t stream);

// ---- Import. ----

/// The dict, as found.
struct RawCudaArrayInterface {
  Found<RawExtents> shape;
  Found<std::string> typestr;
  Found<RawDescr> descr;
  Found<RawPointer> data;
  Found<RawExtents> strides_bytes;
  bool has_mask = false;
  Found<std::int64_t> version;
  Found<std::int64_t> stream;
};

/// The memory that the dict describes, on the device that `info` names or else on device 0, with
/// the stream to wait for. Errors as above; kBuffer for a mask (CAI-15) and for memory that devices
/// cannot access (CAI-07).
absl::StatusOr<ImportedView> read_cuda_array_interface(
    const RawCudaArrayInterface& raw, const std::optional<PointerInfo>& info = std::nullopt);

// ---- __gt_data_interface__ ----

/// The key of the device's entry; the host's is None.
inline constexpr std::string_view kGpuKey = "gpu";

/// The fields of an entry of an exported `__gt_data_interface__`.
struct DataInterfaceFields {
  Extents shape;
  std::string typestr;
  std::uintptr_t data_address = 0;  // 0 on the device without elements (CAI-06)
  bool readonly = false;
  Extents strides_bytes;                // always given
  std::string descr;                    // a Python literal
  std::optional<std::uint64_t> stream;  // the device's entry only
  int version = 0;                      // of the array interface
  Dims dims;                            // GT-04
  Halo halo;                            // GT-05
};

/// Whether the memory is accessible on `side`: by the host for kHost, else by CUDA devices.
bool has_side(const BufferDescriptor& descriptor, Side side);

/// The entry of `side`; `stream` is the device's. Errors: as above, and kValue for dims or halo
/// that do not fit the shape (an empty halo is none).
absl::StatusOr<DataInterfaceFields> data_interface(const BufferDescriptor& descriptor, Side side,
                                                   const Dims& dims, const Halo& halo,
                                                   std::uint64_t stream);

// ---- Import. ----

/// The fields that an entry has in addition to those of its array interface, as found.
struct RawDataInterface {
  Found<std::vector<std::string>> dims;
  Found<std::vector<HaloWidth>> halo;
  // Whether each is callable.
  Found<bool> acquire;
  Found<bool> release;
  Found<bool> touch;
};

/// The fields of an entry in addition to those of an array interface.
struct EntryMeaning {
  std::vector<std::string> dims;  // ndim names, or empty
  Halo halo;                      // ndim pairs, or empty
};

/// Names and halo, for an array of `shape` (GT-04, GT-05).
absl::StatusOr<EntryMeaning> read_meaning(const RawDataInterface& raw, const Extents& shape);

/// OK if the functions of an entry are callable. Check it before you call `acquire` (GT-03).
absl::Status check_hooks(const RawDataInterface& raw);

}  // namespace gridbuf

export namespace gridbuf::array_struct {

// ---- __array_struct__: the array interface as a C struct, without a dict. ----

/// The ABI: PyArrayInterface. Names and order are NumPy's.
struct ArrayStruct {
  std::int32_t two;       // always 2; a reader checks it first (AS-02)
  std::int32_t nd;        // number of dimensions
  char typekind;          // the letter of a typestr (AS-03)
  std::int32_t itemsize;  // bytes
  std::int32_t flags;
  std::intptr_t* shape;    // nd extents
  std::intptr_t* strides;  // nd byte strides
  void* data;              // element (0, …, 0) (AS-04)
  void* descr;             // a PyObject*: the array interface's list; only with kHasDescr (AS-06)
};

static_assert(sizeof(ArrayStruct) == 56 && offsetof(ArrayStruct, typekind) == 8);
static_assert(offsetof(ArrayStruct, itemsize) == 12 && offsetof(ArrayStruct, flags) == 16);
static_assert(offsetof(ArrayStruct, shape) == 24 && offsetof(ArrayStruct, strides) == 32);
static_assert(offsetof(ArrayStruct, data) == 40 && offsetof(ArrayStruct, descr) == 48);
static_assert(sizeof(std::intptr_t) == sizeof(std::int64_t));

/// The bits of `flags` (AS-05).
inline constexpr std::int32_t kCContiguous = 0x1;
inline constexpr std::int32_t kFContiguous = 0x2;
inline constexpr std::int32_t kAligned = 0x100;
inline constexpr std::int32_t kNotSwapped = 0x200;
inline constexpr std::int32_t kWritable = 0x400;
inline constexpr std::int32_t kHasDescr = 0x800;

/// The flags of the memory, except for kHasDescr.
std::int32_t true_flags(const BufferDescriptor& descriptor);

/// An export that a capsule takes over by release(); then `destroy` frees it.
void destroy(ArrayStruct* exported) noexcept;
/// Calls `destroy`.
struct Destroy {
  void operator()(ArrayStruct* exported) const noexcept { destroy(exported); }
};
/// An exported struct that has an owner.
using Export = std::unique_ptr<ArrayStruct, Destroy>;

/// The struct that describes `descriptor`; it holds a share of the owner. `descr` is null. Errors:
/// kNoSuchBuffer if the host cannot read the memory; kBuffer for element types that the struct
/// cannot name (dates, bfloat16, FP8, elements of 0 or more than 2^31 - 1 bytes); kMemory.
absl::StatusOr<Export> export_array_struct(const BufferDescriptor& descriptor);

/// The memory that a producer's struct describes. The caller reads `descr` from `found.descr`
/// (absent without kHasDescr). Errors begin with the id of the broken rule; they are kValue, or
/// kType for elements without fixed bytes.
absl::StatusOr<ImportedView> read_array_struct(const ArrayStruct& found,
                                               const Found<RawDescr>& descr = {});

}  // namespace gridbuf::array_struct

export namespace gridbuf {

// ---- For the readers of this library only. ----

/// The ids of the rules for the element type of an array interface.
struct ElementTypeRules {
  std::string_view typestr;  // its grammar
  std::string_view length;   // the kind has this length, and fixed bytes
  std::string_view descr;    // it adds up to the typestr's length
};

/// The element type of a typestr and of the fields that `descr` gives to raw bytes ("|V8"). With
/// another typestr, only the length of `descr` counts, and must be that of the typestr (AI-13).
absl::StatusOr<DType> read_element_type(const Found<std::string>& typestr,
                                        const Found<RawDescr>& descr,
                                        const ElementTypeRules& rules);

/// The strides; nothing for None or absent, which mean C order.
absl::StatusOr<std::optional<RawExtents>> read_strides(const Found<RawExtents>& strides_bytes,
                                                       std::string_view rule);

}  // namespace gridbuf
