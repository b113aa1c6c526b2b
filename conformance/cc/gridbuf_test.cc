// gridbuf's own buffers under the suite: described by gridbuf.interface, exported by
// gridbuf.interface.dlpack, in both forms; and its reader takes what it made back.
//
// The reader is asked first and gets a separate tensor, so that the tensor of the judge is not
// touched.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "conformance/cc/producer.h"
#include "conformance/cc/suite.h"

import gridbuf.alloc;
import gridbuf.alloc.host;
import gridbuf.interface;
import gridbuf.interface.dlpack;
import gridbuf.layout;

namespace gridbuf::conformance {
namespace {

// An element type as gridbuf knows it, of the plan's byte order.
absl::StatusOr<DType> dtype_of(const Plan& plan) {
  absl::StatusOr<DType> dtype = DType::from_name(plan.dtype);
  return dtype.ok() && plan.swapped ? dtype->byteswapped() : dtype;
}

void fill(const Plan& plan, const StridedView& view, std::byte* first) {
  const std::vector<std::byte> content = plan.content();
  const auto itemsize = static_cast<std::size_t>(plan.itemsize_bytes);
  Extents index(view.ndim(), 0);
  for (std::size_t place = 0; place < content.size(); place += itemsize) {
    std::memcpy(first + byte_offset(view, index), content.data() + place, itemsize);
    for (int axis = view.ndim(); axis-- > 0 && ++index[axis] == view.shape[axis];) index[axis] = 0;
  }
}

// The plan's view of a whole array.
StridedView viewed(const View& wanted, const StridedView& whole) {
  StridedView view = {
      .shape = {}, .strides_bytes = {}, .offset_bytes = 0, .itemsize_bytes = whole.itemsize_bytes};
  for (int axis = 0; axis < whole.ndim(); ++axis) {
    view.offset_bytes += wanted.start[static_cast<std::size_t>(axis)] * whole.strides_bytes[axis];
  }
  for (std::size_t axis = 0; axis < wanted.shape.size(); ++axis) {
    const int base = wanted.axes[axis];
    view.shape.push_back(wanted.shape[axis]);
    view.strides_bytes.push_back(base < 0 ? 0 : wanted.steps[axis] * whole.strides_bytes[base]);
  }
  return view;
}

absl::StatusOr<BufferDescriptor> buffer_of(const Plan& plan) {
  const absl::StatusOr<DType> dtype = dtype_of(plan);
  if (!dtype.ok()) return dtype.status();
  const absl::StatusOr<Layout> layout =
      make_plan({.shape = Extents(std::span<const std::int64_t>(plan.shape)),
                 .itemsize_bytes = plan.itemsize_bytes,
                 .layout = LayoutMap(std::span<const int>(plan.layout)),
                 .alignment_bytes = plan.alignment_size,
                 .aligned_index = Extents(std::span<const std::int64_t>(plan.aligned_index))});
  if (!layout.ok()) return layout.status();
  absl::StatusOr<Block> block =
      host_resource().allocate({.total_bytes = layout->total_bytes(),
                                .alignment_bytes = layout->alignment_bytes(),
                                .aligned_offset_bytes = layout->aligned_offset_bytes()});
  if (!block.ok()) return block.status();
  std::byte* const data = block->data();
  fill(plan, layout->view(), data);
  absl::StatusOr<Owner> owner = share(*std::move(block));
  if (!owner.ok()) return owner.status();
  return describe({.block = data,
                   .view = viewed(plan.view, layout->view()),
                   .dtype = *dtype,
                   .readonly = plan.readonly,
                   .device = {},
                   .owner = *std::move(owner)});
}

template <class Export>
Answer answer(absl::StatusOr<Export> exported) {
  if (!exported.ok()) return Unsupported{std::string(exported.status().message())};
  return exported->release();
}

struct Versioned {
  static constexpr Declares kDeclares = {.layout = true, .alignment = true, .views = true};
  static Answer make(const Plan& plan) {
    const absl::StatusOr<BufferDescriptor> buffer = buffer_of(plan);
    if (!buffer.ok()) return Unsupported{std::string(buffer.status().message())};
    return answer(dlpack::export_versioned(*buffer));
  }
};

struct Legacy {
  static constexpr Declares kDeclares = Versioned::kDeclares;
  static Answer make(const Plan& plan) {
    const absl::StatusOr<BufferDescriptor> buffer = buffer_of(plan);
    if (!buffer.ok()) return Unsupported{std::string(buffer.status().message())};
    return answer(dlpack::export_legacy(*buffer));
  }
};

TEST(GridbufReader, TakesBackEveryTensorThatGridbufMakes) {
  int taken = 0;
  for (const Plan& plan : plans()) {
    const absl::StatusOr<BufferDescriptor> buffer = buffer_of(plan);
    if (!buffer.ok()) continue;
    absl::StatusOr<dlpack::VersionedExport> exported = dlpack::export_versioned(*buffer);
    if (!exported.ok()) continue;
    const absl::StatusOr<ImportedView> view = dlpack::take(exported->release());
    ASSERT_TRUE(view.ok()) << plan.name << ": " << view.status();
    EXPECT_EQ(view->memory.view.shape, buffer->view.shape) << plan.name;
    EXPECT_EQ(view->memory.dtype, buffer->dtype) << plan.name;
    EXPECT_EQ(view->memory.readonly, buffer->readonly) << plan.name;
    if (!buffer->is_empty()) EXPECT_EQ(view->memory.first_element(), buffer->first_element());
    ++taken;
  }
  EXPECT_GT(taken, 150);
}

}  // namespace
}  // namespace gridbuf::conformance

GRIDBUF_CONFORMANCE_SUITE(gridbuf_versioned, Versioned);
GRIDBUF_CONFORMANCE_SUITE(gridbuf_legacy, Legacy);
