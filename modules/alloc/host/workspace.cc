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
  return std::make_unique<Workspace>(*mapping, limit_bytes);
}

std::int64_t Workspace::peak_bytes() const {
  const std::lock_guard lock(mutex_);
  return peak_;
}

std::int64_t Workspace::committed_bytes() const {
  const std::int64_t page_bytes = system::page_bytes();
  std::array<unsigned char, 4096> present;
  const std::int64_t step_bytes = std::ssize(present) * page_bytes;
  std::int64_t committed = 0;
  for (std::int64_t at = 0; at < mapping_.length_bytes; at += step_bytes) {
    const std::int64_t length = std::min(step_bytes, mapping_.length_bytes - at);
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
  const std::int64_t top = frames_.empty() ? 0 : frames_.back().end;
  const std::int64_t first = number_of(data());
  const std::int64_t begin = round_up(first + top, alignment_bytes) - first;
  if (begin > limit_bytes() || total_bytes > limit_bytes() - begin) {
    return make_error(ErrorClass::kMemory, "the workspace has no " + bytes_text(total_bytes) +
                                               " left: " + bytes_text(top) + " of " +
                                               bytes_text(limit_bytes()) +
                                               " are in use; give it a larger limit");
  }
  frames_.push_back({begin, begin + total_bytes});
  peak_ = std::max(peak_, begin + total_bytes);
  if (host_resource().poisons()) {
    std::memset(data() + begin, static_cast<int>(kPoison), static_cast<std::size_t>(total_bytes));
  }
  return data() + begin;
}

absl::Status Workspace::pop(const void* block) {
  const std::lock_guard lock(mutex_);
  if (!frames_.empty() && data() + frames_.back().begin == block) {
    frames_.pop_back();
    return absl::OkStatus();
  }
  return make_error(ErrorClass::kValue, {"block", "another address", "the block pushed last",
                                         "pop blocks in the opposite order"});
}

std::int64_t Workspace::trim() {
  const std::int64_t before = committed_bytes();
  const std::lock_guard lock(mutex_);
  const std::int64_t top = frames_.empty() ? 0 : frames_.back().end;
  const std::int64_t begin = round_up(top, system::page_bytes());
  const std::int64_t length = mapping_.length_bytes - begin;
  if (length > 0) madvise(data() + begin, static_cast<std::size_t>(length), MADV_DONTNEED);
  return before - committed_bytes();
}

}  // namespace gridbuf
