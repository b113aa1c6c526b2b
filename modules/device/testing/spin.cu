#include "modules/device/testing/spin.h"

#include <cuda_runtime_api.h>

// Not an unnamed namespace: nvcc would name it by a hash of this file's path, and two builds would
// differ.
namespace gridbuf::cuda_spin {

__device__ unsigned long long nanoseconds() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}

__global__ void spin_kernel(unsigned long long duration_nanoseconds) {
  const unsigned long long begin = nanoseconds();
  while (nanoseconds() - begin < duration_nanoseconds) {
  }
}

}  // namespace gridbuf::cuda_spin

using namespace gridbuf::cuda_spin;

extern "C" int gridbuf_cuda_spin(uint32_t milliseconds, uint64_t stream) {
  spin_kernel<<<1, 1, 0, reinterpret_cast<cudaStream_t>(stream)>>>(milliseconds * 1000000ULL);
  // Clears CUDA's "last error", which another library would find.
  return cudaGetLastError();
}
