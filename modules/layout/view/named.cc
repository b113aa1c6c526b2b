module;

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "modules/base/status_macros.h"

module gridbuf.layout.view;

import gridbuf.layout.preset;

namespace gridbuf {
namespace {

absl::Status different_extents(Dim dim, std::int64_t extent, std::int64_t other_extent) {
  return make_error(
      ErrorClass::kValue,
      {.name = absl::StrCat("the extent of dimension \"", to_string(dim), "\""),
       .found = absl::StrCat(extent),
       .bound = absl::StrCat(other_extent, ", as in the other operand, for dimensions of one name"),
       .advice = extent == 1 || other_extent == 1
                     ? "select the point with an integer index: a missing dimension stretches, an "
                       "extent of 1 only if None or keepdims=True has made it"
                     : "take slices of equal length"});
}

absl::Status missing_dim(Dim dim, const Dims& target) {
  return make_error(
      ErrorClass::kValue,
      {.name = "a dimension of the operand",
       .found = absl::StrCat("\"", to_string(dim), "\""),
       .bound = absl::StrCat("one of the target's dimensions ", to_string(target)),
       .advice = "select a point of it with an integer index, or take a target that has it"});
}

absl::Status too_many_dims() {
  return make_error(ErrorClass::kValue, {.name = "the number of dimensions of all operands",
                                         .found = absl::StrCat("more than ", kMaxNdim),
                                         .bound = absl::StrCat("at most ", kMaxNdim),
                                         .advice = "give dimensions with one meaning one name"});
}

// InvalidArgument if `dims` has the name of `dim` with another kind, or its staggered half.
absl::Status check_meaning(Dim dim, const Dims& dims) {
  for (const Dim other : dims) {
    if (dim == other) continue;
    if (have_one_name(dim, other)) return different_kinds(dim, other);
    if (are_halves(dim, other)) {
      return make_error(
          ErrorClass::kValue,
          {.name = absl::StrCat("a dimension next to \"", to_string(other), "\""),
           .found = absl::StrCat("\"", to_string(dim), "\""),
           .bound = "another than its staggered half, whose points are between",
           .advice = "interpolate one operand to the points of the other, and name it so"});
    }
  }
  return absl::OkStatus();
}

bool stretches(Dim dim, std::int64_t extent) { return dim.is_stretchable() && extent == 1; }

// Leaves the points of `all` that the dimension has, too; without any, it begins at 0 as GT4Py's.
void keep_common(Dim dim, std::int64_t extent, Dim& all, std::int64_t& all_extent) {
  const std::int64_t first = std::max(dim.start(), all.start());
  const std::int64_t points =
      std::min(extent - (first - dim.start()), all_extent - (first - all.start()));
  all = all.starting_at(points > 0 ? first : 0);
  all_extent = std::max<std::int64_t>(points, 0);
}

std::string range_of(Dim dim, std::int64_t extent) {
  const std::optional<std::int64_t> end = checked::add(dim.start(), extent);
  return absl::StrCat(dim.start(), ":", end ? absl::StrCat(*end) : "");
}

// The points of `dim` that `target` has.
absl::StatusOr<SlicePoints> common_points(Dim dim, std::int64_t extent, Dim target,
                                          std::int64_t target_extent) {
  if (target_extent == 0) return SlicePoints{};
  const std::int64_t first = target.start() - dim.start();
  if (first >= 0 && target_extent <= extent - first) return SlicePoints{first, 1, target_extent};
  return make_error(
      ErrorClass::kValue,
      {.name = absl::StrCat("the range of dimension \"", to_string(dim), "\" of what is written"),
       .found = range_of(target, target_extent),
       .bound = absl::StrCat("within that of the value, ", range_of(dim, extent)),
       .advice = "write to the points that both have, or pass a value without ranges, such as a "
                 "field's ndarray"});
}

// Adds the names of `array` to those of `all`.
absl::Status add_names(const Dims& dims, const Extents& shape, NamedShape& all) {
  for (int axis = 0; axis < dims.size(); ++axis) {
    GRIDBUF_RETURN_IF_ERROR(check_meaning(dims[axis], all.dims));
    const int known = position_of(dims[axis], all.dims);
    if (known < 0) {
      if (all.dims.size() == kMaxNdim) return too_many_dims();
      all.dims.push_back(dims[axis]);
      all.shape.push_back(shape[axis]);
    } else if (stretches(all.dims[known], all.shape[known])) {
      all.dims[known] = dims[axis];
      all.shape[known] = shape[axis];
    } else if (all.dims[known].has_start() && dims[axis].has_start()) {
      keep_common(dims[axis], shape[axis], all.dims[known], all.shape[known]);
    } else if (all.shape[known] != shape[axis] && !stretches(dims[axis], shape[axis])) {
      return different_extents(dims[axis], shape[axis], all.shape[known]);
    } else if (dims[axis].has_start()) {
      all.dims[known] = dims[axis];
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<NamedShape> all_names(std::span<const LayoutRequest> fields,
                                     std::span<const NamedShape> others) {
  NamedShape all;
  for (const LayoutRequest& field : fields) {
    GRIDBUF_RETURN_IF_ERROR(add_names(field.dims, field.shape, all));
  }
  for (const NamedShape& other : others) {
    GRIDBUF_RETURN_IF_ERROR(add_names(other.dims, other.shape, all));
  }
  return all;
}

// The names of a result that has all of `dims`, in its order.
Dims joined_order(const Dims& dims, std::span<const LayoutRequest> fields) {
  for (const LayoutRequest& field : fields) {
    if (field.dims.size() == dims.size()) return field.dims;
  }
  Dims order = dims;
  std::sort(order.begin(), order.end());
  return order;
}

absl::Status check_order(const Dims& order, const Dims& dims) {
  const bool has_all =
      std::ranges::all_of(dims.span(), [&order](Dim dim) { return position_of(dim, order) >= 0; });
  if (has_all && order.size() == dims.size()) return absl::OkStatus();
  return make_error(ErrorClass::kValue, {.name = "the order of the result's dimensions",
                                         .found = to_string(order),
                                         .bound = absl::StrCat("an order of ", to_string(dims)),
                                         .advice = "name every dimension once"});
}

// Appends extent, halo and aligned index of the result's dimension `dim`.
// Of a field that has more points than the result, the halo and aligned index of those.
void join_dimension(std::span<const LayoutRequest> fields, Dim dim, std::int64_t extent,
                    LayoutRequest& result) {
  std::optional<HaloWidth> first_halo;
  HaloWidth halo = {};
  std::int64_t aligned = 0;
  for (const LayoutRequest& field : fields) {
    const int axis = position_of(dim, field.dims);
    if (axis < 0) continue;
    const bool is_ranged = dim.has_start() && field.dims[axis].has_start() && extent > 0;
    if (field.shape[axis] != extent && !is_ranged) continue;  // It stretches.
    const std::int64_t first = is_ranged ? dim.start() - field.dims[axis].start() : 0;
    const HaloWidth own =
        halo_of_slice(field.halo[axis], field.shape[axis], first, /*step=*/1, extent);
    if (!first_halo) first_halo = own;
    halo.lower = std::max(halo.lower, own.lower);
    halo.upper = std::max(halo.upper, own.upper);
    aligned = std::max(aligned, std::clamp<std::int64_t>(field.aligned_index[axis] - first, 0,
                                                         std::max<std::int64_t>(extent - 1, 0)));
  }
  const bool fits = halo.lower <= extent - halo.upper;
  result.shape.push_back(extent);
  result.halo.push_back(fits ? halo : *first_halo);
  result.aligned_index.push_back(aligned);
}

std::int64_t joined_alignment_bytes(std::span<const LayoutRequest> fields) {
  if (fields.empty()) return 1;
  std::optional<std::int64_t> multiple = 1;
  for (const LayoutRequest& field : fields) {
    if (multiple) multiple = common_alignment_bytes(*multiple, field.alignment_bytes);
  }
  return multiple.value_or(fields.front().alignment_bytes);
}

bool is_data(Dim dim) { return dim.kind() == DimKind::kData; }

// `target` from the outermost to the innermost dimension without data dimensions, by the first of
// kBaseRanks that agrees with the order in `outer_to_inner`; by the first of all if none does,
// which more than three dimensions can bring about.
Dims order_of(const Dims& target, const Dims& outer_to_inner) {
  Dims first;
  for (const std::array<int, kSpatialAxes>& ranks : kBaseRanks) {
    Dims order;
    for (const int axis : axes_by_rank(layout_by_name(ranks, target))) {
      if (!is_data(target[axis])) order.push_back(target[axis]);
    }
    int previous = -1;
    bool agrees = true;
    for (const Dim dim : outer_to_inner) {
      if (is_data(dim)) continue;
      agrees = agrees && position_of(dim, order) > previous;
      previous = position_of(dim, order);
    }
    if (agrees) return order;
    if (first.empty()) first = order;
  }
  return first;
}

// `dims` from the largest stride to the smallest.
Dims outer_to_inner(const Dims& dims, const LayoutMap& layout) {
  Dims order;
  for (const int axis : axes_by_rank(layout)) order.push_back(dims[axis]);
  return order;
}

// Inserts the dimensions of `target` that `order` lacks and that are not data, by the base ranks:
// inside the next outer axis or, without an outer axis, directly outside the inner axes.
void place_spatial(Dims& order, const Dims& target) {
  int previous = -1;  // Where the axis outside of the current one is.
  for (const Dim dim : order_of(target, order)) {
    const int present = position_of(dim, order);
    if (present >= 0) {
      previous = present;
    } else {
      int position = previous + 1;
      if (previous < 0) {
        while (position < order.size() && is_data(order[position])) ++position;
      }
      order.insert(position, dim);
      previous = position;
    }
  }
}

}  // namespace

LayoutMap extended_layout(const Dims& dims, const LayoutMap& layout, const Dims& target) {
  Dims order = outer_to_inner(dims, layout);
  place_spatial(order, target);
  int added = 0;  // Data dimensions, outermost, the lowest number first.
  for (const Dim dim : target) {
    if (!is_data(dim) || position_of(dim, dims) >= 0) continue;
    int position = 0;
    while (position < added && order[position] < dim) ++position;
    order.insert(position, dim);
    ++added;
  }
  LayoutMap result;
  for (const Dim dim : target) result.push_back(position_of(dim, order));
  return result;
}

std::optional<std::int64_t> common_alignment_bytes(std::int64_t a, std::int64_t b) noexcept {
  const std::optional<std::int64_t> multiple = checked::mul(checked::padding_multiple(a, b), b);
  return multiple && *multiple <= checked::kMaxAlignmentBytes ? multiple : std::nullopt;
}

LayoutRequest reduced_layout(const LayoutRequest& field, const Axes& axes, bool keep) {
  LayoutRequest result = field;
  if (keep) {
    for (const int axis : axes) {
      result.shape[axis] = 1;
      result.dims[axis] = result.dims[axis].stretchable();
      result.halo[axis] = {};
      result.aligned_index[axis] = 0;
    }
    return result;
  }
  IndexMap map(field.shape);
  for (int i = axes.size() - 1; i >= 0; --i) map.fix(axes[i], 0);
  result.dims = apply(map, field.dims);
  result.shape = map.shape();
  result.halo = apply(map, field.halo);
  result.aligned_index = apply_to_index(map, field.aligned_index);
  result.layout = apply_to_layout(map, field.layout);
  return result;
}

absl::StatusOr<LayoutRequest> join(std::span<const LayoutRequest> fields,
                                   std::span<const NamedShape> others, const Dims& order) {
  const absl::StatusOr<NamedShape> all = all_names(fields, others);
  if (!all.ok()) return all.status();
  if (!order.empty()) GRIDBUF_RETURN_IF_ERROR(check_order(order, all->dims));
  LayoutRequest result;
  for (const Dim dim : order.empty() ? joined_order(all->dims, fields) : order) {
    const int position = position_of(dim, all->dims);
    result.dims.push_back(all->dims[position]);
    join_dimension(fields, all->dims[position], all->shape[position], result);
  }
  result.layout = fields.empty() ? extended_layout({}, {}, result.dims)
                                 : extended_layout(fields[0].dims, fields[0].layout, result.dims);
  result.alignment_bytes = joined_alignment_bytes(fields);
  return result;
}

absl::StatusOr<IndexMap> named_map(const NamedShape& array, const Dims& target) {
  for (const Dim dim : array.dims) {
    GRIDBUF_RETURN_IF_ERROR(check_meaning(dim, target));
    if (position_of(dim, target) < 0) return missing_dim(dim, target);
  }
  Axes axes;
  for (const Dim dim : target) {
    const int axis = position_of(dim, array.dims);
    if (axis >= 0) axes.push_back(axis);
  }
  IndexMap map(array.shape);
  map.permute(axes);
  for (int position = 0; position < target.size(); ++position) {
    if (position_of(target[position], array.dims) < 0) map.insert(position);
  }
  return map;
}

absl::StatusOr<IndexMap> common_points_map(const NamedShape& array, const NamedShape& target) {
  IndexMap map(array.shape);
  for (int axis = 0; axis < array.dims.size(); ++axis) {
    const Dim dim = array.dims[axis];
    const int position = position_of(dim, target.dims);
    if (position < 0 || !dim.has_start() || !target.dims[position].has_start()) continue;
    GRIDBUF_ASSIGN_OR_RETURN(
        const SlicePoints points,
        common_points(dim, array.shape[axis], target.dims[position], target.shape[position]));
    map.keep(axis, points);
  }
  return map;
}

absl::StatusOr<IndexMap> named_broadcast_map(const NamedShape& array, const NamedShape& target) {
  GRIDBUF_ASSIGN_OR_RETURN(IndexMap named, common_points_map(array, target));
  for (int axis = array.dims.size() - 1; axis >= 0; --axis) {
    if (array.dims[axis].is_unnamed() && array.shape[axis] == 1) named.fix(axis, 0);
  }
  const Dims dims = apply(named, array.dims);
  absl::StatusOr<IndexMap> map = named_map({.dims = dims, .shape = named.shape()}, target.dims);
  if (!map.ok()) return map;
  for (int position = 0; position < target.dims.size(); ++position) {
    const ViewAxis& axis = map->axis(position);
    if (!axis.has_source() || stretches(dims[axis.source], axis.extent)) {
      map->stretch(position, target.shape[position]);
    } else if (axis.extent != target.shape[position]) {
      return different_extents(target.dims[position], axis.extent, target.shape[position]);
    }
  }
  return named.through(*map);
}

}  // namespace gridbuf
