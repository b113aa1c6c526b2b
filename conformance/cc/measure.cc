#include "conformance/cc/measure.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace gridbuf::conformance {
namespace {

constexpr std::int32_t kMostDimensions = 1024;
// Elements of the vectors' plans are few; a tensor that claims more is not read.
constexpr std::int64_t kMostElements = std::int64_t{1} << 20;
constexpr std::uint32_t kLargestPlausibleVersion = 0xFFFF;

std::uintptr_t address_of(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

// The fields of the struct; true if its memory is there at all.
bool read_struct(const Answer& answer, const MemoryMap& map, Info& info) {
  info.versioned = answer.is_versioned();
  const std::size_t bytes = info.versioned ? sizeof(abi::ManagedVersioned) : sizeof(abi::Managed);
  if (map.is_known() && !map.is_readable(address_of(answer.tensor()), bytes)) return false;
  if (info.versioned) {
    const auto& managed = *static_cast<const abi::ManagedVersioned*>(answer.tensor());
    info.version = managed.version;
    info.flags = managed.flags;
    info.tensor = managed.dl_tensor;
    info.deleter = reinterpret_cast<std::uintptr_t>(managed.deleter);
  } else {
    const auto& managed = *static_cast<const abi::Managed*>(answer.tensor());
    info.tensor = managed.dl_tensor;
    info.deleter = reinterpret_cast<std::uintptr_t>(managed.deleter);
  }
  return true;
}

std::vector<std::int64_t> entries(const std::int64_t* first, std::int32_t count) {
  return {first, first + count};
}

void read_shape_and_strides(const MemoryMap& map, Info& info) {
  const abi::Tensor& tensor = info.tensor;
  if (tensor.ndim <= 0 || tensor.ndim > kMostDimensions) {
    info.shape_mapped = info.strides_mapped = tensor.ndim == 0;
    return;
  }
  const auto bytes = static_cast<std::uint64_t>(tensor.ndim) * sizeof(std::int64_t);
  info.shape_mapped = map.is_readable(address_of(tensor.shape), bytes);
  info.strides_mapped =
      tensor.strides == nullptr || map.is_readable(address_of(tensor.strides), bytes);
  if (info.shape_mapped) info.shape = entries(tensor.shape, tensor.ndim);
  if (info.strides_mapped && tensor.strides != nullptr) {
    info.strides_elements = entries(tensor.strides, tensor.ndim);
  }
}

// Strides in elements: as said, or those of a dense array; nothing if they overflow.
std::optional<std::vector<std::int64_t>> elements_apart(const Info& info) {
  if (info.strides_elements) return info.strides_elements;
  std::vector<std::int64_t> strides(info.shape.size());
  std::int64_t step = 1;
  for (std::size_t axis = strides.size(); axis-- > 0;) {
    strides[axis] = step;
    if (__builtin_mul_overflow(step, info.shape[axis], &step)) return std::nullopt;
  }
  return strides;
}

std::optional<Hull> hull_of(const Info& info, const std::vector<std::int64_t>& strides_bytes) {
  Hull hull = {.lowest = 0, .highest = info.itemsize_bytes};
  for (std::size_t axis = 0; axis < info.shape.size(); ++axis) {
    std::int64_t reach = 0;
    if (__builtin_mul_overflow(strides_bytes[axis], info.shape[axis] - 1, &reach)) return {};
    std::int64_t& end = reach < 0 ? hull.lowest : hull.highest;
    if (__builtin_add_overflow(end, reach, &end)) return {};
  }
  return hull;
}

// Copies an element from its computed address. Wrong readings of a tensor (strides in bytes, no
// byte_offset) lead into memory that is mapped for other data, which is what they are tried
// for and nothing for a sanitizer to see, so memcpy is not used either, which it watches.
__attribute__((no_sanitize("address"))) void copy_unwatched(std::byte* to, std::uintptr_t from,
                                                            std::int64_t length_bytes) {
  const auto* bytes = reinterpret_cast<const volatile unsigned char*>(from);  // NOLINT: mapped
  for (std::int64_t i = 0; i < length_bytes; ++i) to[i] = static_cast<std::byte>(bytes[i]);
}

// All elements from `first` on, in row-major order; nothing if any is not mapped.
std::optional<Bytes> walk(const Info& info, const MemoryMap& map, std::uintptr_t first,
                          const std::vector<std::int64_t>& strides_bytes) {
  const std::optional<Hull> hull = hull_of(info, strides_bytes);
  if (!hull) return std::nullopt;
  const std::uintptr_t begin = first + static_cast<std::uintptr_t>(hull->lowest);
  const auto length = static_cast<std::uint64_t>(hull->highest - hull->lowest);
  if (!map.is_readable(begin, length)) return std::nullopt;
  std::int64_t count = 1;
  for (const std::int64_t extent : info.shape) count *= extent;
  Bytes bytes(static_cast<std::size_t>(count * info.itemsize_bytes));
  std::vector<std::int64_t> index(info.shape.size(), 0);
  for (std::int64_t element = 0; element < count; ++element) {
    std::uintptr_t address = first;
    for (std::size_t axis = 0; axis < index.size(); ++axis) {
      address += static_cast<std::uintptr_t>(index[axis] * strides_bytes[axis]);
    }
    copy_unwatched(bytes.data() + element * info.itemsize_bytes, address, info.itemsize_bytes);
    for (std::size_t axis = index.size(); axis-- > 0 && ++index[axis] == info.shape[axis];) {
      index[axis] = 0;
    }
  }
  return bytes;
}

// Number of elements, if it can be one: 0 for none, nothing if it overflows or an extent is
// negative.
std::optional<std::int64_t> count_of(const std::vector<std::int64_t>& shape) {
  std::int64_t count = 1;
  bool is_empty = false;
  bool overflows = false;
  for (const std::int64_t extent : shape) {
    if (extent < 0) return std::nullopt;
    is_empty |= extent == 0;
    if (extent != 0) overflows |= __builtin_mul_overflow(count, extent, &count);
  }
  if (is_empty) return 0;
  return overflows ? std::nullopt : std::optional(count);
}

void read_memory(const MemoryMap& map, Info& info) {
  const std::optional<std::int64_t> count = count_of(info.shape);
  const abi::DataType& type = info.tensor.dtype;
  const int bits = type.bits * type.lanes;
  info.itemsize_bytes = bits / 8;
  info.has_elements = count.value_or(1) != 0;
  if (!count || bits % 8 != 0 || bits == 0) return;
  info.first_element = address_of(info.tensor.data) + info.tensor.byte_offset;

  const std::optional<std::vector<std::int64_t>> apart = elements_apart(info);
  if (!apart) return;
  std::vector<std::int64_t> strides(apart->size());
  for (std::size_t axis = 0; axis < strides.size(); ++axis) {
    if (__builtin_mul_overflow((*apart)[axis], info.itemsize_bytes, &strides[axis])) return;
  }
  info.strides_bytes = strides;
  if (*count == 0) return;
  info.hull = hull_of(info, strides);
  if (!info.hull || !map.is_known() || info.tensor.data == nullptr) return;
  const std::uintptr_t begin = info.first_element + static_cast<std::uintptr_t>(info.hull->lowest);
  const auto length = static_cast<std::uint64_t>(info.hull->highest - info.hull->lowest);
  info.hull_mapped = map.is_readable(begin, length);
  info.hull_writable = map.is_writable(begin, length);
  if (*count > kMostElements || info.tensor.device.device_type != abi::kHost) return;
  info.walk = walk(info, map, info.first_element, strides);
  info.walk_in_bytes = walk(info, map, info.first_element, *apart);
  info.walk_at_data = walk(info, map, address_of(info.tensor.data), strides);
}

template <class Managed>
void delete_elsewhere(void* tensor) {
  auto* managed = static_cast<Managed*>(tensor);
  std::thread([managed] { abi::delete_tensor(managed); }).join();
}

}  // namespace

bool Info::is_plausible() const {
  if (!struct_mapped || tensor.ndim < 0 || tensor.ndim > kMostDimensions) return false;
  if (!versioned) return true;
  return version.major <= kLargestPlausibleVersion && version.minor <= kLargestPlausibleVersion &&
         flags >> 32 == 0;
}

bool Info::is_described() const {
  return shape_mapped && strides_mapped &&
         std::ranges::all_of(shape, [](std::int64_t extent) { return extent >= 0; });
}

Info measure(const Answer& answer) {
  Info info;
  const MemoryMap map = MemoryMap::now();
  info.map_known = map.is_known();
  info.struct_mapped = read_struct(answer, map, info);
  if (!info.struct_mapped) return info;
  info.deleter_is_code = !map.is_known() || map.is_executable(info.deleter);
  if (!info.is_plausible() || !info.is_readable()) return info;
  read_shape_and_strides(map, info);
  if (info.shape_mapped && info.strides_mapped) read_memory(map, info);
  return info;
}

std::string changed_since(const Info& before, const Answer& answer) {
  const Info now = measure(answer);
  if (!now.struct_mapped) return "the struct is gone";
  if (now.shape != before.shape) return "shape is another one";
  if (now.strides_elements != before.strides_elements) return "strides are others";
  if (before.hull_mapped && !now.hull_mapped) return "the elements' memory is gone";
  return "";
}

void dispose(const Answer& answer, const Info& info) {
  if (info.deleter == 0 || !info.deleter_is_code || !info.struct_mapped) return;
  if (info.versioned) {
    delete_elsewhere<abi::ManagedVersioned>(answer.tensor());
  } else {
    delete_elsewhere<abi::Managed>(answer.tensor());
  }
}

}  // namespace gridbuf::conformance
