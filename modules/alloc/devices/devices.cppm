// gridbuf.alloc.devices: which device there is.
//
// The one module that knows both drivers. `device_driver` answers with the emulated device while it
// is switched on, else with CUDA, else with an error that says what was looked for. Nothing looks
// for a device before the first such call, so a program that uses host memory alone needs no
// driver, no GPU and no time for either.
//
// The key choice: the emulated device is switched on by name, in the environment
// (GRIDBUF_DEVICE=emulated) or by a call, and never as a fallback. A program that runs on it by
// accident would be right and useless.
//
// The switch decides what is allocated from then on, and nothing else. Memory that is there stays
// what it is, and belongs to the driver that made it: `driver_of` finds that one by address. So
// switching while memory lives is harmless; only exports of emulated memory end with the switch,
// for nobody else may take it for a GPU's.
module;

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

export module gridbuf.alloc.devices;

import gridbuf.alloc.device;
import gridbuf.alloc;

export namespace gridbuf {

/// The variable that chooses a device for the whole process: "emulated", "cuda" (or unset).
inline constexpr const char* kDeviceVariable = "GRIDBUF_DEVICE";

/// The device of this process. Error: kDeviceUnavailable, saying what was looked for, or that
/// GRIDBUF_DEVICE names no device.
absl::StatusOr<DeviceDriver*> device_driver();

/// The source of memory of one kind. kHost needs no device: it is host_resource(). Errors as above.
absl::StatusOr<MemoryResource*> memory_resource(MemoryKind kind);

/// The driver that made the block at `address`, or that knows the address; null for ordinary memory
/// of the host, and where there is no device. Never starts one.
DeviceDriver* driver_of(const void* address);

/// Whether device_driver() is the emulated one.
bool emulated_device_is_on();

/// Switches it on or off for the whole process, against the environment too; returns what it was.
bool switch_emulated_device(bool on);

/// What show_config prints of devices: ("emulated device", "off"), ("cuda", "not built in: …").
/// Looks for CUDA, but does not start it.
std::vector<std::pair<std::string, std::string>> device_facts();

}  // namespace gridbuf
