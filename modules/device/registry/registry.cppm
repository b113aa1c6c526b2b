// gridbuf.device.registry: the devices of the process.
//
// `device_driver` returns the emulated device while it is switched on, else CUDA, else an error
// that names the devices it tried. gridbuf does not look for a device before the first such call.
// `device_table` is that driver as a table of plain C functions (device_table.h), for programs that
// do not link gridbuf (the conformance suite, a test in another language).
//
// Key decision. The emulated device is switched on by name: in the environment
// (GRIDBUF_DEVICE=emulated) or by a call. It is not a fallback, because a program that uses it by
// accident would be correct but much too slow. The switch only applies to later allocations;
// existing memory belongs to the driver that allocated it (`driver_of`). When the device is
// switched off, emulated memory is no longer exported, because other libraries would use it as GPU
// memory.
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

/// The variable that selects the device of the process: "emulated", or "cuda" (the default).
inline constexpr const char* kDeviceVariable = "GRIDBUF_DEVICE";

/// The device of this process. Error: kDeviceUnavailable, naming the devices it tried or a wrong
/// value of GRIDBUF_DEVICE.
absl::StatusOr<DeviceDriver*> device_driver();

/// The source of memory of one kind; for kHost, host_resource(). Errors as above.
absl::StatusOr<MemoryResource*> memory_resource(DeviceType type);

/// The driver that allocated the block at `address`, or that knows the address. Null for ordinary
/// memory of the host, or without a device. Never starts a driver.
DeviceDriver* driver_of(const void* address);

/// Whether device_driver() is the emulated device.
bool emulated_device_is_on();

/// Switches the emulated device on or off for the whole process; overrides the environment. Returns
/// the previous state.
bool switch_emulated_device(bool on);

/// The devices for show_config: ("emulated device", "off"), ("cuda", "not built in: …"). Looks for
/// CUDA, but does not start it.
std::vector<std::pair<std::string, std::string>> device_info();

/// The name of the capsule that hands the table to Python.
inline constexpr const char* kDeviceTableCapsule = "gridbuf_device_table_v1";

/// The table of device_driver(), bound to that driver for the life of the process. `copy` and
/// `synchronize` wait, so Python calls them without the GIL. Error: kDeviceUnavailable.
absl::StatusOr<const gridbuf_device_table*> device_table();

}  // namespace gridbuf
