/* Of fields_test.f90: the work of a device on dense elements of float64, which only the device can
 * reach. */
#include "gridbuf.h"

static gridbuf_array* at(void* address, int64_t count) {
  gridbuf_options options = GRIDBUF_OPTIONS_INIT;
  gridbuf_array* array = NULL;
  options.ndim = 1, options.shape = &count, options.memory = GRIDBUF_MEMORY_CUDA;
  gridbuf_array_wrap(address, NULL, &options, NULL, NULL, &array);
  return array;
}

int fields_fill(void* address, int64_t count, double value) {
  gridbuf_array* array = at(address, count);
  const gridbuf_status status = gridbuf_array_fill(array, &value);
  gridbuf_array_wait(array);
  gridbuf_array_release(array);
  return status;
}

/* How many elements are equal to the value, or -1. */
int64_t fields_count(void* address, int64_t count, double value) {
  gridbuf_array *array = at(address, count), *copy = NULL;
  int64_t found = -1;
  gridbuf_info info;
  info.struct_bytes = sizeof info;
  if (gridbuf_array_copy(array, GRIDBUF_MEMORY_HOST, &copy) == GRIDBUF_OK &&
      gridbuf_array_wait(copy) == GRIDBUF_OK && gridbuf_array_info(copy, &info) == GRIDBUF_OK) {
    found = 0;
    for (int64_t i = 0; i < count; ++i) found += ((double*)info.data)[i] == value;
  }
  gridbuf_array_release(copy);
  gridbuf_array_release(array);
  return found;
}
