#include "modules/device/testing/spin.h"

// Built without a CUDA toolkit.
extern "C" int gridbuf_cuda_spin(uint32_t /*milliseconds*/, uint64_t /*stream*/) { return 801; }
