module;

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "modules/base/fork.h"

module gridbuf.alloc.host;

import gridbuf.alloc;
import gridbuf.base;
import gridbuf.layout.sizes;

namespace gridbuf {

using pages::Mapping;

namespace {

// From this length on, zeros from the kernel are touched before they are returned.
constexpr std::int64_t kTouchedBytes = std::int64_t{1} << 23;
// Blocks beyond this part of the committable memory are not touched: the program may not use all of
// them.
constexpr std::int64_t kTouchedDivisor = 8;
// The default limit of the cache, as a part of the committable memory.
constexpr std::int64_t kCacheDivisor = 4;
// So much of the memory in use may be unused ends of longer mappings.
constexpr std::int64_t kSurplusDivisor = 8;
// From this length on, the kernel may take kept mappings when memory is short.
constexpr std::int64_t kOfferedBytes = std::int64_t{1} << 25;
// The range of the stagger: one way of common second-level caches.
constexpr std::int64_t kStaggerBytes = std::int64_t{1} << 17;
constexpr std::int64_t kCacheLineBytes = 64;
// The bytes that a thread zeroes at once.
constexpr std::int64_t kChunkBytes = std::int64_t{1} << 21;
// From this length on, all threads write zeros by non-temporal stores.
constexpr std::int64_t kStreamedBytes = std::int64_t{1} << 25;
// From this length on, lazy zeros in kept pages are new pages. The C library's calloc is lazy from
// there on, too.
constexpr std::int64_t kRenewedBytes = std::int64_t{1} << 25;
// Longer than any address space; rounding it up to pages cannot overflow.
constexpr std::int64_t kLongestBytes = std::int64_t{1} << 60;

PageSource& kernel() {
  static PageSource& source = *new PageSource;
  return source;
}
// Before any thread: see modules/base/fork.h.
[[maybe_unused]] const PageSource& source_at_load = kernel();

// Non-temporal stores: three times as fast as memset (measured) for ranges that do not fit in the
// caches. Requires `begin` aligned to 16 bytes.
void stream_zeros(std::byte* begin, std::int64_t length_bytes) {
  using Vector __attribute__((vector_size(16))) = std::uint64_t;
  for (std::int64_t at = 0; at < length_bytes; at += 16) {
    __builtin_nontemporal_store(Vector{}, reinterpret_cast<Vector*>(begin + at));
  }
  // Orders streamed stores for other threads. On x86-64 a release does not.
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

void zero(std::byte* data, std::int64_t total_bytes) {
  if (total_bytes < kStreamedBytes) {
    std::memset(data, 0, static_cast<std::size_t>(total_bytes));
    return;
  }
  const std::int64_t head = -reinterpret_cast<std::intptr_t>(data) & 15;
  const std::int64_t body = (total_bytes - head) & ~std::int64_t{15};
  std::memset(data, 0, static_cast<std::size_t>(head));
  parallel_for(body, kChunkBytes, [&](std::int64_t begin, std::int64_t end) {
    stream_zeros(data + head + begin, end - begin);
  });
  std::memset(data + head + body, 0, static_cast<std::size_t>(total_bytes - head - body));
}

// Runs `work`, which builds a status. Without memory for its message the status is bare.
template <class Work>
auto without_throwing(const Work& work) noexcept -> decltype(work()) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return absl::Status(absl::StatusCode::kResourceExhausted, "");
  }
}

// The message without its advice, because the caller's message adds another.
std::string_view cause_of(const absl::Status& status) {
  return status.message().substr(0, status.message().find(';'));
}

}  // namespace

// A block in use: the context of its release.
struct HostResource::Live {
  HostResource* owner;
  std::int64_t length_bytes;    // of the request, in whole pages
  PageKind pages;               // of the request
  bool keep;                    // when it is released
  Mapping mapping = {};         // may be longer than the request
  std::int64_t used_bytes = 0;  // the first bytes of the mapping served blocks before
};

absl::StatusOr<Mapping> PageSource::map(std::int64_t length_bytes, PageKind pages) {
  return pages::map_pages(length_bytes, pages);
}
void PageSource::unmap(const Mapping& mapping) noexcept { pages::unmap_pages(mapping); }
std::optional<Mapping> PageSource::resize(const Mapping& mapping,
                                          std::int64_t length_bytes) noexcept {
  return pages::resize_pages(mapping, length_bytes);
}
absl::Status PageSource::commit(std::byte* data, std::int64_t total_bytes) {
  return pages::commit(data, total_bytes);
}
std::int64_t PageSource::committable_bytes() { return system::committable_bytes(); }
std::int64_t PageSource::seconds() noexcept {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

HostResource::HostResource(const HostOptions& options, PageSource* source,
                           std::int64_t large_block_bytes)
    : source_(source == nullptr ? kernel() : *source), large_block_bytes_(large_block_bytes) {
  set(options);
}

HostResource::~HostResource() { trim(); }

// ---- Allocation. ----

absl::StatusOr<Block> HostResource::allocate_large(const AllocationRequest& request,
                                                   const LargeBlockOptions& block_options) {
  const absl::StatusOr<Placement> placement = place(request);
  if (!placement.ok()) return placement.status();
  // Includes the stagger.
  const std::optional<std::int64_t> needed = checked::add(placement->block_bytes, kStaggerBytes);
  if (!needed || *needed > kLongestBytes)
    return refuse(request, "no machine has that much address space");
  if (request.populate && !could_commit(request.total_bytes)) {
    return refuse(request, "populate was asked for, and that is more than could be committed now");
  }
  const bool huge = block_options.huge_pages && options().huge_pages;
  const PageKind pages = pages::kind_for(*needed, huge, huge_pages_);
  std::unique_ptr<Live> live(new (std::nothrow) Live{this, pages::mapped_length(*needed, pages),
                                                     pages, block_options.keep});
  if (live == nullptr) return refuse(request, "the C library has no memory for a block's metadata");
  if (const absl::Status status = obtain(*live); !status.ok()) {
    return refuse(request, cause_of(status));
  }
  std::byte* const plain = place_in(*placement, live->mapping.address);
  std::byte* const data = place_in(*placement, live->mapping.address + next_stagger(*placement));
  if (const absl::Status status = make_ready(request, data, *live, block_options.lazy_zeros);
      !status.ok()) {
    take_back(*live);
    return refuse(request, cause_of(status));
  }
  const Mapping mapping = live->mapping;
  const BlockInfo info{.resource_name = name(),
                       .pages = mapping.pages,
                       .from_cache = live->used_bytes > 0,
                       .stagger_bytes = data - plain};
  return Block(data, request.total_bytes,
               {mapping.address, mapping.length_bytes, &release_large, live.release(), info});
}

absl::Status HostResource::obtain(Live& live) {
  std::optional<Mapping> kept;
  MappingCache::Victims victims;
  {
    const std::lock_guard lock(mutex_);
    if (live.length_bytes > options_.limit_bytes - statistics_.live_bytes) {
      return without_throwing([&] {
        return make_error(ErrorClass::kMemory, "the limit is " + bytes_text(options_.limit_bytes) +
                                                   ", and " + bytes_text(statistics_.live_bytes) +
                                                   " are in use");
      });
    }
    const std::int64_t live_bytes = statistics_.live_bytes + live.length_bytes;
    kept = cache_.take(live.length_bytes, live.pages, live_bytes / kSurplusDivisor);
    if (!kept) {
      const std::int64_t part = pages::part_length(live.length_bytes, live.pages);
      kept = cache_.take_part(part, live.pages);
      if (kept) live.length_bytes = std::clamp(kept->length_bytes, live.length_bytes, part);
    }
    change_live(1, std::max(kept ? kept->length_bytes : 0, live.length_bytes), victims);
    cache_.set_limit(kept_limit(), victims);
  }
  unmap_all(victims);
  if (kept) {
    unpoison_bytes(kept->address, kept->length_bytes);
    live.used_bytes = kept->length_bytes;
    if (kept->length_bytes >= live.length_bytes) {
      live.mapping = *kept;
    } else if (const auto grown = source_.resize(*kept, live.length_bytes)) {
      live.mapping = *grown;
    } else {
      source_.unmap(*kept);
      live.used_bytes = 0;
    }
  }
  absl::StatusOr<Mapping> mapping(live.mapping);
  if (live.used_bytes == 0) {
    mapping = map_or_trim(live.length_bytes, live.pages);
    follow_machine();
  }
  MappingCache::Victims stale;
  {
    const std::lock_guard lock(mutex_);
    if (mapping.ok()) {
      count_up(live.used_bytes > 0 ? statistics_.hits : statistics_.misses);
      live.mapping = *mapping;
    } else {
      change_live(-1, -live.length_bytes, stale);
    }
  }
  unmap_all(stale);
  return mapping.status();
}

absl::StatusOr<Mapping> HostResource::map_or_trim(std::int64_t length_bytes, PageKind pages) {
  const auto map = [&] { return source_.map(length_bytes, pages); };
  absl::StatusOr<Mapping> mapping = without_throwing(map);
  if (mapping.ok() || trim() == 0) return mapping;
  return without_throwing(map);
}

absl::Status HostResource::make_ready(const AllocationRequest& request, std::byte* data,
                                      const Live& live, bool lazy_zeros) {
  const std::int64_t total_bytes = request.total_bytes;
  const auto commit = [&] { return source_.commit(data, total_bytes); };
  if (request.populate) {
    const absl::Status status = without_throwing(commit);
    if (!status.ok()) return status;
  } else if (request.zeroed && !lazy_zeros && live.used_bytes == 0 &&
             total_bytes >= kTouchedBytes && thread_count() > 1 &&
             may_commit_unasked(total_bytes)) {
    without_throwing(commit).IgnoreError();  // else the first use commits them
  }
  if (request.zeroed && live.used_bytes > 0) {
    const bool renewed =
        lazy_zeros && total_bytes >= kRenewedBytes && pages::renew_pages(live.mapping);
    const std::int64_t used_bytes = live.mapping.address + live.used_bytes - data;
    if (!renewed) zero(data, std::clamp<std::int64_t>(used_bytes, 0, total_bytes));
  }
  if (!request.zeroed && poisons() && may_commit_unasked(total_bytes)) {
    std::memset(data, static_cast<int>(kPoison), static_cast<std::size_t>(total_bytes));
  }
  return absl::OkStatus();
}

// The start moves by 577 of 2048 lines from block to block: a quarter, a page of 4 KiB and a line.
// The starts of four consecutive blocks are then at least 19 KiB apart. (A solver in columns over
// four fields of 10 MiB runs at 0.77 of that speed with starts a line apart.)
std::int64_t HostResource::next_stagger(const Placement& placement) {
  if (placement.modulus_bytes > kStaggerBytes) return 0;
  const std::uint32_t block = blocks_.fetch_add(1, std::memory_order_relaxed);
  return block * 577 % (kStaggerBytes / kCacheLineBytes) * kCacheLineBytes;
}

absl::Status HostResource::refuse(const AllocationRequest& request, std::string_view cause) {
  HostStatistics found;
  {
    const std::lock_guard lock(mutex_);
    ++statistics_.refusals;
    found = statistics_;
  }
  return without_throwing([&] {
    return out_of_memory(
        request, name(),
        std::string(cause) + " (large blocks in use: " + bytes_text(found.live_bytes) + ")");
  });
}

// ---- What the machine can hold. ----

// 0 if the query itself runs out of memory.
std::int64_t HostResource::committable_bytes() const noexcept {
  try {
    return source_.committable_bytes();
  } catch (const std::bad_alloc&) {
    return 0;
  }
}

bool HostResource::may_commit_unasked(std::int64_t total_bytes) const noexcept {
  return total_bytes <= committable_bytes() / kTouchedDivisor;
}

// Whether `populate` can succeed; empties the cache for it if necessary.
bool HostResource::could_commit(std::int64_t total_bytes) {
  if (total_bytes < kChunkBytes || total_bytes <= committable_bytes()) return true;
  return trim() > 0 && total_bytes <= committable_bytes();
}

// New pages change the committable memory, which sets the default limit.
void HostResource::follow_machine() noexcept {
  if (options().cache_limit_bytes) return;
  const std::int64_t limit = kSanitized ? 0 : committable_bytes() / kCacheDivisor;
  const std::lock_guard lock(mutex_);
  if (!options_.cache_limit_bytes) cache_limit_.store(limit, std::memory_order_relaxed);
}

// ---- Release. ----

void HostResource::release_large(void* context, void* /*allocation*/) noexcept {
  const std::unique_ptr<Live> live(static_cast<Live*>(context));
  live->owner->take_back(*live);
}

void HostResource::take_back(const Live& live) noexcept {
  const Mapping& mapping = live.mapping;
  unpoison_bytes(mapping.address, mapping.length_bytes);  // padding may be poisoned
  const bool poison = poisons();
  const bool keep = live.keep && !poison;
  MappingCache::Victims victims;
  bool kept = false;
  {
    const std::lock_guard lock(mutex_);
    change_live(-1, -mapping.length_bytes, victims);
    cache_.forget(mapping, live.length_bytes);
    cache_.set_limit(kept_limit(), victims);
    kept = keep && mapping.length_bytes <= cache_.limit_bytes();
  }
  if (kept && mapping.length_bytes >= kOfferedBytes) {
    pages::offer_pages(mapping.address, mapping.length_bytes);
  }
  if (kept) poison_bytes(mapping.address, mapping.length_bytes);
  unmap_all(victims);
  if (!keep) return poison ? seal(mapping) : source_.unmap(mapping);
  MappingCache::Victims displaced;
  {
    const std::lock_guard lock(mutex_);
    cache_.give(mapping, mapping.length_bytes, displaced);
  }
  unmap_all(displaced);
}

// ---- Resizing. ----

bool HostResource::resize_large(Block& block, std::int64_t total_bytes) noexcept {
  if (poisons()) return false;  // a use of the old address must fault
  const std::int64_t old_bytes = block.total_bytes();
  std::byte* const data = block.data();
  Block::Allocation allocation = block.detach();
  Live& live = *static_cast<Live*>(allocation.context);
  const std::int64_t before_bytes = data - live.mapping.address;
  const bool resized = resize(live, before_bytes + total_bytes);
  allocation.address = live.mapping.address;
  allocation.allocation_bytes = live.mapping.length_bytes;
  block = Block(live.mapping.address + before_bytes, resized ? total_bytes : old_bytes, allocation);
  return resized;
}

bool HostResource::resize(Live& live, std::int64_t needed_bytes) noexcept {
  const Mapping old = live.mapping;
  if (needed_bytes > kLongestBytes) return false;
  // Whole huge pages: the next growth finds them, and one fault commits them.
  const std::int64_t length = pages::part_length(needed_bytes, old.pages);
  // A block that fits stays, unless more than half of it would be unused.
  if (needed_bytes <= old.length_bytes && length >= old.length_bytes / 2) return true;
  const std::int64_t more_bytes = length - old.length_bytes;
  MappingCache::Victims victims;
  {
    const std::lock_guard lock(mutex_);
    if (more_bytes > options_.limit_bytes - statistics_.live_bytes) return false;
    change_live(0, more_bytes, victims);
    cache_.set_limit(kept_limit(), victims);
  }
  unmap_all(victims);
  unpoison_bytes(old.address, old.length_bytes);
  std::optional<Mapping> mapping = source_.resize(old, length);
  if (!mapping && trim() > 0) mapping = source_.resize(old, length);
  MappingCache::Victims stale;
  {
    const std::lock_guard lock(mutex_);
    if (mapping) {
      cache_.forget(old, live.length_bytes);
      live.mapping = *mapping;
      live.length_bytes = length;
      statistics_.peak_live_bytes = std::max(statistics_.peak_live_bytes, statistics_.live_bytes);
    } else {
      change_live(0, -more_bytes, stale);
    }
  }
  unmap_all(stale);
  return mapping.has_value();
}

// Poison mode: keeps the addresses of a freed block, without its memory.
void HostResource::seal(const Mapping& mapping) noexcept {
  if (!pages::seal_pages(mapping)) return source_.unmap(mapping);
  Mapping oldest;
  {
    const std::lock_guard lock(mutex_);
    oldest = std::exchange(sealed_[next_sealed_], mapping);
    next_sealed_ = (next_sealed_ + 1) % sealed_.size();
  }
  if (oldest.address != nullptr) source_.unmap(oldest);
}

void HostResource::unmap_all(const MappingCache::Victims& victims) noexcept {
  for (const Mapping& victim : victims) {
    unpoison_bytes(victim.address, victim.length_bytes);
    source_.unmap(victim);
  }
}

// ---- Statistics and settings. ----

void HostResource::change_live(std::int64_t blocks, std::int64_t total_bytes,
                               MappingCache::Victims& victims) {
  statistics_.live_blocks += blocks;
  statistics_.live_bytes += total_bytes;
  if (demand_.note(statistics_.live_bytes, source_.seconds())) cache_.begin_epoch(victims);
}

// Counts a block that was served from the cache or from the kernel.
void HostResource::count_up(std::int64_t& origin) {
  ++origin;
  statistics_.peak_live_bytes = std::max(statistics_.peak_live_bytes, statistics_.live_bytes);
}

std::int64_t HostResource::kept_limit() const {
  const std::int64_t limit = cache_limit_.load(std::memory_order_relaxed);
  const std::int64_t room_bytes = options_.limit_bytes - statistics_.live_bytes;
  // The peak contains the surplus.
  const std::int64_t worth =
      options_.cache_limit_bytes ? limit : demand_.worth_keeping() + cache_.surplus_bytes();
  return std::max<std::int64_t>(std::min({limit, worth, room_bytes}), 0);
}

void HostResource::set(const HostOptions& options) {
  poison_.store(options.poison, std::memory_order_relaxed);
  {
    const std::lock_guard lock(mutex_);
    options_ = options;
    if (options.cache_limit_bytes) cache_limit_.store(*options.cache_limit_bytes);
  }
  follow_machine();
}

HostOptions HostResource::options() const {
  const std::lock_guard lock(mutex_);
  return options_;
}

absl::Status HostResource::configure(const HostOptions& options) {
  for (const auto& [name, bytes] : {std::pair("cache_limit_bytes", options.cache_limit_bytes),
                                    std::pair("limit_bytes", std::optional(options.limit_bytes))}) {
    if (bytes.value_or(0) >= 0) continue;
    return make_error(ErrorClass::kValue, {name, std::to_string(*bytes), "0 or more",
                                           "leave it out for a limit that follows the machine"});
  }
  set(options);
  trim(options.poison ? 0 : statistics().cache_limit_bytes);
  return absl::OkStatus();
}

HostStatistics HostResource::statistics() const {
  const std::lock_guard lock(mutex_);
  HostStatistics found = statistics_;
  found.cached_blocks = cache_.count();
  found.cached_bytes = cache_.cached_bytes();
  found.cache_limit_bytes = kept_limit();
  return found;
}

std::string HostResource::page_text() const {
  const std::string setting = "the system's setting is " + std::string(to_string(huge_pages_.mode));
  if (pages::kind_for(huge_pages_.page_bytes, true, huge_pages_) == PageKind::kSmall) {
    return "small pages: " + setting;
  }
  return options().huge_pages ? "huge pages: " + setting : "small pages: asked for";
}

std::int64_t HostResource::trim(std::int64_t keep_bytes) {
  MappingCache::Victims victims;
  decltype(sealed_) sealed{};
  {
    const std::lock_guard lock(mutex_);
    cache_.trim(keep_bytes, victims);
    std::swap(sealed, sealed_);
  }
  unmap_all(victims);
  std::int64_t total_bytes = victims.total_bytes();
  for (const Mapping& mapping : sealed) {
    if (mapping.address == nullptr) continue;
    source_.unmap(mapping);
    total_bytes += mapping.length_bytes;
  }
  return total_bytes;
}

void HostResource::survive_forks() {
  struct AtFork final : ForkLock {
    void hold() override { host_resource().mutex_.lock(); }
    void let_go() override { host_resource().mutex_.unlock(); }
    // A child drops the kept mappings.
    void renew() override {
      HostResource& host = host_resource();
      std::construct_at(&host.mutex_);
      MappingCache::Victims victims;
      host.cache_.trim(0, victims);
      host.unmap_all(victims);
    }
  };
  [[maybe_unused]] static const AtFork& registered = *new AtFork;
}

}  // namespace gridbuf
