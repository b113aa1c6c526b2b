// Exports of a Buffer: order with pending work, ndarrays, the interfaces that are dicts or structs
// (NumPy's, CUDA's, GT4Py's), DLPack capsules and the C exchange table (DX-01 ... DX-12).

module;

#include <Python.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.python;

namespace gridbuf::python {
namespace {

/// The driver that made the memory; null for host memory, and for memory that no driver knows.
DeviceDriver* driver_behind(const BufferObject& buffer) {
  const BufferDescriptor& memory = buffer.array.memory();
  if (memory.device.type == DeviceType::kHost || memory.block == nullptr) return nullptr;
  return driver_of(memory.block);
}

/// The stream that a consumer works on, by what it asked.
StreamHandle consumer_stream(const dlpack::ExportPlan& plan) {
  switch (plan.stream_order) {
    case dlpack::StreamOrder::kPerThreadDefault:
      return kPerThreadDefaultStream;
    case dlpack::StreamOrder::kHandle:
      return plan.stream;
    default:
      return kLegacyDefaultStream;
  }
}

}  // namespace

void wait_for_host(const BufferObject& buffer) {
  if (buffer.array.memory().device.type == DeviceType::kHost) return;
  check(run_without_gil([&] { return buffer.array.wait(); }));
}

absl::Status check_device_is_on(const BufferObject& buffer) {
  if (!is_emulated(buffer) || emulated_device_is_on()) return absl::OkStatus();
  return make_error(ErrorClass::kBuffer,
                    "its memory is the emulated device's, which is switched off; switch it on with "
                    "gridbuf.testing.emulated_device()");
}

void order_pending(const BufferObject& buffer, const dlpack::ExportPlan& plan) {
  if (buffer.array.memory().device.type == DeviceType::kHost) return;
  if (plan.stream_order == dlpack::StreamOrder::kFinish) return wait_for_host(buffer);
  check(check_device_is_on(buffer));
  DeviceDriver* const driver = driver_behind(buffer);
  if (driver == nullptr || plan.stream_order == dlpack::StreamOrder::kNothing) return;
  const StreamHandle consumer = consumer_stream(plan);
  check(driver->order_after(buffer.array.stream(), consumer));
  driver->note_use(buffer.array.memory().block, consumer);
}

bool is_emulated(const BufferObject& buffer) {
  const DeviceDriver* const driver = driver_behind(buffer);
  return driver != nullptr && driver->is_emulated();
}

namespace {

/// A key as a template argument: each is made once, which halves the time of a dict.
template <std::size_t length>
struct Key {
  char text[length];
  constexpr Key(const char (&given)[length]) { std::copy_n(given, length, text); }
};

template <Key key>
void set(const py::object& dict, const py::object& value) {
  static AttributeName name(key.text);
  check(PyDict_SetItem(dict.ptr(), name.get(), value.ptr()));
}

/// The keys that all array interfaces share (AI-01 … AI-33, CAI-01 … CAI-30).
template <class Fields>
py::object make_dict(const Fields& fields, const DTypeRecord& dtype) {
  const auto numbers = [](const std::optional<Extents>& extents) {
    return extents ? from_integers(extents->span()) : share(Py_None);
  };
  py::object dict = steal(PyDict_New());
  set<"shape">(dict, numbers(fields.shape));
  set<"typestr">(dict, dtype.typestr);
  if (dtype.descr) set<"descr">(dict, dtype.descr);
  set<"data">(dict, steal(Py_BuildValue("(KO)", fields.data_address,
                                        fields.readonly ? Py_True : Py_False)));
  set<"strides">(dict, numbers(fields.strides_bytes));
  set<"version">(dict, steal(PyLong_FromLong(fields.version)));
  return dict;
}

// ---- What an object does not have. ----

/// An interface that the object does not have is an attribute that it does not have, so that
/// `hasattr` answers (XA-18, AI-29, CAI-24).
[[noreturn]] void raise_absent(const char* interface, const absl::Status& reason) {
  const std::string text(reason.message());
  PyErr_Format(PyExc_AttributeError, "gridbuf.Buffer has no %s here: %s", interface, text.c_str());
  throw PythonError();
}

template <class T>
T value_or_absent(const char* interface, absl::StatusOr<T> value) {
  if (value.ok()) return *std::move(value);
  const ErrorClass reason = error_class_of(value.status());
  if (reason != ErrorClass::kNoSuchBuffer && reason != ErrorClass::kBuffer) raise(value.status());
  raise_absent(interface, value.status());
}

void check_device(const char* interface, const BufferObject& buffer) {
  const absl::Status status = check_device_is_on(buffer);
  if (!status.ok()) raise_absent(interface, status);
}

/// The typestr of an element type that only DLPack can name is that of raw bytes, and consumers
/// would believe it.
void check_has_typestr(const char* interface, const BufferObject& buffer) {
  if (buffer.array.memory().dtype.kind() != Kind::kNarrow) return;
  PyErr_Format(PyExc_AttributeError, "%s has no word for dtype %s; use __dlpack__", interface,
               buffer.dtype->name.c_str());
  throw PythonError();
}

void destroy_struct(PyObject* capsule) {
  auto* exported = static_cast<array_struct::ArrayStruct*>(PyCapsule_GetPointer(capsule, nullptr));
  Py_XDECREF(static_cast<PyObject*>(exported->descr));
  Py_XDECREF(static_cast<PyObject*>(PyCapsule_GetContext(capsule)));
  array_struct::destroy(exported);
}

/// A Buffer's own entry (GT-01 ... GT-09). `acquire`, on the host, waits for what the device still
/// does to memory that both reach; memory of one side alone is always current there and has no
/// functions to call.
py::object make_entry(PyObject* self, Side side) {
  const BufferObject& buffer = *object_of(self);
  const bool waits = side == Side::kHost && has_side(buffer.array.memory(), Side::kDevice);
  const py::object acquire =
      waits ? steal(PyObject_GetAttrString(self, "synchronize")) : py::object();
  return make_data_entry(self, side, no_halo(buffer.array.memory().view.ndim()), acquire.ptr(),
                         nullptr);
}

}  // namespace

py::object ndarray_of(PyObject* buffer) {
  const BufferObject& object = *object_of(buffer);
  const BufferDescriptor& memory = object.array.memory();
  if (!is_host_readable(memory.device.type)) {
    raise(ErrorClass::kNoSuchBuffer,
          Problem{"memory", to_string(memory_kind(object.array.memory().device.type)),
                  "readable by the host",
                  "use copy(memory=\"host\"), or an interface of the device"});
  }
  wait_for_host(object);
  return make_ndarray(*object.dtype, memory.view, memory.first_element(), memory.readonly, buffer);
}

// ---- The attributes. ----

py::object make_array_interface(const BufferObject& buffer) {
  constexpr char kName[] = "__array_interface__";
  check_has_typestr(kName, buffer);
  const ArrayInterfaceFields fields =
      value_or_absent(kName, array_interface(buffer.array.memory()));
  wait_for_host(buffer);
  return make_dict(fields, *buffer.dtype);
}

/// (AS-01 ... AS-08) The capsule has no name (AS-01); its context is the object, as NumPy's is
/// (AS-07).
py::object make_array_struct(const BufferObject& buffer) {
  constexpr char kName[] = "__array_struct__";
  PyObject* const self = self_of(buffer);
  array_struct::Export exported =
      value_or_absent(kName, array_struct::export_array_struct(buffer.array.memory()));
  wait_for_host(buffer);
  py::object capsule = steal(PyCapsule_New(exported.get(), nullptr, destroy_struct));
  array_struct::ArrayStruct* const made = exported.release();
  if (buffer.array.memory().dtype.kind() == Kind::kStructured && buffer.dtype->descr) {
    made->descr = Py_NewRef(buffer.dtype->descr.ptr());
    made->flags |= array_struct::kHasDescr;
  }
  check(PyCapsule_SetContext(capsule.ptr(), self));
  Py_INCREF(self);
  return capsule;
}

py::object make_cuda_array_interface(const BufferObject& buffer) {
  constexpr char kName[] = "__cuda_array_interface__";
  check_has_typestr(kName, buffer);
  const CudaArrayInterfaceFields fields =
      value_or_absent(kName, cuda_array_interface(buffer.array.memory(), buffer.array.stream()));
  check_device(kName, buffer);
  py::object dict = make_dict(fields, *buffer.dtype);
  set<"stream">(dict, steal(PyLong_FromUnsignedLongLong(fields.stream)));
  return dict;
}

py::object make_data_interface(const BufferObject& buffer) {
  constexpr char kName[] = "__gt_data_interface__";
  PyObject* const self = self_of(buffer);
  check_has_typestr(kName, buffer);
  py::object sides = steal(PyDict_New());
  if (has_side(buffer.array.memory(), Side::kHost)) {
    check(PyDict_SetItem(sides.ptr(), Py_None, make_entry(self, Side::kHost).ptr()));
  }
  if (has_side(buffer.array.memory(), Side::kDevice)) {
    check_device(kName, buffer);
    set<"gpu">(sides, make_entry(self, Side::kDevice));
  }
  return sides;
}

py::object make_data_entry(PyObject* self, Side side, const Halo& halo, PyObject* acquire,
                           PyObject* touch) {
  const BufferObject& buffer = *object_of(self);
  const DataInterfaceFields fields = value_of(data_interface(
      buffer.array.memory(), side, buffer.array.layout().dims(), halo, buffer.array.stream()));
  py::object dict = make_dict(fields, *buffer.dtype);
  if (fields.stream) set<"stream">(dict, steal(PyLong_FromUnsignedLongLong(*fields.stream)));
  set<"dims">(dict, from_dims(fields.dims));
  set<"halo">(dict, tuple_of(fields.halo.size(), [&](int axis) {
                const HaloWidth& width = fields.halo[axis];
                return from_integers(std::array{width.lower, width.upper});
              }));
  if (acquire != nullptr) set<"acquire">(dict, share(acquire));
  if (touch != nullptr) set<"touch">(dict, share(touch));
  return dict;
}

// ---- DLPack (DL-01 ... DL-30, DP-01 ... DP-27). ----

namespace {

/// The capsule of an export, which it owns: it runs the deleter if no consumer has taken the tensor
/// (DP-06, DP-07).
template <const auto& name, class Export>
py::object make_capsule(Export tensor) {
  py::object capsule = steal(PyCapsule_New(tensor.get(), name, [](PyObject* unused) {
    if (PyCapsule_IsValid(unused, name) == 0) return;
    Export(static_cast<typename Export::pointer>(PyCapsule_GetPointer(unused, name))).reset();
  }));
  tensor.release();
  return capsule;
}

/// A keyword that is a pair of integers, or None.
template <class Pair>
std::optional<Pair> to_pair(PyObject* object, const char* name) {
  if (object == nullptr || object == Py_None) return std::nullopt;
  if (PyTuple_Check(object) == 0 || PyTuple_GET_SIZE(object) != 2) {
    raise(ErrorClass::kType, Problem{name, describe(object), "None or a tuple of two integers",
                                     "pass a 2-tuple such as (1, 0)"});
  }
  return Pair{to_integer(PyTuple_GET_ITEM(object, 0), name),
              to_integer(PyTuple_GET_ITEM(object, 1), name)};
}

/// The type of a device: an integer, or an enum member whose value is one (DP-02, DP-23).
std::optional<dlpack::ExportRequest::WantedDevice> to_device(PyObject* object) {
  if (object == nullptr || object == Py_None || PyTuple_Check(object) == 0 ||
      PyTuple_GET_SIZE(object) != 2 || PyIndex_Check(PyTuple_GET_ITEM(object, 0)) != 0) {
    return to_pair<dlpack::ExportRequest::WantedDevice>(object, "dl_device");
  }
  const py::object value =
      steal_or_none(PyObject_GetAttrString(PyTuple_GET_ITEM(object, 0), "value"));
  if (!value) PyErr_Clear();
  return dlpack::ExportRequest::WantedDevice{
      to_integer(value ? value.ptr() : PyTuple_GET_ITEM(object, 0), "dl_device"),
      to_integer(PyTuple_GET_ITEM(object, 1), "dl_device")};
}

// ---- The exchange table. ----

using dlpack::DLManagedTensorVersioned;
using dlpack::DLTensor;

/// A Buffer, or a TypeError: the table serves its own type alone (DX-11). Consumers work on the
/// stream that `current_work_stream` names: work pending on another stream is ordered before it.
/// Enqueues, and waits for nothing.
BufferObject& ordered_buffer(void* py_object) {
  auto* const object = static_cast<PyObject*>(py_object);
  if (object == nullptr || !is_buffer(object)) {
    raise(ErrorClass::kType, Problem{"the object", object == nullptr ? "null" : describe(object),
                                     "a gridbuf.Buffer, whose table this is",
                                     "look the table up on the object's own type"});
  }
  BufferObject& buffer = *object_of(object);
  if (buffer.array.memory().device.type == DeviceType::kHost) return buffer;
  dlpack::ExportPlan plan;
  plan.stream_order = dlpack::StreamOrder::kHandle;
  plan.stream = current_stream();
  order_pending(buffer, plan);
  return buffer;
}

int export_owned(void* py_object, DLManagedTensorVersioned** out) {
  return guarded(-1, [&] {
    const BufferObject& buffer = ordered_buffer(py_object);
    *out = value_of(dlpack::export_versioned(buffer.array.memory())).release();
    return 0;
  });
}

/// Shape and strides are in the object, so that nothing is allocated and nothing counted (DX-07).
int export_borrowed(void* py_object, DLTensor* out) {
  return guarded(-1, [&] {
    BufferObject& buffer = ordered_buffer(py_object);
    check(described(buffer.head, buffer.array.memory(), buffer.strides_elements, *out));
    return 0;
  });
}

int import_owned(DLManagedTensorVersioned* tensor, void** out_py_object) {
  return guarded(-1, [&] {
    Foreign foreign;
    foreign.view = value_of(dlpack::take(tensor));  // Owns it from here on (DX-08).
    // What is pending on it is ordered on the stream that both sides know.
    *out_py_object = adopt(std::move(foreign), nullptr, nullptr, {.sync = false}).release().ptr();
    return 0;
  });
}

// ---- New. Runs with or without the GIL: no Python below; errors are thrown as absl::Status. ----

/// What DLPack once promised of every tensor, and some consumers still rely on (DL-11).
constexpr std::int64_t kTensorAlignmentBytes = 256;

template <class T>
T value_or_throw(absl::StatusOr<T> value) {
  if (!value.ok()) throw value.status();
  return *std::move(value);
}

DeviceType type_of(const dlpack::DLDevice& device) {
  const auto type = static_cast<DeviceType>(device.device_type);
  if (type == DeviceType::kHost || is_cuda_accessible(type)) return type;
  throw make_error(ErrorClass::kBuffer,
                   {"device", "type " + std::to_string(device.device_type),
                    "1, 2, 3 or 13: the host's memory or CUDA's", "allocate it elsewhere"});
}

/// Of a prototype only element type, shape and device are read (DX-10).
dlpack::VersionedExport make_tensor(const DLTensor& prototype) {
  const auto [code, bits, lanes] = prototype.dtype;
  const DType type = value_or_throw(DType::from_dlpack({code, bits, lanes}));
  const DeviceType memory = type_of(prototype.device);
  if (prototype.ndim < 0 || prototype.ndim > kMaxNdim ||
      (prototype.ndim > 0 && prototype.shape == nullptr)) {
    throw make_error(ErrorClass::kValue,
                     {"ndim", std::to_string(prototype.ndim),
                      "from 0 to " + std::to_string(kMaxNdim) + " with as many extents",
                      "give the prototype a shape"});
  }
  const std::span<const std::int64_t> shape(prototype.shape,
                                            static_cast<std::size_t>(prototype.ndim));
  const Layout plan = value_or_throw(make_plan({.shape = Extents(shape),
                                                .itemsize_bytes = type.itemsize_bytes(),
                                                .dtype_name = type.name()}));
  Block block = value_or_throw(value_or_throw(memory_resource(memory_kind(memory)))
                                   ->allocate({.total_bytes = plan.total_bytes(),
                                               .alignment_bytes = kTensorAlignmentBytes}));
  BufferDescriptor descriptor{.block = block.data(),
                              .view = plan.view(),
                              .dtype = type,
                              .device = block.info().device,
                              .owner = {}};
  if (descriptor.device.id != prototype.device.device_id) {
    throw make_error(ErrorClass::kBuffer,
                     {"device_id", std::to_string(prototype.device.device_id),
                      std::to_string(descriptor.device.id) + ", the current device",
                      "make that device current first"});
  }
  descriptor.owner = value_or_throw(share(std::move(block)));
  return value_or_throw(dlpack::export_versioned(descriptor));
}

using SetError = void (*)(void* error_ctx, const char* kind, const char* message);

int allocate_tensor(DLTensor* prototype, DLManagedTensorVersioned** out, void* error_ctx,
                    SetError set_error) {
  try {
    *out = make_tensor(*prototype).release();
    return 0;
  } catch (const absl::Status& error) {
    const std::string kind(error_row(error_class_of(error)).python_name);
    const std::string message(error.message());
    set_error(error_ctx, kind.c_str(), message.c_str());
  } catch (const std::bad_alloc&) {
    set_error(error_ctx, "MemoryError", "no memory for a DLPack tensor; free some arrays");
  }
  return -1;
}

int find_current_stream(std::int32_t device_type, std::int32_t /*device_id*/, void** out_stream) {
  return guarded(-1, [&] {
    const auto type = static_cast<DeviceType>(device_type);
    if (type != DeviceType::kHost && !is_cuda_accessible(type)) {
      raise(ErrorClass::kBuffer,
            Problem{"device type", std::to_string(device_type), "the host (1) or CUDA (2, 3, 13)",
                    "ask the library whose device it is"});
    }
    // CUDA's own handles of the two default streams are 1 and 2 as well.
    *out_stream = type == DeviceType::kHost ? nullptr : reinterpret_cast<void*>(current_stream());
    return 0;
  });
}

// One for the whole process, for as long as it lives (DX-02).
constinit dlpack::ExchangeApi exchange_table = {
    .header = {.version = {dlpack::kMajorVersion, dlpack::kMinorVersion}, .prev_api = nullptr},
    .managed_tensor_allocator = allocate_tensor,
    .managed_tensor_from_py_object_no_sync = export_owned,
    .managed_tensor_to_py_object_no_sync = import_owned,
    .dltensor_from_py_object_no_sync = export_borrowed,
    .current_work_stream = find_current_stream,
};

}  // namespace

dlpack::ExportRequest to_export_request(PyObject* const* arguments, Py_ssize_t count,
                                        PyObject* keywords) {
  struct Given {
    PyObject* stream = nullptr;
    PyObject* max_version = nullptr;
    PyObject* dl_device = nullptr;
    PyObject* copy = nullptr;
  };
  static constexpr Signature<Given, 4> kSignature{"__dlpack__",
                                                  0,
                                                  0,
                                                  {{{"stream", &Given::stream},
                                                    {"max_version", &Given::max_version},
                                                    {"dl_device", &Given::dl_device},
                                                    {"copy", &Given::copy}}}};
  const Given given = kSignature.read(arguments, count, keywords);
  dlpack::ExportRequest request;
  if (is_given(given.stream)) request.stream = to_integer(given.stream, "stream");
  request.max_version = to_pair<dlpack::ExportRequest::Version>(given.max_version, "max_version");
  request.dl_device = to_device(given.dl_device);
  if (is_given(given.copy)) request.copy = to_flag(given.copy, "copy");
  return request;
}

py::object export_capsule(const BufferDescriptor& memory, const dlpack::ExportPlan& plan) {
  if (plan.versioned) {
    return make_capsule<dlpack::kVersionedName>(value_of(dlpack::export_versioned(memory, plan)));
  }
  return make_capsule<dlpack::kLegacyName>(value_of(dlpack::export_legacy(memory, plan)));
}

py::object export_dlpack(PyObject* self, const dlpack::ExportRequest& request) {
  const BufferObject& buffer = *object_of(self);
  dlpack::ExportPlan plan = value_of(dlpack::negotiate(buffer.array.memory(), request));
  if (!plan.copy) {
    order_pending(buffer, plan);
    return export_capsule(buffer.array.memory(), plan);
  }
  const bool to_host = plan.device.type == DeviceType::kHost;
  const py::object copied =
      copy_of(self, to_host ? MemoryKind::kHost : memory_kind(buffer.array.memory().device.type));
  const BufferObject& copy = *object_of(copied.ptr());
  plan.device = copy.array.memory().device;
  order_pending(copy, plan);
  return export_capsule(copy.array.memory(), plan);  // Takes a share of the copy's memory.
}

PyObject* dlpack_method(PyObject* self, PyObject* const* arguments, Py_ssize_t count,
                        PyObject* keywords) {
  return guarded(
      [&] { return export_dlpack(self, to_export_request(arguments, count, keywords)); });
}

PyObject* dlpack_device_method(PyObject* self, PyObject*) {
  const Device& device = object_of(self)->array.memory().device;
  return Py_BuildValue("(ii)", static_cast<int>(device.type), static_cast<int>(device.id));
}

const dlpack::ExchangeApi& buffer_exchange_table() { return exchange_table; }

py::object make_exchange_capsule() {
  return steal(PyCapsule_New(&exchange_table, dlpack::kExchangeCapsuleName, nullptr));
}

}  // namespace gridbuf::python
