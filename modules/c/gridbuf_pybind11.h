// gridbuf_pybind11.h: functions of pybind11 take and return gridbuf's arrays.
//
// A `view<T, rank>` takes any object with DLPack, such as an array of NumPy, PyTorch or gridbuf. It
// is a strided view of host memory, valid during the call. `view<const T>` takes read-only arrays,
// too. An `array<T>` takes the object's memory, also that of a device, and may outlive the call. A
// returned `array<T>` is a gridbuf.Buffer that owns the memory. Nothing is copied.
//
// An array that does not fit is a TypeError, whose text says what is wrong. Errors of gridbuf's
// import, such as BufferError for a lazily conjugated tensor, are passed on. Of several overloads,
// the first that fits is called; if none fits, the error is that of the first.
//
// A `gridbuf::error` of a function is a ValueError, TypeError, IndexError, MemoryError or
// BufferError by its status, as gridbuf.h says, else a RuntimeError.
// The conversions call gridbuf.as_buffer, which has all checks of foreign arrays. So Python needs
// the package gridbuf, and an argument takes about 20 µs.
#ifndef GRIDBUF_PYBIND11_H_
#define GRIDBUF_PYBIND11_H_

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

#include "gridbuf.hpp"

namespace gridbuf::python {

inline constexpr char kTensor[] = "dltensor_versioned";
inline DLManagedTensorVersioned* tensor_in(PyObject* capsule) {
  return static_cast<DLManagedTensorVersioned*>(PyCapsule_GetPointer(capsule, kTensor));
}

inline pybind11::object as_buffer(pybind11::handle object) {
  return pybind11::module_::import("gridbuf").attr("as_buffer")(object);
}

/// An array that keeps a gridbuf.Buffer alive.
template <class T>
array<T> array_of(const pybind11::object& buffer) {
  const pybind11::capsule capsule =
      buffer.attr("__dlpack__")(pybind11::arg("max_version") = pybind11::make_tuple(1, 0));
  DLManagedTensorVersioned* const tensor = tensor_in(capsule.ptr());
  if (tensor == nullptr || PyCapsule_SetName(capsule.ptr(), "used_dltensor_versioned") != 0)
    throw pybind11::error_already_set();
  return array<T>::from_dlpack(tensor);
}

/// A gridbuf.Buffer that keeps the memory of an array alive. Device work is waited for.
template <class T>
pybind11::object buffer_of(const array<T>& source) {
  source.wait();
  const gridbuf_info info = source.info();
  const pybind11::capsule capsule(source.to_dlpack(), kTensor, [](PyObject* self) {
    if (!PyCapsule_IsValid(self, kTensor)) return;  // as_buffer has taken the tensor over
    gridbuf_array* unused = nullptr;
    gridbuf_array_from_dlpack(tensor_in(self), nullptr, &unused);
    gridbuf_array_release(unused);
  });
  pybind11::object exporter = pybind11::module_::import("types").attr("SimpleNamespace")();
  exporter.attr("__dlpack__") =
      pybind11::cpp_function([capsule](const pybind11::kwargs&) { return capsule; });
  exporter.attr("__dlpack_device__") = pybind11::cpp_function(
      [memory = info.memory, id = info.device_id] { return std::make_pair(memory, id); });
  return as_buffer(exporter);
}

inline void translate(std::exception_ptr thrown) {
  PyObject* const kinds[] = {PyExc_RuntimeError, PyExc_ValueError,  PyExc_TypeError,
                             PyExc_IndexError,   PyExc_MemoryError, PyExc_BufferError};
  try {
    std::rethrow_exception(thrown);
  } catch (const error& failed) {
    const bool has_kind = failed.status() <= GRIDBUF_BUFFER;
    PyErr_SetString(kinds[has_kind ? failed.status() : 0], failed.what());
  }
}
// Python runs while it loads an extension, and does not where the header is part of a program.
inline const bool translates =
    Py_IsInitialized() != 0 && (pybind11::register_local_exception_translator(translate), true);

/// What the casters share. `convert` makes the value of a gridbuf.Buffer.
template <class Value>
class caster {
 public:
  template <class Target>
  using cast_op_type = pybind11::detail::movable_cast_op_type<Target>;
  operator Value*() { return &*value_; }
  operator Value&() { return *value_; }
  operator Value&&() && { return std::move(*value_); }

 protected:
  // Without conversion, pybind11 looks for an overload that fits; errors are for the second round.
  template <class Convert>
  bool load(pybind11::handle object, bool shows_errors, const Convert& convert) {
    if (!pybind11::hasattr(object, "__dlpack__")) return false;
    try {
      value_.emplace(convert(as_buffer(object)));
      return true;
    } catch (const pybind11::error_already_set&) {
      if (shows_errors) throw;
    } catch (const error& refused) {
      if (shows_errors) throw pybind11::type_error(refused.what());
    }
    return false;
  }

 private:
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
    return this->caster::load(source, convert, [](const object& buffer) {
      loader_life_support::add_patient(buffer);  // up to the end of the call
      return gridbuf::python::array_of<T>(buffer).template elements<rank>();
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
    return gridbuf::python::buffer_of(value).release();
  }
};

}  // namespace pybind11::detail

#endif  // GRIDBUF_PYBIND11_H_
