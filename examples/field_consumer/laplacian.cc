// [program]
// A stencil in C++ on two storages: one over (K, I, J) with a halo, one over (I, J, K) without. The
// kernel uses the indices of the grid and is written once.
#include <cstdint>
#include <cstdlib>
#include <iostream>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

import gridbuf.call;

namespace {

using gridbuf::Storage;
using gridbuf::axis::I;
using gridbuf::axis::J;
using gridbuf::axis::K;

absl::StatusOr<Storage> zeros(const gridbuf::Extents& shape, const gridbuf::Dims& dims,
                              const gridbuf::Halo& halo) {
  const auto plan = gridbuf::make_plan({.shape = shape,
                                        .itemsize_bytes = 8,
                                        .alignment_bytes = 64,
                                        .aligned_index = gridbuf::first_domain_index(halo, shape),
                                        .dims = dims,
                                        .halo = halo});
  if (!plan.ok()) return plan.status();
  return Storage::allocate({.layout = *plan, .zeroed = true});
}

// i² + j², halo included.
absl::Status fill(const Storage& storage) {
  const auto u = gridbuf::WriteField<double, I, J, K>::open("u", storage);
  if (!u.ok()) return u.status();
  for (std::int64_t i = -u->lower(0); i < u->upper(0); ++i) {
    for (std::int64_t j = -u->lower(1); j < u->upper(1); ++j) {
      for (std::int64_t k = 0; k < u->upper(2); ++k) {
        (*u)(i, j, k) = static_cast<double>(i * i + j * j);
      }
    }
  }
  return absl::OkStatus();
}

absl::Status laplacian(const Storage& in, const Storage& out) {
  const auto u = gridbuf::ReadField<double, I, J, K>::open("u", in);
  if (!u.ok()) return u.status();
  const auto lap = gridbuf::WriteField<double, I, J, K>::open("lap", out);
  if (!lap.ok()) return lap.status();
  const gridbuf::Extents& n = lap->domain();
  for (std::int64_t i = 0; i < n[0]; ++i) {
    for (std::int64_t j = 0; j < n[1]; ++j) {
      for (std::int64_t k = 0; k < n[2]; ++k) {
        (*lap)(i, j, k) = (*u)(i - 1, j, k) + (*u)(i + 1, j, k) + (*u)(i, j - 1, k) +
                          (*u)(i, j + 1, k) - 4 * (*u)(i, j, k);
      }
    }
  }
  return absl::OkStatus();
}

absl::Status run() {
  using gridbuf::kDimI;
  using gridbuf::kDimJ;
  using gridbuf::kDimK;
  const auto in = zeros({5, 12, 14}, {kDimK, kDimI, kDimJ}, {{0, 0}, {1, 1}, {2, 2}});
  const auto out = zeros({10, 10, 5}, {kDimI, kDimJ, kDimK}, {{0, 0}, {0, 0}, {0, 0}});
  if (!in.ok()) return in.status();
  if (!out.ok()) return out.status();
  if (absl::Status status = fill(*in); !status.ok()) return status;
  if (absl::Status status = laplacian(*in, *out); !status.ok()) return status;
  const auto lap = gridbuf::ReadField<double, I, J, K>::open("lap", *out);
  if (!lap.ok()) return lap.status();
  std::cout << "domain " << gridbuf::to_string(lap->domain())
            << ", laplacian of i² + j²: " << (*lap)(0, 0, 0) << " at the first point, "
            << (*lap)(9, 9, 4) << " at the last\n";

  // A wrong element type is an error before any memory is read.
  const auto wrong = gridbuf::ReadField<float, I, J, K>::open("u", *in);
  std::cout << wrong.status().message() << "\n";
  return absl::OkStatus();
}

}  // namespace

int main() {
  const absl::Status status = run();
  if (status.ok()) return EXIT_SUCCESS;
  std::cerr << status.message() << "\n";
  return EXIT_FAILURE;
}
// [/program]
