// The reader of NumPy's array interface.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

import gridbuf.interface;
import gridbuf.interface.fuzz;
import gridbuf.interface.numpy;

namespace gridbuf::fuzz {
namespace {

void run(const Lines& lines) {
  const RawArrayInterface raw = array_fields(lines);
  const auto view = read_array_interface(raw);
  const bool exported = !raw.data.has_value() && raw.exported;
  check(view, exported ? std::optional(raw.exported->memory) : std::nullopt);
}

}  // namespace
}  // namespace gridbuf::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t length) {
  gridbuf::fuzz::run(
      gridbuf::fuzz::Lines(std::string_view(reinterpret_cast<const char*>(data), length)));
  return 0;
}
