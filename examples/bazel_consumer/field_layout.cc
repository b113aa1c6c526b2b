// Computes where the elements of a padded, aligned field are. Allocates no memory.
#include <cstdlib>
#include <iostream>

#include "absl/status/statusor.h"

import gridbuf.layout;

int main() {
  // A 20 x 10 x 80 field of doubles with a halo of 3 in I and J, I contiguous, the first inner
  // point at the start of a cache line.
  const absl::StatusOr<gridbuf::Layout> plan = gridbuf::make_plan({
      .shape = {20, 10, 80},
      .itemsize_bytes = sizeof(double),
      .layout = {2, 1, 0},
      .alignment_bytes = 64,
      .aligned_index = {3, 3, 0},
  });
  if (!plan.ok()) {
    std::cerr << plan.status().message() << "\n";
    return EXIT_FAILURE;
  }
  std::cout << *plan << "\n" << gridbuf::offset_rule(*plan) << "\n";
  return EXIT_SUCCESS;
}
