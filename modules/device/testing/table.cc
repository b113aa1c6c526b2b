module;

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "modules/base/status_macros.h"
#include "modules/device/testing/device_table.h"
#include "modules/device/testing/spin.h"

module gridbuf.device.testing;

import gridbuf.device.registry;

namespace gridbuf {
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
       .on_device =
           [](const void* arguments, StreamHandle on) {
             return gridbuf_cuda_spin(static_cast<const Delay*>(arguments)->milliseconds, on);
           },
       .arguments = std::as_bytes(std::span(&delay, 1))},
      stream);
}

// For the emulated device or a GPU: the functions of a table have no argument for the driver.
template <bool kEmulated>
struct Functions {
  static DeviceDriver*& slot() {
    static DeviceDriver* driver = nullptr;
    return driver;
  }
  static DeviceDriver& driver() { return *slot(); }

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

  static const gridbuf_device_table* table(DeviceDriver* driver) {
    slot() = driver;
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
  return driver->is_emulated() ? Functions<true>::table(driver) : Functions<false>::table(driver);
}

}  // namespace gridbuf
