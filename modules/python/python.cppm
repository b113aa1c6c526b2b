// gridbuf.python: the bindings, one library. The extension module `gridbuf._core` exports them.
//
// A folder for each subject, with a header that is its manual:
//
//   arguments  errors and references, what a caller passes, NumPy's C API
//   array      gridbuf.Buffer and gridbuf.LayoutPlan; functions that make arrays
//   exchange   imports and exports, by all interfaces
//   storage    the types and functions of gridbuf.storage; assignment and gridbuf.copyto
//   call       the fields of a stencil call
//   memory     devices, streams, host memory, threads, NumPy's allocator
//
// Key decision: functions and attributes are bound by pybind11, types by CPython's slots, and
// functions with many keywords by one table of parameters (docs/adr/0021). The headers are parts
// of this module and of no other translation unit, so that one library has one interface. All
// functions need the GIL.

module;

#include <Python.h>
#include <pybind11/gil_simple.h>
#include <pybind11/pytypes.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

export module gridbuf.python;

// The implementation files see these, too.
import gridbuf.alloc;
import gridbuf.alloc.host;
import gridbuf.array;
import gridbuf.base;
import gridbuf.call;
import gridbuf.device;
import gridbuf.device.emulated;
import gridbuf.device.registry;
import gridbuf.interface;
import gridbuf.interface.buffer;
import gridbuf.interface.dlpack;
import gridbuf.interface.numpy;
import gridbuf.layout;
import gridbuf.layout.preset;
import gridbuf.layout.view;
import gridbuf.storage;
import gridbuf.storage.sync;
import gridbuf.transfer;

#include "modules/python/storage/storage.h"  // and the headers of the other folders

namespace gridbuf::python {

// The parts of the extension module that only add to it. Each is called once, by its
// initialisation.
void add_call_functions(PyObject* module);
void add_device_functions(PyObject* module);
void add_memory_functions(PyObject* module);
void add_numpy_allocator_functions(PyObject* module);

/// What `gridbuf.alloc_info` says of a block.
struct BlockFacts {
  BlockInfo info;
  const void* address;  // of element (0, …, 0)
  std::int64_t total_bytes;
  std::int64_t allocation_bytes;
  std::int64_t alignment_bytes;
  py::object aligned_index;
};
/// As a dict with the keys of `AllocationInfo`, and "host_readable".
py::object block_facts(const BlockFacts& facts);

/// Adds everything to the extension module. Throws PythonError.
export void fill_module(PyObject* module);

}  // namespace gridbuf::python
