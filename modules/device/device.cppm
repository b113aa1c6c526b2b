// gridbuf.device: the interface of a device.
//
// A `DeviceDriver` has streams, work on streams (copies, fills and kernels), and three kinds of
// memory in addition to the host's. gridbuf has two drivers. gridbuf.device.cuda drives CUDA
// devices. gridbuf.device.emulated is a device in host memory, on which any machine can test the
// rules. gridbuf.device.registry chooses between them.
//
// Key decision. The interface is CUDA's stream model and not a simpler model, because exports
// through DLPack and the CUDA array interface name streams with CUDA's meaning. Work on one stream
// runs in order. Only events and the legacy default stream order the work of two streams. Functions
// *enqueue* their work unless their comment says that they wait. 0 is not a handle: different
// libraries mean different streams by it (DP-16).
//
// Threads: every function may be called on any thread. After fork a driver answers
// kDeviceUnavailable in the child, because CUDA contexts do not survive there. At the exit of the
// process drivers do not release anything, because a driver may end before the last block.
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

export import gridbuf.alloc;

export namespace gridbuf {

/// The kind of that name, a value of the parameter `memory`. Error: kValue, listing the names.
absl::StatusOr<MemoryKind> memory_kind_named(std::string_view name);

/// The device of memory of this type. Only memory of kDevice uses the ordinal.
constexpr Device device_of(DeviceType type, std::int32_t ordinal) {
  return {type, memory_kind(type) == MemoryKind::kDevice ? ordinal : 0};
}

/// The device of memory of a kind, for CUDA's driver and for the emulated device, which imitates
/// CUDA's.
constexpr Device cuda_device(MemoryKind kind, std::int32_t ordinal) {
  constexpr std::array kTypes{DeviceType::kHost, DeviceType::kCudaHost, DeviceType::kCudaManaged,
                              DeviceType::kCuda};
  return device_of(kTypes[static_cast<std::size_t>(kind)], ordinal);
}

/// A stream, as the CUDA array interface and DLPack write it. Never 0.
using StreamHandle = std::uint64_t;
inline constexpr StreamHandle kLegacyDefaultStream = 1;
inline constexpr StreamHandle kPerThreadDefaultStream = 2;

/// The stream of this thread: that of the innermost ScopedStream, else the legacy default stream.
/// Allocations use it, and exports name it.
StreamHandle current_stream() noexcept;

/// Sets this thread's current stream and returns the previous stream. For bindings; use
/// ScopedStream in C++ code. Does not check the handle: DeviceDriver::check_stream does.
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

/// A kernel in two equivalent forms, for a GPU and for the emulated device. Both get `arguments`,
/// bytes that a driver may copy.
struct DeviceKernel {
  std::string_view name;
  /// Runs it in the host's memory, where operands[i] are the bytes of `operands[i].begin`.
  void (*on_host)(const void* arguments, std::span<std::byte* const> operands) = nullptr;
  /// Enqueues it on the current GPU; an error number of its runtime, 0 = done.
  int (*on_device)(const void* arguments, StreamHandle stream) = nullptr;
  std::span<const std::byte> arguments = {};
  /// All memory that it accesses.
  std::span<const KernelOperand> operands = {};
};

/// The lengths of the memory that a RowCopy spans.
struct RowExtents {
  std::int64_t target_bytes = 0;
  std::int64_t source_bytes = 0;
};

/// Errors: kValue for negative numbers, rows that overlap, and extents beyond 2^63 - 1 bytes.
absl::StatusOr<RowExtents> check(const RowCopy& rows);

/// kValue unless 0 or more.
absl::Status check_length(std::string_view name, std::int64_t length_bytes);

/// Texts for a bug report, in order: ("runtime", "13.0"), ("device 0", …).
using DeviceInfo = std::vector<std::pair<std::string, std::string>>;
/// Bytes in use, of pinned, managed and device memory.
using LiveBytes = std::array<std::int64_t, 3>;

/// How a new stream is ordered with other streams.
enum class StreamKind : std::uint8_t {
  kBlocking,     // ordered with the legacy default stream
  kNonBlocking,  // ordered only by events
};

/// A device and its driver. Drivers live as long as the process.
///
/// Errors: kDeviceUnavailable after fork; kValue for a stream that is not alive, an address that
/// the driver does not know, or a length beyond its allocation; kInternal for failures of the
/// device. The next call that waits reports failures of enqueued work.
class DeviceDriver {
 public:
  /// The names of its resources for kPinned, kManaged and kDevice. Static texts.
  explicit DeviceDriver(const std::array<std::string_view, 3>& names)
      : resources_{{{*this, MemoryKind::kPinned, names[0]},
                    {*this, MemoryKind::kManaged, names[1]},
                    {*this, MemoryKind::kDevice, names[2]}}} {}
  DeviceDriver(const DeviceDriver&) = delete;
  DeviceDriver& operator=(const DeviceDriver&) = delete;
  virtual ~DeviceDriver() = default;

  virtual std::string_view name() const noexcept = 0;  // "cuda", "emulated"
  virtual bool is_emulated() const noexcept = 0;

  /// The source of memory of a kind; not of kHost. Blocks of kDevice are allocated and freed in the
  /// order of the current stream, which BlockInfo names. Work on another stream, and reads of their
  /// zeros on the host, must be ordered after it. Pinned and managed memory can be used at once. It
  /// is freed when the device no longer uses it.
  MemoryResource& resource(MemoryKind kind) {
    return resources_[static_cast<std::size_t>(kind) - 1];
  }

  /// The current device of this thread: its type and ordinal.
  virtual absl::StatusOr<Device> current_device() = 0;

  // --- Work on a stream --------------------------------------------------------------------------

  /// Enqueues a copy; the direction follows from the addresses. Accesses to ordinary host memory
  /// are complete at return. Pinned and managed memory is in use until a wait for the stream.
  virtual absl::Status copy(void* target, const void* source, std::int64_t length_bytes,
                            StreamHandle stream) = 0;
  virtual absl::Status copy_rows(const RowCopy& rows, StreamHandle stream) = 0;
  /// Enqueues writing `value` to every byte. The target must be memory of the driver.
  virtual absl::Status fill(void* target, std::byte value, std::int64_t length_bytes,
                            StreamHandle stream) = 0;
  /// Enqueues a kernel. Its operands must be memory of the current device; they are not freed
  /// before it has run. Does not use `kernel` after return.
  virtual absl::Status launch(const DeviceKernel& kernel, StreamHandle stream) = 0;
  /// Waits for the pending work of the stream, or of the whole device.
  virtual absl::Status synchronize(StreamHandle stream) = 0;
  virtual absl::Status synchronize_device() = 0;
  /// Later work of `consumer` waits for the pending work of `producer`.
  virtual absl::Status order_after(StreamHandle producer, StreamHandle consumer) = 0;

  // --- Streams -----------------------------------------------------------------------------------

  virtual absl::StatusOr<StreamHandle> create_stream(StreamKind kind) = 0;
  /// Pending work of the stream still runs. Error: kValue for handles that create_stream did not
  /// return.
  virtual absl::Status destroy_stream(StreamHandle stream) = 0;
  /// Error: kValue for 0 and for a handle that is not a live stream, as far as the driver knows.
  /// CUDA may crash on a wrong handle.
  virtual absl::Status check_stream(StreamHandle stream) = 0;
  /// Whether the stream has finished its work. Repeated calls return true in the end.
  virtual absl::StatusOr<bool> is_idle(StreamHandle stream) = 0;

  // --- Addresses ---------------------------------------------------------------------------------

  virtual absl::StatusOr<PointerInfo> pointer_info(const void* address) = 0;
  /// Whether the address is in a block of this driver.
  virtual bool owns(const void* address) = 0;
  /// Notes that `stream`, which the consumer of an export named, may use the block at `address`.
  /// The release of the block then waits for the work that is pending on the stream. Ignores
  /// addresses that the driver does not know.
  virtual void note_use(const void* address, StreamHandle stream) noexcept = 0;

  virtual DeviceInfo info() = 0;
  /// Bytes of the blocks that were not released.
  virtual LiveBytes live_bytes() = 0;

 private:
  /// The implementation of resource(kind).allocate(request).
  virtual absl::StatusOr<Block> allocate(MemoryKind kind, const AllocationRequest& request) = 0;

  class Resource final : public MemoryResource {
   public:
    Resource(DeviceDriver& driver, MemoryKind kind, std::string_view name)
        : driver_(driver), kind_(kind), name_(name) {}
    absl::StatusOr<Block> allocate(const AllocationRequest& request) override {
      return driver_.allocate(kind_, request);
    }
    std::string_view name() const noexcept override { return name_; }

   private:
    DeviceDriver& driver_;
    MemoryKind kind_;
    std::string_view name_;
  };

  std::array<Resource, 3> resources_;
};

/// kValue for 0, with the handles to pass instead. All other handles pass.
absl::Status check_stream_number(StreamHandle stream);

// --- The process ---------------------------------------------------------------------------------

/// Whether the process has begun to exit. Drivers then do not release anything.
bool process_is_exiting() noexcept;
/// Notes that the process exits: for exit handlers.
void note_process_exit() noexcept;

/// The process that started a driver. The driver works only there.
class DriverProcess {
 public:
  DriverProcess();
  bool is_this_process() const noexcept;
  /// Error: kDeviceUnavailable in a child after fork, with advice.
  absl::Status check(std::string_view driver_name) const;

 private:
  std::int64_t process_id_;
};

}  // namespace gridbuf
