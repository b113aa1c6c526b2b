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

void read_entry(const Lines& lines, const absl::StatusOr<ImportedView>& view) {
  if (!view.ok()) return check(view.status());
  check(*view);
  RawDataInterface raw;
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
  const auto meaning = read_meaning(raw, view->memory.view.shape);
  if (!meaning.ok()) return check(meaning.status());
  const auto ndim = static_cast<std::size_t>(view->memory.view.ndim());
  require(meaning->dims.empty() || meaning->dims.size() == ndim);
}

void run(const Lines& lines) {
  read_entry(lines, read_array_interface(array_fields(lines)));
  read_entry(lines, read_cuda_array_interface(cuda_fields(lines), std::nullopt));
}

}  // namespace
}  // namespace gridbuf::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t length) {
  gridbuf::fuzz::run(
      gridbuf::fuzz::Lines(std::string_view(reinterpret_cast<const char*>(data), length)));
  return 0;
}
