#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "modules/device/cuda/runtime/runtime.h"

import gridbuf.alloc;
import gridbuf.alloc.testing;
import gridbuf.base;
import gridbuf.device;
import gridbuf.device.cuda;
import gridbuf.device.cuda.fake;
import gridbuf.device.emulated;

// The driver on a runtime that a test controls (gridbuf.device.cuda.fake). gpu_test.cc tests it on
// a GPU.

namespace gridbuf {
namespace {

using cuda::fake;
using cuda::fake_device;

constexpr std::byte kOld{1};
constexpr std::byte kNew{2};

class CudaDriverTest : public ::testing::Test {
 protected:
  CudaDriverTest() { fake() = {}; }
  ~CudaDriverTest() override {
    driver.pinned_pages().trim();
    EXPECT_TRUE(fake_device().synchronize_device().ok());
    EXPECT_EQ(fake().live_allocations, 0);
    EXPECT_EQ(fake().live_registrations, 0);
    EXPECT_EQ(fake().live_events, 0);
    EXPECT_EQ(driver.live_blocks(), 0);
  }

  absl::StatusOr<Block> allocate(MemoryKind kind, const AllocationRequest& request) {
    return driver.resource(kind).allocate(request);
  }
  Block must_allocate(MemoryKind kind, const AllocationRequest& request) {
    absl::StatusOr<Block> block = allocate(kind, request);
    EXPECT_TRUE(block.ok()) << block.status();
    return *std::move(block);
  }
  std::byte first_byte(const Block& block) {
    std::byte byte{};
    EXPECT_TRUE(driver.copy(&byte, block.data(), 1, current_stream()).ok());
    return byte;
  }

  CudaDriver driver{cuda::fake_runtime()};
};

TEST_F(CudaDriverTest, BlocksSayWhereTheyAre) {
  fake().current_device = 1;
  const Block device = must_allocate(MemoryKind::kDevice, {.total_bytes = 8});
  EXPECT_EQ(device.info().device, (Device{DeviceType::kCuda, 1}));
  EXPECT_EQ(device.info().stream, kLegacyDefaultStream);
  EXPECT_EQ(device.info().resource_name, "CUDA device");
  const Block pinned = must_allocate(MemoryKind::kPinned, {.total_bytes = 8});
  EXPECT_EQ(pinned.info().device, (Device{DeviceType::kCudaHost, 0}));
  EXPECT_EQ(pinned.info().stream, 0U);
  const Block managed = must_allocate(MemoryKind::kManaged, {.total_bytes = 8});
  EXPECT_EQ(managed.info().device, (Device{DeviceType::kCudaManaged, 0}));
}

TEST_F(CudaDriverTest, AnyAlignmentIsKept) {
  for (const std::int64_t alignment : {1, 3, 256, 512, 1000, 4096, 65536}) {
    for (const MemoryKind kind : {MemoryKind::kPinned, MemoryKind::kManaged, MemoryKind::kDevice}) {
      const Block block = must_allocate(
          kind, {.total_bytes = 100, .alignment_bytes = alignment, .aligned_offset_bytes = 24});
      const auto address = reinterpret_cast<std::uintptr_t>(block.data()) + 24;
      EXPECT_EQ(address % static_cast<std::uintptr_t>(alignment), 0U);
    }
  }
}

TEST_F(CudaDriverTest, AReleaseSetsTheBlocksDeviceAndPutsTheCallersBack) {
  fake().current_device = 1;
  Block block = must_allocate(MemoryKind::kDevice, {.total_bytes = 8});
  fake().current_device = 0;
  const std::int64_t calls = fake().calls;
  block = Block();
  EXPECT_EQ(fake().current_device, 0);
  EXPECT_EQ(fake().calls - calls, 4);  // get, set, free, set
}

TEST_F(CudaDriverTest, ZerosAreZero) {
  for (const bool has_pools : {true, false}) {
    fake().has_pools = has_pools;
    CudaDriver fresh(cuda::fake_runtime());
    const auto block =
        fresh.resource(MemoryKind::kDevice).allocate({.total_bytes = 8, .zeroed = true});
    EXPECT_EQ(first_byte(*block), std::byte{0});
  }
  for (const MemoryKind kind : {MemoryKind::kPinned, MemoryKind::kManaged}) {
    {
      std::fill_n(must_allocate(kind, {.total_bytes = 64}).data(), 64, kOld);
    }
    const Block block = must_allocate(kind, {.total_bytes = 64, .zeroed = true});
    EXPECT_EQ(block.data()[63], std::byte{0});
  }
}

// The contract of a resource, as far as the fake runtime can show it.
class FakeAccess final : public testing::ByteAccess {
 public:
  void fill(std::byte* begin, std::int64_t length_bytes, std::byte value) override {
    if (is_plain(begin)) return host().fill(begin, length_bytes, value);
    EXPECT_TRUE(fake_device().fill(begin, value, length_bytes, 1).ok());
    EXPECT_TRUE(fake_device().synchronize(1).ok());
  }
  bool holds(const std::byte* begin, std::int64_t length_bytes, std::byte value) override {
    if (is_plain(begin)) return host().holds(begin, length_bytes, value);
    std::vector<std::byte> bytes(static_cast<std::size_t>(length_bytes));
    EXPECT_TRUE(fake_device().copy(bytes.data(), begin, length_bytes, 1).ok());
    return host().holds(bytes.data(), length_bytes, value);
  }

 private:
  static testing::ByteAccess& host() { return testing::host_access(); }
  // Registered pages are memory of the host.
  static bool is_plain(const std::byte* address) { return !fake_device().owns(address); }
};

TEST_F(CudaDriverTest, KeepsTheContractOfAResource) {
  FakeAccess bytes;
  for (const MemoryKind kind : {MemoryKind::kPinned, MemoryKind::kManaged, MemoryKind::kDevice}) {
    for (const testing::ContractCheck& check : testing::resource_contract()) {
      for (const std::string& violation : check.run(driver.resource(kind), bytes)) {
        ADD_FAILURE() << to_string(kind) << ": " << check.promise << ": " << violation;
      }
    }
  }
}

// --- When memory is freed ------------------------------------------------------------------------

// [example]
// A copy on another stream is enqueued, then the array is dropped. The emulated device reports an
// error if the memory is freed first.
TEST_F(CudaDriverTest, MemoryOutlivesCopiesOnOtherStreams) {
  const StreamHandle other = *driver.create_stream(StreamKind::kNonBlocking);
  Block target = must_allocate(MemoryKind::kDevice, {.total_bytes = 8});
  {
    const Block source = must_allocate(MemoryKind::kDevice, {.total_bytes = 8});
    ASSERT_TRUE(driver.fill(source.data(), kNew, 8, 1).ok());
    ASSERT_TRUE(driver.order_after(1, other).ok());
    ASSERT_TRUE(driver.copy(target.data(), source.data(), 8, other).ok());
  }
  ASSERT_TRUE(driver.synchronize(1).ok());  // runs the free, if nothing keeps it
  const absl::Status status = driver.synchronize(other);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(first_byte(target), kNew);
  EXPECT_EQ(fake().device_synchronisations, 0);
  ASSERT_TRUE(driver.destroy_stream(other).ok());
}
// [/example]

// The CUDA form of a kernel, for tests: it gets unchanged arguments and stream, and enqueues a read
// of its operand there.
struct ReadArguments {
  const std::byte* address;
  int answer;
};
int launch_read(const void* arguments, StreamHandle stream) {
  const auto* own = static_cast<const ReadArguments*>(arguments);
  if (own->answer != 0) return own->answer;
  const absl::Status status = fake_device().launch(
      stream,
      [address = own->address](KernelMemory& memory) { return memory.at(address, 8).status(); });
  return status.ok() ? 0 : GRIDBUF_CUDA_INVALID_HANDLE;
}

absl::Status launch_read_of(CudaDriver& driver, const std::byte* address, int answer,
                            StreamHandle stream) {
  const ReadArguments arguments{address, answer};
  const KernelOperand operand{"the kernel's source", address, 8};
  return driver.launch({.name = "copy of units",
                        .on_device = &launch_read,
                        .arguments = std::as_bytes(std::span(&arguments, 1)),
                        .operands = std::span(&operand, 1)},
                       stream);
}

TEST_F(CudaDriverTest, KernelsAreLaunchedOnTheirStreamAndKeepTheirOperands) {
  const StreamHandle other = *driver.create_stream(StreamKind::kNonBlocking);
  {
    const Block block = must_allocate(MemoryKind::kDevice, {.total_bytes = 8});
    ASSERT_TRUE(driver.order_after(1, other).ok());
    ASSERT_TRUE(launch_read_of(driver, block.data(), 0, other).ok());
  }
  ASSERT_TRUE(driver.synchronize(1).ok());  // runs the free, if nothing keeps it
  const absl::Status status = driver.synchronize(other);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(fake().device_synchronisations, 0);
  ASSERT_TRUE(driver.destroy_stream(other).ok());
}

TEST_F(CudaDriverTest, ALaunchThatIsRefusedSaysWhichKernelAndWhy) {
  const Block block = must_allocate(MemoryKind::kDevice, {.total_bytes = 8});
  const absl::Status status = launch_read_of(driver, block.data(), GRIDBUF_CUDA_NO_MEMORY, 1);
  EXPECT_EQ(error_class_of(status), ErrorClass::kMemory);
  EXPECT_NE(status.message().find("the launch of copy of units answered"), std::string::npos)
      << status;
  EXPECT_EQ(error_class_of(launch_read_of(driver, block.data(), 0, 0)), ErrorClass::kValue);
}

TEST_F(CudaDriverTest, MemoryOutlivesABlockingStreamThatAnExportNamed) {
  const ScopedStream scope(*driver.create_stream(StreamKind::kNonBlocking));
  const StreamHandle consumer = *driver.create_stream(StreamKind::kBlocking);
  {
    const Block block = must_allocate(MemoryKind::kDevice, {.total_bytes = 8});
    driver.note_use(block.data(), consumer);
    ASSERT_TRUE(driver.order_after(current_stream(), consumer).ok());
    // The consumer's kernel, which the driver does not know.
    ASSERT_TRUE(fake_device()
                    .launch(consumer,
                            [address = block.data()](KernelMemory& memory) {
                              return memory.at(address, 8).status();
                            })
                    .ok());
  }
  ASSERT_TRUE(driver.synchronize(current_stream()).ok());
  EXPECT_EQ(fake().device_synchronisations, 0);
}

TEST_F(CudaDriverTest, MemoryOutlivesANonBlockingStreamThatIsGone) {
  const StreamHandle consumer = *driver.create_stream(StreamKind::kNonBlocking);
  Block block = must_allocate(MemoryKind::kDevice, {.total_bytes = 8});
  driver.note_use(block.data(), consumer);
  ASSERT_TRUE(driver.destroy_stream(consumer).ok());
  block = Block();
  EXPECT_EQ(fake().device_synchronisations, 1);
}

TEST_F(CudaDriverTest, PinnedMemoryIsReusedWhenTheDeviceHasDoneWithIt) {
  const Block target = must_allocate(MemoryKind::kDevice, {.total_bytes = 8});
  {
    const Block unused = must_allocate(MemoryKind::kPinned, {.total_bytes = 8});
  }
  EXPECT_EQ(fake().device_synchronisations, 0);
  {
    const Block source = must_allocate(MemoryKind::kPinned, {.total_bytes = 8});
    EXPECT_TRUE(source.info().from_cache);
    ASSERT_TRUE(driver.copy(target.data(), source.data(), 8, 1).ok());
  }
  EXPECT_EQ(fake().device_synchronisations, 1);
}

TEST_F(CudaDriverTest, WithoutPoolsCudaMallocServes) {
  fake().has_pools = false;
  const Block block = must_allocate(MemoryKind::kDevice, {.total_bytes = 8, .zeroed = true});
  EXPECT_EQ(first_byte(block), std::byte{0});
}

TEST_F(CudaDriverTest, WithoutRegistrationTheDriversAllocatorServes) {
  fake().registers = false;
  const Block block = must_allocate(MemoryKind::kPinned, {.total_bytes = 8, .zeroed = true});
  EXPECT_EQ(block.data()[7], std::byte{0});
  EXPECT_EQ(fake().live_allocations, 1);
}

TEST_F(CudaDriverTest, WithoutManagedMemoryTheErrorSaysWhatElseThereIs) {
  fake().has_managed = false;
  const absl::Status status = allocate(MemoryKind::kManaged, {.total_bytes = 8}).status();
  EXPECT_EQ(error_class_of(status), ErrorClass::kDeviceUnavailable);
  EXPECT_NE(status.message().find("'pinned'"), std::string::npos) << status;
}

// --- Failures ------------------------------------------------------------------------------------

// Allocates every kind, copies, and releases; stops at the first failure.
absl::Status everyday_use(CudaDriver& driver) {
  const absl::StatusOr<StreamHandle> stream = driver.create_stream(StreamKind::kBlocking);
  if (!stream.ok()) return stream.status();
  std::vector<Block> blocks;
  absl::Status first = absl::OkStatus();
  for (const MemoryKind kind : {MemoryKind::kPinned, MemoryKind::kManaged, MemoryKind::kDevice}) {
    absl::StatusOr<Block> block =
        driver.resource(kind).allocate({.total_bytes = 4096, .zeroed = true});
    if (!block.ok()) {
      first = block.status();
      break;
    }
    blocks.push_back(*std::move(block));
  }
  if (first.ok()) first = driver.order_after(kLegacyDefaultStream, *stream);
  if (first.ok()) first = driver.copy(blocks[2].data(), blocks[1].data(), 4096, *stream);
  if (first.ok()) {
    first = driver.copy_rows({blocks[2].data(), 64, blocks[1].data(), 32, 16, 4}, *stream);
  }
  if (first.ok()) first = driver.fill(blocks[2].data(), kNew, 4096, *stream);
  if (first.ok()) first = driver.synchronize(*stream);
  if (first.ok()) first = driver.pointer_info(blocks[2].data()).status();
  blocks.clear();
  const absl::Status destroyed = driver.destroy_stream(*stream);
  return first.ok() ? destroyed : first;
}

// Every call of the runtime fails once. Each failure is reported with CUDA's name for it, unless it
// was inside a release. Memory is neither freed too early nor leaked, unless CUDA refuses to free
// it.
TEST_F(CudaDriverTest, AFailureOfAnyCallIsReportedOrCounted) {
  std::int64_t calls = 0;
  std::int64_t borne = 0;
  for (std::int64_t n = 1;; ++n) {
    CudaDriver fresh(cuda::fake_runtime());
    fake().failing_call = n;
    const absl::Status status = everyday_use(fresh);
    const bool none_failed = fake().failing_call > 0;
    fake().failing_call = 0;
    fresh.pinned_pages().trim();
    EXPECT_TRUE(fake_device().synchronize_device().ok()) << "call " << n;
    EXPECT_EQ(fresh.live_blocks(), 0) << "call " << n;
    if (none_failed) {
      EXPECT_TRUE(status.ok()) << status;
      calls = n - 1;
      break;
    }
    if (status.ok()) ++borne;
    if (!status.ok()) {
      EXPECT_NE(status.message().find("cudaError"), std::string::npos) << "call " << n << status;
      EXPECT_NE(status.message().find("; "), std::string::npos) << status;
    }
  }
  EXPECT_GT(calls, 30);
  EXPECT_LT(borne, calls / 2);
  // Leaks after a failing free, destroy or unregister are expected; forget them here.
  fake().live_allocations = fake().live_registrations = fake().live_events = 0;
}

TEST_F(CudaDriverTest, OutOfMemoryIsTriedAgainAfterThePoolWasTrimmed) {
  fake().failing_function = "malloc_async";
  fake().failing_call = 1;
  fake().error = 2;
  EXPECT_TRUE(allocate(MemoryKind::kDevice, {.total_bytes = 8}).ok());
}

TEST_F(CudaDriverTest, OutOfMemoryNamesBytesAndCudasError) {
  fake_device().set_capacity(100);
  const absl::Status status = allocate(MemoryKind::kDevice, {.total_bytes = 4096}).status();
  fake_device().set_capacity(INT64_MAX);
  EXPECT_EQ(error_class_of(status), ErrorClass::kMemory);
  for (const std::string part : {"4.0 KiB", "CUDA device", "cudaErrorMemoryAllocation",
                                 "8.0 GiB (8589934592 bytes) are free"}) {
    EXPECT_NE(status.message().find(part), std::string::npos) << status;
  }
}

TEST_F(CudaDriverTest, DeadStreamsAndZeroAreValueErrors) {
  for (const StreamHandle stream : {StreamHandle{0}, StreamHandle{0x1234}}) {
    EXPECT_EQ(error_class_of(driver.check_stream(stream)), ErrorClass::kValue);
    EXPECT_EQ(error_class_of(driver.synchronize(stream)), ErrorClass::kValue);
    EXPECT_EQ(error_class_of(driver.destroy_stream(stream)), ErrorClass::kValue);
  }
  EXPECT_EQ(error_class_of(driver.destroy_stream(1)), ErrorClass::kValue);
}

// --- Fork and the end ----------------------------------------------------------------------------

// In a child: every entry refuses, a release does nothing, and no CUDA function is called.
int use_after_fork(CudaDriver& driver, Block block) {
  const std::int64_t calls = fake().calls;
  const auto unavailable = [](const absl::Status& status) {
    return error_class_of(status) == ErrorClass::kDeviceUnavailable &&
           status.message().find("fork") != std::string::npos;
  };
  if (!unavailable(driver.resource(MemoryKind::kPinned).allocate({.total_bytes = 8}).status())) {
    return 1;
  }
  if (!unavailable(driver.copy(block.data(), block.data(), 8, 1))) return 2;
  if (!unavailable(driver.fill(block.data(), kNew, 8, 1))) return 3;
  if (!unavailable(driver.synchronize(1)) || !unavailable(driver.synchronize_device())) return 4;
  if (!unavailable(driver.order_after(1, 2)) || !unavailable(driver.check_stream(1))) return 5;
  if (!unavailable(driver.create_stream(StreamKind::kBlocking).status())) return 6;
  if (!unavailable(driver.pointer_info(block.data()).status())) return 7;
  if (!unavailable(driver.current_device().status())) return 8;
  driver.note_use(block.data(), 1);
  block = Block();
  return fake().calls == calls ? 0 : 9;
}

TEST_F(CudaDriverTest, AChildAfterForkMakesNoCall) {
  Block block = must_allocate(MemoryKind::kDevice, {.total_bytes = 8});
  EXPECT_EXIT(std::_Exit(use_after_fork(driver, std::move(block))), ::testing::ExitedWithCode(0),
              "");
}

TEST_F(CudaDriverTest, AnExitingProcessMakesNoCall) {
  Block block = must_allocate(MemoryKind::kDevice, {.total_bytes = 8});
  EXPECT_EXIT(
      {
        note_process_exit();
        const std::int64_t calls = fake().calls;
        block = Block();
        std::_Exit(fake().calls == calls ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

// --- The rest ------------------------------------------------------------------------------------

TEST_F(CudaDriverTest, RowsFarApartAreCopiedOneByOne) {
  const std::int64_t pitch = CudaDriver::kLongestPitchBytes + 1;
  const Block block = must_allocate(MemoryKind::kDevice, {.total_bytes = pitch + 8});
  std::vector<std::byte> host(16, kNew);
  const std::int64_t before = fake_device().faults().calls(emulated::Operation::kCopy);
  EXPECT_TRUE(driver.copy_rows({block.data(), pitch, host.data(), 8, 8, 2}, 1).ok());
  EXPECT_EQ(fake_device().faults().calls(emulated::Operation::kCopy) - before, 2);
  std::byte last{};
  EXPECT_TRUE(driver.copy(&last, block.data() + pitch + 7, 1, 1).ok());
  EXPECT_EQ(last, kNew);
}

TEST_F(CudaDriverTest, PointersAndInfoAreTold) {
  const Block device = must_allocate(MemoryKind::kDevice, {.total_bytes = 64});
  const PointerInfo info = *driver.pointer_info(device.data() + 8);
  EXPECT_EQ(info.device.type, DeviceType::kCuda);
  EXPECT_FALSE(info.host_accessible);
  EXPECT_TRUE(driver.owns(device.data()));
  int local = 0;
  EXPECT_EQ(driver.pointer_info(&local)->device.type, DeviceType::kHost);
  EXPECT_FALSE(driver.owns(&local));
  const auto described = driver.info();
  ASSERT_EQ(described.size(), 2U);
  EXPECT_NE(described[0].second.find("Fake GPU, compute capability 9.0, 8.0 GiB"),
            std::string::npos)
      << described[0].second;
}

TEST(FindCudaDevice, SaysWhatWasLookedFor) {
  fake() = {};
  EXPECT_TRUE(find_cuda_device(&cuda::fake_runtime()).ok());
  const absl::Status stub = find_cuda_device(nullptr);
  EXPECT_EQ(error_class_of(stub), ErrorClass::kDeviceUnavailable);
  EXPECT_NE(stub.message().find("install a build with CUDA, use memory of the host"),
            std::string::npos)
      << stub;
  fake().device_count = 0;
  EXPECT_NE(find_cuda_device(&cuda::fake_runtime()).message().find("CUDA_VISIBLE_DEVICES"),
            std::string::npos);
  fake().failing_call = 1;
  fake().error = 35;
  const absl::Status driver = find_cuda_device(&cuda::fake_runtime());
  EXPECT_NE(driver.message().find("install an NVIDIA driver"), std::string::npos) << driver;
  fake() = {};
}

}  // namespace
}  // namespace gridbuf
