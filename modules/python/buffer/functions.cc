module;

#include <pybind11/pybind11.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "modules/python/support/docstrings.h"

module gridbuf.python.buffer;

namespace gridbuf::python {
namespace {

// ---- Filling. ----

py::object allocate_for(const Request& request, const ArrayOptions& zeroes) {
  ArrayOptions options = zeroes;
  options.populate = request.populate;
  options.memory = request.memory;
  return allocate_buffer(request.layout, request.dtype, options);
}

/// A plain array in memory that only a GPU reads is CuPy's.
bool is_for_cupy(const Request& request) { return request.memory == DeviceType::kCuda; }

py::object make_full(const Request& request, PyObject* fill_value) {
  if (is_for_cupy(request)) {
    py::object array = make_cupy_array(request.layout, *request.dtype, has_padding(request.layout));
    copy_into_cupy(array.ptr(), fill_value);
    return array;
  }
  if (!is_scalar(fill_value)) {
    const py::object buffer =
        allocate_for(request, {.zeroed_padding = has_padding(request.layout)});
    py::object array = ndarray_of(buffer.ptr());
    copy_arrays(array.ptr(), as_ndarray(fill_value).ptr());  // Broadcasts, as numpy.full does.
    return array;
  }
  const py::object element = make_element(request.dtype->numpy.ptr(), fill_value);
  const py::object buffer = allocate_for(request, {.zeroed_padding = has_padding(request.layout)});
  const BufferDescriptor& memory = array_in(buffer.ptr()).memory;
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
py::object make_plan_only(const Request& request) { return make_plan_object(request.layout); }

/// A copy of the elements of `array`, in the layout of `request`.
py::object make_copy(const Request& request, const py::object& array) {
  if (is_for_cupy(request)) return make_full(request, array.ptr());
  py::object target =
      ndarray_of(allocate_for(request, {.zeroed_padding = has_padding(request.layout)}).ptr());
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
constexpr Signature kPlan{"plan", Functions::kShapeNames, 2};
constexpr Signature kFromArray{"from_array", Functions::kDataNames, 2};

// ---- Unpickling. ----

/// Holds a buffer of a pickle's bytes.
class HeldBytes {
 public:
  explicit HeldBytes(PyObject* object) {
    if (PyObject_GetBuffer(object, &view_, PyBUF_SIMPLE) < 0) throw PythonError();
  }
  ~HeldBytes() { PyBuffer_Release(&view_); }
  HeldBytes(const HeldBytes&) = delete;
  HeldBytes& operator=(const HeldBytes&) = delete;

  const std::byte* data() const { return static_cast<const std::byte*>(view_.buf); }
  std::int64_t length_bytes() const { return view_.len; }

 private:
  Py_buffer view_;
};

/// A Buffer in any memory with the elements that lie dense at `elements`.
py::object buffer_of(const Request& request, const std::byte* elements) {
  Request on_host = request;
  if (request.memory == DeviceType::kCuda) on_host.memory = DeviceType::kHost;
  const py::object buffer = allocate_for(on_host, {.zeroed_padding = has_padding(request.layout)});
  const BufferDescriptor& memory = array_in(buffer.ptr()).memory;
  const Layout dense = value_of(
      make_plan({.shape = memory.view.shape, .itemsize_bytes = memory.view.itemsize_bytes}));
  copy_memory(memory.block, memory.view, elements, dense.view());
  return on_host.memory == request.memory ? share(buffer.ptr())
                                          : copy_of(buffer.ptr(), request.memory);
}

/// _restore(shape, dtype, layout, alignment_size, aligned_index, dims, readonly, elements, memory).
/// What a pickle holds is checked like any other arguments: it may come from anywhere.
py::object restored(PyObject* const* arguments) {
  const Keywords keywords{.layout = arguments[2],
                          .alignment_size = arguments[3],
                          .aligned_index = arguments[4],
                          .dims = arguments[5],
                          .memory = arguments[8]};
  const Request request = resolve(arguments[0], arguments[1], keywords);
  const bool readonly = to_flag(arguments[6], "readonly");
  const HeldBytes elements(arguments[7]);
  if (elements.length_bytes() != request.layout.nbytes()) {
    raise(ErrorClass::kValue,
          Problem{"the pickled elements' length", bytes_text(elements.length_bytes()),
                  bytes_text(request.layout.nbytes()) + " for shape " +
                      to_string(request.layout.shape()) + " of " + request.dtype->name,
                  "pickle the buffer again"});
  }
  const py::object buffer = buffer_of(request, elements.data());
  return readonly ? readonly_view(buffer.ptr()) : share(buffer.ptr());
}

PyObject* restore(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  return guarded([&] {
    if (count != 9) {
      raise(ErrorClass::kType, "_restore() takes 9 arguments, but " + std::to_string(count) +
                                   " were given; it is for unpickling alone");
    }
    return restored(arguments);
  });
}

// ---- Presets and names. ----

PresetOrder to_order(PyObject* layout) {
  constexpr char kAdvice[] = "pass the ranks of I, J and K such as (2, 1, 0), or \"C\" or \"F\"";
  if (layout == Py_None) return PresetOrder::by_name(0, 1, 2);
  if (PyUnicode_Check(layout) != 0) {
    if (utf8(layout) == "C") return PresetOrder::row_major();
    if (utf8(layout) == "F") return PresetOrder::column_major();
    raise(ErrorClass::kValue,
          Problem{"layout", describe(layout), "three ranks, \"C\" or \"F\"", kAdvice});
  }
  const Extents ranks = to_integers(layout, "layout");
  const auto is_axis = [](std::int64_t rank) { return rank >= 0 && rank < kSpatialAxes; };
  if (ranks.size() != kSpatialAxes || !std::all_of(ranks.begin(), ranks.end(), is_axis)) {
    raise(ErrorClass::kValue,
          Problem{"layout", describe(layout), "a permutation of (0, 1, 2)", kAdvice});
  }
  return PresetOrder::by_name(static_cast<int>(ranks[0]), static_cast<int>(ranks[1]),
                              static_cast<int>(ranks[2]));
}

void register_preset_by_name(py::handle name, py::handle device, py::handle alignment_size,
                             py::handle layout) {
  if (PyUnicode_Check(name.ptr()) == 0) {
    raise(ErrorClass::kType, Problem{"name", describe(name.ptr()), "a str",
                                     "pass the name that backend=... accepts from then on"});
  }
  Preset preset{.device = *wants_gpu(device.ptr()) ? DeviceType::kCuda : DeviceType::kHost,
                .order = to_order(layout.ptr())};
  if (!alignment_size.is_none()) {
    preset.alignment_bytes = to_integer(alignment_size.ptr(), "alignment_size");
  }
  check(register_preset(utf8(name.ptr()), preset));
}

py::object layout_of_preset(const Preset& preset) {
  if (preset.order.kind == PresetOrder::Kind::kRowMajor) return make_text("C");
  if (preset.order.kind == PresetOrder::Kind::kColumnMajor) return make_text("F");
  return from_integers(std::span<const int>(preset.order.base_ranks));
}

py::dict presets() {
  py::dict found;
  for (const std::string& name : preset_names()) {
    const Preset preset = value_of(find_preset(name));
    py::dict entry;
    entry["device"] = preset.device == DeviceType::kCuda ? make_text("gpu") : share(Py_None);
    entry["alignment_size"] = preset.alignment_bytes;
    entry["layout"] = layout_of_preset(preset);
    found[py::str(name)] = entry;
  }
  return found;
}

/// The number of dimensions: of the object if it says so, else of the names that it declares.
int ndim_of(PyObject* object) {
  const py::object ndim = steal_or_none(PyObject_GetAttrString(object, "ndim"));
  if (!ndim) {
    if (!take_error(PyExc_AttributeError)) throw PythonError();
    return source_of(object).like.shape.size();
  }
  const std::int64_t value = to_integer(ndim.ptr(), "ndim");
  if (value < 0 || value > kMaxNdim) {
    raise(ErrorClass::kValue,
          Problem{"ndim", std::to_string(value), "from 0 to " + std::to_string(kMaxNdim),
                  "pass an array with fewer dimensions"});
  }
  return static_cast<int>(value);
}

py::object get_dims(py::handle obj, py::handle annotation) {
  PyObject* const object = obj.ptr();
  const int ndim = ndim_of(object);
  const std::optional<Dims> declared = declared_dims(object, ndim);
  if (declared) return from_dims(*declared);
  if (is_ndarray(object)) {  // A plain array of ours: its names are those of its buffer.
    const std::optional<Dims> behind = dims_behind(object);
    if (behind) return from_dims(*behind);
  }
  if (annotation.is_none()) return share(Py_None);
  return from_dims(to_dims(annotation.ptr(), ndim));
}

// ---- The table. ----

template <class Function>
PyMethodDef with_keywords(const char* name, Function function, const char* text) {
  return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function)),
          METH_FASTCALL | METH_KEYWORDS, text};
}

PyMethodDef functions[] = {
    with_keywords("allocate",
                  (Functions::function<kAllocate, Functions::made<resolve, make_buffer_only>>),
                  doc("allocate")),
    with_keywords("plan", (Functions::function<kPlan, Functions::made<resolve, make_plan_only>>),
                  doc("plan")),
    with_keywords("empty", Functions::empty, doc("empty")),
    with_keywords("zeros", Functions::zeros, doc("zeros")),
    with_keywords("ones", Functions::ones, doc("ones")),
    with_keywords("full", Functions::full, doc("full")),
    with_keywords("empty_like", Functions::empty_like, doc("empty_like")),
    with_keywords("zeros_like", Functions::zeros_like, doc("zeros_like")),
    with_keywords("ones_like", Functions::ones_like, doc("ones_like")),
    with_keywords("full_like", Functions::full_like, doc("full_like")),
    with_keywords("from_array", (Functions::function<kFromArray, from_array>), doc("from_array")),
    {"_restore", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(restore)),
     METH_FASTCALL, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_functions(PyObject* module) {
  check(PyModule_AddFunctions(module, functions));
  auto core = py::reinterpret_borrow<py::module_>(module);
  py::options options;
  options.disable_function_signatures();
  core.def("register_preset", register_preset_by_name, py::arg("name"), py::kw_only(),
           py::arg("device") = py::none(), py::arg("alignment_size") = 1,
           py::arg("layout") = py::none(), doc("register_preset"))
      .def("presets", presets, doc("presets"))
      .def("get_dims", get_dims, py::arg("obj"), py::arg("annotation") = py::none(),
           doc("get_dims"));
}

}  // namespace gridbuf::python
