// Symbols that objects compiled with a newer glibc ask for and glibc 2.31, which extensions are linked against, does not have.

// Read by libstdc++'s shared_ptr: whether it may count references without atomic operations. "No" is always right.
char __libc_single_threaded __attribute__((visibility("hidden"))) = 0;
