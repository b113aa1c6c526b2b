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

#include <cstdint>
#include <functional>
#include <utility>
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

/// first, first + 1, …: one value per element.
Values counting(const Storage& storage, double first);

/// The view of the points start, start + step, … before stop.
Storage sliced(const Storage& storage, int axis, std::int64_t start, std::int64_t stop,
               std::int64_t step = 1);

/// The bytes that `work` moves to the emulated device, and from it. Waits for the device; an error
/// of the device is a std::runtime_error.
std::pair<std::int64_t, std::int64_t> moved(const std::function<void()>& work);

}  // namespace gridbuf::testing
