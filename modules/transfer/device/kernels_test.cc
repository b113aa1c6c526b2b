#include "modules/transfer/device/kernel_plan.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <span>
#include <string>
#include <utility>
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

// Extents around every edge of a tile, a vector, a chunk and a block of threads.
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

std::int64_t random_most_blocks(std::mt19937_64& random) {
  return random() % 2 == 0 ? kMostBlocks : 1 + pick(random, 4);
}

// The kernels that ran, to check that the test has tried all: kind and unit, for tiles both
// vectors.
using Seen = std::map<std::string, int>;
void note(Seen& seen, const KernelPlan& plan) {
  std::string key =
      std::string(to_string(plan.kind())) + " " + std::to_string(plan.arguments.unit_bytes);
  if (plan.kind() == KernelKind::kCopyTiles) {
    key += " from " + std::to_string(plan.arguments.along_source.vector_bytes) + " to " +
           std::to_string(plan.arguments.along_target.vector_bytes);
  }
  if (plan.arguments.element_units > 1) key += " of a longer element";
  ++seen[key];
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
  const KernelPlan plan = plan_copy(ordered_walk(to.data(), target, from.data(), source),
                                    target.itemsize_bytes, random_most_blocks(random));
  note(seen, plan);
  run_on_host(plan);
  ASSERT_TRUE(to.copy() == expected)
      << to_string(plan.kind()) << " of " << plan.arguments.unit_bytes << ": " << to_string(target)
      << " from " << to_string(source);
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
  EXPECT_GT(seen["copy of chunks 16"], 50) << text_of(seen);
}

// Transpositions of two axes around all edges of a tile, with rows aligned or not on each side.
TEST(Kernels, TransposeAboutEveryEdgeOfATile) {
  std::mt19937_64 random(7);
  Seen seen;
  for (const std::int64_t item : {1, 2, 4, 8, 16}) {
    const std::int64_t edge = 512 / item > 128 ? 128 : 512 / item;
    for (int i = 0; i < 250; ++i) {
      const auto extent = [&] {
        const std::int64_t tiles = 1 + pick(random, 2);
        return std::max<std::int64_t>(1,
                                      edge * tiles / (1 + pick(random, 3)) + pick(random, 7) - 3);
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
    const std::string tiles = "copy of tiles " + std::to_string(item);
    for (const std::int64_t from : {std::int64_t{16}, item}) {
      for (const std::int64_t to : {std::int64_t{16}, item}) {
        const std::string key =
            tiles + " from " + std::to_string(from) + " to " + std::to_string(to);
        EXPECT_GT(seen[key], 2) << key << "\n" << text_of(seen);
      }
    }
  }
  EXPECT_GT(seen["copy of tiles 1 from 4 to 1"], 0) << text_of(seen);
  EXPECT_GT(seen["copy of tiles 1 from 1 to 4"], 0) << text_of(seen);
}

// Narrow on one side: records of a few numbers become planes, and back.
TEST(Kernels, RecordsBecomePlanesInTilesAsNarrowAsTheyAre) {
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
  int tiles = 0;
  for (const auto& [key, count] : seen) tiles += key.find("tiles") == key.npos ? 0 : count;
  EXPECT_GT(tiles, 30)  // the others are misaligned
      << text_of(seen);
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
    const absl::StatusOr<KernelPlan> plan =
        plan_fill(ordered_walk(memory.data(), view), element, random_most_blocks(random));
    ASSERT_TRUE(plan.ok()) << plan.status();
    note(seen, *plan);
    run_on_host(*plan);
    ASSERT_TRUE(memory.copy() == expected) << to_string(plan->kind()) << " of "
                                           << plan->arguments.unit_bytes << ": " << to_string(view);
  }
  for (const int unit : {1, 2, 4, 8, 16}) {
    EXPECT_GT(seen["fill of units " + std::to_string(unit)], 10) << text_of(seen);
  }
  EXPECT_GT(seen["fill of chunks 16"], 30) << text_of(seen);
  for (const int unit : {1, 2, 4, 8}) {
    const std::string key = "fill of units " + std::to_string(unit) + " of a longer element";
    EXPECT_GT(seen[key], 10) << key << "\n" << text_of(seen);
  }
}

TEST(Kernels, LongElementsAreRefusedUnlessTheyRepeatShorterOnes) {
  Bytes memory(1000);
  const StridedView view{{2}, {500}, 0, 500};
  const loops::Walk walk = ordered_walk(memory.data(), view);
  Bytes element(500, std::byte{7});
  ASSERT_TRUE(plan_fill(walk, element).ok());
  run_on_host(*plan_fill(walk, element));
  EXPECT_TRUE(
      std::all_of(memory.begin(), memory.end(), [](std::byte b) { return b == std::byte{7}; }));
  element[499] = std::byte{1};
  EXPECT_EQ(error_class_of(plan_fill(walk, element).status()), ErrorClass::kValue);
}

// --- The choice ----------------------------------------------------------------------------------

// Addresses that are never read: plans are made of numbers.
std::byte* address(std::uintptr_t number) { return reinterpret_cast<std::byte*>(number); }

// The reversed layout of a cube of doubles: tiles of 16 KiB, 16 bytes at a time on both sides.
KernelPlan reversed_cube(std::byte* target, const std::byte* source, std::int64_t n) {
  const StridedView rows{{n, n, n}, {n * n * 8, n * 8, 8}, 0, 8};
  const StridedView columns{{n, n, n}, {8, n * 8, n * n * 8}, 0, 8};
  return plan_copy(ordered_walk(target, rows, source, columns), 8);
}

TEST(KernelPlans, TransposeInWideTiles) {
  const KernelPlan plan = reversed_cube(address(1 << 20), address(1 << 30), 512);
  EXPECT_EQ(plan.kind(), KernelKind::kCopyTiles);
  EXPECT_EQ(plan.arguments.along_source.vector_bytes, 16);
  EXPECT_EQ(plan.arguments.along_target.vector_bytes, 16);
  EXPECT_EQ(static_cast<std::int64_t>(plan.arguments.work_blocks) * 16384,
            std::int64_t{512} * 512 * 512 * 8);
  const KernelPlan odd = reversed_cube(address(1 << 20), address(1 << 30), 511);
  EXPECT_EQ(odd.kind(), KernelKind::kCopyTiles);
  EXPECT_EQ(odd.arguments.along_source.vector_bytes, 8);
}

KernelPlan rows_copy(std::int64_t columns, std::int64_t target_pitch, std::int64_t source_pitch) {
  const StridedView target{{100, columns}, {target_pitch, 4}, 0, 4};
  const StridedView source{{100, columns}, {source_pitch, 4}, 0, 4};
  return plan_copy(ordered_walk(address(1 << 20), target, address(1 << 30), source), 4);
}

TEST(KernelPlans, RowsAreMovedAsWideAsTheyAreAligned) {
  EXPECT_EQ(rows_copy(512, 2560, 4096).arguments.unit_bytes, 16);
  EXPECT_EQ(rows_copy(510, 2560, 4096).arguments.unit_bytes, 8);
  EXPECT_EQ(rows_copy(511, 2560, 4096).kind(), KernelKind::kCopyChunks);
  EXPECT_EQ(rows_copy(7, 2560, 4096).kind(), KernelKind::kCopyUnits);
  EXPECT_EQ(rows_copy(7, 2560, 4096).arguments.unit_bytes, 4);
  const KernelPlan strided = plan_copy(
      ordered_walk(address(1 << 20), {{100}, {8}, 0, 8}, address(1 << 30), {{100}, {24}, 0, 8}), 8);
  EXPECT_EQ(strided.kind(), KernelKind::kCopyUnits);
  EXPECT_EQ(strided.arguments.unit_bytes, 8);
}

TEST(KernelPlans, FewElementsOfBothAxesAreNotWorthATile) {
  const StridedView target{{100000, 3, 3}, {72, 24, 8}, 0, 8};
  const StridedView source{{100000, 3, 3}, {72, 8, 24}, 0, 8};
  const KernelPlan plan =
      plan_copy(ordered_walk(address(1 << 20), target, address(1 << 30), source), 8);
  EXPECT_EQ(plan.kind(), KernelKind::kCopyUnits);
}

// --- Shared memory -------------------------------------------------------------------------------

// Shared memory has 32 banks of 4 bytes, and serves 128 bytes at a time: 8 threads of a warp that
// move 16 bytes each, 16 of 8, 32 of fewer. Threads that access different words of one bank wait.
template <std::uint32_t kItems>
int most_words_of_a_bank(const KernelPlan& plan, bool written) {
  const auto item = static_cast<std::uint32_t>(plan.arguments.unit_bytes);
  // The bytes that one instruction of a thread moves: a vector when it fills a tile, an item when
  // it reads a tile.
  const std::uint32_t access_bytes = written ? item : item * kItems;
  const std::uint32_t together = std::min<std::uint32_t>(32, 128 / access_bytes);
  const auto offset_of = [&](std::uint32_t i, std::uint32_t j) {
    switch (item) {
      case 1:
        return kernel_code::offset_in_tile<1>(plan.arguments, i, j);
      case 2:
        return kernel_code::offset_in_tile<2>(plan.arguments, i, j);
      case 4:
        return kernel_code::offset_in_tile<4>(plan.arguments, i, j);
      case 8:
        return kernel_code::offset_in_tile<8>(plan.arguments, i, j);
      default:
        return kernel_code::offset_in_tile<16>(plan.arguments, i, j);
    }
  };
  int most = 0;
  for (std::uint32_t first = 0; first < kernel_code::kTileBytes / (item * kItems);
       first += together) {
    for (std::uint32_t n = 0; n < (written ? kItems : 1); ++n) {
      std::array<std::set<std::uint32_t>, 32> words;
      for (std::uint32_t v = first; v < first + together; ++v) {
        const kernel_code::Spot spot = written
                                           ? kernel_code::spot_written<kItems>(plan.arguments, v)
                                           : kernel_code::spot_read<kItems>(plan.arguments, v);
        const std::uint32_t begin = offset_of(spot.i, spot.j + n) / 4;
        for (std::uint32_t word = begin; word < begin + (access_bytes + 3) / 4; ++word) {
          words[word % 32].insert(word);
        }
      }
      for (const auto& bank : words) most = std::max(most, static_cast<int>(bank.size()));
    }
  }
  return most;
}

template <std::uint32_t kItem>
void check_banks() {
  for (const Extents& shape : {Extents{2048, 2048}, Extents{2048, 40}, Extents{40, 2048}}) {
    const auto [n, m] = std::pair(shape[0], shape[1]);
    const StridedView rows{shape, {m * 16, kItem}, 0, kItem};
    const StridedView columns{shape, {kItem, n * 16}, 0, kItem};
    const KernelPlan plan =
        plan_copy(ordered_walk(address(1 << 20), rows, address(1 << 30), columns), kItem);
    ASSERT_EQ(plan.kind(), KernelKind::kCopyTiles);
    ASSERT_EQ(plan.arguments.along_source.vector_bytes, 16);
    ASSERT_EQ(plan.arguments.along_target.vector_bytes, 16);
    EXPECT_EQ(most_words_of_a_bank<16 / kItem>(plan, /*written=*/false), 1) << to_string(shape);
    EXPECT_EQ(most_words_of_a_bank<16 / kItem>(plan, /*written=*/true), 1) << to_string(shape);
    const StridedView odd{shape, {m * 16 + kItem, kItem}, 0, kItem};
    const KernelPlan single =
        plan_copy(ordered_walk(address(1 << 20), odd, address(1 << 30), columns), kItem);
    if (single.arguments.along_target.vector_bytes != static_cast<int>(kItem)) continue;
    EXPECT_LE(most_words_of_a_bank<1>(single, /*written=*/true), 4) << to_string(shape);
  }
}

TEST(KernelTiles, NoThreadsWaitForABankWhereBothSidesMoveVectors) {
  check_banks<1>();
  check_banks<2>();
  check_banks<4>();
  check_banks<8>();
  check_banks<16>();
}

// --- Large numbers -------------------------------------------------------------------------------

TEST(KernelIndices, DivideAsTheProcessorDoes) {
  std::mt19937_64 random(3);
  // The divisors are those of a plan: extents of an axis.
  const auto divisor_of = [](std::uint64_t value) {
    const auto extent = static_cast<std::int64_t>(value);
    const loops::Walk walk{
        address(1 << 20), address(1 << 21), {{2, extent * 32, extent * 32}, {extent, 32, 32}}};
    return plan_copy(walk, 16).arguments.axes[0].extent;
  };
  std::vector<std::uint64_t> divisors{1, 2, 3, 5, 6, 7, 10, 641, 65535, 65536, 65537};
  for (const int bits : {30, 31, 32, 33, 40}) {
    for (const int offset : {-2, -1, 0, 1, 2}) {
      divisors.push_back((std::uint64_t{1} << bits) + static_cast<std::uint64_t>(offset));
    }
  }
  for (int i = 0; i < 300; ++i) divisors.push_back(1 + (random() >> (24 + random() % 39)));
  for (const std::uint64_t value : divisors) {
    const gridbuf_divisor divisor = divisor_of(value);
    ASSERT_EQ(divisor.value, value);
    for (const std::uint64_t multiple : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{2},
                                         0xFFFFFFFF / value, (std::uint64_t{1} << 62) / value}) {
      for (const std::uint64_t offset : {-1, 0, 1}) {
        const std::uint64_t dividend = multiple * value + offset;
        ASSERT_EQ(kernel_code::divide(dividend, divisor), dividend / value)
            << dividend << "/" << value;
      }
    }
    for (int i = 0; i < 200; ++i) {
      const std::uint64_t dividend = random() >> (random() % 64);
      ASSERT_EQ(kernel_code::divide(dividend, divisor), dividend / value)
          << dividend << "/" << value;
    }
  }
}

// More work than a launch has blocks: each takes several pieces, and the last piece is the last
// element.
TEST(KernelIndices, MoreWorkThanBlocksIsSharedOut) {
  const std::int64_t n = std::int64_t{1} << 21;
  const StridedView target{{n, n}, {n * 16, 8}, 0, 8};
  const StridedView source{{n, n}, {n * 8 + 8, 8}, 0, 8};
  const KernelPlan plan =
      plan_copy(ordered_walk(address(1 << 20), target, address(1 << 24), source), 8);
  EXPECT_EQ(plan.arguments.grid_blocks, kMostBlocks);
  EXPECT_EQ(static_cast<std::int64_t>(plan.arguments.work_blocks),
            n * n / kernel_code::kPiecesABlock);
  EXPECT_GT(static_cast<std::int64_t>(plan.arguments.work_blocks), kMostBlocks);
  const auto count = static_cast<std::uint64_t>(n * n);
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
    Block block = *driver.resource(DeviceType::kCuda).allocate({.total_bytes = std::ssize(bytes)});
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
  ASSERT_EQ(plan.kind(), KernelKind::kCopyTiles);
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
