#include "modules/device/cuda/runtime/runtime.h"

#include <cstddef>
#include <cstring>
#include <string>

#include "gtest/gtest.h"

namespace {

// The fields of functions are adjacent; a missing entry is null.
TEST(CudaRuntime, HasEveryEntry) {
  const gridbuf_cuda_runtime* table = gridbuf_cuda_runtime_table();
  if (table == nullptr) GTEST_SKIP() << "NOT RUN: built without the CUDA toolkit";
  const auto* entries = reinterpret_cast<void* const*>(table);
  for (std::size_t i = 0; i < sizeof(*table) / sizeof(void*); ++i) {
    EXPECT_NE(entries[i], nullptr) << i;
  }
}

// Calls that work without a driver. Only a GPU (gpu_test) shows that each entry is the call of its
// name.
TEST(CudaRuntime, KnowsItsErrorsAndVersions) {
  const gridbuf_cuda_runtime* table = gridbuf_cuda_runtime_table();
  if (table == nullptr) GTEST_SKIP() << "NOT RUN: built without the CUDA toolkit";
  EXPECT_EQ(std::string(table->error_name(GRIDBUF_CUDA_NO_MEMORY)), "cudaErrorMemoryAllocation");
  EXPECT_EQ(std::string(table->error_name(GRIDBUF_CUDA_INVALID_VALUE)), "cudaErrorInvalidValue");
  EXPECT_EQ(std::string(table->error_name(GRIDBUF_CUDA_INSUFFICIENT_DRIVER)),
            "cudaErrorInsufficientDriver");
  EXPECT_EQ(std::string(table->error_name(GRIDBUF_CUDA_NO_DEVICE)), "cudaErrorNoDevice");
  EXPECT_EQ(std::string(table->error_name(GRIDBUF_CUDA_INVALID_HANDLE)),
            "cudaErrorInvalidResourceHandle");
  EXPECT_EQ(std::string(table->error_name(GRIDBUF_CUDA_NOT_READY)), "cudaErrorNotReady");
  EXPECT_EQ(std::string(table->error_name(GRIDBUF_CUDA_NOT_SUPPORTED)), "cudaErrorNotSupported");
  EXPECT_GT(std::strlen(table->error_text(GRIDBUF_CUDA_NO_MEMORY)), 0U);
  int runtime = 0;
  int driver = 0;
  EXPECT_EQ(table->versions(&runtime, &driver), GRIDBUF_CUDA_DONE);
  EXPECT_GE(runtime, 12050);
}

TEST(CudaRuntime, DescribesTheFirstDevice) {
  const gridbuf_cuda_runtime* table = gridbuf_cuda_runtime_table();
  if (table == nullptr) GTEST_SKIP() << "NOT RUN: built without the CUDA toolkit";
  int count = 0;
  const int error = table->device_count(&count);
  if (error != GRIDBUF_CUDA_DONE || count == 0) {
    GTEST_SKIP() << "NOT RUN, no GPU: " << table->error_name(error);
  }
  gridbuf_cuda_device info{};
  EXPECT_EQ(table->device_info(0, &info), GRIDBUF_CUDA_DONE);
  EXPECT_GT(info.memory_bytes, 0U);
}

}  // namespace
