// The symbols that objects compiled here need and glibc 2.28 does not have. Extensions are linked against this file and Debian
// 11's glibc 2.31 (third_party/debian.pins), so their wheels install where glibc is 2.28 or newer.
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#define HIDDEN __attribute__((visibility("hidden")))

// Read by libstdc++'s shared_ptr: whether it may count references without atomic operations. "No" is always correct.
HIDDEN char __libc_single_threaded = 0;

// Called by libstdc++'s random_device.
HIDDEN uint32_t arc4random(void) {
  uint32_t bits;
  if (getentropy(&bits, sizeof bits) != 0) abort();
  return bits;
}

// C23's forms, which also read "0b1". The headers and libstdc++ of glibc 2.38 or newer call them for decimal numbers.
long older_strtol(const char*, char**, int) __asm__("strtol");
HIDDEN long __isoc23_strtol(const char* text, char** end, int base) { return older_strtol(text, end, base); }
unsigned long older_strtoul(const char*, char**, int) __asm__("strtoul");
HIDDEN unsigned long __isoc23_strtoul(const char* text, char** end, int base) { return older_strtoul(text, end, base); }

// glibc 2.29 gave these functions new versions without the error handling of SVID. The results are equal.
#if defined(__aarch64__)
#define FIRST_GLIBC "GLIBC_2.17"
#else
#define FIRST_GLIBC "GLIBC_2.2.5"
#endif
#define OLDER(function)                                                 \
  double older_##function(double);                                      \
  __asm__(".symver older_" #function "," #function "@" FIRST_GLIBC);     \
  HIDDEN double function(double x) { return older_##function(x); }
OLDER(log)
OLDER(log2)
