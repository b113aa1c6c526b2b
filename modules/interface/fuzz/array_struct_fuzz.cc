// The reader of NumPy's array struct: nothing beyond nd entries is read.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

import gridbuf.interface;
import gridbuf.interface.fuzz;
import gridbuf.interface.numpy;

namespace gridbuf::fuzz {
namespace {

void run(const Lines& lines) {
  const std::size_t count = lines.numbers("shape").size();
  const auto shape = entries(lines, "shape", count);
  const auto strides = entries(lines, "strides", count);
  const Found<std::string> kind = lines.text("kind");
  array_struct::ArrayStruct found{};
  found.two = static_cast<std::int32_t>(lines.number_or("two", 2));
  found.nd = claimed_ndim(lines, count);
  found.typekind = kind.has_value() && !kind.value.empty() ? kind.value[0] : 'f';
  found.itemsize = static_cast<std::int32_t>(lines.number_or("itemsize", 8));
  found.flags = static_cast<std::int32_t>(lines.number_or("flags", 0x700));
  found.shape = reinterpret_cast<std::intptr_t*>(shape.get());
  found.strides = reinterpret_cast<std::intptr_t*>(strides.get());
  found.data = reinterpret_cast<void*>(lines.number_or("data", 4096));
  check(array_struct::read_array_struct(found, lines.descr("descr")));
}

}  // namespace
}  // namespace gridbuf::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t length) {
  gridbuf::fuzz::run(
      gridbuf::fuzz::Lines(std::string_view(reinterpret_cast<const char*>(data), length)));
  return 0;
}
