#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"

import gridbuf.alloc;
import gridbuf.alloc.host;
import gridbuf.alloc.testing;
import gridbuf.base;
import gridbuf.interface;
import gridbuf.interface.dlpack;
import gridbuf.layout;
import gridbuf.layout.view;

namespace gridbuf::dlpack {
namespace {

alignas(256) std::byte bytes[4096] = {};

BufferDescriptor descriptor(const Extents& shape, const Extents& strides_bytes,
                            std::int64_t offset_bytes = 0) {
  return {.block = bytes,
          .view = {.shape = shape,
                   .strides_bytes = strides_bytes,
                   .offset_bytes = offset_bytes,
                   .itemsize_bytes = 8},
          .dtype = DType(),
          .readonly = false,
          .device = {},
          .owner = {}};
}

using Version = ExportRequest::Version;
using WantedDevice = ExportRequest::WantedDevice;

// --- The struct ----------------------------------------------------------------------------------

TEST(ExportVersioned, SpellsTheDescriptor) {
  const auto made = export_versioned(descriptor({3, 2}, {-32, 8}, 80));
  ASSERT_TRUE(made.ok()) << made.status();
  const DLManagedTensorVersioned& tensor = **made;
  EXPECT_EQ(tensor.version.major, 1U);
  EXPECT_EQ(tensor.version.minor, kMinorVersion);
  EXPECT_EQ(tensor.flags, 0U);
  EXPECT_EQ(tensor.dl_tensor.data, bytes + 80);
  EXPECT_EQ(tensor.dl_tensor.byte_offset, 0U);
  EXPECT_EQ(tensor.dl_tensor.device.device_type, 1);
  EXPECT_EQ(tensor.dl_tensor.device.device_id, 0);
  EXPECT_EQ(tensor.dl_tensor.ndim, 2);
  EXPECT_EQ(tensor.dl_tensor.dtype.code, 2);
  EXPECT_EQ(tensor.dl_tensor.dtype.bits, 64);
  EXPECT_EQ(tensor.dl_tensor.dtype.lanes, 1);
  EXPECT_EQ(tensor.dl_tensor.shape[0], 3);
  EXPECT_EQ(tensor.dl_tensor.shape[1], 2);
  EXPECT_EQ(tensor.dl_tensor.strides[0], -4);
  EXPECT_EQ(tensor.dl_tensor.strides[1], 1);
}

TEST(ExportLegacy, SpellsTheDescriptor) {
  const auto made = export_legacy(descriptor({2, 3}, {8, 16}));
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ((*made)->dl_tensor.data, bytes);
  EXPECT_EQ((*made)->dl_tensor.strides[0], 1);
  EXPECT_EQ((*made)->dl_tensor.strides[1], 2);
}

TEST(ExportVersioned, SetsEveryFlagThatIsTrueAndNoOther) {
  BufferDescriptor array = descriptor({2}, {8});
  EXPECT_EQ((*export_versioned(array, true))->flags, kFlagIsCopied);
  array.readonly = true;
  EXPECT_EQ((*export_versioned(array))->flags, kFlagReadOnly);
  array.view.itemsize_bytes = 1;
  array.dtype = *DType::from_name("float4_e2m1fn");
  EXPECT_EQ((*export_versioned(array, true))->flags,
            kFlagReadOnly | kFlagIsCopied | kFlagSubbytePadded);
}

TEST(ExportVersioned, GivesAnEmptyTensorNullAndDenseStrides) {
  const auto made = export_versioned(descriptor({3, 0, 4}, {7, -5, 13}));
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ((*made)->dl_tensor.data, nullptr);
  EXPECT_EQ((*made)->dl_tensor.strides[0], 4);
  EXPECT_EQ((*made)->dl_tensor.strides[1], 4);
  EXPECT_EQ((*made)->dl_tensor.strides[2], 1);
}

TEST(ExportVersioned, IgnoresStridesOfExtentOne) {
  const auto made = export_versioned(descriptor({1, 2, 1}, {7, 8, -3}));
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ((*made)->dl_tensor.strides[0], 2);
  EXPECT_EQ((*made)->dl_tensor.strides[1], 1);
  EXPECT_EQ((*made)->dl_tensor.strides[2], 1);
}

TEST(ExportVersioned, GivesZeroDimensionsDataAndNothingElse) {
  const auto made = export_versioned(descriptor({}, {}, 24));
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ((*made)->dl_tensor.data, bytes + 24);
  EXPECT_EQ((*made)->dl_tensor.ndim, 0);
  EXPECT_EQ((*made)->dl_tensor.shape, nullptr);
  EXPECT_EQ((*made)->dl_tensor.strides, nullptr);
}

TEST(ExportVersioned, ServesTheMostDimensions) {
  const auto made = export_versioned(descriptor(Extents(kMaxNdim, 1), Extents(kMaxNdim, 3)));
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ((*made)->dl_tensor.ndim, kMaxNdim);
  EXPECT_EQ((*made)->dl_tensor.strides[kMaxNdim - 1], 1);
}

// Every element of the tensor is at the address that the view gives it.
TEST(ExportProperty, AddressesTheSameElements) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 3000; ++round) {
    Extents shape;
    Extents strides;
    const int ndim = static_cast<int>(random() % 5);
    for (int axis = 0; axis < ndim; ++axis) {
      shape.push_back(static_cast<std::int64_t>(random() % 4));
      strides.push_back((static_cast<std::int64_t>(random() % 9) - 4) * 8);
    }
    const BufferDescriptor array = descriptor(shape, strides, 2048);
    const auto made = export_versioned(array);
    ASSERT_TRUE(made.ok());
    const DLTensor& tensor = (*made)->dl_tensor;
    Extents index(ndim, 0);
    for (bool more = !array.is_empty(); more;) {
      std::int64_t elements = 0;
      for (int axis = 0; axis < ndim; ++axis) elements += index[axis] * tensor.strides[axis];
      ASSERT_EQ(static_cast<std::byte*>(tensor.data) + elements * 8,
                array.block + byte_offset(array.view, index))
          << to_string(array.view);
      int axis = ndim - 1;
      while (axis >= 0 && ++index[axis] == shape[axis]) index[axis--] = 0;
      more = axis >= 0;
    }
  }
}

// --- Ownership -----------------------------------------------------------------------------------

struct Memory {
  testing::CountingResource counting{host_resource()};

  BufferDescriptor owned(std::int64_t extent) {
    Block block = *counting.allocate({.total_bytes = extent * 8, .zeroed = true});
    BufferDescriptor array = descriptor({extent}, {8});
    array.block = block.data();
    array.owner = *share(std::move(block));
    return array;
  }
  std::int64_t live() const { return counting.counts().live_blocks; }
};

TEST(ExportOwner, LivesUntilTheDeleterHasRun) {
  Memory memory;
  std::optional<BufferDescriptor> array = memory.owned(10);
  DLManagedTensor* legacy = export_legacy(*array)->release();
  DLManagedTensorVersioned* versioned = export_versioned(*array)->release();
  array.reset();
  EXPECT_EQ(memory.live(), 1);
  legacy->deleter(legacy);
  EXPECT_EQ(memory.live(), 1);
  static_cast<std::byte*>(versioned->dl_tensor.data)[79] = std::byte{1};
  versioned->deleter(versioned);
  EXPECT_EQ(memory.live(), 0);
}

TEST(ExportOwner, IsKeptForEmptyTensorsToo) {
  Memory memory;
  DLManagedTensor* legacy = export_legacy(memory.owned(0))->release();
  EXPECT_EQ(memory.live(), 1);
  legacy->deleter(legacy);
  EXPECT_EQ(memory.live(), 0);
}

TEST(ExportOwner, GoesWithAnUnusedExport) {
  Memory memory;
  {
    const auto made = export_versioned(memory.owned(3));
  }
  EXPECT_EQ(memory.live(), 0);
}

TEST(ExportOwner, DeletersTakeNull) {
  const auto legacy = export_legacy(descriptor({2}, {8}));
  (*legacy)->deleter(nullptr);
  const auto versioned = export_versioned(descriptor({2}, {8}));
  (*versioned)->deleter(nullptr);
}

// Run under ThreadSanitizer: deleters on foreign threads, the memory written by each of them
// before.
TEST(ExportOwner, MayBeDeletedOnAnyThread) {
  Memory memory;
  for (int round = 0; round < 100; ++round) {
    std::vector<std::thread> consumers;
    {
      const BufferDescriptor array = memory.owned(8);
      for (int t = 0; t < 8; ++t) {
        DLManagedTensorVersioned* tensor = export_versioned(array)->release();
        consumers.emplace_back([tensor, t] {
          static_cast<double*>(tensor->dl_tensor.data)[t] = t;
          tensor->deleter(tensor);
        });
      }
    }
    for (std::thread& consumer : consumers) consumer.join();
    ASSERT_EQ(memory.live(), 0);
  }
}

// [example]
// The work of __dlpack__ for an array that needs no copy: negotiate, then export. A capsule takes
// `release()`.
absl::StatusOr<VersionedExport> export_for_version_1(const BufferDescriptor& array) {
  ExportRequest request;
  request.max_version = ExportRequest::Version{1, 0};
  const absl::StatusOr<ExportPlan> plan = negotiate(array, request);
  if (!plan.ok()) return plan.status();
  return export_versioned(array, *plan);
}
// [/example]

TEST(Example, OfTheReadme) {
  const auto made = export_for_version_1(descriptor({3}, {8}));
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ((*made)->version.minor, 0U);
  EXPECT_EQ((*made)->dl_tensor.data, bytes);
}

// --- Refusals ------------------------------------------------------------------------------------

void expect_refused(const BufferDescriptor& array, std::string_view part) {
  for (const absl::Status& status :
       {check_exportable(array), export_legacy(array).status(), export_versioned(array).status(),
        negotiate(array, {.stream = {}, .max_version = {}, .dl_device = {}, .copy = {}})
            .status()}) {
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(error_class_of(status), ErrorClass::kBuffer);
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  }
}

TEST(Refusal, OfSwappedByteOrder) {
  BufferDescriptor array = descriptor({2}, {8});
  array.dtype = array.dtype.byteswapped();
  expect_refused(array, "native byte order");
}

TEST(Refusal, OfTypesWithoutACode) {
  BufferDescriptor array = descriptor({2}, {8});
  for (const char* typestr : {"<M8[ns]", "<m8[s]", "|S8", "<U2", "|V8"}) {
    array.dtype = *DType::from_typestr(typestr);
    expect_refused(array, array.dtype.name());
  }
  array.dtype = *DType::structured(8, "T{i:a:i:b:}", "");
  expect_refused(array, "structured(8)");
}

TEST(Refusal, OfStridesBetweenElements) {
  expect_refused(descriptor({2, 2}, {20, 8}), "stride of axis 0 is 20 bytes");
  expect_refused(descriptor({2, 2}, {8, -4}, 64), "stride of axis 1 is -4 bytes");
  // A stride without a meaning is not refused.
  EXPECT_TRUE(check_exportable(descriptor({1, 2}, {20, 8})).ok());
  EXPECT_TRUE(check_exportable(descriptor({0, 2}, {20, 7})).ok());
}

TEST(Refusal, OfReadOnlyMemoryInALegacyCapsule) {
  BufferDescriptor array = descriptor({2}, {8});
  array.readonly = true;
  EXPECT_EQ(error_class_of(export_legacy(array).status()), ErrorClass::kBuffer);
  EXPECT_NE(export_legacy(array).status().message().find("max_version"), std::string::npos);
  EXPECT_TRUE(export_versioned(array).ok());
}

// --- Negotiation ---------------------------------------------------------------------------------

ExportRequest asking_version(std::int64_t major, std::int64_t minor) {
  ExportRequest request;
  request.max_version = Version{major, minor};
  return request;
}

struct VersionCase {
  std::optional<Version> asked;
  bool versioned;
  std::uint32_t minor;
};

TEST(Negotiate, ChoosesTheVersion) {
  const std::vector<VersionCase> cases{
      {std::nullopt, false, 0},   {Version{0, 8}, false, 0},       {Version{0, 1}, false, 0},
      {Version{-1, 0}, false, 0}, {Version{1, 0}, true, 0},        {Version{1, 1}, true, 1},
      {Version{1, 3}, true, 3},   {Version{1, 99}, true, 3},       {Version{1, -5}, true, 0},
      {Version{2, 0}, true, 3},   {Version{INT64_MAX, 0}, true, 3}};
  for (const VersionCase& one : cases) {
    ExportRequest request;
    request.max_version = one.asked;
    const auto plan = negotiate(descriptor({2}, {8}), request);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(plan->versioned, one.versioned) << (one.asked ? one.asked->major : 0);
    if (one.versioned) EXPECT_EQ(plan->minor_version, one.minor) << one.asked->minor;
  }
}

TEST(Negotiate, NeverStampsAVersionOlderThanTheTypesCode) {
  BufferDescriptor array = descriptor({2}, {1});
  array.view.itemsize_bytes = 1;
  array.dtype = *DType::from_name("float8_e4m3fn");
  EXPECT_EQ(negotiate(array, asking_version(1, 0))->minor_version, 1U);
}

TEST(Negotiate, KeepsSubByteTypesOutOfLegacyCapsules) {
  BufferDescriptor array = descriptor({2}, {1});
  array.view.itemsize_bytes = 1;
  array.dtype = *DType::from_name("float4_e2m1fn");
  EXPECT_EQ(error_class_of(negotiate(array, {}).status()), ErrorClass::kBuffer);
  EXPECT_EQ(error_class_of(export_legacy(array).status()), ErrorClass::kBuffer);
  EXPECT_TRUE(negotiate(array, asking_version(1, 0)).ok());
}

TEST(Negotiate, NeedsAVersionToSayReadOnly) {
  BufferDescriptor array = descriptor({2}, {8});
  array.readonly = true;
  EXPECT_EQ(error_class_of(negotiate(array, {}).status()), ErrorClass::kBuffer);
  EXPECT_TRUE(negotiate(array, asking_version(1, 0)).ok());
  // A copy belongs to the consumer, which may write to it.
  ExportRequest request;
  request.copy = true;
  EXPECT_TRUE(negotiate(array, request)->copy);
}

TEST(Negotiate, CopiesOnlyWhenTold) {
  for (const std::optional<bool> copy :
       {std::optional<bool>(), std::optional(false), std::optional(true)}) {
    ExportRequest request;
    request.copy = copy;
    EXPECT_EQ(negotiate(descriptor({2}, {8}), request)->copy, copy.value_or(false));
  }
}

TEST(Negotiate, CopiesWhatCannotBeSharedAsItIs) {
  ExportRequest request;
  request.copy = true;
  const BufferDescriptor array = descriptor({2}, {12});
  EXPECT_TRUE(negotiate(array, request).ok());
  request.copy = false;
  EXPECT_EQ(error_class_of(negotiate(array, request).status()), ErrorClass::kBuffer);
}

TEST(Negotiate, ServesTheHostOnTheHostOnly) {
  for (const auto& [type, id, served] : std::vector<std::tuple<int, int, bool>>{{1, 0, true},
                                                                                {1, 3, false},
                                                                                {2, 0, false},
                                                                                {13, 0, false},
                                                                                {3, 0, false},
                                                                                {99, 0, false},
                                                                                {0, 0, false},
                                                                                {-1, 0, false}}) {
    ExportRequest request;
    request.dl_device = WantedDevice{type, id};
    const auto plan = negotiate(descriptor({2}, {8}), request);
    EXPECT_EQ(plan.ok(), served) << type << " " << id;
    if (plan.ok()) {
      EXPECT_EQ(plan->device, Device{});
    } else {
      EXPECT_EQ(error_class_of(plan.status()), ErrorClass::kBuffer);
    }
  }
}

TEST(Negotiate, ServesManagedMemoryOnTheHostAfterItsWorkHasEnded) {
  BufferDescriptor array = descriptor({2}, {8});
  array.device = {DeviceType::kCudaManaged, 0};
  ExportRequest request;
  request.dl_device = WantedDevice{1, 0};
  const auto plan = negotiate(array, request);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->device, Device{});
  EXPECT_FALSE(plan->copy);
  EXPECT_EQ(plan->stream_order, StreamOrder::kFinish);
}

TEST(Negotiate, ServesDeviceMemoryOnTheHostAsACopy) {
  BufferDescriptor array = descriptor({2}, {8});
  array.device = {DeviceType::kCuda, 0};
  ExportRequest request;
  request.dl_device = WantedDevice{1, 0};
  const auto plan = negotiate(array, request);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_TRUE(plan->copy);
  EXPECT_EQ(plan->device, Device{});
  EXPECT_EQ(plan->stream_order, StreamOrder::kFinish);
  request.stream = 1;  // The host does not have streams (DP-24).
  EXPECT_EQ(error_class_of(negotiate(array, request).status()), ErrorClass::kValue);
  request.stream.reset();
  request.copy = false;  // DP-21
  EXPECT_EQ(error_class_of(negotiate(array, request).status()), ErrorClass::kBuffer);
  request.copy.reset();
  request.dl_device = WantedDevice{2, 1};
  EXPECT_FALSE(negotiate(array, request).ok());
}

TEST(PlannedExport, IsWhereThePlanSays) {
  BufferDescriptor array = descriptor({3, 2}, {16, 8});
  array.device = {DeviceType::kCudaManaged, 0};
  ExportRequest request = asking_version(1, 1);
  request.dl_device = WantedDevice{1, 0};
  const auto plan = negotiate(array, request);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const auto versioned = export_versioned(array, *plan);
  ASSERT_TRUE(versioned.ok()) << versioned.status();
  EXPECT_EQ((*versioned)->dl_tensor.device.device_type, 1);
  EXPECT_EQ((*versioned)->version.minor, 1U);
  EXPECT_EQ((*versioned)->flags, 0U);
  const auto legacy = export_legacy(array, *plan);
  ASSERT_TRUE(legacy.ok()) << legacy.status();
  EXPECT_EQ((*legacy)->dl_tensor.device.device_type, 1);
}

TEST(DescribeTensor, SaysTheSameAsAnExportAndOwnsNothing) {
  const BufferDescriptor array = descriptor({3, 1, 2}, {-32, 5, 8}, 80);
  Extents strides_elements;
  DLTensor tensor{};
  ASSERT_TRUE(describe_tensor(array, strides_elements, tensor).ok());
  const auto exported = export_versioned(array);
  ASSERT_TRUE(exported.ok());
  const DLTensor& owned = (*exported)->dl_tensor;
  EXPECT_EQ(tensor.data, owned.data);
  EXPECT_EQ(tensor.ndim, owned.ndim);
  EXPECT_EQ(tensor.shape, array.view.shape.data());
  EXPECT_EQ(tensor.strides, strides_elements.data());
  EXPECT_EQ(Extents(std::span<const std::int64_t>(tensor.strides, 3)),
            Extents(std::span<const std::int64_t>(owned.strides, 3)));
  EXPECT_EQ(error_class_of(describe_tensor(descriptor({2}, {12}), strides_elements, tensor)),
            ErrorClass::kBuffer);
}

struct StreamCase {
  DeviceType device;
  std::optional<std::int64_t> asked;
  std::optional<StreamOrder> order;  // nothing: refused
};

TEST(Negotiate, FollowsTheStreamRulesOfEachDevice) {
  constexpr auto kHost = DeviceType::kHost;
  constexpr auto kCuda = DeviceType::kCuda;
  constexpr auto kRocm = DeviceType::kRocm;
  const std::vector<StreamCase> cases{
      {kHost, std::nullopt, StreamOrder::kNothing},
      {kHost, -1, std::nullopt},
      {kHost, 0, std::nullopt},
      {kHost, 1, std::nullopt},
      {kHost, 4096, std::nullopt},
      {kCuda, std::nullopt, StreamOrder::kLegacyDefault},
      {kCuda, -1, StreamOrder::kNothing},
      {kCuda, 0, std::nullopt},
      {kCuda, 1, StreamOrder::kLegacyDefault},
      {kCuda, 2, StreamOrder::kPerThreadDefault},
      {kCuda, 4096, StreamOrder::kHandle},
      {kCuda, -2, std::nullopt},
      {DeviceType::kCudaManaged, 2, StreamOrder::kPerThreadDefault},
      {kRocm, std::nullopt, StreamOrder::kLegacyDefault},
      {kRocm, -1, StreamOrder::kNothing},
      {kRocm, 0, StreamOrder::kLegacyDefault},
      {kRocm, 1, std::nullopt},
      {kRocm, 2, std::nullopt},
      {kRocm, 4096, StreamOrder::kHandle},
  };
  for (const StreamCase& one : cases) {
    BufferDescriptor array = descriptor({2}, {8});
    array.device = {one.device, 0};
    ExportRequest request;
    request.stream = one.asked;
    const auto plan = negotiate(array, request);
    const std::string label = to_string(array.device) + " " +
                              (one.asked ? std::to_string(*one.asked) : std::string("None"));
    ASSERT_EQ(plan.ok(), one.order.has_value()) << label;
    if (!plan.ok()) {
      EXPECT_EQ(error_class_of(plan.status()), ErrorClass::kValue) << label;
      continue;
    }
    EXPECT_EQ(plan->stream_order, *one.order) << label;
    if (*one.order == StreamOrder::kHandle) EXPECT_EQ(plan->stream, 4096U);
  }
}

TEST(Names, AreTheStandards) {
  EXPECT_STREQ(kLegacyName, "dltensor");
  EXPECT_STREQ(kVersionedName, "dltensor_versioned");
  EXPECT_STREQ(kUsedLegacyName, "used_dltensor");
  EXPECT_STREQ(kUsedVersionedName, "used_dltensor_versioned");
}

}  // namespace
}  // namespace gridbuf::dlpack
