// gridbuf.interface.imported: what all readers of foreign descriptors share.
//
// Memory comes in as a descriptor that somebody else wrote: a dict, a Py_buffer, a DLPack tensor.
// Any of it may be wrong, by mistake or on purpose, and a wrong number that is believed becomes a
// read or a write at a wild address. So each protocol has a reader that takes the fields as they
// were found, checks each against the rule it must obey, and returns either a view that is safe to
// use as far as anyone can know without touching it, or an error whose message begins with the
// rule's id ("AI-16: …"). Nothing is dereferenced before it passed. The readers know no Python; the
// bindings hand them what they found.
//
// Key choices. A field is a `Found` and not a value: that it was absent, None or of another kind is
// for the reader to judge, because the protocols differ in it. A list of extents is cut at
// kMaxNdim entries and keeps its true length, so that a shape of a million entries costs nothing
// (AI-04). And the arithmetic exists once, in `check_array`: the readers only say which ids their
// catalogue has for each check.
//
// A view that passed: its byte hull fits in the address space and, where the producer lent a buffer
// of known length, in that buffer. Its address may be odd (AI-31): `is_aligned` tells. Strides that
// carry no meaning (of extents of 1, of arrays without elements) are replaced by those of a dense
// array, whatever junk was there (DP-33).
module;

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

export module gridbuf.interface.imported;

import gridbuf.error;
import gridbuf.interface;
import gridbuf.interface.dtype;
import gridbuf.layout.extents;

export namespace gridbuf {

/// One field of a descriptor, as found.
template <class T>
struct Found {
  enum class State : std::uint8_t {
    kAbsent,
    kNone,
    kWrongKind,   // not of the kind that the protocol asks for; `text` shows it
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

/// Extents or strides as found: at most kMaxNdim of them are kept.
struct RawExtents {
  std::int64_t count = 0;  // how many there were
  Extents values = {};
};

/// Memory whose length is known: a buffer that a producer lends.
struct KnownMemory {
  std::uintptr_t address = 0;
  std::int64_t length_bytes = 0;
};

/// A view of foreign memory that passed all checks.
struct ImportedView {
  /// The block is the address of element (0, …, 0), the offset 0. `owner` is empty unless the
  /// reader took ownership: then whoever calls it keeps the producer alive.
  BufferDescriptor memory;
  /// The stream to wait on before the memory is touched; nothing if no work is pending on it.
  std::optional<std::uint64_t> stream;
  /// Whether every element lies at a multiple of its type's alignment.
  bool is_aligned = true;
  /// DLPack says that the memory is a copy made for this consumer.
  bool is_copied = false;
};

/// The ids under which a protocol's catalogue has the checks of `check_array`.
struct ArrayRules {
  std::string_view ndim;     // at most kMaxNdim dimensions
  std::string_view extents;  // none negative
  std::string_view size;     // elements × itemsize fits
  std::string_view strides;  // one per dimension
  std::string_view hull;     // every element's bytes lie in the address space
  std::string_view null;     // no address 0 where there are bytes
  std::string_view inside;   // the hull lies in the memory that was lent
};

/// What all protocols say of an array, in one unit.
struct RawArray {
  std::uintptr_t address = 0;  // of element (0, …, 0)
  RawExtents shape;
  std::optional<RawExtents> strides_bytes;  // nothing: C order
  DType dtype;
  bool readonly = false;
  std::optional<KnownMemory> memory;
};

/// The array as a view in host memory, or the error of the first rule that it breaks, of class
/// `error_class`.
absl::StatusOr<ImportedView> check_array(const RawArray& array, const ArrayRules& rules,
                                         ErrorClass error_class = ErrorClass::kValue);

/// An error that begins with the rule's id: "AI-16: data is …, but must be …; …".
absl::Status refuse(std::string_view rule, ErrorClass error_class, const Problem& problem);

/// The same for a field of a wrong kind (kType), beyond 64 bits (kValue) or missing (kValue):
/// `name` is the field's, `bound` what it must be. Requires !field.has_value().
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
