// Copies and fills compared with memcpy and memset on the same bytes. A copy between equal dense
// layouts should take as long as memcpy.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "benchmark/benchmark.h"

import gridbuf.layout;
import gridbuf.layout.view;
import gridbuf.transfer;

namespace gridbuf {
namespace {

constexpr std::int64_t kItemsize = 8;

// A cube of n^3 doubles with the given strides in elements.
StridedView cube(std::int64_t n, std::int64_t i, std::int64_t j, std::int64_t k) {
  return {.shape = {n, n, n},
          .strides_bytes = {i * kItemsize, j * kItemsize, k * kItemsize},
          .offset_bytes = 0,
          .itemsize_bytes = kItemsize};
}

StridedView c_order(std::int64_t n) { return cube(n, n * n, n, 1); }
StridedView f_order(std::int64_t n) { return cube(n, 1, n, n * n); }
// Rows padded to the next multiple of 8 elements after n + 1.
StridedView padded(std::int64_t n) {
  const std::int64_t row = (n + 8) / 8 * 8;
  return cube(n, n * row, row, 1);
}

std::vector<std::byte> block_for(const StridedView& view) {
  return std::vector<std::byte>(static_cast<std::size_t>(byte_hull(view)->highest_bytes));
}

void set_rate(benchmark::State& state) {
  const std::int64_t n = state.range(0);
  state.SetBytesProcessed(state.iterations() * n * n * n * kItemsize);
}

void BM_Memcpy(benchmark::State& state) {
  const auto source = block_for(c_order(state.range(0)));
  auto target = source;
  for (auto _ : state) {
    std::memcpy(target.data(), source.data(), source.size());
    benchmark::DoNotOptimize(target.data());
    benchmark::ClobberMemory();
  }
  set_rate(state);
}
BENCHMARK(BM_Memcpy)->Arg(2)->Arg(8)->Arg(16)->Arg(32)->Arg(128)->Arg(256);

void copy(benchmark::State& state, const StridedView& target, const StridedView& source) {
  const auto source_block = block_for(source);
  auto target_block = block_for(target);
  for (auto _ : state) {
    const absl::Status status =
        copy_elements(target_block.data(), target, source_block.data(), source);
    if (!status.ok()) state.SkipWithError("the copy failed");
    benchmark::ClobberMemory();
  }
  set_rate(state);
}

void BM_CopyEqual(benchmark::State& state) {
  copy(state, c_order(state.range(0)), c_order(state.range(0)));
}
BENCHMARK(BM_CopyEqual)->Arg(2)->Arg(8)->Arg(16)->Arg(32)->Arg(128)->Arg(256);

void BM_CopyToPadded(benchmark::State& state) {
  copy(state, padded(state.range(0)), c_order(state.range(0)));
}
BENCHMARK(BM_CopyToPadded)->Arg(2)->Arg(8)->Arg(16)->Arg(32)->Arg(128)->Arg(256);

void BM_CopyTransposed(benchmark::State& state) {
  copy(state, c_order(state.range(0)), f_order(state.range(0)));
}
BENCHMARK(BM_CopyTransposed)->Arg(2)->Arg(8)->Arg(16)->Arg(32)->Arg(128)->Arg(256);

void BM_Memset(benchmark::State& state) {
  auto target = block_for(c_order(state.range(0)));
  for (auto _ : state) {
    std::memset(target.data(), 0, target.size());
    benchmark::ClobberMemory();
  }
  set_rate(state);
}
BENCHMARK(BM_Memset)->Arg(2)->Arg(8)->Arg(16)->Arg(32)->Arg(128)->Arg(256);

void fill(benchmark::State& state, const StridedView& target) {
  auto block = block_for(target);
  const double one = 1;
  for (auto _ : state) {
    const absl::Status status =
        fill_elements(block.data(), target, std::as_bytes(std::span(&one, 1)));
    if (!status.ok()) state.SkipWithError("the fill failed");
    benchmark::ClobberMemory();
  }
  set_rate(state);
}

void BM_FillDense(benchmark::State& state) { fill(state, c_order(state.range(0))); }
BENCHMARK(BM_FillDense)->Arg(2)->Arg(8)->Arg(16)->Arg(32)->Arg(128)->Arg(256);

void BM_FillPadded(benchmark::State& state) { fill(state, padded(state.range(0))); }
BENCHMARK(BM_FillPadded)->Arg(2)->Arg(8)->Arg(16)->Arg(32)->Arg(128)->Arg(256);

}  // namespace
}  // namespace gridbuf
