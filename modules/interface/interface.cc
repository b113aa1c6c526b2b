module;

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "modules/base/status_macros.h"

module gridbuf.interface;

namespace gridbuf {

absl::StatusOr<BufferDescriptor> describe(BufferDescriptor descriptor) {
  StridedView& view = descriptor.view;
  const auto elements = checked::product(view.shape.span());
  if (!byte_hull(view) || !elements || !checked::mul(*elements, view.itemsize_bytes)) {
    return make_error(
        ErrorClass::kValue,
        {"array", to_string(view), "as many strides as non-negative extents, within 2^63 - 1 bytes",
         "check shape and strides"});
  }
  if (view.itemsize_bytes != descriptor.dtype.itemsize_bytes()) {
    return make_error(ErrorClass::kValue, {"itemsize_bytes", std::to_string(view.itemsize_bytes),
                                           std::to_string(descriptor.dtype.itemsize_bytes()) +
                                               ", that of " + descriptor.dtype.name(),
                                           "plan the layout for the element type"});
  }
  if (descriptor.block == nullptr && *elements != 0) {
    return make_error(ErrorClass::kValue,
                      {"block", "null", "memory for " + std::to_string(*elements) + " elements",
                       "allocate before describing"});
  }
  replace_meaningless_strides(view);
  return descriptor;
}

// ---- Foreign descriptors. ----

namespace {

constexpr std::string_view kAskProducer = "correct the object that exports it";

struct Checker {
  const RawArray& array;
  const ArrayRules& rules;
  ErrorClass error_class;

  absl::Status refused(std::string_view rule, std::string_view name, const std::string& found,
                       std::string_view bound, std::string_view advice = kAskProducer) const {
    return refuse(rule, error_class, {name, found, bound, advice});
  }

  absl::Status check_counts() const {
    const RawExtents& shape = array.shape;
    if (shape.count < 0 || shape.count > kMaxNdim) {
      return refused(rules.ndim, "the number of dimensions", std::to_string(shape.count),
                     "from 0 to " + std::to_string(kMaxNdim), "reshape the array before");
    }
    for (const std::int64_t extent : shape.values) {
      if (extent < 0) {
        return refused(rules.extents, "shape", to_string(shape.values),
                       "a tuple of non-negative extents");
      }
    }
    if (array.strides_bytes && array.strides_bytes->count != shape.count) {
      return refused(rules.strides, "the number of strides",
                     std::to_string(array.strides_bytes->count),
                     "that of the dimensions, " + std::to_string(shape.count));
    }
    return absl::OkStatus();
  }

  /// Elements × itemsize. Extents of 0 count as 1, because strides are products of the other
  /// extents.
  absl::Status check_size() const {
    std::optional<std::int64_t> product = array.dtype.itemsize_bytes();
    for (const std::int64_t extent : array.shape.values) {
      if (product && extent != 0) product = checked::mul(*product, extent);
    }
    if (product) return absl::OkStatus();
    return refused(rules.size, "shape", to_string(array.shape.values) + " of " + array.dtype.name(),
                   "at most 2^63 - 1 bytes");
  }
};

/// Without strides: those of a dense array in C order. Requires that check_size passed.
StridedView view_of(const RawArray& array) {
  const Extents& shape = array.shape.values;
  StridedView view{.shape = shape,
                   .strides_bytes = Extents(shape.size(), 0),
                   .itemsize_bytes = array.dtype.itemsize_bytes()};
  std::int64_t stride_bytes = view.itemsize_bytes;
  for (int axis = view.ndim() - 1; axis >= 0; --axis) {
    view.strides_bytes[axis] =
        array.strides_bytes ? array.strides_bytes->values[axis] : stride_bytes;
    if (shape[axis] > 1) stride_bytes *= shape[axis];
  }
  replace_meaningless_strides(view);
  return view;
}

/// `address` + `offset_bytes`, or nothing beyond [0, 2^64).
std::optional<std::uintptr_t> moved(std::uintptr_t address, std::int64_t offset_bytes) {
  std::uintptr_t result = 0;
  if (__builtin_add_overflow(address, offset_bytes, &result)) return std::nullopt;
  return result;
}

/// The hull is in the address space, and in the exported memory.
absl::Status check_hull(const Checker& check, const StridedView& view) {
  const RawArray& array = check.array;
  const std::optional<checked::ByteHull> hull = byte_hull(view);
  const bool touches_bytes = !is_empty(view.shape);
  if (touches_bytes && array.address == 0) {
    return check.refused(check.rules.null, "the address", "0", "that of the first element");
  }
  const bool representable =
      hull && moved(array.address, hull->lowest_bytes) && moved(array.address, hull->highest_bytes);
  if (touches_bytes && !representable) {
    return check.refused(check.rules.hull, "the array", to_string(view),
                         "within the address space from where it starts");
  }
  if (!array.memory || !touches_bytes) return absl::OkStatus();
  // Both differences are modulo 2^64. They are correct if the array starts in the memory.
  const KnownMemory& memory = *array.memory;
  const bool starts_inside =
      array.address >= memory.address &&
      array.address - memory.address <= static_cast<std::uintptr_t>(memory.length_bytes);
  const std::int64_t start =
      starts_inside ? static_cast<std::int64_t>(array.address - memory.address) : 0;
  const auto lowest = checked::add(start, hull->lowest_bytes);
  const auto highest = checked::add(start, hull->highest_bytes);
  if (starts_inside && lowest && highest && *lowest >= 0 && *highest <= memory.length_bytes) {
    return absl::OkStatus();
  }
  const std::string found = starts_inside && lowest && highest
                                ? absl::StrCat("in bytes ", *lowest, " to ", *highest)
                                : std::string("outside of it");
  return check.refused(check.rules.inside, "the array within the memory that was exported", found,
                       absl::StrCat("in bytes 0 to ", memory.length_bytes));
}

bool is_aligned(const BufferDescriptor& memory) {
  const std::int64_t alignment_bytes = memory.dtype.swap_unit_bytes();
  const auto address = reinterpret_cast<std::uintptr_t>(memory.block);
  if (memory.is_empty() || alignment_bytes <= 1) return true;
  if (address % static_cast<std::uintptr_t>(alignment_bytes) != 0) return false;
  for (int axis = 0; axis < memory.view.ndim(); ++axis) {
    const bool matters = memory.view.shape[axis] > 1;
    if (matters && memory.view.strides_bytes[axis] % alignment_bytes != 0) return false;
  }
  return true;
}

}  // namespace

absl::Status refuse(std::string_view rule, ErrorClass error_class, const Problem& problem) {
  return with_context(make_error(error_class, problem), rule);
}

absl::StatusOr<ImportedView> check_array(const RawArray& array, const ArrayRules& rules,
                                         ErrorClass error_class) {
  const Checker check{array, rules, error_class};
  GRIDBUF_RETURN_IF_ERROR(check.check_counts());
  GRIDBUF_RETURN_IF_ERROR(check.check_size());
  const StridedView view = view_of(array);
  GRIDBUF_RETURN_IF_ERROR(check_hull(check, view));
  ImportedView imported;
  imported.memory = {.block = reinterpret_cast<std::byte*>(array.address),
                     .view = view,
                     .dtype = array.dtype,
                     .readonly = array.readonly,
                     .device = {},
                     .owner = {}};
  imported.is_aligned = is_aligned(imported.memory);
  return imported;
}

}  // namespace gridbuf
