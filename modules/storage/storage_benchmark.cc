// The time of tracking. A sync of a whole field is compared with the driver's copy of the same
// bytes on the same device (wanted: at least 0.9 of its rate), and a halo update with both. The
// other cases are views and accesses without work.
//
// On a CUDA device if there is one, else on the emulated device, whose copies are memmoves: there,
// only ratios between results have a meaning.

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "benchmark/benchmark.h"

import gridbuf.alloc;
import gridbuf.device;
import gridbuf.device.registry;
import gridbuf.storage;

namespace gridbuf {
namespace {

DeviceDriver& driver() {
  static const bool switched = !device_driver().ok() && !switch_emulated_device(true);
  static_cast<void>(switched);
  return **device_driver();
}

Storage field(const Extents& shape) {
  driver();
  return *Storage::allocate(
      {.layout = *make_plan({.shape = shape,
                             .itemsize_bytes = 8,
                             .layout = f_order(shape.size()),
                             .alignment_bytes = 64,
                             .halo = Halo(shape.size(), HaloWidth::symmetric(3))}),
       .kind = StorageKind::kSoftwareManaged,
       .zeroed = true});
}

Extents cube(std::int64_t n) { return {n, n, n}; }

void require(benchmark::State& state, const absl::Status& status) {
  if (!status.ok()) state.SkipWithError("the device failed");
}

// As in a sync: pinned memory, one copy, and a wait.
void plain_copy(benchmark::State& state) {
  const Storage storage = field(cube(state.range(0)));
  const std::int64_t bytes = storage.nbytes();
  std::byte* device = storage.memory(Side::kDevice).block;
  const std::byte* host = storage.memory(Side::kHost).block;
  for (auto _ : state) {
    require(state, driver().copy(device, host, bytes, kLegacyDefaultStream));
    require(state, driver().synchronize(kLegacyDefaultStream));
  }
  state.SetBytesProcessed(state.iterations() * bytes);
}
BENCHMARK(plain_copy)->Name("storage/plain_copy")->Arg(64)->Arg(128)->Arg(240)->Arg(256);

void whole_sync(benchmark::State& state) {
  const Storage storage = field(cube(state.range(0)));
  for (auto _ : state) {
    require(state, storage.set_host_modified());
    require(state, storage.host_to_device());
  }
  state.SetBytesProcessed(state.iterations() * storage.nbytes());
}
BENCHMARK(whole_sync)->Name("storage/whole_sync")->Arg(64)->Arg(128)->Arg(256);

// A Fortran array on the host, and rows for a GPU, in the opposite order, on the device.
void whole_sync_of_two_layouts(benchmark::State& state) {
  const Extents shape = cube(state.range(0));
  driver();
  const Storage storage =
      *Storage::allocate({.layout = *make_plan({.shape = shape, .itemsize_bytes = 8}),
                          .kind = StorageKind::kSoftwareManaged,
                          .zeroed = true,
                          .device_layout = *make_plan({.shape = shape,
                                                       .itemsize_bytes = 8,
                                                       .layout = f_order(shape.size()),
                                                       .alignment_bytes = 128})});
  const bool to_device = state.range(1) != 0;
  for (auto _ : state) {
    require(state, to_device ? storage.set_host_modified() : storage.set_device_modified());
    require(state, to_device ? storage.host_to_device() : storage.device_to_host());
  }
  state.SetBytesProcessed(state.iterations() * storage.nbytes());
}
BENCHMARK(whole_sync_of_two_layouts)
    ->Name("storage/whole_sync_of_two_layouts")
    ->ArgsProduct({{64, 128, 240, 256}, {1, 0}})
    ->UseRealTime();  // threads copy

Storage end_of(const Storage& storage, int axis) {
  IndexMap map(storage.shape());
  map.keep(axis, slice_points({0, storage.halo()[axis].lower}, storage.shape()[axis]));
  return storage.view(map);
}

void halo_sync(benchmark::State& state) {
  const Storage storage = field({512, 512, 80});
  const Storage end = end_of(storage, static_cast<int>(state.range(0)));
  for (auto _ : state) {
    require(state, end.set_host_modified());
    require(state, storage.host_to_device());
  }
  state.SetBytesProcessed(state.iterations() * end.nbytes());
}
BENCHMARK(halo_sync)->Name("storage/halo_sync_of_axis")->Arg(0)->Arg(1)->Arg(2);

void make_view(benchmark::State& state) {
  const Storage storage = field(cube(64));
  IndexMap map(storage.shape());
  map.keep(0, slice_points({3, 61}, 64));
  for (auto _ : state) {
    const Storage view = storage.view(map);
    benchmark::DoNotOptimize(&view);
  }
}
BENCHMARK(make_view)->Name("storage/view");

void read_current(benchmark::State& state) {
  const Storage storage = field(cube(64));
  for (auto _ : state) require(state, storage.read(Side::kHost));
}
BENCHMARK(read_current)->Name("storage/read_current");

void write_marked(benchmark::State& state) {
  const Storage storage = field(cube(64));
  for (auto _ : state) {
    require(state, storage.begin_write(Side::kHost, Coverage::kAll));
    storage.end_write(Side::kHost);
  }
}
BENCHMARK(write_marked)->Name("storage/write_marked");

}  // namespace
}  // namespace gridbuf
