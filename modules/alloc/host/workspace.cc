module;

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.alloc.host;

import gridbuf.alloc;
import gridbuf.base;

namespace gridbuf {
namespace {

constexpr std::int64_t kMostBytes = std::int64_t{1} << 62;

std::int64_t number_of(const void* address) {
  return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(address));
}

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

absl::Status wrong_size(std::string_view name, std::int64_t value, std::string_view bound) {
  return make_error(ErrorClass::kValue, {std::string(name), std::to_string(value),
                                         std::string(bound), "pass a number of bytes"});
}

}  // namespace

absl::StatusOr<std::unique_ptr<Workspace>> Workspace::reserve(std::int64_t limit_bytes) {
  if (limit_bytes < 1 || limit_bytes > kMostBytes) {
    return wrong_size("limit_bytes", limit_bytes, "1 to 2^62");
  }
  const bool huge = host_resource().options().huge_pages;
  const PageKind kind = pages::kind_for(limit_bytes, huge, system::huge_pages());
  const absl::StatusOr<pages::Mapping> mapping = pages::map_pages(limit_bytes, kind, true);
  if (!mapping.ok()) return mapping.status();
  const auto release = [](void* context, void* address) noexcept {
    pages::unmap_pages({static_cast<std::byte*>(address), number_of(context), PageKind::kSmall});
  };
  auto made =
      std::make_unique<Workspace>(Block(mapping->address, limit_bytes,
                                        {.address = mapping->address,
                                         .allocation_bytes = mapping->length_bytes,
                                         .release = release,
                                         .context = reinterpret_cast<void*>(mapping->length_bytes),
                                         .info = {.resource_name = "workspace", .pages = kind}}));
  made->is_host_ = true;
  return made;
}

std::int64_t Workspace::used_bytes() const {
  const std::lock_guard lock(mutex_);
  return frames_.empty() ? 0 : frames_.back().end;
}

std::int64_t Workspace::peak_bytes() const {
  const std::lock_guard lock(mutex_);
  return peak_;
}

std::int64_t Workspace::committed_bytes() const {
  if (!is_host_) return limit_bytes();
  const std::int64_t page_bytes = system::page_bytes();
  std::array<unsigned char, 4096> present;
  const std::int64_t step_bytes = std::ssize(present) * page_bytes;
  std::int64_t committed = 0;
  for (std::int64_t at = 0; at < block_.allocation_bytes(); at += step_bytes) {
    const std::int64_t length = std::min(step_bytes, block_.allocation_bytes() - at);
    if (mincore(data() + at, static_cast<std::size_t>(length), present.data()) != 0) continue;
    const auto end = present.begin() + (length + page_bytes - 1) / page_bytes;
    committed += page_bytes * std::count_if(present.begin(), end, [](int c) { return c & 1; });
  }
  return committed;
}

absl::StatusOr<std::byte*> Workspace::push(std::int64_t total_bytes, std::int64_t alignment_bytes) {
  if (total_bytes < 0) return wrong_size("total_bytes", total_bytes, "0 or more");
  if (alignment_bytes < 1 || alignment_bytes > kMaxAlignmentBytes) {
    return wrong_size("alignment_bytes", alignment_bytes,
                      "1 to " + std::to_string(kMaxAlignmentBytes));
  }
  const std::lock_guard lock(mutex_);
  if (!user_.empty()) return in_use("a block");
  const std::int64_t top = frames_.empty() ? 0 : frames_.back().end;
  const std::int64_t first = number_of(data());
  const std::int64_t begin = round_up(first + top, alignment_bytes) - first;
  if (begin > limit_bytes() || total_bytes > limit_bytes() - begin) return refuse(total_bytes);
  frames_.push_back({begin, begin + total_bytes});
  peak_ = std::max(peak_, begin + total_bytes);
  poison(begin, begin + total_bytes);
  return data() + begin;
}

absl::Status Workspace::pop(const void* block) {
  const std::lock_guard lock(mutex_);
  if (user_.empty() && !frames_.empty() && data() + frames_.back().begin == block) {
    frames_.pop_back();
    return absl::OkStatus();
  }
  return make_error(ErrorClass::kValue, {"block", "another address", "the block pushed last",
                                         "pop blocks in the opposite order"});
}

absl::Status Workspace::take(std::string_view user) {
  const std::lock_guard lock(mutex_);
  if (!frames_.empty()) return in_use("'" + std::string(user) + "'");
  frames_.push_back({0, needed_});
  user_ = user.empty() ? "a program" : std::string(user);
  poison(0, needed_);
  return absl::OkStatus();
}

void Workspace::give_back() {
  const std::lock_guard lock(mutex_);
  if (user_.empty()) return;
  frames_.clear();
  user_.clear();
}

absl::Status Workspace::need(std::int64_t total_bytes) {
  const std::lock_guard lock(mutex_);
  if (total_bytes < 0) return wrong_size("total_bytes", total_bytes, "0 or more");
  if (total_bytes > limit_bytes()) return refuse(total_bytes);
  needed_ = std::max(needed_, total_bytes);
  peak_ = std::max(peak_, needed_);
  if (!user_.empty()) frames_.front().end = needed_;
  return absl::OkStatus();
}

std::int64_t Workspace::trim() {
  if (!is_host_) return 0;
  const std::int64_t before = committed_bytes();
  const std::lock_guard lock(mutex_);
  const std::int64_t top = frames_.empty() ? 0 : frames_.back().end;
  const std::int64_t begin = round_up(top, system::page_bytes());
  const std::int64_t length = block_.allocation_bytes() - begin;
  if (length > 0) madvise(data() + begin, static_cast<std::size_t>(length), MADV_DONTNEED);
  return before - committed_bytes();
}

absl::Status Workspace::in_use(std::string_view newcomer) const {
  const std::string owner = user_.empty() ? "blocks of its stack" : "'" + user_ + "'";
  return make_error(ErrorClass::kValue,
                    {"workspace", "in use by " + owner,
                     "one user at once, but " + std::string(newcomer) + " would overwrite it",
                     "give each stream and each thread a separate workspace"});
}

absl::Status Workspace::refuse(std::int64_t total_bytes) const {
  const std::int64_t used = frames_.empty() ? 0 : frames_.back().end;
  return make_error(ErrorClass::kMemory, "the workspace has no " + bytes_text(total_bytes) +
                                             " left: " + bytes_text(used) + " of " +
                                             bytes_text(limit_bytes()) +
                                             " are in use; give it a larger limit");
}

void Workspace::poison(std::int64_t begin, std::int64_t end) const {
  if (!is_host_ || !host_resource().poisons()) return;
  std::memset(data() + begin, static_cast<int>(kPoison), static_cast<std::size_t>(end - begin));
}

}  // namespace gridbuf
