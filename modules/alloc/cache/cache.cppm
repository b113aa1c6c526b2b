// gridbuf.alloc.cache: the books of mappings that are kept for the next block.
//
// A program that allocates, fills and frees a large field in a loop spends most of its time on the
// first touch of pages that it had a moment ago: 45 to 475 ms per GiB, where zeroing them again
// costs 11 to 25. So freed mappings are kept for a while. This module is the bookkeeping: which
// mapping serves a request, and which ones must go so that the limit holds. It maps and unmaps
// nothing, reads no clock and takes no lock; whoever uses it does, and the rules here can be tested
// without memory.
//
// The key choice: one table of 64 places in the object itself. The cache never allocates, so it
// works when memory is short, and it never writes into the blocks it keeps (a free list inside of
// them would bring pages back that the kernel took). A search looks at every place, which is
// nothing beside any use of 2 MiB. 64 blocks of one program's fields are enough: kept blocks are
// those between a free and the next allocation, not those in use.
//
// Best fit with bounded waste: a mapping serves a request if it is at most an eighth longer. Waste
// that is lent out with a block counts against the limit, as if it were cached, so that blocks and
// cache together never cost more than the blocks' own needs and the limit.
module;

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

export module gridbuf.alloc.cache;

import gridbuf.alloc.pages;
import gridbuf.alloc;

export namespace gridbuf {

class MappingCache {
 public:
  static constexpr int kCapacity = 64;
  /// A kept mapping serves requests that it is longer than by at most this part of them.
  static constexpr std::int64_t kWasteDivisor = 8;

  /// Mappings that must be given back to the kernel: by the caller, once it holds no lock. Filled
  /// by the functions below.
  class Victims {
   public:
    const pages::Mapping* begin() const { return &mappings_[0].mapping; }
    const pages::Mapping* end() const { return begin() + count_; }
    int count() const { return count_; }
    std::int64_t total_bytes() const;

   private:
    friend class MappingCache;
    // Not initialised: every release would write the whole table.
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

  /// The shortest mapping that serves `length_bytes`, the one used last of equal ones; it leaves
  /// the cache. Its surplus over length_bytes counts against the limit until `give` or `forget`.
  std::optional<pages::Mapping> take(std::int64_t length_bytes);

  /// A mapping that served `length_bytes` is free: it is kept as far as limit and places allow,
  /// those not used for longest go first.
  void give(const pages::Mapping& mapping, std::int64_t length_bytes, Victims& victims);

  /// A mapping that served `length_bytes` is gone, and shall not be kept.
  void forget(const pages::Mapping& mapping, std::int64_t length_bytes);

  /// How many bytes may be kept (or lent as surplus); 0 keeps nothing.
  std::int64_t limit_bytes() const { return limit_bytes_; }
  void set_limit(std::int64_t limit_bytes, Victims& victims);

  /// Gives up what was not used for longest, until at most `keep_bytes` are kept.
  void trim(std::int64_t keep_bytes, Victims& victims);

  int count() const { return count_; }
  std::int64_t cached_bytes() const { return cached_bytes_; }
  std::int64_t surplus_bytes() const { return surplus_bytes_; }

 private:
  struct Entry {
    pages::Mapping mapping;
    std::uint64_t last_use = 0;
  };

  pages::Mapping remove(int place);
  int oldest() const;
  void shrink_to(std::int64_t keep_bytes, int keep_count, Victims& victims);

  std::array<Entry, kCapacity> entries_;  // the first count_ are in use, in no order
  int count_ = 0;
  std::uint64_t uses_ = 0;
  std::int64_t cached_bytes_ = 0;
  std::int64_t surplus_bytes_ = 0;  // lent out with blocks, beyond what they need
  std::int64_t limit_bytes_;
};

}  // namespace gridbuf
