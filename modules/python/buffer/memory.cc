// The memory behind a Buffer: its kind, its stream, and the order of accesses.

module;

#include <Python.h>

#include <cstdint>

#include "absl/status/status.h"

module gridbuf.python;

namespace gridbuf::python {
namespace {

/// The driver that made the memory; null for host memory, and for memory that no driver knows.
DeviceDriver* driver_behind(const BufferObject& buffer) {
  const BufferDescriptor& memory = buffer.array.memory;
  if (memory.device.type == DeviceType::kHost || memory.block == nullptr) return nullptr;
  return driver_of(memory.block);
}

/// The stream that a consumer works on, by what it asked.
StreamHandle consumer_stream(const dlpack::ExportPlan& plan) {
  switch (plan.stream_order) {
    case dlpack::StreamOrder::kPerThreadDefault:
      return kPerThreadDefaultStream;
    case dlpack::StreamOrder::kHandle:
      return plan.stream;
    default:
      return kLegacyDefaultStream;
  }
}

}  // namespace

StreamHandle stream_of(const BufferObject& buffer) {
  const std::uint64_t stream = whole(buffer).info.block.stream;
  return stream == 0 ? kLegacyDefaultStream : stream;
}

void wait_for_host(const BufferObject& buffer) {
  if (buffer.array.memory.device.type == DeviceType::kHost) return;
  DeviceDriver* const driver = driver_behind(buffer);
  if (driver == nullptr) return;  // The import has waited.
  check(run_without_gil([&] { return driver->synchronize(stream_of(buffer)); }));
}

absl::Status check_device_is_on(const BufferObject& buffer) {
  if (!is_emulated(buffer) || emulated_device_is_on()) return absl::OkStatus();
  return make_error(ErrorClass::kBuffer,
                    "its memory is the emulated device's, which is switched off; switch it on with "
                    "gridbuf.testing.emulated_device()");
}

void order_pending(const BufferObject& buffer, const dlpack::ExportPlan& plan) {
  if (buffer.array.memory.device.type == DeviceType::kHost) return;
  if (plan.stream_order == dlpack::StreamOrder::kFinish) return wait_for_host(buffer);
  check(check_device_is_on(buffer));
  DeviceDriver* const driver = driver_behind(buffer);
  if (driver == nullptr || plan.stream_order == dlpack::StreamOrder::kNothing) return;
  const StreamHandle consumer = consumer_stream(plan);
  check(driver->order_after(stream_of(buffer), consumer));
  driver->note_use(buffer.array.memory.block, consumer);
}

void copy_on_device(const BufferObject& target, const BufferObject& source) {
  const BufferDescriptor& to = target.array.memory;
  const BufferDescriptor& from = source.array.memory;
  if (to.is_empty()) return;
  const bool to_device = !is_host_readable(to.device.type);
  DeviceDriver* const driver = driver_behind(to_device ? target : source);
  if (driver == nullptr) {
    raise(ErrorClass::kDeviceUnavailable,
          "no device knows this memory; copy it with the library that it came from");
  }
  const StreamHandle stream = stream_of(to_device ? target : source);
  const bool host_takes_part = !to_device || is_host_readable(from.device.type);
  check(run_without_gil([&]() -> absl::Status {
    for (const BufferObject* buffer : {&target, &source}) {
      if (driver_behind(*buffer) == nullptr) continue;
      absl::Status status = driver->order_after(stream_of(*buffer), stream);
      if (!status.ok()) return status;
    }
    absl::Status status = enqueue_copy(*driver, to, from, stream);
    return status.ok() && host_takes_part ? driver->synchronize(stream) : status;
  }));
  // The source may go before the copy has run.
  if (!host_takes_part) driver->note_use(from.block, stream);
}

bool is_emulated(const BufferObject& buffer) {
  const DeviceDriver* const driver = driver_behind(buffer);
  return driver != nullptr && driver->is_emulated();
}

}  // namespace gridbuf::python
