// [extension]
#include <gridbuf_pybind11.h>

// Doubles the elements of any two-dimensional float64 array in host memory, in place.
static void twice(const gridbuf::view<double, 2>& a) {
  for (int i = 0; i < a.extent(0); ++i)
    for (int j = 0; j < a.extent(1); ++j) a(i, j) *= 2.0;
}

// Reads, so that read-only arrays are fine.
static double sum(const gridbuf::view<const double, 1>& a) {
  double total = 0.0;
  for (int i = 0; i < a.extent(0); ++i) total += a(i);
  return total;
}

// A new array, which Python owns.
static gridbuf::array<float> filled(std::int64_t rows, std::int64_t columns, float value) {
  gridbuf::options wanted;
  wanted.shape = {rows, columns};
  gridbuf::array<float> made(wanted);
  made.fill(value);
  return made;
}

// An array of the argument's memory, which may outlive the call.
static gridbuf::array<double> kept(gridbuf::array<double> a) { return a; }

PYBIND11_MODULE(arrays_pybind11, module) {
  module.def("twice", &twice);
  module.def("sum", &sum);
  module.def("filled", &filled);
  module.def("kept", &kept);
}
// [/extension]
