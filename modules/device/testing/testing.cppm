// gridbuf.device.testing: the device of the process as a table of C functions.
//
// The table (device_table.h) is for tests that do not link gridbuf: the conformance suite, and
// tests in other languages. Python gets it from gridbuf.testing.device_table().
module;

#include "absl/status/statusor.h"
#include "modules/device/testing/device_table.h"

export module gridbuf.device.testing;

export namespace gridbuf {

/// The name of the capsule that hands the table to Python.
inline constexpr const char* kDeviceTableCapsule = "gridbuf_device_table_v1";

/// The table of device_driver(), bound to that driver for the life of the process. `copy` and
/// `synchronize` wait, so Python calls them without the GIL. Error: kDeviceUnavailable.
absl::StatusOr<const gridbuf_device_table*> device_table();

}  // namespace gridbuf
