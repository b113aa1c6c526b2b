#include "modules/transfer/device/kernel_plan.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"

import gridbuf.alloc;
import gridbuf.base;
import gridbuf.device;
import gridbuf.device.emulated;
import gridbuf.layout;
import gridbuf.layout.view;
import gridbuf.transfer;
import gridbuf.transfer.device;
import gridbuf.transfer.loops;

namespace gridbuf::kernels {
namespace {

using Bytes = std::vector<std::byte>;

// --- Walks ---------------------------------------------------------------------------------------

loops::Walk ordered_walk(std::byte* target_block, const StridedView& target,
                         const std::byte* source_block, const StridedView& source) {
  loops::Walk walk = loops::make_walk(target_block, target, source_block, source);
  loops::order_by_target(walk);
  loops::merge_axes(walk);
  return walk;
}

loops::Walk ordered_walk(std::byte* target_block, const StridedView& target) {
  StridedView element = target;
  element.offset_bytes = 0;
  element.strides_bytes = Extents(target.ndim(), 0);
  return ordered_walk(target_block, target, target_block, element);
}

// --- Random cases --------------------------------------------------------------------------------

// Extents around every edge of a tile, a unit and a block of threads.
constexpr std::array<std::int64_t, 30> kEdges{1,   2,   3,   4,   5,   7,   8,   9,   15,  16,
                                              17,  31,  32,  33,  63,  64,  65,  66,  127, 128,
                                              129, 130, 255, 256, 257, 258, 511, 512, 513, 1025};
constexpr std::array<std::int64_t, 12> kItemsizes{1, 2, 4, 8, 16, 1, 2, 4, 8, 3, 12, 40};
constexpr std::int64_t kMostElements = 18000;

std::int64_t pick(std::mt19937_64& random, std::int64_t count) {
  return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(count));
}

Extents random_shape(std::mt19937_64& random) {
  Extents shape;
  const std::int64_t ndim = random() % 8 == 0 ? pick(random, 9) : 1 + pick(random, 3);
  std::int64_t elements = 1;
  for (std::int64_t axis = 0; axis < ndim; ++axis) {
    std::int64_t extent = kEdges[static_cast<std::size_t>(pick(random, std::ssize(kEdges)))];
    while (elements * extent > kMostElements) extent = (extent + 1) / 2;
    if (elements * extent > kMostElements) extent = 1;
    shape.push_back(extent);
    elements *= extent;
  }
  std::shuffle(shape.begin(), shape.end(), random);
  return shape;
}

// A view in separate memory: axes in any order, padded, reversed; sources also broadcast and, on
// request, with overlapping elements.
StridedView random_view(std::mt19937_64& random, const Extents& shape, std::int64_t itemsize,
                        bool is_source) {
  StridedView view{shape, Extents(shape.size(), 0), 0, itemsize};
  std::vector<int> order(static_cast<std::size_t>(shape.size()));
  std::iota(order.begin(), order.end(), 0);
  if (random() % 4 != 0) std::shuffle(order.begin(), order.end(), random);
  std::int64_t stride = random() % 5 == 0 ? itemsize * 2 : itemsize;
  for (const int axis : order) {
    if (is_source && random() % 12 == 0) continue;  // stride 0
    const bool reversed = random() % 8 == 0;
    view.strides_bytes[axis] = reversed ? -stride : stride;
    if (reversed) view.offset_bytes += (shape[axis] - 1) * stride;
    stride *= shape[axis];
    switch (random() % 6) {
      case 0:
        stride = (stride + 15) / 16 * 16;  // rows aligned for vectors
        break;
      case 1:
        stride += itemsize * (1 + pick(random, 4));
        break;
      case 2:
        stride += pick(random, 3);  // rows without an alignment
        break;
      default:
        break;
    }
  }
  return view;
}

// The bytes that a view spans, at any alignment. Targets are between two guards. Sources end with
// their allocation, so that AddressSanitizer sees reads beyond it.
class Memory {
 public:
  Memory(std::mt19937_64& random, const StridedView& view, std::int64_t guard_bytes)
      : begin_(guard_bytes + (random() % 3 == 0 ? pick(random, 16) : 0)),
        bytes_(static_cast<std::size_t>(begin_ + byte_hull(view)->highest_bytes + guard_bytes)) {
    for (std::byte& byte : bytes_) byte = static_cast<std::byte>(random());
  }
  Memory(const Memory&) = delete;
  std::byte* data() { return bytes_.data() + begin_; }
  Bytes copy() const { return bytes_; }
  /// The block within such a copy.
  std::byte* in(Bytes& copied) const { return copied.data() + begin_; }

 private:
  std::int64_t begin_;
  Bytes bytes_;
};
constexpr std::int64_t kGuardBytes = 64;

// The kernels that ran, to check that the test has tried all: kind and unit.
using Seen = std::map<std::string, int>;
std::string name_of(const KernelPlan& plan) {
  return std::string(kernel_of(plan).name) + " " + std::to_string(plan.arguments.unit_bytes);
}

std::string text_of(const Seen& seen) {
  std::string text;
  for (const auto& [key, count] : seen) text += key + ": " + std::to_string(count) + "\n";
  return text;
}

// Runs all threads of all blocks in the memory of the host, where the walk's addresses are.
void run_on_host(const KernelPlan& plan) {
  const DeviceKernel kernel = kernel_of(plan);
  std::vector<std::byte*> operands;
  for (const KernelOperand& operand : kernel.operands) {
    operands.push_back(static_cast<std::byte*>(const_cast<void*>(operand.begin)));
  }
  kernel.on_host(kernel.arguments.data(), operands);
}

// --- Copies --------------------------------------------------------------------------------------

void check_copy(std::mt19937_64& random, const StridedView& target, const StridedView& source,
                Seen& seen) {
  Memory to(random, target, kGuardBytes);
  Memory from(random, source, /*guard_bytes=*/0);
  Bytes expected = to.copy();
  const Bytes untouched = from.copy();
  ASSERT_TRUE(copy_elements(to.in(expected), target, from.data(), source).ok());
  const KernelPlan plan =
      plan_copy(ordered_walk(to.data(), target, from.data(), source), target.itemsize_bytes);
  ++seen[name_of(plan)];
  run_on_host(plan);
  ASSERT_TRUE(to.copy() == expected)
      << name_of(plan) << ": " << to_string(target) << " from " << to_string(source);
  ASSERT_TRUE(from.copy() == untouched);
}

TEST(Kernels, CopyAsTheReferenceOverRandomViews) {
  std::mt19937_64 random(20261122);
  Seen seen;
  for (int i = 0; i < 4000; ++i) {
    const Extents shape = random_shape(random);
    const std::int64_t itemsize =
        kItemsizes[static_cast<std::size_t>(pick(random, std::ssize(kItemsizes)))];
    const StridedView target = random_view(random, shape, itemsize, /*is_source=*/false);
    const StridedView source = random_view(random, shape, itemsize, /*is_source=*/true);
    check_copy(random, target, source, seen);
    if (HasFatalFailure()) return;
  }
  for (const int unit : {1, 2, 4, 8, 16}) {
    EXPECT_GT(seen["copy of units " + std::to_string(unit)], 20) << text_of(seen);
  }
}

// Transpositions of two axes around all edges of a tile.
TEST(Kernels, TransposeAboutEveryEdgeOfATile) {
  std::mt19937_64 random(7);
  Seen seen;
  for (const std::int64_t item : {1, 2, 4, 8, 16}) {
    for (int i = 0; i < 250; ++i) {
      const auto extent = [&] {
        const std::int64_t tiles = 1 + pick(random, 2);
        return std::max<std::int64_t>(1, 32 * tiles / (1 + pick(random, 3)) + pick(random, 7) - 3);
      };
      const auto pitch = [&](std::int64_t row) {
        const std::int64_t bytes = row * item;
        return random() % 2 == 0 ? (bytes + 15) / 16 * 16 : bytes + item * pick(random, 2);
      };
      const Extents shape{1 + pick(random, 3), extent(), extent()};
      StridedView target{shape, {0, pitch(shape[2]), item}, 0, item};
      target.strides_bytes[0] = target.strides_bytes[1] * shape[1];
      StridedView source{shape, {0, item, pitch(shape[1])}, 0, item};
      source.strides_bytes[0] = source.strides_bytes[2] * shape[2];
      check_copy(random, target, source, seen);
      if (HasFatalFailure()) return;
    }
    EXPECT_GT(seen["copy of tiles " + std::to_string(item)], 50) << text_of(seen);
  }
}

// Narrow on one side: records of a few numbers become planes, and back.
TEST(Kernels, RecordsBecomePlanesAndBack) {
  std::mt19937_64 random(8);
  Seen seen;
  for (const std::int64_t item : {1, 2, 4, 8, 16}) {
    for (const std::int64_t fields : {2, 3, 4, 5, 7, 9, 12}) {
      const std::int64_t records = 20000 / fields + pick(random, 50);
      const StridedView by_records{{records, fields}, {fields * item, item}, 0, item};
      const StridedView by_fields{{records, fields}, {item, records * item}, 0, item};
      check_copy(random, by_fields, by_records, seen);
      check_copy(random, by_records, by_fields, seen);
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GT(seen["copy of tiles 8"], 0) << text_of(seen);  // 9 and 12 fields
  EXPECT_GT(seen["copy of units 8"], 2) << text_of(seen);  // fewer
}

// --- Fills ---------------------------------------------------------------------------------------

TEST(Kernels, FillAsTheReferenceOverRandomViews) {
  std::mt19937_64 random(20261123);
  Seen seen;
  for (int i = 0; i < 3000; ++i) {
    const Extents shape = random_shape(random);
    const std::int64_t itemsize =
        random() % 20 == 0
            ? 1 + pick(random, 128)
            : kItemsizes[static_cast<std::size_t>(pick(random, std::ssize(kItemsizes)))];
    const StridedView view = random_view(random, shape, itemsize, /*is_source=*/false);
    Memory memory(random, view, kGuardBytes);
    Bytes element(static_cast<std::size_t>(itemsize));
    for (std::byte& byte : element) byte = static_cast<std::byte>(random());
    if (random() % 4 == 0) std::fill(element.begin(), element.end(), element[0]);
    Bytes expected = memory.copy();
    ASSERT_TRUE(fill_elements(memory.in(expected), view, element).ok());
    const std::optional<KernelPlan> plan = plan_fill(ordered_walk(memory.data(), view), element);
    if (!plan) {
      ++seen["none"];
      continue;
    }
    ++seen[name_of(*plan)];
    run_on_host(*plan);
    ASSERT_TRUE(memory.copy() == expected) << name_of(*plan) << ": " << to_string(view);
  }
  for (const int unit : {1, 2, 4, 8, 16}) {
    EXPECT_GT(seen["fill of units " + std::to_string(unit)], 10) << text_of(seen);
  }
  EXPECT_GT(seen["none"], 10) << text_of(seen);
}

TEST(Kernels, LongElementsAreNotFilledUnlessTheyRepeatShorterOnes) {
  Bytes memory(1000);
  const StridedView view{{2}, {500}, 0, 500};
  const loops::Walk walk = ordered_walk(memory.data(), view);
  Bytes element(500, std::byte{7});
  ASSERT_TRUE(plan_fill(walk, element));
  run_on_host(*plan_fill(walk, element));
  EXPECT_TRUE(
      std::all_of(memory.begin(), memory.end(), [](std::byte b) { return b == std::byte{7}; }));
  element[499] = std::byte{1};
  EXPECT_FALSE(plan_fill(walk, element));
}

// --- The choice ----------------------------------------------------------------------------------

// Addresses that are never read: plans are made of numbers.
std::byte* address(std::uintptr_t number) { return reinterpret_cast<std::byte*>(number); }

TEST(KernelPlans, TransposeInTiles) {
  const std::int64_t n = 513;
  const StridedView rows{{n, n, n}, {n * n * 8, n * 8, 8}, 0, 8};
  const StridedView columns{{n, n, n}, {8, n * 8, n * n * 8}, 0, 8};
  const KernelPlan plan =
      plan_copy(ordered_walk(address(1 << 20), rows, address(1 << 30), columns), 8);
  EXPECT_EQ(name_of(plan), "copy of tiles 8");
  EXPECT_EQ(plan.arguments.count, std::uint64_t{17 * 17 * 513});
}

std::string rows_copy(std::int64_t columns, std::int64_t target_pitch, std::int64_t source_pitch) {
  const StridedView target{{100, columns}, {target_pitch, 4}, 0, 4};
  const StridedView source{{100, columns}, {source_pitch, 4}, 0, 4};
  return name_of(plan_copy(ordered_walk(address(1 << 20), target, address(1 << 30), source), 4));
}

TEST(KernelPlans, RowsAreMovedAsWideAsTheyAreAligned) {
  EXPECT_EQ(rows_copy(512, 2560, 4096), "copy of units 16");
  EXPECT_EQ(rows_copy(510, 2560, 4096), "copy of units 8");
  EXPECT_EQ(rows_copy(511, 2560, 4096), "copy of units 4");
  const KernelPlan strided = plan_copy(
      ordered_walk(address(1 << 20), {{100}, {8}, 0, 8}, address(1 << 30), {{100}, {24}, 0, 8}), 8);
  EXPECT_EQ(name_of(strided), "copy of units 8");
}

TEST(KernelPlans, FewElementsOfBothAxesAreNotWorthATile) {
  const StridedView target{{100000, 3, 3}, {72, 24, 8}, 0, 8};
  const StridedView source{{100000, 3, 3}, {72, 8, 24}, 0, 8};
  const KernelPlan plan =
      plan_copy(ordered_walk(address(1 << 20), target, address(1 << 30), source), 8);
  EXPECT_EQ(name_of(plan), "copy of units 8");
}

// --- Large numbers -------------------------------------------------------------------------------

// The threads of a grid take every step-th unit: together all of them, each once.
TEST(KernelIndices, ThreadsShareTheUnits) {
  std::vector<std::uint64_t> source(1000);
  std::iota(source.begin(), source.end(), 1);
  std::vector<std::uint64_t> target(source.size());
  auto* const to = reinterpret_cast<std::byte*>(target.data());
  const StridedView every{{500}, {16}, 0, 8};
  const StridedView first_half{{500}, {8}, 0, 8};
  const auto* const from = reinterpret_cast<const std::byte*>(source.data());
  const KernelPlan plan = plan_copy(ordered_walk(to, every, from, first_half), 8);
  for (std::uint64_t thread = 0; thread < 3; ++thread) {
    kernel_code::copy_units<8>(plan.arguments, thread, 3);
    for (std::uint64_t i = 0; i < 500; ++i) {
      EXPECT_EQ(target[2 * i], i % 3 <= thread ? source[i] : 0);
    }
  }
}

// The last element of more than 2^32.
TEST(KernelIndices, CountsHave64Bits) {
  const std::int64_t n = std::int64_t{1} << 21;
  const StridedView target{{n, n}, {n * 16, 8}, 0, 8};
  const StridedView source{{n, n}, {n * 8 + 8, 8}, 0, 8};
  const KernelPlan plan =
      plan_copy(ordered_walk(address(1 << 20), target, address(1 << 24), source), 8);
  const auto count = static_cast<std::uint64_t>(n * n);
  EXPECT_EQ(plan.arguments.count, count);
  const kernel_code::Place last = kernel_code::place_of(plan.arguments, count - 1);
  EXPECT_EQ(last.target,
            (1 << 20) + static_cast<std::uint64_t>(byte_offset(target, {n - 1, n - 1})));
  EXPECT_EQ(last.source,
            (1 << 24) + static_cast<std::uint64_t>(byte_offset(source, {n - 1, n - 1})));
}

// Address space without memory, except for the pages that are touched.
TEST(KernelIndices, OffsetsHave64Bits) {
  const std::int64_t far = (std::int64_t{5} << 30) + 24;
  const std::size_t length = static_cast<std::size_t>(3 * far);
  void* mapped = mmap(nullptr, length, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  auto* block = static_cast<std::byte*>(mapped);
  const StridedView spread{{3, 40}, {far, 8}, 0, 8};
  const StridedView dense{{3, 40}, {-8, 24}, 16, 8};
  std::vector<std::byte> elements(960);
  for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = static_cast<std::byte>(i * 7);
  run_on_host(plan_copy(ordered_walk(block, spread, elements.data(), dense), 8));
  std::vector<std::byte> back(960);
  run_on_host(plan_copy(ordered_walk(back.data(), dense, block, spread), 8));
  EXPECT_TRUE(back == elements);
  munmap(mapped, length);
}

// --- On a device ---------------------------------------------------------------------------------

struct KernelsOnDevice : ::testing::Test {
  EmulatedDriver& driver = emulated_driver();
  Block on_device(const Bytes& bytes) {
    Block block =
        *driver.resource(MemoryKind::kDevice).allocate({.total_bytes = std::ssize(bytes)});
    EXPECT_TRUE(driver.copy(block.data(), bytes.data(), std::ssize(bytes), 1).ok());
    return block;
  }
  Bytes read(const Block& block) {
    Bytes bytes(static_cast<std::size_t>(block.total_bytes()));
    EXPECT_TRUE(driver.copy(bytes.data(), block.data(), std::ssize(bytes), 1).ok());
    return bytes;
  }
};

TEST_F(KernelsOnDevice, RunLateOnTheirStreamInMemoryOfTheDevice) {
  std::mt19937_64 random(4);
  const StridedView rows{{70, 90}, {720, 8}, 0, 8};
  const StridedView columns{{70, 90}, {8, -560}, 89 * 560, 8};  // reversed, too
  Bytes source(70 * 90 * 8);
  for (std::byte& byte : source) byte = static_cast<std::byte>(random());
  const Bytes before(source.size(), std::byte{1});
  Bytes expected = before;
  ASSERT_TRUE(copy_elements(expected.data(), rows, source.data(), columns).ok());
  const Block to = on_device(before);
  const Block from = on_device(source);
  ASSERT_TRUE(driver.synchronize(1).ok());
  const StreamHandle stream = *driver.create_stream(StreamKind::kNonBlocking);
  const KernelPlan plan = plan_copy(ordered_walk(to.data(), rows, from.data(), columns), 8);
  ASSERT_EQ(name_of(plan), "copy of tiles 8");
  ASSERT_TRUE(driver.launch(kernel_of(plan), stream).ok());
  EXPECT_TRUE(read(to) == before);  // the stream has not run yet
  ASSERT_TRUE(driver.synchronize(stream).ok());
  EXPECT_TRUE(read(to) == expected);
  EXPECT_TRUE(read(from) == source);
  ASSERT_TRUE(driver.destroy_stream(stream).ok());
}

TEST_F(KernelsOnDevice, AddressesMustBeTheDevices) {
  const Block block = on_device(Bytes(1024));
  Bytes host(1024);
  const StridedView view{{100}, {8}, 0, 8};
  const StridedView beyond{{1000}, {8}, 0, 8};
  const auto error = [&](std::byte* target, const std::byte* source, const StridedView& both) {
    return error_class_of(
        driver.launch(kernel_of(plan_copy(ordered_walk(target, both, source, both), 8)), 1));
  };
  const Block other = on_device(Bytes(8000));
  EXPECT_EQ(error(block.data(), host.data(), view), ErrorClass::kValue);
  EXPECT_EQ(error(host.data(), block.data(), view), ErrorClass::kValue);
  EXPECT_EQ(error(block.data(), other.data(), beyond), ErrorClass::kValue);
  EXPECT_EQ(error(other.data(), block.data(), beyond), ErrorClass::kValue);
  ASSERT_TRUE(driver.synchronize(1).ok());
  EXPECT_EQ(driver.statistics().pending_operations, 0);
}

TEST_F(KernelsOnDevice, KeepWhatTheyUseFromBeingFreed) {
  const Block to = on_device(Bytes(64, std::byte{1}));
  const StridedView view{{8}, {8}, 0, 8};
  const StreamHandle stream = *driver.create_stream(StreamKind::kNonBlocking);
  {
    const Block from = on_device(Bytes(64, std::byte{2}));
    ASSERT_TRUE(driver.order_after(1, stream).ok());
    ASSERT_TRUE(
        driver
            .launch(kernel_of(plan_copy(ordered_walk(to.data(), view, from.data(), view), 8)),
                    stream)
            .ok());
  }
  ASSERT_TRUE(driver.synchronize(1).ok());  // would free the source, if nothing kept it
  const absl::Status status = driver.synchronize(stream);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(read(to)[63], std::byte{2});
  ASSERT_TRUE(driver.destroy_stream(stream).ok());
}

}  // namespace
}  // namespace gridbuf::kernels
