// What leaves a Buffer for the host: the buffer protocol, ndarrays.

module;

#include <Python.h>

#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.python.buffer;

import gridbuf.alloc;
import gridbuf.array;
import gridbuf.base;
import gridbuf.device;
import gridbuf.interface;
import gridbuf.interface.buffer;
import gridbuf.python.support;

namespace gridbuf::python {

// ---- The buffer protocol (PB-01 ... PB-25). ----

namespace {

/// The answer to a request that can be met, but for the owner.
Py_buffer answer_of(const BufferDescriptor& memory, int flags) {
  const BufferFields fields = value_of(answer_buffer_request(memory, flags));
  Py_buffer answer{};
  answer.buf = fields.buf;
  answer.len = fields.len_bytes;
  answer.itemsize = fields.itemsize_bytes;
  answer.readonly = fields.readonly ? 1 : 0;
  answer.ndim = fields.ndim;
  answer.format = const_cast<char*>(fields.format);
  answer.shape = const_cast<Py_ssize_t*>(fields.shape);
  answer.strides = const_cast<Py_ssize_t*>(fields.strides_bytes);
  return answer;
}

}  // namespace

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  if (view == nullptr) {
    PyErr_SetString(PyExc_BufferError, "a buffer request needs a Py_buffer to fill; pass one");
    return -1;
  }
  view->obj = nullptr;  // PB-01: also on failure.
  return guarded(-1, [&] {
    // The answer leads into the object, which the request then holds (PB-25).
    BufferObject& buffer = *object_of(self);
    if (flags != buffer.granted_flags) {
      buffer.granted = answer_of(buffer.array.memory, flags);
      buffer.granted_flags = flags;
    }
    // Before waiting, which gives the GIL away: another thread may then ask with other flags.
    *view = buffer.granted;
    if (buffer.array.memory.device.type != DeviceType::kHost) wait_for_host(buffer);
    view->obj = Py_NewRef(self);
    return 0;
  });
}

// ---- NumPy. ----

py::object ndarray_of(PyObject* buffer) {
  const BufferObject& object = *object_of(buffer);
  const BufferDescriptor& memory = object.array.memory;
  if (!is_host_readable(memory.device.type)) {
    raise(ErrorClass::kNoSuchBuffer,
          Problem{"memory", to_string(object.array.kind()), "readable by the host",
                  "use copy(memory=\"host\"), or an interface of the device"});
  }
  wait_for_host(object);
  return make_ndarray(*object.dtype, memory.view, memory.first_element(), memory.readonly, buffer);
}

}  // namespace gridbuf::python
