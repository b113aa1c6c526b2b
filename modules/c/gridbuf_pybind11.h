// gridbuf_pybind11.h: functions of pybind11 take and return gridbuf's arrays.
//
// A `view<T, rank>` takes any object with DLPack, such as an array of NumPy, PyTorch or gridbuf. It
// shows host memory, and is valid during the call. `view<const T>` takes read-only arrays, too. An
// `array<T>` takes the object's memory, also that of a device, and may outlive the call. A returned
// `array<T>` is a gridbuf.Buffer that owns the memory. Nothing is copied.
//
// An array that does not fit is a TypeError, whose text says what is wrong. Errors of gridbuf's
// import, such as BufferError for a lazily conjugated tensor, are passed on. If no overload fits,
// the error is that of the first. A `gridbuf::error` is Python's error of its status (gridbuf.h).
#ifndef GRIDBUF_PYBIND11_H_
#define GRIDBUF_PYBIND11_H_

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include "gridbuf.hpp"

namespace gridbuf::python {
namespace py = pybind11;

struct package {
  py::object as_buffer, as_numpy;
  /// The begin of DLPack's C exchange table, of gridbuf.Buffer. -1: Python's error is set.
  const struct exchange_table {
    std::uint32_t version[2];
    void* unused[2];
    int (*from_object)(void* object, DLManagedTensorVersioned** out);
    int (*to_object)(DLManagedTensorVersioned* tensor, void** out);  // takes over the tensor
  }* table;
};
inline const package& api() {
  PYBIND11_CONSTINIT static py::gil_safe_call_once_and_store<package> storage;
  const auto load = [] {
    const auto module = py::module_::import("gridbuf");
    const py::capsule table = module.attr("Buffer").attr("__dlpack_c_exchange_api__");
    return package{module.attr("as_buffer"), module.attr("as_numpy"), table};
  };
  return storage.call_once_and_store_result(load).get_stored();
}

template <class T>
array<T> array_of(const py::object& buffer) {
  DLManagedTensorVersioned* tensor = nullptr;
  if (api().table->from_object(buffer.ptr(), &tensor) != 0) throw py::error_already_set();
  return array<T>::from_dlpack(tensor);
}

/// The elements of a plain numpy.ndarray that fits: its memory always has its values. All other
/// objects, also NumPy's subclasses with masks, go through as_buffer, which has the checks.
template <class T, int rank>
std::optional<view<T, rank>> elements_of_ndarray(py::handle object) {
  using values = py::array_t<std::remove_const_t<T>, 0>;
  if (Py_TYPE(object.ptr()) != py::detail::npy_api::get().PyArray_Type_ || !values::check_(object))
    return {};
  const auto array = py::reinterpret_borrow<values>(object);
  const int ndim = static_cast<int>(array.ndim());
  std::array<std::int64_t, GRIDBUF_MAX_NDIM> strides;
  bool fits = (rank < 0 || ndim == rank) && (std::is_const_v<T> || array.writeable()) &&
              reinterpret_cast<std::uintptr_t>(array.data()) % alignof(T) == 0;
  for (int axis = 0; axis < ndim; ++axis) {
    fits = fits && array.strides()[axis] % array.itemsize() == 0;
    strides[axis] = array.strides()[axis] / array.itemsize();
  }
  if (!fits) return {};
  return view<T, rank>(const_cast<T*>(array.data()), ndim, array.shape(), strides.data());
}

inline void translate(std::exception_ptr thrown) try {
  std::rethrow_exception(thrown);
} catch (const error& failed) {
  PyObject* const kinds[] = {PyExc_RuntimeError, PyExc_ValueError,  PyExc_TypeError,
                             PyExc_IndexError,   PyExc_MemoryError, PyExc_BufferError};
  PyErr_SetString(kinds[failed.status() <= GRIDBUF_BUFFER ? failed.status() : 0], failed.what());
}
// Python runs while it loads an extension, and does not where the header is part of a program.
inline const bool translates =
    Py_IsInitialized() != 0 && (py::register_local_exception_translator(translate), true);

/// What the casters share.
template <class Value>
struct caster {
  template <class Target>
  using cast_op_type = py::detail::movable_cast_op_type<Target>;
  operator Value*() { return &*value_; }
  operator Value&() { return *value_; }
  operator Value&&() && { return std::move(*value_); }
  // Without conversion, pybind11 looks for an overload that fits; errors are for the second round.
  template <class Convert>
  bool load(py::handle object, bool shows_errors, const Convert& convert) try {
    if (!py::hasattr(object, "__dlpack__")) return false;
    value_.emplace(convert(api().as_buffer(object)));
    return true;
  } catch (const py::error_already_set&) {
    if (shows_errors) throw;
    return false;
  } catch (const error& refused) {
    if (shows_errors) throw py::type_error(refused.what());
    return false;
  }
  std::optional<Value> value_;
};

}  // namespace gridbuf::python

namespace pybind11::detail {

template <class T, int rank>
struct type_caster<gridbuf::view<T, rank>> : gridbuf::python::caster<gridbuf::view<T, rank>> {
  static constexpr auto name =
      const_name("typing.Annotated[gridbuf.array, \"") +
      npy_format_descriptor<std::remove_const_t<T>>::name +
      const_name<(rank >= 0)>(const_name(", ndim ") + const_name<(rank < 0 ? 0 : rank)>(),
                              const_name("")) +
      const_name<std::is_const_v<T>>("\"]", ", writable\"]");

  bool load(handle source, bool convert) {
    this->value_ = gridbuf::python::elements_of_ndarray<T, rank>(source);
    if (this->value_) loader_life_support::add_patient(source);  // up to the end of the call
    return this->value_ || this->caster::load(source, convert, [](const object& buffer) {
      auto* const shown = PyObject_CallOneArg(gridbuf::python::api().as_numpy.ptr(), buffer.ptr());
      if (shown == nullptr) PyErr_Clear();  // `elements` says why
      const auto array = shown ? reinterpret_steal<object>(shown) : buffer;
      loader_life_support::add_patient(array);
      const auto found = gridbuf::python::elements_of_ndarray<T, rank>(array);
      return found ? *found : gridbuf::python::array_of<T>(buffer).template elements<rank>();
    });
  }
};

template <class T>
struct type_caster<gridbuf::array<T>> : gridbuf::python::caster<gridbuf::array<T>> {
  static constexpr auto name = const_name("gridbuf.Buffer");

  bool load(handle source, bool convert) {
    return this->caster::load(source, convert, gridbuf::python::array_of<T>);
  }
  static handle cast(const gridbuf::array<T>& value, return_value_policy, handle) {
    value.wait();  // for the work of a device
    void* made = nullptr;
    if (gridbuf::python::api().table->to_object(value.to_dlpack(), &made) != 0)
      throw error_already_set();
    return static_cast<PyObject*>(made);
  }
};

}  // namespace pybind11::detail

#endif  // GRIDBUF_PYBIND11_H_
