// [program]
// Prints where the elements of a padded, aligned field are. Allocates no memory.
#include <cstdlib>
#include <iostream>

#include "absl/status/statusor.h"

import gridbuf.layout;

int main() {
  const absl::StatusOr<gridbuf::Layout> plan = gridbuf::make_plan({
      .shape = {20, 10, 80},
      .itemsize_bytes = sizeof(double),
      .layout = {2, 1, 0},
      .alignment_bytes = 64,
  });
  if (!plan.ok()) {
    std::cerr << plan.status().message() << "\n";
    return EXIT_FAILURE;
  }
  std::cout << gridbuf::offset_rule(*plan) << ", " << plan->total_bytes() << " bytes in all\n";
  return EXIT_SUCCESS;
}
// [/program]
