// The kernels: what moves.h says, for every thread of a grid, and their launches.

#include "modules/transfer/device/moves.h"

#include <cuda_runtime_api.h>

namespace {

using gridbuf::moves::kThreads;
using gridbuf::moves::kTileBytes;
using gridbuf::moves::Tile;

// Every kernel takes the move itself as its argument (2.5 KiB of the 4 that there are), and reads
// it where the launch has put it.
#define GRIDBUF_MOVE const __grid_constant__ gridbuf_move move

template <int kBytes>
__global__ void __launch_bounds__(kThreads) copy_units(GRIDBUF_MOVE) {
  for (uint64_t work = blockIdx.x; work < move.work_blocks; work += gridDim.x) {
    gridbuf::moves::copy_units<kBytes>(move, work, threadIdx.x);
  }
}

template <int kBytes>
__global__ void __launch_bounds__(kThreads) fill_units(GRIDBUF_MOVE) {
  for (uint64_t work = blockIdx.x; work < move.work_blocks; work += gridDim.x) {
    gridbuf::moves::fill_units<kBytes>(move, work, threadIdx.x);
  }
}

__global__ void __launch_bounds__(kThreads) copy_chunks(GRIDBUF_MOVE) {
  for (uint64_t work = blockIdx.x; work < move.work_blocks; work += gridDim.x) {
    gridbuf::moves::copy_chunks(move, work, threadIdx.x);
  }
}

__global__ void __launch_bounds__(kThreads) fill_chunks(GRIDBUF_MOVE) {
  for (uint64_t work = blockIdx.x; work < move.work_blocks; work += gridDim.x) {
    gridbuf::moves::fill_chunks(move, work, threadIdx.x);
  }
}

template <int kItem>
__global__ void __launch_bounds__(kThreads, 4) copy_tiles(GRIDBUF_MOVE) {
  __shared__ alignas(16) uint8_t memory[kTileBytes];
  for (uint64_t work = blockIdx.x; work < move.work_blocks; work += gridDim.x) {
    const Tile tile = gridbuf::moves::tile_of(move, work);
    gridbuf::moves::load_tile_of<kItem>(move, tile, memory, threadIdx.x);
    __syncthreads();
    gridbuf::moves::store_tile_of<kItem>(move, tile, memory, threadIdx.x);
    __syncthreads();
  }
}

using Kernel = void (*)(gridbuf_move);

#define GRIDBUF_BY_BYTES(kernel, bytes) \
  (bytes) == 1   ? kernel<1>            \
  : (bytes) == 2 ? kernel<2>            \
  : (bytes) == 4 ? kernel<4>            \
  : (bytes) == 8 ? kernel<8>            \
                 : kernel<16>

Kernel kernel_of(const gridbuf_move& move) {
  switch (move.kind) {
    case GRIDBUF_COPY_UNITS:
      return GRIDBUF_BY_BYTES(copy_units, move.unit_bytes);
    case GRIDBUF_COPY_TILES:
      return GRIDBUF_BY_BYTES(copy_tiles, move.unit_bytes);
    case GRIDBUF_FILL_UNITS:
      return GRIDBUF_BY_BYTES(fill_units, move.unit_bytes);
    case GRIDBUF_COPY_CHUNKS:
      return copy_chunks;
    default:
      return fill_chunks;
  }
}

}  // namespace

extern "C" int gridbuf_move_launch(const gridbuf_move* move, uint64_t stream) {
  void* arguments[] = {const_cast<gridbuf_move*>(move)};
  const cudaError_t error =
      cudaLaunchKernel(reinterpret_cast<const void*>(kernel_of(*move)), dim3(move->grid_blocks),
                       dim3(kThreads), arguments, 0, reinterpret_cast<cudaStream_t>(stream));
  // A failure is ours to report: it must not stay behind as another library's "last error".
  if (error != cudaSuccess) cudaGetLastError();
  return error;
}
