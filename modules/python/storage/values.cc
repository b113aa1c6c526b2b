// Elements as Python's and NumPy's values; copies, conversions, pickles.

module;

#include <Python.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.python.storage;

import gridbuf.alloc;
import gridbuf.base;
import gridbuf.device;
import gridbuf.interface;
import gridbuf.layout;
import gridbuf.python.buffer;
import gridbuf.python.support;
import gridbuf.storage;

namespace gridbuf::python::storages {
namespace {

/// The elements as an ndarray that the caller may keep while the storage goes on.
py::object elements_of(PyObject* self) {
  const StorageObject& object = *object_of(self);
  return host_elements(object, object.storage);
}

/// Of one element: what NumPy's array of it answers to float() and so on, its errors included.
PyObject* convert(PyObject* self, PyObject* (*conversion)(PyObject*)) {
  return guarded([&] {
    const StorageObject& object = *object_of(self);
    // Elements beyond the first are not fetched for an error.
    if (object.storage.nbytes() != object.dtype->type.itemsize_bytes()) {
      raise(ErrorClass::kType, Problem{"the storage's shape", to_string(object.storage.shape()),
                                       "that of one element", "index it, or use to_numpy()"});
    }
    const py::object element = steal(PyObject_CallMethod(elements_of(self).ptr(), "item", nullptr));
    return steal(conversion(element.ptr()));
  });
}

PyObject* to_complex(PyObject* number) {
  return PyObject_CallOneArg(reinterpret_cast<PyObject*>(&PyComplex_Type), number);
}

/// The parameters of an object, as a request for another one like it.
StorageOrder order_like(const StorageObject& object, const DTypePtr& dtype) {
  const Storage& storage = object.storage;
  StorageOrder order;
  order.kind = storage.kind();
  order.request.layout = value_of(make_plan({.shape = storage.shape(),
                                             .itemsize_bytes = dtype->type.itemsize_bytes(),
                                             .layout = storage.layout(),
                                             .alignment_bytes = storage.alignment_bytes(),
                                             .aligned_index = storage.aligned_index(),
                                             .dims = storage.dims(),
                                             .halo = storage.halo(),
                                             .dtype_name = dtype->name}));
  order.request.dtype = dtype;
  return order;
}

}  // namespace

py::object element_of(const StorageObject& object, const Storage& view) {
  const py::object element = host_elements(object, view);
  const py::object everything = steal(PyTuple_New(0));
  return steal(PyObject_GetItem(element.ptr(), everything.ptr()));
}

PyObject* item_method(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
  return guarded([&] {
    const StorageObject& object = *object_of(self);
    // With a full set of indices only that element is fetched.
    if (count == object.storage.ndim() && count > 0) {
      std::vector<SubscriptItem> items;
      for (Py_ssize_t i = 0; i < count; ++i) items.push_back(to_integer(arguments[i], "index"));
      const IndexMap map = value_of(subscript_map(object.storage.shape(), items));
      const py::object element = host_elements(object, object.storage.view(map));
      return steal(PyObject_CallMethod(element.ptr(), "item", nullptr));
    }
    const py::object method = steal(PyObject_GetAttrString(elements_of(self).ptr(), "item"));
    return steal(
        PyObject_Vectorcall(method.ptr(), arguments, static_cast<std::size_t>(count), nullptr));
  });
}

PyObject* tolist_method(PyObject* self, PyObject*) {
  return guarded([&] {
    if (!object_of(self)->storage.has(Side::kHost)) return steal(to_numpy_method(self, nullptr));
    return steal(PyObject_CallMethod(elements_of(self).ptr(), "tolist", nullptr));
  });
}

PyObject* fill_method(PyObject* self, PyObject* value) {
  const py::object key = share(Py_Ellipsis);
  if (is_scalar(value)) {
    if (assign_subscript_slot(self, key.ptr(), value) < 0) return nullptr;
    Py_RETURN_NONE;
  }
  return guarded([&] {
    raise(ErrorClass::kType, Problem{"value", describe(value), "one value",
                                     "assign arrays with storage[...] = value"});
    return py::object();
  });
}

PyObject* float_slot(PyObject* self) { return convert(self, PyNumber_Float); }
PyObject* int_slot(PyObject* self) { return convert(self, PyNumber_Long); }
PyObject* complex_method(PyObject* self, PyObject*) { return convert(self, to_complex); }

PyObject* index_slot(PyObject* self) {
  return guarded([&] {
    const StorageObject& object = *object_of(self);
    // As in NumPy: an array of one element that has a dimension is no index.
    const Kind kind = object.dtype->type.kind();
    if (object.storage.ndim() != 0 || (kind != Kind::kInt && kind != Kind::kUint)) {
      raise(ErrorClass::kType, "only integer storages without dimensions can be an index");
    }
    return steal(convert(self, PyNumber_Index));
  });
}

int bool_slot(PyObject* self) {
  return guarded(-1, [&] {
    const StorageObject& object = *object_of(self);
    if (object.storage.nbytes() != object.dtype->type.itemsize_bytes()) {
      raise(ErrorClass::kValue,
            "the truth value of a storage with other than one element is ambiguous; use numpy.any "
            "or numpy.all");
    }
    const int truth = PyObject_IsTrue(elements_of(self).ptr());
    check(truth);
    return truth;
  });
}

// ---- Copies. ----

PyObject* copy_method(PyObject* self, PyObject*) {
  return guarded([&] {
    const StorageObject& object = *object_of(self);
    const Storage source = object.storage;  // Of its own: the halo may be set meanwhile.
    return make_storage(value_of(run_without_gil([&] { return source.copy(); })), object.dtype);
  });
}

PyObject* deepcopy_method(PyObject* self, PyObject* /*memo*/) { return copy_method(self, nullptr); }

PyObject* astype_method(PyObject* self, PyObject* const* arguments, Py_ssize_t count,
                        PyObject* names) {
  return guarded([&] {
    static constexpr const char* kNames[] = {"dtype", "casting", "copy"};
    static constexpr Signature kSignature{"astype", kNames, 1};
    PyObject* values[3] = {};
    sort_arguments(kSignature, arguments, count, names, values, unexpected_keyword);
    if (values[0] == nullptr) raise(ErrorClass::kType, "astype() needs a dtype; pass the new one");
    const StorageObject& object = *object_of(self);
    const RequestedDType wanted = to_dtype(values[0]);
    if (!wanted.subarray.empty()) {
      raise(ErrorClass::kType,
            Problem{"dtype", describe(values[0]), "a type without a shape", "pass its base type"});
    }
    const bool is_same = wanted.record->numpy.ptr() == object.dtype->numpy.ptr();
    if (is_same && values[2] != nullptr && !to_flag(values[2], "copy")) return share(self);
    if (is_same) return steal(copy_method(self, nullptr));
    check_cast(object.dtype->numpy.ptr(), wanted.record->numpy.ptr(), to_casting(values[1]));
    const StorageOrder order = order_like(object, wanted.record);
    py::object made = allocate_storage(order, has_padding(order));
    assign(*object_of(made.ptr()), object_of(made.ptr())->storage, elements_of(self).ptr());
    return made;
  });
}

// ---- Pickles. ----

namespace {

/// `_parameters` without its last entry: an axis that None has put in is an ordinary one
/// afterwards.
constexpr Py_ssize_t kPickledParameters = 9;

/// The elements in row-major order, without padding; from protocol 5 on without copying if they lie
/// like that.
py::object pickled_elements(PyObject* self, std::int64_t protocol) {
  const py::object elements = elements_of(self);
  const StorageObject& object = *object_of(self);
  const bool in_place = protocol >= 5 &&
                        is_c_contiguous(object.storage.memory(reading_side(object.storage)).view) &&
                        object.dtype->type.format() != nullptr;
  if (in_place) return steal(PyPickleBuffer_FromObject(elements.ptr()));
  const StridedView& view = object.storage.memory(reading_side(object.storage)).view;
  const Layout dense =
      value_of(make_plan({.shape = view.shape, .itemsize_bytes = view.itemsize_bytes}));
  py::object bytes = steal(PyBytes_FromStringAndSize(nullptr, object.storage.nbytes()));
  const NdarrayFields fields = fields_of(elements.ptr());
  copy_memory(reinterpret_cast<std::byte*>(PyBytes_AS_STRING(bytes.ptr())), dense.view(),
              fields.first_element,
              {.shape = fields.shape,
               .strides_bytes = fields.strides_bytes,
               .itemsize_bytes = view.itemsize_bytes});
  return bytes;
}

}  // namespace

PyObject* reduce_method(PyObject* self, PyObject* protocol) {
  return guarded([&] {
    const std::int64_t version = to_integer(protocol, "protocol");
    const py::object core = steal(PyImport_ImportModule("gridbuf._core"));
    const py::object restore = steal(PyObject_GetAttrString(core.ptr(), "_restore_storage"));
    const py::object all = steal(PyObject_GetAttrString(self, "_parameters"));
    const py::object parameters = steal(PyTuple_GetSlice(all.ptr(), 0, kPickledParameters));
    const py::object elements = pickled_elements(self, version);
    return steal(Py_BuildValue("(O(OO))", restore.ptr(), parameters.ptr(), elements.ptr()));
  });
}

PyObject* restore_storage(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  return guarded([&] {
    // What a pickle holds is checked like any other arguments: it may come from anywhere.
    if (count != 2 || PyTuple_Check(arguments[0]) == 0 ||
        PyTuple_GET_SIZE(arguments[0]) != kPickledParameters) {
      raise(ErrorClass::kType,
            "_restore_storage() takes parameters and elements; it is for "
            "unpickling alone");
    }
    const auto parameter = [&](Py_ssize_t i) { return PyTuple_GET_ITEM(arguments[0], i); };
    const StorageKeywords keywords{.shared = {.device = parameter(7),
                                              .layout = parameter(4),
                                              .alignment_size = parameter(5),
                                              .aligned_index = parameter(3),
                                              .dims = parameter(0),
                                              .halo = parameter(2)},
                                   .managed = parameter(8)};
    const StorageOrder order = resolve_storage(parameter(1), parameter(6), keywords);
    py::object made = allocate_storage(order, has_padding(order));
    const StorageObject& object = *object_of(made.ptr());
    // NumPy checks the length; a wrong one is its ValueError.
    const py::object numpy = steal(PyImport_ImportModule("numpy"));
    const py::object flat = steal(PyObject_CallMethod(numpy.ptr(), "frombuffer", "OO", arguments[1],
                                                      object.dtype->numpy.ptr()));
    const py::object shape = from_integers(object.storage.shape().span());
    const py::object elements =
        steal(PyObject_CallMethod(flat.ptr(), "reshape", "(O)", shape.ptr()));
    assign(object, object.storage, elements.ptr());
    return made;
  });
}

}  // namespace gridbuf::python::storages
