#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// libstdc++ has no mdspan yet; CUDA's is one for the host, too.
#if __has_include(<cuda/std/mdspan>)
#include <cuda/std/mdspan>
#endif

import gridbuf.alloc.host;
import gridbuf.alloc.testing;
import gridbuf.array;
import gridbuf.device.registry;

namespace gridbuf {
namespace {

LayoutRequest padded_field() {
  return {.shape = {3, 4, 5},
          .layout = {2, 1, 0},
          .alignment_bytes = 64,
          .aligned_index = {1, 1, 0},
          .halo = {{1, 1}, {1, 1}, {0, 0}}};
}

class ArrayTest : public ::testing::Test {
 protected:
  void SetUp() override { before_ = switch_emulated_device(true); }
  void TearDown() override { switch_emulated_device(before_); }

 private:
  bool before_ = false;
};

// Writes 0, 1, 2, ... in row-major order.
void count_up(const Array& array) {
  const Elements<double> elements = *array.elements<double>();
  double next = 0;
  for (std::int64_t i = 0; i < array.shape()[0]; ++i)
    for (std::int64_t j = 0; j < array.shape()[1]; ++j)
      for (std::int64_t k = 0; k < array.shape()[2]; ++k) elements(i, j, k) = next++;
}

bool is_counted(const Array& array) {
  const Elements<const double> elements = *array.elements<const double>();
  double next = 0;
  for (std::int64_t i = 0; i < array.shape()[0]; ++i)
    for (std::int64_t j = 0; j < array.shape()[1]; ++j)
      for (std::int64_t k = 0; k < array.shape()[2]; ++k)
        if (elements(i, j, k) != next++) return false;
  return true;
}

TEST_F(ArrayTest, NewMemoryIsLaidOutAndAlignedAsRequested) {
  const Array array = *Array::zeros(padded_field());
  EXPECT_EQ(array.shape(), (Extents{3, 4, 5}));
  EXPECT_EQ(array.layout().dims(), (Dims{kDimI, kDimJ, kDimK}));
  EXPECT_EQ(array.layout().strides_bytes(), (Extents{8, 64, 256}));
  EXPECT_EQ(array.memory().view, array.layout().view());
  const auto address = reinterpret_cast<std::uintptr_t>(array.memory().first_element());
  EXPECT_EQ((address + 8 + 64) % 64, 0);
  EXPECT_EQ((*array.elements<const double>())(2, 3, 4), 0);
}

TEST_F(ArrayTest, FullFillsEveryKindOfMemory) {
  for (const MemoryKind kind :
       {MemoryKind::kHost, MemoryKind::kPinned, MemoryKind::kManaged, MemoryKind::kDevice}) {
    const Array array = *Array::full(padded_field(), 2.5F, {.memory = kind});
    EXPECT_EQ(memory_kind(array.memory().device.type), kind);
    EXPECT_EQ(array.memory().dtype, *DType::from_name("float32"));
    const Array on_host = *array.copy(MemoryKind::kHost);
    EXPECT_EQ((*on_host.elements<const float>())(0, 3, 4), 2.5F);
  }
}

// [example]
// A view shares the memory; names, halo and aligned index follow its dimensions.
TEST_F(ArrayTest, ViewsShareMemoryAndMeaning) {
  const Array array = *Array::zeros(padded_field());
  count_up(array);
  const Array domain = array.domain_view();
  EXPECT_EQ(domain.shape(), (Extents{1, 2, 5}));
  EXPECT_EQ(domain.layout().halo(), no_halo(3));
  EXPECT_EQ(domain.layout().aligned_index(), (Extents{0, 0, 0}));
  EXPECT_EQ((*domain.elements<const double>())(0, 0, 0), 1 * 20 + 1 * 5);
  const Array plane = *index(array, 1, 2);
  EXPECT_EQ(plane.layout().dims(), (Dims{kDimI, kDimK}));
  EXPECT_EQ((*plane.elements<const double>())(2, 3), 2 * 20 + 2 * 5 + 3);
  const Array turned = *transpose(array);
  EXPECT_EQ(turned.layout().dims(), (Dims{kDimK, kDimJ, kDimI}));
  EXPECT_EQ(turned.memory().block, array.memory().block);
}
// [/example]

TEST_F(ArrayTest, AHaloBelongsToTheHandleAndMustFit) {
  const Array array = *Array::zeros({.shape = {4, 4}});
  const Array with_halo = *array.with_halo({{1, 1}, {0, 2}});
  EXPECT_EQ(with_halo.domain_view().shape(), (Extents{2, 2}));
  EXPECT_TRUE(array.layout().halo().empty());
  EXPECT_EQ(array.domain_view().shape(), (Extents{4, 4}));
  EXPECT_EQ(error_class_of(array.with_halo({{3, 2}, {0, 0}}).status()), ErrorClass::kValue);
}

TEST_F(ArrayTest, CopiesGoThroughEveryKindOfMemoryInEitherLayout) {
  const Array source = *Array::zeros(padded_field());
  count_up(source);
  for (const MemoryKind kind :
       {MemoryKind::kHost, MemoryKind::kPinned, MemoryKind::kManaged, MemoryKind::kDevice}) {
    const Array copied = *source.copy(kind);
    EXPECT_EQ(copied.layout(), source.layout());
    const Array back = *Array::zeros({.shape = {3, 4, 5}});
    ASSERT_TRUE(back.copy_from(copied).ok());
    EXPECT_TRUE(is_counted(back));
    EXPECT_TRUE(is_counted(*copied.copy(MemoryKind::kHost)));
  }
}

TEST_F(ArrayTest, CopiesOfOtherShapesAndToReadOnlyMemoryAreErrors) {
  const Array array = *Array::zeros({.shape = {2, 3}});
  EXPECT_EQ(error_class_of(array.copy_from(*Array::zeros({.shape = {3, 2}}))), ErrorClass::kValue);
  const Array readonly = Array::zeros({.shape = {2, 3}})->as_readonly();
  EXPECT_EQ(error_class_of(readonly.copy_from(array)), ErrorClass::kValue);
  EXPECT_TRUE(array.copy_from(readonly).ok());
  EXPECT_EQ(error_class_of(readonly.elements<double>().status()), ErrorClass::kValue);
  EXPECT_TRUE(readonly.elements<const double>().ok());
  const double one = 1.0;
  EXPECT_EQ(error_class_of(readonly.fill(std::as_bytes(std::span(&one, 1)))), ErrorClass::kValue);
}

TEST_F(ArrayTest, ElementsAreOfTheArraysTypeAndOfTheHost) {
  const Array array = *Array::zeros({.shape = {2}});
  EXPECT_EQ(error_class_of(array.elements<float>().status()), ErrorClass::kType);
  const Array on_device = *Array::zeros({.shape = {2}}, DType(), {.memory = MemoryKind::kDevice});
  EXPECT_EQ(error_class_of(on_device.elements<double>().status()), ErrorClass::kNoSuchBuffer);
}

TEST_F(ArrayTest, PaddingIsZeroedAloneInLargeArrays) {
  const Layout layout =
      *make_plan({.shape = {300, 61}, .itemsize_bytes = 8, .alignment_bytes = 512});
  ASSERT_TRUE(has_padding(layout));
  // The second block has the bytes that were written to the first one.
  for (int round = 0; round < 2; ++round) {
    const Array array = *Array::allocate(layout, DType(), {.zeroed_padding = true});
    std::byte* const block = array.memory().block;
    for (std::int64_t row = 0; row < 300; ++row) {
      EXPECT_EQ(block[row * 512 + 61 * 8], std::byte{0});
    }
    std::fill_n(block, layout.total_bytes(), std::byte{7});
  }
}

TEST_F(ArrayTest, MemoryComesFromTheResourceGiven) {
  testing::CountingResource resource(host_resource());
  {
    const Array array = *Array::zeros({.shape = {2, 3}}, DType(), {.resource = &resource});
    EXPECT_GE(array.info().allocation_bytes, 48);
    EXPECT_EQ(resource.counts().live_blocks, 1);
  }
  EXPECT_EQ(resource.counts().live_blocks, 0);
}

TEST_F(ArrayTest, ASpanIsAnArrayInTheOrderGiven) {
  std::vector<double> values(6);
  std::iota(values.begin(), values.end(), 0.0);
  const Array rows = *Array::from(std::span(values), {.shape = {2, 3}, .dims = {kDimJ, kDimI}});
  EXPECT_EQ(rows.memory().first_element(), reinterpret_cast<std::byte*>(values.data()));
  EXPECT_EQ((*rows.elements<double>())(1, 2), 5);
  EXPECT_EQ(rows.layout().dims(), (Dims{kDimJ, kDimI}));
  const std::span<const double> constant(values);
  const Array columns = *Array::from(constant, {.shape = {2, 3}, .layout = {1, 0}});
  EXPECT_EQ((*columns.elements<const double>())(1, 2), 5);
  EXPECT_EQ((*columns.elements<const double>())(1, 0), 1);
  EXPECT_EQ(error_class_of(columns.elements<double>().status()), ErrorClass::kValue);
  EXPECT_EQ(error_class_of(Array::from(constant, {.shape = {2, 4}}).status()), ErrorClass::kValue);
  EXPECT_EQ(error_class_of(Array::from(constant, {.shape = {2, 3}, .layout = {1, 1}}).status()),
            ErrorClass::kValue);
}

#if __has_include(<cuda/std/mdspan>)
template <class T, class Index, std::size_t... extents>
using Strided =
    cuda::std::mdspan<T, cuda::std::extents<Index, extents...>, cuda::std::layout_stride>;
constexpr std::size_t kAny = cuda::std::dynamic_extent;

TEST_F(ArrayTest, ElementsAreAnMdspan) {
  const Array array = *Array::zeros(padded_field());
  count_up(array);
  const auto span = *array.elements<double>()->as<Strided<double, int, kAny, kAny, kAny>>();
  static_assert(Mdspan<decltype(span)>);
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 4; ++j)
      for (int k = 0; k < 5; ++k) EXPECT_EQ(span(i, j, k), 20 * i + 5 * j + k);
  const auto inner = *array.domain_view().elements<const double>();
  EXPECT_EQ((*inner.as<Strided<const double, std::int64_t, 1, kAny, 5>>())(0, 1, 2), 32);
  const Array scalar = *Array::full({.shape = {}}, 3.0);
  EXPECT_EQ((*scalar.elements<double>()->as<Strided<double, int>>())(), 3);
}

template <class M>
std::string refused_as(const Array& array) {
  const absl::Status status =
      array.elements<const typename M::element_type>()->template as<M>().status();
  EXPECT_EQ(error_class_of(status), ErrorClass::kValue) << status;
  return std::string(status.message());
}

TEST_F(ArrayTest, AnMdspanThatCannotBeIsAnError) {
  const Array array = *Array::zeros({.shape = {3, 300}});
  using Plain = Strided<const double, int, kAny, kAny>;
  const auto says = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  says(refused_as<Strided<const double, int, kAny>>(array), "1 dimensions");
  says(refused_as<Strided<const double, int, kAny, 299>>(array), "extent 299 in dimension 1");
  says(refused_as<Strided<const double, signed char, kAny, kAny>>(array), "up to 127");
  says(refused_as<Plain>(*broadcast_to(*Array::zeros({.shape = {300}}), {3, 300})),
       "positive multiples");
}

TEST_F(ArrayTest, AnMdspanIsAnArray) {
  std::vector<double> values(12);
  std::iota(values.begin(), values.end(), 0.0);
  const cuda::std::mdspan<const double, cuda::std::dextents<int, 2>, cuda::std::layout_left> span(
      values.data(), 3, 4);
  const Array array = *Array::from(span, {.dims = {kDimJ, kDimI}, .halo = {{1, 1}, {0, 0}}});
  EXPECT_EQ(array.memory().first_element(), reinterpret_cast<std::byte*>(values.data()));
  EXPECT_TRUE(array.memory().readonly);
  EXPECT_EQ(array.layout().layout_map(), (LayoutMap{1, 0}));
  EXPECT_EQ((*array.domain_view().elements<const double>())(0, 2), span(1, 2));
  const cuda::std::mdspan<double, cuda::std::extents<int, 3>> nothing(nullptr);
  EXPECT_EQ(error_class_of(Array::from(nothing).status()), ErrorClass::kValue);
}
#endif

TEST_F(ArrayTest, ElementsMayBeComplexOrHalfFloats) {
  const Array complex = *Array::full({.shape = {2, 2}}, std::complex<float>(1, -2));
  EXPECT_EQ(complex.memory().dtype, *DType::from_name("complex64"));
  EXPECT_EQ((*complex.elements<std::complex<float>>())(1, 0), std::complex<float>(1, -2));
  EXPECT_EQ(element_name<std::complex<double>>(), "complex128");
  const Array half = *Array::full({.shape = {3}}, static_cast<_Float16>(0.5));
  EXPECT_EQ(half.memory().dtype, *DType::from_name("float16"));
  EXPECT_EQ(static_cast<float>((*half.elements<_Float16>())(2)), 0.5F);
}

TEST_F(ArrayTest, TheFirstPointOfTheDomainIsAlignedByDefault) {
  const Array array =
      *Array::empty({.shape = {10, 4}, .alignment_bytes = 128, .halo = {{3, 1}, {2, 0}}});
  EXPECT_EQ(array.layout().aligned_index(), (Extents{3, 2}));
  const auto address =
      reinterpret_cast<std::uintptr_t>(array.domain_view().memory().first_element());
  EXPECT_EQ(address % 128, 0);
}

TEST_F(ArrayTest, CopiesOnADeviceAreOrderedAcrossStreams) {
  DeviceDriver& driver = **device_driver();
  const StreamHandle first = *driver.create_stream(StreamKind::kNonBlocking);
  const StreamHandle second = *driver.create_stream(StreamKind::kNonBlocking);
  const Array source = *Array::zeros(padded_field());
  count_up(source);
  std::optional<Array> one;
  std::optional<Array> two;
  {
    const ScopedStream current(first);
    one = *source.copy(MemoryKind::kDevice);
    EXPECT_EQ(one->stream(), first);
  }
  {
    const ScopedStream current(second);
    two = *one->copy();
    EXPECT_EQ(two->stream(), second);
  }
  EXPECT_TRUE(is_counted(*two->copy(MemoryKind::kHost)));
  one.reset();
  two.reset();
  EXPECT_TRUE(driver.destroy_stream(first).ok());
  EXPECT_TRUE(driver.destroy_stream(second).ok());
}

TEST_F(ArrayTest, LackOfMemoryNamesTheRequest) {
  const absl::Status status =
      Array::empty({.shape = {std::int64_t{1} << 50}}, *DType::from_name("float32")).status();
  EXPECT_EQ(error_class_of(status), ErrorClass::kMemory);
  for (const char* part : {"(1125899906842624,)", "float32", "memory host"}) {
    EXPECT_NE(status.message().find(part), std::string::npos) << status;
  }
}

TEST_F(ArrayTest, ExistingMemoryKeepsItsOwnerAndIsChecked) {
  auto values = std::make_shared<std::array<double, 12>>();
  values->at(6) = 42;
  BufferDescriptor memory{.block = reinterpret_cast<std::byte*>(values->data()),
                          .view = {{3, 4}, {32, 8}, 0, 8},
                          .dtype = DType(),
                          .readonly = false,
                          .device = {},
                          .owner = values};
  const Array array = *Array::from(memory, {.dims = {kDimJ, kDimI}, .halo = {{1, 0}, {1, 1}}});
  EXPECT_EQ(array.layout().layout_map(), (LayoutMap{0, 1}));
  EXPECT_EQ((*array.domain_view().elements<const double>())(0, 1), 42);
  const auto refused = [&memory](const LayoutRequest& given) {
    return error_class_of(Array::from(memory, given).status()) == ErrorClass::kValue;
  };
  EXPECT_TRUE(refused({.dims = {kDimI}}));
  EXPECT_TRUE(refused({.halo = {{2, 2}, {0, 0}}}));
  EXPECT_TRUE(refused({.layout = {0, 0}}));
  EXPECT_TRUE(refused({.aligned_index = {3, 0}}));
  EXPECT_TRUE(refused({.alignment_bytes = 1 << 20, .aligned_index = {1, 1}}));
  memory.view.strides_bytes = {std::int64_t{1} << 62, 8};
  EXPECT_TRUE(refused({}));
}

TEST_F(ArrayTest, AnExportedTensorOutlivesTheArrayAndComesBack) {
  absl::StatusOr<dlpack::VersionedExport> tensor = [] {
    const Array array = *Array::full({.shape = {2, 3}}, std::int32_t{5});
    return dlpack::export_versioned(array.memory());
  }();
  ASSERT_TRUE(tensor.ok());
  absl::StatusOr<ImportedView> taken = dlpack::take(tensor->release());
  ASSERT_TRUE(taken.ok());
  const Array back = *Array::from(std::move(taken->memory));
  EXPECT_EQ((*back.elements<const std::int32_t>())(1, 2), 5);
}

}  // namespace
}  // namespace gridbuf
