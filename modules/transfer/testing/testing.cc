module;

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <vector>

module gridbuf.transfer.testing;

import gridbuf.alloc.host;
import gridbuf.base;
import gridbuf.layout;
import gridbuf.layout.view;

namespace gridbuf::testing {

void write_random(std::span<std::byte> bytes, std::uint64_t seed) {
  // A linear congruential generator. The high bytes of its states are random enough.
  std::uint64_t state = seed * 2 + 1;
  const auto next = [&state] {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 24;
  };
  constexpr std::size_t kWordBytes = 5;
  std::size_t at = 0;
  for (; at + sizeof(std::uint64_t) <= bytes.size(); at += kWordBytes) {
    const std::uint64_t word = next();
    std::memcpy(bytes.data() + at, &word, sizeof(word));
  }
  for (; at < bytes.size(); ++at) bytes[at] = static_cast<std::byte>(next());
}

Bytes random_bytes(std::int64_t length_bytes, std::uint64_t seed) {
  Bytes bytes(static_cast<std::size_t>(length_bytes));
  write_random(bytes, seed);
  return bytes;
}

// ---- The definition. ----

void define_copy(std::byte* target_block, const StridedView& target, const std::byte* source_block,
                 const StridedView& source, std::int64_t swap_unit_bytes) {
  const auto itemsize = static_cast<std::size_t>(source.itemsize_bytes);
  const auto unit = static_cast<std::ptrdiff_t>(swap_unit_bytes);
  if (itemsize == 0) return;
  Bytes elements;
  for_each_index(source.shape, [&](const Extents& index) {
    const std::byte* const element = source_block + byte_offset(source, index);
    elements.insert(elements.end(), element, element + itemsize);
  });
  for (auto at = elements.begin(); unit > 1 && at != elements.end(); at += unit) {
    std::reverse(at, at + unit);
  }
  const std::byte* next = elements.data();
  for_each_index(target.shape, [&](const Extents& index) {
    std::memcpy(target_block + byte_offset(target, index), next, itemsize);
    next += itemsize;
  });
}

Bytes expected_copy(const Bytes& target_bytes, const StridedView& target, const Bytes& source_bytes,
                    const StridedView& source, std::int64_t swap_unit_bytes) {
  Bytes result = target_bytes;
  define_copy(result.data(), target, source_bytes.data(), source, swap_unit_bytes);
  return result;
}

std::string to_string(const CopyCase& copy) {
  return gridbuf::to_string(copy.target) + " from " + gridbuf::to_string(copy.source) +
         " swapping units of " + std::to_string(copy.swap_unit_bytes);
}

// ---- Views. ----

std::int64_t RandomViews::below(std::int64_t bound) {
  return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(bound));
}

std::int64_t RandomViews::one_of(std::initializer_list<std::int64_t> values) {
  return values.begin()[below(static_cast<std::int64_t>(values.size()))];
}

Extents RandomViews::small_shape() {
  Extents shape;
  const std::int64_t ndim = below(5);
  for (std::int64_t axis = 0; axis < ndim; ++axis) {
    shape.push_back(once_in(12) ? 0 : 1 + below(5));
  }
  return shape;
}

Extents RandomViews::edge_shape(std::int64_t most_elements) {
  const auto ndim = static_cast<int>(1 + below(5));
  Extents shape(ndim, 1);
  std::int64_t elements = 1;
  const auto lengthen = [&](std::int64_t axis, std::int64_t extent) {
    extent = std::max<std::int64_t>(1, std::min(extent, most_elements / elements));
    if (shape[static_cast<int>(axis)] != 1) return;
    shape[static_cast<int>(axis)] = extent;
    elements *= extent;
  };
  for (int edges = 0; edges < 2; ++edges) {
    lengthen(below(ndim), one_of({4, 8, 16, 32, 64, 128, 256, 512}) + below(3) - 1);
  }
  for (int axis = 0; axis < ndim; ++axis) lengthen(axis, 1 + below(4));
  return shape;
}

std::int64_t RandomViews::itemsize_bytes() {
  if (once_in(2)) return one_of({1, 2, 4, 8, 16});
  return once_in(5) ? one_of({24, 32, 48}) : 1 + below(17);
}

std::int64_t RandomViews::swap_unit_bytes(std::int64_t itemsize_bytes) {
  if (!once_in(4)) return once_in(4) ? 0 : 1;
  const std::int64_t unit = 1 + below(itemsize_bytes);
  return itemsize_bytes % unit == 0 ? unit : itemsize_bytes;
}

// The gap behind all elements within one step of an axis.
std::int64_t RandomViews::gap_bytes(std::int64_t stride_bytes, std::int64_t itemsize_bytes) {
  switch (below(12)) {
    case 0:
      return 1 + below(9);
    case 1:
      return itemsize_bytes * (1 + below(9));
    case 2:
      return (64 - stride_bytes % 64) % 64;  // to the next line
    case 3: {                                // to the next power of two, if that is not far
      std::int64_t power = 1;
      while (power < stride_bytes) power *= 2;
      return power - stride_bytes <= 4096 ? power - stride_bytes : 0;
    }
    default:
      return 0;
  }
}

StridedView RandomViews::in_order(const Extents& shape, std::int64_t itemsize_bytes,
                                  std::span<const int> outwards) {
  StridedView view{
      .shape = shape, .strides_bytes = Extents(shape.size(), 0), .itemsize_bytes = itemsize_bytes};
  std::int64_t reach_bytes = itemsize_bytes;
  for (const int axis : outwards) {
    view.strides_bytes[axis] = reach_bytes + gap_bytes(reach_bytes, itemsize_bytes);
    reach_bytes = view.strides_bytes[axis] * std::max<std::int64_t>(shape[axis], 1);
  }
  return view;
}

StridedView RandomViews::separate(const Extents& shape, std::int64_t itemsize_bytes) {
  std::vector<int> outwards(static_cast<std::size_t>(shape.size()));
  std::iota(outwards.begin(), outwards.end(), 0);
  std::shuffle(outwards.begin(), outwards.end(), random_);
  // Short axes are mostly outermost, like a few fields or vertical levels. Otherwise an axis as
  // long as a block would almost never be dense in a view of many axes.
  if (!once_in(4)) {
    std::sort(outwards.begin(), outwards.end(),
              [&](int a, int b) { return shape[a] > 4 && shape[b] <= 4; });
  }
  StridedView view = in_order(shape, itemsize_bytes, outwards);
  turn_some_axes(view);
  return view;
}

StridedView RandomViews::repeated(const Extents& shape, std::int64_t itemsize_bytes) {
  Extents few = shape;
  for (std::int64_t& extent : few) {
    if (extent > 0 && once_in(2)) extent = 1;
  }
  StridedView view = separate(few, itemsize_bytes);
  for (int axis = 0; axis < view.ndim(); ++axis) {
    if (view.shape[axis] != shape[axis]) view.strides_bytes[axis] = 0;
  }
  view.shape = shape;
  return view;
}

StridedView RandomViews::any(const Extents& shape, std::int64_t itemsize_bytes) {
  StridedView view{
      .shape = shape, .strides_bytes = Extents(shape.size(), 0), .itemsize_bytes = itemsize_bytes};
  for (std::int64_t& stride : view.strides_bytes) stride = below(3 * itemsize_bytes + 1);
  turn_some_axes(view);
  return view;
}

void RandomViews::turn_some_axes(StridedView& view) {
  for (int axis = 0; axis < view.ndim(); ++axis) {
    if (!once_in(4) || view.shape[axis] == 0) continue;
    view.offset_bytes += (view.shape[axis] - 1) * view.strides_bytes[axis];
    view.strides_bytes[axis] *= -1;
  }
}

CopyCase RandomViews::copy_of(const Extents& shape) {
  const std::int64_t itemsize = itemsize_bytes();
  CopyCase copy{.target = once_in(8) ? any(shape, itemsize) : separate(shape, itemsize),
                .source = separate(shape, itemsize),
                .swap_unit_bytes = swap_unit_bytes(itemsize)};
  if (once_in(5)) copy.source = once_in(2) ? any(shape, itemsize) : repeated(shape, itemsize);
  for (StridedView* const view : {&copy.target, &copy.source}) {
    if (once_in(2)) view->offset_bytes += once_in(2) ? itemsize * below(20) : below(130);
  }
  return copy;
}

std::int64_t bytes_up_to_the_end(const StridedView& view) { return byte_hull(view)->highest_bytes; }

// ---- Memory. ----

namespace {

// AddressSanitizer also watches this many bytes next to a span; the fences watch the rest.
constexpr std::int64_t kWatchedBytes = 256;

std::int64_t whole_pages(std::int64_t length_bytes) {
  return *checked::align_up(length_bytes, system::page_bytes());
}

}  // namespace

FencedMemory::FencedMemory(std::int64_t capacity_bytes)
    : capacity_bytes_(whole_pages(capacity_bytes)) {
  const std::int64_t page = system::page_bytes();
  void* const mapping = mmap(nullptr, static_cast<std::size_t>(capacity_bytes_ + 2 * page),
                             PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) std::abort();
  mapping_ = static_cast<std::byte*>(mapping);
  begin_ = mapping_ + page;
  watched_begin_ = watched_end_ = begin_;
  if (mprotect(begin_, static_cast<std::size_t>(capacity_bytes_), PROT_READ | PROT_WRITE) != 0) {
    std::abort();
  }
}

FencedMemory::~FencedMemory() {
  unpoison_bytes(watched_begin_, watched_end_ - watched_begin_);
  munmap(mapping_, static_cast<std::size_t>(capacity_bytes_ + 2 * system::page_bytes()));
}

std::span<std::byte> FencedMemory::behind_fence(std::int64_t length_bytes) {
  return hand_out(begin_, length_bytes);
}

std::span<std::byte> FencedMemory::before_fence(std::int64_t length_bytes) {
  return hand_out(begin_ + capacity_bytes_ - length_bytes, length_bytes);
}

std::span<std::byte> FencedMemory::hand_out(std::byte* begin, std::int64_t length_bytes) {
  if (length_bytes > capacity_bytes_) std::abort();
  unpoison_bytes(watched_begin_, watched_end_ - watched_begin_);
  std::byte* const end = begin + length_bytes;
  watched_begin_ = std::max(begin_, begin - kWatchedBytes);
  watched_end_ = std::min(begin_ + capacity_bytes_, end + kWatchedBytes);
  poison_bytes(watched_begin_, begin - watched_begin_);
  poison_bytes(end, watched_end_ - end);
  return {begin, static_cast<std::size_t>(length_bytes)};
}

}  // namespace gridbuf::testing
