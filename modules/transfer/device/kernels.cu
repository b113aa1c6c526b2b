// The kernels: the code of kernel_plan.h for every thread of a grid, and their launches.

#include "modules/transfer/device/kernel_plan.h"

#include <cuda_runtime_api.h>

// Not an unnamed namespace: nvcc would name it by a hash of this file's path, and two builds would
// differ.
namespace gridbuf::cuda_kernels {

using namespace gridbuf::kernel_code;

// Every kernel takes the plan as its argument (1.6 KiB of at most 4) and reads it in constant
// memory.
#define GRIDBUF_PLAN const __grid_constant__ gridbuf_kernel_plan plan

template <int kBytes>
__global__ void __launch_bounds__(kThreads) copy_units_kernel(GRIDBUF_PLAN) {
  copy_units<kBytes>(plan, uint64_t{blockIdx.x} * kThreads + threadIdx.x,
                     uint64_t{gridDim.x} * kThreads);
}

template <int kBytes>
__global__ void __launch_bounds__(kThreads) fill_units_kernel(GRIDBUF_PLAN) {
  fill_units<kBytes>(plan, uint64_t{blockIdx.x} * kThreads + threadIdx.x,
                     uint64_t{gridDim.x} * kThreads);
}

template <int kBytes>
__global__ void __launch_bounds__(kThreads) copy_tiles_kernel(GRIDBUF_PLAN) {
  __shared__ Unit<kBytes> items[kTileItems];
  for (uint64_t number = blockIdx.x; number < plan.count; number += gridDim.x) {
    const Tile tile = tile_of(plan, number);
    load_tile<kBytes>(plan, tile, items, threadIdx.x);
    __syncthreads();
    store_tile<kBytes>(plan, tile, items, threadIdx.x);
    __syncthreads();
  }
}

template <int kBytes>
const void* kernel_of(int kind) {
  return reinterpret_cast<const void*>(kind == GRIDBUF_COPY_UNITS   ? &copy_units_kernel<kBytes>
                                       : kind == GRIDBUF_COPY_TILES ? &copy_tiles_kernel<kBytes>
                                                                    : &fill_units_kernel<kBytes>);
}

const void* kernel_of(const gridbuf_kernel_plan& plan) {
  switch (plan.unit_bytes) {
    case 1:
      return kernel_of<1>(plan.kind);
    case 2:
      return kernel_of<2>(plan.kind);
    case 4:
      return kernel_of<4>(plan.kind);
    case 8:
      return kernel_of<8>(plan.kind);
    default:
      return kernel_of<16>(plan.kind);
  }
}

// As many blocks as there are tiles, or units of all threads, up to CUDA's bound.
dim3 grid_of(const gridbuf_kernel_plan& plan) {
  constexpr uint64_t kMostBlocks = (uint64_t{1} << 31) - 1;
  const uint64_t blocks =
      plan.kind == GRIDBUF_COPY_TILES ? plan.count : (plan.count + kThreads - 1) / kThreads;
  return dim3(static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks));
}

}  // namespace gridbuf::cuda_kernels

using namespace gridbuf::cuda_kernels;

extern "C" int gridbuf_kernel_launch(const gridbuf_kernel_plan* plan, uint64_t stream) {
  void* arguments[] = {const_cast<gridbuf_kernel_plan*>(plan)};
  const cudaError_t error = cudaLaunchKernel(kernel_of(*plan), grid_of(*plan), dim3(kThreads),
                                             arguments, 0, reinterpret_cast<cudaStream_t>(stream));
  // Clears CUDA's "last error", which another library would find.
  if (error != cudaSuccess) cudaGetLastError();
  return error;
}
