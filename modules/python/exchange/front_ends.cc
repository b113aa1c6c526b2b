// The functions of the package that take arrays from anywhere.

module;

#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "modules/python/arguments/docstrings.h"

module gridbuf.python;

namespace gridbuf::python {
namespace {

// ---- CuPy. ----

[[noreturn]] void raise_unavailable(std::string_view found, std::string_view advice) {
  raise(ErrorClass::kDeviceUnavailable, "a plain array on the GPU needs CuPy and a CUDA device: " +
                                            std::string(found) + "; " + std::string(advice));
}

/// The package, with a device to allocate on.
py::object load_cupy_with_device() {
  if (emulated_device_is_on()) {
    raise_unavailable("the emulated device is switched on, which CuPy cannot use",
                      "use gridbuf.allocate(..., memory=\"device\"), or switch it off");
  }
  py::object cupy;
  std::string reason = "it counts 0";
  try {
    cupy = py::module_::import("cupy");
    if (cupy.attr("cuda").attr("runtime").attr("getDeviceCount")().cast<int>() > 0) return cupy;
  } catch (py::error_already_set& error) {
    reason = describe(error.value().ptr());
  }
  if (!cupy) {
    raise_unavailable(reason,
                      "install CuPy, pass device=None, or use gridbuf.storage on the emulated "
                      "device");
  }
  raise_unavailable("cupy is installed, but finds no device (" + reason + ")",
                    "pass device=None, or use gridbuf.storage on the emulated device");
}

/// The package, for a view of memory that exists.
py::object load_cupy() {
  if (emulated_device_is_on()) {
    raise(ErrorClass::kDeviceUnavailable,
          "CuPy arrays need a CUDA device, but the emulated device is switched on; use as_buffer");
  }
  try {
    return py::module_::import("cupy");
  } catch (py::error_already_set& error) {
    if (!error.matches(PyExc_ImportError)) throw;
  }
  raise(ErrorClass::kDeviceUnavailable,
        "CuPy arrays need the package cupy, which cannot be imported; install the CuPy of your "
        "CUDA version, or use as_buffer");
}

py::object cupy_view(const py::object& cupy, const py::object& buffer, bool sync) {
  const BufferDescriptor& memory = array_in(buffer.ptr()).memory();
  if (memory.device.type == DeviceType::kHost) {
    raise(ErrorClass::kNoSuchBuffer,
          Problem{"the array's memory", to_string(memory.device), "reached by CUDA devices",
                  "copy it with buffer.copy(memory=\"device\"), or use as_numpy"});
  }
  const py::object cuda = cupy.attr("cuda");
  if (sync) {
    const StreamHandle own = array_in(buffer.ptr()).stream();
    // CuPy's null stream is the legacy default stream.
    const auto current = cuda.attr("get_current_stream")().attr("ptr").cast<StreamHandle>();
    check(
        value_of(device_driver())->order_after(own, current == 0 ? kLegacyDefaultStream : current));
  }
  const checked::ByteHull hull = byte_hull(memory.view).value_or(checked::ByteHull{});
  const auto lowest = reinterpret_cast<std::uintptr_t>(memory.block + hull.lowest_bytes);
  const py::object unowned =
      cuda.attr("UnownedMemory")(lowest, hull.length_bytes(), buffer, memory.device.id);
  return cupy.attr("ndarray")(
      from_integers(memory.view.shape.span()), dtype_of(buffer.ptr())->numpy,
      cuda.attr("MemoryPointer")(unowned, memory.view.offset_bytes - hull.lowest_bytes),
      from_integers(memory.view.strides_bytes.span()));
}

py::object as_cupy(py::handle obj, py::handle sync_flag) {
  const bool sync = to_flag(sync_flag.ptr(), "sync");
  const py::object cupy = load_cupy();
  if (py::type::handle_of(obj).is(cupy.attr("ndarray"))) return share(obj.ptr());
  const ImportOptions options{.sync = sync, .use_names = false, .side = Side::kDevice};
  return cupy_view(cupy, import_buffer(obj.ptr(), nullptr, options), sync);
}

py::object from_interface(py::handle descriptor, py::handle owner, py::handle sync,
                          py::handle device) {
  const ImportOptions options{.sync = to_flag(sync.ptr(), "sync")};
  PyObject* const kept = owner.is_none() ? nullptr : owner.ptr();
  PyObject* const dict = descriptor.ptr();
  std::optional<Side> side;
  if (const auto gpu = wants_gpu(device.ptr() == Py_Ellipsis ? nullptr : device.ptr())) {
    side = *gpu ? Side::kDevice : Side::kHost;
  }
  if (PyDict_Check(dict) == 0) {
    raise(ErrorClass::kType,
          Problem{"descriptor", describe(dict), "a dict",
                  "pass the value of an array interface, or the object itself to as_buffer"});
  }
  const auto read = [&] {
    if (is_data_dict(dict)) return read_data_dict(dict, kept, side, nullptr);
    // A single array interface is CUDA's if the caller says so, else if it names a stream.
    const bool gpu = side ? *side == Side::kDevice : descriptor.contains("stream");
    return gpu ? read_cuda_dict(dict, kept) : read_array_dict(dict, kept);
  };
  return adopt(read(), nullptr, nullptr, options);
}

py::object get_origin(py::handle obj) {
  const std::optional<Extents> origin = declared_origin(obj.ptr());
  return origin ? from_integers(origin->span()) : share(Py_None);
}

}  // namespace

std::optional<Extents> declared_origin(PyObject* object) {
  if (is_buffer(object)) return origin_of(array_in(object));
  if (!is_exact_ndarray(object)) {  // A plain ndarray has no attributes to look for.
    static AttributeName names[] = {AttributeName("__gt_origin__"),
                                    AttributeName("default_origin")};
    for (AttributeName& name : names) {
      py::object value = optional_attribute(object, name);
      // The form of the proposal was a method.
      if (value && PyCallable_Check(value.ptr()) != 0) {
        value = steal(PyObject_CallNoArgs(value.ptr()));
      }
      if (value && !value.is_none()) return to_integers(value.ptr(), utf8(name.get()));
    }
  }
  if (is_ndarray(object)) {
    PyObject* const base = fields_of(object).base;
    if (base != nullptr && is_buffer(base) && dims_behind(object)) return declared_origin(base);
  }
  return std::nullopt;
}

py::object make_cupy_view(const py::object& buffer, bool sync) {
  return cupy_view(load_cupy(), buffer, sync);
}

py::object make_cupy_array(const Layout& plan, const DTypeRecord& dtype, bool zeroed) {
  const py::object cupy = load_cupy_with_device();
  // Booleans, integers, floats up to 64 bits and complex numbers of them, in native order.
  constexpr std::string_view kCharacters = "?bhilqBHILQefdFD";
  const py::object character = dtype.numpy.attr("char");
  if (kCharacters.find(utf8(character.ptr())) == std::string_view::npos ||
      !dtype.type.is_native()) {
    raise(ErrorClass::kType,
          Problem{"dtype", dtype.name, "one that CuPy has for a plain array on the GPU",
                  "use gridbuf.allocate(..., memory=\"device\") for other dtypes"});
  }
  const Placement placement =
      value_of(place({.total_bytes = plan.total_bytes(),
                      .alignment_bytes = plan.alignment_bytes(),
                      .aligned_offset_bytes = plan.aligned_offset_bytes()}));
  const py::object block = cupy.attr("cuda").attr("alloc")(placement.block_bytes);
  auto* const start = reinterpret_cast<std::byte*>(block.attr("ptr").cast<std::uintptr_t>());
  const py::object memory = block + py::int_(place_in(placement, start) - start);
  if (zeroed && plan.total_bytes() > 0) memory.attr("memset_async")(0, plan.total_bytes());
  return cupy.attr("ndarray")(from_integers(plan.shape().span()), dtype.numpy, memory,
                              from_integers(plan.strides_bytes().span()));
}

void copy_into_cupy(PyObject* array, PyObject* value) {
  const py::handle target = array;
  const py::object dtype = target.attr("dtype");
  if (is_scalar(value)) {
    target.attr("fill")(make_element(dtype.ptr(), value).attr("item")());
    return;
  }
  const py::object converted = as_ndarray(value).attr("astype")(dtype);
  target[py::ellipsis()] = py::module_::import("cupy").attr("asarray")(converted);
}

void add_front_ends(PyObject* module) {
  auto core = py::reinterpret_borrow<py::module_>(module);
  py::options options;
  options.disable_function_signatures();
  make_checked_exporter_type();
  core.def("as_cupy", as_cupy, py::arg("obj"), py::arg("sync") = true, doc("as_cupy"))
      .def("from_interface", from_interface, py::arg("descriptor"), py::arg("owner") = py::none(),
           py::arg("sync") = true, py::kw_only(), py::arg("device") = py::ellipsis(),
           doc("from_interface"))
      .def("get_origin", get_origin, py::arg("obj"), py::pos_only(), doc("get_origin"))
      .def("_as_memoryview", [](py::handle object) { return as_memoryview(object.ptr()); })
      .def("_as_ndarray", [](py::handle object) { return as_ndarray(object.ptr()); });
}

}  // namespace gridbuf::python
