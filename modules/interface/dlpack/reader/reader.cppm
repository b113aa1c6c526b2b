// gridbuf.interface.dlpack.reader: DLPack tensors that come in (DL-07 … DL-30, DP-05, DP-08, DP-09,
// DP-31 … DP-33).
//
// A managed tensor is a struct that somebody else made and that must be given back, exactly once,
// through its own deleter. So reading and owning are one step here: `take` takes the struct over in
// every case. Either the view that it returns owns it (the deleter runs when the last share of the
// view's owner is dropped), or it is refused and the deleter has run before `take` returns. There
// is no path on which it runs twice or never, and none on which the caller has to remember
// anything. (Libraries that stole first and checked later freed such tensors twice; pytorch
// #56789, numpy #32697.)
//
// What is believed: nothing that can be checked. Of a newer major version only the deleter is
// touched, whose place is the one thing that never changes (DL-22). Unknown devices, element types
// and packed sub-byte elements are refused and not guessed (DL-23, DL-25). `manager_ctx` is never
// looked at (DL-28).
//
// Nothing here knows Python: capsules, and who calls a deleter when, are the bindings'.
module;

#include <cstdint>

#include "absl/status/statusor.h"

export module gridbuf.interface.dlpack.reader;

import gridbuf.interface.dlpack;
import gridbuf.interface.imported;

export namespace gridbuf::dlpack {

/// What surrounds a tensor and decides how it is read.
struct TensorForm {
  bool versioned = false;
  std::uint32_t minor_version = 0;  // of versioned tensors; newer ones than ours are fine
  std::uint64_t flags = 0;          // unknown bits are ignored
};

/// The memory that `tensor` describes; nobody owns it. Errors, all kBuffer, begin with the id of
/// the rule that is broken.
absl::StatusOr<ImportedView> read_tensor(const DLTensor& tensor, const TensorForm& form);

/// Takes `managed` over, which must not be null, and reads it. The view's owner calls the deleter
/// (which may be null, DL-19) on whatever thread drops its last share. On an error the deleter has
/// been called.
absl::StatusOr<ImportedView> take(DLManagedTensor* managed);
absl::StatusOr<ImportedView> take(DLManagedTensorVersioned* managed);

/// Whether the fields after the deleter may be read: the major version is ours (DL-22).
bool is_readable(const DLManagedTensorVersioned& managed);

}  // namespace gridbuf::dlpack
