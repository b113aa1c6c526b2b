module;

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
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

// The innermost axis becomes the row if it is dense on both sides. The longest suitable other axis
// becomes its repetition. With `in_order` every element is a separate call, in row-major order.
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
    // The pitches of a 2-D copy are positive, and at least a row, on both sides.
    const Axis& candidate = walk.axes[axis];
    const std::int64_t least_bytes = calls.rows.row_bytes;
    if (candidate.target_stride_bytes < least_bytes ||
        candidate.source_stride_bytes < least_bytes) {
      continue;
    }
    if (rows < 0 || candidate.extent > walk.axes[rows].extent) rows = axis;
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

// Whether the rows are long enough for one transfer each, or rows and calls are few.
bool are_cheap(const Calls& calls) {
  std::int64_t count = 1;  // fewer than 2^63, as the view is sound
  for (const Axis& axis : calls.outer) count *= axis.extent;
  if (calls.rows.row_bytes >= kWideRowBytes) return true;
  return count <= kFewCalls && count * calls.rows.row_count <= kFewRows;
}

// --- Where memory is -----------------------------------------------------------------------------

// Whether a kernel that is launched now can use the memory.
absl::StatusOr<bool> is_devices(DeviceDriver& driver, const void* address) {
  GRIDBUF_ASSIGN_OR_RETURN(const auto& info, driver.pointer_info(address));
  if (info.device.type == DeviceType::kCudaManaged) return true;
  if (info.device.type != DeviceType::kCuda) return false;
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

// --- Between the host and the device -------------------------------------------------------------

// The sides of a walk, for code that serves both directions.
std::int64_t& host_stride(Axis& axis, bool to_device) {
  return to_device ? axis.source_stride_bytes : axis.target_stride_bytes;
}
std::int64_t& device_stride(Axis& axis, bool to_device) {
  return to_device ? axis.target_stride_bytes : axis.source_stride_bytes;
}

void order_by_host(Walk& walk, bool to_device) {
  to_device ? loops::order_by_source(walk) : loops::order_by_target(walk);
}

// A walk in two steps, through device memory at `between` in the host's order without gaps.
// Elements that the host repeats (a stride of 0) cross once.
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
    GRIDBUF_RETURN_IF_ERROR(in_parts(part, to_device, itemsize_bytes, work));
  }
  return absl::OkStatus();
}

absl::Status copy_in_two_steps(DeviceDriver& driver, const TwoSteps& steps, bool to_device,
                               std::int64_t itemsize_bytes, StreamHandle stream) {
  const auto over_the_bus = [&] {
    const Walk walk = in_order_of_target(steps.over_the_bus);
    return enqueue_all(driver, calls_of(walk, itemsize_bytes, /*in_order=*/false), stream);
  };
  const auto on_the_device = [&] {
    return launch_copy(driver, steps.on_the_device, itemsize_bytes, stream);
  };
  GRIDBUF_RETURN_IF_ERROR(to_device ? over_the_bus() : on_the_device());
  return to_device ? on_the_device() : over_the_bus();
}

// Whether the rows of the host's side cross the bus fast.
bool is_cheap_in_order_of_host(const Walk& walk, bool to_device, std::int64_t itemsize_bytes) {
  const Walk bus = in_order_of_target(split(walk, to_device, nullptr, itemsize_bytes).over_the_bus);
  return are_cheap(calls_of(bus, itemsize_bytes, /*in_order=*/false));
}

// Copies through device memory. False if that is slow, or cannot be allocated.
absl::StatusOr<bool> copy_by_the_device(DeviceDriver& driver, Walk walk, bool to_device,
                                        std::int64_t itemsize_bytes, StreamHandle stream) {
  order_by_host(walk, to_device);
  if (!is_cheap_in_order_of_host(walk, to_device, itemsize_bytes)) return false;
  const std::int64_t bytes = split(walk, to_device, nullptr, itemsize_bytes).between_bytes;
  const ScopedStream scope(stream);
  const absl::StatusOr<Block> between =
      driver.resource(DeviceType::kCuda)
          .allocate({.total_bytes = std::min(bytes, std::max(kBetweenBytes, itemsize_bytes)),
                     .alignment_bytes = 256});
  if (!between.ok()) {
    if (error_class_of(between.status()) == ErrorClass::kMemory) return false;
    return between.status();
  }
  GRIDBUF_RETURN_IF_ERROR(in_parts(walk, to_device, itemsize_bytes, [&](const Walk& part) {
    return copy_in_two_steps(driver, split(part, to_device, between->data(), itemsize_bytes),
                             to_device, itemsize_bytes, stream);
  }));
  return true;
}

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
                        const std::byte* source_block, StridedView source, StreamHandle stream,
                        const ElementParts* parts = nullptr) {
  if (parts != nullptr) {
    return for_parts(
        parts,
        [&](const StridedView& to, const StridedView& from) {
          return copy_apart(driver, target_block, to, source_block, from, stream);
        },
        target, source);
  }
  keep_the_last(target, source);
  Walk walk = loops::make_walk(target_block, target, source_block, source);
  const std::int64_t itemsize_bytes = target.itemsize_bytes;
  // If elements of the target share bytes, the order of writes matters: it stays row-major.
  if (loops::may_overlap_itself(target)) {
    return enqueue_all(driver, calls_of(walk, itemsize_bytes, /*in_order=*/true), stream);
  }
  walk = in_order_of_target(walk);
  const Calls calls = calls_of(walk, itemsize_bytes, /*in_order=*/false);
  if (calls.outer.empty() && calls.rows.row_count == 1) return enqueue_all(driver, calls, stream);
  GRIDBUF_ASSIGN_OR_RETURN(const bool to_device, is_devices(driver, walk.target));
  GRIDBUF_ASSIGN_OR_RETURN(const bool from_device, is_devices(driver, walk.source));
  if (to_device && from_device) return launch_copy(driver, walk, itemsize_bytes, stream);
  if (to_device != from_device && !are_cheap(calls)) {
    GRIDBUF_ASSIGN_OR_RETURN(
        bool done, driver.copy_view({target_block, target, source_block, source}, stream));
    if (done) return absl::OkStatus();
    GRIDBUF_ASSIGN_OR_RETURN(done,
                             copy_by_the_device(driver, walk, to_device, itemsize_bytes, stream));
    if (done) return absl::OkStatus();
  }
  return enqueue_all(driver, calls, stream);
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
      driver.resource(DeviceType::kCuda).allocate({.total_bytes = hull->highest_bytes});
  if (!scratch.ok()) return with_context(scratch.status(), "copy between overlapping views");
  GRIDBUF_RETURN_IF_ERROR(
      copy_apart(driver, scratch->data(), *between, source_block, source, stream));
  return copy_apart(driver, target_block, target, scratch->data(), *between, stream, parts);
}

}  // namespace

absl::Status copy_elements_on(DeviceDriver& driver, std::byte* target_block,
                              const StridedView& target, const std::byte* source_block,
                              const StridedView& source, StreamHandle stream,
                              const ElementParts* parts) {
  for (const absl::Status& status :
       {check_pair(target, source), check_view("the target", target_block, target),
        check_view("the source", source_block, source), driver.check_stream(stream)}) {
    if (!status.ok()) return status;
  }
  if (is_empty(target.shape) || target.itemsize_bytes == 0) return absl::OkStatus();
  if (!loops::overlap(loops::range_of(target_block, target),
                      loops::range_of(source_block, source))) {
    return copy_apart(driver, target_block, target, source_block, source, stream, parts);
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

// Whether the processor can write it: memory of the host, perhaps allocated by the driver.
bool is_plain(DeviceDriver& driver, const void* address) {
  const absl::StatusOr<PointerInfo> info = driver.pointer_info(address);
  return info.ok() && info->host_accessible && info->device.type != DeviceType::kCudaManaged;
}

// Fills memory of the device. Elements must not share bytes. False if the element is too long.
absl::StatusOr<bool> fill_on_device(DeviceDriver& driver, const Walk& unordered,
                                    std::span<const std::byte> element, StreamHandle stream) {
  const Walk walk = in_order_of_target(unordered);
  const std::int64_t itemsize_bytes = std::ssize(element);
  const bool is_dense = walk.axes.empty() || (walk.axes.size() == 1 &&
                                              walk.axes[0].target_stride_bytes == itemsize_bytes);
  if (is_dense && is_one_byte(element)) {
    const std::int64_t extent = walk.axes.empty() ? 1 : walk.axes[0].extent;
    GRIDBUF_RETURN_IF_ERROR(driver.fill(walk.target, element[0], extent * itemsize_bytes, stream));
    return true;
  }
  const absl::StatusOr<kernels::KernelPlan> plan = kernels::plan_fill(walk, element);
  if (!plan.ok()) return false;
  GRIDBUF_RETURN_IF_ERROR(driver.launch(kernels::kernel_of(*plan), stream));
  return true;
}

}  // namespace

absl::Status fill_elements_on(DeviceDriver& driver, std::byte* target_block,
                              const StridedView& target, std::span<const std::byte> element,
                              StreamHandle stream, const ElementParts* parts) {
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
  if (is_plain(driver, walk.target)) {
    GRIDBUF_RETURN_IF_ERROR(driver.synchronize(stream));
    return fill_elements(target_block, target, element, {.parts = parts});
  }
  return copy_elements_on(driver, target_block, once, element.data(), source, stream, parts);
}

bool has_narrow_rows(const StridedView& view) {
  if (is_empty(view.shape) || view.itemsize_bytes == 0) return false;
  Walk walk{nullptr, nullptr, {}};
  for (int axis = 0; axis < view.ndim(); ++axis) {
    const std::int64_t stride = view.strides_bytes[axis];
    if (view.shape[axis] != 1) walk.axes.push_back({view.shape[axis], 0, loops::magnitude(stride)});
  }
  order_by_host(walk, /*to_device=*/true);
  return !is_cheap_in_order_of_host(walk, /*to_device=*/true, view.itemsize_bytes);
}

// --- Staged copies -------------------------------------------------------------------------------

namespace {

// Whether the processor packs: the host's rows are narrow, and elements do not share bytes.
bool packs_on_host(const SideElements& host, const SideElements& device) {
  const bool is_sound = host.view.shape == device.view.shape &&
                        host.view.itemsize_bytes == device.view.itemsize_bytes &&
                        byte_hull(host.view) && byte_hull(device.view) && host.block != nullptr &&
                        device.block != nullptr;
  return is_sound && !loops::may_overlap_itself(host.view) &&
         !loops::may_overlap_itself(device.view) && has_narrow_rows(host.view);
}

// The elements with dimensions in the order of the host's memory. The processor packs them fast in
// that order, and the kernel changes the order on the device.
SideElements in_order_of(const StridedView& host, const SideElements& side) {
  const Axes axes = axes_by_rank(layout_of(host.shape, host.strides_bytes));
  IndexMap map(side.view.shape);
  map.permute(axes);
  return {side.block, apply(map, side.view)};
}

// Memory for packed elements on both sides.
struct Staging {
  Block pinned;
  Block device;
};

absl::StatusOr<Staging> make_staging(DeviceDriver& driver, std::int64_t bytes,
                                     StreamHandle stream) {
  const ScopedStream scope(stream);
  const AllocationRequest request{.total_bytes = std::min(bytes, kStagingBytes)};
  GRIDBUF_ASSIGN_OR_RETURN(auto& pinned, driver.resource(DeviceType::kCudaHost).allocate(request));
  GRIDBUF_ASSIGN_OR_RETURN(auto& device, driver.resource(DeviceType::kCuda).allocate(request));
  return Staging{std::move(pinned), std::move(device)};
}

SideElements part_of(const SideElements& side, int axis, std::int64_t start, std::int64_t stop) {
  IndexMap map(side.view.shape);
  map.keep(axis, slice_points({start, stop}, side.view.shape[axis]));
  return {side.block, apply(map, side.view)};
}

// Calls `work` with pieces of both sides that fit the staging memory.
template <class Work>
absl::Status in_pieces(const SideElements& host, const SideElements& device, const Work& work) {
  const std::int64_t bytes = nbytes(host.view);
  if (bytes <= kStagingBytes) return work(host, device);
  // Cuts along the outermost possible dimension, so that the pieces stay dense.
  const Extents& shape = host.view.shape;
  int axis = 0;
  while (shape[axis] == 1) ++axis;
  const std::int64_t slice_bytes = bytes / shape[axis];
  const std::int64_t points = std::max<std::int64_t>(1, kStagingBytes / slice_bytes);
  for (std::int64_t start = 0; start < shape[axis]; start += points) {
    const std::int64_t stop = std::min(start + points, shape[axis]);
    GRIDBUF_RETURN_IF_ERROR(
        in_pieces(part_of(host, axis, start, stop), part_of(device, axis, start, stop), work));
  }
  return absl::OkStatus();
}

absl::Status copy_staged(DeviceDriver& driver, const Staging& staging, const SideElements& host,
                         const SideElements& device, bool to_device, StreamHandle stream,
                         const ElementParts* parts) {
  const StridedView dense = *loops::packed(host.view);
  std::byte* const pinned = staging.pinned.data();
  std::byte* const between = staging.device.data();
  if (to_device) {
    // The previous piece may still use the memory.
    GRIDBUF_RETURN_IF_ERROR(driver.synchronize(stream));
    GRIDBUF_RETURN_IF_ERROR(copy_elements(pinned, dense, host.block, host.view));
    GRIDBUF_RETURN_IF_ERROR(driver.copy(between, pinned, nbytes(dense), stream));
    return copy_elements_on(driver, device.block, device.view, between, dense, stream, parts);
  }
  GRIDBUF_RETURN_IF_ERROR(
      copy_elements_on(driver, between, dense, device.block, device.view, stream));
  GRIDBUF_RETURN_IF_ERROR(driver.copy(pinned, between, nbytes(dense), stream));
  GRIDBUF_RETURN_IF_ERROR(driver.synchronize(stream));
  return copy_elements(host.block, host.view, pinned, dense, {.parts = parts});
}

absl::Status copy_between(DeviceDriver& driver, const SideElements& host,
                          const SideElements& device, bool to_device, StreamHandle stream,
                          const ElementParts* parts) {
  if (packs_on_host(host, device)) {
    const absl::StatusOr<Staging> staging = make_staging(driver, nbytes(host.view), stream);
    if (staging.ok()) {
      return in_pieces(in_order_of(host.view, host), in_order_of(host.view, device),
                       [&](const SideElements& of_host, const SideElements& of_device) {
                         return copy_staged(driver, *staging, of_host, of_device, to_device, stream,
                                            parts);
                       });
    }
    if (error_class_of(staging.status()) != ErrorClass::kMemory) return staging.status();
  }
  // This call reports the errors of unsound views.
  const SideElements& to = to_device ? device : host;
  const SideElements& from = to_device ? host : device;
  return copy_elements_on(driver, to.block, to.view, from.block, from.view, stream, parts);
}

}  // namespace

absl::Status copy_to_device(DeviceDriver& driver, const SideElements& device,
                            const SideElements& host, StreamHandle stream,
                            const ElementParts* parts) {
  return copy_between(driver, host, device, /*to_device=*/true, stream, parts);
}

absl::Status copy_to_host(DeviceDriver& driver, const SideElements& host,
                          const SideElements& device, StreamHandle stream,
                          const ElementParts* parts) {
  return copy_between(driver, host, device, /*to_device=*/false, stream, parts);
}

}  // namespace gridbuf
