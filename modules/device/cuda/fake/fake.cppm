// gridbuf.device.cuda.fake: a CUDA runtime without a GPU, for the tests of the CUDA driver.
//
// A table of the runtime's functions over an emulated device. It counts its calls, fails on
// request, and has two ordinals, so that tests see a switch of devices.
module;

#include <cstdint>
#include <string>

#include "modules/device/cuda/runtime/runtime.h"

export module gridbuf.device.cuda.fake;

import gridbuf.device.emulated;

export namespace gridbuf::cuda {

/// Settings and records of the fake runtime. One per process; reset it before a test.
struct FakeRuntime {
  // Settings.
  std::int64_t failing_call = 0;  // the n-th call from now fails; 0: none
  int error = 999;                // with this number
  std::string failing_function;   // only calls of this entry count; empty: all calls
  int device_count = 2;
  bool has_pools = true;
  bool has_managed = true;
  bool registers = true;  // host_register works

  // Records.
  std::int64_t calls = 0;
  std::int64_t live_allocations = 0;
  std::int64_t live_registrations = 0;
  std::int64_t live_events = 0;
  std::int64_t device_synchronisations = 0;
  int current_device = 0;
};

FakeRuntime& fake();
/// The emulated device below the fake runtime.
EmulatedDriver& fake_device();
const gridbuf_cuda_runtime& fake_runtime();

}  // namespace gridbuf::cuda
