// gridbuf.alloc.devices.table: the C table of a device, over whichever driver there is.
//
// Programs that share nothing with gridbuf (the conformance suite, a test in another language)
// reach device bytes through eight plain functions; modules/alloc/device/device_table.h is the
// whole interface. C functions carry no context, so there is one table per driver, emulated and
// real, made at the first call and never destroyed.
//
// Everything is checked as for any caller: a wrong address or a dead stream is an error, not a
// crash. The table waits inside `copy` and `synchronize`, so Python calls it without the GIL.
module;

#include "absl/status/statusor.h"
#include "modules/alloc/device/device_table.h"

export module gridbuf.alloc.devices.table;

export namespace gridbuf {

/// The name of the capsule that hands the table to Python.
inline constexpr const char* kDeviceTableCapsule = "gridbuf_device_table_v1";

/// The table of device_driver(). It stays valid, and bound to that driver, for the life of the
/// process. Error: kDeviceUnavailable.
absl::StatusOr<const gridbuf_device_table*> device_table();

}  // namespace gridbuf
