module;

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "modules/base/fork.h"
#include "modules/base/process_wide.h"

module gridbuf.layout.dims;

import gridbuf.base;

namespace gridbuf {
namespace {

constexpr std::array<std::string_view, 4> kKindNames{"horizontal", "local", "vertical", "data"};
constexpr std::string_view kSpatialNames = "IJK";
constexpr std::string_view kHalfPrefix = "_Staggered";
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
  return make_error(
      ErrorClass::kValue,
      {.name = "dimension name",
       .found = quoted_name(name),
       .bound = absl::StrCat("an identifier of 1 to ", kMaxNameLength,
                             " characters, or a number from \"0\" to \"", kMaxDataDim, "\""),
       .advice = "rename the dimension"});
}

bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

// Whether the text is an identifier. Which letters beyond ASCII are in one is Python's to say.
bool is_identifier(std::string_view text) {
  const std::vector<std::string_view> letters = characters(text.substr(0, 4 * kMaxNameLength + 1));
  if (letters.empty() || letters.size() > std::size_t{kMaxNameLength}) return false;
  const auto is_letter = [](std::string_view character) {
    return character[0] == '_' || absl::ascii_isalnum(static_cast<unsigned char>(character[0])) ||
           character.size() > 1;
  };
  return !is_digit(text[0]) && std::ranges::all_of(letters, is_letter) &&
         std::ranges::all_of(letters, is_utf8);
}

// The names of dimensions, each once, and the kinds that were declared. Names are never removed, so
// that a Dim is valid in the whole process.
class Names {
 public:
  // The place of `name`, or -1 if the table is full.
  int index(std::string_view name) {
    const std::unique_lock lock(mutex_);
    const auto found = places_.find(name);
    if (found != places_.end()) return found->second;
    if (names_.size() > std::size_t{kMaxNameIndex}) return -1;
    names_.emplace_back(name);
    places_.emplace(names_.back(), static_cast<int>(names_.size()) - 1);
    return static_cast<int>(names_.size()) - 1;
  }

  std::string_view name(int index) const {
    const std::shared_lock lock(mutex_);
    return names_[static_cast<std::size_t>(index)];
  }

  std::optional<DimKind> declared(std::string_view name) const {
    const std::shared_lock lock(mutex_);
    const auto found = kinds_.find(name);
    return found == kinds_.end() ? std::nullopt : std::optional(found->second);
  }

  // Declares the kinds of all `dims`, or of none: returns the first that was declared with another
  // kind, and how it was declared.
  std::optional<std::pair<Dim, Dim>> declare(std::span<const Dim> dims) {
    const std::unique_lock lock(mutex_);
    auto kinds = kinds_;
    for (const Dim dim : dims) {
      if (!dim.is_named()) continue;  // The kinds of I, J, K and numbers are fixed.
      const std::string& name = names_[static_cast<std::size_t>(dim.name_index())];
      const DimKind declared = kinds.try_emplace(name, dim.kind()).first->second;
      if (declared != dim.kind()) return std::pair(dim, Dim::named(dim.name_index(), declared));
    }
    kinds_ = std::move(kinds);
    return std::nullopt;
  }

  // GT4Py's name of `dim`: of a declared half, and of the half itself, "_Staggered...".
  std::string name_with_half(Dim dim) const {
    const std::shared_lock lock(mutex_);
    const std::string& name = names_[static_cast<std::size_t>(dim.name_index())];
    const auto found = halves_.find(name);
    return found == halves_.end() ? name : found->second;
  }

  // Whether `half` now is this one; not if it is declared as another.
  bool declare_half(std::string half, std::string name) {
    const std::unique_lock lock(mutex_);
    return halves_.try_emplace(std::move(half), name).first->second == name;
  }

 private:
  mutable ForkSafe<std::shared_mutex> mutex_;
  std::deque<std::string> names_{"I", "J", "K"};  // Their addresses stay.
  std::map<std::string_view, int> places_{{"I", 0}, {"J", 1}, {"K", 2}};
  std::map<std::string, DimKind, std::less<>> kinds_;
  std::map<std::string, std::string, std::less<>> halves_;  // GT4Py's names of declared halves
};

// Never destroyed: threads may still name dimensions while the process exits.
Names& table() {
  static Names& names = process_wide<Names>("dimension names");
  return names;
}
// Before any thread: see modules/base/fork.h.
[[maybe_unused]] const Names& made_at_load = table();

// The dimension if the name alone gives it a kind: I, J, K and numbers.
std::optional<Dim> fixed_dim(std::string_view name) {
  const std::size_t axis = kSpatialNames.find(name);
  if (name.size() == 1 && axis != std::string_view::npos) {
    return Dim::spatial(static_cast<int>(axis));
  }
  int number = 0;
  const bool is_canonical =
      !name.empty() && std::ranges::all_of(name, is_digit) && (name.size() == 1 || name[0] != '0');
  return is_canonical && absl::SimpleAtoi(name, &number) ? std::optional(Dim::data(number))
                                                         : std::nullopt;
}

absl::Status wrong_count(std::size_t count, int ndim) {
  return make_error(ErrorClass::kValue, {.name = "the number of names in dims",
                                         .found = absl::StrCat(count),
                                         .bound = absl::StrCat(ndim, ", one per dimension"),
                                         .advice = "name every dimension of the shape once"});
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

std::string_view to_string(DimKind kind) noexcept {
  return kKindNames[static_cast<std::size_t>(kind)];
}

absl::StatusOr<DimKind> parse_dim_kind(std::string_view text) {
  const auto found = std::ranges::find(kKindNames, text);
  if (found != kKindNames.end()) return static_cast<DimKind>(found - kKindNames.begin());
  return make_error(ErrorClass::kValue,
                    {.name = "the kind of a dimension",
                     .found = quoted_name(text),
                     .bound = "\"horizontal\", \"local\", \"vertical\" or \"data\"",
                     .advice = "pass one of these"});
}

std::string to_string(Dim dim) {
  if (dim.is_number()) return absl::StrCat(dim.number());
  if (dim.is_named()) return std::string(table().name(dim.name_index()));
  return std::string(kSpatialNames.substr(static_cast<std::size_t>(dim.spatial_axis()), 1));
}

std::strong_ordering Dim::compare_named(Dim a, Dim b) noexcept {
  if (a.kind() != b.kind()) return a.kind() <=> b.kind();
  if (a.is_number() != b.is_number()) return b.is_number() <=> a.is_number();
  // A half of GT4Py's is next to its dimension, as there.
  std::string_view name = table().name(a.name_index());
  std::string_view other = table().name(b.name_index());
  const bool is_half = absl::ConsumePrefix(&name, kHalfPrefix);
  const bool other_is_half = absl::ConsumePrefix(&other, kHalfPrefix);
  return name == other ? is_half <=> other_is_half : name <=> other;
}

absl::Status different_kinds(Dim a, Dim b) {
  return make_error(
      ErrorClass::kValue,
      {.name = absl::StrCat("the kind of dimension \"", to_string(a), "\""),
       .found = to_string(a.kind()),
       .bound = absl::StrCat(to_string(b.kind()), ", as in the other place where it is named"),
       .advice = "give dimensions with two meanings two names, or declare the kind once"});
}

std::string to_string(const Dims& dims) {
  std::string text = "(";
  for (int i = 0; i < dims.size(); ++i) {
    absl::StrAppend(&text, i > 0 ? ", '" : "'", to_string(dims[i]), "'");
  }
  absl::StrAppend(&text, dims.size() == 1 ? ",)" : ")");
  return text;
}

absl::StatusOr<Dim> make_dim(std::string_view name, DimKind kind) {
  if (const std::optional<Dim> dim = fixed_dim(name)) {
    if (dim->kind() == kind) return *dim;
    return make_error(
        ErrorClass::kValue,
        {.name = absl::StrCat("the kind of dimension \"", name, "\""),
         .found = to_string(kind),
         .bound = absl::StrCat(to_string(dim->kind()),
                               ": I and J are horizontal, K is vertical, numbers are data"),
         .advice = "use another name"});
  }
  if (!is_identifier(name)) return bad_name(name);
  const int index = table().index(name);
  if (index >= 0) return Dim::named(index, kind);
  return make_error(ErrorClass::kValue, {.name = "the number of names of dimensions",
                                         .found = absl::StrCat("more than ", kMaxNameIndex),
                                         .bound = absl::StrCat("at most ", kMaxNameIndex + 1),
                                         .advice = "use names again"});
}

absl::StatusOr<Dim> parse_dim(std::string_view name) {
  if (const std::optional<Dim> dim = fixed_dim(name)) return *dim;
  return make_dim(name, table().declared(name).value_or(DimKind::kHorizontal));
}

absl::Status declare_dims(std::span<const Dim> dims) {
  const auto different = table().declare(dims);
  return different ? different_kinds(different->first, different->second) : absl::OkStatus();
}

absl::StatusOr<Dim> half_of(Dim dim) {
  if (dim.is_number()) {
    return make_error(ErrorClass::kValue, {.name = "a dimension with a staggered half",
                                           .found = absl::StrCat("the number ", dim.number()),
                                           .bound = "I, J, K or another name",
                                           .advice = "name the dimension"});
  }
  const std::string name = table().name_with_half(dim);
  if (name.starts_with(kHalfPrefix)) return make_dim(name.substr(kHalfPrefix.size()), dim.kind());
  return make_dim(absl::StrCat(kHalfPrefix, name), dim.kind());
}

bool are_halves(Dim a, Dim b) {
  if (a.is_number() || b.is_number() || (!a.is_named() && !b.is_named())) return false;
  const std::string name = table().name_with_half(a);
  const std::string other = table().name_with_half(b);
  if (name == other) return !have_one_name(a, b);
  return name == absl::StrCat(kHalfPrefix, other) || other == absl::StrCat(kHalfPrefix, name);
}

absl::Status declare_half(Dim name, Dim half) {
  std::string found = half.is_named() ? table().name_with_half(half) : to_string(half);
  if (!found.starts_with(kHalfPrefix)) {
    return make_error(
        ErrorClass::kValue,
        {.name = absl::StrCat("the dimension as which \"", to_string(name), "\" is declared"),
         .found = quoted_name(found),
         .bound = "the staggered half of one",
         .advice = absl::StrCat("pass half(\"", found, "\") if it is meant to be its half")});
  }
  std::string known = "that of I, J, K or a number";
  if (name.is_named()) {
    const Dim declared = Dim::named(name.name_index(), half.kind());
    if (absl::Status status = declare_dims({&declared, 1}); !status.ok()) return status;
    if (table().declare_half(to_string(name), found)) return absl::OkStatus();
    known = absl::StrCat(table().name_with_half(name), ", as declared");
  }
  return make_error(ErrorClass::kValue,
                    {.name = absl::StrCat("the meaning of dimension \"", to_string(name), "\""),
                     .found = quoted_name(found),
                     .bound = known,
                     .advice = "declare another name as the half"});
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
      if (have_one_name(dims[i], dims[j])) {
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

}  // namespace gridbuf
