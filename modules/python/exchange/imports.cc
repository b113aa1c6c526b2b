// Imports of any array through the interface that it offers.

module;

#include <pybind11/pybind11.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "modules/python/arguments/docstrings.h"

module gridbuf.python;

namespace gridbuf::python {
namespace {

/// Thrown when a producer declined with a BufferError: its next interface is asked.
struct Declined {
  py::error_already_set error = {};
};

/// What a producer's function returned; its exception if that is null.
py::object answer_of(PyObject* result) {
  if (result != nullptr) return py::reinterpret_steal<py::object>(result);
  if (PyErr_ExceptionMatches(PyExc_BufferError) != 0) throw Declined();
  throw PythonError();
}

// ---- ndarrays and the buffer protocol. ----

std::optional<Foreign> through_ndarray(PyObject* object, const ImportOptions&) {
  if (!is_ndarray(object)) return std::nullopt;
  // The mask of a masked array would be lost (AI-26).
  if (!is_exact_ndarray(object) &&
      py::module_::import("numpy.ma").attr("is_masked")(py::handle(object)).cast<bool>()) {
    check(refuse("AI-26", ErrorClass::kBuffer,
                 {"the array", "masked", "without masked elements, which would be read as values",
                  "fill them first: array.filled(value)"}));
  }
  const NdarrayFields fields = fields_of(object);
  Foreign foreign;
  foreign.dtype = share(fields.dtype);
  const DTypePtr dtype = record_of(fields.dtype);
  // NumPy made the strides, but anyone may have made NumPy do so: the hull is checked.
  foreign.view.memory =
      value_of(gridbuf::describe({.block = fields.first_element,
                                  .view = {.shape = fields.shape,
                                           .strides_bytes = fields.strides_bytes,
                                           .offset_bytes = 0,
                                           .itemsize_bytes = dtype->type.itemsize_bytes()},
                                  .dtype = dtype->type,
                                  .readonly = fields.readonly,
                                  .device = {},
                                  .owner = {}}));
  foreign.keep_alive = share(object);
  return foreign;
}

ForeignBuffer read_fields(const Py_buffer& found) {
  ForeignBuffer buffer{.buf = found.buf,
                       .len_bytes = found.len,
                       .itemsize_bytes = found.itemsize,
                       .readonly = found.readonly != 0,
                       .ndim = found.ndim,
                       .format = std::nullopt,
                       .shape = found.shape,
                       .strides_bytes = found.strides,
                       .suboffsets = found.suboffsets};
  if (found.format != nullptr) buffer.format = found.format;
  return buffer;
}

/// Passes the requests of a memoryview on to an exporter, and checks the answers: a memoryview
/// divides by the item size and reads `ndim` extents of any shape.
struct CheckedExporter {
  PyObject_HEAD;
  PyObject* exporter;  // Borrowed: a memoryview makes its request while it is made.
};

PyTypeObject* checked_exporter_type = nullptr;  // made once, kept for good

int get_checked_buffer(PyObject* self, Py_buffer* view, int flags) {
  return guarded(-1, [&] {
    const int result =
        PyObject_GetBuffer(reinterpret_cast<CheckedExporter*>(self)->exporter, view, flags);
    if (PyErr_Occurred() != nullptr) {
      const py::error_scope kept;
      if (result == 0) PyBuffer_Release(view);
      return -1;
    }
    if (result != 0) {
      raise(refuse("PB-01", ErrorClass::kBuffer,
                   {"the answer to a buffer request", std::to_string(result),
                    "accompanied by a Python exception", "report it to the exporter's library"}));
    }
    ForeignBuffer found = read_fields(*view);
    if (found.ndim == 1 && found.shape == nullptr) found.ndim = 0;  // The memoryview computes it.
    const absl::Status status = check_counts(found);
    if (status.ok()) return 0;
    PyBuffer_Release(view);
    raise(status);
  });
}

/// The same as as_memoryview; a BufferError declines.
py::object memoryview_or_declined(PyObject* object) try {
  return as_memoryview(object);
} catch (const PythonError&) {
  return answer_of(nullptr);
}

std::optional<Foreign> through_buffer(PyObject* object, const ImportOptions&) {
  if (PyObject_CheckBuffer(object) == 0) return std::nullopt;
  // Holds the Py_buffer and gives it back when it goes (PB-24, PB-35).
  ShieldedRef view = memoryview_or_declined(object);
  Foreign foreign;
  foreign.view = value_of(read_buffer(read_fields(*PyMemoryView_GET_BUFFER(view.ptr()))));
  if (foreign.view.memory.dtype.kind() == Kind::kStructured) {
    // NumPy reads formats with fields.
    foreign.dtype = share(dtype_of_ndarray(read_by_numpy(view.ptr()).ptr()));
  }
  foreign.keep_alive = std::move(view);
  return foreign;
}

// ---- DLPack. ----

/// Drops a producer's memory. Its deleter may call into Python: once the interpreter has ended it
/// is left alone (DL-20), and an exception that is on its way here survives it (DP-09).
void drop_tensor(Owner* owner) {
  if (Py_IsInitialized() == 0) return;
  if (PyGILState_Check() == 0) {
    delete owner;
    return;
  }
  const py::error_scope kept;
  delete owner;
}

Foreign foreign_of(absl::StatusOr<ImportedView> taken) {
  Foreign foreign;
  foreign.view = value_of(std::move(taken));
  Owner& owner = foreign.view.memory.owner;
  auto held = std::make_unique<Owner>(std::move(owner));
  owner = std::shared_ptr<const void>(held.release(), [](Owner* dropped) { drop_tensor(dropped); });
  return foreign;
}

/// What the object's method returns; none if it has no such method.
py::object call_or_none(PyObject* object, AttributeName& name) {
  const py::object method = optional_attribute(object, name);
  return method ? steal(PyObject_CallNoArgs(method.ptr())) : py::object();
}

/// PyTorch conjugates and negates lazily: a bit says that the values are not those in the memory.
/// `__dlpack__` exports negated tensors, and `__cuda_array_interface__` exports both kinds.
void check_memory_has_values(PyObject* object) {
  static AttributeName negated("is_neg");
  static AttributeName conjugated("is_conj");
  for (AttributeName* const name : {&negated, &conjugated}) {
    const py::object answer = call_or_none(object, *name);
    if (!answer) return;
    if (!answer.is(py::handle(Py_True))) continue;
    raise(refuse(
        "DP-25", ErrorClass::kBuffer,
        {std::string(utf8(name->get())) + "() of the tensor", "True",
         "False, so that its memory has its values", "pass tensor.resolve_conj().resolve_neg()"}));
  }
}

/// PyTorch's `__dlpack__` exports tensors without memory (fake ones, wrappers): the address is
/// their offset.
void check_has_memory(PyObject* object) {
  static AttributeName storage_name("untyped_storage");
  static AttributeName address_name("data_ptr");
  const py::object storage = call_or_none(object, storage_name);
  const py::object address = storage ? call_or_none(storage.ptr(), address_name) : py::object();
  const int has_memory = address ? PyObject_IsTrue(address.ptr()) : 1;
  check(has_memory);
  if (has_memory == 1) return;
  raise(refuse("DL-27", ErrorClass::kBuffer,
               {"the address of the tensor's storage", "0", "that of its memory",
                "pass a tensor that has elements in memory"}));
}

struct DlpackDevice {
  std::int64_t type;
  std::int64_t id;
};

/// An int, or an enum member whose value is one (DP-02).
std::optional<std::int64_t> to_device_number(PyObject* object) {
  static AttributeName name("value");
  py::object value = share(object);
  if (PyLong_Check(object) == 0) value = optional_attribute(object, name);
  if (!value || PyLong_Check(value.ptr()) == 0) return std::nullopt;
  int overflow = 0;
  const std::int64_t number = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
  return overflow == 0 ? std::optional(number) : std::nullopt;
}

DlpackDevice query_device(PyObject* object) {
  static AttributeName name("__dlpack_device__");
  const py::object method = optional_attribute(object, name);
  if (!method) {
    check(refuse("DP-01", ErrorClass::kType,
                 {"__dlpack_device__", "missing", "offered together with __dlpack__",
                  "add the method that names the device"}));
  }
  const py::object answer = answer_of(PyObject_CallNoArgs(method.ptr()));
  if (PyTuple_Check(answer.ptr()) != 0 && PyTuple_GET_SIZE(answer.ptr()) == 2) {
    const auto type = to_device_number(PyTuple_GET_ITEM(answer.ptr(), 0));
    const auto id = to_device_number(PyTuple_GET_ITEM(answer.ptr(), 1));
    if (type && id) return {*type, *id};
  }
  raise(refuse("DP-02", ErrorClass::kType,
               {"what __dlpack_device__ returned", describe(answer.ptr()),
                "a tuple (device type, device id) of ints", "return a tuple such as (1, 0)"}));
}

/// Calls __dlpack__; producers of the first standard know `stream` alone (DP-14).
py::object call_dlpack(const py::object& method, const DlpackDevice& device,
                       const ImportOptions& options) {
  const py::tuple none;
  py::dict old;  // The host has no stream (DP-16, DP-19).
  if (device.type == static_cast<std::int64_t>(DeviceType::kCuda) ||
      device.type == static_cast<std::int64_t>(DeviceType::kCudaManaged)) {
    if (options.sync) value_of(device_driver());  // A driver must be able to wait.
    old["stream"] = options.sync ? static_cast<std::int64_t>(current_stream()) : -1;
  }
  py::dict keywords = old.attr("copy")();
  keywords["max_version"] = py::make_tuple(dlpack::kMajorVersion, dlpack::kMinorVersion);
  if (!options.allow_copied) keywords["copy"] = false;
  PyObject* capsule = PyObject_Call(method.ptr(), none.ptr(), keywords.ptr());
  if (capsule == nullptr && take_error(PyExc_TypeError)) {
    capsule = PyObject_Call(method.ptr(), none.ptr(), old.ptr());
  }
  return answer_of(capsule);
}

/// The tensor of a capsule of that name; nothing for other objects.
template <class Managed>
std::optional<Foreign> consume(PyObject* capsule, const char* name, const char* used_name) {
  if (PyCapsule_IsValid(capsule, name) == 0) return std::nullopt;
  auto* const managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
  // Before anything else can fail: from here on the tensor is ours alone (DP-08).
  check(PyCapsule_SetName(capsule, used_name));
  return foreign_of(dlpack::take(managed));
}

Foreign consume_capsule(PyObject* capsule) {
  using namespace dlpack;
  if (auto foreign =
          consume<DLManagedTensorVersioned>(capsule, kVersionedName, kUsedVersionedName)) {
    return *std::move(foreign);
  }
  if (auto foreign = consume<DLManagedTensor>(capsule, kLegacyName, kUsedLegacyName)) {
    return *std::move(foreign);
  }
  const bool used = PyCapsule_IsValid(capsule, kUsedVersionedName) != 0 ||
                    PyCapsule_IsValid(capsule, kUsedLegacyName) != 0;
  raise(refuse(used ? "DP-05" : "DP-03", used ? ErrorClass::kBuffer : ErrorClass::kType,
               {"what __dlpack__ returned", describe(capsule),
                used ? "a capsule that was not consumed yet"
                     : "a capsule named dltensor or dltensor_versioned",
                "return a new capsule from every call"}));
}

std::optional<Foreign> through_dlpack(PyObject* object, const ImportOptions& options) {
  static AttributeName name("__dlpack__");
  const py::object method = optional_attribute(object, name);
  if (!method) return std::nullopt;
  check_memory_has_values(object);
  const DlpackDevice device = query_device(object);
  const ShieldedRef capsule = call_dlpack(method, device, options);
  Foreign foreign = consume_capsule(capsule.ptr());
  if (!foreign.view.memory.is_empty()) check_has_memory(object);
  if (static_cast<std::int64_t>(foreign.view.memory.device.type) != device.type) {
    check(refuse("DP-04", ErrorClass::kBuffer,
                 {"the capsule's device", to_string(foreign.view.memory.device),
                  "of type " + std::to_string(device.type) + ", as __dlpack_device__ says",
                  "make the two methods agree"}));
  }
  if (foreign.view.is_copied && !options.allow_copied) {
    check(refuse("DP-21", ErrorClass::kBuffer,
                 {"the tensor", "a copy", "the object's own memory, as copy=False asks",
                  "use from_array, which copies"}));
  }
  return foreign;
}

// ---- Order. ----

/// The memory behind `object`, through the first interface that gives it; nothing if it has none.
/// DLPack's exchange table is not asked: PyTorch's exports what `__dlpack__` refuses.
std::optional<Foreign> find_memory(PyObject* object, const ImportOptions& options) {
  if (is_exact_ndarray(object)) return through_ndarray(object, options);
  std::optional<py::error_already_set> refusal;  // The first one, for when all decline.
  for (const auto through :
       {through_data_interface, through_ndarray, through_buffer, through_dlpack,
        through_array_struct, through_array_interface, through_cuda_array_interface}) {
    try {
      if (std::optional<Foreign> found = through(object, options)) return found;
    } catch (const Declined& declined) {
      if (!refusal) refusal.emplace(declined.error);
    }
  }
  if (refusal) throw *refusal;
  return std::nullopt;
}

/// The names that the caller passed, else those that the object declares.
Dims dims_of(const Foreign& foreign, PyObject* object, PyObject* dims,
             const ImportOptions& options) {
  const int ndim = foreign.view.memory.view.ndim();
  if (dims != nullptr && dims != Py_None) return to_dims(dims, ndim);
  if (options.use_names && !foreign.meaning.names.empty()) {
    const absl::StatusOr<Dims> parsed = dims_of(foreign.meaning, ndim);
    if (parsed.ok()) return *parsed;
    raise(with_context(parsed.status(), "the array's own names cannot be used; pass dims="));
  }
  // A plain ndarray has no attributes to look for.
  const bool asked = options.use_names && object != nullptr && !is_exact_ndarray(object);
  return (asked ? declared_dims(object, ndim) : std::nullopt).value_or(default_dims(ndim));
}

/// The Buffer itself, or one over its memory with other names.
py::object with_dims(PyObject* buffer, PyObject* dims) {
  const Layout& layout = array_in(buffer).layout();
  const bool same =
      dims == nullptr || dims == Py_None || to_dims(dims, layout.ndim()) == layout.dims();
  if (same) return share(buffer);
  const Array& array = array_in(buffer);
  return adopt_buffer(dtype_of(buffer), buffer, [&] {
    return Array(array.memory(), Layout(layout, to_dims(dims, layout.ndim()), Halo()),
                 array.info());
  });
}

DTypePtr record_for(const Foreign& foreign) {
  const BufferDescriptor& memory = foreign.view.memory;
  DTypePtr record = foreign.dtype ? record_of(foreign.dtype.ptr()) : record_of(memory.dtype);
  if (record->type.itemsize_bytes() != memory.view.itemsize_bytes) {
    raise(ErrorClass::kBuffer,
          Problem{"the itemsize of " + record->name, std::to_string(record->type.itemsize_bytes()),
                  std::to_string(memory.view.itemsize_bytes) + ", as the interface says",
                  "make the producer's element type and itemsize agree"});
  }
  return record;
}

/// Orders the work pending on the producer's stream before gridbuf's later work (CAI-20).
/// Returns the stream that the Buffer works on.
StreamHandle wait_for_producer(const ImportedView& view, const ImportOptions& options) {
  if (view.memory.device.type == DeviceType::kRocm) {
    raise(ErrorClass::kDeviceUnavailable,
          "the array is on " + to_string(view.memory.device) +
              ", and gridbuf drives CUDA devices alone; copy it to the host first");
  }
  DeviceDriver* const driver = value_of(device_driver());
  const StreamHandle own = current_stream();
  if (!view.stream || !options.sync) return own;
  check(with_context(driver->check_stream(*view.stream), "CAI-17"));
  check(driver->order_after(*view.stream, own));
  return own;
}

}  // namespace

py::object adopt(Foreign foreign, PyObject* object, PyObject* dims, const ImportOptions& options) {
  const DTypePtr dtype = record_for(foreign);
  const Device device = foreign.view.memory.device;
  const bool needs_device =
      device.type != DeviceType::kHost && device.type != DeviceType::kRocmHost;
  const StreamHandle stream = needs_device ? wait_for_producer(foreign.view, options) : 0;
  const Dims names = dims_of(foreign, object, dims, options);
  foreign.view.memory.dtype = dtype->type;
  return adopt_buffer(dtype, foreign.keep_alive.ptr(), [&] {
    return foreign_array(std::move(foreign.view.memory), names,
                         ArrayInfo::adopted("foreign", device, stream));
  });
}

py::object import_or_none(PyObject* object, PyObject* dims, const ImportOptions& options,
                          Meaning* meaning) {
  if (is_buffer(object)) return with_dims(object, dims);
  const Side side = options.side.value_or(Side::kHost);
  if (is_storage(object)) {
    return with_dims(side_buffer(object, side, options.purpose).ptr(), dims);
  }
  std::optional<Foreign> found = find_memory(object, options);
  if (!found) return py::object();
  if (meaning != nullptr) *meaning = found->meaning;
  return adopt(*std::move(found), object, dims, options);
}

absl::StatusOr<Dims> dims_of(const Meaning& meaning, int ndim) {
  const std::vector<std::string_view> names(meaning.names.begin(), meaning.names.end());
  const absl::StatusOr<Dims> dims = parse_dims(names, ndim);
  return dims.ok() ? to_dims(meaning.dims.ptr(), ndim) : dims;
}

py::object import_buffer(PyObject* object, PyObject* dims, const ImportOptions& options,
                         Meaning* meaning) {
  py::object buffer = import_or_none(object, dims, options, meaning);
  if (buffer) return buffer;
  raise(ErrorClass::kType,
        Problem{"the object", "of type " + type_name(object),
                "an ndarray, or have the buffer protocol, __dlpack__, __array_struct__, "
                "__(cuda_)array_interface__ or __gt_data_interface__",
                "pass numpy.asarray of it"});
}

void make_checked_exporter_type() {
  static PyType_Slot slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_checked_buffer)},
                                {0, nullptr}};
  static PyType_Spec spec = {.name = "gridbuf._core.CheckedExporter",
                             .basicsize = sizeof(CheckedExporter),
                             .itemsize = 0,
                             .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                             .slots = slots};
  checked_exporter_type =
      reinterpret_cast<PyTypeObject*>(steal(PyType_FromSpec(&spec)).release().ptr());
}

py::object as_memoryview(PyObject* object) {
  if (PyMemoryView_Check(object) != 0) return steal(PyMemoryView_FromObject(object));
  const py::object checked = steal(checked_exporter_type->tp_alloc(checked_exporter_type, 0));
  reinterpret_cast<CheckedExporter*>(checked.ptr())->exporter = object;
  return steal(PyMemoryView_FromObject(checked.ptr()));
}

py::object as_ndarray(PyObject* object) {
  const bool is_plain = is_ndarray(object) || is_scalar(object) || PyList_Check(object) != 0 ||
                        PyTuple_Check(object) != 0;
  if (is_plain) return read_by_numpy(object);
  if (PyObject_CheckBuffer(object) != 0) return read_by_numpy(as_memoryview(object).ptr());
  const std::optional<Foreign> found = through_array_struct(object, {});
  if (!found) return read_by_numpy(object);
  const BufferDescriptor& memory = found->view.memory;
  return make_ndarray(*record_for(*found), memory.view, memory.first_element(), memory.readonly,
                      found->keep_alive.ptr());
}

py::object importable_or_same(PyObject* object, PyObject* dims) {
  // Text and NumPy's scalars export their bytes, but they are values and not arrays of bytes.
  if (is_ndarray(object) || is_buffer(object) || is_scalar(object)) return share(object);
  py::object buffer = import_or_none(
      object, dims, {.sync = true, .allow_copied = true, .purpose = Purpose::kReading});
  return buffer ? std::move(buffer) : share(object);
}

namespace {

PyObject* as_numpy(PyObject*, PyObject* object) {
  return guarded([&] {
    if (is_exact_ndarray(object)) {
      PyObject* const base = fields_of(object).base;
      const bool is_own = base != nullptr && is_buffer(base);  // A view would lose its parameters.
      return is_own ? share(object) : with_meaningful_strides(object);
    }
    const py::object buffer =
        import_buffer(object, nullptr, {.use_names = false, .side = Side::kHost});
    return ndarray_of(buffer.ptr());
  });
}

constexpr Signature<Arguments, 2> kAsBuffer{
    "as_buffer", 1, 1, {{{"obj", &Arguments::data}, {"dims", &Arguments::dims}}}};

py::object as_buffer(const Arguments& given) { return import_buffer(given.data, given.dims, {}); }

PyMethodDef functions[] = {
    {"as_numpy", as_numpy, METH_O, doc("as_numpy")},
    definition_of<kAsBuffer, as_buffer>(doc("as_buffer")),
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_import_functions(PyObject* module) { check(PyModule_AddFunctions(module, functions)); }

}  // namespace gridbuf::python
