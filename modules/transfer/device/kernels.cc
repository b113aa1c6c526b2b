module;

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "modules/transfer/device/kernel_plan.h"

module gridbuf.transfer.device;

import gridbuf.base;
import gridbuf.device;
import gridbuf.layout;
import gridbuf.transfer.loops;

namespace gridbuf::kernels {

using loops::Axis;
using loops::magnitude;
using loops::Walk;

namespace {

constexpr std::array<std::string_view, 5> kKindNames{
    "copy of units", "copy of chunks", "copy of tiles", "fill of units", "fill of chunks"};

constexpr std::int64_t kWidestUnitBytes = 16;
/// Units from this length on are nearly as fast as the widest units.
constexpr std::int64_t kWideUnitBytes = 8;
/// Rows from this length on use chunks. Up to two chunks of a row are not whole.
constexpr std::int64_t kChunkedRowBytes = 128;
/// Units replace tiles of which less than one part in this many is used.
constexpr std::uint64_t kEmptiestTile = 8;

std::uint64_t unsigned_of(std::int64_t value) { return static_cast<std::uint64_t>(value); }
std::uint64_t ceil_divide(std::uint64_t a, std::uint64_t b) { return a / b + (a % b != 0 ? 1 : 0); }
int ceil_log2(std::uint64_t value) { return value <= 1 ? 0 : std::bit_width(value - 1); }

// See kernel_code::divide.
gridbuf_divisor divisor_of(std::uint64_t value) {
  const int shift = ceil_log2(value);
  if (shift > 32) return {value, 0, 63};  // dividends of 32 bits are smaller
  const std::uint64_t above = (std::uint64_t{1} << shift) - value;
  // above < value, so the quotient has at most 32 bits; above << 32 has at most 63.
  return {value, static_cast<std::uint32_t>((above << 32) / value + 1),
          static_cast<std::uint32_t>(shift)};
}

// The largest power of two up to 16 that divides all numbers added.
class Alignment {
 public:
  void add(std::uint64_t number) { bits_ |= number; }
  void add(std::int64_t number) { bits_ |= static_cast<std::uint64_t>(number); }
  void add(const void* address) { bits_ |= reinterpret_cast<std::uintptr_t>(address); }
  std::int64_t bytes() const {
    return std::int64_t{1} << std::countr_zero(bits_ | kWidestUnitBytes);
  }

 private:
  std::uint64_t bits_ = 0;
};

bool is_unit(std::int64_t bytes) {
  return bytes > 0 && bytes <= kWidestUnitBytes && std::has_single_bit(unsigned_of(bytes));
}

std::uint64_t elements_of(const SmallVec<Axis>& axes) {
  std::uint64_t count = 1;  // a sound view has fewer than 2^63
  for (const Axis& axis : axes) count *= unsigned_of(axis.extent);
  return count;
}

// A walk as rows of bytes that are dense on both sides: whole innermost axes, or single elements.
struct Rows {
  std::int64_t row_bytes = 0;
  SmallVec<Axis> axes = {};  // outermost first
};

Rows rows_of(const Walk& walk, std::int64_t itemsize_bytes, bool has_source) {
  Rows rows{itemsize_bytes, walk.axes};
  if (walk.axes.empty()) return rows;
  const int innermost = walk.axes.size() - 1;
  const Axis& axis = walk.axes[innermost];
  const bool dense = axis.target_stride_bytes == itemsize_bytes &&
                     (!has_source || axis.source_stride_bytes == itemsize_bytes);
  if (!dense) return rows;
  rows.row_bytes *= axis.extent;
  rows.axes.erase(innermost);
  return rows;
}

// The shortest element that, repeated, is this one.
std::span<const std::byte> period_of(std::span<const std::byte> element) {
  for (std::size_t bytes = 1; bytes <= element.size() / 2; ++bytes) {
    if (element.size() % bytes != 0) continue;
    const bool repeats = std::equal(element.begin() + static_cast<std::ptrdiff_t>(bytes),
                                    element.end(), element.begin());
    if (repeats) return element.first(bytes);
  }
  return element;
}

}  // namespace

std::string_view to_string(KernelKind kind) { return kKindNames[static_cast<std::size_t>(kind)]; }

// --- Planning ------------------------------------------------------------------------------------

struct KernelPlanner {
  const Walk& walk;
  std::int64_t itemsize_bytes;
  bool has_source;
  std::int64_t most_blocks;
  KernelPlan plan = {};

  void start() {
    auto& [target, source] = plan.operands;
    target = {has_source ? "the copy's target" : "the fill's target", walk.target, itemsize_bytes};
    plan.arguments.target = reinterpret_cast<std::uintptr_t>(walk.target);
    for (const Axis& axis : walk.axes) {
      target.length_bytes += (axis.extent - 1) * axis.target_stride_bytes;
    }
    if (!has_source) return;
    const std::byte* begin = walk.source;
    source = {"the copy's source", nullptr, itemsize_bytes};
    plan.arguments.source = reinterpret_cast<std::uintptr_t>(walk.source);
    for (const Axis& axis : walk.axes) {
      const std::int64_t reach = (axis.extent - 1) * axis.source_stride_bytes;
      source.length_bytes += magnitude(reach);
      begin += std::min<std::int64_t>(reach, 0);
    }
    source.begin = begin;
  }

  // Axes are given innermost first.
  void add_axis(std::int64_t extent, std::int64_t target_stride, std::int64_t source_stride) {
    plan.arguments.axes[plan.arguments.axis_count++] = {divisor_of(unsigned_of(extent)),
                                                        target_stride, source_stride};
  }
  void add_axes(const SmallVec<Axis>& axes) {
    for (int i = axes.size() - 1; i >= 0; --i) {
      add_axis(axes[i].extent, axes[i].target_stride_bytes, axes[i].source_stride_bytes);
    }
  }

  void share_out(std::uint64_t work_blocks) {
    plan.arguments.work_blocks = work_blocks;
    plan.arguments.grid_blocks =
        static_cast<std::uint32_t>(std::min(work_blocks, unsigned_of(most_blocks)));
  }
  void share_out_pieces(std::uint64_t count) {
    plan.arguments.count = count;
    share_out(ceil_divide(count, kernel_code::kPiecesABlock));
  }

  // The alignment that all rows have on both sides, and their ends.
  std::int64_t unit_of(const Rows& rows) const {
    Alignment alignment;
    alignment.add(walk.target);
    alignment.add(rows.row_bytes);
    if (has_source) alignment.add(walk.source);
    for (const Axis& axis : rows.axes) {
      alignment.add(axis.target_stride_bytes);
      if (has_source) alignment.add(axis.source_stride_bytes);
    }
    return alignment.bytes();
  }

  void plan_units(const Rows& rows, std::int64_t unit, KernelKind kind) {
    plan.arguments.kind = static_cast<std::int32_t>(kind);
    plan.arguments.unit_bytes = static_cast<std::int32_t>(unit);
    if (rows.row_bytes > unit) add_axis(rows.row_bytes / unit, unit, unit);
    add_axes(rows.axes);
    share_out_pieces(unsigned_of(rows.row_bytes / unit) * elements_of(rows.axes));
  }

  void plan_chunks(const Rows& rows, KernelKind kind) {
    plan.arguments.kind = static_cast<std::int32_t>(kind);
    plan.arguments.unit_bytes = kernel_code::kChunkBytes;
    plan.arguments.row_bytes = unsigned_of(rows.row_bytes);
    // The largest number of chunks that a row touches, wherever it begins in a chunk.
    const std::uint64_t chunks =
        ceil_divide(unsigned_of(rows.row_bytes), kernel_code::kChunkBytes) + 1;
    plan.arguments.row_chunks = divisor_of(chunks);
    add_axes(rows.axes);
    share_out_pieces(chunks * elements_of(rows.axes));
  }

  KernelPlan plan_rows(const Rows& rows, std::int64_t unit, KernelKind chunks, KernelKind units) {
    const bool poorly_aligned = unit < kWideUnitBytes && rows.row_bytes >= kChunkedRowBytes;
    poorly_aligned ? plan_chunks(rows, chunks) : plan_units(rows, unit, units);
    return plan;
  }

  // --- Tiles ---

  // The axis along which the source is densest, if it is not the target's.
  std::optional<int> source_axis() const {
    const int target_axis = walk.axes.size() - 1;
    int densest = -1;
    for (int axis = 0; axis <= target_axis; ++axis) {
      const std::int64_t stride = magnitude(walk.axes[axis].source_stride_bytes);
      if (stride == 0) continue;
      if (densest < 0 || stride < magnitude(walk.axes[densest].source_stride_bytes)) {
        densest = axis;
      }
    }
    if (densest < 0 || densest == target_axis) return std::nullopt;
    // A source that is broadcast along the target's axis is read fast in the target's order.
    if (walk.axes[target_axis].source_stride_bytes == 0) return std::nullopt;
    return densest;
  }

  // A tile is a square, or longer along one axis if the other axis is short. A row is at least a
  // chunk on both sides.
  void shape_tile(std::uint64_t extent_s, std::uint64_t extent_t) {
    const int total = ceil_log2(kernel_code::kTileBytes / unsigned_of(itemsize_bytes));
    const int least = ceil_log2(kernel_code::kChunkBytes / unsigned_of(itemsize_bytes));
    const int most_s = std::max(ceil_log2(extent_s), least);
    const int most_t = std::max(ceil_log2(extent_t), least);
    int log2_s = std::min(total / 2, most_s);
    const int log2_t = std::min(total - log2_s, most_t);
    log2_s = total - log2_t;
    plan.arguments.along_source.log2_items = log2_s;
    plan.arguments.along_target.log2_items = total - log2_s;
  }

  // Whether enough of the tiles is used.
  bool are_full_enough() const {
    const auto items = [](const gridbuf_tile_axis& axis) {
      return std::min(axis.extent, std::uint64_t{1} << axis.log2_items);
    };
    const std::uint64_t held =
        items(plan.arguments.along_source) * items(plan.arguments.along_target);
    return held * kEmptiestTile * unsigned_of(itemsize_bytes) >= kernel_code::kTileBytes;
  }

  // 16 bytes if every begin of a vector is aligned, else 4, else the item.
  std::int32_t vector_bytes(bool of_source, const Axis& dense) const {
    const auto stride_of = [of_source](const Axis& axis) {
      return of_source ? axis.source_stride_bytes : axis.target_stride_bytes;
    };
    const auto item = static_cast<std::int32_t>(itemsize_bytes);
    if (stride_of(dense) != itemsize_bytes) return item;
    Alignment alignment;
    alignment.add(of_source ? static_cast<const void*>(walk.source) : walk.target);
    for (const Axis& axis : walk.axes) {
      if (&axis != &dense) alignment.add(stride_of(axis));
    }
    if (alignment.bytes() >= kWidestUnitBytes) return static_cast<std::int32_t>(kWidestUnitBytes);
    return alignment.bytes() >= 4 ? std::max(item, 4) : item;
  }

  void set_axis(gridbuf_tile_axis& tile, const Axis& axis, std::int32_t vector) {
    tile.extent = unsigned_of(axis.extent);
    tile.tiles = divisor_of(ceil_divide(tile.extent, std::uint64_t{1} << tile.log2_items));
    tile.target_stride_bytes = axis.target_stride_bytes;
    tile.source_stride_bytes = axis.source_stride_bytes;
    tile.vector_bytes = vector;
  }

  bool plan_tiles() {
    const std::optional<int> densest = source_axis();
    Alignment items;
    items.add(unit_of({itemsize_bytes, walk.axes}));
    if (!densest || !is_unit(itemsize_bytes) || items.bytes() < itemsize_bytes) return false;
    const Axis& s = walk.axes[*densest];
    const Axis& t = walk.axes[walk.axes.size() - 1];
    gridbuf_kernel_plan& launch = plan.arguments;
    shape_tile(unsigned_of(s.extent), unsigned_of(t.extent));
    set_axis(launch.along_source, s, vector_bytes(/*of_source=*/true, s));
    set_axis(launch.along_target, t, vector_bytes(/*of_source=*/false, t));
    if (!are_full_enough()) return false;
    launch.kind = GRIDBUF_COPY_TILES;
    launch.unit_bytes = static_cast<std::int32_t>(itemsize_bytes);
    // Eight consecutive vectors along the target's axis begin in rows of the tile that are this
    // many chunks apart.
    const int log2_item = ceil_log2(unsigned_of(itemsize_bytes));
    const int row_chunks = launch.along_source.log2_items + log2_item - 4;
    const int vector_items = ceil_log2(unsigned_of(launch.along_target.vector_bytes)) - log2_item;
    launch.swizzle_shift = std::max(3, row_chunks + vector_items);
    SmallVec<Axis> outer = walk.axes;
    outer.erase(walk.axes.size() - 1);
    outer.erase(*densest);
    add_axes(outer);
    share_out(launch.along_source.tiles.value * launch.along_target.tiles.value *
              elements_of(outer));
    return true;
  }

  // --- The choice ---

  KernelPlan plan_copy() {
    start();
    if (!walk.axes.empty() && plan_tiles()) return plan;
    const Rows rows = rows_of(walk, itemsize_bytes, has_source);
    const std::int64_t unit = unit_of(rows);
    return plan_rows(rows, unit, KernelKind::kCopyChunks, KernelKind::kCopyUnits);
  }

  void carry(std::span<const std::byte> pattern) {
    const std::size_t length = std::max<std::size_t>(pattern.size(), kernel_code::kChunkBytes);
    for (std::size_t at = 0; at < length; at += pattern.size()) {
      std::memcpy(plan.arguments.element + at, pattern.data(), pattern.size());
    }
  }

  // If the pattern repeats within a unit, all units are equal. Else the units of one repetition
  // become an axis.
  KernelPlan plan_fill(std::span<const std::byte> pattern) {
    start();
    carry(pattern);
    const auto period = static_cast<std::int64_t>(pattern.size());
    const Rows rows = rows_of(walk, itemsize_bytes, has_source);
    const std::int64_t unit = unit_of(rows);
    if (is_unit(period) && period <= unit) {
      return plan_rows(rows, unit, KernelKind::kFillChunks, KernelKind::kFillUnits);
    }
    Alignment alignment;
    alignment.add(unit);
    alignment.add(period);
    const std::int64_t part = alignment.bytes();
    plan.arguments.kind = GRIDBUF_FILL_UNITS;
    plan.arguments.unit_bytes = static_cast<std::int32_t>(part);
    plan.arguments.element_units = static_cast<std::int32_t>(period / part);
    add_axis(period / part, part, 0);
    if (rows.row_bytes > period) add_axis(rows.row_bytes / period, period, 0);
    add_axes(rows.axes);
    share_out_pieces(unsigned_of(rows.row_bytes / part) * elements_of(rows.axes));
    return plan;
  }
};

KernelPlan plan_copy(const Walk& walk, std::int64_t itemsize_bytes, std::int64_t most_blocks) {
  return KernelPlanner{walk, itemsize_bytes, /*has_source=*/true, most_blocks}.plan_copy();
}

absl::StatusOr<KernelPlan> plan_fill(const Walk& walk, std::span<const std::byte> element,
                                     std::int64_t most_blocks) {
  const std::span<const std::byte> pattern = period_of(element);
  if (std::ssize(pattern) > kLongestElementBytes) {
    return make_error(ErrorClass::kValue,
                      {"the element", std::to_string(pattern.size()) + " bytes",
                       "at most " + std::to_string(kLongestElementBytes) + " bytes that repeat",
                       "copy it from a view with strides of 0"});
  }
  return KernelPlanner{walk, std::ssize(element), /*has_source=*/false, most_blocks}.plan_fill(
      pattern);
}

// --- Running -------------------------------------------------------------------------------------

namespace {

// Calls work(piece of work) in order, for all blocks of a grid.
template <class Work>
void for_every_piece(const gridbuf_kernel_plan& plan, const Work& work) {
  for (std::uint64_t block = 0; block < plan.grid_blocks; ++block) {
    for (std::uint64_t piece = block; piece < plan.work_blocks; piece += plan.grid_blocks) {
      work(piece);
    }
  }
}

template <class Work>
void for_every_thread(const gridbuf_kernel_plan& plan, const Work& work) {
  for_every_piece(plan, [&](std::uint64_t piece) {
    for (std::uint32_t thread = 0; thread < kernel_code::kThreads; ++thread) work(piece, thread);
  });
}

// The memory that a GPU shares between the threads of a block. One for all kernels, which take
// turns: it is too long for small stacks, and a thread-local variable takes memory in each thread.
struct TileMemory {
  std::mutex mutex;
  alignas(16) std::uint8_t bytes[kernel_code::kTileBytes];
} tile_memory;

template <int kItem>
void run_tiles(const gridbuf_kernel_plan& plan) {
  const std::lock_guard lock(tile_memory.mutex);
  std::uint8_t* const memory = tile_memory.bytes;
  for_every_piece(plan, [&](std::uint64_t piece) {
    const kernel_code::Tile tile = kernel_code::tile_of(plan, piece);
    for (std::uint32_t thread = 0; thread < kernel_code::kThreads; ++thread) {
      kernel_code::load_tile_of<kItem>(plan, tile, memory, thread);
    }
    for (std::uint32_t thread = 0; thread < kernel_code::kThreads; ++thread) {
      kernel_code::store_tile_of<kItem>(plan, tile, memory, thread);
    }
  });
}

template <int kBytes>
void run_units(const gridbuf_kernel_plan& plan) {
  if (plan.kind == GRIDBUF_COPY_TILES) return run_tiles<kBytes>(plan);
  const bool copies = plan.kind == GRIDBUF_COPY_UNITS;
  for_every_thread(plan, [&](std::uint64_t piece, std::uint32_t thread) {
    copies ? kernel_code::copy_units<kBytes>(plan, piece, thread)
           : kernel_code::fill_units<kBytes>(plan, piece, thread);
  });
}

void run(const gridbuf_kernel_plan& plan) {
  if (plan.kind == GRIDBUF_COPY_CHUNKS || plan.kind == GRIDBUF_FILL_CHUNKS) {
    const bool copies = plan.kind == GRIDBUF_COPY_CHUNKS;
    return for_every_thread(plan, [&](std::uint64_t piece, std::uint32_t thread) {
      copies ? kernel_code::copy_chunks(plan, piece, thread)
             : kernel_code::fill_chunks(plan, piece, thread);
    });
  }
  switch (plan.unit_bytes) {
    case 1:
      return run_units<1>(plan);
    case 2:
      return run_units<2>(plan);
    case 4:
      return run_units<4>(plan);
    case 8:
      return run_units<8>(plan);
    default:
      return run_units<16>(plan);
  }
}

// Replaces the addresses by those of the bytes on the host.
void run_in(const void* arguments, std::span<std::byte* const> operands) {
  KernelPlan own;
  std::memcpy(&own, arguments, sizeof(own));
  own.arguments.target = reinterpret_cast<std::uintptr_t>(operands[0]);
  if (operands.size() > 1) {
    own.arguments.source += reinterpret_cast<std::uintptr_t>(operands[1]) -
                            reinterpret_cast<std::uintptr_t>(own.operands[1].begin);
  }
  run(own.arguments);
}

int (*cuda_launch)(const gridbuf_kernel_plan* plan, std::uint64_t stream) = nullptr;

int launch_cuda(const void* arguments, StreamHandle stream) {
  constexpr int kNotSupported = 801;  // as the stub: cudaErrorNotSupported
  if (cuda_launch == nullptr) return kNotSupported;
  return cuda_launch(&static_cast<const KernelPlan*>(arguments)->arguments, stream);
}

}  // namespace

void set_cuda_launch(int (*launch)(const gridbuf_kernel_plan* plan, std::uint64_t stream)) {
  cuda_launch = launch;
}

DeviceKernel kernel_of(const KernelPlan& plan) {
  return {.name = to_string(plan.kind()),
          .on_host = &run_in,
          .on_cuda = &launch_cuda,
          .arguments = std::as_bytes(std::span(&plan, 1)),
          .operands = std::span(plan.operands).first(plan.arguments.source != 0 ? 2 : 1)};
}

}  // namespace gridbuf::kernels
