// The kernels on a GPU, compared with CUDA's functions on the same bytes: transpositions with a
// device-to-device copy, fills with cudaMemset, strided rows over the bus with a dense copy from
// pinned memory. Each result is a rate of the bytes moved (read and written for copies). Required
// ratios: transposition >= 0.9 of BM_Copy for items of 4 and 8 bytes, fill >= 0.9 of BM_Memset,
// rows of 4 KiB and more >= 0.9 of BM_ToDevicePinned. Without a GPU every case is skipped.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "benchmark/benchmark.h"

import gridbuf.alloc;
import gridbuf.device;
import gridbuf.device.cuda;
import gridbuf.layout;
import gridbuf.layout.view;
import gridbuf.transfer.device;

namespace gridbuf {
namespace {

// The driver, or null after the case was marked as skipped.
CudaDriver* gpu(benchmark::State& state) {
  const absl::StatusOr<CudaDriver*> driver = cuda_driver();
  if (driver.ok()) return *driver;
  state.SkipWithError(("NOT RUN, no GPU: " + std::string(driver.status().message())).c_str());
  return nullptr;
}

Block memory_of(CudaDriver& driver, MemoryKind kind, std::int64_t length_bytes) {
  absl::StatusOr<Block> block = driver.resource(kind).allocate({.total_bytes = length_bytes});
  if (!block.ok()) return Block();
  if (kind == MemoryKind::kPinned)
    std::memset(block->data(), 1, static_cast<std::size_t>(length_bytes));
  return *std::move(block);
}

// Enqueues `work` ten times and waits once, so that launches are hidden as in a program.
template <class Work>
void measure(benchmark::State& state, CudaDriver& driver, std::int64_t bytes, const Work& work) {
  constexpr int kTimes = 10;
  for (int warm = 0; warm < 3; ++warm) {
    if (!work().ok()) return state.SkipWithError("the work failed");
  }
  if (!driver.synchronize(1).ok()) return state.SkipWithError("the work failed");
  for (auto _ : state) {
    absl::Status status;
    for (int i = 0; i < kTimes; ++i) status.Update(work());
    status.Update(driver.synchronize(1));
    if (!status.ok()) return state.SkipWithError("the work failed");
  }
  state.SetBytesProcessed(state.iterations() * kTimes * bytes);
}

// A cube of n^3 items whose axes grow in the order of `ranks`, last one contiguous.
StridedView cube(std::int64_t n, std::int64_t itemsize, std::int64_t order) {
  const std::int64_t line = n * itemsize;
  const std::int64_t plane = n * line;
  switch (order) {
    case 21:
      return {{n, n, n}, {plane, itemsize, line}, 0, itemsize};  // (0, 2, 1)
    case 120:
      return {{n, n, n}, {itemsize, plane, line}, 0, itemsize};  // (1, 2, 0)
    case 201:
      return {{n, n, n}, {line, itemsize, plane}, 0, itemsize};  // (2, 0, 1)
    case 210:
      return {{n, n, n}, {itemsize, line, plane}, 0, itemsize};  // (2, 1, 0)
    default:
      return {{n, n, n}, {plane, line, itemsize}, 0, itemsize};
  }
}

void BM_Copy(benchmark::State& state) {
  CudaDriver* const driver = gpu(state);
  if (driver == nullptr) return;
  const std::int64_t n = state.range(0);
  const std::int64_t bytes = n * n * n * state.range(1);
  const Block target = memory_of(*driver, MemoryKind::kDevice, bytes);
  const Block source = memory_of(*driver, MemoryKind::kDevice, bytes);
  measure(state, *driver, 2 * bytes,
          [&] { return driver->copy(target.data(), source.data(), bytes, 1); });
}
BENCHMARK(BM_Copy)->ArgNames({"n", "item"})->ArgsProduct({{512}, {1, 2, 4, 8, 16}})->UseRealTime();

void BM_Transpose(benchmark::State& state) {
  CudaDriver* const driver = gpu(state);
  if (driver == nullptr) return;
  const StridedView source_view = cube(state.range(0), state.range(1), 12);
  const StridedView target_view = cube(state.range(0), state.range(1), state.range(2));
  const std::int64_t bytes = byte_hull(source_view)->highest_bytes;
  const Block target = memory_of(*driver, MemoryKind::kDevice, bytes);
  const Block source = memory_of(*driver, MemoryKind::kDevice, bytes);
  measure(state, *driver, 2 * bytes, [&] {
    return copy_elements_on(*driver, target.data(), target_view, source.data(), source_view, 1);
  });
}
BENCHMARK(BM_Transpose)
    ->ArgNames({"n", "item", "order"})
    ->ArgsProduct({{504, 511, 512}, {1, 2, 4, 8, 16}, {21, 120, 201, 210}})
    ->UseRealTime();

void BM_Memset(benchmark::State& state) {
  CudaDriver* const driver = gpu(state);
  if (driver == nullptr) return;
  const std::int64_t bytes = state.range(0) << 20;
  const Block target = memory_of(*driver, MemoryKind::kDevice, bytes);
  measure(state, *driver, bytes,
          [&] { return driver->fill(target.data(), std::byte{1}, bytes, 1); });
}
BENCHMARK(BM_Memset)->ArgName("MiB")->Arg(64)->Arg(1024)->UseRealTime();

void BM_Fill(benchmark::State& state) {
  CudaDriver* const driver = gpu(state);
  if (driver == nullptr) return;
  const std::int64_t bytes = state.range(0) << 20;
  const std::int64_t itemsize = state.range(1);
  const Block target = memory_of(*driver, MemoryKind::kDevice, bytes);
  std::vector<std::byte> element(static_cast<std::size_t>(itemsize), std::byte{1});
  element[0] = std::byte{2};
  const StridedView view{{bytes / itemsize}, {itemsize}, 0, itemsize};
  measure(state, *driver, bytes,
          [&] { return fill_elements_on(*driver, target.data(), view, element, 1); });
}
BENCHMARK(BM_Fill)
    ->ArgNames({"MiB", "item"})
    ->ArgsProduct({{64, 1024}, {2, 4, 8, 12, 16}})
    ->UseRealTime();

constexpr std::int64_t kBusBytes = std::int64_t{256} << 20;

void BM_ToDevicePinned(benchmark::State& state) {
  CudaDriver* const driver = gpu(state);
  if (driver == nullptr) return;
  const Block device = memory_of(*driver, MemoryKind::kDevice, kBusBytes);
  const Block host = memory_of(*driver, MemoryKind::kPinned, kBusBytes);
  const bool to_device = state.range(0) == 1;
  measure(state, *driver, kBusBytes, [&] {
    return to_device ? driver->copy(device.data(), host.data(), kBusBytes, 1)
                     : driver->copy(host.data(), device.data(), kBusBytes, 1);
  });
}
BENCHMARK(BM_ToDevicePinned)->ArgName("to_device")->Arg(1)->Arg(0)->UseRealTime();

// Rows of `row` bytes, padded by 64 on the host, dense on the device.
void BM_Rows(benchmark::State& state) {
  CudaDriver* const driver = gpu(state);
  if (driver == nullptr) return;
  const bool to_device = state.range(0) == 1;
  const std::int64_t row = state.range(1);
  const std::int64_t rows = kBusBytes / row;
  const Block device_block = memory_of(*driver, MemoryKind::kDevice, kBusBytes);
  const Block host_block = memory_of(*driver, MemoryKind::kPinned, rows * (row + 64));
  const StridedView device{{rows, row / 8}, {row, 8}, 0, 8};
  const StridedView host{{rows, row / 8}, {row + 64, 8}, 0, 8};
  measure(state, *driver, kBusBytes, [&] {
    return to_device
               ? copy_elements_on(*driver, device_block.data(), device, host_block.data(), host, 1)
               : copy_elements_on(*driver, host_block.data(), host, device_block.data(), device, 1);
  });
}
BENCHMARK(BM_Rows)
    ->ArgNames({"to_device", "row"})
    ->ArgsProduct({{1, 0}, {24, 512, 2048, 4096, 65536}})
    ->UseRealTime();

}  // namespace
}  // namespace gridbuf
