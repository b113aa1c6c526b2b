// gridbuf.interface.buffer: what each request of the buffer protocol (PEP 3118) gets (PB-01 …
// PB-34), and the check of a Py_buffer that an exporter filled in.
//
// A consumer asks for a buffer with a set of flags: how much it can cope with (strides, a
// contiguity) and what it needs (writing, a format). The exporter must either meet all of it or
// refuse with a BufferError, and must leave out what was not asked for. That decision is made here,
// without Python.h, so that the rules are tested over all flag sets.
//
// Choices where the documents leave one. Requests without a shape see one dimension of bytes, as a
// memoryview answers them; 0-d stays 0-d. FORMAT without ND is refused: such a request already
// means unsigned bytes. Nothing has suboffsets, and an exporter's are refused (PB-32).
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
inline constexpr int kContig = kNd | kWritable;
inline constexpr int kContigRo = kNd;
inline constexpr int kStrided = kStrides | kWritable;
inline constexpr int kStridedRo = kStrides;
inline constexpr int kRecords = kStrides | kWritable | kFormat;
inline constexpr int kRecordsRo = kStrides | kFormat;
inline constexpr int kFull = kIndirect | kWritable | kFormat;
inline constexpr int kFullRo = kIndirect | kFormat;
}  // namespace pybuf

/// The fields of a Py_buffer but for `obj` and `internal`. The pointers lead into the descriptor
/// that was asked (PB-25): it must live, unchanged, until the buffer is released.
struct BufferFields {
  std::byte* buf = nullptr;             // element (0, …, 0)
  std::int64_t len_bytes = 0;           // elements × itemsize, also for strided memory (PB-03)
  std::int64_t itemsize_bytes = 0;      // whatever the flags (PB-05)
  bool readonly = false;                // of the memory, whatever was asked (PB-14)
  int ndim = 0;                         // 0 or 1 without ND
  const char* format = nullptr;         // only if asked for (PB-06, PB-07)
  const std::int64_t* shape = nullptr;  // ndim entries, from ND up; null for 0-d (PB-08, PB-15)
  // ndim entries, from STRIDES up; null for 0-d (PB-09, PB-15)
  const std::int64_t* strides_bytes = nullptr;
};

/// What the request `flags` gets. Error kBuffer, with what was asked and what the memory is, if it
/// cannot be met: no format for the element type, a contiguity the memory has not, writing on
/// read-only memory, unknown flags. Error kNoSuchBuffer: the memory is not readable by the host.
absl::StatusOr<BufferFields> answer_buffer_request(const BufferDescriptor& descriptor, int flags);

/// A Py_buffer as an exporter filled it in for kFullRo or kFull. The pointers lead to what the
/// exporter keeps until the buffer is released; nothing beyond `ndim` entries is read.
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

/// The memory of a Py_buffer, on the host; or an error of class kBuffer that begins with the id of
/// the rule that is broken. The view must not be used after the buffer was released (PB-35).
absl::StatusOr<ImportedView> read_buffer(const ForeignBuffer& found);

}  // namespace gridbuf
