// gridbuf_pybind11.h: functions of pybind11 take and return gridbuf's arrays. The manual is
// gridbuf_python.h.
#ifndef GRIDBUF_PYBIND11_H_
#define GRIDBUF_PYBIND11_H_

#include <pybind11/pybind11.h>

#include "gridbuf_python.h"

namespace gridbuf::python {

inline const bool translates_errors = translate_by(+[] {
  static const bool registered = (pybind11::register_exception_translator(
                                      [](std::exception_ptr thrown) { translate(thrown); }),
                                  true);
  static_cast<void>(registered);
});

}  // namespace gridbuf::python

namespace pybind11::detail {

template <class T, int rank, int memory>
struct type_caster<gridbuf::argument<T, rank, memory>> {
  using Value = gridbuf::argument<T, rank, memory>;
  static constexpr gridbuf::python::signature<T, rank, memory> shown = {};
  static constexpr auto name = const_name(shown.text);
  template <class Target>
  using cast_op_type = movable_cast_op_type<Target>;

  // Without conversion, pybind11 looks for an overload that fits; an error is for the second round.
  bool load(handle source, bool convert) {
    try {
      value_ = gridbuf::python::load<T, rank, memory>(source.ptr());
    } catch (const gridbuf::python::error_is_set&) {
      if (convert) throw error_already_set();
      PyErr_Clear();
    } catch (const gridbuf::error& refused) {
      if (convert) throw type_error(refused.what());
    }
    return value_.has_value();
  }
  static handle cast(const Value& value, return_value_policy, handle) {
    PyObject* const made = gridbuf::python::to_object(value.get());
    if (made == nullptr) throw error_already_set();
    return made;
  }
  operator Value*() { return &*value_; }
  operator Value&() { return *value_; }
  operator Value&&() && { return std::move(*value_); }

 private:
  std::optional<Value> value_;
};

template <class T>
struct type_caster<gridbuf::array<T>> {
  static constexpr auto name = const_name("gridbuf.array");
  static handle cast(const gridbuf::array<T>& value, return_value_policy, handle) {
    PyObject* const made = gridbuf::python::to_object(value.get());
    if (made == nullptr) throw error_already_set();
    return made;
  }
};

}  // namespace pybind11::detail

#endif  // GRIDBUF_PYBIND11_H_
