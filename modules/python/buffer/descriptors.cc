// What Python objects say of memory, as the readers of gridbuf.interface take it.

module;

#include <Python.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.python.buffer;

import gridbuf.alloc;
import gridbuf.base;
import gridbuf.device;
import gridbuf.device.registry;
import gridbuf.interface;
import gridbuf.interface.numpy;
import gridbuf.layout;
import gridbuf.python.support;

namespace gridbuf::python {
namespace {

/// The most entries of a descr, nested ones included: lists may hold one another many times over,
/// and then a few of them are millions of entries.
constexpr int kMaxDescrEntries = 1024;
/// The most names of dimensions, or pairs of a halo, that are read: one more than there can be.
constexpr Py_ssize_t kMostPerDimension = kMaxNdim + 1;

namespace keys {
AttributeName acquire("acquire");
AttributeName data("data");
AttributeName descr("descr");
AttributeName dims("dims");
AttributeName gpu("gpu");
AttributeName halo("halo");
AttributeName mask("mask");
AttributeName offset("offset");
AttributeName release("release");
AttributeName shape("shape");
AttributeName stream("stream");
AttributeName strides("strides");
AttributeName touch("touch");
AttributeName typestr("typestr");
AttributeName version("version");
}  // namespace keys

/// The value under `key`, kept alive: messages may run code that changes the dict. None without it.
py::object item(PyObject* dict, AttributeName& key) {
  PyObject* const found = PyDict_GetItemWithError(dict, key.get());
  if (found == nullptr && PyErr_Occurred() != nullptr) throw PythonError();
  return share(found);
}

template <class T>
std::optional<Found<T>> without_value(const py::object& value) {
  if (!value) return Found<T>();
  if (value.ptr() == Py_None) return Found<T>::none();
  return std::nullopt;
}

bool is_int(PyObject* object) { return PyLong_Check(object) != 0 && PyBool_Check(object) == 0; }

Found<std::int64_t> to_number(const py::object& value) {
  if (const auto other = without_value<std::int64_t>(value)) return *other;
  if (!is_int(value.ptr())) return Found<std::int64_t>::wrong_kind(describe(value.ptr()));
  int overflow = 0;
  const std::int64_t number = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
  if (overflow != 0) return Found<std::int64_t>::out_of_range(describe(value.ptr()));
  return Found<std::int64_t>::of(number);
}

/// Text; of a wrong kind if it is none, or has no UTF-8 form.
Found<std::string> to_string_field(const py::object& value) {
  if (const auto other = without_value<std::string>(value)) return *other;
  if (PyUnicode_Check(value.ptr()) != 0) {
    Py_ssize_t length = 0;
    const char* text = PyUnicode_AsUTF8AndSize(value.ptr(), &length);
    if (text != nullptr) {
      return Found<std::string>::of(std::string(text, static_cast<std::size_t>(length)));
    }
    PyErr_Clear();
  }
  return Found<std::string>::wrong_kind(describe(value.ptr()));
}

/// A tuple of ints, of which at most kMaxNdim are kept.
Found<RawExtents> to_raw_extents(const py::object& value) {
  if (const auto other = without_value<RawExtents>(value)) return *other;
  if (PyTuple_Check(value.ptr()) == 0) return Found<RawExtents>::wrong_kind(describe(value.ptr()));
  RawExtents extents{.count = PyTuple_GET_SIZE(value.ptr()), .values = {}};
  for (Py_ssize_t axis = 0; axis < extents.count && axis < kMaxNdim; ++axis) {
    const Found<std::int64_t> number = to_number(share(PyTuple_GET_ITEM(value.ptr(), axis)));
    if (number.state == Found<std::int64_t>::State::kOutOfRange) {
      return Found<RawExtents>::out_of_range(describe(value.ptr()));
    }
    if (!number.has_value()) return Found<RawExtents>::wrong_kind(describe(value.ptr()));
    extents.values.push_back(number.value);
  }
  return Found<RawExtents>::of(extents);
}

/// (address, read-only flag) (AI-14, CAI-05).
Found<RawPointer> to_pointer(const py::object& value) {
  if (const auto other = without_value<RawPointer>(value)) return *other;
  const auto wrong = [&] { return Found<RawPointer>::wrong_kind(describe(value.ptr())); };
  if (PyTuple_Check(value.ptr()) == 0 || PyTuple_GET_SIZE(value.ptr()) != 2) return wrong();
  PyObject* const address = PyTuple_GET_ITEM(value.ptr(), 0);
  if (!is_int(address)) return wrong();
  const unsigned long long number = PyLong_AsUnsignedLongLong(address);
  if (number == ~0ULL && PyErr_Occurred() != nullptr) {  // Negative, or beyond 64 bits.
    PyErr_Clear();
    return Found<RawPointer>::out_of_range(describe(value.ptr()));
  }
  const int readonly = PyObject_IsTrue(PyTuple_GET_ITEM(value.ptr(), 1));
  check(readonly);
  return Found<RawPointer>::of({.address = number, .readonly = readonly != 0});
}

/// Reads lists of (name, type[, repeat]); `budget` counts entries down.
class DescrReader {
 public:
  Found<RawDescr> read(const py::object& value) {
    if (const auto other = without_value<RawDescr>(value)) return *other;
    RawDescr descr;
    if (!read_list(value.ptr(), 0, descr.fields)) {
      return Found<RawDescr>::wrong_kind("<" + type_name(value.ptr()) + " that is no descr>");
    }
    const py::object literal = steal(PyObject_Repr(value.ptr()));  // Short: entries were counted.
    descr.literal = utf8(literal.ptr());
    return Found<RawDescr>::of(std::move(descr));
  }

 private:
  bool read_list(PyObject* list, int depth, std::vector<RawDescrField>& fields) {
    if (PyList_Check(list) == 0 || depth > kMaxNdim) return false;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
      const py::object entry = share(PyList_GET_ITEM(list, i));
      if (--budget_ < 0 || !read_entry(entry.ptr(), depth, fields.emplace_back())) return false;
    }
    return true;
  }

  bool read_entry(PyObject* entry, int depth, RawDescrField& field) {
    if (PyTuple_Check(entry) == 0) return false;
    const Py_ssize_t length = PyTuple_GET_SIZE(entry);
    if (length != 2 && length != 3) return false;
    PyObject* name = PyTuple_GET_ITEM(entry, 0);
    if (PyTuple_Check(name) != 0 && PyTuple_GET_SIZE(name) == 2) {  // (title, name)
      name = PyTuple_GET_ITEM(name, 1);
    }
    const Found<std::string> text = to_string_field(share(name));
    if (!text.has_value()) return false;
    field.name = text.value;
    PyObject* const type = PyTuple_GET_ITEM(entry, 1);
    if (PyUnicode_Check(type) != 0) {
      field.typestr = to_string_field(share(type));
    } else if (!read_list(type, depth + 1, field.fields)) {
      return false;
    }
    return length == 2 || read_repeat(PyTuple_GET_ITEM(entry, 2), field.repeat);
  }

  static bool read_repeat(PyObject* repeat, std::vector<std::int64_t>& extents) {
    if (is_int(repeat)) {
      extents.push_back(to_number(share(repeat)).value);
      return true;
    }
    const Found<RawExtents> found = to_raw_extents(share(repeat));
    if (!found.has_value() || found.value.count > kMaxNdim) return false;
    extents.assign(found.value.values.begin(), found.value.values.end());
    return true;
  }

  int budget_ = kMaxDescrEntries;
};

// ---- Buffers that a dict lends. ----

void release_held(PyObject* capsule) {
  auto* view = static_cast<Py_buffer*>(PyCapsule_GetPointer(capsule, nullptr));
  PyBuffer_Release(view);
  delete view;
}

/// A capsule that holds the bytes of `object` until it goes (PB-24, PB-35); none, with its error
/// set, if it lends none.
py::object hold_bytes(PyObject* object, RawBuffer& lent) {
  auto view = std::make_unique<Py_buffer>();
  bool readonly = false;
  if (PyObject_GetBuffer(object, view.get(), PyBUF_WRITABLE) < 0) {
    if (!take_error(PyExc_BufferError)) return py::object();
    readonly = true;
    if (PyObject_GetBuffer(object, view.get(), PyBUF_SIMPLE) < 0) return py::object();
  }
  lent = {
      .memory = {.address = reinterpret_cast<std::uintptr_t>(view->buf), .length_bytes = view->len},
      .readonly = readonly || view->readonly != 0};
  PyObject* const capsule = PyCapsule_New(view.get(), nullptr, release_held);
  if (capsule == nullptr) {
    PyBuffer_Release(view.get());
    throw PythonError();
  }
  view.release();
  return steal(capsule);
}

/// `data` where it is no tuple: a buffer, or None for the object's own (AI-16, AI-17).
py::object lend(const py::object& data, PyObject* self, RawArrayInterface& raw) {
  const bool own = !data || data.ptr() == Py_None;
  PyObject* const lender = own ? self : data.ptr();
  if (lender == nullptr || PyTuple_Check(lender) != 0) return py::object();
  const std::string_view rule = own ? "AI-17" : "AI-16";
  RawBuffer lent;
  if (PyObject_CheckBuffer(lender) == 0) {
    check(refuse(rule, ErrorClass::kType,
                 {"data", own ? "None" : describe(lender),
                  own ? "a tuple, because the object has no buffer of its own"
                      : "a tuple (address, read-only flag), a buffer or None",
                  "pass the address of the first element as an int"}));
  }
  py::object held = hold_bytes(lender, lent);
  if (!held) throw PythonError();
  raw.data = {};
  raw.lent = lent;
  return held;
}

/// The numpy.dtype where the interface has fields; none where the view's type says all.
py::object dtype_with_fields(const ImportedView& view, PyObject* descr) {
  return view.memory.dtype.kind() == Kind::kStructured ? dtype_of_descr(descr) : py::object();
}

void check_is_dict(PyObject* dict, std::string_view rule, std::string_view name) {
  if (PyDict_Check(dict) != 0) return;
  check(refuse(rule, ErrorClass::kType,
               {name, describe(dict), "a dict", "return a dict from the property"}));
}

RawArrayInterface array_fields(PyObject* dict, const py::object& data) {
  RawArrayInterface raw{.shape = to_raw_extents(item(dict, keys::shape)),
                        .typestr = to_string_field(item(dict, keys::typestr)),
                        .descr = DescrReader().read(item(dict, keys::descr)),
                        .data = {},
                        .lent = std::nullopt,
                        .offset_bytes = to_number(item(dict, keys::offset)),
                        .strides_bytes = to_raw_extents(item(dict, keys::strides)),
                        .has_mask = false,
                        .version = to_number(item(dict, keys::version))};
  const py::object mask = item(dict, keys::mask);
  raw.has_mask = mask && mask.ptr() != Py_None;
  raw.data = to_pointer(data);
  return raw;
}

RawCudaArrayInterface cuda_fields(PyObject* dict) {
  RawArrayInterface common = array_fields(dict, item(dict, keys::data));
  return {.shape = std::move(common.shape),
          .typestr = std::move(common.typestr),
          .descr = std::move(common.descr),
          .data = std::move(common.data),
          .strides_bytes = std::move(common.strides_bytes),
          .has_mask = common.has_mask,
          .version = std::move(common.version),
          .stream = to_number(item(dict, keys::stream))};
}

/// What the driver says of the address. DeviceUnavailableError without a device; nothing for
/// address 0, which no driver knows.
std::optional<PointerFacts> facts_of(const Found<RawPointer>& data) {
  if (!data.has_value() || data.value.address == 0) return std::nullopt;
  const void* const address = reinterpret_cast<const void*>(data.value.address);
  DeviceDriver* driver = driver_of(address);
  if (driver == nullptr) driver = value_of(device_driver());
  const PointerInfo info = value_of(driver->pointer_info(address));
  PointerFacts facts{.device = info.device,
                     .device_accessible = info.device_accessible,
                     .allocation = std::nullopt};
  if (info.length_bytes > 0) {
    facts.allocation = KnownMemory{.address = info.base, .length_bytes = info.length_bytes};
  }
  return facts;
}

// ---- Entries of __gt_data_interface__. ----

Found<bool> to_hook(const py::object& value) {
  if (const auto other = without_value<bool>(value)) return *other;
  if (PyCallable_Check(value.ptr()) != 0) return Found<bool>::of(true);
  return Found<bool>::wrong_kind(describe(value.ptr()));
}

Found<std::vector<std::string>> to_names(const py::object& value) {
  using Names = Found<std::vector<std::string>>;
  if (const auto other = without_value<std::vector<std::string>>(value)) return *other;
  const py::object list = steal_or_none(PySequence_Fast(value.ptr(), ""));
  if (!list) {
    if (!take_error(PyExc_TypeError)) throw PythonError();
    return Names::wrong_kind(describe(value.ptr()));
  }
  std::vector<std::string> names;
  const Py_ssize_t count = std::min(PySequence_Fast_GET_SIZE(list.ptr()), kMostPerDimension);
  for (Py_ssize_t i = 0; i < count; ++i) {
    const auto name = to_string_field(share(PySequence_Fast_GET_ITEM(list.ptr(), i)));
    if (!name.has_value()) return Names::wrong_kind(describe(value.ptr()));
    names.push_back(name.value);
  }
  return Names::of(std::move(names));
}

std::optional<HaloWidth> to_width(PyObject* pair) {
  const py::object items = steal_or_none(PySequence_Fast(pair, ""));
  if (!items) {
    if (!take_error(PyExc_TypeError)) throw PythonError();
    return std::nullopt;
  }
  if (PySequence_Fast_GET_SIZE(items.ptr()) != 2) return std::nullopt;
  const auto lower = to_number(share(PySequence_Fast_GET_ITEM(items.ptr(), 0)));
  const auto upper = to_number(share(PySequence_Fast_GET_ITEM(items.ptr(), 1)));
  if (!lower.has_value() || !upper.has_value()) return std::nullopt;
  return HaloWidth{lower.value, upper.value};
}

Found<std::vector<HaloWidth>> to_widths(const py::object& value) {
  using Widths = Found<std::vector<HaloWidth>>;
  if (const auto other = without_value<std::vector<HaloWidth>>(value)) return *other;
  const py::object list = steal_or_none(PySequence_Fast(value.ptr(), ""));
  if (!list) {
    if (!take_error(PyExc_TypeError)) throw PythonError();
    return Widths::wrong_kind(describe(value.ptr()));
  }
  std::vector<HaloWidth> widths;
  const Py_ssize_t count = std::min(PySequence_Fast_GET_SIZE(list.ptr()), kMostPerDimension);
  for (Py_ssize_t i = 0; i < count; ++i) {
    const py::object pair = share(PySequence_Fast_GET_ITEM(list.ptr(), i));
    const auto width = to_width(pair.ptr());
    if (!width) return Widths::wrong_kind(describe(value.ptr()));
    widths.push_back(*width);
  }
  return Widths::of(std::move(widths));
}

/// Calls `release` of an entry when the memory is let go of (GT-07). An exception has nobody to go
/// to then.
void run_release(PyObject* capsule) {
  auto* const held = static_cast<PyObject*>(PyCapsule_GetPointer(capsule, nullptr));
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);  // The capsule may go while an exception is on its way.
  PyObject* const release = PyTuple_GET_ITEM(held, 0);
  PyObject* const result = PyObject_CallNoArgs(release);
  if (result == nullptr) PyErr_WriteUnraisable(release);
  Py_XDECREF(result);
  Py_DECREF(held);
  PyErr_Restore(type, value, traceback);
}

/// A thing that keeps `alive` alive and calls `release` when it goes.
py::object releasing(const py::object& release, const py::object& alive) {
  py::object held = steal(PyTuple_Pack(2, release.ptr(), alive.ptr()));
  py::object capsule = steal(PyCapsule_New(held.ptr(), nullptr, run_release));
  held.release();
  return capsule;
}

RawDataInterface hooks_of(PyObject* entry, DeviceType side) {
  RawDataInterface raw;
  raw.side = side;
  raw.acquire = to_hook(item(entry, keys::acquire));
  raw.release = to_hook(item(entry, keys::release));
  raw.touch = to_hook(item(entry, keys::touch));
  return raw;
}

}  // namespace

py::object keep_both(PyObject* first, PyObject* second) {
  if (first == nullptr) return share(second);
  if (second == nullptr) return share(first);
  return steal(PyTuple_Pack(2, first, second));
}

py::object dtype_of_descr(PyObject* descr) {
  // NumPy's own reading of a descr: padding is dropped, titles and offsets are kept.
  const py::object format = steal(PyImport_ImportModule("numpy.lib.format"));
  return steal(PyObject_CallMethod(format.ptr(), "descr_to_dtype", "O", descr));
}

Foreign read_array_dict(PyObject* dict, PyObject* self) {
  check_is_dict(dict, "AI-01", "__array_interface__");
  const py::object data = item(dict, keys::data);
  RawArrayInterface raw = array_fields(dict, data);
  const ShieldedRef lent = raw.data.has_value() ? py::object() : lend(data, self, raw);
  Foreign foreign;
  foreign.view = value_of(read_array_interface(raw));
  foreign.dtype = dtype_with_fields(foreign.view, item(dict, keys::descr).ptr());
  const py::object described = keep_both(dict, self);
  foreign.keep_alive = keep_both(lent.ptr(), described.ptr());
  return foreign;
}

Foreign read_cuda_dict(PyObject* dict, PyObject* self) {
  check_is_dict(dict, "CAI-01", "__cuda_array_interface__");
  const RawCudaArrayInterface raw = cuda_fields(dict);
  // What is wrong with the dict itself is said without a device.
  check(read_cuda_array_interface(raw).status());
  Foreign foreign;
  foreign.view = value_of(read_cuda_array_interface(raw, facts_of(raw.data)));
  foreign.dtype = dtype_with_fields(foreign.view, item(dict, keys::descr).ptr());
  foreign.keep_alive = keep_both(dict, self);
  return foreign;
}

namespace {

/// The entry of a side; none if there is none.
py::object entry_under(PyObject* dict, DeviceType side) {
  if (side == DeviceType::kCuda) return item(dict, keys::gpu);
  PyObject* const found = PyDict_GetItemWithError(dict, Py_None);
  if (found == nullptr && PyErr_Occurred() != nullptr) throw PythonError();
  return share(found);
}

}  // namespace

bool has_entry(PyObject* dict, DeviceType side) {
  return static_cast<bool>(entry_under(dict, side));
}

bool is_data_dict(PyObject* dict) {
  return has_entry(dict, DeviceType::kHost) || has_entry(dict, DeviceType::kCuda);
}

namespace {

AttributeName data_interface_name("__gt_data_interface__");

/// The dict's entry of a side, checked as far as its functions.
py::object checked_entry(PyObject* dict, DeviceType side) {
  py::object entry = entry_under(dict, side);
  check_is_dict(entry.ptr(), "GT-02", "an entry of __gt_data_interface__");
  check(check_hooks(hooks_of(entry.ptr(), side)));
  return entry;
}

/// Calls `acquire` if there is one; a thing that calls `release` when it goes, or none (GT-07).
py::object acquire(const py::object& entry, PyObject* self) {
  const py::object function = item(entry.ptr(), keys::acquire);
  const bool given = function && function.ptr() != Py_None;
  if (given) steal(PyObject_CallNoArgs(function.ptr()));
  const py::object release = item(entry.ptr(), keys::release);
  if (!release || release.ptr() == Py_None) return py::object();
  return releasing(release, keep_both(entry.ptr(), self));
}

/// The entry as `source` gives it now; `entry` if there is no source or it gives none.
py::object read_again(py::object entry, DeviceType side, PyObject* source) {
  const py::object again =
      source == nullptr ? py::object() : optional_attribute(source, data_interface_name);
  if (!again || PyDict_Check(again.ptr()) == 0) return entry;
  py::object fresh = entry_under(again.ptr(), side);
  return fresh && PyDict_Check(fresh.ptr()) != 0 ? std::move(fresh) : std::move(entry);
}

/// The entry as an array interface. The proposal lists no version among its keys, which that
/// protocol demands (GT-02): an entry without one is of today's.
py::object as_array_interface(const py::object& entry, DeviceType side) {
  if (item(entry.ptr(), keys::version)) return share(entry.ptr());
  const int version =
      side == DeviceType::kHost ? kArrayInterfaceVersion : kCudaArrayInterfaceVersion;
  py::object completed = steal(PyDict_Copy(entry.ptr()));
  const py::object number = steal(PyLong_FromLong(version));
  check(PyDict_SetItem(completed.ptr(), keys::version.get(), number.ptr()));
  return completed;
}

/// Fills in what the entry says beyond an array interface.
void read_meaning_of(PyObject* entry, DeviceType side, Foreign& foreign) {
  RawDataInterface raw = hooks_of(entry, side);
  raw.dims = to_names(item(entry, keys::dims));
  raw.halo = to_widths(item(entry, keys::halo));
  EntryMeaning meaning = value_of(read_meaning(raw, foreign.view.memory.view.shape));
  foreign.dims = std::move(meaning.dims);
  foreign.meaning.halo = meaning.halo;
  py::object touch = item(entry, keys::touch);
  if (touch && touch.ptr() != Py_None) foreign.meaning.touch = std::move(touch);
}

}  // namespace

namespace {

/// The side whose entry is meant: `side` if it has one, else the host's, else the GPU's. An error
/// if there is none.
DeviceType side_with_entry(PyObject* dict, std::optional<DeviceType> side) {
  check_is_dict(dict, "GT-01", "__gt_data_interface__");
  if (!side) side = entry_under(dict, DeviceType::kHost) ? DeviceType::kHost : DeviceType::kCuda;
  if (!entry_under(dict, *side)) {
    check(refuse("GT-01", ErrorClass::kValue,
                 {"__gt_data_interface__", describe(dict),
                  "a dict with an entry under None or \"gpu\"", "use None for the host"}));
  }
  return *side;
}

/// The memory of an entry that may be used now.
Foreign read_entry(const py::object& acquired, PyObject* self, DeviceType side) {
  const py::object entry = as_array_interface(acquired, side);
  Foreign foreign = side == DeviceType::kHost ? read_array_dict(entry.ptr(), self)
                                              : read_cuda_dict(entry.ptr(), self);
  read_meaning_of(entry.ptr(), side, foreign);
  return foreign;
}

py::object given(py::object function) {
  return function && function.ptr() != Py_None ? std::move(function) : py::object();
}

}  // namespace

Foreign read_data_dict(PyObject* dict, PyObject* self, std::optional<DeviceType> wanted,
                       PyObject* source) {
  const DeviceType side = side_with_entry(dict, wanted);
  py::object first = checked_entry(dict, side);
  const ShieldedRef guard = acquire(first, self);  // Releases also if what follows raises.
  Foreign foreign = read_entry(read_again(std::move(first), side, source), self, side);
  foreign.keep_alive = keep_both(guard.ptr(), foreign.keep_alive.ptr());
  return foreign;
}

Foreign read_acquired_dict(PyObject* dict, PyObject* self, DeviceType wanted) {
  const DeviceType side = side_with_entry(dict, wanted);
  return read_entry(checked_entry(dict, side), self, side);
}

std::optional<UseHooks> use_hooks(PyObject* object, DeviceType wanted) {
  const py::object dict = optional_attribute(object, data_interface_name);
  if (!dict) return std::nullopt;
  const bool has_wanted = PyDict_Check(dict.ptr()) != 0 && has_entry(dict.ptr(), wanted);
  const DeviceType side =
      side_with_entry(dict.ptr(), has_wanted ? std::optional(wanted) : std::nullopt);
  const py::object entry = checked_entry(dict.ptr(), side);
  return UseHooks{.side = side,
                  .acquire = given(item(entry.ptr(), keys::acquire)),
                  .release = given(item(entry.ptr(), keys::release))};
}

Foreign read_struct_capsule(PyObject* capsule, PyObject* self) {
  if (PyCapsule_CheckExact(capsule) == 0 || PyCapsule_IsValid(capsule, nullptr) == 0) {
    check(refuse("AS-01", ErrorClass::kType,
                 {"__array_struct__", describe(capsule), "a capsule without a name",
                  "make it with PyCapsule_New(struct, NULL, destructor)"}));
  }
  const auto* found =
      static_cast<const array_struct::ArrayStruct*>(PyCapsule_GetPointer(capsule, nullptr));
  const bool has_descr = found->two == 2 && (found->flags & array_struct::kHasDescr) != 0;
  const py::object descr =
      has_descr ? share(static_cast<PyObject*>(found->descr)) : py::object();  // AS-06
  Foreign foreign;
  foreign.view = value_of(array_struct::read_array_struct(*found, DescrReader().read(descr)));
  foreign.dtype = dtype_with_fields(foreign.view, descr.ptr());
  foreign.keep_alive = keep_both(capsule, self);  // AS-07: the capsule, not only the object.
  return foreign;
}

}  // namespace gridbuf::python
