module;

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

module gridbuf.layout.view;

namespace gridbuf {
namespace {

absl::Status no_such_axis(int axis, int count) {
  return make_error(ErrorClass::kIndex,
                    {.name = "axis",
                     .found = absl::StrCat(axis),
                     .bound = count == 0 ? "a dimension of the array, whose shape is ()"
                                         : absl::StrCat("in [", -count, ", ", count, ")"),
                     .advice = "count dimensions from 0, or from the end with -1"});
}

// `axis` counted from 0, or nothing.
std::optional<int> resolve_axis(int axis, int count) {
  if (axis < -count || axis >= count) return std::nullopt;
  return axis < 0 ? axis + count : axis;
}

absl::Status fix_checked(IndexMap& map, int axis, int named_axis, std::int64_t index) {
  const std::int64_t extent = map.axis(axis).extent;
  if (index < -extent || index >= extent) {
    return make_error(ErrorClass::kIndex,
                      {.name = absl::StrCat("index in dimension ", named_axis),
                       .found = absl::StrCat(index),
                       .bound = extent == 0 ? "absent, because the extent is 0"
                                            : absl::StrCat("in [", -extent, ", ", extent, ")"),
                       .advice = "use an index inside the shape"});
  }
  map.fix(axis, index < 0 ? index + extent : index);
  return absl::OkStatus();
}

absl::Status keep_checked(IndexMap& map, int axis, const Slice& slice) {
  if (slice.step == 0) {
    return make_error(ErrorClass::kValue, {.name = "slice step",
                                           .found = "0",
                                           .bound = "a positive or negative integer",
                                           .advice = "use 1 to keep every point"});
  }
  map.keep(axis, slice_points(slice, map.axis(axis).extent));
  return absl::OkStatus();
}

// The counts of the items of a subscript.
struct SubscriptCounts {
  int fixed = 0;
  int sliced = 0;
  int ellipses = 0;
  std::size_t new_axes = 0;
};

absl::StatusOr<SubscriptCounts> count_items(const Extents& shape,
                                            std::span<const SubscriptItem> items) {
  SubscriptCounts counts;
  std::size_t mentioned = 0;
  std::size_t ellipses = 0;
  for (const SubscriptItem& item : items) {
    const bool fixes = std::holds_alternative<std::int64_t>(item);
    const bool slices = std::holds_alternative<Slice>(item);
    mentioned += fixes || slices ? 1 : 0;
    ellipses += std::holds_alternative<Ellipsis>(item) ? 1 : 0;
    counts.new_axes += std::holds_alternative<NewAxis>(item) ? 1 : 0;
    if (mentioned > static_cast<std::size_t>(shape.size())) continue;
    counts.fixed += fixes ? 1 : 0;
    counts.sliced += slices ? 1 : 0;
  }
  if (mentioned > static_cast<std::size_t>(shape.size())) {
    return make_error(ErrorClass::kIndex,
                      {.name = "the number of indices and slices",
                       .found = absl::StrCat(mentioned),
                       .bound = absl::StrCat("at most the ", shape.size(), " dimensions"),
                       .advice = "leave some out"});
  }
  if (ellipses > 1) {
    return make_error(ErrorClass::kIndex, {.name = "the number of ellipses (...)",
                                           .found = absl::StrCat(ellipses),
                                           .bound = "at most 1",
                                           .advice = "write : instead of the additional ellipses"});
  }
  const std::size_t ndim = counts.new_axes + static_cast<std::size_t>(shape.size() - counts.fixed);
  if (ndim > static_cast<std::size_t>(kMaxNdim)) {
    return make_error(ErrorClass::kIndex, {.name = "the number of dimensions of the view",
                                           .found = absl::StrCat(ndim),
                                           .bound = absl::StrCat("at most ", kMaxNdim),
                                           .advice = "add fewer new axes"});
  }
  counts.ellipses = static_cast<int>(ellipses);
  return counts;
}

absl::Status cannot_broadcast(const Extents& shape, const Extents& target,
                              std::string_view because) {
  return make_error(
      ErrorClass::kValue,
      {.name = "the target shape of a broadcast",
       .found = to_string(target),
       .bound = absl::StrCat("one that ", to_string(shape), " stretches to: ", because),
       .advice = "align shapes at the last dimension; only extents of 1 stretch"});
}

}  // namespace

absl::StatusOr<IndexMap> subscript_map(const Extents& shape, std::span<const SubscriptItem> items) {
  const absl::StatusOr<SubscriptCounts> counts = count_items(shape, items);
  if (!counts.ok()) return counts.status();
  const int unmentioned = shape.size() - counts->fixed - counts->sliced;

  // Integers and slices first, because inserting new axes earlier could exceed kMaxNdim for a
  // moment.
  IndexMap map(shape);
  int axis = 0;        // In the map, which shrinks.
  int named_axis = 0;  // In the source, as the user counts.
  for (const SubscriptItem& item : items) {
    absl::Status status;
    if (const auto* index = std::get_if<std::int64_t>(&item)) {
      status = fix_checked(map, axis, named_axis++, *index);
    } else if (const auto* slice = std::get_if<Slice>(&item)) {
      status = keep_checked(map, axis++, *slice);
      ++named_axis;
    } else if (std::holds_alternative<Ellipsis>(item)) {
      axis += unmentioned;
      named_axis += unmentioned;
    }
    if (!status.ok()) return status;
  }

  int position = 0;
  for (const SubscriptItem& item : items) {
    if (std::holds_alternative<NewAxis>(item)) map.insert(position++);
    if (std::holds_alternative<Slice>(item)) ++position;
    if (std::holds_alternative<Ellipsis>(item)) position += unmentioned;
  }
  return map;
}

absl::StatusOr<IndexMap> index_map(const Extents& shape, int axis, std::int64_t index) {
  const std::optional<int> resolved = resolve_axis(axis, shape.size());
  if (!resolved) return no_such_axis(axis, shape.size());
  IndexMap map(shape);
  const absl::Status status = fix_checked(map, *resolved, *resolved, index);
  if (!status.ok()) return status;
  return map;
}

absl::StatusOr<IndexMap> slice_map(const Extents& shape, int axis, const Slice& slice) {
  const std::optional<int> resolved = resolve_axis(axis, shape.size());
  if (!resolved) return no_such_axis(axis, shape.size());
  IndexMap map(shape);
  const absl::Status status = keep_checked(map, *resolved, slice);
  if (!status.ok()) return status;
  return map;
}

absl::StatusOr<IndexMap> reverse_map(const Extents& shape, int axis) {
  return slice_map(shape, axis, Slice{.step = -1});
}

absl::StatusOr<IndexMap> transpose_map(const Extents& shape, const Axes& axes) {
  const int ndim = shape.size();
  Axes order;
  if (axes.empty()) {
    for (int axis = ndim - 1; axis >= 0; --axis) order.push_back(axis);
  }
  for (const int axis : axes) {
    const std::optional<int> resolved = resolve_axis(axis, ndim);
    if (!resolved) return no_such_axis(axis, ndim);
    order.push_back(*resolved);
  }
  std::uint64_t seen = 0;
  for (const int axis : order) seen |= std::uint64_t{1} << axis;
  if (order.size() != ndim || __builtin_popcountll(seen) != ndim) {
    return make_error(ErrorClass::kValue,
                      {.name = "axes of a transpose",
                       .found = to_string(axes),
                       .bound = absl::StrCat("all ", ndim, " dimensions, each once"),
                       .advice = "name every dimension of the array once"});
  }
  IndexMap map(shape);
  map.permute(order);
  return map;
}

absl::StatusOr<IndexMap> new_axis_map(const Extents& shape, int position) {
  const std::optional<int> resolved = resolve_axis(position, shape.size() + 1);
  if (!resolved) return no_such_axis(position, shape.size() + 1);
  if (shape.size() == kMaxNdim) {
    return make_error(ErrorClass::kValue, {.name = "the number of dimensions of the view",
                                           .found = absl::StrCat(kMaxNdim + 1),
                                           .bound = absl::StrCat("at most ", kMaxNdim),
                                           .advice = "add fewer new axes"});
  }
  IndexMap map(shape);
  map.insert(*resolved);
  return map;
}

absl::StatusOr<IndexMap> broadcast_map(const Extents& shape, const Extents& target,
                                       std::int64_t itemsize_bytes) {
  const std::optional<std::int64_t> count = checked::product(target.span());
  if (!count || !checked::mul(*count, itemsize_bytes)) {
    return cannot_broadcast(shape, target,
                            absl::StrCat("extents >= 0 and at most ", checked::kMaxBytes,
                                         " bytes with itemsize ", itemsize_bytes));
  }
  const int added = target.size() - shape.size();
  if (added < 0) return cannot_broadcast(shape, target, "at least as many dimensions");
  IndexMap map(shape);
  for (int axis = 0; axis < added; ++axis) map.insert(0);
  for (int axis = 0; axis < target.size(); ++axis) {
    const std::int64_t extent = map.axis(axis).extent;
    if (extent == target[axis]) continue;
    if (extent != 1) {
      return cannot_broadcast(
          shape, target,
          absl::StrCat("dimension ", axis, " would go from ", extent, " to ", target[axis]));
    }
    map.stretch(axis, target[axis]);
  }
  return map;
}

}  // namespace gridbuf
