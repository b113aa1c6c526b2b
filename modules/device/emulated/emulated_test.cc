#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"

import gridbuf.alloc;
import gridbuf.alloc.testing;
import gridbuf.base;
import gridbuf.device;
import gridbuf.device.emulated;

namespace gridbuf {
namespace {

using emulated::Operation;

constexpr std::array<MemoryKind, 3> kKinds{MemoryKind::kPinned, MemoryKind::kManaged,
                                           MemoryKind::kDevice};

// --- The contract of a resource ------------------------------------------------------------------

// Accesses the bytes of every kind of memory through the driver.
class DeviceAccess final : public testing::ByteAccess {
 public:
  void fill(std::byte* begin, std::int64_t length_bytes, std::byte value) override {
    check(driver_.fill(begin, value, length_bytes, kLegacyDefaultStream));
    check(driver_.synchronize(kLegacyDefaultStream));
  }
  bool holds(const std::byte* begin, std::int64_t length_bytes, std::byte value) override {
    std::vector<std::byte> bytes(static_cast<std::size_t>(length_bytes));
    check(driver_.copy(bytes.data(), begin, length_bytes, kLegacyDefaultStream));
    return std::all_of(bytes.begin(), bytes.end(),
                       [value](std::byte byte) { return byte == value; });
  }

 private:
  static void check(const absl::Status& status) { EXPECT_TRUE(status.ok()) << status; }
  EmulatedDriver& driver_ = emulated_driver();
};

struct ContractCase {
  MemoryKind kind;
  testing::ContractCheck check;
};

std::vector<ContractCase> contract_cases() {
  std::vector<ContractCase> cases;
  for (const MemoryKind kind : kKinds) {
    for (const testing::ContractCheck& check : testing::resource_contract()) {
      cases.push_back({kind, check});
    }
  }
  return cases;
}

class EmulatedContract : public ::testing::TestWithParam<ContractCase> {};

TEST_P(EmulatedContract, Holds) {
  DeviceAccess bytes;
  MemoryResource& resource = emulated_driver().resource(GetParam().kind);
  for (const std::string& violation : GetParam().check.run(resource, bytes)) {
    ADD_FAILURE() << violation;
  }
}

INSTANTIATE_TEST_SUITE_P(Emulated, EmulatedContract, ::testing::ValuesIn(contract_cases()),
                         [](const auto& info) {
                           return std::string(to_string(info.param.kind)) + "_" +
                                  std::string(info.param.check.name);
                         });

// --- Streams and memory --------------------------------------------------------------------------

struct EmulatedDriverTest : ::testing::Test {
  EmulatedDriver driver;
  StreamHandle a = *driver.create_stream(StreamKind::kNonBlocking);
  StreamHandle b = *driver.create_stream(StreamKind::kNonBlocking);

  absl::StatusOr<Block> allocate(MemoryKind kind, const AllocationRequest& request) {
    return driver.resource(kind).allocate(request);
  }
  Block must_allocate(MemoryKind kind, const AllocationRequest& request = {.total_bytes = 64}) {
    absl::StatusOr<Block> block = allocate(kind, request);
    EXPECT_TRUE(block.ok()) << block.status();
    return *std::move(block);
  }
  // The value that the host reads by a copy on `stream`.
  int seen(const void* address, StreamHandle stream) {
    std::byte byte{};
    const absl::Status status = driver.copy(&byte, address, 1, stream);
    EXPECT_TRUE(status.ok()) << status;
    return std::to_integer<int>(byte);
  }
  void fill(const Block& block, int value, StreamHandle stream) {
    const absl::Status status =
        driver.fill(block.data(), static_cast<std::byte>(value), block.total_bytes(), stream);
    EXPECT_TRUE(status.ok()) << status;
  }
  // Memory that every stream may use.
  Block settled(MemoryKind kind, int value) {
    Block block = must_allocate(kind);
    fill(block, value, kLegacyDefaultStream);
    EXPECT_TRUE(driver.synchronize_device().ok());
    return block;
  }
};

// [example]
// A consumer on a second stream sees the old value if it does not wait for the producer's stream,
// and the new value if it is ordered after it.
TEST_F(EmulatedDriverTest, AForgottenWaitIsSeenEveryTime) {
  const Block block = settled(MemoryKind::kDevice, 1);
  fill(block, 2, /*stream=*/a);
  EXPECT_EQ(seen(block.data(), /*stream=*/b), 1);
  EXPECT_TRUE(driver.order_after(/*producer=*/a, /*consumer=*/b).ok());
  EXPECT_EQ(seen(block.data(), /*stream=*/b), 2);
}
// [/example]

TEST_F(EmulatedDriverTest, PinnedTargetsAreWrittenAtTheWait) {
  const Block device = settled(MemoryKind::kDevice, 2);
  const Block pinned = settled(MemoryKind::kPinned, 1);
  ASSERT_TRUE(driver.copy(pinned.data(), device.data(), 64, a).ok());
  EXPECT_EQ(pinned.data()[0], std::byte{1});
  ASSERT_TRUE(driver.synchronize(a).ok());
  EXPECT_EQ(pinned.data()[0], std::byte{2});
}

TEST_F(EmulatedDriverTest, PinnedSourcesAreReadLateAndPageableOnesAtOnce) {
  const Block target = settled(MemoryKind::kDevice, 0);
  const Block pinned = settled(MemoryKind::kPinned, 1);
  std::vector<std::byte> pageable(64, std::byte{1});
  ASSERT_TRUE(driver.copy(target.data(), pinned.data(), 64, a).ok());
  pinned.data()[0] = std::byte{9};  // too early
  EXPECT_EQ(seen(target.data(), a), 9);
  ASSERT_TRUE(driver.copy(target.data(), pageable.data(), 64, a).ok());
  pageable[0] = std::byte{9};            // allowed
  EXPECT_EQ(seen(target.data(), b), 9);  // and still written late
  EXPECT_EQ(seen(target.data(), a), 1);
}

TEST_F(EmulatedDriverTest, ManagedMemoryIsOneMemoryForBothSides) {
  const Block managed = settled(MemoryKind::kManaged, 1);
  fill(managed, 2, a);
  EXPECT_EQ(managed.data()[0], std::byte{1});
  ASSERT_TRUE(driver.synchronize(a).ok());
  EXPECT_EQ(managed.data()[0], std::byte{2});
}

TEST_F(EmulatedDriverTest, ZerosOfDeviceMemoryComeInTheOrderOfItsStream) {
  const ScopedStream scope(a);
  const Block block = must_allocate(MemoryKind::kDevice, {.total_bytes = 64, .zeroed = true});
  EXPECT_EQ(block.info().stream, a);
  EXPECT_EQ(seen(block.data(), a), 0);
  const Block managed = must_allocate(MemoryKind::kManaged, {.total_bytes = 64, .zeroed = true});
  EXPECT_EQ(managed.data()[63], std::byte{0});
  EXPECT_EQ(managed.info().stream, 0U);
}

TEST_F(EmulatedDriverTest, MemoryMayNotBeUsedBeforeItsAllocation) {
  const ScopedStream scope(a);
  const Block block = must_allocate(MemoryKind::kDevice);
  ASSERT_TRUE(driver.fill(block.data(), std::byte{1}, 64, b).ok());  // b does not wait
  const absl::Status status = driver.synchronize(b);
  EXPECT_EQ(error_class_of(status), ErrorClass::kInternal);
  EXPECT_NE(status.message().find("before its allocation"), std::string::npos) << status;
  ASSERT_TRUE(driver.order_after(a, b).ok());
  fill(block, 1, b);
  EXPECT_TRUE(driver.synchronize(b).ok());
}

TEST_F(EmulatedDriverTest, MemoryIsFreedAfterCopiesOnOtherStreams) {
  const Block target = settled(MemoryKind::kDevice, 0);
  {
    const Block source = settled(MemoryKind::kDevice, 2);
    ASSERT_TRUE(driver.copy(target.data(), source.data(), 64, a).ok());
  }
  EXPECT_GT(driver.statistics().held_bytes, driver.statistics().live_bytes);
  EXPECT_EQ(seen(target.data(), a), 2);
  ASSERT_TRUE(driver.synchronize_device().ok());
  EXPECT_EQ(driver.statistics().held_bytes, driver.statistics().live_bytes);
}

// A kernel of another library, on a stream that was noted, or was not.
TEST_F(EmulatedDriverTest, ForeignKernelsNeedTheirStreamNoted) {
  for (const bool noted : {false, true}) {
    Block block = settled(MemoryKind::kDevice, 2);
    const auto read = [address = block.data()](KernelMemory& memory) {
      return memory.at(address, 64).status();
    };
    if (noted) driver.note_use(block.data(), a);
    ASSERT_TRUE(driver.launch(a, read).ok());
    block = Block();
    ASSERT_TRUE(driver.synchronize(kLegacyDefaultStream).ok());
    const absl::Status status = driver.synchronize(a);
    EXPECT_EQ(status.ok(), noted) << status;
    if (noted) continue;
    EXPECT_EQ(error_class_of(status), ErrorClass::kInternal);
    EXPECT_NE(status.message().find("was freed"), std::string::npos) << status;
  }
}

TEST_F(EmulatedDriverTest, MemoryOutlivesItsStream) {
  const StreamHandle gone = *driver.create_stream(StreamKind::kNonBlocking);
  {
    const ScopedStream scope(gone);
    const Block block = must_allocate(MemoryKind::kDevice);
    ASSERT_TRUE(driver.destroy_stream(gone).ok());
  }
  ASSERT_TRUE(driver.synchronize_device().ok());
  EXPECT_EQ(driver.statistics().held_bytes, 0);
}

TEST_F(EmulatedDriverTest, KernelsFindTheirBytesAndNothingElse) {
  const Block block = settled(MemoryKind::kDevice, 3);
  const auto double_it = [address = block.data()](KernelMemory& memory) {
    const absl::StatusOr<std::byte*> bytes = memory.at(address, 64);
    if (!bytes.ok()) return bytes.status();
    (*bytes)[0] = std::byte{6};
    return absl::OkStatus();
  };
  ASSERT_TRUE(driver.launch(a, double_it).ok());
  EXPECT_EQ(seen(block.data(), a), 6);
  int local = 0;
  for (const void* address :
       {static_cast<const void*>(&local), static_cast<const void*>(block.data() + (1 << 20))}) {
    ASSERT_TRUE(
        driver.launch(a, [address](KernelMemory& memory) { return memory.at(address, 4).status(); })
            .ok());
    EXPECT_EQ(error_class_of(driver.synchronize(a)), ErrorClass::kInternal);
  }
}

TEST_F(EmulatedDriverTest, AKernelDoesNotOutliveTheCallThatWaitsForIt) {
  int runs = 0;
  const Kernel count = [&runs](KernelMemory&) {
    ++runs;
    return absl::OkStatus();
  };
  EXPECT_TRUE(driver.run(kLegacyDefaultStream, count).ok());
  EXPECT_EQ(runs, 1);
  driver.faults().inject({.operation = Operation::kSynchronize,
                          .error = make_error(ErrorClass::kInternal, "injected")});
  EXPECT_FALSE(driver.run(kLegacyDefaultStream, count).ok());
  // Inside work it is refused, and leaves nothing behind either.
  const Kernel nested = [&](KernelMemory&) { return driver.run(kLegacyDefaultStream, count); };
  const absl::Status status = driver.run(kLegacyDefaultStream, nested);
  EXPECT_NE(status.message().find("waits for a stream"), std::string::npos) << status;
  EXPECT_TRUE(driver.synchronize(kLegacyDefaultStream).ok());
  EXPECT_EQ(runs, 1);
}

// The host's form of a kernel: adds its argument to the first byte of each operand.
void add_to_operands(const void* arguments, std::span<std::byte* const> operands) {
  for (std::byte* operand : operands) {
    *operand = static_cast<std::byte>(std::to_integer<int>(*operand) +
                                      *static_cast<const unsigned char*>(arguments));
  }
}

TEST_F(EmulatedDriverTest, KernelsInTwoFormsRunLateOnTheBytesOfTheirOperands) {
  const Block device = settled(MemoryKind::kDevice, 1);
  const Block managed = settled(MemoryKind::kManaged, 2);
  {
    const unsigned char argument = 10;
    const std::array<KernelOperand, 2> operands{KernelOperand{"a", device.data() + 3, 61},
                                                KernelOperand{"b", managed.data(), 64}};
    ASSERT_TRUE(driver
                    .launch({.name = "add",
                             .on_host = &add_to_operands,
                             .arguments = std::as_bytes(std::span(&argument, 1)),
                             .operands = operands},
                            a)
                    .ok());
  }
  EXPECT_EQ(managed.data()[0], std::byte{2});
  ASSERT_TRUE(driver.synchronize(a).ok());
  EXPECT_EQ(managed.data()[0], std::byte{12});
  EXPECT_EQ(seen(device.data() + 3, a), 11);
  EXPECT_EQ(seen(device.data(), a), 1);
}

TEST_F(EmulatedDriverTest, OperandsOfAKernelAreCheckedBeforeItIsEnqueued) {
  const Block block = settled(MemoryKind::kDevice, 1);
  std::byte local{};
  const std::byte* stale = must_allocate(MemoryKind::kDevice).data();
  const auto launch = [&](const void* address, std::int64_t length_bytes, StreamHandle stream) {
    const unsigned char argument = 1;
    const KernelOperand operand{"the target", address, length_bytes};
    return driver.launch({.name = "add",
                          .on_host = &add_to_operands,
                          .arguments = std::as_bytes(std::span(&argument, 1)),
                          .operands = std::span(&operand, 1)},
                         stream);
  };
  for (const absl::Status& status :
       {launch(&local, 1, a), launch(stale, 1, a), launch(block.data(), 1 << 20, a),
        launch(block.data(), 1, 0), launch(block.data(), 1, 99)}) {
    EXPECT_EQ(error_class_of(status), ErrorClass::kValue) << status;
  }
  EXPECT_NE(launch(&local, 1, a).message().find("the target"), std::string::npos);
  ASSERT_TRUE(driver.synchronize_device().ok());
  EXPECT_EQ(driver.statistics().pending_operations, 0);
  EXPECT_EQ(seen(block.data(), a), 1);
}

TEST_F(EmulatedDriverTest, AKernelThatWaitsIsAnErrorAndNoDeadlock) {
  ASSERT_TRUE(driver.launch(a, [this](KernelMemory&) { return driver.synchronize(a); }).ok());
  const absl::Status status = driver.synchronize(a);
  EXPECT_NE(status.message().find("never end"), std::string::npos) << status;
}

TEST_F(EmulatedDriverTest, AKernelMayAllocateAndRelease) {
  const auto kernel = [this](KernelMemory&) {
    for (int i = 0; i < 100; ++i) {
      const absl::StatusOr<Block> block = allocate(MemoryKind::kDevice, {.total_bytes = 64});
      if (!block.ok()) return block.status();
    }
    return absl::OkStatus();
  };
  ASSERT_TRUE(driver.launch(a, kernel).ok());
  EXPECT_TRUE(driver.synchronize(a).ok());
}

// --- Errors --------------------------------------------------------------------------------------

TEST_F(EmulatedDriverTest, BadCallsAreErrorsBeforeAnythingIsEnqueued) {
  const Block block = settled(MemoryKind::kDevice, 1);
  std::vector<std::byte> host(128);
  const auto is_value_error = [](const absl::Status& status) {
    return error_class_of(status) == ErrorClass::kValue;
  };
  EXPECT_TRUE(is_value_error(driver.copy(block.data(), host.data(), 1 << 12, a)));
  EXPECT_TRUE(is_value_error(driver.copy(host.data(), block.data() + 60, 1 << 12, a)));
  EXPECT_TRUE(is_value_error(driver.copy(block.data(), host.data(), -1, a)));
  EXPECT_TRUE(is_value_error(driver.copy(block.data(), host.data(), 8, 0)));
  EXPECT_TRUE(is_value_error(driver.copy(block.data(), host.data(), 8, 99)));
  EXPECT_TRUE(is_value_error(driver.fill(host.data(), std::byte{0}, 8, a)));
  EXPECT_TRUE(is_value_error(driver.fill(block.data(), std::byte{0}, 1 << 12, a)));
  EXPECT_TRUE(is_value_error(driver.copy_rows({block.data(), 4, host.data(), 8, 8, 2}, a)));
  EXPECT_TRUE(is_value_error(driver.copy_rows({block.data(), 64, host.data(), 8, 8, 3}, a)));
  const std::byte* stale = nullptr;
  {
    stale = must_allocate(MemoryKind::kDevice).data();
  }
  EXPECT_TRUE(is_value_error(driver.copy(host.data(), stale, 8, a)));
  EXPECT_TRUE(is_value_error(driver.pointer_info(stale).status()));
  ASSERT_TRUE(driver.synchronize_device().ok());
  EXPECT_EQ(driver.statistics().pending_operations, 0);
}

TEST_F(EmulatedDriverTest, OutOfMemoryFirstFreesWhatWaits) {
  driver.set_capacity(100'000);
  {
    const Block block = must_allocate(MemoryKind::kDevice, {.total_bytes = 90'000});
  }
  {
    const Block block = must_allocate(MemoryKind::kDevice, {.total_bytes = 90'000});
  }
  const Block block = must_allocate(MemoryKind::kManaged, {.total_bytes = 90'000});
  const absl::Status status = allocate(MemoryKind::kDevice, {.total_bytes = 90'000}).status();
  EXPECT_EQ(error_class_of(status), ErrorClass::kMemory);
  EXPECT_NE(status.message().find("emulated device"), std::string::npos) << status;
}

TEST_F(EmulatedDriverTest, ThreeGibibytesAreServedToTheLastByte) {
  const std::int64_t length = std::int64_t{3} << 30;
  const Block block = must_allocate(MemoryKind::kDevice, {.total_bytes = length, .zeroed = false});
  ASSERT_TRUE(driver.fill(block.data() + length - 8, std::byte{5}, 8, 1).ok());
  EXPECT_EQ(seen(block.data() + length - 1, 1), 5);
}

absl::Status everyday_use(EmulatedDriver& driver) {
  const absl::StatusOr<StreamHandle> stream = driver.create_stream(StreamKind::kNonBlocking);
  if (!stream.ok()) return stream.status();
  absl::Status first = absl::OkStatus();
  {
    const ScopedStream scope(*stream);
    const auto device =
        driver.resource(MemoryKind::kDevice).allocate({.total_bytes = 64, .zeroed = true});
    first = device.status();
    if (first.ok()) first = driver.fill(device->data(), std::byte{1}, 64, *stream);
    if (first.ok()) {
      const auto pinned = driver.resource(MemoryKind::kPinned).allocate({.total_bytes = 64});
      first = pinned.status();
      if (first.ok()) first = driver.copy(pinned->data(), device->data(), 64, *stream);
    }
    if (first.ok()) first = driver.order_after(*stream, kLegacyDefaultStream);
    if (first.ok()) first = driver.synchronize(kLegacyDefaultStream);
    if (first.ok()) first = driver.pointer_info(device->data()).status();
  }
  // If a test injects a failure, it has happened by now, or happens here.
  absl::Status destroyed = driver.destroy_stream(*stream);
  if (!destroyed.ok()) static_cast<void>(driver.destroy_stream(*stream));
  return first.ok() ? destroyed : first;
}

// Every operation fails in turn, at its call and when it runs; memory and streams do not leak.
TEST_F(EmulatedDriverTest, AFailureOfAnyOperationLeaksNothing) {
  const EmulatedStatistics before = driver.statistics();
  for (const bool when_run : {false, true}) {
    for (std::int64_t n = 1;; ++n) {
      const std::int64_t fault =
          driver.faults().inject({.first_call = n,
                                  .error = make_error(ErrorClass::kInternal, "injected"),
                                  .when_run = when_run});
      const absl::Status status = everyday_use(driver);
      driver.faults().remove(fault);
      static_cast<void>(driver.synchronize_device());  // takes failures without a wait
      const EmulatedStatistics after = driver.statistics();
      EXPECT_EQ(after.live_blocks, before.live_blocks) << n;
      EXPECT_EQ(after.held_bytes, before.held_bytes) << n;
      EXPECT_EQ(after.live_streams, before.live_streams) << n;
      EXPECT_EQ(after.pending_operations, 0) << n;
      if (!status.ok()) EXPECT_NE(status.message().find("injected"), std::string::npos) << status;
      if (n > 12) break;
    }
  }
  EXPECT_TRUE(everyday_use(driver).ok());
}

// --- Threads, fork, and the end ------------------------------------------------------------------

TEST_F(EmulatedDriverTest, ServesThreadsAtOnce) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this] {
      for (int i = 0; i < 50; ++i) EXPECT_TRUE(everyday_use(driver).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(driver.synchronize_device().ok());
  EXPECT_EQ(driver.statistics().held_bytes, 0);
}

std::int64_t resident_bytes() {
  std::int64_t total_pages = 0;
  std::int64_t resident_pages = 0;
  std::ifstream("/proc/self/statm") >> total_pages >> resident_pages;
  return resident_pages * 4096;
}

// Queues and the memory of released blocks are bounded, although the test never waits.
TEST_F(EmulatedDriverTest, ManyBlocksLeaveTheMemoryFlat) {
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  GTEST_SKIP() << "sanitizers keep freed memory";
#endif
  if (std::getenv("GRIDBUF_EMULATED") != nullptr) {
    GTEST_SKIP() << "the emulator maps memory for itself";
  }
  const auto cycles = [this](int count) {
    for (int i = 0; i < count; ++i) {
      const Block block = must_allocate(MemoryKind::kDevice, {.total_bytes = 800});
      fill(block, 1, kLegacyDefaultStream);
    }
  };
  cycles(10'000);
  const std::int64_t before_bytes = resident_bytes();
  cycles(50'000);
  EXPECT_LT(resident_bytes() - before_bytes, std::int64_t{2} << 20);
  EXPECT_TRUE(driver.synchronize(kLegacyDefaultStream).ok());
}

int use_after_fork(EmulatedDriver& driver, Block block) {
  const auto unavailable = [](const absl::Status& status) {
    return error_class_of(status) == ErrorClass::kDeviceUnavailable &&
           status.message().find("fork") != std::string::npos;
  };
  for (const MemoryKind kind : kKinds) {
    if (!unavailable(driver.resource(kind).allocate({.total_bytes = 8}).status())) return 1;
  }
  if (!unavailable(driver.copy(block.data(), block.data(), 8, 1))) return 2;
  if (!unavailable(driver.synchronize(1)) || !unavailable(driver.check_stream(1))) return 3;
  if (!unavailable(driver.pointer_info(block.data()).status())) return 4;
  driver.note_use(block.data(), 1);
  block = Block();
  return 0;
}

TEST_F(EmulatedDriverTest, AChildAfterForkIsToldSo) {
  Block block = must_allocate(MemoryKind::kDevice);
  EXPECT_EXIT(std::_Exit(use_after_fork(driver, std::move(block))), ::testing::ExitedWithCode(0),
              "");
}

// The leak checker calls this at the exit. Processes that end with live memory do so on purpose.
std::atomic<bool> ends_with_live_memory = false;

// Ends the process in one of several ways with memory, streams and work of the device alive in a
// global, a leaked object and a thread.
[[noreturn]] void end_with_live_memory(int way) {
  ends_with_live_memory = true;
  EmulatedDriver& driver = emulated_driver();
  static Block global = *driver.resource(MemoryKind::kDevice).allocate({.total_bytes = 1 << 20});
  static thread_local Block of_thread =
      *driver.resource(MemoryKind::kManaged).allocate({.total_bytes = 1 << 20});
  static_cast<void>(of_thread.data());
  static_cast<void>(driver.fill(global.data(), std::byte{1}, 1 << 20, 2));
  std::thread([&driver] {
    static thread_local Block mine =
        *driver.resource(MemoryKind::kPinned).allocate({.total_bytes = 4096});
    static_cast<void>(driver.fill(mine.data(), std::byte{1}, 4096, 2));
  }).detach();
  if (way == 0) std::exit(0);
  if (way == 1) std::quick_exit(0);
  if (way == 2) _exit(0);
  std::thread([] { std::exit(0); }).join();
  std::abort();
}

TEST(EmulatedExit, IsCleanWithLiveMemory) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (int way = 0; way < 4; ++way) {
    EXPECT_EXIT(end_with_live_memory(way), ::testing::ExitedWithCode(0), "") << way;
  }
}

TEST_F(EmulatedDriverTest, SaysWhatItIs) {
  EXPECT_EQ(driver.name(), "emulated");
  EXPECT_TRUE(driver.is_emulated());
  EXPECT_EQ(*driver.current_device(), (Device{DeviceType::kCuda, 0}));
  for (const MemoryKind kind : kKinds) {
    const Block block = must_allocate(kind);
    EXPECT_EQ(block.info().resource_name.substr(0, 8), "emulated");
    const PointerInfo info = *driver.pointer_info(block.data());
    EXPECT_EQ(info.device, block.info().device);
    EXPECT_EQ(info.host_accessible, kind != MemoryKind::kDevice);
    EXPECT_TRUE(info.device_accessible);
  }
  EXPECT_NE(driver.info()[0].second.find("without a GPU"), std::string::npos);
}

TEST(EmulatedStatistics, CountWhatCopiesMoveBetweenTheSides) {
  EmulatedDriver driver;
  const Block device = *driver.resource(MemoryKind::kDevice).allocate({.total_bytes = 64});
  const Block pinned = *driver.resource(MemoryKind::kPinned).allocate({.total_bytes = 64});
  std::array<std::byte, 64> pageable{};
  ASSERT_TRUE(driver.copy(device.data(), pinned.data(), 40, 1).ok());
  EXPECT_EQ(driver.statistics().host_to_device_bytes, 0);  // enqueued, not moved
  ASSERT_TRUE(driver.copy_rows({pageable.data(), 16, device.data(), 16, 8, 3}, 1).ok());
  ASSERT_TRUE(driver.copy(device.data(), device.data() + 32, 32, 1).ok());
  ASSERT_TRUE(driver.synchronize(1).ok());
  EXPECT_EQ(driver.statistics().host_to_device_bytes, 40);
  EXPECT_EQ(driver.statistics().device_to_host_bytes, 24);
}

}  // namespace

bool leaks_are_meant() { return ends_with_live_memory; }

}  // namespace gridbuf

#if __has_feature(address_sanitizer)
extern "C" int __lsan_is_turned_off() { return gridbuf::leaks_are_meant() ? 1 : 0; }
#endif
