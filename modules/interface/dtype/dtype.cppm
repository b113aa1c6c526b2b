// gridbuf.interface.dtype: what one element is, and how each protocol spells it.
//
// Four protocols describe element types in four languages: the array interfaces by a typestr
// ("<f8"), the buffer protocol by a PEP 3118 format ("d"), DLPack by a code and bits ({2, 64}), and
// users by a name ("float64"). One table holds all four spellings of every type that has fixed
// ones, so that they cannot disagree (XA-04); where a language has no word for a type, the answer
// is "none", never a type of the same length.
//
// The rest carry their own text. A structured type is bytes to this library: what it is made of is
// written in the format and descr that its maker (NumPy) gave, and they are passed on unread. Dates
// carry their unit the same way.
//
// Types of which NumPy knows only the length (bfloat16, FP8, FP6, FP4, 2- and 4-bit integers) are
// `kNarrow`: a raw typestr ("<V2"), no format, and a DLPack code of their own.
//
// A DType is a value: two words and a shared, immutable text that plain types do not have.
module;

#include <bit>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

export module gridbuf.interface.dtype;

export namespace gridbuf {

enum class Kind : std::uint8_t {
  kBool,
  kInt,
  kUint,
  kFloat,    // IEEE 754 of 16, 32, 64 bits, and the platform's long double
  kComplex,  // two kFloat
  kNarrow,   // floats and integers that only DLPack can name
  kTimedelta,
  kDatetime,
  kBytes,       // a fixed number of bytes of text
  kText,        // a fixed number of UCS4 characters
  kVoid,        // raw bytes
  kStructured,  // fields; carries its own format and descr
};

/// The characters are those of a typestr.
enum class ByteOrder : char { kLittle = '<', kBig = '>', kIrrelevant = '|' };

inline constexpr ByteOrder kNativeOrder =
    std::endian::native == std::endian::little ? ByteOrder::kLittle : ByteOrder::kBig;

/// DLPack's spelling of a type: DLDataType.
struct DlpackType {
  std::uint8_t code = 0;
  std::uint8_t bits = 0;
  std::uint16_t lanes = 1;

  friend constexpr bool operator==(const DlpackType&, const DlpackType&) = default;
};

/// DLPack's type codes that gridbuf exports (DLDataTypeCode; 7–17 are named in the table of narrow
/// types).
inline constexpr std::uint8_t kDlpackInt = 0;
inline constexpr std::uint8_t kDlpackUint = 1;
inline constexpr std::uint8_t kDlpackFloat = 2;
inline constexpr std::uint8_t kDlpackBfloat = 4;
inline constexpr std::uint8_t kDlpackComplex = 5;
inline constexpr std::uint8_t kDlpackBool = 6;

/// What a type says about itself that no table knows. Empty where it says nothing.
struct DTypeText {
  std::string name;
  std::string typestr;
  std::string format;  // PEP 3118
  std::string descr;   // the array interface's list, as a Python literal

  friend bool operator==(const DTypeText&, const DTypeText&) = default;
};

class DType {
 public:
  /// float64, native order: the default element type everywhere.
  DType();

  /// "float64", "bool", "bfloat16", "float8_e4m3fn", … in native order. Error kValue: unknown.
  static absl::StatusOr<DType> from_name(std::string_view name);

  /// The array interfaces' spelling: "<f8", "|b1", ">U12", "<M8[ns]", "|V7" (AI-06, AI-07). Digits
  /// count bytes, but for U, where they count characters as in NumPy. Errors: kValue if malformed
  /// or of a length the kind does not have; kType for objects ("|O8") and bit fields ("|t8"), which
  /// have no fixed bytes of their own.
  static absl::StatusOr<DType> from_typestr(std::string_view typestr);

  /// A PEP 3118 format of one element of `itemsize_bytes` (PB-20 … PB-22; complex as "Zd" or "D").
  /// Anything with fields becomes a structured type that carries the text. Errors: kValue if a
  /// plain format is malformed or not of that length; kType for objects and pointers.
  static absl::StatusOr<DType> from_format(std::string_view format, std::int64_t itemsize_bytes);

  /// DLPack's code, bits and lanes. Error kBuffer: a type gridbuf does not know, or lanes other
  /// than 1 (DL-23, DL-26).
  static absl::StatusOr<DType> from_dlpack(const DlpackType& type);

  /// A type of fields. `format` may be empty: then it has no buffer format. Error kValue:
  /// itemsize_bytes < 0.
  static absl::StatusOr<DType> structured(std::int64_t itemsize_bytes, std::string format,
                                          std::string descr);

  Kind kind() const { return kind_; }
  /// Value bits of one element; less than 8 × itemsize for narrow types that fill only part of
  /// their byte.
  std::int64_t bits() const { return bits_; }
  std::int64_t itemsize_bytes() const { return itemsize_bytes_; }
  ByteOrder byte_order() const { return order_; }
  bool is_native() const { return order_ == kNativeOrder || order_ == ByteOrder::kIrrelevant; }
  /// The length of the units whose bytes are swapped between byte orders: half an element for
  /// complex, a character for text, 1 where order does not matter. Structured types: 1, as their
  /// fields are not known here.
  std::int64_t swap_unit_bytes() const;

  /// The same type in the other byte order; itself where order does not matter.
  DType byteswapped() const;

  /// "float64", "float64 (big-endian)" where the order is not native, "datetime64[ns]", "void(7)":
  /// for messages.
  std::string name() const;

  /// Always there; "|V24" for structured types, "<V2" for bfloat16.
  std::string typestr() const;

  /// PEP 3118, or nullptr where it has no word: dates and narrow types (as NumPy decides).
  /// Zero-terminated; lives as long as this object or a copy of it.
  const char* format() const;

  /// The array interface's `descr` as a Python literal: [('', '<f8')] unless the type has fields.
  std::string descr() const;

  /// DLPack's spelling. Error kBuffer, with the reason, where it has none: the order is not native
  /// (DL-16), dates, text, raw and structured types, long double.
  absl::StatusOr<DlpackType> dlpack() const;

  /// Whether elements are padded to whole bytes (DLPack's sub-byte flag; FP6, FP4, 2- and 4-bit
  /// integers).
  bool is_padded_subbyte() const { return kind_ == Kind::kNarrow && bits_ < 8; }

  friend bool operator==(const DType& a, const DType& b);

 private:
  DType(Kind kind, ByteOrder order, std::int64_t bits, std::int64_t itemsize_bytes);

  Kind kind_;
  ByteOrder order_;
  std::uint8_t row_ = 0;  // in the table of plain or of narrow types
  std::int64_t bits_;
  std::int64_t itemsize_bytes_;
  std::shared_ptr<const DTypeText> text_;

  friend struct DTypeMaker;
};

}  // namespace gridbuf
