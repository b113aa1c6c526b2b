// The readers of C structs of the host: Py_buffer and NumPy's array struct.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

import gridbuf.interface;
import gridbuf.interface.array_interface;
import gridbuf.interface.array_struct;
import gridbuf.interface.buffer;
import gridbuf.interface.fuzz;
import gridbuf.interface.imported;

namespace gridbuf::fuzz {
namespace {

/// Exactly as many entries as the line has, so that reading one more is seen; null without a line.
std::unique_ptr<std::int64_t[]> entries(const Lines& lines, std::string_view key,
                                        std::size_t count) {
  const std::vector<std::int64_t> numbers = lines.numbers(key);
  if (numbers.size() != count || count == 0) return nullptr;
  auto array = std::make_unique<std::int64_t[]>(count);
  for (std::size_t i = 0; i < count; ++i) array[i] = numbers[i];
  return array;
}

void check(const absl::StatusOr<ImportedView>& view) {
  if (view.ok()) {
    require_sound(*view);
    return;
  }
  const std::string message(view.status().message());
  require_rule(message);
}

/// The number of dimensions: what is there, or a claim that no reader may believe.
int claimed_ndim(const Lines& lines, std::size_t count) {
  const std::int64_t claim = lines.number_or("ndim", 0);
  return static_cast<int>(claim < 0 || claim > 64 ? claim : static_cast<std::int64_t>(count));
}

void read_py_buffer(const Lines& lines) {
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

void read_struct(const Lines& lines) {
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
  const gridbuf::fuzz::Lines lines(std::string_view(reinterpret_cast<const char*>(data), length));
  gridbuf::fuzz::read_py_buffer(lines);
  gridbuf::fuzz::read_struct(lines);
  return 0;
}
