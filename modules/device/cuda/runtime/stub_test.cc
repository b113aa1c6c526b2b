#include "gtest/gtest.h"
#include "modules/device/cuda/runtime/runtime.h"

namespace {

TEST(CudaRuntimeStub, SaysThatThereIsNoCuda) { EXPECT_EQ(gridbuf_cuda_runtime_table(), nullptr); }

}  // namespace
