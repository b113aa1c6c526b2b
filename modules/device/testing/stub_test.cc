#include "gtest/gtest.h"
#include "modules/device/testing/spin.h"

namespace {

TEST(SpinStub, SaysThatThereIsNoCuda) { EXPECT_EQ(gridbuf_cuda_spin(0, 1), 801); }

}  // namespace
