// gridbuf.call: from what a stencil asks of its fields, and what it is given, to what it may run
// on.
//
// Purpose. A stencil is written for fields with named dimensions: "u is float64 over I, J, K". What
// arrives at a call are arrays: in any order of dimensions, with halos, with origins of their own,
// of different extents. This module is the answer to the questions in between. In which order are
// the dimensions (`FieldRule::dims` is the annotation's)? Where does the computation begin in each
// field (the origin)? How far does it go (the domain)? And may it run at all?
//
// Key choice. It is arithmetic on descriptors: no memory is touched, no Python is known, nothing
// is remembered. So a call is checked from what its fields are now, every time, and no verdict can
// outlive its reason. GT4Py keeps verdicts by shape and origin and misses a field whose type or
// strides changed since.
//
// The rules, in order. Dimensions: those that the object names, else the annotation's; they must be
// the annotation's, in whatever order, and are put into its order: I, J, K, then data dimensions by
// number. Origin: what the call says, else what the object says (in the annotation's order), else
// its lower halo, else 0. Domain: what the call says, else per dimension the smallest of extent -
// origin - upper halo over all fields. What would be undefined behaviour is an error: another
// element type, missing or foreign dimensions, points outside the memory, memory that is not laid
// out or aligned as compiled code was told to rely on. What is only slow is a text
// (`slow_memory`), and running goes on.
//
// Every message names field, dimension, what was wanted and what was found. All counts are points
// (elements), but for names that end in _bytes.

module;

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

export module gridbuf.call;

export import gridbuf.interface;
export import gridbuf.layout;

export namespace gridbuf {

/// How memory should lie. The default wants nothing.
struct MemoryRule {
  LayoutMap layout = {};             // ranks of the annotation's dimensions; empty: any
  std::int64_t alignment_bytes = 1;  // of the element at the origin, and of all rows; 1: none

  friend bool operator==(const MemoryRule&, const MemoryRule&) noexcept = default;
};

/// What a stencil asks of one field: its annotation.
struct FieldRule {
  std::string name = {};  // of the parameter
  Dims dims = {};         // I, J, K, then data dimensions by number
  DType dtype = {};
  Extents data_extents = {};  // of the data dimensions, in order; an entry of -1: any
  Halo reach = {};            // points read before and beyond the domain; empty: none
  MemoryRule relied_on = {};  // compiled code relies on it: else an error
  MemoryRule preferred = {};  // else slow
};

/// What a call passes for a field, as it is when the call begins.
struct FieldArgument {
  // Not defaulted, because `FieldArgument()` would then write zeros to all of its three kilobytes.
  FieldArgument() {}

  StridedView memory = {};     // in the object's own order
  std::uintptr_t address = 0;  // of element (0, ..., 0)
  DType dtype = {};
  std::optional<Dims> dims = std::nullopt;       // that the object names; none: those of the rule
  Halo halo = {};                                // in the object's own order; empty: none
  std::optional<Extents> origin = std::nullopt;  // that the object names, in the rule's order
  bool is_absent = false;                        // nothing was passed: it has no say
};

/// What the caller says. An origin has an entry per spatial dimension of its field, or per
/// dimension.
struct CallRequest {
  std::vector<std::optional<Extents>> origins = {};  // by field; empty: none
  std::optional<Extents> origin = std::nullopt;  // for the others: an entry per domain dimension
  std::optional<Extents> domain = std::nullopt;  // an entry per domain dimension
};

/// One field of a call, in the annotation's order.
struct BoundField {
  BoundField() {}  // As above.

  Axes axes = {};           // dimension i is dimension axes[i] of the object
  bool is_in_order = true;  // axes are 0, 1, 2, ...
  StridedView memory = {};  // offset 0 is element (0, ..., 0)
  Extents origin = {};
};

struct BoundCall {
  std::vector<BoundField> fields = {};
  Extents domain = {};  // an entry per dimension of `domain_dims`; 1 along those that no field has
};

/// The dimensions of a stencil's domain: the spatial ones that any of its fields has, in order.
Dims domain_dims(std::span<const FieldRule> rules);

/// OK if `dims` are distinct and in the annotation's order (I, J, K, then data dimensions by
/// number), else kValue.
absl::Status check_annotation_order(const Dims& dims);

/// What every field is bound to. Requires an argument per rule. Errors: kType for another element
/// type, kValue for the rest, in the order of the fields, the domain last.
absl::StatusOr<BoundCall> bind_call(std::span<const FieldRule> rules,
                                    std::span<const FieldArgument> arguments,
                                    const CallRequest& request = {});

/// The error that an element type is not the rule's; `found` is its name.
absl::Status wrong_dtype(const FieldRule& rule, const std::string& found);

/// kValue unless the memory, whose element (0, ..., 0) lies at `address`, is as the rule's
/// `relied_on` says: larger strides for smaller ranks, the last one the item size; the element at
/// the origin and the beginnings of all rows through it aligned. Extents of 1 and fields without
/// elements are as anybody wants.
absl::Status check_memory(const FieldRule& rule, const BoundField& field, std::uintptr_t address);

/// The same for `preferred`, as a text; empty: nothing is slow.
std::string slow_memory(const FieldRule& rule, const BoundField& field, std::uintptr_t address);

}  // namespace gridbuf
