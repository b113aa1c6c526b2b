// A CUDA kernel that keeps a stream busy.
#ifndef GRIDBUF_DEVICE_TESTING_SPIN_H_
#define GRIDBUF_DEVICE_TESTING_SPIN_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Enqueues a kernel of this duration; a cudaError_t, 0 = done. Without the toolkit: 801, "not
// supported".
int gridbuf_cuda_spin(uint32_t milliseconds, uint64_t stream);

#ifdef __cplusplus
}
#endif

#endif  // GRIDBUF_DEVICE_TESTING_SPIN_H_
