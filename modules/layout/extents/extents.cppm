// gridbuf.layout.extents: the small vectors that shapes, strides and layout maps are made of.
//
// Purpose. Every other module passes shapes, byte strides, indices and layout maps around. They are
// short (three entries, nearly always), bounded (no array has more than kMaxNdim dimensions) and
// made millions of times, so they live inside their owner: no heap, no failure, no sharing.
//
// Key choice. The capacity is fixed, but only the live entries are ever written or copied. A plan
// for a 3-d field moves 3 entries, not 64, and still answers the largest array that the bound
// admits. So the entries lie in a union, where not even those of a type that initialises itself are
// made before they are needed. During constant evaluation the unused entries are made as well,
// because a constexpr object may not hold indeterminate values; that costs nothing at run time.
//
// The bound. NumPy stops at 64 dimensions; so do we. Anything longer is refused *before* it is
// copied (`make_extents`), which is the lesson of CVE-2021-33430. Growing past the bound in code
// that skipped that check is a broken invariant and traps; it never writes out of bounds.

module;

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "absl/status/statusor.h"

export module gridbuf.layout.extents;

export namespace gridbuf {

/// The most dimensions that an array can have, as in NumPy.
inline constexpr int kMaxNdim = 64;

/// A vector of at most kMaxNdim values, stored in place. Copies and compares its live entries only.
/// `T` is trivially copyable and cheap to make. Sizes are `int`, as numbers of dimensions are.
template <class T>
  requires std::is_trivially_copyable_v<T>
class SmallVec {
 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  constexpr SmallVec() noexcept { make_for_constant_evaluation(); }

  /// `count` times `value`. Requires 0 <= count <= kMaxNdim.
  constexpr SmallVec(int count, const T& value) noexcept : SmallVec() {
    require(count >= 0 && count <= kMaxNdim);
    size_ = count;
    // As in copies: a fixed number of writes where a loop would be longer.
    for (int i = 0; i < kUsualNdim; ++i) entries()[i] = value;
    for (int i = kUsualNdim; i < count; ++i) entries()[i] = value;
  }

  /// The values listed. Requires at most kMaxNdim of them.
  constexpr SmallVec(std::initializer_list<T> values) noexcept
      : SmallVec(std::span<const T>(values.begin(), values.size())) {}

  /// A copy of `values`. Requires at most kMaxNdim; use `make_extents` for what a user passed.
  constexpr explicit SmallVec(std::span<const T> values) noexcept : SmallVec() {
    require(values.size() <= static_cast<std::size_t>(kMaxNdim));
    for (const T& value : values) entries()[size_++] = value;
  }

  constexpr SmallVec(const SmallVec& other) noexcept : SmallVec() { copy_live(other); }
  constexpr SmallVec& operator=(const SmallVec& other) noexcept {
    if (this != &other) copy_live(other);
    return *this;
  }
  constexpr ~SmallVec() = default;

  constexpr int size() const noexcept { return size_; }
  constexpr bool empty() const noexcept { return size_ == 0; }

  constexpr T& operator[](int position) noexcept {
    assert(position >= 0 && position < size_);
    return entries()[position];
  }
  constexpr const T& operator[](int position) const noexcept {
    assert(position >= 0 && position < size_);
    return entries()[position];
  }

  constexpr T* data() noexcept { return entries(); }
  constexpr const T* data() const noexcept { return entries(); }
  constexpr iterator begin() noexcept { return entries(); }
  constexpr iterator end() noexcept { return entries() + size_; }
  constexpr const_iterator begin() const noexcept { return entries(); }
  constexpr const_iterator end() const noexcept { return entries() + size_; }

  /// The live entries, for functions that take any contiguous range.
  constexpr std::span<const T> span() const noexcept {
    return {entries(), static_cast<std::size_t>(size_)};
  }

  /// Appends `value`. Requires size() < kMaxNdim.
  constexpr void push_back(const T& value) noexcept {
    require(size_ < kMaxNdim);
    entries()[size_++] = value;
  }

  /// Puts `value` before `position`. Requires 0 <= position <= size() < kMaxNdim.
  constexpr void insert(int position, const T& value) noexcept {
    require(size_ < kMaxNdim && position >= 0 && position <= size_);
    for (int i = size_; i > position; --i) entries()[i] = entries()[i - 1];
    entries()[position] = value;
    ++size_;
  }

  /// Removes the entry at `position`. Requires 0 <= position < size().
  constexpr void erase(int position) noexcept {
    require(position >= 0 && position < size_);
    for (int i = position + 1; i < size_; ++i) entries()[i - 1] = entries()[i];
    --size_;
  }

  friend constexpr bool operator==(const SmallVec& a, const SmallVec& b) noexcept {
    if (a.size_ != b.size_) return false;
    // Entry by entry: calling a function that compares bytes takes longer than three of them.
    for (int i = 0; i < a.size_; ++i) {
      if (a.entries()[i] != b.entries()[i]) return false;
    }
    return true;
  }

 private:
  static constexpr int kUsualNdim = 4;

  static constexpr void require(bool invariant) noexcept {
    if (!invariant) __builtin_trap();
  }
  constexpr void make_for_constant_evaluation() noexcept {
    if (std::is_constant_evaluated()) std::construct_at(&live_);
  }
  constexpr T* entries() noexcept { return live_.entries; }
  constexpr const T* entries() const noexcept { return live_.entries; }
  /// One move of the processor. Entries are mostly copied just after they were written one by one;
  /// moves of several at once, which the compiler would make of this, then wait until the writes
  /// have left the processor's store buffer.
  static void copy_entry(T& target, const T& source) noexcept {
    if constexpr (sizeof(T) == sizeof(std::uint64_t)) {
      move_word<std::uint64_t>(target, source);
    } else if constexpr (sizeof(T) == sizeof(std::uint32_t)) {
      move_word<std::uint32_t>(target, source);
    } else {
      __builtin_memcpy(&target, &source, sizeof(T));
    }
  }
  template <class Word>
  static void move_word(T& target, const T& source) noexcept {
    Word word;
    __builtin_memcpy(&word, &source, sizeof(word));
    asm("" : "+r"(word));  // keeps the compiler from joining it with its neighbours
    __builtin_memcpy(&target, &word, sizeof(word));
  }
  constexpr void copy_live(const SmallVec& other) noexcept {
    size_ = other.size_;
    if (!std::is_constant_evaluated() && size_ <= kUsualNdim) {
      // A fixed number of moves, where a loop over 3 entries is as long as a malloc. What lies
      // behind the live entries is copied unread.
      for (int i = 0; i < kUsualNdim; ++i) copy_entry(entries()[i], other.entries()[i]);
      return;
    }
    for (int i = 0; i < other.size_; ++i) entries()[i] = other.entries()[i];
  }

  struct Entries {
    T entries[kMaxNdim];
  };
  int size_ = 0;
  union {
    Entries live_;  // Entries from size_ on are indeterminate at run time.
  };
};

/// A shape (elements), a stride list (bytes) or an index (elements): one number per dimension.
using Extents = SmallVec<std::int64_t>;

/// A layout map: entry i is the *rank* of dimension i, 0 for the largest stride and ndim - 1 for
/// the smallest. It is not the inverse permutation. See gridbuf.layout.dims for its rules.
using LayoutMap = SmallVec<int>;

/// A list of dimensions, by position; what `transpose` takes.
using Axes = SmallVec<int>;

/// The values as an `Extents`, or InvalidArgument naming `what` ("shape", "strides", ...), the
/// number of entries and the bound, when there are more than kMaxNdim. Copies nothing before that.
absl::StatusOr<Extents> make_extents(std::span<const std::int64_t> values, std::string_view what);

/// "(3, 4, 5)", "(3,)" or "()": written as a Python tuple, which is how users typed it.
template <class T>
std::string to_string(const SmallVec<T>& values) {
  std::string text = "(";
  for (int i = 0; i < values.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(values[i]);
  }
  text += values.size() == 1 ? ",)" : ")";
  return text;
}

}  // namespace gridbuf
