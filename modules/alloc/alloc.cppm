// gridbuf.alloc: requests for memory, owners of memory, and the contract of a source of memory.
//
// gridbuf.layout computes how many bytes an array takes and which byte must be aligned. This
// library allocates them. It does not know shapes, element types or devices.
//
// Key decision: a source of memory aligns a byte at an offset, not the start. A field with a halo
// needs its first interior point on a cache line, and that point is `aligned_offset_bytes` into the
// block. The alignment may be any integer up to 2^20. The aligned allocation of the C library
// accepts only powers of two, and aligns the start. So every source takes a slightly larger plain
// block and chooses the start inside it; `Placement` is that rule. (For small blocks, a larger
// malloc is also about four times faster than posix_memalign.)
//
// A source of memory is a `MemoryResource`, an abstract class and not a template parameter. The
// source of a block is known only at run time (host, device, emulated device, a user's class), and
// adaptors stack on any source. A `Block` is the only owner of its memory. `share` turns it into an
// `Owner`, which any number of exports hold, on any thread, with or without a Python interpreter.
module;

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

export module gridbuf.alloc;

export import gridbuf.base;
import gridbuf.layout.sizes;

export namespace gridbuf {

/// The largest alignment of a request.
using checked::kMaxAlignmentBytes;

/// The alignment of Block::data() for a request without an alignment: a cache line.
inline constexpr std::int64_t kUnconstrainedAlignmentBytes = 64;

/// For other requests, the alignment of data() as far as the request allows. It is enough for every
/// element type, so that an alignment of 3 does not put a double on an odd address.
inline constexpr std::int64_t kElementAlignmentBytes = 16;

/// What a driver knows about an address. The default value means ordinary host memory.
struct PointerInfo {
  Device device = {};
  std::uintptr_t base = 0;        // begin of the allocation around the address
  std::int64_t length_bytes = 0;  // length of that allocation; 0: not known
  bool host_accessible = true;
  bool device_accessible = false;
};

/// The kind of pages of a block.
enum class PageKind : std::uint8_t {
  kShared,  // among the small blocks of the C library or the driver
  kSmall,   // separate pages, of the system's usual size
  kHuge,    // separate pages, for which transparent huge pages were requested
};

/// The source's report on a block: where it is, and how it was made.
struct BlockInfo {
  std::string_view resource_name = {};  // static text: "host", "pinned", "device"
  Device device = {};
  PageKind pages = PageKind::kShared;
  bool from_cache = false;         // its pages were used before
  std::int64_t stagger_bytes = 0;  // the shift of data() that spreads starts over cache sets
  std::uint64_t stream = 0;        // the stream of a stream-ordered source; 0: no stream
};

/// What a resource needs to know of a block.
struct AllocationRequest {
  /// 0 or more. A block of 0 bytes is valid, but must not be accessed.
  std::int64_t total_bytes = 0;
  /// Any integer from 1 (no constraint) to kMaxAlignmentBytes.
  std::int64_t alignment_bytes = 1;
  /// 0 or more: (data + aligned_offset_bytes) % alignment_bytes == 0.
  std::int64_t aligned_offset_bytes = 0;
  /// Every byte of [data, data + total_bytes) is 0.
  bool zeroed = false;
  /// Commits the pages now, so that lack of memory is an error and not a kill of the process later.
  bool populate = false;
};

/// Where data() goes inside a larger plain block: at the first address that is `remainder_bytes`
/// modulo `modulus_bytes`.
struct Placement {
  std::int64_t modulus_bytes;    // ≥ 2, a multiple of alignment_bytes
  std::int64_t remainder_bytes;  // in [0, modulus_bytes)
  std::int64_t block_bytes;      // of the plain block: total_bytes + modulus_bytes - 1

  friend constexpr bool operator==(const Placement&, const Placement&) = default;
};

/// Checks a request and places it. Pure arithmetic: a request gives one placement on every machine.
/// Errors: kValue if a field is out of its bounds, or if block_bytes does not fit std::ptrdiff_t.
absl::StatusOr<Placement> place(const AllocationRequest& request);

/// The first fitting address from `block` on, at most modulus_bytes - 1 after it.
std::byte* place_in(const Placement& placement, std::byte* block);

/// Memory with one owner. Move-only; the destructor releases the memory. The source must outlive
/// it.
class Block {
 public:
  /// Releases memory. `context` is the source's argument, `allocation` the memory that it obtained.
  /// May run on any thread.
  using ReleaseFunction = void (*)(void* context, void* allocation) noexcept;

  /// What a source obtained, and how it is released.
  struct Allocation {
    void* address = nullptr;            // the argument of `release`; contains data()
    std::int64_t allocation_bytes = 0;  // the whole allocation, including placement
    ReleaseFunction release = nullptr;
    void* context = nullptr;
    BlockInfo info = {};
  };

  Block() noexcept = default;  // owns nothing
  inline Block(std::byte* data, std::int64_t total_bytes, const Allocation& allocation) noexcept
      : data_(data), total_bytes_(total_bytes), allocation_(allocation) {}
  // `inline`, because member functions in a module are not implicitly inline, and making a small
  // array takes several of these moves.
  inline Block(Block&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        total_bytes_(std::exchange(other.total_bytes_, 0)),
        allocation_(other.allocation_) {
    other.allocation_.release = nullptr;
  }
  Block& operator=(Block&& other) noexcept {
    Block(std::move(other)).swap(*this);
    return *this;
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  inline ~Block() {
    if (allocation_.release == nullptr) return;
    allocation_.release(allocation_.context, allocation_.address);
  }

  /// The address of element (0, …, 0). Never null for a block from a resource, not even for 0
  /// bytes.
  inline std::byte* data() const noexcept { return data_; }
  inline std::int64_t total_bytes() const noexcept { return total_bytes_; }
  inline std::int64_t allocation_bytes() const noexcept { return allocation_.allocation_bytes; }
  inline const BlockInfo& info() const noexcept { return allocation_.info; }
  /// Gives the memory to the caller, which must release it once.
  inline Allocation detach() noexcept {
    data_ = nullptr;
    const Allocation allocation = allocation_;
    allocation_.release = nullptr;
    return allocation;
  }
  explicit operator bool() const noexcept { return data_ != nullptr; }

  void swap(Block& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(total_bytes_, other.total_bytes_);
    std::swap(allocation_, other.allocation_);
  }

 private:
  std::byte* data_ = nullptr;
  std::int64_t total_bytes_ = 0;
  Allocation allocation_;
};

/// A share in memory of any kind: the memory lives as long as any share. Shares are copied and
/// dropped on any thread without a lock. Dropping the last share does not need Python (DL-20,
/// DP-31).
using Owner = std::shared_ptr<const void>;

/// Gives the block a shared owner, which points to data(). Error: kMemory if the count cannot be
/// allocated; the block is then released.
absl::StatusOr<Owner> share(Block&& block);

/// A source of memory.
//
/// gridbuf.alloc.testing checks the contract of every implementation. allocate is safe on any
/// thread. A block may be released on another thread. Blocks never overlap, and their start obeys
/// `place`. A bad request gives kValue and lack of memory kMemory, both without a change of state.
/// Functions do not throw.
class MemoryResource {
 public:
  MemoryResource() = default;
  MemoryResource(const MemoryResource&) = delete;
  MemoryResource& operator=(const MemoryResource&) = delete;
  virtual ~MemoryResource() = default;

  virtual absl::StatusOr<Block> allocate(const AllocationRequest& request) = 0;

  /// The name in messages: "host", "counting(host)".
  virtual std::string_view name() const noexcept = 0;
};

/// The kMemory status of every resource that cannot serve `request`. It names bytes, alignment and
/// the resource. `cause` describes the failed call and its result.
absl::Status out_of_memory(const AllocationRequest& request, std::string_view resource_name,
                           std::string_view cause);

}  // namespace gridbuf
