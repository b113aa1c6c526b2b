module;

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

module gridbuf.transfer;

import gridbuf.base;
import gridbuf.layout;
import gridbuf.layout.view;
import gridbuf.transfer.loops;

namespace gridbuf {
namespace {

// The two sums differ only in their weights.
using Pair = std::array<std::uint64_t, 2>;

// Indices of the innermost dimension whose weights are computed at once: 2 × 16 KiB, as long as
// half a first-level cache.
constexpr std::int64_t kTile = 4096;
// Rows of a task: long enough to hide the 15 µs that a thread takes to wake.
constexpr std::int64_t kTaskBytes = std::int64_t{1} << 20;

// The finalizer of splitmix64: each bit of the result depends on each bit of the argument.
constexpr std::uint64_t mixed(std::uint64_t bits) noexcept {
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9U;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebU;
  return bits ^ (bits >> 31);
}

constexpr std::uint64_t hash_of(std::string_view text) noexcept {
  std::uint64_t hash = mixed(text.size() + 0x9e3779b97f4a7c15U);
  for (const char letter : text) hash = mixed(hash ^ static_cast<unsigned char>(letter));
  return hash;
}

// An odd number for one index of a dimension, whose name and high half of the index are in `seed`.
constexpr std::uint32_t weight_of(std::uint32_t low, std::uint32_t seed) noexcept {
  std::uint32_t bits = low ^ seed;  // the finalizer of MurmurHash3, which is a permutation
  bits = (bits ^ (bits >> 16)) * 0x85ebca6bU;
  bits = (bits ^ (bits >> 13)) * 0xc2b2ae35U;
  return (bits ^ (bits >> 16)) | 1U;
}

// The weights of a dimension's indices.
class Weights {
 public:
  explicit Weights(std::string_view name) : name_(hash_of(name)) {}

  Pair at(std::int64_t index) const noexcept {
    const std::uint64_t seed = seed_of(index);
    const auto low = static_cast<std::uint32_t>(index);
    return {weight_of(low, static_cast<std::uint32_t>(seed)),
            weight_of(low, static_cast<std::uint32_t>(seed >> 32))};
  }

  // The weights of adjacent indices from `first` on.
  void fill(std::span<std::uint32_t> one, std::span<std::uint32_t> other,
            std::int64_t first) const noexcept {
    for (std::size_t begin = 0; begin < one.size();) {
      const std::int64_t index = first + static_cast<std::int64_t>(begin);
      const auto low = static_cast<std::uint32_t>(index);
      const std::size_t left = (std::size_t{1} << 32) - low;  // with this high half
      const std::size_t count = std::min(one.size() - begin, left);
      const std::uint64_t seed = seed_of(index);
      const auto seed_0 = static_cast<std::uint32_t>(seed);
      const auto seed_1 = static_cast<std::uint32_t>(seed >> 32);
      for (std::size_t k = 0; k < count; ++k) {
        const std::uint32_t point = low + static_cast<std::uint32_t>(k);
        one[begin + k] = weight_of(point, seed_0);
        other[begin + k] = weight_of(point, seed_1);
      }
      begin += count;
    }
  }

 private:
  std::uint64_t seed_of(std::int64_t index) const noexcept {
    return mixed(name_ ^ (static_cast<std::uint64_t>(index) >> 32));
  }

  std::uint64_t name_;
};

// The sums of a word over a row: of its lower 32 bits, and of its upper ones.
struct RowSums {
  Pair low{};
  Pair high{};
};

template <class T>
[[gnu::always_inline]] inline RowSums row_sums(const std::byte* first, std::int64_t stride_bytes,
                                               const std::uint32_t* one, const std::uint32_t* other,
                                               std::int64_t count) {
  std::uint64_t low_0 = 0;
  std::uint64_t low_1 = 0;
  std::uint64_t high_0 = 0;
  std::uint64_t high_1 = 0;
  for (std::int64_t k = 0; k < count; ++k) {
    T value;
    std::memcpy(&value, first + k * stride_bytes, sizeof value);
    const std::uint64_t bits = value;
    low_0 += (bits & 0xffffffffU) * one[k];
    low_1 += (bits & 0xffffffffU) * other[k];
    if constexpr (sizeof(T) == 8) {
      high_0 += (bits >> 32) * one[k];
      high_1 += (bits >> 32) * other[k];
    }
  }
  return {{low_0, low_1}, {high_0, high_1}};
}

// The stride is a constant where elements are adjacent, so that the compiler uses vectors.
template <class T>
[[gnu::always_inline]] inline RowSums dense_or_not(const std::byte* first,
                                                   std::int64_t stride_bytes,
                                                   const std::uint32_t* one,
                                                   const std::uint32_t* other, std::int64_t count) {
  return stride_bytes == sizeof(T) ? row_sums<T>(first, sizeof(T), one, other, count)
                                   : row_sums<T>(first, stride_bytes, one, other, count);
}

using SumRow = RowSums (*)(const std::byte*, std::int64_t, const std::uint32_t*,
                           const std::uint32_t*, std::int64_t);

template <class T>
RowSums sum_row(const std::byte* first, std::int64_t stride_bytes, const std::uint32_t* one,
                const std::uint32_t* other, std::int64_t count) {
  return dense_or_not<T>(first, stride_bytes, one, other, count);
}
#if defined(__x86_64__)
template <class T>
[[gnu::target("avx2")]] RowSums sum_row_avx2(const std::byte* first, std::int64_t stride_bytes,
                                             const std::uint32_t* one, const std::uint32_t* other,
                                             std::int64_t count) {
  return dense_or_not<T>(first, stride_bytes, one, other, count);
}
#endif

template <class T>
SumRow function_of([[maybe_unused]] Simd path) {
#if defined(__x86_64__)
  if (path == Simd::kAvx2 || path == Simd::kAvx512) return sum_row_avx2<T>;
#endif
  return sum_row<T>;
}

SumRow function_for(std::int64_t length_bytes) {
  const Simd path = simd();
  if (length_bytes == 8) return function_of<std::uint64_t>(path);
  if (length_bytes == 4) return function_of<std::uint32_t>(path);
  if (length_bytes == 2) return function_of<std::uint16_t>(path);
  return function_of<std::uint8_t>(path);
}

// A part of each element, at most a word long.
struct Word {
  std::int64_t offset_bytes;
  Pair low;  // weights of its lower 32 bits, and of its upper ones
  Pair high;
  SumRow sum_row;
};

void add_words(std::vector<Word>& words, std::int64_t offset_bytes, std::int64_t length_bytes) {
  while (length_bytes > 0) {
    std::int64_t taken = 8;
    while (taken > length_bytes) taken /= 2;
    const auto place = static_cast<std::uint64_t>(2 * words.size());
    const auto weights = [](std::uint64_t number) {
      return Pair{mixed(2 * number + 1) | 1U, mixed(2 * number + 2) | 1U};
    };
    words.push_back({offset_bytes, weights(place), weights(place + 1), function_for(taken)});
    offset_bytes += taken;
    length_bytes -= taken;
  }
}

std::vector<Word> words_of(std::int64_t itemsize_bytes, const ElementParts* parts) {
  std::vector<Word> words;
  if (parts == nullptr) {
    add_words(words, 0, itemsize_bytes);
    return words;
  }
  for (const StridedView& part : *parts) {
    Extents index(part.ndim(), 0);
    for (std::int64_t left = checked::product(part.shape.span()).value_or(0); left > 0; --left) {
      add_words(words, byte_offset(part, index), part.itemsize_bytes);
      for (int axis = part.ndim() - 1; axis >= 0 && ++index[axis] == part.shape[axis]; --axis) {
        index[axis] = 0;
      }
    }
  }
  return words;
}

void add_product(Pair& sum, const Pair& one, const Pair& other) noexcept {
  for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += one[k] * other[k];
}

// The sums over the elements of a view. Rows go along the dimension of the smallest stride.
class Summation {
 public:
  Summation(const std::byte* block, const StridedView& view, std::span<const DigestDim> dims,
            std::string_view type, const ElementParts* parts)
      : first_(block + view.offset_bytes),
        words_(words_of(view.itemsize_bytes, parts)),
        type_{hash_of(type) | 1U, mixed(hash_of(type)) | 1U} {
    std::vector<int> order(static_cast<std::size_t>(view.ndim()));
    std::iota(order.begin(), order.end(), 0);
    const auto steps = [&view](int axis) {
      return view.shape[axis] > 1 ? std::llabs(view.strides_bytes[axis]) : INT64_MAX;
    };
    std::ranges::sort(order, std::ranges::greater{}, steps);
    for (const int axis : order) {
      const DigestDim& dim = dims[static_cast<std::size_t>(axis)];
      axes_.push_back(
          {view.shape[axis], view.strides_bytes[axis], dim.first_index, Weights(dim.name)});
    }
    if (axes_.empty()) axes_.push_back({1, 0, 0, Weights("")});
    inner_ = axes_.back();
    axes_.pop_back();
    for (const Axis& axis : axes_) rows_ *= axis.extent;
    tiles_ = (inner_.extent + kTile - 1) / kTile;
  }

  Digest total() const {
    const std::int64_t bytes = std::max<std::int64_t>(1, std::min(inner_.extent, kTile)) *
                               std::max<std::size_t>(1, 8 * words_.size());
    std::array<std::atomic<std::uint64_t>, 2> sums{};
    parallel_for(rows_ * tiles_, std::max<std::int64_t>(1, kTaskBytes / bytes),
                 [&](std::int64_t begin, std::int64_t end) {
                   const Pair part = sum_of(begin, end);
                   sums[0] += part[0];
                   sums[1] += part[1];
                 });
    return {{sums[0], sums[1]}};
  }

 private:
  struct Axis {
    std::int64_t extent = 0;
    std::int64_t stride_bytes = 0;
    std::int64_t first_index = 0;
    Weights weights{""};
  };

  // Of the pieces of rows [begin, end), in which all rows of a tile come first.
  Pair sum_of(std::int64_t begin, std::int64_t end) const {
    Pair sum{};
    std::array<std::uint32_t, kTile> one;
    std::array<std::uint32_t, kTile> other;
    while (begin < end) {
      const std::int64_t tile = begin / rows_;
      const std::int64_t from = tile * kTile;
      const auto count = static_cast<std::size_t>(std::min(kTile, inner_.extent - from));
      inner_.weights.fill(std::span(one).first(count), std::span(other).first(count),
                          inner_.first_index + from);
      const std::int64_t last = std::min(end, (tile + 1) * rows_);
      add_rows(sum, begin - tile * rows_, last - tile * rows_, from, std::span(one).first(count),
               std::span(other).first(count));
      begin = last;
    }
    return sum;
  }

  void add_rows(Pair& sum, std::int64_t begin, std::int64_t end, std::int64_t from,
                std::span<const std::uint32_t> one, std::span<const std::uint32_t> other) const {
    const auto count = static_cast<std::int64_t>(one.size());
    // What each element adds for its type, so that zeros count.
    Pair present{};
    for (std::size_t k = 0; k < one.size(); ++k) {
      present[0] += one[k];
      present[1] += other[k];
    }
    for (std::int64_t row = begin; row < end; ++row) {
      const std::byte* at = first_ + from * inner_.stride_bytes;
      Pair weight{1, 1};
      std::int64_t rest = row;
      for (std::size_t k = axes_.size(); k-- > 0;) {
        const Axis& axis = axes_[k];
        const std::int64_t index = rest % axis.extent;
        rest /= axis.extent;
        at += index * axis.stride_bytes;
        const Pair factor = axis.weights.at(axis.first_index + index);
        weight = {weight[0] * factor[0], weight[1] * factor[1]};
      }
      Pair row_sum{};
      add_product(row_sum, type_, present);
      for (const Word& word : words_) {
        const RowSums sums = word.sum_row(at + word.offset_bytes, inner_.stride_bytes, one.data(),
                                          other.data(), count);
        add_product(row_sum, word.low, sums.low);
        add_product(row_sum, word.high, sums.high);
      }
      add_product(sum, weight, row_sum);
    }
  }

  const std::byte* first_;
  std::vector<Word> words_;
  Pair type_;
  std::vector<Axis> axes_;  // but for the innermost one
  Axis inner_;
  std::int64_t rows_ = 1;
  std::int64_t tiles_ = 0;
};

}  // namespace

std::string to_string(const Digest& digest) {
  return absl::StrFormat("%016x%016x", digest.sums[0], digest.sums[1]);
}

absl::StatusOr<Digest> digest_elements(const std::byte* block, const StridedView& view,
                                       std::span<const DigestDim> dims, std::string_view type,
                                       const ElementParts* parts) {
  const absl::StatusOr<checked::ByteHull> hull = hull_of("the array", block, view);
  if (!hull.ok()) return hull.status();
  if (std::ssize(dims) != view.ndim()) {
    return make_error(ErrorClass::kValue,
                      {"dims", absl::StrCat(dims.size(), " names"),
                       absl::StrCat(view.ndim(), ", one for each dimension"), "pass all names"});
  }
  for (int axis = 0; axis < view.ndim(); ++axis) {
    const DigestDim& dim = dims[static_cast<std::size_t>(axis)];
    const auto is_same = [&dim](const DigestDim& other) { return other.name == dim.name; };
    if (std::ranges::count_if(dims, is_same) > 1) {
      return make_error(ErrorClass::kValue, {"dims", absl::StrCat("'", dim.name, "' twice"),
                                             "different names", "name each dimension"});
    }
    if (!checked::add(dim.first_index, view.shape[axis])) {
      return make_error(ErrorClass::kValue,
                        {"lower", std::to_string(dim.first_index), "indices within 2^63 - 1",
                         "pass the index of the first element"});
    }
  }
  if (is_empty(view.shape)) return Digest{};
  return Summation(block, view, dims, type, parts).total();
}

}  // namespace gridbuf
