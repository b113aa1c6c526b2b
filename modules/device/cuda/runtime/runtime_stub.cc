#include "modules/device/cuda/runtime/runtime.h"

// Built without a CUDA toolkit.
extern "C" const gridbuf_cuda_runtime* gridbuf_cuda_runtime_table(void) { return nullptr; }

extern "C" int gridbuf_cuda_spin(uint32_t /*milliseconds*/, uint64_t /*stream*/) {
  return GRIDBUF_CUDA_NOT_SUPPORTED;
}
