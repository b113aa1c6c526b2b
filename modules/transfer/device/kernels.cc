module;

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "modules/transfer/device/kernel_plan.h"

module gridbuf.transfer.device;

import gridbuf.device;
import gridbuf.layout;
import gridbuf.transfer.loops;

namespace gridbuf::kernels {

using loops::Axis;
using loops::magnitude;
using loops::Walk;

namespace {

constexpr std::array<std::string_view, 3> kKindNames{"copy of units", "copy of tiles",
                                                     "fill of units"};

constexpr std::int64_t kWidestUnitBytes = 16;
/// Units replace tiles if a side of the transposition is shorter.
constexpr std::int64_t kLeastTileExtent = 8;

// --- Planning ------------------------------------------------------------------------------------

std::uint64_t address_of(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

// The memory of one side of a walk, from the smallest address on.
KernelOperand operand_of(std::string_view role, const std::byte* first, const Walk& walk,
                         std::int64_t Axis::* stride, std::int64_t itemsize_bytes) {
  KernelOperand operand{role, nullptr, itemsize_bytes};
  for (const Axis& axis : walk.axes) {
    const std::int64_t reach = (axis.extent - 1) * axis.*stride;
    operand.length_bytes += magnitude(reach);
    first += std::min<std::int64_t>(reach, 0);
  }
  operand.begin = first;
  return operand;
}

void add_axis(gridbuf_kernel_plan& plan, const Axis& axis) {
  plan.axes[plan.axis_count++] = {static_cast<std::uint64_t>(axis.extent), axis.target_stride_bytes,
                                  axis.source_stride_bytes};
}

// The rest of the axes, innermost first, and the number of all units or tiles.
void add_axes(gridbuf_kernel_plan& plan, std::uint64_t count, const SmallVec<Axis>& axes) {
  plan.count = count;
  for (int i = axes.size() - 1; i >= 0; --i) {
    add_axis(plan, axes[i]);
    plan.count *= static_cast<std::uint64_t>(axes[i].extent);
  }
}

// The largest power of two up to 16 that divides both addresses, all strides and `row_bytes`.
std::int64_t unit_of(const gridbuf_kernel_plan& plan, std::int64_t row_bytes,
                     const SmallVec<Axis>& axes) {
  std::uint64_t bits = static_cast<std::uint64_t>(row_bytes | kWidestUnitBytes);
  bits |= plan.target | plan.source;
  for (const Axis& axis : axes) {
    bits |= static_cast<std::uint64_t>(axis.target_stride_bytes | axis.source_stride_bytes);
  }
  return std::int64_t{1} << std::countr_zero(bits);
}

void plan_units(gridbuf_kernel_plan& plan, gridbuf_kernel_kind kind, SmallVec<Axis> axes,
                std::int64_t itemsize_bytes) {
  plan.kind = kind;
  std::int64_t row_bytes = itemsize_bytes;
  if (!axes.empty()) {
    const Axis& inner = axes[axes.size() - 1];
    if (inner.target_stride_bytes == itemsize_bytes &&
        inner.source_stride_bytes == itemsize_bytes) {
      row_bytes *= inner.extent;
      axes.erase(axes.size() - 1);
    }
  }
  const std::int64_t unit = unit_of(plan, row_bytes, axes);
  plan.unit_bytes = static_cast<std::int32_t>(unit);
  if (row_bytes > unit) add_axis(plan, {row_bytes / unit, unit, unit});
  add_axes(plan, static_cast<std::uint64_t>(row_bytes / unit), axes);
}

// The axis along which the source is densest, if tiles are faster than units in the target's order.
std::optional<int> axis_of_source(const SmallVec<Axis>& axes) {
  const int of_target = axes.size() - 1;
  // A source that is repeated along the target's axis is read fast in the target's order.
  if (axes.empty() || axes[of_target].source_stride_bytes == 0) return std::nullopt;
  int densest = of_target;
  for (int i = 0; i < of_target; ++i) {
    const std::int64_t stride = magnitude(axes[i].source_stride_bytes);
    if (stride != 0 && stride < magnitude(axes[densest].source_stride_bytes)) densest = i;
  }
  if (densest == of_target) return std::nullopt;
  if (std::min(axes[densest].extent, axes[of_target].extent) < kLeastTileExtent) {
    return std::nullopt;
  }
  return densest;
}

bool plan_tiles(gridbuf_kernel_plan& plan, SmallVec<Axis> axes, std::int64_t itemsize_bytes) {
  const std::optional<int> of_source = axis_of_source(axes);
  if (!of_source || unit_of(plan, itemsize_bytes, axes) != itemsize_bytes) return false;
  plan.kind = GRIDBUF_COPY_TILES;
  plan.unit_bytes = static_cast<std::int32_t>(itemsize_bytes);
  std::uint64_t tiles = 1;
  for (const int axis : {axes.size() - 1, *of_source}) {
    add_axis(plan, axes[axis]);
    tiles *= kernel_code::tiles_along(plan.axes[plan.axis_count - 1]);
    axes.erase(axis);
  }
  add_axes(plan, tiles, axes);
  return true;
}

}  // namespace

KernelPlan plan_copy(const Walk& walk, std::int64_t itemsize_bytes) {
  KernelPlan plan;
  plan.operands = {operand_of("the copy's target", walk.target, walk, &Axis::target_stride_bytes,
                              itemsize_bytes),
                   operand_of("the copy's source", walk.source, walk, &Axis::source_stride_bytes,
                              itemsize_bytes)};
  plan.arguments.target = address_of(walk.target);
  plan.arguments.source = address_of(walk.source);
  if (!plan_tiles(plan.arguments, walk.axes, itemsize_bytes)) {
    plan_units(plan.arguments, GRIDBUF_COPY_UNITS, walk.axes, itemsize_bytes);
  }
  return plan;
}

std::optional<KernelPlan> plan_fill(Walk walk, std::span<const std::byte> element) {
  const std::int64_t itemsize_bytes = std::ssize(element);
  for (Axis& axis : walk.axes) axis.source_stride_bytes = axis.target_stride_bytes;
  KernelPlan plan;
  plan.operands[0] = operand_of("the fill's target", walk.target, walk, &Axis::target_stride_bytes,
                                itemsize_bytes);
  plan.arguments.target = address_of(walk.target);
  plan_units(plan.arguments, GRIDBUF_FILL_UNITS, walk.axes, itemsize_bytes);
  const auto unit = static_cast<std::size_t>(plan.arguments.unit_bytes);
  for (std::size_t i = 0; i < unit; ++i) {
    plan.arguments.unit[i] = std::to_integer<std::uint8_t>(element[i % element.size()]);
  }
  // All units are equal if the bytes repeat after a unit.
  for (std::size_t i = 0; i < element.size(); ++i) {
    if (element[i] != element[(i + unit) % element.size()]) return std::nullopt;
  }
  return plan;
}

// --- Running -------------------------------------------------------------------------------------

namespace {

template <int kBytes>
void run_tiles(const gridbuf_kernel_plan& plan) {
  // Not on the stack, which may be small. All threads of a block share it.
  std::vector<kernel_code::Unit<kBytes>> items(kernel_code::kTileItems);
  for (std::uint64_t number = 0; number < plan.count; ++number) {
    const kernel_code::Tile tile = kernel_code::tile_of(plan, number);
    for (std::uint32_t thread = 0; thread < kernel_code::kThreads; ++thread) {
      kernel_code::load_tile<kBytes>(plan, tile, items.data(), thread);
    }
    for (std::uint32_t thread = 0; thread < kernel_code::kThreads; ++thread) {
      kernel_code::store_tile<kBytes>(plan, tile, items.data(), thread);
    }
  }
}

template <int kBytes>
void run(const gridbuf_kernel_plan& plan) {
  if (plan.kind == GRIDBUF_COPY_TILES) return run_tiles<kBytes>(plan);
  plan.kind == GRIDBUF_COPY_UNITS ? kernel_code::copy_units<kBytes>(plan, 0, 1)
                                  : kernel_code::fill_units<kBytes>(plan, 0, 1);
}

// Replaces the addresses by those of the bytes on the host.
void run_on_host(const void* arguments, std::span<std::byte* const> operands) {
  KernelPlan plan;
  std::memcpy(&plan, arguments, sizeof(plan));
  plan.arguments.target += address_of(operands[0]) - address_of(plan.operands[0].begin);
  if (operands.size() > 1) {
    plan.arguments.source += address_of(operands[1]) - address_of(plan.operands[1].begin);
  }
  switch (plan.arguments.unit_bytes) {
    case 1:
      return run<1>(plan.arguments);
    case 2:
      return run<2>(plan.arguments);
    case 4:
      return run<4>(plan.arguments);
    case 8:
      return run<8>(plan.arguments);
    default:
      return run<16>(plan.arguments);
  }
}

int no_launch(const gridbuf_kernel_plan* /*plan*/, std::uint64_t /*stream*/) {
  return 801;  // as the stub of kernels.cu: "not supported"
}
Launch launch = &no_launch;

int run_on_device(const void* arguments, StreamHandle stream) {
  return launch(&static_cast<const KernelPlan*>(arguments)->arguments, stream);
}

}  // namespace

void set_launch(Launch function) { launch = function; }

DeviceKernel kernel_of(const KernelPlan& plan) {
  return {.name = kKindNames[static_cast<std::size_t>(plan.arguments.kind)],
          .on_host = &run_on_host,
          .on_device = &run_on_device,
          .arguments = std::as_bytes(std::span(&plan, 1)),
          .operands =
              std::span(plan.operands).first(plan.arguments.kind == GRIDBUF_FILL_UNITS ? 1 : 2)};
}

}  // namespace gridbuf::kernels
