// [extension]
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <memory>

#include "gridbuf.hpp"

namespace nb = nanobind;

// Doubles the elements of any two-dimensional float64 array in host memory, in place.
static void twice(const nb::ndarray<double, nb::ndim<2>, nb::device::cpu>& a) {
  const auto elements = a.view();
  for (std::size_t i = 0; i < elements.shape(0); ++i)
    for (std::size_t j = 0; j < elements.shape(1); ++j) elements(i, j) *= 2.0;
}

// A new array of gridbuf. The capsule owns it, and NumPy's array keeps the capsule.
static nb::ndarray<nb::numpy, float, nb::ndim<2>> filled(std::int64_t rows, std::int64_t columns,
                                                         float value) {
  gridbuf::options wanted;
  wanted.shape = {rows, columns};
  auto made = std::make_unique<gridbuf::array<float>>(wanted);
  made->fill(value);
  const gridbuf::view<float, 2> elements = made->elements<2>();
  const nb::capsule owner(
      made.get(), [](void* array) noexcept { delete static_cast<gridbuf::array<float>*>(array); });
  made.release();
  return {elements.data(),
          {static_cast<std::size_t>(rows), static_cast<std::size_t>(columns)},
          owner,
          {elements.stride(0), elements.stride(1)}};
}

NB_MODULE(arrays_nanobind, module) {
  module.def("twice", &twice, nb::arg("a").noconvert());
  module.def("filled", &filled);
}
// [/extension]
