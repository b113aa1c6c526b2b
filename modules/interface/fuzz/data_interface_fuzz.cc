// The reader of the entries of `__gt_data_interface__`, for both sides.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

import gridbuf.interface;
import gridbuf.interface.fuzz;
import gridbuf.interface.numpy;
import gridbuf.layout;

namespace gridbuf::fuzz {
namespace {

void read_entry(const Lines& lines, DeviceType side) {
  RawDataInterface raw;
  raw.side = side;
  raw.host = array_fields(lines);
  raw.gpu = cuda_fields(lines);
  if (const auto names = lines.words("dims"))
    raw.dims = Found<std::vector<std::string>>::of(*names);
  if (lines.has("halo")) {
    const std::vector<std::int64_t> numbers = lines.numbers("halo");
    std::vector<HaloWidth> widths;
    for (std::size_t i = 0; i + 1 < numbers.size(); i += 2) {
      widths.push_back({numbers[i], numbers[i + 1]});
    }
    raw.halo = Found<std::vector<HaloWidth>>::of(widths);
  }
  const auto entry = read_data_interface(raw);
  if (!entry.ok()) {
    check(entry.status());
    return;
  }
  check(entry->view);
  const auto ndim = static_cast<std::size_t>(entry->view.memory.view.ndim());
  require(entry->meaning.dims.empty() || entry->meaning.dims.size() == ndim);
}

void run(const Lines& lines) {
  read_entry(lines, DeviceType::kHost);
  read_entry(lines, DeviceType::kCuda);
}

}  // namespace
}  // namespace gridbuf::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t length) {
  gridbuf::fuzz::run(
      gridbuf::fuzz::Lines(std::string_view(reinterpret_cast<const char*>(data), length)));
  return 0;
}
