module;

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

module gridbuf.layout.named;

import gridbuf.error;

namespace gridbuf {
namespace {

absl::Status different_extents(Dim dim, std::int64_t extent, std::int64_t other_extent) {
  return make_error(
      ErrorClass::kValue,
      {.name = absl::StrCat("the extent of dimension \"", to_string(dim), "\""),
       .found = absl::StrCat(extent),
       .bound = absl::StrCat(other_extent, ", as in the other operand, for dimensions of one name"),
       .advice = extent == 1 || other_extent == 1
                     ? "select the point with an integer index: an extent of 1 is not stretched, a "
                       "dimension that is not there is"
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

absl::Status status_of(const JoinFault& fault) {
  if (fault.kind == JoinFault::Kind::kExtents) {
    return different_extents(fault.dim, fault.extent, fault.other_extent);
  }
  return make_error(ErrorClass::kValue,
                    {.name = "the number of dimensions of all operands",
                     .found = absl::StrCat("more than ", kMaxNdim),
                     .bound = absl::StrCat("at most ", kMaxNdim),
                     .advice = "give dimensions that mean the same the same name"});
}

}  // namespace

absl::StatusOr<NamedLayout> join(std::span<const NamedLayout> fields,
                                 std::span<const NamedShape> others) {
  NamedLayout result;
  const JoinFault fault = join_layouts(fields, others, result);
  if (!fault.ok()) return status_of(fault);
  return result;
}

absl::StatusOr<IndexMap> named_map(const NamedShape& array, const Dims& target) {
  for (const Dim dim : array.dims) {
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

absl::StatusOr<IndexMap> named_broadcast_map(const NamedShape& array, const NamedShape& target) {
  absl::StatusOr<IndexMap> map = named_map(array, target.dims);
  if (!map.ok()) return map;
  for (int position = 0; position < target.dims.size(); ++position) {
    if (!map->axis(position).has_source()) {
      map->stretch(position, target.shape[position]);
    } else if (map->axis(position).extent != target.shape[position]) {
      return different_extents(target.dims[position], map->axis(position).extent,
                               target.shape[position]);
    }
  }
  return map;
}

}  // namespace gridbuf
