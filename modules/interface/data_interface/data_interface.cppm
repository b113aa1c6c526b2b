// gridbuf.interface.data_interface: what one entry of `__gt_data_interface__` holds (GT-01 …
// GT-10).
//
// The protocol is a dict of dicts: one entry for the host, under None, and one for the device,
// under "gpu". An entry says what an array interface says and three things more: the names of the
// dimensions, the halo, and functions that a consumer calls before it reads (`acquire`), after it
// has written (`touch`) and when it is done (`release`). This module computes the values; the dict
// and the functions are the bindings'.
//
// The key choice: an entry is a whole array interface of its side (NumPy's for the host, CUDA's for
// "gpu"), so that a consumer may hand it on as one (GT-02, GT-06). `strides` is always written out,
// because the proposal asks for it and array interfaces allow it.
//
// On import an entry is read as the array interface of its side, whatever else is in it (GT-06).
// Names of dimensions are passed on as they are: which ones are known is for the caller to say.
module;

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

export module gridbuf.interface.data_interface;

import gridbuf.interface;
import gridbuf.interface.array_interface;
import gridbuf.interface.cuda_array_interface;
import gridbuf.interface.imported;
import gridbuf.layout.dims;
import gridbuf.layout.extents;
import gridbuf.layout.halo;

export namespace gridbuf {

/// Whose reads and writes an entry is for: the key of the outer dict (GT-01).
enum class DataSide : std::uint8_t { kHost, kGpu };

/// The key of the device's entry; the host's is None.
inline constexpr std::string_view kGpuKey = "gpu";

/// The keys of an entry beyond those of an array interface (GT-03 … GT-05).
inline constexpr std::string_view kAcquireKey = "acquire";
inline constexpr std::string_view kReleaseKey = "release";
inline constexpr std::string_view kTouchKey = "touch";
inline constexpr std::string_view kDimsKey = "dims";
inline constexpr std::string_view kHaloKey = "halo";

struct DataInterfaceFields {
  Extents shape;
  std::string typestr;
  std::uintptr_t data_address = 0;  // on the device 0 if there are no elements (CAI-06)
  bool readonly = false;
  Extents strides_bytes;                // always given
  std::string descr;                    // a Python literal
  std::optional<std::uint64_t> stream;  // the device's entry only
  int version = 0;                      // of the array interface that the entry is
  Dims dims;                            // GT-04
  Halo halo;                            // GT-05
};

/// The sides that reach `descriptor`'s memory: managed and pinned memory has both.
bool has_side(const BufferDescriptor& descriptor, DataSide side);

/// The entry of `side`. `stream` is for the device: what its pending work is ordered before.
/// Errors: kNoSuchBuffer if that side does not reach the memory; kValue for dims or halo that do
/// not fit the shape (an empty halo is none), and for stream 0.
absl::StatusOr<DataInterfaceFields> data_interface(const BufferDescriptor& descriptor,
                                                   DataSide side, const Dims& dims,
                                                   const Halo& halo, std::uint64_t stream);

// ---- Import. ----

/// An entry, as found: of `host` and `gpu` the one of its side.
struct RawDataInterface {
  DataSide side = DataSide::kHost;
  RawArrayInterface host;
  RawCudaArrayInterface gpu;
  Found<std::vector<std::string>> dims;
  Found<std::vector<HaloWidth>> halo;
  // Whether each is callable.
  Found<bool> acquire;
  Found<bool> release;
  Found<bool> touch;
};

/// What an entry says beyond an array interface.
struct EntryMeaning {
  std::vector<std::string> dims;  // ndim names, or none if the entry has none
  Halo halo;                      // ndim pairs, or none if the entry has none
};

/// An entry that passed all checks.
struct ImportedEntry {
  ImportedView view;
  EntryMeaning meaning;
};

/// The memory that an entry describes; errors as those of its side's array interface, and of kType
/// and kValue for what only entries have (GT-03 … GT-05). `facts` are those of the address, for the
/// device's side.
absl::StatusOr<ImportedEntry> read_data_interface(
    const RawDataInterface& raw, const std::optional<PointerFacts>& facts = std::nullopt);

/// Names and halo alone, for an array of `shape` (GT-04, GT-05).
absl::StatusOr<EntryMeaning> read_meaning(const RawDataInterface& raw, const Extents& shape);

/// Whether the functions of an entry can be called; to be asked before `acquire` is (GT-03).
absl::Status check_hooks(const RawDataInterface& raw);

}  // namespace gridbuf
