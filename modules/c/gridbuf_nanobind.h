// gridbuf_nanobind.h: functions of nanobind take and return gridbuf's arrays. The manual is
// gridbuf_python.h.
#ifndef GRIDBUF_NANOBIND_H_
#define GRIDBUF_NANOBIND_H_

#include <nanobind/nanobind.h>

#include <exception>

#include "gridbuf_python.h"

namespace gridbuf::python {

inline const bool translates_errors = translate_by(+[] {
  static const bool registered =
      (nanobind::register_exception_translator(
           [](const std::exception_ptr& thrown, void*) { translate(thrown); }),
       true);
  static_cast<void>(registered);
});

}  // namespace gridbuf::python

namespace nanobind::detail {

template <class T, int rank, int memory>
struct type_caster<gridbuf::argument<T, rank, memory>> {
  using Value = gridbuf::argument<T, rank, memory>;
  static constexpr gridbuf::python::signature<T, rank, memory> shown = {};
  static constexpr auto Name = const_name(shown.text);
  template <class Target>
  using Cast = movable_cast_t<Target>;
  // The casters of std::optional and of containers ask this before they take the value, which must
  // not throw there: nanobind's error has the signature.
  template <class Target>
  bool can_cast() const noexcept {
    return value_.has_value();
  }

  // A caster of nanobind must not throw, so an error is thrown when the value is taken. Without
  // conversion, nanobind looks for an overload that fits.
  template <class Flags>
  bool from_python(handle source, Flags flags, cleanup_list*) noexcept {
    const bool convert = (flags & static_cast<Flags>(cast_flags::convert)) != 0;
    value_.reset(), failure_ = nullptr;  // containers use a caster again
    try {
      value_ = gridbuf::python::load<T, rank, memory>(source.ptr());
      return value_.has_value();
    } catch (const gridbuf::python::error_is_set&) {
      if (convert) {
        failure_ = std::make_exception_ptr(python_error());
      } else {
        PyErr_Clear();
      }
    } catch (const gridbuf::error& refused) {
      failure_ = std::make_exception_ptr(type_error(refused.what()));
    } catch (...) {
      failure_ = std::current_exception();
    }
    return convert;
  }
  static handle from_cpp(const Value& value, rv_policy, cleanup_list*) noexcept {
    return gridbuf::python::to_object(value.get());
  }
  explicit operator Value*() { return &get(); }
  explicit operator Value&() { return get(); }
  explicit operator Value&&() { return std::move(get()); }

 private:
  Value& get() {
    if (failure_) std::rethrow_exception(failure_);
    return *value_;
  }
  std::optional<Value> value_;
  std::exception_ptr failure_;
};

template <class T>
struct type_caster<gridbuf::array<T>> {
  static constexpr auto Name = const_name("gridbuf.array");
  static handle from_cpp(const gridbuf::array<T>& value, rv_policy, cleanup_list*) noexcept {
    return gridbuf::python::to_object(value.get());
  }
};

}  // namespace nanobind::detail

#endif  // GRIDBUF_NANOBIND_H_
