// gridbuf.alloc.host: host memory of this process.
//
// Purpose. `host_resource` serves blocks of any length. Blocks below 2 MiB come from the C library:
// malloc of a slightly longer block plus an offset, calloc for zeros. In glibc this is four times
// faster than the aligned functions. Longer blocks have separate pages. These pages are:
//
//   huge       transparent huge pages, unless the system or `HostOptions` forbids them. The first
//              touch of 1 GiB takes 45 to 90 ms on them, and about 400 ms on pages of 4 KiB.
//   kept       a freed mapping serves the next block of its length. The limit of kept bytes
//              follows the machine's memory. A loop over temporary fields then gets its pages once.
//   touched    the threads of parallel_for touch zeros from the kernel before the call returns,
//              unless the block is a large part of the machine's memory.
//   staggered  the start moves by some cache lines from block to block. So ten fields that one loop
//              reads do not compete for the same cache sets.
//
// Key decision. All of these rules are fixed: gridbuf does not time anything, so equal programs
// allocate alike. docs/explanation/memory.md compares this with rules that follow measurements.
//
// One lock guards cache and statistics. It is free while pages are mapped, touched or unmapped.
//
// For the device libraries, this library also exports pages (gridbuf::pages), the cache of
// mappings, and the functions that tell AddressSanitizer about gridbuf's blocks.
module;

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

export module gridbuf.alloc.host;

import gridbuf.alloc;
import gridbuf.base;

// ---- Pages ----

export namespace gridbuf::pages {

/// Whole pages from the kernel; their bytes are 0 until the first write.
struct Mapping {
  std::byte* address = nullptr;
  std::int64_t length_bytes = 0;
  PageKind pages = PageKind::kSmall;  // kSmall or kHuge, as requested from the kernel
};

/// The lengths of pages. x86-64 has 4 KiB and 2 MiB; aarch64 has 4, 16 or 64 KiB, and huge pages of
/// 2, 32 or 512 MiB.
struct PageLengths {
  std::int64_t page_bytes;
  std::int64_t huge_page_bytes;
};

/// Those of this machine, as the system reports them. Tests pass other lengths.
PageLengths page_lengths();

/// The length that map_pages maps for `length_bytes`: whole pages, or whole huge pages if at least
/// a quarter of the last huge page is used, and at most 2 MiB or an eighth of the block is not
/// used. Requires length_bytes ≤ 2^62.
std::int64_t mapped_length(std::int64_t length_bytes, PageKind pages,
                           const PageLengths& lengths = page_lengths());

/// The length of the part of a kept mapping that serves `length_bytes`: whole pages, or whole huge
/// pages if they are at most 2 MiB long.
std::int64_t part_length(std::int64_t length_bytes, PageKind pages,
                         const PageLengths& lengths = page_lengths());

/// Maps mapped_length(length_bytes, pages) bytes without committing them. kHuge starts at a
/// boundary of huge pages and requests transparent huge pages; kSmall forbids them. The kernel may
/// ignore both. `any_length` may exceed the memory of the machine. Requires length_bytes ≥ 1 and
/// pages kSmall or kHuge. Error: kMemory.
absl::StatusOr<Mapping> map_pages(std::int64_t length_bytes, PageKind pages,
                                  bool any_length = false);

/// Gives pages back to the kernel.
void unmap_pages(const Mapping& mapping) noexcept;

/// Makes a mapping `length_bytes` long, whole pages, and keeps its bytes. A longer one grows in
/// place, or its pages move without a copy. Then its address is equal modulo kMaxAlignmentBytes
/// and, with huge pages, modulo their length. Nothing, without a change, if the kernel refuses.
std::optional<Mapping> resize_pages(const Mapping& mapping, std::int64_t length_bytes) noexcept;

/// Makes every page of [data, data + total_bytes) present and keeps its bytes. Uses several threads
/// from 8 MiB on. Requires writable memory that other threads do not use. Error: kMemory if the
/// kernel lacks pages. (A kernel before 5.14 ends the process instead.)
absl::Status commit(std::byte* data, std::int64_t total_bytes);

}  // namespace gridbuf::pages

export namespace gridbuf {

/// Blocks of at least this length have separate pages.
inline constexpr std::int64_t kLargeBlockBytes = std::int64_t{1} << 21;

/// How much freed memory is worth keeping, from the bytes in use of the last seconds.
//
/// Memory in use and kept memory together never exceed the peak of the memory in use. A third of
/// the peak is kept in any case. More is kept if the program took as much again after it had freed
/// it, and has not less in use than it had then. So a time step keeps all its temporary fields, and
/// a program that has freed its fields keeps a third.
//
/// The last seconds are this epoch and the one before. An epoch lasts five seconds, and longer if
/// no block was made or freed.
class Demand {
 public:
  /// To be called with each change of the bytes in use. True if an epoch begins.
  bool note(std::int64_t live_bytes, std::int64_t seconds);
  std::int64_t worth_keeping() const;
  std::int64_t live_bytes() const { return live_bytes_; }

 private:
  struct Epoch {
    std::int64_t peak = 0;
    std::int64_t reused = 0;  // the longest rise up to a level that was reached before
    std::int64_t lowest = std::numeric_limits<std::int64_t>::max();  // where such a rise began
  };
  Epoch current_;
  Epoch previous_;
  std::int64_t begin_ = 0;  // of the current epoch
  std::int64_t live_bytes_ = 0;
  std::int64_t trough_ = 0;  // the least bytes in use since the peak
};

/// Decides which freed mappings are kept, and which mapping serves a request. Its owner maps,
/// unmaps and locks.
//
/// The object contains a table of 64 places. So it never allocates, and works when memory is short.
/// It also never writes to the blocks that it keeps, because that would bring back pages that the
/// kernel took. The rule is best fit with bounded waste: at most a quarter of a mapping is more
/// than the request that it serves. The waste of a block in use counts against the limit, like a
/// kept mapping.
class MappingCache {
 public:
  static constexpr int kCapacity = 64;

  /// Mappings that the caller must unmap after it has released its lock.
  class Victims {
   public:
    const pages::Mapping* begin() const { return &mappings_[0].mapping; }
    const pages::Mapping* end() const { return begin() + count_; }
    int count() const { return count_; }
    std::int64_t total_bytes() const;

   private:
    friend class MappingCache;
    // Not initialised, because every release would write the whole table.
    union Place {
      Place() {}
      pages::Mapping mapping;
    };
    static_assert(sizeof(Place) == sizeof(pages::Mapping));

    void add(const pages::Mapping& mapping) {
      mappings_[static_cast<std::size_t>(count_++)].mapping = mapping;
    }
    std::array<Place, kCapacity + 1> mappings_;
    int count_ = 0;
  };

  explicit MappingCache(std::int64_t limit_bytes = 0) : limit_bytes_(limit_bytes) {}

  /// Removes and returns the shortest mapping that serves `length_bytes`; of equal mappings, the
  /// last used. The surplus of all blocks in use is then at most `most_surplus_bytes`.
  std::optional<pages::Mapping> take(
      std::int64_t length_bytes, PageKind kind,
      std::int64_t most_surplus_bytes = std::numeric_limits<std::int64_t>::max());

  /// Removes and returns `length_bytes` of a longer mapping, whose other pages stay if they are
  /// enough for a large block; else the longest mapping, which the caller must resize. Requires a
  /// `part_length`.
  std::optional<pages::Mapping> take_part(std::int64_t length_bytes, PageKind kind);

  /// Keeps a mapping that served `length_bytes` and is now free. Drops the least recently used
  /// mappings if the limit requires it.
  void give(const pages::Mapping& mapping, std::int64_t length_bytes, Victims& victims);

  /// Notes that a mapping that served `length_bytes` was unmapped.
  void forget(const pages::Mapping& mapping, std::int64_t length_bytes);

  /// Limits the bytes that are kept, or in use as surplus; 0 keeps nothing.
  void set_limit(std::int64_t limit_bytes, Victims& victims);

  /// Drops the least recently used mappings until at most `keep_bytes` are kept.
  void trim(std::int64_t keep_bytes, Victims& victims);

  /// Drops the mappings that were not used since the last but one call.
  void begin_epoch(Victims& victims);

  int count() const { return count_; }
  std::int64_t cached_bytes() const { return cached_bytes_; }
  std::int64_t surplus_bytes() const { return surplus_bytes_; }
  std::int64_t limit_bytes() const { return limit_bytes_; }

 private:
  struct Entry {
    pages::Mapping mapping;
    std::uint64_t last_use = 0;
    std::uint64_t epoch = 0;
  };

  template <class Rank>
  int best(PageKind kind, const Rank& rank) const;
  pages::Mapping remove(int place);
  int oldest() const;
  void shrink_to(std::int64_t keep_bytes, int keep_count, Victims& victims);

  std::array<Entry, kCapacity> entries_;  // the first count_ are in use, unordered
  int count_ = 0;
  std::uint64_t uses_ = 0;
  std::uint64_t epoch_ = 0;
  std::int64_t cached_bytes_ = 0;
  std::int64_t surplus_bytes_ = 0;  // unused ends of mappings in use
  std::int64_t limit_bytes_;
};

// ---- The resource ----

/// The value of a fresh byte in poison mode: an absurd number in every element type.
inline constexpr std::byte kPoison{0xCB};

/// Settings of large blocks. `poison` applies to all blocks.
struct HostOptions {
  /// How many bytes of free mappings are kept; 0 switches the cache off. Default: what is worth
  /// keeping (Demand), and at most a quarter of the memory that could be committed when a block
  /// last got new pages; in sanitizer builds, 0.
  std::optional<std::int64_t> cache_limit_bytes = std::nullopt;
  /// Limit of blocks in use and kept mappings together; a request beyond it is kMemory.
  std::int64_t limit_bytes = system::kUnlimitedBytes;
  /// Huge pages where the system has them.
  bool huge_pages = true;
  /// Fresh bytes are kPoison, and every access to a freed large block faults. The cache is off.
  bool poison = false;

  friend bool operator==(const HostOptions&, const HostOptions&) = default;
};

/// What one large block has unlike the others.
struct LargeBlockOptions {
  /// Huge pages, if HostOptions also permits them.
  bool huge_pages = true;
  /// The freed mapping is kept, as far as the limit permits it.
  bool keep = true;
  /// Zeros of new pages are not touched. From 32 MiB on, those of kept pages are new pages.
  bool lazy_zeros = false;
};

/// Statistics of large blocks. Lengths are those of mappings.
struct HostStatistics {
  std::int64_t live_blocks = 0;
  std::int64_t live_bytes = 0;
  std::int64_t peak_live_bytes = 0;
  std::int64_t cached_blocks = 0;
  std::int64_t cached_bytes = 0;
  std::int64_t cache_limit_bytes = 0;  // now
  std::int64_t hits = 0;               // blocks served from the cache
  std::int64_t misses = 0;             // blocks served from the kernel
  std::int64_t refusals = 0;           // out of memory, or beyond the limit

  friend bool operator==(const HostStatistics&, const HostStatistics&) = default;
};

/// Where the pages of large blocks come from. Tests make it fail.
class PageSource {
 public:
  PageSource() = default;
  PageSource(const PageSource&) = delete;
  PageSource& operator=(const PageSource&) = delete;
  virtual ~PageSource() = default;

  virtual absl::StatusOr<pages::Mapping> map(std::int64_t length_bytes, PageKind pages);
  virtual void unmap(const pages::Mapping& mapping) noexcept;
  virtual std::optional<pages::Mapping> resize(const pages::Mapping& mapping,
                                               std::int64_t length_bytes) noexcept;
  virtual absl::Status commit(std::byte* data, std::int64_t total_bytes);
  virtual std::int64_t committable_bytes();
  virtual std::int64_t seconds() noexcept;  // of a clock that never goes back
};

/// Memory of the host: small blocks of the C library, large blocks with separate pages that are
/// reused.
class HostResource final : public MemoryResource {
 public:
  /// `source` must outlive the resource; null means the kernel. Blocks of at least
  /// `large_block_bytes` have separate pages.
  explicit HostResource(const HostOptions& options = {}, PageSource* source = nullptr,
                        std::int64_t large_block_bytes = kLargeBlockBytes);
  /// All blocks must have been released.
  ~HostResource() override;

  /// Errors: kValue for a bad request; kMemory if memory, address space or the limit does not
  /// suffice even with an empty cache, or if `populate` fails.
  absl::StatusOr<Block> allocate(const AllocationRequest& request) override;
  /// The same for a block with separate pages, whatever its length.
  absl::StatusOr<Block> allocate_large(const AllocationRequest& request,
                                       const LargeBlockOptions& block_options);
  /// Makes a large block of this resource longer or shorter and keeps its bytes, without a copy.
  /// Its address stays or is equal modulo kMaxAlignmentBytes. False, without a change, if memory,
  /// address space or the limit does not suffice, and in poison mode.
  bool resize_large(Block& block, std::int64_t total_bytes) noexcept;
  std::string_view name() const noexcept override { return "host"; }

  HostOptions options() const;
  /// Takes effect at once: unmaps kept mappings beyond a new limit. Error: kValue for negative
  /// limits.
  absl::Status configure(const HostOptions& options);
  /// Whether poison mode is on.
  bool poisons() const { return poison_.load(std::memory_order_relaxed); }
  /// Whether freed blocks are kept.
  bool keeps_blocks() const {
    return cache_limit_.load(std::memory_order_relaxed) != 0 && !poisons();
  }
  HostStatistics statistics() const;
  /// Unmaps kept mappings, the least recently used first, until at most `keep_bytes` are left. Also
  /// unmaps the sealed addresses of poison mode. Returns the number of bytes unmapped.
  std::int64_t trim(std::int64_t keep_bytes = 0);
  /// Which pages large blocks get, as text: "huge pages: the system's setting is madvise".
  std::string page_text() const;

 private:
  struct Live;
  friend HostResource& host_resource();

  absl::StatusOr<Block> allocate_small(const AllocationRequest& request);

  absl::Status obtain(Live& live);
  absl::StatusOr<pages::Mapping> map_or_trim(std::int64_t length_bytes, PageKind pages);
  absl::Status make_ready(const AllocationRequest& request, std::byte* data, const Live& live,
                          bool lazy_zeros);
  std::int64_t next_stagger(const Placement& placement);
  absl::Status refuse(const AllocationRequest& request, std::string_view cause);

  std::int64_t committable_bytes() const noexcept;
  bool may_commit_unasked(std::int64_t total_bytes) const noexcept;
  bool could_commit(std::int64_t total_bytes);
  void follow_machine() noexcept;

  static void release_large(void* context, void* allocation) noexcept;
  void take_back(const Live& live) noexcept;
  bool resize(Live& live, std::int64_t needed_bytes) noexcept;
  void seal(const pages::Mapping& mapping) noexcept;
  void unmap_all(const MappingCache::Victims& victims) noexcept;
  void set(const HostOptions& options);
  void survive_forks();

  // Under the lock.
  void change_live(std::int64_t blocks, std::int64_t total_bytes, MappingCache::Victims& victims);
  void count_up(std::int64_t& origin);
  std::int64_t kept_limit() const;

  PageSource& source_;
  const std::int64_t large_block_bytes_;
  const system::HugePageReport huge_pages_ = system::huge_pages();
  // Copies of the options for reads without the lock. Relaxed: each is one number that publishes
  // nothing else, and a block that is released meanwhile follows the old or the new setting.
  std::atomic<bool> poison_ = false;
  std::atomic<std::int64_t> cache_limit_ = 0;
  std::atomic<std::uint32_t> blocks_ = 0;  // counts up; the stagger follows it

  mutable std::mutex mutex_;  // guards all below
  HostOptions options_;
  HostStatistics statistics_;
  MappingCache cache_;
  Demand demand_;
  std::array<pages::Mapping, 32> sealed_;  // poison mode: freed blocks, the oldest is unmapped next
  std::size_t next_sealed_ = 0;
};

/// The process's host memory, for any thread and for a child after fork. A child starts without
/// kept mappings, because writing to them would copy them. Never destroyed, because blocks may be
/// released at the exit.
HostResource& host_resource();

// ---- malloc, calloc, realloc and free ----

/// The four functions of an allocator in C over a HostResource, for libraries that call such
/// functions: NumPy. Blocks of kLargeBlockBytes and more come from the resource, with its cache,
/// limit and statistics. Shorter blocks come from the C library and are not counted.
//
/// Before its data each block has a header with its length and where it came from. So `release`
/// needs no length (NumPy passes wrong ones) and no table of blocks. Safe on any thread. A block is
/// released or resized by the heap that made it, also in a child after fork. `resource` must
/// outlive the heap.
class Heap {
 public:
  /// For all blocks of a heap.
  struct Options {
    std::int64_t alignment_bytes = 64;  // of data: a power of two, 16 to kMaxAlignmentBytes
    bool huge_pages = true;             // of large blocks, as `keep`: see LargeBlockOptions
    bool keep = true;
  };
  /// What is known of a block.
  struct BlockReport {
    std::int64_t total_bytes;
    std::int64_t allocation_bytes;
    BlockInfo info;
  };

  Heap(HostResource& resource, const Options& options);

  /// Null if the memory does not suffice, also beyond the limit of the resource. 0 bytes count
  /// as 1.
  void* allocate(std::size_t bytes, bool zeroed) noexcept;
  /// Keeps the first bytes, as many as both lengths have. Null `data` is `allocate`. If the result
  /// is null, the block is unchanged.
  void* reallocate(void* data, std::size_t bytes) noexcept;
  /// Null does nothing.
  void release(void* data) noexcept;
  /// Requires a block of this heap.
  BlockReport report(const void* data) const;
  const Options& options() const { return options_; }
  const HostResource& resource() const { return resource_; }

 private:
  void* allocate_small(std::size_t bytes, bool zeroed) noexcept;
  void* allocate_large(std::size_t bytes, bool zeroed) noexcept;
  void* resize_small(void* data, std::size_t bytes) noexcept;
  void* resize_large(void* data, std::size_t bytes) noexcept;
  std::int64_t large_offset() const noexcept;
  std::optional<std::int64_t> large_bytes(std::size_t bytes) const noexcept;
  void* place_large(Block block, std::size_t bytes) const noexcept;

  HostResource& resource_;
  const Options options_;
};

// ---- Workspaces ----

/// A stack of blocks for temporaries in one range of addresses, whose pages the kernel commits when
/// they are touched. Safe on any thread.
class Workspace {
 public:
  /// Reserves addresses, with huge pages as HostOptions say. Not counted in HostStatistics. Errors:
  /// kValue unless 1 ≤ limit_bytes ≤ 2^62; kMemory if the system has no such range.
  static absl::StatusOr<std::unique_ptr<Workspace>> reserve(std::int64_t limit_bytes);
  Workspace(const pages::Mapping& mapping, std::int64_t limit_bytes)
      : mapping_(mapping), limit_bytes_(limit_bytes) {}
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  ~Workspace() { pages::unmap_pages(mapping_); }

  std::byte* data() const noexcept { return mapping_.address; }
  std::int64_t limit_bytes() const noexcept { return limit_bytes_; }
  /// The end of the highest block so far.
  std::int64_t peak_bytes() const;
  /// Bytes of pages that the kernel has committed.
  std::int64_t committed_bytes() const;

  /// A block above all others, of kPoison in poison mode. `alignment_bytes` as of a request.
  /// Errors: kValue for a bad argument, kMemory beyond the limit.
  absl::StatusOr<std::byte*> push(std::int64_t total_bytes,
                                  std::int64_t alignment_bytes = kUnconstrainedAlignmentBytes);
  /// Frees the block that was pushed last. Error: kValue for another address.
  absl::Status pop(const void* block);

  /// Gives the pages above the blocks back to the kernel; returns their bytes.
  std::int64_t trim();

 private:
  struct Frame {
    std::int64_t begin;
    std::int64_t end;
  };

  const pages::Mapping mapping_;
  const std::int64_t limit_bytes_;
  mutable std::mutex mutex_;  // guards all below
  std::vector<Frame> frames_;
  std::int64_t peak_ = 0;
};

// ---- Memory that processes share ----

/// Names shared memory to the other processes of the host, while the process that made the handle
/// has the memory: a process opens the descriptor of another one through /proc.
struct SharedHandle {
  std::int64_t process_id = 0;
  std::int32_t descriptor = -1;
  std::uint64_t inode = 0;  // so that no other file of that number is taken for it
  std::int64_t length_bytes = 0;

  friend bool operator==(const SharedHandle&, const SharedHandle&) = default;
};

/// New memory without a name in any file system, zeros, which children after fork share, too. The
/// kernel frees it with the last process that has it, however that ends. Alignments must be powers
/// of two, so that they hold at every address where a process has the memory.
MemoryResource& shared_resource();

/// The shared memory with this address, and the offset in it; none for other memory.
struct SharedPlace {
  SharedHandle handle;
  std::int64_t offset_bytes;
};
std::optional<SharedPlace> shared_place(const void* address);
/// Bytes of the shared memory that this process has.
std::int64_t shared_bytes();

/// All bytes of the memory of another process. Error: kBuffer if it has ended, or this process may
/// not open it.
absl::StatusOr<Block> attach_shared(const SharedHandle& handle);

// ---- AddressSanitizer ----

// The sanitizer cannot know that a kept mapping is free, or that the bytes between two rows belong
// to no element. Without AddressSanitizer these functions do nothing.

/// Whether this build has AddressSanitizer, so that touching poisoned bytes ends the process.
constexpr bool poison_is_fatal() { return __has_feature(address_sanitizer); }

/// Poisons [begin, begin + length_bytes). The sanitizer works in granules of 8 bytes.
void poison_bytes(const std::byte* begin, std::int64_t length_bytes) noexcept;

/// Removes any poison.
void unpoison_bytes(const std::byte* begin, std::int64_t length_bytes) noexcept;

/// Poisons the padding of each row. `total_bytes` are rows of `row_bytes`; each begins with
/// `used_bytes` of elements.
void poison_row_padding(const std::byte* begin, std::int64_t total_bytes, std::int64_t row_bytes,
                        std::int64_t used_bytes) noexcept;

}  // namespace gridbuf

// ---- For the files and tests of this library ----

namespace gridbuf {

// A sanitizer sees a use after free only if the memory is not used again, so the cache is off.
inline constexpr bool kSanitized = __has_feature(address_sanitizer) ||
                                   __has_feature(thread_sanitizer) ||
                                   __has_feature(memory_sanitizer);

}  // namespace gridbuf

export namespace gridbuf::pages {

/// The pages for a block of this length. kHuge if they are `wanted`, the system has them, and the
/// block is at least as long as a huge page.
PageKind kind_for(std::int64_t length_bytes, bool wanted, const system::HugePageReport& report);

/// What one thread commits of a block at once: a huge page, so that two threads do not fill the
/// same page. 2 MiB of a block that is shorter than two huge pages, or it would keep few threads
/// busy.
std::int64_t commit_chunk_bytes(std::int64_t total_bytes,
                                const PageLengths& lengths = page_lengths());

/// Returns the memory of a mapping to the kernel but keeps its addresses: every access there is a
/// segmentation fault. False, without a change, if the kernel refuses.
bool seal_pages(const Mapping& mapping) noexcept;

/// Lets the kernel take the whole pages in [address, address + length_bytes) when memory is short,
/// until they are written again. Until then a byte has its old value or 0.
void offer_pages(std::byte* address, std::int64_t length_bytes) noexcept;

/// Exchanges the pages of a mapping for new ones, which the next touch commits. False, without a
/// change, if the kernel refuses.
bool renew_pages(const Mapping& mapping) noexcept;

/// `commit` on kernels without MADV_POPULATE_WRITE: rewrites one byte of each page.
void touch(std::byte* data, std::int64_t total_bytes);

}  // namespace gridbuf::pages
