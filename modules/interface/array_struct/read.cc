// Reading an array struct that somebody else wrote.

module;

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.interface.array_struct;

import gridbuf.error;
import gridbuf.interface;
import gridbuf.interface.array_interface;
import gridbuf.interface.dtype;
import gridbuf.interface.imported;
import gridbuf.layout.extents;

namespace gridbuf::array_struct {
namespace {

constexpr ArrayRules kRules{.ndim = "AS-03",
                            .extents = "AS-04",
                            .size = "AS-04",
                            .strides = "AS-04",
                            .hull = "AS-04",
                            .null = "AS-04",
                            .inside = "AS-04"};
constexpr ElementTypeRules kTypeRules{.typestr = "AS-03", .length = "AS-03", .descr = "AS-06"};
constexpr std::string_view kAdvice = "correct the object that offers __array_struct__";

absl::Status refused(std::string_view rule, std::string_view name, std::int64_t found,
                     std::string_view bound) {
  return refuse(rule, ErrorClass::kValue, {name, std::to_string(found), bound, kAdvice});
}

absl::Status check_header(const ArrayStruct& found) {
  if (found.two != 2) {
    return refused("AS-02", "the first number of an array struct", found.two, "2");
  }
  if (found.nd < 0 || found.nd > kMaxNdim) {
    return refused("AS-03", "nd", found.nd, "from 0 to " + std::to_string(kMaxNdim));
  }
  if (found.itemsize < 1) return refused("AS-03", "itemsize", found.itemsize, "1 or more");
  if (found.nd > 0 && (found.shape == nullptr || found.strides == nullptr)) {
    return refuse("AS-04", ErrorClass::kValue,
                  {found.shape == nullptr ? "shape" : "strides", "null",
                   "an array of " + std::to_string(found.nd) + " entries", kAdvice});
  }
  return absl::OkStatus();
}

/// The letter, length and order as a typestr. Text counts characters there.
std::string typestr_of(const ArrayStruct& found) {
  const bool swapped = (found.flags & kNotSwapped) == 0;
  const bool little = (kNativeOrder == ByteOrder::kLittle) != swapped;
  const bool has_order = found.itemsize > 1 && found.typekind != 'S' && found.typekind != 'V';
  const std::int64_t count = found.typekind == 'U' ? found.itemsize / 4 : found.itemsize;
  std::string typestr(1, !has_order ? '|' : little ? '<' : '>');
  typestr.push_back(found.typekind);
  return typestr.append(std::to_string(count));
}

RawExtents extents_of(const std::intptr_t* values, std::int32_t count) {
  RawExtents extents{.count = count, .values = {}};
  for (std::int32_t axis = 0; axis < count; ++axis) extents.values.push_back(values[axis]);
  return extents;
}

}  // namespace

absl::StatusOr<ImportedView> read_array_struct(const ArrayStruct& found,
                                               const Found<RawDescr>& descr) {
  if (absl::Status status = check_header(found); !status.ok()) return status;
  const auto typestr = Found<std::string>::of(typestr_of(found));
  absl::StatusOr<DType> dtype = read_element_type(typestr, descr, kTypeRules);
  if (!dtype.ok()) return dtype.status();
  if (dtype->itemsize_bytes() != found.itemsize) {
    return refused("AS-03", "itemsize of text", found.itemsize, "a multiple of 4");
  }
  return check_array({.address = reinterpret_cast<std::uintptr_t>(found.data),
                      .shape = extents_of(found.shape, found.nd),
                      .strides_bytes = extents_of(found.strides, found.nd),
                      .dtype = *std::move(dtype),
                      .readonly = (found.flags & kWritable) == 0,
                      .memory = std::nullopt},
                     kRules);
}

}  // namespace gridbuf::array_struct
