module;

#include <atomic>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.device.registry;

import gridbuf.alloc.host;
import gridbuf.base;
import gridbuf.device.cuda;
import gridbuf.device.emulated;

namespace gridbuf {
namespace {

using Facts = std::vector<std::pair<std::string, std::string>>;

// Read once: a process that changes its own environment later uses the switch.
std::string_view device_by_environment() {
  static const std::string value = [] {
    const char* text = std::getenv(kDeviceVariable);
    return std::string(text == nullptr ? "" : text);
  }();
  return value;
}

std::atomic<bool>& emulated_switch() {
  static std::atomic<bool> on = device_by_environment() == "emulated";
  return on;
}

absl::Status check_environment() {
  const std::string_view value = device_by_environment();
  if (value.empty() || value == "cuda" || value == "emulated") return absl::OkStatus();
  return make_error(ErrorClass::kDeviceUnavailable,
                    {kDeviceVariable, "'" + std::string(value) + "'", "'emulated', 'cuda' or unset",
                     "set it before the process starts"});
}

}  // namespace

absl::StatusOr<DeviceDriver*> device_driver() {
  if (emulated_device_is_on()) return &emulated_driver();
  if (absl::Status status = check_environment(); !status.ok()) return status;
  const absl::StatusOr<CudaDriver*> cuda = cuda_driver();
  if (!cuda.ok()) return cuda.status();
  return *cuda;
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
  if (emulated_driver().owns(address)) return &emulated_driver();
  CudaDriver* cuda = started_cuda_driver();
  return cuda != nullptr && cuda->owns(address) ? cuda : nullptr;
}

bool emulated_device_is_on() { return emulated_switch().load(); }

bool switch_emulated_device(bool on) { return emulated_switch().exchange(on); }

Facts device_facts() {
  Facts facts = cuda_facts();
  if (CudaDriver* cuda = started_cuda_driver()) {
    for (auto& fact : cuda->facts()) facts.push_back(std::move(fact));
  }
  if (!emulated_device_is_on()) {
    facts.emplace_back("emulated device", "off");
    return facts;
  }
  facts.emplace_back("emulated device", "on: every device array is in the memory of the host");
  for (auto& [key, text] : emulated_driver().facts()) {
    facts.emplace_back("emulated " + key, std::move(text));
  }
  return facts;
}

}  // namespace gridbuf
