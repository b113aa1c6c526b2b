// gridbuf.device.registry: which devices there are.
//
// `device_driver` answers with the emulated device while it is switched on, else with CUDA, else
// with an error that says what was looked for. Nothing looks for a device before the first such
// call. `device_table` is that driver as a table of plain C functions (device_table.h), for
// programs that share nothing with gridbuf (the conformance suite, a test in another language).
//
// Key decision. The emulated device is switched on by name, in the environment
// (GRIDBUF_DEVICE=emulated) or by a call, and not as a fallback: a program that runs on it by
// accident would be right and useless. The switch decides what is allocated from then on; existing
// memory belongs to the driver that made it (`driver_of`). Only exports of emulated memory end with
// the switch, because other libraries may not take it for a GPU's.
module;

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "modules/device/registry/device_table.h"

export module gridbuf.device.registry;

import gridbuf.alloc;
import gridbuf.device;

export namespace gridbuf {

/// The variable that chooses a device for the whole process: "emulated", "cuda" (or unset).
inline constexpr const char* kDeviceVariable = "GRIDBUF_DEVICE";

/// The device of this process. Error: kDeviceUnavailable, saying what was looked for, or that
/// GRIDBUF_DEVICE names no device.
absl::StatusOr<DeviceDriver*> device_driver();

/// The source of memory of one kind. kHost needs no device: it is host_resource(). Errors as above.
absl::StatusOr<MemoryResource*> memory_resource(DeviceType type);

/// The driver that made the block at `address`, or that knows the address; null for ordinary memory
/// of the host, and where there is no device. Never starts one.
DeviceDriver* driver_of(const void* address);

/// Whether device_driver() is the emulated one.
bool emulated_device_is_on();

/// Switches it on or off for the whole process, against the environment too; returns what it was.
bool switch_emulated_device(bool on);

/// What show_config prints of devices: ("emulated device", "off"), ("cuda", "not built in: …").
/// Looks for CUDA, but does not start it.
std::vector<std::pair<std::string, std::string>> device_info();

/// The name of the capsule that hands the table to Python.
inline constexpr const char* kDeviceTableCapsule = "gridbuf_device_table_v1";

/// The table of device_driver(), bound to that driver for the life of the process. `copy` and
/// `synchronize` wait, so Python calls them without the GIL. Error: kDeviceUnavailable.
absl::StatusOr<const gridbuf_device_table*> device_table();

}  // namespace gridbuf
