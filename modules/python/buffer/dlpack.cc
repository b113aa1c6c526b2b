// DLPack capsules.

module;

#include <Python.h>

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.python.buffer;

import gridbuf.alloc;
import gridbuf.array;
import gridbuf.base;
import gridbuf.device;
import gridbuf.interface;
import gridbuf.interface.dlpack;
import gridbuf.python.support;

namespace gridbuf::python {

// ---- DLPack (DL-01 ... DL-30, DP-01 ... DP-27). ----

namespace {

/// Runs the deleter of a capsule that nobody consumed (DP-06, DP-07).
template <class Tensor>
void destroy_capsule(PyObject* capsule, const char* name) {
  if (PyCapsule_IsValid(capsule, name) == 0) return;
  dlpack::CallDeleter()(static_cast<Tensor*>(PyCapsule_GetPointer(capsule, name)));
}
void destroy_legacy(PyObject* capsule) {
  destroy_capsule<dlpack::DLManagedTensor>(capsule, dlpack::kLegacyName);
}
void destroy_versioned(PyObject* capsule) {
  destroy_capsule<dlpack::DLManagedTensorVersioned>(capsule, dlpack::kVersionedName);
}

/// The capsule of an export, which it owns from then on.
template <class Export>
py::object make_capsule(Export tensor, const char* name, PyCapsule_Destructor destructor) {
  py::object capsule = steal(PyCapsule_New(tensor.get(), name, destructor));
  tensor.release();
  return capsule;
}

/// A keyword that is a pair of integers, or None.
template <class Pair>
std::optional<Pair> to_pair(PyObject* object, const char* name) {
  if (object == nullptr || object == Py_None) return std::nullopt;
  if (PyTuple_Check(object) == 0 || PyTuple_GET_SIZE(object) != 2) {
    raise(ErrorClass::kType, Problem{name, describe(object), "None or a tuple of two integers",
                                     "pass a 2-tuple such as (1, 0)"});
  }
  return Pair{to_integer(PyTuple_GET_ITEM(object, 0), name),
              to_integer(PyTuple_GET_ITEM(object, 1), name)};
}

/// The type of a device: an integer, or an enum member whose value is one (DP-02, DP-23).
std::optional<dlpack::ExportRequest::WantedDevice> to_device(PyObject* object) {
  if (object == nullptr || object == Py_None || PyTuple_Check(object) == 0 ||
      PyTuple_GET_SIZE(object) != 2 || PyIndex_Check(PyTuple_GET_ITEM(object, 0)) != 0) {
    return to_pair<dlpack::ExportRequest::WantedDevice>(object, "dl_device");
  }
  const py::object value =
      steal_or_none(PyObject_GetAttrString(PyTuple_GET_ITEM(object, 0), "value"));
  if (!value) PyErr_Clear();
  return dlpack::ExportRequest::WantedDevice{
      to_integer(value ? value.ptr() : PyTuple_GET_ITEM(object, 0), "dl_device"),
      to_integer(PyTuple_GET_ITEM(object, 1), "dl_device")};
}

dlpack::ExportRequest read_request(PyObject* stream, PyObject* max_version, PyObject* dl_device,
                                   PyObject* copy) {
  dlpack::ExportRequest request;
  if (stream != nullptr && stream != Py_None) request.stream = to_integer(stream, "stream");
  request.max_version = to_pair<dlpack::ExportRequest::Version>(max_version, "max_version");
  request.dl_device = to_device(dl_device);
  if (copy != nullptr && copy != Py_None) request.copy = to_flag(copy, "copy");
  return request;
}

py::object export_capsule(const BufferDescriptor& memory, const dlpack::ExportPlan& plan) {
  if (plan.versioned) {
    return make_capsule(value_of(dlpack::export_versioned(memory, plan)), dlpack::kVersionedName,
                        destroy_versioned);
  }
  return make_capsule(value_of(dlpack::export_legacy(memory, plan)), dlpack::kLegacyName,
                      destroy_legacy);
}

/// What `request` gets: the memory itself, or a copy where one was asked for or is needed.
py::object export_as_requested(PyObject* self, const dlpack::ExportRequest& request) {
  const BufferObject& buffer = *object_of(self);
  dlpack::ExportPlan plan = value_of(dlpack::negotiate(buffer.array.memory, request));
  if (!plan.copy) {
    order_pending(buffer, plan);
    return export_capsule(buffer.array.memory, plan);
  }
  const bool to_host = plan.device.type == DeviceType::kHost;
  const py::object copied = copy_of(self, to_host ? MemoryKind::kHost : buffer.array.kind());
  const BufferObject& copy = *object_of(copied.ptr());
  plan.device = copy.array.memory.device;
  order_pending(copy, plan);
  return export_capsule(copy.array.memory, plan);  // Takes a share of the copy's memory.
}

}  // namespace

py::object export_dlpack(PyObject* buffer, PyObject* const* arguments, Py_ssize_t count,
                         PyObject* keywords) {
  static constexpr const char* kNames[] = {"stream", "max_version", "dl_device", "copy"};
  static constexpr Signature kSignature{"__dlpack__", kNames, 0};
  PyObject* values[4] = {};
  sort_arguments(kSignature, arguments, count, keywords, values, unexpected_keyword);
  return export_as_requested(buffer, read_request(values[0], values[1], values[2], values[3]));
}

PyObject* dlpack_method(PyObject* self, PyObject* const* arguments, Py_ssize_t count,
                        PyObject* keywords) {
  return guarded([&] { return export_dlpack(self, arguments, count, keywords); });
}

PyObject* dlpack_device_method(PyObject* self, PyObject*) {
  const Device& device = object_of(self)->array.memory.device;
  return Py_BuildValue("(ii)", static_cast<int>(device.type), static_cast<int>(device.id));
}

}  // namespace gridbuf::python
