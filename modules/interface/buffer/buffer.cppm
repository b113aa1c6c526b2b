// gridbuf.interface.buffer: answers to requests of the buffer protocol (PEP 3118; PB-01 … PB-35),
// and the check of a Py_buffer that an exporter filled in.
//
// A consumer requests a buffer with a set of flags. They name what it can handle (strides, a
// contiguity) and what it needs (writing, a format). The exporter must meet the whole request or
// refuse with a BufferError, and must leave out fields that were not requested. This library
// decides without Python.h, so that the tests can cover all sets of flags.
//
// Choices where the documents leave one. Requests without a shape see one dimension of bytes, as in
// memoryview; 0-d stays 0-d. FORMAT without ND is refused, because such a request already means
// unsigned bytes. Exports never have suboffsets, and imports with suboffsets are refused (PB-32).
module;

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/statusor.h"

export module gridbuf.interface.buffer;

export import gridbuf.interface;

export namespace gridbuf {

/// The request flags, with CPython's values (they are part of its stable ABI).
namespace pybuf {
inline constexpr int kSimple = 0;
inline constexpr int kWritable = 0x1;
inline constexpr int kFormat = 0x4;
inline constexpr int kNd = 0x8;
inline constexpr int kStrides = 0x10 | kNd;
inline constexpr int kCContiguous = 0x20 | kStrides;
inline constexpr int kFContiguous = 0x40 | kStrides;
inline constexpr int kAnyContiguous = 0x80 | kStrides;
inline constexpr int kIndirect = 0x100 | kStrides;
inline constexpr int kStrided = kStrides | kWritable;
inline constexpr int kStridedRo = kStrides;
inline constexpr int kRecords = kStrides | kWritable | kFormat;
inline constexpr int kRecordsRo = kStrides | kFormat;
inline constexpr int kFull = kIndirect | kWritable | kFormat;
inline constexpr int kFullRo = kIndirect | kFormat;
}  // namespace pybuf

/// The fields of a Py_buffer except for `obj` and `internal`. The pointers point into the
/// descriptor (PB-25), which must live, unchanged, until the buffer is released.
struct BufferFields {
  std::byte* buf = nullptr;             // element (0, …, 0)
  std::int64_t len_bytes = 0;           // elements × itemsize, also for strided memory (PB-03)
  std::int64_t itemsize_bytes = 0;      // for all flags (PB-05)
  bool readonly = false;                // of the memory, for all flags (PB-14)
  int ndim = 0;                         // 0 or 1 without ND
  const char* format = nullptr;         // only if requested (PB-06, PB-07)
  const std::int64_t* shape = nullptr;  // ndim entries, from ND up; null for 0-d (PB-08, PB-15)
  // ndim entries, from STRIDES up; null for 0-d (PB-09, PB-15)
  const std::int64_t* strides_bytes = nullptr;
};

/// The answer to the request `flags`. Error kBuffer, naming request and memory, for an element type
/// without a format, a contiguity that the memory does not have, writing to read-only memory, or
/// unknown flags. Error kNoSuchBuffer: the host cannot read the memory.
absl::StatusOr<BufferFields> answer_buffer_request(const BufferDescriptor& descriptor, int flags);

/// A Py_buffer that an exporter filled in for kFullRo or kFull. The exporter keeps the memory
/// behind the pointers until the buffer is released; the reader reads at most `ndim` entries.
struct ForeignBuffer {
  const void* buf = nullptr;
  std::int64_t len_bytes = 0;
  std::int64_t itemsize_bytes = 0;
  bool readonly = false;
  int ndim = 0;
  std::optional<std::string_view> format;  // nothing: unsigned bytes (PB-07)
  const std::int64_t* shape = nullptr;
  const std::int64_t* strides_bytes = nullptr;  // null: C order (PB-09)
  const std::int64_t* suboffsets = nullptr;
};

/// A kBuffer error, which begins with the id of the broken rule, if the numbers and pointers are
/// not those that a reader of the other fields needs.
absl::Status check_counts(const ForeignBuffer& found);

/// The memory of a Py_buffer, on the host; or a kBuffer error that begins with the id of the broken
/// rule. Do not use the view after the release of the buffer (PB-35).
absl::StatusOr<ImportedView> read_buffer(const ForeignBuffer& found);

}  // namespace gridbuf
