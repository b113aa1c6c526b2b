module;

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

module gridbuf.layout.viewed;

namespace gridbuf {

absl::StatusOr<ViewedPlan> view_plan(const LayoutPlan& plan, const Dims& dims, const Halo& halo) {
  ViewedPlan viewed{.memory = plan.view(),
                    .dims = dims.empty() ? default_dims(plan.ndim()) : dims,
                    .halo = no_halo(plan.ndim()),
                    .aligned_index = plan.aligned_index(),
                    .alignment_bytes = plan.alignment_bytes()};
  const absl::Status names = validate_dims(viewed.dims, plan.ndim());
  if (!names.ok()) return names;
  return halo.empty() ? viewed : with_halo(viewed, halo);
}

absl::StatusOr<ViewedPlan> with_halo(const ViewedPlan& plan, const Halo& halo) {
  const absl::Status fits = validate_halo(halo, plan.memory.shape);
  if (!fits.ok()) return fits;
  ViewedPlan result = plan;
  result.halo = halo;
  return result;
}

ViewedPlan domain_view(const ViewedPlan& plan) {
  const Extents& shape = plan.memory.shape;
  IndexMap map(shape);
  for (int axis = 0; axis < plan.ndim(); ++axis) {
    const HaloWidth& halo = plan.halo[axis];
    const Slice domain{.start = halo.lower, .stop = shape[axis] - halo.upper};
    map.keep(axis, slice_points(domain, shape[axis]));
  }
  return apply(map, plan);
}

std::string to_string(const ViewedPlan& plan) {
  return absl::StrCat("ViewedPlan(", to_string(plan.memory), ", dims ", to_string(plan.dims),
                      ", halo ", to_string(plan.halo), ", alignment ", plan.alignment_bytes,
                      " bytes at index ", to_string(plan.aligned_index), ")");
}

}  // namespace gridbuf
