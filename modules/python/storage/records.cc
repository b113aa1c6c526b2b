// `WriteRecord`: what was written to a storage since it was last taken; for gridbuf.mpi.

module;

#include <Python.h>

#include <cstdint>
#include <memory>
#include <new>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"

module gridbuf.python.storage;

import gridbuf.alloc.device;
import gridbuf.base;
import gridbuf.interface;
import gridbuf.layout;
import gridbuf.python.arguments;
import gridbuf.python.buffer;
import gridbuf.python.numpy;
import gridbuf.python.object;
import gridbuf.storage;

namespace gridbuf::python::storages {
namespace {

struct RecordObject {
  PyObject ob_base;
  std::unique_ptr<WriteRecord> record;
  std::vector<Box> parts;
};

PyTypeObject* record_type = nullptr;  // made once, kept for good

RecordObject* record_object_of(PyObject* self) { return reinterpret_cast<RecordObject*>(self); }

WriteRecord& to_record(PyObject* object) {
  if (Py_TYPE(object) == record_type) return *record_object_of(object)->record;
  raise(ErrorClass::kType, Problem{"the record", describe(object), "a WriteRecord",
                                   "pass what _record_writes() returned"});
}

const StorageObject& to_storage(PyObject* object) {
  if (is_storage(object)) return *object_of(object);
  raise(ErrorClass::kType,
        Problem{"the field", describe(object), "a gridbuf.storage.Storage", "wrap the array"});
}

PyObject* refuse_new(PyTypeObject*, PyObject*, PyObject*) {
  PyErr_SetString(PyExc_TypeError, "WriteRecord cannot be called; _record_writes() makes it");
  return nullptr;
}

void deallocate(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  std::destroy_at(&record_object_of(self)->parts);
  std::destroy_at(&record_object_of(self)->record);
  PyObject_Free(self);
  Py_DECREF(type);
}

// ---- Boxes: tuples of slices, one per dimension. ----

Box to_box(PyObject* object, const Extents& shape) {
  const std::vector<SubscriptItem> items = to_subscript(object);
  Box box;
  for (const SubscriptItem& item : items) {
    const Slice* const slice = std::get_if<Slice>(&item);
    const int axis = box.lower.size();
    if (slice == nullptr || slice->step != 1 || axis == shape.size()) break;
    const SlicePoints points = slice_points(*slice, shape[axis]);
    box.lower.push_back(points.start);
    box.upper.push_back(points.start + points.extent);
  }
  if (box.lower.size() == shape.size() && items.size() == static_cast<std::size_t>(shape.size())) {
    return box;
  }
  raise(ErrorClass::kValue,
        Problem{"a box", describe(object),
                "a slice without step for each dimension of " + to_string(shape),
                "pass a tuple of slices"});
}

std::vector<Box> to_boxes(PyObject* object, const Extents& shape) {
  const py::object items = steal(PySequence_Tuple(object));
  std::vector<Box> boxes;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.ptr()); ++i) {
    boxes.push_back(to_box(PyTuple_GET_ITEM(items.ptr(), i), shape));
  }
  return boxes;
}

py::object from_box(const Box& box) {
  py::object slices = steal(PyTuple_New(box.lower.size()));
  for (int axis = 0; axis < box.lower.size(); ++axis) {
    const py::object start = steal(PyLong_FromLongLong(box.lower[axis]));
    const py::object stop = steal(PyLong_FromLongLong(box.upper[axis]));
    PyTuple_SET_ITEM(slices.ptr(), axis,
                     steal(PySlice_New(start.ptr(), stop.ptr(), nullptr)).release().ptr());
  }
  return slices;
}

py::object from_boxes(const std::vector<Box>& boxes) {
  py::object made = steal(PyTuple_New(static_cast<Py_ssize_t>(boxes.size())));
  Py_ssize_t position = 0;
  for (const Box& box : boxes) {
    PyTuple_SET_ITEM(made.ptr(), position++, from_box(box).release().ptr());
  }
  return made;
}

// ---- Methods. ----

PyObject* take(PyObject* self, PyObject*) {
  return guarded([&] {
    RecordObject& object = *record_object_of(self);
    const std::vector<std::vector<Box>> taken = value_of(object.record->take(object.parts));
    py::object made = steal(PyTuple_New(static_cast<Py_ssize_t>(taken.size())));
    Py_ssize_t position = 0;
    for (const std::vector<Box>& boxes : taken) {
      PyTuple_SET_ITEM(made.ptr(), position++, from_boxes(boxes).release().ptr());
    }
    return made;
  });
}

PyObject* shows(PyObject* self, PyObject* storage) {
  return guarded([&] {
    const bool is = to_storage(storage).storage.is_recorded_by(*record_object_of(self)->record);
    return share(is ? Py_True : Py_False);
  });
}

PyObject* get_expired(PyObject* self, void*) {
  return PyBool_FromLong(record_object_of(self)->record->is_expired() ? 1 : 0);
}

PyMethodDef methods[] = {
    {"take", take, METH_NOARGS,
     "take($self, /)\n--\n\n"
     "For each part the boxes that were or may have been written since the last take."},
    {"shows", shows, METH_O,
     "shows($self, storage, /)\n--\n\nWhether it is the record of this view of this memory."},
    {nullptr, nullptr, 0, nullptr},
};

PyGetSetDef getters[] = {
    {"expired", get_expired, nullptr, "Whether the storage and all its views are gone.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyType_Slot slots[] = {
    {Py_tp_doc, const_cast<char*>("What was written to a storage; for gridbuf.mpi.")},
    {Py_tp_new, reinterpret_cast<void*>(refuse_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(deallocate)},
    {Py_tp_methods, methods},
    {Py_tp_getset, getters},
    {0, nullptr},
};

PyType_Spec spec = {
    .name = "gridbuf._core.WriteRecord",
    .basicsize = sizeof(RecordObject),
    .itemsize = 0,
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

/// _record_writes(storage, parts, presume)
PyObject* record_writes(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  return guarded([&] {
    if (count != 3) raise(ErrorClass::kType, "_record_writes() takes storage, parts and presume");
    const Storage& storage = to_storage(arguments[0]).storage;
    std::vector<Box> parts = to_boxes(arguments[1], storage.shape());
    const Presume presume =
        to_flag(arguments[2], "presume") ? Presume::kWritten : Presume::kNothing;
    std::unique_ptr<WriteRecord> record = value_of(storage.record_writes(presume));
    auto* const memory = static_cast<PyObject*>(PyObject_Malloc(sizeof(RecordObject)));
    if (memory == nullptr) throw std::bad_alloc();
    py::object made = steal(PyObject_Init(memory, record_type));
    std::construct_at(&record_object_of(made.ptr())->record, std::move(record));
    std::construct_at(&record_object_of(made.ptr())->parts, std::move(parts));
    return made;
  });
}

/// _note_filled(storage, boxes, record=None)
PyObject* note_filled(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  return guarded([&] {
    if (count < 2) raise(ErrorClass::kType, "_note_filled() takes storage, boxes and a record");
    const Storage& storage = to_storage(arguments[0]).storage;
    if (!storage.is_recorded()) return share(Py_None);
    WriteRecord* const own =
        count > 2 && arguments[2] != Py_None ? &to_record(arguments[2]) : nullptr;
    for (const Box& box : to_boxes(arguments[1], storage.shape())) {
      IndexMap map(storage.shape());
      for (int axis = 0; axis < storage.ndim(); ++axis) {
        map.keep(axis, slice_points({.start = box.lower[axis], .stop = box.upper[axis]},
                                    storage.shape()[axis]));
      }
      storage.view(map).note_written();
      if (own != nullptr) own->forget(box);
    }
    return share(Py_None);
  });
}

PyMethodDef functions[] = {
    {"_record_writes", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(record_writes)),
     METH_FASTCALL,
     "_record_writes(storage, parts, presume, /)\n--\n\n"
     "A WriteRecord of the parts, boxes of the storage; presume: whether those who hold its "
     "memory\n"
     "count as writers."},
    {"_note_filled", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(note_filled)),
     METH_FASTCALL,
     "_note_filled(storage, boxes, record=None, /)\n--\n\n"
     "The boxes were written through _own_memory: all records learn of it but this one."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

PyObject* own_memory_method(PyObject* self, PyObject*) {
  return guarded([&] {
    const StorageObject& object = *object_of(self);
    const Storage& storage = object.storage;
    if (storage.kind() == StorageKind::kSoftwareManaged) return share(self);
    const Side side = reading_side(storage);
    up_to_date(storage, side);
    const py::object buffer = unrecorded_buffer(storage, object.dtype, side);
    if (side == Side::kDevice) return share(buffer.ptr());
    return own_ndarray(storage, object.dtype, /*readonly=*/false, buffer.ptr());
  });
}

void add_record_type(PyObject* module) {
  record_type = reinterpret_cast<PyTypeObject*>(steal(PyType_FromSpec(&spec)).release().ptr());
  check(PyModule_AddObjectRef(module, "WriteRecord", reinterpret_cast<PyObject*>(record_type)));
  check(PyModule_AddFunctions(module, functions));
}

}  // namespace gridbuf::python::storages
