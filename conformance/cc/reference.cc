#include "conformance/cc/reference.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

namespace gridbuf::conformance {
namespace {

void delete_reference(abi::ManagedVersioned* managed) {
  delete static_cast<ReferenceTensor*>(managed->manager_ctx);
}

std::size_t block_bytes(const Plan& plan, const ReferenceLayout& layout) {
  std::int64_t last = plan.itemsize_bytes;
  for (std::size_t axis = 0; axis < plan.shape.size(); ++axis) {
    last += (plan.shape[axis] - 1) * layout.strides_bytes[axis];
  }
  return static_cast<std::size_t>(last + 2 * plan.alignment_size);
}

// Where element (0, …, 0) goes in a block, so that the aligned element is where the layout wants
// it.
std::byte* first_element(const Plan& plan, const ReferenceLayout& layout, std::byte* block) {
  std::int64_t ahead = 0;
  for (std::size_t axis = 0; axis < plan.shape.size(); ++axis) {
    ahead += plan.aligned_index[axis] * layout.strides_bytes[axis];
  }
  const auto alignment = static_cast<std::uintptr_t>(plan.alignment_size);
  const auto aligned = reinterpret_cast<std::uintptr_t>(block) + static_cast<std::uintptr_t>(ahead);
  const std::uintptr_t shift = (alignment - aligned % alignment) % alignment;
  return block + (shift + layout.misplaced_bytes) % (2 * alignment);
}

void fill(const Plan& plan, const ReferenceLayout& layout, std::byte* first) {
  const std::vector<std::byte> content = plan.content();
  std::vector<std::int64_t> index(plan.shape.size(), 0);
  const auto itemsize = static_cast<std::size_t>(plan.itemsize_bytes);
  for (std::size_t place = 0; place < content.size(); place += itemsize) {
    const std::int64_t offset = std::inner_product(index.begin(), index.end(),
                                                   layout.strides_bytes.begin(), std::int64_t{0});
    std::memcpy(first + offset, content.data() + place, itemsize);
    for (std::size_t axis = index.size(); axis-- > 0 && ++index[axis] == plan.shape[axis];) {
      index[axis] = 0;
    }
  }
}

}  // namespace

std::string reason_to_decline(const Plan& plan) {
  if (!plan.dlpack) return "DLPack has no word for " + plan.dtype;
  if (plan.swapped) return "DLPack has no word for swapped byte order";
  return "";
}

ReferenceLayout lay_out(const Plan& plan) {
  const std::size_t ndim = plan.shape.size();
  std::vector<std::size_t> axis_of_rank(ndim);
  for (std::size_t axis = 0; axis < ndim; ++axis) {
    axis_of_rank[plan.layout.empty() ? axis : static_cast<std::size_t>(plan.layout[axis])] = axis;
  }
  ReferenceLayout layout = {.strides_bytes = std::vector<std::int64_t>(ndim), .misplaced_bytes = 0};
  std::int64_t step = plan.itemsize_bytes;
  for (std::size_t rank = ndim; rank-- > 0;) {
    layout.strides_bytes[axis_of_rank[rank]] = step;
    step *= plan.shape[axis_of_rank[rank]];
    if (rank + 1 == ndim)
      step = std::lcm(plan.alignment_size, plan.itemsize_bytes) *
             ((step + std::lcm(plan.alignment_size, plan.itemsize_bytes) - 1) /
              std::lcm(plan.alignment_size, plan.itemsize_bytes));
  }
  return layout;
}

ReferenceTensor* make_reference(const Plan& plan, const ReferenceLayout& layout) {
  auto made = std::make_unique<ReferenceTensor>();
  std::byte* first = nullptr;
  if (plan.element_count() > 0) {
    made->block = std::make_unique<std::byte[]>(block_bytes(plan, layout));
    first = first_element(plan, layout, made->block.get());
    fill(plan, layout, first);
  }
  const View& view = plan.view;
  made->shape = view.shape;
  bool is_empty = false;
  for (std::size_t axis = 0; axis < view.shape.size(); ++axis) {
    const int base = view.axes[axis];
    const std::int64_t stride = base < 0 ? 0 : layout.strides_bytes[static_cast<std::size_t>(base)];
    made->strides.push_back(view.steps[axis] * stride / plan.itemsize_bytes);
    is_empty |= view.shape[axis] == 0;
  }
  for (std::size_t axis = 0; axis < plan.shape.size() && !is_empty; ++axis) {
    first += view.start[axis] * layout.strides_bytes[axis];
  }
  made->managed = {.version = {1, 3},
                   .manager_ctx = made.get(),
                   .deleter = &delete_reference,
                   .flags = plan.readonly ? abi::kFlagReadOnly : 0,
                   .dl_tensor = {.data = is_empty ? nullptr : first,
                                 .device = {abi::kHost, 0},
                                 .ndim = static_cast<std::int32_t>(made->shape.size()),
                                 .dtype = *plan.dlpack,
                                 .shape = made->shape.data(),
                                 .strides = made->strides.data(),
                                 .byte_offset = 0}};
  return made.release();
}

Answer Reference::make(const Plan& plan) {
  if (const std::string reason = reason_to_decline(plan); !reason.empty()) {
    return Unsupported{reason};
  }
  return &make_reference(plan, lay_out(plan))->managed;
}

}  // namespace gridbuf::conformance
