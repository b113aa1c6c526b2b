// Conversions against memcpy of as many bytes: what is read and written is what a conversion can
// not do without, so a rate beside that of memcpy says how near it is to the memory's.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "benchmark/benchmark.h"

import gridbuf.alloc.host;
import gridbuf.alloc;
import gridbuf.base;
import gridbuf.layout.view;
import gridbuf.layout;
import gridbuf.transfer.convert;
import gridbuf.transfer.simd;

namespace gridbuf {
namespace {

// Memory as arrays of this library have it: on huge pages where it is large.
Block memory_of(std::int64_t length_bytes) {
  absl::StatusOr<Block> block =
      host_resource().allocate({.total_bytes = length_bytes, .alignment_bytes = 64});
  if (!block.ok()) std::abort();
  return *std::move(block);
}

// A cube of n^3 numbers with the given strides in elements.
StridedView cube(std::int64_t n, std::int64_t i, std::int64_t j, std::int64_t k, Number type) {
  const std::int64_t itemsize = facts_of(type).itemsize_bytes;
  return {.shape = {n, n, n},
          .strides_bytes = {i * itemsize, j * itemsize, k * itemsize},
          .offset_bytes = 0,
          .itemsize_bytes = itemsize};
}

StridedView c_order(std::int64_t n, Number type) { return cube(n, n * n, n, 1, type); }
StridedView f_order(std::int64_t n, Number type) { return cube(n, 1, n, n * n, type); }
StridedView k_middle(std::int64_t n, Number type) { return cube(n, n * n, 1, n, type); }
// Rows padded to the next multiple of 8 elements after n + 1.
StridedView padded(std::int64_t n, Number type) {
  const std::int64_t row = (n + 8) / 8 * 8;
  return cube(n, n * row, row, 1, type);
}

// Small integers, which every type holds.
Block numbers_for(const StridedView& view, Number type) {
  Block block = memory_of(byte_hull(view)->highest_bytes);
  const std::int64_t count = block.total_bytes() / view.itemsize_bytes;
  std::vector<std::int8_t> small(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < small.size(); ++i) small[i] = static_cast<std::int8_t>(i % 100);
  const ConvertRow row = convert_row(type, Number::kInt8, Simd::kPortable);
  row(block.data(), reinterpret_cast<const std::byte*>(small.data()), count);
  return block;
}

void set_rate(benchmark::State& state, std::int64_t bytes) {
  state.SetBytesProcessed(state.iterations() * bytes);
}

// All threads, each its share: as many bytes read as written.
void BM_Memcpy(benchmark::State& state) {
  const std::int64_t length = state.range(0) * state.range(0) * state.range(0) * 6;
  const Block source = memory_of(length);
  const Block target = memory_of(length);
  std::memset(source.data(), 1, static_cast<std::size_t>(length));
  std::memset(target.data(), 1, static_cast<std::size_t>(length));
  const std::int64_t share = length < (1 << 21) ? length : (length - 1) / thread_count() + 1;
  for (auto _ : state) {
    parallel_for(length, share, [&](std::int64_t begin, std::int64_t end) {
      std::memcpy(target.data() + begin, source.data() + begin,
                  static_cast<std::size_t>(end - begin));
    });
    benchmark::ClobberMemory();
  }
  set_rate(state, 2 * length);
}
BENCHMARK(BM_Memcpy)->Arg(16)->Arg(128)->Arg(384)->UseRealTime();

void convert(benchmark::State& state, const StridedView& target, Number to,
             const StridedView& source, Number from, const ConvertOptions& options = {}) {
  const Block source_block = numbers_for(source, from);
  const Block target_block = numbers_for(target, to);
  for (auto _ : state) {
    const absl::StatusOr<ConversionFlags> flags = convert_elements(
        target_block.data(), target, to, source_block.data(), source, from, options);
    if (!flags.ok() || flags->any()) state.SkipWithError("the conversion failed");
    benchmark::ClobberMemory();
  }
  const std::int64_t n = state.range(0);
  set_rate(state, n * n * n * (target.itemsize_bytes + source.itemsize_bytes));
}

void BM_Same(benchmark::State& state, Number to, Number from) {
  convert(state, c_order(state.range(0), to), to, c_order(state.range(0), from), from);
}
void BM_Padded(benchmark::State& state, Number to, Number from) {
  convert(state, padded(state.range(0), to), to, padded(state.range(0), from), from);
}
void BM_Transposed(benchmark::State& state, Number to, Number from) {
  convert(state, c_order(state.range(0), to), to, f_order(state.range(0), from), from);
}
void BM_PlanesTransposed(benchmark::State& state, Number to, Number from) {
  convert(state, c_order(state.range(0), to), to, k_middle(state.range(0), from), from);
}
void BM_Swapped(benchmark::State& state, Number to, Number from) {
  convert(state, c_order(state.range(0), to), to, c_order(state.range(0), from), from,
          {.source_is_swapped = true});
}
// The elements move, and keep their bytes: what the layout alone costs.
void BM_CopyTransposed(benchmark::State& state, Number type) {
  convert(state, c_order(state.range(0), type), type, f_order(state.range(0), type), type);
}
void BM_CopyPlanesTransposed(benchmark::State& state, Number type) {
  convert(state, c_order(state.range(0), type), type, k_middle(state.range(0), type), type);
}

// Every `state.range(1)`-th element, mixed up by chance.
void BM_Where(benchmark::State& state, Number to, Number from) {
  const std::int64_t n = state.range(0);
  std::vector<std::byte> selected(static_cast<std::size_t>(n * n * n));
  std::uint32_t random = 1;
  for (std::byte& byte : selected) {
    random = random * 1664525U + 1013904223U;
    byte = std::byte{(random >> 16) % static_cast<std::uint32_t>(state.range(1)) == 0};
  }
  const Mask mask{selected.data(), c_order(n, Number::kBool)};
  convert(state, c_order(n, to), to, c_order(n, from), from, {.where = &mask});
}

constexpr std::int64_t kSmall = 16;  // in the near cache
constexpr std::int64_t kLarge = 384;

#define GRIDBUF_PAIR(to, from)                                               \
  BENCHMARK_CAPTURE(BM_Same, from##_to_##to, Number::k##to, Number::k##from) \
      ->Arg(2)                                                               \
      ->Arg(kSmall)                                                          \
      ->Arg(kLarge)                                                          \
      ->UseRealTime()
GRIDBUF_PAIR(Float64, Float32);
GRIDBUF_PAIR(Float32, Float64);
GRIDBUF_PAIR(Float32, Float16);
GRIDBUF_PAIR(Float16, Float32);
GRIDBUF_PAIR(Float16, Float64);
GRIDBUF_PAIR(Int32, Float64);
GRIDBUF_PAIR(Float64, Int32);
GRIDBUF_PAIR(Float64, Int64);
GRIDBUF_PAIR(Int64, Float64);
GRIDBUF_PAIR(Uint8, Float32);
GRIDBUF_PAIR(Float32, Uint8);
GRIDBUF_PAIR(Int64, Int32);
GRIDBUF_PAIR(Bool, Float64);
GRIDBUF_PAIR(Complex128, Float64);
GRIDBUF_PAIR(Float64, Complex128);
GRIDBUF_PAIR(Complex128, Complex64);
GRIDBUF_PAIR(Float64, Float16);
#undef GRIDBUF_PAIR

#define GRIDBUF_LAYOUT(layout, to, from)                                    \
  BENCHMARK_CAPTURE(layout, from##_to_##to, Number::k##to, Number::k##from) \
      ->Arg(kLarge)                                                         \
      ->UseRealTime()
GRIDBUF_LAYOUT(BM_Padded, Float64, Float32);
GRIDBUF_LAYOUT(BM_Padded, Float32, Float64);
GRIDBUF_LAYOUT(BM_Swapped, Float64, Float32);
GRIDBUF_LAYOUT(BM_Swapped, Float32, Float64);
GRIDBUF_LAYOUT(BM_Transposed, Float64, Float32);
GRIDBUF_LAYOUT(BM_Transposed, Float32, Float64);
GRIDBUF_LAYOUT(BM_PlanesTransposed, Float64, Float32);
GRIDBUF_LAYOUT(BM_PlanesTransposed, Float32, Float64);
#undef GRIDBUF_LAYOUT
BENCHMARK_CAPTURE(BM_CopyTransposed, Float32, Number::kFloat32)->Arg(kLarge)->UseRealTime();
BENCHMARK_CAPTURE(BM_CopyTransposed, Float64, Number::kFloat64)->Arg(kLarge)->UseRealTime();
BENCHMARK_CAPTURE(BM_CopyPlanesTransposed, Float64, Number::kFloat64)->Arg(kLarge)->UseRealTime();

BENCHMARK_CAPTURE(BM_Where, Float64, Number::kFloat64, Number::kFloat64)
    ->Args({kLarge, 2})
    ->Args({kLarge, 1000})
    ->UseRealTime();
BENCHMARK_CAPTURE(BM_Where, Float32_to_Float64, Number::kFloat64, Number::kFloat32)
    ->Args({kLarge, 2})
    ->UseRealTime();

}  // namespace
}  // namespace gridbuf
