// Settings and statistics of the process, and the objects of which it has one.
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "modules/base/process_wide.h"
#include "modules/base/status_macros.h"
#include "modules/c/gridbuf.h"
#include "modules/c/version.h"

import gridbuf.c;
import gridbuf.alloc.host;
import gridbuf.device;
import gridbuf.device.registry;

using namespace gridbuf::c;

extern "C" {

// For modules/base/process_wide.cc, in this library and in Python's extension.
void* gridbuf_private_object(std::uint64_t build, const char* name, void* (*make)()) {
  static auto& mutex = *new std::recursive_mutex;  // `make` may ask for others
  static auto& objects = *new std::map<std::string_view, void*>;
  if (build != gridbuf::build_number()) return nullptr;
  const std::lock_guard lock(mutex);
  const auto found = objects.find(name);
  if (found != objects.end()) return found->second;
  void* const made = make();
  objects.emplace(name, made);
  return made;
}

int32_t gridbuf_abi(void) { return GRIDBUF_ABI; }

const char* gridbuf_last_error(void) { return last_error(); }

const char* gridbuf_version(void) { return GRIDBUF_VERSION; }

int32_t gridbuf_thread_count(void) { return gridbuf::thread_count(); }

gridbuf_status gridbuf_set_thread_count(int32_t count) {
  return guarded([&] { return gridbuf::set_thread_count(count); });
}

gridbuf_status gridbuf_memory_statistics(gridbuf_memory_info* info) {
  return guarded([&]() -> absl::Status {
    GRIDBUF_RETURN_IF_ERROR(require(info, "info"));
    GRIDBUF_RETURN_IF_ERROR(check_struct("info", info->struct_bytes, sizeof(gridbuf_memory_info)));
    const gridbuf::HostStatistics now = gridbuf::host_resource().statistics();
    const gridbuf_memory_info made = {
        .struct_bytes = 0,
        .live_blocks = now.live_blocks,
        .live_bytes = now.live_bytes,
        .peak_live_bytes = now.peak_live_bytes,
        .cached_blocks = now.cached_blocks,
        .cached_bytes = now.cached_bytes,
        .cache_limit_bytes = now.cache_limit_bytes,
        .hits = now.hits,
        .misses = now.misses,
        .refusals = now.refusals,
    };
    write_struct(made, info);
    return absl::OkStatus();
  });
}

gridbuf_status gridbuf_set_cache_limit(int64_t limit_bytes) {
  return guarded([&] {
    gridbuf::HostOptions options = gridbuf::host_resource().options();
    options.cache_limit_bytes = limit_bytes;
    return gridbuf::host_resource().configure(options);
  });
}

gridbuf_status gridbuf_set_memory_limit(int64_t limit_bytes) {
  return guarded([&] {
    gridbuf::HostOptions options = gridbuf::host_resource().options();
    options.limit_bytes = limit_bytes;
    return gridbuf::host_resource().configure(options);
  });
}

gridbuf_status gridbuf_trim_memory(int64_t keep_bytes, int64_t* freed_bytes) {
  return guarded([&]() -> absl::Status {
    if (keep_bytes < 0) {
      return bad({"keep_bytes", std::to_string(keep_bytes), "0 or more", "pass 0 to keep nothing"});
    }
    const std::int64_t freed = gridbuf::host_resource().trim(keep_bytes);
    if (freed_bytes != nullptr) *freed_bytes = freed;
    return absl::OkStatus();
  });
}

gridbuf_status gridbuf_use_emulated_device(int32_t on, int32_t* before) {
  return guarded([&] {
    const bool previous = gridbuf::switch_emulated_device(on != 0);
    if (before != nullptr) *before = previous ? 1 : 0;
    return absl::OkStatus();
  });
}

gridbuf_status gridbuf_check_device(void) {
  return guarded([] { return gridbuf::device_driver().status(); });
}

gridbuf_status gridbuf_synchronize_device(void) {
  return guarded([]() -> absl::Status {
    GRIDBUF_ASSIGN_OR_RETURN(gridbuf::DeviceDriver * driver, gridbuf::device_driver());
    return driver->synchronize_device();
  });
}

gridbuf_status gridbuf_set_stream(uint64_t stream, uint64_t* before) {
  return guarded([&]() -> absl::Status {
    GRIDBUF_RETURN_IF_ERROR(gridbuf::check_stream_number(stream));
    GRIDBUF_ASSIGN_OR_RETURN(gridbuf::DeviceDriver * driver, gridbuf::device_driver());
    GRIDBUF_RETURN_IF_ERROR(driver->check_stream(stream));
    const std::uint64_t previous = gridbuf::exchange_current_stream(stream);
    if (before != nullptr) *before = previous;
    return absl::OkStatus();
  });
}

}  // extern "C"
