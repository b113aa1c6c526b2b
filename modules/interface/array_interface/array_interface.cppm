// gridbuf.interface.array_interface: the fields of NumPy's array interface, version 3 (AI-01 …
// AI-34).
//
// The protocol is a Python dict; this module computes its values and leaves the dict to the
// bindings. C++ programs that talk to NumPy through other bindings use it as it is.
//
// Choices where the protocol leaves one. `strides` is absent exactly when the memory is
// C-contiguous, as NumPy does: the short spelling is the cheap one, and both mean the same (AI-23).
// `data` is always there as an address and a flag, never as a buffer object, so that the bytes stay
// where they are and repeated queries agree (AI-19, AI-33).
module;

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

export module gridbuf.interface.array_interface;

import gridbuf.interface;
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

}  // namespace gridbuf
