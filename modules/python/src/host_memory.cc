// The settings and statistics of host memory, as Python sees them.
//
// Purpose. The private functions (`gridbuf._core._memory_…`) below `gridbuf.memory`,
// `gridbuf.alloc_info`, `gridbuf.set_num_threads` and the memory section of `gridbuf.show_config`.
// What users call is written in Python over them, where keywords, defaults and documentation are
// easier to write and to read.
//
// Key decision. Everything is about the one `host_resource()` of the process. A Buffer keeps the
// info of its block from the moment of the allocation; which pages are in memory is a question to
// the kernel at each call, because it changes.
//
// All functions need the GIL; `_memory_trim` releases it.

#include <pybind11/pybind11.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "modules/python/src/parts.h"

import gridbuf.alloc.host;
import gridbuf.alloc;
import gridbuf.array;
import gridbuf.base;
import gridbuf.layout;
import gridbuf.python.buffer;
import gridbuf.python.support;
import gridbuf.transfer;

namespace gridbuf::python {
namespace {

// ---- Statistics and settings. ----

py::dict statistics() {
  const HostStatistics found = host_resource().statistics();
  py::dict dict;
  dict["live_blocks"] = found.live_blocks;
  dict["live_bytes"] = found.live_bytes;
  dict["peak_live_bytes"] = found.peak_live_bytes;
  dict["cached_blocks"] = found.cached_blocks;
  dict["cached_bytes"] = found.cached_bytes;
  dict["cache_limit_bytes"] = found.cache_limit_bytes;
  dict["hits"] = found.hits;
  dict["misses"] = found.misses;
  dict["refusals"] = found.refusals;
  return dict;
}

/// The setting `huge_pages` by its value in HostOptions.
constexpr std::array<std::string_view, 2> kHugePages{"never", "auto"};

/// None means "follows the machine" and "no limit".
py::dict options() {
  const HostOptions found = host_resource().options();
  py::dict dict;
  dict["cache_limit_bytes"] = py::none();
  if (found.cache_limit_bytes) dict["cache_limit_bytes"] = *found.cache_limit_bytes;
  dict["limit_bytes"] = py::none();
  if (found.limit_bytes != system::kUnlimitedBytes) dict["limit_bytes"] = found.limit_bytes;
  dict["huge_pages"] = kHugePages[found.huge_pages];
  dict["poison"] = found.poison;
  return dict;
}

std::optional<std::int64_t> to_limit(PyObject* object, std::string_view name) {
  if (object == Py_None) return std::nullopt;
  return to_integer(object, name);
}

bool to_huge_pages(PyObject* object) {
  if (PyUnicode_Check(object) == 0) {
    raise(ErrorClass::kType,
          Problem{"huge_pages", describe(object), "a str", "pass \"auto\" or \"never\""});
  }
  for (const bool huge : {false, true}) {
    if (utf8(object) == kHugePages[huge]) return huge;
  }
  raise(ErrorClass::kValue,
        Problem{"huge_pages", describe(object), "\"auto\" or \"never\"", "pass one of them"});
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

// ---- Threads and instruction sets. ----

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
                                     "pass \"portable\", \"avx2\" or \"avx512\""});
  }
  check(set_simd(value_of(simd_named(utf8(name.ptr())))));
}

// ---- Info about a block. ----

std::string_view text_of(PageKind pages) {
  switch (pages) {
    case PageKind::kSmall:
      return "small";
    case PageKind::kHuge:
      return "huge";
    case PageKind::kShared:
      break;
  }
  return "shared";
}

/// How the memory of a whole allocation came about; None for memory that is not ours.
py::object block_facts(py::handle object) {
  PyObject* const buffer = object.ptr();
  if (!is_buffer(buffer)) {
    raise(ErrorClass::kType,
          Problem{"buffer", describe(buffer), "a gridbuf.Buffer", "pass an array's base"});
  }
  if (!has_plan(buffer)) return py::none();
  const BlockFacts& facts = info_of(buffer).facts;
  const Array& array = array_in(buffer);
  py::dict dict;
  dict["resource"] = make_text(facts.resource_name);
  dict["device"] = to_string(facts.device);
  dict["host_readable"] = is_host_readable(facts.device.type);
  dict["pages"] = make_text(text_of(facts.pages));
  dict["from_cache"] = facts.from_cache;
  dict["stagger_bytes"] = facts.stagger_bytes;
  dict["address"] = reinterpret_cast<std::uintptr_t>(array.memory.block);
  dict["total_bytes"] = array.layout.total_bytes();
  dict["allocation_bytes"] = info_of(buffer).allocation_bytes;
  dict["alignment_size"] = array.layout.alignment_bytes();
  dict["aligned_index"] = from_integers(array.layout.aligned_index().span());
  return dict;
}

/// (resident_bytes, huge_bytes) of a range, or None.
py::object mapped_pages(py::handle address, py::handle length) {
  const py::object number = steal(PyNumber_Index(address.ptr()));
  const unsigned long long first = PyLong_AsUnsignedLongLong(number.ptr());
  if (PyErr_Occurred() != nullptr) throw PythonError();
  const std::int64_t length_bytes = to_integer(length.ptr(), "length_bytes");
  if (length_bytes <= 0) return py::none();
  const auto pages = system::mapped_pages(reinterpret_cast<const void*>(first), length_bytes);
  if (!pages) return py::none();
  return pack(py::int_(pages->resident_bytes), py::int_(pages->huge_bytes));
}

}  // namespace

void add_memory_functions(PyObject* module) {
  auto core = py::reinterpret_borrow<py::module_>(module);
  core.def("_memory_statistics", statistics, "Of large host blocks: {key: number}.")
      .def("_memory_options", options, "The settings in force.")
      .def("_memory_configure", configure,
           "cache_limit_bytes, limit_bytes, huge_pages, poison: sets all of them.")
      .def("_memory_trim", trim, "Gives kept memory back but for so many bytes.")
      .def(
          "_memory_pages", [] { return host_resource().page_text(); },
          "Which pages large blocks get, for people.")
      .def("_memory_block_facts", block_facts, "How a Buffer's memory came about, or None.")
      .def("_memory_mapped_pages", mapped_pages,
           "What is in memory of a range: (bytes, on huge pages), or None.")
      .def(
          "_memory_threads",
          [] { return pack(py::int_(thread_count()), py::str(thread_count_origin())); },
          "The number of threads, and where it is from.")
      .def("_memory_set_threads", set_threads, "Sets the number of threads.")
      .def("_memory_simd", get_simd, "The instruction set in use, and those there are.")
      .def("_memory_set_simd", set_simd_by_name, "Sets the instruction set.");
}

}  // namespace gridbuf::python
