// gridbuf.call: binds the arguments of a stencil to its fields.
//
// Purpose. A stencil is written for fields with named dimensions: "u is float64 over I, J, K". A
// call passes arrays: in any order of dimensions, with halos and origins, of different extents.
// `bind_call` finds the order of the dimensions, the first point of the computation in each field
// (the origin), and its extents (the domain). It also checks that the stencil may run. A kernel in
// C++ computes on `Field<double, I, J, K>`, whose element (0, 0, 0) is the first point of the
// domain.
//
// Key decision. The checks are arithmetic on descriptors: they neither access memory nor keep
// results. So every call is checked against the current state of its fields. GT4Py caches results
// by shape and origin, and misses a change of type or strides.
//
// The rules, in order. Dimensions: the names of the object, else those of the annotation. They must
// be the dimensions of the annotation, in any order; binding sorts them by kind and name, such as
// I, J, K, 0. Origin: that of the call, else that of the object (in the annotation's
// order), else the lower halo, else 0. Domain: that of the call, else in each dimension the
// smallest of extent - origin - upper halo over all fields. Undefined behaviour is an error:
// another element type, missing or unexpected dimensions, points outside the memory, a layout or
// alignment on which compiled code does not work, a field that is written and shares elements with
// another field (views of disjoint elements of one array do not). Memory that only makes the
// stencil slow gives a text (`slow_memory`), and the stencil runs.
//
// Every message names the field, the dimension, the value wanted and the value found. All counts
// are points (elements), except for names that end in _bytes.

module;

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "modules/base/status_macros.h"

export module gridbuf.call;

export import gridbuf.array;
export import gridbuf.interface;
export import gridbuf.layout;
export import gridbuf.storage;

export namespace gridbuf {

/// The layout and alignment that memory should have. The default accepts everything.
struct MemoryRule {
  LayoutMap layout = {};             // ranks of the annotation's dimensions; empty: any
  std::int64_t alignment_bytes = 1;  // of the element at the origin and of all rows; 1: none

  friend bool operator==(const MemoryRule&, const MemoryRule&) noexcept = default;
};

/// What a stencil requires of one field: its annotation.
struct FieldRule {
  std::string name = {};  // of the parameter
  Dims dims = {};         // in the order of Dim: I, J, K, then data dimensions by number
  DType dtype = {};
  Extents data_extents = {};  // of the data dimensions, in order; an entry of -1: any
  Halo reach = {};            // points read before and beyond the domain; empty: none
  MemoryRule relied_on = {};  // other memory is an error
  MemoryRule preferred = {};  // other memory is slow
  bool is_written = true;     // the stencil may write it, unless the memory is read-only
  bool is_read = false;       // the stencil reads it, with `reach`
};

/// The argument for a field, in its state at the begin of the call.
struct FieldArgument {
  BufferDescriptor memory = {};                  // the caller keeps it alive
  Dims dims = {};                                // empty: those of the rule, in order
  Halo halo = {};                                // empty: none
  std::optional<Extents> origin = std::nullopt;  // that the object declares, in the rule's order
  bool is_absent = false;                        // the caller did not pass it
};

/// Origins and domain of a call. An origin has an entry per dimension of its field, or per grid
/// dimension.
struct CallRequest {
  std::vector<std::optional<Extents>> origins = {};  // by field; empty: none
  std::optional<Extents> origin = std::nullopt;  // for other fields: an entry per domain dimension
  std::optional<Extents> domain = std::nullopt;  // an entry per domain dimension
  bool allow_alias = false;  // a field that is written may share elements with others
};

/// One field of a call, in the annotation's order.
struct BoundField {
  Axes axes = {};           // dimension i is dimension axes[i] of the object
  bool is_in_order = true;  // axes are 0, 1, 2, ...
  StridedView memory = {};  // offset 0 is element (0, ..., 0)
  Extents origin = {};
};

/// The fields of a call and its domain, checked.
struct BoundCall {
  std::vector<BoundField> fields = {};
  Extents domain = {};  // an entry per dimension of `domain_dims`; 1 if no field has it
};

/// The dimensions of a stencil's domain: the horizontal and vertical dimensions of its fields, in
/// order.
Dims domain_dims(std::span<const FieldRule> rules);

/// OK if `dims` are distinct and in the annotation's order, that of Dim, else kValue.
absl::Status check_annotation_order(const Dims& dims);

/// Binds every field. Requires an argument per rule. Errors: kType for another element type, else
/// kValue. It checks the fields in order, then the domain, then whether fields share elements.
absl::StatusOr<BoundCall> bind_call(std::span<const FieldRule> rules,
                                    std::span<const FieldArgument> arguments,
                                    const CallRequest& request = {});

/// The error for a wrong element type; `found` is its name.
absl::Status wrong_dtype(const FieldRule& rule, const std::string& found);

/// kValue unless the memory obeys the rule's `relied_on`. The strides must grow with falling rank,
/// and the smallest must be the item size. The element at the origin, and the begin of each row
/// through it, must be aligned. `address` is that of element (0, ..., 0). Extents of 1 and fields
/// without elements satisfy every rule.
absl::Status check_memory(const FieldRule& rule, const BoundField& field, std::uintptr_t address);

/// Describes memory that does not obey `preferred`; "" if it does.
std::string slow_memory(const FieldRule& rule, const BoundField& field, std::uintptr_t address);

// --- Views for kernels in C++ --------------------------------------------------------------------
//
// The dimensions of a `Field` are types. So a Field<double, I, J> is not a Field<double, I, J, K>,
// and an index of the wrong length does not compile. Making a Field checks order, origin, domain,
// type and bounds once; indexing is then a multiplication and an addition per dimension. Debug
// builds also check each index, with bounds from the halo. On a device, use only the address and
// the strides, in its kernels; indexing works on the host.

/// The dimensions of a Field, in the order I, J, K, then data dimensions by number.
namespace axis {
/// The first spatial dimension.
struct I {
  static constexpr Dim kDim = kDimI;
};
/// The second spatial dimension.
struct J {
  static constexpr Dim kDim = kDimJ;
};
/// The third spatial dimension.
struct K {
  static constexpr Dim kDim = kDimK;
};
/// The data dimension of that number.
template <int number>
struct Data {
  static constexpr Dim kDim = Dim::data(number);
};
}  // namespace axis

/// Whether the dimensions are distinct and in the annotation's order.
template <class... Axis>
constexpr bool are_in_order() {
  const std::array<Dim, sizeof...(Axis)> dims{Axis::kDim...};
  for (std::size_t i = 1; i < dims.size(); ++i) {
    if (!(dims[i - 1] < dims[i])) return false;
  }
  return true;
}

/// A side of a storage as an argument of `bind_call`. Requires storage.has(side).
FieldArgument field_argument(const Storage& storage, Side side = Side::kHost);

/// The address of the element at the origin; `first` is that of element (0, ..., 0).
std::byte* element_at_origin(const BoundField& field, std::byte* first);

/// A view of a field over `Axes...`, indexed from its origin. Copies are cheap and share the
/// memory.
template <class T, class... Axis>
class Field {
 public:
  static constexpr int kNdim = sizeof...(Axis);
  static_assert(are_in_order<Axis...>(), "the order is I, J, K, then data dimensions");

  /// The rule that matches this type.
  static FieldRule rule(std::string name) {
    FieldRule made;
    made.name = std::move(name);
    made.dims = Dims{Axis::kDim...};
    made.dtype = DType::from_name(element_name<std::remove_const_t<T>>()).value();
    made.is_written = !std::is_const_v<T>;
    return made;
  }

  /// A view of a field that was bound by `rule`; `first` is element (0, ..., 0).
  Field(const BoundField& field, std::byte* first) : origin_(element_at_origin(field, first)) {
    assert(field.memory.ndim() == kNdim);
    for (int i = 0; i < kNdim; ++i) {
      strides_bytes_[i] = field.memory.strides_bytes[i];
      lower_[i] = field.origin[i];
      upper_[i] = field.memory.shape[i] - field.origin[i];
    }
  }

  /// The element at an index relative to the origin: [-lower(i), upper(i)) in each dimension.
  template <class... Index>
    requires(sizeof...(Index) == kNdim && (std::is_integral_v<Index> && ...))
  T& operator()(Index... index) const {
    std::int64_t offset_bytes = 0;
    int i = 0;
    ((assert(static_cast<std::int64_t>(index) >= -lower_[i] &&
             static_cast<std::int64_t>(index) < upper_[i] && "index outside of the field"),
      offset_bytes += static_cast<std::int64_t>(index) * strides_bytes_[i++]),
     ...);
    return *reinterpret_cast<T*>(origin_ + offset_bytes);
  }

  /// The number of points before the origin (lower), and from the origin on (upper).
  std::int64_t lower(int i) const { return lower_[i]; }
  std::int64_t upper(int i) const { return upper_[i]; }
  std::int64_t stride_bytes(int i) const { return strides_bytes_[i]; }
  /// The element at the origin.
  T* data() const { return reinterpret_cast<T*>(origin_); }

 private:
  std::byte* origin_;
  std::array<std::int64_t, kNdim> strides_bytes_{};
  std::array<std::int64_t, kNdim> lower_{};
  std::array<std::int64_t, kNdim> upper_{};
};

/// A Field. Its storage is open for reading, or for writing, while the object lives.
template <class T, class... Axis>
class OpenField : public Field<T, Axis...> {
 public:
  /// Opens `storage` on `side`. Errors: those of bind_call, which contain `name`, and those of the
  /// access.
  static absl::StatusOr<OpenField> open(std::string name, const Storage& storage,
                                        Side side = Side::kHost, const CallRequest& request = {}) {
    const FieldRule rule = Field<T, Axis...>::rule(std::move(name));
    if (!storage.has(side)) return storage.read(side);
    const FieldArgument argument = field_argument(storage, side);
    GRIDBUF_ASSIGN_OR_RETURN(const auto& call, bind_call({&rule, 1}, {&argument, 1}, request));
    std::optional<OpenWrite> write;
    if constexpr (std::is_const_v<T>) {
      GRIDBUF_RETURN_IF_ERROR(storage.read(side));
    } else {
      GRIDBUF_ASSIGN_OR_RETURN(auto& begun, OpenWrite::begin(storage, side, Coverage::kPart));
      write.emplace(std::move(begun));
    }
    return OpenField(call, storage.memory(side).first_element(), storage, std::move(write));
  }

  /// The request's domain, if it has one. Else the number of points of this field in each spatial
  /// dimension, from its origin on and without its upper halo.
  const Extents& domain() const { return domain_; }

 private:
  OpenField(const BoundCall& call, std::byte* first, const Storage& storage,
            std::optional<OpenWrite> write)
      : Field<T, Axis...>(call.fields[0], first),
        domain_(call.domain),
        storage_(storage),
        write_(std::move(write)) {}

  Extents domain_;
  Storage storage_;
  std::optional<OpenWrite> write_;
};

/// A field that a stencil reads.
template <class T, class... Axis>
using ReadField = OpenField<const T, Axis...>;
/// A field that a stencil writes.
template <class T, class... Axis>
using WriteField = OpenField<T, Axis...>;

}  // namespace gridbuf
