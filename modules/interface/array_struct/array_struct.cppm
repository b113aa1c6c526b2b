// gridbuf.interface.array_struct: NumPy's array interface as a C struct (AS-01 … AS-08).
//
// `__array_struct__` is a capsule around a struct that C code reads without building a dict. It is
// the older and the cheaper of NumPy's two spellings, and says less: no element type that needs
// more than a letter and a length (dates lose their unit, bfloat16 its name), so those are refused
// here rather than passed on as something else.
//
// The key choice: flags claim only what has been computed from the memory at hand (AS-05). A bit
// that is not set claims nothing, so where alignment has no meaning (records, whose fields are not
// known here) its bit stays clear.
//
// On import the flags are believed only where they say something that cannot be computed: the byte
// order and that the memory may be written. Whatever is claimed of contiguity, the strides count.
//
// An export is one allocation: the struct, its shape and strides, and a share in the memory's
// owner. The capsule around it needs no Python to be freed, except for `descr`, a list that the
// bindings may add for types with fields (AS-06).
module;

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"

export module gridbuf.interface.array_struct;

import gridbuf.alloc;
import gridbuf.interface;
import gridbuf.interface.array_interface;
import gridbuf.interface.imported;

export namespace gridbuf::array_struct {

/// The ABI: PyArrayInterface. Names and order are NumPy's.
struct ArrayStruct {
  std::int32_t two;       // 2: what a reader looks at first (AS-02)
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

/// What `flags` may say of the memory, all but kHasDescr.
std::int32_t true_flags(const BufferDescriptor& descriptor);

/// An export until a capsule takes it: release() hands it over, then `destroy` frees it.
void destroy(ArrayStruct* exported) noexcept;
struct Destroy {
  void operator()(ArrayStruct* exported) const noexcept { destroy(exported); }
};
using Export = std::unique_ptr<ArrayStruct, Destroy>;

/// The struct that describes `descriptor`; it holds a share of the owner. `descr` is null. Errors:
/// kNoSuchBuffer if the host does not read the memory; kBuffer for element types that the struct
/// cannot name (dates, bfloat16, FP8, more than 2^31 - 1 bytes, no bytes); kMemory.
absl::StatusOr<Export> export_array_struct(const BufferDescriptor& descriptor);

/// The memory that somebody else's struct describes. `descr` is what lies behind `found.descr`,
/// which is the caller's to read (absent where kHasDescr is not set). Errors begin with the id of
/// the rule that is broken; kValue, or kType for elements that have no bytes of their own.
absl::StatusOr<ImportedView> read_array_struct(const ArrayStruct& found,
                                               const Found<RawDescr>& descr = {});

}  // namespace gridbuf::array_struct
