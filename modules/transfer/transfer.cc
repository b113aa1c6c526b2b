module;

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.transfer;

import gridbuf.alloc;
import gridbuf.alloc.host;
import gridbuf.base;
import gridbuf.layout;
import gridbuf.layout.view;
import gridbuf.transfer.loops;

namespace gridbuf {
namespace {

MemoryResource& resource_of(MemoryResource* scratch) {
  return scratch != nullptr ? *scratch : host_resource();
}

}  // namespace

namespace shared {

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

absl::Status check_swap(std::int64_t swap_unit_bytes, std::int64_t itemsize_bytes) {
  const bool divides = swap_unit_bytes > 0 && itemsize_bytes % swap_unit_bytes == 0;
  if (swap_unit_bytes == 0 || divides) return absl::OkStatus();
  return make_error(ErrorClass::kValue,
                    {"swap_unit_bytes", std::to_string(swap_unit_bytes),
                     "a divisor of the itemsize, " + std::to_string(itemsize_bytes),
                     "pass 1 to keep the bytes as they are"});
}

absl::StatusOr<Kept> keep(const std::byte* block, const StridedView& view,
                          MemoryResource* scratch) {
  const std::optional<StridedView> packed = loops::packed(view);
  const std::optional<checked::ByteHull> hull = packed ? byte_hull(*packed) : std::nullopt;
  if (!hull) {
    return make_error(ErrorClass::kValue, {"the source", to_string(view),
                                           "of at most 2^63 - 1 bytes", "copy a smaller part"});
  }
  absl::StatusOr<Block> kept = resource_of(scratch).allocate({.total_bytes = hull->highest_bytes});
  if (!kept.ok()) return with_context(kept.status(), "copy between overlapping views");
  loops::copy_view(kept->data(), *packed, block, view);
  return Kept{*std::move(kept), *packed};
}

}  // namespace shared

namespace {

using namespace shared;

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

}  // namespace

absl::Status copy_elements(std::byte* target_block, const StridedView& target,
                           const std::byte* source_block, const StridedView& source,
                           const CopyOptions& options) {
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
  if (!loops::overlap(loops::range_of(target_block, *target_hull),
                      loops::range_of(source_block, *source_hull))) {
    loops::copy_view(target_block, target, source_block, source, options.swap_unit_bytes);
    return absl::OkStatus();
  }
  const bool keeps_bytes = options.swap_unit_bytes <= 1;
  if (keeps_bytes && !loops::may_overlap_itself(target) &&
      loops::same_elements(target_block, target, source_block, source)) {
    return absl::OkStatus();
  }
  const absl::StatusOr<Kept> kept = keep(source_block, source, options.scratch);
  if (!kept.ok()) return kept.status();
  loops::copy_view(target_block, target, kept->block.data(), kept->view, options.swap_unit_bytes);
  return absl::OkStatus();
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
  const loops::AddressRange element_range{element_begin, element_begin + element.size()};
  if (!loops::overlap(loops::range_of(target_block, *hull), element_range)) {
    loops::fill_view(target_block, target, element);
    return absl::OkStatus();
  }
  const absl::StatusOr<Block> kept =
      resource_of(options.scratch).allocate({.total_bytes = target.itemsize_bytes});
  if (!kept.ok()) return with_context(kept.status(), "fill with an element of the target itself");
  std::memcpy(kept->data(), element.data(), element.size());
  loops::fill_view(target_block, target, {kept->data(), element.size()});
  return absl::OkStatus();
}

}  // namespace gridbuf
