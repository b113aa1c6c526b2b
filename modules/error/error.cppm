// gridbuf.error: what can go wrong, and what each thing is called.
//
// Every module of gridbuf reports failure as an absl::Status. Python needs more than the sixteen
// canonical codes say: ValueError and TypeError are both "invalid argument". So each status that
// gridbuf makes carries the error class as a payload, and this module holds the only table between
// the two worlds: class, canonical code, Python exception and its base. The bindings read the
// table; nothing else in the project decides which exception is raised.
//
// A payload, not a code of our own: a status from elsewhere (Abseil, a user's resource) has no
// payload and still maps, by its canonical code, so that no failure reaches Python without a class.
//
// The second half builds messages. A message says three things: the value that was found, the bound
// it broke, and what to do about it. `Problem` has one field for each, so a message that lacks one
// is visible where it is written.
module;

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"

export module gridbuf.error;

export namespace gridbuf {

/// The kinds of failure that a user can tell apart. The order is that of kErrorTable.
enum class ErrorClass : std::uint8_t {
  kValue,              // a value out of its bounds
  kType,               // a value of the wrong kind
  kIndex,              // an index out of bounds
  kMemory,             // no memory; nothing was allocated and no state changed
  kBuffer,             // memory that cannot be exported or imported as asked
  kNoSuchBuffer,       // the asked side (host or device) does not exist
  kDeviceUnavailable,  // no device, or the library that drives it is absent
  kSyncConflict,       // host and device both hold newer data in the same region
  kInternal,           // a broken invariant of gridbuf itself: please report it
};

struct ErrorRow {
  ErrorClass error_class;
  absl::StatusCode code;
  std::string_view python_name;  // the exception raised
  std::string_view python_base;  // its base; "" for Python's own exceptions
};

/// The one table status ↔ exception. A status without a payload takes the first row that has its
/// code.
inline constexpr std::array<ErrorRow, 9> kErrorTable{{
    {ErrorClass::kValue, absl::StatusCode::kInvalidArgument, "ValueError", ""},
    {ErrorClass::kType, absl::StatusCode::kInvalidArgument, "TypeError", ""},
    {ErrorClass::kIndex, absl::StatusCode::kOutOfRange, "IndexError", ""},
    {ErrorClass::kMemory, absl::StatusCode::kResourceExhausted, "MemoryError", ""},
    {ErrorClass::kBuffer, absl::StatusCode::kFailedPrecondition, "BufferError", ""},
    {ErrorClass::kNoSuchBuffer, absl::StatusCode::kNotFound, "GTNoSuchBufferError", "BufferError"},
    {ErrorClass::kDeviceUnavailable, absl::StatusCode::kUnavailable, "DeviceUnavailableError",
     "RuntimeError"},
    {ErrorClass::kSyncConflict, absl::StatusCode::kAborted, "SyncConflictError", "RuntimeError"},
    {ErrorClass::kInternal, absl::StatusCode::kInternal, "RuntimeError", ""},
}};

/// The row of a class. Total: every enumerator has its row.
constexpr const ErrorRow& error_row(ErrorClass error_class) {
  return kErrorTable[static_cast<std::size_t>(error_class)];
}

/// The class of a failed status: from its payload, else from its code (a code without a row counts
/// as internal). Precondition: !status.ok().
ErrorClass error_class_of(const absl::Status& status);

/// The three things a message says.
///   {"alignment_bytes", "0", "an integer from 1 to 1048576", "pass 1 for no constraint"} reads
///   "alignment_bytes is 0, but must be an integer from 1 to 1048576; pass 1 for no constraint"
struct Problem {
  std::string_view name;    // what is wrong: a parameter or a property, with its unit in the name
  std::string_view found;   // the value found
  std::string_view bound;   // what it must be, read after "must be"
  std::string_view advice;  // what to do, an imperative
};

std::string problem_text(const Problem& problem);

/// A status of the given class. `message` is a whole message; prefer the forms that take a Problem.
absl::Status make_error(ErrorClass error_class, std::string_view message);
absl::Status make_error(ErrorClass error_class, const Problem& problem);

/// The same failure with `context` put before its message ("context: message"); class and code are
/// kept. An OK status stays OK.
absl::Status with_context(const absl::Status& status, std::string_view context);

/// "1.5 GiB (1610612736 bytes)"; below 1 KiB only "513 bytes".
std::string bytes_text(std::int64_t bytes);

}  // namespace gridbuf
