module;

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#if __has_feature(address_sanitizer)
#include <sanitizer/asan_interface.h>
#define GRIDBUF_ASAN 1
#endif

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.alloc.host;

import gridbuf.alloc;
import gridbuf.base;

namespace gridbuf::pages {
namespace {

// Below this length `commit` uses only the caller's thread, because starting another thread costs
// more than it saves.
constexpr std::int64_t kParallelBytes = std::int64_t{1} << 23;

// A block may be mapped longer by this much, or by an eighth.
constexpr std::int64_t kSmallSurplusBytes = std::int64_t{1} << 21;

// What a thread commits at once of a block of few huge pages.
constexpr std::int64_t kSmallChunkBytes = std::int64_t{1} << 21;

std::int64_t huge_page_bytes() { return page_lengths().huge_page_bytes; }

std::int64_t round_down(std::int64_t value, std::int64_t multiple) {
  return value - value % multiple;
}

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return round_down(value - 1, multiple) + multiple;
}

std::int64_t number_of(const std::byte* address) {
  return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(address));
}

std::byte* address_of(std::int64_t number) {
  return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(number));
}

// ---- Mapping. ----

// Anonymous memory, or null with errno.
std::byte* map(std::int64_t length_bytes, int flags = 0) {
  void* const address = mmap(nullptr, static_cast<std::size_t>(length_bytes),
                             PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  return address == MAP_FAILED ? nullptr : static_cast<std::byte*>(address);
}

void unmap(std::byte* address, std::int64_t length_bytes) noexcept {
  if (length_bytes > 0) munmap(address, static_cast<std::size_t>(length_bytes));
}

// `length_bytes` that begin at an address of this remainder: a longer piece, without its ends.
std::byte* map_at(std::int64_t length_bytes, std::int64_t modulus, std::int64_t remainder,
                  int flags = 0) {
  std::byte* const address = map(length_bytes, flags);
  if (address == nullptr || number_of(address) % modulus == remainder) return address;
  unmap(address, length_bytes);
  std::byte* const wide = map(length_bytes + modulus, flags);
  if (wide == nullptr) return nullptr;
  const std::int64_t before = (remainder - number_of(wide) % modulus + modulus) % modulus;
  unmap(wide, before);
  unmap(wide + before + length_bytes, modulus - before);
  return wide + before;
}

// ---- Committing. ----

// Asks the kernel to commit whole pages; 0 or the error number.
int populate([[maybe_unused]] std::byte* first, [[maybe_unused]] std::int64_t length_bytes) {
#ifdef MADV_POPULATE_WRITE
  int result = 0;
  do {
    result = madvise(first, static_cast<std::size_t>(length_bytes), MADV_POPULATE_WRITE);
  } while (result != 0 && (errno == EAGAIN || errno == EINTR));
  return result == 0 ? 0 : errno;
#else
  return EINVAL;
#endif
}

// Whether this kernel follows MADV_POPULATE_WRITE. It answers EINVAL for unknown advice and for
// read-only mappings alike, so this asks once with a writable page. An emulator may accept the
// advice and do nothing.
bool kernel_populates() {
  static const bool answer = [] {
    std::byte* const page = map(system::page_bytes());
    if (page == nullptr) return false;
    unsigned char present = 1;
    const bool populated =
        populate(page, system::page_bytes()) == 0 &&
        (mincore(page, static_cast<std::size_t>(system::page_bytes()), &present) != 0 ||
         (present & 1) != 0);
    unmap(page, system::page_bytes());
    return populated;
  }();
  return answer;
}
// Before any thread: see modules/base/fork.h.
[[maybe_unused]] const bool populates_at_load = kernel_populates();

// Commits the pages of [begin, end); 0 or the error number.
int commit_range(std::byte* begin, std::byte* end) {
  if (!kernel_populates()) {
    touch(begin, end - begin);
    return 0;
  }
  std::byte* const first = address_of(round_down(number_of(begin), system::page_bytes()));
  return populate(first, end - first);
}

// As commit_range, with several threads; one thread commits all of a huge page.
int commit_parallel(std::byte* data, std::int64_t total_bytes) {
  const std::int64_t chunk_bytes = commit_chunk_bytes(total_bytes);
  std::byte* const first = address_of(round_down(number_of(data), chunk_bytes));
  std::atomic<int> first_error = 0;
  parallel_for(data + total_bytes - first, chunk_bytes, [&](std::int64_t begin, std::int64_t end) {
    // Relaxed: a thread that sees the error late commits some more pages. The end of
    // the job publishes the number to the caller.
    if (first_error.load(std::memory_order_relaxed) != 0) return;
    const int error = commit_range(std::max(data, first + begin), first + end);
    int none = 0;
    if (error != 0) first_error.compare_exchange_strong(none, error);
  });
  return first_error;
}

}  // namespace

PageKind kind_for(std::int64_t length_bytes, bool wanted, const system::HugePageReport& report) {
  const bool system_has_them =
      report.mode == system::HugePageMode::kMadvise || report.mode == system::HugePageMode::kAlways;
  const bool huge = wanted && system_has_them && length_bytes >= report.page_bytes;
  return huge ? PageKind::kHuge : PageKind::kSmall;
}

PageLengths page_lengths() {
  static const PageLengths lengths{system::page_bytes(), system::huge_pages().page_bytes};
  return lengths;
}
[[maybe_unused]] const PageLengths lengths_at_load = page_lengths();

std::int64_t mapped_length(std::int64_t length_bytes, PageKind pages, const PageLengths& lengths) {
  const std::int64_t whole_pages = round_up(length_bytes, lengths.page_bytes);
  const std::int64_t huge = lengths.huge_page_bytes;
  if (pages != PageKind::kHuge || whole_pages % huge < huge / 4) return whole_pages;
  const std::int64_t huge_pages = round_up(whole_pages, huge);
  const bool few = huge_pages - whole_pages <= std::max(kSmallSurplusBytes, length_bytes / 8);
  return few ? huge_pages : whole_pages;
}

std::int64_t part_length(std::int64_t length_bytes, PageKind pages, const PageLengths& lengths) {
  const std::int64_t huge = std::min(lengths.huge_page_bytes, kSmallSurplusBytes);
  return round_up(length_bytes, pages == PageKind::kHuge ? huge : lengths.page_bytes);
}

std::int64_t commit_chunk_bytes(std::int64_t total_bytes, const PageLengths& lengths) {
  const std::int64_t huge = lengths.huge_page_bytes;
  return total_bytes < 2 * huge ? std::min(huge, kSmallChunkBytes) : huge;
}

absl::StatusOr<Mapping> map_pages(std::int64_t length_bytes, PageKind pages, bool any_length) {
  const std::int64_t length = mapped_length(length_bytes, pages);
  const bool huge = pages == PageKind::kHuge;
  const int flags = any_length ? MAP_NORESERVE : 0;
  std::byte* const address =
      huge ? map_at(length, huge_page_bytes(), 0, flags) : map(length, flags);
  if (address == nullptr) {
    return make_error(ErrorClass::kMemory, "the kernel could not map " + bytes_text(length) + " (" +
                                               std::strerror(errno) +
                                               "); ask for a smaller shape or free some memory");
  }
  madvise(address, static_cast<std::size_t>(length), huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  return Mapping{address, length, pages};
}

void unmap_pages(const Mapping& mapping) noexcept { unmap(mapping.address, mapping.length_bytes); }

std::optional<Mapping> resize_pages(const Mapping& mapping, std::int64_t length_bytes) noexcept {
  const Mapping resized{mapping.address, length_bytes, mapping.pages};
  if (length_bytes <= mapping.length_bytes) {
    unmap(mapping.address + length_bytes, mapping.length_bytes - length_bytes);
    return resized;
  }
  const auto before = static_cast<std::size_t>(mapping.length_bytes);
  const auto after = static_cast<std::size_t>(length_bytes);
  if (mremap(mapping.address, before, after, 0) != MAP_FAILED) return resized;
  // The kernel moves page tables. It moves those of huge pages whole, from boundary to boundary.
  const std::int64_t modulus =
      mapping.pages == PageKind::kHuge ? huge_page_bytes() : kMaxAlignmentBytes;
  std::byte* const target = map_at(length_bytes, modulus, number_of(mapping.address) % modulus);
  if (target == nullptr) return std::nullopt;
  constexpr int kThere = MREMAP_MAYMOVE | MREMAP_FIXED;
  if (mremap(mapping.address, before, after, kThere, target) == MAP_FAILED) {
    unmap(target, length_bytes);
    return std::nullopt;
  }
  return Mapping{target, length_bytes, mapping.pages};
}

bool seal_pages(const Mapping& mapping) noexcept {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  return mmap(mapping.address, static_cast<std::size_t>(mapping.length_bytes), PROT_NONE, kFlags,
              -1, 0) != MAP_FAILED;
}

void offer_pages(std::byte* address, std::int64_t length_bytes) noexcept {
  const std::int64_t begin = round_up(number_of(address), system::page_bytes());
  const std::int64_t end = round_down(number_of(address) + length_bytes, system::page_bytes());
  if (begin < end) madvise(address_of(begin), static_cast<std::size_t>(end - begin), MADV_FREE);
}

bool renew_pages(const Mapping& mapping) noexcept {
  return madvise(mapping.address, static_cast<std::size_t>(mapping.length_bytes), MADV_DONTNEED) ==
         0;
}

void touch(std::byte* data, std::int64_t total_bytes) {
  if (total_bytes <= 0) return;
  const auto rewrite = [](std::byte* address) {
    volatile std::byte* byte = address;
    *byte = *byte;
  };
  for (std::int64_t offset = 0; offset < total_bytes; offset += system::page_bytes()) {
    rewrite(data + offset);
  }
  rewrite(data + total_bytes - 1);
}

absl::Status commit(std::byte* data, std::int64_t total_bytes) {
  if (total_bytes <= 0) return absl::OkStatus();
  const int error = total_bytes < kParallelBytes ? commit_range(data, data + total_bytes)
                                                 : commit_parallel(data, total_bytes);
  if (error == 0) return absl::OkStatus();
  return make_error(ErrorClass::kMemory, "the kernel could not commit " + bytes_text(total_bytes) +
                                             " (" + std::strerror(error) +
                                             "); ask for a smaller shape or free some memory");
}

}  // namespace gridbuf::pages

// ---- The cache of mappings. ----

namespace gridbuf {

using pages::Mapping;

namespace {

// At most this part of a kept mapping is unused when it serves a request.
constexpr std::int64_t kWasteDivisor = 4;
// So much of the memory of the last seconds is kept in any case.
constexpr std::int64_t kKeptDivisor = 3;
// "The last seconds" are one to two of these.
constexpr std::int64_t kEpochSeconds = 5;
constexpr std::int64_t kLongest = std::numeric_limits<std::int64_t>::max();

}  // namespace

// ---- What is worth keeping. ----

bool Demand::note(std::int64_t live_bytes, std::int64_t seconds) {
  const bool begins = seconds - begin_ >= kEpochSeconds;
  if (begins) {
    previous_ = std::exchange(current_, {live_bytes_});
    trough_ = live_bytes_;
    begin_ = seconds;
  }
  const std::int64_t before = std::exchange(live_bytes_, live_bytes);
  const std::int64_t peak = std::max(current_.peak, previous_.peak);
  const std::int64_t again = std::min(live_bytes, peak) - trough_;
  if (live_bytes > before && again > current_.reused) {
    current_.reused = again;
    current_.lowest = trough_;
  }
  current_.peak = std::max(current_.peak, live_bytes);
  trough_ = live_bytes > peak ? live_bytes : std::min(trough_, live_bytes);
  return begins;
}

std::int64_t Demand::worth_keeping() const {
  const std::int64_t peak = std::max(current_.peak, previous_.peak);
  std::int64_t worth = peak / kKeptDivisor;
  for (const Epoch& epoch : {current_, previous_}) {
    if (live_bytes_ >= epoch.lowest) worth = std::max(worth, epoch.reused);
  }
  return std::min(peak - live_bytes_, worth);
}

// ---- The cache of mappings. ----

std::int64_t MappingCache::Victims::total_bytes() const {
  std::int64_t total = 0;
  for (const Mapping& mapping : *this) total += mapping.length_bytes;
  return total;
}

// The best mapping: the one that `rank` maps to the greatest value, of equal ones the last used.
template <class Rank>
int MappingCache::best(PageKind kind, const Rank& rank) const {
  int found = -1;
  std::pair<std::int64_t, std::uint64_t> highest(0, 0);
  for (int place = 0; place < count_; ++place) {
    const Entry& entry = entries_[static_cast<std::size_t>(place)];
    const std::pair value(rank(entry.mapping.length_bytes), entry.last_use);
    if (entry.mapping.pages != kind || value.first <= 0 || value < highest) continue;
    highest = value;
    found = place;
  }
  return found;
}

std::optional<Mapping> MappingCache::take(std::int64_t length_bytes, PageKind kind,
                                          std::int64_t most_surplus_bytes) {
  const int place = best(kind, [&](std::int64_t length) -> std::int64_t {
    const std::int64_t surplus = length - length_bytes;
    const bool fits = surplus >= 0 && surplus <= length / kWasteDivisor &&
                      surplus_bytes_ + surplus <= most_surplus_bytes;
    return fits ? kLongest - surplus : 0;
  });
  if (place < 0) return std::nullopt;
  const Mapping mapping = remove(place);
  surplus_bytes_ += mapping.length_bytes - length_bytes;
  return mapping;
}

std::optional<Mapping> MappingCache::take_part(std::int64_t length_bytes, PageKind kind) {
  // A longer one before a shorter one.
  const int place = best(kind, [&](std::int64_t length) {
    return length >= length_bytes ? kLongest - (length - length_bytes) : length;
  });
  if (place < 0) return std::nullopt;
  const Entry entry = entries_[static_cast<std::size_t>(place)];
  Mapping mapping = remove(place);
  if (mapping.length_bytes - length_bytes >= kLargeBlockBytes) {
    const Mapping rest{mapping.address + length_bytes, mapping.length_bytes - length_bytes, kind};
    mapping.length_bytes = length_bytes;
    entries_[static_cast<std::size_t>(count_++)] = {rest, entry.last_use, entry.epoch};
    cached_bytes_ += rest.length_bytes;
  }
  surplus_bytes_ += std::max<std::int64_t>(mapping.length_bytes - length_bytes, 0);
  return mapping;
}

void MappingCache::give(const Mapping& mapping, std::int64_t length_bytes, Victims& victims) {
  forget(mapping, length_bytes);
  const std::int64_t room_bytes = limit_bytes_ - surplus_bytes_ - mapping.length_bytes;
  if (room_bytes < 0) return victims.add(mapping);
  shrink_to(room_bytes, kCapacity - 1, victims);
  entries_[static_cast<std::size_t>(count_++)] = {mapping, ++uses_, epoch_};
  cached_bytes_ += mapping.length_bytes;
}

void MappingCache::forget(const Mapping& mapping, std::int64_t length_bytes) {
  surplus_bytes_ -= mapping.length_bytes - length_bytes;
}

void MappingCache::set_limit(std::int64_t limit_bytes, Victims& victims) {
  limit_bytes_ = limit_bytes;
  trim(limit_bytes - surplus_bytes_, victims);
}

void MappingCache::trim(std::int64_t keep_bytes, Victims& victims) {
  shrink_to(std::max<std::int64_t>(keep_bytes, 0), kCapacity, victims);
}

void MappingCache::begin_epoch(Victims& victims) {
  ++epoch_;
  while (count_ > 0 && entries_[static_cast<std::size_t>(oldest())].epoch + 1 < epoch_) {
    victims.add(remove(oldest()));
  }
}

Mapping MappingCache::remove(int place) {
  Entry& entry = entries_[static_cast<std::size_t>(place)];
  const Mapping mapping = entry.mapping;
  entry = entries_[static_cast<std::size_t>(--count_)];
  cached_bytes_ -= mapping.length_bytes;
  return mapping;
}

// Requires count_ > 0.
int MappingCache::oldest() const {
  const auto* const end = entries_.begin() + count_;
  const auto* const found =
      std::min_element(entries_.begin(), end,
                       [](const Entry& a, const Entry& b) { return a.last_use < b.last_use; });
  return static_cast<int>(found - entries_.begin());
}

void MappingCache::shrink_to(std::int64_t keep_bytes, int keep_count, Victims& victims) {
  while (cached_bytes_ > keep_bytes || count_ > keep_count) victims.add(remove(oldest()));
}

// ---- AddressSanitizer. ----

void poison_bytes([[maybe_unused]] const std::byte* begin,
                  [[maybe_unused]] std::int64_t length_bytes) noexcept {
#ifdef GRIDBUF_ASAN
  __asan_poison_memory_region(begin, static_cast<std::size_t>(length_bytes));
#endif
}

void unpoison_bytes([[maybe_unused]] const std::byte* begin,
                    [[maybe_unused]] std::int64_t length_bytes) noexcept {
#ifdef GRIDBUF_ASAN
  __asan_unpoison_memory_region(begin, static_cast<std::size_t>(length_bytes));
#endif
}

void poison_row_padding(const std::byte* begin, std::int64_t total_bytes, std::int64_t row_bytes,
                        std::int64_t used_bytes) noexcept {
  if (used_bytes >= row_bytes) return;
  for (std::int64_t row = 0; row < total_bytes; row += row_bytes) {
    poison_bytes(begin + row + used_bytes, row_bytes - used_bytes);
  }
}

}  // namespace gridbuf
