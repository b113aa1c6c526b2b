// `gridbuf.copyto`, from any array into any other.
//
// numpy.copyto for everything that offers memory: arrays of any library, Buffers,
// storages, memory of a device. What it means is numpy.copyto's: shapes broadcast, `casting` says
// which conversions are allowed, `where` masks, overlapping arrays come out as if the source had
// been read first.
//
// Key choice. Both ends are brought to the form that somebody below this module can copy between,
// and then it is one call: two ndarrays over host memory (copy_arrays of gridbuf.python.buffer),
// two Buffers of which a device has at least one (gridbuf.python.buffer), or storages, whose
// dimensions have names and which know which of their sides is current (gridbuf.storage, in
// Python). What a device cannot do itself, conversions and masks, is done on the host and carried
// over.
//
// Two ndarrays, the usual case, take none of these steps: their fields are read in place.

module;

#include <Python.h>

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.python.storage;

import gridbuf.alloc;
import gridbuf.array;
import gridbuf.base;
import gridbuf.device;
import gridbuf.interface.numpy;
import gridbuf.interface;
import gridbuf.layout;
import gridbuf.python.buffer;
import gridbuf.python.support;

namespace gridbuf::python {
namespace {

/// The arguments as passed; borrowed. `casting` is a str that NumPy knows.
struct Given {
  PyObject* target;
  PyObject* source;
  PyObject* casting;
  PyObject* where;  // null: everywhere
};

// ---- The two ends. ----

/// One end of a copy: an ndarray, or a Buffer over memory that the host cannot read.
struct End {
  py::object array;
  py::object on_device;
  Meaning meaning = {};
  bool is_foreign = false;  // memory that a Buffer was put over only now

  const py::object& any() const { return array ? array : on_device; }
};

bool is_on_host(const py::object& buffer) {
  return is_host_readable(array_in(buffer.ptr()).memory.device.type);
}

void set_buffer(End& end, py::object buffer) {
  if (is_on_host(buffer)) {
    end.array = ndarray_of(buffer.ptr());
  } else {
    end.on_device = std::move(buffer);
  }
}

End open_target(PyObject* object) {
  End end;
  if (is_exact_ndarray(object)) {
    end.array = share(object);
    return end;
  }
  end.is_foreign = !is_buffer(object);
  set_buffer(end, import_buffer(object, nullptr, {.use_names = false, .side = DeviceType::kHost},
                                &end.meaning));
  return end;
}

PyObject* numpy_type_of(const End& end) {
  return end.array ? dtype_of_ndarray(end.array.ptr()) : dtype_of(end.on_device.ptr())->numpy.ptr();
}

/// An array to be read, on the side that is preferred if it has both. What offers no memory is
/// NumPy's to read: sequences, `__array__`.
End open_array(PyObject* object, DeviceType side) {
  End end;
  if (is_exact_ndarray(object)) {
    end.array = share(object);
    return end;
  }
  py::object buffer;
  if (PyList_Check(object) == 0 && PyTuple_Check(object) == 0) {
    buffer = import_or_none(
        object, nullptr,
        {.allow_copied = true, .use_names = false, .side = side, .purpose = Purpose::kReading},
        &end.meaning);
  }
  if (buffer) {
    set_buffer(end, std::move(buffer));
  } else {
    end.array = as_ndarray(object);
  }
  return end;
}

/// A value becomes one element of the target's type: Python's numbers have no type of their own.
End open_source(PyObject* object, const End& target, PyObject* casting) {
  if (is_scalar(object) && !is_ndarray(object)) {
    return {.array = make_element(numpy_type_of(target), object, casting),
            .on_device = py::object()};
  }
  return open_array(object, target.on_device ? DeviceType::kCuda : DeviceType::kHost);
}

py::object on_host(const End& end) {
  return end.array ? share(end.array.ptr())
                   : ndarray_of(copy_of(end.on_device.ptr(), MemoryKind::kHost).ptr());
}

/// The mask as an ndarray of bool; none for True.
py::object open_mask(PyObject* where) {
  if (where == nullptr || where == Py_True) return py::object();
  py::object mask = on_host(open_array(where, DeviceType::kHost));
  const DTypePtr dtype = record_or_none(dtype_of_ndarray(mask.ptr()));
  if (dtype && dtype->type.kind() == Kind::kBool) return mask;
  raise(ErrorClass::kType, Problem{"where's dtype", describe(dtype_of_ndarray(mask.ptr())), "bool",
                                   "pass a comparison such as array > 0, or where.astype(bool)"});
}

// ---- Where a device has one of them. ----

py::object buffer_over(const End& end) {
  if (end.on_device) return share(end.on_device.ptr());
  return import_buffer(end.array.ptr(), nullptr, {.use_names = false});
}

/// Whether the bytes can go over as they are: same type, same shape, nothing repeated.
bool can_be_transferred(const py::object& target, const py::object& source) {
  const StridedView& to = array_in(target.ptr()).memory.view;
  const StridedView& from = array_in(source.ptr()).memory.view;
  if (!is_same_type(dtype_of(target.ptr()), dtype_of(source.ptr()))) return false;
  if (!(to.shape == from.shape)) return false;
  for (int axis = 0; axis < from.ndim(); ++axis) {
    if (from.strides_bytes[axis] == 0 && from.shape[axis] > 1) return false;
  }
  return true;
}

/// An array of the host in the target's order, to be carried over in one piece.
py::object staging_for(const py::object& target, bool with_elements) {
  if (with_elements) return copy_of(target.ptr(), MemoryKind::kHost);
  LayoutRequest request = array_in(target.ptr()).request();
  request.alignment_bytes = 1;
  const DTypePtr& dtype = dtype_of(target.ptr());
  request.dtype_name = dtype->name;
  return allocate_buffer(value_of(make_plan(request)), dtype, {});
}

void check_writable(const py::object& buffer) {
  if (!array_in(buffer.ptr()).memory.readonly) return;
  raise(ErrorClass::kValue, Problem{"dst", "read-only", "memory that may be written",
                                    "pass a writable array, or copy into a new one"});
}

void copy_with_device(const End& target, const End& source, const CopyRule& rule) {
  const py::object to = buffer_over(target);
  check_writable(to);
  if (rule.mask == nullptr && source.on_device) {
    if (can_be_transferred(to, source.on_device)) {
      return copy_buffer(to.ptr(), source.on_device.ptr());
    }
  } else if (rule.mask == nullptr && record_or_none(dtype_of_ndarray(source.array.ptr()))) {
    const py::object from = buffer_over(source);
    if (can_be_transferred(to, from)) return copy_buffer(to.ptr(), from.ptr());
  }
  const py::object elements = on_host(source);
  if (target.array) return copy_arrays(target.array.ptr(), elements.ptr(), rule);
  const py::object staging = staging_for(to, rule.mask != nullptr);
  copy_arrays(ndarray_of(staging.ptr()).ptr(), elements.ptr(), rule);
  copy_buffer(to.ptr(), staging.ptr());
}

/// What the owner of foreign memory has to be told, or may rely on, when it was written.
void finish(const End& target) {
  if (target.is_foreign && target.on_device) {
    // Its library knows nothing of the stream that gridbuf works on.
    steal(PyObject_CallMethod(target.on_device.ptr(), "synchronize", nullptr));
  }
  if (target.meaning.touch) steal(PyObject_CallNoArgs(target.meaning.touch.ptr()));
}

// ---- The function. ----

/// Storages join by the names of their dimensions, which is written in Python.
void copy_storages(const Given& given) {
  const py::object module = steal(PyImport_ImportModule("gridbuf.storage._functions"));
  const py::object function = steal(PyObject_GetAttrString(module.ptr(), "copyto"));
  PyObject* const where = given.where == nullptr ? Py_True : given.where;
  PyObject* arguments[] = {given.target, given.source, given.casting, where};
  const py::object done = steal(PyObject_Vectorcall(function.ptr(), arguments, 4, nullptr));
  if (done.ptr() != Py_NotImplemented) return;
  raise(ErrorClass::kType,
        Problem{"an operand", "neither an array whose memory can be reached nor a value",
                "one of them", "make an array of it first, for example with numpy.asarray"});
}

void copy_any(const Given& given) {
  const bool has_storage = is_storage(given.target) || is_storage(given.source) ||
                           (given.where != nullptr && is_storage(given.where));
  if (has_storage) return copy_storages(given);
  const End target = open_target(given.target);
  const py::object mask = open_mask(given.where);
  const CopyRule rule{.casting = given.casting, .mask = mask.ptr()};
  const End source = open_source(given.source, target, given.casting);
  if (target.on_device || source.on_device) {
    copy_with_device(target, source, rule);
  } else {
    copy_arrays(target.array.ptr(), source.array.ptr(), rule);
  }
  finish(target);
}

[[noreturn]] void raise_missing(const char* name) {
  raise(ErrorClass::kType, std::string("copyto() needs ") + name +
                               "; call it as copyto(dst, src, casting=\"same_kind\", where=True)");
}

PyObject* copyto(PyObject*, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  return guarded([&] {
    static constexpr const char* kNames[] = {"dst", "src", "casting", "where"};
    static constexpr Signature kSignature{"copyto", kNames, 4};
    PyObject* values[4] = {};
    if (count == 2 && names == nullptr) {
      values[0] = arguments[0];
      values[1] = arguments[1];
    } else {
      sort_arguments(kSignature, arguments, count, names, values, unexpected_keyword);
    }
    if (values[0] == nullptr) raise_missing("dst");
    if (values[1] == nullptr) raise_missing("src");
    PyObject* casting = to_casting(values[2]);
    if (casting == nullptr) casting = same_kind_casting();
    const bool everywhere = values[3] == nullptr || values[3] == Py_True;
    if (everywhere && is_exact_ndarray(values[0]) && is_exact_ndarray(values[1])) {
      copy_arrays(values[0], values[1], {.casting = casting});
    } else {
      copy_any({values[0], values[1], casting, everywhere ? nullptr : values[3]});
    }
    return share(Py_None);
  });
}

PyMethodDef functions[] = {
    {"copyto", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(copyto)),
     METH_FASTCALL | METH_KEYWORDS,
     "copyto(dst, src, casting='same_kind', where=True)\n--\n\n"
     "Copies the elements of src into dst, as numpy.copyto does, whatever libraries they are "
     "of.\n\n"
     "dst: any array whose memory can be written: an ndarray, a Buffer, a storage, a memoryview, "
     "a\n"
     "tensor, memory of a device. src: any array, number, text or sequence; it is broadcast to "
     "the\n"
     "shape of dst, storages by the names of their dimensions. casting: which conversions are\n"
     "allowed, in numpy.can_cast's words. where: a bool array, broadcast likewise; elements where "
     "it\n"
     "is False keep their values. dst and src may overlap. Bytes between the elements of dst stay "
     "as\n"
     "they are. Long copies use all threads (set_num_threads) and let other Python threads run.\n\n"
     "Raises TypeError for what is no array and for casts that are not allowed, ValueError for a "
     "dst\n"
     "that is read-only and for shapes that do not broadcast, BufferError for memory that cannot "
     "be\n"
     "shared; warns as NumPy does of values that a cast does not keep."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_copyto_function(PyObject* module) { check(PyModule_AddFunctions(module, functions)); }

}  // namespace gridbuf::python
