// Allocates bytes for a field whose first inner point starts a cache line. Needs no layouts and no
// Python.
#include <cstdint>
#include <cstdlib>
#include <iostream>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

import gridbuf.alloc;
import gridbuf.alloc.host;

int main() {
  // 20 x 10 x 80 doubles, I contiguous in rows of 24; the point (3, 3, 0) is 600 bytes into the
  // field.
  constexpr std::int64_t kAlignmentBytes = 64;
  constexpr std::int64_t kOffsetBytes = 3 * 8 + 3 * 192;
  absl::StatusOr<gridbuf::Block> block = gridbuf::host_resource().allocate({
      .total_bytes = 24 * 10 * 80 * 8,
      .alignment_bytes = kAlignmentBytes,
      .aligned_offset_bytes = kOffsetBytes,
      .zeroed = true,
  });
  if (!block.ok()) {
    std::cerr << block.status().message() << "\n";
    return EXIT_FAILURE;
  }
  const auto address = reinterpret_cast<std::uintptr_t>(block->data() + kOffsetBytes);
  std::cout << block->total_bytes() << " bytes from the resource '" << block->info().resource_name
            << "', the inner point at " << address % kAlignmentBytes << " modulo "
            << kAlignmentBytes << "\n";
  return EXIT_SUCCESS;
}
