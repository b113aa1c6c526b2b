module;

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.transfer.device;

import gridbuf.alloc;
import gridbuf.base;
import gridbuf.layout;
import gridbuf.transfer;
import gridbuf.transfer.loops;

namespace gridbuf {
namespace {

using loops::Axis;
using loops::Walk;

// Rows from here on cross the bus at its speed one by one. (A figure from others' measurements: no
// GPU was at hand.)
constexpr std::int64_t kWideRowBytes = 4096;
// So few rows cost less than a kernel and memory to pack them …
constexpr std::int64_t kFewRows = 256;
// … if they are copied by at most this many calls of the driver.
constexpr std::int64_t kFewCalls = 8;

absl::Status check_view(std::string_view role, const std::byte* block, const StridedView& view) {
  const bool needs_memory = !is_empty(view.shape) && view.itemsize_bytes > 0;
  if (byte_hull(view) && (block != nullptr || !needs_memory)) return absl::OkStatus();
  return make_error(ErrorClass::kValue,
                    {role, to_string(view), "a view of memory within 2^63 - 1 bytes",
                     "check block, shape and strides"});
}

absl::Status check_pair(const StridedView& target, const StridedView& source) {
  if (target.shape == source.shape && target.itemsize_bytes == source.itemsize_bytes) {
    return absl::OkStatus();
  }
  return make_error(ErrorClass::kValue, {"the source", to_string(source),
                                         "of the target's shape and itemsize, " + to_string(target),
                                         "broadcast or convert the source first"});
}

// A walk as calls of the driver: a block of rows, repeated for every index of the outer axes.
struct Calls {
  RowCopy rows;
  SmallVec<Axis> outer;
};

// Whether the axis can be the rows of a 2-D copy: steps of at least a row, upwards, on both sides.
bool can_be_rows(const Axis& axis, std::int64_t row_bytes) {
  return axis.target_stride_bytes >= row_bytes && axis.source_stride_bytes >= row_bytes;
}

// The innermost axis becomes the row if it is dense on both sides, the longest possible one of the
// others its repetition. With `in_order` every element is a call of its own, in row-major order.
Calls calls_of(const Walk& walk, std::int64_t itemsize_bytes, bool in_order) {
  Calls calls{{walk.target, 0, walk.source, 0, itemsize_bytes, 1}, walk.axes};
  if (in_order || walk.axes.empty()) return calls;
  int outer_count = walk.axes.size();
  const Axis& innermost = walk.axes[outer_count - 1];
  if (innermost.target_stride_bytes == itemsize_bytes &&
      innermost.source_stride_bytes == itemsize_bytes) {
    calls.rows.row_bytes = innermost.extent * itemsize_bytes;
    --outer_count;
  }
  int rows = -1;
  for (int axis = 0; axis < outer_count; ++axis) {
    if (!can_be_rows(walk.axes[axis], calls.rows.row_bytes)) continue;
    if (rows < 0 || walk.axes[axis].extent > walk.axes[rows].extent) rows = axis;
  }
  calls.outer = {};
  for (int axis = 0; axis < outer_count; ++axis) {
    if (axis != rows) calls.outer.push_back(walk.axes[axis]);
  }
  if (rows < 0) return calls;
  calls.rows.row_count = walk.axes[rows].extent;
  calls.rows.target_pitch_bytes = walk.axes[rows].target_stride_bytes;
  calls.rows.source_pitch_bytes = walk.axes[rows].source_stride_bytes;
  return calls;
}

absl::Status enqueue(DeviceDriver& driver, const RowCopy& rows, StreamHandle stream) {
  if (rows.row_count == 1) return driver.copy(rows.target, rows.source, rows.row_bytes, stream);
  return driver.copy_rows(rows, stream);
}

// Every index of the outer axes in row-major order.
absl::Status enqueue_all(DeviceDriver& driver, const Calls& calls, StreamHandle stream) {
  RowCopy rows = calls.rows;
  auto* target = static_cast<std::byte*>(rows.target);
  const auto* source = static_cast<const std::byte*>(rows.source);
  Extents index(calls.outer.size(), 0);
  while (true) {
    rows.target = target;
    rows.source = source;
    if (absl::Status status = enqueue(driver, rows, stream); !status.ok()) return status;
    int axis = calls.outer.size() - 1;
    for (; axis >= 0; --axis) {
      const Axis& outer = calls.outer[axis];
      target += outer.target_stride_bytes;
      source += outer.source_stride_bytes;
      if (++index[axis] < outer.extent) break;
      target -= outer.extent * outer.target_stride_bytes;
      source -= outer.extent * outer.source_stride_bytes;
      index[axis] = 0;
    }
    if (axis < 0) return absl::OkStatus();
  }
}

// Whether the rows are worth one transfer each, or they and the calls for them are few.
bool are_cheap(const Calls& calls) {
  std::int64_t count = 1;  // fewer than 2^63, as the view is sound
  for (const Axis& axis : calls.outer) count *= axis.extent;
  if (calls.rows.row_bytes >= kWideRowBytes) return true;
  return count <= kFewCalls && count * calls.rows.row_count <= kFewRows;
}

bool is_one_copy(const Calls& calls) { return calls.outer.empty() && calls.rows.row_count == 1; }

// --- Where memory is -----------------------------------------------------------------------------

// Whether a kernel that is launched now can use the memory.
absl::StatusOr<bool> is_devices(DeviceDriver& driver, const void* address) {
  const absl::StatusOr<PointerInfo> info = driver.pointer_info(address);
  if (!info.ok()) return info.status();
  if (info->device.type == DeviceType::kCudaManaged) return true;
  if (info->device.type != DeviceType::kCuda) return false;
  const absl::StatusOr<Device> current = driver.current_device();
  if (!current.ok()) return current.status();
  return info->device == *current;
}

absl::Status launch_copy(DeviceDriver& driver, Walk walk, std::int64_t itemsize_bytes,
                         StreamHandle stream) {
  loops::order_by_target(walk);
  loops::merge_axes(walk);
  return kernels::launch(driver, kernels::plan_copy(walk, itemsize_bytes), stream);
}

absl::Status enqueue_calls(DeviceDriver& driver, Walk walk, std::int64_t itemsize_bytes,
                           StreamHandle stream) {
  loops::order_by_target(walk);
  loops::merge_axes(walk);
  return enqueue_all(driver, calls_of(walk, itemsize_bytes, /*in_order=*/false), stream);
}

// --- Between the host and the device -------------------------------------------------------------

// One side of a walk, for code that is the same both ways.
std::int64_t& host_stride(Axis& axis, bool to_device) {
  return to_device ? axis.source_stride_bytes : axis.target_stride_bytes;
}
std::int64_t& device_stride(Axis& axis, bool to_device) {
  return to_device ? axis.target_stride_bytes : axis.source_stride_bytes;
}

// Turns and sorts the axes as the host's memory has them.
void order_by_host(Walk& walk, bool to_device) {
  for (Axis& axis : walk.axes) {
    if (host_stride(axis, to_device) >= 0) continue;
    walk.target += (axis.extent - 1) * axis.target_stride_bytes;
    walk.source += (axis.extent - 1) * axis.source_stride_bytes;
    axis.target_stride_bytes = -axis.target_stride_bytes;
    axis.source_stride_bytes = -axis.source_stride_bytes;
  }
  std::sort(walk.axes.begin(), walk.axes.end(), [to_device](Axis a, Axis b) {
    return host_stride(a, to_device) > host_stride(b, to_device);
  });
}

// What a walk is in two steps, by way of device memory at `between` that has the host's order
// without its gaps. What the host repeats (a stride of 0) crosses once.
struct TwoSteps {
  Walk over_the_bus;
  Walk on_the_device;
  std::int64_t between_bytes;
};

TwoSteps split(const Walk& walk, bool to_device, std::byte* between, std::int64_t itemsize_bytes) {
  TwoSteps steps{walk, walk, itemsize_bytes};
  steps.over_the_bus.axes = {};
  (to_device ? steps.over_the_bus.target : steps.on_the_device.target) = between;
  (to_device ? steps.on_the_device.source : steps.over_the_bus.source) = between;
  for (int i = walk.axes.size() - 1; i >= 0; --i) {
    Axis bus = walk.axes[i];
    Axis& device = steps.on_the_device.axes[i];
    const bool repeats = host_stride(bus, to_device) == 0;
    const std::int64_t stride = repeats ? 0 : steps.between_bytes;
    device_stride(bus, to_device) = stride;
    host_stride(device, to_device) = stride;
    if (repeats) continue;
    steps.over_the_bus.axes.insert(0, bus);
    steps.between_bytes *= walk.axes[i].extent;
  }
  return steps;
}

// Calls `work` with parts of the walk of at most kBetweenBytes, cut along its outermost axes.
constexpr std::int64_t kBetweenBytes = std::int64_t{64} << 20;

template <class Work>
absl::Status in_parts(const Walk& walk, bool to_device, std::int64_t itemsize_bytes,
                      const Work& work) {
  const std::int64_t bytes = split(walk, to_device, nullptr, itemsize_bytes).between_bytes;
  if (bytes <= kBetweenBytes || walk.axes.empty()) return work(walk);
  const Axis& outermost = walk.axes[0];
  const std::int64_t points = std::max<std::int64_t>(1, kBetweenBytes / (bytes / outermost.extent));
  for (std::int64_t start = 0; start < outermost.extent; start += points) {
    Walk part = walk;
    part.target += start * outermost.target_stride_bytes;
    part.source += start * outermost.source_stride_bytes;
    part.axes[0].extent = std::min(points, outermost.extent - start);
    if (part.axes[0].extent == 1) part.axes.erase(0);
    if (absl::Status status = in_parts(part, to_device, itemsize_bytes, work); !status.ok()) {
      return status;
    }
  }
  return absl::OkStatus();
}

absl::Status copy_in_two_steps(DeviceDriver& driver, const TwoSteps& steps, bool to_device,
                               std::int64_t itemsize_bytes, StreamHandle stream) {
  const auto over_the_bus = [&] {
    return enqueue_calls(driver, steps.over_the_bus, itemsize_bytes, stream);
  };
  const auto on_the_device = [&] {
    return launch_copy(driver, steps.on_the_device, itemsize_bytes, stream);
  };
  absl::Status status = to_device ? over_the_bus() : on_the_device();
  if (!status.ok()) return status;
  return to_device ? on_the_device() : over_the_bus();
}

// Whether the host's side of a walk, alone, has rows that the bus takes well.
bool is_cheap_in_order_of_host(const Walk& walk, bool to_device, std::int64_t itemsize_bytes) {
  Walk bus = split(walk, to_device, nullptr, itemsize_bytes).over_the_bus;
  loops::order_by_target(bus);
  loops::merge_axes(bus);
  return are_cheap(calls_of(bus, itemsize_bytes, /*in_order=*/false));
}

// By way of device memory; nothing if there is none for it.
absl::StatusOr<bool> copy_by_the_device(DeviceDriver& driver, Walk walk, bool to_device,
                                        std::int64_t itemsize_bytes, StreamHandle stream) {
  order_by_host(walk, to_device);
  if (!is_cheap_in_order_of_host(walk, to_device, itemsize_bytes)) return false;
  const std::int64_t bytes = split(walk, to_device, nullptr, itemsize_bytes).between_bytes;
  const ScopedStream scope(stream);
  const absl::StatusOr<Block> between =
      driver.resource(MemoryKind::kDevice)
          .allocate({.total_bytes = std::min(bytes, std::max(kBetweenBytes, itemsize_bytes)),
                     .alignment_bytes = 256});
  if (!between.ok()) {
    if (error_class_of(between.status()) == ErrorClass::kMemory) return false;
    return between.status();
  }
  const absl::Status status = in_parts(walk, to_device, itemsize_bytes, [&](const Walk& part) {
    return copy_in_two_steps(driver, split(part, to_device, between->data(), itemsize_bytes),
                             to_device, itemsize_bytes, stream);
  });
  if (!status.ok()) return status;
  return true;
}

// --- Copies and fills ----------------------------------------------------------------------------

// Repetitions in the target (strides of 0) leave of each element what was written last.
void keep_the_last(StridedView& target, StridedView& source) {
  for (int axis = 0; axis < target.ndim(); ++axis) {
    if (target.strides_bytes[axis] != 0 || target.shape[axis] == 1) continue;
    source.offset_bytes += (target.shape[axis] - 1) * source.strides_bytes[axis];
    target.shape[axis] = 1;
    source.shape[axis] = 1;
  }
}

// Copies between blocks that share no byte.
absl::Status copy_apart(DeviceDriver& driver, std::byte* target_block, StridedView target,
                        const std::byte* source_block, StridedView source, StreamHandle stream) {
  keep_the_last(target, source);
  Walk walk = loops::make_walk(target_block, target, source_block, source);
  const std::int64_t itemsize_bytes = target.itemsize_bytes;
  // Where elements of the target share bytes, the order of writing shows: it stays row-major.
  if (loops::may_overlap_itself(target)) {
    return enqueue_all(driver, calls_of(walk, itemsize_bytes, /*in_order=*/true), stream);
  }
  loops::order_by_target(walk);
  loops::merge_axes(walk);
  const Calls calls = calls_of(walk, itemsize_bytes, /*in_order=*/false);
  if (is_one_copy(calls)) return enqueue_all(driver, calls, stream);
  const absl::StatusOr<bool> to_device = is_devices(driver, walk.target);
  if (!to_device.ok()) return to_device.status();
  const absl::StatusOr<bool> from_device = is_devices(driver, walk.source);
  if (!from_device.ok()) return from_device.status();
  if (*to_device && *from_device) return launch_copy(driver, walk, itemsize_bytes, stream);
  if (*to_device != *from_device && !are_cheap(calls)) {
    const absl::StatusOr<bool> done =
        copy_by_the_device(driver, walk, *to_device, itemsize_bytes, stream);
    if (!done.ok()) return done.status();
    if (*done) return absl::OkStatus();
  }
  return enqueue_all(driver, calls, stream);
}

absl::Status copy_overlapping(DeviceDriver& driver, std::byte* target_block,
                              const StridedView& target, const std::byte* source_block,
                              const StridedView& source, StreamHandle stream) {
  const std::optional<StridedView> between = loops::packed(source);
  const std::optional<checked::ByteHull> hull = between ? byte_hull(*between) : std::nullopt;
  if (!hull) {
    return make_error(ErrorClass::kValue, {"the source", to_string(source),
                                           "of at most 2^63 - 1 bytes", "copy a smaller part"});
  }
  const ScopedStream scope(stream);
  const absl::StatusOr<Block> scratch =
      driver.resource(MemoryKind::kDevice).allocate({.total_bytes = hull->highest_bytes});
  if (!scratch.ok()) return with_context(scratch.status(), "copy between overlapping views");
  if (absl::Status status =
          copy_apart(driver, scratch->data(), *between, source_block, source, stream);
      !status.ok()) {
    return status;
  }
  return copy_apart(driver, target_block, target, scratch->data(), *between, stream);
}

}  // namespace

absl::Status copy_elements_on(DeviceDriver& driver, std::byte* target_block,
                              const StridedView& target, const std::byte* source_block,
                              const StridedView& source, StreamHandle stream) {
  for (const absl::Status& status :
       {check_pair(target, source), check_view("the target", target_block, target),
        check_view("the source", source_block, source), driver.check_stream(stream)}) {
    if (!status.ok()) return status;
  }
  if (is_empty(target.shape) || target.itemsize_bytes == 0) return absl::OkStatus();
  if (!loops::overlap(loops::range_of(target_block, target),
                      loops::range_of(source_block, source))) {
    return copy_apart(driver, target_block, target, source_block, source, stream);
  }
  if (!loops::may_overlap_itself(target) &&
      loops::same_elements(target_block, target, source_block, source)) {
    return absl::OkStatus();
  }
  return copy_overlapping(driver, target_block, target, source_block, source, stream);
}

namespace {

// The element as a view of the target's shape.
StridedView repeated(const StridedView& target) {
  return {.shape = target.shape,
          .strides_bytes = Extents(target.ndim(), 0),
          .itemsize_bytes = target.itemsize_bytes};
}

bool is_one_byte(std::span<const std::byte> element) {
  return std::all_of(element.begin(), element.end(),
                     [&](std::byte byte) { return byte == element[0]; });
}

// Whether the processor writes it: memory of the host, which the driver may know.
bool is_plain(DeviceDriver& driver, const void* address) {
  const absl::StatusOr<PointerInfo> info = driver.pointer_info(address);
  return info.ok() && info->host_accessible && info->device.type != DeviceType::kCudaManaged;
}

// Fills memory of the device whose elements share no byte; false if the element is too long.
absl::StatusOr<bool> fill_on_device(DeviceDriver& driver, Walk walk,
                                    std::span<const std::byte> element, StreamHandle stream) {
  loops::order_by_target(walk);
  loops::merge_axes(walk);
  const std::int64_t itemsize_bytes = std::ssize(element);
  const bool is_dense = walk.axes.empty() || (walk.axes.size() == 1 &&
                                              walk.axes[0].target_stride_bytes == itemsize_bytes);
  absl::Status status;
  if (is_dense && is_one_byte(element)) {
    const std::int64_t extent = walk.axes.empty() ? 1 : walk.axes[0].extent;
    status = driver.fill(walk.target, element[0], extent * itemsize_bytes, stream);
  } else {
    const absl::StatusOr<kernels::Move> move = kernels::plan_fill(walk, element);
    if (!move.ok()) return false;
    status = kernels::launch(driver, *move, stream);
  }
  if (!status.ok()) return status;
  return true;
}

}  // namespace

absl::Status fill_elements_on(DeviceDriver& driver, std::byte* target_block,
                              const StridedView& target, std::span<const std::byte> element,
                              StreamHandle stream) {
  if (std::ssize(element) != target.itemsize_bytes) {
    return make_error(ErrorClass::kValue,
                      {"the element", std::to_string(element.size()) + " bytes long",
                       "of the target's itemsize, " + std::to_string(target.itemsize_bytes),
                       "convert it to the target's element type"});
  }
  for (const absl::Status& status :
       {check_view("the target", target_block, target), driver.check_stream(stream)}) {
    if (!status.ok()) return status;
  }
  if (is_empty(target.shape) || target.itemsize_bytes == 0) return absl::OkStatus();
  StridedView once = target;
  StridedView source = repeated(target);
  keep_the_last(once, source);
  const Walk walk = loops::make_walk(target_block, once, element.data(), source);
  const absl::StatusOr<bool> on_device = is_devices(driver, walk.target);
  if (!on_device.ok()) return on_device.status();
  if (*on_device && !loops::may_overlap_itself(once)) {
    const absl::StatusOr<bool> done = fill_on_device(driver, walk, element, stream);
    if (!done.ok()) return done.status();
    if (*done) return absl::OkStatus();
  }
  if (is_plain(driver, walk.target)) {
    if (absl::Status status = driver.synchronize(stream); !status.ok()) return status;
    return fill_elements(target_block, target, element);
  }
  return copy_elements_on(driver, target_block, once, element.data(), source, stream);
}

bool has_narrow_rows(const StridedView& view) {
  if (is_empty(view.shape) || view.itemsize_bytes == 0) return false;
  Walk walk{nullptr, nullptr, {}};
  for (int axis = 0; axis < view.ndim(); ++axis) {
    const std::int64_t stride = view.strides_bytes[axis];
    if (view.shape[axis] != 1)
      walk.axes.push_back({view.shape[axis], 0, stride < 0 ? -stride : stride});
  }
  order_by_host(walk, /*to_device=*/true);
  return !is_cheap_in_order_of_host(walk, /*to_device=*/true, view.itemsize_bytes);
}

}  // namespace gridbuf
