// gridbuf.python.imports: memory of other libraries, as Buffers, ndarrays and CuPy arrays.
//
// Purpose. An array from anywhere comes in through one door: `import_buffer` finds the cheapest
// interface that the object offers, hands what it says to that protocol's reader
// (gridbuf.interface.*), waits for the stream that it names, and adopts the memory as a Buffer that
// keeps the producer alive. Nothing is copied, and nothing is dereferenced before it passed.
//
// The order, cheapest first: a Buffer is itself; an ndarray's fields are read; then
// `__gt_data_interface__` (whose `acquire` must run before anything is read, so nothing may come
// before it), DLPack's C table of exactly that type (DX-11), the buffer protocol, `__dlpack__`,
// `__array_struct__`, `__array_interface__`, `__cuda_array_interface__`. A producer that declines
// with a BufferError is asked through its next interface, and its first answer is raised if all
// decline. A descriptor that breaks a rule is an error at once: its producer is wrong, and what it
// says elsewhere is no better. So is whatever else a getter raises; only AttributeError means "not
// offered" (AI-29).
//
// Key choice: what keeps foreign memory alive is one Python object. A Py_buffer is held by a
// memoryview (or a capsule), a struct by its capsule, a dict together with its object, as some
// dicts own what they describe (numpy #31036). Only a DLPack tensor is owned by the descriptor
// itself; after the interpreter's end it is left alone. All functions need the GIL.

module;

#include <Python.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

export module gridbuf.python.imports;

import gridbuf.interface.numpy;
import gridbuf.interface;
import gridbuf.layout;
import gridbuf.python.buffer;
import gridbuf.python.object;

export namespace gridbuf::python {

struct ImportOptions {
  bool sync = true;           // wait for the stream that the producer names
  bool allow_copied = false;  // take memory that the producer copied for this import
  bool use_names = true;      // of the dimensions, as the object declares them
  bool acquired = false;      // the caller has called `acquire`, and will call `release`
  std::optional<DeviceType> side = std::nullopt;  // which entry of a `__gt_data_interface__`
  Purpose purpose = Purpose::kSharing;            // of an array of gridbuf's own
};

/// What an object says of its memory that a Buffer has no place for.
struct Meaning {
  Halo halo = {};    // of an entry of `__gt_data_interface__`; empty: it has none
  py::object touch;  // to be called after the memory was written; none: nobody asks for it
  std::vector<std::string> names = {};  // of the dimensions in that entry, any; empty: it has none
};

/// What an object wants to be called before its memory is used, and after that. For those who use
/// it for a while that they know, and not for as long as something lives.
struct UseHooks {
  DeviceType side = DeviceType::kHost;  // whose entry they are of
  py::object acquire;                   // none: nothing is asked for
  py::object release;                   // the same
};

/// The hooks of the object's `__gt_data_interface__`: of `side`, or of the other one if it has no
/// entry there. Nothing without that interface. Errors, which begin with a rule's id, if it has no
/// entries or they are not dicts of functions.
std::optional<UseHooks> use_hooks(PyObject* object, DeviceType side);

/// A Buffer over the memory of `object`; none if it offers no interface. `dims`, which may be null,
/// is the parameter of that name; without it the names are those that the object declares.
/// Exceptions: those of the producer; TypeError, ValueError or BufferError that begin with the id
/// of a broken rule; DeviceUnavailableError for memory of a device that is not there.
/// `meaning`, if not null, receives what else the object says.
py::object import_or_none(PyObject* object, PyObject* dims, const ImportOptions& options,
                          Meaning* meaning = nullptr);

/// The same, with a TypeError that lists the interfaces if there is none.
py::object import_buffer(PyObject* object, PyObject* dims, const ImportOptions& options,
                         Meaning* meaning = nullptr);

/// `object` as something whose elements the host can read by its fields: an ndarray or a Buffer; a
/// new Buffer over its memory if it is neither and offers an interface; else `object` itself.
/// `dims` is the parameter of the caller, which may be null.
py::object importable_or_same(PyObject* object, PyObject* dims);

/// A `cupy.ndarray` over a Buffer's memory, which keeps the Buffer; `sync` orders what is pending
/// on it before CuPy's current stream. DeviceUnavailableError without CuPy or a CUDA device,
/// GTNoSuchBufferError for memory of the host.
py::object make_cupy_view(const py::object& buffer, bool sync);

/// The default origin that an object declares (`__gt_origin__`, then `default_origin`, as
/// attributes or methods), in the order of annotations; nothing if it declares none.
std::optional<Extents> declared_origin(PyObject* object);

/// Adds as_numpy, as_cupy, as_buffer, from_interface and get_origin to `module`.
void add_import_functions(PyObject* module);

}  // namespace gridbuf::python

// What the implementation files share.
namespace gridbuf::python {

/// A reference whose end may run a producer's own code (a capsule's destructor, the release of a
/// Py_buffer). That code must find no exception set, and an exception that is on its way must
/// survive it (DP-09).
class ShieldedRef {
 public:
  ShieldedRef() noexcept = default;
  ShieldedRef(py::object object) noexcept : object_(std::move(object)) {}
  ShieldedRef(ShieldedRef&&) noexcept = default;
  ShieldedRef& operator=(ShieldedRef&&) noexcept = default;
  ShieldedRef(const ShieldedRef&) = delete;
  ShieldedRef& operator=(const ShieldedRef&) = delete;
  ~ShieldedRef() {
    if (!object_ || PyErr_Occurred() == nullptr) return;
    PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
    PyErr_Fetch(&type, &value, &traceback);
    Py_DecRef(object_.release().ptr());
    PyErr_Restore(type, value, traceback);
  }

  PyObject* get() const noexcept { return object_.ptr(); }
  explicit operator bool() const noexcept { return static_cast<bool>(object_); }

 private:
  py::object object_;
};

/// Memory that came in through one interface.
struct Foreign {
  ImportedView view = {};
  py::object dtype;                    // numpy.dtype where the view's type does not say all: fields
  ShieldedRef keep_alive;              // none if view.memory.owner keeps the memory alive
  std::vector<std::string> dims = {};  // that the interface names; empty: none
  Meaning meaning = {};
};

/// Thrown when a producer declined with a BufferError, which is set: the next interface may do.
struct Declined {};

/// (first, second): a thing that keeps both alive. Null ones are left out.
py::object keep_both(PyObject* first, PyObject* second);

// descriptors.cc: what Python objects say, as the readers take it.

/// An array interface's dict. `self` is whose buffer is meant where `data` says None; may be null.
Foreign read_array_dict(PyObject* dict, PyObject* self);
/// The same for the CUDA array interface.
Foreign read_cuda_dict(PyObject* dict, PyObject* self);
/// A `__gt_data_interface__` or a dict of that form; `side` nothing: the host's if there is one.
/// Acquires; the result's keep_alive releases when it goes. The dict is read again from `source`
/// afterwards, where it came from, as acquiring may move memory; null: it stays as it is.
Foreign read_data_dict(PyObject* dict, PyObject* self, std::optional<DeviceType> side,
                       PyObject* source);
/// The same of memory that the caller has acquired, and will release.
Foreign read_acquired_dict(PyObject* dict, PyObject* self, DeviceType side);
/// Whether the dict has an entry of the side, and whether of any.
bool has_entry(PyObject* dict, DeviceType side);
bool is_data_dict(PyObject* dict);
/// An array struct in its capsule (AS-01).
Foreign read_struct_capsule(PyObject* capsule, PyObject* self);
/// The numpy.dtype of an array interface's descr.
py::object dtype_of_descr(PyObject* descr);

// protocols.cc: one function per interface; nothing if the object does not offer it.

std::optional<Foreign> through_ndarray(PyObject* object);
std::optional<Foreign> through_data_interface(PyObject* object, const ImportOptions& options);
std::optional<Foreign> through_exchange_table(PyObject* object);
std::optional<Foreign> through_buffer(PyObject* object);
std::optional<Foreign> through_dlpack(PyObject* object, const ImportOptions& options);
std::optional<Foreign> through_array_struct(PyObject* object);
std::optional<Foreign> through_array_interface(PyObject* object);
std::optional<Foreign> through_cuda_array_interface(PyObject* object);

/// A Buffer over what came in; waits for its stream.
py::object adopt(Foreign foreign, PyObject* object, PyObject* dims, const ImportOptions& options);

}  // namespace gridbuf::python
