// The functions that unpickle. They have no benchmark: pickle finds a function by its name, and
// those of pybind11 have none.

module;

#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <string>

module gridbuf.python.storage;

namespace gridbuf::python::storages {
namespace {

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
  const DeviceType memory_kind =
      request.memory == DeviceType::kCuda ? DeviceType::kHost : request.memory;
  const py::object buffer =
      allocate_buffer(request.layout, request.dtype,
                      {.memory = memory_kind, .zeroed_padding = has_padding(request.layout)});
  const BufferDescriptor& memory = array_in(buffer.ptr()).memory;
  const Layout dense = value_of(
      make_plan({.shape = memory.view.shape, .itemsize_bytes = memory.view.itemsize_bytes}));
  copy_memory(memory.block, memory.view, elements, dense.view());
  return memory_kind == request.memory ? share(buffer.ptr())
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

/// _restore_plan(shape, itemsize, layout, alignment_size, aligned_index, dims).
PyObject* restore_plan(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  return guarded([&] {
    if (count != 6) {
      raise(ErrorClass::kType, "_restore_plan() takes 6 arguments, but " + std::to_string(count) +
                                   " were given; it is for unpickling alone");
    }
    const Extents shape = to_shape(arguments[0], "a plan");
    const Dims dims = to_dims(arguments[5], shape.size());
    const LayoutRequest request{.shape = shape,
                                .itemsize_bytes = to_integer(arguments[1], "itemsize"),
                                .layout = to_layout(arguments[2], dims),
                                .alignment_bytes = to_integer(arguments[3], "alignment_size"),
                                .aligned_index = to_integers(arguments[4], "aligned_index"),
                                .dims = dims};
    return make_plan_object(value_of(make_plan(request)));
  });
}

/// _restore_storage(parameters, elements): `_parameters` without its last entry (an axis that None
/// has put in is an ordinary one afterwards), and the elements in row-major order.
PyObject* restore_storage(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  return guarded([&] {
    // What a pickle holds is checked like any other arguments: it may come from anywhere.
    if (count != 2 || PyTuple_Check(arguments[0]) == 0 || PyTuple_GET_SIZE(arguments[0]) != 9) {
      raise(ErrorClass::kType,
            "_restore_storage() takes parameters and elements; it is for unpickling alone");
    }
    const auto parameter = [&](Py_ssize_t i) { return PyTuple_GET_ITEM(arguments[0], i); };
    const StorageKeywords keywords{.shared = {.device = parameter(7),
                                              .layout = parameter(4),
                                              .alignment_size = parameter(5),
                                              .aligned_index = parameter(3),
                                              .dims = parameter(0),
                                              .halo = parameter(2)},
                                   .managed = parameter(8)};
    py::object made = allocate_storage(resolve_storage(parameter(1), parameter(6), keywords));
    const StorageObject& object = *object_of(made.ptr());
    // NumPy checks the length; a wrong one is its ValueError.
    const py::object flat = py::module_::import("numpy").attr("frombuffer")(
        py::handle(arguments[1]), object.dtype->numpy);
    const py::object shape = from_integers(object.storage.shape().span());
    assign(object, object.storage, py::object(flat.attr("reshape")(shape)).ptr());
    return made;
  });
}

PyMethodDef functions[] = {
    {"_restore", method(restore), METH_FASTCALL, nullptr},
    {"_restore_plan", method(restore_plan), METH_FASTCALL, nullptr},
    {"_restore_storage", method(restore_storage), METH_FASTCALL, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_pickle_functions(PyObject* module) { check(PyModule_AddFunctions(module, functions)); }

}  // namespace gridbuf::python::storages
