module;

#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "modules/base/process_wide.h"
#include "modules/base/status_macros.h"
#include "modules/base/thread_word.h"

module gridbuf.device;

import gridbuf.base;
import gridbuf.layout;

namespace gridbuf {
namespace {

// 0 stands for the legacy default stream. Never destroyed: threads may outlive main().
const ThreadWord& this_threads_stream = process_wide<ThreadWord>("stream of this thread");

// Released at the exit, so that a thread that sees it also sees what the exit has done before.
std::atomic<bool>& exiting = process_wide<std::atomic<bool>>("exiting");

// The rows of one side as a view of bytes. Its hull is the memory that they span.
absl::StatusOr<std::int64_t> extent_of_rows(std::string_view side, const RowCopy& rows,
                                            std::int64_t pitch_bytes) {
  if (rows.row_count > 1 && pitch_bytes < rows.row_bytes) {
    return make_error(ErrorClass::kValue,
                      {absl::StrCat(side, "_pitch_bytes"), absl::StrCat(pitch_bytes),
                       absl::StrCat("at least row_bytes, ", rows.row_bytes),
                       "copy rows that overlap one by one"});
  }
  const std::array<std::int64_t, 2> shape{rows.row_count, rows.row_bytes};
  const std::array<std::int64_t, 2> strides{pitch_bytes, 1};
  const auto hull = checked::byte_hull(shape, strides, 1, 0);
  if (hull) return hull->length_bytes();
  return make_error(ErrorClass::kValue, {absl::StrCat("the extent of the ", side, "'s rows"),
                                         absl::StrCat(rows.row_count, " rows at ", pitch_bytes),
                                         "at most 2^63 - 1 bytes", "copy fewer rows"});
}

}  // namespace

absl::StatusOr<MemoryKind> memory_kind_named(std::string_view name) {
  for (const MemoryKind kind :
       {MemoryKind::kHost, MemoryKind::kPinned, MemoryKind::kManaged, MemoryKind::kDevice}) {
    if (to_string(kind) == name) return kind;
  }
  return make_error(ErrorClass::kValue, {"memory", "'" + std::string(name) + "'",
                                         "'host', 'pinned', 'managed' or 'device'",
                                         "leave it out for memory of the host"});
}

absl::Status check_length(std::string_view name, std::int64_t length_bytes) {
  if (length_bytes >= 0) return absl::OkStatus();
  return make_error(ErrorClass::kValue, {name, std::to_string(length_bytes), "0 or more",
                                         "check how the size was computed"});
}

absl::StatusOr<RowExtents> check(const RowCopy& rows) {
  GRIDBUF_RETURN_IF_ERROR(check_length("row_bytes", rows.row_bytes));
  GRIDBUF_RETURN_IF_ERROR(check_length("row_count", rows.row_count));
  GRIDBUF_ASSIGN_OR_RETURN(const auto& target,
                           extent_of_rows("target", rows, rows.target_pitch_bytes));
  GRIDBUF_ASSIGN_OR_RETURN(const auto& source,
                           extent_of_rows("source", rows, rows.source_pitch_bytes));
  return RowExtents{target, source};
}

StreamHandle current_stream() noexcept {
  const StreamHandle stream = this_threads_stream.get();
  return stream == 0 ? kLegacyDefaultStream : stream;
}

StreamHandle exchange_current_stream(StreamHandle stream) noexcept {
  const StreamHandle before = current_stream();
  this_threads_stream.set(stream);
  return before;
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
  // Registered at the start of the first driver. So it runs before the destructors of earlier
  // objects and before the driver's library is unloaded.
  [[maybe_unused]] static const int registered = std::atexit(&note_process_exit);
}

bool DriverProcess::is_this_process() const noexcept { return getpid() == process_id_; }

absl::Status DriverProcess::check(std::string_view driver_name) const {
  if (is_this_process()) return absl::OkStatus();
  return make_error(
      ErrorClass::kDeviceUnavailable,
      absl::StrCat(driver_name, " was started by process ", process_id_, " and this is its child ",
                   getpid(),
                   ": devices do not survive fork; start children with the 'spawn' or "
                   "'forkserver' method, or use the device only after the fork"));
}

}  // namespace gridbuf
