// gridbuf.python.creation: empty, zeros, ones, full and their _like forms, written once.
//
// Purpose. Both doors of the library, plain arrays and storages, offer the same eight functions.
// They differ in the keywords they take and in what they make; the order of the parameters, which
// of them must be there and how that is said do not differ. A door says the former as a class, and
// Creation<Door> is the functions.
//
// Key choice. A template over the door and not a table of function pointers: the smallest `empty`
// takes some 300 ns in all, and an indirect call between its steps would be seen. A door has
//
//   Keywords, Request                        what its keywords are read into, and a request
//   resolved kKeywordNames                            the array of the names of its keywords
//   to_keywords(values), unknown_keyword     as in gridbuf.python.request
//   resolve(shape, dtype, keywords)          a Request; likewise from_data(data, dtype, keywords)
//   make_empty(request), make_zeros(request), make_filled(request, fill_value)   the objects
//
// and nothing else.

module;

#include <Python.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <span>
#include <string>

export module gridbuf.python.creation;

import gridbuf.base;
import gridbuf.python.arguments;
import gridbuf.python.object;

export namespace gridbuf::python {

/// The names of leading parameters, then those of the keywords that all functions of a door share.
template <std::size_t leading_count, std::size_t keyword_count>
constexpr std::array<const char*, leading_count + keyword_count> joined_names(
    const char* const (&leading)[leading_count], const char* const (&keywords)[keyword_count]) {
  std::array<const char*, leading_count + keyword_count> names{};
  std::copy(std::begin(leading), std::end(leading), names.begin());
  std::copy(std::begin(keywords), std::end(keywords), names.begin() + leading_count);
  return names;
}

/// The arguments of one call, sorted: leading parameters, the last of them the dtype, and keywords.
template <class Door>
class CreationArguments {
 public:
  CreationArguments(const Signature& signature, PyObject* const* arguments, Py_ssize_t count,
                    PyObject* keyword_names)
      : signature_(signature), leading_(signature.names.size() - kKeywordCount) {
    const std::span<PyObject*> values(values_, signature.names.size());
    sort_arguments(signature, arguments, count, keyword_names, values, Door::unknown_keyword);
    keywords_ = Door::to_keywords(values.subspan(leading_));
  }

  /// The first parameter, and the second of those functions that have one before the dtype.
  /// TypeError if it was not passed.
  PyObject* first() const { return required(0); }
  PyObject* second() const { return required(1); }
  /// Null if not given.
  PyObject* dtype() const { return values_[leading_ - 1]; }
  const typename Door::Keywords& keywords() const { return keywords_; }

 private:
  static constexpr std::size_t kKeywordCount = std::size(Door::kKeywordNames);
  static constexpr std::size_t kMostLeading = 3;

  PyObject* required(std::size_t position) const {
    PyObject* const value = values_[position];
    if (value != nullptr) return value;
    raise(ErrorClass::kType, std::string(signature_.function) + "() is underdetermined: " +
                                 signature_.names[position] + " is missing; pass it as argument " +
                                 std::to_string(position + 1));
  }

  const Signature& signature_;
  std::size_t leading_;
  PyObject* values_[kMostLeading + kKeywordCount] = {};
  typename Door::Keywords keywords_;
};

/// The functions of a door, in the form of METH_FASTCALL | METH_KEYWORDS.
template <class Door>
class Creation {
 public:
  using Request = typename Door::Request;
  using Arguments = CreationArguments<Door>;

  static constexpr auto kShapeNames = joined_names({"shape", "dtype"}, Door::kKeywordNames);
  static constexpr auto kDataNames = joined_names({"data", "dtype"}, Door::kKeywordNames);

  static PyObject* empty(PyObject*, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
    static constexpr Signature kSignature{"empty", kShapeNames, 2};
    return with_shape<Door::make_empty>(kSignature, arguments, count, names);
  }
  static PyObject* zeros(PyObject*, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
    static constexpr Signature kSignature{"zeros", kShapeNames, 2};
    return with_shape<Door::make_zeros>(kSignature, arguments, count, names);
  }
  static PyObject* ones(PyObject*, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
    static constexpr Signature kSignature{"ones", kShapeNames, 2};
    return with_shape<make_ones>(kSignature, arguments, count, names);
  }
  static PyObject* full(PyObject*, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
    static constexpr auto kNames =
        joined_names({"shape", "fill_value", "dtype"}, Door::kKeywordNames);
    static constexpr Signature kSignature{"full", kNames, 3};
    return filled<Door::resolve>(kSignature, arguments, count, names);
  }

  static PyObject* empty_like(PyObject*, PyObject* const* arguments, Py_ssize_t count,
                              PyObject* names) {
    static constexpr Signature kSignature{"empty_like", kDataNames, 2};
    return with_data<Door::make_empty>(kSignature, arguments, count, names);
  }
  static PyObject* zeros_like(PyObject*, PyObject* const* arguments, Py_ssize_t count,
                              PyObject* names) {
    static constexpr Signature kSignature{"zeros_like", kDataNames, 2};
    return with_data<Door::make_zeros>(kSignature, arguments, count, names);
  }
  static PyObject* ones_like(PyObject*, PyObject* const* arguments, Py_ssize_t count,
                             PyObject* names) {
    static constexpr Signature kSignature{"ones_like", kDataNames, 2};
    return with_data<make_ones>(kSignature, arguments, count, names);
  }
  static PyObject* full_like(PyObject*, PyObject* const* arguments, Py_ssize_t count,
                             PyObject* names) {
    static constexpr auto kNames =
        joined_names({"data", "fill_value", "dtype"}, Door::kKeywordNames);
    static constexpr Signature kSignature{"full_like", kNames, 3};
    return filled<Door::from_data>(kSignature, arguments, count, names);
  }

  using Make = py::object (*)(const Request&);
  using Resolve = Request (*)(PyObject* first, PyObject* dtype, const typename Door::Keywords&);

  /// (shape, dtype=float64, *, keywords), for functions beside these.
  template <Make make>
  static PyObject* with_shape(const Signature& signature, PyObject* const* arguments,
                              Py_ssize_t count, PyObject* names) {
    return made<Door::resolve, make>(signature, arguments, count, names);
  }

 private:
  /// (data, dtype=None, *, keywords).
  template <Make make>
  static PyObject* with_data(const Signature& signature, PyObject* const* arguments,
                             Py_ssize_t count, PyObject* names) {
    return made<Door::from_data, make>(signature, arguments, count, names);
  }

  template <Resolve resolve, Make make>
  static PyObject* made(const Signature& signature, PyObject* const* arguments, Py_ssize_t count,
                        PyObject* names) {
    return guarded([&] {
      const Arguments given(signature, arguments, count, names);
      return make(resolve(given.first(), given.dtype(), given.keywords()));
    });
  }

  template <Resolve resolve>
  static PyObject* filled(const Signature& signature, PyObject* const* arguments, Py_ssize_t count,
                          PyObject* names) {
    return guarded([&] {
      const Arguments given(signature, arguments, count, names);
      PyObject* const first = given.first();
      PyObject* const fill_value = given.second();
      return Door::make_filled(resolve(first, given.dtype(), given.keywords()), fill_value);
    });
  }

  static py::object make_ones(const Request& request) {
    const py::object one = steal(PyLong_FromLong(1));
    return Door::make_filled(request, one.ptr());
  }
};

}  // namespace gridbuf::python
