module;

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

module gridbuf.layout;

namespace gridbuf {
namespace {

constexpr std::string_view kSpatialNames = "IJK";
constexpr std::size_t kShownBytes = 40;  // Keeps messages short for any text.

// The characters of UTF-8 text. Stray continuation bytes stay with the byte before them.
std::vector<std::string_view> characters(std::string_view text) {
  std::vector<std::string_view> result;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = begin + 1;
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
    result.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return result;
}

// Whether `character`, one lead byte and its continuation bytes, is one code point.
bool is_utf8(std::string_view character) {
  constexpr std::uint32_t kSmallest[] = {0, 0, 0x80, 0x800,
                                         0x10000};  // By length; no overlong forms.
  const std::size_t length = character.size();
  const auto lead = static_cast<unsigned char>(character[0]);
  if (length == 1) return lead < 0x80;
  if (length > 4 || lead >> (7 - length) != (0xFFu >> (7 - length) & ~1u)) return false;
  std::uint32_t code = lead & (0x7Fu >> length);
  for (const char byte : character.substr(1)) code = code << 6 | (byte & 0x3F);
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  return code >= kSmallest[length] && code <= 0x10FFFF && !surrogate;
}

absl::Status bad_name(std::string_view name) {
  const bool is_lower = name == "i" || name == "j" || name == "k";
  return make_error(
      ErrorClass::kValue,
      {.name = "dimension name",
       .found = quoted_name(name),
       .bound = absl::StrCat("\"I\", \"J\", \"K\" or a data dimension from \"0\" to \"",
                             kMaxDataDim, "\""),
       .advice = is_lower ? "write it in upper case" : "rename the dimension"});
}

absl::Status wrong_count(std::size_t count, int ndim) {
  return make_error(ErrorClass::kValue, {.name = "the number of names in dims",
                                         .found = absl::StrCat(count),
                                         .bound = absl::StrCat(ndim, ", one per dimension"),
                                         .advice = "name every dimension of the shape once"});
}

std::uint64_t magnitude(std::int64_t stride_bytes) {
  const auto bits = static_cast<std::uint64_t>(stride_bytes);
  return stride_bytes < 0 ? 0 - bits : bits;
}

}  // namespace

std::string quoted_name(std::string_view name) {
  std::string text = "\"";
  for (const std::string_view character : characters(name.substr(0, 4 * kShownBytes))) {
    if (text.size() > kShownBytes) {
      text += "...";
      break;
    }
    text += is_utf8(character) ? absl::Utf8SafeCEscape(character) : absl::CEscape(character);
  }
  return text + "\"";
}

std::string to_string(Dim dim) {
  if (dim.is_spatial()) {
    return std::string(kSpatialNames.substr(static_cast<std::size_t>(dim.spatial_axis()), 1));
  }
  return absl::StrCat(dim.number());
}

std::string to_string(const Dims& dims) {
  std::string text = "(";
  for (int i = 0; i < dims.size(); ++i) {
    absl::StrAppend(&text, i > 0 ? ", '" : "'", to_string(dims[i]), "'");
  }
  absl::StrAppend(&text, dims.size() == 1 ? ",)" : ")");
  return text;
}

absl::StatusOr<Dim> parse_dim(std::string_view name) {
  if (name.size() == 1 && kSpatialNames.find(name) != std::string_view::npos) {
    return Dim::spatial(static_cast<int>(kSpatialNames.find(name)));
  }
  const bool digits = !name.empty() && std::all_of(name.begin(), name.end(), [](char letter) {
    return letter >= '0' && letter <= '9';
  });
  int number = 0;
  if (!digits || (name.size() > 1 && name[0] == '0') || !absl::SimpleAtoi(name, &number)) {
    return bad_name(name);
  }
  return Dim::data(number);
}

absl::StatusOr<Dims> parse_dims(std::string_view one_character_names, int ndim) {
  return parse_dims(characters(one_character_names), ndim);
}

absl::StatusOr<Dims> parse_dims(std::span<const std::string_view> names, int ndim) {
  Dims dims;
  for (const std::string_view name : names) {
    const absl::StatusOr<Dim> dim = parse_dim(name);
    if (!dim.ok()) return dim.status();
    // A list that is too long is refused below, by its length.
    if (dims.size() < kMaxNdim) dims.push_back(*dim);
  }
  if (names.size() != static_cast<std::size_t>(ndim)) return wrong_count(names.size(), ndim);
  const absl::Status status = validate_dims(dims, ndim);
  if (!status.ok()) return status;
  return dims;
}

absl::Status validate_dims(const Dims& dims, int ndim) {
  if (dims.size() != ndim) return wrong_count(static_cast<std::size_t>(dims.size()), ndim);
  for (int i = 0; i < ndim; ++i) {
    for (int j = 0; j < i; ++j) {
      if (dims[i] == dims[j]) {
        return make_error(ErrorClass::kValue,
                          {.name = absl::StrCat("dims[", i, "]"),
                           .found = quoted_name(to_string(dims[i])),
                           .bound = absl::StrCat("another name than dims[", j, "]"),
                           .advice = "give every dimension a different name"});
      }
    }
  }
  return absl::OkStatus();
}

absl::Status validate_layout_map(const LayoutMap& layout, int ndim) {
  if (layout.size() == ndim && is_permutation(layout)) return absl::OkStatus();
  const std::string bound = ndim == 0
                                ? "empty, because the shape is ()"
                                : absl::StrCat("a permutation of 0 to ", ndim - 1,
                                               ", one rank per dimension (0 = largest stride)");
  return make_error(ErrorClass::kValue, {.name = "layout",
                                         .found = to_string(layout),
                                         .bound = bound,
                                         .advice = "use every rank once"});
}

LayoutMap layout_of(const Extents& shape, const Extents& strides_bytes) {
  LayoutMap layout = c_order(shape.size());
  Axes moved;  // those whose stride counts
  for (int axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] == 0) return layout;
    if (shape[axis] > 1) moved.push_back(axis);
  }
  for (const int axis : moved) {
    int rank = 0;
    for (const int other : moved) {
      const std::uint64_t ours = magnitude(strides_bytes[axis]);
      const std::uint64_t theirs = magnitude(strides_bytes[other]);
      rank += theirs > ours || (theirs == ours && other < axis) ? 1 : 0;
    }
    layout[axis] = moved[rank];
  }
  return layout;
}

}  // namespace gridbuf
