// Compares the layout planner with 128-bit integers, which cannot overflow here.
//
// An input is four lines of numbers: the shape; item size and alignment; the layout map; the
// aligned index.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

import gridbuf.layout;

namespace gridbuf {
namespace {

using Wide = __int128;

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "a plan breaks its promise: %s\n", what);
  std::abort();
}

std::vector<std::int64_t> numbers_of(std::istringstream& lines) {
  std::string line;
  std::getline(lines, line);
  std::istringstream words(line);
  std::vector<std::int64_t> numbers;
  for (std::int64_t number; words >> number && numbers.size() < kMaxNdim;) {
    numbers.push_back(number);
  }
  return numbers;
}

LayoutRequest read_request(const std::string& text) {
  std::istringstream lines(text);
  LayoutRequest request;
  for (const std::int64_t extent : numbers_of(lines)) request.shape.push_back(extent);
  const std::vector<std::int64_t> sizes = numbers_of(lines);
  if (!sizes.empty()) request.itemsize_bytes = sizes[0];
  if (sizes.size() > 1) request.alignment_bytes = sizes[1];
  for (const std::int64_t rank : numbers_of(lines)) {
    request.layout.push_back(static_cast<int>(std::clamp<std::int64_t>(rank, -1, kMaxNdim)));
  }
  for (const std::int64_t index : numbers_of(lines)) request.aligned_index.push_back(index);
  return request;
}

/// The bytes of the padded array; may exceed 64 bits.
Wide padded_bytes(const LayoutRequest& request, const Layout& plan) {
  Wide bytes = request.itemsize_bytes;
  for (const std::int64_t extent : plan.padded_shape()) bytes *= extent;
  return bytes;
}

void check_plan(const LayoutRequest& request, const Layout& plan) {
  require(plan.shape() == request.shape, "the shape is the one asked for");
  require(plan.nbytes() >= 0 && plan.total_bytes() >= plan.nbytes(), "padding is not negative");
  require(padded_bytes(request, plan) == plan.total_bytes(), "the bytes are those of the padding");
  Wide offset = 0;
  for (int axis = 0; axis < plan.ndim(); ++axis) {
    require(plan.padded_shape()[axis] >= plan.shape()[axis], "no extent shrinks");
    require(plan.strides_bytes()[axis] >= 0, "strides go forwards");
    // All rows start alike (storage layout, alignment).
    const bool padded = plan.ndim() > 1 && axis != plan.contiguous_axis();
    const bool has_rows = padded && !is_empty(plan.shape()) && request.itemsize_bytes != 0;
    require(!has_rows || plan.strides_bytes()[axis] % request.alignment_bytes == 0,
            "rows start alike");
    offset += Wide{plan.strides_bytes()[axis]} * plan.aligned_index()[axis];
  }
  require(offset == plan.aligned_offset_bytes(), "the aligned element is at its offset");
  const auto hull = byte_hull(plan.view());
  require(hull && hull->lowest_bytes == 0, "the array starts with element 0");
  require(hull->highest_bytes <= plan.total_bytes(), "every element is inside");
}

void run(const std::string& text) {
  const LayoutRequest request = read_request(text);
  const absl::StatusOr<Layout> plan = make_plan(request);
  if (plan.ok()) {
    check_plan(request, *plan);
    require(*plan == *make_plan(request), "the same request gives the same plan");
  } else {
    require(!plan.status().message().empty(), "an error says something");
  }
}

}  // namespace
}  // namespace gridbuf

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t length) {
  gridbuf::run(std::string(reinterpret_cast<const char*>(data), length));
  return 0;
}
