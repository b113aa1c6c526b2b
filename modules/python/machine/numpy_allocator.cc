// The private functions below `gridbuf.memory.numpy_allocator`: gridbuf's heap as one of NumPy's
// memory handlers (NEP 49).
//
// NumPy calls a handler's functions when it makes, resizes and frees the data of an ndarray. They
// touch nothing of Python, so they also work while the interpreter ends. An array keeps the capsule
// of its handler, and the capsule points to a handler that is never destroyed.

module;

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#include <Python.h>
#include <numpy/arrayobject.h>
#include <pybind11/pybind11.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <tuple>

module gridbuf.python;

import gridbuf.layout.sizes;

namespace gridbuf::python {
namespace {

using namespace pybind11::literals;

constexpr char kCapsuleName[] = "mem_handler";
constexpr std::int64_t kLeastAlignmentBytes = 16;

/// Freed blocks of up to 2 KiB, a few of each length, as NumPy's own handler has them: malloc would
/// make an array of a few elements a tenth slower. Those of all handlers together have the
/// resource's limit. NumPy calls a handler with the GIL, which guards them; without a GIL, and with
/// AddressSanitizer, none are kept.
class SpareBlocks {
 public:
#ifdef Py_GIL_DISABLED
  static constexpr bool kUsed = false;
#else
  static constexpr bool kUsed = !poison_is_fatal();
#endif

  explicit SpareBlocks(Heap& heap) : heap_(heap) {}

  void* take(std::size_t bytes) {
    if (!kUsed || bytes >= kLengths) return nullptr;
    Bucket& bucket = buckets_[bytes];
    if (bucket.count == 0) return nullptr;
    total_bytes -= cost(bytes);
    return bucket.blocks[--bucket.count];
  }
  bool give(void* data, std::size_t bytes) {
    if (!kUsed || bytes >= kLengths) return false;
    if (total_bytes + cost(bytes) > heap_.resource().spare_limit_bytes()) return false;
    Bucket& bucket = buckets_[bytes];
    if (bucket.count == std::size(bucket.blocks)) return false;
    total_bytes += cost(bytes);
    bucket.blocks[bucket.count++] = data;
    return true;
  }
  void clear() {
    for (std::size_t bytes = 0; bytes < kLengths; ++bytes) {
      while (void* const data = take(bytes)) heap_.release(data);
    }
  }

 private:
  struct Bucket {
    std::size_t count;
    void* blocks[7];
  };
  static constexpr std::size_t kLengths = 2048;
  static inline std::int64_t total_bytes = 0;  // of all handlers

  std::int64_t cost(std::size_t bytes) const {
    return static_cast<std::int64_t>(bytes) + heap_.options().alignment_bytes;
  }

  Heap& heap_;
  Bucket buckets_[kLengths] = {};
};

struct Handler {
  explicit Handler(const Heap::Options& options);

  Heap heap;
  PyDataMem_Handler record;
  SpareBlocks spare{heap};
};

Handler& handler_in(void* context) { return *static_cast<Handler*>(context); }

void* allocate(void* context, std::size_t bytes) {
  Handler& handler = handler_in(context);
  if (!handler.heap.resource().poisons()) {
    if (void* const spare = handler.spare.take(bytes); spare != nullptr) return spare;
  }
  return handler.heap.allocate(bytes, false);
}

void* allocate_zeros(void* context, std::size_t count, std::size_t bytes_each) {
  const auto bytes =
      checked::mul(static_cast<std::int64_t>(count), static_cast<std::int64_t>(bytes_each));
  if (!bytes || *bytes < 0) return nullptr;
  const auto length = static_cast<std::size_t>(*bytes);
  Handler& handler = handler_in(context);
  if (void* const spare = handler.spare.take(length); spare != nullptr) {
    return std::memset(spare, 0, length);
  }
  return handler.heap.allocate(length, true);
}

void* reallocate(void* context, void* data, std::size_t bytes) {
  return handler_in(context).heap.reallocate(data, bytes);
}

// NumPy's length is not that of the block in some places, so it is not used.
void release(void* context, void* data, std::size_t /*bytes*/) {
  Handler& handler = handler_in(context);
  if (SpareBlocks::kUsed && data != nullptr && handler.spare.give(data, Heap::bytes_of(data))) {
    return;
  }
  handler.heap.release(data);
}

Handler::Handler(const Heap::Options& options)
    : heap(host_resource(), options),
      record{"gridbuf", 1, {this, &allocate, &allocate_zeros, &reallocate, &release}} {}

/// The handlers by their options.
class Handlers {
 public:
  Handler& with(const Heap::Options& options) {
    const PythonLock lock(mutex_);
    std::unique_ptr<Handler>& found =
        handlers_[{options.alignment_bytes, options.huge_pages, options.keep}];
    if (found == nullptr) found = std::make_unique<Handler>(options);
    return *found;
  }
  void clear_spares() {
    const PythonLock lock(mutex_);
    for (const auto& [key, handler] : handlers_) handler->spare.clear();
  }

 private:
  std::map<std::tuple<std::int64_t, bool, bool>, std::unique_ptr<Handler>> handlers_;
  PythonMutex mutex_;
};

Handlers& handlers() {
  static auto& all = *new Handlers;  // arrays outlive all else
  return all;
}

py::object make_handler(py::handle alignment, py::handle huge_pages, py::handle keep) {
  const std::int64_t bytes = to_integer(alignment.ptr(), "alignment");
  const bool is_power = bytes > 0 && std::has_single_bit(static_cast<std::uint64_t>(bytes));
  if (!is_power || bytes < kLeastAlignmentBytes || bytes > kMaxAlignmentBytes) {
    raise(ErrorClass::kValue,
          Problem{"alignment", std::to_string(bytes),
                  "a power of two from 16 to " + std::to_string(kMaxAlignmentBytes),
                  "pass 64, a cache line"});
  }
  Handler& handler = handlers().with({.alignment_bytes = bytes,
                                      .huge_pages = to_flag(huge_pages.ptr(), "huge_pages"),
                                      .keep = to_flag(keep.ptr(), "keep")});
  return steal(PyCapsule_New(&handler.record, kCapsuleName, nullptr));
}

/// Sets the handler of the current context, and returns the previous one.
py::object set_handler(py::handle handler) { return steal(PyDataMem_SetHandler(handler.ptr())); }

/// What is known of the data of an ndarray that one of our handlers made, else None.
py::object block_info(py::handle object) {
  if (!is_ndarray(object.ptr())) return py::none();
  auto* const array = reinterpret_cast<PyArrayObject*>(object.ptr());
  PyObject* const capsule = PyArray_HANDLER(array);
  if (capsule == nullptr || PyArray_CHKFLAGS(array, NPY_ARRAY_OWNDATA) == 0) return py::none();
  const auto* const record =
      static_cast<PyDataMem_Handler*>(PyCapsule_GetPointer(capsule, kCapsuleName));
  if (record == nullptr) throw PythonError();
  if (record->allocator.free != &release) return py::none();
  const Heap& heap = handler_in(record->allocator.ctx).heap;
  const Heap::BlockReport report = heap.report(PyArray_DATA(array));
  return block_facts({report.info, PyArray_DATA(array), report.total_bytes, report.allocation_bytes,
                      heap.options().alignment_bytes, py::none()});
}

}  // namespace

void free_numpy_spares() { handlers().clear_spares(); }

void add_numpy_allocator_functions(PyObject* module) {
  check(PyArray_ImportNumPyAPI());
  py::reinterpret_borrow<py::module_>(module)
      .def("_numpy_handler", make_handler)
      .def("_set_numpy_handler", set_handler)
      .def("_numpy_block_info", block_info);
}

}  // namespace gridbuf::python
