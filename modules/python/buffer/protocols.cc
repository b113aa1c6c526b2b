// One function per interface: asks the object, and hands its answer to the protocol's reader.

module;

#include <Python.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.python.buffer;

import gridbuf.alloc;
import gridbuf.base;
import gridbuf.device;
import gridbuf.device.registry;
import gridbuf.interface;
import gridbuf.interface.buffer;
import gridbuf.interface.dlpack;
import gridbuf.interface.numpy;
import gridbuf.layout;
import gridbuf.python.support;

namespace gridbuf::python {
namespace {

AttributeName data_interface_name("__gt_data_interface__");
AttributeName dlpack_name("__dlpack__");
AttributeName dlpack_device_name("__dlpack_device__");
AttributeName exchange_name(dlpack::kExchangeAttribute);
AttributeName array_struct_name("__array_struct__");
AttributeName array_interface_name("__array_interface__");
AttributeName cuda_array_interface_name("__cuda_array_interface__");
AttributeName value_name("value");

/// Throws Declined if a BufferError is set, else PythonError.
[[noreturn]] void raise_or_decline() {
  if (PyErr_ExceptionMatches(PyExc_BufferError) != 0) throw Declined();
  throw PythonError();
}

/// Drops a producer's memory. Its deleter may call into Python: once the interpreter has ended it
/// is left alone (DL-20), and an exception that is on its way here survives it (DP-09).
void drop_tensor(Owner* owner) {
  if (Py_IsInitialized() == 0) return;
  if (PyGILState_Check() == 0 || PyErr_Occurred() == nullptr) {
    delete owner;
    return;
  }
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  delete owner;
  PyErr_Restore(type, value, traceback);
}

Owner dropped_with_care(Owner inner) {
  auto held = std::make_unique<Owner>(std::move(inner));
  return std::shared_ptr<const void>(held.release(), [](Owner* owner) { drop_tensor(owner); });
}

Foreign foreign_of(absl::StatusOr<ImportedView> taken) {
  Foreign foreign;
  foreign.view = value_of(std::move(taken));
  foreign.view.memory.owner = dropped_with_care(std::move(foreign.view.memory.owner));
  return foreign;
}

// ---- Masked arrays are ndarrays whose mask would be lost (AI-26). ----

bool has_masked_elements(PyObject* ndarray) {
  const py::object module = steal(PyImport_ImportModule("numpy.ma"));
  const py::object is_masked = steal(PyObject_CallMethod(module.ptr(), "is_masked", "O", ndarray));
  const int masked = PyObject_IsTrue(is_masked.ptr());
  check(masked);
  return masked != 0;
}

// ---- The exchange table. ----

/// The table of exactly the object's type, not of one of its bases (DX-11); null if it has none.
const dlpack::ExchangeApi* exchange_table_of(PyObject* object) {
#if PY_VERSION_HEX >= 0x030C0000
  const py::object attributes = steal(PyType_GetDict(Py_TYPE(object)));
#else
  const py::object attributes = share(Py_TYPE(object)->tp_dict);
#endif
  PyObject* const found = PyDict_GetItemWithError(attributes.ptr(), exchange_name.get());
  if (found == nullptr) {
    if (PyErr_Occurred() != nullptr) throw PythonError();
    return nullptr;
  }
  if (PyCapsule_IsValid(found, dlpack::kExchangeCapsuleName) == 0) return nullptr;
  const void* const header = PyCapsule_GetPointer(found, dlpack::kExchangeCapsuleName);
  return dlpack::find_exchange_api(static_cast<const dlpack::ExchangeApiHeader*>(header));
}

/// The stream that the library works on; nothing for memory without streams.
std::optional<std::uint64_t> work_stream(const dlpack::ExchangeApi& table, const Device& device) {
  if (is_host_readable(device.type) && device.type != DeviceType::kCudaManaged) return std::nullopt;
  void* stream = nullptr;
  if (table.current_work_stream(static_cast<std::int32_t>(device.type), device.id, &stream) != 0) {
    raise_or_decline();
  }
  const auto handle = reinterpret_cast<std::uintptr_t>(stream);
  // A null pointer is CUDA's own name of the legacy default stream.
  return handle == 0 ? kLegacyDefaultStream : static_cast<std::uint64_t>(handle);
}

// ---- __dlpack__. ----

struct DlpackDevice {
  std::int64_t type;
  std::int64_t id;
};

/// An int, or an enum member whose value is one (DP-02).
std::optional<std::int64_t> to_device_number(PyObject* object) {
  py::object value = share(object);
  if (PyLong_Check(object) == 0) {
    value = optional_attribute(object, value_name);
    if (!value || PyLong_Check(value.ptr()) == 0) return std::nullopt;
  }
  int overflow = 0;
  const std::int64_t number = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
  return overflow == 0 ? std::optional(number) : std::nullopt;
}

DlpackDevice queried_device(PyObject* object) {
  const py::object method = optional_attribute(object, dlpack_device_name);
  if (!method) {
    check(refuse("DP-01", ErrorClass::kType,
                 {"__dlpack_device__", "missing", "offered together with __dlpack__",
                  "add the method that names the device"}));
  }
  const py::object answer = steal_or_none(PyObject_CallNoArgs(method.ptr()));
  if (!answer) raise_or_decline();
  if (PyTuple_Check(answer.ptr()) != 0 && PyTuple_GET_SIZE(answer.ptr()) == 2) {
    const auto type = to_device_number(PyTuple_GET_ITEM(answer.ptr(), 0));
    const auto id = to_device_number(PyTuple_GET_ITEM(answer.ptr(), 1));
    if (type && id) return {*type, *id};
  }
  raise(refuse("DP-02", ErrorClass::kType,
               {"what __dlpack_device__ returned", describe(answer.ptr()),
                "a tuple (device type, device id) of ints", "return a tuple such as (1, 0)"}));
}

/// The stream to pass (DP-16, DP-19); nothing for the host.
std::optional<std::int64_t> stream_to_pass(const DlpackDevice& device,
                                           const ImportOptions& options) {
  const bool has_streams = device.type == static_cast<std::int64_t>(DeviceType::kCuda) ||
                           device.type == static_cast<std::int64_t>(DeviceType::kCudaManaged);
  if (!has_streams) return std::nullopt;
  if (!options.sync) return -1;
  value_of(device_driver());  // Somebody must be able to wait.
  return static_cast<std::int64_t>(current_stream());
}

void set_keyword(const py::object& keywords, const char* name, const py::object& value) {
  check(PyDict_SetItemString(keywords.ptr(), name, value.ptr()));
}

/// Calls __dlpack__; producers of the first standard know `stream` alone (DP-14).
py::object call_dlpack(const py::object& method, const DlpackDevice& device,
                       const ImportOptions& options) {
  const py::object keywords = steal(PyDict_New());
  const py::object none = steal(PyTuple_New(0));
  if (const auto stream = stream_to_pass(device, options)) {
    set_keyword(keywords, "stream", steal(PyLong_FromLongLong(*stream)));
  }
  const py::object old = steal(PyDict_Copy(keywords.ptr()));
  set_keyword(keywords, "max_version",
              steal(Py_BuildValue("(II)", dlpack::kMajorVersion, dlpack::kMinorVersion)));
  if (!options.allow_copied) set_keyword(keywords, "copy", share(Py_False));
  py::object capsule = steal_or_none(PyObject_Call(method.ptr(), none.ptr(), keywords.ptr()));
  if (!capsule && take_error(PyExc_TypeError)) {
    capsule = steal_or_none(PyObject_Call(method.ptr(), none.ptr(), old.ptr()));
  }
  if (!capsule) raise_or_decline();
  return capsule;
}

template <class Managed>
absl::StatusOr<ImportedView> consume(PyObject* capsule, const char* name, const char* used_name) {
  auto* const managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
  // Before anything else can fail: from here on the tensor is ours alone (DP-08).
  check(PyCapsule_SetName(capsule, used_name));
  return dlpack::take(managed);
}

absl::StatusOr<ImportedView> consume_capsule(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, dlpack::kVersionedName) != 0) {
    return consume<dlpack::DLManagedTensorVersioned>(capsule, dlpack::kVersionedName,
                                                     dlpack::kUsedVersionedName);
  }
  if (PyCapsule_IsValid(capsule, dlpack::kLegacyName) != 0) {
    return consume<dlpack::DLManagedTensor>(capsule, dlpack::kLegacyName, dlpack::kUsedLegacyName);
  }
  const bool used = PyCapsule_IsValid(capsule, dlpack::kUsedVersionedName) != 0 ||
                    PyCapsule_IsValid(capsule, dlpack::kUsedLegacyName) != 0;
  return refuse(used ? "DP-05" : "DP-03", used ? ErrorClass::kBuffer : ErrorClass::kType,
                {"what __dlpack__ returned", describe(capsule),
                 used ? "a capsule that nobody has consumed yet"
                      : "a capsule named dltensor or dltensor_versioned",
                 "return a new capsule from every call"});
}

void check_taken(const ImportedView& view, const DlpackDevice& device,
                 const ImportOptions& options) {
  if (static_cast<std::int64_t>(view.memory.device.type) != device.type) {
    check(refuse("DP-04", ErrorClass::kBuffer,
                 {"the capsule's device", to_string(view.memory.device),
                  "of type " + std::to_string(device.type) + ", as __dlpack_device__ says",
                  "make the two methods agree"}));
  }
  if (view.is_copied && !options.allow_copied) {
    check(refuse("DP-21", ErrorClass::kBuffer,
                 {"the tensor", "a copy", "the object's own memory, as copy=False asks",
                  "use from_array, which copies"}));
  }
}

}  // namespace

std::optional<Foreign> through_ndarray(PyObject* object) {
  if (!is_ndarray(object)) return std::nullopt;
  if (!is_exact_ndarray(object) && has_masked_elements(object)) {
    check(refuse("AI-26", ErrorClass::kBuffer,
                 {"the array", "masked", "without masked elements, which would be read as values",
                  "fill them first: array.filled(value)"}));
  }
  const NdarrayFields fields = fields_of(object);
  Foreign foreign;
  foreign.dtype = share(fields.dtype);
  const DTypePtr dtype = record_of(fields.dtype);
  // NumPy made the strides, but anyone may have made NumPy do so: the hull is checked.
  foreign.view.memory =
      value_of(gridbuf::describe({.block = fields.first_element,
                                  .view = {.shape = fields.shape,
                                           .strides_bytes = fields.strides_bytes,
                                           .offset_bytes = 0,
                                           .itemsize_bytes = dtype->type.itemsize_bytes()},
                                  .dtype = dtype->type,
                                  .readonly = fields.readonly,
                                  .device = {},
                                  .owner = {}}));
  foreign.keep_alive = share(object);
  return foreign;
}

std::optional<Foreign> through_data_interface(PyObject* object, const ImportOptions& options) {
  const py::object dict = optional_attribute(object, data_interface_name);
  if (!dict) return std::nullopt;
  if (options.acquired) {
    return read_acquired_dict(dict.ptr(), object, options.side.value_or(DeviceType::kHost));
  }
  const std::optional<DeviceType> side = options.side;
  const bool has_wanted = side && PyDict_Check(dict.ptr()) != 0 && has_entry(dict.ptr(), *side);
  return read_data_dict(dict.ptr(), object, has_wanted ? side : std::nullopt, object);
}

std::optional<Foreign> through_exchange_table(PyObject* object) {
  const dlpack::ExchangeApi* const table = exchange_table_of(object);
  if (table == nullptr) return std::nullopt;
  dlpack::DLManagedTensorVersioned* managed = nullptr;
  if (table->managed_tensor_from_py_object_no_sync(object, &managed) != 0) {
    if (PyErr_Occurred() == nullptr) {
      raise(refuse("DX-05", ErrorClass::kBuffer,
                   {"the exchange table's export", "-1", "accompanied by a Python exception",
                    "report it to the library that made the array"}));
    }
    raise_or_decline();
  }
  Foreign foreign = foreign_of(dlpack::take(managed));
  foreign.view.stream = work_stream(*table, foreign.view.memory.device);
  return foreign;
}

std::optional<Foreign> through_buffer(PyObject* object) {
  if (PyObject_CheckBuffer(object) == 0) return std::nullopt;
  // Holds the Py_buffer and gives it back when it goes (PB-24, PB-35).
  ShieldedRef view = steal_or_none(PyMemoryView_FromObject(object));
  if (!view) raise_or_decline();
  const Py_buffer& found = *PyMemoryView_GET_BUFFER(view.ptr());
  ForeignBuffer buffer{.buf = found.buf,
                       .len_bytes = found.len,
                       .itemsize_bytes = found.itemsize,
                       .readonly = found.readonly != 0,
                       .ndim = found.ndim,
                       .format = std::nullopt,
                       .shape = found.shape,
                       .strides_bytes = found.strides,
                       .suboffsets = found.suboffsets};
  if (found.format != nullptr) buffer.format = found.format;
  Foreign foreign;
  foreign.view = value_of(read_buffer(buffer));
  if (foreign.view.memory.dtype.kind() == Kind::kStructured) {
    const py::object array = as_ndarray(view.ptr());  // NumPy reads formats with fields.
    foreign.dtype = share(fields_of(array.ptr()).dtype);
  }
  foreign.keep_alive = std::move(view);
  return foreign;
}

std::optional<Foreign> through_dlpack(PyObject* object, const ImportOptions& options) {
  const py::object method = optional_attribute(object, dlpack_name);
  if (!method) return std::nullopt;
  const DlpackDevice device = queried_device(object);
  const ShieldedRef capsule = call_dlpack(method, device, options);
  Foreign foreign = foreign_of(consume_capsule(capsule.ptr()));
  check_taken(foreign.view, device, options);
  return foreign;
}

std::optional<Foreign> through_array_struct(PyObject* object) {
  const ShieldedRef capsule = optional_attribute(object, array_struct_name);
  if (!capsule) return std::nullopt;
  return read_struct_capsule(capsule.ptr(), object);
}

std::optional<Foreign> through_array_interface(PyObject* object) {
  const py::object dict = optional_attribute(object, array_interface_name);
  if (!dict) return std::nullopt;
  return read_array_dict(dict.ptr(), object);
}

std::optional<Foreign> through_cuda_array_interface(PyObject* object) {
  const py::object dict = optional_attribute(object, cuda_array_interface_name);
  if (!dict) return std::nullopt;
  return read_cuda_dict(dict.ptr(), object);
}

}  // namespace gridbuf::python
