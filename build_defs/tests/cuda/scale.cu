#include <cuda_runtime_api.h>

#include "build_defs/tests/cuda/scale.h"

namespace {
__global__ void double_values(float* values, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] *= 2;
}
}  // namespace

extern "C" int gridbuf_test_cuda_built(void) { return 1; }

extern "C" int gridbuf_test_cuda_double(float* host_values, int count) {
  float* device_values = nullptr;
  const auto bytes = sizeof(float) * count;
  cudaError_t error = cudaMalloc(reinterpret_cast<void**>(&device_values), bytes);
  if (error != cudaSuccess) return error;
  error = cudaMemcpy(device_values, host_values, bytes, cudaMemcpyHostToDevice);
  if (error == cudaSuccess) {
    double_values<<<(count + 255) / 256, 256>>>(device_values, count);
    error = cudaGetLastError();
  }
  if (error == cudaSuccess)
    error = cudaMemcpy(host_values, device_values, bytes, cudaMemcpyDeviceToHost);
  const cudaError_t freed = cudaFree(device_values);
  return error != cudaSuccess ? error : freed;
}
