module;

#include <algorithm>
#include <array>
#include <charconv>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

module gridbuf.interface;

namespace gridbuf {
namespace {

// The other codes of DLDataTypeCode; 7 to 17 are in the table of narrow types.
constexpr std::uint8_t kDlpackUint = 1;
constexpr std::uint8_t kDlpackComplex = 5;
constexpr std::uint8_t kDlpackBool = 6;

// A type with a spelling in every protocol.
struct PlainRow {
  Kind kind;
  std::uint8_t dlpack_code;  // kNoCode: not in DLPack
  std::int64_t itemsize_bytes;
  const char* name;
  const char* native_format;
  const char* little_format;  // in the order '<', and in '>'
  const char* big_format;
};

constexpr std::uint8_t kNoCode = 0xFF;

// A typestr's letters in the order of Kind, up to kVoid. A narrow type is spelled as raw bytes.
constexpr std::string_view kKindLetters = "biufcVmMSUV";

// The letters of 64-bit integers are NumPy's: "l" where a long has 64 bits. With an explicit byte
// order the lengths are standard, and only "q" has 64 bits (PB-21).
constexpr bool kLongIs64 = sizeof(long) == 8;
constexpr const char* kInt64Letter = kLongIs64 ? "l" : "q";
constexpr const char* kUint64Letter = kLongIs64 ? "L" : "Q";

constexpr std::array<PlainRow, 16> kPlain{{
    {Kind::kFloat, kDlpackFloat, 8, "float64", "d", "<d", ">d"},
    {Kind::kBool, kDlpackBool, 1, "bool", "?", "?", "?"},
    {Kind::kInt, kDlpackInt, 1, "int8", "b", "b", "b"},
    {Kind::kInt, kDlpackInt, 2, "int16", "h", "<h", ">h"},
    {Kind::kInt, kDlpackInt, 4, "int32", "i", "<i", ">i"},
    {Kind::kInt, kDlpackInt, 8, "int64", kInt64Letter, "<q", ">q"},
    {Kind::kUint, kDlpackUint, 1, "uint8", "B", "B", "B"},
    {Kind::kUint, kDlpackUint, 2, "uint16", "H", "<H", ">H"},
    {Kind::kUint, kDlpackUint, 4, "uint32", "I", "<I", ">I"},
    {Kind::kUint, kDlpackUint, 8, "uint64", kUint64Letter, "<Q", ">Q"},
    {Kind::kFloat, kDlpackFloat, 2, "float16", "e", "<e", ">e"},
    {Kind::kFloat, kDlpackFloat, 4, "float32", "f", "<f", ">f"},
    {Kind::kFloat, kNoCode, sizeof(long double), "longdouble", "g", "<g", ">g"},
    {Kind::kComplex, kDlpackComplex, 8, "complex64", "Zf", "<Zf", ">Zf"},
    {Kind::kComplex, kDlpackComplex, 16, "complex128", "Zd", "<Zd", ">Zd"},
    {Kind::kComplex, kNoCode, 2 * sizeof(long double), "clongdouble", "Zg", "<Zg", ">Zg"},
}};

// A type that only DLPack and its name distinguish. Names are those of the ml_dtypes package.
struct NarrowRow {
  const char* name;
  std::uint8_t dlpack_code;
  std::int64_t bits;
  std::int64_t itemsize_bytes;
};

constexpr std::array<NarrowRow, 16> kNarrow{{
    {"bfloat16", kDlpackBfloat, 16, 2},
    {"float8_e3m4", 7, 8, 1},
    {"float8_e4m3", 8, 8, 1},
    {"float8_e4m3b11fnuz", 9, 8, 1},
    {"float8_e4m3fn", 10, 8, 1},
    {"float8_e4m3fnuz", 11, 8, 1},
    {"float8_e5m2", 12, 8, 1},
    {"float8_e5m2fnuz", 13, 8, 1},
    {"float8_e8m0fnu", 14, 8, 1},
    {"float6_e2m3fn", 15, 6, 1},
    {"float6_e3m2fn", 16, 6, 1},
    {"float4_e2m1fn", 17, 4, 1},
    {"int4", kDlpackInt, 4, 1},
    {"uint4", kDlpackUint, 4, 1},
    {"int2", kDlpackInt, 2, 1},
    {"uint2", kDlpackUint, 2, 1},
}};

ByteOrder order_for(std::int64_t unit_bytes, ByteOrder order) {
  return unit_bytes == 1 ? ByteOrder::kIrrelevant : order;
}

std::string quoted(std::string_view text) { return absl::StrCat("'", text, "'"); }

absl::Status bad_spelling(std::string_view language, std::string_view text, std::string_view why) {
  return make_error(ErrorClass::kValue,
                    {language, quoted(text), absl::StrCat("an element type; ", why),
                     "pass a NumPy dtype's own spelling"});
}

// The number if all of `digits` is a decimal number of at most 64 bits, else nothing.
std::optional<std::int64_t> parse_number(std::string_view digits) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool whole = error == std::errc() && end == digits.data() + digits.size();
  return whole && number >= 0 && digits.front() != '-' ? std::optional(number) : std::nullopt;
}

}  // namespace

// Texts of a type outside the tables; may be empty.
struct DTypeText {
  std::string name;
  std::string typestr;
  std::string format;                 // PEP 3118
  std::string descr;                  // the array interface's list, as a Python literal
  std::optional<ElementParts> parts;  // of a type with gaps

  friend bool operator==(const DTypeText&, const DTypeText&) = default;
};

// Builds types from rows; the one friend of DType.
struct DTypeMaker {
  static DType plain(std::size_t row, ByteOrder order) {
    const PlainRow& found = kPlain[row];
    return of_row(found.kind, row, order, found.itemsize_bytes * CHAR_BIT, found.itemsize_bytes);
  }

  static DType narrow(std::size_t row, ByteOrder order) {
    return of_row(Kind::kNarrow, row, order, kNarrow[row].bits, kNarrow[row].itemsize_bytes);
  }

  static DType of_row(Kind kind, std::size_t row, ByteOrder order, std::int64_t bits,
                      std::int64_t itemsize_bytes) {
    DType type(kind, order_for(itemsize_bytes, order), bits, itemsize_bytes);
    type.row_ = static_cast<std::uint8_t>(row);
    return type;
  }

  static DType with_text(Kind kind, ByteOrder order, std::int64_t itemsize_bytes, DTypeText text) {
    DType type(kind, order, itemsize_bytes * CHAR_BIT, itemsize_bytes);
    type.text_ = std::make_shared<const DTypeText>(std::move(text));
    return type;
  }

  // Dates: `unit` is "[ns]" or "".
  static DType date(Kind kind, ByteOrder order, std::string_view unit) {
    const bool is_datetime = kind == Kind::kDatetime;
    DTypeText text;
    text.name = std::string(is_datetime ? "datetime64" : "timedelta64").append(unit);
    text.typestr = std::string(1, static_cast<char>(order)) + (is_datetime ? "M8" : "m8");
    text.typestr.append(unit);
    return with_text(kind, order, 8, std::move(text));
  }

  // Bytes, text and raw bytes: `count` units of `unit_bytes`. Requires the product to fit.
  static DType run(Kind kind, ByteOrder order, std::int64_t count, std::int64_t unit_bytes) {
    // The typestr's letter, the format's, and the name.
    constexpr const char* kWords[] = {"Ssbytes", "Uwstr", "Vxvoid"};
    const std::string_view word = kWords[static_cast<int>(kind) - static_cast<int>(Kind::kBytes)];
    const ByteOrder own_order = order_for(unit_bytes, order);
    const std::string digits = std::to_string(count);
    DTypeText text;
    text.name = absl::StrCat(word.substr(2), "(", digits, ")");
    text.typestr =
        absl::StrCat(std::string(1, static_cast<char>(own_order)), word.substr(0, 1), digits);
    if (own_order != ByteOrder::kIrrelevant && own_order != kNativeOrder) {
      text.format = std::string(1, static_cast<char>(own_order));
    }
    text.format.append(digits).push_back(word[1]);
    return with_text(kind, own_order, count * unit_bytes, std::move(text));
  }
};

DType::DType() : DType(Kind::kFloat, kNativeOrder, 64, 8) {}

DType::DType(Kind kind, ByteOrder order, std::int64_t bits, std::int64_t itemsize_bytes)
    : kind_(kind), order_(order), bits_(bits), itemsize_bytes_(itemsize_bytes) {}

absl::StatusOr<DType> DType::from_name(std::string_view name) {
  for (std::size_t row = 0; row < kPlain.size(); ++row) {
    if (name == kPlain[row].name) return DTypeMaker::plain(row, kNativeOrder);
  }
  for (std::size_t row = 0; row < kNarrow.size(); ++row) {
    if (name == kNarrow[row].name) return DTypeMaker::narrow(row, kNativeOrder);
  }
  return bad_spelling("dtype name", name, "the name is not known");
}

namespace {

absl::StatusOr<DType> plain_of(Kind kind, std::int64_t itemsize_bytes, ByteOrder order,
                               std::string_view language, std::string_view text) {
  for (std::size_t row = 0; row < kPlain.size(); ++row) {
    if (kPlain[row].kind != kind || kPlain[row].itemsize_bytes != itemsize_bytes) continue;
    if (order == ByteOrder::kIrrelevant && itemsize_bytes > 1) {
      return bad_spelling(language, text, "a type of several bytes needs a byte order");
    }
    return DTypeMaker::plain(row, order);
  }
  return bad_spelling(language, text, "its kind does not have this length");
}

absl::StatusOr<DType> run_of(Kind kind, std::int64_t count, ByteOrder order,
                             std::string_view language, std::string_view text) {
  const std::int64_t unit_bytes = kind == Kind::kText ? 4 : 1;
  const auto itemsize_bytes = checked::mul(count, unit_bytes);
  // `bits` is computed from it.
  if (!itemsize_bytes || !checked::mul(*itemsize_bytes, CHAR_BIT)) {
    return bad_spelling(language, text, "its length leaves 64 bits");
  }
  if (order == ByteOrder::kIrrelevant && unit_bytes > 1) {
    return bad_spelling(language, text, "a type of several bytes needs a byte order");
  }
  return DTypeMaker::run(kind, order, count, unit_bytes);
}

absl::Status no_fixed_bytes(std::string_view language, std::string_view text,
                            std::string_view what) {
  return make_error(ErrorClass::kType,
                    {language, absl::StrCat(quoted(text), ", which means ", what),
                     "a type whose elements are a fixed number of bytes",
                     "store numbers, text of a fixed length or raw bytes"});
}

// "[ns]", "[25s]" or nothing.
bool is_date_unit(std::string_view unit) {
  if (unit.empty()) return true;
  return unit.size() >= 3 && unit.front() == '[' && unit.back() == ']' &&
         std::all_of(unit.begin() + 1, unit.end() - 1,
                     [](char letter) { return absl::ascii_isalnum(letter) || letter == '/'; });
}

}  // namespace

absl::StatusOr<DType> DType::from_typestr(std::string_view typestr) {
  constexpr std::string_view kLanguage = "typestr";
  if (typestr.size() < 3 || std::string_view("<>|").find(typestr[0]) == std::string_view::npos) {
    return bad_spelling(kLanguage, typestr, "a byte order (<, > or |), a kind and digits");
  }
  const auto order = static_cast<ByteOrder>(typestr[0]);
  const char letter = typestr[1];
  if (letter == 'O') return no_fixed_bytes(kLanguage, typestr, "Python objects");
  if (letter == 't') return no_fixed_bytes(kLanguage, typestr, "a bit field");
  const std::size_t kind_at = kKindLetters.rfind(letter);
  const std::size_t unit_at = std::min(typestr.find('['), typestr.size());
  const std::string_view unit = typestr.substr(unit_at);
  const auto number = parse_number(typestr.substr(2, unit_at - 2));
  if (kind_at == std::string_view::npos || !number) {
    return bad_spelling(kLanguage, typestr, "a kind of b, i, u, f, c, m, M, S, U or V and digits");
  }
  const auto kind = static_cast<Kind>(kind_at);
  if (kind == Kind::kDatetime || kind == Kind::kTimedelta) {
    if (*number != 8 || order == ByteOrder::kIrrelevant || !is_date_unit(unit)) {
      return bad_spelling(kLanguage, typestr, "dates have 8 bytes, an order and a unit like [ns]");
    }
    return DTypeMaker::date(kind, order, unit);
  }
  if (!unit.empty()) return bad_spelling(kLanguage, typestr, "only dates have a unit");
  if (kind >= Kind::kBytes) return run_of(kind, *number, order, kLanguage, typestr);
  return plain_of(kind, *number, order, kLanguage, typestr);
}

namespace {

struct FormatLetter {
  char letter;
  Kind kind;
  std::int64_t native_bytes;    // with no prefix, @ or ^
  std::int64_t standard_bytes;  // with =, <, > or !; 0: not allowed there
};

constexpr std::array<FormatLetter, 19> kFormatLetters{{
    {'?', Kind::kBool, 1, 1},
    {'b', Kind::kInt, 1, 1},
    {'h', Kind::kInt, sizeof(short), 2},
    {'i', Kind::kInt, sizeof(int), 4},
    {'l', Kind::kInt, sizeof(long), 4},
    {'q', Kind::kInt, sizeof(long long), 8},
    {'n', Kind::kInt, sizeof(std::ptrdiff_t), 0},
    {'B', Kind::kUint, 1, 1},
    {'H', Kind::kUint, sizeof(unsigned short), 2},
    {'I', Kind::kUint, sizeof(unsigned), 4},
    {'L', Kind::kUint, sizeof(unsigned long), 4},
    {'Q', Kind::kUint, sizeof(unsigned long long), 8},
    {'N', Kind::kUint, sizeof(std::size_t), 0},
    {'e', Kind::kFloat, 2, 2},
    {'f', Kind::kFloat, 4, 4},
    {'d', Kind::kFloat, 8, 8},
    // The standard does not define a length; NumPy writes ">g" for the platform's.
    {'g', Kind::kFloat, sizeof(long double), sizeof(long double)},
    {'F', Kind::kComplex, 8, 8},
    {'D', Kind::kComplex, 16, 16},
}};

struct FormatPrefix {
  ByteOrder order = kNativeOrder;
  bool standard_lengths = false;
};

// Removes and returns the prefix of `format`.
FormatPrefix take_prefix(std::string_view& format) {
  if (format.empty()) return {};
  const char first = format.front();
  if (std::string_view("@^=<>!").find(first) == std::string_view::npos) return {};
  format.remove_prefix(1);
  if (first == '<') return {ByteOrder::kLittle, true};
  if (first == '>' || first == '!') return {ByteOrder::kBig, true};
  return {kNativeOrder, first == '='};
}

// The length and kind of one letter (or Z and a letter); nothing for other letters.
std::optional<std::pair<Kind, std::int64_t>> read_letters(std::string_view letters, bool standard) {
  const bool complex = letters.size() == 2 && letters[0] == 'Z';
  if (complex) letters.remove_prefix(1);
  if (letters == "G") return std::pair(Kind::kComplex, std::int64_t{2 * sizeof(long double)});
  if (letters.size() != 1) return std::nullopt;
  for (const FormatLetter& known : kFormatLetters) {
    if (known.letter != letters[0]) continue;
    const std::int64_t bytes = standard ? known.standard_bytes : known.native_bytes;
    if (bytes == 0 || (complex && known.kind != Kind::kFloat)) return std::nullopt;
    return complex ? std::pair(Kind::kComplex, 2 * bytes) : std::pair(known.kind, bytes);
  }
  return std::nullopt;
}

// A count and one of s, w, x: "5s" is five bytes, "s" one.
absl::StatusOr<DType> read_run(std::string_view body, ByteOrder order, std::string_view format) {
  const char letter = body.back();
  const Kind kind = letter == 's' ? Kind::kBytes : letter == 'w' ? Kind::kText : Kind::kVoid;
  body.remove_suffix(1);
  const auto count = body.empty() ? std::optional<std::int64_t>(1) : parse_number(body);
  if (!count) return bad_spelling("format", format, "a count before s, w or x");
  return run_of(kind, *count, order, "format", format);
}

// Whether the format has a letter for an address: an object, a pointer or a function. Field names
// (":name:") may hold any letter.
bool holds_addresses(std::string_view format) {
  bool in_name = false;
  for (const char letter : format) {
    if (letter == ':') in_name = !in_name;
    if (!in_name && std::string_view("OP&X").find(letter) != std::string_view::npos) return true;
  }
  return false;
}

bool has_fields(std::string_view body) {
  return body.find_first_of("{:(") != std::string_view::npos;
}

absl::StatusOr<DType> read_unstructured(std::string_view format) {
  std::string_view body = format;
  const FormatPrefix prefix = take_prefix(body);
  if (body.empty()) return bad_spelling("format", format, "a letter after the prefix");
  if (body == "c") return run_of(Kind::kBytes, 1, prefix.order, "format", format);
  if (std::string_view("swx").find(body.back()) != std::string_view::npos) {
    return read_run(body, prefix.order, format);
  }
  const auto found = read_letters(body, prefix.standard_lengths);
  if (!found) return bad_spelling("format", format, "one PEP 3118 element");
  return plain_of(found->first, found->second, prefix.order, "format", format);
}

}  // namespace

absl::StatusOr<DType> DType::from_format(std::string_view format, std::int64_t itemsize_bytes) {
  if (holds_addresses(format)) return no_fixed_bytes("format", format, "objects or pointers");
  if (has_fields(format)) return structured(itemsize_bytes, std::string(format), "");
  absl::StatusOr<DType> type = read_unstructured(format);
  if (type.ok() && type->itemsize_bytes() != itemsize_bytes) {
    return make_error(ErrorClass::kValue,
                      {"itemsize_bytes of format " + quoted(format), std::to_string(itemsize_bytes),
                       std::to_string(type->itemsize_bytes()) + ", the length of the format",
                       "make the producer's format and itemsize agree"});
  }
  return type;
}

absl::StatusOr<DType> DType::from_dlpack(const DlpackType& type) {
  if (type.lanes == 1 && type.code != kNoCode) {
    for (std::size_t row = 0; row < kPlain.size(); ++row) {
      const bool same_code = kPlain[row].dlpack_code == type.code;
      if (same_code && kPlain[row].itemsize_bytes * CHAR_BIT == type.bits) {
        return DTypeMaker::plain(row, kNativeOrder);
      }
    }
    for (std::size_t row = 0; row < kNarrow.size(); ++row) {
      if (kNarrow[row].dlpack_code == type.code && kNarrow[row].bits == type.bits) {
        return DTypeMaker::narrow(row, kNativeOrder);
      }
    }
  }
  return make_error(ErrorClass::kBuffer, {"DLPack type",
                                          absl::StrCat("code ", type.code, ", ", type.bits,
                                                       " bits, ", type.lanes, " lanes"),
                                          "a code of DLPack 1.x with one lane in a length it has",
                                          "convert the tensor before exporting it"});
}

absl::StatusOr<DType> DType::structured(std::int64_t itemsize_bytes, std::string format,
                                        std::string descr, std::optional<ElementParts> parts) {
  if (itemsize_bytes < 0 || !checked::mul(itemsize_bytes, CHAR_BIT)) {
    return make_error(ErrorClass::kValue, {"itemsize_bytes", std::to_string(itemsize_bytes),
                                           "from 0 to 2^60", "check how the fields were added up"});
  }
  DTypeText text;
  text.typestr = "|V" + std::to_string(itemsize_bytes);
  text.name = "structured(" + std::to_string(itemsize_bytes) + ")";
  text.format = std::move(format);
  text.descr = std::move(descr);
  if (parts && !is_whole(*parts, itemsize_bytes)) text.parts = std::move(parts);
  return DTypeMaker::with_text(Kind::kStructured, ByteOrder::kIrrelevant, itemsize_bytes,
                               std::move(text));
}

std::int64_t DType::swap_unit_bytes() const {
  if (order_ == ByteOrder::kIrrelevant) return 1;
  if (kind_ == Kind::kComplex) return itemsize_bytes_ / 2;
  return kind_ == Kind::kText ? 4 : itemsize_bytes_;
}

const ElementParts* DType::parts() const {
  return text_ && text_->parts ? &*text_->parts : nullptr;
}

DType DType::byteswapped() const {
  if (order_ == ByteOrder::kIrrelevant) return *this;
  const ByteOrder other = order_ == ByteOrder::kLittle ? ByteOrder::kBig : ByteOrder::kLittle;
  switch (kind_) {
    case Kind::kDatetime:
    case Kind::kTimedelta:
      return DTypeMaker::date(kind_, other, std::string_view(text_->typestr).substr(3));
    case Kind::kText:
      return DTypeMaker::run(kind_, other, itemsize_bytes_ / 4, 4);
    case Kind::kNarrow:
      return DTypeMaker::narrow(row_, other);
    default:
      return DTypeMaker::plain(row_, other);
  }
}

std::string DType::name() const {
  const std::string own = text_                    ? text_->name
                          : kind_ == Kind::kNarrow ? kNarrow[row_].name
                                                   : kPlain[row_].name;
  return is_native() ? own
                     : own + (order_ == ByteOrder::kBig ? " (big-endian)" : " (little-endian)");
}

std::string DType::typestr() const {
  if (text_) return text_->typestr;
  return absl::StrCat(std::string(1, static_cast<char>(order_)),
                      kKindLetters.substr(static_cast<std::size_t>(kind_), 1), itemsize_bytes_);
}

const char* DType::format() const {
  // NumPy reads the padding bytes that raw bytes would be as a record without fields.
  if (kind_ == Kind::kVoid || kind_ == Kind::kNarrow) return nullptr;
  if (text_) return text_->format.empty() ? nullptr : text_->format.c_str();
  const PlainRow& row = kPlain[row_];
  if (is_native()) return row.native_format;
  return order_ == ByteOrder::kBig ? row.big_format : row.little_format;
}

std::string DType::descr() const {
  if (text_ && !text_->descr.empty()) return text_->descr;
  return "[('', '" + typestr() + "')]";
}

absl::StatusOr<DlpackType> DType::dlpack() const {
  const std::uint8_t code = text_                    ? kNoCode
                            : kind_ == Kind::kNarrow ? kNarrow[row_].dlpack_code
                                                     : kPlain[row_].dlpack_code;
  if (code == kNoCode) {
    return make_error(ErrorClass::kBuffer,
                      {"dtype", name(), "a number that DLPack has a code for",
                       "use the array interface or the buffer protocol, or convert the array"});
  }
  if (!is_native()) {
    return make_error(ErrorClass::kBuffer, {"dtype", name(), "in native byte order for DLPack",
                                            "convert the array to native order first"});
  }
  return DlpackType{code, static_cast<std::uint8_t>(bits_), 1};
}

bool operator==(const DType& a, const DType& b) {
  if (a.kind_ != b.kind_ || a.order_ != b.order_ || a.itemsize_bytes_ != b.itemsize_bytes_) {
    return false;
  }
  if (!a.text_) return a.row_ == b.row_;
  return a.text_ == b.text_ || *a.text_ == *b.text_;
}

}  // namespace gridbuf
