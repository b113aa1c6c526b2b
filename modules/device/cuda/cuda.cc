module;

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "modules/base/status_macros.h"
#include "modules/device/cuda/runtime/runtime.h"

module gridbuf.device.cuda;

import gridbuf.alloc;
import gridbuf.base;

// Memory: allocation of blocks, uses on streams, and release.

namespace gridbuf::cuda {

/// The data of a block until its release.
struct Record {
  CudaDriver* driver = nullptr;
  MemoryKind kind = MemoryKind::kDevice;
  int device = 0;           // current at the allocation
  StreamHandle stream = 0;  // of the allocation and the free
  void* base = nullptr;
  std::int64_t length_bytes = 0;
  bool from_pool = false;                        // device memory of cudaMallocAsync
  std::optional<PinnedPages::Pages> pages = {};  // pinned by gridbuf; else by cudaHostAlloc

  // Other uses. Guarded by the driver's mutex.
  // After the last work that this driver enqueued; two for a stream if two threads began at once.
  std::multimap<StreamHandle, void*> events = {};
  bool used_by_blocking_streams = false;  // named by exports
  bool used_by_other_streams = false;
};

}  // namespace gridbuf::cuda

namespace gridbuf {

using cuda::Record;

namespace {

// Sets the current device of the thread while the object lives.
class DeviceScope {
 public:
  DeviceScope(const gridbuf_cuda_runtime& runtime, int device) : runtime_(runtime) {
    error_ = runtime_.get_device(&previous_);
    if (error_ != GRIDBUF_CUDA_DONE || previous_ == device) return;
    error_ = runtime_.set_device(device);
    changed_ = error_ == GRIDBUF_CUDA_DONE;
  }
  ~DeviceScope() {
    if (changed_) runtime_.set_device(previous_);
  }
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;
  int error() const { return error_; }

 private:
  const gridbuf_cuda_runtime& runtime_;
  int previous_ = 0;
  int error_ = GRIDBUF_CUDA_DONE;
  bool changed_ = false;
};

std::uintptr_t number_of(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

// "; 1.5 GiB of 80.0 GiB are free on the current device", or "" if CUDA does not report it.
std::string memory_text(const gridbuf_cuda_runtime& runtime) {
  std::uint64_t free_bytes = 0;
  std::uint64_t total_bytes = 0;
  if (runtime.memory_info(&free_bytes, &total_bytes) != GRIDBUF_CUDA_DONE) return "";
  return "; " + bytes_text(static_cast<std::int64_t>(free_bytes)) + " of " +
         bytes_text(static_cast<std::int64_t>(total_bytes)) + " are free on the current device";
}

PageLock page_lock(const gridbuf_cuda_runtime& runtime) {
  const auto lock = [&runtime](void* address, std::int64_t length_bytes) {
    const int error = runtime.host_register(address, static_cast<std::uint64_t>(length_bytes));
    if (error == GRIDBUF_CUDA_DONE) return absl::OkStatus();
    return make_error(ErrorClass::kMemory,
                      std::string("cudaHostRegister: ") + runtime.error_name(error));
  };
  const auto unlock = [&runtime](void* address) { runtime.host_unregister(address); };
  return {lock, unlock};
}

}  // namespace

CudaDriver::CudaDriver(const gridbuf_cuda_runtime& runtime)
    : DeviceDriver({"CUDA pinned", "CUDA managed", "CUDA device"}),
      runtime_(runtime),
      pinned_(page_lock(runtime)) {}

// --- Devices -------------------------------------------------------------------------------------

absl::StatusOr<int> CudaDriver::current_ordinal() const {
  int device = 0;
  GRIDBUF_RETURN_IF_ERROR(checked(runtime_.get_device(&device), "cudaGetDevice"));
  return device;
}

// The properties of a device. The first calls also set up its pool. CUDA is asked without the lock,
// because it takes locks, too (modules/base/fork.h).
absl::StatusOr<const gridbuf_cuda_device*> CudaDriver::info_of(int device) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = devices_.find(device);
    if (found != devices_.end()) return &found->second;
  }
  gridbuf_cuda_device info{};
  GRIDBUF_RETURN_IF_ERROR(checked(runtime_.device_info(device, &info), "cudaGetDeviceProperties"));
  if (info.has_pools != 0 &&
      runtime_.pool_keep(device, info.memory_bytes / 8) != GRIDBUF_CUDA_DONE) {
    info.has_pools = 0;  // a pool that cannot be set up is not used
  }
  const std::lock_guard lock(mutex_);
  return &devices_.emplace(device, info).first->second;
}

// --- Making blocks -------------------------------------------------------------------------------

int CudaDriver::obtain_device(Record& record, std::uint64_t block_bytes) {
  if (record.from_pool) return runtime_.malloc_async(&record.base, block_bytes, record.stream);
  return runtime_.malloc_now(&record.base, block_bytes);
}

// Pages that gridbuf maps and CUDA registers; if CUDA refuses, memory of cudaHostAlloc.
absl::Status CudaDriver::obtain_pinned(Record& record, std::int64_t block_bytes) {
  absl::StatusOr<PinnedPages::Pages> pages = pinned_.take(block_bytes);
  if (pages.ok()) {
    record.pages = *pages;
    record.base = pages->mapping.address;
    return absl::OkStatus();
  }
  pinned_.trim();
  return checked(runtime_.host_alloc(&record.base, static_cast<std::uint64_t>(block_bytes)),
                 "cudaHostAlloc");
}

absl::Status CudaDriver::obtain(Record& record, std::int64_t block_bytes) {
  if (record.kind == MemoryKind::kPinned) return obtain_pinned(record, block_bytes);
  GRIDBUF_ASSIGN_OR_RETURN(const auto& info, info_of(record.device));
  const auto length = static_cast<std::uint64_t>(block_bytes);
  if (record.kind == MemoryKind::kManaged) {
    if (info->has_managed == 0) {
      return make_error(ErrorClass::kDeviceUnavailable,
                        std::string(info->name) +
                            " does not support managed memory; use memory='device' or 'pinned'");
    }
    return checked(runtime_.malloc_managed(&record.base, length), "cudaMallocManaged");
  }
  record.from_pool = info->has_pools != 0;
  int error = obtain_device(record, length);
  if (error == GRIDBUF_CUDA_NO_MEMORY) {
    // Freed memory may still wait for its streams, or be unused in the pool.
    runtime_.device_synchronize();
    if (record.from_pool) runtime_.pool_trim(record.device);
    error = obtain_device(record, length);
  }
  return checked(error, record.from_pool ? "cudaMallocAsync" : "cudaMalloc");
}

// Zeros of device memory are in the order of its stream. Other zeros must be visible to the host at
// return.
absl::Status CudaDriver::zero(const Record& record, std::byte* data, std::int64_t length_bytes) {
  if (length_bytes == 0) return absl::OkStatus();
  if (record.kind == MemoryKind::kPinned) {
    if (record.pages && !record.pages->from_cache) return absl::OkStatus();  // fresh pages
    std::fill_n(data, length_bytes, std::byte{0});
    return absl::OkStatus();
  }
  const auto length = static_cast<std::uint64_t>(length_bytes);
  absl::Status status = checked(runtime_.fill(data, 0, length, record.stream), "cudaMemsetAsync");
  if (!status.ok() || record.from_pool) return status;
  return checked(runtime_.stream_synchronize(record.stream), "cudaStreamSynchronize");
}

absl::StatusOr<Block> CudaDriver::allocate(MemoryKind kind, const AllocationRequest& request) {
  GRIDBUF_ASSIGN_OR_RETURN(const auto& placement, place(request));
  const StreamHandle stream = current_stream();
  GRIDBUF_RETURN_IF_ERROR(enter(stream));
  GRIDBUF_ASSIGN_OR_RETURN(const auto& device, current_ordinal());
  auto record = std::make_shared<Record>(
      Record{.driver = this, .kind = kind, .device = device, .stream = stream});
  if (absl::Status status = obtain(*record, placement.block_bytes); !status.ok()) {
    if (error_class_of(status) != ErrorClass::kMemory) return status;
    return out_of_memory(request, resource(kind).name(),
                         std::string(status.message()) + memory_text(runtime_));
  }
  record->length_bytes = placement.block_bytes;
  std::byte* data = place_in(placement, static_cast<std::byte*>(record->base));
  if (request.zeroed) {
    if (absl::Status status = zero(*record, data, request.total_bytes); !status.ok()) {
      free_memory(*record);
      return status;
    }
  }
  {
    const std::lock_guard lock(mutex_);
    records_.emplace(number_of(record->base), record);
  }
  const bool is_device = kind == MemoryKind::kDevice;
  const BlockInfo info{.resource_name = resource(kind).name(),
                       .device = cuda_device(kind, record->device),
                       .pages = record->pages ? record->pages->mapping.pages : PageKind::kShared,
                       .from_cache = record->pages && record->pages->from_cache,
                       .stream = is_device ? stream : 0};
  return Block(data, request.total_bytes,
               {record->base, placement.block_bytes, &release, this, info});
}

// --- Uses ----------------------------------------------------------------------------------------

CudaDriver::RecordPtr CudaDriver::record_around(const void* address) {
  const std::lock_guard lock(mutex_);
  auto found = records_.upper_bound(number_of(address));
  if (found == records_.begin()) return nullptr;
  --found;
  const auto inside = static_cast<std::int64_t>(number_of(address) - found->first);
  return inside <= found->second->length_bytes ? found->second : nullptr;
}

bool CudaDriver::owns(const void* address) { return record_around(address) != nullptr; }

absl::StatusOr<PointerInfo> CudaDriver::pointer_info(const void* address) {
  GRIDBUF_RETURN_IF_ERROR(process_.check("CUDA"));
  gridbuf_cuda_pointer found{};
  const int error = runtime_.pointer(address, &found);
  GRIDBUF_RETURN_IF_ERROR(checked(error, "cudaPointerGetAttributes"));
  const auto type = static_cast<DeviceType>(found.device_type);
  if (type == DeviceType::kHost) return PointerInfo{};
  PointerInfo info{.device = {type, found.device_id},
                   .base = static_cast<std::uintptr_t>(found.base),
                   .length_bytes = static_cast<std::int64_t>(found.length_bytes),
                   .host_accessible = is_host_readable(type),
                   .device_accessible = true};
  if (info.base != 0) return info;
  // CUDA does not report the length of registered host memory; the record has it.
  if (const RecordPtr record = record_around(address)) {
    info.base = number_of(record->base);
    info.length_bytes = record->length_bytes;
  }
  return info;
}

// After work on a stream other than the block's, that stream's event is recorded again, so one
// event covers all its work. Without an event the release waits for the device.
absl::Status CudaDriver::enqueued(std::initializer_list<const void*> addresses,
                                  StreamHandle stream) {
  for (const void* address : addresses) {
    const RecordPtr record = record_around(address);
    const bool in_order =
        record == nullptr || (record->stream == stream && record->kind == MemoryKind::kDevice);
    if (in_order) continue;
    absl::Status status;
    void* event = nullptr;
    {
      const std::lock_guard lock(mutex_);
      const auto found = record->events.find(stream);
      if (found != record->events.end()) event = found->second;
    }
    if (event == nullptr) {
      status = checked(runtime_.event_create(&event), "cudaEventCreate");
      const std::lock_guard lock(mutex_);
      if (status.ok()) record->events.emplace(stream, event);
    }
    if (status.ok()) status = checked(runtime_.event_record(event, stream), "cudaEventRecord");
    if (status.ok()) continue;
    const std::lock_guard lock(mutex_);
    record->used_by_other_streams = true;
    return status;
  }
  return absl::OkStatus();
}

void CudaDriver::note_use(const void* address, StreamHandle stream) noexcept {
  if (!process_.is_this_process() || process_is_exiting()) return;
  const RecordPtr record = record_around(address);
  if (record == nullptr) return;
  if (record->kind == MemoryKind::kDevice && record->stream == stream) return;
  int non_blocking = 0;
  const bool is_default = stream == kLegacyDefaultStream || stream == kPerThreadDefaultStream;
  const bool is_blocking =
      is_default || (runtime_.stream_is_non_blocking(stream, &non_blocking) == GRIDBUF_CUDA_DONE &&
                     non_blocking == 0);
  const std::lock_guard lock(mutex_);
  (is_blocking ? record->used_by_blocking_streams : record->used_by_other_streams) = true;
}

// --- Freeing -------------------------------------------------------------------------------------

// Orders the block's stream after all other uses. After an error only a wait for the device is
// safe.
int CudaDriver::wait_for_uses(Record& record) noexcept {
  const bool on_stream = record.kind == MemoryKind::kDevice && record.from_pool;
  int error = GRIDBUF_CUDA_DONE;
  for (const auto& [stream, event] : record.events) {
    if (on_stream && error == GRIDBUF_CUDA_DONE) error = runtime_.stream_wait(record.stream, event);
    runtime_.event_destroy(event);  // waits for its record stay valid
  }
  const bool has_events = !record.events.empty();
  record.events.clear();
  if (!on_stream) {
    // Memory that is not freed on a stream is freed after a wait for the device.
    const bool used = has_events || record.used_by_blocking_streams || record.used_by_other_streams;
    return used ? runtime_.device_synchronize() : error;
  }
  if (record.used_by_other_streams || error != GRIDBUF_CUDA_DONE) {
    return runtime_.device_synchronize();
  }
  if (record.used_by_blocking_streams && record.stream != kLegacyDefaultStream) {
    return order(kLegacyDefaultStream, record.stream);
  }
  return error;
}

// Memory that CUDA refuses to free leaks.
void CudaDriver::free_memory(Record& record) noexcept {
  if (record.pages) {
    pinned_.give(*record.pages);
  } else if (record.kind == MemoryKind::kPinned) {
    runtime_.host_free(record.base);
  } else if (record.from_pool) {
    runtime_.free_async(record.base, record.stream);
  } else {
    runtime_.free_now(record.base);
  }
}

void CudaDriver::give_back(Record& record) noexcept {
  const DeviceScope scope(runtime_, record.device);
  if (scope.error() == GRIDBUF_CUDA_DONE && wait_for_uses(record) == GRIDBUF_CUDA_DONE) {
    free_memory(record);
  }
}

void CudaDriver::release(void* context, void* allocation) noexcept {
  auto* driver = static_cast<CudaDriver*>(context);
  // At the exit and in a child after fork: do not call CUDA, and do not take a lock that another
  // thread of the parent may hold.
  if (process_is_exiting() || !driver->process_.is_this_process()) return;
  RecordPtr record;
  {
    const std::lock_guard lock(driver->mutex_);
    const auto found = driver->records_.find(number_of(allocation));
    record = std::move(found->second);
    driver->records_.erase(found);
  }
  driver->give_back(*record);
}

std::int64_t CudaDriver::live_blocks() {
  const std::lock_guard lock(mutex_);
  return std::ssize(records_);
}

LiveBytes CudaDriver::live_bytes() {
  LiveBytes found{};
  const std::lock_guard lock(mutex_);
  for (const auto& [address, record] : records_) {
    found[static_cast<std::size_t>(record->kind) - 1] += record->length_bytes;
  }
  return found;
}

// --- Pinned pages --------------------------------------------------------------------------------

PinnedPages::PinnedPages(PageLock lock, std::int64_t limit_bytes)
    : lock_(std::move(lock)), cache_(limit_bytes) {}

absl::StatusOr<PinnedPages::Pages> PinnedPages::take(std::int64_t length_bytes) {
  const PageKind kind = length_bytes >= kLargeBlockBytes ? PageKind::kHuge : PageKind::kSmall;
  const std::int64_t whole_bytes = pages::mapped_length(length_bytes, kind);
  {
    const std::lock_guard guard(mutex_);
    const std::optional<pages::Mapping> kept = cache_.take(whole_bytes, kind);
    if (kept) return Pages{*kept, whole_bytes, true};
  }
  GRIDBUF_ASSIGN_OR_RETURN(const auto& mapping, pages::map_pages(length_bytes, kind));
  absl::Status status = pages::commit(mapping.address, mapping.length_bytes);
  if (status.ok()) status = lock_.lock(mapping.address, mapping.length_bytes);
  if (!status.ok()) {
    pages::unmap_pages(mapping);
    return status;
  }
  return Pages{mapping, mapping.length_bytes, false};
}

void PinnedPages::give(const Pages& pages) noexcept {
  MappingCache::Victims victims;
  {
    const std::lock_guard guard(mutex_);
    cache_.give(pages.mapping, pages.length_bytes, victims);
  }
  drop(victims);
}

void PinnedPages::drop(const MappingCache::Victims& victims) noexcept {
  for (const pages::Mapping& mapping : victims) {
    lock_.unlock(mapping.address);
    pages::unmap_pages(mapping);
  }
}

void PinnedPages::trim() {
  MappingCache::Victims victims;
  {
    const std::lock_guard guard(mutex_);
    cache_.trim(0, victims);
  }
  drop(victims);
}

std::int64_t PinnedPages::cached_bytes() {
  const std::lock_guard guard(mutex_);
  return cache_.cached_bytes();
}

}  // namespace gridbuf
