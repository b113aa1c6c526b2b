// gridbuf.layout.sizes: checked arithmetic of sizes, short lists of numbers, and strided memory.
//
// Sizes. `gridbuf::checked` is the only code that multiplies, adds and rounds sizes: array
// libraries that computed byte counts in several places have security advisories for it. A result
// is a value or nothing (`std::optional`), so a wrapped number cannot be used by mistake. The limit
// is PTRDIFF_MAX, because a larger object cannot be indexed by pointer differences.
//
// Lists. An array may have 64 dimensions, as in NumPy, and nearly all arrays have four or fewer. A
// `SmallVec` keeps eight entries in place and more on the heap, so that a type with six lists is
// short enough to copy. (With 64 entries in place an array took 4.3 KiB.) absl::InlinedVector is
// not constexpr, and layouts are computed at compile time.
//
// A separate library, because allocation checks sizes and does not know layouts.

module;

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

export module gridbuf.layout.sizes;

export namespace gridbuf::checked {

// ---- Checked sizes. ----

// Results are in [-kMaxBytes, kMaxBytes], so their negatives exist, too.

/// The largest number of bytes or of elements: 2^63 - 1.
inline constexpr std::int64_t kMaxBytes = std::numeric_limits<std::ptrdiff_t>::max();

/// The largest alignment of a request: 1 MiB. Layouts and allocations both check it.
inline constexpr std::int64_t kMaxAlignmentBytes = std::int64_t{1} << 20;

/// a * b, or nothing if it is outside [-kMaxBytes, kMaxBytes].
constexpr std::optional<std::int64_t> mul(std::int64_t a, std::int64_t b) noexcept {
  std::int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result) || result < -kMaxBytes) return std::nullopt;
  return result;
}

/// a + b, or nothing if it is outside [-kMaxBytes, kMaxBytes].
constexpr std::optional<std::int64_t> add(std::int64_t a, std::int64_t b) noexcept {
  std::int64_t result = 0;
  if (__builtin_add_overflow(a, b, &result) || result < -kMaxBytes) return std::nullopt;
  return result;
}

/// a / b. Most divisors here are 1, and a 64-bit division takes as long as ten additions. Requires
/// b > 0.
constexpr std::int64_t quotient(std::int64_t a, std::int64_t b) noexcept {
  return b == 1 ? a : a / b;
}

/// The smallest multiple of `multiple` that is >= `value`. Nothing if it exceeds kMaxBytes, or if
/// value < 0 or multiple < 1. `multiple` need not be a power of two.
constexpr std::optional<std::int64_t> align_up(std::int64_t value, std::int64_t multiple) noexcept {
  if (value < 0 || multiple < 1) return std::nullopt;
  const std::int64_t excess = value % multiple;
  return excess == 0 ? std::optional(value) : add(value, multiple - excess);
}

/// The product of `extents` (1 for none). A zero extent makes the product 0. As in NumPy, the
/// product of the other extents must still fit, because strides are products of them. Nothing for
/// negative extents.
constexpr std::optional<std::int64_t> product(std::span<const std::int64_t> extents) noexcept {
  std::int64_t result = 1;
  bool any_zero = false;
  for (const std::int64_t extent : extents) {
    if (extent < 0) return std::nullopt;
    any_zero = any_zero || extent == 0;
    const std::optional<std::int64_t> next = mul(result, extent == 0 ? 1 : extent);
    if (!next) return std::nullopt;
    result = *next;
  }
  return any_zero ? 0 : result;
}

/// The contiguous extent is rounded up to a multiple of this many elements, so that all rows start
/// alike: alignment / gcd(alignment, itemsize). In bytes it is lcm(alignment, itemsize), so every
/// item size divides it. For an item size of 0 it is 1 element. Requires alignment_bytes >= 1,
/// itemsize_bytes >= 0.
constexpr std::int64_t padding_multiple(std::int64_t alignment_bytes,
                                        std::int64_t itemsize_bytes) noexcept {
  return alignment_bytes / std::gcd(alignment_bytes, itemsize_bytes);
}

/// The range of bytes that an array touches: offsets [lowest_bytes, highest_bytes), counted from
/// the origin of the array's offsets.
struct ByteHull {
  std::int64_t lowest_bytes = 0;
  std::int64_t highest_bytes = 0;  // One past the last byte; equal to lowest_bytes if empty.

  constexpr std::int64_t length_bytes() const noexcept { return highest_bytes - lowest_bytes; }
  friend constexpr bool operator==(const ByteHull&, const ByteHull&) = default;
};

/// The hull of an array whose element (0, ..., 0) starts at `offset_bytes`. Strides may be negative
/// or zero. An array without elements touches nothing: its hull is [offset, offset), whatever its
/// strides. Strides of extents of 1 are ignored. Nothing if a bound or the length exceeds the
/// limit, if `shape` and `strides_bytes` differ in length, or for a negative extent or itemsize.
constexpr std::optional<ByteHull> byte_hull(std::span<const std::int64_t> shape,
                                            std::span<const std::int64_t> strides_bytes,
                                            std::int64_t itemsize_bytes,
                                            std::int64_t offset_bytes = 0) noexcept {
  if (shape.size() != strides_bytes.size() || itemsize_bytes < 0) return std::nullopt;
  if (offset_bytes < -kMaxBytes) return std::nullopt;
  bool any_zero = false;
  for (const std::int64_t extent : shape) {
    if (extent < 0) return std::nullopt;
    any_zero = any_zero || extent == 0;
  }
  if (any_zero) return ByteHull{offset_bytes, offset_bytes};

  std::optional<std::int64_t> lowest = offset_bytes;
  std::optional<std::int64_t> highest = add(offset_bytes, itemsize_bytes);
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] == 1) continue;
    const std::optional<std::int64_t> reach = mul(shape[axis] - 1, strides_bytes[axis]);
    if (!reach || !lowest || !highest) return std::nullopt;
    (*reach < 0 ? lowest : highest) = add(*reach < 0 ? *lowest : *highest, *reach);
  }
  if (!lowest || !highest || !add(*highest, -*lowest)) return std::nullopt;
  return ByteHull{*lowest, *highest};
}

}  // namespace gridbuf::checked

export namespace gridbuf {

// ---- Small vectors: shapes, strides, indices, layout maps. ----

/// The most dimensions that an array can have, as in NumPy.
inline constexpr int kMaxNdim = 64;

/// A vector of at most kMaxNdim values. `in_place` of them are in the object; a longer vector is on
/// the heap, so that making, copying and lengthening it can throw std::bad_alloc. Moves never
/// throw. Sizes are `int`, like numbers of dimensions.
template <class T, int in_place = 8>
  requires std::is_trivially_copyable_v<T>
class SmallVec {
 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  /// Whether no vector of this type is on the heap.
  static constexpr bool kNeverThrows = in_place >= kMaxNdim;

  constexpr SmallVec() noexcept {
    // Indeterminate at run time: writing entries that are not used takes longer than the rest.
    if (std::is_constant_evaluated()) std::construct_at(&own_);
  }

  /// `count` times `value`. Requires 0 <= count <= kMaxNdim.
  constexpr SmallVec(int count, const T& value) noexcept(kNeverThrows) : SmallVec() {
    T* const entries = make_room(count);
    size_ = count;
    if (!std::is_constant_evaluated() && count <= kFew) {
      for (int i = 0; i < kFew; ++i) std::construct_at(entries + i, value);  // as copy_entries
    } else {
      std::fill_n(entries, count, value);
    }
  }

  /// The values listed. Requires at most kMaxNdim of them.
  constexpr SmallVec(std::initializer_list<T> values) noexcept(kNeverThrows)
      : SmallVec(std::span<const T>(values.begin(), values.size())) {}

  /// A copy of `values`. Requires at most kMaxNdim; use `make_extents` for values that a user
  /// passed.
  constexpr explicit SmallVec(std::span<const T> values) noexcept(kNeverThrows) : SmallVec() {
    require(values.size() <= static_cast<std::size_t>(kMaxNdim));
    const int count = static_cast<int>(values.size());
    std::copy_n(values.data(), count, make_room(count));
    size_ = count;
  }

  /// The values of a vector with another number of entries in place.
  template <int other_in_place>
  constexpr SmallVec(const SmallVec<T, other_in_place>& other) noexcept(kNeverThrows)
      : SmallVec(other.span()) {}

  constexpr SmallVec(const SmallVec& other) noexcept(kNeverThrows) : SmallVec() { copy(other); }
  constexpr SmallVec(SmallVec&& other) noexcept : SmallVec() { take(other); }
  constexpr SmallVec& operator=(const SmallVec& other) noexcept(kNeverThrows) {
    if (this != &other) copy(other);
    return *this;
  }
  constexpr SmallVec& operator=(SmallVec&& other) noexcept {
    if (this != &other) take(other);
    return *this;
  }
  constexpr ~SmallVec() {
    if (on_heap_) delete[] heap_;
  }

  constexpr int size() const noexcept { return size_; }
  constexpr bool empty() const noexcept { return size_ == 0; }

  constexpr T& operator[](int position) noexcept {
    assert(position >= 0 && position < size_);
    return data()[position];
  }
  constexpr const T& operator[](int position) const noexcept {
    assert(position >= 0 && position < size_);
    return data()[position];
  }

  constexpr T* data() noexcept {
    if (on_heap_) [[unlikely]]
      return heap_;
    return own_.entries;
  }
  constexpr const T* data() const noexcept {
    if (on_heap_) [[unlikely]]
      return heap_;
    return own_.entries;
  }
  constexpr iterator begin() noexcept { return data(); }
  constexpr iterator end() noexcept { return data() + size_; }
  constexpr const_iterator begin() const noexcept { return data(); }
  constexpr const_iterator end() const noexcept { return data() + size_; }

  /// The entries, for functions that take any contiguous range.
  constexpr std::span<const T> span() const noexcept {
    return {data(), static_cast<std::size_t>(size_)};
  }

  /// Appends `value`. Requires size() < kMaxNdim.
  constexpr void push_back(const T& value) noexcept(kNeverThrows) {
    if (size_ < in_place && !on_heap_) [[likely]] {
      own_.entries[size_++] = value;
      return;
    }
    make_room(size_ + 1)[size_] = value;
    ++size_;
  }

  /// Puts `value` before `position`. Requires 0 <= position <= size() < kMaxNdim.
  constexpr void insert(int position, const T& value) noexcept(kNeverThrows) {
    require(position >= 0 && position <= size_);
    T* const entries = make_room(size_ + 1);
    std::copy_backward(entries + position, entries + size_, entries + size_ + 1);
    entries[position] = value;
    ++size_;
  }

  /// Removes the entry at `position`. Requires 0 <= position < size().
  constexpr void erase(int position) noexcept {
    require(position >= 0 && position < size_);
    std::copy(begin() + position + 1, end(), begin() + position);
    --size_;
  }

  friend constexpr bool operator==(const SmallVec& a, const SmallVec& b) noexcept {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  static constexpr void require(bool invariant) noexcept {
    if (!invariant) __builtin_trap();
  }
  /// The entries, with room for `count` of them.
  constexpr T* make_room(int count) noexcept(kNeverThrows) {
    require(count >= 0 && count <= kMaxNdim);
    if constexpr (!kNeverThrows) {
      if (count > in_place && !on_heap_) [[unlikely]] {
        T* const heap = new T[kMaxNdim];
        std::copy_n(own_.entries, size_, heap);
        std::construct_at(&heap_, heap);
        on_heap_ = true;
      }
    }
    return data();
  }
  constexpr void copy(const SmallVec& other) noexcept(kNeverThrows) {
    copy_entries(other, other.on_heap_ ? make_room(other.size_) : data());
  }
  constexpr void take(SmallVec& other) noexcept {
    if (!other.on_heap_) return copy_entries(other, data());
    if (on_heap_) delete[] heap_;
    std::construct_at(&heap_, other.heap_);
    on_heap_ = true;
    size_ = std::exchange(other.size_, 0);
    std::construct_at(&other.own_);
    other.on_heap_ = false;
  }
  constexpr void copy_entries(const SmallVec& other, T* entries) noexcept {
    size_ = other.size_;
    if (!std::is_constant_evaluated() && size_ <= kFew) {
      // A fixed length, because a loop over three entries takes as long as a malloc. The entries
      // behind the last one are never used.
      __builtin_memcpy(static_cast<void*>(entries), other.data(), kFew * sizeof(T));
    } else {
      std::copy_n(other.data(), size_, entries);
    }
  }

  static constexpr int kFew = 4;
  static_assert(in_place >= kFew);
  struct Entries {
    T entries[in_place];
  };
  int size_ = 0;
  bool on_heap_ = false;
  union {
    Entries own_;
    T* heap_;  // kMaxNdim entries
  };
};

/// A shape (elements), a stride list (bytes) or an index (elements): one number per dimension.
using Extents = SmallVec<std::int64_t>;

/// "(3, 4, 5)", "(3,)" or "()": written as a Python tuple, as users type it.
template <class T, int in_place>
std::string to_string(const SmallVec<T, in_place>& values) {
  std::string text = "(";
  for (int i = 0; i < values.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(values[i]);
  }
  text += values.size() == 1 ? ",)" : ")";
  return text;
}

// ---- Strided memory. Its operations are in gridbuf.layout.view. ----

/// An array in a block of bytes. A value without invariants. The functions below require a *sound*
/// view: it has as many strides as extents, and `byte_hull` returns a value. Check every view from
/// outside gridbuf in this way.
struct StridedView {
  Extents shape = {};
  Extents strides_bytes = {};
  std::int64_t offset_bytes = 0;    // Of element (0, ..., 0), from the start of the block.
  std::int64_t itemsize_bytes = 1;  // >= 0

  constexpr int ndim() const noexcept { return shape.size(); }
  friend constexpr bool operator==(const StridedView&, const StridedView&) noexcept = default;
};

/// Whether any extent is 0.
constexpr bool is_empty(const Extents& shape) noexcept {
  for (const std::int64_t extent : shape) {
    if (extent == 0) return true;
  }
  return false;
}

/// Extents of 1, and all extents of an array without elements, get the strides of a dense array in
/// C order. Their own have no meaning and may have any value.
constexpr void replace_meaningless_strides(StridedView& view) noexcept {
  const bool empty = is_empty(view.shape);
  std::int64_t dense_bytes = view.itemsize_bytes;
  for (int axis = view.ndim() - 1; axis >= 0; --axis) {
    const std::int64_t extent = view.shape[axis];
    if (extent == 1 || empty) view.strides_bytes[axis] = dense_bytes;
    // A view that repeats elements may have more bytes than fit.
    if (extent > 1) dense_bytes = checked::mul(dense_bytes, extent).value_or(dense_bytes);
  }
}

/// The bytes that the view touches, as offsets [lowest_bytes, highest_bytes) from the start of the
/// block. Nothing if an offset or the length does not fit in 64 bits, or if the view is malformed.
constexpr std::optional<checked::ByteHull> byte_hull(const StridedView& view) noexcept {
  return checked::byte_hull(view.shape.span(), view.strides_bytes.span(), view.itemsize_bytes,
                            view.offset_bytes);
}

/// The bytes of the elements, without what is between them; kMaxBytes if they are more, as in a
/// view that repeats elements.
constexpr std::int64_t nbytes(const StridedView& view) noexcept {
  const std::optional<std::int64_t> count = checked::product(view.shape.span());
  return checked::mul(count.value_or(checked::kMaxBytes), view.itemsize_bytes)
      .value_or(checked::kMaxBytes);
}

/// The offset of the element at `index`. Requires a sound view and 0 <= index[i] < shape[i].
constexpr std::int64_t byte_offset(const StridedView& view, const Extents& index) noexcept {
  std::int64_t offset = view.offset_bytes;
  for (int axis = 0; axis < view.ndim(); ++axis) offset += index[axis] * view.strides_bytes[axis];
  return offset;
}

}  // namespace gridbuf
