module;

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#include <Python.h>
#include <numpy/arrayobject.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

module gridbuf.python.support;

import gridbuf.base;
import gridbuf.interface;
import gridbuf.layout;
import gridbuf.layout.view;

namespace gridbuf::python {
namespace {

// NumPy's type numbers: those of user-defined types (ml_dtypes) begin at 256, those that have no
// fixed layout of their fields (variable-length text) at 2056.
constexpr int kFirstUserType = 256;
constexpr int kFirstNewStyleType = 2056;

PyObject* copyto = nullptr;             // numpy.copyto
PyObject* can_cast_function = nullptr;  // numpy.can_cast
PyObject* generic = nullptr;            // numpy.generic
PyObject* casting_name = nullptr;       // ("casting",)
PyObject* casting_where = nullptr;      // ("casting", "where")
PyObject* unsafe = nullptr;             // "unsafe"
PyObject* same_kind = nullptr;          // "same_kind"

int type_number(PyObject* dtype) { return reinterpret_cast<PyArray_Descr*>(dtype)->type_num; }

PyArrayObject* array_in(PyObject* object) { return reinterpret_cast<PyArrayObject*>(object); }

/// A new array of no dimensions.
py::object make_0d_array(PyObject* dtype) {
  Py_INCREF(dtype);  // Stolen by the next call.
  return steal(PyArray_NewFromDescr(&PyArray_Type, reinterpret_cast<PyArray_Descr*>(dtype), 0,
                                    nullptr, nullptr, nullptr, 0, nullptr));
}

py::object attribute(PyObject* object, const char* name) {
  return steal(PyObject_GetAttrString(object, name));
}

[[noreturn]] void raise_dtype(PyObject* dtype, std::string_view bound, std::string_view advice) {
  raise(ErrorClass::kType, Problem{"dtype", describe(dtype), bound, advice});
}

void check_fixed_size(PyObject* dtype) {
  const int number = type_number(dtype);
  const py::object has_object = attribute(dtype, "hasobject");
  if (PyObject_IsTrue(has_object.ptr()) != 0) {
    raise_dtype(dtype, "a type without Python objects", "use a number, text, date or record type");
  }
  if (number < 0 || number >= kFirstNewStyleType) {
    raise_dtype(dtype, "a type of fixed size", "use a number, text, date or record type");
  }
  if (PyLong_AsLong(attribute(dtype, "itemsize").ptr()) <= 0) {
    raise_dtype(dtype, "a type of at least one byte", "give it its length, as in \"U8\" or \"S8\"");
  }
}

std::int64_t to_int64(const py::object& number) { return PyLong_AsLongLong(number.ptr()); }

/// Where the last field of a record ends, in bytes; nothing if one of its fields is a record that
/// goes on after its own last field.
std::optional<std::int64_t> end_of_fields(PyObject* dtype) {
  const py::object fields = attribute(dtype, "fields");
  const py::object entries = steal(PyMapping_Values(fields.ptr()));
  std::int64_t end = 0;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(entries.ptr()); ++i) {
    PyObject* const entry = PyList_GET_ITEM(entries.ptr(), i);  // (dtype, offset[, title])
    PyObject* const type = PyTuple_GetItem(entry, 0);
    const std::int64_t length = to_int64(attribute(type, "itemsize"));
    const std::int64_t offset = PyLong_AsLongLong(PyTuple_GetItem(entry, 1));
    end = std::max(end, offset + length);
    const py::object base = attribute(type, "base");
    const py::object names = attribute(base.ptr(), "names");
    if (names.ptr() == Py_None) continue;
    if (end_of_fields(base.ptr()) != to_int64(attribute(base.ptr(), "itemsize"))) {
      return std::nullopt;
    }
  }
  return end;
}

/// NumPy's PEP 3118 format of one element; empty where it has none.
std::string numpy_format(PyObject* dtype) {
  const py::object array = make_0d_array(dtype);
  Py_buffer view;
  if (PyObject_GetBuffer(array.ptr(), &view, PyBUF_FULL_RO) < 0) {
    PyErr_Clear();  // No word for one of its fields: a date, a narrow float.
    return {};
  }
  std::string format = view.format == nullptr ? "B" : view.format;
  PyBuffer_Release(&view);
  return format;
}

/// The PEP 3118 format of a record type; empty where it has none. NumPy's text stops at the last
/// field (numpy #7797), but its size must be the item size (PB-04): what follows is written as
/// padding. In a record inside of the record it cannot be; such a type has no format.
std::string record_format(PyObject* dtype) {
  const std::optional<std::int64_t> end = end_of_fields(dtype);
  std::string format = end ? numpy_format(dtype) : std::string();
  if (format.empty() || format.back() != '}') return {};
  const std::int64_t rest = to_int64(attribute(dtype, "itemsize")) - *end;
  format.insert(format.size() - 1, static_cast<std::size_t>(rest), 'x');
  return format;
}

/// The dtype's `descr`; none where NumPy has none (overlapping fields).
py::object descr_of(PyObject* dtype) {
  py::object descr = steal_or_none(PyObject_GetAttrString(dtype, "descr"));
  if (!descr && !take_error(PyExc_ValueError)) throw PythonError();
  return descr;
}

DType structured_type(PyObject* dtype, const py::object& descr) {
  std::string text;
  if (descr) {
    const py::object literal = steal(PyObject_Repr(descr.ptr()));
    text = utf8(literal.ptr());
  }
  return value_of(DType::structured(to_int64(attribute(dtype, "itemsize")), record_format(dtype),
                                    std::move(text)));
}

DType interface_type(PyObject* dtype, const py::object& descr, const py::object& typestr) {
  const py::object names = attribute(dtype, "names");
  if (names.ptr() != Py_None) return structured_type(dtype, descr);
  if (type_number(dtype) >= kFirstUserType) {
    const py::object name = attribute(dtype, "name");
    absl::StatusOr<DType> named = DType::from_name(utf8(name.ptr()));
    if (named.ok()) return *std::move(named);
  }
  return value_of(DType::from_typestr(utf8(typestr.ptr())));
}

DTypePtr make_record(PyObject* dtype) {
  check_fixed_size(dtype);
  py::object descr = descr_of(dtype);
  py::object typestr = attribute(dtype, "str");
  const py::object name = attribute(dtype, "name");
  DType type = interface_type(dtype, descr, typestr);
  // NumPy calls every record "void104"; its repr says what it is.
  std::string text = type.kind() == Kind::kStructured ? describe(dtype) : type.name();
  return DTypePtr(new DTypeRecord{share(dtype), std::move(type), std::move(typestr),
                                  std::move(descr), std::move(text)});
}

/// Records by the identity of the dtype object, which each record keeps alive. Bounded: dtypes that
/// are made on the fly would otherwise pile up.
class RecordCache {
 public:
  DTypePtr find_or_make(PyObject* dtype) {
    const auto found = records_.find(dtype);
    if (found != records_.end()) return found->second;
    DTypePtr record = make_record(dtype);
    if (records_.size() >= kCapacity) records_.clear();
    records_.emplace(dtype, record);
    return record;
  }

 private:
  static constexpr std::size_t kCapacity = 256;
  std::unordered_map<PyObject*, DTypePtr> records_;
};

/// Never destroyed: its references may not be dropped after the interpreter's end.
RecordCache& record_cache() {
  static RecordCache& cache = *new RecordCache();
  return cache;
}

const DTypePtr& float64_record() {
  static const DTypePtr& record = *new DTypePtr(
      record_of(steal(reinterpret_cast<PyObject*>(PyArray_DescrFromType(NPY_DOUBLE))).ptr()));
  return record;
}

}  // namespace

void load_numpy() {
  check(PyArray_ImportNumPyAPI());
  const py::object numpy = steal(PyImport_ImportModule("numpy"));
  copyto = attribute(numpy.ptr(), "copyto").release().ptr();
  generic = attribute(numpy.ptr(), "generic").release().ptr();
  can_cast_function = attribute(numpy.ptr(), "can_cast").release().ptr();
  casting_name = steal(Py_BuildValue("(s)", "casting")).release().ptr();
  casting_where = steal(Py_BuildValue("(ss)", "casting", "where")).release().ptr();
  unsafe = steal(PyUnicode_InternFromString("unsafe")).release().ptr();
  same_kind = steal(PyUnicode_InternFromString("same_kind")).release().ptr();
}

DTypePtr record_of(PyObject* dtype) { return record_cache().find_or_make(dtype); }

DTypePtr record_or_none(PyObject* dtype) {
  try {
    return record_of(dtype);
  } catch (const PythonError&) {
    const bool unknown = take_error(PyExc_TypeError) || take_error(PyExc_ValueError);
    if (!unknown) throw;
    return DTypePtr();
  }
}

namespace {

DTypePtr make_record_of(const DType& type) {
  if (type.kind() != Kind::kNarrow) return to_dtype(make_text(type.typestr()).ptr()).record;
  py::object found;
  const py::object module = steal_or_none(PyImport_ImportModule("ml_dtypes"));
  if (module) {
    found = steal_or_none(PyObject_GetAttrString(module.ptr(), type.name().c_str()));
  }
  if (!found) {
    PyErr_Clear();
    raise(ErrorClass::kBuffer, Problem{"dtype", type.name(), "one that NumPy or ml_dtypes has",
                                       "install the package ml_dtypes"});
  }
  return to_dtype(found.ptr()).record;
}

}  // namespace

DTypePtr record_of(const DType& type) {
  // The few types that come in again and again; never destroyed, as above.
  constexpr std::size_t kCapacity = 32;
  static auto& known = *new std::vector<std::pair<DType, DTypePtr>>();
  for (const auto& [known_type, record] : known) {
    if (known_type == type) return record;
  }
  DTypePtr record = make_record_of(type);
  if (known.size() == kCapacity) known.clear();
  known.emplace_back(type, record);
  return record;
}

RequestedDType to_dtype(PyObject* object) {
  if (object == nullptr || object == Py_None) return {float64_record(), {}};
  PyArray_Descr* converted = nullptr;
  if (PyArray_DescrConverter(object, &converted) == 0) throw PythonError();
  py::object dtype = steal(reinterpret_cast<PyObject*>(converted));
  RequestedDType requested;
  if (type_number(dtype.ptr()) == NPY_VOID) {
    const py::object subarray = attribute(dtype.ptr(), "subdtype");
    if (subarray.ptr() != Py_None) {
      requested.subarray = to_integers(PyTuple_GetItem(subarray.ptr(), 1), "dtype");
      dtype = share(PyTuple_GetItem(subarray.ptr(), 0));
    }
  }
  requested.record = record_of(dtype.ptr());
  return requested;
}

py::object make_ndarray(const DTypeRecord& dtype, const StridedView& view, std::byte* first_element,
                        bool readonly, PyObject* base) {
  Py_INCREF(dtype.numpy.ptr());  // Stolen by the next call.
  py::object array =
      steal(PyArray_NewFromDescr(&PyArray_Type, reinterpret_cast<PyArray_Descr*>(dtype.numpy.ptr()),
                                 view.ndim(), view.shape.data(), view.strides_bytes.data(),
                                 first_element, readonly ? 0 : NPY_ARRAY_WRITEABLE, nullptr));
  Py_INCREF(base);  // Stolen by the next call.
  check(PyArray_SetBaseObject(array_in(array.ptr()), base));
  return array;
}

bool is_ndarray(PyObject* object) { return PyArray_Check(object); }

bool is_exact_ndarray(PyObject* object) { return PyArray_CheckExact(object); }

NdarrayFields fields_of(PyObject* object) {
  PyArrayObject* const array = array_in(object);
  const auto extents = [&](const npy_intp* values) {
    Extents result;
    for (int axis = 0; axis < PyArray_NDIM(array); ++axis) result.push_back(values[axis]);
    return result;
  };
  return {extents(PyArray_DIMS(array)),
          extents(PyArray_STRIDES(array)),
          reinterpret_cast<std::byte*>(PyArray_BYTES(array)),
          dtype_of_ndarray(object),
          PyArray_BASE(array),
          PyArray_ISWRITEABLE(array) == 0};
}

PyObject* dtype_of_ndarray(PyObject* object) {
  return reinterpret_cast<PyObject*>(PyArray_DESCR(array_in(object)));
}

py::object as_ndarray(PyObject* object) {
  return steal(PyArray_FromAny(object, nullptr, 0, 0, NPY_ARRAY_ENSUREARRAY, nullptr));
}

void copy_by_numpy(PyObject* target, PyObject* source, PyObject* casting, PyObject* mask) {
  PyObject* arguments[] = {target, source, casting, mask};
  steal(PyObject_Vectorcall(copyto, arguments, 2, mask == nullptr ? casting_name : casting_where));
}

namespace {

/// What was asked last, by the identity of the objects, which an answer keeps alive. For small
/// arrays the question takes longer than the copy.
struct CastAnswer {
  py::object from;
  py::object to;
  py::object casting;
  bool allowed = false;
};

CastAnswer& answer_for(PyObject* from, PyObject* to, PyObject* casting) {
  static auto& answers = *new std::array<CastAnswer, 64>();  // Never destroyed, as above.
  const auto number = [](PyObject* object) {
    return reinterpret_cast<std::uintptr_t>(object) >> 4;
  };
  const std::uintptr_t mixed = number(from) * 31 + number(to) * 7 + number(casting);
  return answers[(mixed ^ (mixed >> 6)) % answers.size()];
}

}  // namespace

bool can_cast(PyObject* from, PyObject* to, PyObject* casting) {
  CastAnswer& known = answer_for(from, to, casting);
  if (known.from.ptr() == from && known.to.ptr() == to && known.casting.ptr() == casting) {
    return known.allowed;
  }
  PyObject* arguments[] = {from, to, casting};
  const py::object answer = steal(PyObject_Vectorcall(can_cast_function, arguments, 3, nullptr));
  const bool allowed = answer.ptr() == Py_True;
  // What it held goes last: its end may run code that asks in turn.
  CastAnswer old =
      std::exchange(known, CastAnswer{share(from), share(to), share(casting), allowed});
  return allowed;
}

PyObject* unsafe_casting() { return unsafe; }
PyObject* same_kind_casting() { return same_kind; }

namespace {

bool is_native(PyObject* dtype) {
  const char order = reinterpret_cast<PyArray_Descr*>(dtype)->byteorder;
  return order == '=' || order == '|';
}

/// Writes a Python number into the one element of `array`, if it is the usual case: a float or a
/// small int into a double, an int into an int64. NumPy takes longer for that than for all the
/// rest.
bool put_number(PyObject* array, PyObject* value) {
  PyObject* const dtype = dtype_of_ndarray(array);
  const int number = type_number(dtype);
  const bool is_double = number == NPY_DOUBLE;
  const bool is_long = number == NPY_LONG;
  if (!(is_double || is_long) || !is_native(dtype)) return false;
  void* const element = PyArray_DATA(array_in(array));
  if (is_double && PyFloat_CheckExact(value)) {
    const double found = PyFloat_AS_DOUBLE(value);
    std::memcpy(element, &found, sizeof(found));
    return true;
  }
  if (!PyLong_CheckExact(value)) return false;
  int overflow = 0;
  const long found = PyLong_AsLongAndOverflow(value, &overflow);
  constexpr long kExactInDouble = 1L << 53;
  if (overflow != 0) return false;
  if (is_double && (found > kExactInDouble || found < -kExactInDouble)) return false;
  const auto as_double = static_cast<double>(found);
  std::memcpy(element, is_double ? static_cast<const void*>(&as_double) : &found, 8);
  return true;
}

}  // namespace

py::object make_element(PyObject* dtype, PyObject* value, PyObject* casting) {
  py::object element = make_0d_array(dtype);
  const bool ordinary = casting == nullptr || casting == unsafe || casting == same_kind;
  if (ordinary && put_number(element.ptr(), value)) return element;
  copy_by_numpy(element.ptr(), value, casting == nullptr ? unsafe : casting, nullptr);
  return element;
}

py::object make_assigned(const DTypeRecord& dtype, PyObject* value) {
  py::object element = make_0d_array(dtype.numpy.ptr());
  check(PyObject_SetItem(element.ptr(), Py_Ellipsis, value));
  return element;
}

bool is_scalar(PyObject* value) {
  if (PyLong_Check(value) != 0 || PyFloat_Check(value) != 0 || PyComplex_Check(value) != 0 ||
      PyUnicode_Check(value) != 0 || PyBytes_Check(value) != 0) {
    return true;
  }
  if (is_ndarray(value)) return fields_of(value).shape.empty();
  return PyObject_TypeCheck(value, reinterpret_cast<PyTypeObject*>(generic)) != 0;
}

}  // namespace gridbuf::python
