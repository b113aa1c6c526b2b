// Registers the drivers before main, for programs that depend on //modules/device/drivers.

#include "absl/status/statusor.h"
#include "modules/transfer/device/kernel_plan.h"

import gridbuf.device.cuda;
import gridbuf.device.emulated;
import gridbuf.device.registry;
import gridbuf.transfer.device;

namespace gridbuf {
namespace {

constexpr LinkedDevice kCuda{
    .start = []() -> absl::StatusOr<DeviceDriver*> { return cuda_driver(); },
    .started = []() -> DeviceDriver* { return started_cuda_driver(); },
    .info = cuda_info};

constexpr LinkedDevice kEmulated{
    .start = []() -> absl::StatusOr<DeviceDriver*> { return &emulated_driver(); },
    .started = []() -> DeviceDriver* { return &emulated_driver(); },
    .info = [] { return emulated_driver().info(); }};

[[maybe_unused]] const bool linked = [] {
  kernels::set_launch(&gridbuf_kernel_launch);
  return link_device(DeviceKind::kCuda, kCuda) && link_device(DeviceKind::kEmulated, kEmulated);
}();

}  // namespace
}  // namespace gridbuf
