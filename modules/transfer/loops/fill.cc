module;

#include <sys/mman.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

module gridbuf.transfer.loops;

import gridbuf.base;
import gridbuf.layout;
import gridbuf.layout.view;

namespace gridbuf::loops {
namespace {

// Longer elements are copied one by one: their length hides the start of each copy.
constexpr std::int64_t kLongestPatternBytes = 1024;
// Shorter rows are not worth the start of a fill instruction.
constexpr std::int64_t kShortestStringBytes = 2048;
// Shorter rows have too many partly streamed cache lines.
constexpr std::int64_t kShortestStreamBytes = 4096;
constexpr std::int64_t kShortestZeroStreamBytes = 1024;

// An element on a separate page costs as much as filling this part of the page.
constexpr std::int64_t kFarBytes = 4096;
constexpr std::int64_t kFarShare = 4;

// ---- Patterns. ----

// An element, repeated so that a whole cache line can be read from every offset in the first line.
struct Pattern {
  explicit Pattern(std::span<const std::byte> element);

  bool repeats_in_line() const { return period_bytes == kLineBytes; }
  /// The line that ends with an element.
  const std::byte* last_line() const { return bytes + period_bytes - kLineBytes; }

  std::int64_t period_bytes;  // whole elements, and at least a line
  alignas(kLineBytes) std::byte bytes[kLongestPatternBytes + 2 * kLineBytes];
};

// The element's first 8 bytes, repeated.
std::uint64_t word_of(std::span<const std::byte> element) {
  std::uint64_t word = 0;
  std::memcpy(&word, element.data(), std::min<std::size_t>(element.size(), sizeof(word)));
  for (std::size_t filled = element.size(); filled < sizeof(word); filled *= 2) {
    word |= word << 8 * filled;
  }
  return word;
}

// Requires 1 to kLongestPatternBytes bytes.
Pattern::Pattern(std::span<const std::byte> element) {
  const std::int64_t itemsize = std::ssize(element);
  period_bytes = ((kLineBytes - 1) / itemsize + 1) * itemsize;
  const std::int64_t wanted_bytes = period_bytes + kLineBytes;
  if (sizeof(std::uint64_t) % element.size() == 0) {  // the usual ones, and no call of memcpy
    const std::uint64_t word = word_of(element);
    for (std::int64_t at = 0; at < 2 * kLineBytes; at += 8) std::memcpy(bytes + at, &word, 8);
    return;
  }
  std::memcpy(bytes, element.data(), element.size());
  for (std::int64_t filled = itemsize; filled < wanted_bytes; filled *= 2) {
    std::memcpy(bytes + filled, bytes,
                static_cast<std::size_t>(std::min(filled, wanted_bytes - filled)));
  }
}

// ---- Lines. ----

template <int kVectorBytes>
struct VectorOf {
  using Type __attribute__((vector_size(kVectorBytes))) = std::uint64_t;
};

// Writes whole cache lines; `target` is at the begin of a line. Inlined into functions for an
// instruction set, and compiled for it there.
template <int kVectorBytes, bool kStream>
[[gnu::always_inline]] inline void write_lines(std::byte* target, std::int64_t lines,
                                               const Pattern& pattern, std::int64_t phase_bytes) {
  using Vector = typename VectorOf<kVectorBytes>::Type;
  constexpr int kParts = static_cast<int>(kLineBytes) / kVectorBytes;
  const std::int64_t step_bytes = pattern.repeats_in_line() ? 0 : kLineBytes;
  Vector parts[kParts];
  std::memcpy(parts, pattern.bytes + phase_bytes, kLineBytes);
  for (std::byte* const end = target + lines * kLineBytes; target != end; target += kLineBytes) {
#pragma unroll
    for (int i = 0; i < kParts; ++i) {
      auto* const to = reinterpret_cast<Vector*>(target) + i;
      if constexpr (kStream) {
        __builtin_nontemporal_store(parts[i], to);
      } else {
        *to = parts[i];
      }
    }
    if (step_bytes == 0) continue;
    phase_bytes += step_bytes;
    if (phase_bytes >= pattern.period_bytes) phase_bytes -= pattern.period_bytes;
    std::memcpy(parts, pattern.bytes + phase_bytes, kLineBytes);
  }
}

using WriteLines = void (*)(std::byte* target, std::int64_t lines, const Pattern& pattern,
                            std::int64_t phase_bytes, bool stream);

#define GRIDBUF_WRITE_LINES(name, vector_bytes, attributes)                           \
  attributes void name(std::byte* target, std::int64_t lines, const Pattern& pattern, \
                       std::int64_t phase_bytes, bool stream) {                       \
    stream ? write_lines<vector_bytes, true>(target, lines, pattern, phase_bytes)     \
           : write_lines<vector_bytes, false>(target, lines, pattern, phase_bytes);   \
  }

GRIDBUF_WRITE_LINES(write_lines_portable, 16, );
#if defined(__x86_64__)
GRIDBUF_WRITE_LINES(write_lines_avx2, 32, [[gnu::target("avx2")]]);
GRIDBUF_WRITE_LINES(write_lines_avx512, 64, [[gnu::target("avx512f")]]);
#elif defined(__aarch64__)
GRIDBUF_WRITE_LINES(write_lines_neon, 32, );
#endif

WriteLines lines_of([[maybe_unused]] Simd simd) {
#if defined(__x86_64__)
  if (simd == Simd::kAvx512) return write_lines_avx512;
  if (simd == Simd::kAvx2) return write_lines_avx2;
#elif defined(__aarch64__)
  if (simd == Simd::kNeon) return write_lines_neon;
#endif
  return write_lines_portable;
}

// ---- Strings. ----

// Whether the processor reports fast fill instructions. Not in sanitizer builds, which do not see
// their writes.
bool has_fast_strings() {
#if defined(__x86_64__) && !__has_feature(address_sanitizer) && \
    !__has_feature(thread_sanitizer) && !__has_feature(memory_sanitizer)
  static const bool answer = [] {
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (ebx & bit_ENH_MOVSB) != 0;
  }();
  return answer;
#else
  return false;
#endif
}
// Before any thread: see modules/base/fork.h.
[[maybe_unused]] const bool strings_at_load = has_fast_strings();

// Writes whole lines of a pattern that repeats in a word.
void write_string([[maybe_unused]] std::byte* target, [[maybe_unused]] std::int64_t lines,
                  [[maybe_unused]] const Pattern& pattern,
                  [[maybe_unused]] std::int64_t phase_bytes) {
#if defined(__x86_64__)
  std::uint64_t word = 0;
  std::memcpy(&word, pattern.bytes + phase_bytes, sizeof(word));
  std::int64_t words = lines * (kLineBytes / 8);
  asm volatile("rep stosq" : "+D"(target), "+c"(words) : "a"(word) : "memory");
#endif
}

// ---- Dense rows. ----

enum class Stores : std::uint8_t { kLines, kStrings, kStream };

// Fills `length_bytes` of dense memory with whole elements: up to the begin of a cache line, whole
// lines, the rest.
void fill_dense(std::byte* target, std::int64_t length_bytes, const Pattern& pattern,
                WriteLines write_lines, Stores stores) {
  if (length_bytes < kLineBytes) {  // the end of a long row
    std::memcpy(target, pattern.bytes, static_cast<std::size_t>(length_bytes));
    return;
  }
  const auto head_bytes =
      static_cast<std::int64_t>(-reinterpret_cast<std::uintptr_t>(target) % kLineBytes);
  const std::int64_t lines = (length_bytes - head_bytes) / kLineBytes;
  const std::int64_t tail_bytes = length_bytes - head_bytes - lines * kLineBytes;
  std::byte* const border = target + head_bytes;
  std::byte* const end = target + length_bytes;
  if (stores == Stores::kStream) {
    // Does not write a cache line twice, because a line in the caches is slow to stream.
    std::memcpy(target, pattern.bytes, static_cast<std::size_t>(head_bytes));
    std::memcpy(end - tail_bytes, pattern.last_line() + kLineBytes - tail_bytes,
                static_cast<std::size_t>(tail_bytes));
    return write_lines(border, lines, pattern, head_bytes, true);
  }
  if (head_bytes > 0) std::memcpy(target, pattern.bytes, kLineBytes);
  if (stores == Stores::kStrings) {
    write_string(border, lines, pattern, head_bytes);
  } else {
    write_lines(border, lines, pattern, head_bytes, false);
  }
  if (tail_bytes > 0) std::memcpy(end - kLineBytes, pattern.last_line(), kLineBytes);
}

// ---- Elements apart. ----

using WriteElements = void (*)(std::byte* target, std::int64_t count, std::int64_t stride_bytes,
                               std::span<const std::byte> element);

// Elements of kPart bytes, or of up to twice as many: their first and their last kPart bytes.
template <std::size_t kPart, bool kTwoParts>
void write_parts(std::byte* target, std::int64_t count, std::int64_t stride_bytes,
                 std::span<const std::byte> element) {
  std::array<std::byte, kPart> first;
  std::array<std::byte, kPart> last;
  const std::size_t last_begin = element.size() - kPart;
  std::memcpy(first.data(), element.data(), kPart);
  std::memcpy(last.data(), element.data() + last_begin, kPart);
  for (; count > 0; --count, target += stride_bytes) {
    std::memcpy(target, first.data(), kPart);
    if constexpr (kTwoParts) std::memcpy(target + last_begin, last.data(), kPart);
  }
}

void write_any(std::byte* target, std::int64_t count, std::int64_t stride_bytes,
               std::span<const std::byte> element) {
  for (; count > 0; --count, target += stride_bytes) {
    std::memcpy(target, element.data(), element.size());
  }
}

template <std::size_t kPart>
WriteElements parts_for(std::size_t itemsize_bytes) {
  if (itemsize_bytes == kPart) return write_parts<kPart, false>;
  if (itemsize_bytes < 2 * kPart) return write_parts<kPart, true>;
  if constexpr (kPart < kLineBytes) {
    return parts_for<2 * kPart>(itemsize_bytes);
  } else {
    return write_any;
  }
}

// ---- TargetRows. ----

// The target as rows, in the order of their addresses: the innermost axis, and the axes outside it.
struct TargetRows {
  std::byte* first = nullptr;
  SmallVec<Axis> outer = {};
  std::int64_t extent = 1;  // elements of a row
  std::int64_t stride_bytes = 0;
  std::int64_t count = 1;
};

// Makes the next outer axis that of the rows.
void drop_innermost(TargetRows& rows) {
  rows.extent = 1;
  rows.stride_bytes = 0;
  if (rows.outer.empty()) return;
  const int last = rows.outer.size() - 1;
  rows.extent = rows.outer[last].extent;
  rows.stride_bytes = rows.outer[last].target_stride_bytes;
  rows.count /= rows.extent;
  rows.outer.erase(last);
}

TargetRows rows_of(const Walk& walk) {
  TargetRows rows{.first = walk.target, .outer = walk.axes};
  for (const Axis& axis : rows.outer) rows.count *= axis.extent;
  drop_innermost(rows);
  return rows;
}

// All elements of a view without gaps.
TargetRows one_row(std::byte* target_block, const StridedView& target) {
  TargetRows rows{.first = target_block + target.offset_bytes,
                  .stride_bytes = target.itemsize_bytes};
  for (const std::int64_t extent : target.shape) rows.extent *= extent;
  return rows;
}

Odometer begins_of(const TargetRows& rows, std::int64_t row) {
  return {rows.outer, rows.first, nullptr, row};
}

// ---- Pieces. ----

// Whether the byte does not have a page yet. False if the kernel cannot answer.
bool is_fresh(std::byte* byte) {
  const auto address = reinterpret_cast<std::uintptr_t>(byte);
  const auto page = static_cast<std::uintptr_t>(system::page_bytes());
  unsigned char resident = 1;
  return mincore(reinterpret_cast<void*>(address / page * page), page, &resident) == 0 &&
         (resident & 1) == 0;
}

// How a target is filled: one decision for all of its rows.
struct Plan {
  TargetRows rows;
  std::span<const std::byte> element;
  WriteElements write_elements = nullptr;
  // Of dense rows that are longer than a line.
  const Pattern* pattern = nullptr;
  WriteLines write_lines = nullptr;
  Stores stores = Stores::kLines;
  bool streams_old_pages = false;  // and uses `stores` for fresh pages

  // The elements of a row in a unit of work: all, or the length of a piece.
  std::int64_t unit_elements = 1;
  std::int64_t units_of_a_row = 1;
  std::int64_t units_of_a_piece = 1;
  std::int64_t touched_bytes = 0;  // their cost, if elements are apart
};

void choose_stores(Plan& plan, const FillLimits& limits) {
  const Simd path = simd();
  const std::int64_t row_bytes = plan.rows.extent * plan.rows.stride_bytes;
  const bool zeros =
      std::ranges::all_of(plan.element, [](std::byte b) { return b == std::byte{}; });
  plan.write_lines = lines_of(path);
  plan.streams_old_pages =
      row_bytes >= (zeros ? kShortestZeroStreamBytes : kShortestStreamBytes) &&
      plan.touched_bytes >= (zeros ? limits.stream_zeros_bytes : limits.stream_bytes);
  const bool repeats_in_word = 8 % plan.element.size() == 0;
  if (repeats_in_word && row_bytes >= kShortestStringBytes && path != Simd::kPortable &&
      has_fast_strings()) {
    plan.stores = Stores::kStrings;
  }
}

void cut_into_pieces(Plan& plan, const FillLimits& limits) {
  const TargetRows& rows = plan.rows;
  const std::int64_t itemsize = std::ssize(plan.element);
  // A cache line; more if each element is on a separate page, which its write may fault in.
  const std::int64_t apart_bytes = std::max(std::min(rows.stride_bytes, kLineBytes),
                                            std::min(rows.stride_bytes, kFarBytes) / kFarShare);
  const std::int64_t element_bytes = std::max(itemsize, apart_bytes);
  const std::int64_t row_bytes = rows.extent * element_bytes;
  plan.touched_bytes = rows.count * row_bytes;
  plan.unit_elements = rows.extent;
  if (row_bytes > limits.piece_bytes) {
    plan.unit_elements = std::max<std::int64_t>(1, limits.piece_bytes / element_bytes);
    plan.units_of_a_row = (rows.extent - 1) / plan.unit_elements + 1;
  } else {
    plan.units_of_a_piece = limits.piece_bytes / row_bytes;
  }
}

// The last byte of a unit.
std::byte* last_byte(const Plan& plan, std::int64_t unit) {
  const std::int64_t next = (unit % plan.units_of_a_row + 1) * plan.unit_elements;
  const std::int64_t last = std::min(next, plan.rows.extent) - 1;
  return begins_of(plan.rows, unit / plan.units_of_a_row).target() + last * plan.rows.stride_bytes +
         std::ssize(plan.element) - 1;
}

void fill_units(const Plan& plan, std::int64_t begin, std::int64_t end) {
  const TargetRows& rows = plan.rows;
  const bool stream = plan.streams_old_pages && !is_fresh(last_byte(plan, end - 1));
  const Stores stores = stream ? Stores::kStream : plan.stores;
  Odometer row = begins_of(rows, begin / plan.units_of_a_row);
  std::int64_t element = begin % plan.units_of_a_row * plan.unit_elements;
  for (std::int64_t unit = begin; unit < end; ++unit) {
    std::byte* const at = row.target() + element * rows.stride_bytes;
    const std::int64_t count = std::min(plan.unit_elements, rows.extent - element);
    if (plan.pattern != nullptr) {
      fill_dense(at, count * rows.stride_bytes, *plan.pattern, plan.write_lines, stores);
    } else {
      plan.write_elements(at, count, rows.stride_bytes, plan.element);
    }
    element += count;
    if (element < rows.extent) continue;
    element = 0;
    row.next();
  }
  if (stream) end_stream();
}

// Elements that share bytes are written one by one, in the order of the index.
void fill_in_order(const Walk& walk, std::span<const std::byte> element) {
  const TargetRows rows = rows_of(walk);
  const WriteElements write_elements = parts_for<1>(element.size());
  Odometer row = begins_of(rows, 0);
  for (std::int64_t i = 0; i < rows.count; ++i, row.next()) {
    write_elements(row.target(), rows.extent, rows.stride_bytes, element);
  }
}

// The walk of the target without axes of stride 0, which would only write elements again.
Walk walk_of(std::byte* target_block, const StridedView& target) {
  Walk walk{target_block + target.offset_bytes, nullptr, {}};
  for (int axis = 0; axis < target.ndim(); ++axis) {
    if (target.shape[axis] == 1 || target.strides_bytes[axis] == 0) continue;
    walk.axes.push_back({target.shape[axis], target.strides_bytes[axis], 0});
  }
  return walk;
}

void fill_rows(const TargetRows& rows, std::span<const std::byte> element,
               const FillLimits& limits) {
  Plan plan{.rows = rows, .element = element};
  std::optional<Pattern> pattern;
  const std::int64_t itemsize = std::ssize(element);
  if (rows.stride_bytes == itemsize && itemsize <= kLongestPatternBytes) {
    pattern.emplace(element);
    const std::int64_t row_bytes = rows.extent * rows.stride_bytes;
    if (row_bytes <= kLineBytes) {  // the row is one element
      plan.element = {pattern->bytes, static_cast<std::size_t>(row_bytes)};
      drop_innermost(plan.rows);
    } else {
      plan.pattern = &*pattern;
    }
  }
  plan.write_elements = parts_for<1>(plan.element.size());
  cut_into_pieces(plan, limits);
  if (plan.pattern != nullptr) choose_stores(plan, limits);
  const std::int64_t units = plan.rows.count * plan.units_of_a_row;
  if (plan.touched_bytes < limits.parallel_bytes) return fill_units(plan, 0, units);
  parallel_for(units, plan.units_of_a_piece,
               [&plan](std::int64_t begin, std::int64_t end) { fill_units(plan, begin, end); });
}

}  // namespace

void fill_view(std::byte* target_block, const StridedView& target,
               std::span<const std::byte> element, const FillLimits& limits) {
  if (is_c_contiguous(target)) return fill_rows(one_row(target_block, target), element, limits);
  Walk walk = walk_of(target_block, target);
  if (may_overlap_itself(walk.axes, target.itemsize_bytes)) return fill_in_order(walk, element);
  order_by_target(walk);
  merge_axes(walk);
  fill_rows(rows_of(walk), element, limits);
}

}  // namespace gridbuf::loops
