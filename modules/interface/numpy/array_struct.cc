module;

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "modules/base/status_macros.h"

module gridbuf.interface.numpy;

namespace gridbuf::array_struct {

// ---- Export. ----

namespace {

bool is_aligned(const BufferDescriptor& descriptor) {
  if (descriptor.dtype.kind() == Kind::kStructured) return false;  // not known
  const std::int64_t alignment_bytes = descriptor.dtype.swap_unit_bytes();
  const StridedView& view = descriptor.view;
  const auto address = reinterpret_cast<std::uintptr_t>(descriptor.first_element());
  bool aligned = address % static_cast<std::uintptr_t>(alignment_bytes) == 0;
  for (int axis = 0; axis < view.ndim(); ++axis) {
    if (view.shape[axis] > 1) aligned &= view.strides_bytes[axis] % alignment_bytes == 0;
  }
  return aligned;
}

/// AS-03: the struct describes an element only by a letter and a length.
absl::Status check_dtype(const DType& dtype) {
  const Kind kind = dtype.kind();
  if (kind == Kind::kNarrow || kind == Kind::kDatetime || kind == Kind::kTimedelta) {
    return make_error(ErrorClass::kBuffer,
                      {"dtype", dtype.name(), "one that __array_struct__ has a letter for",
                       "use DLPack, or __array_interface__ for dates"});
  }
  constexpr std::int64_t kMostBytes = std::numeric_limits<std::int32_t>::max();
  if (dtype.itemsize_bytes() < 1 || dtype.itemsize_bytes() > kMostBytes) {
    return make_error(ErrorClass::kBuffer,
                      {"itemsize_bytes", std::to_string(dtype.itemsize_bytes()),
                       "from 1 to " + std::to_string(kMostBytes) + " for __array_struct__",
                       "use __array_interface__"});
  }
  return absl::OkStatus();
}

/// The struct, the owner, then shape and strides.
struct OwnedStruct {
  ArrayStruct described;
  Owner owner;

  std::intptr_t* extents() { return reinterpret_cast<std::intptr_t*>(this + 1); }
};
static_assert(offsetof(OwnedStruct, described) == 0);
static_assert(sizeof(OwnedStruct) % alignof(std::intptr_t) == 0);

}  // namespace

std::int32_t true_flags(const BufferDescriptor& descriptor) {
  std::int32_t flags = 0;
  if (is_c_contiguous(descriptor.view)) flags |= kCContiguous;
  if (is_f_contiguous(descriptor.view)) flags |= kFContiguous;
  if (is_aligned(descriptor)) flags |= kAligned;
  if (descriptor.dtype.is_native()) flags |= kNotSwapped;
  if (!descriptor.readonly) flags |= kWritable;
  return flags;
}

void destroy(ArrayStruct* exported) noexcept {
  if (exported == nullptr) return;
  auto* owned = reinterpret_cast<OwnedStruct*>(exported);
  owned->~OwnedStruct();
  ::operator delete(owned);
}

absl::StatusOr<Export> export_array_struct(const BufferDescriptor& descriptor) {
  if (!is_host_readable(descriptor.device.type)) {
    return make_error(
        ErrorClass::kNoSuchBuffer,
        {"device", to_string(descriptor.device), "readable by the host for __array_struct__",
         "copy the array to the host, or use the CUDA array interface or DLPack"});
  }
  GRIDBUF_RETURN_IF_ERROR(check_dtype(descriptor.dtype));
  const StridedView& view = descriptor.view;
  const auto ndim = static_cast<std::size_t>(view.ndim());
  void* memory =
      ::operator new(sizeof(OwnedStruct) + 2 * ndim * sizeof(std::intptr_t), std::nothrow);
  if (memory == nullptr) {
    return make_error(ErrorClass::kMemory,
                      "no memory for an __array_struct__; free some arrays and try again");
  }
  auto* owned = new (memory) OwnedStruct{{}, descriptor.owner};
  std::intptr_t* const shape = owned->extents();
  std::copy(view.shape.begin(), view.shape.end(), shape);
  std::copy(view.strides_bytes.begin(), view.strides_bytes.end(), shape + ndim);
  owned->described = {.two = 2,
                      .nd = view.ndim(),
                      .typekind = descriptor.dtype.typestr()[1],
                      .itemsize = static_cast<std::int32_t>(view.itemsize_bytes),
                      .flags = true_flags(descriptor),
                      .shape = shape,
                      .strides = shape + ndim,
                      .data = descriptor.first_element(),
                      .descr = nullptr};
  return Export(&owned->described);
}

// ---- Import. ----

namespace {

constexpr ArrayRules kRules{.ndim = "AS-03",
                            .extents = "AS-04",
                            .size = "AS-04",
                            .strides = "AS-04",
                            .hull = "AS-04",
                            .null = "AS-04",
                            .inside = "AS-04"};
constexpr ElementTypeRules kTypeRules{.typestr = "AS-03", .length = "AS-03", .descr = "AS-06"};
constexpr std::string_view kAdvice = "correct the object that exports __array_struct__";

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
  const std::string_view order = !has_order ? "|" : little ? "<" : ">";
  return absl::StrCat(order, std::string(1, found.typekind), count);
}

}  // namespace

absl::StatusOr<ImportedView> read_array_struct(const ArrayStruct& found,
                                               const Found<RawDescr>& descr) {
  GRIDBUF_RETURN_IF_ERROR(check_header(found));
  const auto typestr = Found<std::string>::of(typestr_of(found));
  GRIDBUF_ASSIGN_OR_RETURN(auto& dtype, read_element_type(typestr, descr, kTypeRules));
  if (dtype.itemsize_bytes() != found.itemsize) {
    return refused("AS-03", "itemsize of text", found.itemsize, "a multiple of 4");
  }
  return check_array({.address = reinterpret_cast<std::uintptr_t>(found.data),
                      .shape = RawExtents::of(found.shape, found.nd),
                      .strides_bytes = RawExtents::of(found.strides, found.nd),
                      .dtype = std::move(dtype),
                      .readonly = (found.flags & kWritable) == 0,
                      .memory = std::nullopt},
                     kRules);
}

}  // namespace gridbuf::array_struct
