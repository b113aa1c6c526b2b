// Diffusion on an array with a halo. The loops run over the domain view, and reach the halo by
// strides.
// [head]
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iostream>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

import gridbuf.array;

namespace {

using gridbuf::Array;
// [/head]

// [halo]
// An error unless each dimension has at least one point around the domain.
absl::Status check_halo(const Array& field) {
  const gridbuf::Halo& halo = field.layout().halo();  // Empty: none.
  const auto is_wide = [](gridbuf::HaloWidth width) {
    return width.lower >= 1 && width.upper >= 1;
  };
  if (!halo.empty() && std::all_of(halo.begin(), halo.end(), is_wide)) return absl::OkStatus();
  return absl::InvalidArgumentError("the halo is " + to_string(halo) +
                                    ", but must have one point at each end");
}
// [/halo]

// [diffuse]
// One step of diffusion in two dimensions. `field` has the domain of `out`, and a halo.
absl::Status diffuse(const Array& field, const Array& out, double rate) {
  if (absl::Status status = check_halo(field); !status.ok()) return status;
  const auto u = field.domain_view().elements<const double>();
  if (!u.ok()) return u.status();
  const auto next = out.domain_view().elements<double>();
  if (!next.ok()) return next.status();
  if (u->shape() != next->shape()) return absl::InvalidArgumentError("the domains differ");
  const auto stride = [&u](int axis) {
    return u->strides_bytes()[axis] / static_cast<std::int64_t>(sizeof(double));
  };
  const std::int64_t di = stride(0);
  const std::int64_t dj = stride(1);
  for (std::int64_t i = 0; i < u->shape()[0]; ++i) {
    for (std::int64_t j = 0; j < u->shape()[1]; ++j) {
      const double* const p = &(*u)(i, j);  // An element of the domain; its neighbours may be halo.
      (*next)(i, j) = p[0] + rate * (p[-di] + p[di] + p[-dj] + p[dj] - 4 * p[0]);
    }
  }
  return absl::OkStatus();
}
// [/diffuse]

// [run]
// i² + j² of the indices in the whole field, halo included.
absl::Status fill(const Array& field) {
  const auto u = field.elements<double>();
  if (!u.ok()) return u.status();
  for (std::int64_t i = 0; i < u->shape()[0]; ++i) {
    for (std::int64_t j = 0; j < u->shape()[1]; ++j) {
      (*u)(i, j) = static_cast<double>(i * i + j * j);
    }
  }
  return absl::OkStatus();
}

absl::Status run() {
  // A domain of 10 x 12 points. The first point of the domain begins a cache line in each row.
  const auto field =
      Array::zeros({.shape = {12, 14}, .alignment_bytes = 64, .halo = {{1, 1}, {1, 1}}});
  const auto out = Array::zeros({.shape = {10, 12}, .layout = {1, 0}});  // I contiguous, no halo
  if (!field.ok()) return field.status();
  if (!out.ok()) return out.status();
  if (absl::Status status = fill(*field); !status.ok()) return status;
  if (absl::Status status = diffuse(*field, *out, 0.25); !status.ok()) return status;
  const auto next = out->elements<const double>();
  std::cout << "first point " << (*next)(0, 0) << ", last point " << (*next)(9, 11) << "\n";
  std::cout << diffuse(*out, *out, 0.25).message() << "\n";  // `out` does not have a halo.
  return absl::OkStatus();
}
// [/run]

}  // namespace

int main() {
  const absl::Status status = run();
  if (status.ok()) return EXIT_SUCCESS;
  std::cerr << status.message() << "\n";
  return EXIT_FAILURE;
}
