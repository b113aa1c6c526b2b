// gridbuf.interface: the one description from which every export is made.
//
// An array leaves gridbuf through the array interface, the buffer protocol or DLPack. Each says the
// same six things in its own units and grammar: where the bytes are, how they are strided, what an
// element is, whether they may be written, on which device they lie, and what keeps them alive.
// `BufferDescriptor` says them once, in the units of gridbuf.layout (bytes, signed), and each
// protocol's module translates. So the protocols cannot drift apart (XA-01 … XA-06): there is
// nothing for them to disagree about.
//
// The descriptor is checked where it is made (`describe`), and translators rely on it: a hull that
// fits in 64 bits, an item size that is the element type's, memory that is there unless there are
// no elements.
//
// It holds a share in the owner. Whoever holds a descriptor holds the memory; DLPack exports take a
// share of their own.
module;

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

export module gridbuf.interface;

import gridbuf.alloc;
import gridbuf.interface.dtype;
import gridbuf.layout.checked;
import gridbuf.layout.view;

export namespace gridbuf {

struct BufferDescriptor {
  /// What view.offset_bytes counts from; may be null if there are no elements.
  std::byte* block = nullptr;
  /// Shape, byte strides, offset of element (0, …, 0), itemsize.
  StridedView view;
  DType dtype;
  bool readonly = false;
  Device device;
  /// Keeps the memory alive. May be empty: then the caller does.
  Owner owner;

  /// The address of element (0, …, 0): what every protocol calls the data pointer (AI-15).
  inline std::byte* first_element() const { return block + view.offset_bytes; }
  inline bool is_empty() const { return gridbuf::is_empty(view.shape); }
  /// Number of elements × itemsize, without padding (PB-03).
  inline std::int64_t nbytes() const {
    // `describe` has checked that neither leaves 64 bits.
    return checked::mul(checked::product(view.shape.span()).value_or(0), view.itemsize_bytes)
        .value_or(checked::kMaxBytes);
  }
};

/// A checked descriptor. Errors, all kValue: negative extents or unequal numbers of extents and
/// strides, a hull beyond 64 bits, view.itemsize_bytes other than the element type's, a null block
/// with elements.
absl::StatusOr<BufferDescriptor> describe(BufferDescriptor descriptor);

}  // namespace gridbuf
