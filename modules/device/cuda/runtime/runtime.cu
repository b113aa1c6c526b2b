// Each entry of the table as one call of the CUDA runtime.

#include "modules/device/cuda/runtime/runtime.h"

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstring>

// Not an unnamed namespace: nvcc would name it by a hash of this file's path, and two builds would
// differ.
namespace gridbuf::cuda_runtime {

cudaStream_t stream_of(uint64_t handle) { return reinterpret_cast<cudaStream_t>(handle); }
cudaEvent_t event_of(void* event) { return static_cast<cudaEvent_t>(event); }

// Clears CUDA's "last error", which another library would find.
int done(cudaError_t error) {
  if (error != cudaSuccess) cudaGetLastError();
  return error;
}

const char* error_name(int error) { return cudaGetErrorName(static_cast<cudaError_t>(error)); }
const char* error_text(int error) { return cudaGetErrorString(static_cast<cudaError_t>(error)); }

// --- Devices -------------------------------------------------------------------------------------

int versions(int* runtime, int* driver) {
  const cudaError_t error = cudaRuntimeGetVersion(runtime);
  return done(error != cudaSuccess ? error : cudaDriverGetVersion(driver));
}

int device_count(int* count) { return done(cudaGetDeviceCount(count)); }
int get_device(int* device) { return done(cudaGetDevice(device)); }
int set_device(int device) { return done(cudaSetDevice(device)); }

int device_info(int device, gridbuf_cuda_device* info) {
  cudaDeviceProp properties;
  cudaError_t error = cudaGetDeviceProperties(&properties, device);
  if (error != cudaSuccess) return done(error);
  std::memset(info, 0, sizeof(*info));
  std::strncpy(info->name, properties.name, sizeof(info->name) - 1);
  info->compute_major = properties.major;
  info->compute_minor = properties.minor;
  info->memory_bytes = properties.totalGlobalMem;
  info->has_managed = properties.managedMemory;
  return done(cudaDeviceGetAttribute(&info->has_pools, cudaDevAttrMemoryPoolsSupported, device));
}

int memory_info(uint64_t* free_bytes, uint64_t* total_bytes) {
  size_t free_size = 0;
  size_t total_size = 0;
  const cudaError_t error = cudaMemGetInfo(&free_size, &total_size);
  *free_bytes = free_size;
  *total_bytes = total_size;
  return done(error);
}

// --- Memory --------------------------------------------------------------------------------------

int pool_keep(int device, uint64_t bytes) {
  cudaMemPool_t pool;
  cudaError_t error = cudaDeviceGetDefaultMemPool(&pool, device);
  if (error != cudaSuccess) return done(error);
  cuuint64_t present = 0;
  error = cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &present);
  if (error != cudaSuccess || present >= bytes) return done(error);
  cuuint64_t wanted = bytes;
  return done(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &wanted));
}

int pool_trim(int device) {
  cudaMemPool_t pool;
  const cudaError_t error = cudaDeviceGetDefaultMemPool(&pool, device);
  return done(error != cudaSuccess ? error : cudaMemPoolTrimTo(pool, 0));
}

int malloc_async(void** address, uint64_t length_bytes, uint64_t stream) {
  return done(cudaMallocAsync(address, length_bytes, stream_of(stream)));
}
int free_async(void* address, uint64_t stream) {
  return done(cudaFreeAsync(address, stream_of(stream)));
}
int malloc_now(void** address, uint64_t length_bytes) {
  return done(cudaMalloc(address, length_bytes));
}
int malloc_managed(void** address, uint64_t length_bytes) {
  return done(cudaMallocManaged(address, length_bytes, cudaMemAttachGlobal));
}
int free_now(void* address) { return done(cudaFree(address)); }
int host_alloc(void** address, uint64_t length_bytes) {
  return done(cudaHostAlloc(address, length_bytes, cudaHostAllocPortable));
}
int host_free(void* address) { return done(cudaFreeHost(address)); }
int host_register(void* address, uint64_t length_bytes) {
  return done(cudaHostRegister(address, length_bytes, cudaHostRegisterPortable));
}
int host_unregister(void* address) { return done(cudaHostUnregister(address)); }

// --- Work ----------------------------------------------------------------------------------------

int copy(void* target, const void* source, uint64_t length_bytes, uint64_t stream) {
  return done(cudaMemcpyAsync(target, source, length_bytes, cudaMemcpyDefault, stream_of(stream)));
}

int copy_rows(void* target, uint64_t target_pitch_bytes, const void* source,
              uint64_t source_pitch_bytes, uint64_t row_bytes, uint64_t row_count,
              uint64_t stream) {
  return done(cudaMemcpy2DAsync(target, target_pitch_bytes, source, source_pitch_bytes, row_bytes,
                                row_count, cudaMemcpyDefault, stream_of(stream)));
}

int fill(void* target, int value, uint64_t length_bytes, uint64_t stream) {
  return done(cudaMemsetAsync(target, value, length_bytes, stream_of(stream)));
}

// --- Streams and events --------------------------------------------------------------------------

int stream_create(uint64_t* stream, int non_blocking) {
  cudaStream_t created = nullptr;
  const cudaError_t error =
      cudaStreamCreateWithFlags(&created, non_blocking ? cudaStreamNonBlocking : cudaStreamDefault);
  *stream = reinterpret_cast<uint64_t>(created);
  return done(error);
}
int stream_destroy(uint64_t stream) { return done(cudaStreamDestroy(stream_of(stream))); }
int stream_synchronize(uint64_t stream) { return done(cudaStreamSynchronize(stream_of(stream))); }
int stream_query(uint64_t stream) { return done(cudaStreamQuery(stream_of(stream))); }

int stream_is_non_blocking(uint64_t stream, int* non_blocking) {
  unsigned int flags = 0;
  const cudaError_t error = cudaStreamGetFlags(stream_of(stream), &flags);
  *non_blocking = (flags & cudaStreamNonBlocking) != 0;
  return done(error);
}

int device_synchronize(void) { return done(cudaDeviceSynchronize()); }

int event_create(void** event) {
  cudaEvent_t created = nullptr;
  const cudaError_t error = cudaEventCreateWithFlags(&created, cudaEventDisableTiming);
  *event = created;
  return done(error);
}
int event_record(void* event, uint64_t stream) {
  return done(cudaEventRecord(event_of(event), stream_of(stream)));
}
int stream_wait(uint64_t stream, void* event) {
  return done(cudaStreamWaitEvent(stream_of(stream), event_of(event), 0));
}
int event_destroy(void* event) { return done(cudaEventDestroy(event_of(event))); }

// --- Addresses -----------------------------------------------------------------------------------

int device_type_of(cudaMemoryType type) {
  switch (type) {
    case cudaMemoryTypeHost:
      return 3;
    case cudaMemoryTypeDevice:
      return 2;
    case cudaMemoryTypeManaged:
      return 13;
    default:
      return 1;
  }
}

// Only CUDA's driver API can find the allocation around an address. The function is looked up by
// name, to avoid linking with libcuda.
int allocation_around(const void* address, gridbuf_cuda_pointer* pointer) {
  typedef CUresult (*AddressRange)(CUdeviceptr*, size_t*, CUdeviceptr);
  void* function = nullptr;
#if CUDART_VERSION >= 12050
  const cudaError_t error =
      cudaGetDriverEntryPointByVersion("cuMemGetAddressRange", &function, 12000, cudaEnableDefault);
#else
  const cudaError_t error =
      cudaGetDriverEntryPoint("cuMemGetAddressRange", &function, cudaEnableDefault);
#endif
  if (error != cudaSuccess || function == nullptr) return done(error);
  CUdeviceptr base = 0;
  size_t size = 0;
  const CUresult found = reinterpret_cast<AddressRange>(function)(
      &base, &size, reinterpret_cast<CUdeviceptr>(address));
  if (found != CUDA_SUCCESS) return 0;  // registered host memory: not reported
  pointer->base = base;
  pointer->length_bytes = size;
  return 0;
}

int pointer(const void* address, gridbuf_cuda_pointer* pointer) {
  cudaPointerAttributes attributes;
  const cudaError_t error = cudaPointerGetAttributes(&attributes, address);
  if (error != cudaSuccess) return done(error);
  std::memset(pointer, 0, sizeof(*pointer));
  pointer->device_type = device_type_of(attributes.type);
  pointer->device_id = pointer->device_type == 2 ? attributes.device : 0;
  return pointer->device_type == 1 ? 0 : allocation_around(address, pointer);
}

const gridbuf_cuda_runtime table = {GRIDBUF_CUDA_RUNTIME_ENTRIES};

}  // namespace gridbuf::cuda_runtime

using namespace gridbuf::cuda_runtime;

extern "C" const gridbuf_cuda_runtime* gridbuf_cuda_runtime_table(void) { return &table; }
