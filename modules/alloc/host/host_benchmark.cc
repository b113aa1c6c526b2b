// The time of aligned blocks compared with plain blocks of the C library, and of zeros, committed
// pages and large blocks. Below about 1 MiB the time of gridbuf.empty is this time plus that of
// Python. From 2 MiB on it is the time of the pages.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include "absl/status/statusor.h"
#include "benchmark/benchmark.h"

import gridbuf.alloc;
import gridbuf.alloc.host;

namespace gridbuf {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

void touch(std::byte* data, std::int64_t bytes) {
  if (bytes > 0) data[0] = std::byte{1};
  benchmark::DoNotOptimize(data);
}

void BM_Malloc(benchmark::State& state) {
  for (auto _ : state) {
    auto* data = static_cast<std::byte*>(std::malloc(static_cast<std::size_t>(state.range(0))));
    touch(data, state.range(0));
    std::free(data);
  }
}
BENCHMARK(BM_Malloc)->Arg(64)->Arg(4096)->Arg(64 << 10)->Arg(kMiB)->Arg(64 * kMiB);

void BM_AlignedAlloc(benchmark::State& state) {
  for (auto _ : state) {
    auto* data =
        static_cast<std::byte*>(std::aligned_alloc(64, static_cast<std::size_t>(state.range(0))));
    touch(data, state.range(0));
    std::free(data);
  }
}
BENCHMARK(BM_AlignedAlloc)->Arg(64)->Arg(4096)->Arg(64 << 10)->Arg(kMiB)->Arg(64 * kMiB);

void allocate(benchmark::State& state, const AllocationRequest& request) {
  for (auto _ : state) {
    const absl::StatusOr<Block> block = host_resource().allocate(request);
    touch(block->data(), request.total_bytes);
  }
}

void BM_HostAligned64(benchmark::State& state) {
  allocate(state,
           {.total_bytes = state.range(0), .alignment_bytes = 64, .aligned_offset_bytes = 24});
}
BENCHMARK(BM_HostAligned64)->Arg(64)->Arg(4096)->Arg(64 << 10)->Arg(kMiB)->Arg(64 * kMiB);

// An alignment that is not a power of two takes a division.
void BM_HostAligned24(benchmark::State& state) {
  allocate(state,
           {.total_bytes = state.range(0), .alignment_bytes = 24, .aligned_offset_bytes = 8});
}
BENCHMARK(BM_HostAligned24)->Arg(64)->Arg(4096);

void BM_HostShared(benchmark::State& state) {
  for (auto _ : state) {
    absl::StatusOr<Block> block = host_resource().allocate({.total_bytes = state.range(0)});
    touch(block->data(), state.range(0));
    const absl::StatusOr<Owner> owner = share(*std::move(block));
    benchmark::DoNotOptimize(owner->get());
  }
}
BENCHMARK(BM_HostShared)->Arg(64)->Arg(4096);

void BM_Calloc(benchmark::State& state) {
  for (auto _ : state) {
    auto* data = static_cast<std::byte*>(std::calloc(static_cast<std::size_t>(state.range(0)), 1));
    touch(data, state.range(0));
    std::free(data);
  }
}
BENCHMARK(BM_Calloc)->Arg(64)->Arg(4096)->Arg(64 * kMiB);

void BM_HostZeroed(benchmark::State& state) {
  allocate(state, {.total_bytes = state.range(0), .alignment_bytes = 64, .zeroed = true});
}
BENCHMARK(BM_HostZeroed)->Arg(64)->Arg(4096)->Arg(64 * kMiB);

void BM_HostPopulated(benchmark::State& state) {
  allocate(state, {.total_bytes = state.range(0), .alignment_bytes = 64, .populate = true});
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_HostPopulated)->Arg(64)->Arg(4096)->Arg(64 * kMiB);

// ---- Large blocks: the time of pages, and the time that the cache saves. ----

// Allocates, writes a byte of every page, frees.
void allocate_and_touch(benchmark::State& state, HostResource& host, bool zeroed) {
  const std::int64_t total_bytes = state.range(0) * kMiB;
  for (auto _ : state) {
    const absl::StatusOr<Block> block =
        host.allocate({.total_bytes = total_bytes, .alignment_bytes = 64, .zeroed = zeroed});
    for (std::int64_t at = 0; at < total_bytes; at += 4096) block->data()[at] = std::byte{1};
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * total_bytes);
}

// Wall-clock time, because several threads work. Lengths are in mebibytes.
void large(benchmark::internal::Benchmark* registered) {
  registered->Arg(4)->Arg(64)->Arg(1024)->UseRealTime()->Unit(benchmark::kMillisecond);
}

void BM_CallocTouched(benchmark::State& state) {
  const std::int64_t total_bytes = state.range(0) * kMiB;
  for (auto _ : state) {
    auto* data = static_cast<std::byte*>(std::calloc(static_cast<std::size_t>(total_bytes), 1));
    for (std::int64_t at = 0; at < total_bytes; at += 4096) data[at] = std::byte{1};
    benchmark::ClobberMemory();
    std::free(data);
  }
  state.SetBytesProcessed(state.iterations() * total_bytes);
}
BENCHMARK(BM_CallocTouched)->Apply(&large);

void BM_HostZerosKept(benchmark::State& state) {
  HostResource host({.cache_limit_bytes = std::int64_t{1} << 31});
  allocate_and_touch(state, host, true);
}
BENCHMARK(BM_HostZerosKept)->Apply(&large);

void BM_HostZerosFresh(benchmark::State& state) {
  HostResource host({.cache_limit_bytes = 0});
  allocate_and_touch(state, host, true);
}
BENCHMARK(BM_HostZerosFresh)->Apply(&large);

void BM_HostEmptyKept(benchmark::State& state) {
  HostResource host({.cache_limit_bytes = std::int64_t{1} << 31});
  allocate_and_touch(state, host, false);
}
BENCHMARK(BM_HostEmptyKept)->Apply(&large);

}  // namespace
}  // namespace gridbuf
