module;

#include <Python.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"

module gridbuf.python.memory;

import gridbuf.alloc.host;
import gridbuf.alloc;
import gridbuf.base;
import gridbuf.layout;
import gridbuf.python.arguments;
import gridbuf.python.buffer;
import gridbuf.python.object;
import gridbuf.transfer;

namespace gridbuf::python {
namespace {

// ---- Dicts. ----

/// A dict that is filled key by key.
class Dict {
 public:
  void set(const char* key, py::object value) {
    check(PyDict_SetItemString(dict_.ptr(), key, value.ptr()));
  }
  void set(const char* key, std::int64_t number) { set(key, steal(PyLong_FromLongLong(number))); }
  void set(const char* key, std::string_view text) { set(key, make_text(text)); }
  void set_flag(const char* key, bool flag) { set(key, steal(PyBool_FromLong(flag ? 1 : 0))); }
  py::object take() { return std::move(dict_); }

 private:
  py::object dict_ = steal(PyDict_New());
};

// ---- Statistics and settings. ----

PyObject* statistics(PyObject*, PyObject*) {
  return guarded([] {
    const HostStatistics found = host_resource().statistics();
    Dict dict;
    dict.set("live_blocks", found.live_blocks);
    dict.set("live_bytes", found.live_bytes);
    dict.set("peak_live_bytes", found.peak_live_bytes);
    dict.set("cached_blocks", found.cached_blocks);
    dict.set("cached_bytes", found.cached_bytes);
    dict.set("cache_limit_bytes", found.cache_limit_bytes);
    dict.set("hits", found.hits);
    dict.set("misses", found.misses);
    dict.set("refusals", found.refusals);
    return dict.take();
  });
}

/// None stands for "follows the machine" and "no limit".
PyObject* options(PyObject*, PyObject*) {
  return guarded([] {
    const HostOptions found = host_resource().options();
    Dict dict;
    if (found.cache_limit_bytes) {
      dict.set("cache_limit_bytes", *found.cache_limit_bytes);
    } else {
      dict.set("cache_limit_bytes", share(Py_None));
    }
    if (found.limit_bytes == system::kUnlimitedBytes) {
      dict.set("limit_bytes", share(Py_None));
    } else {
      dict.set("limit_bytes", found.limit_bytes);
    }
    dict.set("huge_pages", to_string(found.huge_pages));
    dict.set_flag("poison", found.poison);
    return dict.take();
  });
}

std::optional<std::int64_t> to_limit(PyObject* object, std::string_view name) {
  if (object == Py_None) return std::nullopt;
  return to_integer(object, name);
}

HugePages to_huge_pages(PyObject* object) {
  if (PyUnicode_Check(object) == 0) {
    raise(ErrorClass::kType, Problem{"huge_pages", describe(object), "a str",
                                     "pass \"auto\", \"always\" or \"never\""});
  }
  for (const HugePages wish : {HugePages::kAuto, HugePages::kAlways, HugePages::kNever}) {
    if (utf8(object) == to_string(wish)) return wish;
  }
  raise(ErrorClass::kValue, Problem{"huge_pages", describe(object),
                                    "\"auto\", \"always\" or \"never\"", "pass one of them"});
}

/// (cache_limit_bytes, limit_bytes, huge_pages, poison), all of them.
PyObject* configure(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  return guarded([&] {
    if (count != 4) raise(ErrorClass::kType, "_memory_configure() takes 4 arguments");
    const HostOptions wanted{
        .cache_limit_bytes = to_limit(arguments[0], "cache_limit_bytes"),
        .limit_bytes = to_limit(arguments[1], "limit_bytes").value_or(system::kUnlimitedBytes),
        .huge_pages = to_huge_pages(arguments[2]),
        .poison = to_flag(arguments[3], "poison")};
    check(host_resource().configure(wanted));
    return share(Py_None);
  });
}

PyObject* trim(PyObject*, PyObject* argument) {
  return guarded([&] {
    const std::int64_t keep_bytes = to_integer(argument, "keep_bytes");
    if (keep_bytes < 0) {
      raise(ErrorClass::kValue, Problem{"keep_bytes", std::to_string(keep_bytes), "0 or more",
                                        "pass 0 to keep nothing"});
    }
    const std::int64_t trimmed =
        run_without_gil([keep_bytes] { return host_resource().trim(keep_bytes); });
    return steal(PyLong_FromLongLong(trimmed));
  });
}

PyObject* policy(PyObject*, PyObject*) {
  return guarded([] { return make_text(host_resource().page_policy_text()); });
}

// ---- Threads. ----

PyObject* get_threads(PyObject*, PyObject*) {
  return guarded([] {
    const std::string origin = thread_count_origin();
    return steal(Py_BuildValue("(is)", thread_count(), origin.c_str()));
  });
}

PyObject* set_threads(PyObject*, PyObject* argument) {
  return guarded([&] {
    const std::int64_t count = to_integer(argument, "n");
    using Limits = std::numeric_limits<int>;
    check(set_thread_count(
        static_cast<int>(std::clamp<std::int64_t>(count, Limits::min(), Limits::max()))));
    return share(Py_None);
  });
}

// ---- Instruction sets. ----

/// (the one in use, those that the processor has).
PyObject* get_simd(PyObject*, PyObject*) {
  return guarded([] {
    py::object names = steal(PyList_New(0));
    for (const Simd supported : supported_simd()) {
      check(PyList_Append(names.ptr(), make_text(to_string(supported)).ptr()));
    }
    const py::object known = steal(PyList_AsTuple(names.ptr()));
    return steal(PyTuple_Pack(2, make_text(to_string(simd())).ptr(), known.ptr()));
  });
}

PyObject* set_simd_by_name(PyObject*, PyObject* name) {
  return guarded([&] {
    if (PyUnicode_Check(name) == 0) {
      raise(ErrorClass::kType,
            Problem{"name", describe(name), "a str", "pass \"portable\", \"avx2\" or \"avx512\""});
    }
    check(set_simd(value_of(simd_named(utf8(name)))));
    return share(Py_None);
  });
}

// ---- Facts of a block. ----

std::string_view page_text(PageKind pages) {
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

/// The facts of a Buffer of a whole allocation; None for memory that is not ours.
PyObject* block_facts(PyObject*, PyObject* buffer) {
  return guarded([&] {
    if (!is_buffer(buffer)) {
      raise(ErrorClass::kType,
            Problem{"buffer", describe(buffer), "a gridbuf.Buffer", "pass an array's base"});
    }
    if (!has_plan(buffer)) return share(Py_None);
    const BufferState& state = state_of(buffer);
    const auto address = reinterpret_cast<std::uintptr_t>(state.memory.block);
    Dict dict;
    dict.set("resource", state.facts.resource_name);
    dict.set("device", to_string(state.facts.device));
    dict.set_flag("host_readable", is_host_readable(state.facts.device.type));
    dict.set("pages", page_text(state.facts.pages));
    dict.set_flag("from_cache", state.facts.from_cache);
    dict.set("stagger_bytes", state.facts.stagger_bytes);
    dict.set("address", steal(PyLong_FromUnsignedLongLong(address)));
    dict.set("total_bytes", plan_of(buffer).total_bytes());
    dict.set("allocation_bytes", state.allocation_bytes);
    dict.set("alignment_size", state.alignment_bytes);
    dict.set("aligned_index", from_integers(state.aligned_index.span()));
    return dict.take();
  });
}

/// (address, length_bytes) → (resident_bytes, huge_bytes), or None.
PyObject* mapped_pages(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  return guarded([&] {
    if (count != 2) raise(ErrorClass::kType, "_memory_mapped_pages() takes 2 arguments");
    const py::object number = steal(PyNumber_Index(arguments[0]));
    const unsigned long long address = PyLong_AsUnsignedLongLong(number.ptr());
    if (PyErr_Occurred() != nullptr) throw PythonError();
    const std::int64_t length_bytes = to_integer(arguments[1], "length_bytes");
    if (length_bytes <= 0) return share(Py_None);
    const auto pages = system::mapped_pages(reinterpret_cast<const void*>(address), length_bytes);
    if (!pages) return share(Py_None);
    return steal(Py_BuildValue("(LL)", static_cast<long long>(pages->resident_bytes),
                               static_cast<long long>(pages->huge_bytes)));
  });
}

template <class Function>
PyCFunction method(Function function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

PyMethodDef functions[] = {
    {"_memory_statistics", statistics, METH_NOARGS, "Of large host blocks: {key: number}."},
    {"_memory_options", options, METH_NOARGS, "The settings in force."},
    {"_memory_configure", method(configure), METH_FASTCALL, "Sets all of them."},
    {"_memory_trim", trim, METH_O, "Gives kept memory back but for so many bytes."},
    {"_memory_policy", policy, METH_NOARGS, "The page policy's decision, for people."},
    {"_memory_block_facts", block_facts, METH_O, "How a Buffer's memory came about, or None."},
    {"_memory_mapped_pages", method(mapped_pages), METH_FASTCALL,
     "What is in memory of a range: (bytes, on huge pages), or None."},
    {"_memory_threads", get_threads, METH_NOARGS, "The number of threads, and where it is from."},
    {"_memory_set_threads", set_threads, METH_O, "Sets the number of threads."},
    {"_memory_simd", get_simd, METH_NOARGS, "The instruction set in use, and those there are."},
    {"_memory_set_simd", set_simd_by_name, METH_O, "Sets the instruction set."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_memory_functions(PyObject* module) { check(PyModule_AddFunctions(module, functions)); }

}  // namespace gridbuf::python
