module;

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "modules/base/status_macros.h"
#include "modules/device/cuda/runtime/runtime.h"
#include "modules/device/registry/device_table.h"

module gridbuf.device.registry;

import gridbuf.alloc.host;
import gridbuf.base;
import gridbuf.device.cuda;
import gridbuf.device.emulated;

namespace gridbuf {
namespace {

using Info = std::vector<std::pair<std::string, std::string>>;

// Read once. To change the device later, use the switch.
std::string_view device_by_environment() {
  static const char* const text = std::getenv(kDeviceVariable);
  static const std::string value = text == nullptr ? "" : text;
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
  GRIDBUF_RETURN_IF_ERROR(check_environment());
  GRIDBUF_ASSIGN_OR_RETURN(const auto& cuda, cuda_driver());
  return cuda;
}

absl::StatusOr<MemoryResource*> memory_resource(DeviceType type) {
  if (type == DeviceType::kHost) return &host_resource();
  if (!is_cuda_accessible(type)) {
    return make_error(ErrorClass::kDeviceUnavailable,
                      {"memory", "ROCm's", "the host's or CUDA's, which gridbuf allocates",
                       "allocate it with the library that it came from"});
  }
  const absl::StatusOr<DeviceDriver*> driver = device_driver();
  if (!driver.ok()) {
    return with_context(driver.status(), std::string(memory_name(type)) + " memory needs a device");
  }
  return &(*driver)->resource(type);
}

DeviceDriver* driver_of(const void* address) {
  if (emulated_driver().owns(address)) return &emulated_driver();
  CudaDriver* cuda = started_cuda_driver();
  return cuda != nullptr && cuda->owns(address) ? cuda : nullptr;
}

bool emulated_device_is_on() { return emulated_switch().load(); }

bool switch_emulated_device(bool on) { return emulated_switch().exchange(on); }

Info device_info() {
  Info info = cuda_info();
  if (CudaDriver* cuda = started_cuda_driver()) {
    for (auto& entry : cuda->info()) info.push_back(std::move(entry));
  }
  if (!emulated_device_is_on()) {
    info.emplace_back("emulated device", "off");
    return info;
  }
  info.emplace_back("emulated device", "on: every device array is in the memory of the host");
  for (auto& [key, text] : emulated_driver().info()) {
    info.emplace_back("emulated " + key, std::move(text));
  }
  return info;
}

// ---- The driver as a table of C functions. ----

namespace {

std::string& last_error() {
  thread_local std::string text;
  return text;
}

const char* error_text() { return last_error().c_str(); }

int answer(const absl::Status& status) {
  if (status.ok()) return 0;
  last_error() = std::string(status.message());
  return static_cast<int>(status.code());
}

void* address_of(std::uint64_t address) {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
}

// A number beyond 63 bits becomes the largest length, which every allocation refuses.
std::int64_t length_of(std::uint64_t length_bytes) {
  constexpr auto kLongest = std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>(std::min<std::uint64_t>(length_bytes, kLongest));
}

// A kernel that keeps its stream busy, in both forms.
struct Delay {
  std::chrono::steady_clock::time_point due;
  std::uint32_t milliseconds;
};

absl::Status keep_busy(DeviceDriver& driver, std::uint32_t milliseconds, StreamHandle stream) {
  const Delay delay{std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds),
                    milliseconds};
  return driver.launch(
      {.name = "a delay",
       .on_host =
           [](const void* arguments, std::span<std::byte* const>) {
             std::this_thread::sleep_until(static_cast<const Delay*>(arguments)->due);
           },
       .on_cuda =
           [](const void* arguments, StreamHandle on) {
             return gridbuf_cuda_spin(static_cast<const Delay*>(arguments)->milliseconds, on);
           },
       .arguments = std::as_bytes(std::span(&delay, 1))},
      stream);
}

// For the emulated device or a GPU.
template <bool kEmulated>
struct Functions {
  static DeviceDriver& driver() {
    if constexpr (kEmulated) return emulated_driver();
    return *started_cuda_driver();
  }

  static int copy(std::uint64_t target, std::uint64_t source, std::uint64_t length_bytes,
                  std::uint64_t stream) {
    const absl::Status status =
        driver().copy(address_of(target), address_of(source), length_of(length_bytes), stream);
    return answer(status.ok() ? driver().synchronize(stream) : status);
  }

  static int synchronize(std::uint64_t stream) {
    return answer(stream == 0 ? driver().synchronize_device() : driver().synchronize(stream));
  }

  static int pointer_info(std::uint64_t address, gridbuf_pointer_info* info) {
    const absl::StatusOr<PointerInfo> found = driver().pointer_info(address_of(address));
    if (!found.ok()) return answer(found.status());
    *info = {static_cast<std::int32_t>(found->device.type),
             found->device.id,
             found->base,
             static_cast<std::uint64_t>(found->length_bytes),
             found->host_accessible ? 1 : 0,
             found->device_accessible ? 1 : 0};
    return 0;
  }

  static int slow_fill(std::uint64_t target, std::int32_t value, std::uint64_t length_bytes,
                       std::uint32_t milliseconds, std::uint64_t stream) {
    if (milliseconds > 0) {
      const absl::Status status = keep_busy(driver(), milliseconds, stream);
      if (!status.ok()) return answer(status);
    }
    return answer(driver().fill(address_of(target), static_cast<std::byte>(value & 0xFF),
                                length_of(length_bytes), stream));
  }

  static int stream_create(std::uint64_t* stream) {
    const absl::StatusOr<StreamHandle> created = driver().create_stream(StreamKind::kNonBlocking);
    if (!created.ok()) return answer(created.status());
    *stream = *created;
    return 0;
  }

  static int stream_destroy(std::uint64_t stream) {
    return answer(driver().destroy_stream(stream));
  }

  static int stream_query(std::uint64_t stream, std::int32_t* idle) {
    const absl::StatusOr<bool> is_idle = driver().is_idle(stream);
    if (!is_idle.ok()) return answer(is_idle.status());
    *idle = *is_idle ? 1 : 0;
    return 0;
  }

  static const gridbuf_device_table* table() {
    static const gridbuf_device_table made{1,
                                           sizeof(gridbuf_device_table),
                                           kEmulated ? "emulated" : "cuda",
                                           &copy,
                                           &synchronize,
                                           &pointer_info,
                                           &slow_fill,
                                           &stream_create,
                                           &stream_destroy,
                                           &stream_query,
                                           &error_text};
    return &made;
  }
};

}  // namespace

absl::StatusOr<const gridbuf_device_table*> device_table() {
  GRIDBUF_ASSIGN_OR_RETURN(const auto& driver, device_driver());
  return driver->is_emulated() ? Functions<true>::table() : Functions<false>::table();
}

}  // namespace gridbuf
