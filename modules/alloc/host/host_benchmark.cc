// What an aligned block costs over the C library's plain one, and what zeros and committed pages
// cost. The small blocks are the ones that matter: below about 1 MiB, the time of gridbuf.empty is
// this and the Python around it.

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

// An alignment that is no power of two takes a division.
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

}  // namespace
}  // namespace gridbuf
