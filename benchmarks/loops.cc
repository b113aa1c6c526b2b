// gridbuf_benchmarks._loops: what must be measured from C, because Python would be in the figure.
//
// Hand-overs in a loop, as a consumer written in C makes them: one through DLPack's C exchange
// table takes less time than Python needs to call anything. Both functions give the export back at
// once.
//
// The yardsticks memcpy and memset, on one thread or in halves on two. The second thread is started
// once and waits: what a user would pay for starting it is not in the figure, and gridbuf, which
// does start its threads, is measured against memory alone.
//
// Copies and memcpys in a loop, for arrays so small that the call from Python would be the figure.

#include <Python.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <thread>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

import gridbuf.interface.dlpack;
import gridbuf.layout.view;
import gridbuf.layout;
import gridbuf.transfer;

namespace {

namespace dlpack = gridbuf::dlpack;

// Hand-overs

const dlpack::ExchangeApi* table_of(PyObject* object) {
  PyObject* const capsule = PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(object)),
                                                   dlpack::kExchangeAttribute);
  if (capsule == nullptr) return nullptr;
  void* const header = PyCapsule_GetPointer(capsule, dlpack::kExchangeCapsuleName);
  Py_DECREF(capsule);  // The table lives as long as the process (DX-02).
  if (header == nullptr) return nullptr;
  const dlpack::ExchangeApi* const table =
      dlpack::find_exchange_api(static_cast<dlpack::ExchangeApiHeader*>(header));
  if (table == nullptr) PyErr_SetString(PyExc_BufferError, "no exchange table of version 1");
  return table;
}

/// through_table(x, count): exports x `count` times through its type's table. Returns x.
PyObject* through_table(PyObject*, PyObject* arguments) {
  PyObject* object = nullptr;
  long count = 0;
  if (PyArg_ParseTuple(arguments, "Ol", &object, &count) == 0) return nullptr;
  const dlpack::ExchangeApi* const table = table_of(object);
  if (table == nullptr) return nullptr;
  for (long i = 0; i < count; ++i) {
    dlpack::DLManagedTensorVersioned* tensor = nullptr;
    if (table->managed_tensor_from_py_object_no_sync(object, &tensor) != 0) return nullptr;
    tensor->deleter(tensor);
  }
  return Py_NewRef(object);
}

/// through_method(x, count): the same by calling x.__dlpack__(max_version=(1, 3)). Returns x.
PyObject* through_method(PyObject*, PyObject* arguments) {
  PyObject* object = nullptr;
  long count = 0;
  if (PyArg_ParseTuple(arguments, "Ol", &object, &count) == 0) return nullptr;
  PyObject* const name = PyUnicode_InternFromString("__dlpack__");
  PyObject* const version = Py_BuildValue("(ii)", 1, 3);
  PyObject* const keyword = PyUnicode_InternFromString("max_version");
  PyObject* const keywords = keyword == nullptr ? nullptr : PyTuple_Pack(1, keyword);
  bool done = name != nullptr && version != nullptr && keywords != nullptr;
  for (long i = 0; done && i < count; ++i) {
    PyObject* const given[] = {object, version};
    PyObject* const capsule =
        PyObject_VectorcallMethod(name, given, 1 | PY_VECTORCALL_ARGUMENTS_OFFSET, keywords);
    done = capsule != nullptr;
    Py_XDECREF(capsule);  // Unconsumed: gives the export back.
  }
  Py_XDECREF(name);
  Py_XDECREF(version);
  Py_XDECREF(keyword);
  Py_XDECREF(keywords);
  return done ? Py_NewRef(object) : nullptr;
}

// Yardsticks

using Work = absl::FunctionRef<void(std::size_t begin_bytes, std::size_t end_bytes)>;

/// A second thread that waits for halves. It sleeps while nobody measures, so that it takes no time
/// from other contenders; after work, and after `wake`, it is awake for a moment.
class Helper {
 public:
  static Helper& instance() {
    // Never destroyed: its thread runs until the process ends.
    static Helper* const helper = new Helper;
    return *helper;
  }

  /// Returns when the helper is awake.
  void wake() {
    halves(0, [](std::size_t, std::size_t) {});
  }

  /// Runs `work` on the first half in the helper and on the second here.
  void halves(std::size_t bytes, Work work) {
    // Whole pages for each, so that the threads share none.
    Job job{work, bytes / 2 / 4096 * 4096};
    job_.store(&job, std::memory_order_relaxed);
    ticket_.fetch_add(1, std::memory_order_release);
    ticket_.notify_one();
    work(job.end_bytes, bytes);
    while (!job.done.load(std::memory_order_acquire)) __builtin_ia32_pause();
  }

 private:
  struct Job {
    Work work;
    std::size_t end_bytes;
    std::atomic<bool> done = false;
  };

  // Some 10 µs: longer than the calls of one sample are apart, and shorter than any sample.
  static constexpr int kSpins = 512;

  Helper() {
    std::thread([this] { serve(); }).detach();
  }

  [[noreturn]] void serve() {
    for (std::uint32_t seen = 0;;) {
      for (int i = 0; i < kSpins && ticket_.load(std::memory_order_acquire) == seen; ++i) {
        __builtin_ia32_pause();
      }
      ticket_.wait(seen, std::memory_order_acquire);
      ++seen;  // The caller waits for each job, so that none is missed.
      Job* const job = job_.load(std::memory_order_relaxed);
      job->work(0, job->end_bytes);
      job->done.store(true, std::memory_order_release);
    }
  }

  std::atomic<Job*> job_ = nullptr;
  std::atomic<std::uint32_t> ticket_ = 0;
};

/// Reads `count` non-negative integers; false with an exception set if there are others.
bool read_integers(const char* function, PyObject* const* arguments, Py_ssize_t given,
                   std::span<std::size_t> integers) {
  if (given != std::ssize(integers)) {
    PyErr_Format(PyExc_TypeError, "%s takes %zd integers, not %zd", function, std::ssize(integers),
                 given);
    return false;
  }
  for (std::size_t i = 0; i < integers.size(); ++i) {
    integers[i] = PyLong_AsSize_t(arguments[i]);
    if (integers[i] == static_cast<std::size_t>(-1) && PyErr_Occurred() != nullptr) return false;
  }
  return true;
}

void on_threads(std::size_t threads, std::size_t bytes, Work work) {
  if (threads < 2) return work(0, bytes);
  Helper::instance().halves(bytes, work);
}

/// memcpy(target_address, source_address, bytes, threads): glibc's, in one piece or in halves.
PyObject* copy_bytes(PyObject*, PyObject* const* arguments, Py_ssize_t given) {
  std::size_t values[4];
  if (!read_integers("memcpy", arguments, given, values)) return nullptr;
  const auto [target, source, bytes, threads] = values;
  auto* const to = reinterpret_cast<std::byte*>(target);
  const auto* const from = reinterpret_cast<const std::byte*>(source);
  on_threads(threads, bytes, [to, from](std::size_t begin, std::size_t end) {
    std::memcpy(to + begin, from + begin, end - begin);
  });
  Py_RETURN_NONE;
}

/// memset(target_address, value, bytes, threads): glibc's, in one piece or in halves.
PyObject* set_bytes(PyObject*, PyObject* const* arguments, Py_ssize_t given) {
  std::size_t values[4];
  if (!read_integers("memset", arguments, given, values)) return nullptr;
  const auto [target, value, bytes, threads] = values;
  auto* const to = reinterpret_cast<std::byte*>(target);
  on_threads(threads, bytes,
             [to, value = static_cast<int>(value)](std::size_t begin, std::size_t end) {
               std::memset(to + begin, value, end - begin);
             });
  Py_RETURN_NONE;
}

/// wake_helper(): before a sample in halves, so that the helper is there when the clock starts.
PyObject* wake_helper(PyObject*, PyObject*) {
  Helper::instance().wake();
  Py_RETURN_NONE;
}

// Copies in a loop

/// A writable or readable n-dimensional buffer, as a view of gridbuf's.
class Array {
 public:
  Array() = default;
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  ~Array() {
    if (open_) PyBuffer_Release(&buffer_);
  }

  bool open(PyObject* object, int flags) {
    open_ = PyObject_GetBuffer(object, &buffer_, flags | PyBUF_STRIDES) == 0;
    if (!open_) return false;
    view_.itemsize_bytes = buffer_.itemsize;
    for (int dim = 0; dim < buffer_.ndim; ++dim) {
      view_.shape.push_back(buffer_.shape[dim]);
      view_.strides_bytes.push_back(buffer_.strides[dim]);
    }
    return true;
  }

  std::byte* block() const { return static_cast<std::byte*>(buffer_.buf); }
  const gridbuf::StridedView& view() const { return view_; }
  std::size_t bytes() const { return static_cast<std::size_t>(buffer_.len); }

 private:
  Py_buffer buffer_;
  bool open_ = false;
  gridbuf::StridedView view_;
};

/// copy_loop(target, source, count): the engine's copy, without Python. Returns the target.
PyObject* copy_loop(PyObject*, PyObject* arguments) {
  PyObject *target = nullptr, *source = nullptr;
  long count = 0;
  if (PyArg_ParseTuple(arguments, "OOl", &target, &source, &count) == 0) return nullptr;
  Array to, from;
  if (!to.open(target, PyBUF_WRITABLE) || !from.open(source, 0)) return nullptr;
  for (long i = 0; i < count; ++i) {
    const absl::Status status =
        gridbuf::copy_elements(to.block(), to.view(), from.block(), from.view());
    if (!status.ok()) {
      PyErr_SetString(PyExc_ValueError, std::string(status.message()).c_str());
      return nullptr;
    }
  }
  return Py_NewRef(target);
}

/// memcpy_loop(target, source, count): memcpy of the same bytes. Returns the target.
PyObject* memcpy_loop(PyObject*, PyObject* arguments) {
  PyObject *target = nullptr, *source = nullptr;
  long count = 0;
  if (PyArg_ParseTuple(arguments, "OOl", &target, &source, &count) == 0) return nullptr;
  Array to, from;
  if (!to.open(target, PyBUF_WRITABLE) || !from.open(source, 0)) return nullptr;
  if (to.bytes() != from.bytes()) {
    PyErr_Format(PyExc_ValueError, "the target has %zu bytes and the source %zu; give equal sizes",
                 to.bytes(), from.bytes());
    return nullptr;
  }
  for (long i = 0; i < count; ++i) {
    std::memcpy(to.block(), from.block(), to.bytes());
    asm volatile("" ::: "memory");  // or the compiler would copy once
  }
  return Py_NewRef(target);
}

PyCFunction fast(PyObject* (*function)(PyObject*, PyObject* const*, Py_ssize_t)) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

PyMethodDef functions[] = {
    {"through_table", through_table, METH_VARARGS, "through_table(x, count) -> x"},
    {"through_method", through_method, METH_VARARGS, "through_method(x, count) -> x"},
    {"memcpy", fast(copy_bytes), METH_FASTCALL,
     "memcpy(target_address, source_address, bytes, threads)"},
    {"memset", fast(set_bytes), METH_FASTCALL, "memset(target_address, value, bytes, threads)"},
    {"wake_helper", wake_helper, METH_NOARGS, "wake_helper()"},
    {"copy_loop", copy_loop, METH_VARARGS, "copy_loop(target, source, count) -> target"},
    {"memcpy_loop", memcpy_loop, METH_VARARGS, "memcpy_loop(target, source, count) -> target"},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "gridbuf_benchmarks._loops",
    .m_doc = "What must be measured from C.",
    .m_size = -1,
    .m_methods = functions,
    .m_slots = nullptr,
    .m_traverse = nullptr,
    .m_clear = nullptr,
    .m_free = nullptr,
};

}  // namespace

PyMODINIT_FUNC PyInit__loops() { return PyModule_Create(&definition); }
