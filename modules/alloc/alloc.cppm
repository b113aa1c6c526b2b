// gridbuf.alloc: what a request for memory says, what owns the answer, and what a source of memory
// must do.
//
// The layout modules compute how many bytes an array takes and which of them must be aligned; this
// module turns that into bytes. It knows nothing of shapes, element types or devices.
//
// The key choice: the alignment is promised at an offset, not at the start. A field with a halo
// wants its first interior point on a cache line, and that point lies `aligned_offset_bytes` into
// the block. The alignment may be any integer up to 2^20, so no aligned-allocation function of the
// C library serves (they want powers of two and align the start). Every source therefore takes a
// slightly larger plain block and picks the start inside it; `Placement` is that rule, in one
// place, for every source of memory. (Over-allocating malloc is also about four times faster than
// posix_memalign for small blocks.)
//
// A source of memory is a `MemoryResource`, an abstract class and not a template parameter: which
// one serves a request is known only at run time (host, device, emulated device, a user's own), and
// adaptors stack on any of them. A `Block` owns memory alone; `share` turns it into an `Owner`,
// which any number of exports hold, on any thread, with or without a Python interpreter.
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
import gridbuf.layout;

export namespace gridbuf {

/// The largest alignment a request may ask for.
using checked::kMaxAlignmentBytes;

/// The alignment of Block::data() where the request asks for none (a cache line) …
inline constexpr std::int64_t kUnconstrainedAlignmentBytes = 64;

/// … and what data() gets, as far as the request allows, where it asks for one: enough for every
/// element type, so that an alignment of 3 does not put a double on an odd address.
inline constexpr std::int64_t kElementAlignmentBytes = 16;

/// How the pages of a block came about.
enum class PageKind : std::uint8_t {
  kShared,  // among the small blocks of the C library or the driver
  kSmall,   // pages of its own, of the system's usual size
  kHuge,    // pages of its own, on which the system was asked for transparent huge pages
};

/// What a source of memory tells of a block: where it is, and how it was made.
struct BlockInfo {
  std::string_view resource_name = {};  // static text: "host", "pinned", "device"
  Device device = {};
  PageKind pages = PageKind::kShared;
  bool from_cache = false;         // its pages had been used before
  std::int64_t stagger_bytes = 0;  // how far data() was moved to spread starts over cache sets
  std::uint64_t stream = 0;        // on which a stream-ordered source made it; 0: no stream
};

struct AllocationRequest {
  /// 0 or more; 0 is legal and gives a block that nothing may touch.
  std::int64_t total_bytes = 0;
  /// Any integer from 1 (no constraint) to kMaxAlignmentBytes.
  std::int64_t alignment_bytes = 1;
  /// 0 or more: (data + aligned_offset_bytes) % alignment_bytes == 0.
  std::int64_t aligned_offset_bytes = 0;
  /// Every byte of [data, data + total_bytes) is 0.
  bool zeroed = false;
  /// Pages are committed now, so that lack of memory is an error here and not a kill later.
  bool populate = false;
};

/// Where data() goes inside a larger plain block: at the first address that is `remainder_bytes`
/// modulo `modulus_bytes`.
struct Placement {
  std::int64_t modulus_bytes;    // ≥ 2, a multiple of alignment_bytes
  std::int64_t remainder_bytes;  // in [0, modulus_bytes)
  std::int64_t block_bytes;      // what the plain block holds: total_bytes + modulus_bytes - 1

  friend constexpr bool operator==(const Placement&, const Placement&) = default;
};

/// Checks a request and places it. Pure arithmetic: the same request gives the same placement
/// everywhere. Errors: kValue if a field is out of its bounds, or if block_bytes does not fit
/// std::ptrdiff_t.
absl::StatusOr<Placement> place(const AllocationRequest& request);

/// The first fitting address at or after `block`; at most modulus_bytes - 1 further.
std::byte* place_in(const Placement& placement, std::byte* block);

/// What `share` needs for a count inside of an allocation.
inline constexpr std::int64_t kOwnerRoomBytes = 64;

/// Memory with one owner. Move-only; gives the memory back when it goes. Its source must outlive
/// it.
class Block {
 public:
  /// Gives memory back: `context` is the source's own, `allocation` what the source obtained. May
  /// run on any thread.
  using ReleaseFunction = void (*)(void* context, void* allocation) noexcept;

  struct Allocation {
    void* address = nullptr;            // what `release` wants back; data() lies inside it
    std::int64_t allocation_bytes = 0;  // what it really costs, placement included
    ReleaseFunction release = nullptr;
    void* context = nullptr;
    BlockInfo info = {};
    /// kOwnerRoomBytes of the allocation outside of data(), on 16 bytes, for the count of `share`;
    /// null if there is none. A small block costs one call of the C library with it, and two
    /// without.
    void* owner_room = nullptr;
  };

  Block() noexcept = default;  // owns nothing
  inline Block(std::byte* data, std::int64_t total_bytes, const Allocation& allocation) noexcept
      : data_(data), total_bytes_(total_bytes), allocation_(allocation) {}
  // Inline, which a member of a class in a module is not by itself: small arrays are made of such
  // moves.
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

  /// The address of element (0, …, 0). Never null for a block that a resource returned, not even
  /// for 0 bytes.
  inline std::byte* data() const noexcept { return data_; }
  inline std::int64_t total_bytes() const noexcept { return total_bytes_; }
  inline std::int64_t allocation_bytes() const noexcept { return allocation_.allocation_bytes; }
  inline const BlockInfo& info() const noexcept { return allocation_.info; }
  inline bool has_owner_room() const noexcept { return allocation_.owner_room != nullptr; }
  /// Gives the duty to release away: who has the answer must do it, once.
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

/// A share in some memory, whatever it is: the memory lives while any share does. Shares are copied
/// and dropped on any thread without a lock, and dropping the last one needs no Python (DL-20,
/// DP-31).
using Owner = std::shared_ptr<const void>;

/// Gives the block a shared owner, which points to data(). The count lies in the block's own
/// allocation if that has room.
/// Error: kMemory if there is no memory for the count (the block is then released).
absl::StatusOr<Owner> share(Block&& block);

/// A source of memory.
//
/// What every implementation promises (gridbuf.alloc.testing has the checks): allocate is safe
/// on any thread; blocks never overlap; a block may be released on a thread that did not allocate
/// it; the start obeys `place`; bad requests give kValue, want of memory gives kMemory, and neither
/// changes any state; nothing throws.
class MemoryResource {
 public:
  MemoryResource() = default;
  MemoryResource(const MemoryResource&) = delete;
  MemoryResource& operator=(const MemoryResource&) = delete;
  virtual ~MemoryResource() = default;

  virtual absl::StatusOr<Block> allocate(const AllocationRequest& request) = 0;

  /// What messages call it: "host", "counting(host)".
  virtual std::string_view name() const noexcept = 0;
};

/// The status of every resource that has no memory for `request`: kMemory, naming bytes, alignment
/// and the resource. `cause` says what was tried and what it answered.
absl::Status out_of_memory(const AllocationRequest& request, std::string_view resource_name,
                           std::string_view cause);

}  // namespace gridbuf
