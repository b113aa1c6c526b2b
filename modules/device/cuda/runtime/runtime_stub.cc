#include "modules/device/cuda/runtime/runtime.h"

// Built without a CUDA toolkit.
extern "C" const gridbuf_cuda_runtime* gridbuf_cuda_runtime_table(void) { return nullptr; }
