// Symbols that objects compiled with a newer glibc ask for and glibc 2.31, which extensions are linked against, does not have.
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#define HIDDEN __attribute__((visibility("hidden")))

// Read by libstdc++'s shared_ptr: whether it may count references without atomic operations. "No" is always right.
HIDDEN char __libc_single_threaded = 0;

// Called by libstdc++'s random_device.
HIDDEN uint32_t arc4random(void) {
  uint32_t bits;
  if (getentropy(&bits, sizeof bits) != 0) abort();
  return bits;
}
