// The slots and attributes that gridbuf.Buffer and the storages share, so that both answer alike
// (benchmarks `hand-over`, `subscript`).
//
// `Object` begins with an ArrayHead. For it there are
//
//   Object* object_from<Object>(PyObject*), Object::kName: "Buffer"
//   const Extents& shape_of(const Object&)
//   py::object view_of(const Object&, const IndexMap&): another object
//   py::object element_at(const Object&, const IndexMap&): an ndarray of no dimensions, on the host
#ifndef GRIDBUF_MODULES_PYTHON_HOT_ARRAY_TYPE_H_
#define GRIDBUF_MODULES_PYTHON_HOT_ARRAY_TYPE_H_

namespace gridbuf::python {

struct ArrayHead {
  PyObject ob_base;
  PyObject* weak_references;
  [[no_unique_address]] PythonMutex
      mutex;  // of what the object remembers; no member of Array or Storage
};

/// dlpack::describe_tensor, where `strides_elements` is a member of the object.
inline absl::Status described(ArrayHead& head, const BufferDescriptor& memory,
                              Extents& strides_elements, dlpack::DLTensor& tensor) {
  const PythonLock lock(head.mutex);
  return dlpack::describe_tensor(memory, strides_elements, tensor);
}

template <class Object>
struct ArrayType {
  static Object& of(PyObject* self) { return *reinterpret_cast<Object*>(self); }

  // ---- Attributes. ----

  static PyObject* get_shape(PyObject* self, void*) {
    return guarded([&] { return from_integers(shape_of(of(self)).span()); });
  }
  static PyObject* get_ndim(PyObject* self, void*) {
    return PyLong_FromLong(shape_of(of(self)).size());
  }
  static PyObject* get_dtype(PyObject* self, void*) {
    return Py_NewRef(of(self).dtype->numpy.ptr());
  }

  // ---- Lifetime. ----

  static PyObject* refuse_new(PyTypeObject* type, PyObject*, PyObject*) {
    PyErr_Format(PyExc_TypeError, "%s cannot be called; use %s", type->tp_name, Object::kMakers);
    return nullptr;
  }
  static void deallocate(PyObject* self) {
    PyTypeObject* const type = Py_TYPE(self);
    Object& object = of(self);
    if (object.head.weak_references != nullptr) PyObject_ClearWeakRefs(self);
    std::destroy_at(&object);
    PyObject_Free(self);
    Py_DECREF(type);
  }

  // ---- Keys: integers, slices, None and `...`. ----

  static py::object subscript(const Object& object, std::span<const SubscriptItem> items) {
    const Extents& shape = shape_of(object);
    const absl::StatusOr<IndexMap> found = subscript_map(shape, items);
    if (!found.ok()) raise(found.status());
    const IndexMap& map = *found;
    const bool is_element = std::ssize(items) == shape.size() &&
                            std::all_of(items.begin(), items.end(), [](const SubscriptItem& item) {
                              return std::holds_alternative<std::int64_t>(item);
                            });
    if (!is_element) return view_of(object, map);
    const py::object everything = steal(PyTuple_New(0));
    return steal(PyObject_GetItem(element_at(object, map).ptr(), everything.ptr()));
  }
  static PyObject* item(PyObject* self, Py_ssize_t position) {
    return guarded([&] {
      const Extents& shape = shape_of(of(self));
      if (shape.empty()) raise_no_iteration();
      // Iteration ends with an IndexError, so it should be a cheap one.
      if (position < 0 || position >= shape[0]) {
        PyErr_SetString(PyExc_IndexError, "index out of range");
        throw PythonError();
      }
      const SubscriptItem item = static_cast<std::int64_t>(position);
      return subscript(of(self), std::span(&item, 1));
    });
  }
  static Py_ssize_t length(PyObject* self) {
    const Extents& shape = shape_of(of(self));
    if (!shape.empty()) return shape[0];
    PyErr_Format(PyExc_TypeError, "a 0-dimensional %s has no length; use size", Object::kName);
    return -1;
  }
  static PyObject* iterate(PyObject* self) {
    return guarded([&] {
      if (shape_of(of(self)).empty()) raise_no_iteration();
      return steal(PySeqIter_New(self));
    });
  }

 private:
  [[noreturn]] static void raise_no_iteration() {
    PyErr_Format(PyExc_TypeError, "a 0-dimensional %s cannot be iterated over; use %s[()]",
                 Object::kName, Object::kName);
    throw PythonError();
  }
};

}  // namespace gridbuf::python

#endif  // GRIDBUF_MODULES_PYTHON_HOT_ARRAY_TYPE_H_
