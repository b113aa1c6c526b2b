// The functions that make plain arrays and buffers (promise `create-numpy`).

module;

#include <pybind11/pytypes.h>

#include "modules/python/support/docstrings.h"

module gridbuf.python;

namespace gridbuf::python {
namespace {

// ---- Filling. ----

py::object allocate_for(const Request& request, const ArrayOptions& zeroes) {
  ArrayOptions options = zeroes;
  options.populate = request.populate;
  options.memory = request.memory;
  return allocate_buffer(request.layout, request.dtype, options);
}

bool pads(const Request& request) { return has_padding(request.layout, request.dtype->type); }

/// A plain array in memory that only a GPU reads is CuPy's.
bool is_for_cupy(const Request& request) { return request.memory == DeviceType::kCuda; }

py::object make_full(const Request& request, PyObject* fill_value) {
  if (is_for_cupy(request)) {
    py::object array = make_cupy_array(request.layout, *request.dtype, has_padding(request.layout));
    copy_into_cupy(array.ptr(), fill_value);
    return array;
  }
  if (!is_scalar(fill_value)) {
    const py::object buffer = allocate_for(request, {.zeroed_padding = pads(request)});
    py::object array = ndarray_of(buffer.ptr());
    copy_arrays(array.ptr(), as_ndarray(fill_value).ptr());  // Broadcasts, as numpy.full does.
    return array;
  }
  const py::object element = make_element(request.dtype->numpy.ptr(), fill_value);
  const py::object buffer = allocate_for(request, {.zeroed_padding = pads(request)});
  const BufferDescriptor& memory = array_in(buffer.ptr()).memory();
  fill_memory(memory.block, memory.view, fields_of(element.ptr()).first_element);
  return ndarray_of(buffer.ptr());
}

template <bool zeroed>
py::object make_unfilled(const Request& request) {
  if (is_for_cupy(request)) return make_cupy_array(request.layout, *request.dtype, zeroed);
  return ndarray_of(allocate_for(request, {.zeroed = zeroed}).ptr());
}

// ---- The functions. ----

/// Plain arrays: ndarrays over gridbuf's memory, and CuPy's where only a GPU reads it.
struct PlainFrontEnd {
  using Keywords = python::Keywords;
  using Request = python::Request;
  static constexpr auto& kKeywordNames = python::kKeywordNames;
  static constexpr auto& to_keywords = python::to_keywords;
  static constexpr auto& unknown_keyword = python::unknown_keyword;
  static constexpr auto& resolve = python::resolve;
  static constexpr auto& make_empty = make_unfilled<false>;
  static constexpr auto& make_zeros = make_unfilled<true>;
  static constexpr auto& make_filled = make_full;

  static Request from_data(PyObject* data, PyObject* dtype, const Keywords& keywords) {
    return resolve_like(source_of(data), dtype, keywords);
  }
};
using Functions = Creation<PlainFrontEnd>;

py::object make_buffer_only(const Request& request) { return allocate_for(request, {}); }

/// A copy of the elements of `array`, in the layout of `request`.
py::object make_copy(const Request& request, const py::object& array) {
  if (is_for_cupy(request)) return make_full(request, array.ptr());
  py::object target = ndarray_of(allocate_for(request, {.zeroed_padding = pads(request)}).ptr());
  copy_arrays(target.ptr(), array.ptr());
  return target;
}

py::object from_array(PyObject* object, PyObject* dtype, const Keywords& keywords) {
  const py::object data = importable_or_same(object, keywords.dims);
  py::object array;
  const Source source = source_of(data.ptr(), &array);
  const Request request = resolve_like(source, dtype, keywords);
  if (!array) array = ndarray_of(copy_of(data.ptr(), DeviceType::kHost).ptr());
  return make_copy(request, array);
}

constexpr Signature kAllocate{"allocate", Functions::kShapeNames, 2};
constexpr Signature kFromArray{"from_array", Functions::kDataNames, 2};

// ---- The table. ----

template <class Function>
PyMethodDef with_keywords(const char* name, Function function, const char* text) {
  return {name, method(function), METH_FASTCALL | METH_KEYWORDS, text};
}

PyMethodDef functions[] = {
    with_keywords("allocate",
                  (Functions::function<kAllocate, Functions::made<resolve, make_buffer_only>>),
                  doc("allocate")),
    with_keywords("empty", Functions::empty, doc("empty")),
    with_keywords("zeros", Functions::zeros, doc("zeros")),
    with_keywords("ones", Functions::ones, doc("ones")),
    with_keywords("full", Functions::full, doc("full")),
    with_keywords("empty_like", Functions::empty_like, doc("empty_like")),
    with_keywords("zeros_like", Functions::zeros_like, doc("zeros_like")),
    with_keywords("ones_like", Functions::ones_like, doc("ones_like")),
    with_keywords("full_like", Functions::full_like, doc("full_like")),
    with_keywords("from_array", (Functions::function<kFromArray, from_array>), doc("from_array")),
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_creation_functions(PyObject* module) { check(PyModule_AddFunctions(module, functions)); }

}  // namespace gridbuf::python
