// What a pybind11 extension does with the arrays it is handed: the functions that the suite judges
// pybind11 by.
//
// Each takes an exporter in one of the ways that pybind11 supports, and gives back what pybind11
// made of it, so that the suite can read it. Nothing is converted on the way: any element type and
// any strides are asked for. Built against whichever pybind11 is installed; the version is the
// module's.

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <utility>

namespace py = pybind11;

namespace {

// A buffer that is held and exported again: pybind11's import and its export, one behind the other.
class Exported {
 public:
  Exported(py::buffer_info info, bool writable) : info_(std::move(info)), writable_(writable) {}

  py::buffer_info Export() const {
    return py::buffer_info(info_.ptr, info_.itemsize, info_.format, info_.ndim, info_.shape,
                           info_.strides, !writable_);
  }

 private:
  py::buffer_info info_;  // releases the exporter's view when it goes
  bool writable_;
};

// What `py::array_t` does to its argument, but for the element type: it asks NumPy.
py::array Array(const py::object& object) { return py::array(object); }

Exported Buffer(const py::buffer& buffer) {
  py::buffer_info info = buffer.request();
  const bool writable = !info.readonly;
  return Exported(std::move(info), writable);
}

}  // namespace

PYBIND11_MODULE(gridbuf_conformance_pybind11, module) {
  py::class_<Exported>(module, "Exported", py::buffer_protocol()).def_buffer(&Exported::Export);
  module.def("array", &Array, py::arg("object"));
  module.def("buffer", &Buffer, py::arg("buffer"));
  module.attr("__version__") = PYBIND11_TOSTRING(PYBIND11_VERSION_MAJOR) "." PYBIND11_TOSTRING(
      PYBIND11_VERSION_MINOR) "." PYBIND11_TOSTRING(PYBIND11_VERSION_PATCH);
}
