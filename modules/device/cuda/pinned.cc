module;

#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.device.cuda;

import gridbuf.alloc;

namespace gridbuf {

PinnedPages::PinnedPages(PageLock lock, std::int64_t limit_bytes)
    : lock_(std::move(lock)), cache_(limit_bytes) {}

absl::StatusOr<PinnedPages::Pages> PinnedPages::take(std::int64_t length_bytes) {
  const PageKind kind = length_bytes >= kLargeBlockBytes ? PageKind::kHuge : PageKind::kSmall;
  const std::int64_t whole_bytes = pages::mapped_length(length_bytes, kind);
  {
    const std::lock_guard guard(mutex_);
    const std::optional<pages::Mapping> kept = cache_.take(whole_bytes);
    if (kept) return Pages{*kept, whole_bytes, true};
  }
  const absl::StatusOr<pages::Mapping> mapping = pages::map_pages(length_bytes, kind);
  if (!mapping.ok()) return mapping.status();
  absl::Status status = pages::commit(mapping->address, mapping->length_bytes);
  if (status.ok()) status = lock_.lock(mapping->address, mapping->length_bytes);
  if (!status.ok()) {
    pages::unmap_pages(*mapping);
    return status;
  }
  return Pages{*mapping, mapping->length_bytes, false};
}

void PinnedPages::give(const Pages& pages) noexcept {
  MappingCache::Victims victims;
  {
    const std::lock_guard guard(mutex_);
    cache_.give(pages.mapping, pages.length_bytes, victims);
  }
  drop(victims);
}

void PinnedPages::drop(const MappingCache::Victims& victims) noexcept {
  for (const pages::Mapping& mapping : victims) {
    lock_.unlock(mapping.address);
    pages::unmap_pages(mapping);
  }
}

void PinnedPages::trim() {
  MappingCache::Victims victims;
  {
    const std::lock_guard guard(mutex_);
    cache_.trim(0, victims);
  }
  drop(victims);
}

std::int64_t PinnedPages::cached_bytes() {
  const std::lock_guard guard(mutex_);
  return cache_.cached_bytes();
}

}  // namespace gridbuf
