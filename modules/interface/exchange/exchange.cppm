// gridbuf.interface.exchange: DLPack's C exchange API, as a table of functions (DX-01 … DX-12).
//
// A library puts one static table on each of its array types, as the capsule attribute
// `__dlpack_c_exchange_api__`. A consumer written in C then reads an array without a single Python
// call: it finds the table by the exact type (DX-11), checks the header, and calls through the
// table. This module is the ABI and nothing else: the functions need Python and are the bindings'.
//
// The key choice is the header. Its 16 bytes stay as they are in all versions of the standard; what
// follows them belongs to one major version. So a reader looks at `version.major` first, walks
// `prev_api` for one that it knows (DX-03), and only then takes the header for a table.
//
// `py_object` and `out_py_object` are PyObject pointers, untyped as in the standard. All functions
// return 0, or -1 with a Python exception set, but for the allocator, which reports through
// `set_error` because it may run without the GIL (DX-05, DX-10).
module;

#include <cstddef>
#include <cstdint>

export module gridbuf.interface.exchange;

import gridbuf.interface.dlpack;

export namespace gridbuf::dlpack {

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

/// The most tables that a chain may have before it counts as a loop (DX-03).
inline constexpr int kMaxExchangeVersions = 64;

/// The first table of major version 1 in the chain, if all its functions are there that must be
/// (DX-04); null if there is none. `header` may be null.
const ExchangeApi* find_exchange_api(const ExchangeApiHeader* header);

}  // namespace gridbuf::dlpack
