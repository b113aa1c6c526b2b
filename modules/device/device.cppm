// gridbuf.device: what a device is to gridbuf.
//
// A `DeviceDriver` is everything that gridbuf asks of a device: three kinds of memory besides the
// host's, streams, and work put on streams (copies, fills and kernels). There are two drivers: CUDA
// (gridbuf.device.cuda), and one that is emulated in host memory (gridbuf.device.emulated), on
// which the rules are tested on any machine. gridbuf.device.registry chooses between them.
//
// Key decision. The interface is CUDA's stream model and not a simpler one of ours, because memory
// that leaves through DLPack or the CUDA array interface names a stream with CUDA's meaning: work
// on one stream runs in order; only events and the legacy default stream order two streams.
// Everything here is *enqueued* unless it says that it waits. 0 is not a handle: it means different
// streams to different libraries (DP-16).
//
// Threads: every function may be called on any thread. After fork a driver answers
// kDeviceUnavailable in the child, because CUDA contexts do not survive there. While a process ends
// nothing is given back: a driver may end before the last block does.
module;

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

export module gridbuf.device;

import gridbuf.alloc;

export namespace gridbuf {

/// What the parameter `memory` calls it: "host", "pinned", "managed" or "device".
std::string_view memory_name(DeviceType type);

/// The type of that name: the host's, or one of CUDA's. Error: kValue, listing the names.
absl::StatusOr<DeviceType> memory_type(std::string_view name);

/// A device that reports memory of this type: the ordinal only counts for kCuda.
constexpr Device device_of(DeviceType type, std::int32_t ordinal) {
  return {type, type == DeviceType::kCuda ? ordinal : 0};
}

/// A stream, as the CUDA array interface and DLPack write it. Never 0.
using StreamHandle = std::uint64_t;
inline constexpr StreamHandle kLegacyDefaultStream = 1;
inline constexpr StreamHandle kPerThreadDefaultStream = 2;

/// The stream on which this thread allocates and which exports name: the innermost ScopedStream's,
/// else the legacy default stream.
StreamHandle current_stream() noexcept;

/// Sets this thread's current stream and returns the one before. For bindings; C++ code takes
/// ScopedStream. The handle is not checked: DeviceDriver::check_stream does that.
StreamHandle exchange_current_stream(StreamHandle stream) noexcept;

/// The current stream of this thread while the object lives. The stream must outlive the memory
/// that is allocated on it (CAI-22).
class ScopedStream {
 public:
  explicit ScopedStream(StreamHandle stream) noexcept
      : previous_(exchange_current_stream(stream)) {}
  ~ScopedStream() { exchange_current_stream(previous_); }
  ScopedStream(const ScopedStream&) = delete;
  ScopedStream& operator=(const ScopedStream&) = delete;

 private:
  StreamHandle previous_;
};

/// What a driver knows of an address; the default for ordinary host memory.
struct PointerInfo {
  Device device = {};
  std::uintptr_t base = 0;        // where the allocation begins that holds the address …
  std::int64_t length_bytes = 0;  // … and how long it is
  bool host_accessible = true;
  bool device_accessible = false;
};

/// Rows of bytes at equal distances, for DeviceDriver::copy_rows. Pitches are at least row_bytes.
struct RowCopy {
  void* target = nullptr;
  std::int64_t target_pitch_bytes = 0;
  const void* source = nullptr;
  std::int64_t source_pitch_bytes = 0;
  std::int64_t row_bytes = 0;
  std::int64_t row_count = 0;
};

/// Memory that a kernel reads or writes: [begin, begin + length_bytes).
struct KernelOperand {
  std::string_view role;  // for messages: "the copy's target"
  const void* begin = nullptr;
  std::int64_t length_bytes = 0;
};

/// A kernel in two forms that do the same, for a GPU and for the emulated device. Both get
/// `arguments`, bytes that may be copied.
struct DeviceKernel {
  std::string_view name;
  /// Runs it in the host's memory, where operands[i] are the bytes of `operands[i].begin`.
  void (*on_host)(const void* arguments, std::span<std::byte* const> operands) = nullptr;
  /// Enqueues it on the current CUDA device; a cudaError_t, 0 = done.
  int (*on_cuda)(const void* arguments, StreamHandle stream) = nullptr;
  std::span<const std::byte> arguments = {};
  /// All that it touches.
  std::span<const KernelOperand> operands = {};
};

/// How many bytes a RowCopy reaches over on either side.
struct RowExtents {
  std::int64_t target_bytes = 0;
  std::int64_t source_bytes = 0;
};

/// Errors: kValue for negative numbers, rows that overlap, and extents beyond 2^63 - 1 bytes.
absl::StatusOr<RowExtents> check(const RowCopy& rows);

/// kValue unless 0 or more.
absl::Status check_length(std::string_view name, std::int64_t length_bytes);

enum class StreamKind : std::uint8_t {
  kBlocking,     // ordered with the legacy default stream
  kNonBlocking,  // ordered with nothing but events
};

/// A device, and the software that drives it. Drivers live as long as the process.
///
/// Errors: kDeviceUnavailable after fork; kValue for a stream that is not alive, an address that
/// the driver does not know, or a length beyond its allocation; kInternal for failures of the
/// device. A later call that waits reports a failure of enqueued work.
class DeviceDriver {
 public:
  /// The names of its resources: of kPinned, kManaged, kDevice. Static text.
  explicit DeviceDriver(const std::array<std::string_view, 3>& names)
      : resources_{{{*this, DeviceType::kCudaHost, names[0]},
                    {*this, DeviceType::kCudaManaged, names[1]},
                    {*this, DeviceType::kCuda, names[2]}}} {}
  DeviceDriver(const DeviceDriver&) = delete;
  DeviceDriver& operator=(const DeviceDriver&) = delete;
  virtual ~DeviceDriver() = default;

  virtual std::string_view name() const noexcept = 0;  // "cuda", "emulated"
  virtual bool is_emulated() const noexcept = 0;

  /// The source of memory of one of CUDA's types. Blocks of kCuda are made and freed in the order
  /// of the current stream, and say so in their info: work on another stream, and reads of their
  /// zeros, must be ordered after it. Pinned and managed memory can be used at once, and is freed
  /// when the device has finished with it.
  MemoryResource& resource(DeviceType type) {
    return resources_[type == DeviceType::kCudaHost ? 0 : type == DeviceType::kCudaManaged ? 1 : 2];
  }

  /// The device that is current on this thread; kCuda and its ordinal.
  virtual absl::StatusOr<Device> current_device() = 0;

  // --- Work on a stream --------------------------------------------------------------------------

  /// Enqueues a copy; the direction follows from the addresses. Ordinary host memory has been read
  /// or written at return. Pinned and managed memory is in use until the stream has been waited
  /// for.
  virtual absl::Status copy(void* target, const void* source, std::int64_t length_bytes,
                            StreamHandle stream) = 0;
  virtual absl::Status copy_rows(const RowCopy& rows, StreamHandle stream) = 0;
  /// Enqueues writing `value` to every byte. The target is known to the driver.
  virtual absl::Status fill(void* target, std::byte value, std::int64_t length_bytes,
                            StreamHandle stream) = 0;
  /// Enqueues a kernel. Its operands are memory of the current device, which is not freed before it
  /// has run. `kernel` may be gone at return.
  virtual absl::Status launch(const DeviceKernel& kernel, StreamHandle stream) = 0;
  /// Waits for what the stream, or the whole device, has pending now.
  virtual absl::Status synchronize(StreamHandle stream) = 0;
  virtual absl::Status synchronize_device() = 0;
  /// Work that `consumer` gets from now on waits for what `producer` has pending now.
  virtual absl::Status order_after(StreamHandle producer, StreamHandle consumer) = 0;

  // --- Streams -----------------------------------------------------------------------------------

  virtual absl::StatusOr<StreamHandle> create_stream(StreamKind kind) = 0;
  /// Its pending work still runs. Error: kValue for handles that create_stream did not give.
  virtual absl::Status destroy_stream(StreamHandle stream) = 0;
  /// Error: kValue for 0 and for what is not a live stream, as far as the driver can tell: CUDA
  /// itself may crash on a number that is not a stream.
  virtual absl::Status check_stream(StreamHandle stream) = 0;
  /// Whether nothing is pending. Asking again and again ends with true.
  virtual absl::StatusOr<bool> is_idle(StreamHandle stream) = 0;

  // --- Addresses ---------------------------------------------------------------------------------

  virtual absl::StatusOr<PointerInfo> pointer_info(const void* address) = 0;
  /// Says that `stream`, which the consumer of an export named, may use the block at `address`. The
  /// memory is then kept until that stream has done what it has pending at the release. Addresses
  /// that the driver does not know are ignored.
  virtual void note_use(const void* address, StreamHandle stream) noexcept = 0;

  /// What a bug report should say, in order: ("runtime", "13.0"), ("device 0", …).
  virtual std::vector<std::pair<std::string, std::string>> info() = 0;

 private:
  /// What resource(type).allocate(request) does.
  virtual absl::StatusOr<Block> allocate(DeviceType kind, const AllocationRequest& request) = 0;

  class Resource final : public MemoryResource {
   public:
    Resource(DeviceDriver& driver, DeviceType kind, std::string_view name)
        : driver_(driver), kind_(kind), name_(name) {}
    absl::StatusOr<Block> allocate(const AllocationRequest& request) override {
      return driver_.allocate(kind_, request);
    }
    std::string_view name() const noexcept override { return name_; }

   private:
    DeviceDriver& driver_;
    DeviceType kind_;
    std::string_view name_;
  };

  std::array<Resource, 3> resources_;
};

/// 1 and 2 and every other handle but 0 pass; for 0 the error says what to pass instead.
absl::Status check_stream_number(StreamHandle stream);

// --- The process ---------------------------------------------------------------------------------

/// Whether the process has begun to end. Drivers then give nothing back.
bool process_is_exiting() noexcept;
/// Says that it has: for exit handlers.
void note_process_exit() noexcept;

/// The process that started a driver, for which alone it works.
class DriverProcess {
 public:
  DriverProcess();
  bool is_this_process() const noexcept;
  /// Error: kDeviceUnavailable in a child after fork, saying so and what to do.
  absl::Status check(std::string_view driver_name) const;

 private:
  std::int64_t process_id_;
};

}  // namespace gridbuf
