/* The C interface as a program uses it: no Python, and nothing but the header. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "modules/c/gridbuf.h"

#define REQUIRE(condition)                                                              \
  do {                                                                                  \
    if (!(condition)) {                                                                 \
      fprintf(stderr, "line %d: " #condition ": %s\n", __LINE__, gridbuf_last_error()); \
      exit(1);                                                                          \
    }                                                                                   \
  } while (0)
#define OK(call) REQUIRE((call) == GRIDBUF_OK)

static int released = 0;
static void count_release(void* context) {
  ++released;
  free(context);
}

/* A model's field on both sides: written on the host, used on the (emulated) device. */
static void use_a_storage(void) {
  int32_t before = 0;
  OK(gridbuf_use_emulated_device(1, &before));
  OK(gridbuf_check_device());
  const int64_t shape[3] = {6, 5, 4}, halo[6] = {1, 1, 1, 1, 0, 0};
  gridbuf_options options = GRIDBUF_OPTIONS_INIT;
  options.ndim = 3;
  options.shape = shape;
  options.halo = halo;
  options.backend = "gt:gpu";
  gridbuf_storage* field = NULL;
  OK(gridbuf_storage_create(&options, &field));
  gridbuf_info info;
  info.struct_bytes = sizeof info;
  OK(gridbuf_storage_info(field, GRIDBUF_HOST, &info));
  REQUIRE(info.kind == GRIDBUF_STORAGE_BOTH && strcmp(info.dtype, "float64") == 0);
  void* data = NULL;
  OK(gridbuf_storage_access(field, GRIDBUF_HOST, GRIDBUF_WRITE, &data));
  for (int64_t i = 0; i < 6; ++i) {
    for (int64_t j = 0; j < 5; ++j) {
      for (int64_t k = 0; k < 4; ++k) {
        *(double*)(void*)((char*)data + i * info.strides_bytes[0] + j * info.strides_bytes[1] +
                          k * info.strides_bytes[2]) = (double)(100 * i + 10 * j + k);
      }
    }
  }
  gridbuf_array* device = NULL;
  OK(gridbuf_storage_array(field, GRIDBUF_DEVICE, 1, &device));
  gridbuf_array* host = NULL;
  OK(gridbuf_array_copy(device, GRIDBUF_MEMORY_HOST, &host));
  OK(gridbuf_array_info(host, &info));
  REQUIRE(*(double*)(void*)((char*)info.data + 5 * info.strides_bytes[0] +
                            4 * info.strides_bytes[1] + 3 * info.strides_bytes[2]) == 543.0);
  OK(gridbuf_array_release(host));
  OK(gridbuf_array_release(device));
  REQUIRE(gridbuf_storage_access(field, 7, GRIDBUF_READ, &data) == GRIDBUF_VALUE);
  REQUIRE(strstr(gridbuf_last_error(), "side is 7") != NULL);
  OK(gridbuf_storage_release(field));
  OK(gridbuf_use_emulated_device(before, NULL));
}

int main(void) {
  REQUIRE(gridbuf_abi() == GRIDBUF_ABI && gridbuf_last_error()[0] == '\0');
  const int64_t shape[2] = {3, 4};
  gridbuf_options options = GRIDBUF_OPTIONS_INIT;
  options.ndim = 2;
  options.shape = shape;
  options.dtype = "float32";
  float* memory = (float*)malloc(12 * sizeof(float));
  REQUIRE(memory != NULL);
  gridbuf_array* array = NULL;
  OK(gridbuf_array_wrap(memory, NULL, &options, count_release, memory, &array));
  const float one = 1.0F;
  OK(gridbuf_array_fill(array, &one));
  gridbuf_item row = {GRIDBUF_INDEX_AT, 0, -1, 0, 0};
  gridbuf_array* last = NULL;
  OK(gridbuf_array_view(array, &row, 1, &last));
  OK(gridbuf_array_release(array));
  const float two = 2.0F;
  OK(gridbuf_array_fill(last, &two));
  REQUIRE(memory[0] == 1.0F && memory[8] == 2.0F && released == 0);
  struct DLManagedTensorVersioned* tensor = NULL;
  OK(gridbuf_array_to_dlpack(last, &tensor));
  OK(gridbuf_array_release(last));
  OK(gridbuf_array_from_dlpack(tensor, NULL, &array));
  REQUIRE(released == 0);
  OK(gridbuf_array_release(array));
  REQUIRE(released == 1);
  REQUIRE(gridbuf_array_create(NULL, &array) == GRIDBUF_VALUE && array == NULL);
  use_a_storage();
  return 0;
}
