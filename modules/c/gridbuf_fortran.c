/* The part of gridbuf.f90 that is C: descriptors of Fortran arrays. The codes of types differ
 * between compilers, so your own compiler's ISO_Fortran_binding.h gives them, and CMake compiles
 * this file with your program. */
#define _DEFAULT_SOURCE
#include <ISO_Fortran_binding.h>
#include <errno.h>
#include <pthread.h>
#include <search.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gridbuf.h"

/* The kinds in Fortran: name, type code of a descriptor, element type. */
#define GRIDBUF_F_KINDS(EACH)                          \
  EACH(real32, CFI_type_float, "float32")              \
  EACH(real64, CFI_type_double, "float64")             \
  EACH(int32, CFI_type_int32_t, "int32")               \
  EACH(int64, CFI_type_int64_t, "int64")               \
  EACH(logical, CFI_type_Bool, "bool")                 \
  EACH(complex32, CFI_type_float_Complex, "complex64") \
  EACH(complex64, CFI_type_double_Complex, "complex128")

/* The element type of a descriptor, or NULL. */
static const char* dtype_of(const CFI_cdesc_t* array) {
#define GRIDBUF_F_DTYPE(kind, type_code, dtype) \
  if (array->type == type_code) return dtype;
  GRIDBUF_F_KINDS(GRIDBUF_F_DTYPE)
  return NULL;
}

static gridbuf_status refuse(char* text, gridbuf_status status, const char* name, const char* found,
                             const char* bound) {
  snprintf(text, 256, "%s is %s, but must be %s", name, found, bound);
  return status;
}

/* Points `pointer` to the elements of a side, with these lower bounds. `text` has 256 characters.
 */
static gridbuf_status point(const gridbuf_storage* storage, int32_t side, int32_t mode,
                            const int64_t* lower, CFI_cdesc_t* pointer, char* text) {
  gridbuf_info info;
  info.struct_bytes = sizeof info;
  text[0] = '\0';
  gridbuf_status status = gridbuf_storage_info(storage, side, &info);
  if (status != GRIDBUF_OK) return status;
  const char* dtype = dtype_of(pointer);
  if (dtype == NULL || strcmp(dtype, info.dtype) != 0) {
    return refuse(text, GRIDBUF_TYPE, "the pointer's type", dtype == NULL ? "another kind" : dtype,
                  info.dtype);
  }
  char ranks[2][8];
  snprintf(ranks[0], 8, "%d", (int)pointer->rank);
  snprintf(ranks[1], 8, "%d", (int)info.ndim);
  if (pointer->rank != info.ndim)
    return refuse(text, GRIDBUF_VALUE, "the pointer's rank", ranks[0], ranks[1]);
  void* data = NULL;
  status = gridbuf_storage_access(storage, side, mode, &data);
  if (status != GRIDBUF_OK) return status;
  CFI_CDESC_T(CFI_MAX_RANK) made;
  CFI_cdesc_t* source = (CFI_cdesc_t*)&made;
  CFI_index_t extents[CFI_MAX_RANK], bounds[CFI_MAX_RANK];
  for (int axis = 0; axis < info.ndim; ++axis) {
    extents[axis] = (CFI_index_t)info.shape[axis];
    bounds[axis] = (CFI_index_t)lower[axis];
  }
  int failed = CFI_establish(source, data, CFI_attribute_other, pointer->type,
                             (size_t)info.itemsize_bytes, pointer->rank, extents);
  for (int axis = 0; axis < info.ndim; ++axis)
    source->dim[axis].sm = (CFI_index_t)info.strides_bytes[axis];
  if (failed == CFI_SUCCESS)
    failed = CFI_setpointer(pointer, source, info.ndim > 0 ? bounds : NULL);
  if (failed == CFI_SUCCESS) return GRIDBUF_OK;
  return refuse(text, GRIDBUF_INTERNAL, "the result of CFI_setpointer", "an error", "CFI_SUCCESS");
}

/* An array over the memory of a Fortran array; `lower` gets its lower bounds. */
static gridbuf_status wrap(const CFI_cdesc_t* array, gridbuf_options* options, gridbuf_array** out,
                           int64_t* lower, char* text) {
  text[0] = '\0';
  *out = NULL;
  const char* dtype = dtype_of(array);
  if (dtype == NULL)
    return refuse(text, GRIDBUF_TYPE, "the array's type", "another kind",
                  "real, integer, complex or logical(c_bool)");
  if (array->base_addr == NULL)
    return refuse(text, GRIDBUF_VALUE, "the array", "not allocated or not associated", "an array");
  int64_t shape[CFI_MAX_RANK], strides[CFI_MAX_RANK];
  for (int axis = 0; axis < array->rank; ++axis) {
    shape[axis] = array->dim[axis].extent;
    strides[axis] = array->dim[axis].sm;
    lower[axis] = array->dim[axis].lower_bound;
  }
  options->ndim = array->rank;
  options->shape = shape;
  options->dtype = dtype;
  gridbuf_status status = gridbuf_array_wrap(array->base_addr, strides, options, NULL, NULL, out);
  options->shape = NULL;
  return status;
}

/* Another handle of the storage, with 1 minus the lower halo. */
gridbuf_status gridbuf_f_share(const gridbuf_storage* storage, int64_t* lower,
                               gridbuf_storage** out) {
  gridbuf_info info;
  info.struct_bytes = sizeof info;
  *out = NULL;
  gridbuf_status status = gridbuf_storage_info(storage, GRIDBUF_HOST, &info);
  if (status == GRIDBUF_NO_SUCH_BUFFER) {
    status = gridbuf_storage_info(storage, GRIDBUF_DEVICE, &info);
  }
  if (status != GRIDBUF_OK) return status;
  for (int32_t i = 0; i < info.ndim && i < CFI_MAX_RANK; ++i) lower[i] = 1 - info.lower_halo[i];
  return gridbuf_storage_view(storage, NULL, 0, out);
}

/* The handles of storages of Fortran. A compiler copies some storages bit by bit: only the first of
 * the copies that ends releases the handle. */
static void* kept;
static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;

static int order(const void* a, const void* b) { return (a > b) - (a < b); }

void gridbuf_f_keep(const gridbuf_storage* storage) {
  if (storage == NULL) return;
  pthread_mutex_lock(&kept_lock);
  tsearch(storage, &kept, order);
  pthread_mutex_unlock(&kept_lock);
}

/* Whether the handle was kept. */
int32_t gridbuf_f_forget(const gridbuf_storage* storage) {
  if (storage == NULL) return 0;
  pthread_mutex_lock(&kept_lock);
  const int32_t found = tdelete(storage, &kept, order) != NULL;
  pthread_mutex_unlock(&kept_lock);
  return found;
}

/* Whether a kept handle is at an address, which may be that of no memory: the kernel reads there
 * before it refuses the first argument. */
int32_t gridbuf_f_is_kept_at(gridbuf_storage* const* address) {
  if (syscall(SYS_rt_sigprocmask, -1L, address, NULL, 8L) == 0 || errno != EINVAL) return 0;
  pthread_mutex_lock(&kept_lock);
  const int32_t found = *address != NULL && tfind(*address, &kept, order) != NULL;
  pthread_mutex_unlock(&kept_lock);
  return found;
}

/* Handles that assignments have replaced on this thread. An assignment of overlapping sections of
 * one array still reads them, so that the next call of another procedure ends them. */
static _Thread_local struct replaced {
  gridbuf_storage* storage;
  struct replaced* next;
}* replaced;

void gridbuf_f_replace(gridbuf_storage* storage) {
  struct replaced* made = malloc(sizeof *made);
  if (made == NULL) {
    gridbuf_storage_release(storage);
    return;
  }
  made->storage = storage, made->next = replaced;
  replaced = made;
}

void gridbuf_f_end_replaced(void) {
  while (replaced != NULL) {
    struct replaced* ended = replaced;
    replaced = ended->next;
    gridbuf_storage_release(ended->storage);
    free(ended);
  }
}

/* A name for each kind, because the interfaces in Fortran differ. */
#define GRIDBUF_F_KIND(kind, type_code, dtype)                                                    \
  gridbuf_status gridbuf_f_point_##kind(const gridbuf_storage* storage, int32_t side,             \
                                        int32_t mode, const int64_t* lower, CFI_cdesc_t* pointer, \
                                        char* text) {                                             \
    return point(storage, side, mode, lower, pointer, text);                                      \
  }                                                                                               \
  gridbuf_status gridbuf_f_wrap_##kind(const CFI_cdesc_t* array, gridbuf_options* options,        \
                                       gridbuf_array** out, int64_t* lower, char* text) {         \
    return wrap(array, options, out, lower, text);                                                \
  }
GRIDBUF_F_KINDS(GRIDBUF_F_KIND)
