// gridbuf.base: what every library of gridbuf uses: errors, device types, what the system reports,
// threads.
//
// Errors. Every library reports failure as an absl::Status. Each error class has its own code, so
// that a status needs no payload, which Abseil would print after the message.
//
// System. The paths of the kernel's reports are a value, `Reports`, so that a test can pass its
// files. An absent report means no limit, because containers hide files.
//
// Threads. `parallel_for` starts threads at its first use and keeps them: a start and an end cost
// 50 µs, in which one thread copies a mebibyte. They end before a fork. A child of a process that
// forked starts separate ones. Each thread owns one contiguous share of the range, so that the
// memory that it touches first is on its NUMA node, and an array used again is in its caches.
module;

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

export module gridbuf.base;

export namespace gridbuf {

// ---- Errors. ----

/// The kinds of failure that a user can tell apart, in the order of kErrorTable.
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

/// A class of errors: its status code and its Python exception.
struct ErrorRow {
  ErrorClass error_class;
  absl::StatusCode code;
  std::string_view python_name;  // the exception raised
  std::string_view python_base;  // its base; "" for Python's own exceptions
};

/// The one table status ↔ exception. No two rows have one code.
inline constexpr std::array<ErrorRow, 9> kErrorTable{{
    {ErrorClass::kValue, absl::StatusCode::kInvalidArgument, "ValueError", ""},
    {ErrorClass::kType, absl::StatusCode::kUnimplemented, "TypeError", ""},
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

/// The class of a failed status, from its code. A code without a row is kInternal. Precondition:
/// !status.ok().
ErrorClass error_class_of(const absl::Status& status);

/// The parts of a message.
///   {"alignment_bytes", "0", "an integer from 1 to 1048576", "pass 1 for no constraint"} reads
///   "alignment_bytes is 0, but must be an integer from 1 to 1048576; pass 1 for no constraint"
struct Problem {
  std::string_view name;    // the parameter or property, with its unit in the name
  std::string_view found;   // the value found
  std::string_view bound;   // what it must be, read after "must be"
  std::string_view advice;  // what to do, an imperative
};

/// The message, as in the example above.
std::string problem_text(const Problem& problem);

/// A status of the given class. Prefer the form that takes a Problem to a whole `message`.
absl::Status make_error(ErrorClass error_class, std::string_view message);
absl::Status make_error(ErrorClass error_class, const Problem& problem);

/// The failure with `context` before its message ("context: message"). Class and code stay. An OK
/// status stays OK.
absl::Status with_context(const absl::Status& status, std::string_view context);

/// "1.5 GiB (1610612736 bytes)"; below 1 KiB only "513 bytes".
std::string bytes_text(std::int64_t bytes);

// ---- Devices. ----

/// Where memory is. The values are DLPack's DLDeviceType (DL-17).
enum class DeviceType : std::int32_t {
  kHost = 1,
  kCuda = 2,
  kCudaHost = 3,  // pinned
  kRocm = 10,
  kRocmHost = 11,  // pinned
  kCudaManaged = 13,
};

/// A device: its kind and its number.
struct Device {
  DeviceType type = DeviceType::kHost;
  std::int32_t id = 0;  // 0 for host, pinned and managed memory

  friend constexpr bool operator==(const Device&, const Device&) = default;
};

/// "host", "cuda:1", "device type 7:0".
std::string to_string(const Device& device);

/// What memory is, whichever device it belongs to.
enum class MemoryKind : std::uint8_t {
  kHost,
  kPinned,   // of the host, which a device reaches
  kManaged,  // of both
  kDevice,
};
/// Of memory whose device has this type.
constexpr MemoryKind memory_kind(DeviceType type) {
  switch (type) {
    case DeviceType::kHost:
      return MemoryKind::kHost;
    case DeviceType::kCudaHost:
    case DeviceType::kRocmHost:
      return MemoryKind::kPinned;
    case DeviceType::kCudaManaged:
      return MemoryKind::kManaged;
    case DeviceType::kCuda:
    case DeviceType::kRocm:
      break;
  }
  return MemoryKind::kDevice;
}

/// "host", "pinned", "managed" or "device": a value of the parameter `memory`.
std::string_view to_string(MemoryKind kind);

/// Whether plain loads and stores of the processor reach this memory: host, pinned and managed.
constexpr bool is_host_readable(DeviceType type) {
  return memory_kind(type) != MemoryKind::kDevice;
}

/// Where an access to memory, or a copy of it, is.
enum class Side : std::uint8_t { kHost, kDevice };

/// Whether memory is on a side: the host reads it, or it is a device's. Managed memory is on both.
constexpr bool is_on(Side side, MemoryKind kind) {
  if (side == Side::kHost) return kind != MemoryKind::kDevice;
  return kind == MemoryKind::kDevice || kind == MemoryKind::kManaged;
}

/// The opposite side.
constexpr Side other(Side side) { return side == Side::kHost ? Side::kDevice : Side::kHost; }
/// "host", "device".
std::string_view to_string(Side side);

/// Whether kernels of CUDA devices reach this memory: device, managed and pinned.
constexpr bool is_cuda_accessible(DeviceType type) {
  return type == DeviceType::kCuda || type == DeviceType::kCudaManaged ||
         type == DeviceType::kCudaHost;
}

}  // namespace gridbuf

export namespace gridbuf::system {

// ---- What Linux reports. ----

// All functions are safe on any thread. Each call reads the reports again, in some tens of
// microseconds.

/// The result where nothing limits memory, or where nothing could be read.
inline constexpr std::int64_t kUnlimitedBytes = std::numeric_limits<std::int64_t>::max();

/// The files in which Linux reports. Tests set other paths.
struct Reports {
  std::string meminfo = "/proc/meminfo";
  std::string own_cgroups = "/proc/self/cgroup";
  std::string cgroup_mount = "/sys/fs/cgroup";
  std::string transparent_hugepage = "/sys/kernel/mm/transparent_hugepage";
  std::string own_mappings = "/proc/self/smaps";
  std::string caches = "/sys/devices/system/cpu/cpu0/cache";
};

/// How many bytes could be committed now without the out-of-memory killer. The result is the
/// smallest of these: the system's MemAvailable + SwapFree, and the remaining bytes of each memory
/// cgroup from that of this process to the root. File pages do not count: the kernel frees them
/// first.
std::int64_t committable_bytes(const Reports& reports = {});

/// The number of processors that this process may use, at least 1. Its affinity mask and the quotas
/// of its cgroups limit it; a quota of 1.5 processors counts as 2.
int usable_cpu_count(const Reports& reports = {});

/// The length of the last-level cache of the first processor, which other processors may share; 32
/// MiB where nothing is reported.
std::int64_t last_cache_bytes(const Reports& reports = {});

/// The length of an ordinary page.
std::int64_t page_bytes();

/// The system's setting: which memory gets transparent huge pages.
enum class HugePageMode : std::uint8_t {
  kAbsent,   // no report: the kernel lacks huge pages, or hides the setting
  kNever,    // none
  kMadvise,  // memory for which the program asks
  kAlways,   // all
};

/// "absent", "never", "madvise", "always": the words of the report.
std::string_view to_string(HugePageMode mode);

/// How the kernel uses transparent huge pages.
struct HugePageReport {
  HugePageMode mode = HugePageMode::kAbsent;
  std::int64_t page_bytes = std::int64_t{1} << 21;  // 2 MiB where the report does not say

  friend bool operator==(const HugePageReport&, const HugePageReport&) = default;
};

/// The report of this machine; tests pass other reports.
HugePageReport huge_pages(const Reports& reports = {});

/// Sums over the mappings that a range touches. The kernel joins neighbouring mappings and counts
/// per mapping, so each sum is an upper bound for the range.
struct MappedPages {
  std::int64_t mapped_bytes = 0;    // the length of those mappings
  std::int64_t resident_bytes = 0;  // in memory
  std::int64_t huge_bytes = 0;      // in memory on transparent huge pages

  friend bool operator==(const MappedPages&, const MappedPages&) = default;
};

/// Returns nothing if the kernel does not report it.
std::optional<MappedPages> mapped_pages(const void* address, std::int64_t length_bytes,
                                        const Reports& reports = {});

}  // namespace gridbuf::system

export namespace gridbuf {

// ---- Threads. ----

/// The most threads that a setting may ask for. More do not make memory faster.
inline constexpr int kMaxThreadCount = 256;

/// The variable that sets the number of threads at the start of the process.
inline constexpr const char* kThreadCountVariable = "GRIDBUF_NUM_THREADS";

/// How many threads a large job may use, including the caller's; at least 1. In this order: the
/// last number set; GRIDBUF_NUM_THREADS, if it is an integer from 1 to kMaxThreadCount;
/// system::usable_cpu_count(), read at the first call.
int thread_count();

/// Sets the number for the whole process, from the next job on. Error: kValue unless 1 to
/// kMaxThreadCount.
absl::Status set_thread_count(int count);

/// The origin of the number, for messages: "set by the program", "GRIDBUF_NUM_THREADS", "processors
/// of this process". It also reports a variable that is not a valid number.
std::string thread_count_origin();

/// Work on the bytes [begin, end) of a job. Called from several threads at once.
using ChunkFunction = absl::FunctionRef<void(std::int64_t begin, std::int64_t end)>;

/// Calls `work` once for each of the consecutive chunks of [0, total). All chunks are `chunk` long;
/// the last may be shorter. Uses the caller's thread and at most thread_count() - 1 others; fewer
/// if the system refuses threads, none in a call from within `work`.
///
/// Returns when all work is done; its writes are then visible to the caller. If calls of `work`
/// throw, throws the first of their exceptions, and chunks may have been left out. Does nothing for
/// total ≤ 0. Requires chunk ≥ 1. Between jobs, threads sleep; one wakes in some 15 µs.
void parallel_for(std::int64_t total, std::int64_t chunk, ChunkFunction work);

}  // namespace gridbuf
