// gridbuf.storage.testing: the elements of a storage, read and written on either side.
//
// Purpose. Tests of storages ask "what does a reader see there?" and "what if a program writes
// here?". These functions do both through the storage's accesses, as a program would, and also
// without them, as the holder of an export would. On the device they are kernels of the emulated
// one: enqueued on the current stream, and run as late as that allows.
//
// Key choice: element type double and row-major lists of values, whatever the view looks like. A
// test then compares lists, and a missing copy, wait or order is a wrong list.
module;

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

export module gridbuf.storage.testing;

import gridbuf.storage;

export namespace gridbuf::testing {

/// Row-major.
using Values = std::vector<double>;

/// The elements as a reader on that side sees them. Waits for the current stream.
absl::StatusOr<Values> read_values(const Storage& storage, Side side);

/// Writes one value per element on that side; on the device without waiting.
absl::Status write_values(const Storage& storage, Side side, Coverage coverage,
                          const Values& values);

/// The same without an access: the storage does not see it.
absl::StatusOr<Values> peek_values(const Storage& storage, Side side);
absl::Status poke_values(const Storage& storage, Side side, const Values& values);

}  // namespace gridbuf::testing
