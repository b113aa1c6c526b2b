module;

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "modules/base/process_wide.h"
#include "modules/base/status_macros.h"
#include "modules/device/cuda/runtime/runtime.h"

module gridbuf.device.cuda;

import gridbuf.base;

// Work on streams, error messages and info on devices.

namespace gridbuf {
namespace {

std::uint64_t unsigned_of(std::int64_t value) { return static_cast<std::uint64_t>(value); }

std::string version_text(int version) {
  return absl::StrCat(version / 1000, ".", version % 1000 / 10);
}

struct ErrorMeaning {
  int error;
  ErrorClass error_class;
  std::string_view advice;
};
// The last row is for all other errors.
constexpr ErrorMeaning kMeanings[] = {
    {GRIDBUF_CUDA_NO_MEMORY, ErrorClass::kMemory,
     "free some device arrays, or those of other programs on this device"},
    {GRIDBUF_CUDA_INVALID_VALUE, ErrorClass::kValue, "check addresses and lengths"},
    {GRIDBUF_CUDA_INVALID_HANDLE, ErrorClass::kValue,
     "check that the stream lives and belongs to the current device"},
    {GRIDBUF_CUDA_INSUFFICIENT_DRIVER, ErrorClass::kDeviceUnavailable,
     "install an NVIDIA driver for this version of CUDA, or newer"},
    {GRIDBUF_CUDA_NO_DEVICE, ErrorClass::kDeviceUnavailable,
     "check nvidia-smi and CUDA_VISIBLE_DEVICES"},
    {-1, ErrorClass::kInternal,
     "the failure may be of work enqueued earlier; run with CUDA_LAUNCH_BLOCKING=1 or "
     "compute-sanitizer to find it"}};

const ErrorMeaning& meaning_of(int error) {
  const ErrorMeaning* meaning = kMeanings;
  while (meaning->error != error && meaning->error != -1) ++meaning;
  return *meaning;
}

absl::Status cuda_error(const gridbuf_cuda_runtime& runtime, int error, std::string_view call) {
  const ErrorMeaning& meaning = meaning_of(error);
  return make_error(meaning.error_class,
                    absl::StrCat(call, " answered ", runtime.error_name(error), " (",
                                 runtime.error_text(error), "); ", meaning.advice));
}

}  // namespace

absl::Status CudaDriver::checked(int error, std::string_view call) const {
  return error == GRIDBUF_CUDA_DONE ? absl::OkStatus() : cuda_error(runtime_, error, call);
}

// Every function begins here.
absl::Status CudaDriver::enter(StreamHandle stream) const {
  GRIDBUF_RETURN_IF_ERROR(process_.check("CUDA"));
  return check_stream_number(stream);
}

absl::StatusOr<Device> CudaDriver::current_device() {
  GRIDBUF_RETURN_IF_ERROR(process_.check("CUDA"));
  GRIDBUF_ASSIGN_OR_RETURN(const auto& device, current_ordinal());
  return Device{DeviceType::kCuda, device};
}

// --- Copies and fills ----------------------------------------------------------------------------

absl::Status CudaDriver::copy(void* target, const void* source, std::int64_t length_bytes,
                              StreamHandle stream) {
  GRIDBUF_RETURN_IF_ERROR(enter(stream));
  GRIDBUF_RETURN_IF_ERROR(check_length("length_bytes", length_bytes));
  if (length_bytes == 0) return absl::OkStatus();
  const int error = runtime_.copy(target, source, unsigned_of(length_bytes), stream);
  GRIDBUF_RETURN_IF_ERROR(checked(error, "cudaMemcpyAsync"));
  return enqueued({target, source}, stream);
}

absl::Status CudaDriver::copy_rows(const RowCopy& rows, StreamHandle stream) {
  GRIDBUF_RETURN_IF_ERROR(enter(stream));
  GRIDBUF_ASSIGN_OR_RETURN(const auto& extents, check(rows));
  if (extents.target_bytes == 0) return absl::OkStatus();
  if (rows.row_count == 1) return copy(rows.target, rows.source, rows.row_bytes, stream);
  if (rows.target_pitch_bytes > kLongestPitchBytes ||
      rows.source_pitch_bytes > kLongestPitchBytes) {
    auto* const target = static_cast<std::byte*>(rows.target);
    const auto* const source = static_cast<const std::byte*>(rows.source);
    for (std::int64_t row = 0; row < rows.row_count; ++row) {
      GRIDBUF_RETURN_IF_ERROR(copy(target + row * rows.target_pitch_bytes,
                                   source + row * rows.source_pitch_bytes, rows.row_bytes, stream));
    }
    return absl::OkStatus();
  }
  const int error =
      runtime_.copy_rows(rows.target, unsigned_of(rows.target_pitch_bytes), rows.source,
                         unsigned_of(rows.source_pitch_bytes), unsigned_of(rows.row_bytes),
                         unsigned_of(rows.row_count), stream);
  GRIDBUF_RETURN_IF_ERROR(checked(error, "cudaMemcpy2DAsync"));
  return enqueued({rows.target, rows.source}, stream);
}

absl::Status CudaDriver::fill(void* target, std::byte value, std::int64_t length_bytes,
                              StreamHandle stream) {
  GRIDBUF_RETURN_IF_ERROR(enter(stream));
  GRIDBUF_RETURN_IF_ERROR(check_length("length_bytes", length_bytes));
  if (length_bytes == 0) return absl::OkStatus();
  const int error =
      runtime_.fill(target, std::to_integer<int>(value), unsigned_of(length_bytes), stream);
  GRIDBUF_RETURN_IF_ERROR(checked(error, "cudaMemsetAsync"));
  return enqueued({target}, stream);
}

// The operands are in use only if CUDA accepts the launch.
absl::Status CudaDriver::launch(const DeviceKernel& kernel, StreamHandle stream) {
  GRIDBUF_RETURN_IF_ERROR(enter(stream));
  const int error = kernel.on_device(kernel.arguments.data(), stream);
  GRIDBUF_RETURN_IF_ERROR(checked(error, absl::StrCat("the launch of ", kernel.name)));
  for (const KernelOperand& operand : kernel.operands) {
    GRIDBUF_RETURN_IF_ERROR(enqueued({operand.begin}, stream));
  }
  return absl::OkStatus();
}

// --- Streams -------------------------------------------------------------------------------------

absl::Status CudaDriver::synchronize(StreamHandle stream) {
  GRIDBUF_RETURN_IF_ERROR(enter(stream));
  return checked(runtime_.stream_synchronize(stream), "cudaStreamSynchronize");
}

absl::Status CudaDriver::synchronize_device() {
  GRIDBUF_RETURN_IF_ERROR(process_.check("CUDA"));
  return checked(runtime_.device_synchronize(), "cudaDeviceSynchronize");
}

int CudaDriver::order(StreamHandle producer, StreamHandle consumer) const {
  void* event = nullptr;
  int error = runtime_.event_create(&event);
  if (error != GRIDBUF_CUDA_DONE) return error;
  error = runtime_.event_record(event, producer);
  if (error == GRIDBUF_CUDA_DONE) error = runtime_.stream_wait(consumer, event);
  const int destroyed = runtime_.event_destroy(event);  // waits for it stay valid
  return error != GRIDBUF_CUDA_DONE ? error : destroyed;
}

absl::Status CudaDriver::order_after(StreamHandle producer, StreamHandle consumer) {
  GRIDBUF_RETURN_IF_ERROR(enter(producer));
  GRIDBUF_RETURN_IF_ERROR(enter(consumer));
  if (producer == consumer) return absl::OkStatus();
  return checked(order(producer, consumer), "ordering two streams by an event");
}

absl::StatusOr<StreamHandle> CudaDriver::create_stream(StreamKind kind) {
  GRIDBUF_RETURN_IF_ERROR(process_.check("CUDA"));
  std::uint64_t stream = 0;
  const int error = runtime_.stream_create(&stream, kind == StreamKind::kNonBlocking ? 1 : 0);
  GRIDBUF_RETURN_IF_ERROR(checked(error, "cudaStreamCreateWithFlags"));
  const std::lock_guard lock(mutex_);
  own_streams_.insert(stream);
  return stream;
}

absl::Status CudaDriver::destroy_stream(StreamHandle stream) {
  GRIDBUF_RETURN_IF_ERROR(enter(stream));
  {
    const std::lock_guard lock(mutex_);
    if (own_streams_.erase(stream) == 0) {
      return make_error(ErrorClass::kValue,
                        {"stream", std::to_string(stream), "one that create_stream gave",
                         "destroy each stream once, with the library that created it"});
    }
  }
  return checked(runtime_.stream_destroy(stream), "cudaStreamDestroy");
}

absl::Status CudaDriver::check_stream(StreamHandle stream) { return is_idle(stream).status(); }

absl::StatusOr<bool> CudaDriver::is_idle(StreamHandle stream) {
  GRIDBUF_RETURN_IF_ERROR(enter(stream));
  const int error = runtime_.stream_query(stream);
  if (error == GRIDBUF_CUDA_NOT_READY) return false;
  GRIDBUF_RETURN_IF_ERROR(checked(error, "cudaStreamQuery"));
  return true;
}

// --- Info ------------------------------------------------------------------------------------

DeviceInfo CudaDriver::info() {
  std::vector<std::pair<std::string, std::string>> info;
  int count = 0;
  if (!process_.is_this_process() || runtime_.device_count(&count) != GRIDBUF_CUDA_DONE) {
    return {{"cuda devices", "not reachable from this process"}};
  }
  for (int device = 0; device < count; ++device) {
    gridbuf_cuda_device found{};
    if (runtime_.device_info(device, &found) != GRIDBUF_CUDA_DONE) continue;
    info.emplace_back(absl::StrCat("cuda device ", device),
                      absl::StrCat(found.name, ", compute capability ", found.compute_major, ".",
                                   found.compute_minor, ", ",
                                   bytes_text(static_cast<std::int64_t>(found.memory_bytes)),
                                   found.has_pools != 0 ? ", pools" : ", no pools",
                                   found.has_managed != 0 ? ", managed" : ", no managed memory"));
  }
  return info;
}

absl::Status find_cuda_device(const gridbuf_cuda_runtime* runtime) {
  if (runtime == nullptr) {
    return make_error(
        ErrorClass::kDeviceUnavailable,
        "this build has no CUDA code; install a build with CUDA, use memory of the host, "
        "or use the emulated device (GRIDBUF_DEVICE=emulated)");
  }
  int count = 0;
  int error = runtime->device_count(&count);
  if (error == GRIDBUF_CUDA_DONE && count == 0) error = GRIDBUF_CUDA_NO_DEVICE;
  if (error == GRIDBUF_CUDA_DONE) return absl::OkStatus();
  return make_error(
      ErrorClass::kDeviceUnavailable,
      absl::StrCat(
          "no CUDA device (", runtime->error_name(error), "); ", meaning_of(error).advice,
          ", use memory of the host, or use the emulated device (GRIDBUF_DEVICE=emulated)"));
}

namespace {
std::atomic<CudaDriver*>& started = process_wide<std::atomic<CudaDriver*>>("CUDA driver");
}  // namespace

CudaDriver* started_cuda_driver() noexcept { return started.load(); }

absl::StatusOr<CudaDriver*> cuda_driver() {
  if (CudaDriver* driver = started.load()) return driver;
  const gridbuf_cuda_runtime* runtime = gridbuf_cuda_runtime_table();
  GRIDBUF_RETURN_IF_ERROR(find_cuda_device(runtime));
  // Without a lock, as the emulated device.
  auto made = std::make_unique<CudaDriver>(*runtime);
  CudaDriver* none = nullptr;
  if (started.compare_exchange_strong(none, made.get())) made.release();
  return started.load();
}

DeviceInfo cuda_info() {
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
  DeviceInfo info{{"cuda", "built in, runtime " + version_text(runtime_version)},
                  {"cuda driver", driver}};
  if (CudaDriver* cuda = started_cuda_driver()) {
    for (auto& entry : cuda->info()) info.push_back(std::move(entry));
  }
  return info;
}

}  // namespace gridbuf
