#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"

import gridbuf.alloc;
import gridbuf.alloc.host;
import gridbuf.alloc.testing;
import gridbuf.base;
import gridbuf.device;
import gridbuf.device.emulated;
import gridbuf.device.registry;
import gridbuf.storage;
import gridbuf.storage.testing;

namespace gridbuf {
namespace {

using testing::counting;
using testing::moved;
using testing::sliced;
using testing::Values;

constexpr Side kHost = Side::kHost;
constexpr Side kDevice = Side::kDevice;

class StorageTest : public ::testing::Test {
 protected:
  void SetUp() override { before_ = switch_emulated_device(true); }
  void TearDown() override {
    EXPECT_TRUE(driver().synchronize_device().ok());
    switch_emulated_device(before_);
  }

  static EmulatedDriver& driver() { return emulated_driver(); }

  static Storage make(StorageKind kind, const Extents& shape = {4, 5, 6},
                      std::int64_t alignment = 64, const Halo& halo = {}) {
    absl::StatusOr<Storage> made = Storage::allocate(
        {.layout = *make_plan(
             {.shape = shape, .itemsize_bytes = 8, .alignment_bytes = alignment, .halo = halo}),
         .kind = kind,
         .zeroed = true});
    EXPECT_TRUE(made.ok()) << made.status();
    return *std::move(made);
  }
  static Storage managed() { return make(StorageKind::kSoftwareManaged); }

  static absl::Status write(const Storage& storage, Side side, double first) {
    return testing::write_values(storage, side, Coverage::kAll, counting(storage, first));
  }

 private:
  bool before_ = false;
};

Storage fixed(const Storage& storage, int axis, std::int64_t index) {
  IndexMap map(storage.shape());
  map.fix(axis, index);
  return storage.view(map);
}

// --- Kinds ---------------------------------------------------------------------------------------

TEST_F(StorageTest, KindsHaveTheirSidesAndMemory) {
  const Storage cpu = make(StorageKind::kCpu);
  EXPECT_TRUE(cpu.has(kHost) && !cpu.has(kDevice) && !cpu.is_emulated());
  EXPECT_EQ(cpu.memory(kHost).device.type, DeviceType::kHost);
  const Storage gpu = make(StorageKind::kGpu);
  EXPECT_TRUE(!gpu.has(kHost) && gpu.has(kDevice) && gpu.is_emulated());
  EXPECT_EQ(gpu.memory(kDevice).device.type, DeviceType::kCuda);
  const Storage both = managed();
  EXPECT_TRUE(both.has(kHost) && both.has(kDevice));
  EXPECT_EQ(both.memory(kHost).device.type, DeviceType::kCudaHost);
  EXPECT_NE(both.sync_state(), nullptr);
  const Storage cuda = make(StorageKind::kCudaManaged);
  EXPECT_TRUE(cuda.has(kHost) && cuda.has(kDevice));
  EXPECT_EQ(cuda.memory(kHost).block, cuda.memory(kDevice).block);
  for (const Storage& storage : {cpu, gpu, cuda}) EXPECT_EQ(storage.sync_state(), nullptr);
}

TEST_F(StorageTest, AMissingSideIsAnErrorThatNamesWhatToDo) {
  const absl::Status status = make(StorageKind::kGpu).read(kHost);
  EXPECT_EQ(error_class_of(status), ErrorClass::kNoSuchBuffer);
  EXPECT_NE(status.message().find("to_cupy()"), std::string::npos) << status;
  EXPECT_EQ(error_class_of(make(StorageKind::kCpu).begin_write(kDevice, Coverage::kAll)),
            ErrorClass::kNoSuchBuffer);
  EXPECT_EQ(error_class_of(make(StorageKind::kCpu).export_side(kDevice, true).status()),
            ErrorClass::kNoSuchBuffer);
}

TEST_F(StorageTest, EveryKindReadsWhatWasWritten) {
  for (const StorageKind kind : {StorageKind::kCpu, StorageKind::kGpu,
                                 StorageKind::kSoftwareManaged, StorageKind::kCudaManaged}) {
    const Storage storage = make(kind);
    for (const Side writer : {kHost, kDevice}) {
      if (!storage.has(writer)) continue;
      ASSERT_TRUE(write(storage, writer, 7).ok()) << to_string(kind);
      for (const Side reader : {kHost, kDevice}) {
        if (!storage.has(reader)) continue;
        EXPECT_EQ(*testing::read_values(storage, reader), counting(storage, 7)) << to_string(kind);
      }
    }
  }
}

// Kokkos #8277: with one memory, a mark must not cause an endless wait for a copy.
TEST_F(StorageTest, RegressionKokkos8277MarksWhereThereIsOneMemory) {
  for (const StorageKind kind : {StorageKind::kCpu, StorageKind::kGpu, StorageKind::kCudaManaged}) {
    const Storage storage = make(kind);
    EXPECT_TRUE(storage.set_host_modified().ok());
    EXPECT_TRUE(storage.set_device_modified().ok());
    storage.set_synchronized();
    const auto bytes = moved([&] {
      EXPECT_TRUE(storage.synchronize().ok());
      EXPECT_TRUE(storage.device_to_host(true).ok());
      EXPECT_TRUE(storage.host_to_device(true).ok());
    });
    EXPECT_EQ(bytes, std::pair(std::int64_t{0}, std::int64_t{0}));
    EXPECT_TRUE(storage.is_current(storage.has(kHost) ? kHost : kDevice));
  }
}

TEST_F(StorageTest, WithoutADeviceOnlyHostStoragesCanBeMade) {
  switch_emulated_device(false);
  if (device_driver().ok()) GTEST_SKIP() << "this machine has a CUDA device";
  EXPECT_TRUE(Storage::allocate({.kind = StorageKind::kCpu, .zeroed = true}).status().message() !=
              "");
  const StorageRequest request{.layout = *make_plan({.shape = {2}, .itemsize_bytes = 8}),
                               .kind = StorageKind::kGpu};
  EXPECT_EQ(error_class_of(Storage::allocate(request).status()), ErrorClass::kDeviceUnavailable);
}

TEST_F(StorageTest, OutOfMemoryNamesTheRequestAndLeavesNothing) {
  const std::int64_t live = driver().statistics().live_blocks;
  driver().set_capacity(std::int64_t{1} << 20);
  const absl::StatusOr<Storage> made =
      Storage::allocate({.layout = *make_plan({.shape = {300, 300}, .itemsize_bytes = 8}),
                         .kind = StorageKind::kSoftwareManaged});
  driver().set_capacity(INT64_MAX);
  EXPECT_EQ(error_class_of(made.status()), ErrorClass::kMemory);
  for (const char* part : {"(300, 300)", "float64", "layout (0, 1)", "memory device", "720000"}) {
    EXPECT_NE(made.status().message().find(part), std::string::npos) << made.status();
  }
  EXPECT_EQ(driver().statistics().live_blocks, live);
}

TEST_F(StorageTest, ParametersMustFitEachOther) {
  StorageRequest request{.layout = *make_plan({.shape = {2, 3}, .itemsize_bytes = 8})};
  request.layout = Layout(request.layout, {}, {{2, 1}, {0, 0}});
  EXPECT_EQ(error_class_of(Storage::allocate(request).status()), ErrorClass::kValue);
  request.layout = Layout(request.layout, {kDimI, kDimI}, {});
  EXPECT_EQ(error_class_of(Storage::allocate(request).status()), ErrorClass::kValue);
  request.layout = Layout(request.layout, {}, {});
  request.dtype = *DType::from_name("float32");
  EXPECT_EQ(error_class_of(Storage::allocate(request).status()), ErrorClass::kValue);
}

TEST_F(StorageTest, MemoryComesFromTheResourcesGiven) {
  testing::CountingResource host(**memory_resource(MemoryKind::kPinned));
  testing::CountingResource device(**memory_resource(MemoryKind::kDevice));
  const Layout layout = *make_plan({.shape = {2, 3}, .itemsize_bytes = 8});
  {
    const Storage both = *Storage::allocate({.layout = layout,
                                             .kind = StorageKind::kSoftwareManaged,
                                             .zeroed = true,
                                             .resource = &host,
                                             .device_resource = &device});
    const Storage gpu =
        *Storage::allocate({.layout = layout, .kind = StorageKind::kGpu, .resource = &device});
    EXPECT_TRUE(gpu.copy_from(both).ok());
    EXPECT_EQ(host.counts().live_blocks, 1);
    EXPECT_EQ(device.counts().live_blocks, 2);
  }
  EXPECT_EQ(host.counts().live_blocks, 0);
  EXPECT_EQ(device.counts().live_blocks, 0);

  const auto refused = [&](const StorageRequest& request) {
    const absl::Status status = Storage::allocate(request).status();
    EXPECT_EQ(error_class_of(status), ErrorClass::kValue) << status;
    return std::string(status.message());
  };
  EXPECT_NE(refused({.layout = layout, .resource = &device}).find("readable by the host"),
            std::string::npos);
  EXPECT_NE(refused({.layout = layout, .device_resource = &device}).find("one buffer"),
            std::string::npos);
  EXPECT_EQ(device.counts().live_blocks, 0);
}

// --- Views ---------------------------------------------------------------------------------------

TEST_F(StorageTest, ViewsShareMemoryAndState) {
  const Storage storage = managed();
  const Storage view = sliced(fixed(storage, 0, 1), 0, 1, 4);
  EXPECT_EQ(view.shape(), (Extents{3, 6}));
  EXPECT_EQ(view.dims(), (Dims{kDimJ, kDimK}));
  EXPECT_TRUE(view.shares_base(storage));
  EXPECT_EQ(view.sync_state(), storage.sync_state());
  EXPECT_EQ(view.hull(), (Box{{1, 1, 0}, {2, 4, 6}}));
  ASSERT_TRUE(write(view, kHost, 1).ok());
  EXPECT_EQ((*testing::read_values(storage, kDevice))[1 * 30 + 1 * 6], 1);
}

// GT4Py #448: the device's view of a slice was moved by the offset with the wrong sign.
TEST_F(StorageTest, RegressionGt4py448SlicesShowTheSameElementsOnBothSides) {
  const Storage storage = managed();
  ASSERT_TRUE(write(storage, kHost, 0).ok());
  for (const Storage& view :
       {sliced(storage, 0, 2, 4), sliced(storage, 1, 4, -6, -1),
        fixed(sliced(storage, 2, 1, 4), 0, 3), sliced(sliced(storage, 2, 5, 0, -2), 1, 1, 3)}) {
    ASSERT_TRUE(view.read(kDevice).ok());
    EXPECT_EQ(*testing::read_values(view, kHost), *testing::read_values(view, kDevice));
    EXPECT_FALSE(testing::read_values(view, kHost)->empty());
  }
}

// GT4Py #576, #695: slices that drop a dimension kept the base's metadata.
TEST_F(StorageTest, RegressionGt4py576MetadataFollowsTheDimensions) {
  const Storage storage =
      make(StorageKind::kSoftwareManaged, {8, 9, 10}, 64, {{1, 1}, {2, 2}, {3, 0}});
  const Storage plane = fixed(storage, 1, 4);
  EXPECT_EQ(plane.dims(), (Dims{kDimI, kDimK}));
  EXPECT_EQ(plane.halo(), (Halo{{1, 1}, {3, 0}}));
  EXPECT_EQ(plane.aligned_index(), (Extents{1, 3}));
  EXPECT_EQ(plane.layout_map(), (LayoutMap{0, 1}));
  const Storage domain = storage.domain_view();
  EXPECT_EQ(domain.shape(), (Extents{6, 5, 7}));
  EXPECT_EQ(domain.halo(), no_halo(3));
  EXPECT_EQ(domain.hull(), (Box{{1, 2, 3}, {7, 7, 10}}));
}

// GT4Py #31: slices could not be copied.
TEST_F(StorageTest, RegressionGt4py31CopiesOfViewsKeepParametersAndValues) {
  for (const StorageKind kind : {StorageKind::kCpu, StorageKind::kGpu,
                                 StorageKind::kSoftwareManaged, StorageKind::kCudaManaged}) {
    const Storage storage = make(kind);
    const Side side = storage.has(kDevice) ? kDevice : kHost;
    ASSERT_TRUE(write(storage, side, 0).ok());
    IndexMap turned(storage.shape());
    turned.permute({2, 0, 1});
    for (const Storage& view : {storage, fixed(storage, 2, 0), storage.view(turned),
                                sliced(storage, 0, 3, -5, -1), sliced(storage, 1, 2, 2)}) {
      const absl::StatusOr<Storage> copied = view.copy();
      ASSERT_TRUE(copied.ok()) << copied.status();
      EXPECT_EQ(copied->kind(), kind);
      EXPECT_EQ(copied->dims(), view.dims());
      EXPECT_EQ(copied->layout_map(), view.layout_map());
      EXPECT_EQ(copied->halo(), view.halo());
      EXPECT_EQ(copied->alignment_bytes(), view.alignment_bytes());
      EXPECT_FALSE(copied->shares_base(view));
      EXPECT_EQ(*testing::read_values(*copied, side), *testing::read_values(view, side));
    }
  }
}

TEST_F(StorageTest, HaloIsTheHandlesOwnAndNeverMovesMemory) {
  Storage storage = make(StorageKind::kCpu, {8, 8}, 64);
  const Storage other = storage;
  ASSERT_TRUE(storage.set_halo({{1, 2}, {3, 0}}).ok());
  EXPECT_EQ(storage.domain_view().shape(), (Extents{5, 5}));
  EXPECT_EQ(other.halo(), no_halo(2));
  EXPECT_EQ(storage.aligned_index(), (Extents{0, 0}));
  EXPECT_EQ(storage.memory(kHost).block, other.memory(kHost).block);
  EXPECT_EQ(error_class_of(storage.set_halo({{8, 1}, {0, 0}})), ErrorClass::kValue);
  EXPECT_EQ(storage.halo(), (Halo{{1, 2}, {3, 0}}));
}

// Kokkos #4262: a subview of a view without elements lost its other extents.
TEST_F(StorageTest, EmptyStoragesKeepTheirShapeAndMoveNothing) {
  const Storage storage = make(StorageKind::kSoftwareManaged, {0, 5});
  const auto bytes = moved([&] {
    EXPECT_TRUE(write(storage, kHost, 0).ok());
    EXPECT_TRUE(storage.set_device_modified().ok());
    EXPECT_TRUE(storage.synchronize().ok());
    EXPECT_TRUE(storage.device_to_host(true).ok());
    EXPECT_TRUE(storage.export_side(kHost, true).ok());
  });
  EXPECT_EQ(bytes.first + bytes.second, 0);
  EXPECT_EQ(sliced(storage, 1, 0, 3).shape(), (Extents{0, 3}));
  EXPECT_EQ(storage.sync_state()->state(), kSyncClean);
  EXPECT_TRUE(storage.copy().ok());
}

TEST_F(StorageTest, OneElementWithoutDimensionsIsSynchronised) {
  const Storage storage = make(StorageKind::kSoftwareManaged, {});
  ASSERT_TRUE(write(storage, kDevice, 5).ok());
  EXPECT_EQ(*testing::read_values(storage, kHost), (Values{5}));
  EXPECT_EQ(storage.sync_state()->state(), kSyncClean);
}

// --- Synchronisation -----------------------------------------------------------------------------

// [example]
// A program changes one plane on the host and another plane on the device. At its next access each
// side gets exactly the plane that it lacks.
TEST_F(StorageTest, EachSideGetsWhatItLacks) {
  const Storage field = managed();
  EXPECT_TRUE(write(fixed(field, 0, 0), kHost, 100).ok());
  EXPECT_TRUE(write(fixed(field, 0, 3), kDevice, 200).ok());
  EXPECT_EQ(field.sync_state()->state(), kSyncHostDirty | kSyncDeviceDirty);
  constexpr std::int64_t kPlaneBytes = 5 * 6 * 8;
  const auto bytes = moved([&field] {
    EXPECT_TRUE(field.read(Side::kDevice).ok());
    EXPECT_TRUE(field.read(Side::kHost).ok());
  });
  EXPECT_EQ(bytes, std::pair(kPlaneBytes, kPlaneBytes));
  EXPECT_EQ(field.sync_state()->state(), kSyncClean);
}
// [/example]

// Kokkos #2514, Trilinos #8426: to synchronise a subview cleared the flags of all the rest.
TEST_F(StorageTest, ReadingAPartLeavesTheRestDirty) {
  const Storage storage = managed();
  ASSERT_TRUE(write(storage, kDevice, 1).ok());
  ASSERT_TRUE(fixed(storage, 0, 2).read(kHost).ok());
  EXPECT_EQ(storage.sync_state()->state(), kSyncDeviceDirty);
  EXPECT_TRUE(fixed(storage, 0, 2).is_current(kHost));
  EXPECT_FALSE(fixed(storage, 0, 1).is_current(kHost));
  EXPECT_EQ(*testing::read_values(storage, kHost), counting(storage, 1));
}

// Kokkos #3806: a subview that is not contiguous could not be synchronised.
TEST_F(StorageTest, RegressionKokkos3806InteriorsAndStepsAreSynchronised) {
  const Storage storage = managed();
  ASSERT_TRUE(write(storage, kDevice, 0).ok());
  const Storage interior = sliced(sliced(sliced(storage, 0, 1, 3), 1, 1, 4), 2, 2, 5);
  const auto bytes = moved([&] { EXPECT_TRUE(interior.read(kHost).ok()); });
  EXPECT_EQ(bytes.second, interior.nbytes());
  EXPECT_EQ((*testing::peek_values(interior, kHost))[0], 30 + 6 + 2);
  EXPECT_EQ((*testing::peek_values(storage, kHost))[0], 0);
  const Storage stepped = sliced(storage, 2, 0, 6, 2);
  ASSERT_TRUE(write(stepped, kHost, 1000).ok());
  Values expected = counting(storage, 0);
  for (std::size_t i = 0; i < expected.size(); i += 2)
    expected[i] = 1000 + static_cast<double>(i / 2);
  EXPECT_EQ(*testing::read_values(storage, kDevice), expected);
}

// Kokkos #2995: the mirror of a padded view was not padded, so copies to it failed.
TEST_F(StorageTest, RegressionKokkos2995BothBuffersHaveOnePaddedLayout) {
  const Storage storage = make(StorageKind::kSoftwareManaged, {11, 7}, 128);
  EXPECT_EQ(storage.memory(kHost).view, storage.memory(kDevice).view);
  EXPECT_EQ(storage.strides_bytes(), (Extents{128, 8}));
  ASSERT_TRUE(write(storage, kDevice, 1).ok());
  const std::int64_t copies = driver().faults().calls(emulated::Operation::kCopy);
  const auto bytes = moved([&] { EXPECT_TRUE(storage.device_to_host().ok()); });
  EXPECT_EQ(driver().faults().calls(emulated::Operation::kCopy) - copies, 1);
  EXPECT_EQ(bytes.second, 11 * 128);  // one contiguous copy, padding included
  EXPECT_EQ(*testing::peek_values(storage, kHost), counting(storage, 1));
}

// In poison mode padding is not accessed: the bytes go row by row.
TEST_F(StorageTest, PoisonModeCopiesRowsAlone) {
  const Storage storage = make(StorageKind::kSoftwareManaged, {11, 7}, 128);
  ASSERT_TRUE(write(storage, kHost, 1).ok());
  HostOptions options = host_resource().options();
  options.poison = true;
  ASSERT_TRUE(host_resource().configure(options).ok());
  const auto bytes = moved([&] { EXPECT_TRUE(storage.host_to_device().ok()); });
  options.poison = false;
  ASSERT_TRUE(host_resource().configure(options).ok());
  EXPECT_EQ(bytes.first, storage.nbytes());
  EXPECT_EQ(*testing::read_values(storage, kDevice), counting(storage, 1));
}

// GT4Py #409: dirty storages were kept in one dictionary, and touching any of them cleared it.
TEST_F(StorageTest, RegressionGt4py409StatesAreThoseOfTheirBases) {
  const Storage a = managed();
  const Storage b = managed();
  ASSERT_TRUE(write(a, kDevice, 1).ok());
  ASSERT_TRUE(write(b, kDevice, 2).ok());
  ASSERT_TRUE(a.read(kHost).ok());
  EXPECT_EQ(a.sync_state()->state(), kSyncClean);
  EXPECT_EQ(b.sync_state()->state(), kSyncDeviceDirty);
  EXPECT_EQ(*testing::read_values(b, kHost), counting(b, 2));
}

// GT4Py #453: to assign values of the device copied both storages in both directions.
TEST_F(StorageTest, RegressionGt4py453DeviceValuesStayOnTheDevice) {
  const Storage source = managed();
  const Storage target = managed();
  ASSERT_TRUE(write(source, kDevice, 3).ok());
  const auto bytes = moved([&] { EXPECT_TRUE(target.copy_from(source).ok()); });
  EXPECT_EQ(bytes, std::pair(std::int64_t{0}, std::int64_t{0}));
  EXPECT_EQ(target.sync_state()->state(), kSyncDeviceDirty);
  EXPECT_EQ(*testing::read_values(target, kHost), counting(target, 3));
}

TEST_F(StorageTest, CopiesBetweenKindsAndWithinOne) {
  const std::vector<StorageKind> kinds{StorageKind::kCpu, StorageKind::kGpu,
                                       StorageKind::kSoftwareManaged, StorageKind::kCudaManaged};
  for (const StorageKind to : kinds) {
    for (const StorageKind from : kinds) {
      const Storage target = make(to);
      const Storage source = make(from, {4, 5, 6}, 1);
      ASSERT_TRUE(write(source, source.has(kHost) ? kHost : kDevice, 9).ok());
      ASSERT_TRUE(target.copy_from(source).ok()) << to_string(to) << " from " << to_string(from);
      EXPECT_EQ(*testing::read_values(target, target.has(kDevice) ? kDevice : kHost),
                counting(source, 9));
    }
    const Storage same = make(to, {6});
    const Side side = same.has(kDevice) ? kDevice : kHost;
    ASSERT_TRUE(write(same, side, 0).ok());
    ASSERT_TRUE(sliced(same, 0, 1, 6).copy_from(sliced(same, 0, 0, 5)).ok());
    EXPECT_EQ(*testing::read_values(same, side), (Values{0, 0, 1, 2, 3, 4}));
  }
  EXPECT_EQ(error_class_of(make(StorageKind::kCpu, {2}).copy_from(make(StorageKind::kCpu, {3}))),
            ErrorClass::kValue);
}

TEST_F(StorageTest, AWriteThatCoversItsBoxCopiesNothing) {
  const Storage storage = managed();
  ASSERT_TRUE(write(storage, kHost, 1).ok());
  const auto bytes = moved([&] { EXPECT_TRUE(write(storage, kDevice, 2).ok()); });
  EXPECT_EQ(bytes.first, 0);
  EXPECT_EQ(storage.sync_state()->state(), kSyncDeviceDirty);
  const auto partly = moved([&] {
    EXPECT_TRUE(storage.begin_write(kHost, Coverage::kPart).ok());
    storage.end_write(kHost);
  });
  EXPECT_GT(partly.second, 0);
}

TEST_F(StorageTest, ExplicitSyncsActOnTheWholeBase) {
  const Storage storage = managed();
  ASSERT_TRUE(write(fixed(storage, 0, 0), kHost, 1).ok());
  ASSERT_TRUE(write(fixed(storage, 0, 3), kDevice, 2).ok());
  ASSERT_TRUE(fixed(storage, 0, 1).device_to_host().ok());
  EXPECT_EQ(storage.sync_state()->state(), kSyncHostDirty);
  ASSERT_TRUE(storage.synchronize().ok());
  EXPECT_EQ(storage.sync_state()->state(), kSyncClean);
  const auto bytes = moved([&] { EXPECT_TRUE(storage.synchronize().ok()); });
  EXPECT_EQ(bytes.first + bytes.second, 0);
}

TEST_F(StorageTest, ForceCopiesEverythingAndGivesOneSideUp) {
  const Storage storage = managed();
  ASSERT_TRUE(write(storage, kDevice, 1).ok());
  ASSERT_TRUE(storage.device_to_host().ok());
  ASSERT_TRUE(write(storage, kHost, 500).ok());
  ASSERT_TRUE(storage.device_to_host(true).ok());
  EXPECT_EQ(storage.sync_state()->state(), kSyncClean);
  EXPECT_EQ(*testing::read_values(storage, kHost), counting(storage, 1));
}

TEST_F(StorageTest, MarksThatOverlapAreAConflictAndChangeNothing) {
  const Storage storage = managed();
  ASSERT_TRUE(sliced(storage, 0, 0, 2).set_host_modified().ok());
  const absl::Status status = sliced(storage, 0, 1, 3).set_device_modified();
  EXPECT_EQ(error_class_of(status), ErrorClass::kSyncConflict);
  EXPECT_NE(status.message().find("[1:2, 0:5, 0:6]"), std::string::npos) << status;
  EXPECT_EQ(storage.sync_state()->state(), kSyncHostDirty);
  EXPECT_TRUE(sliced(storage, 0, 2, 4).set_device_modified().ok());
  EXPECT_EQ(storage.sync_state()->state(), kSyncHostDirty | kSyncDeviceDirty);
  storage.set_synchronized();
  EXPECT_EQ(storage.sync_state()->state(), kSyncClean);
}

TEST_F(StorageTest, MoreThanSixteenBoxesMakeRoomByCopying) {
  const Storage storage = make(StorageKind::kSoftwareManaged, {80});
  for (std::int64_t i = 0; i < 40; ++i) {
    const Side side = i % 2 == 0 ? kHost : kDevice;
    ASSERT_TRUE(write(sliced(storage, 0, 2 * i, 2 * i + 1), side, static_cast<double>(i + 1)).ok());
  }
  Values expected(80);
  for (std::size_t i = 0; i < 40; ++i) expected[2 * i] = static_cast<double>(i + 1);
  EXPECT_EQ(*testing::read_values(storage, kHost), expected);
  EXPECT_EQ(*testing::read_values(storage, kDevice), expected);
}

// --- Transfers -----------------------------------------------------------------------------------

struct HaloCase {
  const char* name;
  Halo halo;
  LayoutMap layout;
};

class HaloUpdate : public StorageTest, public ::testing::WithParamInterface<HaloCase> {};

// Both ends of every dimension with a halo are written on one side and read on the opposite side.
TEST_P(HaloUpdate, MovesTheHalosBytesAndNoMore) {
  const Extents shape{512, 512, 80};
  const absl::StatusOr<Layout> plan = make_plan({.shape = shape,
                                                 .itemsize_bytes = 8,
                                                 .layout = GetParam().layout,
                                                 .alignment_bytes = 64,
                                                 .aligned_index = {},
                                                 .halo = GetParam().halo});
  const absl::StatusOr<Storage> made =
      Storage::allocate({.layout = *plan, .kind = StorageKind::kSoftwareManaged, .zeroed = true});
  ASSERT_TRUE(made.ok()) << made.status();
  const Storage& field = *made;
  const std::int64_t halo_bytes = field.nbytes() - field.domain_view().nbytes();
  for (const Side writer : {kHost, kDevice}) {
    for (int axis = 0; axis < 3; ++axis) {
      const HaloWidth width = field.halo()[axis];
      if (width.lower == 0) continue;
      for (const auto& [start, stop] : {std::pair(std::int64_t{0}, width.lower),
                                        std::pair(shape[axis] - width.upper, shape[axis])}) {
        const Storage end = sliced(field, axis, start, stop);
        ASSERT_TRUE(end.begin_write(writer, Coverage::kAll).ok());
        end.end_write(writer);
      }
    }
    const auto [up, down] = moved([&] { ASSERT_TRUE(field.read(other(writer)).ok()); });
    const std::int64_t bytes = writer == kHost ? up : down;
    EXPECT_GE(bytes, halo_bytes);
    EXPECT_LE(static_cast<double>(bytes), 1.2 * static_cast<double>(halo_bytes));
    EXPECT_EQ(writer == kHost ? down : up, 0);
    EXPECT_EQ(field.sync_state()->state(), kSyncClean);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, HaloUpdate,
    ::testing::Values(HaloCase{"ij_k_contiguous", {{3, 3}, {3, 3}, {0, 0}}, {0, 1, 2}},
                      HaloCase{"ijk_k_contiguous", {{3, 3}, {3, 3}, {3, 3}}, {0, 1, 2}},
                      HaloCase{"ij_i_contiguous", {{3, 3}, {3, 3}, {0, 0}}, {2, 1, 0}},
                      HaloCase{"ijk_i_contiguous", {{3, 3}, {3, 3}, {3, 3}}, {2, 1, 0}}),
    [](const auto& info) { return std::string(info.param.name); });

// Kokkos #3567: strided parts could not be copied without a temporary.
TEST_F(StorageTest, RegressionKokkos3567NarrowRowsCrossInOneCopy) {
  const Storage field = make(StorageKind::kSoftwareManaged, {40, 50, 80});
  ASSERT_TRUE(write(field, kDevice, 0).ok());
  const Storage end = sliced(field, 2, 0, 3);
  const std::int64_t copies = driver().faults().calls(emulated::Operation::kCopy);
  const auto bytes = moved([&] { EXPECT_TRUE(end.read(kHost).ok()); });
  EXPECT_EQ(bytes.second, end.nbytes());
  EXPECT_LE(driver().faults().calls(emulated::Operation::kCopy) - copies, 2);
  EXPECT_EQ(*testing::peek_values(end, kHost), *testing::read_values(end, kDevice));
}

// --- Lateness ------------------------------------------------------------------------------------

// A missing wait for a stream, or a missing order of two streams, gives old values here.
TEST_F(StorageTest, NeverStaleAcrossStreams) {
  for (const StorageKind kind :
       {StorageKind::kGpu, StorageKind::kSoftwareManaged, StorageKind::kCudaManaged}) {
    const Storage storage = make(kind);
    std::vector<StreamHandle> streams;
    for (int i = 0; i < 3; ++i)
      streams.push_back(*driver().create_stream(StreamKind::kNonBlocking));
    for (std::size_t i = 0; i < 9; ++i) {
      {
        const ScopedStream scope(streams[i % 3]);
        ASSERT_TRUE(write(storage, kDevice, static_cast<double>(i)).ok());
      }
      const ScopedStream scope(streams[(i + 1) % 3]);
      if (i % 2 == 0) {
        EXPECT_EQ(*testing::read_values(storage, kDevice),
                  counting(storage, static_cast<double>(i)));
      }
      if (storage.has(kHost)) {
        EXPECT_EQ(*testing::read_values(storage, kHost), counting(storage, static_cast<double>(i)));
        ASSERT_TRUE(write(storage, kHost, 100 + static_cast<double>(i)).ok());
        EXPECT_EQ(*testing::read_values(storage, kDevice),
                  counting(storage, 100 + static_cast<double>(i)));
      }
    }
    for (const StreamHandle stream : streams) ASSERT_TRUE(driver().destroy_stream(stream).ok());
    // The last stream is destroyed, but its work is pending.
    EXPECT_TRUE(storage.read(kDevice).ok());
  }
}

// A kernel that uses the storage that waits for it gets an error, not a deadlock.
TEST_F(StorageTest, AKernelThatAsksForItsOwnStorageIsAnError) {
  const Storage storage = managed();
  absl::Status inner;
  ASSERT_TRUE(storage.begin_write(kDevice, Coverage::kAll).ok());
  ASSERT_TRUE(driver()
                  .launch(current_stream(),
                          [&](KernelMemory&) {
                            inner = storage.read(kHost);
                            return absl::OkStatus();
                          })
                  .ok());
  storage.end_write(kDevice);
  EXPECT_TRUE(storage.read(kHost).ok());
  EXPECT_EQ(error_class_of(inner), ErrorClass::kInternal);
  EXPECT_NE(inner.message().find("kernel"), std::string::npos) << inner;
}

// --- Exports -------------------------------------------------------------------------------------

TEST_F(StorageTest, OneSidesExportsArePresumedToWrite) {
  const Storage storage = managed();
  absl::StatusOr<Owner> numpy = storage.export_side(kHost, true);
  ASSERT_TRUE(numpy.ok());
  for (const double first : {10.0, 20.0}) {
    ASSERT_TRUE(testing::poke_values(storage, kHost, counting(storage, first)).ok());
    EXPECT_FALSE(storage.is_current(kDevice));
    EXPECT_EQ(*testing::read_values(storage, kDevice), counting(storage, first));
  }
  ASSERT_TRUE(testing::poke_values(storage, kHost, counting(storage, 30)).ok());
  numpy = Owner();
  EXPECT_EQ(storage.sync_state()->state(), kSyncHostDirty);
  EXPECT_EQ(*testing::read_values(storage, kDevice), counting(storage, 30));
  EXPECT_TRUE(storage.is_ready(kDevice));
}

TEST_F(StorageTest, DeviceExportsMayWriteOnAnyStream) {
  for (const StorageKind kind : {StorageKind::kSoftwareManaged, StorageKind::kCudaManaged}) {
    const Storage storage = make(kind);
    const StreamHandle unknown = *driver().create_stream(StreamKind::kNonBlocking);
    absl::StatusOr<Owner> tensor = storage.export_side(kDevice, true);
    ASSERT_TRUE(tensor.ok());
    // As consumers do: orders the stream that the export names before the consumer's stream.
    const auto poke = [&](double first) {
      ASSERT_TRUE(driver().order_after(current_stream(), unknown).ok());
      const ScopedStream scope(unknown);
      ASSERT_TRUE(testing::poke_values(storage, kDevice, counting(storage, first)).ok());
    };
    poke(10);
    EXPECT_EQ(*testing::read_values(storage, kHost), counting(storage, 10)) << to_string(kind);
    poke(20);
    tensor = Owner();
    EXPECT_EQ(*testing::read_values(storage, kHost), counting(storage, 20)) << to_string(kind);
    ASSERT_TRUE(driver().destroy_stream(unknown).ok());
  }
}

TEST_F(StorageTest, WithExportsOnBothSidesMarksDecide) {
  const Storage storage = managed();
  const absl::StatusOr<Owner> numpy = storage.export_side(kHost, true);
  const absl::StatusOr<Owner> tensor = storage.export_side(kDevice, true);
  ASSERT_TRUE(numpy.ok() && tensor.ok());
  ASSERT_TRUE(testing::poke_values(storage, kHost, counting(storage, 10)).ok());
  EXPECT_EQ((*testing::read_values(storage, kDevice))[0], 0);
  ASSERT_TRUE(storage.set_host_modified().ok());
  EXPECT_EQ(*testing::read_values(storage, kDevice), counting(storage, 10));
}

TEST_F(StorageTest, ReadOnlyExportsAndThoseOfOneMemoryCountForNothing) {
  const Storage storage = managed();
  const absl::StatusOr<Owner> reader = storage.export_side(kHost, false);
  ASSERT_TRUE(reader.ok());
  EXPECT_TRUE(storage.is_current(kDevice));
  EXPECT_TRUE(storage.sync_state()->is_surely_current(kDevice));
  EXPECT_TRUE(make(StorageKind::kCpu).export_side(kHost, true).ok());
}

TEST_F(StorageTest, UnknownExportsCountForEver) {
  const Storage storage = managed();
  fixed(storage, 0, 1).note_unknown_export(kHost);
  for (const double first : {1.0, 2.0}) {
    const Storage plane = fixed(storage, 0, 1);
    ASSERT_TRUE(testing::poke_values(plane, kHost, counting(plane, first)).ok());
    const auto bytes = moved([&] { ASSERT_TRUE(storage.read(kDevice).ok()); });
    EXPECT_EQ(bytes.first, plane.nbytes());
    EXPECT_EQ(*testing::read_values(plane, kDevice), counting(plane, first));
  }
}

TEST_F(StorageTest, AnExportKeepsTheMemory) {
  Owner owner;
  const double* first = nullptr;
  {
    const Storage storage = managed();
    ASSERT_TRUE(write(storage, kDevice, 42).ok());
    owner = *storage.export_side(kHost, true);
    first = reinterpret_cast<const double*>(storage.memory(kHost).first_element());
  }
  EXPECT_EQ(*first, 42);
}

// Counted exports of the buffer protocol, which keep the storage by other means.
TEST_F(StorageTest, CountedExportsWithoutAnOwner) {
  const Storage storage = managed();
  const Storage plane = fixed(storage, 0, 0);
  plane.add_export(kHost);
  plane.add_export(kHost);
  plane.drop_export(kHost);
  ASSERT_TRUE(testing::poke_values(plane, kHost, counting(plane, 7)).ok());
  EXPECT_EQ(*testing::read_values(plane, kDevice), counting(plane, 7));
  plane.drop_export(kHost);
  EXPECT_EQ(storage.sync_state()->state(), kSyncHostDirty);
  EXPECT_TRUE(storage.synchronize().ok());
  EXPECT_TRUE(storage.is_ready(kDevice));
}

// Writes through an export next to a box that is dirty on the opposite side are not lost: boxes are
// not merged across exports.
TEST_F(StorageTest, MergingNeverReachesIntoWhatAnExportHolds) {
  const Storage storage = make(StorageKind::kSoftwareManaged, {100});
  absl::StatusOr<Owner> numpy = storage.export_side(kHost, true);
  ASSERT_TRUE(numpy.ok());
  ASSERT_TRUE(write(sliced(storage, 0, 0, 10), kDevice, 1).ok());
  ASSERT_TRUE(write(sliced(storage, 0, 11, 21), kDevice, 1).ok());  // 21 points around 20
  const Storage between = sliced(storage, 0, 10, 11);
  ASSERT_TRUE(testing::poke_values(between, kHost, {-5}).ok());
  ASSERT_TRUE(storage.synchronize().ok());
  EXPECT_EQ(*testing::read_values(between, kHost), (Values{-5}));
  EXPECT_EQ(*testing::read_values(between, kDevice), (Values{-5}));
}

// The first export of the opposite side ends the presumption; earlier writes are kept.
TEST_F(StorageTest, ANewExportOnTheOtherSideLosesNothing) {
  const Storage storage = managed();
  const absl::StatusOr<Owner> numpy = storage.export_side(kHost, true);
  ASSERT_TRUE(numpy.ok());
  ASSERT_TRUE(testing::poke_values(storage, kHost, counting(storage, 5)).ok());
  const absl::StatusOr<Owner> tensor = fixed(storage, 0, 2).export_side(kDevice, true);
  ASSERT_TRUE(tensor.ok());
  EXPECT_EQ(storage.sync_state()->state(), kSyncHostDirty);
  EXPECT_EQ(*testing::read_values(storage, kDevice), counting(storage, 5));
}

// --- Failures ------------------------------------------------------------------------------------

// Every operation of the driver fails once, in every kind of access. State and values are as
// before, the next access succeeds, and nothing stays allocated.
TEST_F(StorageTest, AFailureOfAnyOperationLeavesEverythingAsItWas) {
  const StreamHandle another = *driver().create_stream(StreamKind::kNonBlocking);
  for (const Side target : {kHost, kDevice}) {
    for (int access = 0; access < 4; ++access) {
      int failures = 0;
      for (std::int64_t n = 1;; ++n) {
        const Storage storage = make(StorageKind::kSoftwareManaged, {40, 50, 8});
        ASSERT_TRUE(write(storage, kHost, 0).ok() && storage.synchronize().ok());
        // Two boxes: one to be packed, one not.
        ASSERT_TRUE(write(sliced(storage, 2, 0, 2), other(target), 5000).ok());
        ASSERT_TRUE(write(sliced(storage, 2, 4, 8), other(target), 9000).ok());
        const Values expected = *testing::peek_values(storage, other(target));
        const Values before = *testing::peek_values(storage, target);
        const int state = storage.sync_state()->state();
        ASSERT_TRUE(driver().synchronize_device().ok());
        const std::int64_t live = driver().statistics().live_blocks;
        const std::int64_t fault = driver().faults().inject(
            {.first_call = n, .error = make_error(ErrorClass::kInternal, "injected")});
        absl::Status status;
        {
          const ScopedStream scope(another);
          switch (access) {
            case 0:
              status = storage.read(target);
              break;
            case 1:
              status = target == kHost ? storage.device_to_host() : storage.host_to_device();
              break;
            case 2:
              status = storage.begin_write(target, Coverage::kPart);
              break;
            default:
              status = storage.export_side(target, true).status();
          }
        }
        driver().faults().remove(fault);
        if (status.ok()) break;
        ++failures;
        EXPECT_NE(status.message().find("injected"), std::string::npos) << status;
        EXPECT_EQ(storage.sync_state()->state(), state) << n;
        EXPECT_EQ(*testing::read_values(storage, target), expected) << n;
        EXPECT_EQ(*testing::read_values(storage, other(target)), expected) << n;
        EXPECT_EQ(driver().statistics().live_blocks, live);
      }
      EXPECT_GE(failures, 5);  // streams are ordered, staged, copied and waited for
    }
  }
  ASSERT_TRUE(driver().destroy_stream(another).ok());
}

// The copy is enqueued and fails when it runs.
TEST_F(StorageTest, ACopyThatFailsOnTheStreamChangesNothing) {
  for (const Side target : {kHost, kDevice}) {
    const Storage storage = managed();
    ASSERT_TRUE(write(storage, other(target), 5).ok());
    const int state = storage.sync_state()->state();
    const std::int64_t fault =
        driver().faults().inject({.operation = emulated::Operation::kCopy,
                                  .error = make_error(ErrorClass::kInternal, "injected"),
                                  .when_run = true});
    EXPECT_FALSE(storage.read(target).ok());
    driver().faults().remove(fault);
    EXPECT_EQ(storage.sync_state()->state(), state);
    EXPECT_EQ(*testing::read_values(storage, target), counting(storage, 5));
  }
}

// The enqueued work of a failed transfer must not overwrite later writes.
TEST_F(StorageTest, ATransferThatWasNotWaitedForWritesNothingLater) {
  const Storage storage = managed();
  ASSERT_TRUE(write(storage, kDevice, 5).ok());
  ASSERT_TRUE(driver().synchronize_device().ok());
  const std::int64_t fault =
      driver().faults().inject({.operation = emulated::Operation::kSynchronize,
                                .call_count = 1,
                                .error = make_error(ErrorClass::kInternal, "injected")});
  EXPECT_FALSE(storage.read(kHost).ok());  // the copy is enqueued, the wait fails
  driver().faults().remove(fault);
  ASSERT_TRUE(write(storage, kHost, 700).ok());
  ASSERT_TRUE(driver().synchronize_device().ok());
  EXPECT_EQ(*testing::peek_values(storage, kHost), counting(storage, 700));
}

// --- Existing memory -----------------------------------------------------------------------------

class WrapTest : public StorageTest {
 protected:
  static StorageParts parts_of(const Storage& storage) {
    StorageParts parts{.kind = storage.kind(), .sync = storage.sync_state()};
    if (storage.has(kHost)) parts.host = storage.array(kHost);
    if (storage.has(kDevice) && storage.kind() != StorageKind::kCudaManaged) {
      parts.device = storage.array(kDevice);
    }
    return parts;
  }
};

TEST_F(WrapTest, EveryKindSharesMemory) {
  for (const StorageKind kind : {StorageKind::kCpu, StorageKind::kGpu,
                                 StorageKind::kSoftwareManaged, StorageKind::kCudaManaged}) {
    const Storage storage = make(kind);
    const absl::StatusOr<Storage> wrapped = Storage::wrap(parts_of(storage));
    ASSERT_TRUE(wrapped.ok()) << wrapped.status();
    const Side side = storage.has(kDevice) ? kDevice : kHost;
    ASSERT_TRUE(write(*wrapped, side, 3).ok());
    EXPECT_EQ(wrapped->sync_state(), storage.sync_state());
    EXPECT_EQ(wrapped->layout_map(), storage.layout_map());
    EXPECT_EQ(*testing::read_values(storage, side), counting(storage, 3));
  }
}

TEST_F(WrapTest, AStateSaysWhichOfTwoBuffersIsCurrent) {
  const Storage host = make(StorageKind::kCpu, {4, 5, 6}, 1);
  const Storage device = make(StorageKind::kGpu);
  ASSERT_TRUE(write(host, kHost, 1).ok() && write(device, kDevice, 1000).ok());
  StorageParts parts{.host = host.array(kHost),
                     .device = device.array(kDevice),
                     .kind = StorageKind::kSoftwareManaged};
  EXPECT_EQ(error_class_of(Storage::wrap(parts).status()), ErrorClass::kValue);
  parts.sync = *SyncState::make(kSyncDeviceDirty);
  const absl::StatusOr<Storage> wrapped = Storage::wrap(parts);
  ASSERT_TRUE(wrapped.ok()) << wrapped.status();
  EXPECT_EQ(*testing::read_values(*wrapped, kHost), counting(host, 1000));
  ASSERT_TRUE(write(fixed(*wrapped, 0, 1), kHost, 5).ok());
  EXPECT_EQ(*testing::read_values(fixed(*wrapped, 0, 1), kDevice),
            counting(fixed(*wrapped, 0, 1), 5));
}

TEST_F(WrapTest, AStateBelongsToOneBaseForGood) {
  const Storage storage = managed();
  StorageParts parts = parts_of(managed());
  parts.sync = storage.sync_state();
  EXPECT_EQ(error_class_of(Storage::wrap(parts).status()), ErrorClass::kValue);
  EXPECT_EQ(error_class_of(SyncState::make(3).status()), ErrorClass::kValue);
  EXPECT_EQ(error_class_of(SyncState::make(-1).status()), ErrorClass::kValue);
}

TEST_F(WrapTest, AMissingBufferIsMadeAndTheGivenOneIsTheNewer) {
  const Storage host = make(StorageKind::kCpu);
  ASSERT_TRUE(write(host, kHost, 8).ok());
  const absl::StatusOr<Storage> wrapped =
      Storage::wrap({.host = host.array(kHost), .kind = StorageKind::kSoftwareManaged});
  ASSERT_TRUE(wrapped.ok()) << wrapped.status();
  EXPECT_EQ(wrapped->sync_state()->state(), kSyncHostDirty);
  EXPECT_EQ(*testing::read_values(*wrapped, kDevice), counting(host, 8));
  EXPECT_EQ(wrapped->memory(kHost).block, host.memory(kHost).block);
}

TEST_F(WrapTest, WhatDoesNotFitIsRefused) {
  const Storage host = make(StorageKind::kCpu);
  const Storage device = make(StorageKind::kGpu);
  const auto refused = [](const StorageParts& parts) {
    return error_class_of(Storage::wrap(parts).status()) == ErrorClass::kValue;
  };
  EXPECT_TRUE(refused({.kind = StorageKind::kCpu}));
  EXPECT_TRUE(refused({.host = device.array(kDevice), .kind = StorageKind::kCpu}));
  EXPECT_TRUE(refused({.device = host.array(kHost), .kind = StorageKind::kGpu}));
  EXPECT_TRUE(refused({.host = host.array(kHost), .kind = StorageKind::kCudaManaged}));
  const Array sound = host.array(kHost);
  const BufferDescriptor& memory = sound.memory();
  const Array named(memory, Layout(sound.layout(), {kDimI}, {}));
  EXPECT_TRUE(refused({.host = named, .kind = StorageKind::kCpu}));
  const Array aligned(memory, Layout(memory.view, {0, 1, 2}, 64, {0, 0, 1}, {}, {}));
  EXPECT_TRUE(refused({.host = aligned, .kind = StorageKind::kCpu}));
  EXPECT_TRUE(
      refused({.host = host.array(kHost), .kind = StorageKind::kCpu, .sync = *SyncState::make()}));
  EXPECT_TRUE(refused({.host = host.array(kHost),
                       .device = make(StorageKind::kGpu, {4, 5}).array(kDevice),
                       .kind = StorageKind::kSoftwareManaged,
                       .sync = *SyncState::make()}));
}

TEST_F(WrapTest, MemoryThatMustNotBeWrittenIsNot) {
  const Storage host = make(StorageKind::kCpu);
  const Array array = host.array(kHost).as_readonly();
  const Storage wrapped = *Storage::wrap({.host = array, .kind = StorageKind::kCpu});
  EXPECT_TRUE(wrapped.readonly());
  EXPECT_TRUE(wrapped.read(kHost).ok());
  EXPECT_EQ(error_class_of(wrapped.begin_write(kHost, Coverage::kAll)), ErrorClass::kValue);
  const Storage pair = *Storage::wrap({.host = array, .kind = StorageKind::kSoftwareManaged});
  ASSERT_TRUE(write(pair, kDevice, 1).ok());
  EXPECT_EQ(error_class_of(pair.read(kHost)), ErrorClass::kValue);
}

}  // namespace
}  // namespace gridbuf
