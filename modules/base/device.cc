module;

#include <cstdint>
#include <string>

module gridbuf.base;

namespace gridbuf {

std::string to_string(const Device& device) {
  switch (device.type) {
    case DeviceType::kHost:
      return "host";
    case DeviceType::kCuda:
      return "cuda:" + std::to_string(device.id);
    case DeviceType::kCudaHost:
      return "pinned host (CUDA)";
    case DeviceType::kRocm:
      return "rocm:" + std::to_string(device.id);
    case DeviceType::kRocmHost:
      return "pinned host (ROCm)";
    case DeviceType::kCudaManaged:
      return "managed (CUDA)";
  }
  return "device type " + std::to_string(static_cast<std::int32_t>(device.type)) + ":" +
         std::to_string(device.id);
}

}  // namespace gridbuf
