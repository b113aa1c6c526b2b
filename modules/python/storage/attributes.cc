// By pybind11: attributes of storages, `SyncState` and `DevicePointer`.

module;

#include <pybind11/pybind11.h>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <exception>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "modules/python/arguments/attributes.h"
#include "modules/python/arguments/docstrings.h"

module gridbuf.python;

template <>
struct pybind11::detail::type_caster<gridbuf::python::storages::StorageObject>
    : gridbuf::python::ObjectCaster<gridbuf::python::storages::StorageObject,
                                    gridbuf::python::is_storage> {
  static constexpr auto name = const_name("gridbuf.storage.Storage");
};

namespace gridbuf::python::storages {
namespace {

template <auto read>
auto value(const StorageObject& object) {
  return (object.storage().*read)();
}
template <auto read>
py::object numbers(const StorageObject& object) {
  return from_integers((object.storage().*read)().span());
}

/// An attribute of the layout of the device's elements; None without them.
template <class Read>
auto of_device(const Read& read) {
  return [read](const StorageObject& object) -> py::object {
    const Storage& storage = object.storage();
    if (!storage.has(Side::kDevice)) return py::none();
    return read(storage.array(Side::kDevice).layout());
  };
}

py::object dims(const StorageObject& object) { return from_dims(object.storage().dims()); }

/// The lower halo in the order of annotations: where a stencil's domain begins.
py::object origin(const StorageObject& object) {
  const Storage& storage = object.storage();
  const Extents first = first_domain_index(storage.halo(), storage.shape());
  return from_integers(in_annotation_order(storage.dims(), first).span());
}

py::object transposed(const StorageObject& object, const py::args& axes) {
  const Extents& shape = object.storage().shape();
  return view_of(object, value_of(transpose_map(shape, to_axes(axes, object.storage().dims()))));
}

py::object copy(const StorageObject& object) {
  const Storage& source = object.storage();
  return make_storage(value_of(run_without_gil([&] { return source.copy(); })), object.dtype);
}

/// _digest(first): of the domain; `first` has the indices of its first point, or is None.
std::string digest(const StorageObject& object, py::handle first) {
  Storage domain = object.storage().domain_view();
  if (!first.is_none()) domain.set_starts(starting_at(first.ptr(), domain.dims()));
  return to_string(value_of(run_without_gil([&] { return domain.digest(); })));
}

py::object as_type(const StorageObject& object, py::handle dtype, py::handle casting,
                   py::handle copied) {
  // No storage has Python objects. xarray converts booleans to them where values are missing.
  if (object.storage().has(Side::kHost) && is_object_dtype(dtype.ptr())) {
    return host_elements(object, object.storage())
        .attr("astype")(dtype, py::arg("casting") = casting);
  }
  const RequestedDType wanted = to_dtype(dtype.ptr());
  if (!wanted.subarray.empty()) {
    raise(ErrorClass::kType,
          Problem{"dtype", describe(dtype.ptr()), "a type without a shape", "pass its base type"});
  }
  const bool copies = to_flag(copied.ptr(), "copy");
  if (!copies && wanted.record->numpy.equal(object.dtype->numpy)) return share(object.self());
  if (wanted.record->numpy.is(object.dtype->numpy)) return copy(object);
  check_cast(object.dtype->numpy.ptr(), wanted.record->numpy.ptr(), to_casting(casting.ptr()));
  const StorageSource source = storage_source_of(object.self(), nullptr);
  py::object made = allocate_storage(
      resolve_storage_like(source, {.dtype = wanted.record->numpy.ptr()}), Zeroed::kPadding);
  assign(*object_of(made.ptr()), storage_of(made.ptr()),
         host_elements(object, object.storage()).ptr());
  return made;
}

void fill(const StorageObject& object, py::handle value) {
  if (!is_scalar(value.ptr())) {
    raise(ErrorClass::kType, Problem{"value", describe(value.ptr()), "one value",
                                     "assign arrays with storage[...] = value"});
  }
  check_writable(object);
  assign(object, object.storage(), value.ptr());
}

py::object domain_view(const StorageObject& object) {
  return make_view(object, [&] { return object.storage().domain_view(); });
}

/// So that `field.domain_view += 1.0` works, which gives back the view that it has written.
void set_domain_view(const StorageObject& object, py::handle value) {
  check_writable(object);
  assign(object, object.storage().domain_view(), value.ptr());
}

/// NumPy's own flags of an array of this shape, strides and address; nothing is dereferenced.
py::object flags(const StorageObject& object) {
  const BufferDescriptor memory = object.storage().memory(reading_side(object.storage()));
  const py::object array = make_ndarray(*object.dtype, memory.view, memory.first_element(),
                                        memory.readonly, object.self());
  return array.attr("flags");
}

// ---- Dicts, structs and `__gt_data_interface__` (GT-01 ... GT-09). ----

/// An interface of a side that is not there is an attribute that is not there, so that `hasattr`
/// answers (XA-18).
void check_has(const StorageObject& object, Side side, const char* interface) {
  if (object.storage().has(side)) return;
  PyErr_Format(PyExc_AttributeError, "this storage has no %s: it has no %s buffer", interface,
               side == Side::kHost ? "host" : "device");
  throw PythonError();
}

/// NumPy reads an array by the buffer protocol, else by these two, and then by `__array__`. The end
/// of a use of the two cannot be seen. So a type without a buffer format does not have them where
/// both sides must be kept equal, and NumPy reads it by `__array__` (5.28).
void check_numpy_has_another_way(const StorageObject& object, const char* interface) {
  const Storage& storage = object.storage();
  if (storage.sync_state() == nullptr || object.dtype->type.format() != nullptr) return;
  PyErr_Format(PyExc_AttributeError,
               "this storage has no %s: its end could not be seen; use that of to_numpy()",
               interface);
  throw PythonError();
}

template <Side side>
py::object interface_dict(const StorageObject& object) {
  constexpr const char* kName =
      side == Side::kHost ? "__array_interface__" : "__cuda_array_interface__";
  check_has(object, side, kName);
  if (side == Side::kHost) check_numpy_has_another_way(object, kName);
  // What the memory cannot be described by must not count as an export.
  py::object dict = own_buffer(object.storage(), object.dtype, side).attr(kName);
  up_to_date(object.storage(), side);
  // Nothing tells how long the reader uses the address.
  if (!object.storage().readonly()) object.storage().note_unknown_export(side);
  return dict;
}

py::object array_struct(const StorageObject& object) {
  static constexpr char kName[] = "__array_struct__";
  check_has(object, Side::kHost, kName);
  check_numpy_has_another_way(object, kName);
  // Absent for some dtypes, which is found out before anything is shown. The capsule holds its
  // Buffer, and with it the share: its life is known.
  const py::object probe = own_buffer(object.storage(), object.dtype, Side::kHost).attr(kName);
  return shown_buffer(object, Side::kHost).attr(kName);
}

/// `acquire` makes the side current, `touch` says that it was written. In memory that both sides
/// reach, acquiring waits for the other side; memory of one side alone needs nothing.
py::object entry_of(const StorageObject& object, Side side) {
  const bool is_host = side == Side::kHost;
  const StorageKind kind = object.storage().kind();
  // No data can be stale here, but the entry names a stream, which must be the right one.
  if (kind == StorageKind::kGpu) up_to_date(object.storage(), side);
  // Nothing tells that memory of one side was written.
  if (kind == StorageKind::kCpu) object.storage().add_export(side);
  const py::handle self = object.self();
  py::object acquire;
  py::object touch;
  if (kind == StorageKind::kSoftwareManaged) {
    acquire = self.attr(is_host ? "device_to_host" : "host_to_device");
    touch = self.attr(is_host ? "set_host_modified" : "set_device_modified");
  } else if (kind == StorageKind::kCudaManaged) {
    acquire = self.attr(is_host ? "_acquire_host" : "_acquire_device");
  }
  return make_data_entry(own_buffer(object.storage(), object.dtype, side).ptr(), side,
                         object.storage().halo(), acquire.ptr(), touch.ptr());
}

py::dict data_interface(const StorageObject& object) {
  const Storage& storage = object.storage();
  py::dict sides;
  if (storage.has(Side::kHost)) sides[py::none()] = entry_of(object, Side::kHost);
  if (storage.has(Side::kDevice) && (!storage.is_emulated() || emulated_device_is_on())) {
    sides[make_text(kGpuKey)] = entry_of(object, Side::kDevice);
  }
  return sides;
}

/// One of the functions that act on the whole base.
template <auto function, class... Arguments>
void run(const StorageObject& object, Arguments... arguments) {
  const Storage storage = object.storage();  // A copy: the halo may be set meanwhile.
  check(run_unlocked(storage, [&] { return (storage.*function)(arguments...); }));
}
template <auto function>
void transfer(const StorageObject& object, py::handle force) {
  run<function>(object, to_flag(force.ptr(), "force"));
}

/// The sides on which all elements are current now.
py::tuple current_sides(const StorageObject& object) {
  py::list sides;
  for (const Side side : {Side::kHost, Side::kDevice}) {
    if (!object.storage().has(side) || !object.storage().is_current(side)) continue;
    sides.append(make_text(to_string(side)));
  }
  return sides;
}

// ---- SyncState. ----

PyObject* flag_class = nullptr;  // An enum.IntFlag; never freed.

/// By state. Flags of a state are its bits.
constexpr const char* kStateNames[] = {"SYNC_CLEAN", "SYNC_HOST_DIRTY", "SYNC_DEVICE_DIRTY",
                                       "SYNC_HOST_DIRTY | SYNC_DEVICE_DIRTY"};
static_assert(kSyncClean == 0 && kSyncHostDirty == 1 && kSyncDeviceDirty == 2);

/// SyncState(state=SYNC_CLEAN)
py::object make_new(PyObject* arguments, PyObject* keywords) {
  static const char* names[] = {"state", nullptr};
  PyObject* given = nullptr;
  const bool parsed = PyArg_ParseTupleAndKeywords(arguments, keywords, "|O:SyncState",
                                                  const_cast<char**>(names), &given) != 0;
  if (!parsed) throw PythonError();
  const std::int64_t state = given == nullptr ? kSyncClean : to_integer(given, "state");
  if (state < kSyncClean || state > kSyncDeviceDirty) {
    raise(ErrorClass::kValue,
          Problem{"state", std::to_string(state),
                  "SYNC_CLEAN (0), SYNC_HOST_DIRTY (1) or SYNC_DEVICE_DIRTY (2)",
                  "say which of two whole buffers is current; both at once has no meaning"});
  }
  return py::cast(value_of(SyncState::make(static_cast<int>(state))));
}

void add_sync_state_type(py::module_ module) {
  const py::dict flags;
  for (int state = 0; state < 3; ++state) flags[kStateNames[state]] = state;
  const py::object flag = py::module_::import("enum").attr("IntFlag")(
      "SyncFlag", flags, py::arg("module") = "gridbuf.storage");
  flag.attr("__doc__") = doc("SyncFlag");
  flag_class = py::object(flag).release().ptr();
  py::class_<SyncState, std::shared_ptr<SyncState>> type(module, "SyncState", py::module_local(),
                                                         py::is_final(), doc("SyncState"));
  type.def_property_readonly(
          "state", [](const SyncState& object) { return py::handle(flag_class)(object.state()); },
          doc("SyncState.state"))
      .def("__repr__", [](const SyncState& object) {
        return std::string("SyncState(") + kStateNames[object.state()] + ")";
      });
  for (const auto& entry : flags) type.attr(entry.first) = flag.attr(entry.first);
  close_class<make_new>(type, "gridbuf.storage");
  module.add_object("SyncFlag", flag);
}

// ---- DevicePointer, with the names of cupy.cuda.MemoryPointer. ----

struct DevicePointer {
  py::object buffer;

  const BufferDescriptor& memory() const { return array_in(buffer.ptr()).memory(); }
  std::uintptr_t address() const {
    return reinterpret_cast<std::uintptr_t>(memory().first_element());
  }
  int device_id() const { return memory().device.id; }
  std::int64_t nbytes() const { return memory().nbytes(); }
};

py::object refuse_call(PyObject*, PyObject*) {
  raise(ErrorClass::kType, "DevicePointer cannot be called; it is the device_data of a storage");
}

std::string text_of(const DevicePointer& pointer) {
  const py::object text = steal(PyUnicode_FromFormat(
      "DevicePointer(%p, device %d)", pointer.memory().first_element(), pointer.device_id()));
  return std::string(utf8(text.ptr()));
}

void add_pointer_type(py::module_ module) {
  py::class_<DevicePointer> type(module, "DevicePointer", py::module_local(), py::is_final(),
                                 doc("DevicePointer"));
  type.def_property_readonly("ptr", &DevicePointer::address, doc("DevicePointer.ptr"))
      .def_readonly("mem", &DevicePointer::buffer, doc("DevicePointer.mem"))
      .def_property_readonly("device_id", &DevicePointer::device_id, doc("DevicePointer.device_id"))
      .def_property_readonly("size", &DevicePointer::nbytes, doc("DevicePointer.size"))
      .def("__repr__", text_of)
      .def("__int__", &DevicePointer::address)
      .def("__index__", &DevicePointer::address);
  close_class<refuse_call>(type, "gridbuf.storage");
}

py::object device_data(const StorageObject& object) {
  const Storage& storage = object.storage();
  if (!storage.has(Side::kDevice)) return py::none();
  up_to_date(storage, Side::kDevice);
  py::object pointer = py::cast(DevicePointer{own_buffer(storage, object.dtype, Side::kDevice)});
  // gridbuf cannot know the users of the number, nor how long they use it.
  if (!storage.readonly()) storage.note_unknown_export(Side::kDevice);
  return pointer;
}

/// Setting may run Python, so the storage is looked at afterwards.
void set_halo(const StorageObject& object, py::handle value) {
  StorageObject& changed = *object_of(object.self());
  const Halo halo = to_halo(value.ptr(), object.storage().dims(), object.storage().shape());
  auto handle = std::make_unique<Storage>(object.storage());
  check(handle->set_halo(halo));
  py::object parameters;  // dropped after the lock
  const PythonLock lock(changed.head.mutex);
  const Storage* known = halo == object.first.halo() ? &object.first : nullptr;
  for (const auto& other : object.handles) {
    if (halo == other->halo()) known = other.get();
  }
  if (known == nullptr) known = changed.handles.emplace_back(std::move(handle)).get();
  changed.current.store(known, std::memory_order_release);
  std::swap(parameters, changed.parameters);
}

// ---- The depth of the halo. ----

template <auto mark>
void mark_halo(const StorageObject& object, py::handle depth) {
  const Storage storage = object.storage();
  const Extents unbounded(storage.ndim(), std::numeric_limits<std::int64_t>::max());
  const Halo points =
      depth.is_none() ? storage.halo() : to_halo(depth.ptr(), storage.dims(), unbounded);
  if constexpr (std::is_void_v<decltype((storage.*mark)(points))>) {
    (storage.*mark)(points);
  } else {
    check((storage.*mark)(points));
  }
}

/// _close_halo(ends, check): `ends` are pairs (axis, end).
void close_halo(const StorageObject& object, const py::list& ends, int number) {
  std::vector<HaloEnd> closed;
  for (const py::handle pair : ends) {
    const auto [axis, end] = py::cast<std::pair<int, int>>(pair);
    closed.push_back({axis, end});
  }
  check(object.storage().close_halo(closed, number));
}

// Where Python's code made points of halos invalid: a code object, which is kept, and a place in
// it. The line is found when it is asked for, because each write of a field may come here.
struct StalePlace {
  py::object code;
  int at = 0;
};
#if PY_VERSION_HEX >= 0x030B0000
int place_in(PyFrameObject* frame) { return PyFrame_GetLasti(frame); }
int line_of(const StalePlace& place) {
  return PyCode_Addr2Line(reinterpret_cast<PyCodeObject*>(place.code.ptr()), place.at);
}
#else
int place_in(PyFrameObject* frame) { return PyFrame_GetLineNumber(frame); }
int line_of(const StalePlace& place) { return place.at; }
#endif

struct StalePlaces {
  PythonMutex mutex;
  std::vector<StalePlace> all{{}};
  std::map<std::pair<PyObject*, int>, int> numbers;
  std::map<PyObject*, bool> is_own;  // of gridbuf's package, and not of its user
};
StalePlaces& stale_places() {
  static auto& places = *new StalePlaces;
  return places;
}

const std::string& own_folder() {
  static const std::string folder = [] {
    const auto file = py::cast<std::string>(py::module_::import("gridbuf._core").attr("__file__"));
    return file.substr(0, file.rfind('/') + 1);
  }();
  return folder;
}

/// An index into `stale_places`. May throw.
int stale_place_now() {
  StalePlaces& places = stale_places();
  const std::string& folder = own_folder();
  const PythonLock lock(places.mutex);
  py::object frame = share(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  while (frame) {
    auto* const current = reinterpret_cast<PyFrameObject*>(frame.ptr());
    py::object code = steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(current)));
    const auto [own, is_unseen] = places.is_own.try_emplace(code.ptr(), false);
    if (is_unseen) {
      places.all.push_back({code});  // keeps the code, so that its address stays its own
      const py::object file = code.attr("co_filename");
      const char* const text = PyUnicode_AsUTF8(file.ptr());  // null for other encodings
      own->second = text != nullptr && std::string_view(text).starts_with(folder);
      if (text == nullptr) PyErr_Clear();
    }
    if (!own->second) {
      const auto [known, is_new] = places.numbers.try_emplace({code.ptr(), place_in(current)},
                                                              static_cast<int>(places.all.size()));
      if (is_new) places.all.push_back({std::move(code), known->first.second});
      return known->second;
    }
    auto* const back = PyFrame_GetBack(current);
    frame = steal_or_none(reinterpret_cast<PyObject*>(back));
  }
  return 0;
}

/// The same; 0 if it cannot be found out. Called with or without the GIL, also where an exception
/// is set.
int note_stale_place() noexcept {
  const py::gil_scoped_acquire gil;
  const py::error_scope kept;
  try {
    return stale_place_now();
  } catch (const py::error_already_set&) {
  } catch (const std::exception&) {
  } catch (const PythonError&) {
    PyErr_Clear();
  }
  return 0;
}

py::object stale_place(const StorageObject& object) {
  StalePlaces& places = stale_places();
  std::unique_lock lock(places.mutex);
  const StalePlace place = places.all[object.storage().stale_place()];
  lock.unlock();
  if (!place.code) return make_text("");
  const py::object file = place.code.attr("co_filename");
  return steal(PyUnicode_FromFormat("%U:%d", file.ptr(), line_of(place)));
}

void add_properties(Attributes& type) {
  type.get("strides", numbers<&Storage::strides_bytes>, doc("StorageBase.strides"))
      .get("nbytes", value<&Storage::nbytes>, doc("StorageBase.nbytes"))
      .get(
          "itemsize",
          [](const StorageObject& object) { return object.dtype->type.itemsize_bytes(); },
          doc("StorageBase.itemsize"))
      .get("dims", dims, doc("StorageBase.dims"))
      .get("layout", numbers<&Storage::layout_map>, doc("StorageBase.layout"))
      .get("aligned_index", numbers<&Storage::aligned_index>, doc("StorageBase.aligned_index"))
      .get("alignment_size", value<&Storage::alignment_bytes>, doc("StorageBase.alignment_size"))
      .get("device_strides",
           of_device([](const Layout& l) { return from_integers(l.strides_bytes().span()); }),
           doc("StorageBase.device_strides"))
      .get("device_layout",
           of_device([](const Layout& l) { return from_integers(l.layout_map().span()); }),
           doc("StorageBase.device_layout"))
      .get("device_alignment_size",
           of_device([](const Layout& l) { return py::int_(l.alignment_bytes()); }),
           doc("StorageBase.device_alignment_size"))
      .get(
          "device", [](const StorageObject& object) { return device_of(object.storage()); },
          doc("StorageBase.device"))
      .get_set(
          "halo", [](const StorageObject& object) { return from_halo(object.storage().halo()); },
          set_halo, doc("StorageBase.halo"))
      .get(
          "valid_halo",
          [](const StorageObject& object) { return from_halo(object.storage().valid_halo()); },
          doc("StorageBase.valid_halo"))
      .get("_was_exported", value<&Storage::was_exported>, "Whether it was ever exported writable.")
      .get("_halo_check", value<&Storage::halo_check>, "What an invalid point of the halo means.")
      .get("_stale_place", stale_place,
           "The line of Python that made points of the halo invalid, or an empty text.")
      .get(
          "managed", [](const StorageObject& object) { return managed_by(object.storage()); },
          doc("StorageBase.managed"))
      .get("device_data", device_data, doc("StorageBase.device_data"))
      .get_set("domain_view", domain_view, set_domain_view, doc("StorageBase.domain_view"))
      .get(
          "sync_state", [](const StorageObject& object) { return object.storage().sync_state(); },
          doc("StorageBase.sync_state"))
      .get(
          "T", [](const StorageObject& object) { return transposed(object, py::args()); },
          doc("StorageBase.T"))
      .get("flags", flags, doc("StorageBase.flags"))
      .get("__array_interface__", interface_dict<Side::kHost>,
           doc("StorageBase.__array_interface__"))
      .get("__array_struct__", array_struct, doc("StorageBase.__array_struct__"))
      .get("__cuda_array_interface__", interface_dict<Side::kDevice>,
           doc("StorageBase.__cuda_array_interface__"))
      .get("__gt_data_interface__", data_interface, doc("StorageBase.__gt_data_interface__"))
      .get("__gt_dims__", dims, doc("StorageBase.__gt_dims__"))
      .get("__gt_origin__", origin, doc("StorageBase.__gt_origin__"))
      .get("default_origin", origin, doc("StorageBase.default_origin"))
      .get(
          "lower", [](const StorageObject& object) { return starts_of(object.storage().dims()); },
          doc("StorageBase.lower"))
      .get("_is_emulated", value<&Storage::is_emulated>, "Whether its device is the emulated one.")
      .get("_readonly", value<&Storage::readonly>, "Whether its elements cannot be written.");
}

void add_methods(Attributes& type) {
  type.def("to_numpy", to_numpy, doc("StorageBase.to_numpy"))
      .def("to_cupy", to_cupy, doc("StorageBase.to_cupy"))
      .def("transpose", transposed, doc("StorageBase.transpose"))
      .def("fill", fill, doc("StorageBase.fill"))
      .def("astype", as_type, py::arg("dtype"), py::kw_only(), py::arg("casting") = "unsafe",
           py::arg("copy") = true, doc("StorageBase.astype"))
      .def("copy", copy, doc("StorageBase.copy"))
      .def("_digest", digest)
      .def("__copy__", copy, doc("StorageBase.__copy__"))
      .def(
          "__deepcopy__", [](const StorageObject& object, py::handle) { return copy(object); },
          doc("StorageBase.__deepcopy__"))
      .def("device_to_host", transfer<&Storage::device_to_host>, py::kw_only(),
           py::arg("force") = false, doc("StorageBase.device_to_host"))
      .def("host_to_device", transfer<&Storage::host_to_device>, py::kw_only(),
           py::arg("force") = false, doc("StorageBase.host_to_device"))
      .def("synchronize", run<&Storage::synchronize>, doc("StorageBase.synchronize"))
      .def("set_host_modified", run<&Storage::set_host_modified>,
           doc("StorageBase.set_host_modified"))
      .def("set_device_modified", run<&Storage::set_device_modified>,
           doc("StorageBase.set_device_modified"))
      .def(
          "set_synchronized",
          [](const StorageObject& object) {
            const Storage storage = object.storage();
            run_without_gil([&storage] { storage.set_synchronized(); });
          },
          doc("StorageBase.set_synchronized"))
      .def("mark_halo_valid", mark_halo<&Storage::mark_halo_valid>, py::arg("depth") = py::none(),
           doc("StorageBase.mark_halo_valid"))
      .def("mark_halo_stale", value<&Storage::mark_halo_stale>, doc("StorageBase.mark_halo_stale"))
      .def("_by_position", by_position)
      .def("_close_halo", close_halo)
      .def("_expect_halo", mark_halo<&Storage::expect_halo>)
      .def("_expected_halo",
           [](const StorageObject& object) { return from_halo(object.storage().expected_halo()); })
      .def("_halo_arrives", mark_halo<&Storage::halo_arrives>)
      .def("_acquire_host",
           [](const StorageObject& object) { up_to_date(object.storage(), Side::kHost); })
      .def("_acquire_device",
           [](const StorageObject& object) { up_to_date(object.storage(), Side::kDevice); })
      .def("_elements",
           [](const StorageObject& object) { return host_elements(object, object.storage()); })
      .def("_own_memory", own_memory)
      .def("_read_array", read_array, py::arg("side"), py::arg("dims") = py::none())
      .def("_write_array", write_array, py::arg("side"), py::arg("dims") = py::none(),
           py::arg("whole") = true)
      .def("_written", end_write)
      .def("_current_sides", current_sides);
}

}  // namespace

std::shared_ptr<SyncState> to_sync_state(PyObject* object) {
  if (!py::isinstance<SyncState>(object)) {
    raise(ErrorClass::kType,
          Problem{"sync_state", describe(object), "a gridbuf.storage.SyncState",
                  "pass SyncState(SyncState.SYNC_HOST_DIRTY) if data is current, or the sync_state "
                  "of the storage that the buffers are from"});
  }
  return py::cast<std::shared_ptr<SyncState>>(py::handle(object));
}

void add_attributes(PyObject* base_type, PyObject* module) {
  auto core = py::reinterpret_borrow<py::module_>(module);
  py::options options;
  options.disable_function_signatures();
  add_sync_state_type(core);
  add_pointer_type(core);
  Attributes type(base_type);
  add_properties(type);
  add_methods(type);
  set_stale_hook(note_stale_place);
  core.def("_set_storage_types", set_storage_types).def("_run_kernel", run_kernel);
}

}  // namespace gridbuf::python::storages
