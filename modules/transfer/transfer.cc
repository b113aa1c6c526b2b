module;

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.transfer;

import gridbuf.alloc.host;
import gridbuf.alloc;
import gridbuf.base;
import gridbuf.layout.view;
import gridbuf.layout;
import gridbuf.transfer.fill;
import gridbuf.transfer.plan;
import gridbuf.transfer.simd;
import gridbuf.transfer.walk;

namespace gridbuf {
namespace {

// --- Checks --------------------------------------------------------------------------------------

// The bytes of a sound view; the reason why this is none.
absl::StatusOr<checked::ByteHull> hull_of(std::string_view role, const std::byte* block,
                                          const StridedView& view) {
  const std::optional<checked::ByteHull> hull = byte_hull(view);
  if (!hull) {
    return make_error(
        ErrorClass::kValue,
        {role, to_string(view), "as many strides as non-negative extents, within 2^63 - 1 bytes",
         "check shape and strides"});
  }
  if (block == nullptr && hull->length_bytes() > 0 && view.itemsize_bytes > 0) {
    return make_error(ErrorClass::kValue, {std::string(role).append("'s block"), "null",
                                           "memory for " + to_string(view), "allocate it first"});
  }
  return *hull;
}

absl::Status check_pair(const StridedView& target, const StridedView& source) {
  if (target.shape != source.shape) {
    return make_error(ErrorClass::kValue,
                      {"the source's shape", to_string(source.shape),
                       "the target's, " + to_string(target.shape), "broadcast the source first"});
  }
  if (target.itemsize_bytes != source.itemsize_bytes) {
    return make_error(
        ErrorClass::kValue,
        {"the source's itemsize_bytes", std::to_string(source.itemsize_bytes),
         "the target's, " + std::to_string(target.itemsize_bytes), "convert the elements first"});
  }
  return absl::OkStatus();
}

absl::Status check_swap(std::int64_t swap_unit_bytes, std::int64_t itemsize_bytes) {
  const bool divides = swap_unit_bytes > 0 && itemsize_bytes % swap_unit_bytes == 0;
  if (swap_unit_bytes == 0 || divides) return absl::OkStatus();
  return make_error(ErrorClass::kValue,
                    {"swap_unit_bytes", std::to_string(swap_unit_bytes),
                     "a divisor of the itemsize, " + std::to_string(itemsize_bytes),
                     "pass 1 to keep the bytes as they are"});
}

// --- Copies --------------------------------------------------------------------------------------

// How to copy between two views, wherever their blocks are.
struct Recipe {
  std::int64_t target_offset_bytes = 0;  // of what is moved first, from the blocks
  std::int64_t source_offset_bytes = 0;
  std::int64_t run_bytes = 0;  // not 0: a dense run, not worth a plan
  plan::CopyPlan plan = {};
};

Recipe recipe_for(std::byte* target_block, const StridedView& target, const std::byte* source_block,
                  const StridedView& source, std::int64_t swap_unit_bytes,
                  const CopyLimits& limits) {
  walk::Walk walk = walk::make_walk(target_block, target, source_block, source);
  // Where elements of the target share bytes, the order of writing shows.
  const plan::Order order =
      walk::arrange(walk, target.itemsize_bytes) ? plan::Order::kAny : plan::Order::kAsIndexed;
  Recipe recipe;
  if (order == plan::Order::kAny && swap_unit_bytes <= 1) {
    const std::optional<std::int64_t> bytes = walk::dense_run_bytes(walk, target.itemsize_bytes);
    if (bytes && *bytes < limits.parallel_rows_bytes) recipe.run_bytes = *bytes;
  }
  if (recipe.run_bytes > 0) {
    recipe.target_offset_bytes = walk.target - target_block;
    recipe.source_offset_bytes = walk.source - source_block;
  } else {
    recipe.plan = plan::make_plan(walk, target.itemsize_bytes, swap_unit_bytes, order, limits);
    recipe.target_offset_bytes = recipe.plan.target - target_block;
    recipe.source_offset_bytes = recipe.plan.source - source_block;
  }
  return recipe;
}

// The blocks share no byte.
void follow(Recipe& recipe, std::byte* target_block, const std::byte* source_block) {
  std::byte* const target = target_block + recipe.target_offset_bytes;
  const std::byte* const source = source_block + recipe.source_offset_bytes;
  if (recipe.run_bytes > 0) {
    std::memcpy(target, source, static_cast<std::size_t>(recipe.run_bytes));
    return;
  }
  plan::CopyPlan& plan = recipe.plan;
  plan.target = target;
  plan.source = source;
  const Simd path = simd();
  if (!plan.parallel) return plan::run(plan, path, 0, plan.tasks);
  parallel_for(plan.tasks, plan.tasks_of_a_piece,
               [&](std::int64_t begin, std::int64_t end) { plan::run(plan, path, begin, end); });
}

// --- The last copy -------------------------------------------------------------------------------

// All that was found out about the views of a copy. Programs copy between the same two layouts
// again and again, and for 4 KiB finding it out takes longer than the copy. So each thread keeps
// what it knows of its last copy between sound views in which neither threads nor streams had a
// part: of those that had, time and addresses weigh more.
struct Known {
  StridedView target = {};
  StridedView source = {};
  std::int64_t swap_unit_bytes = 0;
  CopyLimits limits = {};
  checked::ByteHull target_hull = {};
  checked::ByteHull source_hull = {};
  Recipe recipe = {};
};

constinit thread_local Known last = {};
constinit thread_local bool any_last = false;

bool copied_as_last_time(std::byte* target_block, const StridedView& target,
                         const std::byte* source_block, const StridedView& source,
                         const CopyOptions& options) {
  if (!any_last || target_block == nullptr || source_block == nullptr) return false;
  const bool same = target == last.target && source == last.source &&
                    options.swap_unit_bytes == last.swap_unit_bytes &&
                    options.limits == last.limits;
  if (!same || walk::overlap(walk::range_of(target_block, last.target_hull),
                             walk::range_of(source_block, last.source_hull))) {
    return false;
  }
  follow(last.recipe, target_block, source_block);
  return true;
}

MemoryResource& scratch_of(const CopyOptions& options) {
  return options.scratch != nullptr ? *options.scratch : host_resource();
}

// Copies by way of scratch memory.
absl::Status copy_overlapping(std::byte* target_block, const StridedView& target,
                              const std::byte* source_block, const StridedView& source,
                              const CopyOptions& options) {
  const std::optional<StridedView> between = walk::packed(source);
  const std::optional<checked::ByteHull> hull = between ? byte_hull(*between) : std::nullopt;
  if (!hull) {
    return make_error(ErrorClass::kValue, {"the source", to_string(source),
                                           "of at most 2^63 - 1 bytes", "copy a smaller part"});
  }
  const absl::StatusOr<Block> scratch =
      scratch_of(options).allocate({.total_bytes = hull->highest_bytes});
  if (!scratch.ok()) return with_context(scratch.status(), "copy between overlapping views");
  Recipe there = recipe_for(scratch->data(), *between, source_block, source, 1, options.limits);
  follow(there, scratch->data(), source_block);
  Recipe back = recipe_for(target_block, target, scratch->data(), *between, options.swap_unit_bytes,
                           options.limits);
  follow(back, target_block, scratch->data());
  return absl::OkStatus();
}

}  // namespace

absl::Status copy_elements(std::byte* target_block, const StridedView& target,
                           const std::byte* source_block, const StridedView& source,
                           const CopyOptions& options) {
  if (copied_as_last_time(target_block, target, source_block, source, options)) {
    return absl::OkStatus();
  }
  if (absl::Status status = check_pair(target, source); !status.ok()) return status;
  const absl::StatusOr<checked::ByteHull> target_hull = hull_of("the target", target_block, target);
  if (!target_hull.ok()) return target_hull.status();
  const absl::StatusOr<checked::ByteHull> source_hull = hull_of("the source", source_block, source);
  if (!source_hull.ok()) return source_hull.status();
  if (absl::Status status = check_swap(options.swap_unit_bytes, target.itemsize_bytes);
      !status.ok()) {
    return status;
  }
  if (target_hull->length_bytes() == 0 || target.itemsize_bytes == 0) return absl::OkStatus();
  if (!walk::overlap(walk::range_of(target_block, *target_hull),
                     walk::range_of(source_block, *source_hull))) {
    Recipe recipe = recipe_for(target_block, target, source_block, source, options.swap_unit_bytes,
                               options.limits);
    follow(recipe, target_block, source_block);
    if (!recipe.plan.parallel && !recipe.plan.streams) {
      last = {target,       source, options.swap_unit_bytes, options.limits, *target_hull,
              *source_hull, recipe};
      any_last = true;
    }
    return absl::OkStatus();
  }
  const bool keeps_bytes = options.swap_unit_bytes <= 1;
  if (keeps_bytes && !walk::may_overlap_itself(target) &&
      walk::same_elements(target_block, target, source_block, source)) {
    return absl::OkStatus();
  }
  return copy_overlapping(target_block, target, source_block, source, options);
}

absl::Status fill_elements(std::byte* target_block, const StridedView& target,
                           std::span<const std::byte> element, const CopyOptions& options) {
  if (static_cast<std::int64_t>(element.size()) != target.itemsize_bytes) {
    return make_error(ErrorClass::kValue,
                      {"the element", std::to_string(element.size()) + " bytes long",
                       "of the target's itemsize, " + std::to_string(target.itemsize_bytes),
                       "convert it to the target's element type"});
  }
  const absl::StatusOr<checked::ByteHull> hull = hull_of("the target", target_block, target);
  if (!hull.ok()) return hull.status();
  if (hull->length_bytes() == 0 || target.itemsize_bytes == 0) return absl::OkStatus();
  const auto element_begin = reinterpret_cast<std::uintptr_t>(element.data());
  const walk::AddressRange element_range{element_begin, element_begin + element.size()};
  if (!walk::overlap(walk::range_of(target_block, *hull), element_range)) {
    fill::fill_view(target_block, target, element);
    return absl::OkStatus();
  }
  const absl::StatusOr<Block> kept =
      scratch_of(options).allocate({.total_bytes = target.itemsize_bytes});
  if (!kept.ok()) return with_context(kept.status(), "fill with an element of the target itself");
  std::memcpy(kept->data(), element.data(), element.size());
  fill::fill_view(target_block, target, {kept->data(), element.size()});
  return absl::OkStatus();
}

}  // namespace gridbuf
