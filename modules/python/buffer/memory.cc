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
  const BufferDescriptor& memory = buffer.array.memory();
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

void wait_for_host(const BufferObject& buffer) {
  if (buffer.array.memory().device.type == DeviceType::kHost) return;
  check(run_without_gil([&] { return buffer.array.wait(); }));
}

absl::Status check_device_is_on(const BufferObject& buffer) {
  if (!is_emulated(buffer) || emulated_device_is_on()) return absl::OkStatus();
  return make_error(ErrorClass::kBuffer,
                    "its memory is the emulated device's, which is switched off; switch it on with "
                    "gridbuf.testing.emulated_device()");
}

void order_pending(const BufferObject& buffer, const dlpack::ExportPlan& plan) {
  if (buffer.array.memory().device.type == DeviceType::kHost) return;
  if (plan.stream_order == dlpack::StreamOrder::kFinish) return wait_for_host(buffer);
  check(check_device_is_on(buffer));
  DeviceDriver* const driver = driver_behind(buffer);
  if (driver == nullptr || plan.stream_order == dlpack::StreamOrder::kNothing) return;
  const StreamHandle consumer = consumer_stream(plan);
  check(driver->order_after(buffer.array.stream(), consumer));
  driver->note_use(buffer.array.memory().block, consumer);
}

bool is_emulated(const BufferObject& buffer) {
  const DeviceDriver* const driver = driver_behind(buffer);
  return driver != nullptr && driver->is_emulated();
}

}  // namespace gridbuf::python
