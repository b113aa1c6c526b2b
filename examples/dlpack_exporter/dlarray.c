// An array that exports its memory with DLPack. It wraps any buffer of Python. Replace the
// memoryview by your array, and keep the rest.
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

// The structs of dlpack.h (https://github.com/dmlc/dlpack). Include the header if you have it.
typedef struct { int32_t device_type, device_id; } DLDevice;
typedef struct { uint8_t code, bits; uint16_t lanes; } DLDataType;
typedef struct {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape, *strides;
  uint64_t byte_offset;
} DLTensor;
typedef struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(struct DLManagedTensor* self);
} DLManagedTensor;
typedef struct DLManagedTensorVersioned {
  struct { uint32_t major, minor; } version;
  void* manager_ctx;
  void (*deleter)(struct DLManagedTensorVersioned* self);
  uint64_t flags;
  DLTensor dl_tensor;
} DLManagedTensorVersioned;

enum { kCpu = 1, kReadOnly = 1, kIsCopied = 2 };
static const char kLegacy[] = "dltensor";  // Names of capsules have static storage.
static const char kVersioned[] = "dltensor_versioned";

typedef struct {
  PyObject_HEAD
  PyObject* memory;  // A memoryview. Its owner can neither free nor resize the memory.
} Array;

// [export]
// One export: the struct that the consumer gets, the owner of the memory, shape and strides.
typedef struct {
  DLManagedTensorVersioned versioned;
  DLManagedTensor legacy;
  PyObject* owner;
  int64_t numbers[];
} Export;

static void release(Export* export) {
  if (!Py_IsInitialized()) return;               // The process ends.
  PyGILState_STATE state = PyGILState_Ensure();  // Consumers call the deleter on any thread.
  Py_DECREF(export->owner);
  PyMem_Free(export);
  PyGILState_Release(state);
}
static void delete_versioned(DLManagedTensorVersioned* self) { release(self->manager_ctx); }
static void delete_legacy(DLManagedTensor* self) { release(self->manager_ctx); }

// The destructor of a capsule. A consumer that takes the tensor renames the capsule, and calls the
// deleter later. If the name is unchanged, the tensor is still the capsule's.
static void destroy(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, kVersioned)) {
    delete_versioned(PyCapsule_GetPointer(capsule, kVersioned));
  } else if (PyCapsule_IsValid(capsule, kLegacy)) {
    delete_legacy(PyCapsule_GetPointer(capsule, kLegacy));
  }
}
// [/export]

// [describe]
// False: DLPack cannot describe the elements (text, records, swapped bytes, long double, ...).
static bool find_type(const Py_buffer* view, DLDataType* type) {
  const char* format = view->format;
  if (*format && strchr(PY_LITTLE_ENDIAN ? "@=<" : "@=>!", *format)) ++format;
  const bool is_complex = *format == 'Z';
  if (strlen(format += is_complex) != 1) return false;
  const char* const letters[] = {"bhilqn", "BHILQN", "efd", "", "", "", "?"};  // by type code
  for (uint8_t code = 0; code < 7; ++code) {
    if (!strchr(letters[code], *format) || (is_complex && code != 2)) continue;
    *type = (DLDataType){is_complex ? 5 : code, (uint8_t)(8 * view->itemsize), 1};
    return true;
  }
  return false;
}

// Fills in the tensor. `data` is a copy in C order, or NULL for the memory itself. False and a
// BufferError: DLPack cannot describe the array.
static bool describe(const Py_buffer* view, void* data, int64_t* numbers, DLTensor* tensor) {
  *tensor = (DLTensor){.data = view->len == 0 ? NULL : data ? data : view->buf,
                       .device = {kCpu, 0},
                       .ndim = view->ndim,
                       .shape = numbers,
                       .strides = numbers + view->ndim};
  if (view->suboffsets || !find_type(view, &tensor->dtype)) {
    PyErr_Format(PyExc_BufferError, "DLPack has no type for elements '%s'", view->format);
    return false;
  }
  int64_t dense = 1;  // The stride of a copy. DLPack counts elements, Python counts bytes.
  for (int i = view->ndim - 1; i >= 0; dense *= view->shape[i--]) {
    if (!data && view->shape[i] > 1 && view->strides[i] % view->itemsize) {
      PyErr_Format(PyExc_BufferError, "stride %zd is not a multiple of the item size %zd",
                   view->strides[i], view->itemsize);
      return false;
    }
    tensor->shape[i] = view->shape[i];
    tensor->strides[i] = data ? dense : view->strides[i] / view->itemsize;
  }
  return true;
}

// A capsule of the memory, or of a copy of it.
static PyObject* new_capsule(Array* self, bool versioned, bool copied) {
  Py_buffer* view = PyMemoryView_GET_BUFFER(self->memory);
  PyObject* owner = copied ? PyByteArray_FromStringAndSize(NULL, view->len) : Py_NewRef(self->memory);
  if (!owner) return NULL;
  char* data = copied ? PyByteArray_AS_STRING(owner) : NULL;
  Export* export = PyMem_Malloc(sizeof(Export) + 2 * (size_t)view->ndim * sizeof(int64_t));
  if (!export) PyErr_NoMemory();
  DLTensor tensor;
  if (!export || !describe(view, data, export->numbers, &tensor) ||
      (copied && PyBuffer_ToContiguous(data, view, view->len, 'C'))) {
    Py_DECREF(owner);
    PyMem_Free(export);
    return NULL;
  }
  const uint64_t flags = copied ? kIsCopied : view->readonly ? kReadOnly : 0;
  export->versioned =
      (DLManagedTensorVersioned){{1, 0}, export, delete_versioned, flags, tensor};
  export->legacy = (DLManagedTensor){tensor, export, delete_legacy};
  export->owner = owner;
  PyObject* capsule = versioned ? PyCapsule_New(&export->versioned, kVersioned, destroy)
                                : PyCapsule_New(&export->legacy, kLegacy, destroy);
  if (!capsule) release(export);
  return capsule;
}
// [/describe]

// [dlpack]
// A keyword that is None or a tuple of two ints. False and a TypeError for others.
static bool read_pair(PyObject* object, const char* name, long* first, long* second) {
  if (object == Py_None) return true;
  if (PyTuple_Check(object) && PyTuple_GET_SIZE(object) == 2) {
    *first = PyLong_AsLong(PyTuple_GET_ITEM(object, 0));
    if (!PyErr_Occurred()) *second = PyLong_AsLong(PyTuple_GET_ITEM(object, 1));
    return !PyErr_Occurred();
  }
  PyErr_Format(PyExc_TypeError, "%s must be None or a tuple of two ints, not %R", name, object);
  return false;
}

static PyObject* refuse(const char* reason) {
  PyErr_SetString(PyExc_BufferError, reason);
  return NULL;
}

static PyObject* dlpack(PyObject* self, PyObject* arguments, PyObject* keywords) {
  static char* names[] = {"stream", "max_version", "dl_device", "copy", NULL};
  PyObject *stream = Py_None, *max_version = Py_None, *dl_device = Py_None, *copy = Py_None;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|$OOOO:__dlpack__", names, &stream,
                                   &max_version, &dl_device, &copy)) {
    return NULL;
  }
  long major = 0, minor = 0, device_type = kCpu, device_id = 0;
  if (!read_pair(max_version, "max_version", &major, &minor)) return NULL;
  if (!read_pair(dl_device, "dl_device", &device_type, &device_id)) return NULL;
  const int copied = copy == Py_None ? 0 : PyObject_IsTrue(copy);  // None and False: never.
  if (copied < 0) return NULL;
  if (stream != Py_None) return refuse("stream must be None: host memory has no streams");
  if (device_type != kCpu || device_id != 0) return refuse("the memory is on the CPU, device (1, 0)");
  const bool versioned = major >= 1;  // Consumers that do not pass max_version know the old struct.
  if (!versioned && !copied && PyMemoryView_GET_BUFFER(((Array*)self)->memory)->readonly) {
    return refuse("the memory is read-only: pass max_version=(1, 0), or copy=True");
  }
  return new_capsule((Array*)self, versioned, copied);
}

static PyObject* dlpack_device(PyObject* Py_UNUSED(self), PyObject* Py_UNUSED(unused)) {
  return Py_BuildValue("(ii)", kCpu, 0);
}
// [/dlpack]

static PyObject* array_new(PyTypeObject* type, PyObject* arguments, PyObject* keywords) {
  static char* names[] = {"memory", NULL};
  PyObject* memory;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O:Array", names, &memory)) return NULL;
  PyObject* view = PyMemoryView_FromObject(memory);
  if (!view) return NULL;
  Array* self = (Array*)type->tp_alloc(type, 0);
  if (!self) {
    Py_DECREF(view);
    return NULL;
  }
  self->memory = view;
  return (PyObject*)self;
}

static void array_free(PyObject* self) {
  Py_XDECREF(((Array*)self)->memory);
  Py_TYPE(self)->tp_free(self);
}

static PyMethodDef methods[] = {
    {"__dlpack__", (PyCFunction)(void (*)(void))dlpack, METH_VARARGS | METH_KEYWORDS, NULL},
    {"__dlpack_device__", dlpack_device, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL}};

static PyTypeObject array_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "dlarray.Array",
    .tp_doc = "An array over the memory of a buffer.",
    .tp_basicsize = sizeof(Array),
    .tp_new = array_new,
    .tp_dealloc = array_free,
    .tp_methods = methods,
};

static PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "dlarray", .m_size = -1};

PyMODINIT_FUNC PyInit_dlarray(void) {
  PyObject* made = PyModule_Create(&module);
  if (made && PyModule_AddType(made, &array_type)) Py_CLEAR(made);
  return made;
}
