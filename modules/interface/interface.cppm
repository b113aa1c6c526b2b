// gridbuf.interface: the descriptor and the element types by which other libraries see an array.
//
// An array leaves gridbuf through the array interface, the buffer protocol or DLPack. Each protocol
// has six equal fields, with different units and grammar. `BufferDescriptor` has them once, in
// bytes, and each protocol's library translates it, so that the protocols cannot disagree (XA-01 …
// XA-06). `describe` makes and checks a descriptor, which keeps the memory alive.
//
// Element types. One table has all four spellings (typestr "<f8", PEP 3118 format "d", DLPack's
// code and bits, name "float64") of every type that has fixed spellings (XA-04). Where a protocol
// cannot name a type, the result is "none", not another type of that length. Structured types and
// dates carry a text of the library that made them (NumPy), which gridbuf passes on without reading
// it.
//
// Foreign descriptors. An unchecked wrong number becomes an access to a wild address. So each
// protocol has a reader that takes the fields as found (`Found`) and checks each field against its
// rule. It returns a view, or an error that begins with the rule's id ("AI-16: …"). `check_array`
// has the common arithmetic. A list of extents is cut at kMaxNdim entries and keeps its true length
// (AI-04). Strides without a meaning become those of a dense array (DP-33).
module;

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

export module gridbuf.interface;

export import gridbuf.alloc;
export import gridbuf.base;
export import gridbuf.layout.view;

export namespace gridbuf {

// ---- Element types. ----

/// Kinds of numbers and of other elements.
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
  kStructured,  // fields; carries its format and descr
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

/// DLPack's codes of the types that need no table (DLDataTypeCode).
inline constexpr std::uint8_t kDlpackInt = 0;
inline constexpr std::uint8_t kDlpackFloat = 2;
inline constexpr std::uint8_t kDlpackBfloat = 4;

struct DTypeText;  // properties of a type outside the tables

/// An element type with its byte order. A value; copies are cheap.
class DType {
 public:
  /// float64, native order: the default element type everywhere.
  DType();

  /// "float64", "bool", "bfloat16", "float8_e4m3fn", … in native order. Error kValue: unknown.
  static absl::StatusOr<DType> from_name(std::string_view name);

  /// The array interfaces' spelling: "<f8", "|b1", ">U12", "<M8[ns]", "|V7" (AI-06, AI-07). Errors:
  /// kValue if malformed or of a length that the kind does not have; kType for objects ("|O8") and
  /// bit fields ("|t8"), whose bytes are not fixed.
  static absl::StatusOr<DType> from_typestr(std::string_view typestr);

  /// A PEP 3118 format of one element of `itemsize_bytes` (PB-20 … PB-22; complex as "Zd" or "D").
  /// A format with fields becomes a structured type that carries the text. Errors: kValue if a
  /// plain format is malformed or not of that length; kType for objects and pointers.
  static absl::StatusOr<DType> from_format(std::string_view format, std::int64_t itemsize_bytes);

  /// DLPack's code, bits and lanes. Error kBuffer: a type gridbuf does not know, or lanes other
  /// than 1 (DL-23, DL-26).
  static absl::StatusOr<DType> from_dlpack(const DlpackType& type);

  /// A type of fields. With an empty `format` it does not have a buffer format. Without `parts`,
  /// as readers make it from a foreign text, all of its bytes count as values. Error kValue:
  /// itemsize_bytes < 0.
  static absl::StatusOr<DType> structured(std::int64_t itemsize_bytes, std::string format,
                                          std::string descr,
                                          std::optional<ElementParts> parts = {});

  Kind kind() const { return kind_; }
  /// Value bits of one element; less than 8 × itemsize for types shorter than a byte.
  std::int64_t bits() const { return bits_; }
  std::int64_t itemsize_bytes() const { return itemsize_bytes_; }
  ByteOrder byte_order() const { return order_; }
  bool is_native() const { return order_ == kNativeOrder || order_ == ByteOrder::kIrrelevant; }
  /// The length of the unit in which bytes are swapped between byte orders. It is half an element
  /// for complex, a character for text, and 1 for structured types and for types without an order.
  std::int64_t swap_unit_bytes() const;

  /// The bytes of an element that hold values, if it has gaps between its fields. Null: all bytes.
  /// This is the one place that knows of gaps; a copy passes it on (CopyOptions::parts).
  const ElementParts* parts() const;

  /// This type in the opposite byte order; unchanged where order does not matter.
  DType byteswapped() const;

  /// For messages: "float64", "float64 (big-endian)", "datetime64[ns]", "void(7)".
  std::string name() const;

  /// Every type has a typestr; "|V24" for structured types, "<V2" for bfloat16.
  std::string typestr() const;

  /// The PEP 3118 format, or nullptr where it cannot name the type: dates and narrow types, as in
  /// NumPy, and raw bytes. Lives as long as this object or a copy of it.
  const char* format() const;

  /// The array interface's `descr` as a Python literal: [('', '<f8')] unless the type has fields.
  std::string descr() const;

  /// DLPack's spelling. Error kBuffer for types that DLPack cannot name: those in a byte order that
  /// is not native (DL-16), dates, text, raw and structured types, long double.
  absl::StatusOr<DlpackType> dlpack() const;

  /// Whether elements are padded to whole bytes (FP6, FP4, 2- and 4-bit integers).
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

// ---- The descriptor. ----

/// Memory of an array: where it is, its elements, and its owner.
struct BufferDescriptor {
  /// The origin of view.offset_bytes; may be null for an array without elements.
  std::byte* block = nullptr;
  /// Shape, byte strides, offset of element (0, …, 0), itemsize.
  StridedView view;
  DType dtype;
  bool readonly = false;
  Device device;
  /// Keeps the memory alive. If it is empty, the caller must do so.
  Owner owner;

  /// The address of element (0, …, 0): the data pointer of every protocol (AI-15).
  inline std::byte* first_element() const { return block + view.offset_bytes; }
  inline bool is_empty() const { return gridbuf::is_empty(view.shape); }
  /// Number of elements × itemsize, without padding (PB-03).
  inline std::int64_t nbytes() const { return gridbuf::nbytes(view); }
};

/// A checked descriptor. Strides without meaning are replaced. Error kValue: a malformed view, a
/// hull beyond 64 bits, an itemsize other than the element type's, a null block with elements.
absl::StatusOr<BufferDescriptor> describe(BufferDescriptor descriptor);

// ---- Foreign descriptors. ----

/// One field of a descriptor, as found.
template <class T>
struct Found {
  /// What the descriptor has for the field.
  enum class State : std::uint8_t {
    kAbsent,
    kNone,
    kWrongKind,   // not of the kind that the protocol requires; `text` shows it
    kOutOfRange,  // of the kind, but beyond 64 bits; `text` shows it
    kValue,
  };

  State state = State::kAbsent;
  T value = {};
  std::string text = {};  // for messages

  static Found none() { return {.state = State::kNone}; }
  static Found of(T value) { return {.state = State::kValue, .value = std::move(value)}; }
  static Found wrong_kind(std::string text) {
    return {.state = State::kWrongKind, .text = std::move(text)};
  }
  static Found out_of_range(std::string text) {
    return {.state = State::kOutOfRange, .text = std::move(text)};
  }

  bool has_value() const { return state == State::kValue; }
  bool is_missing() const { return state == State::kAbsent || state == State::kNone; }
};

/// Extents or strides as found. At most kMaxNdim entries are kept.
struct RawExtents {
  std::int64_t count = 0;  // the true number
  Extents values = {};

  /// Requires 0 ≤ count ≤ kMaxNdim.
  template <class Integer>
  static RawExtents of(const Integer* values, int count) {
    RawExtents extents{.count = count};
    for (int axis = 0; axis < count; ++axis) extents.values.push_back(values[axis]);
    return extents;
  }
};

/// Memory of known length: a buffer that a producer exports.
struct KnownMemory {
  std::uintptr_t address = 0;
  std::int64_t length_bytes = 0;
};

/// A view of foreign memory that passed all checks.
struct ImportedView {
  /// The block is the address of element (0, …, 0), the offset 0. If `owner` is empty, the caller
  /// must keep the producer alive.
  BufferDescriptor memory;
  /// The stream to wait for before an access to the memory; nothing if work is not pending.
  std::optional<std::uint64_t> stream;
  /// Whether every element is at a multiple of its type's alignment.
  bool is_aligned = true;
  /// Whether, according to DLPack, the memory is a copy for this consumer.
  bool is_copied = false;
};

/// The ids of the checks of `check_array` in a protocol's catalogue.
struct ArrayRules {
  std::string_view ndim;     // at most kMaxNdim dimensions
  std::string_view extents;  // none negative
  std::string_view size;     // elements × itemsize fits
  std::string_view strides;  // one per dimension
  std::string_view hull;     // every element's bytes are in the address space
  std::string_view null;     // address 0 only without bytes
  std::string_view inside;   // the hull is in the exported memory
};

/// The fields that all protocols have, in bytes.
struct RawArray {
  std::uintptr_t address = 0;  // of element (0, …, 0)
  RawExtents shape;
  std::optional<RawExtents> strides_bytes;  // nothing: C order
  DType dtype;
  bool readonly = false;
  std::optional<KnownMemory> memory;
};

/// The array as a view in host memory, or an error of class `error_class` for the first broken
/// rule.
absl::StatusOr<ImportedView> check_array(const RawArray& array, const ArrayRules& rules,
                                         ErrorClass error_class = ErrorClass::kValue);

/// An error that begins with the rule's id: "AI-16: data is …, but must be …; …".
absl::Status refuse(std::string_view rule, ErrorClass error_class, const Problem& problem);

/// The error for a field of a wrong kind (kType), beyond 64 bits (kValue) or missing (kValue).
/// `name` is the field, `bound` its required value. Requires !field.has_value().
template <class T>
absl::Status refuse_field(std::string_view rule, const Found<T>& field, std::string_view name,
                          std::string_view bound, std::string_view advice) {
  using State = typename Found<T>::State;
  const std::string_view found = field.state == State::kAbsent ? "missing"
                                 : field.state == State::kNone ? "None"
                                                               : std::string_view(field.text);
  const bool wrong_kind = field.state == State::kWrongKind || field.state == State::kNone;
  return refuse(rule, wrong_kind ? ErrorClass::kType : ErrorClass::kValue,
                {name, found, bound, advice});
}

}  // namespace gridbuf
