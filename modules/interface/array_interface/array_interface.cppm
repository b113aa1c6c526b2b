// gridbuf.interface.array_interface: the fields of NumPy's array interface, version 3 (AI-01 …
// AI-34).
//
// The protocol is a Python dict; this module computes its values for arrays that leave, checks
// those of arrays that come in, and leaves the dict to the bindings. C++ programs that talk to
// NumPy through other bindings use it as it is.
//
// Choices on export where the protocol leaves one. `strides` is absent exactly when the memory is
// C-contiguous, as NumPy does: the short spelling is the cheap one, and both mean the same (AI-23).
// `data` is always there as an address and a flag, never as a buffer object, so that the bytes stay
// where they are and repeated queries agree (AI-19, AI-33).
//
// On import, what the protocol demands is demanded (a dict without `version` is refused), what it
// leaves open is accepted: a newer version, strides that are given though they need not be, other
// keys. A mask is refused, because a consumer that drops it reads values that are not there.
module;

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

export module gridbuf.interface.array_interface;

import gridbuf.interface;
import gridbuf.interface.dtype;
import gridbuf.interface.imported;
import gridbuf.layout.extents;

export namespace gridbuf {

inline constexpr int kArrayInterfaceVersion = 3;

struct ArrayInterfaceFields {
  Extents shape;                         // AI-03
  std::string typestr;                   // AI-06; the order in memory (AI-09)
  std::uintptr_t data_address = 0;       // of element (0, …, 0) (AI-14, AI-15)
  bool readonly = false;                 // AI-25
  std::optional<Extents> strides_bytes;  // nothing: C-contiguous (AI-21)
  std::string descr;                     // a Python literal (AI-11)
  int version = kArrayInterfaceVersion;
};

/// The fields that describe `descriptor`. Error kNoSuchBuffer: the memory is not readable by the
/// host.
absl::StatusOr<ArrayInterfaceFields> array_interface(const BufferDescriptor& descriptor);

// ---- Import. ----

/// An entry of `descr`: (name, type) or (name, type, repeat), where a type is a typestr or again a
/// list of entries (AI-11).
struct RawDescrField {
  std::string name;
  Found<std::string> typestr;         // absent for a record
  std::vector<RawDescrField> fields;  // of a record
  std::vector<std::int64_t> repeat;
};

struct RawDescr {
  std::vector<RawDescrField> fields;
  std::string literal;  // the list as Python writes it
};

/// `data` as a tuple (AI-14).
struct RawPointer {
  std::uintptr_t address = 0;
  bool readonly = false;
};

/// `data` as a buffer, or the object's own where `data` is None or absent (AI-16, AI-17).
struct RawBuffer {
  KnownMemory memory = {};
  bool readonly = false;
};

/// The dict, as found. Of `data` and `lent` one has a value; the other keys are read as they come.
struct RawArrayInterface {
  Found<RawExtents> shape;
  Found<std::string> typestr;
  Found<RawDescr> descr;
  Found<RawPointer> data;
  std::optional<RawBuffer> lent;
  Found<std::int64_t> offset_bytes;
  Found<RawExtents> strides_bytes;
  bool has_mask = false;
  Found<std::int64_t> version;
};

/// The memory that the dict describes, on the host, or an error that begins with the id of the rule
/// it breaks: kType for a field of a wrong kind, kValue for one out of its bounds, kBuffer for a
/// mask (AI-26).
absl::StatusOr<ImportedView> read_array_interface(const RawArrayInterface& raw);

/// The ids of what the element type of an array interface must obey.
struct ElementTypeRules {
  std::string_view typestr;  // its grammar
  std::string_view length;   // that the kind has the length, and bytes of its own
  std::string_view descr;    // that it adds up to the typestr's length
};

/// The element type of a typestr and of the fields that `descr` gives to raw bytes ("|V8"). A
/// description that is finer than another typestr must have its length and says nothing else
/// (AI-13).
absl::StatusOr<DType> read_element_type(const Found<std::string>& typestr,
                                        const Found<RawDescr>& descr,
                                        const ElementTypeRules& rules);

/// The strides that were given; nothing for None or absent, which mean C order.
absl::StatusOr<std::optional<RawExtents>> read_strides(const Found<RawExtents>& strides_bytes,
                                                       std::string_view rule);

}  // namespace gridbuf
