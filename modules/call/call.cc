module;

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "modules/base/status_macros.h"

module gridbuf.call;

import gridbuf.base;

namespace gridbuf {
namespace {

/// "field 'u'", or "field 'u', dimension J".
std::string place(const FieldRule& rule) { return "field '" + rule.name + "'"; }
std::string place(const FieldRule& rule, Dim dim) {
  return place(rule) + ", dimension " + to_string(dim);
}

absl::Status value_error(const std::string& where, std::string_view what, std::string_view found,
                         std::string_view wanted, std::string_view advice) {
  return make_error(ErrorClass::kValue, {where + ": " + std::string(what), found, wanted, advice});
}

int spatial_count(const Dims& dims) {
  return static_cast<int>(std::ranges::count_if(dims, [](Dim dim) { return dim.is_grid(); }));
}

// ---- Dimensions. ----

absl::Status check_ndim(const FieldRule& rule, int ndim) {
  if (ndim == rule.dims.size()) return absl::OkStatus();
  return value_error(place(rule), "the number of dimensions", std::to_string(ndim),
                     std::to_string(rule.dims.size()) + ", for " + to_string(rule.dims),
                     "pass such an array, or annotate the parameter with its axes");
}

int position_in(const Dims& dims, Dim dim) {
  const auto found = std::ranges::find(dims, dim);
  return found == dims.end() ? -1 : static_cast<int>(found - dims.begin());
}

/// Sets the order of the dimensions. Requires as many as the rule has.
absl::Status order(const FieldRule& rule, const Dims& named, BoundField& field) {
  for (int i = 0; i < rule.dims.size(); ++i) {
    const int axis = named.empty() ? i : position_in(named, rule.dims[i]);
    if (axis < 0) {
      return value_error(place(rule, rule.dims[i]), "its dims", to_string(named),
                         to_string(rule.dims) + " in any order",
                         "name the array's dimensions with dims=, or annotate the parameter with "
                         "its axes");
    }
    field.axes.push_back(axis);
    field.is_in_order = field.is_in_order && axis == i;
  }
  return absl::OkStatus();
}

StridedView permuted(const StridedView& memory, const Axes& axes) {
  StridedView view;
  view.itemsize_bytes = memory.itemsize_bytes;
  for (const int axis : axes) {
    view.shape.push_back(memory.shape[axis]);
    view.strides_bytes.push_back(memory.strides_bytes[axis]);
  }
  return view;
}

absl::Status check_data_extents(const FieldRule& rule, const BoundField& field) {
  const int first = rule.dims.size() - rule.data_extents.size();
  for (int i = 0; i < rule.data_extents.size(); ++i) {
    const std::int64_t found = field.memory.shape[first + i];
    if (rule.data_extents[i] < 0 || rule.data_extents[i] == found) continue;
    return value_error(place(rule, rule.dims[first + i]), "its extent", std::to_string(found),
                       std::to_string(rule.data_extents[i]), "pass an array of that extent");
  }
  return absl::OkStatus();
}

// ---- Origins. ----

HaloWidth width(const Halo& halo, int axis) { return halo.empty() ? HaloWidth{} : halo[axis]; }

/// Sets the origin to `said`, with zeros for missing dimensions that are not of the grid.
absl::Status take_origin(const FieldRule& rule, const Extents& said, std::string_view who,
                         Extents& origin) {
  const int spatial = spatial_count(rule.dims);
  if (said.size() != spatial && said.size() != rule.dims.size()) {
    return value_error(place(rule), "the " + std::string(who), to_string(said),
                       "a tuple with an entry for each of " + to_string(rule.dims),
                       "give them in that order");
  }
  int taken = 0;
  for (const Dim dim : rule.dims) {
    const bool is_said = dim.is_grid() || said.size() == rule.dims.size();
    origin.push_back(is_said ? said[taken++] : 0);
  }
  return absl::OkStatus();
}

/// The entries of a common origin for the dimensions of this field. Requires an entry per domain
/// dimension.
Extents entries_for(const FieldRule& rule, const Dims& domain, const Extents& all) {
  Extents origin;
  for (const Dim dim : rule.dims) {
    if (dim.is_grid()) origin.push_back(all[position_in(domain, dim)]);
  }
  return origin;
}

absl::Status check_origin(const FieldRule& rule, const BoundField& field) {
  for (int i = 0; i < rule.dims.size(); ++i) {
    const std::int64_t origin = field.origin[i];
    const std::int64_t extent = field.memory.shape[i];
    if (origin < 0 || origin > extent) {
      return value_error(place(rule, rule.dims[i]), "the origin", std::to_string(origin),
                         "from 0 to its extent, " + std::to_string(extent),
                         "pass another origin=, or a larger array");
    }
    const std::int64_t before = width(rule.reach, i).lower;
    if (origin < before) {
      return value_error(place(rule, rule.dims[i]), "the origin", std::to_string(origin),
                         "at least " + std::to_string(before) +
                             ", as the stencil reads so many points before its domain",
                         "pass origin=, or a field with a halo");
    }
  }
  return absl::OkStatus();
}

absl::Status place_origin(const FieldRule& rule, const FieldArgument& argument,
                          const std::optional<Extents>& said, const Dims& domain,
                          const std::optional<Extents>& for_all, BoundField& field) {
  absl::Status status;
  if (said) {
    status = take_origin(rule, *said, "origin", field.origin);
  } else if (for_all) {
    status = take_origin(rule, entries_for(rule, domain, *for_all), "origin", field.origin);
  } else if (argument.origin) {
    status = take_origin(rule, *argument.origin, "origin that it declares (__gt_origin__)",
                         field.origin);
  } else {
    for (const int axis : field.axes) field.origin.push_back(width(argument.halo, axis).lower);
  }
  return status.ok() ? check_origin(rule, field) : status;
}

// ---- The domain. ----

/// Checks a list for all fields: it needs an entry per domain dimension.
absl::Status check_entries(std::string_view name, const Extents& said, const Dims& domain) {
  if (said.size() != domain.size()) {
    return make_error(ErrorClass::kValue, {name, to_string(said),
                                           "a tuple with an entry for each of " + to_string(domain),
                                           "give them in that order"});
  }
  for (int i = 0; i < said.size(); ++i) {
    if (said[i] >= 0) continue;
    return make_error(ErrorClass::kValue,
                      {std::string(name) + ", dimension " + to_string(domain[i]),
                       std::to_string(said[i]), "at least 0", "count points"});
  }
  return absl::OkStatus();
}

/// The number of points of the field from its origin on, without its upper halo and the points that
/// the stencil reads beyond the domain.
std::int64_t room(const FieldRule& rule, const BoundField& field, int i, HaloWidth halo) {
  const std::int64_t beyond = std::max(halo.upper, width(rule.reach, i).upper);
  return field.memory.shape[i] - field.origin[i] - beyond;
}

absl::Status no_room(const FieldRule& rule, const BoundField& field, int i, HaloWidth halo) {
  const std::int64_t beyond = std::max(halo.upper, width(rule.reach, i).upper);
  return value_error(place(rule, rule.dims[i]), "its extent", std::to_string(field.memory.shape[i]),
                     "at least the origin, " + std::to_string(field.origin[i]) +
                         ", and the upper halo, " + std::to_string(beyond),
                     "pass another origin=, or a larger array");
}

absl::StatusOr<Extents> largest_domain(std::span<const FieldRule> rules,
                                       std::span<const FieldArgument> arguments,
                                       const BoundCall& call, const Dims& domain) {
  Extents extents(domain.size(), -1);
  for (std::size_t f = 0; f < rules.size(); ++f) {
    if (arguments[f].is_absent) continue;
    for (int i = 0; i < rules[f].dims.size(); ++i) {
      if (!rules[f].dims[i].is_grid()) continue;
      const BoundField& field = call.fields[f];
      const HaloWidth halo = width(arguments[f].halo, field.axes[i]);
      const std::int64_t points = room(rules[f], field, i, halo);
      if (points < 0) return no_room(rules[f], field, i, halo);
      std::int64_t& extent = extents[position_in(domain, rules[f].dims[i])];
      extent = extent < 0 ? points : std::min(extent, points);
    }
  }
  for (std::int64_t& extent : extents) extent = extent < 0 ? 1 : extent;
  return extents;
}

/// Checks that every field has the points of the given domain, which may include its halo.
absl::Status check_domain(std::span<const FieldRule> rules,
                          std::span<const FieldArgument> arguments, const BoundCall& call,
                          const Dims& domain) {
  for (std::size_t f = 0; f < rules.size(); ++f) {
    if (arguments[f].is_absent) continue;
    const BoundField& field = call.fields[f];
    for (int i = 0; i < rules[f].dims.size(); ++i) {
      if (!rules[f].dims[i].is_grid()) continue;
      const std::int64_t wanted = call.domain[position_in(domain, rules[f].dims[i])];
      const std::int64_t beyond = width(rules[f].reach, i).upper;
      // A difference and not a sum, because the caller's numbers could overflow.
      const std::int64_t found = field.memory.shape[i] - field.origin[i] - beyond;
      if (wanted <= found) continue;
      std::string from = " from its origin, " + std::to_string(field.origin[i]);
      if (beyond > 0) from += ", without the " + std::to_string(beyond) + " read beyond the domain";
      return value_error(place(rules[f], rules[f].dims[i]), "the number of points" + from,
                         std::to_string(std::max<std::int64_t>(found, 0)),
                         "at least the domain's, " + std::to_string(wanted),
                         "pass a smaller domain=, another origin=, or a larger array");
    }
  }
  return absl::OkStatus();
}

absl::Status bind_domain(std::span<const FieldRule> rules, std::span<const FieldArgument> arguments,
                         const std::optional<Extents>& said, const Dims& domain, BoundCall& call) {
  if (said) {
    call.domain = *said;
    return check_domain(rules, arguments, call, domain);
  }
  GRIDBUF_ASSIGN_OR_RETURN(const auto& largest, largest_domain(rules, arguments, call, domain));
  call.domain = largest;
  return absl::OkStatus();
}

absl::Status bind_field(const FieldRule& rule, const FieldArgument& argument, BoundField& field) {
  const BufferDescriptor& memory = argument.memory;
  const Dims& named = argument.dims;
  GRIDBUF_RETURN_IF_ERROR(check_ndim(rule, memory.view.ndim()));
  GRIDBUF_RETURN_IF_ERROR(order(rule, named, field));
  if (!(memory.dtype == rule.dtype)) return wrong_dtype(rule, memory.dtype.name());
  field.memory = permuted(memory.view, field.axes);
  return check_data_extents(rule, field);
}

// ---- Shared memory. ----

/// `stride_bytes` times each number from 0 to `most`. Unsigned, because the sums of two arrays need
/// one bit more.
struct Term {
  std::uint64_t stride_bytes;
  std::uint64_t most;
};

/// Adds the bytes of the view's elements as terms of positive strides.
void add_terms(const StridedView& view, std::vector<Term>& terms) {
  terms.push_back({1, static_cast<std::uint64_t>(view.itemsize_bytes - 1)});
  for (int axis = 0; axis < view.ndim(); ++axis) {
    if (view.strides_bytes[axis] == 0 || view.shape[axis] == 1) continue;
    terms.push_back({static_cast<std::uint64_t>(std::abs(view.strides_bytes[axis])),
                     static_cast<std::uint64_t>(view.shape[axis] - 1)});
  }
}

/// Whether a sum with one number of each term is `distance`. Requires terms by falling stride. The
/// answer is yes when `steps` run out. They last where each stride is at least the length of
/// all smaller ones together, as in every array that was allocated.
bool is_sum(std::span<const Term> terms, std::uint64_t distance, int& steps) {
  if (distance == 0) return true;
  std::uint64_t total = 0;
  std::uint64_t divisor = 0;
  for (const Term& term : terms) {
    total += term.stride_bytes * term.most;
    divisor = std::gcd(divisor, term.stride_bytes);
  }
  if (distance > total || distance % divisor != 0) return false;
  if (--steps < 0) return true;
  const Term& first = terms.front();
  const std::uint64_t rest = total - first.stride_bytes * first.most;
  std::uint64_t left =
      distance - first.stride_bytes * std::min(first.most, distance / first.stride_bytes);
  for (; left <= rest && left <= distance; left += first.stride_bytes) {
    if (is_sum(terms.subspan(1), left, steps)) return true;
  }
  return false;
}

/// Whether two fields have a byte in common.
bool share_memory(const BufferDescriptor& a, const BufferDescriptor& b) {
  const auto hull_a = byte_hull(a.view);
  const auto hull_b = byte_hull(b.view);
  if (a.is_empty() || b.is_empty() || !hull_a || !hull_b) return false;
  const std::byte* const lowest_a = a.block + hull_a->lowest_bytes;
  const std::byte* const highest_b = b.block + hull_b->highest_bytes;
  if (lowest_a >= highest_b || b.block + hull_b->lowest_bytes >= a.block + hull_a->highest_bytes) {
    return false;
  }
  // The lowest byte of `a` plus a sum of its terms is the last byte of `b` minus a sum of its
  // terms.
  std::vector<Term> terms;
  add_terms(a.view, terms);
  add_terms(b.view, terms);
  std::ranges::sort(terms, std::greater(), &Term::stride_bytes);
  std::size_t count = 1;
  for (std::size_t i = 1; i < terms.size(); ++i) {
    if (terms[i].stride_bytes == terms[count - 1].stride_bytes) {
      terms[count - 1].most += terms[i].most;
    } else {
      terms[count++] = terms[i];
    }
  }
  constexpr int kMostSteps = 10'000;
  int steps = kMostSteps;
  return is_sum(std::span(terms).first(count), static_cast<std::uint64_t>(highest_b - lowest_a - 1),
                steps);
}

absl::Status check_apart(std::span<const FieldRule> rules,
                         std::span<const FieldArgument> arguments) {
  const auto is_written = [&](std::size_t f) {
    return rules[f].is_written && !arguments[f].memory.readonly;
  };
  for (std::size_t f = 1; f < rules.size(); ++f) {
    for (std::size_t other = 0; other < f; ++other) {
      if (arguments[f].is_absent || arguments[other].is_absent) continue;
      if (!is_written(f) && !is_written(other)) continue;
      if (!share_memory(arguments[f].memory, arguments[other].memory)) continue;
      const std::size_t written = is_written(f) ? f : other;
      const std::size_t shared = written == f ? other : f;
      return value_error(place(rules[written]) + ", all dimensions", "its memory",
                         "also that of field '" + rules[shared].name + "'",
                         "that of one field, as the stencil may write it",
                         "pass a copy, name the fields that are written with writes=, or allow it "
                         "with allow_alias=True");
    }
  }
  return absl::OkStatus();
}

// ---- Memory. ----

/// A broken rule of memory: its place, and the parts of its message.
struct MemoryFault {
  int axis = -1;  // none: the whole field
  std::string what;
  std::string found;
  std::string wanted;
};

std::int64_t stride_length(const BoundField& field, int axis) {
  return std::abs(field.memory.strides_bytes[axis]);
}

std::optional<MemoryFault> layout_fault(const LayoutMap& layout, const BoundField& field) {
  const Axes axes = axes_by_rank(layout);
  int outer = -1;
  for (const int axis : axes) {
    if (field.memory.shape[axis] == 1) continue;
    if (outer >= 0 && stride_length(field, axis) > stride_length(field, outer)) {
      return MemoryFault{axis, "the tuple of its strides",
                         to_string(field.memory.strides_bytes) + " bytes",
                         "in the order of the layout map " + to_string(layout)};
    }
    outer = axis;
  }
  const int inner = axes[axes.size() - 1];
  if (outer == inner && field.memory.strides_bytes[inner] != field.memory.itemsize_bytes) {
    return MemoryFault{inner, "its stride",
                       std::to_string(field.memory.strides_bytes[inner]) + " bytes",
                       "the item size, " + std::to_string(field.memory.itemsize_bytes) +
                           " bytes, as the layout map " + to_string(layout) + " has it contiguous"};
  }
  return std::nullopt;
}

/// The dimension of the rows: the contiguous dimension of the layout, else that of the smallest
/// stride.
int row_axis(const MemoryRule& rule, const BoundField& field) {
  if (!rule.layout.empty()) return axes_by_rank(rule.layout)[rule.layout.size() - 1];
  int found = -1;
  for (int axis = 0; axis < field.memory.ndim(); ++axis) {
    if (field.memory.shape[axis] == 1) continue;
    if (found < 0 || stride_length(field, axis) < stride_length(field, found)) found = axis;
  }
  return found;
}

std::optional<MemoryFault> alignment_fault(const MemoryRule& rule, const BoundField& field,
                                           std::uintptr_t address) {
  const auto wanted = [&] {
    return "a multiple of " + std::to_string(rule.alignment_bytes) + " bytes";
  };
  const int row = row_axis(rule, field);
  for (int axis = 0; axis < field.memory.ndim(); ++axis) {
    const std::int64_t stride_bytes = field.memory.strides_bytes[axis];
    // Unsigned like an address; a negative stride wraps correctly.
    address +=
        static_cast<std::uintptr_t>(field.origin[axis]) * static_cast<std::uintptr_t>(stride_bytes);
    if (axis == row || field.memory.shape[axis] == 1) continue;
    if (stride_bytes % rule.alignment_bytes != 0) {
      return MemoryFault{axis, "its stride", std::to_string(stride_bytes) + " bytes", wanted()};
    }
  }
  const auto rest = address % static_cast<std::uintptr_t>(rule.alignment_bytes);
  if (rest == 0) return std::nullopt;
  return MemoryFault{-1, "the address of the element at the origin " + to_string(field.origin),
                     std::to_string(rest) + " bytes off", wanted()};
}

std::optional<MemoryFault> memory_fault(const MemoryRule& rule, const BoundField& field,
                                        std::uintptr_t address) {
  if (is_empty(field.memory.shape) || field.memory.ndim() == 0) return std::nullopt;
  if (!rule.layout.empty()) {
    if (auto fault = layout_fault(rule.layout, field)) return fault;
  }
  return rule.alignment_bytes == 1 ? std::nullopt : alignment_fault(rule, field, address);
}

std::string fault_place(const FieldRule& rule, const MemoryFault& fault) {
  return fault.axis < 0 ? place(rule) : place(rule, rule.dims[fault.axis]);
}

}  // namespace

Dims domain_dims(std::span<const FieldRule> rules) {
  Dims dims;
  for (const FieldRule& rule : rules) {
    for (const Dim dim : rule.dims) {
      if (dim.is_grid() && position_in(dims, dim) < 0) dims.push_back(dim);
    }
  }
  std::ranges::sort(dims);
  return dims;
}

absl::Status check_annotation_order(const Dims& dims) {
  for (int i = 1; i < dims.size(); ++i) {
    if (dims[i - 1] < dims[i]) continue;
    return make_error(
        ErrorClass::kValue,
        {"Axes", to_string(dims),
         "in the order horizontal, local, vertical, data (I, J, K, 0, ...), each once",
         "sort the axes; the order in memory is that of the array's dims="});
  }
  return absl::OkStatus();
}

absl::StatusOr<BoundCall> bind_call(std::span<const FieldRule> rules,
                                    std::span<const FieldArgument> arguments,
                                    const CallRequest& request) {
  const Dims domain = domain_dims(rules);
  if (request.origin) {
    GRIDBUF_RETURN_IF_ERROR(check_entries("origin", *request.origin, domain));
  }
  if (request.domain) {
    GRIDBUF_RETURN_IF_ERROR(check_entries("domain", *request.domain, domain));
  }
  BoundCall call;
  call.fields.resize(rules.size());
  for (std::size_t f = 0; f < rules.size(); ++f) {
    if (arguments[f].is_absent) continue;
    GRIDBUF_RETURN_IF_ERROR(bind_field(rules[f], arguments[f], call.fields[f]));
    const std::optional<Extents>& said =
        request.origins.empty() ? std::optional<Extents>() : request.origins[f];
    GRIDBUF_RETURN_IF_ERROR(
        place_origin(rules[f], arguments[f], said, domain, request.origin, call.fields[f]));
  }
  GRIDBUF_RETURN_IF_ERROR(bind_domain(rules, arguments, request.domain, domain, call));
  if (!request.allow_alias) {
    GRIDBUF_RETURN_IF_ERROR(check_apart(rules, arguments));
  }
  return call;
}

absl::Status wrong_dtype(const FieldRule& rule, const std::string& found) {
  return make_error(ErrorClass::kType,
                    {place(rule) + ", all dimensions: the element type", found, rule.dtype.name(),
                     "convert it with astype, or annotate the parameter with its type"});
}

absl::Status check_memory(const FieldRule& rule, const BoundField& field, std::uintptr_t address) {
  const auto fault = memory_fault(rule.relied_on, field, address);
  if (!fault) return absl::OkStatus();
  return value_error(fault_place(rule, *fault), fault->what, fault->found,
                     fault->wanted + ", on which the stencil relies",
                     "allocate it so, or do not annotate it");
}

std::string slow_memory(const FieldRule& rule, const BoundField& field, std::uintptr_t address) {
  const auto fault = memory_fault(rule.preferred, field, address);
  if (!fault) return "";
  return problem_text({fault_place(rule, *fault) + ": " + fault->what, fault->found,
                       fault->wanted + " to be fast",
                       "allocate the field with the backend's preset and aligned_index= the "
                       "origin"});
}

FieldArgument field_argument(const Storage& storage, Side side) {
  return {.memory = storage.memory(side), .dims = storage.dims(), .halo = storage.halo()};
}

std::byte* element_at_origin(const BoundField& field, std::byte* first) {
  if (is_empty(field.memory.shape)) return first;
  for (int i = 0; i < field.memory.ndim(); ++i) {
    const std::int64_t origin = field.origin[i];
    // An origin at the end of its dimension does not have an element.
    if (origin < field.memory.shape[i]) first += origin * field.memory.strides_bytes[i];
  }
  return first;
}

}  // namespace gridbuf
