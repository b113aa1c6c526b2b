// The kernels: the code of kernel_plan.h for every thread of a grid, and their launches.

#include "modules/transfer/device/kernel_plan.h"

#include <cuda_runtime_api.h>

// Not an unnamed namespace: nvcc would name it by a hash of this file's path, and two builds would
// differ.
namespace gridbuf::cuda_kernels {

using gridbuf::kernel_code::kThreads;
using gridbuf::kernel_code::kTileBytes;
using gridbuf::kernel_code::Tile;

// Every kernel takes the plan as its argument (2.5 KiB of at most 4) and reads it in constant
// memory.
#define GRIDBUF_PLAN const __grid_constant__ gridbuf_kernel_plan plan

#define GRIDBUF_KERNEL(kernel, function)                                           \
  __global__ void __launch_bounds__(kThreads) kernel(GRIDBUF_PLAN) {               \
    for (uint64_t work = blockIdx.x; work < plan.work_blocks; work += gridDim.x) { \
      gridbuf::kernel_code::function(plan, work, threadIdx.x);                     \
    }                                                                              \
  }

template <int kBytes>
GRIDBUF_KERNEL(copy_units, copy_units<kBytes>);
template <int kBytes>
GRIDBUF_KERNEL(fill_units, fill_units<kBytes>);
GRIDBUF_KERNEL(copy_chunks, copy_chunks);
GRIDBUF_KERNEL(fill_chunks, fill_chunks);

template <int kItem>
__global__ void __launch_bounds__(kThreads, 4) copy_tiles(GRIDBUF_PLAN) {
  __shared__ alignas(16) uint8_t memory[kTileBytes];
  for (uint64_t work = blockIdx.x; work < plan.work_blocks; work += gridDim.x) {
    const Tile tile = gridbuf::kernel_code::tile_of(plan, work);
    gridbuf::kernel_code::load_tile_of<kItem>(plan, tile, memory, threadIdx.x);
    __syncthreads();
    gridbuf::kernel_code::store_tile_of<kItem>(plan, tile, memory, threadIdx.x);
    __syncthreads();
  }
}

using Kernel = void (*)(gridbuf_kernel_plan);

#define GRIDBUF_BY_BYTES(kernel, bytes) \
  (bytes) == 1   ? kernel<1>            \
  : (bytes) == 2 ? kernel<2>            \
  : (bytes) == 4 ? kernel<4>            \
  : (bytes) == 8 ? kernel<8>            \
                 : kernel<16>

Kernel kernel_of(const gridbuf_kernel_plan& plan) {
  switch (plan.kind) {
    case GRIDBUF_COPY_UNITS:
      return GRIDBUF_BY_BYTES(copy_units, plan.unit_bytes);
    case GRIDBUF_COPY_TILES:
      return GRIDBUF_BY_BYTES(copy_tiles, plan.unit_bytes);
    case GRIDBUF_FILL_UNITS:
      return GRIDBUF_BY_BYTES(fill_units, plan.unit_bytes);
    case GRIDBUF_COPY_CHUNKS:
      return copy_chunks;
    default:
      return fill_chunks;
  }
}

}  // namespace gridbuf::cuda_kernels

using namespace gridbuf::cuda_kernels;

extern "C" int gridbuf_kernel_launch(const gridbuf_kernel_plan* plan, uint64_t stream) {
  void* arguments[] = {const_cast<gridbuf_kernel_plan*>(plan)};
  const cudaError_t error =
      cudaLaunchKernel(reinterpret_cast<const void*>(kernel_of(*plan)), dim3(plan->grid_blocks),
                       dim3(kThreads), arguments, 0, reinterpret_cast<cudaStream_t>(stream));
  // Clears CUDA's "last error", which another library would find.
  if (error != cudaSuccess) cudaGetLastError();
  return error;
}
