module;

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "modules/device/cuda/runtime/runtime.h"

module gridbuf.device.cuda;

import gridbuf.base;

// Work on streams, and what is said of failures and of devices.

namespace gridbuf {
namespace {

std::uint64_t unsigned_of(std::int64_t value) { return static_cast<std::uint64_t>(value); }

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

ErrorClass class_of(int error) {
  switch (error) {
    case GRIDBUF_CUDA_NO_MEMORY:
      return ErrorClass::kMemory;
    case GRIDBUF_CUDA_INVALID_VALUE:
    case GRIDBUF_CUDA_INVALID_HANDLE:
      return ErrorClass::kValue;
    case GRIDBUF_CUDA_INSUFFICIENT_DRIVER:
    case GRIDBUF_CUDA_NO_DEVICE:
      return ErrorClass::kDeviceUnavailable;
    default:
      return ErrorClass::kInternal;
  }
}

std::string_view advice_for(int error) {
  switch (error) {
    case GRIDBUF_CUDA_NO_MEMORY:
      return "free some device arrays, or those of other programs on this device";
    case GRIDBUF_CUDA_INVALID_VALUE:
      return "check addresses and lengths";
    case GRIDBUF_CUDA_INVALID_HANDLE:
      return "check that the stream lives and belongs to the current device";
    case GRIDBUF_CUDA_INSUFFICIENT_DRIVER:
      return "install an NVIDIA driver for this version of CUDA, or newer";
    case GRIDBUF_CUDA_NO_DEVICE:
      return "check nvidia-smi and CUDA_VISIBLE_DEVICES";
    default:
      return "the failure may be of work enqueued earlier; run with CUDA_LAUNCH_BLOCKING=1 or "
             "compute-sanitizer to find it";
  }
}

absl::Status cuda_error(const gridbuf_cuda_runtime& runtime, int error, std::string_view call) {
  std::string message(call);
  message.append(" answered ").append(runtime.error_name(error));
  message.append(" (").append(runtime.error_text(error)).append("); ");
  return make_error(class_of(error), message.append(advice_for(error)));
}

}  // namespace

absl::Status CudaDriver::checked(int error, std::string_view call) const {
  return error == GRIDBUF_CUDA_DONE ? absl::OkStatus() : cuda_error(runtime_, error, call);
}

// Every function begins here.
absl::Status CudaDriver::enter(StreamHandle stream) const {
  if (absl::Status status = process_.check("CUDA"); !status.ok()) return status;
  return check_stream_number(stream);
}

absl::StatusOr<Device> CudaDriver::current_device() {
  if (absl::Status status = process_.check("CUDA"); !status.ok()) return status;
  const absl::StatusOr<int> device = current_ordinal();
  if (!device.ok()) return device.status();
  return Device{DeviceType::kCuda, *device};
}

// --- Copies and fills ----------------------------------------------------------------------------

absl::Status CudaDriver::copy(void* target, const void* source, std::int64_t length_bytes,
                              StreamHandle stream) {
  if (absl::Status status = enter(stream); !status.ok()) return status;
  if (absl::Status status = check_length("length_bytes", length_bytes); !status.ok()) return status;
  if (length_bytes == 0) return absl::OkStatus();
  const int error = runtime_.copy(target, source, unsigned_of(length_bytes), stream);
  if (absl::Status status = checked(error, "cudaMemcpyAsync"); !status.ok()) return status;
  return enqueued({target, source}, stream);
}

absl::Status CudaDriver::copy_rows(const RowCopy& rows, StreamHandle stream) {
  if (absl::Status status = enter(stream); !status.ok()) return status;
  const absl::StatusOr<RowExtents> extents = check(rows);
  if (!extents.ok()) return extents.status();
  if (extents->target_bytes == 0) return absl::OkStatus();
  if (rows.row_count == 1) return copy(rows.target, rows.source, rows.row_bytes, stream);
  if (rows.target_pitch_bytes > kLongestPitchBytes ||
      rows.source_pitch_bytes > kLongestPitchBytes) {
    return copy_row_by_row(rows, stream);
  }
  const int error =
      runtime_.copy_rows(rows.target, unsigned_of(rows.target_pitch_bytes), rows.source,
                         unsigned_of(rows.source_pitch_bytes), unsigned_of(rows.row_bytes),
                         unsigned_of(rows.row_count), stream);
  if (absl::Status status = checked(error, "cudaMemcpy2DAsync"); !status.ok()) return status;
  return enqueued({rows.target, rows.source}, stream);
}

absl::Status CudaDriver::copy_row_by_row(const RowCopy& rows, StreamHandle stream) {
  auto* target = static_cast<std::byte*>(rows.target);
  const auto* source = static_cast<const std::byte*>(rows.source);
  for (std::int64_t row = 0; row < rows.row_count; ++row) {
    if (absl::Status status = copy(target + row * rows.target_pitch_bytes,
                                   source + row * rows.source_pitch_bytes, rows.row_bytes, stream);
        !status.ok()) {
      return status;
    }
  }
  return absl::OkStatus();
}

absl::Status CudaDriver::fill(void* target, std::byte value, std::int64_t length_bytes,
                              StreamHandle stream) {
  if (absl::Status status = enter(stream); !status.ok()) return status;
  if (absl::Status status = check_length("length_bytes", length_bytes); !status.ok()) return status;
  if (length_bytes == 0) return absl::OkStatus();
  const int error =
      runtime_.fill(target, std::to_integer<int>(value), unsigned_of(length_bytes), stream);
  if (absl::Status status = checked(error, "cudaMemsetAsync"); !status.ok()) return status;
  return enqueued({target}, stream);
}

// Where CUDA refuses the launch nothing uses the operands; else each of them is in use.
absl::Status CudaDriver::launch(const DeviceKernel& kernel, StreamHandle stream) {
  if (absl::Status status = enter(stream); !status.ok()) return status;
  const int error = kernel.on_cuda(kernel.arguments.data(), stream);
  const std::string call = "the launch of " + std::string(kernel.name);
  if (absl::Status status = checked(error, call); !status.ok()) return status;
  for (const KernelOperand& operand : kernel.operands) {
    if (absl::Status status = enqueued({operand.begin}, stream); !status.ok()) return status;
  }
  return absl::OkStatus();
}

// --- Streams -------------------------------------------------------------------------------------

absl::Status CudaDriver::synchronize(StreamHandle stream) {
  if (absl::Status status = enter(stream); !status.ok()) return status;
  return checked(runtime_.stream_synchronize(stream), "cudaStreamSynchronize");
}

absl::Status CudaDriver::synchronize_device() {
  if (absl::Status status = process_.check("CUDA"); !status.ok()) return status;
  return checked(runtime_.device_synchronize(), "cudaDeviceSynchronize");
}

int CudaDriver::order(StreamHandle producer, StreamHandle consumer) const {
  void* event = nullptr;
  int error = runtime_.event_create(&event);
  if (error != GRIDBUF_CUDA_DONE) return error;
  error = runtime_.event_record(event, producer);
  if (error == GRIDBUF_CUDA_DONE) error = runtime_.stream_wait(consumer, event);
  const int destroyed = runtime_.event_destroy(event);  // who waits for it still may
  return error != GRIDBUF_CUDA_DONE ? error : destroyed;
}

absl::Status CudaDriver::order_after(StreamHandle producer, StreamHandle consumer) {
  if (absl::Status status = enter(producer); !status.ok()) return status;
  if (absl::Status status = enter(consumer); !status.ok()) return status;
  if (producer == consumer) return absl::OkStatus();
  return checked(order(producer, consumer), "ordering two streams by an event");
}

absl::StatusOr<StreamHandle> CudaDriver::create_stream(StreamKind kind) {
  if (absl::Status status = process_.check("CUDA"); !status.ok()) return status;
  std::uint64_t stream = 0;
  const int error = runtime_.stream_create(&stream, kind == StreamKind::kNonBlocking ? 1 : 0);
  if (absl::Status status = checked(error, "cudaStreamCreateWithFlags"); !status.ok()) {
    return status;
  }
  const std::lock_guard lock(mutex_);
  own_streams_.insert(stream);
  return stream;
}

absl::Status CudaDriver::destroy_stream(StreamHandle stream) {
  if (absl::Status status = enter(stream); !status.ok()) return status;
  {
    const std::lock_guard lock(mutex_);
    if (own_streams_.erase(stream) == 0) {
      return make_error(ErrorClass::kValue,
                        {"stream", std::to_string(stream), "one that create_stream gave",
                         "destroy each stream once, and others' where they were made"});
    }
  }
  return checked(runtime_.stream_destroy(stream), "cudaStreamDestroy");
}

absl::Status CudaDriver::check_stream(StreamHandle stream) { return is_idle(stream).status(); }

absl::StatusOr<bool> CudaDriver::is_idle(StreamHandle stream) {
  if (absl::Status status = enter(stream); !status.ok()) return status;
  const int error = runtime_.stream_query(stream);
  if (error == GRIDBUF_CUDA_NOT_READY) return false;
  if (absl::Status status = checked(error, "cudaStreamQuery"); !status.ok()) return status;
  return true;
}

// --- Addresses -----------------------------------------------------------------------------------

absl::StatusOr<PointerInfo> CudaDriver::pointer_info(const void* address) {
  if (absl::Status status = process_.check("CUDA"); !status.ok()) return status;
  gridbuf_cuda_pointer found{};
  const int error = runtime_.pointer(address, &found);
  if (absl::Status status = checked(error, "cudaPointerGetAttributes"); !status.ok()) return status;
  const auto type = static_cast<DeviceType>(found.device_type);
  if (type == DeviceType::kHost) return PointerInfo{};
  PointerInfo info{.device = {type, found.device_id},
                   .base = static_cast<std::uintptr_t>(found.base),
                   .length_bytes = static_cast<std::int64_t>(found.length_bytes),
                   .host_accessible = is_host_readable(type),
                   .device_accessible = true};
  if (info.base == 0) fill_from_record(address, info);
  return info;
}

// --- What there is -------------------------------------------------------------------------------

std::vector<std::pair<std::string, std::string>> CudaDriver::facts() {
  std::vector<std::pair<std::string, std::string>> facts;
  int count = 0;
  if (!process_.is_this_process() || runtime_.device_count(&count) != GRIDBUF_CUDA_DONE) {
    return {{"cuda devices", "not reachable from this process"}};
  }
  for (int device = 0; device < count; ++device) {
    gridbuf_cuda_device found{};
    if (runtime_.device_facts(device, &found) != GRIDBUF_CUDA_DONE) continue;
    std::string text = std::string(found.name) + ", compute capability " +
                       std::to_string(found.compute_major) + "." +
                       std::to_string(found.compute_minor) + ", " +
                       bytes_text(static_cast<std::int64_t>(found.memory_bytes));
    text += found.has_pools != 0 ? ", pools" : ", no pools";
    text += found.has_managed != 0 ? ", managed" : ", no managed memory";
    facts.emplace_back("cuda device " + std::to_string(device), text);
  }
  return facts;
}

absl::Status find_cuda_device(const gridbuf_cuda_runtime* runtime) {
  if (runtime == nullptr) {
    return make_error(ErrorClass::kDeviceUnavailable,
                      "this build of gridbuf has no CUDA code, because no CUDA toolkit was found "
                      "when it was built; install a build with CUDA, or use the emulated device "
                      "(GRIDBUF_DEVICE=emulated) for tests");
  }
  int count = 0;
  int error = runtime->device_count(&count);
  if (error == GRIDBUF_CUDA_DONE && count == 0) error = GRIDBUF_CUDA_NO_DEVICE;
  if (error == GRIDBUF_CUDA_DONE) return absl::OkStatus();
  const absl::Status status = cuda_error(*runtime, error, "cudaGetDeviceCount");
  return make_error(ErrorClass::kDeviceUnavailable,
                    "looked for a CUDA device and found none: " + std::string(status.message()));
}

namespace {
std::atomic<CudaDriver*> started = nullptr;
}  // namespace

CudaDriver* started_cuda_driver() noexcept { return started.load(); }

absl::StatusOr<CudaDriver*> cuda_driver() {
  if (CudaDriver* driver = started.load()) return driver;
  static std::mutex& mutex = *new std::mutex;
  const std::lock_guard lock(mutex);
  if (CudaDriver* driver = started.load()) return driver;
  const gridbuf_cuda_runtime* runtime = gridbuf_cuda_runtime_table();
  if (absl::Status status = find_cuda_device(runtime); !status.ok()) return status;
  started = new CudaDriver(*runtime);
  return started.load();
}

std::vector<std::pair<std::string, std::string>> cuda_facts() {
  const gridbuf_cuda_runtime* runtime = gridbuf_cuda_runtime_table();
  if (runtime == nullptr) return {{"cuda", "not built in: no toolkit was found at the build"}};
  int runtime_version = 0;
  int driver_version = 0;
  const int error = runtime->versions(&runtime_version, &driver_version);
  std::string driver = "not found: no NVIDIA driver (libcuda.so.1) on this machine";
  if (error != GRIDBUF_CUDA_DONE) {
    driver = runtime->error_name(error);
  } else if (driver_version > 0) {
    driver = "for CUDA " + version_text(driver_version);
  }
  return {{"cuda", "built in, runtime " + version_text(runtime_version)}, {"cuda driver", driver}};
}

}  // namespace gridbuf
