// gridbuf.call.field: one field of a native kernel, seen from where its computation begins.
//
// Purpose. `Field<double, I, J, K>` is what a kernel written in C++ computes on: the element at
// (0, 0, 0) is the first point of the domain, (-1, 0, 0) is in the halo before it. The dimensions
// are the annotation's whatever order they have in memory: a storage over (K, J, I) is the same
// Field. So a kernel is written once, in the terms of the grid.
//
// Key choice. The dimensions are types, so a Field<double, I, J> cannot be passed for a
// Field<double, I, J, K>, and an index of the wrong length does not compile. Everything that only
// the call can know (order, origin, domain, type, bounds) is checked once, by gridbuf.call's rules,
// when the Field is made; indexing is then a multiply and an add per dimension. In debug builds
// each index is checked as well: the bounds are known from the halo, so reading past it is found
// where it happens.
//
// A Field is a view: it holds no memory. `ReadField` and `WriteField` hold the storage's access as
// well, so the elements are up to date, and marked where they are written, while they live.
//
// On a device the address and the strides are for its kernels; indexing is for the host.

module;

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

export module gridbuf.call.field;

export import gridbuf.call;
import gridbuf.storage.access;
export import gridbuf.storage;

export namespace gridbuf {

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

/// What gridbuf.call must know of a storage, seen on one side. Requires storage.has(side).
FieldArgument field_argument(const Storage& storage, Side side = Side::kHost);

/// Where the elements of a field lie and what may be indexed, in the annotation's order.
struct FieldPlace {
  std::byte* origin = nullptr;  // the element at the origin
  Extents strides_bytes = {};
  Extents lower = {};  // points before the origin, per dimension
  Extents upper = {};  // points from the origin on
};

/// The place of a field that gridbuf.call has bound. `first` is its element (0, ..., 0).
FieldPlace place_field(const BoundField& field, std::byte* first);

/// A view of a field over `Axes...`, indexed from its origin. Copies are cheap views of the same.
template <class T, class... Axis>
class Field {
 public:
  static constexpr int kNdim = sizeof...(Axis);
  static_assert(are_in_order<Axis...>(), "the order is I, J, K, then data dimensions");

  /// The rule of such a field, for gridbuf.call.
  static FieldRule rule(std::string name) {
    FieldRule made;
    made.name = std::move(name);
    made.dims = Dims{Axis::kDim...};
    made.dtype = DType::from_name(element_name<std::remove_const_t<T>>()).value();
    return made;
  }

  /// Requires kNdim entries in the place.
  explicit Field(const FieldPlace& place) : origin_(place.origin) {
    assert(place.strides_bytes.size() == kNdim);
    for (int i = 0; i < kNdim; ++i) {
      strides_bytes_[i] = place.strides_bytes[i];
      lower_[i] = place.lower[i];
      upper_[i] = place.upper[i];
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
    const FieldPlace place = place_field(call->fields[0], storage.memory(side).first_element());
    return OpenField(place, call->domain, storage, std::move(write));
  }

  /// The most points that this field has, from its origin on and without its upper halo, per
  /// spatial dimension; what the caller said, if it said so.
  const Extents& domain() const { return domain_; }

 private:
  OpenField(const FieldPlace& place, const Extents& domain, const Storage& storage,
            std::optional<OpenWrite> write)
      : Field<T, Axis...>(place), domain_(domain), storage_(storage), write_(std::move(write)) {}

  Extents domain_;
  Storage storage_;
  std::optional<OpenWrite> write_;
};

template <class T, class... Axis>
using ReadField = OpenField<const T, Axis...>;
template <class T, class... Axis>
using WriteField = OpenField<T, Axis...>;

}  // namespace gridbuf
