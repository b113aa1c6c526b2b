// `gridbuf.copyto`, from any array into any other.
//
// numpy.copyto for everything that offers memory: arrays of any library, Buffers, storages, memory
// of a device. Shapes broadcast, `casting` says which conversions are allowed, `where` masks, and
// overlapping arrays come out as if the source had been read first.
//
// Key choice. Both ends become something that is copied in one call: two ndarrays (copy_arrays of
// gridbuf.python.buffer), or two Buffers of which a device has at least one (copy_buffer). The host
// does what a device cannot do: conversions and masks. Storages are gridbuf.storage's, in Python.
//
// Two ndarrays, the usual case, take none of these steps: their fields are read in place.

module;

#include <Python.h>

#include <string>

module gridbuf.python.storage;

namespace gridbuf::python {
namespace {

using storages::on_host;
using storages::Value;

/// The arguments as passed; borrowed. `casting` is a str that NumPy knows.
struct Given {
  PyObject* target;
  PyObject* source;
  PyObject* casting;
  PyObject* where;  // null: everywhere
};

/// The mask as an ndarray of bool; none for True.
py::object open_mask(PyObject* where) {
  if (where == nullptr || where == Py_True) return py::object();
  Meaning meaning;
  py::object mask = on_host(storages::open_value(where, DeviceType::kHost, meaning));
  const DTypePtr dtype = record_or_none(dtype_of_ndarray(mask.ptr()));
  if (dtype && dtype->type.kind() == Kind::kBool) return mask;
  raise(ErrorClass::kType, Problem{"where's dtype", describe(dtype_of_ndarray(mask.ptr())), "bool",
                                   "pass a comparison such as array > 0, or where.astype(bool)"});
}

/// Between two Buffers of which a device has at least one.
void copy_by_device(const py::object& target, const Value& source, const CopyRule& rule) {
  const BufferDescriptor& memory = state_of(target.ptr()).memory;
  if (memory.readonly) {
    raise(ErrorClass::kValue, Problem{"dst", "read-only", "memory that may be written",
                                      "pass a writable array, or copy into a new one"});
  }
  storages::check_broadcasts(source, memory.view.shape, "src's shape",
                             "copy into a part of that shape, or add dimensions with "
                             "array[:, None]");
  copy_buffer(target.ptr(), storages::transferable(source, target, rule).ptr());
}

/// A value becomes one element of the target's type: Python's numbers have no type of their own.
Value open_source(const Given& given, PyObject* dtype, bool on_device) {
  if (is_scalar(given.source) && !is_ndarray(given.source)) {
    return {make_element(dtype, given.source, given.casting)};
  }
  Meaning unused;
  return storages::open_value(given.source, on_device ? DeviceType::kCuda : DeviceType::kHost,
                              unused);
}

/// Into an array of the host.
void copy_to_host(const Given& given, const py::object& target, const CopyRule& rule) {
  PyObject* const dtype = dtype_of_ndarray(target.ptr());
  const Value source = open_source(given, dtype, /*on_device=*/false);
  const bool converts = source.array || dtype_of(source.on_device.ptr())->numpy.ptr() != dtype;
  if (converts || rule.mask != nullptr) {
    return copy_arrays(target.ptr(), on_host(source).ptr(), rule);
  }
  copy_by_device(import_buffer(target.ptr(), nullptr, {.use_names = false}), source, rule);
}

/// Between arrays that are not storages.
void copy_any(const Given& given) {
  Meaning meaning;
  if (is_exact_ndarray(given.target)) {
    const py::object mask = open_mask(given.where);
    return copy_to_host(given, share(given.target), {given.casting, mask.ptr()});
  }
  const py::object target = import_buffer(
      given.target, nullptr, {.use_names = false, .side = DeviceType::kHost}, &meaning);
  const py::object mask = open_mask(given.where);
  const CopyRule rule{.casting = given.casting, .mask = mask.ptr()};
  if (is_host_readable(state_of(target.ptr()).memory.device.type)) {
    copy_to_host(given, ndarray_of(target.ptr()), rule);
  } else {
    PyObject* const dtype = dtype_of(target.ptr())->numpy.ptr();
    copy_by_device(target, open_source(given, dtype, /*on_device=*/true), rule);
    // The library of foreign memory knows nothing of the stream that gridbuf works on.
    if (!is_buffer(given.target)) {
      steal(PyObject_CallMethod(target.ptr(), "synchronize", nullptr));
    }
  }
  if (meaning.touch) steal(PyObject_CallNoArgs(meaning.touch.ptr()));
}

/// Storages join by the names of their dimensions, which is written in Python.
void copy_storages(const Given& given) {
  const py::object module = steal(PyImport_ImportModule("gridbuf.storage._functions"));
  PyObject* const where = given.where == nullptr ? Py_True : given.where;
  const py::object done = steal(PyObject_CallMethod(module.ptr(), "copyto", "OOOO", given.target,
                                                    given.source, given.casting, where));
  if (done.ptr() != Py_NotImplemented) return;
  raise(ErrorClass::kType,
        Problem{"an operand", "neither an array whose memory can be reached nor a value",
                "one of them", "make an array of it first, for example with numpy.asarray"});
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
      return share(Py_None);
    }
    const Given given{values[0], values[1], casting, everywhere ? nullptr : values[3]};
    const bool has_storage = is_storage(given.target) || is_storage(given.source) ||
                             (!everywhere && is_storage(given.where));
    has_storage ? copy_storages(given) : copy_any(given);
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
