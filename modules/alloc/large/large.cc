module;

#include <time.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

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

module gridbuf.alloc.large;

import gridbuf.alloc.cache;
import gridbuf.alloc.pages;
import gridbuf.alloc.poison;
import gridbuf.alloc.policy;
import gridbuf.alloc;
import gridbuf.base;
import gridbuf.layout;

namespace gridbuf {

using pages::Mapping;

namespace {

// A sanitizer sees a use after free only if the memory is not lent again.
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

// How old a reading of what could be committed may be.
constexpr std::int64_t kReadingNanoseconds = 100'000'000;
// Work on cached or touched memory is cut into pieces of this length.
constexpr std::int64_t kChunkBytes = std::int64_t{1} << 21;
// Zeros of this length and more are written past the caches, by all threads.
constexpr std::int64_t kStreamedBytes = std::int64_t{1} << 25;
// Longer than any address space; rounding it up to pages cannot overflow.
constexpr std::int64_t kLongestBytes = std::int64_t{1} << 60;

std::int64_t steady_nanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

PageSource& kernel() {
  static PageSource& source = *new PageSource;
  return source;
}

// Writes past the caches: three times as fast as memset on the machines measured, for ranges that
// the caches could not hold anyway. Requires begin on 16 bytes.
void stream_zeros([[maybe_unused]] std::byte* begin, [[maybe_unused]] std::int64_t length_bytes) {
#if defined(__SSE2__)
  const __m128i zero = _mm_setzero_si128();
  for (std::int64_t at = 0; at < length_bytes; at += 16) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(begin + at), zero);
  }
  _mm_sfence();  // streamed stores are ordered for other threads by this alone
#else
  std::memset(begin, 0, static_cast<std::size_t>(length_bytes));
#endif
}

// Writes zeros, with threads and past the caches where it is long.
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

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// What must be mapped for a placement, stagger included; none if no machine has it.
std::optional<std::int64_t> needed_bytes(const Placement& placement) {
  const std::optional<std::int64_t> bytes = checked::add(placement.block_bytes, kStaggerBytes);
  return bytes && *bytes <= kLongestBytes ? bytes : std::nullopt;
}

// Runs `work`, which builds a status; where there is no memory even for that, the status is bare.
template <class Work>
auto without_throwing(const Work& work) noexcept -> decltype(work()) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return absl::Status(absl::StatusCode::kResourceExhausted, "");
  }
}

// What went wrong, without the advice that follows in messages of their own.
std::string_view cause_of(const absl::Status& status) {
  return status.message().substr(0, status.message().find(';'));
}

}  // namespace

// A block that is out: the context of its release.
struct LargeResource::Lent {
  LargeResource* owner;
  std::int64_t length_bytes;  // that were needed, in whole pages
  PageKind pages;             // that were wanted
  Mapping mapping = {};       // what served it, perhaps a longer kept one
  bool from_cache = false;
  std::unique_ptr<BackgroundLoop> touching = nullptr;  // ends before the mapping does
};

absl::StatusOr<Mapping> PageSource::map(std::int64_t length_bytes, PageKind pages) {
  return pages::map_pages(length_bytes, pages);
}
void PageSource::unmap(const Mapping& mapping) noexcept { pages::unmap_pages(mapping); }
absl::Status PageSource::commit(std::byte* data, std::int64_t total_bytes) {
  return pages::commit(data, total_bytes);
}
std::int64_t PageSource::committable_bytes() { return system::committable_bytes(); }
std::int64_t PageSource::processor_nanoseconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

LargeResource::LargeResource(std::string_view name, const LargeOptions& options, PageSource* source)
    : name_(name), source_(source == nullptr ? kernel() : *source) {
  set(options);
}

LargeResource::~LargeResource() { trim(); }

// ---- Allocation. ----

absl::StatusOr<Block> LargeResource::allocate(const AllocationRequest& request) {
  const absl::StatusOr<Placement> placement = place(request);
  if (!placement.ok()) return placement.status();
  const std::optional<std::int64_t> needed = needed_bytes(*placement);
  if (!needed) return refuse(request, "no machine has that much address space");
  if (request.populate && !could_commit(request.total_bytes)) {
    return refuse(request, "populate was asked for, and that is more than could be committed now");
  }
  const PageKind pages = policy_.choose(*needed);
  std::unique_ptr<Lent> lent(new (std::nothrow)
                                 Lent{this, pages::mapped_length(*needed, pages), pages});
  if (lent == nullptr) return refuse(request, "the C library has no memory for a block's books");
  if (const absl::Status status = obtain(*lent); !status.ok()) {
    return refuse(request, cause_of(status));
  }
  std::byte* const plain = place_in(*placement, lent->mapping.address);
  std::byte* const data = place_in(*placement, lent->mapping.address + next_stagger(*placement));
  if (const absl::Status status = make_ready(request, data, *lent); !status.ok()) {
    take_back(*lent);
    return refuse(request, cause_of(status));
  }
  const Mapping mapping = lent->mapping;
  const BlockFacts facts{.resource_name = name_,
                         .pages = mapping.pages,
                         .from_cache = lent->from_cache,
                         .stagger_bytes = data - plain};
  return Block(data, request.total_bytes,
               {mapping.address, mapping.length_bytes, &release, lent.release(), facts});
}

// Pages for a block, kept ones or new ones, and their place in the books.
absl::Status LargeResource::obtain(Lent& lent) {
  std::optional<Mapping> kept;
  MappingCache::Victims victims;
  {
    const std::lock_guard lock(mutex_);
    const std::int64_t room_bytes = options_.limit_bytes - statistics_.live_bytes;
    if (lent.length_bytes > room_bytes) {
      return without_throwing([&] {
        return make_error(ErrorClass::kMemory, "the limit is " + bytes_text(options_.limit_bytes) +
                                                   ", and " + bytes_text(statistics_.live_bytes) +
                                                   " are in use");
      });
    }
    kept = cache_.take(lent.length_bytes);
    if (!kept) cache_.trim(room_bytes - lent.length_bytes, victims);
    enter(kept ? kept->length_bytes : lent.length_bytes);
    if (kept) count_up(statistics_.hits);
  }
  unmap_all(victims);
  if (kept) {
    lent.mapping = *kept;
    lent.from_cache = true;
    unpoison_bytes(kept->address, kept->length_bytes);
    return absl::OkStatus();
  }
  const absl::StatusOr<Mapping> mapping = map_or_trim(lent.length_bytes, lent.pages);
  const std::lock_guard lock(mutex_);
  if (!mapping.ok()) {
    leave(lent.length_bytes);
    return mapping.status();
  }
  count_up(statistics_.misses);
  lent.mapping = *mapping;
  return absl::OkStatus();
}

// New pages; where there are none, the kept ones go, and it is tried once more.
absl::StatusOr<Mapping> LargeResource::map_or_trim(std::int64_t length_bytes, PageKind pages) {
  const auto map = [&] { return source_.map(length_bytes, pages); };
  absl::StatusOr<Mapping> mapping = without_throwing(map);
  if (mapping.ok() || trim() == 0) return mapping;
  return without_throwing(map);
}

// Brings the bytes of a block into the state that was asked for.
absl::Status LargeResource::make_ready(const AllocationRequest& request, std::byte* data,
                                       Lent& lent) {
  if (request.populate) {
    const absl::Status status = touch(data, request.total_bytes, lent);
    if (!status.ok()) return status;
  } else if (request.zeroed && !lent.from_cache && pays_to_touch(request.total_bytes)) {
    touch_zeros(data, request.total_bytes, lent);
  }
  if (request.zeroed && lent.from_cache) zero(data, request.total_bytes);
  if (!request.zeroed && poisons() && may_commit_unasked(request.total_bytes)) {
    std::memset(data, static_cast<int>(kPoison), static_cast<std::size_t>(request.total_bytes));
  }
  return absl::OkStatus();
}

// Touches what nobody asked to touch: where it fails, the pages are left to their first use. The
// first piece of a long block shows how fast pages come, and whether there are processors for the
// rest.
void LargeResource::touch_zeros(std::byte* data, std::int64_t total_bytes, Lent& lent) {
  if (total_bytes < kBackgroundBytes || !pages::commits_beside_users()) {
    touch(data, total_bytes, lent).IgnoreError();
    return;
  }
  std::byte* const mapping = lent.mapping.address;  // on a border of huge pages
  const std::int64_t piece_bytes = std::max(total_bytes / kForegroundDivisor, kEagerBytes);
  const std::int64_t border = round_up(data - mapping + piece_bytes, kChunkBytes);
  const absl::Status status = touch(data, mapping + border - data, lent);
  const bool processors_taken = lazy_blocks_.load(std::memory_order_relaxed) > 0;
  if (!status.ok() || processors_taken) return;
  touch_in_background(mapping + border, data + total_bytes - (mapping + border), lent);
}

// A single thread touches pages two to three times as slowly as a program writes to those that are
// there. So it begins after the third that a program, coming from the begin, will have touched by
// itself meanwhile, and ends with what is left of that. Several are faster than any writer.
void LargeResource::touch_in_background(std::byte* from, std::int64_t length_bytes, Lent& lent) {
  const std::int64_t rounded_bytes = round_up(length_bytes, kChunkBytes);
  const bool single = thread_count() == 2;
  const std::int64_t first = single ? round_up(length_bytes / 3, kChunkBytes) : 0;
  const auto commit = [=, this](std::int64_t begin, std::int64_t end) {
    const std::int64_t at = (begin + first) % rounded_bytes;
    const std::int64_t chunk_bytes = std::min(end - begin, length_bytes - at);
    without_throwing([&] { return source_.commit(from + at, chunk_bytes); }).IgnoreError();
  };
  lent.touching = BackgroundLoop::start(rounded_bytes, kChunkBytes, commit);
}

absl::Status LargeResource::touch(std::byte* data, std::int64_t total_bytes, const Lent& lent) {
  const std::int64_t started = steady_nanoseconds();
  const std::int64_t processors_started = source_.processor_nanoseconds();
  absl::Status status = without_throwing([&] { return source_.commit(data, total_bytes); });
  if (!status.ok() || lent.from_cache) return status;
  const std::int64_t passed = steady_nanoseconds() - started;
  policy_.record(lent.mapping.pages, total_bytes, passed);
  // Other programs have the processors: touching early gains nothing, and loses what a first write
  // finds in its cache.
  const bool alone = source_.processor_nanoseconds() - processors_started < passed + passed / 4;
  if (alone && total_bytes >= kEagerBytes) {
    lazy_blocks_.store(kLazyBlocks, std::memory_order_relaxed);
  }
  return status;
}

// The start moves by 577 of 2048 lines from block to block: a quarter, a page of 4 KiB and a line.
// So the starts of any few blocks that follow one another are far apart, those of four by 19 KiB at
// least, and 64 blocks take each line of a page once. (A solver in columns over four fields of
// 10 MiB runs at 0.98 of that speed with 633 of 1024 lines, and at 0.77 with starts a line apart.)
std::int64_t LargeResource::next_stagger(const Placement& placement) {
  if (placement.modulus_bytes > kStaggerBytes) return 0;
  const std::uint32_t block = blocks_.fetch_add(1, std::memory_order_relaxed);
  return block * 577 % (kStaggerBytes / kCacheLineBytes) * kCacheLineBytes;
}

absl::Status LargeResource::refuse(const AllocationRequest& request, std::string_view cause) {
  LargeStatistics found;
  {
    const std::lock_guard lock(mutex_);
    ++statistics_.refusals;
    found = statistics_;
  }
  return without_throwing([&] {
    return out_of_memory(
        request, name_,
        std::string(cause) + " (large blocks in use: " + bytes_text(found.live_bytes) + ")");
  });
}

// ---- What the machine can hold. ----

// What could be committed now; nothing if there is no memory to read the reports with.
std::int64_t LargeResource::read_committable() const noexcept {
  try {
    return source_.committable_bytes();
  } catch (const std::bad_alloc&) {
    return 0;
  }
}

// The same by a reading that is not old.
std::int64_t LargeResource::committable_bytes() const noexcept {
  const std::int64_t now = steady_nanoseconds();
  const std::int64_t read_at = committable_read_at_.load(std::memory_order_relaxed);
  if (read_at == 0 || now - read_at > kReadingNanoseconds) {
    committable_.store(read_committable(), std::memory_order_relaxed);
    committable_read_at_.store(now, std::memory_order_relaxed);
  }
  return committable_.load(std::memory_order_relaxed);
}

// Whether a block may be touched that nobody asked to touch: never more than a part of the machine.
bool LargeResource::may_commit_unasked(std::int64_t total_bytes) const noexcept {
  return total_bytes <= committable_bytes() / kEagerDivisor;
}

bool LargeResource::pays_to_touch(std::int64_t total_bytes) noexcept {
  if (total_bytes < kEagerBytes || thread_count() == 1) return false;
  if (!may_commit_unasked(total_bytes)) return false;
  if (lazy_blocks_.load(std::memory_order_relaxed) <= 0) return true;
  lazy_blocks_.fetch_sub(1, std::memory_order_relaxed);
  return false;
}

// Whether `populate` can work; kept pages are given up for it.
bool LargeResource::could_commit(std::int64_t total_bytes) {
  if (total_bytes < kChunkBytes || total_bytes <= read_committable()) return true;
  return trim() > 0 && total_bytes <= read_committable();
}

std::int64_t LargeResource::cache_limit() const noexcept {
  const std::int64_t fixed = fixed_cache_limit_.load(std::memory_order_relaxed);
  if (fixed >= 0) return fixed;
  return kSanitized ? 0 : committable_bytes() / kCacheDivisor;
}

// ---- Release. ----

void LargeResource::release(void* context, void* /*allocation*/) noexcept {
  const std::unique_ptr<Lent> lent(static_cast<Lent*>(context));
  lent->touching.reset();
  lent->owner->take_back(*lent);
}

void LargeResource::take_back(const Lent& lent) noexcept {
  const Mapping& mapping = lent.mapping;
  unpoison_bytes(mapping.address, mapping.length_bytes);  // a user may have poisoned padding
  if (poisons()) {
    {
      const std::lock_guard lock(mutex_);
      leave(mapping.length_bytes);
      cache_.forget(mapping, lent.length_bytes);
    }
    return seal(mapping);
  }
  const std::int64_t limit = cache_limit();
  const bool kept = mapping.length_bytes <= limit;
  if (kept && mapping.length_bytes >= kOfferedBytes) {
    pages::offer_pages(mapping.address, mapping.length_bytes);
  }
  if (kept) poison_bytes(mapping.address, mapping.length_bytes);
  MappingCache::Victims victims;
  {
    const std::lock_guard lock(mutex_);
    leave(mapping.length_bytes);
    cache_.set_limit(limit, victims);
    cache_.give(mapping, lent.length_bytes, victims);
  }
  unmap_all(victims);
}

// Poison mode: the addresses of a freed block stay, its memory goes.
void LargeResource::seal(const Mapping& mapping) noexcept {
  if (!pages::seal_pages(mapping)) return source_.unmap(mapping);
  Mapping oldest;
  {
    const std::lock_guard lock(mutex_);
    oldest = std::exchange(sealed_[next_sealed_], mapping);
    next_sealed_ = (next_sealed_ + 1) % kSealed;
  }
  if (oldest.address != nullptr) source_.unmap(oldest);
}

void LargeResource::unmap_all(const MappingCache::Victims& victims) noexcept {
  for (const Mapping& victim : victims) {
    unpoison_bytes(victim.address, victim.length_bytes);
    source_.unmap(victim);
  }
}

// ---- Books and settings. ----

void LargeResource::enter(std::int64_t length_bytes) {
  ++statistics_.live_blocks;
  statistics_.live_bytes += length_bytes;
}

// A block is out for good: it came from the cache, or from the kernel.
void LargeResource::count_up(std::int64_t& origin) {
  ++origin;
  statistics_.peak_live_bytes = std::max(statistics_.peak_live_bytes, statistics_.live_bytes);
}

void LargeResource::leave(std::int64_t length_bytes) {
  --statistics_.live_blocks;
  statistics_.live_bytes -= length_bytes;
}

void LargeResource::set(const LargeOptions& options) {
  policy_.set_wish(options.huge_pages);
  poison_.store(options.poison, std::memory_order_relaxed);
  fixed_cache_limit_.store(options.cache_limit_bytes.value_or(-1), std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  options_ = options;
}

LargeOptions LargeResource::options() const {
  const std::lock_guard lock(mutex_);
  return options_;
}

absl::Status LargeResource::configure(const LargeOptions& options) {
  for (const auto& [name, bytes] : {std::pair("cache_limit_bytes", options.cache_limit_bytes),
                                    std::pair("limit_bytes", std::optional(options.limit_bytes))}) {
    if (bytes.value_or(0) >= 0) continue;
    return make_error(ErrorClass::kValue, {name, std::to_string(*bytes), "0 or more",
                                           "leave it out for a limit that follows the machine"});
  }
  set(options);
  trim(options.poison ? 0 : cache_limit());
  return absl::OkStatus();
}

LargeStatistics LargeResource::statistics() const {
  const std::int64_t limit = cache_limit();
  const std::lock_guard lock(mutex_);
  LargeStatistics found = statistics_;
  found.cached_blocks = cache_.count();
  found.cached_bytes = cache_.cached_bytes();
  found.cache_limit_bytes = limit;
  return found;
}

std::int64_t LargeResource::trim(std::int64_t keep_bytes) {
  MappingCache::Victims victims;
  std::array<Mapping, kSealed> sealed{};
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

// What was kept is the parent's: to write into it here would copy it, page by page.
void LargeResource::unlock_in_child() {
  MappingCache::Victims victims;
  cache_.trim(0, victims);
  mutex_.unlock();
  unmap_all(victims);
}

}  // namespace gridbuf
