#include "gtest/gtest.h"
#include "modules/transfer/device/kernel_plan.h"

namespace {

TEST(MovesStub, SaysThatThereAreNoKernels) {
  const gridbuf_kernel_plan plan = {};
  EXPECT_EQ(gridbuf_kernel_launch(&plan, 1), 801);
}

}  // namespace
