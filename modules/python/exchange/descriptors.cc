// Reads dicts and structs that describe memory into the fields that gridbuf.interface checks.

module;

#include <pybind11/pybind11.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

module gridbuf.python;

namespace gridbuf::python {
namespace {

/// The most entries of a descr, nested ones included: lists may hold one another many times over,
/// and then a few of them are millions of entries.
constexpr int kMaxDescrEntries = 1024;
/// The most names of dimensions, or pairs of a halo, that are read: one more than there can be.
constexpr Py_ssize_t kMostPerDimension = kMaxNdim + 1;

AttributeName data_interface_name("__gt_data_interface__");

/// The value under `key`, kept alive: messages may run code that changes the dict. None without it.
py::object item(py::handle dict, py::handle key) { return item_or_none(dict.ptr(), key.ptr()); }
py::object item(py::handle dict, const char* key) { return item(dict, make_text(key)); }

/// The same; none for None as well.
py::object given(py::handle dict, const char* key) {
  py::object value = item(dict, key);
  return value && !value.is_none() ? std::move(value) : py::object();
}

// ---- Fields. Each reader gets an object that is not None. ----

/// The field of a value that may be none; `read` is one of the readers below.
template <class T>
Found<T> field(const py::object& value, Found<T> (*read)(py::handle)) {
  if (!value) return {};
  if (value.is_none()) return Found<T>::none();
  Found<T> found = read(value);
  if (!found.has_value() && found.text.empty()) found.text = describe(value.ptr());
  return found;
}

bool is_int(py::handle value) {
  return PyLong_Check(value.ptr()) != 0 && PyBool_Check(value.ptr()) == 0;
}

Found<std::int64_t> read_number(py::handle value) {
  using Number = Found<std::int64_t>;
  if (!is_int(value)) return Number::wrong_kind({});
  int overflow = 0;
  const std::int64_t number = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
  return overflow == 0 ? Number::of(number) : Number::out_of_range({});
}

Found<std::string> read_text(py::handle value) {
  if (PyUnicode_Check(value.ptr()) != 0) {
    try {
      return Found<std::string>::of(std::string(utf8(value.ptr())));
    } catch (const PythonError&) {  // Surrogates.
      PyErr_Clear();
    }
  }
  return Found<std::string>::wrong_kind({});
}

/// A tuple of ints, of which at most kMaxNdim are kept.
Found<RawExtents> read_extents(py::handle value) {
  if (PyTuple_Check(value.ptr()) == 0) return Found<RawExtents>::wrong_kind({});
  RawExtents extents{.count = PyTuple_GET_SIZE(value.ptr()), .values = {}};
  for (Py_ssize_t axis = 0; axis < extents.count && axis < kMaxNdim; ++axis) {
    const Found<std::int64_t> number = read_number(PyTuple_GET_ITEM(value.ptr(), axis));
    if (!number.has_value()) return {.state = static_cast<Found<RawExtents>::State>(number.state)};
    extents.values.push_back(number.value);
  }
  return Found<RawExtents>::of(extents);
}

/// (address, read-only flag) (AI-14, CAI-05).
Found<RawPointer> read_pointer(py::handle value) {
  if (PyTuple_Check(value.ptr()) == 0 || PyTuple_GET_SIZE(value.ptr()) != 2 ||
      !is_int(PyTuple_GET_ITEM(value.ptr(), 0))) {
    return Found<RawPointer>::wrong_kind({});
  }
  const std::uintptr_t address = PyLong_AsUnsignedLong(PyTuple_GET_ITEM(value.ptr(), 0));
  if (address == ~std::uintptr_t{0} && PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    return Found<RawPointer>::out_of_range({});
  }
  const int readonly = PyObject_IsTrue(PyTuple_GET_ITEM(value.ptr(), 1));
  check(readonly);
  return Found<RawPointer>::of({.address = address, .readonly = readonly != 0});
}

/// Reads a list of (name, type[, repeat]); false if it is not one. `budget` counts entries down.
bool read_descr_fields(py::handle list, int depth, int& budget,
                       std::vector<RawDescrField>& fields) {
  if (PyList_Check(list.ptr()) == 0 || depth > kMaxNdim) return false;
  const py::object entries = steal(PyList_AsTuple(list.ptr()));  // A list can change.
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(entries.ptr()); ++i) {
    PyObject* const entry = PyTuple_GET_ITEM(entries.ptr(), i);
    const Py_ssize_t length = PyTuple_Check(entry) != 0 ? PyTuple_GET_SIZE(entry) : 0;
    if (--budget < 0 || (length != 2 && length != 3)) return false;
    py::handle name = PyTuple_GET_ITEM(entry, 0);
    if (PyTuple_Check(name.ptr()) != 0 && PyTuple_GET_SIZE(name.ptr()) == 2) {  // (title, name)
      name = PyTuple_GET_ITEM(name.ptr(), 1);
    }
    const Found<std::string> text = read_text(name);
    if (!text.has_value()) return false;
    RawDescrField& read = fields.emplace_back();
    read.name = text.value;
    PyObject* const type = PyTuple_GET_ITEM(entry, 1);
    if (PyUnicode_Check(type) != 0) {
      read.typestr = field(share(type), read_text);
    } else if (!read_descr_fields(type, depth + 1, budget, read.fields)) {
      return false;
    }
    if (length == 2) continue;
    PyObject* const repeat = PyTuple_GET_ITEM(entry, 2);
    if (is_int(repeat)) {
      read.repeat.push_back(read_number(repeat).value);
      continue;
    }
    const Found<RawExtents> extents = read_extents(repeat);
    if (!extents.has_value() || extents.value.count > kMaxNdim) return false;
    read.repeat.assign(extents.value.values.begin(), extents.value.values.end());
  }
  return true;
}

Found<RawDescr> read_descr(py::handle value) {
  RawDescr descr;
  int budget = kMaxDescrEntries;
  if (!read_descr_fields(value, 0, budget, descr.fields)) {
    return Found<RawDescr>::wrong_kind("<" + type_name(value.ptr()) + " that is not a descr>");
  }
  descr.literal = utf8(steal(PyObject_Repr(value.ptr())).ptr());  // Short: entries were counted.
  return Found<RawDescr>::of(std::move(descr));
}

Found<bool> read_hook(py::handle value) {
  return PyCallable_Check(value.ptr()) != 0 ? Found<bool>::of(true) : Found<bool>::wrong_kind({});
}

/// Calls `take` for the first entries of a sequence; false if it is not one, or `take` says so.
template <class Take>
bool for_each(py::handle sequence, const Take& take) {
  const py::object entries = steal_or_none(PySequence_Tuple(sequence.ptr()));
  if (!entries) {
    if (!take_error(PyExc_TypeError)) throw PythonError();
    return false;
  }
  const Py_ssize_t count = std::min(PyTuple_GET_SIZE(entries.ptr()), kMostPerDimension);
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (!take(share(PyTuple_GET_ITEM(entries.ptr(), i)))) return false;
  }
  return true;
}

Found<std::vector<std::string>> read_names(py::handle value) {
  std::vector<std::string> names;
  const bool is_names = for_each(value, [&](const py::object& name) {
    const Found<std::string> text = read_text(name);
    names.push_back(text.value);
    return text.has_value();
  });
  using Names = Found<std::vector<std::string>>;
  return is_names ? Names::of(std::move(names)) : Names::wrong_kind({});
}

Found<std::vector<HaloWidth>> read_halo(py::handle value) {
  std::vector<HaloWidth> widths;
  const bool is_halo = for_each(value, [&](const py::object& pair) {
    std::vector<std::int64_t> ends;
    const bool are_numbers = for_each(pair, [&](const py::object& end) {
      const Found<std::int64_t> number = read_number(end);
      ends.push_back(number.value);
      return number.has_value();
    });
    if (!are_numbers || ends.size() != 2) return false;
    widths.push_back({ends[0], ends[1]});
    return true;
  });
  using Widths = Found<std::vector<HaloWidth>>;
  return is_halo ? Widths::of(std::move(widths)) : Widths::wrong_kind({});
}

// ---- Array interfaces. ----

struct ReleaseBuffer {
  void operator()(Py_buffer* view) const noexcept {
    PyBuffer_Release(view);
    delete view;
  }
};

/// `data` where it is not a tuple: a buffer, or None for the object's own (AI-16, AI-17). Returns a
/// capsule that holds the Py_buffer until it goes (PB-24, PB-35); none for a tuple.
py::object hold_buffer(const py::object& data, PyObject* self, RawArrayInterface& raw) {
  const bool own = !data || data.is_none();
  PyObject* const exporter = own ? self : data.ptr();
  if (exporter == nullptr || PyTuple_Check(exporter) != 0) return py::object();
  if (PyObject_CheckBuffer(exporter) == 0) {
    check(refuse(own ? "AI-17" : "AI-16", ErrorClass::kType,
                 {"data", own ? "None" : describe(exporter),
                  own ? "a tuple, because the object does not have a buffer"
                      : "a tuple (address, read-only flag), a buffer or None",
                  "pass the address of the first element as an int"}));
  }
  std::unique_ptr<Py_buffer, ReleaseBuffer> view(new Py_buffer{});
  if (PyObject_GetBuffer(exporter, view.get(), PyBUF_WRITABLE) < 0) {
    if (!take_error(PyExc_BufferError)) throw PythonError();
    check(PyObject_GetBuffer(exporter, view.get(), PyBUF_SIMPLE));
    view->readonly = 1;
  }
  raw.data = {};
  raw.exported = RawBuffer{
      .memory = {.address = reinterpret_cast<std::uintptr_t>(view->buf), .length_bytes = view->len},
      .readonly = view->readonly != 0};
  py::capsule held(static_cast<void*>(view.get()),
                   [](void* pointer) { ReleaseBuffer()(static_cast<Py_buffer*>(pointer)); });
  view.release();
  return held;
}

/// The numpy.dtype where the interface has fields; none where the view's type says all.
py::object dtype_with_fields(const ImportedView& view, const py::object& descr) {
  if (view.memory.dtype.kind() != Kind::kStructured) return py::object();
  // NumPy's own reading of a descr: padding is dropped, titles and offsets are kept.
  return py::module_::import("numpy.lib.format").attr("descr_to_dtype")(descr);
}

void check_is_dict(py::handle dict, std::string_view rule, std::string_view name) {
  if (PyDict_Check(dict.ptr()) != 0) return;
  check(refuse(rule, ErrorClass::kType,
               {name, describe(dict.ptr()), "a dict", "return a dict from the property"}));
}

/// The keys that NumPy's and CUDA's array interface share, but for `data`: its flag is read last,
/// as the truth of an object may run code that changes the dict.
template <class Raw>
Raw read_fields(py::handle dict) {
  Raw raw;
  raw.shape = field(item(dict, "shape"), read_extents);
  raw.typestr = field(item(dict, "typestr"), read_text);
  raw.descr = field(item(dict, "descr"), read_descr);
  raw.strides_bytes = field(item(dict, "strides"), read_extents);
  raw.has_mask = static_cast<bool>(given(dict, "mask"));
  raw.version = field(item(dict, "version"), read_number);
  return raw;
}

/// What the driver says of the address. DeviceUnavailableError without a device; nothing for
/// address 0, which no driver knows.
std::optional<PointerInfo> info_of_address(const Found<RawPointer>& data) {
  if (!data.has_value() || data.value.address == 0) return std::nullopt;
  const void* const address = reinterpret_cast<const void*>(data.value.address);
  DeviceDriver* driver = driver_of(address);
  if (driver == nullptr) driver = value_of(device_driver());
  return value_of(driver->pointer_info(address));
}

// ---- Entries of __gt_data_interface__. ----

/// The entry of a side; none if there is none.
py::object entry_under(py::handle dict, Side side) {
  return side == Side::kDevice ? item(dict, kGpuKey.data()) : item(dict, Py_None);
}

/// `side` if the dict has an entry of it.
std::optional<Side> if_offered(py::handle dict, std::optional<Side> side) {
  const bool offered = side && PyDict_Check(dict.ptr()) != 0 && entry_under(dict, *side);
  return offered ? side : std::nullopt;
}

/// A side and the dict's entry of it, checked as far as its functions.
struct Entry {
  Side side;
  py::object dict;
};

RawDataInterface read_hooks(const Entry& entry) {
  RawDataInterface raw;
  raw.acquire = field(item(entry.dict, "acquire"), read_hook);
  raw.release = field(item(entry.dict, "release"), read_hook);
  raw.touch = field(item(entry.dict, "touch"), read_hook);
  return raw;
}

/// The entry of `side`; where nothing is asked for, the host's if there is one, else the GPU's.
Entry find_entry(py::handle dict, std::optional<Side> side) {
  check_is_dict(dict, "GT-01", "__gt_data_interface__");
  if (!side) side = entry_under(dict, Side::kHost) ? Side::kHost : Side::kDevice;
  Entry entry{*side, entry_under(dict, *side)};
  if (!entry.dict) {
    check(refuse("GT-01", ErrorClass::kValue,
                 {"__gt_data_interface__", describe(dict.ptr()),
                  "a dict with an entry under None or \"gpu\"", "use None for the host"}));
  }
  check_is_dict(entry.dict, "GT-02", "an entry of __gt_data_interface__");
  check(check_hooks(read_hooks(entry)));
  return entry;
}

/// Calls `acquire` if there is one. Returns an object that calls `release` when it goes, or none
/// (GT-07).
py::object acquire(const py::object& entry, PyObject* self) {
  if (const py::object function = given(entry, "acquire")) {
    steal(PyObject_CallNoArgs(function.ptr()));
  }
  const py::object release = given(entry, "release");
  if (!release) return py::object();
  py::object held = pack(release, keep_both(entry.ptr(), self));
  py::capsule capsule(static_cast<void*>(held.ptr()), [](void* pointer) {
    const py::object held = steal_or_none(static_cast<PyObject*>(pointer));
    PyObject* const release = PyTuple_GET_ITEM(held.ptr(), 0);
    // No caller is left to receive an exception.
    if (!steal_or_none(PyObject_CallNoArgs(release))) PyErr_WriteUnraisable(release);
  });
  held.release();
  return capsule;
}

/// The memory of an entry that may be used now.
Foreign read_entry(Entry entry, PyObject* self) {
  const bool host = entry.side == Side::kHost;
  if (!item(entry.dict, "version")) {
    // The proposal lists no version among its keys, which that protocol demands (GT-02): an entry
    // without one is of the newest.
    entry.dict = steal(PyDict_Copy(entry.dict.ptr()));
    entry.dict["version"] = host ? kArrayInterfaceVersion : kCudaArrayInterfaceVersion;
  }
  Foreign foreign = (host ? read_array_dict : read_cuda_dict)(entry.dict.ptr(), self);
  RawDataInterface raw = read_hooks(entry);
  raw.dims = field(item(entry.dict, "dims"), read_names);
  raw.halo = field(item(entry.dict, "halo"), read_halo);
  EntryMeaning meaning = value_of(read_meaning(raw, foreign.view.memory.view.shape));
  foreign.meaning = {.halo = meaning.halo,
                     .touch = given(entry.dict, "touch"),
                     .names = std::move(meaning.dims),
                     .dims = given(entry.dict, "dims")};
  return foreign;
}

}  // namespace

py::object keep_both(PyObject* first, PyObject* second) {
  if (first == nullptr) return share(second);
  if (second == nullptr) return share(first);
  return steal(PyTuple_Pack(2, first, second));
}

Foreign read_array_dict(PyObject* dict, PyObject* self) {
  check_is_dict(dict, "AI-01", "__array_interface__");
  const py::object descr = item(dict, "descr");
  const py::object data = item(dict, "data");
  auto raw = read_fields<RawArrayInterface>(dict);
  raw.offset_bytes = field(item(dict, "offset"), read_number);
  raw.data = field(data, read_pointer);
  const ShieldedRef held = raw.data.has_value() ? py::object() : hold_buffer(data, self, raw);
  Foreign foreign;
  foreign.view = value_of(read_array_interface(raw));
  foreign.dtype = dtype_with_fields(foreign.view, descr);
  foreign.keep_alive = keep_both(held.ptr(), keep_both(dict, self).ptr());
  return foreign;
}

Foreign read_cuda_dict(PyObject* dict, PyObject* self) {
  check_is_dict(dict, "CAI-01", "__cuda_array_interface__");
  const py::object descr = item(dict, "descr");
  auto raw = read_fields<RawCudaArrayInterface>(dict);
  raw.stream = field(item(dict, "stream"), read_number);
  raw.data = field(item(dict, "data"), read_pointer);
  // What is wrong with the dict itself is said without a device.
  check(read_cuda_array_interface(raw).status());
  Foreign foreign;
  foreign.view = value_of(read_cuda_array_interface(raw, info_of_address(raw.data)));
  foreign.dtype = dtype_with_fields(foreign.view, descr);
  foreign.keep_alive = keep_both(dict, self);
  return foreign;
}

bool is_data_dict(PyObject* dict) {
  return entry_under(dict, Side::kHost) || entry_under(dict, Side::kDevice);
}

Foreign read_data_dict(PyObject* dict, PyObject* self, std::optional<Side> side, PyObject* source) {
  Entry entry = find_entry(dict, side);
  const ShieldedRef guard = acquire(entry.dict, self);  // Releases also if what follows raises.
  // Acquiring may have moved the memory.
  const py::object again =
      source == nullptr ? py::object() : optional_attribute(source, data_interface_name);
  if (again && PyDict_Check(again.ptr()) != 0) {
    py::object fresh = entry_under(again, entry.side);
    if (fresh && PyDict_Check(fresh.ptr()) != 0) entry.dict = std::move(fresh);
  }
  Foreign foreign = read_entry(std::move(entry), self);
  foreign.keep_alive = keep_both(guard.ptr(), foreign.keep_alive.ptr());
  return foreign;
}

std::optional<UseHooks> use_hooks(PyObject* object, Side side) {
  const py::object dict = optional_attribute(object, data_interface_name);
  if (!dict) return std::nullopt;
  const Entry entry = find_entry(dict, if_offered(dict, side));
  return UseHooks{.side = entry.side,
                  .acquire = given(entry.dict, "acquire"),
                  .release = given(entry.dict, "release")};
}

std::optional<Foreign> through_data_interface(PyObject* object, const ImportOptions& options) {
  const py::object dict = optional_attribute(object, data_interface_name);
  if (!dict) return std::nullopt;
  if (options.acquired) {
    return read_entry(find_entry(dict, options.side.value_or(Side::kHost)), object);
  }
  return read_data_dict(dict.ptr(), object, if_offered(dict, options.side), object);
}

std::optional<Foreign> through_array_struct(PyObject* object, const ImportOptions&) {
  static AttributeName name("__array_struct__");
  const ShieldedRef capsule = optional_attribute(object, name);
  if (!capsule) return std::nullopt;
  if (PyCapsule_IsValid(capsule.ptr(), nullptr) == 0) {
    check(refuse("AS-01", ErrorClass::kType,
                 {"__array_struct__", describe(capsule.ptr()), "a capsule without a name",
                  "make it with PyCapsule_New(struct, NULL, destructor)"}));
  }
  const auto& found =
      *static_cast<array_struct::ArrayStruct*>(PyCapsule_GetPointer(capsule.ptr(), nullptr));
  const bool has_descr = found.two == 2 && (found.flags & array_struct::kHasDescr) != 0;
  const py::object descr = share(has_descr ? static_cast<PyObject*>(found.descr) : nullptr);
  Foreign foreign;
  foreign.view = value_of(array_struct::read_array_struct(found, field(descr, read_descr)));
  foreign.dtype = dtype_with_fields(foreign.view, descr);
  foreign.keep_alive =
      keep_both(capsule.ptr(), object);  // AS-07: the capsule, not only the object.
  return foreign;
}

std::optional<Foreign> through_array_interface(PyObject* object, const ImportOptions&) {
  static AttributeName name("__array_interface__");
  const py::object dict = optional_attribute(object, name);
  return dict ? std::optional(read_array_dict(dict.ptr(), object)) : std::nullopt;
}

std::optional<Foreign> through_cuda_array_interface(PyObject* object, const ImportOptions&) {
  static AttributeName name("__cuda_array_interface__");
  const py::object dict = optional_attribute(object, name);
  return dict ? std::optional(read_cuda_dict(dict.ptr(), object)) : std::nullopt;
}

}  // namespace gridbuf::python
