#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "modules/device/cuda/runtime/runtime.h"
#include "modules/device/testing/spin.h"

import gridbuf.alloc;
import gridbuf.alloc.testing;
import gridbuf.base;
import gridbuf.device;
import gridbuf.device.cuda;

// The driver on a GPU. Without a GPU every test here is skipped with a message, and its checks are
// not done.

namespace gridbuf {
namespace {

#define GRIDBUF_NEEDS_GPU()                                                                      \
  const absl::StatusOr<CudaDriver*> found = cuda_driver();                                       \
  if (!found.ok()) {                                                                             \
    ASSERT_EQ(error_class_of(found.status()), ErrorClass::kDeviceUnavailable) << found.status(); \
    GTEST_SKIP() << "NOT RUN, no GPU: " << found.status().message();                             \
  }                                                                                              \
  [[maybe_unused]] CudaDriver& driver = **found

// Runs on every machine: built, linked, loaded, and refused or started cleanly.
TEST(Cuda, StartsOrSaysWhatIsMissing) {
  for (const auto& [key, text] : cuda_info()) std::cout << key << ": " << text << "\n";
  const absl::StatusOr<CudaDriver*> driver = cuda_driver();
  EXPECT_EQ(driver.ok(), started_cuda_driver() != nullptr);
  if (driver.ok()) return;
  EXPECT_EQ(error_class_of(driver.status()), ErrorClass::kDeviceUnavailable);
  EXPECT_NE(driver.status().message().find("; "), std::string::npos) << driver.status();
}

class DeviceAccess final : public testing::ByteAccess {
 public:
  explicit DeviceAccess(CudaDriver& driver) : driver_(driver) {}
  void fill(std::byte* begin, std::int64_t length_bytes, std::byte value) override {
    check(driver_.fill(begin, value, length_bytes, kLegacyDefaultStream));
    check(driver_.synchronize(kLegacyDefaultStream));
  }
  bool holds(const std::byte* begin, std::int64_t length_bytes, std::byte value) override {
    std::vector<std::byte> bytes(static_cast<std::size_t>(length_bytes));
    check(driver_.copy(bytes.data(), begin, length_bytes, kLegacyDefaultStream));
    check(driver_.synchronize(kLegacyDefaultStream));
    return std::all_of(bytes.begin(), bytes.end(),
                       [value](std::byte byte) { return byte == value; });
  }

 private:
  static void check(const absl::Status& status) { EXPECT_TRUE(status.ok()) << status; }
  CudaDriver& driver_;
};

struct ContractCase {
  MemoryKind kind;
  testing::ContractCheck check;
};

std::vector<ContractCase> contract_cases() {
  std::vector<ContractCase> cases;
  for (const MemoryKind kind : {MemoryKind::kPinned, MemoryKind::kManaged, MemoryKind::kDevice}) {
    for (const testing::ContractCheck& check : testing::resource_contract()) {
      cases.push_back({kind, check});
    }
  }
  return cases;
}

class CudaContract : public ::testing::TestWithParam<ContractCase> {};

TEST_P(CudaContract, Holds) {
  GRIDBUF_NEEDS_GPU();
  DeviceAccess bytes(driver);
  for (const std::string& violation :
       GetParam().check.run(driver.resource(GetParam().kind), bytes)) {
    ADD_FAILURE() << violation;
  }
}

INSTANTIATE_TEST_SUITE_P(Cuda, CudaContract, ::testing::ValuesIn(contract_cases()),
                         [](const auto& info) {
                           return std::string(to_string(info.param.kind)) + "_" +
                                  std::string(info.param.check.name);
                         });

Block allocate(CudaDriver& driver, MemoryKind kind, std::int64_t length_bytes) {
  absl::StatusOr<Block> block = driver.resource(kind).allocate({.total_bytes = length_bytes});
  EXPECT_TRUE(block.ok()) << block.status();
  return *std::move(block);
}

TEST(CudaGpu, CopiesRowsThereAndBack) {
  GRIDBUF_NEEDS_GPU();
  std::vector<std::byte> sent(64 * 10);
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<std::byte>(i);
  std::vector<std::byte> received(64 * 10, std::byte{0xEE});
  const Block device = allocate(driver, MemoryKind::kDevice, 128 * 10);
  ASSERT_TRUE(driver.copy_rows({device.data(), 128, sent.data(), 64, 48, 10}, 1).ok());
  ASSERT_TRUE(driver.copy_rows({received.data(), 64, device.data(), 128, 48, 10}, 1).ok());
  ASSERT_TRUE(driver.synchronize(1).ok());
  for (std::size_t i = 0; i < sent.size(); ++i) {
    ASSERT_EQ(received[i], i % 64 < 48 ? sent[i] : std::byte{0xEE}) << i;
  }
}

TEST(CudaGpu, AnOrderedConsumerSeesTheProducersBytes) {
  GRIDBUF_NEEDS_GPU();
  const StreamHandle producer = *driver.create_stream(StreamKind::kNonBlocking);
  const StreamHandle consumer = *driver.create_stream(StreamKind::kNonBlocking);
  const Block device = allocate(driver, MemoryKind::kDevice, 1 << 20);
  const Block pinned = allocate(driver, MemoryKind::kPinned, 1 << 20);
  ASSERT_TRUE(driver.order_after(kLegacyDefaultStream, producer).ok());
  ASSERT_EQ(gridbuf_cuda_spin(50, producer), GRIDBUF_CUDA_DONE);
  ASSERT_TRUE(driver.fill(device.data(), std::byte{7}, 1 << 20, producer).ok());
  EXPECT_FALSE(*driver.is_idle(producer));
  ASSERT_TRUE(driver.order_after(producer, consumer).ok());
  ASSERT_TRUE(driver.copy(pinned.data(), device.data(), 1 << 20, consumer).ok());
  ASSERT_TRUE(driver.synchronize(consumer).ok());
  EXPECT_EQ(pinned.data()[(1 << 20) - 1], std::byte{7});
  ASSERT_TRUE(driver.destroy_stream(producer).ok());
  ASSERT_TRUE(driver.destroy_stream(consumer).ok());
}

TEST(CudaGpu, KnowsPointersOfEveryKind) {
  GRIDBUF_NEEDS_GPU();
  const std::array<std::pair<MemoryKind, DeviceType>, 3> kinds{
      {{MemoryKind::kPinned, DeviceType::kCudaHost},
       {MemoryKind::kManaged, DeviceType::kCudaManaged},
       {MemoryKind::kDevice, DeviceType::kCuda}}};
  for (const auto& [kind, type] : kinds) {
    const Block block = allocate(driver, kind, 1000);
    const PointerInfo info = *driver.pointer_info(block.data() + 10);
    EXPECT_EQ(info.device.type, type);
    EXPECT_EQ(info.host_accessible, kind != MemoryKind::kDevice);
    EXPECT_LE(info.base, reinterpret_cast<std::uintptr_t>(block.data()));
    EXPECT_GE(info.length_bytes, 1000);
  }
  int local = 0;
  EXPECT_EQ(driver.pointer_info(&local)->device.type, DeviceType::kHost);
}

TEST(CudaGpu, OutOfMemoryIsAStatusAndTheDriverGoesOn) {
  GRIDBUF_NEEDS_GPU();
  const auto block =
      driver.resource(MemoryKind::kDevice).allocate({.total_bytes = INT64_C(1) << 45});
  EXPECT_EQ(error_class_of(block.status()), ErrorClass::kMemory) << block.status();
  allocate(driver, MemoryKind::kDevice, 1000);
}

TEST(CudaGpu, ThreeGibibytesAreServedToTheLastByte) {
  GRIDBUF_NEEDS_GPU();
  const std::int64_t length = std::int64_t{3} << 30;
  const Block block = allocate(driver, MemoryKind::kDevice, length);
  ASSERT_TRUE(driver.fill(block.data() + length - 1, std::byte{5}, 1, 1).ok());
  std::byte last{};
  ASSERT_TRUE(driver.copy(&last, block.data() + length - 1, 1, 1).ok());
  ASSERT_TRUE(driver.synchronize(1).ok());
  EXPECT_EQ(last, std::byte{5});
}

// Ends the process in several ways with memory and a stream alive.
[[noreturn]] void end_with_live_memory(int way) {
  const absl::StatusOr<CudaDriver*> driver = cuda_driver();
  if (!driver.ok()) _exit(3);
  static Block global = allocate(**driver, MemoryKind::kDevice, 1 << 20);
  static Block pinned = allocate(**driver, MemoryKind::kPinned, 1 << 20);
  gridbuf_cuda_spin(100, 2);
  static_cast<void>((*driver)->fill(global.data(), std::byte{1}, 1 << 20, 2));
  if (way == 0) std::exit(0);
  if (way == 1) std::quick_exit(0);
  if (way == 2) _exit(0);
  std::thread([] { std::exit(0); }).join();
  std::abort();
}

TEST(CudaGpu, ExitIsCleanWithLiveMemory) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a fresh process: CUDA does not survive fork
  GRIDBUF_NEEDS_GPU();
  for (int way = 0; way < 4; ++way) {
    EXPECT_EXIT(end_with_live_memory(way), ::testing::ExitedWithCode(0), "") << way;
  }
}

}  // namespace
}  // namespace gridbuf
