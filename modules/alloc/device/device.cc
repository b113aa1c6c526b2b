module;

#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.alloc.device;

import gridbuf.error;

namespace gridbuf {
namespace {

thread_local StreamHandle this_threads_stream = kLegacyDefaultStream;

std::atomic<bool> exiting = false;

constexpr std::array<std::string_view, 4> kKindNames{"host", "pinned", "managed", "device"};

}  // namespace

std::string_view to_string(MemoryKind kind) { return kKindNames[static_cast<std::size_t>(kind)]; }

absl::StatusOr<MemoryKind> memory_kind(std::string_view name) {
  for (std::size_t i = 0; i < kKindNames.size(); ++i) {
    if (kKindNames[i] == name) return static_cast<MemoryKind>(i);
  }
  return make_error(ErrorClass::kValue, {"memory", "'" + std::string(name) + "'",
                                         "'host', 'pinned', 'managed' or 'device'",
                                         "leave it out for memory of the host"});
}

StreamHandle current_stream() noexcept { return this_threads_stream; }

StreamHandle exchange_current_stream(StreamHandle stream) noexcept {
  return std::exchange(this_threads_stream, stream);
}

absl::Status check_stream_number(StreamHandle stream) {
  if (stream != 0) return absl::OkStatus();
  return make_error(
      ErrorClass::kValue,
      {"stream", "0", "1 (legacy default), 2 (per-thread default) or the handle of a stream",
       "pass 1 for the legacy default stream: 0 means different streams to different libraries"});
}

bool process_is_exiting() noexcept { return exiting.load(std::memory_order_acquire); }

void note_process_exit() noexcept { exiting.store(true, std::memory_order_release); }

DriverProcess::DriverProcess() : process_id_(getpid()) {
  // Registered when the first driver starts: it runs before the destructors of everything that was
  // there before, and before the driver's own library goes.
  [[maybe_unused]] static const int registered = std::atexit(&note_process_exit);
}

bool DriverProcess::is_this_process() const noexcept { return getpid() == process_id_; }

absl::Status DriverProcess::check(std::string_view driver_name) const {
  if (is_this_process()) return absl::OkStatus();
  std::string message(driver_name);
  message.append(" was started by process ").append(std::to_string(process_id_));
  message.append(" and this is its child ").append(std::to_string(getpid()));
  message.append(
      ": devices do not survive fork; start children with the 'spawn' or 'forkserver' method, or "
      "use the device only after the fork");
  return make_error(ErrorClass::kDeviceUnavailable, message);
}

}  // namespace gridbuf
