module;

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"

module gridbuf.layout;

namespace gridbuf {
namespace {

absl::Status value_error(std::string_view name, std::string_view found, std::string_view bound,
                         std::string_view advice) {
  return make_error(ErrorClass::kValue,
                    {.name = name, .found = found, .bound = bound, .advice = advice});
}

std::uint64_t magnitude(std::int64_t stride_bytes) {
  const auto bits = static_cast<std::uint64_t>(stride_bytes);
  return stride_bytes < 0 ? 0 - bits : bits;
}

std::string item_text(const LayoutRequest& request) {
  return request.dtype_name.empty()
             ? absl::StrCat("itemsize ", request.itemsize_bytes, " bytes")
             : absl::StrCat("dtype ", request.dtype_name, " (", request.itemsize_bytes, " bytes)");
}

absl::Status too_large(const LayoutRequest& request) {
  return make_error(
      ErrorClass::kValue,
      absl::StrCat("shape ", to_string(request.shape), " with ", item_text(request),
                   " and alignment ", request.alignment_bytes, " bytes needs more than ",
                   checked::kMaxBytes, " bytes, the most that can be addressed; make it smaller"));
}

absl::Status bad_aligned_index(const LayoutRequest& request, int axis) {
  const std::int64_t extent = request.shape[axis];
  return value_error(
      absl::StrCat("aligned_index[", axis, "]"), absl::StrCat(request.aligned_index[axis]),
      extent == 0 ? "0, because the extent is 0" : absl::StrCat("in [0, ", extent, ")"),
      "use an index inside the shape");
}

// The message of a fault. Only ever called for requests that failed.
absl::Status describe(const LayoutRequest& request, const LayoutFault& fault) {
  switch (fault.kind) {
    case LayoutFault::Kind::kNone:
      break;
    case LayoutFault::Kind::kItemsize:
      return value_error("itemsize_bytes", absl::StrCat(request.itemsize_bytes), ">= 0",
                         "pass the size of one element");
    case LayoutFault::Kind::kAlignment:
      return value_error("alignment_bytes", absl::StrCat(request.alignment_bytes),
                         absl::StrCat("an integer from 1 to ", kMaxAlignmentBytes),
                         "pass 1 for no constraint");
    case LayoutFault::Kind::kExtent:
      return value_error(absl::StrCat("shape[", fault.axis, "]"),
                         absl::StrCat(request.shape[fault.axis]), ">= 0",
                         "extents count elements; 0 is allowed");
    case LayoutFault::Kind::kLayoutMap:
      return validate_layout_map(request.layout, request.shape.size());
    case LayoutFault::Kind::kAlignedIndexLength:
      return value_error("the number of entries of aligned_index",
                         absl::StrCat(request.aligned_index.size()),
                         absl::StrCat(request.shape.size(), ", one per dimension"),
                         "give one index per dimension, or none at all");
    case LayoutFault::Kind::kAlignedIndex:
      return bad_aligned_index(request, fault.axis);
    case LayoutFault::Kind::kDims:
      return validate_dims(request.dims, request.shape.size());
    case LayoutFault::Kind::kHalo:
      return validate_halo(request.halo, request.shape);
    case LayoutFault::Kind::kOverflow:
      return too_large(request);
  }
  return make_error(ErrorClass::kInternal, "a layout failed without a fault");
}

template <class T>
void append_if_different(std::string& text, std::string_view name, const T& wanted,
                         const T& found) {
  if (wanted == found) return;
  absl::StrAppend(&text, name, ": wanted ", wanted, ", found ", found, "\n");
}

}  // namespace

absl::Status validate_layout_map(const LayoutMap& layout, int ndim) {
  if (layout.size() == ndim && is_permutation(layout)) return absl::OkStatus();
  const std::string bound = ndim == 0
                                ? "empty, because the shape is ()"
                                : absl::StrCat("a permutation of 0 to ", ndim - 1,
                                               ", one rank per dimension (0 = largest stride)");
  return make_error(ErrorClass::kValue, {.name = "layout",
                                         .found = to_string(layout),
                                         .bound = bound,
                                         .advice = "use every rank once"});
}

LayoutMap layout_of(const Extents& shape, const Extents& strides_bytes) {
  LayoutMap layout = c_order(shape.size());
  Axes moved;  // those whose stride counts
  for (int axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] == 0) return layout;
    if (shape[axis] > 1) moved.push_back(axis);
  }
  for (const int axis : moved) {
    int rank = 0;
    for (const int other : moved) {
      const std::uint64_t ours = magnitude(strides_bytes[axis]);
      const std::uint64_t theirs = magnitude(strides_bytes[other]);
      rank += theirs > ours || (theirs == ours && other < axis) ? 1 : 0;
    }
    layout[axis] = moved[rank];
  }
  return layout;
}

absl::StatusOr<Layout> make_plan(const LayoutRequest& request) {
  absl::StatusOr<Layout> layout(absl::in_place);
  const LayoutFault fault = plan_layout(request, *layout);
  if (!fault.ok()) layout = describe(request, fault);
  return layout;
}

absl::StatusOr<Layout> with_meaning(const Layout& layout, const Dims& dims, const Halo& halo) {
  const Dims all_names = dims.empty() ? default_dims(layout.ndim()) : Dims();
  const Dims& names = dims.empty() ? all_names : dims;
  if (absl::Status status = validate_dims(names, layout.ndim()); !status.ok()) return status;
  const Halo none = halo.empty() ? no_halo(layout.ndim()) : Halo();
  const Halo& widths = halo.empty() ? none : halo;
  if (absl::Status status = validate_halo(widths, layout.shape()); !status.ok()) return status;
  return absl::StatusOr<Layout>(std::in_place, layout, names, widths);
}

std::string to_string(const Layout& layout) {
  std::string text = absl::StrCat(
      "shape ", to_string(layout.shape()), ", itemsize ", layout.itemsize_bytes(),
      " bytes, layout ", to_string(layout.layout_map()), ", strides ",
      to_string(layout.strides_bytes()), " bytes, padded shape ", to_string(layout.padded_shape()),
      ", alignment ", layout.alignment_bytes(), " bytes at index ",
      to_string(layout.aligned_index()), " (offset ", layout.aligned_offset_bytes(), " bytes), ",
      layout.nbytes(), " bytes of elements, ", layout.total_bytes(), " bytes in all");
  if (!layout.dims().empty()) absl::StrAppend(&text, ", dims ", to_string(layout.dims()));
  if (!layout.halo().empty()) absl::StrAppend(&text, ", halo ", to_string(layout.halo()));
  return text;
}

std::string offset_rule(const Layout& layout) {
  std::string indices;
  std::string terms;
  for (int axis = 0; axis < layout.ndim(); ++axis) {
    absl::StrAppend(&indices, axis > 0 ? ", i" : "i", axis);
    absl::StrAppend(&terms, axis > 0 ? " + " : "", layout.strides_bytes()[axis], "*i", axis);
  }
  return absl::StrCat("offset(", indices, ") = ", terms.empty() ? "0" : terms, " bytes");
}

std::string difference(const Layout& wanted, const Layout& found) {
  std::string text;
  append_if_different(text, "shape", to_string(wanted.shape()), to_string(found.shape()));
  append_if_different(text, "itemsize_bytes", wanted.itemsize_bytes(), found.itemsize_bytes());
  append_if_different(text, "layout", to_string(wanted.layout_map()),
                      to_string(found.layout_map()));
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
