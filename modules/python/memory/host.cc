// The private functions below `gridbuf.memory`, `gridbuf.alloc_info`, `gridbuf.set_num_threads` and
// the memory section of `gridbuf.show_config`. All are about the one `host_resource()` of the
// process. All need the GIL; `_memory_trim` releases it.
//
// The private functions below `gridbuf.memory.numpy_allocator`: gridbuf's heap as one of NumPy's
// memory handlers (NEP 49).
//
// NumPy calls a handler's functions when it makes, resizes and frees the data of an ndarray. They
// touch nothing of Python, so they also work while the interpreter ends. An array keeps the capsule
// of its handler, and the capsule points to a handler that is never destroyed.

module;

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#include <numpy/arrayobject.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "absl/status/status.h"

module gridbuf.python;

import gridbuf.transfer.loops;
import gridbuf.layout.sizes;

namespace gridbuf::python {
namespace {

using namespace pybind11::literals;

py::dict statistics() {
  const HostStatistics found = host_resource().statistics();
  return py::dict("live_blocks"_a = found.live_blocks, "live_bytes"_a = found.live_bytes,
                  "peak_live_bytes"_a = found.peak_live_bytes,
                  "cached_blocks"_a = found.cached_blocks, "cached_bytes"_a = found.cached_bytes,
                  "cache_limit_bytes"_a = found.cache_limit_bytes, "hits"_a = found.hits,
                  "misses"_a = found.misses, "refusals"_a = found.refusals);
}

/// None means "follows the program and the machine" and "no limit".
py::dict options() {
  const HostOptions found = host_resource().options();
  std::optional<std::int64_t> limit = found.limit_bytes;
  if (limit == system::kUnlimitedBytes) limit.reset();
  return py::dict("cache_limit_bytes"_a = found.cache_limit_bytes, "limit_bytes"_a = limit,
                  "huge_pages"_a = found.huge_pages ? "auto" : "never", "poison"_a = found.poison);
}

std::optional<std::int64_t> to_limit(PyObject* object, std::string_view name) {
  if (object == Py_None) return std::nullopt;
  return to_integer(object, name);
}

bool to_huge_pages(PyObject* object) {
  const bool is_text = PyUnicode_Check(object) != 0;
  if (is_text && utf8(object) == "auto") return true;
  if (is_text && utf8(object) == "never") return false;
  raise(is_text ? ErrorClass::kValue : ErrorClass::kType,
        Problem{"huge_pages", describe(object), is_text ? "\"auto\" or \"never\"" : "a str",
                is_text ? "pass one of them" : "pass \"auto\" or \"never\""});
}

void configure(py::handle cache_limit, py::handle limit, py::handle huge_pages, py::handle poison) {
  check(host_resource().configure(
      {.cache_limit_bytes = to_limit(cache_limit.ptr(), "cache_limit_bytes"),
       .limit_bytes = to_limit(limit.ptr(), "limit_bytes").value_or(system::kUnlimitedBytes),
       .huge_pages = to_huge_pages(huge_pages.ptr()),
       .poison = to_flag(poison.ptr(), "poison")}));
}

std::int64_t trim(py::handle keep) {
  const std::int64_t keep_bytes = to_integer(keep.ptr(), "keep_bytes");
  if (keep_bytes < 0) {
    raise(ErrorClass::kValue,
          Problem{"keep_bytes", std::to_string(keep_bytes), "0 or more", "pass 0 to keep nothing"});
  }
  return run_without_gil([keep_bytes] { return host_resource().trim(keep_bytes); });
}

void set_threads(py::handle n) {
  using Limits = std::numeric_limits<int>;
  check(set_thread_count(static_cast<int>(
      std::clamp<std::int64_t>(to_integer(n.ptr(), "n"), Limits::min(), Limits::max()))));
}

/// (the one in use, those that the processor has).
py::object get_simd() {
  py::list names;
  for (const Simd supported : supported_simd()) names.append(make_text(to_string(supported)));
  return pack(make_text(to_string(simd())), py::tuple(names));
}

void set_simd_by_name(py::handle name) {
  if (PyUnicode_Check(name.ptr()) == 0) {
    raise(ErrorClass::kType, Problem{"name", describe(name.ptr()), "a str",
                                     "pass \"portable\", \"avx2\", \"avx512\" or \"neon\""});
  }
  check(set_simd(value_of(simd_named(utf8(name.ptr())))));
}

/// How the memory of a whole allocation came about; None for memory that is not ours.
py::object block_info(py::handle object) {
  PyObject* const buffer = object.ptr();
  if (!is_buffer(buffer)) {
    raise(ErrorClass::kType,
          Problem{"buffer", describe(buffer), "a gridbuf.Buffer", "pass an array's base"});
  }
  if (!has_plan(buffer)) return py::none();
  const Array& array = array_in(buffer);
  return block_facts({array.info().block, array.memory().block, array.layout().total_bytes(),
                      array.info().allocation_bytes, array.layout().alignment_bytes(),
                      from_integers(array.layout().aligned_index().span())});
}

/// What keeps the memory of a Buffer that gridbuf did not allocate: the object it was made from;
/// None if that is not known.
py::object memory_keeper(py::handle buffer) {
  if (!is_buffer(buffer.ptr()) || has_plan(buffer.ptr())) return py::none();
  PyObject* const keeper = object_in(array_in(buffer.ptr()).memory().owner);
  return keeper == nullptr ? py::none() : py::reinterpret_borrow<py::object>(keeper);
}

/// (resident_bytes, huge_bytes) of a range, or None.
std::optional<std::pair<std::int64_t, std::int64_t>> mapped_pages(std::uintptr_t address,
                                                                  std::int64_t length_bytes) {
  if (length_bytes <= 0) return std::nullopt;
  const auto pages = system::mapped_pages(reinterpret_cast<const void*>(address), length_bytes);
  if (!pages) return std::nullopt;
  return std::pair(pages->resident_bytes, pages->huge_bytes);
}

/// (process, descriptor, inode, length), and the offset in it, of shared memory; else None.
py::object place_in_shared(std::uintptr_t address) {
  const auto place = shared_place(reinterpret_cast<const void*>(address));
  if (!place) return py::none();
  const SharedHandle& handle = place->handle;
  return py::make_tuple(
      py::make_tuple(handle.process_id, handle.descriptor, handle.inode, handle.length_bytes),
      place->offset_bytes);
}

/// A Buffer of all bytes of that memory.
py::object attach(std::int64_t process_id, std::int32_t descriptor, std::uint64_t inode,
                  std::int64_t length_bytes) {
  Block block = value_of(attach_shared({process_id, descriptor, inode, length_bytes}));
  const ArrayInfo info{.block = block.info(), .allocation_bytes = block.allocation_bytes()};
  std::byte* const data = block.data();
  ArrayMemory memory{data, value_of(share(std::move(block))), info};
  const DType type = value_of(DType::from_name("uint8"));
  const Layout layout = value_of(make_plan({.shape = {length_bytes}}));
  return new_buffer(record_of(type), nullptr,
                    [&] { return Array(std::move(memory), layout, type); });
}

}  // namespace

py::object block_facts(const BlockFacts& facts) {
  const BlockInfo& info = facts.info;
  const bool is_small = info.pages == PageKind::kSmall;
  const char* const pages = is_small ? "small" : info.pages == PageKind::kHuge ? "huge" : "shared";
  return py::dict(
      "resource"_a = info.resource_name, "device"_a = to_string(info.device),
      "host_readable"_a = is_host_readable(info.device.type), "pages"_a = pages,
      "from_cache"_a = info.from_cache, "stagger_bytes"_a = info.stagger_bytes,
      "address"_a = reinterpret_cast<std::uintptr_t>(facts.address),
      "total_bytes"_a = facts.total_bytes, "allocation_bytes"_a = facts.allocation_bytes,
      "alignment_size"_a = facts.alignment_bytes, "aligned_index"_a = facts.aligned_index);
}

void add_memory_functions(PyObject* module) {
  auto core = py::reinterpret_borrow<py::module_>(module);
  core.def("_memory_statistics", statistics)
      .def("_memory_options", options)
      .def("_memory_configure", configure)
      .def("_memory_trim", trim)
      .def("_memory_pages", [] { return host_resource().page_text(); })
      .def("_block_info", block_info)
      .def("_memory_keeper", memory_keeper)
      .def("_memory_mapped_pages", mapped_pages)
      .def("_shared_place", place_in_shared)
      .def("_shared_bytes", shared_bytes)
      .def("_attach_shared", attach)
      .def("_memory_threads", [] { return std::pair(thread_count(), thread_count_origin()); })
      .def("_memory_set_threads", set_threads)
      .def("_memory_simd", get_simd)
      .def("_memory_set_simd", set_simd_by_name);
  py::class_<Workspace>(core, "_Workspace", py::module_local(), py::is_final())
      .def(py::init([](py::handle limit) {
             return value_of(Workspace::reserve(to_integer(limit.ptr(), "limit")));
           }),
           "limit"_a, py::pos_only())
      .def_property_readonly(
          "address",
          [](const Workspace& self) { return reinterpret_cast<std::uintptr_t>(self.data()); })
      .def_property_readonly("committed", &Workspace::committed_bytes)
      .def("push",
           [](Workspace& self, std::int64_t bytes) {
             return reinterpret_cast<std::uintptr_t>(value_of(self.push(bytes)));
           })
      .def("pop",
           [](Workspace& self, std::uintptr_t block) {
             check(self.pop(reinterpret_cast<const void*>(block)));
           })
      .def("trim", &Workspace::trim, py::call_guard<py::gil_scoped_release>());
}

namespace {

using namespace pybind11::literals;

constexpr char kCapsuleName[] = "mem_handler";
constexpr std::int64_t kLeastAlignmentBytes = 16;

struct Handler {
  explicit Handler(const Heap::Options& options);

  Heap heap;
  PyDataMem_Handler record;
};

Handler& handler_in(void* context) { return *static_cast<Handler*>(context); }

void* allocate(void* context, std::size_t bytes) {
  return handler_in(context).heap.allocate(bytes, false);
}

void* allocate_zeros(void* context, std::size_t count, std::size_t bytes_each) {
  const auto bytes =
      checked::mul(static_cast<std::int64_t>(count), static_cast<std::int64_t>(bytes_each));
  if (!bytes || *bytes < 0) return nullptr;
  return handler_in(context).heap.allocate(static_cast<std::size_t>(*bytes), true);
}

void* reallocate(void* context, void* data, std::size_t bytes) {
  return handler_in(context).heap.reallocate(data, bytes);
}

// NumPy's length is not that of the block in some places, so it is not used.
void release(void* context, void* data, std::size_t /*bytes*/) {
  handler_in(context).heap.release(data);
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
py::object numpy_block_info(py::handle object) {
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

void add_numpy_allocator_functions(PyObject* module) {
  check(PyArray_ImportNumPyAPI());
  py::reinterpret_borrow<py::module_>(module)
      .def("_numpy_handler", make_handler)
      .def("_set_numpy_handler", set_handler)
      .def("_numpy_block_info", numpy_block_info);
}

}  // namespace gridbuf::python
