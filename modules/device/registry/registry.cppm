// gridbuf.device.registry: the devices of the process.
//
// `device_driver` returns the emulated device while it is switched on, else CUDA, else an error
// that names the devices it tried. gridbuf does not look for a device before the first such call.
//
// This library does not depend on the drivers, so a program that only uses the host does not link
// them. A program that uses a device depends on //modules/device/drivers, which registers both.
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

export module gridbuf.device.registry;

export import gridbuf.device;

export namespace gridbuf {

/// The variable that selects the device of the process: "emulated", or "cuda" (the default).
inline constexpr const char* kDeviceVariable = "GRIDBUF_DEVICE";

/// The device of this process. Error: kDeviceUnavailable, naming the devices it tried, a wrong
/// value of GRIDBUF_DEVICE, or the dependency that links the drivers.
absl::StatusOr<DeviceDriver*> device_driver();

/// The source of memory of one kind; for kHost, host_resource(). Errors as above.
absl::StatusOr<MemoryResource*> memory_resource(MemoryKind kind);

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
DeviceInfo device_info();

/// What the started drivers have in use, by the name of the driver. Never starts one.
std::vector<std::pair<std::string, LiveBytes>> device_live_bytes();

/// The drivers that a program may link.
enum class DeviceKind { kCuda, kEmulated };

/// A driver, for //modules/device/drivers.
struct LinkedDevice {
  absl::StatusOr<DeviceDriver*> (*start)();
  DeviceDriver* (*started)();  // null before
  DeviceInfo (*info)();        // does not start it
};

/// Registers a device that lives as long as the process; called before main. Returns true.
bool link_device(DeviceKind kind, const LinkedDevice& device);

}  // namespace gridbuf
