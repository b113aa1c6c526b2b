// gridbuf.device.cuda.fake: a CUDA runtime without a GPU, for the tests of the CUDA driver.
//
// A table like the real one, over an emulated device. It counts its calls, fails where a test says,
// and has two ordinals, so that switching devices shows.
module;

#include <cstdint>
#include <string>

#include "modules/device/cuda/runtime/runtime.h"

export module gridbuf.device.cuda.fake;

import gridbuf.device.emulated;

export namespace gridbuf::cuda {

/// What the fake runtime does next, and what it saw. One per process; reset it before a test.
struct FakeRuntime {
  // What a test sets.
  std::int64_t failing_call = 0;  // the n-th call from now fails; 0: none
  int error = 999;                // with this number
  std::string failing_function;   // only calls of this entry count; empty: of any
  int device_count = 2;
  bool has_pools = true;
  bool has_managed = true;
  bool registers = true;  // host_register works

  // What it saw.
  std::int64_t calls = 0;
  std::int64_t live_allocations = 0;
  std::int64_t live_registrations = 0;
  std::int64_t live_events = 0;
  std::int64_t device_synchronisations = 0;
  int current_device = 0;
};

FakeRuntime& fake();
/// The emulated device below it.
EmulatedDriver& fake_device();
const gridbuf_cuda_runtime& fake_runtime();

}  // namespace gridbuf::cuda
