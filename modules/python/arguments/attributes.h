// Attributes that pybind11 adds to a type that it has not made. A header, because pybind11.h in a
// module interface breaks `py::arg("x") = value` in its importers. Include it before all imports.
#ifndef GRIDBUF_MODULES_PYTHON_ARGUMENTS_ATTRIBUTES_H_
#define GRIDBUF_MODULES_PYTHON_ARGUMENTS_ATTRIBUTES_H_

#include <pybind11/pybind11.h>

#include <utility>

namespace gridbuf::python {

/// A caster for arguments that are objects of one of gridbuf's own types: it gives the object
/// itself. TypeError for all other objects.
template <class Object, bool (*is_object)(PyObject*)>
struct ObjectCaster {
  template <class>
  using cast_op_type = Object&;

  bool load(pybind11::handle source, bool) {
    if (!is_object(source.ptr())) return false;
    object = reinterpret_cast<Object*>(source.ptr());
    return true;
  }
  explicit operator Object&() { return *object; }

  Object* object = nullptr;
};

class Attributes {
 public:
  explicit Attributes(pybind11::handle type) : type_(type) {}

  /// A method. Its documentation, among `extra`, begins with its signature.
  template <class Function, class... Extra>
  Attributes& def(const char* name, Function&& function, const Extra&... extra) {
    type_.attr(name) =
        pybind11::cpp_function(std::forward<Function>(function), pybind11::name(name),
                               pybind11::is_method(type_), extra...);
    return *this;
  }
  /// A property that can be set.
  template <class Read, class Write>
  Attributes& get_set(const char* name, Read&& read, Write&& write, const char* documentation) {
    const pybind11::handle property(reinterpret_cast<PyObject*>(&PyProperty_Type));
    const pybind11::cpp_function getter(std::forward<Read>(read));
    const pybind11::cpp_function setter(std::forward<Write>(write), pybind11::is_setter());
    type_.attr(name) = property(getter, setter, pybind11::none(), documentation);
    return *this;
  }
  /// A property that cannot be set.
  template <class Read>
  Attributes& get(const char* name, Read&& read, const char* documentation) {
    const pybind11::handle property(reinterpret_cast<PyObject*>(&PyProperty_Type));
    const pybind11::cpp_function getter(std::forward<Read>(read));
    type_.attr(name) = property(getter, pybind11::none(), pybind11::none(), documentation);
    return *this;
  }

 private:
  pybind11::handle type_;
};

}  // namespace gridbuf::python

#endif  // GRIDBUF_MODULES_PYTHON_ARGUMENTS_ATTRIBUTES_H_
