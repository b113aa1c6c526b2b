module;

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "modules/device/cuda/runtime/runtime.h"

module gridbuf.device.cuda.fake;

import gridbuf.alloc;
import gridbuf.base;
import gridbuf.device;

namespace gridbuf::cuda {
namespace {

// Not destroyed: blocks may be released at any moment of the exit.
auto& blocks = *new std::map<void*, Block>;
auto& blocking_streams = *new std::set<StreamHandle>;
std::mutex calls_mutex;

// An event is a stream that was ordered after what it recorded.
void* event_of(StreamHandle stream) { return reinterpret_cast<void*>(stream); }
StreamHandle stream_of(void* event) { return reinterpret_cast<StreamHandle>(event); }

// Counts the call and returns whether it must fail.
bool fails(std::string_view function) {
  FakeRuntime& state = fake();
  ++state.calls;
  if (state.failing_call == 0) return false;
  if (!state.failing_function.empty() && state.failing_function != function) return false;
  return --state.failing_call == 0;
}

int code_of(const absl::Status& status) {
  if (status.ok()) return GRIDBUF_CUDA_DONE;
  switch (error_class_of(status)) {
    case ErrorClass::kMemory:
      return GRIDBUF_CUDA_NO_MEMORY;
    case ErrorClass::kValue:
      return GRIDBUF_CUDA_INVALID_HANDLE;
    default:
      return 700;  // cudaErrorIllegalAddress
  }
}

// One call at a time, because the state is global.
#define GRIDBUF_FAKE(name)                               \
  const std::lock_guard one_call_at_a_time(calls_mutex); \
  if (fails(#name)) return fake().error

const char* error_name(int error) {
  switch (error) {
    case GRIDBUF_CUDA_NO_MEMORY:
      return "cudaErrorMemoryAllocation";
    case GRIDBUF_CUDA_INSUFFICIENT_DRIVER:
      return "cudaErrorInsufficientDriver";
    case GRIDBUF_CUDA_INVALID_HANDLE:
      return "cudaErrorInvalidResourceHandle";
    default:
      return "cudaErrorUnknown";
  }
}
const char* error_text(int) { return "as a test requested"; }

int versions(int* runtime, int* driver) {
  GRIDBUF_FAKE(versions);
  *runtime = 13000;
  *driver = 13010;
  return 0;
}
int device_count(int* count) {
  GRIDBUF_FAKE(device_count);
  *count = fake().device_count;
  return 0;
}
int get_device(int* device) {
  GRIDBUF_FAKE(get_device);
  *device = fake().current_device;
  return 0;
}
int set_device(int device) {
  GRIDBUF_FAKE(set_device);
  fake().current_device = device;
  return 0;
}
int device_info(int /*device*/, gridbuf_cuda_device* info) {
  GRIDBUF_FAKE(device_info);
  std::strncpy(info->name, "Fake GPU", sizeof(info->name) - 1);
  info->compute_major = 9;
  info->memory_bytes = std::uint64_t{1} << 33;
  info->has_pools = fake().has_pools ? 1 : 0;
  info->has_managed = fake().has_managed ? 1 : 0;
  return 0;
}
int memory_info(std::uint64_t* free_bytes, std::uint64_t* total_bytes) {
  GRIDBUF_FAKE(memory_info);
  *free_bytes = *total_bytes = std::uint64_t{1} << 33;
  return 0;
}
int pool_keep(int, std::uint64_t) {
  GRIDBUF_FAKE(pool_keep);
  return 0;
}
int pool_trim(int) {
  GRIDBUF_FAKE(pool_trim);
  return 0;
}

int allocate(MemoryKind kind, void** address, std::uint64_t length_bytes, StreamHandle stream) {
  const ScopedStream scope(stream);
  absl::StatusOr<Block> block = fake_device().resource(kind).allocate(
      {.total_bytes = static_cast<std::int64_t>(length_bytes), .alignment_bytes = 256});
  if (!block.ok()) return code_of(block.status());
  *address = block->data();
  blocks.emplace(*address, *std::move(block));
  ++fake().live_allocations;
  return 0;
}
int release(void* address, StreamHandle stream) {
  const auto found = blocks.find(address);
  if (found == blocks.end()) return GRIDBUF_CUDA_INVALID_VALUE;
  const StreamHandle made_on = found->second.info().stream;
  if (stream != 0 && stream != made_on) return GRIDBUF_CUDA_INVALID_VALUE;
  blocks.erase(found);
  --fake().live_allocations;
  return 0;
}
int malloc_async(void** address, std::uint64_t length_bytes, std::uint64_t stream) {
  GRIDBUF_FAKE(malloc_async);
  return allocate(MemoryKind::kDevice, address, length_bytes, stream);
}
int free_async(void* address, std::uint64_t stream) {
  GRIDBUF_FAKE(free_async);
  return release(address, stream);
}
int malloc_now(void** address, std::uint64_t length_bytes) {
  GRIDBUF_FAKE(malloc_now);
  const int error = allocate(MemoryKind::kDevice, address, length_bytes, kLegacyDefaultStream);
  return error != 0 ? error : code_of(fake_device().synchronize_device());
}
int malloc_managed(void** address, std::uint64_t length_bytes) {
  GRIDBUF_FAKE(malloc_managed);
  return allocate(MemoryKind::kManaged, address, length_bytes, kLegacyDefaultStream);
}
int free_now(void* address) {
  GRIDBUF_FAKE(free_now);
  const absl::Status status = fake_device().synchronize_device();
  return status.ok() ? release(address, 0) : code_of(status);
}
int host_alloc(void** address, std::uint64_t length_bytes) {
  GRIDBUF_FAKE(host_alloc);
  return allocate(MemoryKind::kPinned, address, length_bytes, kLegacyDefaultStream);
}
int host_free(void* address) {
  GRIDBUF_FAKE(host_free);
  return release(address, 0);
}
int host_register(void*, std::uint64_t) {
  GRIDBUF_FAKE(host_register);
  if (!fake().registers) return GRIDBUF_CUDA_NOT_SUPPORTED;
  ++fake().live_registrations;
  return 0;
}
int host_unregister(void*) {
  GRIDBUF_FAKE(host_unregister);
  --fake().live_registrations;
  return 0;
}

int copy(void* target, const void* source, std::uint64_t length_bytes, std::uint64_t stream) {
  GRIDBUF_FAKE(copy);
  return code_of(
      fake_device().copy(target, source, static_cast<std::int64_t>(length_bytes), stream));
}
int copy_rows(void* target, std::uint64_t target_pitch_bytes, const void* source,
              std::uint64_t source_pitch_bytes, std::uint64_t row_bytes, std::uint64_t row_count,
              std::uint64_t stream) {
  GRIDBUF_FAKE(copy_rows);
  const RowCopy rows{target,
                     static_cast<std::int64_t>(target_pitch_bytes),
                     source,
                     static_cast<std::int64_t>(source_pitch_bytes),
                     static_cast<std::int64_t>(row_bytes),
                     static_cast<std::int64_t>(row_count)};
  return code_of(fake_device().copy_rows(rows, stream));
}
int fill(void* target, int value, std::uint64_t length_bytes, std::uint64_t stream) {
  GRIDBUF_FAKE(fill);
  return code_of(fake_device().fill(target, static_cast<std::byte>(value),
                                    static_cast<std::int64_t>(length_bytes), stream));
}
int stream_create(std::uint64_t* stream, int non_blocking) {
  GRIDBUF_FAKE(stream_create);
  *stream = *fake_device().create_stream(non_blocking != 0 ? StreamKind::kNonBlocking
                                                           : StreamKind::kBlocking);
  if (non_blocking == 0) blocking_streams.insert(*stream);
  return 0;
}
int stream_destroy(std::uint64_t stream) {
  GRIDBUF_FAKE(stream_destroy);
  return code_of(fake_device().destroy_stream(stream));
}
int stream_synchronize(std::uint64_t stream) {
  GRIDBUF_FAKE(stream_synchronize);
  return code_of(fake_device().synchronize(stream));
}
int stream_query(std::uint64_t stream) {
  GRIDBUF_FAKE(stream_query);
  const absl::StatusOr<bool> idle = fake_device().is_idle(stream);
  if (!idle.ok()) return code_of(idle.status());
  return *idle ? 0 : GRIDBUF_CUDA_NOT_READY;
}
int stream_is_non_blocking(std::uint64_t stream, int* non_blocking) {
  GRIDBUF_FAKE(stream_is_non_blocking);
  *non_blocking = blocking_streams.count(stream) == 0 ? 1 : 0;
  return 0;
}
int device_synchronize() {
  GRIDBUF_FAKE(device_synchronize);
  ++fake().device_synchronisations;
  return code_of(fake_device().synchronize_device());
}

int event_create(void** event) {
  GRIDBUF_FAKE(event_create);
  *event = event_of(*fake_device().create_stream(StreamKind::kNonBlocking));
  ++fake().live_events;
  return 0;
}
int event_record(void* event, std::uint64_t stream) {
  GRIDBUF_FAKE(event_record);
  return code_of(fake_device().order_after(stream, stream_of(event)));
}
int stream_wait(std::uint64_t stream, void* event) {
  GRIDBUF_FAKE(stream_wait);
  return code_of(fake_device().order_after(stream_of(event), stream));
}
int event_destroy(void* event) {
  GRIDBUF_FAKE(event_destroy);
  const absl::Status status = fake_device().destroy_stream(stream_of(event));
  --fake().live_events;
  return code_of(status);
}
int pointer(const void* address, gridbuf_cuda_pointer* pointer) {
  GRIDBUF_FAKE(pointer);
  const absl::StatusOr<PointerInfo> info = fake_device().pointer_info(address);
  if (!info.ok()) return code_of(info.status());
  *pointer = {static_cast<std::int32_t>(info->device.type), info->device.id, info->base,
              static_cast<std::uint64_t>(info->length_bytes)};
  return 0;
}

}  // namespace

FakeRuntime& fake() {
  static FakeRuntime state;
  return state;
}

EmulatedDriver& fake_device() {
  static EmulatedDriver& driver = *new EmulatedDriver;
  return driver;
}

const gridbuf_cuda_runtime& fake_runtime() {
  static const gridbuf_cuda_runtime table{GRIDBUF_CUDA_RUNTIME_ENTRIES};
  return table;
}

}  // namespace gridbuf::cuda
