// From an object to a Buffer: which interface is asked, and how the answer is adopted.

module;

#include <Python.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.python.buffer;

import gridbuf.alloc;
import gridbuf.array;
import gridbuf.base;
import gridbuf.device.registry;
import gridbuf.device;
import gridbuf.interface.numpy;
import gridbuf.interface;
import gridbuf.layout;
import gridbuf.python.support;

namespace gridbuf::python {
namespace {

/// The first refusal of a producer, to be raised if no other interface of its helps.
class FirstRefusal {
 public:
  FirstRefusal() = default;
  FirstRefusal(const FirstRefusal&) = delete;
  FirstRefusal& operator=(const FirstRefusal&) = delete;
  ~FirstRefusal() {
    Py_XDECREF(type_);
    Py_XDECREF(value_);
    Py_XDECREF(traceback_);
  }

  /// Takes the exception that is set.
  void note() {
    if (type_ != nullptr) {
      PyErr_Clear();
      return;
    }
    PyErr_Fetch(&type_, &value_, &traceback_);
  }
  /// Raises it, if there is one.
  void raise_if_any() {
    if (type_ == nullptr) return;
    PyErr_Restore(std::exchange(type_, nullptr), std::exchange(value_, nullptr),
                  std::exchange(traceback_, nullptr));
    throw PythonError();
  }

 private:
  PyObject* type_ = nullptr;
  PyObject* value_ = nullptr;
  PyObject* traceback_ = nullptr;
};

template <class Through>
std::optional<Foreign> attempt(FirstRefusal& refusal, Through&& through) {
  try {
    return through();
  } catch (const Declined&) {
    refusal.note();
    return std::nullopt;
  }
}

/// The memory behind `object`, through the first interface that gives it; nothing if it has none.
std::optional<Foreign> find_memory(PyObject* object, const ImportOptions& options) {
  if (is_exact_ndarray(object)) return through_ndarray(object);
  FirstRefusal refusal;
  std::optional<Foreign> found;
  const auto one_of = [&](auto&& through) {
    if (!found) found = attempt(refusal, through);
  };
  one_of([&] { return through_data_interface(object, options); });
  one_of([&] { return through_ndarray(object); });
  one_of([&] { return through_exchange_table(object); });
  one_of([&] { return through_buffer(object); });
  one_of([&] { return through_dlpack(object, options); });
  one_of([&] { return through_array_struct(object); });
  one_of([&] { return through_array_interface(object); });
  one_of([&] { return through_cuda_array_interface(object); });
  if (!found) refusal.raise_if_any();
  return found;
}

/// The names in an entry of __gt_data_interface__, which may be anybody's.
Dims entry_dims(const std::vector<std::string>& names, int ndim) {
  const std::vector<std::string_view> views(names.begin(), names.end());
  absl::StatusOr<Dims> dims = parse_dims(views, ndim);
  if (dims.ok()) return *dims;
  raise(with_context(dims.status(), "the array's own names cannot be used; pass dims="));
}

/// The names that the object declares.
std::optional<Dims> own_dims(const Foreign& foreign, PyObject* object) {
  const int ndim = foreign.view.memory.view.ndim();
  if (!foreign.dims.empty()) return entry_dims(foreign.dims, ndim);
  // A plain ndarray has no attributes to look for.
  if (object == nullptr || is_exact_ndarray(object)) return std::nullopt;
  return declared_dims(object, ndim);
}

Dims dims_of(const Foreign& foreign, PyObject* object, PyObject* dims,
             const ImportOptions& options) {
  const int ndim = foreign.view.memory.view.ndim();
  if (dims != nullptr && dims != Py_None) return to_dims(dims, ndim);
  return options.use_names ? own_dims(foreign, object).value_or(default_dims(ndim))
                           : default_dims(ndim);
}

/// The Buffer itself, or one over its memory with other names.
py::object with_dims(PyObject* buffer, PyObject* dims) {
  const bool same = dims == nullptr || dims == Py_None ||
                    to_dims(dims, array_in(buffer).layout.ndim()) == array_in(buffer).layout.dims();
  if (same) return share(buffer);
  Array array = array_in(buffer);
  array.layout = Layout(array.layout, to_dims(dims, array.layout.ndim()), Halo());
  return adopt_buffer(std::move(array), dtype_of(buffer), buffer, info_of(buffer));
}

DTypePtr record_for(const Foreign& foreign) {
  const BufferDescriptor& memory = foreign.view.memory;
  DTypePtr record = foreign.dtype ? record_of(foreign.dtype.ptr()) : record_of(memory.dtype);
  if (record->type.itemsize_bytes() != memory.view.itemsize_bytes) {
    raise(ErrorClass::kBuffer,
          Problem{"the itemsize of " + record->name, std::to_string(record->type.itemsize_bytes()),
                  std::to_string(memory.view.itemsize_bytes) + ", as the interface says",
                  "make the producer's element type and itemsize agree"});
  }
  return record;
}

bool needs_device(const BufferDescriptor& memory) {
  return memory.device.type != DeviceType::kHost && memory.device.type != DeviceType::kRocmHost;
}

/// Orders what is pending on the producer's stream before what gridbuf does from now on (CAI-20).
/// Returns the stream that the Buffer works on.
StreamHandle wait_for_producer(const ImportedView& view, const ImportOptions& options) {
  if (view.memory.device.type == DeviceType::kRocm) {
    raise(ErrorClass::kDeviceUnavailable,
          "the array lies on " + to_string(view.memory.device) +
              ", and gridbuf drives CUDA devices alone; copy it to the host first");
  }
  DeviceDriver* const driver = value_of(device_driver());
  const StreamHandle own = current_stream();
  if (!view.stream || !options.sync) return own;
  check(with_context(driver->check_stream(*view.stream), "CAI-17"));
  check(driver->order_after(*view.stream, own));
  return own;
}

}  // namespace

py::object adopt(Foreign foreign, PyObject* object, PyObject* dims, const ImportOptions& options) {
  const DTypePtr dtype = record_for(foreign);
  BufferDescriptor& memory = foreign.view.memory;
  Array array = foreign_array(memory, dims_of(foreign, object, dims, options));
  array.memory.dtype = dtype->type;
  const StreamHandle stream = needs_device(memory) ? wait_for_producer(foreign.view, options) : 0;
  return adopt_buffer(std::move(array), dtype, foreign.keep_alive.ptr(),
                      adopted_memory("foreign", memory.device, stream));
}

py::object import_or_none(PyObject* object, PyObject* dims, const ImportOptions& options,
                          Meaning* meaning) {
  if (is_buffer(object)) return with_dims(object, dims);
  const DeviceType side = options.side.value_or(DeviceType::kHost);
  if (const py::object ours = buffer_of_array(object, side, options.purpose)) {
    return with_dims(ours.ptr(), dims);
  }
  std::optional<Foreign> found = find_memory(object, options);
  if (!found) return py::object();
  if (meaning != nullptr) {
    *meaning = std::move(found->meaning);
    meaning->names = found->dims;
  }
  return adopt(*std::move(found), object, dims, options);
}

py::object import_buffer(PyObject* object, PyObject* dims, const ImportOptions& options,
                         Meaning* meaning) {
  py::object buffer = import_or_none(object, dims, options, meaning);
  if (buffer) return buffer;
  raise(ErrorClass::kType,
        Problem{"the object", "of type " + type_name(object),
                "one that offers memory: an ndarray, the buffer protocol, DLPack, "
                "__array_struct__, __array_interface__, __cuda_array_interface__ or "
                "__gt_data_interface__",
                "make an array of it first, for example with numpy.asarray"});
}

py::object importable_or_same(PyObject* object, PyObject* dims) {
  // Text and NumPy's scalars lend their bytes, but are values and no arrays of bytes.
  if (is_ndarray(object) || is_buffer(object) || is_scalar(object)) return share(object);
  py::object buffer = import_or_none(
      object, dims, {.sync = true, .allow_copied = true, .purpose = Purpose::kReading});
  return buffer ? std::move(buffer) : share(object);
}

}  // namespace gridbuf::python
