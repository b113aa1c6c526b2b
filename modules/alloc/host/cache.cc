module;

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

module gridbuf.alloc.host;

import gridbuf.alloc;

namespace gridbuf {

using pages::Mapping;

namespace {
// A kept mapping serves requests that it is longer than by at most this part of them.
constexpr std::int64_t kWasteDivisor = 8;
}  // namespace

std::int64_t MappingCache::Victims::total_bytes() const {
  std::int64_t total = 0;
  for (const Mapping& mapping : *this) total += mapping.length_bytes;
  return total;
}

std::optional<Mapping> MappingCache::take(std::int64_t length_bytes) {
  int best = -1;
  for (int place = 0; place < count_; ++place) {
    const Entry& entry = entries_[static_cast<std::size_t>(place)];
    const std::int64_t found = entry.mapping.length_bytes;
    if (found < length_bytes || found - length_bytes > length_bytes / kWasteDivisor) continue;
    if (best >= 0) {
      const Entry& other = entries_[static_cast<std::size_t>(best)];
      if (found > other.mapping.length_bytes) continue;
      if (found == other.mapping.length_bytes && entry.last_use < other.last_use) continue;
    }
    best = place;
  }
  if (best < 0) return std::nullopt;
  const Mapping mapping = remove(best);
  surplus_bytes_ += mapping.length_bytes - length_bytes;
  return mapping;
}

void MappingCache::give(const Mapping& mapping, std::int64_t length_bytes, Victims& victims) {
  forget(mapping, length_bytes);
  const std::int64_t room_bytes = limit_bytes_ - surplus_bytes_ - mapping.length_bytes;
  if (room_bytes < 0) return victims.add(mapping);
  shrink_to(room_bytes, kCapacity - 1, victims);
  entries_[static_cast<std::size_t>(count_++)] = {mapping, ++uses_};
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

}  // namespace gridbuf
