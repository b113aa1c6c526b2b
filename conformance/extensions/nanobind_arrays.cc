// What a nanobind extension does with the arrays it is handed, and those it returns: the functions
// that the suite judges nanobind by. `made` and `made_readonly` return arrays of the extension's
// own memory.
//
// `ndarray` asks for any element type, rank and strides; `readonly` promises not to write, for
// which nanobind takes another way through the exporter's interfaces. What nanobind made of the
// exporter is handed back as an object that has DLPack and the buffer protocol, over the same
// memory. Built against whichever nanobind is installed; the version is the module's.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#define GRIDBUF_TEXT_OF(macro) GRIDBUF_TEXT(macro)
#define GRIDBUF_TEXT(text) #text

namespace nb = nanobind;

namespace {

// The same memory as nanobind sees it, in an object of nanobind's own: casting `array` itself would
// hand the exporter back. `Access` is empty or `nb::ro`.
template <typename... Access>
nb::ndarray<nb::array_api, Access...> Seen(const nb::ndarray<Access...>& array) {
  using Held = nb::ndarray<Access...>;
  nb::capsule owner(new Held(array), [](void* held) noexcept { delete static_cast<Held*>(held); });
  const std::vector<size_t> shape(array.shape_ptr(), array.shape_ptr() + array.ndim());
  return nb::ndarray<nb::array_api, Access...>(array.data(), array.ndim(), shape.data(), owner,
                                               array.stride_ptr(), array.dtype(),
                                               array.device_type(), array.device_id());
}

nb::ndarray<nb::array_api> Ndarray(const nb::ndarray<>& array) { return Seen(array); }

nb::ndarray<nb::array_api, nb::ro> Readonly(const nb::ndarray<nb::ro>& array) {
  return Seen(array);
}

// An array of these bytes in row-major order, or column-major with `fortran`. Without an owner its
// memory is never freed.
template <typename... Access>
nb::object Made(const nb::bytes& content, const std::vector<size_t>& shape, uint8_t code,
                uint8_t bits, bool fortran, bool owned) {
  char* memory = new char[content.size() + 1];
  std::memcpy(memory, content.c_str(), content.size());
  nb::object owner;
  if (owned)
    owner = nb::capsule(memory, [](void* held) noexcept { delete[] static_cast<char*>(held); });
  const nb::dlpack::dtype dtype{code, bits, 1};
  const nb::ndarray<nb::array_api, Access...> made(memory, shape.size(), shape.data(), owner,
                                                   nullptr, dtype, nb::device::cpu::value, 0,
                                                   fortran ? 'F' : 'C');
  return nb::cast(made, nb::rv_policy::reference);
}

}  // namespace

NB_MODULE(gridbuf_conformance_nanobind, module) {
  module.def("ndarray", &Ndarray, nb::arg("array"));
  module.def("readonly", &Readonly, nb::arg("array"));
  module.def("made", &Made<>);
  module.def("made_readonly", &Made<nb::ro>);
  module.attr("__version__") = GRIDBUF_TEXT_OF(NB_VERSION_MAJOR) "." GRIDBUF_TEXT_OF(
      NB_VERSION_MINOR) "." GRIDBUF_TEXT_OF(NB_VERSION_PATCH);
}
