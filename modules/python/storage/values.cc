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

import gridbuf.alloc.device;
import gridbuf.alloc;
import gridbuf.base;
import gridbuf.interface;
import gridbuf.layout;
import gridbuf.python.arguments;
import gridbuf.python.buffer;
import gridbuf.python.elements;
import gridbuf.python.numpy;
import gridbuf.python.object;
import gridbuf.python.request;
import gridbuf.storage;

namespace gridbuf::python::storages {
namespace {

/// The elements as an ndarray that the caller may keep while the storage goes on.
Ref elements_of(PyObject* self) {
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
    const Ref element = Ref::steal(PyObject_CallMethod(elements_of(self).get(), "item", nullptr));
    return Ref::steal(conversion(element.get()));
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
  order.request.plan = value_of(make_plan({.shape = storage.shape(),
                                           .itemsize_bytes = dtype->type.itemsize_bytes(),
                                           .layout = storage.layout(),
                                           .alignment_bytes = storage.alignment_bytes(),
                                           .aligned_index = storage.aligned_index(),
                                           .dtype_name = dtype->name}));
  order.request.dims = storage.dims();
  order.request.halo = storage.halo();
  order.request.dtype = dtype;
  return order;
}

}  // namespace

Ref element_of(const StorageObject& object, const Storage& view) {
  const Ref element = host_elements(object, view);
  const Ref everything = Ref::steal(PyTuple_New(0));
  return Ref::steal(PyObject_GetItem(element.get(), everything.get()));
}

PyObject* item_method(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
  return guarded([&] {
    const StorageObject& object = *object_of(self);
    // With a full set of indices only that element is fetched.
    if (count == object.storage.ndim() && count > 0) {
      std::vector<SubscriptItem> items;
      for (Py_ssize_t i = 0; i < count; ++i) items.push_back(to_integer(arguments[i], "index"));
      const IndexMap map = value_of(subscript_map(object.storage.shape(), items));
      const Ref element = host_elements(object, object.storage.view(map));
      return Ref::steal(PyObject_CallMethod(element.get(), "item", nullptr));
    }
    const Ref method = Ref::steal(PyObject_GetAttrString(elements_of(self).get(), "item"));
    return Ref::steal(
        PyObject_Vectorcall(method.get(), arguments, static_cast<std::size_t>(count), nullptr));
  });
}

PyObject* tolist_method(PyObject* self, PyObject*) {
  return guarded([&] {
    if (!object_of(self)->storage.has(Side::kHost))
      return Ref::steal(to_numpy_method(self, nullptr));
    return Ref::steal(PyObject_CallMethod(elements_of(self).get(), "tolist", nullptr));
  });
}

PyObject* fill_method(PyObject* self, PyObject* value) {
  const Ref key = Ref::share(Py_Ellipsis);
  if (is_scalar(value)) {
    if (assign_subscript_slot(self, key.get(), value) < 0) return nullptr;
    Py_RETURN_NONE;
  }
  return guarded([&] {
    raise(ErrorClass::kType, Problem{"value", describe(value), "one value",
                                     "assign arrays with storage[...] = value"});
    return Ref();
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
    return Ref::steal(convert(self, PyNumber_Index));
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
    const int truth = PyObject_IsTrue(elements_of(self).get());
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
    const bool is_same = wanted.record->numpy.get() == object.dtype->numpy.get();
    if (is_same && values[2] != nullptr && !to_flag(values[2], "copy")) return Ref::share(self);
    if (is_same) return Ref::steal(copy_method(self, nullptr));
    check_cast(object.dtype->numpy.get(), wanted.record->numpy.get(), to_casting(values[1]));
    const StorageOrder order = order_like(object, wanted.record);
    Ref made = allocate_storage(order, has_padding(order));
    assign(*object_of(made.get()), object_of(made.get())->storage, elements_of(self).get());
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
Ref pickled_elements(PyObject* self, std::int64_t protocol) {
  const Ref elements = elements_of(self);
  const StorageObject& object = *object_of(self);
  const bool in_place = protocol >= 5 &&
                        is_c_contiguous(object.storage.memory(reading_side(object.storage)).view) &&
                        object.dtype->type.format() != nullptr;
  if (in_place) return Ref::steal(PyPickleBuffer_FromObject(elements.get()));
  const StridedView& view = object.storage.memory(reading_side(object.storage)).view;
  const Layout dense =
      value_of(make_plan({.shape = view.shape, .itemsize_bytes = view.itemsize_bytes}));
  Ref bytes = Ref::steal(PyBytes_FromStringAndSize(nullptr, object.storage.nbytes()));
  const NdarrayFields fields = fields_of(elements.get());
  copy_memory(reinterpret_cast<std::byte*>(PyBytes_AS_STRING(bytes.get())), dense.view(),
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
    const Ref core = Ref::steal(PyImport_ImportModule("gridbuf._core"));
    const Ref restore = Ref::steal(PyObject_GetAttrString(core.get(), "_restore_storage"));
    const Ref all = Ref::steal(PyObject_GetAttrString(self, "_parameters"));
    const Ref parameters = Ref::steal(PyTuple_GetSlice(all.get(), 0, kPickledParameters));
    const Ref elements = pickled_elements(self, version);
    return Ref::steal(Py_BuildValue("(O(OO))", restore.get(), parameters.get(), elements.get()));
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
    Ref made = allocate_storage(order, has_padding(order));
    const StorageObject& object = *object_of(made.get());
    // NumPy checks the length; a wrong one is its ValueError.
    const Ref numpy = Ref::steal(PyImport_ImportModule("numpy"));
    const Ref flat = Ref::steal(PyObject_CallMethod(numpy.get(), "frombuffer", "OO", arguments[1],
                                                    object.dtype->numpy.get()));
    const Ref shape = from_integers(object.storage.shape().span());
    const Ref elements = Ref::steal(PyObject_CallMethod(flat.get(), "reshape", "(O)", shape.get()));
    assign(object, object.storage, elements.get());
    return made;
  });
}

}  // namespace gridbuf::python::storages
