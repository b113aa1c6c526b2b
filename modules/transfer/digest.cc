module;

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
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

// The finalizer of splitmix64, a permutation: each bit of the result depends on each of `bits`.
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

// Two odd numbers below 2^32 for an index of the dimension with this hash.
constexpr Pair weights_of(std::uint64_t name, std::int64_t index) noexcept {
  const std::uint64_t bits = mixed(name + static_cast<std::uint64_t>(index));
  return {(bits & 0xffffffffU) | 1U, (bits >> 32) | 1U};
}

// Words of adjacent indices, and the weights of these.
struct Row {
  const std::byte* first;
  std::int64_t stride_bytes;
  const std::uint32_t* one;
  const std::uint32_t* other;
  std::int64_t count;
};

// The sums of a word over a row: of its lower 32 bits, and of its upper ones.
struct RowSums {
  Pair low{};
  Pair high{};
};

template <class T>
[[gnu::always_inline]] inline RowSums sums_with(const Row& row, std::int64_t stride_bytes) {
  RowSums sums;
  for (std::int64_t k = 0; k < row.count; ++k) {
    T value;
    std::memcpy(&value, row.first + k * stride_bytes, sizeof value);
    const std::uint64_t bits = value;
    sums.low[0] += (bits & 0xffffffffU) * row.one[k];
    sums.low[1] += (bits & 0xffffffffU) * row.other[k];
    if constexpr (sizeof(T) == 8) {
      sums.high[0] += (bits >> 32) * row.one[k];
      sums.high[1] += (bits >> 32) * row.other[k];
    }
  }
  return sums;
}

// The stride is a constant where elements are adjacent, so that the compiler uses vectors.
template <class T>
[[gnu::always_inline]] inline RowSums sums_of(const Row& row) {
  return row.stride_bytes == sizeof(T) ? sums_with<T>(row, sizeof(T))
                                       : sums_with<T>(row, row.stride_bytes);
}

[[gnu::always_inline]] inline RowSums sums_of(const Row& row, std::int64_t word_bytes) {
  if (word_bytes == 8) return sums_of<std::uint64_t>(row);
  if (word_bytes == 4) return sums_of<std::uint32_t>(row);
  if (word_bytes == 2) return sums_of<std::uint16_t>(row);
  return sums_of<std::uint8_t>(row);
}

using SumRow = RowSums (*)(const Row&, std::int64_t);

RowSums sum_row(const Row& row, std::int64_t word_bytes) { return sums_of(row, word_bytes); }
#if defined(__x86_64__)
[[gnu::target("avx2")]] RowSums sum_row_avx2(const Row& row, std::int64_t word_bytes) {
  return sums_of(row, word_bytes);
}
#else
constexpr SumRow sum_row_avx2 = sum_row;
#endif

// A part of each element: 8, 4, 2 or 1 bytes.
struct Word {
  std::int64_t offset_bytes;
  std::int64_t length_bytes;
  Pair low;  // weights of its lower 32 bits, and of its upper ones
  Pair high;
};

void add_words(std::vector<Word>& words, std::int64_t offset_bytes, std::int64_t length_bytes) {
  const auto weights = [](std::uint64_t number) {
    return Pair{mixed(2 * number + 1) | 1U, mixed(2 * number + 2) | 1U};
  };
  while (length_bytes > 0) {
    std::int64_t taken = 8;
    while (taken > length_bytes) taken /= 2;
    const std::uint64_t place = 2 * words.size();
    words.push_back({offset_bytes, taken, weights(place), weights(place + 1)});
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
    for (int axis = 0; axis < view.ndim(); ++axis) {
      const DigestDim& dim = dims[static_cast<std::size_t>(axis)];
      axes_.push_back({view.shape[axis], view.strides_bytes[axis],
                       hash_of(dim.name) + static_cast<std::uint64_t>(dim.first_index)});
    }
    std::ranges::sort(axes_, {}, [](const Axis& axis) {
      return axis.extent > 1 ? std::llabs(axis.stride_bytes) : INT64_MAX;
    });
    if (!axes_.empty()) {
      inner_ = axes_.front();
      axes_.erase(axes_.begin());
    }
    for (const Axis& axis : axes_) rows_ *= axis.extent;
  }

  Digest total() const {
    const std::int64_t tiles = (inner_.extent + kTile - 1) / kTile;
    const std::int64_t bytes = std::max<std::int64_t>(1, std::min(inner_.extent, kTile)) *
                               std::max<std::int64_t>(1, 8 * std::ssize(words_));
    std::array<std::atomic<std::uint64_t>, 2> sums{};
    parallel_for(rows_ * tiles, std::max<std::int64_t>(1, kTaskBytes / bytes),
                 [&](std::int64_t begin, std::int64_t end) {
                   const Pair part = sum_of(begin, end);
                   sums[0] += part[0];
                   sums[1] += part[1];
                 });
    return {{sums[0], sums[1]}};
  }

 private:
  struct Axis {
    std::int64_t extent = 1;
    std::int64_t stride_bytes = 0;
    std::uint64_t name = 0;  // hash, plus the first index
  };

  // Of the pieces of rows [begin, end), in which all rows of a tile come first.
  Pair sum_of(std::int64_t begin, std::int64_t end) const {
    const SumRow sum_words = simd() >= Simd::kAvx2 ? sum_row_avx2 : sum_row;
    Pair sum{};
    Pair present{};  // what each element adds for its type, so that zeros count
    std::array<std::uint32_t, kTile> one;
    std::array<std::uint32_t, kTile> other;
    for (std::int64_t piece = begin; piece < end; ++piece) {
      const std::int64_t from = piece / rows_ * kTile;
      const std::int64_t count = std::min(kTile, inner_.extent - from);
      if (piece == begin || piece % rows_ == 0) {
        present = {};
        for (std::int64_t k = 0; k < count; ++k) {
          const Pair weight = weights_of(inner_.name, from + k);
          one[static_cast<std::size_t>(k)] = static_cast<std::uint32_t>(weight[0]);
          other[static_cast<std::size_t>(k)] = static_cast<std::uint32_t>(weight[1]);
          add_product(present, type_, weight);
        }
      }
      const std::byte* at = first_ + from * inner_.stride_bytes;
      Pair weight{1, 1};
      std::int64_t rest = piece % rows_;
      for (const Axis& axis : axes_) {
        const std::int64_t index = rest % axis.extent;
        rest /= axis.extent;
        at += index * axis.stride_bytes;
        const Pair factor = weights_of(axis.name, index);
        weight = {weight[0] * factor[0], weight[1] * factor[1]};
      }
      Pair row_sum = present;
      for (const Word& word : words_) {
        const RowSums sums = sum_words(
            {at + word.offset_bytes, inner_.stride_bytes, one.data(), other.data(), count},
            word.length_bytes);
        add_product(row_sum, word.low, sums.low);
        add_product(row_sum, word.high, sums.high);
      }
      add_product(sum, weight, row_sum);
    }
    return sum;
  }

  const std::byte* first_;
  std::vector<Word> words_;
  Pair type_;
  std::vector<Axis> axes_;  // but for the innermost one
  Axis inner_;
  std::int64_t rows_ = 1;
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
  if (is_empty(view.shape)) return Digest{};
  return Summation(block, view, dims, type, parts).total();
}

}  // namespace gridbuf
