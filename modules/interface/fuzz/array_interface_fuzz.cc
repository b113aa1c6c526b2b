// The readers of array interfaces: NumPy's, CUDA's, and the entries of `__gt_data_interface__`.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

import gridbuf.alloc;
import gridbuf.interface;
import gridbuf.interface.array_interface;
import gridbuf.interface.cuda_array_interface;
import gridbuf.interface.data_interface;
import gridbuf.interface.fuzz;
import gridbuf.interface.imported;
import gridbuf.layout.halo;

namespace gridbuf::fuzz {
namespace {

/// "lent 4096 100": the address and the length of a buffer.
std::optional<KnownMemory> memory_of(const Lines& lines, std::string_view key) {
  const std::vector<std::int64_t> numbers = lines.numbers(key);
  if (numbers.size() < 2 || numbers[1] < 0) return std::nullopt;
  return KnownMemory{.address = static_cast<std::uintptr_t>(numbers[0]),
                     .length_bytes = numbers[1]};
}

RawArrayInterface host_fields(const Lines& lines) {
  RawArrayInterface raw{.shape = lines.extents("shape"),
                        .typestr = lines.text("typestr"),
                        .descr = lines.descr("descr"),
                        .data = lines.pointer("data"),
                        .lent = std::nullopt,
                        .offset_bytes = lines.number("offset"),
                        .strides_bytes = lines.extents("strides"),
                        .has_mask = lines.has("mask"),
                        .version = lines.number("version")};
  if (const auto memory = memory_of(lines, "lent")) raw.lent = RawBuffer{.memory = *memory};
  return raw;
}

RawCudaArrayInterface device_fields(const Lines& lines) {
  return {.shape = lines.extents("shape"),
          .typestr = lines.text("typestr"),
          .descr = lines.descr("descr"),
          .data = lines.pointer("data"),
          .strides_bytes = lines.extents("strides"),
          .has_mask = lines.has("mask"),
          .version = lines.number("version"),
          .stream = lines.number("stream")};
}

std::optional<PointerFacts> facts_of(const Lines& lines) {
  if (!lines.has("facts")) return std::nullopt;
  return PointerFacts{.device = {DeviceType::kCuda, 1},
                      .device_accessible = !lines.has("unreachable"),
                      .allocation = memory_of(lines, "facts")};
}

template <class Result>
void require_rule_or_nothing(const absl::StatusOr<Result>& result) {
  if (result.ok()) return;
  const std::string message(result.status().message());
  require_rule(message);
}

void read_host(const Lines& lines) {
  const RawArrayInterface raw = host_fields(lines);
  const auto view = read_array_interface(raw);
  require_rule_or_nothing(view);
  if (!view.ok()) return;
  const bool lent = !raw.data.has_value();
  require_sound(*view, lent ? std::optional(raw.lent->memory) : std::nullopt);
}

void read_device(const Lines& lines) {
  const auto facts = facts_of(lines);
  const auto view = read_cuda_array_interface(device_fields(lines), facts);
  require_rule_or_nothing(view);
  if (!view.ok()) return;
  require_sound(*view, facts ? facts->allocation : std::nullopt);
  require(view->stream != std::optional<std::uint64_t>(0));
}

void read_entry(const Lines& lines, DataSide side) {
  RawDataInterface raw;
  raw.side = side;
  raw.host = host_fields(lines);
  raw.gpu = device_fields(lines);
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
  require_rule_or_nothing(entry);
  if (!entry.ok()) return;
  require_sound(entry->view);
  const auto ndim = static_cast<std::size_t>(entry->view.memory.view.ndim());
  require(entry->dims.empty() || entry->dims.size() == ndim);
}

}  // namespace
}  // namespace gridbuf::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t length) {
  using namespace gridbuf::fuzz;
  const Lines lines(std::string_view(reinterpret_cast<const char*>(data), length));
  read_host(lines);
  read_device(lines);
  read_entry(lines, gridbuf::DataSide::kHost);
  read_entry(lines, gridbuf::DataSide::kGpu);
  return 0;
}
