// gridbuf.interface.cuda_array_interface: the fields of the CUDA array interface, version 3 (CAI-01
// … CAI-30).
//
// The protocol is a Python dict like NumPy's, for memory that CUDA devices reach, and one thing
// more: the stream that a consumer waits on before it touches the bytes. This module computes the
// values and leaves the dict to the bindings.
//
// Which memory has this interface: device, managed and pinned memory of CUDA. Plain host memory has
// not, and neither has ROCm's, whose pointers and streams mean something else under this name
// (CAI-28).
//
// Choices where the protocol leaves one. `strides` is absent exactly when the memory is
// C-contiguous (CAI-10). `stream` is always given, because the library cannot know that no work is
// pending (CAI-19), and never 0, which could mean either default stream (CAI-16).
//
// On import, what only the driver knows (which device, how far its allocation reaches) is passed in
// by the caller, as `PointerFacts`; without it the address is believed. A version beyond 3 is
// refused: the last two changed what a consumer has to do before it may touch the memory.
module;

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

export module gridbuf.interface.cuda_array_interface;

import gridbuf.alloc;
import gridbuf.interface;
import gridbuf.interface.array_interface;
import gridbuf.interface.imported;
import gridbuf.layout.extents;

export namespace gridbuf {

inline constexpr int kCudaArrayInterfaceVersion = 3;

/// The values of `stream` that are no handles (CAI-17).
inline constexpr std::uint64_t kCudaLegacyDefaultStream = 1;
inline constexpr std::uint64_t kCudaPerThreadDefaultStream = 2;

struct CudaArrayInterfaceFields {
  Extents shape;                         // CAI-03
  std::string typestr;                   // CAI-04
  std::uintptr_t data_address = 0;       // of element (0, …, 0); 0 if there are none (CAI-06)
  bool readonly = false;                 // CAI-08
  std::optional<Extents> strides_bytes;  // nothing: C-contiguous (CAI-10, CAI-11)
  std::string descr;                     // a Python literal (CAI-14)
  std::uint64_t stream = kCudaLegacyDefaultStream;  // CAI-16 … CAI-18
  int version = kCudaArrayInterfaceVersion;         // CAI-09
};

/// Whether kernels of CUDA devices reach this memory: device, managed and pinned.
constexpr bool is_cuda_accessible(DeviceType type) {
  return type == DeviceType::kCuda || type == DeviceType::kCudaManaged ||
         type == DeviceType::kCudaHost;
}

/// The fields that describe `descriptor`, whose pending work is all ordered before `stream`.
/// Errors: kNoSuchBuffer if CUDA devices do not reach the memory; kValue for stream 0.
absl::StatusOr<CudaArrayInterfaceFields> cuda_array_interface(const BufferDescriptor& descriptor,
                                                              std::uint64_t stream);

// ---- Import. ----

/// What the driver says of an address.
struct PointerFacts {
  Device device;
  bool device_accessible = true;
  std::optional<KnownMemory> allocation;  // that the address lies in; nothing if it cannot tell
};

/// The dict, as found.
struct RawCudaArrayInterface {
  Found<RawExtents> shape;
  Found<std::string> typestr;
  Found<RawDescr> descr;
  Found<RawPointer> data;
  Found<RawExtents> strides_bytes;
  bool has_mask = false;
  Found<std::int64_t> version;
  Found<std::int64_t> stream;
};

/// The memory that the dict describes, on the device that `facts` names or else on device 0, with
/// the stream to wait on; or an error that begins with the id of the rule it breaks: kType for a
/// field of a wrong kind, kValue for one out of its bounds, kBuffer for a mask (CAI-15) and for
/// memory that devices do not reach (CAI-07).
absl::StatusOr<ImportedView> read_cuda_array_interface(
    const RawCudaArrayInterface& raw, const std::optional<PointerFacts>& facts = std::nullopt);

}  // namespace gridbuf
