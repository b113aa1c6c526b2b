module;

#if defined(__x86_64__)
#include <immintrin.h>
#else
#include <cfenv>
#endif

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.transfer.convert;

import gridbuf.alloc.host;
import gridbuf.alloc;
import gridbuf.base;
import gridbuf.layout.view;
import gridbuf.layout;
import gridbuf.transfer.convert.steps;
import gridbuf.transfer.numbers;
import gridbuf.transfer.plan;
import gridbuf.transfer.rows;
import gridbuf.transfer.simd;
import gridbuf.transfer.tiles;
import gridbuf.transfer.walk;
import gridbuf.transfer;

namespace gridbuf {
namespace {

// --- Checks --------------------------------------------------------------------------------------

absl::Status check_view(std::string_view role, const std::byte* block, const StridedView& view,
                        const Extents& shape, std::int64_t itemsize_bytes) {
  if (view.shape != shape) {
    return make_error(ErrorClass::kValue,
                      {std::string(role).append("'s shape"), to_string(view.shape),
                       "the target's, " + to_string(shape), "broadcast it first"});
  }
  if (view.itemsize_bytes != itemsize_bytes) {
    return make_error(ErrorClass::kValue, {std::string(role).append("'s itemsize_bytes"),
                                           std::to_string(view.itemsize_bytes),
                                           std::to_string(itemsize_bytes) + ", its type's",
                                           "pass the type of the elements that the view has"});
  }
  if (!byte_hull(view)) {
    return make_error(
        ErrorClass::kValue,
        {role, to_string(view), "as many strides as non-negative extents, within 2^63 - 1 bytes",
         "check shape and strides"});
  }
  if (block == nullptr && !is_empty(view.shape) && itemsize_bytes > 0) {
    return make_error(ErrorClass::kValue, {std::string(role).append("'s block"), "null",
                                           "memory for " + to_string(view), "allocate it first"});
  }
  return absl::OkStatus();
}

absl::Status check_mask(const Mask* mask, const Extents& shape) {
  if (mask == nullptr) return absl::OkStatus();
  return check_view("the mask", mask->block, mask->view, shape, 1);
}

// --- What is done to each element ----------------------------------------------------------------

// One side of a transfer.
struct Side {
  std::int64_t itemsize_bytes;
  std::int64_t swap_unit_bytes;  // 1: as it is
};

struct Work {
  ConvertRow convert;  // null: elements keep their bytes
  Side target;
  Side source;  // elements that keep their bytes are swapped on this side
  Simd simd;
  bool streams = false;  // writes past the caches
};

// Whether gridbuf.transfer.convert.steps has loops for such elements. Numbers are such.
bool has_loops(const Work& work) {
  return steps::is_known(work.target.itemsize_bytes) && work.source.swap_unit_bytes <= 8;
}

// --- A nest of loops -----------------------------------------------------------------------------

// Three views walked together: gridbuf.transfer.walk with a mask.
struct Axis {
  std::int64_t extent;
  std::int64_t target_stride_bytes;
  std::int64_t source_stride_bytes;
  std::int64_t mask_stride_bytes;
};

struct Nest {
  std::byte* target;
  const std::byte* source;
  const std::byte* mask;  // null: all elements
  SmallVec<Axis> axes;    // outermost first; at least one

  // The same axes from the element that is `steps` further on along `axis`.
  void move(const Axis& axis, std::int64_t steps) {
    target += steps * axis.target_stride_bytes;
    source += steps * axis.source_stride_bytes;
    if (mask != nullptr) mask += steps * axis.mask_stride_bytes;
  }
};

Nest make_nest(std::byte* target_block, const StridedView& target, const std::byte* source_block,
               const StridedView& source, const Mask* where) {
  Nest nest{target_block + target.offset_bytes, source_block + source.offset_bytes, nullptr, {}};
  if (where != nullptr) nest.mask = where->block + where->view.offset_bytes;
  for (int axis = 0; axis < target.ndim(); ++axis) {
    if (target.shape[axis] == 1) continue;
    nest.axes.push_back({target.shape[axis], target.strides_bytes[axis], source.strides_bytes[axis],
                         where != nullptr ? where->view.strides_bytes[axis] : 0});
  }
  return nest;
}

// Walks the target upwards, its smallest stride innermost.
void order_by_target(Nest& nest) {
  for (Axis& axis : nest.axes) {
    if (axis.target_stride_bytes >= 0) continue;
    nest.move(axis, axis.extent - 1);
    axis = {axis.extent, -axis.target_stride_bytes, -axis.source_stride_bytes,
            -axis.mask_stride_bytes};
  }
  std::sort(nest.axes.begin(), nest.axes.end(), [](const Axis& a, const Axis& b) {
    return a.target_stride_bytes > b.target_stride_bytes;
  });
}

void merge_axes(Nest& nest) {
  SmallVec<Axis> merged;
  for (const Axis& axis : nest.axes) {
    if (!merged.empty()) {
      Axis& outer = merged[merged.size() - 1];
      if (outer.target_stride_bytes == axis.target_stride_bytes * axis.extent &&
          outer.source_stride_bytes == axis.source_stride_bytes * axis.extent &&
          outer.mask_stride_bytes == axis.mask_stride_bytes * axis.extent) {
        const std::int64_t extent = outer.extent * axis.extent;
        outer = axis;
        outer.extent = extent;
        continue;
      }
    }
    merged.push_back(axis);
  }
  nest.axes = merged;
}

// The elements of the axes before `end`; nothing beyond 64 bits.
std::optional<std::int64_t> elements_of(const Nest& nest, int end) {
  std::optional<std::int64_t> elements = 1;
  for (int axis = 0; axis < end && elements; ++axis) {
    elements = checked::mul(*elements, nest.axes[axis].extent);
  }
  return elements;
}

// --- Rows ----------------------------------------------------------------------------------------

// A row is done in pieces that stay in the nearest cache with all their steps.
constexpr std::int64_t kPieceBytes = 8192;
using Piece = std::array<std::byte, kPieceBytes>;
using tiles::kLineBytes;

class RowLoop {
 public:
  explicit RowLoop(const Work& work)
      : work_(work),
        piece_elements_(kPieceBytes /
                        std::max(work.target.itemsize_bytes, work.source.itemsize_bytes)) {}

  // Runs the axis `row` from where `at` stands, `count` elements.
  void run(Nest at, const Axis& row, std::int64_t count) {
    if (!has_loops(work_)) return run_large(at, row, count);
    for (std::int64_t length = first_length(at, row); count > 0; length = piece_elements_) {
      length = std::min(length, count);
      run_piece(at, row, length);
      at.move(row, length);
      count -= length;
    }
  }

  const ConversionFlags& flags() const { return flags_; }

 private:
  // Streams begin the second piece at a cache line, so that no later piece has a part of one.
  std::int64_t first_length(const Nest& at, const Axis& row) const {
    const std::int64_t itemsize = work_.target.itemsize_bytes;
    const auto behind_line =
        static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(at.target) % kLineBytes);
    if (!work_.streams || row.target_stride_bytes != itemsize) return piece_elements_;
    return piece_elements_ - behind_line / itemsize;
  }

  void run_piece(const Nest& at, const Axis& row, std::int64_t count) {
    const std::byte* mask = nullptr;
    if (at.mask != nullptr) {
      mask = side_by_side(mask_, at.mask, row.mask_stride_bytes, count, {1, 1});
      const steps::Selected selected = steps::selected(mask, count);
      if (selected == steps::Selected::kNone) return;
      if (selected == steps::Selected::kAll) mask = nullptr;
    }
    const std::byte* const source =
        side_by_side(source_, at.source, row.source_stride_bytes, count, work_.source);
    if (mask != nullptr) return put_where(at, row, source, mask, count);
    if (work_.convert == nullptr) return put(at.target, row, source, count);
    const bool direct = row.target_stride_bytes == work_.target.itemsize_bytes &&
                        work_.target.swap_unit_bytes == 1 && !work_.streams;
    if (direct) {
      flags_ |= work_.convert(at.target, source, count);
    } else {
      flags_ |= convert(source, count);
      put(at.target, row, target_.data(), count);
    }
  }

  // The elements side by side and in the machine's byte order: where they are, or in `piece`.
  const std::byte* side_by_side(Piece& piece, const std::byte* from, std::int64_t stride_bytes,
                                std::int64_t count, const Side& side) const {
    const bool dense = stride_bytes == side.itemsize_bytes;
    if (!dense) {
      move({.extent = count,
            .itemsize_bytes = side.itemsize_bytes,
            .target_stride_bytes = side.itemsize_bytes,
            .source_stride_bytes = stride_bytes},
           piece.data(), from);
    }
    const std::byte* const elements = dense ? from : piece.data();
    if (side.swap_unit_bytes == 1) return elements;
    steps::swap_bytes(piece.data(), elements, count * (side.itemsize_bytes / side.swap_unit_bytes),
                      side.swap_unit_bytes, work_.simd);
    return piece.data();
  }

  // From `source` to `target_`, in the target's byte order.
  ConversionFlags convert(const std::byte* source, std::int64_t count) {
    const ConversionFlags flags = work_.convert(target_.data(), source, count);
    const Side& side = work_.target;
    if (side.swap_unit_bytes > 1) {
      steps::swap_bytes(target_.data(), target_.data(),
                        count * (side.itemsize_bytes / side.swap_unit_bytes), side.swap_unit_bytes,
                        work_.simd);
    }
    return flags;
  }

  void put(std::byte* target, const Axis& row, const std::byte* elements, std::int64_t count) {
    move({.extent = count,
          .itemsize_bytes = work_.target.itemsize_bytes,
          .target_stride_bytes = row.target_stride_bytes,
          .source_stride_bytes = work_.target.itemsize_bytes,
          .streams = work_.streams},
         target, elements);
  }

  void move(const rows::Rows& row, std::byte* target, const std::byte* source) const {
    rows::move_rows_with(work_.simd, row)(row, target, source);
  }

  // Converts all and writes what is selected. Should something be reported, what is selected is
  // converted once more by itself, for the report must not be about the rest.
  void put_where(const Nest& at, const Axis& row, const std::byte* source, const std::byte* mask,
                 std::int64_t count) {
    const std::byte* elements = source;
    bool reported = false;
    if (work_.convert != nullptr) {
      reported = convert(source, count).any();
      elements = target_.data();
    }
    steps::scatter_where(at.target, row.target_stride_bytes, elements, mask, count,
                         work_.target.itemsize_bytes, work_.simd);
    if (!reported) return;
    Piece chosen;
    const std::int64_t kept =
        steps::compress(chosen.data(), source, mask, count, work_.source.itemsize_bytes);
    flags_ |= work_.convert(target_.data(), chosen.data(), kept);
  }

  // Elements that are no numbers, one by one. They are long, or rare.
  void run_large(Nest at, const Axis& row, std::int64_t count) const {
    const std::int64_t unit = work_.source.swap_unit_bytes;
    for (; count > 0; --count, at.move(row, 1)) {
      if (at.mask != nullptr && *at.mask == std::byte{0}) continue;
      if (unit <= 1) {
        std::memcpy(at.target, at.source, static_cast<std::size_t>(work_.target.itemsize_bytes));
        continue;
      }
      for (std::int64_t begin = 0; begin < work_.target.itemsize_bytes; begin += unit) {
        std::reverse_copy(at.source + begin, at.source + begin + unit, at.target + begin);
      }
    }
  }

  const Work& work_;
  const std::int64_t piece_elements_;
  ConversionFlags flags_;
  alignas(kLineBytes) Piece source_;
  alignas(kLineBytes) Piece target_;
  alignas(kLineBytes) Piece mask_;
};

// Numbers of the steps of all axes but the innermost, and which part of a row: what one number
// stands for.
struct Units {
  std::int64_t row_elements;
  std::int64_t part_elements;  // rows are cut into such parts
  std::int64_t parts;          // of a row
  std::int64_t total;
};

Units units_of(const Nest& nest, std::int64_t most_elements) {
  const int innermost = nest.axes.size() - 1;
  const std::int64_t row = nest.axes[innermost].extent;
  const std::int64_t part = std::min(row, most_elements);
  const std::int64_t parts = (row - 1) / part + 1;
  return {row, part, parts, elements_of(nest, innermost).value_or(0) * parts};
}

// Runs the parts of rows [begin, end), in row-major order.
void run_units(const Nest& nest, const Units& units, std::int64_t begin, std::int64_t end,
               RowLoop& loop) {
  const int innermost = nest.axes.size() - 1;
  const Axis& row = nest.axes[innermost];
  Extents index(innermost, 0);
  Nest at{nest.target, nest.source, nest.mask, {}};
  std::int64_t part = begin % units.parts;
  std::int64_t rest = begin / units.parts;
  for (int axis = innermost - 1; axis >= 0; --axis) {
    index[axis] = rest % nest.axes[axis].extent;
    at.move(nest.axes[axis], index[axis]);
    rest /= nest.axes[axis].extent;
  }
  for (std::int64_t unit = begin; unit < end; ++unit) {
    Nest from = at;
    from.move(row, part * units.part_elements);
    loop.run(from, row,
             std::min(units.part_elements, units.row_elements - part * units.part_elements));
    if (++part < units.parts) continue;
    part = 0;
    for (int axis = innermost - 1; axis >= 0; --axis) {
      at.move(nest.axes[axis], 1);
      if (++index[axis] < nest.axes[axis].extent) break;
      at.move(nest.axes[axis], -index[axis]);
      index[axis] = 0;
    }
  }
}

// --- Threads -------------------------------------------------------------------------------------

// The floating-point environment that programs start with, for as long as this lives: what a number
// becomes must not depend on a rounding mode or on subnormals that somebody else does not want.
class DefaultFloats {
 public:
  DefaultFloats(const DefaultFloats&) = delete;
  DefaultFloats& operator=(const DefaultFloats&) = delete;
#if defined(__x86_64__)
  DefaultFloats() : before_(_mm_getcsr()) { _mm_setcsr(kDefault); }
  ~DefaultFloats() { _mm_setcsr(before_); }

 private:
  static constexpr unsigned kDefault = 0x1f80;  // to nearest, subnormals kept, nothing traps
  unsigned before_;
#else
  DefaultFloats() {
    std::fegetenv(&before_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultFloats() { std::fesetenv(&before_); }

 private:
  std::fenv_t before_;
#endif
};

// What several threads report.
class SharedFlags {
 public:
  void add(const ConversionFlags& flags) {
    if (flags.invalid) invalid_.store(true, std::memory_order_relaxed);
    if (flags.overflow) overflow_.store(true, std::memory_order_relaxed);
  }
  ConversionFlags all() const {
    return {.invalid = invalid_.load(std::memory_order_relaxed),
            .overflow = overflow_.load(std::memory_order_relaxed)};
  }

 private:
  std::atomic<bool> invalid_ = false;
  std::atomic<bool> overflow_ = false;
};

// Where threads and stores past the caches begin to pay is the same as for copies.
constexpr CopyLimits kLimits;
constexpr std::int64_t kChunkBytes = 2 * kLimits.piece_bytes;  // of target and source

std::int64_t bytes_per_element(const Work& work) {
  return work.target.itemsize_bytes + work.source.itemsize_bytes;
}

// How many of `units` of so many bytes each are one chunk; all of them where one thread is best.
std::int64_t chunk_of(std::int64_t units, std::int64_t unit_bytes) {
  if (units <= 2 * kLimits.parallel_bytes / std::max<std::int64_t>(unit_bytes, 1)) return units;
  return std::max<std::int64_t>(1, kChunkBytes / std::max<std::int64_t>(unit_bytes, 1));
}

void run_directly(const Nest& nest, const Work& work, bool in_order, SharedFlags& flags) {
  const std::int64_t element_bytes = bytes_per_element(work);
  const Units units = units_of(nest, std::max<std::int64_t>(1, kChunkBytes / element_bytes));
  const std::int64_t chunk =
      in_order ? units.total : chunk_of(units.total, units.part_elements * element_bytes);
  parallel_for(units.total, chunk, [&](std::int64_t begin, std::int64_t end) {
    const DefaultFloats floats;
    RowLoop loop(work);
    run_units(nest, units, begin, end, loop);
    if (work.streams) tiles::end_stream();
    flags.add(loop.flags());
  });
}

// --- Boxes ---------------------------------------------------------------------------------------

// What a box of source elements may take of the near cache.
constexpr std::int64_t kBoxBytes = std::int64_t{1} << 18;
// A row of a box should be many lines, on both sides.
constexpr std::int64_t kBoxRowBytes = 256;

std::int64_t magnitude(std::int64_t stride_bytes) {
  return stride_bytes < 0 ? -stride_bytes : stride_bytes;
}

// The axis along which the source lies together.
int nearest_source_axis(const Nest& nest) {
  int nearest = nest.axes.size() - 1;
  for (int axis = 0; axis < nest.axes.size(); ++axis) {
    const std::int64_t stride = magnitude(nest.axes[axis].source_stride_bytes);
    if (stride != 0 && stride < magnitude(nest.axes[nearest].source_stride_bytes)) nearest = axis;
  }
  return nearest;
}

// Whether rows of the target take one element of a cache line of the source, and leave the others
// to rows that come much later.
bool needs_boxes(const Nest& nest, const Work& work) {
  const Axis& row = nest.axes[nest.axes.size() - 1];
  const std::int64_t elements = elements_of(nest, nest.axes.size()).value_or(0);
  return magnitude(row.source_stride_bytes) >= kLineBytes &&
         nearest_source_axis(nest) != nest.axes.size() - 1 &&
         elements > kBoxRowBytes * 8 / work.source.itemsize_bytes;
}

// Extents of a box: rows of some lines along the target's and the source's nearest axes, and then
// as much of the other axes as there is room for.
Extents box_shape(const Nest& nest, const Work& work) {
  const int target_axis = nest.axes.size() - 1;
  const int source_axis = nearest_source_axis(nest);
  Extents box(nest.axes.size(), 1);
  std::int64_t room = kBoxBytes / work.source.itemsize_bytes;
  const auto grow = [&](int axis, std::int64_t most) {
    room *= box[axis];
    box[axis] = std::clamp(most, std::int64_t{1}, std::min(room, nest.axes[axis].extent));
    room /= box[axis];
  };
  grow(target_axis, kBoxRowBytes / work.target.itemsize_bytes);
  grow(source_axis, room);
  for (int axis = target_axis; axis >= 0; --axis) {
    if (axis != source_axis) grow(axis, nest.axes[axis].extent);
  }
  return box;
}

// Places for the boxes of the threads: one is taken for as long as a chunk lasts.
class BoxMemory {
 public:
  static constexpr int kMost = kMaxThreadCount;

  BoxMemory(std::byte* memory, int places) : memory_(memory), places_(places) {}

  int take() {
    for (int place = 0;; place = (place + 1) % places_) {
      if (!taken_[static_cast<std::size_t>(place)].exchange(true, std::memory_order_acquire)) {
        return place;
      }
    }
  }
  void give_back(int place) {
    taken_[static_cast<std::size_t>(place)].store(false, std::memory_order_release);
  }
  std::byte* at(int place) const { return memory_ + place * kBoxBytes; }

 private:
  std::byte* memory_;
  int places_;
  std::array<std::atomic<bool>, kMost> taken_{};
};

class BoxLoop {
 public:
  BoxLoop(const Nest& nest, const Work& work)
      : nest_(nest), work_(work), box_(box_shape(nest, work)) {
    for (int axis = 0; axis < nest.axes.size(); ++axis) {
      counts_.push_back((nest.axes[axis].extent - 1) / box_[axis] + 1);
      total_ *= counts_[axis];
    }
  }

  std::int64_t total() const { return total_; }
  std::int64_t box_bytes() const {
    return *checked::product(box_.span()) * bytes_per_element(work_);
  }

  absl::Status run(std::int64_t begin, std::int64_t end, std::byte* scratch, RowLoop& loop) const {
    for (std::int64_t number = begin; number < end; ++number) {
      if (absl::Status status = run_box(number, scratch, loop); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

 private:
  absl::Status run_box(std::int64_t number, std::byte* scratch, RowLoop& loop) const {
    Nest box{nest_.target, nest_.source, nest_.mask, nest_.axes};
    StridedView source{.itemsize_bytes = work_.source.itemsize_bytes};
    for (int axis = nest_.axes.size() - 1; axis >= 0; --axis) {
      const std::int64_t first = number % counts_[axis] * box_[axis];
      number /= counts_[axis];
      box.axes[axis].extent = std::min(box_[axis], nest_.axes[axis].extent - first);
      box.move(nest_.axes[axis], first);
    }
    for (const Axis& axis : box.axes) {
      source.shape.push_back(axis.extent);
      source.strides_bytes.push_back(axis.source_stride_bytes);
    }
    const std::optional<StridedView> packed = walk::packed(source);
    absl::Status status = copy_elements(scratch, *packed, box.source, source);
    if (!status.ok()) return status;
    box.source = scratch;
    for (int axis = 0; axis < box.axes.size(); ++axis) {
      box.axes[axis].source_stride_bytes = packed->strides_bytes[axis];
    }
    merge_axes(box);
    const Units units = units_of(box, kBoxBytes);
    run_units(box, units, 0, units.total, loop);
    return absl::OkStatus();
  }

  const Nest& nest_;
  const Work& work_;
  const Extents box_;
  Extents counts_;
  std::int64_t total_ = 1;
};

MemoryResource& resource_of(MemoryResource* scratch) {
  return scratch != nullptr ? *scratch : host_resource();
}

absl::Status run_by_boxes(const Nest& nest, const Work& work, MemoryResource* resource,
                          SharedFlags& flags) {
  const BoxLoop boxes(nest, work);
  const std::int64_t chunk = chunk_of(boxes.total(), boxes.box_bytes());
  const int places = chunk < boxes.total() ? thread_count() : 1;
  const absl::StatusOr<Block> block = resource_of(resource).allocate(
      {.total_bytes = places * kBoxBytes, .alignment_bytes = kLineBytes});
  if (!block.ok()) return with_context(block.status(), "convert between layouts");
  BoxMemory memory(block->data(), places);
  std::atomic<bool> failed = false;
  parallel_for(boxes.total(), chunk, [&](std::int64_t begin, std::int64_t end) {
    const DefaultFloats floats;
    RowLoop loop(work);
    const int place = memory.take();
    if (!boxes.run(begin, end, memory.at(place), loop).ok()) failed = true;
    memory.give_back(place);
    if (work.streams) tiles::end_stream();
    flags.add(loop.flags());
  });
  if (!failed) return absl::OkStatus();
  return make_error(ErrorClass::kInternal, "a piece of a sound view could not be copied");
}

// --- Whole views ---------------------------------------------------------------------------------

// Views that share no byte with the target.
absl::StatusOr<ConversionFlags> run_apart(Nest nest, bool in_order, Work work,
                                          MemoryResource* resource) {
  if (!in_order) {
    order_by_target(nest);
    merge_axes(nest);
  }
  if (nest.axes.empty()) {
    nest.axes.push_back({1, work.target.itemsize_bytes, work.source.itemsize_bytes, 1});
  }
  const std::optional<std::int64_t> elements = elements_of(nest, nest.axes.size());
  const std::optional<std::int64_t> target_bytes =
      elements ? checked::mul(*elements, work.target.itemsize_bytes) : std::nullopt;
  if (!target_bytes) {
    return make_error(ErrorClass::kValue, {"the number of elements", "beyond 64 bits",
                                           "at most 2^63 - 1", "convert a smaller part"});
  }
  work.streams = !in_order && *target_bytes >= kLimits.stream_bytes;
  SharedFlags flags;
  if (!in_order && has_loops(work) && needs_boxes(nest, work)) {
    if (absl::Status status = run_by_boxes(nest, work, resource, flags); !status.ok()) {
      return status;
    }
  } else {
    run_directly(nest, work, in_order, flags);
  }
  return flags.all();
}

// The elements of a view that shares bytes with the target, in memory of their own.
struct Kept {
  Block block;
  StridedView view;
};

absl::StatusOr<Kept> keep(const std::byte* block, const StridedView& view,
                          MemoryResource* resource) {
  const std::optional<StridedView> packed = walk::packed(view);
  const std::optional<checked::ByteHull> hull = packed ? byte_hull(*packed) : std::nullopt;
  if (!hull) {
    return make_error(ErrorClass::kValue, {"the source", to_string(view),
                                           "of at most 2^63 - 1 bytes", "convert a smaller part"});
  }
  absl::StatusOr<Block> scratch = resource_of(resource).allocate(
      {.total_bytes = hull->highest_bytes, .alignment_bytes = kLineBytes});
  if (!scratch.ok()) return with_context(scratch.status(), "convert between overlapping views");
  const absl::Status status = copy_elements(scratch->data(), *packed, block, view);
  if (!status.ok()) return status;
  return Kept{*std::move(scratch), *packed};
}

// Views that have been checked, with elements.
absl::StatusOr<ConversionFlags> run_views(std::byte* target_block, const StridedView& target,
                                          const std::byte* source_block, const StridedView& source,
                                          const Mask* where, const Work& work,
                                          MemoryResource* resource) {
  const bool in_order = walk::may_overlap_itself(target);
  const walk::AddressRange range = walk::range_of(target_block, target);
  const bool shares_source = walk::overlap(range, walk::range_of(source_block, source));
  const bool shares_mask =
      where != nullptr && walk::overlap(range, walk::range_of(where->block, where->view));
  Kept kept_source;
  if (shares_source) {
    absl::StatusOr<Kept> kept = keep(source_block, source, resource);
    if (!kept.ok()) return kept.status();
    kept_source = *std::move(kept);
  }
  Kept kept_mask;
  Mask mask;
  if (shares_mask) {
    absl::StatusOr<Kept> kept = keep(where->block, where->view, resource);
    if (!kept.ok()) return kept.status();
    kept_mask = *std::move(kept);
    mask = {kept_mask.block.data(), kept_mask.view};
    where = &mask;
  }
  const Nest nest = shares_source ? make_nest(target_block, target, kept_source.block.data(),
                                              kept_source.view, where)
                                  : make_nest(target_block, target, source_block, source, where);
  return run_apart(nest, in_order, work, resource);
}

std::int64_t swap_unit(Number type, bool is_swapped) {
  return is_swapped ? facts_of(type).swap_unit_bytes : 1;
}

}  // namespace

absl::StatusOr<ConversionFlags> convert_elements(std::byte* target_block, const StridedView& target,
                                                 Number target_type, const std::byte* source_block,
                                                 const StridedView& source, Number source_type,
                                                 const ConvertOptions& options) {
  Work work{.convert = nullptr,
            .target = {facts_of(target_type).itemsize_bytes,
                       swap_unit(target_type, options.target_is_swapped)},
            .source = {facts_of(source_type).itemsize_bytes,
                       swap_unit(source_type, options.source_is_swapped)},
            .simd = simd()};
  for (const absl::Status& status :
       {check_view("the target", target_block, target, target.shape, work.target.itemsize_bytes),
        check_view("the source", source_block, source, target.shape, work.source.itemsize_bytes),
        check_mask(options.where, target.shape)}) {
    if (!status.ok()) return status;
  }
  if (is_empty(target.shape)) return ConversionFlags{};
  if (same_bytes(target_type, source_type)) {
    const bool swaps = work.target.swap_unit_bytes != work.source.swap_unit_bytes;
    const CopyOptions copy{.swap_unit_bytes = swaps ? facts_of(source_type).swap_unit_bytes : 1,
                           .scratch = options.scratch};
    const absl::Status status =
        options.where == nullptr
            ? copy_elements(target_block, target, source_block, source, copy)
            : copy_elements_where(target_block, target, source_block, source, options.where->block,
                                  options.where->view, copy);
    if (!status.ok()) return status;
    return ConversionFlags{};
  }
  work.convert = convert_row(target_type, source_type, work.simd);
  return run_views(target_block, target, source_block, source, options.where, work,
                   options.scratch);
}

absl::Status copy_elements_where(std::byte* target_block, const StridedView& target,
                                 const std::byte* source_block, const StridedView& source,
                                 const std::byte* mask_block, const StridedView& mask,
                                 const CopyOptions& options) {
  const std::int64_t itemsize = target.itemsize_bytes;
  const std::int64_t unit = std::max<std::int64_t>(options.swap_unit_bytes, 1);
  const Mask where{mask_block, mask};
  for (const absl::Status& status :
       {check_view("the target", target_block, target, target.shape, itemsize),
        check_view("the source", source_block, source, target.shape, itemsize),
        check_mask(&where, target.shape)}) {
    if (!status.ok()) return status;
  }
  if (options.swap_unit_bytes < 0 || itemsize % unit != 0) {
    return make_error(ErrorClass::kValue,
                      {"swap_unit_bytes", std::to_string(options.swap_unit_bytes),
                       "a divisor of the itemsize, " + std::to_string(itemsize),
                       "pass 1 to keep the bytes as they are"});
  }
  if (is_empty(target.shape) || itemsize == 0) return absl::OkStatus();
  const Work work{
      .convert = nullptr, .target = {itemsize, 1}, .source = {itemsize, unit}, .simd = simd()};
  return run_views(target_block, target, source_block, source, &where, work, options.scratch)
      .status();
}

}  // namespace gridbuf
