module;

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.storage.testing;

import gridbuf.device;
import gridbuf.device.emulated;
import gridbuf.storage;

namespace gridbuf::testing {
namespace {

// Calls visit(offset in bytes) for every element in row-major order.
template <class Visit>
void visit_elements(const StridedView& view, const Visit& visit) {
  if (is_empty(view.shape)) return;
  Extents index(view.ndim(), 0);
  while (true) {
    visit(byte_offset(view, index));
    int axis = view.ndim() - 1;
    for (; axis >= 0; --axis) {
      if (++index[axis] < view.shape[axis]) break;
      index[axis] = 0;
    }
    if (axis < 0) return;
  }
}

Values gather(const std::byte* block, const StridedView& view) {
  Values values;
  visit_elements(view, [&](std::int64_t offset) {
    double value = 0;
    std::memcpy(&value, block + offset, sizeof(value));
    values.push_back(value);
  });
  return values;
}

void scatter(std::byte* block, const StridedView& view, const Values& values) {
  std::size_t next = 0;
  visit_elements(view, [&](std::int64_t offset) {
    std::memcpy(block + offset, &values.at(next++), sizeof(double));
  });
}

// Enqueues a kernel that gets the memory as its block.
template <class Work>
absl::Status launch(const BufferDescriptor& memory, const Work& work) {
  const checked::ByteHull hull = *byte_hull(memory.view);
  return emulated_driver().launch(current_stream(), [=](KernelMemory& kernel) -> absl::Status {
    const absl::StatusOr<std::byte*> lowest =
        kernel.at(memory.block + hull.lowest_bytes, hull.length_bytes());
    if (!lowest.ok()) return lowest.status();
    work(*lowest - hull.lowest_bytes, memory.view);
    return absl::OkStatus();
  });
}

}  // namespace

absl::StatusOr<Values> peek_values(const Storage& storage, Side side) {
  const BufferDescriptor memory = storage.memory(side);
  if (side == Side::kHost) return gather(memory.block, memory.view);
  if (memory.is_empty()) return Values{};
  const auto values = std::make_shared<Values>();
  const absl::Status launched = launch(
      memory,
      [values](const std::byte* block, const StridedView& view) { *values = gather(block, view); });
  if (!launched.ok()) return launched;
  if (absl::Status status = emulated_driver().synchronize(current_stream()); !status.ok()) {
    return status;
  }
  return *values;
}

absl::Status poke_values(const Storage& storage, Side side, const Values& values) {
  const BufferDescriptor memory = storage.memory(side);
  if (memory.is_empty()) return absl::OkStatus();
  if (side == Side::kHost) {
    scatter(memory.block, memory.view, values);
    return absl::OkStatus();
  }
  return launch(memory, [values](std::byte* block, const StridedView& view) {
    scatter(block, view, values);
  });
}

absl::StatusOr<Values> read_values(const Storage& storage, Side side) {
  if (absl::Status status = storage.read(side); !status.ok()) return status;
  return peek_values(storage, side);
}

absl::Status write_values(const Storage& storage, Side side, Coverage coverage,
                          const Values& values) {
  if (absl::Status status = storage.begin_write(side, coverage); !status.ok()) return status;
  const absl::Status status = poke_values(storage, side, values);
  storage.end_write(side);
  return status;
}

Values counting(const Storage& storage, double first) {
  Values values(static_cast<std::size_t>(storage.nbytes()) / sizeof(double));
  std::iota(values.begin(), values.end(), first);
  return values;
}

Storage sliced(const Storage& storage, int axis, std::int64_t start, std::int64_t stop,
               std::int64_t step) {
  IndexMap map(storage.shape());
  map.keep(axis, slice_points({start, stop, step}, storage.shape()[axis]));
  return storage.view(map);
}

std::pair<std::int64_t, std::int64_t> moved(const std::function<void()>& work) {
  const auto statistics = [] {
    const absl::Status status = emulated_driver().synchronize_device();
    if (!status.ok()) throw std::runtime_error(status.ToString());
    return emulated_driver().statistics();
  };
  const EmulatedStatistics before = statistics();
  work();
  const EmulatedStatistics after = statistics();
  return {after.host_to_device_bytes - before.host_to_device_bytes,
          after.device_to_host_bytes - before.device_to_host_bytes};
}

}  // namespace gridbuf::testing
