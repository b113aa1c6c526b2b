// The time of a plan. The budget is 60 ns for three dimensions: the allocation of a small array
// takes about 100 ns in all, and every array has a plan.

#include <benchmark/benchmark.h>

#include <cstdint>

#include "absl/status/statusor.h"

import gridbuf.layout;
import gridbuf.layout.preset;
import gridbuf.layout.view;

namespace gridbuf {
namespace {

LayoutRequest request_of(std::int64_t ndim, std::int64_t alignment_bytes) {
  LayoutRequest request{.itemsize_bytes = 8, .alignment_bytes = alignment_bytes};
  for (std::int64_t axis = 0; axis < ndim; ++axis) request.shape.push_back(2 + axis % 3);
  request.layout = f_order(request.shape.size());
  request.aligned_index = Extents(request.shape.size(), 1);
  return request;
}

void BM_MakePlan(benchmark::State& state) {
  LayoutRequest request = request_of(state.range(0), state.range(1));
  for (auto _ : state) {
    benchmark::DoNotOptimize(request);
    absl::StatusOr<Layout> plan = make_plan(request);
    benchmark::DoNotOptimize(plan);
  }
}
BENCHMARK(BM_MakePlan)->ArgNames({"ndim", "alignment"})->ArgsProduct({{1, 3, 8}, {1, 64, 100}});
BENCHMARK(BM_MakePlan)->ArgNames({"ndim", "alignment"})->Args({30, 64});

void BM_CopyPlan(benchmark::State& state) {
  Layout plan = *make_plan(request_of(state.range(0), 64));
  for (auto _ : state) {
    benchmark::DoNotOptimize(plan);
    Layout copy = plan;
    benchmark::DoNotOptimize(copy);
  }
}
BENCHMARK(BM_CopyPlan)->ArgName("ndim")->Arg(3)->Arg(8);

void BM_RefusedPlan(benchmark::State& state) {
  LayoutRequest request = request_of(3, 64);
  request.shape[0] = -1;
  for (auto _ : state) {
    benchmark::DoNotOptimize(request);
    benchmark::DoNotOptimize(make_plan(request));
  }
}
BENCHMARK(BM_RefusedPlan);

void BM_SliceView(benchmark::State& state) {
  StridedView view = make_plan(request_of(3, 64))->view();
  for (auto _ : state) {
    benchmark::DoNotOptimize(view);
    benchmark::DoNotOptimize(slice(view, 1, {.start = 1, .step = 2}));
  }
}
BENCHMARK(BM_SliceView);

void BM_SliceLayout(benchmark::State& state) {
  Layout view = *with_meaning(*make_plan(request_of(3, 64)));
  for (auto _ : state) {
    benchmark::DoNotOptimize(view);
    benchmark::DoNotOptimize(slice(view, 1, {.start = 1, .step = 2}));
  }
}
BENCHMARK(BM_SliceLayout);

void BM_PresetLayout(benchmark::State& state) {
  Dims dims = default_dims(4);
  for (auto _ : state) {
    benchmark::DoNotOptimize(dims);
    benchmark::DoNotOptimize(preset_layout(*find_preset("gt:gpu"), dims));
  }
}
BENCHMARK(BM_PresetLayout);

}  // namespace
}  // namespace gridbuf
