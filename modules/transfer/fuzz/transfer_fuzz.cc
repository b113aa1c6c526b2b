// Compares copies and fills between any two views with their definition. Blocks are on the heap and
// as long as the views, so that AddressSanitizer sees every access outside them.
//
// An input is four lines of numbers: the shape; the target's strides; the source's strides; item
// size, unit that is swapped, offsets of target and source, path of vector instructions, threads,
// whether both views are in one block, and whether threads and non-temporal stores have low
// thresholds.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "absl/status/status.h"

import gridbuf.base;
import gridbuf.layout;
import gridbuf.layout.view;
import gridbuf.transfer;
import gridbuf.transfer.loops;
import gridbuf.transfer.testing;

namespace gridbuf {
namespace {

using testing::Bytes;

constexpr std::int64_t kMostBytes = std::int64_t{1} << 20;
constexpr std::int64_t kMostElements = std::int64_t{1} << 16;
constexpr int kMostAxes = 6;

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "a copy breaks its promise: %s\n", what);
  std::abort();
}

Extents numbers_of(std::istringstream& lines, int most) {
  std::string line;
  std::getline(lines, line);
  std::istringstream words(line);
  Extents numbers;
  for (std::int64_t number; numbers.size() < most && words >> number;) numbers.push_back(number);
  return numbers;
}

struct Input {
  testing::CopyCase copy;
  Simd path = Simd::kPortable;
  int threads = 1;
  bool one_block = false;
  loops::CopyLimits limits = {};
};

Input read_input(const std::string& text) {
  std::istringstream lines(text);
  Input input;
  StridedView& target = input.copy.target;
  StridedView& source = input.copy.source;
  target.shape = source.shape = numbers_of(lines, kMostAxes);
  target.strides_bytes = numbers_of(lines, kMostAxes);
  source.strides_bytes = numbers_of(lines, kMostAxes);
  Extents rest = numbers_of(lines, 8);
  while (rest.size() < 8) rest.push_back(0);
  target.itemsize_bytes = source.itemsize_bytes = rest[0];
  input.copy.swap_unit_bytes = rest[1];
  target.offset_bytes = rest[2];
  source.offset_bytes = rest[3];
  const std::vector<Simd> paths = supported_simd();
  input.path = paths[static_cast<std::uint64_t>(rest[4]) % paths.size()];
  input.threads = static_cast<int>(1 + static_cast<std::uint64_t>(rest[5]) % 4);
  input.one_block = rest[6] % 2 != 0;
  if (rest[7] % 2 == 0) {
    input.limits = {
        .stream_bytes = 1, .stream_rows_bytes = 1, .parallel_bytes = 4096, .piece_bytes = 3000};
  }
  return input;
}

// Moves the view so that its lowest byte is near the begin of its block. Nothing if the view is not
// sound, or too large for one input.
std::optional<StridedView> in_a_block(StridedView view) {
  if (view.itemsize_bytes < 0 || view.itemsize_bytes > 4096) return std::nullopt;
  const std::int64_t distance = view.offset_bytes & 127;
  view.offset_bytes = 0;
  const auto hull = byte_hull(view);
  if (!hull || hull->highest_bytes - hull->lowest_bytes > kMostBytes) return std::nullopt;
  std::int64_t elements = 1;
  for (const std::int64_t extent : view.shape) {
    if (extent > kMostElements) return std::nullopt;
    elements *= extent;
    if (elements * std::max<std::int64_t>(view.itemsize_bytes, 1) > kMostElements * 16) {
      return std::nullopt;
    }
  }
  view.offset_bytes = distance - hull->lowest_bytes;
  return view;
}

bool may_swap(std::int64_t unit, std::int64_t itemsize) {
  return unit == 0 || (unit > 0 && itemsize % unit == 0);
}

void check_copy(const testing::CopyCase& copy, const loops::CopyLimits& limits, bool one_block) {
  const std::int64_t target_end = testing::bytes_up_to_the_end(copy.target);
  const std::int64_t source_end = testing::bytes_up_to_the_end(copy.source);
  Bytes target =
      testing::random_bytes(one_block ? std::max(target_end, source_end) : target_end, 1);
  Bytes source = testing::random_bytes(one_block ? 0 : source_end, 2);
  Bytes expected = target;
  const bool valid = may_swap(copy.swap_unit_bytes, copy.target.itemsize_bytes);
  if (valid) {
    testing::define_copy(expected.data(), copy.target, one_block ? expected.data() : source.data(),
                         copy.source, copy.swap_unit_bytes);
  }
  const absl::Status status =
      copy_elements(target.data(), copy.target, one_block ? target.data() : source.data(),
                    copy.source, {.swap_unit_bytes = copy.swap_unit_bytes});
  require(status.ok() == valid, "a sound pair is copied, a wrong unit is refused");
  require(target == expected, "the target is as defined");
  const bool has_bytes = !is_empty(copy.target.shape) && copy.target.itemsize_bytes > 0;
  if (!valid || one_block || !has_bytes) return;
  // Again, with other limits.
  loops::copy_view(target.data(), copy.target, source.data(), copy.source, copy.swap_unit_bytes,
                   limits);
  require(target == expected, "the target is as defined under other limits");
}

void check_fill(const StridedView& target, const loops::FillLimits& limits) {
  if (is_empty(target.shape) || target.itemsize_bytes == 0) return;
  const StridedView repeated{.shape = target.shape,
                             .strides_bytes = Extents(target.ndim(), 0),
                             .itemsize_bytes = target.itemsize_bytes};
  const Bytes element = testing::random_bytes(target.itemsize_bytes, 3);
  Bytes block = testing::random_bytes(testing::bytes_up_to_the_end(target), 1);
  const Bytes expected = testing::expected_copy(block, target, element, repeated);
  loops::fill_view(block.data(), target, element, limits);
  require(block == expected, "the target is filled as defined");
}

void run(const std::string& text) {
  Input input = read_input(text);
  const std::optional<StridedView> target = in_a_block(input.copy.target);
  const std::optional<StridedView> source = in_a_block(input.copy.source);
  if (!target || !source) return;
  require(set_simd(input.path).ok(), "a supported path can be set");
  require(set_thread_count(input.threads).ok(), "a few threads can be set");
  check_copy({*target, *source, input.copy.swap_unit_bytes}, input.limits, input.one_block);
  check_fill(*target, {});
  check_fill(
      *target,
      {.parallel_bytes = 4096, .piece_bytes = 3000, .stream_zeros_bytes = 1, .stream_bytes = 1});
}

}  // namespace
}  // namespace gridbuf

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t length) {
  gridbuf::run(std::string(reinterpret_cast<const char*>(data), length));
  return 0;
}
