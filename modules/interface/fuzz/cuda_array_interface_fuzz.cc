// The reader of the CUDA array interface, with and without a driver's report.

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
  const std::optional<PointerInfo> info = pointer_info(lines);
  const auto view = read_cuda_array_interface(cuda_fields(lines), info);
  std::optional<KnownMemory> memory;
  if (info && info->length_bytes > 0) memory = {info->base, info->length_bytes};
  check(view, memory);
  require(!view.ok() || view->stream != std::optional<std::uint64_t>(0));
}

}  // namespace
}  // namespace gridbuf::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t length) {
  gridbuf::fuzz::run(
      gridbuf::fuzz::Lines(std::string_view(reinterpret_cast<const char*>(data), length)));
  return 0;
}
