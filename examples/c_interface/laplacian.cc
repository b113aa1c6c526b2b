// Two fields with a halo, and a five-point stencil on the domain, in C++17.
// [program]
#include <cstdint>
#include <gridbuf.hpp>
#include <iostream>

int main() {
  gridbuf::options wanted;
  wanted.shape = {8, 7};
  wanted.halo = {{1, 1}, {1, 1}};
  wanted.backend = "gt:cpu_ifirst";
  const gridbuf::storage<double> field(wanted);
  const gridbuf::storage<double> result(wanted);
  const auto f = field.write(gridbuf::side::host);
  for (std::int64_t i = 0; i < f.extent(0); ++i) {
    for (std::int64_t j = 0; j < f.extent(1); ++j) f(i, j) = static_cast<double>(i * i + j * j);
  }
  const auto domain = result.domain().write(gridbuf::side::host);
  double sum = 0;
  for (std::int64_t i = 0; i < domain.extent(0); ++i) {
    for (std::int64_t j = 0; j < domain.extent(1); ++j) {
      domain(i, j) =
          f(i, j + 1) + f(i + 2, j + 1) + f(i + 1, j) + f(i + 1, j + 2) - 4 * f(i + 1, j + 1);
      sum += domain(i, j);
    }
  }
  std::cout << "sum of the Laplacian: " << sum << "\n";
  try {
    wanted.halo = {{5, 5}, {0, 0}};
    const gridbuf::storage<double> wrong(wanted);
  } catch (const gridbuf::error& error) {
    std::cout << error.what() << "\n";
  }
}
// [/program]
