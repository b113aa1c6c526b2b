module;

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"

module gridbuf.layout;

import gridbuf.error;
import gridbuf.layout.checked;

namespace gridbuf {
namespace {

absl::Status value_error(std::string_view name, std::string_view found, std::string_view bound,
                         std::string_view advice) {
  return make_error(ErrorClass::kValue,
                    {.name = name, .found = found, .bound = bound, .advice = advice});
}

std::string item_text(const PlanRequest& request) {
  return request.dtype_name.empty()
             ? absl::StrCat("itemsize ", request.itemsize_bytes, " bytes")
             : absl::StrCat("dtype ", request.dtype_name, " (", request.itemsize_bytes, " bytes)");
}

absl::Status too_large(const PlanRequest& request) {
  return make_error(
      ErrorClass::kValue,
      absl::StrCat("shape ", to_string(request.shape), " with ", item_text(request),
                   " and alignment ", request.alignment_bytes, " bytes needs more than ",
                   checked::kMaxBytes, " bytes, the most that can be addressed; make it smaller"));
}

absl::Status bad_aligned_index(const PlanRequest& request, int axis) {
  const std::int64_t extent = request.shape[axis];
  return value_error(absl::StrCat("aligned_index[", axis, "]"),
                     absl::StrCat(request.aligned_index[axis]),
                     extent == 0 ? "0, for the extent is 0" : absl::StrCat("in [0, ", extent, ")"),
                     "take an index that the shape has");
}

// The message of a fault. Only ever called for requests that failed.
absl::Status describe(const PlanRequest& request, const PlanFault& fault) {
  switch (fault.kind) {
    case PlanFault::Kind::kNone:
      break;
    case PlanFault::Kind::kItemsize:
      return value_error("itemsize_bytes", absl::StrCat(request.itemsize_bytes), ">= 0",
                         "pass the size of one element");
    case PlanFault::Kind::kAlignment:
      return value_error("alignment_bytes", absl::StrCat(request.alignment_bytes),
                         absl::StrCat("an integer from 1 to ", kMaxAlignmentBytes),
                         "pass 1 for no constraint");
    case PlanFault::Kind::kExtent:
      return value_error(absl::StrCat("shape[", fault.axis, "]"),
                         absl::StrCat(request.shape[fault.axis]), ">= 0",
                         "extents count elements; 0 is allowed");
    case PlanFault::Kind::kLayoutMap:
      return validate_layout_map(request.layout, request.shape.size());
    case PlanFault::Kind::kAlignedIndexLength:
      return value_error("the number of entries of aligned_index",
                         absl::StrCat(request.aligned_index.size()),
                         absl::StrCat(request.shape.size(), ", one per dimension"),
                         "give one index per dimension, or none at all");
    case PlanFault::Kind::kAlignedIndex:
      return bad_aligned_index(request, fault.axis);
    case PlanFault::Kind::kOverflow:
      return too_large(request);
  }
  return make_error(ErrorClass::kInternal, "a layout plan failed without a fault");
}

template <class T>
void append_if_different(std::string& text, std::string_view name, const T& wanted,
                         const T& found) {
  if (wanted == found) return;
  absl::StrAppend(&text, name, ": wanted ", wanted, ", found ", found, "\n");
}

}  // namespace

absl::StatusOr<LayoutPlan> make_plan(const PlanRequest& request) {
  absl::StatusOr<LayoutPlan> plan(absl::in_place);
  const PlanFault fault = plan_layout(request, *plan);
  if (!fault.ok()) plan = describe(request, fault);
  return plan;
}

std::string to_string(const LayoutPlan& plan) {
  return absl::StrCat("LayoutPlan(shape ", to_string(plan.shape()), ", itemsize ",
                      plan.itemsize_bytes(), " bytes, layout ", to_string(plan.layout()),
                      ", strides ", to_string(plan.strides_bytes()), " bytes, padded shape ",
                      to_string(plan.padded_shape()), ", alignment ", plan.alignment_bytes(),
                      " bytes at index ", to_string(plan.aligned_index()), " (offset ",
                      plan.aligned_offset_bytes(), " bytes), ", plan.nbytes(),
                      " bytes of elements, ", plan.total_bytes(), " bytes in all)");
}

std::string offset_rule(const LayoutPlan& plan) {
  std::string indices;
  std::string terms;
  for (int axis = 0; axis < plan.ndim(); ++axis) {
    absl::StrAppend(&indices, axis > 0 ? ", i" : "i", axis);
    absl::StrAppend(&terms, axis > 0 ? " + " : "", plan.strides_bytes()[axis], "*i", axis);
  }
  return absl::StrCat("offset(", indices, ") = ", terms.empty() ? "0" : terms, " bytes");
}

std::string difference(const LayoutPlan& wanted, const LayoutPlan& found) {
  std::string text;
  append_if_different(text, "shape", to_string(wanted.shape()), to_string(found.shape()));
  append_if_different(text, "itemsize_bytes", wanted.itemsize_bytes(), found.itemsize_bytes());
  append_if_different(text, "layout", to_string(wanted.layout()), to_string(found.layout()));
  append_if_different(text, "alignment_bytes", wanted.alignment_bytes(), found.alignment_bytes());
  append_if_different(text, "aligned_index", to_string(wanted.aligned_index()),
                      to_string(found.aligned_index()));
  append_if_different(text, "padded_shape", to_string(wanted.padded_shape()),
                      to_string(found.padded_shape()));
  append_if_different(text, "strides_bytes", to_string(wanted.strides_bytes()),
                      to_string(found.strides_bytes()));
  return text;
}

}  // namespace gridbuf
