module;

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "modules/base/process_wide.h"
#include "modules/base/status_macros.h"

module gridbuf.device.registry;

import gridbuf.alloc.host;
import gridbuf.base;

namespace gridbuf {
namespace {

// Read once. To change the device later, use the switch.
std::string_view device_by_environment() {
  static const char* const text = std::getenv(kDeviceVariable);
  static const std::string value = text == nullptr ? "" : text;
  return value;
}

std::atomic<bool>& emulated_switch() {
  static auto& on = process_wide<std::atomic<bool>>("emulated device", []() -> void* {
    return new std::atomic<bool>(device_by_environment() == "emulated");
  });
  return on;
}
// Before any thread: see modules/base/fork.h.
[[maybe_unused]] const std::atomic<bool>& switch_at_load = emulated_switch();

// The linked devices, by DeviceKind. A local variable, because registrations run before main.
const LinkedDevice*& linked(DeviceKind kind) {
  static std::array<const LinkedDevice*, 2> devices{};
  return devices[static_cast<std::size_t>(kind)];
}

absl::Status check_environment() {
  const std::string_view value = device_by_environment();
  if (value.empty() || value == "cuda" || value == "emulated") return absl::OkStatus();
  return make_error(ErrorClass::kDeviceUnavailable,
                    {kDeviceVariable, "'" + std::string(value) + "'", "'emulated', 'cuda' or unset",
                     "set it before the process starts"});
}

}  // namespace

bool link_device(DeviceKind kind, const LinkedDevice& device) {
  linked(kind) = &device;
  return true;
}

absl::StatusOr<DeviceDriver*> device_driver() {
  const DeviceKind kind = emulated_device_is_on() ? DeviceKind::kEmulated : DeviceKind::kCuda;
  if (kind == DeviceKind::kCuda) GRIDBUF_RETURN_IF_ERROR(check_environment());
  if (const LinkedDevice* device = linked(kind)) return device->start();
  return make_error(ErrorClass::kDeviceUnavailable,
                    "this program does not link the device drivers; add "
                    "//modules/device/drivers to its deps");
}

absl::StatusOr<MemoryResource*> memory_resource(MemoryKind kind) {
  if (kind == MemoryKind::kHost) return &host_resource();
  const absl::StatusOr<DeviceDriver*> driver = device_driver();
  if (!driver.ok()) {
    return with_context(driver.status(), std::string(to_string(kind)) + " memory needs a device");
  }
  return &(*driver)->resource(kind);
}

DeviceDriver* driver_of(const void* address) {
  for (const DeviceKind kind : {DeviceKind::kEmulated, DeviceKind::kCuda}) {
    const LinkedDevice* device = linked(kind);
    DeviceDriver* driver = device == nullptr ? nullptr : device->started();
    if (driver != nullptr && driver->owns(address)) return driver;
  }
  return nullptr;
}

bool emulated_device_is_on() { return emulated_switch().load(); }

bool switch_emulated_device(bool on) { return emulated_switch().exchange(on); }

std::vector<std::pair<std::string, LiveBytes>> device_live_bytes() {
  std::vector<std::pair<std::string, LiveBytes>> found;
  for (const DeviceKind kind : {DeviceKind::kCuda, DeviceKind::kEmulated}) {
    const LinkedDevice* device = linked(kind);
    DeviceDriver* driver = device == nullptr ? nullptr : device->started();
    if (driver != nullptr) found.emplace_back(driver->name(), driver->live_bytes());
  }
  return found;
}

DeviceInfo device_info() {
  const LinkedDevice* cuda = linked(DeviceKind::kCuda);
  const LinkedDevice* emulated = linked(DeviceKind::kEmulated);
  DeviceInfo info = cuda == nullptr ? DeviceInfo{{"cuda", "not linked"}} : cuda->info();
  if (emulated == nullptr || !emulated_device_is_on()) {
    info.emplace_back("emulated device", emulated == nullptr ? "not linked" : "off");
    return info;
  }
  info.emplace_back("emulated device", "on: every device array is in the memory of the host");
  for (auto& [key, text] : emulated->info()) {
    info.emplace_back("emulated " + key, std::move(text));
  }
  return info;
}

}  // namespace gridbuf
