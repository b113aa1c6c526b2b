// gridbuf.call: from what a stencil requires of its fields, and what it is given, to what it may
// run on.
//
// Purpose. A stencil is written for fields with named dimensions: "u is float64 over I, J, K". A
// call passes arrays: in any order of dimensions, with halos and origins, of different extents.
// `bind_call` answers the questions in between. In which order are the dimensions
// (`FieldRule::dims` is the annotation's)? Where does the computation begin in each field (the
// origin)? How far does it go (the domain)? And may it run at all? `Field<double, I, J, K>` is what
// a kernel in C++ computes on: its element (0, 0, 0) is the first point of the domain.
//
// Key choice. The checks are arithmetic on descriptors: they touch no memory and remember nothing.
// So a call is checked from what its fields are now, every time. GT4Py keeps verdicts by shape and
// origin, and misses a field whose type or strides changed since.
//
// The rules, in order. Dimensions: those that the object names, else the annotation's; they must be
// the annotation's, in whatever order, and are put into its order: I, J, K, then data dimensions by
// number. Origin: the call's, else the object's (in the annotation's order), else its lower halo,
// else 0. Domain: the call's, else per dimension the smallest of extent - origin - upper halo over
// all fields. What would be undefined behaviour is an error: another element type, missing or
// unexpected dimensions, points outside the memory, memory that is not laid out or aligned as
// compiled code relies on. What is only slow is a text (`slow_memory`), and running goes on.
//
// Every message names field, dimension, what was wanted and what was found. All counts are points
// (elements), except for names that end in _bytes.

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

export module gridbuf.call;

export import gridbuf.array;
export import gridbuf.interface;
export import gridbuf.layout;
export import gridbuf.storage;

export namespace gridbuf {

/// How memory should lie. The default wants nothing.
struct MemoryRule {
  LayoutMap layout = {};             // ranks of the annotation's dimensions; empty: any
  std::int64_t alignment_bytes = 1;  // of the element at the origin, and of all rows; 1: none

  friend bool operator==(const MemoryRule&, const MemoryRule&) noexcept = default;
};

/// What a stencil requires of one field: its annotation.
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
  // Not defaulted, because `FieldArgument()` would then write zeros to all of its four kilobytes.
  FieldArgument() {}

  Array array = {};  // if its dimensions have no names, they are the rule's, in its order
  std::optional<Extents> origin = std::nullopt;  // that the object declares, in the rule's order
  bool is_absent = false;                        // nothing was passed: it does not count
};

/// What the caller requests. An origin has an entry per spatial dimension of its field, or per
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
/// elements satisfy every rule.
absl::Status check_memory(const FieldRule& rule, const BoundField& field, std::uintptr_t address);

/// The same for `preferred`, as a text; empty: nothing is slow.
std::string slow_memory(const FieldRule& rule, const BoundField& field, std::uintptr_t address);

// --- Views for kernels in C++ --------------------------------------------------------------------
//
// The dimensions of a `Field` are types, so a Field<double, I, J> cannot be passed for a
// Field<double, I, J, K>, and an index of the wrong length does not compile. Order, origin, domain,
// type and bounds are checked once, when it is made; indexing is then a multiply and an add per
// dimension. Debug builds check each index too: the bounds are known from the halo. On a device the
// address and the strides are for its kernels; indexing is for the host.

/// The dimensions of a Field, in the order I, J, K, then data dimensions by number.
namespace axis {
struct I {
  static constexpr Dim kDim = kDimI;
};
struct J {
  static constexpr Dim kDim = kDimJ;
};
struct K {
  static constexpr Dim kDim = kDimK;
};
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

/// What `bind_call` must know of a storage, seen on one side. Requires storage.has(side).
FieldArgument field_argument(const Storage& storage, Side side = Side::kHost);

/// The element at the origin of a bound field whose element (0, ..., 0) is `first`.
std::byte* element_at_origin(const BoundField& field, std::byte* first);

/// A view of a field over `Axes...`, indexed from its origin. Copies are cheap views of the same.
template <class T, class... Axis>
class Field {
 public:
  static constexpr int kNdim = sizeof...(Axis);
  static_assert(are_in_order<Axis...>(), "the order is I, J, K, then data dimensions");

  /// The rule of such a field.
  static FieldRule rule(std::string name) {
    FieldRule made;
    made.name = std::move(name);
    made.dims = Dims{Axis::kDim...};
    made.dtype = DType::from_name(element_name<std::remove_const_t<T>>()).value();
    return made;
  }

  /// A view of a field that was bound by `rule`, and whose element (0, ..., 0) is `first`.
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

  /// Points before the origin, and from it on, along a dimension.
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

/// A Field whose storage is open for reading, or for writing, while it lives.
template <class T, class... Axis>
class OpenField : public Field<T, Axis...> {
 public:
  /// Opens `storage` on `side`. Errors: those of bind_call, with `name` in them, and of the access.
  static absl::StatusOr<OpenField> open(std::string name, const Storage& storage,
                                        Side side = Side::kHost, const CallRequest& request = {}) {
    const FieldRule rule = Field<T, Axis...>::rule(std::move(name));
    if (!storage.has(side)) return storage.read(side);
    const FieldArgument argument = field_argument(storage, side);
    const auto call = bind_call({&rule, 1}, {&argument, 1}, request);
    if (!call.ok()) return call.status();
    std::optional<OpenWrite> write;
    if constexpr (std::is_const_v<T>) {
      if (absl::Status status = storage.read(side); !status.ok()) return status;
    } else {
      absl::StatusOr<OpenWrite> begun = OpenWrite::begin(storage, side, Coverage::kPart);
      if (!begun.ok()) return begun.status();
      write.emplace(*std::move(begun));
    }
    return OpenField(*call, storage.memory(side).first_element(), storage, std::move(write));
  }

  /// The most points that this field has, from its origin on and without its upper halo, per
  /// spatial dimension; the request's domain, if it has one.
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

template <class T, class... Axis>
using ReadField = OpenField<const T, Axis...>;
template <class T, class... Axis>
using WriteField = OpenField<T, Axis...>;

}  // namespace gridbuf
