#include "modules/alloc/cuda/runtime/runtime.h"

// Built where there is no CUDA toolkit.
extern "C" const gridbuf_cuda_runtime* gridbuf_cuda_runtime_table(void) { return nullptr; }
