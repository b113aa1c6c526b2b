// Which thread of which block moves which bytes: the kernels of transfers, without their launch.
//
// nvcc and the host's compiler both build this header, so CUDA and the emulated device run the same
// code. Every division, tail and swizzle of a kernel is tested on machines without a GPU. A kernel
// is cut into phases where it waits for its block (__syncthreads). The host runs a phase for all
// threads before it begins the next. An address that is not aligned for its access ends a kernel,
// also on the host.
//
// A `gridbuf_kernel_plan` has all parameters of one launch, by value. The kinds are:
//
//   units   one load and one store of 1, 2, 4, 8 or 16 bytes each, in the target's order. Any
//           number of axes; strided on either side. With a value in place of the source: a fill.
//   chunks  dense rows whose alignment is poor: the target is written in aligned 16-byte chunks,
//           which are put together from aligned pieces of the source; the row's ends are written
//           byte by byte. With a pattern in place of the source: a fill.
//   tiles   transpositions: a tile of 16 KiB is read along the axis on which the source is dense
//           and written along that of the target, through shared memory. 16-byte pieces of the
//           tile are permuted ("swizzled") so that neither side waits for a bank of it when both
//           sides move 16 bytes at once.
//
// A launch has at most `grid_blocks` blocks, and each takes every grid_blocks-th piece of the work.
#ifndef GRIDBUF_TRANSFER_DEVICE_KERNEL_PLAN_H_
#define GRIDBUF_TRANSFER_DEVICE_KERNEL_PLAN_H_

#include <stdint.h>
#include <string.h>

#define GRIDBUF_KERNEL_MOST_AXES 64       // 2^63 elements have at most 63 axes of 2
#define GRIDBUF_KERNEL_ELEMENT_BYTES 128  // the longest element of a fill

enum gridbuf_kernel_kind {
  GRIDBUF_COPY_UNITS = 0,
  GRIDBUF_COPY_CHUNKS = 1,
  GRIDBUF_COPY_TILES = 2,
  GRIDBUF_FILL_UNITS = 3,
  GRIDBUF_FILL_CHUNKS = 4,
};

// A divisor, with the numbers that replace the division if the dividend has 32 bits.
typedef struct {
  uint64_t value;
  uint32_t magic;
  uint32_t shift;
} gridbuf_divisor;

typedef struct {
  gridbuf_divisor extent;
  int64_t target_stride_bytes, source_stride_bytes;
} gridbuf_kernel_axis;

// One of the two axes of a tile.
typedef struct {
  uint64_t extent;
  gridbuf_divisor tiles;  // how many tiles cover it
  int64_t target_stride_bytes, source_stride_bytes;
  int32_t log2_items;    // of a tile along this axis
  int32_t vector_bytes;  // of one access along it: 16, 4 or the item
} gridbuf_tile_axis;

typedef struct {
  alignas(16) uint8_t element[GRIDBUF_KERNEL_ELEMENT_BYTES];  // fills: a period of the pattern
  uint64_t target, source;                                    // addresses of the first element
  int32_t kind;                                               // gridbuf_kernel_kind
  int32_t unit_bytes;                                         // of one access; of tiles: the item
  int32_t element_units;  // fills with units: units of a period; above 1 they are axes[0]
  int32_t axis_count;
  uint64_t count;        // units or chunks
  uint64_t work_blocks;  // pieces of work that a block takes at a time
  uint32_t grid_blocks;  // blocks of the launch
  int32_t swizzle_shift;
  uint64_t row_bytes;                                  // chunks
  gridbuf_divisor row_chunks;                          // chunks: the most that a row touches
  gridbuf_tile_axis along_source, along_target;        // tiles
  gridbuf_kernel_axis axes[GRIDBUF_KERNEL_MOST_AXES];  // innermost first; of chunks: of rows
} gridbuf_kernel_plan;

#ifdef __cplusplus
extern "C" {
#endif
// Enqueues the kernel on the current device; a cudaError_t, 0 = done. Without the toolkit: 801,
// "not supported".
int gridbuf_kernel_launch(const gridbuf_kernel_plan* plan, uint64_t stream);
#ifdef __cplusplus
}
#endif

#ifdef __cplusplus

#ifdef __CUDACC__
#define GRIDBUF_KERNEL_CODE __device__ __forceinline__
#else
#define GRIDBUF_KERNEL_CODE inline
#endif

namespace gridbuf {
namespace kernel_code {

constexpr uint32_t kThreads = 256;      // of a block
constexpr uint32_t kPiecesAThread = 4;  // in flight at once
constexpr uint32_t kPiecesABlock = kThreads * kPiecesAThread;
constexpr uint32_t kChunkBytes = 16;
constexpr uint32_t kTileBytes = 16384;
static_assert(kTileBytes % (kChunkBytes * kPiecesABlock) == 0, "a tile is whole rounds of a block");

// --- Loads and stores ----------------------------------------------------------------------------

#ifdef __CUDACC__
using Sixteen = uint4;
#else
struct alignas(16) Sixteen {
  uint32_t x, y, z, w;
};
#endif

template <int kBytes>
struct UnitOf;
template <>
struct UnitOf<1> {
  using type = unsigned char;
};
template <>
struct UnitOf<2> {
  using type = unsigned short;
};
template <>
struct UnitOf<4> {
  using type = unsigned int;
};
template <>
struct UnitOf<8> {
  using type = unsigned long long;
};
template <>
struct UnitOf<16> {
  using type = Sixteen;
};
template <int kBytes>
using Unit = typename UnitOf<kBytes>::type;

#ifdef __CUDACC__
template <int kBytes>
GRIDBUF_KERNEL_CODE Unit<kBytes> load(uint64_t address) {
  return __ldg(reinterpret_cast<const Unit<kBytes>*>(address));
}
// Written as PTX, because the compiler cannot know that the number is an address of global memory.
GRIDBUF_KERNEL_CODE void store_global(uint64_t address, unsigned char unit) {
  asm volatile("st.global.u8 [%0], %1;" ::"l"(address), "r"(static_cast<uint32_t>(unit)));
}
GRIDBUF_KERNEL_CODE void store_global(uint64_t address, unsigned short unit) {
  asm volatile("st.global.u16 [%0], %1;" ::"l"(address), "h"(unit));
}
GRIDBUF_KERNEL_CODE void store_global(uint64_t address, unsigned int unit) {
  asm volatile("st.global.u32 [%0], %1;" ::"l"(address), "r"(unit));
}
GRIDBUF_KERNEL_CODE void store_global(uint64_t address, unsigned long long unit) {
  asm volatile("st.global.u64 [%0], %1;" ::"l"(address), "l"(unit));
}
GRIDBUF_KERNEL_CODE void store_global(uint64_t address, Sixteen unit) {
  asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(address), "r"(unit.x), "r"(unit.y),
               "r"(unit.z), "r"(unit.w));
}
template <int kBytes>
GRIDBUF_KERNEL_CODE void store(uint64_t address, Unit<kBytes> unit) {
  store_global(address, unit);
}
// Of the tile, or of the element in the plan.
template <int kBytes>
GRIDBUF_KERNEL_CODE Unit<kBytes> get(const uint8_t* memory) {
  return *reinterpret_cast<const Unit<kBytes>*>(memory);
}
template <int kBytes>
GRIDBUF_KERNEL_CODE void put(uint8_t* memory, Unit<kBytes> unit) {
  *reinterpret_cast<Unit<kBytes>*>(memory) = unit;
}
#else
inline void end_if_misaligned(uint64_t address, uint64_t alignment_bytes) {
  if (address % alignment_bytes != 0) __builtin_trap();
}
template <int kBytes>
Unit<kBytes> get(const uint8_t* memory) {
  end_if_misaligned(reinterpret_cast<uint64_t>(memory), kBytes);
  Unit<kBytes> unit;
  memcpy(&unit, memory, kBytes);
  return unit;
}
template <int kBytes>
void put(uint8_t* memory, Unit<kBytes> unit) {
  end_if_misaligned(reinterpret_cast<uint64_t>(memory), kBytes);
  memcpy(memory, &unit, kBytes);
}
template <int kBytes>
Unit<kBytes> load(uint64_t address) {
  return get<kBytes>(reinterpret_cast<const uint8_t*>(address));
}
template <int kBytes>
void store(uint64_t address, Unit<kBytes> unit) {
  put<kBytes>(reinterpret_cast<uint8_t*>(address), unit);
}
#endif

// --- The place of an index -----------------------------------------------------------------------

// Exact for every dividend. The reciprocal has 33 bits; adding the dividend is the multiplication
// by the highest bit (Granlund and Montgomery, 1994).
GRIDBUF_KERNEL_CODE uint64_t divide(uint64_t dividend, const gridbuf_divisor& divisor) {
  if ((dividend >> 32) != 0) return dividend / divisor.value;
  const uint64_t high =
      (static_cast<uint64_t>(static_cast<uint32_t>(dividend)) * divisor.magic) >> 32;
  return (high + dividend) >> divisor.shift;
}

struct Place {
  uint64_t target, source;
};

// The element at a linear index of the plan's axes. Addresses are modulo 2^64, so negative strides
// work without special code.
GRIDBUF_KERNEL_CODE Place place_of(const gridbuf_kernel_plan& plan, uint64_t index) {
  Place place{plan.target, plan.source};
#pragma unroll 1  // copies of the loop would fill the instruction cache
  for (int axis = 0; axis < plan.axis_count; ++axis) {
    const gridbuf_kernel_axis& one = plan.axes[axis];
    const uint64_t outer = axis + 1 < plan.axis_count ? divide(index, one.extent) : 0;
    const uint64_t at = index - outer * one.extent.value;
    place.target += at * static_cast<uint64_t>(one.target_stride_bytes);
    place.source += at * static_cast<uint64_t>(one.source_stride_bytes);
    index = outer;
  }
  return place;
}

// --- Units ---------------------------------------------------------------------------------------

template <int kBytes>
GRIDBUF_KERNEL_CODE void copy_units(const gridbuf_kernel_plan& plan, uint64_t work_block,
                                    uint32_t thread) {
  const uint64_t first = work_block * kPiecesABlock + thread;
  Unit<kBytes> units[kPiecesAThread];
  uint64_t targets[kPiecesAThread];
#pragma unroll
  for (uint32_t k = 0; k < kPiecesAThread; ++k) {
    const uint64_t index = first + k * kThreads;
    if (index >= plan.count) break;
    const Place place = place_of(plan, index);
    units[k] = load<kBytes>(place.source);
    targets[k] = place.target;
  }
#pragma unroll
  for (uint32_t k = 0; k < kPiecesAThread; ++k) {
    if (first + k * kThreads >= plan.count) break;
    store<kBytes>(targets[k], units[k]);
  }
}

template <int kBytes>
GRIDBUF_KERNEL_CODE void fill_units(const gridbuf_kernel_plan& plan, uint64_t work_block,
                                    uint32_t thread) {
  const uint64_t first = work_block * kPiecesABlock + thread;
  Unit<kBytes> unit = get<kBytes>(plan.element);
#pragma unroll
  for (uint32_t k = 0; k < kPiecesAThread; ++k) {
    const uint64_t index = first + k * kThreads;
    if (index >= plan.count) break;
    if (plan.element_units > 1) {
      const uint64_t number =
          index - divide(index, plan.axes[0].extent) * plan.axes[0].extent.value;
      unit = get<kBytes>(plan.element + number * kBytes);
    }
    store<kBytes>(place_of(plan, index).target, unit);
  }
}

// --- Chunks --------------------------------------------------------------------------------------

// The bytes [begin, end) of the target that belong to one 16-byte chunk of memory and to one row.
struct Chunk {
  uint64_t begin, end;
  uint64_t row_source;  // of the row's first byte …
  uint64_t source;      // … and of this chunk's
};

GRIDBUF_KERNEL_CODE Chunk chunk_of(const gridbuf_kernel_plan& plan, uint64_t index) {
  const uint64_t row = divide(index, plan.row_chunks);
  const uint64_t number = index - row * plan.row_chunks.value;
  const Place place = place_of(plan, row);
  const uint64_t row_end = place.target + plan.row_bytes;
  const uint64_t at =
      (place.target & ~static_cast<uint64_t>(kChunkBytes - 1)) + number * kChunkBytes;
  Chunk chunk;
  chunk.begin = at < place.target ? place.target : at;
  chunk.end = at + kChunkBytes < row_end ? at + kChunkBytes : row_end;
  chunk.row_source = place.source;
  chunk.source = place.source + (chunk.begin - place.target);
  return chunk;
}

// Sixteen bytes from aligned pieces of kBytes.
template <int kBytes>
GRIDBUF_KERNEL_CODE Sixteen load_pieces(uint64_t source) {
  alignas(16) Unit<kBytes> pieces[kChunkBytes / kBytes];
#pragma unroll
  for (uint32_t k = 0; k < kChunkBytes / kBytes; ++k) pieces[k] = load<kBytes>(source + k * kBytes);
  Sixteen chunk;
  memcpy(&chunk, pieces, sizeof(chunk));
  return chunk;
}

GRIDBUF_KERNEL_CODE uint32_t shifted(uint32_t low, uint32_t high, uint32_t bits) {
  return static_cast<uint32_t>(((static_cast<uint64_t>(high) << 32) | low) >> bits);
}

// Sixteen bytes from the five aligned words around them.
GRIDBUF_KERNEL_CODE Sixteen load_shifted(uint64_t source) {
  const uint64_t first = source & ~UINT64_C(3);
  const uint32_t bits = static_cast<uint32_t>(source & 3) * 8;
  uint32_t words[5];
#pragma unroll
  for (uint32_t k = 0; k < 5; ++k) words[k] = load<4>(first + k * 4);
  Sixteen chunk;
  chunk.x = shifted(words[0], words[1], bits);
  chunk.y = shifted(words[1], words[2], bits);
  chunk.z = shifted(words[2], words[3], bits);
  chunk.w = shifted(words[3], words[4], bits);
  return chunk;
}

// Does not read outside the row, because those bytes may not be allocated.
GRIDBUF_KERNEL_CODE Sixteen load_chunk(const gridbuf_kernel_plan& plan, const Chunk& chunk) {
  const uint64_t source = chunk.source;
  if ((source & 15) == 0) return load<16>(source);
  if ((source & 7) == 0) return load_pieces<8>(source);
  if ((source & 3) == 0) return load_pieces<4>(source);
  const uint64_t first = source & ~UINT64_C(3);
  if (first >= chunk.row_source && first + 20 <= chunk.row_source + plan.row_bytes) {
    return load_shifted(source);
  }
  return load_pieces<1>(source);
}

GRIDBUF_KERNEL_CODE void copy_chunks(const gridbuf_kernel_plan& plan, uint64_t work_block,
                                     uint32_t thread) {
#pragma unroll
  for (uint32_t k = 0; k < kPiecesAThread; ++k) {
    const uint64_t index = work_block * kPiecesABlock + thread + k * kThreads;
    if (index >= plan.count) return;
    const Chunk chunk = chunk_of(plan, index);
    if (chunk.begin + kChunkBytes == chunk.end) {
      store<16>(chunk.begin, load_chunk(plan, chunk));
      continue;
    }
    // A row's end, or a chunk after the row: begin is then at or beyond end.
    for (uint64_t at = chunk.begin; at < chunk.end; ++at) {
      store<1>(at, load<1>(chunk.source + (at - chunk.begin)));
    }
  }
}

// The pattern repeats within a chunk, and rows begin at a whole number of periods. So each chunk of
// memory gets the same sixteen bytes.
GRIDBUF_KERNEL_CODE void fill_chunks(const gridbuf_kernel_plan& plan, uint64_t work_block,
                                     uint32_t thread) {
  const Sixteen pattern = get<16>(plan.element);
#pragma unroll
  for (uint32_t k = 0; k < kPiecesAThread; ++k) {
    const uint64_t index = work_block * kPiecesABlock + thread + k * kThreads;
    if (index >= plan.count) return;
    const Chunk chunk = chunk_of(plan, index);
    if (chunk.begin + kChunkBytes == chunk.end) {
      store<16>(chunk.begin, pattern);
      continue;
    }
    for (uint64_t at = chunk.begin; at < chunk.end; ++at) {
      store<1>(at, plan.element[at & (kChunkBytes - 1)]);
    }
  }
}

// --- Tiles ---------------------------------------------------------------------------------------

// The begin of a tile, and the number of its items along each axis.
struct Tile {
  uint64_t target, source;
  uint64_t count_along_source, count_along_target;
};

GRIDBUF_KERNEL_CODE uint64_t items_from(const gridbuf_tile_axis& axis, uint64_t first) {
  const uint64_t left = axis.extent - first;
  const uint64_t most = UINT64_C(1) << axis.log2_items;
  return left < most ? left : most;
}

GRIDBUF_KERNEL_CODE Tile tile_of(const gridbuf_kernel_plan& plan, uint64_t work_block) {
  const gridbuf_tile_axis& s = plan.along_source;
  const gridbuf_tile_axis& t = plan.along_target;
  const uint64_t rest = divide(work_block, t.tiles);
  const uint64_t first_t = (work_block - rest * t.tiles.value) << t.log2_items;
  const uint64_t outer = divide(rest, s.tiles);
  const uint64_t first_s = (rest - outer * s.tiles.value) << s.log2_items;
  const Place place = place_of(plan, outer);
  Tile tile;
  tile.target = place.target + first_t * static_cast<uint64_t>(t.target_stride_bytes) +
                first_s * static_cast<uint64_t>(s.target_stride_bytes);
  tile.source = place.source + first_t * static_cast<uint64_t>(t.source_stride_bytes) +
                first_s * static_cast<uint64_t>(s.source_stride_bytes);
  tile.count_along_source = items_from(s, first_s);
  tile.count_along_target = items_from(t, first_t);
  return tile;
}

// The place in shared memory of item (i along the source's axis, j along the target's). Eight
// chunks fill the 32 banks of 4 bytes. The number of a chunk is mixed with that of its row, so that
// eight rows read at one i use eight different banks.
template <int kItem>
GRIDBUF_KERNEL_CODE uint32_t offset_in_tile(const gridbuf_kernel_plan& plan, uint32_t i,
                                            uint32_t j) {
  const uint32_t offset = ((j << plan.along_source.log2_items) + i) * kItem;
  const uint32_t chunk = offset / kChunkBytes;
  return (chunk ^ ((chunk >> plan.swizzle_shift) & 7)) * kChunkBytes + offset % kChunkBytes;
}

template <uint32_t kValue>
inline constexpr int kLog2 = 1 + kLog2<kValue / 2>;
template <>
inline constexpr int kLog2<1> = 0;

// The first of the items that a thread moves at once, in the v-th vector of a tile.
struct Spot {
  uint32_t i, j;
};

// For reads: along the source's axis, row after row.
template <uint32_t kItems>
GRIDBUF_KERNEL_CODE Spot spot_read(const gridbuf_kernel_plan& plan, uint32_t v) {
  const int log2_row = plan.along_source.log2_items - kLog2<kItems>;
  return Spot{(v & ((1u << log2_row) - 1)) * kItems, v >> log2_row};
}

// For writes: a warp takes 8 neighbours of 16 bytes along the target for 4 neighbouring i, or 32
// single items for one i.
template <uint32_t kItems>
GRIDBUF_KERNEL_CODE Spot spot_written(const gridbuf_kernel_plan& plan, uint32_t v) {
  const int log2_i = plan.along_source.log2_items;
  const int log2_q = plan.along_target.log2_items - kLog2<kItems>;
  const int most_low_q = kItems == 1 ? 5 : 3;
  const int low_q = log2_q < most_low_q ? log2_q : most_low_q;
  const int low_i = log2_i < 5 - low_q ? log2_i : 5 - low_q;
  const uint32_t rest = v >> (low_q + low_i);
  const uint32_t i =
      ((v >> low_q) & ((1u << low_i) - 1)) | ((rest & ((1u << (log2_i - low_i)) - 1)) << low_i);
  const uint32_t q = (v & ((1u << low_q) - 1)) | ((rest >> (log2_i - low_i)) << low_q);
  return Spot{i, q * kItems};
}

// Phase 1: all threads read the tile, kVector bytes at once along the source's axis.
template <int kItem, int kVector>
GRIDBUF_KERNEL_CODE void load_tile(const gridbuf_kernel_plan& plan, const Tile& tile,
                                   uint8_t* memory, uint32_t thread) {
  constexpr uint32_t kItems = kVector / kItem;
  constexpr uint32_t kRound = kPiecesABlock;
  const uint64_t stride_s = static_cast<uint64_t>(plan.along_source.source_stride_bytes);
  const uint64_t stride_t = static_cast<uint64_t>(plan.along_target.source_stride_bytes);
  for (uint32_t round = 0; round < kTileBytes / kVector; round += kRound) {
    Unit<kVector> vectors[kPiecesAThread];
#pragma unroll
    for (uint32_t k = 0; k < kPiecesAThread; ++k) {
      const auto [i, j] = spot_read<kItems>(plan, round + k * kThreads + thread);
      if (j < tile.count_along_target && i + kItems <= tile.count_along_source) {
        vectors[k] = load<kVector>(tile.source + i * stride_s + j * stride_t);
      }
    }
#pragma unroll
    for (uint32_t k = 0; k < kPiecesAThread; ++k) {
      const auto [i, j] = spot_read<kItems>(plan, round + k * kThreads + thread);
      if (j >= tile.count_along_target) continue;
      if (i + kItems <= tile.count_along_source) {
        put<kVector>(memory + offset_in_tile<kItem>(plan, i, j), vectors[k]);
        continue;
      }
      for (uint32_t at = i; at < tile.count_along_source; ++at) {
        put<kItem>(memory + offset_in_tile<kItem>(plan, at, j),
                   load<kItem>(tile.source + at * stride_s + j * stride_t));
      }
    }
  }
}

// Phase 2: all threads write it, kVector bytes at once along the target's axis.
template <int kItem, int kVector>
GRIDBUF_KERNEL_CODE void store_tile(const gridbuf_kernel_plan& plan, const Tile& tile,
                                    const uint8_t* memory, uint32_t thread) {
  constexpr uint32_t kItems = kVector / kItem;
  const uint64_t stride_s = static_cast<uint64_t>(plan.along_source.target_stride_bytes);
  const uint64_t stride_t = static_cast<uint64_t>(plan.along_target.target_stride_bytes);
#pragma unroll 2
  for (uint32_t w = thread; w < kTileBytes / kVector; w += kThreads) {
    const auto [i, j] = spot_written<kItems>(plan, w);
    if (i >= tile.count_along_source || j >= tile.count_along_target) continue;
    const uint64_t target = tile.target + i * stride_s + j * stride_t;
    if (j + kItems <= tile.count_along_target) {
      alignas(kVector) Unit<kItem> items[kItems];
#pragma unroll
      for (uint32_t n = 0; n < kItems; ++n) {
        items[n] = get<kItem>(memory + offset_in_tile<kItem>(plan, i, j + n));
      }
      Unit<kVector> vector;
      memcpy(&vector, items, kVector);
      store<kVector>(target, vector);
      continue;
    }
    for (uint32_t n = 0; j + n < tile.count_along_target; ++n) {
      store<kItem>(target + n * stride_t,
                   get<kItem>(memory + offset_in_tile<kItem>(plan, i, j + n)));
    }
  }
}

// The widths of a side: 16 bytes, 4 bytes for smaller items, the item.
template <int kItem>
GRIDBUF_KERNEL_CODE void load_tile_of(const gridbuf_kernel_plan& plan, const Tile& tile,
                                      uint8_t* memory, uint32_t thread) {
  constexpr int kMiddle = kItem < 4 ? 4 : kItem;
  const int bytes = plan.along_source.vector_bytes;
  if (bytes == 16) return load_tile<kItem, 16>(plan, tile, memory, thread);
  if (bytes == kMiddle) return load_tile<kItem, kMiddle>(plan, tile, memory, thread);
  load_tile<kItem, kItem>(plan, tile, memory, thread);
}

template <int kItem>
GRIDBUF_KERNEL_CODE void store_tile_of(const gridbuf_kernel_plan& plan, const Tile& tile,
                                       const uint8_t* memory, uint32_t thread) {
  constexpr int kMiddle = kItem < 4 ? 4 : kItem;
  const int bytes = plan.along_target.vector_bytes;
  if (bytes == 16) return store_tile<kItem, 16>(plan, tile, memory, thread);
  if (bytes == kMiddle) return store_tile<kItem, kMiddle>(plan, tile, memory, thread);
  store_tile<kItem, kItem>(plan, tile, memory, thread);
}

}  // namespace kernel_code
}  // namespace gridbuf

#endif  // __cplusplus

#endif  // GRIDBUF_TRANSFER_DEVICE_KERNEL_PLAN_H_
