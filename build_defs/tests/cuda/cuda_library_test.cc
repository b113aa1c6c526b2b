#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "build_defs/tests/cuda/scale.h"

namespace {

// cudaErrorInsufficientDriver and cudaErrorNoDevice: the code was built, but this machine has no
// GPU to run it on.
constexpr int kInsufficientDriver = 35;
constexpr int kNoDevice = 100;

TEST(CudaLibrary, LinksAndAnswers) {
  std::vector<float> values = {1, 2, 3};
  const int error = gridbuf_test_cuda_double(values.data(), static_cast<int>(values.size()));
  if (error == kInsufficientDriver || error == kNoDevice) {
    EXPECT_EQ(values, (std::vector<float>{1, 2, 3}));
    GTEST_SKIP() << "no CUDA device here (error " << error << ", CUDA code "
                 << (gridbuf_test_cuda_built() ? "built" : "not built")
                 << "); linked, loaded and refused cleanly, the kernel was not run";
  }
  ASSERT_EQ(error, 0);
  EXPECT_EQ(values, (std::vector<float>{2, 4, 6}));
}

}  // namespace
