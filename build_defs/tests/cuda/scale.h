// The C border between a CUDA source, its stub, and C++.
#ifndef GRIDBUF_BUILD_DEFS_TESTS_CUDA_SCALE_H_
#define GRIDBUF_BUILD_DEFS_TESTS_CUDA_SCALE_H_

extern "C" {
// 1 where CUDA code was built in, else 0.
int gridbuf_test_cuda_built(void);
// Doubles `count` floats on the current device; returns the CUDA error code (0: done; 100: no
// device).
int gridbuf_test_cuda_double(float* host_values, int count);
}

#endif  // GRIDBUF_BUILD_DEFS_TESTS_CUDA_SCALE_H_
