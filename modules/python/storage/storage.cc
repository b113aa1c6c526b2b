// The base type itself: lifetime, classes, attributes, the door for the modules below.

module;

#include <Python.h>
#include <structmember.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.python.storage;

import gridbuf.alloc;
import gridbuf.base;
import gridbuf.device;
import gridbuf.interface;
import gridbuf.interface.dlpack;
import gridbuf.interface.numpy;
import gridbuf.layout;
import gridbuf.python.buffer;
import gridbuf.python.support;
import gridbuf.storage;

namespace gridbuf::python::storages {
namespace {

PyTypeObject* base_type = nullptr;                // _core.StorageBase; made once, kept for good
std::array<PyTypeObject*, 4> types_by_kind = {};  // registered by gridbuf.storage

// ---- Lifetime. ----

SpareObjects<sizeof(StorageObject)> spare_objects;

PyObject* refuse_new(PyTypeObject* type, PyObject*, PyObject*) {
  PyErr_Format(PyExc_TypeError,
               "%s cannot be called; use gridbuf.storage.empty, zeros, ones, full, as_storage or "
               "storage",
               type->tp_name);
  return nullptr;
}

void deallocate(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  StorageObject* object = object_of(self);
  if (object->head.weak_references != nullptr) PyObject_ClearWeakRefs(self);
  std::destroy_at(&object->parameters);
  std::destroy_at(&object->shown_device);
  std::destroy_at(&object->shown_host);
  std::destroy_at(&object->touch);
  std::destroy_at(&object->storage);
  std::destroy_at(&object->dtype);
  spare_objects.give_back(self);
  Py_DECREF(type);
}

PyTypeObject* type_of(StorageKind kind) {
  PyTypeObject* const type = types_by_kind[static_cast<std::size_t>(kind)];
  if (type != nullptr) return type;
  // C++ code below may make a storage before anybody imported the package.
  steal(PyImport_ImportModule("gridbuf.storage"));
  return types_by_kind[static_cast<std::size_t>(kind)];
}

// ---- Axes that None has put in. ----

bool is_new_axis(const StorageObject& object, int axis) {
  return (object.new_axes >> axis & 1U) != 0;
}

std::uint64_t new_axes_of(const StorageObject& parent, const IndexMap& map) {
  std::uint64_t found = 0;
  for (int axis = 0; axis < map.ndim(); ++axis) {
    const int source = map.axis(axis).source;
    const bool is_new = source == ViewAxis::kNoSource || is_new_axis(parent, source);
    found |= static_cast<std::uint64_t>(is_new) << axis;
  }
  return found;
}

// ---- Attributes. ----

template <class Read>
PyObject* get(PyObject* self, Read&& read) {
  return guarded([&] { return read(object_of(self)->storage); });
}

py::object from_halo(const Halo& halo) {
  py::object pairs = steal(PyTuple_New(halo.size()));
  for (int axis = 0; axis < halo.size(); ++axis) {
    PyTuple_SET_ITEM(pairs.ptr(), axis,
                     steal(Py_BuildValue("(LL)", static_cast<long long>(halo[axis].lower),
                                         static_cast<long long>(halo[axis].upper)))
                         .release()
                         .ptr());
  }
  return pairs;
}

PyObject* get_shape(PyObject* self, void*) {
  return get(self, [](const Storage& storage) { return from_integers(storage.shape().span()); });
}
PyObject* get_strides(PyObject* self, void*) {
  return get(self,
             [](const Storage& storage) { return from_integers(storage.strides_bytes().span()); });
}
PyObject* get_ndim(PyObject* self, void*) {
  return PyLong_FromLong(object_of(self)->storage.shape().size());
}
PyObject* get_dtype(PyObject* self, void*) {
  return Py_NewRef(object_of(self)->dtype->numpy.ptr());
}
PyObject* get_nbytes(PyObject* self, void*) {
  return PyLong_FromLongLong(object_of(self)->storage.nbytes());
}
PyObject* get_itemsize(PyObject* self, void*) {
  return PyLong_FromLongLong(object_of(self)->dtype->type.itemsize_bytes());
}
PyObject* get_size(PyObject* self, void*) {
  const StorageObject& object = *object_of(self);
  return PyLong_FromLongLong(object.storage.nbytes() / object.dtype->type.itemsize_bytes());
}
PyObject* get_dims(PyObject* self, void*) {
  return get(self, [](const Storage& storage) { return from_dims(storage.dims()); });
}
PyObject* get_layout(PyObject* self, void*) {
  return get(self, [](const Storage& storage) { return from_integers(storage.layout().span()); });
}
PyObject* get_halo(PyObject* self, void*) {
  return get(self, [](const Storage& storage) { return from_halo(storage.halo()); });
}
int set_halo(PyObject* self, PyObject* value, void*) {
  return guarded(-1, [&] {
    Storage& storage = object_of(self)->storage;
    if (value == nullptr) raise(ErrorClass::kType, "halo cannot be deleted; set it to zeros");
    const Halo halo = to_halo(value, storage.shape());  // May run Python: look again afterwards.
    check(storage.set_halo(halo));
    object_of(self)->parameters = py::object();
    return 0;
  });
}
PyObject* get_aligned_index(PyObject* self, void*) {
  return get(self,
             [](const Storage& storage) { return from_integers(storage.aligned_index().span()); });
}
PyObject* get_alignment_size(PyObject* self, void*) {
  return PyLong_FromLongLong(object_of(self)->storage.alignment_bytes());
}
PyObject* get_device(PyObject* self, void*) {
  const bool gpu = object_of(self)->storage.has(Side::kDevice);
  return gpu ? PyUnicode_FromString("gpu") : Py_NewRef(Py_None);
}
PyObject* get_managed(PyObject* self, void*) {
  switch (object_of(self)->storage.kind()) {
    case StorageKind::kSoftwareManaged:
      return PyUnicode_FromString("gt4py");
    case StorageKind::kCudaManaged:
      return PyUnicode_FromString("cuda");
    case StorageKind::kCpu:
    case StorageKind::kGpu:
      break;
  }
  Py_RETURN_NONE;
}
PyObject* get_domain_view(PyObject* self, void*) {
  return guarded([&] {
    const StorageObject& object = *object_of(self);
    py::object made = make_view(object, object.storage.domain_view());
    object_of(made.ptr())->new_axes = object.new_axes;
    return made;
  });
}
PyObject* get_sync_state(PyObject* self, void*) {
  return get(self, [](const Storage& storage) { return make_sync_state(storage.sync_state()); });
}

/// NumPy's own flags of an array of this shape, strides and address; nothing is dereferenced.
PyObject* get_flags(PyObject* self, void*) {
  return guarded([&] {
    const StorageObject& object = *object_of(self);
    const Storage& storage = object.storage;
    const BufferDescriptor memory =
        storage.memory(storage.has(Side::kHost) ? Side::kHost : Side::kDevice);
    const py::object array =
        make_ndarray(*object.dtype, memory.view, memory.first_element(), memory.readonly, self);
    return steal(PyObject_GetAttrString(array.ptr(), "flags"));
  });
}

/// The spatial dimensions among the names, in the order I, J, K.
std::array<bool, kSpatialAxes> spatial_axes(const Dims& dims) {
  std::array<bool, kSpatialAxes> present{};
  for (const Dim dim : dims) {
    if (dim.is_spatial()) present[static_cast<std::size_t>(dim.spatial_axis())] = true;
  }
  return present;
}
PyObject* get_axes(PyObject* self, void*) {
  return get(self, [](const Storage& storage) {
    const auto present = spatial_axes(storage.dims());
    std::string axes;
    for (std::size_t axis = 0; axis < present.size(); ++axis) {
      if (present[axis]) axes += "IJK"[axis];
    }
    return make_text(axes);
  });
}
PyObject* get_mask(PyObject* self, void*) {
  return get(self, [](const Storage& storage) {
    const auto present = spatial_axes(storage.dims());
    return steal(PyTuple_Pack(3, present[0] ? Py_True : Py_False, present[1] ? Py_True : Py_False,
                              present[2] ? Py_True : Py_False));
  });
}

/// The lower halo in the order of annotations: where a stencil's domain begins.
PyObject* get_origin(PyObject* self, void*) {
  return get(self, [](const Storage& storage) {
    const Extents first = first_domain_index(storage.halo(), storage.shape());
    return from_integers(in_annotation_order(storage.dims(), first).span());
  });
}

PyObject* get_is_emulated(PyObject* self, void*) {
  return PyBool_FromLong(object_of(self)->storage.is_emulated() ? 1 : 0);
}

PyObject* get_readonly(PyObject* self, void*) {
  return PyBool_FromLong(object_of(self)->storage.readonly() ? 1 : 0);
}

/// The axes that None has put in, ascending.
PyObject* get_new_axes(PyObject* self, void*) {
  return guarded([&] {
    const StorageObject& object = *object_of(self);
    Extents axes;
    for (int axis = 0; axis < object.storage.ndim(); ++axis) {
      if (is_new_axis(object, axis)) axes.push_back(axis);
    }
    return from_integers(axes.span());
  });
}

/// All parameters but the elements, as plain values: (dims, shape, halo, aligned_index, layout,
/// alignment_size, dtype, device, managed, new_axes). Arithmetic asks for them at every expression,
/// pickles keep all but the last.
PyObject* get_parameters(PyObject* self, void*) {
  return guarded([&] {
    py::object& kept = object_of(self)->parameters;
    if (kept) return share(kept.ptr());
    const auto taken = [self](PyObject* (*getter)(PyObject*, void*)) {
      return steal(getter(self, nullptr));
    };
    const py::object dims = taken(get_dims);
    const py::object shape = taken(get_shape);
    const py::object halo = taken(get_halo);
    const py::object aligned_index = taken(get_aligned_index);
    const py::object layout = taken(get_layout);
    const py::object alignment = taken(get_alignment_size);
    const py::object dtype = taken(get_dtype);
    const py::object device = taken(get_device);
    const py::object managed = taken(get_managed);
    const py::object new_axes = taken(get_new_axes);
    kept = steal(PyTuple_Pack(10, dims.ptr(), shape.ptr(), halo.ptr(), aligned_index.ptr(),
                              layout.ptr(), alignment.ptr(), dtype.ptr(), device.ptr(),
                              managed.ptr(), new_axes.ptr()));
    return share(kept.ptr());
  });
}

PyGetSetDef getters[] = {
    {"shape", get_shape, nullptr, "Extents, in elements.", nullptr},
    {"strides", get_strides, nullptr, "Bytes from an element to the next one, per dimension.",
     nullptr},
    {"ndim", get_ndim, nullptr, "The number of dimensions.", nullptr},
    {"dtype", get_dtype, nullptr, "The numpy.dtype of the elements.", nullptr},
    {"nbytes", get_nbytes, nullptr, "Bytes of all elements, without padding, of one buffer.",
     nullptr},
    {"size", get_size, nullptr, "The number of elements, without padding.", nullptr},
    {"itemsize", get_itemsize, nullptr, "Bytes of one element.", nullptr},
    {"dims", get_dims, nullptr,
     "Names of the dimensions: 'I', 'J', 'K' or the number of a data dimension.", nullptr},
    {"layout", get_layout, nullptr,
     "The layout map: entry i is the rank of dimension i, 0 for the largest stride.", nullptr},
    {"halo", get_halo, set_halo,
     "A pair (lower, upper) per dimension: points around the domain. Can be set, with an integer\n"
     "or a pair per dimension; belongs to this object, not to its views, and never re-aligns.",
     nullptr},
    {"aligned_index", get_aligned_index, nullptr, "The index whose element is aligned.", nullptr},
    {"alignment_size", get_alignment_size, nullptr,
     "Bytes: the address of every element whose index in the contiguous dimension is "
     "aligned_index's\n"
     "is a multiple of it. A view has the alignment that still holds for it.",
     nullptr},
    {"device", get_device, nullptr, "'gpu' if there is memory that a device reaches, else None.",
     nullptr},
    {"managed", get_managed, nullptr,
     "Who keeps host and device in step: 'gt4py' (gridbuf), 'cuda', or None.", nullptr},
    {"data", data_getter, nullptr,
     "A memoryview of the host's elements, brought up to date; None without a host buffer.",
     nullptr},
    {"device_data", device_data_getter, nullptr,
     "A DevicePointer to the device's elements, brought up to date; None without a device buffer.",
     nullptr},
    {"domain_view", get_domain_view, nullptr,
     "The view without the halo: index (0, ..., 0) is the first point of the domain.", nullptr},
    {"sync_state", get_sync_state, nullptr,
     "The SyncState that all views of one software-managed storage share; else None.", nullptr},
    {"T", transposed_getter, nullptr, "The view with the dimensions in reverse order.", nullptr},
    {"flags", get_flags, nullptr, "NumPy's flags of the memory: contiguity, alignment, writeable.",
     nullptr},
    {"axes", get_axes, nullptr, "The spatial dimensions that there are, such as 'IJ'.", nullptr},
    {"mask", get_mask, nullptr, "Whether there is a dimension I, J, K: three bools.", nullptr},
    {"__array_interface__", array_interface_getter, nullptr,
     "NumPy's array interface of the host's elements, version 3.", nullptr},
    {"__array_struct__", array_struct_getter, nullptr,
     "NumPy's array interface as a C struct in a capsule.", nullptr},
    {"__cuda_array_interface__", cuda_array_interface_getter, nullptr,
     "The CUDA array interface of the device's elements, version 3, with stream.", nullptr},
    {"__gt_data_interface__", data_interface_getter, nullptr,
     "For GT4Py: an entry per side with dims, halo, acquire and touch. Reading it copies nothing.",
     nullptr},
    {"__gt_dims__", get_dims, nullptr, "The names of the dimensions, for GT4Py.", nullptr},
    {"__gt_origin__", get_origin, nullptr,
     "The lower halo in the order I, J, K, 0, 1, ...: the default origin of a stencil call.",
     nullptr},
    {"default_origin", get_origin, nullptr, "The same as __gt_origin__.", nullptr},
    {"_parameters", get_parameters, nullptr,
     "(dims, shape, halo, aligned_index, layout, alignment_size, dtype, device, managed, "
     "_new_axes).",
     nullptr},
    {"_new_axes", get_new_axes, nullptr, "The positions of axes that None has put in, ascending.",
     nullptr},
    {"_is_emulated", get_is_emulated, nullptr, "Whether its device is the emulated one.", nullptr},
    {"_readonly", get_readonly, nullptr, "Whether its elements cannot be written.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

// ---- Synchronisation. ----

/// One of the methods that act on the whole base; none touches Python.
template <class Act>
PyObject* synchronise(PyObject* self, Act&& act) {
  return guarded([&] {
    const Storage storage = object_of(self)->storage;  // Of its own: the halo may be set meanwhile.
    check(run_unlocked(storage, [&] { return act(storage); }));
    return share(Py_None);
  });
}

bool to_force(const char* function, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  static constexpr const char* kNames[] = {"force"};
  static constexpr Signature kToHost{"device_to_host", kNames, 0};
  static constexpr Signature kToDevice{"host_to_device", kNames, 0};
  PyObject* values[1] = {};
  sort_arguments(function == kToHost.function ? kToHost : kToDevice, arguments, count, names,
                 values, unexpected_keyword);
  return values[0] != nullptr && to_flag(values[0], "force");
}
constexpr char kDeviceToHost[] = "device_to_host";
constexpr char kHostToDevice[] = "host_to_device";

PyObject* device_to_host(PyObject* self, PyObject* const* arguments, Py_ssize_t count,
                         PyObject* names) {
  return guarded([&] {
    const bool force = to_force(kDeviceToHost, arguments, count, names);
    return steal(synchronise(
        self, [force](const Storage& storage) { return storage.device_to_host(force); }));
  });
}
PyObject* host_to_device(PyObject* self, PyObject* const* arguments, Py_ssize_t count,
                         PyObject* names) {
  return guarded([&] {
    const bool force = to_force(kHostToDevice, arguments, count, names);
    return steal(synchronise(
        self, [force](const Storage& storage) { return storage.host_to_device(force); }));
  });
}
PyObject* synchronize(PyObject* self, PyObject*) {
  return synchronise(self, [](const Storage& storage) { return storage.synchronize(); });
}
PyObject* set_host_modified(PyObject* self, PyObject*) {
  return synchronise(self, [](const Storage& storage) { return storage.set_host_modified(); });
}
PyObject* set_device_modified(PyObject* self, PyObject*) {
  return synchronise(self, [](const Storage& storage) { return storage.set_device_modified(); });
}
PyObject* set_synchronized(PyObject* self, PyObject*) {
  return synchronise(self, [](const Storage& storage) {
    storage.set_synchronized();
    return absl::OkStatus();
  });
}
PyObject* refuse_set_device_synchronized(PyObject*, PyObject*) {
  PyErr_SetString(PyExc_TypeError,
                  "there is no set_device_synchronized(): its name is set_synchronized");
  return nullptr;
}

// ---- The type. ----

template <class Function>
PyCFunction method(Function function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}
constexpr int kFast = METH_FASTCALL | METH_KEYWORDS;

PyMethodDef methods[] = {
    {"to_numpy", to_numpy_method, METH_NOARGS,
     "to_numpy($self, /)\n--\n\n"
     "An ndarray over the host's elements, brought up to date. GTNoSuchBufferError without them."},
    {"to_cupy", to_cupy_method, METH_NOARGS,
     "to_cupy($self, /)\n--\n\n"
     "A cupy.ndarray over the device's elements, brought up to date. GTNoSuchBufferError without\n"
     "them, DeviceUnavailableError without CuPy."},
    {"to_ndarray", to_ndarray_method, METH_NOARGS,
     "to_ndarray($self, /)\n--\n\nto_cupy() if there are elements on a device, else to_numpy()."},
    {"transpose", method(transpose_method), METH_FASTCALL,
     "transpose($self, /, *axes)\n--\n\n"
     "The view whose dimension i is dimension axes[i]; without axes, all in reverse order."},
    {"item", method(item_method), METH_FASTCALL,
     "item($self, /, *index)\n--\n\nOne element as a Python object, as ndarray.item."},
    {"tolist", tolist_method, METH_NOARGS,
     "tolist($self, /)\n--\n\nThe elements as nested lists: to_numpy().tolist()."},
    {"fill", fill_method, METH_O, "fill($self, value, /)\n--\n\nWrites value to every element."},
    {"astype", method(astype_method), kFast,
     "astype($self, /, dtype, *, casting='unsafe', copy=True)\n--\n\n"
     "A storage with the elements converted and all other parameters kept; with copy=False the\n"
     "storage itself where there is nothing to convert."},
    {"copy", copy_method, METH_NOARGS,
     "copy($self, /)\n--\n\n"
     "A new storage with the same elements and parameters, and a SyncState of its own."},
    {"__copy__", copy_method, METH_NOARGS, "__copy__($self, /)\n--\n\nThe same as copy()."},
    {"__deepcopy__", deepcopy_method, METH_O,
     "__deepcopy__($self, memo, /)\n--\n\nThe same as copy()."},
    {"__reduce_ex__", reduce_method, METH_O,
     "__reduce_ex__($self, protocol, /)\n--\n\nElements and all parameters, for pickle."},
    {"__complex__", complex_method, METH_NOARGS, "__complex__($self, /)\n--\n\nOf one element."},
    {"__array__", method(array_method), kFast,
     "__array__($self, /, dtype=None, copy=None)\n--\n\n"
     "An ndarray over the host's elements, unless a copy or a conversion is asked for. TypeError\n"
     "for a storage without a host buffer."},
    {"__dlpack__", method(dlpack_method), kFast,
     "__dlpack__($self, /, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n"
     "A DLPack capsule of the device's elements if there are any, else of the host's; with\n"
     "dl_device=(1, 0) of the host's, without a copy if there is a host buffer."},
    {"__dlpack_device__", dlpack_device_method, METH_NOARGS,
     "__dlpack_device__($self, /)\n--\n\nThe device that __dlpack__ exports from."},
    {kDeviceToHost, method(device_to_host), kFast,
     "device_to_host($self, /, *, force=False)\n--\n\n"
     "Copies what is newer on the device to the host, of the whole storage that this is a view "
     "of;\n"
     "with force everything. Does nothing for storages that gridbuf need not keep in step."},
    {kHostToDevice, method(host_to_device), kFast,
     "host_to_device($self, /, *, force=False)\n--\n\nThe same, the other way."},
    {"synchronize", synchronize, METH_NOARGS,
     "synchronize($self, /)\n--\n\nCopies both ways what is newer on one side."},
    {"set_host_modified", set_host_modified, METH_NOARGS,
     "set_host_modified($self, /)\n--\n\n"
     "Says that the host's elements of this view were written. SyncConflictError where the "
     "device's\n"
     "are newer in the same region."},
    {"set_device_modified", set_device_modified, METH_NOARGS,
     "set_device_modified($self, /)\n--\n\nThe same for the device's."},
    {"set_synchronized", set_synchronized, METH_NOARGS,
     "set_synchronized($self, /)\n--\n\n"
     "Says that both buffers are equal, of the whole storage that this is a view of."},
    {"set_device_synchronized", refuse_set_device_synchronized, METH_NOARGS,
     "set_device_synchronized($self, /)\n--\n\nIts name is set_synchronized."},
    {"_acquire_host", acquire_host_method, METH_NOARGS, "acquire of the data interface."},
    {"_acquire_device", acquire_device_method, METH_NOARGS, "acquire of the data interface."},
    {"_read_array", method(read_array_method), kFast,
     "_read_array($self, side, dims=None)\n--\n\n"
     "A read-only array of the elements of a side, up to date; of the axes of dims if given."},
    {"_write_array", method(write_array_method), kFast,
     "_write_array($self, side, dims=None, whole=True)\n--\n\n"
     "A writable array of a side, which is marked; call _written afterwards."},
    {"_written", written_method, METH_O, "_written($self, side, /)\n--\n\nEnds _write_array."},
    {"_own_memory", own_memory_method, METH_NOARGS,
     "_own_memory($self, /)\n--\n\n"
     "An ndarray, or a Buffer on a device, that does not count as an export; of two buffers that\n"
     "gridbuf keeps equal the storage itself."},
    {"_current_sides", current_sides_method, METH_NOARGS,
     "_current_sides($self, /)\n--\n\nThe sides on which all elements are current now."},
    {nullptr, nullptr, 0, nullptr},
};

PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(StorageHead, weak_references), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

constexpr char kDocumentation[] = "What all storages have in common; see gridbuf.storage.Storage.";

PyType_Slot slots[] = {
    {Py_tp_doc, const_cast<char*>(kDocumentation)},
    {Py_tp_new, reinterpret_cast<void*>(refuse_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(deallocate)},
    {Py_tp_getset, getters},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {Py_tp_iter, reinterpret_cast<void*>(iterate_slot)},
    {Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
    {Py_bf_releasebuffer, reinterpret_cast<void*>(release_buffer)},
    {Py_mp_subscript, reinterpret_cast<void*>(subscript_slot)},
    {Py_mp_ass_subscript, reinterpret_cast<void*>(assign_subscript_slot)},
    {Py_mp_length, reinterpret_cast<void*>(length_slot)},
    {Py_sq_item, reinterpret_cast<void*>(item_slot)},
    {Py_sq_length, reinterpret_cast<void*>(length_slot)},
    {Py_nb_float, reinterpret_cast<void*>(float_slot)},
    {Py_nb_int, reinterpret_cast<void*>(int_slot)},
    {Py_nb_index, reinterpret_cast<void*>(index_slot)},
    {Py_nb_bool, reinterpret_cast<void*>(bool_slot)},
    {0, nullptr},
};

PyType_Spec spec = {
    .name = "gridbuf._core.StorageBase",
    .basicsize = sizeof(StorageObject),
    .itemsize = 0,
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,  // until the classes are registered
    .slots = slots,
};

// ---- Classes. ----

/// Classes that Python makes have their objects collected, which these are not: they hold no
/// reference that could lead back to them, and are made without the collector's header.
void take_from_collector(PyTypeObject* type) {
  type->tp_flags &= ~Py_TPFLAGS_HAVE_GC;
  type->tp_traverse = nullptr;
  type->tp_clear = nullptr;
  type->tp_free = PyObject_Free;
  type->tp_dealloc = deallocate;
}

void close_type(PyTypeObject* type) {
  type->tp_flags |= Py_TPFLAGS_IMMUTABLETYPE;
  type->tp_flags &= ~Py_TPFLAGS_BASETYPE;
  PyType_Modified(type);
}

/// (CPUStorage, GPUStorage, SoftwareManagedGPUStorage, CUDAManagedGPUStorage), each once and for
/// good.
PyObject* set_storage_types(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  return guarded([&] {
    if (count != static_cast<Py_ssize_t>(types_by_kind.size()) || types_by_kind[0] != nullptr) {
      raise(ErrorClass::kType, "_set_storage_types() is called once, with four classes");
    }
    for (Py_ssize_t i = 0; i < count; ++i) {
      const bool fits = PyType_Check(arguments[i]) != 0 &&
                        PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(arguments[i]), base_type);
      // Nothing may be added to the object: what makes it knows its size.
      if (!fits ||
          reinterpret_cast<PyTypeObject*>(arguments[i])->tp_basicsize != base_type->tp_basicsize) {
        raise(ErrorClass::kType, Problem{"the class", describe(arguments[i]),
                                         "derived from _core.StorageBase without attributes",
                                         "give it __slots__ = ()"});
      }
    }
    const py::object table = make_storage_exchange_capsule();
    for (Py_ssize_t i = 0; i < count; ++i) {
      // On exactly each type, as a table serves none but its own (DX-01, DX-11).
      check(PyObject_SetAttrString(arguments[i], dlpack::kExchangeAttribute, table.ptr()));
      auto* const type = reinterpret_cast<PyTypeObject*>(Py_NewRef(arguments[i]));
      take_from_collector(type);
      close_type(type);
      types_by_kind[static_cast<std::size_t>(i)] = type;
    }
    return share(Py_None);
  });
}

PyMethodDef functions[] = {
    {"_set_storage_types", method(set_storage_types), METH_FASTCALL, "For gridbuf.storage."},
    {"_run_kernel", method(run_kernel), METH_FASTCALL,
     "_run_kernel(function, *arrays)\n--\n\n"
     "function(*arrays) as a kernel of the emulated device, whose arrays (of _read_array and\n"
     "_write_array) it gets where a kernel can touch them; waits, and returns or raises what it\n"
     "did."},
    {nullptr, nullptr, 0, nullptr},
};

// ---- The door for the modules below. ----

py::object to_buffer(PyObject* array, DeviceType wanted, Purpose purpose) {
  const StorageObject& object = *object_of(array);
  const Side side = wanted == DeviceType::kCuda ? Side::kDevice : Side::kHost;
  const Side found = object.storage.has(side) ? side : other(side);
  if (purpose == Purpose::kSharing) return shown_buffer(object.storage, object.dtype, found);
  if (purpose == Purpose::kReading) up_to_date(object.storage, found);
  return own_buffer(object.storage, object.dtype, found);
}

}  // namespace

StorageObject* object_of(PyObject* storage) { return reinterpret_cast<StorageObject*>(storage); }

bool has_storage_type(PyObject* object) {
  PyTypeObject* const type = Py_TYPE(object);
  for (PyTypeObject* const known : types_by_kind) {
    if (type == known) return true;
  }
  return false;
}

py::object new_object(const DTypePtr& dtype, StorageKind kind) {
  PyTypeObject* const type = type_of(kind);
  auto* const memory = static_cast<PyObject*>(spare_objects.take());
  if (memory == nullptr) throw std::bad_alloc();
  py::object made = steal(PyObject_Init(memory, type));
  StorageObject* const object = object_of(made.ptr());  // Nothing below can fail.
  object->head.weak_references = nullptr;
  std::construct_at(&object->dtype, dtype);
  std::construct_at(&object->touch);
  std::construct_at(&object->shown_host);
  std::construct_at(&object->shown_device);
  std::construct_at(&object->parameters);
  object->new_axes = 0;
  return made;
}

py::object make_object(Storage storage, const DTypePtr& dtype) {
  return make_object_of(dtype, storage.kind(),
                        [&]() noexcept -> Storage { return std::move(storage); });
}

py::object make_view(const StorageObject& parent, Storage view) {
  py::object made = make_object(std::move(view), parent.dtype);
  object_of(made.ptr())->touch = parent.touch;
  return made;
}

py::object make_view(const StorageObject& parent, const IndexMap& map) {
  py::object made = make_object_of(parent.dtype, parent.storage.kind(),
                                   [&]() noexcept -> Storage { return parent.storage.view(map); });
  object_of(made.ptr())->touch = parent.touch;
  object_of(made.ptr())->new_axes = new_axes_of(parent, map);
  return made;
}

Storage without_new_axes(const StorageObject& object) {
  IndexMap map(object.storage.shape());
  for (int axis = map.ndim() - 1; axis >= 0; --axis) {
    if (is_new_axis(object, axis) && map.axis(axis).extent == 1) map.fix(axis, 0);
  }
  return object.storage.view(map);
}

Side to_side(PyObject* object) {
  if (PyUnicode_Check(object) != 0) {
    if (utf8(object) == "host") return Side::kHost;
    if (utf8(object) == "device") return Side::kDevice;
  }
  raise(ErrorClass::kValue,
        Problem{"side", describe(object), "\"host\" or \"device\"", "pass one of the two"});
}

void add_types(PyObject* module) {
  add_sync_state_type(module);
  add_pointer_type(module);
  base_type = reinterpret_cast<PyTypeObject*>(steal(PyType_FromSpec(&spec)).release().ptr());
  check(PyModule_AddObjectRef(module, "StorageBase", reinterpret_cast<PyObject*>(base_type)));
  check(PyModule_AddFunctions(module, functions));
  add_storage_functions(module);
  set_array_door({.is_array = is_storage, .to_buffer = to_buffer});
}

}  // namespace gridbuf::python::storages

namespace gridbuf::python {

void add_storage_types(PyObject* module) { storages::add_types(module); }
bool is_storage(PyObject* object) { return storages::has_storage_type(object); }
const Storage& storage_of(PyObject* object) { return storages::object_of(object)->storage; }
py::object make_storage(Storage storage, const DTypePtr& dtype) {
  return storages::make_object(std::move(storage), dtype);
}

}  // namespace gridbuf::python
