// The reader of DLPack tensors: nothing beyond ndim entries is read, and the deleter runs once.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

import gridbuf.interface;
import gridbuf.interface.dlpack;
import gridbuf.interface.fuzz;

namespace gridbuf::fuzz {
namespace {

using namespace gridbuf::dlpack;

int deleted = 0;

template <class Managed>
void take_once(Managed managed) {
  deleted = 0;
  managed.deleter = [](Managed*) { ++deleted; };
  {
    const auto view = take(&managed);
    check(view);
    require(deleted == (view.ok() ? 0 : 1));
  }
  require(deleted == 1);
}

void run(const Lines& lines) {
  const auto shape = lines.numbers("shape");
  const auto strides = lines.numbers("strides");
  const auto shape_entries = entries(lines, "shape", shape.size());
  const auto strides_entries = entries(lines, "strides", strides.size());
  // The claimed counts may differ from the true counts only if the reader does not use the entries.
  const std::int32_t ndim = claimed_ndim(lines, shape.size());
  const auto device = lines.numbers("device");
  const auto type = lines.numbers("type");
  const auto at = [](const std::vector<std::int64_t>& values, std::size_t i, std::int64_t other) {
    return i < values.size() ? values[i] : other;
  };
  DLTensor tensor;
  tensor.data = reinterpret_cast<void*>(lines.number_or("data", 4096));
  tensor.device = {static_cast<std::int32_t>(at(device, 0, 1)),
                   static_cast<std::int32_t>(at(device, 1, 0))};
  tensor.ndim = ndim;
  tensor.dtype = {static_cast<std::uint8_t>(at(type, 0, 2)),
                  static_cast<std::uint8_t>(at(type, 1, 64)),
                  static_cast<std::uint16_t>(at(type, 2, 1))};
  tensor.shape = shape.empty() ? nullptr : shape_entries.get();
  tensor.strides =
      strides.size() == shape.size() && !shape.empty() ? strides_entries.get() : nullptr;
  tensor.byte_offset = static_cast<std::uint64_t>(lines.number_or("offset", 0));
  take_once(DLManagedTensor{.dl_tensor = tensor, .manager_ctx = nullptr, .deleter = nullptr});
  const auto version = lines.numbers("version");
  take_once(
      DLManagedTensorVersioned{.version = {static_cast<std::uint32_t>(at(version, 0, 1)),
                                           static_cast<std::uint32_t>(at(version, 1, 3))},
                               .manager_ctx = nullptr,
                               .deleter = nullptr,
                               .flags = static_cast<std::uint64_t>(lines.number_or("flags", 0)),
                               .dl_tensor = tensor});
}

}  // namespace
}  // namespace gridbuf::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t length) {
  gridbuf::fuzz::run(
      gridbuf::fuzz::Lines(std::string_view(reinterpret_cast<const char*>(data), length)));
  return 0;
}
