#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"

import gridbuf.base;
import gridbuf.device;
import gridbuf.device.emulated;

namespace gridbuf::emulated {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

struct MemoryTest : ::testing::Test {
  Memory memory;

  RangePtr map(MemoryKind kind, std::int64_t length_bytes = 1000,
               RangeState state = RangeState::kLive) {
    absl::StatusOr<RangePtr> range = memory.map(kind, length_bytes, state, false, false);
    EXPECT_TRUE(range.ok()) << range.status();
    return range.ok() ? *range : nullptr;
  }
  static volatile std::byte* pointer(const Range& range) {
    return reinterpret_cast<volatile std::byte*>(range.begin);
  }
};

// A forbidden access of the host ends the process at once; the device finds the bytes elsewhere.
TEST_F(MemoryTest, TheHostCannotTouchDeviceMemory) {
  const RangePtr range = map(MemoryKind::kDevice);
  EXPECT_DEATH(pointer(*range)[0] = std::byte{1}, "");
  EXPECT_DEATH(static_cast<void>(pointer(*range)[999]), "");
  std::byte* bytes =
      *memory.translate("target", *range, reinterpret_cast<void*>(range->begin + 999));
  *bytes = std::byte{7};
  EXPECT_EQ(range->bytes[999], std::byte{7});
}

TEST_F(MemoryTest, TheHostTouchesPinnedAndManagedMemory) {
  for (const MemoryKind kind : {MemoryKind::kPinned, MemoryKind::kManaged}) {
    const RangePtr range = map(kind);
    pointer(*range)[999] = std::byte{7};
    EXPECT_EQ(range->bytes[999], std::byte{7});
    EXPECT_DEATH(pointer(*range)[5000] = std::byte{1}, "");  // the next page is closed
  }
}

TEST_F(MemoryTest, FreshBytesAreNoNumber) {
  const RangePtr fresh = map(MemoryKind::kDevice);
  EXPECT_EQ(fresh->bytes[0], Memory::kFresh);
  EXPECT_EQ(fresh->bytes[999], Memory::kFresh);
  const auto zeros = memory.map(MemoryKind::kDevice, 1000, RangeState::kLive, true, false);
  EXPECT_EQ((*zeros)->bytes[999], std::byte{0});
}

TEST_F(MemoryTest, AddressesAreAlignedAsCudaPromisesAndNoMore) {
  for (const MemoryKind kind : {MemoryKind::kDevice, MemoryKind::kManaged, MemoryKind::kPinned}) {
    const RangePtr range = map(kind);
    EXPECT_EQ(range->begin % 256, 0U);
    EXPECT_NE(range->begin % 512, 0U);
  }
}

TEST_F(MemoryTest, FindsTheRangeAroundAnAddress) {
  const RangePtr range = map(MemoryKind::kDevice);
  const auto at = [&](std::int64_t offset) {
    return reinterpret_cast<const void*>(range->begin + static_cast<std::uintptr_t>(offset));
  };
  EXPECT_EQ(memory.find(at(0)), range);
  EXPECT_EQ(memory.find(at(999)), range);
  EXPECT_EQ(memory.find(at(-1)), nullptr);
  EXPECT_EQ(memory.find(at(1001)), nullptr);
  int local = 0;
  EXPECT_EQ(memory.find(&local), nullptr);
  EXPECT_EQ(memory.find(nullptr), nullptr);
  EXPECT_EQ(*memory.range_of("source", at(10), 990), range);
  EXPECT_EQ(*memory.range_of("source", &local, 4), nullptr);
}

TEST_F(MemoryTest, RefusesLengthsBeyondTheRange) {
  const RangePtr range = map(MemoryKind::kDevice);
  const void* inside = reinterpret_cast<const void*>(range->begin + 10);
  for (const std::int64_t length : {std::int64_t{991}, std::int64_t{1} << 62}) {
    const absl::Status status = memory.range_of("copy source", inside, length).status();
    EXPECT_EQ(error_class_of(status), ErrorClass::kValue);
    EXPECT_NE(status.message().find("copy source is"), std::string::npos) << status;
    EXPECT_NE(status.message().find("1000 bytes"), std::string::npos) << status;
  }
}

TEST_F(MemoryTest, KnowsReleasedAddresses) {
  std::uintptr_t begin = 0;
  {
    const RangePtr range = map(MemoryKind::kPinned);
    begin = range->begin;
    memory.set_state(*range, RangeState::kReleased);
  }
  const void* stale = reinterpret_cast<const void*>(begin + 8);
  EXPECT_TRUE(memory.was_released(stale));
  const absl::Status status = memory.range_of("fill target", stale, 8).status();
  EXPECT_EQ(error_class_of(status), ErrorClass::kValue);
  EXPECT_NE(status.message().find("has not been released"), std::string::npos) << status;
  EXPECT_DEATH(*reinterpret_cast<volatile std::byte*>(begin) = std::byte{1}, "");
}

TEST_F(MemoryTest, WorkMayUseLiveMemoryOnly) {
  const RangePtr range = map(MemoryKind::kDevice, 1000, RangeState::kOrdered);
  const void* begin = reinterpret_cast<const void*>(range->begin);
  const absl::Status early = memory.translate("source", *range, begin).status();
  EXPECT_NE(early.message().find("before its allocation ran"), std::string::npos) << early;
  memory.set_state(*range, RangeState::kLive);
  EXPECT_TRUE(memory.translate("source", *range, begin).ok());
  memory.set_state(*range, RangeState::kReleased);
  EXPECT_TRUE(memory.translate("source", *range, begin).ok());  // enqueued before the release
  memory.set_state(*range, RangeState::kGone);
  const absl::Status late = memory.translate("source", *range, begin).status();
  EXPECT_EQ(error_class_of(late), ErrorClass::kInternal);
  EXPECT_NE(late.message().find("after it was freed"), std::string::npos) << late;
}

TEST_F(MemoryTest, CountsWhatLivesAndWhatIsHeld) {
  RangePtr range = map(MemoryKind::kDevice);
  EXPECT_EQ(memory.statistics(), (MemoryStatistics{1, 1000, 1000, 1000, {0, 0, 1000}}));
  memory.set_state(*range, RangeState::kReleased);
  memory.set_state(*range, RangeState::kGone);
  EXPECT_EQ(memory.statistics(), (MemoryStatistics{0, 0, 1000, 1000}));
  range.reset();
  EXPECT_EQ(memory.statistics(), (MemoryStatistics{0, 0, 0, 1000}));
}

TEST_F(MemoryTest, StopsAtItsCapacity) {
  memory.set_capacity(1500);
  const RangePtr first = map(MemoryKind::kDevice);
  const absl::Status status =
      memory.map(MemoryKind::kDevice, 1000, RangeState::kLive, false, false).status();
  EXPECT_EQ(error_class_of(status), ErrorClass::kMemory);
  EXPECT_NE(status.message().find("500 bytes left"), std::string::npos) << status;
}

TEST_F(MemoryTest, RefusesMoreThanAnyMachineHas) {
  for (const bool populate : {false, true}) {
    for (const MemoryKind kind : {MemoryKind::kDevice, MemoryKind::kManaged}) {
      const absl::Status status =
          memory.map(kind, std::int64_t{1} << 58, RangeState::kLive, true, populate).status();
      EXPECT_EQ(error_class_of(status), ErrorClass::kMemory) << status;
    }
  }
  EXPECT_EQ(memory.statistics(), MemoryStatistics{});
}

std::int64_t address_space_bytes() {
  std::int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * 4096;
}

void map_and_release(Memory& memory, int count, std::int64_t length_bytes) {
  for (int i = 0; i < count; ++i) {
    const auto range =
        memory.map(MemoryKind::kDevice, length_bytes, RangeState::kLive, true, false);
    ASSERT_TRUE(range.ok()) << range.status();
    memory.set_state(**range, RangeState::kReleased);
  }
}

TEST_F(MemoryTest, TheQuarantineIsBounded) {
  if (std::getenv("GRIDBUF_EMULATED") != nullptr) {
    GTEST_SKIP() << "the emulator maps memory for itself";
  }
  const std::int64_t before_bytes = address_space_bytes();
  map_and_release(memory, 2000, 4 * kMiB);
  EXPECT_LT(address_space_bytes() - before_bytes, Memory::kQuarantineBytes + 64 * kMiB);
  map_and_release(memory, 10'000, 100);
  EXPECT_LT(address_space_bytes() - before_bytes,
            static_cast<std::int64_t>(Memory::kQuarantineRanges) * 4 * 4096);
  EXPECT_EQ(memory.statistics().held_bytes, 0);
}

}  // namespace
}  // namespace gridbuf::emulated
