module;

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.interface.fuzz;

namespace gridbuf::fuzz {
namespace {

std::vector<std::string> split(std::string_view line) {
  std::vector<std::string> words;
  while (!line.empty()) {
    const std::size_t begin = line.find_first_not_of(' ');
    if (begin == std::string_view::npos) break;
    line.remove_prefix(begin);
    const std::size_t length = std::min(line.find(' '), line.size());
    words.emplace_back(line.substr(0, length));
    line.remove_prefix(length);
  }
  return words;
}

template <class Number>
Found<Number> parse(const std::string& word) {
  Number number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error == std::errc::result_out_of_range) return Found<Number>::out_of_range(word);
  if (error != std::errc() || end != word.data() + word.size()) {
    return Found<Number>::wrong_kind(word);
  }
  return Found<Number>::of(number);
}

/// States of all fields: absent, None, of a wrong kind. Nothing if the line has a value.
template <class T>
std::optional<Found<T>> without_value(const std::optional<std::vector<std::string>>& words) {
  if (!words) return Found<T>();
  if (words->size() == 1 && (*words)[0] == "none") return Found<T>::none();
  if (words->size() == 1 && (*words)[0] == "bad") return Found<T>::wrong_kind("bad");
  return std::nullopt;
}

/// "<i2*3": a type and how often it is repeated.
RawDescrField leaf(std::string name, const std::string& type) {
  RawDescrField field;
  field.name = std::move(name);
  const std::size_t star = std::min(type.find('*'), type.size());
  field.typestr = Found<std::string>::of(type.substr(0, star));
  if (star < type.size()) {
    field.repeat.push_back(parse<std::int64_t>(type.substr(star + 1)).value);
  }
  return field;
}

/// Entries from words[next] on, up to an unmatched closing parenthesis.
std::vector<RawDescrField> read_fields(const std::vector<std::string>& words, std::size_t& next) {
  std::vector<RawDescrField> fields;
  while (next < words.size()) {
    if (words[next] == ")") {
      ++next;
      return fields;
    }
    if (words[next] == "(") {
      ++next;
      RawDescrField record;
      record.name = "r";
      record.fields = read_fields(words, next);
      fields.push_back(std::move(record));
      continue;
    }
    const std::string name = words[next++];
    if (next < words.size()) fields.push_back(leaf(name == "-" ? "" : name, words[next++]));
  }
  return fields;
}

}  // namespace

Lines::Lines(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = std::min(text.find('\n'), text.size());
    lines_.push_back(split(text.substr(0, length)));
    text.remove_prefix(std::min(length + 1, text.size()));
  }
}

std::optional<std::vector<std::string>> Lines::words(std::string_view key) const {
  for (const std::vector<std::string>& line : lines_) {
    if (!line.empty() && line[0] == key) {
      return std::vector<std::string>(line.begin() + 1, line.end());
    }
  }
  return std::nullopt;
}

Found<std::int64_t> Lines::number(std::string_view key) const {
  const auto found = words(key);
  if (const auto other = without_value<std::int64_t>(found)) return *other;
  return found->empty() ? Found<std::int64_t>::wrong_kind("''") : parse<std::int64_t>((*found)[0]);
}

Found<std::string> Lines::text(std::string_view key) const {
  const auto found = words(key);
  if (const auto other = without_value<std::string>(found)) return *other;
  return Found<std::string>::of(found->empty() ? "" : (*found)[0]);
}

Found<RawExtents> Lines::extents(std::string_view key) const {
  const auto found = words(key);
  if (const auto other = without_value<RawExtents>(found)) return *other;
  RawExtents extents;
  for (const std::string& word : *found) {
    const Found<std::int64_t> number = parse<std::int64_t>(word);
    if (number.state == Found<std::int64_t>::State::kOutOfRange) {
      return Found<RawExtents>::out_of_range(word);
    }
    if (!number.has_value()) return Found<RawExtents>::wrong_kind(word);
    if (extents.count++ < kMaxNdim) extents.values.push_back(number.value);
  }
  return Found<RawExtents>::of(extents);
}

Found<RawPointer> Lines::pointer(std::string_view key) const {
  const auto found = words(key);
  if (const auto other = without_value<RawPointer>(found)) return *other;
  if (found->empty()) return Found<RawPointer>::wrong_kind("()");
  const Found<std::uintptr_t> address = parse<std::uintptr_t>((*found)[0]);
  if (!address.has_value()) return Found<RawPointer>::wrong_kind((*found)[0]);
  return Found<RawPointer>::of({.address = address.value, .readonly = found->size() > 1});
}

Found<RawDescr> Lines::descr(std::string_view key) const {
  const auto found = words(key);
  if (const auto other = without_value<RawDescr>(found)) return *other;
  std::size_t next = 0;
  RawDescr descr;
  descr.fields = read_fields(*found, next);
  descr.literal = "[...]";
  return Found<RawDescr>::of(std::move(descr));
}

std::vector<std::int64_t> Lines::numbers(std::string_view key) const {
  std::vector<std::int64_t> result;
  for (const std::string& word : words(key).value_or(std::vector<std::string>())) {
    result.push_back(parse<std::int64_t>(word).value);
  }
  return result;
}

std::int64_t Lines::number_or(std::string_view key, std::int64_t fallback) const {
  const Found<std::int64_t> found = number(key);
  return found.has_value() ? found.value : fallback;
}

namespace {

/// "exported 4096 100": the address and the length of a buffer.
std::optional<KnownMemory> memory_of(const Lines& lines, std::string_view key) {
  const std::vector<std::int64_t> numbers = lines.numbers(key);
  if (numbers.size() < 2 || numbers[1] < 0) return std::nullopt;
  return KnownMemory{.address = static_cast<std::uintptr_t>(numbers[0]),
                     .length_bytes = numbers[1]};
}

}  // namespace

RawArrayInterface array_fields(const Lines& lines) {
  RawArrayInterface raw{.shape = lines.extents("shape"),
                        .typestr = lines.text("typestr"),
                        .descr = lines.descr("descr"),
                        .data = lines.pointer("data"),
                        .exported = std::nullopt,
                        .offset_bytes = lines.number("offset"),
                        .strides_bytes = lines.extents("strides"),
                        .has_mask = lines.has("mask"),
                        .version = lines.number("version")};
  if (const auto memory = memory_of(lines, "exported")) raw.exported = RawBuffer{.memory = *memory};
  return raw;
}

RawCudaArrayInterface cuda_fields(const Lines& lines) {
  return {.shape = lines.extents("shape"),
          .typestr = lines.text("typestr"),
          .descr = lines.descr("descr"),
          .data = lines.pointer("data"),
          .strides_bytes = lines.extents("strides"),
          .has_mask = lines.has("mask"),
          .version = lines.number("version"),
          .stream = lines.number("stream")};
}

std::optional<PointerInfo> pointer_info(const Lines& lines) {
  const std::optional<KnownMemory> allocation = memory_of(lines, "info");
  if (!allocation) return std::nullopt;
  return PointerInfo{.device = {DeviceType::kCuda, 1},
                     .base = allocation->address,
                     .length_bytes = allocation->length_bytes,
                     .device_accessible = !lines.has("unreachable")};
}

std::unique_ptr<std::int64_t[]> entries(const Lines& lines, std::string_view key,
                                        std::size_t count) {
  const std::vector<std::int64_t> numbers = lines.numbers(key);
  if (numbers.size() != count || count == 0) return nullptr;
  auto array = std::make_unique<std::int64_t[]>(count);
  for (std::size_t i = 0; i < count; ++i) array[i] = numbers[i];
  return array;
}

std::int32_t claimed_ndim(const Lines& lines, std::size_t count) {
  const auto claim = static_cast<std::int32_t>(lines.number_or("ndim", 0));
  return claim < 0 || claim > 64 ? claim : static_cast<std::int32_t>(count);
}

void require(bool condition) {
  if (condition) return;
  std::fputs("a reader let something pass that it must not\n", stderr);
  std::abort();
}

void check(const absl::Status& error) {
  const std::string message(error.message());
  const std::size_t colon = message.find(": ");
  require(colon != std::string::npos && colon >= 5 && colon <= 6);
  require(message[colon - 3] == '-');
}

void check(const absl::StatusOr<ImportedView>& result, const std::optional<KnownMemory>& memory) {
  if (result.ok()) {
    check(*result, memory);
  } else {
    check(result.status());
  }
}

void check(const ImportedView& view, const std::optional<KnownMemory>& memory) {
  using Wide = __int128;
  const StridedView& found = view.memory.view;
  require(found.shape.size() == found.strides_bytes.size());
  require(found.itemsize_bytes >= 1 && found.offset_bytes == 0);
  require(found.itemsize_bytes == view.memory.dtype.itemsize_bytes());
  Wide lowest = 0;
  Wide highest = found.itemsize_bytes;
  for (int axis = 0; axis < found.ndim(); ++axis) {
    require(found.shape[axis] >= 0);
    if (found.shape[axis] == 0) return;  // Nothing is touched.
    const Wide reach = Wide{found.shape[axis] - 1} * found.strides_bytes[axis];
    (reach < 0 ? lowest : highest) += reach;
  }
  const auto address = reinterpret_cast<std::uintptr_t>(view.memory.block);
  require(address != 0);
  require(Wide{address} + lowest >= 0 && Wide{address} + highest <= ~std::uintptr_t{0});
  if (!memory) return;
  const Wide begin = memory->address;
  require(Wide{address} + lowest >= begin);
  require(Wide{address} + highest <= begin + memory->length_bytes);
}

}  // namespace gridbuf::fuzz
