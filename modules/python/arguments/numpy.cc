module;

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#include <Python.h>
#include <numpy/arrayobject.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

module gridbuf.python;

namespace gridbuf::python {
namespace {

// NumPy's type numbers: those of user-defined types (ml_dtypes) begin at 256, those that have no
// fixed layout of their fields (variable-length text) at 2056.
constexpr int kFirstUserType = 256;
constexpr int kFirstNewStyleType = 2056;

PyObject* copyto = nullptr;         // numpy.copyto
const DTypePtr* float64 = nullptr;  // never destroyed
AttributeName unsafe("unsafe");
AttributeName same_kind("same_kind");

struct HashOfType {
  std::size_t operator()(const DType& type) const {
    const auto kind = static_cast<std::int64_t>(type.kind());
    return std::hash<std::int64_t>()((kind << 32) ^ (type.bits() << 1) ^ type.is_native());
  }
};

PyArray_Descr* descr_of(PyObject* dtype) { return reinterpret_cast<PyArray_Descr*>(dtype); }
PyArrayObject* array_of(PyObject* object) { return reinterpret_cast<PyArrayObject*>(object); }

py::object attribute(PyObject* object, const char* name) {
  return steal(PyObject_GetAttrString(object, name));
}

/// A new array of no dimensions. The gaps of a record are zero: its bytes fill new memory.
py::object make_0d_array(PyObject* dtype) {
  Py_INCREF(dtype);  // Stolen by the next calls.
  if (PyDataType_HASFIELDS(descr_of(dtype))) {
    return steal(PyArray_Zeros(0, nullptr, descr_of(dtype), 0));
  }
  return steal(PyArray_NewFromDescr(&PyArray_Type, descr_of(dtype), 0, nullptr, nullptr, nullptr, 0,
                                    nullptr));
}

void check_fixed_size(PyObject* dtype) {
  PyArray_Descr* const descr = descr_of(dtype);
  const auto refuse = [&](std::string_view bound, std::string_view advice) {
    raise(ErrorClass::kType, Problem{"dtype", describe(dtype), bound, advice});
  };
  constexpr std::string_view kOthers = "use a number, text, date or record type";
  if (PyDataType_FLAGCHK(descr, NPY_ITEM_HASOBJECT)) {
    refuse("a type without Python objects", kOthers);
  }
  if (descr->type_num < 0 || descr->type_num >= kFirstNewStyleType) {
    refuse("a type of fixed size", kOthers);
  }
  if (PyDataType_ELSIZE(descr) <= 0) {
    refuse("a type of at least one byte", "give it its length, as in \"U8\" or \"S8\"");
  }
}

/// Where the last field of a record ends, in bytes; nothing if one of its fields is a record that
/// goes on after its own last field.
std::optional<std::int64_t> end_of_fields(PyArray_Descr* record) {
  std::int64_t end = 0;
  PyObject* name = nullptr;
  PyObject* entry = nullptr;  // (dtype, offset[, title])
  for (Py_ssize_t position = 0;
       PyDict_Next(PyDataType_FIELDS(record), &position, &name, &entry) != 0;) {
    PyArray_Descr* type = descr_of(PyTuple_GET_ITEM(entry, 0));
    const std::int64_t offset = PyLong_AsLongLong(PyTuple_GET_ITEM(entry, 1));
    end = std::max<std::int64_t>(end, offset + PyDataType_ELSIZE(type));
    if (PyDataType_HASSUBARRAY(type)) type = PyDataType_SUBARRAY(type)->base;
    if (PyDataType_HASFIELDS(type) && end_of_fields(type) != PyDataType_ELSIZE(type)) {
      return std::nullopt;
    }
  }
  return end;
}

/// The PEP 3118 format of a record type; empty where it has none. NumPy's text stops at the last
/// field (numpy #7797), but its size must be the item size (PB-04): what follows is written as
/// padding. In a record inside of the record it cannot be; such a type has no format.
std::string record_format(PyObject* dtype) {
  const std::optional<std::int64_t> end = end_of_fields(descr_of(dtype));
  const py::object view = steal_or_none(PyMemoryView_FromObject(make_0d_array(dtype).ptr()));
  if (!view) PyErr_Clear();  // No word for one of its fields: a date, a narrow float.
  std::string format = view && end ? PyMemoryView_GET_BUFFER(view.ptr())->format : "";
  if (!format.ends_with('}')) return {};
  const std::int64_t rest = PyDataType_ELSIZE(descr_of(dtype)) - *end;
  format.insert(format.size() - 1, static_cast<std::size_t>(rest), 'x');
  return format;
}

/// Joins parts without axes that touch or overlap.
ElementParts joined(ElementParts parts) {
  std::ranges::sort(parts, {}, [](const StridedView& part) {
    return std::pair(part.ndim() > 0, part.offset_bytes);
  });
  ElementParts result;
  for (const StridedView& part : parts) {
    if (part.itemsize_bytes == 0) continue;
    const bool follows =
        !result.empty() && part.ndim() == 0 &&
        part.offset_bytes <= result.back().offset_bytes + result.back().itemsize_bytes;
    if (!follows) {
      result.push_back(part);
      continue;
    }
    std::int64_t& length = result.back().itemsize_bytes;
    length = std::max(length, part.offset_bytes + part.itemsize_bytes - result.back().offset_bytes);
  }
  return result;
}

/// The bytes of the type's fields, down to those of nested records; a plain type is one part.
ElementParts parts_of(PyArray_Descr* type) {
  const std::int64_t bytes = PyDataType_ELSIZE(type);
  const ElementParts whole = {{.itemsize_bytes = bytes}};
  if (PyDataType_HASSUBARRAY(type)) {
    PyArray_Descr* const base = PyDataType_SUBARRAY(type)->base;
    const std::int64_t base_bytes = PyDataType_ELSIZE(base);
    ElementParts parts = parts_of(base);
    if (is_whole(parts, base_bytes)) return whole;
    for (StridedView& part : parts) {
      if (bytes == base_bytes) break;
      part.shape.insert(0, bytes / base_bytes);
      part.strides_bytes.insert(0, base_bytes);
    }
    return bytes > 0 ? parts : ElementParts();
  }
  if (!PyDataType_HASFIELDS(type)) return whole;
  ElementParts parts;
  PyObject* const names = PyDataType_NAMES(type);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); ++i) {
    PyObject* const field = PyDict_GetItem(PyDataType_FIELDS(type), PyTuple_GET_ITEM(names, i));
    const std::int64_t offset = PyLong_AsLongLong(PyTuple_GET_ITEM(field, 1));
    for (StridedView& part : parts_of(descr_of(PyTuple_GET_ITEM(field, 0)))) {
      part.offset_bytes += offset;
      parts.push_back(std::move(part));
    }
  }
  return joined(std::move(parts));
}

DType interface_type(PyObject* dtype, const py::object& descr, const py::object& typestr) {
  if (PyDataType_HASFIELDS(descr_of(dtype))) {
    std::string text;
    if (descr) text = utf8(steal(PyObject_Repr(descr.ptr())).ptr());
    return value_of(DType::structured(PyDataType_ELSIZE(descr_of(dtype)), record_format(dtype),
                                      std::move(text), parts_of(descr_of(dtype))));
  }
  if (descr_of(dtype)->type_num >= kFirstUserType) {
    absl::StatusOr<DType> named = DType::from_name(utf8(attribute(dtype, "name").ptr()));
    if (named.ok()) return *std::move(named);
  }
  return value_of(DType::from_typestr(utf8(typestr.ptr())));
}

DTypePtr make_record(PyObject* dtype) {
  check_fixed_size(dtype);
  py::object descr = steal_or_none(PyObject_GetAttrString(dtype, "descr"));
  if (!descr && !take_error(PyExc_ValueError)) throw PythonError();  // Overlapping fields.
  py::object typestr = attribute(dtype, "str");
  DType type = interface_type(dtype, descr, typestr);
  // NumPy calls every record "void104"; its repr says what it is.
  std::string text = type.kind() == Kind::kStructured ? describe(dtype) : type.name();
  return DTypePtr(new DTypeRecord{share(dtype), std::move(type), std::move(typestr),
                                  std::move(descr), std::move(text)});
}

DTypePtr make_record_of(const DType& type) {
  if (type.kind() != Kind::kNarrow) return to_dtype(make_text(type.typestr()).ptr()).record;
  const py::object module = steal_or_none(PyImport_ImportModule("ml_dtypes"));
  const py::object found =
      steal_or_none(module ? PyObject_GetAttrString(module.ptr(), type.name().c_str()) : nullptr);
  if (found) return to_dtype(found.ptr()).record;
  PyErr_Clear();
  raise(ErrorClass::kBuffer, Problem{"dtype", type.name(), "one that NumPy or ml_dtypes has",
                                     "install the package ml_dtypes"});
}

/// Writes a Python number into the one element of `array`, if it is the usual case: a float or an
/// int into a double, an int into an int64. NumPy takes longer for that than for all the rest.
bool put_number(PyObject* array, PyObject* value) {
  const PyArray_Descr& descr = *PyArray_DESCR(array_of(array));
  const bool is_double = descr.type_num == NPY_DOUBLE;
  if (!(is_double || descr.type_num == NPY_LONG) || descr.byteorder != '=') return false;
  void* const element = PyArray_DATA(array_of(array));
  if (is_double && PyFloat_CheckExact(value)) {
    *static_cast<double*>(element) = PyFloat_AS_DOUBLE(value);
    return true;
  }
  if (!PyLong_CheckExact(value)) return false;
  int overflow = 0;
  const long found = PyLong_AsLongAndOverflow(value, &overflow);
  if (overflow != 0) return false;
  if (is_double) {
    *static_cast<double*>(element) = static_cast<double>(found);
  } else {
    *static_cast<long*>(element) = found;
  }
  return true;
}

}  // namespace

void load_numpy() {
  check(PyArray_ImportNumPyAPI());
  copyto = attribute(steal(PyImport_ImportModule("numpy")).ptr(), "copyto").release().ptr();
  float64 = new DTypePtr(
      record_of(steal(reinterpret_cast<PyObject*>(PyArray_DescrFromType(NPY_DOUBLE))).ptr()));
}

DTypePtr record_of(PyObject* dtype) {
  // By the identity of the dtype object, which each record keeps alive.
  static auto& records = *new Cache<PyObject*, DTypePtr>(256);
  if (DTypePtr found = records.find(dtype)) return found;
  return records.add(dtype, make_record(dtype));
}

DTypePtr record_or_none(PyObject* dtype) {
  try {
    return record_of(dtype);
  } catch (const PythonError&) {
    const bool unknown = take_error(PyExc_TypeError) || take_error(PyExc_ValueError);
    if (!unknown) throw;
    return DTypePtr();
  }
}

DTypePtr record_of(const DType& type) {
  // The few types that come in again and again.
  static auto& known = *new Cache<DType, DTypePtr, HashOfType>(32);
  if (DTypePtr found = known.find(type)) return found;
  return known.add(type, make_record_of(type));
}

RequestedDType to_dtype(PyObject* object) {
  if (object == nullptr || object == Py_None) {
    return {*float64, {}};
  }
  if (PyLong_Check(object) && !PyBool_Check(object)) {
    const std::string number = describe(object);
    raise(ErrorClass::kType,
          Problem{"dtype", number, "an element type",
                  "pass the extents as one tuple, such as (" + number + ", " + number + ")"});
  }
  PyArray_Descr* converted = nullptr;
  if (PyArray_DescrConverter(object, &converted) == 0) throw PythonError();
  const py::object dtype = steal(reinterpret_cast<PyObject*>(converted));
  if (!PyDataType_HASSUBARRAY(converted)) return {record_of(dtype.ptr()), {}};
  const PyArray_ArrayDescr& subarray = *PyDataType_SUBARRAY(converted);
  return {record_of(reinterpret_cast<PyObject*>(subarray.base)),
          to_integers(subarray.shape, "dtype")};
}

bool is_object_dtype(PyObject* object) {
  PyArray_Descr* converted = nullptr;
  if (object == Py_None || PyArray_DescrConverter(object, &converted) == 0) {
    PyErr_Clear();
    return false;
  }
  return descr_of(steal(reinterpret_cast<PyObject*>(converted)).ptr())->type_num == NPY_OBJECT;
}

py::object make_ndarray(const DTypeRecord& dtype, const StridedView& view, std::byte* first_element,
                        bool readonly, PyObject* base) {
  Py_INCREF(dtype.numpy.ptr());  // Stolen by the next call.
  py::object array = steal(PyArray_NewFromDescr(
      &PyArray_Type, descr_of(dtype.numpy.ptr()), view.ndim(), view.shape.data(),
      view.strides_bytes.data(), first_element, readonly ? 0 : NPY_ARRAY_WRITEABLE, nullptr));
  Py_INCREF(base);  // Stolen by the next call.
  check(PyArray_SetBaseObject(array_of(array.ptr()), base));
  return array;
}

py::object with_meaningful_strides(PyObject* array) {
  const NdarrayFields fields = fields_of(array);
  StridedView view{.shape = fields.shape,
                   .strides_bytes = fields.strides_bytes,
                   .itemsize_bytes = PyDataType_ELSIZE(descr_of(fields.dtype))};
  replace_meaningless_strides(view);
  if (view.strides_bytes == fields.strides_bytes) return share(array);
  py::object made = steal(PyArray_View(array_of(array), nullptr, nullptr));
  std::ranges::copy(view.strides_bytes, PyArray_STRIDES(array_of(made.ptr())));
  PyArray_UpdateFlags(array_of(made.ptr()), NPY_ARRAY_UPDATE_ALL);
  return made;
}

bool is_ndarray(PyObject* object) { return PyArray_Check(object); }

bool is_exact_ndarray(PyObject* object) { return PyArray_CheckExact(object); }

NdarrayFields fields_of(PyObject* object) {
  PyArrayObject* const array = array_of(object);
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
  return reinterpret_cast<PyObject*>(PyArray_DESCR(array_of(object)));
}

py::object read_by_numpy(PyObject* object) {
  return steal(PyArray_FromAny(object, nullptr, 0, 0, NPY_ARRAY_ENSUREARRAY, nullptr));
}

void copy_by_numpy(PyObject* target, PyObject* source, PyObject* casting, PyObject* mask) {
  steal(PyObject_CallFunctionObjArgs(copyto, target, source, casting, mask, nullptr));
}

bool can_cast(PyObject* from, PyObject* to, PyObject* casting) {
  // The last question and its answer: for small arrays the question takes longer than the copy.
  struct Answer {
    py::object from, to, casting;
    bool allowed = false;
  };
  static Answer& last = *new Answer();  // Never destroyed, as a Cache.
  static PythonMutex mutex;
  {
    const PythonLock lock(mutex);
    if (last.from.ptr() == from && last.to.ptr() == to && last.casting.ptr() == casting) {
      return last.allowed;
    }
  }
  NPY_CASTING rule = NPY_NO_CASTING;
  if (PyArray_CastingConverter(casting, &rule) == 0) throw PythonError();
  const bool allowed = PyArray_CanCastTypeTo(descr_of(from), descr_of(to), rule) != 0;
  // The old one goes last: its end may run code that asks in turn.
  Answer old{share(from), share(to), share(casting), allowed};
  const PythonLock lock(mutex);
  std::swap(last, old);
  return allowed;
}

PyObject* unsafe_casting() { return unsafe.get(); }
PyObject* same_kind_casting() { return same_kind.get(); }

py::object make_element(PyObject* dtype, PyObject* value, PyObject* casting) {
  py::object element = make_0d_array(dtype);
  if (casting == nullptr) casting = unsafe.get();
  const bool ordinary = casting == unsafe.get() || casting == same_kind.get();
  if (!ordinary || !put_number(element.ptr(), value)) {
    copy_by_numpy(element.ptr(), value, casting, nullptr);
  }
  return element;
}

py::object make_assigned(const DTypeRecord& dtype, PyObject* value) {
  py::object element = make_0d_array(dtype.numpy.ptr());
  check(PyObject_SetItem(element.ptr(), Py_Ellipsis, value));
  return element;
}

bool is_scalar(PyObject* value) {
  return PyLong_Check(value) != 0 || PyFloat_Check(value) != 0 || PyComplex_Check(value) != 0 ||
         PyUnicode_Check(value) != 0 || PyBytes_Check(value) != 0 ||
         PyArray_IsScalar(value, Generic) ||
         (PyArray_Check(value) && PyArray_NDIM(array_of(value)) == 0);
}

}  // namespace gridbuf::python
