// gridbuf.storage.testing: the elements of a storage, read and written on either side.
//
// Purpose. Tests of storages read and write elements on both sides. These functions use the
// storage's accesses, as a program does, or bypass them, as the holder of an export does. On the
// device they are kernels of the emulated device: enqueued on the current stream, and run as late
// as that allows.
//
// Key decision: the element type is double, and values are row-major lists for every view. A test
// then compares lists, and a missing copy, wait or order gives a wrong list.
module;

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

export module gridbuf.storage.testing;

import gridbuf.storage;

export namespace gridbuf::testing {

/// The values in row-major order.
using Values = std::vector<double>;

/// The elements that a reader on that side sees. Waits for the current stream.
absl::StatusOr<Values> read_values(const Storage& storage, Side side);

/// Writes one value per element on that side. Does not wait for the device.
absl::Status write_values(const Storage& storage, Side side, Coverage coverage,
                          const Values& values);

/// As above, without an access: the storage does not see it.
absl::StatusOr<Values> peek_values(const Storage& storage, Side side);
absl::Status poke_values(const Storage& storage, Side side, const Values& values);

}  // namespace gridbuf::testing
