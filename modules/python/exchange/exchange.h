// Arrays from and for other libraries, through the interfaces that both know.
#ifndef GRIDBUF_MODULES_PYTHON_EXCHANGE_EXCHANGE_H_
#define GRIDBUF_MODULES_PYTHON_EXCHANGE_EXCHANGE_H_

#include "modules/python/array/array.h"

// ---- Imports ----
//
// `import_buffer` asks an object's interfaces, cheapest first (`find_memory`), checks what the
// first one says (gridbuf.interface), waits for the stream that it names, and adopts the memory as
// a Buffer that keeps the producer alive. Nothing is copied, and nothing is dereferenced before it
// is checked. A producer that raises BufferError is asked through its next interface; its first
// error is raised if all decline. All other errors are raised at once; only AttributeError means
// that the interface is missing (AI-29).
//
// Key decision: one Python object keeps foreign memory alive. A memoryview or a capsule holds a
// Py_buffer, a capsule its struct, and a dict goes with its object, as some dicts own the memory
// (numpy #31036). Only a DLPack tensor is owned by the descriptor.

namespace gridbuf::python {

struct ImportOptions {
  bool sync = true;           // wait for the stream that the producer names
  bool allow_copied = false;  // take memory that the producer copied for this import
  bool use_names = true;      // of the dimensions, as the object declares them
  bool acquired = false;      // the caller has called `acquire`, and will call `release`
  std::optional<Side> side = std::nullopt;  // which entry of a `__gt_data_interface__`
  Purpose purpose = Purpose::kSharing;      // of an array of gridbuf's own
};

/// The parts of an entry of `__gt_data_interface__` that a Buffer does not have; empty: not given.
struct Meaning {
  Halo halo = {};
  py::object touch;                     // to be called after the memory was written
  std::vector<std::string> names = {};  // of the dimensions, any
  py::object dims = {};                 // the same as the object has them, with kinds
};

/// The dimensions of `meaning.names`, which must not be empty; an error for a text that is not a
/// name.
absl::StatusOr<Dims> dims_of(const Meaning& meaning, int ndim);

/// Functions to call before memory is used for a limited time, and after that; none: not given.
struct UseHooks {
  Side side = Side::kHost;  // of their entry
  py::object acquire;
  py::object release;
};

/// The hooks of the object's `__gt_data_interface__`: of `side`, or of the other one if it has no
/// entry there. Nothing without that interface. Errors, which begin with a rule's id, if it has no
/// entries or they are not dicts of functions.
std::optional<UseHooks> use_hooks(PyObject* object, Side side);

/// A Buffer over the memory of `object`; none if it offers no interface. `dims`, which may be null,
/// is the parameter of that name; without it the names are those that the object declares.
/// Exceptions: those of the producer; TypeError, ValueError or BufferError that begin with the id
/// of a broken rule; DeviceUnavailableError for memory of a device that is not there.
/// `meaning`, if not null, receives the rest of the entry.
py::object import_or_none(PyObject* object, PyObject* dims, const ImportOptions& options,
                          Meaning* meaning = nullptr);

/// The same, with a TypeError that lists the interfaces if there is none.
py::object import_buffer(PyObject* object, PyObject* dims, const ImportOptions& options,
                         Meaning* meaning = nullptr);

/// `memoryview(object)`, which is a new object, after a check of what CPython reads unchecked.
/// Exceptions: those of the exporter; BufferError that begins with the id of a broken rule.
py::object as_memoryview(PyObject* object);
/// Makes its type. Called once, by the extension's initialisation.
void make_checked_exporter_type();

/// `numpy.asarray(object)`, which follows the pointers of a Py_buffer or an array struct only after
/// the checks of an import. Exceptions: as of import_or_none.
py::object as_ndarray(PyObject* object);

/// `object` as something whose elements the host can read by its fields: an ndarray or a Buffer; a
/// new Buffer over its memory if it is neither and offers an interface; else `object` itself.
/// `dims` is the parameter of the caller, which may be null.
py::object importable_or_same(PyObject* object, PyObject* dims);

/// A `cupy.ndarray` over a Buffer's memory, which keeps the Buffer; `sync` orders the pending work
/// on it before CuPy's current stream. DeviceUnavailableError without CuPy or a CUDA device,
/// GTNoSuchBufferError for memory of the host.
py::object make_cupy_view(const py::object& buffer, bool sync);

/// The default origin that an object declares (`__gt_origin__`, then `default_origin`, as
/// attributes or methods), in the order of annotations; nothing if it declares none.
std::optional<Extents> declared_origin(PyObject* object);

/// `as_buffer` and `as_numpy`.
void add_import_functions(PyObject* module);
/// `as_cupy`, `from_interface` and `get_origin`.
void add_front_ends(PyObject* module);

}  // namespace gridbuf::python

// ---- Exports ----

namespace gridbuf::python {

/// The keywords of `__dlpack__`, from a vectorcall. TypeError; ValueError.
dlpack::ExportRequest to_export_request(PyObject* const* arguments, Py_ssize_t count,
                                        PyObject* keywords);
/// What `__dlpack__` of the buffer returns.
py::object export_dlpack(PyObject* buffer, const dlpack::ExportRequest& request);
/// A capsule over memory as it was negotiated, without a copy. Nothing is pending on it.
py::object export_capsule(const BufferDescriptor& memory, const dlpack::ExportPlan& plan);

/// DLPack's C exchange table of the type; those of other types may take over its functions that
/// need no object.
const dlpack::ExchangeApi& buffer_exchange_table();

/// One side's entry of `__gt_data_interface__`, over the buffer's memory. `acquire` and `touch` are
/// callables, or null for none. Requires that the side reaches the memory.
py::object make_data_entry(PyObject* buffer, Side side, const Halo& halo, PyObject* acquire,
                           PyObject* touch);

/// The answer to a buffer request that can be met, but for the owner (PB-01 ... PB-25).
Py_buffer answer_of(const BufferDescriptor& memory, int flags);

// The values of the attributes. AttributeError where the interface cannot describe the memory.
py::object make_array_interface(const BufferObject& buffer);
py::object make_array_struct(const BufferObject& buffer);
py::object make_cuda_array_interface(const BufferObject& buffer);
py::object make_data_interface(const BufferObject& buffer);

PyObject* dlpack_method(PyObject* self, PyObject* const* arguments, Py_ssize_t count,
                        PyObject* keywords);
PyObject* dlpack_device_method(PyObject* self, PyObject*);
/// The capsule of DLPack's C exchange table, of which there is one in a process (DX-01, DX-02).
py::object make_exchange_capsule();

/// Waits until a device has done with memory that the host reads as well. Nothing for host memory.
void wait_for_host(const BufferObject& buffer);
/// Orders the work pending on the memory before a consumer's work on an export (DP-18, DP-24).
void order_pending(const BufferObject& buffer, const dlpack::ExportPlan& plan);
/// An error if the memory is the emulated device's and that is switched off: then no consumer may
/// take it for a GPU's.
absl::Status check_device_is_on(const BufferObject& buffer);
/// Whether the memory is the emulated device's.
bool is_emulated(const BufferObject& buffer);

}  // namespace gridbuf::python

// What the implementation files share.
namespace gridbuf::python {

/// A reference whose end may run a producer's code (a capsule's destructor, the release of a
/// Py_buffer). That code must find no exception set, and a pending exception must survive it
/// (DP-09).
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
    const py::error_scope kept;
    object_ = py::object();
  }

  PyObject* ptr() const noexcept { return object_.ptr(); }
  explicit operator bool() const noexcept { return static_cast<bool>(object_); }

 private:
  py::object object_;
};

/// Memory that came in through one interface.
struct Foreign {
  ImportedView view = {};
  py::object dtype;        // numpy.dtype where the view's type does not say all: fields
  ShieldedRef keep_alive;  // none if view.memory.owner keeps the memory alive
  Meaning meaning = {};
};

/// (first, second): an object that keeps both alive. Null ones are left out.
py::object keep_both(PyObject* first, PyObject* second);

/// An array interface's dict. `self` is whose buffer is meant where `data` says None; may be null.
Foreign read_array_dict(PyObject* dict, PyObject* self);
/// The same for the CUDA array interface.
Foreign read_cuda_dict(PyObject* dict, PyObject* self);
/// A `__gt_data_interface__` or a dict of that form; `side` nothing: the host's if there is one.
/// Acquires; the result's keep_alive releases when it goes. The dict is read again from `source`
/// afterwards, where it came from, as acquiring may move memory; null: it stays unchanged.
Foreign read_data_dict(PyObject* dict, PyObject* self, std::optional<Side> side, PyObject* source);
/// Whether the dict has an entry of a side.
bool is_data_dict(PyObject* dict);

/// The memory behind the interface; nothing if the object does not offer it.
std::optional<Foreign> through_data_interface(PyObject* object, const ImportOptions& options);
std::optional<Foreign> through_array_struct(PyObject* object, const ImportOptions& options);
std::optional<Foreign> through_array_interface(PyObject* object, const ImportOptions& options);
std::optional<Foreign> through_cuda_array_interface(PyObject* object, const ImportOptions& options);

/// A Buffer over what came in; waits for its stream.
py::object adopt(Foreign foreign, PyObject* object, PyObject* dims, const ImportOptions& options);

/// A `cupy.ndarray` as `plan` says, in memory of CuPy's current allocator, so that the user's pool
/// (CuPy's, RMM's) and its limits hold. `zeroed`: elements and padding are zeros, written on CuPy's
/// current stream. TypeError for dtypes that CuPy does not have; DeviceUnavailableError; CuPy's
/// MemoryError.
py::object make_cupy_array(const Layout& plan, const DTypeRecord& dtype, bool zeroed);
/// Writes `value` to all elements of such an array, broadcast and cast as numpy.full does.
void copy_into_cupy(PyObject* array, PyObject* value);

}  // namespace gridbuf::python

#endif  // GRIDBUF_MODULES_PYTHON_EXCHANGE_EXCHANGE_H_
