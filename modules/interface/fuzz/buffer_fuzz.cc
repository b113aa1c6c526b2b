// The reader of Py_buffers: nothing beyond ndim entries is read.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

import gridbuf.interface;
import gridbuf.interface.buffer;
import gridbuf.interface.fuzz;

namespace gridbuf::fuzz {
namespace {

void run(const Lines& lines) {
  const std::size_t count = lines.numbers("shape").size();
  const auto shape = entries(lines, "shape", count);
  const auto strides = entries(lines, "strides", count);
  const auto suboffsets = entries(lines, "suboffsets", count);
  const Found<std::string> format = lines.text("format");
  ForeignBuffer buffer;
  buffer.buf = reinterpret_cast<const void*>(lines.number_or("data", 4096));
  buffer.len_bytes = lines.number_or("len", 0);
  buffer.itemsize_bytes = lines.number_or("itemsize", 8);
  buffer.readonly = lines.has("readonly");
  buffer.ndim = claimed_ndim(lines, count);
  if (format.has_value()) buffer.format = format.value;
  buffer.shape = shape.get();
  buffer.strides_bytes = strides.get();
  buffer.suboffsets = suboffsets.get();
  check(read_buffer(buffer));
}

}  // namespace
}  // namespace gridbuf::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t length) {
  gridbuf::fuzz::run(
      gridbuf::fuzz::Lines(std::string_view(reinterpret_cast<const char*>(data), length)));
  return 0;
}
