// The border between gridbuf's CUDA driver and the CUDA runtime: one table of plain C functions.
//
// nvcc does not compile C++20 modules, and machines without the toolkit lack CUDA headers. So only
// files behind this header name CUDA types. Each entry is one call of the runtime, without
// decisions; it returns cudaError_t as an int (0 = done). The decisions are in gridbuf.device.cuda,
// and its tests pass a fake table. Streams are handles as in gridbuf.device.
#ifndef GRIDBUF_DEVICE_CUDA_RUNTIME_RUNTIME_H_
#define GRIDBUF_DEVICE_CUDA_RUNTIME_RUNTIME_H_

#include <stdint.h>

// The errors that gridbuf tells apart, by their numbers in cudaError_t.
#define GRIDBUF_CUDA_DONE 0
#define GRIDBUF_CUDA_INVALID_VALUE 1
#define GRIDBUF_CUDA_NO_MEMORY 2
#define GRIDBUF_CUDA_INSUFFICIENT_DRIVER 35
#define GRIDBUF_CUDA_NO_DEVICE 100
#define GRIDBUF_CUDA_INVALID_HANDLE 400
#define GRIDBUF_CUDA_NOT_READY 600
#define GRIDBUF_CUDA_NOT_SUPPORTED 801

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  char name[256];
  int32_t compute_major, compute_minor;
  uint64_t memory_bytes;
  int32_t has_pools;    // cudaMallocAsync works
  int32_t has_managed;  // cudaMallocManaged works
} gridbuf_cuda_device;

typedef struct {
  int32_t device_type, device_id;  // DLPack's codes; 1: not known to CUDA
  uint64_t base, length_bytes;     // 0 if CUDA does not report them
} gridbuf_cuda_pointer;

typedef struct {
  const char* (*error_name)(int error);
  const char* (*error_text)(int error);

  int (*versions)(int* runtime, int* driver);  // 13000 for 13.0; driver 0: not installed
  int (*device_count)(int* count);             // starts the driver
  int (*get_device)(int* device);
  int (*set_device)(int device);
  int (*device_info)(int device, gridbuf_cuda_device* info);
  int (*memory_info)(uint64_t* free_bytes, uint64_t* total_bytes);  // of the current device

  // The default pool of a device keeps at least `bytes` when a stream is synchronised. A higher
  // existing setting stays.
  int (*pool_keep)(int device, uint64_t bytes);
  int (*pool_trim)(int device);
  int (*malloc_async)(void** address, uint64_t length_bytes, uint64_t stream);
  int (*free_async)(void* address, uint64_t stream);
  int (*malloc_now)(void** address, uint64_t length_bytes);
  int (*malloc_managed)(void** address, uint64_t length_bytes);
  int (*free_now)(void* address);
  int (*host_alloc)(void** address, uint64_t length_bytes);
  int (*host_free)(void* address);
  int (*host_register)(void* address, uint64_t length_bytes);
  int (*host_unregister)(void* address);

  int (*copy)(void* target, const void* source, uint64_t length_bytes, uint64_t stream);
  int (*copy_rows)(void* target, uint64_t target_pitch_bytes, const void* source,
                   uint64_t source_pitch_bytes, uint64_t row_bytes, uint64_t row_count,
                   uint64_t stream);
  int (*fill)(void* target, int value, uint64_t length_bytes, uint64_t stream);

  int (*stream_create)(uint64_t* stream, int non_blocking);
  int (*stream_destroy)(uint64_t stream);
  int (*stream_synchronize)(uint64_t stream);
  int (*stream_query)(uint64_t stream);  // GRIDBUF_CUDA_NOT_READY while busy
  int (*stream_is_non_blocking)(uint64_t stream, int* non_blocking);
  int (*device_synchronize)(void);

  int (*event_create)(void** event);
  int (*event_record)(void* event, uint64_t stream);
  int (*stream_wait)(uint64_t stream, void* event);
  int (*event_destroy)(void* event);

  int (*pointer)(const void* address, gridbuf_cuda_pointer* pointer);
} gridbuf_cuda_runtime;

// The names of all entries, in order. A table consists of functions with these names.
#define GRIDBUF_CUDA_RUNTIME_ENTRIES                                                           \
  error_name, error_text, versions, device_count, get_device, set_device, device_info,         \
      memory_info, pool_keep, pool_trim, malloc_async, free_async, malloc_now, malloc_managed, \
      free_now, host_alloc, host_free, host_register, host_unregister, copy, copy_rows, fill,  \
      stream_create, stream_destroy, stream_synchronize, stream_query, stream_is_non_blocking, \
      device_synchronize, event_create, event_record, stream_wait, event_destroy, pointer

// The table of the CUDA runtime, or null if gridbuf was built without the toolkit. Does not call
// CUDA.
const gridbuf_cuda_runtime* gridbuf_cuda_runtime_table(void);

#ifdef __cplusplus
}
#endif

#endif  // GRIDBUF_DEVICE_CUDA_RUNTIME_RUNTIME_H_
