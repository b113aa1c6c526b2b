// gridbuf.transfer.convert: numbers of one type copied as numbers of another, and masked copies.
//
// Purpose. Everything of an assignment between two arrays that `copy_elements` does not do: the
// element types differ, numbers are in the other byte order on one side, or a mask says which
// elements are meant. The result is defined as that of a copy is: as if all source elements were
// read first, and then written to the target one after the other in row-major order of the index.
// What a number becomes is said by gridbuf.transfer.numbers: what NumPy makes of it, bit for bit.
//
// Key choice. A conversion is as fast as the memory if every byte is moved through the caches once.
// So where rows lie the same way on both sides, the loops read the source and write the target
// directly, in full lines past the caches when the target is larger than they are. Where layouts
// differ, the source comes piece by piece: a box of elements as large as the near cache is copied
// by `copy_elements`, which knows all about layouts, into scratch memory in the target's order, and
// converted from there. Neither has to know the other's business, and no pair of types has a
// transposition of its own.
//
// Rows or boxes are shared out among the threads of gridbuf.base. Conversions run in the default
// floating-point environment, whatever the calling thread has set, and leave that as it was.
module;

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

export module gridbuf.transfer.convert;

import gridbuf.alloc;
import gridbuf.layout.view;
export import gridbuf.transfer.numbers;
import gridbuf.transfer;

export namespace gridbuf {

/// Which elements are meant: those whose byte is not 0. A view of the target's shape, itemsize 1.
struct Mask {
  const std::byte* block = nullptr;
  StridedView view = {};
};

struct ConvertOptions {
  /// The numbers of that side are in the byte order that the machine's is not.
  bool target_is_swapped = false;
  bool source_is_swapped = false;

  /// The elements to convert; null: all. Of the others nothing is written and nothing reported.
  const Mask* where = nullptr;

  /// Where overlapping views and pieces of a source in another layout are kept. Null: the host's
  /// memory.
  MemoryResource* scratch = nullptr;
};

/// Converts every element of `source` to the element of `target` at the same index. Each view
/// counts its bytes from its own block. To convert with broadcasting, broadcast the source's view
/// (and the mask's) first.
///
/// Flags tell that some number could not be kept; everything is written nevertheless
/// (ConversionFlags says what). Errors, before anything is written: kValue if a view is malformed,
/// shapes differ, an item size is not its type's, or a block is null though there are elements;
/// kMemory if scratch memory is needed and there is none.
absl::StatusOr<ConversionFlags> convert_elements(std::byte* target_block, const StridedView& target,
                                                 Number target_type, const std::byte* source_block,
                                                 const StridedView& source, Number source_type,
                                                 const ConvertOptions& options = {});

/// Copies the elements of `source` whose byte in the mask is not 0, of any item size, as
/// `copy_elements` does. Bytes of the others are not written. Errors: those of copy_elements, for
/// the mask as well.
absl::Status copy_elements_where(std::byte* target_block, const StridedView& target,
                                 const std::byte* source_block, const StridedView& source,
                                 const std::byte* mask_block, const StridedView& mask,
                                 const CopyOptions& options = {});

}  // namespace gridbuf
