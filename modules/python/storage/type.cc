// The base type of storages: lifetime, classes, indexing, and the arrays that the functions of
// gridbuf.storage, written in Python, compute on.

module;

#include <pybind11/gil_simple.h>
#include <pybind11/pytypes.h>
#include <structmember.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "modules/python/arguments/docstrings.h"

module gridbuf.python;

namespace gridbuf::python::storages {
namespace {

using Type = ArrayType<StorageObject>;

std::array<PyTypeObject*, 4> types_by_kind = {};  // registered by gridbuf.storage

// ---- Attributes that arithmetic and hand-overs ask for. ----

/// Arithmetic asks for them at every expression.
PyObject* get_parameters(PyObject* self, void*) {
  return guarded([&] {
    StorageObject& object = *object_of(self);
    const auto remembered = [&] {
      const PythonLock lock(object.head.mutex);
      return share(object.parameters.ptr());
    };
    if (py::object found = remembered()) return found;
    const Storage& seen = object.storage();
    py::object made = parameters_of(object);
    const PythonLock lock(object.head.mutex);
    const bool is_new = !object.parameters && &seen == &object.storage();
    if (is_new) object.parameters = made;
    return made;
  });
}

PyGetSetDef getters[] = {
    {"shape", Type::get_shape, nullptr, doc("StorageBase.shape"), nullptr},
    {"ndim", Type::get_ndim, nullptr, doc("StorageBase.ndim"), nullptr},
    {"dtype", Type::get_dtype, nullptr, doc("StorageBase.dtype"), nullptr},
    {"_parameters", get_parameters, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

// ---- Basic keys: integers, slices, None and `...`; views. ----

AttributeName interface_names[] = {
    AttributeName("__array_interface__"), AttributeName("__dlpack__"),
    AttributeName("__cuda_array_interface__"), AttributeName("__gt_data_interface__")};

/// Whether an object that can be an integer is an array as well: then it is a list of indices.
bool is_array_like(PyObject* object) {
  if (is_ndarray(object) || is_storage(object) || is_buffer(object)) return true;
  if (is_scalar(object)) return false;
  return std::any_of(
      std::begin(interface_names), std::end(interface_names),
      [object](AttributeName& name) { return bool(optional_attribute(object, name)); });
}

bool is_basic_item(PyObject* item) {
  if (PyLong_CheckExact(item) != 0 || PySlice_Check(item) != 0) return true;
  if (item == Py_None || item == Py_Ellipsis) return true;
  if (PyBool_Check(item) != 0 || PyIndex_Check(item) == 0) return false;
  // A bool of NumPy's selects or adds a dimension, as in NumPy.
  const std::string_view type = Py_TYPE(item)->tp_name;
  return !type.starts_with("numpy.bool") && !is_array_like(item);
}

bool is_basic(PyObject* key) {
  if (PyTuple_CheckExact(key) == 0) return PyDict_Check(key) != 0 || is_basic_item(key);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); ++i) {
    if (!is_basic_item(PyTuple_GET_ITEM(key, i))) return false;
  }
  return true;
}

// ---- All other keys: NumPy's business. ----

/// What NumPy can index with, in place of an object with an interface.
py::object plain_item(PyObject* item) {
  const bool is_numpys = is_basic_item(item) || PyList_Check(item) != 0 || is_scalar(item) ||
                         PyBool_Check(item) != 0 || PyTuple_Check(item) != 0;
  return is_numpys ? share(item) : readable_on_host(item);
}

/// The key with what `make` makes of each item.
template <class Make>
py::object each_item(PyObject* key, const Make& make) {
  if (PyTuple_Check(key) == 0) return make(key);
  return tuple_of(PyTuple_GET_SIZE(key),
                  [&](Py_ssize_t i) { return make(PyTuple_GET_ITEM(key, i)); });
}

/// `object`, or a copy of an ndarray that may share memory with `target`: NumPy reads an index
/// while it writes, and does not look for an overlap.
py::object apart_from(const py::object& target, PyObject* object) {
  if (!is_ndarray(object)) return share(object);
  const py::object numpy = steal(PyImport_ImportModule("numpy"));
  const py::object shares =
      steal(PyObject_CallMethod(numpy.ptr(), "may_share_memory", "OO", target.ptr(), object));
  if (shares.ptr() != Py_True) return share(object);
  return steal(PyObject_CallMethod(object, "copy", nullptr));
}

/// The selected elements, as a new ndarray.
py::object pick(const StorageObject& object, PyObject* key) {
  const py::object plain = each_item(key, plain_item);
  const py::object elements = host_elements(object, object.storage());
  py::object picked = steal(PyObject_GetItem(elements.ptr(), plain.ptr()));
  const bool is_view = is_ndarray(picked.ptr()) && fields_of(picked.ptr()).base != nullptr;
  if (!is_view) return picked;
  return steal(PyObject_CallMethod(picked.ptr(), "copy", nullptr));
}

/// elements[key] = value on the host; elements that it does not read are copied there and back.
void put(const StorageObject& object, PyObject* key, PyObject* value) {
  const Storage& storage = object.storage();
  const py::object plain = each_item(key, plain_item);
  const py::object source = readable_on_host(value);
  const Side side = reading_side(storage);
  const auto set = [&](const py::object& elements) {
    const auto apart = [&](PyObject* object) { return apart_from(elements, object); };
    const py::object index = each_item(plain.ptr(), apart);
    check(PyObject_SetItem(elements.ptr(), index.ptr(), apart(source.ptr()).ptr()));
  };
  const py::object memory = own_buffer(storage, object.dtype, side);
  py::object copied;
  if (side == Side::kDevice) {
    up_to_date(storage, side);
    copied = copy_of(memory.ptr(), MemoryKind::kHost);
    set(ndarray_of(copied.ptr()));
  }
  write(object, storage, side, Coverage::kPart, [&] {
    if (side == Side::kDevice) return copy_buffer(memory.ptr(), copied.ptr());
    set(own_ndarray(storage, object.dtype, /*readonly=*/false, memory.ptr()));
  });
}

PyObject* subscript_slot(PyObject* self, PyObject* key) {
  return guarded([&] {
    const StorageObject& object = *object_of(self);
    if (!is_basic(key)) return pick(object, key);
    return Type::subscript(object, to_subscript(key, object.storage().dims()));
  });
}

int assign_subscript_slot(PyObject* self, PyObject* key, PyObject* value) {
  return guarded(-1, [&] {
    const StorageObject& object = *object_of(self);
    if (value == nullptr) {
      raise(ErrorClass::kValue, "elements of a storage cannot be deleted; assign to them");
    }
    check_writable(object);
    if (!is_basic(key)) {
      put(object, key, value);
      return 0;
    }
    const std::vector<SubscriptItem> items = to_subscript(key, object.storage().dims());
    const IndexMap map = value_of(subscript_map(object.storage().shape(), items));
    assign(object, object.storage().view(map), value);
    return 0;
  });
}

PyMethodDef methods[] = {
    {"__dlpack__", method(dlpack_method), METH_FASTCALL | METH_KEYWORDS,
     doc("StorageBase.__dlpack__")},
    {"__dlpack_device__", dlpack_device_method, METH_NOARGS, doc("StorageBase.__dlpack_device__")},
    {nullptr, nullptr, 0, nullptr},
};

/// Classes of Python have their objects traversed. Nothing else here can lead back to the object:
/// views share the hooks of a producer.
int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  return 0;
}

PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(ArrayHead, weak_references), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyType_Slot slots[] = {
    {Py_tp_doc, const_cast<char*>(doc("StorageBase"))},
    {Py_tp_new, reinterpret_cast<void*>(Type::refuse_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(Type::deallocate)},
    {Py_tp_getset, getters},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
    {Py_tp_iter, reinterpret_cast<void*>(Type::iterate)},
    {Py_bf_getbuffer, reinterpret_cast<void*>(Type::get_buffer)},
    {Py_bf_releasebuffer, reinterpret_cast<void*>(release_buffer)},
    {Py_mp_subscript, reinterpret_cast<void*>(subscript_slot)},
    {Py_mp_ass_subscript, reinterpret_cast<void*>(assign_subscript_slot)},
    {Py_mp_length, reinterpret_cast<void*>(Type::length)},
    {Py_sq_item, reinterpret_cast<void*>(Type::item)},
    {Py_sq_length, reinterpret_cast<void*>(Type::length)},
    {0, nullptr},
};

PyType_Spec spec = {
    .name = "gridbuf._core.StorageBase",
    .basicsize = sizeof(StorageObject),
    .itemsize = 0,
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};

}  // namespace

PyTypeObject* type_of(StorageKind kind) {
  PyTypeObject* const type = types_by_kind[static_cast<std::size_t>(kind)];
  if (type != nullptr) return type;
  // C++ code below may make a storage before the package is imported.
  steal(PyImport_ImportModule("gridbuf.storage"));
  return types_by_kind[static_cast<std::size_t>(kind)];
}

void check_writable(const StorageObject& object) {
  if (!object.storage().readonly()) return;
  raise(ErrorClass::kValue,
        "this storage is read-only, as the memory that it wraps is; assign to a copy()");
}

void set_storage_types(const py::args& classes) {
  if (classes.size() != types_by_kind.size() || types_by_kind[0] != nullptr) {
    raise(ErrorClass::kType, "_set_storage_types() is called once, with four classes");
  }
  const py::object table = make_storage_exchange_capsule();
  for (std::size_t kind = 0; kind < types_by_kind.size(); ++kind) {
    PyObject* const item = PyTuple_GET_ITEM(classes.ptr(), static_cast<Py_ssize_t>(kind));
    // On exactly each type, because a table is for one type only (DX-01, DX-11).
    check(PyObject_SetAttrString(item, dlpack::kExchangeAttribute, table.ptr()));
    auto* const type = reinterpret_cast<PyTypeObject*>(Py_NewRef(item));
    type->tp_flags = (type->tp_flags | Py_TPFLAGS_IMMUTABLETYPE) & ~Py_TPFLAGS_BASETYPE;
    PyType_Modified(type);
    types_by_kind[kind] = type;
  }
}

StorageObject* object_of(PyObject* storage) { return reinterpret_cast<StorageObject*>(storage); }

py::object view_of(const StorageObject& parent, const IndexMap& map) {
  return make_view(parent, [&] { return parent.storage().view(map); });
}

py::object element_at(const StorageObject& object, const IndexMap& map) {
  return host_elements(object, object.storage().view(map));
}

py::object device_of(const Storage& storage) {
  return storage.has(Side::kDevice) ? make_text(kGpuKey) : share(Py_None);
}

py::object managed_by(const Storage& storage) {
  if (storage.kind() == StorageKind::kSoftwareManaged) return make_text("gt4py");
  return storage.kind() == StorageKind::kCudaManaged ? make_text("cuda") : share(Py_None);
}

}  // namespace gridbuf::python::storages

namespace gridbuf::python {

void add_storage_types(PyObject* module) {
  using namespace storages;
  const py::object type = steal(PyType_FromSpec(&spec));
  add_attributes(type.ptr(), module);
  check(PyModule_AddObjectRef(module, "StorageBase", type.ptr()));
  add_storage_functions(module);
  add_parameters_type(module);
}

py::object from_halo(const Halo& halo) {
  return tuple_of(halo.size(), [&](Py_ssize_t axis) {
    const std::int64_t pair[] = {halo[axis].lower, halo[axis].upper};
    return from_integers(pair);
  });
}

bool is_storage(PyObject* object) {
  PyTypeObject* const type = Py_TYPE(object);
  return std::any_of(storages::types_by_kind.begin(), storages::types_by_kind.end(),
                     [type](const PyTypeObject* known) { return type == known; });
}

py::object side_buffer(PyObject* storage, Side side, Purpose purpose) {
  const storages::StorageObject& object = *storages::object_of(storage);
  const Side found = object.storage().has(side) ? side : other(side);
  if (purpose == Purpose::kSharing) return storages::shown_buffer(object, found);
  if (purpose == Purpose::kReading) storages::up_to_date(object.storage(), found);
  return storages::own_buffer(object.storage(), object.dtype, found);
}

void touch_storage(PyObject* storage, const Extents& written, Side side) {
  const auto& touch = storages::object_of(storage)->touch;
  if (touch == nullptr || is_empty(written)) return;
  const py::object& hook = side == Side::kHost ? touch->host : touch->device;
  if (hook) steal(PyObject_CallNoArgs(hook.ptr()));
}

const Storage& storage_of(PyObject* object) { return storages::object_of(object)->storage(); }

py::object make_storage(Storage&& storage, const DTypePtr& dtype) {
  return storages::make_object(storage.kind(), dtype, [&] { return std::move(storage); });
}

}  // namespace gridbuf::python

namespace gridbuf::python::storages {
namespace {

/// The key of a side in Python: "host" or "device".
Side to_side(PyObject* object) {
  if (PyUnicode_Check(object) != 0) {
    if (utf8(object) == "host") return Side::kHost;
    if (utf8(object) == "device") return Side::kDevice;
  }
  raise(ErrorClass::kValue,
        Problem{"side", describe(object), "\"host\" or \"device\"", "pass one of the two"});
}

/// The storage with the dimensions of `dims`, which include all of its dimensions; None: the
/// storage itself.
Storage seen_as(const Storage& storage, PyObject* dims) {
  if (dims == Py_None) return storage;
  const Py_ssize_t count = PySequence_Size(dims);
  if (count < 0) throw PythonError();
  const Dims target = to_dims(dims, static_cast<int>(count));
  return storage.view(
      value_of(named_map({.dims = storage.dims(), .shape = storage.shape()}, target)));
}

/// An array of a side, not watched: NumPy's, or CuPy's on a real device. Of the emulated device it
/// is an ndarray that only a kernel can touch.
py::object array_of(const StorageObject& object, const Storage& seen, Side side, bool readonly) {
  const py::object buffer = own_buffer(seen, object.dtype, side);
  const BufferDescriptor& memory = array_in(buffer.ptr()).memory();
  if (side == Side::kHost || seen.is_emulated()) {
    return make_ndarray(*object.dtype, memory.view, memory.first_element(),
                        readonly || memory.readonly, buffer.ptr());
  }
  return make_cupy_view(buffer, /*sync=*/true);
}

}  // namespace

py::object read_array(const StorageObject& object, py::handle side_name, py::handle dims) {
  const Side side = to_side(side_name.ptr());
  const Storage seen = seen_as(object.storage(), dims.ptr());
  up_to_date(object.storage(), side);
  return array_of(object, seen, side, /*readonly=*/true);
}

py::object write_array(const StorageObject& object, py::handle side_name, py::handle dims,
                       bool whole) {
  const Storage& storage = object.storage();
  const Side side = to_side(side_name.ptr());
  if (storage.readonly()) raise(ErrorClass::kValue, "output storage is read-only");
  const Storage seen = seen_as(storage, dims.ptr());
  check(run_unlocked(storage, [&] {
    return storage.begin_write(side, whole ? Coverage::kAll : Coverage::kPart);
  }));
  try {
    return array_of(object, seen, side, /*readonly=*/false);
  } catch (...) {
    storage.end_write(side);
    throw;
  }
}

void end_write(const StorageObject& object, py::handle side_name) {
  const Side side = to_side(side_name.ptr());
  object.storage().end_write(side);
  touch_storage(object.self(), object.storage().shape(), side);
}

}  // namespace gridbuf::python::storages
