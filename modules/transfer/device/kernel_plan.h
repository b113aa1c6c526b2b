// Which thread moves which bytes: the kernels of transfers, without their launch.
//
// nvcc and the host's compiler both build this header, so a GPU and the emulated device run the
// same code. Machines without a GPU test every division and tail of a kernel. An address that is
// not aligned for its access ends a kernel, also on the host.
//
// A `gridbuf_kernel_plan` has all parameters of one launch, by value. The kinds are:
//
//   units   one load and one store of 1, 2, 4, 8 or 16 bytes each, in the target's order. Any
//           number of axes; strided on either side. With a value in place of the source: a fill.
//   tiles   transpositions: a square of items is read along the axis on which the source is dense
//           and written along that of the target, through shared memory. Its rows are padded by an
//           item, so that the threads of a warp use different banks of that memory.
//
// Key decision: both kinds are the textbook's. A tile is within a few percent of a flat copy (98 %
// in published measurements), and no machine of this project can measure those few percent.
#ifndef GRIDBUF_TRANSFER_DEVICE_KERNEL_PLAN_H_
#define GRIDBUF_TRANSFER_DEVICE_KERNEL_PLAN_H_

#include <stdint.h>
#include <string.h>

#define GRIDBUF_KERNEL_MOST_AXES 64  // 2^63 elements have at most 63 axes of 2, and a unit's axis

enum gridbuf_kernel_kind { GRIDBUF_COPY_UNITS, GRIDBUF_COPY_TILES, GRIDBUF_FILL_UNITS };

typedef struct {
  uint64_t extent;
  int64_t target_stride_bytes, source_stride_bytes;
} gridbuf_kernel_axis;

typedef struct {
  alignas(16) uint8_t unit[16];  // fills: the value
  uint64_t target, source;       // addresses of the first element
  uint64_t count;                // units or tiles
  int32_t kind;                  // gridbuf_kernel_kind
  int32_t unit_bytes;            // of tiles: of an item
  int32_t axis_count;
  // Innermost first. Of tiles: the target's dense axis, the source's dense axis, the others.
  gridbuf_kernel_axis axes[GRIDBUF_KERNEL_MOST_AXES];
} gridbuf_kernel_plan;

#ifdef __cplusplus
extern "C" {
#endif
// Enqueues the kernel on the current CUDA device; a cudaError_t, 0 = done. Without the toolkit:
// 801, "not supported".
int gridbuf_kernel_launch(const gridbuf_kernel_plan* plan, uint64_t stream);
#ifdef __cplusplus
}
#endif

#ifdef __cplusplus

#include <type_traits>

#ifdef __CUDACC__
#define GRIDBUF_KERNEL_CODE __device__ __forceinline__
#else
#define GRIDBUF_KERNEL_CODE inline
#endif

namespace gridbuf {
namespace kernel_code {

constexpr uint32_t kThreads = 256;  // of a block
constexpr uint32_t kTileEdge = 32;  // items of a tile along both axes: the threads of a warp
constexpr uint32_t kTileRows = kThreads / kTileEdge;  // rows that a block moves at once
constexpr uint32_t kTileItems = kTileEdge * (kTileEdge + 1);

// --- Loads and stores ----------------------------------------------------------------------------

struct alignas(16) Sixteen {
  uint64_t low, high;
};

template <int kBytes>
using Unit = std::conditional_t<
    kBytes == 1, uint8_t,
    std::conditional_t<kBytes == 2, uint16_t,
                       std::conditional_t<kBytes == 4, uint32_t,
                                          std::conditional_t<kBytes == 8, uint64_t, Sixteen>>>>;

#ifdef __CUDACC__
template <int kBytes>
GRIDBUF_KERNEL_CODE Unit<kBytes> load(uint64_t address) {
  return *reinterpret_cast<const Unit<kBytes>*>(address);
}
template <int kBytes>
GRIDBUF_KERNEL_CODE void store(uint64_t address, Unit<kBytes> unit) {
  *reinterpret_cast<Unit<kBytes>*>(address) = unit;
}
#else
template <int kBytes>
void* aligned(uint64_t address) {
  if (address % kBytes != 0) __builtin_trap();
  return reinterpret_cast<void*>(address);
}
template <int kBytes>
Unit<kBytes> load(uint64_t address) {
  Unit<kBytes> unit;
  memcpy(&unit, aligned<kBytes>(address), kBytes);
  return unit;
}
template <int kBytes>
void store(uint64_t address, Unit<kBytes> unit) {
  memcpy(aligned<kBytes>(address), &unit, kBytes);
}
#endif

// --- The place of an index -----------------------------------------------------------------------

struct Place {
  uint64_t target, source;
};

// Addresses are modulo 2^64, so negative strides work without special code.
GRIDBUF_KERNEL_CODE void move(Place& place, const gridbuf_kernel_axis& axis, uint64_t steps) {
  place.target += steps * static_cast<uint64_t>(axis.target_stride_bytes);
  place.source += steps * static_cast<uint64_t>(axis.source_stride_bytes);
}

// The element at a linear index of the axes from `axis` on.
GRIDBUF_KERNEL_CODE Place place_of(const gridbuf_kernel_plan& plan, uint64_t index, int axis = 0) {
  Place place{plan.target, plan.source};
  for (; axis < plan.axis_count; ++axis) {
    const uint64_t extent = plan.axes[axis].extent;
    // The outermost axis has the rest: contiguous elements need no division.
    const uint64_t outer = axis + 1 < plan.axis_count ? index / extent : 0;
    move(place, plan.axes[axis], index - outer * extent);
    index = outer;
  }
  return place;
}

// --- Units ---------------------------------------------------------------------------------------

// A thread takes every step-th unit.
template <int kBytes>
GRIDBUF_KERNEL_CODE void copy_units(const gridbuf_kernel_plan& plan, uint64_t first,
                                    uint64_t step) {
  for (uint64_t index = first; index < plan.count; index += step) {
    const Place place = place_of(plan, index);
    store<kBytes>(place.target, load<kBytes>(place.source));
  }
}

template <int kBytes>
GRIDBUF_KERNEL_CODE void fill_units(const gridbuf_kernel_plan& plan, uint64_t first,
                                    uint64_t step) {
  Unit<kBytes> unit;
  memcpy(&unit, plan.unit, kBytes);
  for (uint64_t index = first; index < plan.count; index += step) {
    store<kBytes>(place_of(plan, index).target, unit);
  }
}

// --- Tiles ---------------------------------------------------------------------------------------

GRIDBUF_KERNEL_CODE uint64_t tiles_along(const gridbuf_kernel_axis& axis) {
  return (axis.extent + kTileEdge - 1) / kTileEdge;
}

// The first item of a tile, and how many items there are from it on along the target's dense axis
// (x) and the source's (y).
struct Tile {
  Place first;
  uint64_t count_x, count_y;
};

GRIDBUF_KERNEL_CODE Tile tile_of(const gridbuf_kernel_plan& plan, uint64_t number) {
  const gridbuf_kernel_axis& x = plan.axes[0];
  const gridbuf_kernel_axis& y = plan.axes[1];
  const uint64_t rest = number / tiles_along(x);
  const uint64_t outer = rest / tiles_along(y);
  const uint64_t first_x = (number - rest * tiles_along(x)) * kTileEdge;
  const uint64_t first_y = (rest - outer * tiles_along(y)) * kTileEdge;
  Tile tile{place_of(plan, outer, 2), x.extent - first_x, y.extent - first_y};
  move(tile.first, x, first_x);
  move(tile.first, y, first_y);
  return tile;
}

GRIDBUF_KERNEL_CODE Place item_of(const gridbuf_kernel_plan& plan, const Tile& tile, uint32_t x,
                                  uint32_t y) {
  Place place = tile.first;
  move(place, plan.axes[0], x);
  move(place, plan.axes[1], y);
  return place;
}

// Phase 1: all threads read the tile, along the source's axis. A block waits between the phases.
template <int kBytes>
GRIDBUF_KERNEL_CODE void load_tile(const gridbuf_kernel_plan& plan, const Tile& tile,
                                   Unit<kBytes>* items, uint32_t thread) {
  const uint32_t y = thread % kTileEdge;
  if (y >= tile.count_y) return;
  Unit<kBytes> loaded[kTileEdge / kTileRows] = {};  // all loads are in flight at once
#pragma unroll
  for (uint32_t k = 0; k < kTileEdge / kTileRows; ++k) {
    const uint32_t x = thread / kTileEdge + k * kTileRows;
    if (x < tile.count_x) loaded[k] = load<kBytes>(item_of(plan, tile, x, y).source);
  }
#pragma unroll
  for (uint32_t k = 0; k < kTileEdge / kTileRows; ++k) {
    items[(thread / kTileEdge + k * kTileRows) * (kTileEdge + 1) + y] = loaded[k];
  }
}

// Phase 2: all threads write it, along the target's axis.
template <int kBytes>
GRIDBUF_KERNEL_CODE void store_tile(const gridbuf_kernel_plan& plan, const Tile& tile,
                                    const Unit<kBytes>* items, uint32_t thread) {
  const uint32_t x = thread % kTileEdge;
  if (x >= tile.count_x) return;
  for (uint32_t y = thread / kTileEdge; y < kTileEdge && y < tile.count_y; y += kTileRows) {
    store<kBytes>(item_of(plan, tile, x, y).target, items[x * (kTileEdge + 1) + y]);
  }
}

}  // namespace kernel_code
}  // namespace gridbuf

#endif  // __cplusplus

#endif  // GRIDBUF_TRANSFER_DEVICE_KERNEL_PLAN_H_
