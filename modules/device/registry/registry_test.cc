#include <cstdlib>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"

import gridbuf.alloc;
import gridbuf.base;
import gridbuf.device;
import gridbuf.device.emulated;
import gridbuf.device.registry;

namespace gridbuf {
namespace {

// [example]
// Runs `test` on the emulated device, and restores the previous device.
template <class Test>
void on_the_emulated_device(const Test& test) {
  const bool before = switch_emulated_device(true);
  test(**device_driver());
  switch_emulated_device(before);
}
// [/example]

TEST(Devices, HostMemoryNeedsNone) {
  const absl::StatusOr<MemoryResource*> host = memory_resource(MemoryKind::kHost);
  ASSERT_TRUE(host.ok());
  EXPECT_EQ((*host)->name(), "host");
}

TEST(Devices, TheEmulatedOneIsUsedOnlyWhenSwitchedOn) {
  const absl::StatusOr<DeviceDriver*> before = device_driver();
  if (before.ok()) EXPECT_FALSE((*before)->is_emulated());
  on_the_emulated_device([](DeviceDriver& driver) {
    EXPECT_TRUE(driver.is_emulated());
    EXPECT_EQ(driver.name(), "emulated");
    EXPECT_EQ((*memory_resource(MemoryKind::kDevice))->name(), "emulated device");
  });
  EXPECT_FALSE(emulated_device_is_on());
}

TEST(Devices, WithoutOneTheErrorSaysWhatWasLookedFor) {
  const absl::StatusOr<MemoryResource*> pinned = memory_resource(MemoryKind::kPinned);
  if (pinned.ok()) GTEST_SKIP() << "this machine has a CUDA device";
  EXPECT_EQ(error_class_of(pinned.status()), ErrorClass::kDeviceUnavailable);
  EXPECT_NE(pinned.status().message().find("pinned memory"), std::string::npos);
  EXPECT_NE(pinned.status().message().find("CUDA"), std::string::npos) << pinned.status();
}

TEST(Devices, MemoryKnowsItsDriverAfterTheSwitch) {
  Block block;
  on_the_emulated_device([&block](DeviceDriver& driver) {
    block = *driver.resource(MemoryKind::kDevice).allocate({.total_bytes = 8});
  });
  EXPECT_EQ(driver_of(block.data()), &emulated_driver());
  int local = 0;
  EXPECT_EQ(driver_of(&local), nullptr);
}

TEST(DevicesDeathTest, AnUnknownNameInTheEnvironmentIsAnError) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  setenv(kDeviceVariable, "gpu", 1);
  EXPECT_EXIT(
      {
        const absl::Status status = device_driver().status();
        const bool right = error_class_of(status) == ErrorClass::kDeviceUnavailable &&
                           status.message().find("'gpu'") != std::string::npos;
        std::_Exit(right ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
  setenv(kDeviceVariable, "emulated", 1);
  EXPECT_EXIT(std::_Exit(emulated_device_is_on() ? 0 : 1), ::testing::ExitedWithCode(0), "");
  unsetenv(kDeviceVariable);
}

}  // namespace
}  // namespace gridbuf
