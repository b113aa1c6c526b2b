// gridbuf_benchmarks._loops: measured from C, because Python would be in the figure.
//
// Hand-overs in a loop, as a consumer written in C makes them: one through DLPack's C exchange
// table takes less time than Python needs to call anything. Each export is returned at once.
//
// The yardsticks memcpy and memset, on one thread or in halves on two. The second thread is started
// once and waits: the figure does not include the start of a thread. gridbuf, which does start its
// threads, is compared with memory alone.
//
// Copies and memcpys in a loop, for arrays so small that the call from Python would be the figure.

#include <Python.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstring>
#include <semaphore>
#include <string>
#include <thread>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

import gridbuf.interface.dlpack;
import gridbuf.layout;
import gridbuf.layout.view;
import gridbuf.transfer;

namespace {

namespace dlpack = gridbuf::dlpack;
namespace py = pybind11;

// Hand-overs

py::object through_table(py::object x, long count) {
  // The table lives as long as the process (DX-02).
  const py::object capsule = py::type::of(x).attr(dlpack::kExchangeAttribute);
  void* const header = PyCapsule_GetPointer(capsule.ptr(), dlpack::kExchangeCapsuleName);
  if (header == nullptr) throw py::error_already_set();
  const dlpack::ExchangeApi* const table =
      dlpack::find_exchange_api(static_cast<dlpack::ExchangeApiHeader*>(header));
  if (table == nullptr) throw py::buffer_error("no exchange table of version 1");
  for (long i = 0; i < count; ++i) {
    dlpack::DLManagedTensorVersioned* tensor = nullptr;
    if (table->managed_tensor_from_py_object_no_sync(x.ptr(), &tensor) != 0) {
      throw py::error_already_set();
    }
    tensor->deleter(tensor);
  }
  return x;
}

py::object through_method(py::object x, long count) {
  const auto interned = [](const char* text) {
    return py::reinterpret_steal<py::str>(PyUnicode_InternFromString(text));
  };
  const py::str name = interned("__dlpack__");
  const py::tuple version = py::make_tuple(1, 3);
  const py::tuple keywords = py::make_tuple(interned("max_version"));
  PyObject* const given[] = {x.ptr(), version.ptr()};
  for (long i = 0; i < count; ++i) {
    PyObject* const capsule = PyObject_VectorcallMethod(
        name.ptr(), given, 1 | PY_VECTORCALL_ARGUMENTS_OFFSET, keywords.ptr());
    if (capsule == nullptr) throw py::error_already_set();
    Py_DECREF(capsule);  // Not consumed: returns the export.
  }
  return x;
}

// Yardsticks

using Work = absl::FunctionRef<void(std::size_t begin_bytes, std::size_t end_bytes)>;

/// A second thread that waits for halves. It sleeps between measurements and takes no time from
/// other contenders; after work, it is awake for a moment. `halves` of nothing wakes it.
class Helper {
 public:
  static Helper& instance() {
    // Never destroyed: its thread runs until the process ends.
    static Helper* const helper = new Helper;
    return *helper;
  }

  /// Runs `work` on the first half in the helper and on the second here.
  void halves(std::size_t bytes, Work work) {
    work_ = &work;
    half_bytes_ = bytes / 2 / 4096 * 4096;  // Whole pages for each: the threads share none.
    begin_.release();
    work(half_bytes_, bytes);
    while (!done_.try_acquire()) __builtin_ia32_pause();
  }

 private:
  // Some 10 µs: longer than the calls of one sample are apart, and shorter than any sample.
  static constexpr int kSpins = 512;

  Helper() {
    std::thread([this] {
      for (;;) {
        bool awake = begin_.try_acquire();
        for (int i = 0; i < kSpins && !awake; ++i) {
          __builtin_ia32_pause();
          awake = begin_.try_acquire();
        }
        if (!awake) begin_.acquire();
        (*work_)(0, half_bytes_);
        done_.release();
      }
    }).detach();
  }

  std::binary_semaphore begin_{0}, done_{0};
  const Work* work_ = nullptr;
  std::size_t half_bytes_ = 0;
};

/// What memcpy and memset of this module share: three numbers and the number of threads.
///
/// These are raw entry points, because the call is part of the yardstick: 4 KiB are copied in the
/// time of a call, and a slow yardstick would flatter gridbuf.
template <typename Piece>
PyObject* on_threads(PyObject* const* arguments, Py_ssize_t given, Piece work) {
  std::size_t values[4] = {};
  if (given != 4) {
    PyErr_Format(PyExc_TypeError, "this function takes 4 integers, not %zd", given);
    return nullptr;
  }
  for (int i = 0; i < 4; ++i) {
    values[i] = PyLong_AsSize_t(arguments[i]);
    if (values[i] == static_cast<std::size_t>(-1) && PyErr_Occurred() != nullptr) return nullptr;
  }
  const auto [target, operand, bytes, threads] = values;
  const auto part = [&](std::size_t begin, std::size_t end) {
    work(reinterpret_cast<std::byte*>(target) + begin, operand, begin, end - begin);
  };
  if (threads < 2) {
    part(0, bytes);
  } else {
    Helper::instance().halves(bytes, part);
  }
  Py_RETURN_NONE;
}

PyObject* copy_bytes(PyObject*, PyObject* const* arguments, Py_ssize_t given) {
  return on_threads(arguments, given, [](auto* to, auto source, auto begin, auto count) {
    std::memcpy(to, reinterpret_cast<const std::byte*>(source) + begin, count);
  });
}

PyObject* set_bytes(PyObject*, PyObject* const* arguments, Py_ssize_t given) {
  return on_threads(arguments, given, [](auto* to, auto value, auto, auto count) {
    std::memset(to, static_cast<int>(value), count);
  });
}

// Copies in a loop

gridbuf::StridedView view_of(const py::array& array) {
  gridbuf::StridedView view;
  view.itemsize_bytes = array.itemsize();
  for (py::ssize_t dim = 0; dim < array.ndim(); ++dim) {
    view.shape.push_back(array.shape(dim));
    view.strides_bytes.push_back(array.strides(dim));
  }
  return view;
}

py::array copy_loop(py::array target, const py::array& source, long count) {
  const gridbuf::StridedView to_view = view_of(target), from_view = view_of(source);
  auto* const to = static_cast<std::byte*>(target.mutable_data());
  const auto* const from = static_cast<const std::byte*>(source.data());
  for (long i = 0; i < count; ++i) {
    const absl::Status status = gridbuf::copy_elements(to, to_view, from, from_view);
    if (!status.ok()) throw py::value_error(std::string(status.message()));
  }
  return target;
}

py::array memcpy_loop(py::array target, const py::array& source, long count) {
  if (target.nbytes() != source.nbytes()) {
    throw py::value_error("the target has " + std::to_string(target.nbytes()) +
                          " bytes and the source " + std::to_string(source.nbytes()) +
                          "; give equal sizes");
  }
  void* const to = target.mutable_data();
  for (long i = 0; i < count; ++i) {
    std::memcpy(to, source.data(), static_cast<std::size_t>(source.nbytes()));
    asm volatile("" ::: "memory");  // or the compiler would copy once
  }
  return target;
}

PyCFunction fast(PyObject* (*function)(PyObject*, PyObject* const*, Py_ssize_t)) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

PyMethodDef raw_functions[] = {
    {"memcpy", fast(copy_bytes), METH_FASTCALL,
     "memcpy(target_address, source_address, bytes, threads)"},
    {"memset", fast(set_bytes), METH_FASTCALL, "memset(target_address, value, bytes, threads)"},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

PYBIND11_MODULE(_loops, m) {
  m.doc() = "Measured from C.";
  m.def("through_table", &through_table, "Exports x `count` times through its type's table.");
  m.def("through_method", &through_method, "Calls x.__dlpack__(max_version=(1, 3)) as often.");
  const auto wake = [] { Helper::instance().halves(0, [](std::size_t, std::size_t) {}); };
  m.def("wake_helper", wake, "Before each sample in halves: the helper is there at its start.");
  m.def("copy_loop", &copy_loop, "The engine's copy, `count` times.");
  m.def("memcpy_loop", &memcpy_loop, "memcpy of as many bytes, `count` times.");
  if (PyModule_AddFunctions(m.ptr(), raw_functions) != 0) throw py::error_already_set();
}
