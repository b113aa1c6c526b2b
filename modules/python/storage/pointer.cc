// `DevicePointer`: where a storage's elements begin on the device.

module;

#include <Python.h>

#include <cstdint>
#include <new>
#include <string>
#include <utility>

module gridbuf.python.storage;

import gridbuf.array;
import gridbuf.interface;
import gridbuf.python.buffer;
import gridbuf.python.support;

namespace gridbuf::python::storages {
namespace {

/// The names of cupy.cuda.MemoryPointer, so that code which takes one takes this.
struct PointerObject {
  PyObject ob_base;
  PyObject* memory;  // a Buffer
};

PyTypeObject* pointer_type = nullptr;  // made once, kept for good

PointerObject* pointer_of(PyObject* self) { return reinterpret_cast<PointerObject*>(self); }
const BufferDescriptor& memory_of(PyObject* self) {
  return array_in(pointer_of(self)->memory).memory;
}

PyObject* refuse_new(PyTypeObject*, PyObject*, PyObject*) {
  PyErr_SetString(PyExc_TypeError,
                  "DevicePointer cannot be called; it is the device_data of a storage");
  return nullptr;
}

void deallocate(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  Py_DECREF(pointer_of(self)->memory);
  PyObject_Free(self);
  Py_DECREF(type);
}

PyObject* to_integer_slot(PyObject* self) {
  return PyLong_FromUnsignedLongLong(
      reinterpret_cast<std::uintptr_t>(memory_of(self).first_element()));
}
PyObject* get_ptr(PyObject* self, void*) { return to_integer_slot(self); }
PyObject* get_mem(PyObject* self, void*) { return Py_NewRef(pointer_of(self)->memory); }
PyObject* get_device_id(PyObject* self, void*) {
  return PyLong_FromLong(memory_of(self).device.id);
}
PyObject* get_size(PyObject* self, void*) { return PyLong_FromLongLong(memory_of(self).nbytes()); }

PyObject* repr(PyObject* self) {
  return PyUnicode_FromFormat("DevicePointer(%p, device %d)", memory_of(self).first_element(),
                              static_cast<int>(memory_of(self).device.id));
}

PyGetSetDef getters[] = {
    {"ptr", get_ptr, nullptr, "The address, an int.", nullptr},
    {"mem", get_mem, nullptr, "The Buffer that keeps the memory.", nullptr},
    {"device_id", get_device_id, nullptr, "The number of the device.", nullptr},
    {"size", get_size, nullptr, "Bytes of the elements, without padding.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyType_Slot slots[] = {
    {Py_tp_doc, const_cast<char*>("The address of a storage's first element on its device.")},
    {Py_tp_new, reinterpret_cast<void*>(refuse_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(deallocate)},
    {Py_tp_repr, reinterpret_cast<void*>(repr)},
    {Py_tp_getset, getters},
    {Py_nb_int, reinterpret_cast<void*>(to_integer_slot)},
    {Py_nb_index, reinterpret_cast<void*>(to_integer_slot)},
    {0, nullptr},
};

PyType_Spec spec = {
    .name = "gridbuf.storage.DevicePointer",
    .basicsize = sizeof(PointerObject),
    .itemsize = 0,
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

}  // namespace

void add_pointer_type(PyObject* module) {
  pointer_type = reinterpret_cast<PyTypeObject*>(steal(PyType_FromSpec(&spec)).release().ptr());
  check(PyModule_AddObjectRef(module, "DevicePointer", reinterpret_cast<PyObject*>(pointer_type)));
}

py::object make_device_pointer(const py::object& buffer) {
  auto* const memory = static_cast<PyObject*>(PyObject_Malloc(sizeof(PointerObject)));
  if (memory == nullptr) throw std::bad_alloc();
  py::object made = steal(PyObject_Init(memory, pointer_type));
  pointer_of(made.ptr())->memory = Py_NewRef(buffer.ptr());
  return made;
}

}  // namespace gridbuf::python::storages
