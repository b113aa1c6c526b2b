module;

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "modules/base/status_macros.h"

module gridbuf.transfer.device;

import gridbuf.alloc;
import gridbuf.base;
import gridbuf.layout;
import gridbuf.layout.view;
import gridbuf.transfer;
import gridbuf.transfer.loops;

namespace gridbuf {
namespace {

using loops::Axis;
using loops::Walk;

// Rows from this length on cross the bus at full speed one by one. (From published measurements.)
constexpr std::int64_t kWideRowBytes = 4096;
// Up to this number, rows cost less than a kernel and memory to pack them …
constexpr std::int64_t kFewRows = 256;
// … if they are copied by at most this many calls of the driver.
constexpr std::int64_t kFewCalls = 8;

// --- Copies by the driver ------------------------------------------------------------------------

// A walk as calls of the driver: a block of rows, repeated for every index of the outer axes.
struct Calls {
  RowCopy rows;
  SmallVec<Axis> outer;

  // Whether the rows are long enough for one transfer each, or rows and calls are few.
  bool are_cheap() const {
    std::int64_t count = 1;  // fewer than 2^63, as the view is sound
    for (const Axis& axis : outer) count *= axis.extent;
    if (rows.row_bytes >= kWideRowBytes) return true;
    return count <= kFewCalls && count * rows.row_count <= kFewRows;
  }
};

// The innermost axis becomes the row if it is dense on both sides. The longest suitable other axis
// becomes its repetition.
Calls calls_of(const Walk& walk, std::int64_t itemsize_bytes) {
  Calls calls{{walk.target, 0, walk.source, 0, itemsize_bytes, 1}, walk.axes};
  SmallVec<Axis>& outer = calls.outer;
  RowCopy& rows = calls.rows;
  if (outer.empty()) return calls;
  const Axis& innermost = outer[outer.size() - 1];
  if (innermost.target_stride_bytes == itemsize_bytes &&
      innermost.source_stride_bytes == itemsize_bytes) {
    rows.row_bytes = innermost.extent * itemsize_bytes;
    outer.erase(outer.size() - 1);
  }
  int repeated = -1;
  for (int i = 0; i < outer.size(); ++i) {
    // The pitches of a 2-D copy are positive, and at least a row, on both sides.
    if (outer[i].target_stride_bytes < rows.row_bytes) continue;
    if (outer[i].source_stride_bytes < rows.row_bytes) continue;
    if (repeated < 0 || outer[i].extent > outer[repeated].extent) repeated = i;
  }
  if (repeated < 0) return calls;
  rows.row_count = outer[repeated].extent;
  rows.target_pitch_bytes = outer[repeated].target_stride_bytes;
  rows.source_pitch_bytes = outer[repeated].source_stride_bytes;
  outer.erase(repeated);
  return calls;
}

// Every index of the outer axes in row-major order.
absl::Status enqueue_all(DeviceDriver& driver, const Calls& calls, StreamHandle stream) {
  RowCopy rows = calls.rows;
  loops::Odometer at(calls.outer, static_cast<std::byte*>(rows.target),
                     static_cast<const std::byte*>(rows.source));
  do {
    rows.target = at.target();
    rows.source = at.source();
    GRIDBUF_RETURN_IF_ERROR(rows.row_count == 1
                                ? driver.copy(rows.target, rows.source, rows.row_bytes, stream)
                                : driver.copy_rows(rows, stream));
  } while (at.next());
  return absl::OkStatus();
}

// --- Kernels -------------------------------------------------------------------------------------

// Whether a kernel that is launched now can use the memory.
absl::StatusOr<bool> is_devices(DeviceDriver& driver, const void* address) {
  GRIDBUF_ASSIGN_OR_RETURN(const auto& info, driver.pointer_info(address));
  const MemoryKind kind = memory_kind(info.device.type);
  if (kind == MemoryKind::kManaged) return true;
  if (kind != MemoryKind::kDevice) return false;
  GRIDBUF_ASSIGN_OR_RETURN(const auto& current, driver.current_device());
  return info.device == current;
}

Walk in_order_of_target(Walk walk) {
  loops::order_by_target(walk);
  loops::merge_axes(walk);
  return walk;
}

absl::Status launch_copy(DeviceDriver& driver, const Walk& walk, std::int64_t itemsize_bytes,
                         StreamHandle stream) {
  return driver.launch(
      kernels::kernel_of(kernels::plan_copy(in_order_of_target(walk), itemsize_bytes)), stream);
}

// --- Packed copies between the host and the device -----------------------------------------------

// A walk in two steps, through memory in the order of its axes without gaps. Elements that the host
// repeats (a stride of 0) cross once.
struct TwoSteps {
  Walk over_the_bus;
  Walk on_the_device;
  std::int64_t packed_bytes;
};

TwoSteps split(const Walk& walk, bool to_device, std::byte* packed, std::int64_t itemsize_bytes) {
  TwoSteps steps{walk, walk, itemsize_bytes};
  steps.over_the_bus.axes = {};
  (to_device ? steps.over_the_bus.target : steps.on_the_device.target) = packed;
  (to_device ? steps.on_the_device.source : steps.over_the_bus.source) = packed;
  for (int i = walk.axes.size() - 1; i >= 0; --i) {
    Axis bus = walk.axes[i];
    Axis& device = steps.on_the_device.axes[i];
    const bool repeats = (to_device ? bus.source_stride_bytes : bus.target_stride_bytes) == 0;
    const std::int64_t stride = repeats ? 0 : steps.packed_bytes;
    (to_device ? bus.target_stride_bytes : bus.source_stride_bytes) = stride;
    (to_device ? device.source_stride_bytes : device.target_stride_bytes) = stride;
    if (repeats) continue;
    steps.over_the_bus.axes.insert(0, bus);
    steps.packed_bytes *= walk.axes[i].extent;
  }
  return steps;
}

// By the processor.
void copy_on_host(const Walk& walk, std::int64_t itemsize_bytes) {
  StridedView target{.itemsize_bytes = itemsize_bytes};
  StridedView source = target;
  for (const Axis& axis : walk.axes) {
    for (StridedView* view : {&target, &source}) view->shape.push_back(axis.extent);
    target.strides_bytes.push_back(axis.target_stride_bytes);
    source.strides_bytes.push_back(axis.source_stride_bytes);
  }
  loops::copy_view(walk.target, target, walk.source, source);
}

// A copy between the host and the device whose elements cross packed, in pieces.
struct PackedCopy {
  DeviceDriver& driver;
  bool to_device;
  std::int64_t itemsize_bytes;
  StreamHandle stream;
  Block packed = {};
  Block pinned = {};  // where the processor packs; without it rows of the host cross

  // False if there is no memory for packed elements.
  absl::StatusOr<bool> run(Walk walk) {
    to_device ? loops::order_by_source(walk) : loops::order_by_target(walk);
    const TwoSteps steps = split(walk, to_device, nullptr, itemsize_bytes);
    const Calls bus = calls_of(in_order_of_target(steps.over_the_bus), itemsize_bytes);
    const std::int64_t bytes = std::min(steps.packed_bytes, most_bytes());
    GRIDBUF_ASSIGN_OR_RETURN(const bool has_packed, allocate(MemoryKind::kDevice, bytes, packed));
    if (!has_packed) return false;
    if (!bus.are_cheap()) {
      GRIDBUF_ASSIGN_OR_RETURN(const bool has, allocate(MemoryKind::kPinned, bytes, pinned));
      if (!has) return false;
    }
    GRIDBUF_RETURN_IF_ERROR(copy(walk));
    return true;
  }

 private:
  std::int64_t most_bytes() const { return std::max(kStagingBytes, itemsize_bytes); }

  absl::StatusOr<bool> allocate(MemoryKind kind, std::int64_t bytes, Block& block) {
    const ScopedStream scope(stream);
    absl::StatusOr<Block> made =
        driver.resource(kind).allocate({.total_bytes = bytes, .alignment_bytes = 256});
    if (!made.ok() && error_class_of(made.status()) == ErrorClass::kMemory) return false;
    GRIDBUF_RETURN_IF_ERROR(made.status());
    block = *std::move(made);
    return true;
  }

  // Cuts the walk along its outermost axes.
  absl::Status copy(const Walk& walk) {
    const TwoSteps steps = split(walk, to_device, packed.data(), itemsize_bytes);
    if (steps.packed_bytes <= most_bytes()) return copy_piece(steps);
    const Axis& outermost = walk.axes[0];
    const std::int64_t point_bytes = steps.packed_bytes / outermost.extent;
    const std::int64_t points = std::max<std::int64_t>(1, most_bytes() / point_bytes);
    for (std::int64_t start = 0; start < outermost.extent; start += points) {
      Walk part = walk;
      part.target += start * outermost.target_stride_bytes;
      part.source += start * outermost.source_stride_bytes;
      part.axes[0].extent = std::min(points, outermost.extent - start);
      if (part.axes[0].extent == 1) part.axes.erase(0);
      GRIDBUF_RETURN_IF_ERROR(copy(part));
    }
    return absl::OkStatus();
  }

  absl::Status copy_piece(const TwoSteps& steps) {
    if (to_device) GRIDBUF_RETURN_IF_ERROR(cross(steps));
    GRIDBUF_RETURN_IF_ERROR(launch_copy(driver, steps.on_the_device, itemsize_bytes, stream));
    return to_device ? absl::OkStatus() : cross(steps);
  }

  absl::Status cross(const TwoSteps& steps) {
    Walk walk = steps.over_the_bus;
    if (pinned.data() == nullptr) {
      return enqueue_all(driver, calls_of(in_order_of_target(walk), itemsize_bytes), stream);
    }
    if (to_device) {
      walk.target = pinned.data();
      // The previous piece may still use the memory.
      GRIDBUF_RETURN_IF_ERROR(driver.synchronize(stream));
      copy_on_host(walk, itemsize_bytes);
      return driver.copy(packed.data(), pinned.data(), steps.packed_bytes, stream);
    }
    walk.source = pinned.data();
    GRIDBUF_RETURN_IF_ERROR(driver.copy(pinned.data(), packed.data(), steps.packed_bytes, stream));
    GRIDBUF_RETURN_IF_ERROR(driver.synchronize(stream));
    copy_on_host(walk, itemsize_bytes);
    return absl::OkStatus();
  }
};

// --- Copies and fills ----------------------------------------------------------------------------

// For repetitions in the target (strides of 0), keeps only the last write.
void keep_the_last(StridedView& target, StridedView& source) {
  for (int axis = 0; axis < target.ndim(); ++axis) {
    if (target.strides_bytes[axis] != 0 || target.shape[axis] == 1) continue;
    source.offset_bytes += (target.shape[axis] - 1) * source.strides_bytes[axis];
    target.shape[axis] = 1;
    source.shape[axis] = 1;
  }
}

// Copies between blocks that do not share bytes.
absl::Status copy_apart(DeviceDriver& driver, std::byte* target_block, StridedView target,
                        const std::byte* source_block, StridedView source, StreamHandle stream) {
  keep_the_last(target, source);
  Walk walk = loops::make_walk(target_block, target, source_block, source);
  const std::int64_t itemsize_bytes = target.itemsize_bytes;
  // If elements of the target share bytes, the order of writes matters: it stays row-major, with a
  // call for each element.
  if (loops::may_overlap_itself(target)) {
    const RowCopy element{walk.target, 0, walk.source, 0, itemsize_bytes, 1};
    return enqueue_all(driver, {element, walk.axes}, stream);
  }
  walk = in_order_of_target(walk);
  const Calls calls = calls_of(walk, itemsize_bytes);
  if (calls.outer.empty() && calls.rows.row_count == 1) return enqueue_all(driver, calls, stream);
  GRIDBUF_ASSIGN_OR_RETURN(const bool to_device, is_devices(driver, walk.target));
  GRIDBUF_ASSIGN_OR_RETURN(const bool from_device, is_devices(driver, walk.source));
  if (to_device && from_device) return launch_copy(driver, walk, itemsize_bytes, stream);
  if (to_device != from_device && !calls.are_cheap()) {
    PackedCopy packed{driver, to_device, itemsize_bytes, stream};
    GRIDBUF_ASSIGN_OR_RETURN(const bool done, packed.run(walk));
    if (done) return absl::OkStatus();
  }
  return enqueue_all(driver, calls, stream);
}

absl::Status copy_parts(DeviceDriver& driver, std::byte* target_block, const StridedView& target,
                        const std::byte* source_block, const StridedView& source,
                        StreamHandle stream, const ElementParts* parts) {
  return for_parts(
      parts,
      [&](const StridedView& to, const StridedView& from) {
        return copy_apart(driver, target_block, to, source_block, from, stream);
      },
      target, source);
}

absl::Status copy_overlapping(DeviceDriver& driver, std::byte* target_block,
                              const StridedView& target, const std::byte* source_block,
                              const StridedView& source, StreamHandle stream,
                              const ElementParts* parts) {
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
  GRIDBUF_RETURN_IF_ERROR(
      copy_apart(driver, scratch->data(), *between, source_block, source, stream));
  return copy_parts(driver, target_block, target, scratch->data(), *between, stream, parts);
}

}  // namespace

absl::Status copy_elements_on(DeviceDriver& driver, std::byte* target_block,
                              const StridedView& target, const std::byte* source_block,
                              const StridedView& source, StreamHandle stream,
                              const ElementParts* parts) {
  GRIDBUF_RETURN_IF_ERROR(check_shape("the source", source, target.shape, target.itemsize_bytes));
  GRIDBUF_ASSIGN_OR_RETURN(const auto& target_hull, hull_of("the target", target_block, target));
  GRIDBUF_ASSIGN_OR_RETURN(const auto& source_hull, hull_of("the source", source_block, source));
  GRIDBUF_RETURN_IF_ERROR(driver.check_stream(stream));
  if (is_empty(target.shape) || target.itemsize_bytes == 0) return absl::OkStatus();
  if (!loops::share_bytes(loops::range_of(target_block, target_hull),
                          loops::range_of(source_block, source_hull))) {
    return copy_parts(driver, target_block, target, source_block, source, stream, parts);
  }
  if (!loops::may_overlap_itself(target) &&
      loops::same_elements(target_block, target, source_block, source)) {
    return absl::OkStatus();
  }
  return copy_overlapping(driver, target_block, target, source_block, source, stream, parts);
}

namespace {

bool is_one_byte(std::span<const std::byte> element) {
  return std::all_of(element.begin(), element.end(),
                     [&](std::byte byte) { return byte == element[0]; });
}

// Fills memory of the device. Elements must not share bytes. False if the element is too long.
absl::StatusOr<bool> fill_on_device(DeviceDriver& driver, const Walk& unordered,
                                    std::span<const std::byte> element, StreamHandle stream) {
  Walk walk = in_order_of_target(unordered);
  for (Axis& axis : walk.axes) axis.source_stride_bytes = axis.target_stride_bytes;
  const std::optional<std::int64_t> run_bytes = loops::dense_run_bytes(walk, std::ssize(element));
  if (run_bytes && is_one_byte(element)) {
    GRIDBUF_RETURN_IF_ERROR(driver.fill(walk.target, element[0], *run_bytes, stream));
    return true;
  }
  const std::optional<kernels::KernelPlan> plan = kernels::plan_fill(walk, element);
  if (!plan) return false;
  GRIDBUF_RETURN_IF_ERROR(driver.launch(kernels::kernel_of(*plan), stream));
  return true;
}

}  // namespace

absl::Status fill_elements_on(DeviceDriver& driver, std::byte* target_block,
                              const StridedView& target, std::span<const std::byte> element,
                              StreamHandle stream, const ElementParts* parts) {
  GRIDBUF_RETURN_IF_ERROR(check_element(target, element));
  GRIDBUF_RETURN_IF_ERROR(hull_of("the target", target_block, target).status());
  GRIDBUF_RETURN_IF_ERROR(driver.check_stream(stream));
  if (is_empty(target.shape) || target.itemsize_bytes == 0) return absl::OkStatus();
  StridedView once = target;
  StridedView source{.shape = target.shape,
                     .strides_bytes = Extents(target.ndim(), 0),
                     .itemsize_bytes = target.itemsize_bytes};
  keep_the_last(once, source);
  const Walk walk = loops::make_walk(target_block, once, element.data(), source);
  GRIDBUF_ASSIGN_OR_RETURN(const bool on_device, is_devices(driver, walk.target));
  if (on_device && parts == nullptr && !loops::may_overlap_itself(once)) {
    GRIDBUF_ASSIGN_OR_RETURN(const bool done, fill_on_device(driver, walk, element, stream));
    if (done) return absl::OkStatus();
  }
  return copy_elements_on(driver, target_block, once, element.data(), source, stream, parts);
}

}  // namespace gridbuf
