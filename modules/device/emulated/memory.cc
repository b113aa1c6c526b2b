module;

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "modules/base/status_macros.h"

module gridbuf.device.emulated;

import gridbuf.alloc.host;
import gridbuf.base;
import gridbuf.layout;

namespace gridbuf::emulated {

namespace {

std::string hex(std::uintptr_t address) { return absl::StrCat("0x", absl::Hex(address)); }

std::uintptr_t number_of(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

// The length in whole pages; nothing if it does not fit in 64 bits.
std::optional<std::int64_t> pages_for(std::int64_t length_bytes) {
  return checked::align_up(length_bytes, system::page_bytes());
}

void* map_pages(std::int64_t length_bytes, int protection) {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | (protection == PROT_NONE ? MAP_NORESERVE : 0);
  void* address = mmap(nullptr, static_cast<std::size_t>(length_bytes), protection, flags, -1, 0);
  return address == MAP_FAILED ? nullptr : address;
}

// The two mappings of a range. They are equal for memory that the host accesses.
struct Mapping {
  std::uintptr_t public_begin = 0;
  std::int64_t public_bytes = 0;
  std::byte* alias = nullptr;
  std::int64_t alias_bytes = 0;
};

void unmap(const Mapping& mapping) {
  if (mapping.public_begin != 0) {
    munmap(reinterpret_cast<void*>(mapping.public_begin),
           static_cast<std::size_t>(mapping.public_bytes));
  }
  if (mapping.alias != nullptr && mapping.alias_bytes > 0) {
    munmap(mapping.alias, static_cast<std::size_t>(mapping.alias_bytes));
  }
}

// The public mapping is PROT_NONE. Memory for the host is opened inside it, and at least one page
// after it stays closed.
std::optional<Mapping> map_range(MemoryKind kind, std::int64_t length_bytes) {
  const std::optional<std::int64_t> room =
      checked::add(length_bytes, Memory::kAlignmentBytes + system::page_bytes());
  const std::optional<std::int64_t> public_bytes = room ? pages_for(*room) : std::nullopt;
  if (!public_bytes) return std::nullopt;
  Mapping mapping{.public_bytes = *public_bytes};
  mapping.public_begin = number_of(map_pages(*public_bytes, PROT_NONE));
  if (mapping.public_begin == 0) return std::nullopt;
  if (kind == MemoryKind::kDevice) {
    mapping.alias_bytes = *pages_for(length_bytes);
    mapping.alias = static_cast<std::byte*>(map_pages(mapping.alias_bytes, PROT_READ | PROT_WRITE));
    if (mapping.alias != nullptr) return mapping;
  } else {
    void* opened = reinterpret_cast<void*>(mapping.public_begin);
    const auto open_bytes = static_cast<std::size_t>(*public_bytes - system::page_bytes());
    if (mmap(opened, open_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
             -1, 0) != MAP_FAILED) {
      mapping.alias = static_cast<std::byte*>(opened) + Memory::kAlignmentBytes;
      return mapping;
    }
  }
  unmap(mapping);
  return std::nullopt;
}

absl::Status no_memory(std::int64_t length_bytes, std::string_view why) {
  return make_error(ErrorClass::kMemory,
                    std::string(why) + " (" + bytes_text(length_bytes) + " including placement)");
}

// "device memory at 0x7f… (4.0 KiB)".
std::string text_of(const Range& range) {
  return absl::StrCat(to_string(range.kind), " memory at ", hex(range.begin), " (",
                      bytes_text(range.length_bytes), ")");
}

}  // namespace

absl::Status Memory::check_room(std::int64_t length_bytes, bool populate) {
  if (populate && length_bytes > system::committable_bytes()) {
    return no_memory(length_bytes, "populate was asked for and only " +
                                       bytes_text(system::committable_bytes()) +
                                       " could be committed now");
  }
  const std::lock_guard lock(mutex_);
  const std::int64_t left_bytes = capacity_bytes_ - statistics_.held_bytes;
  if (length_bytes <= left_bytes) return absl::OkStatus();
  return no_memory(length_bytes, "the emulated device has " + bytes_text(left_bytes) + " left of " +
                                     bytes_text(capacity_bytes_));
}

absl::StatusOr<RangePtr> Memory::map(MemoryKind kind, std::int64_t length_bytes, RangeState state,
                                     bool zeroed, bool populate) {
  GRIDBUF_RETURN_IF_ERROR(check_room(length_bytes, populate));
  const std::optional<Mapping> mapping = map_range(kind, length_bytes);
  if (!mapping) {
    return no_memory(length_bytes, std::string("the system has no address space or memory: ") +
                                       std::strerror(errno));
  }
  if (populate) {
    if (absl::Status status = pages::commit(mapping->alias, length_bytes); !status.ok()) {
      unmap(*mapping);
      return status;
    }
  }
  if (!zeroed) {
    std::fill_n(mapping->alias, std::min(length_bytes, kFreshBytes), kFresh);
  }
  const auto give_back_range = [this, mapping = *mapping](const Range* range) {
    give_back(*range, mapping.public_begin, mapping.public_bytes);
    if (mapping.alias_bytes > 0) {
      munmap(mapping.alias, static_cast<std::size_t>(mapping.alias_bytes));
    }
    delete range;
  };
  Range* const made = new (std::nothrow)
      Range{kind, mapping->public_begin + kAlignmentBytes, length_bytes, mapping->alias};
  if (made == nullptr) {
    unmap(*mapping);
    return no_memory(length_bytes, "the host has no memory for the record of a block");
  }
  const RangePtr range(made, give_back_range);
  enter(range, state);
  return range;
}

void Memory::enter(const RangePtr& range, RangeState state) {
  const std::lock_guard lock(mutex_);
  records_.insert_or_assign(range->begin, Record{range, range->length_bytes, state});
  ++statistics_.live_blocks;
  statistics_.live_bytes += range->length_bytes;
  statistics_.live_bytes_of_kind[static_cast<std::size_t>(range->kind) - 1] += range->length_bytes;
  statistics_.held_bytes += range->length_bytes;
  statistics_.peak_live_bytes = std::max(statistics_.peak_live_bytes, statistics_.live_bytes);
}

// Frees the bytes; the addresses stay closed for a while.
void Memory::give_back(const Range& range, std::uintptr_t mapping,
                       std::int64_t mapped_bytes) noexcept {
  void* address = reinterpret_cast<void*>(mapping);
  if (range.kind != MemoryKind::kDevice) {
    mmap(address, static_cast<std::size_t>(mapped_bytes), PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  }
  const std::lock_guard lock(mutex_);
  const auto found = records_.find(range.begin);
  if (found != records_.end()) {  // Else lack of memory prevented the entry.
    found->second.state = RangeState::kGone;
    statistics_.held_bytes -= range.length_bytes;
  }
  try {
    quarantine_.push_back({range.begin, mapped_bytes});
  } catch (const std::bad_alloc&) {  // Then these addresses may be reused at once.
    records_.erase(range.begin);
    munmap(address, static_cast<std::size_t>(mapped_bytes));
    return;
  }
  quarantine_bytes_ += mapped_bytes;
  while (quarantine_bytes_ > kQuarantineBytes || quarantine_.size() > kQuarantineRanges) {
    const Quarantined oldest = quarantine_.front();
    quarantine_.pop_front();
    quarantine_bytes_ -= oldest.mapped_bytes;
    records_.erase(oldest.begin);
    munmap(reinterpret_cast<void*>(oldest.begin - kAlignmentBytes),
           static_cast<std::size_t>(oldest.mapped_bytes));
  }
}

void Memory::set_capacity(std::int64_t capacity_bytes) {
  const std::lock_guard lock(mutex_);
  capacity_bytes_ = capacity_bytes;
}

void Memory::set_state(const Range& range, RangeState state) {
  const std::lock_guard lock(mutex_);
  RangeState& present = records_.find(range.begin)->second.state;
  // An allocation may run after its release. It must not make the range live again.
  if (state == RangeState::kLive && present != RangeState::kOrdered) return;
  const bool was_owned = present == RangeState::kOrdered || present == RangeState::kLive;
  if (was_owned && state >= RangeState::kReleased) {
    --statistics_.live_blocks;
    statistics_.live_bytes -= range.length_bytes;
    statistics_.live_bytes_of_kind[static_cast<std::size_t>(range.kind) - 1] -= range.length_bytes;
  }
  present = state;
}

RangeState Memory::state(const Range& range) {
  const std::lock_guard lock(mutex_);
  return records_.find(range.begin)->second.state;
}

// --- Addresses -----------------------------------------------------------------------------------

const Memory::Record* Memory::record_around(std::uintptr_t address) const {
  auto found = records_.upper_bound(address);
  if (found == records_.begin()) return nullptr;
  --found;
  const auto inside = static_cast<std::int64_t>(address - found->first);
  // One past the end belongs to the range, because an empty access at the end has that address.
  return inside <= found->second.length_bytes ? &found->second : nullptr;
}

RangePtr Memory::find(const void* address) {
  const std::lock_guard lock(mutex_);
  const Record* record = record_around(number_of(address));
  return record == nullptr ? nullptr : record->range.lock();
}

bool Memory::was_released(const void* address) {
  const std::lock_guard lock(mutex_);
  const Record* record = record_around(number_of(address));
  return record != nullptr && record->state >= RangeState::kReleased;
}

absl::StatusOr<RangePtr> Memory::range_of(std::string_view role, const void* address,
                                          std::int64_t length_bytes) {
  if (was_released(address)) {
    return make_error(ErrorClass::kValue,
                      {role, hex(number_of(address)), "memory that has not been released",
                       "keep the array (or its owner) until the work that uses it is enqueued"});
  }
  return range_in_work(role, address, length_bytes);
}

absl::StatusOr<RangePtr> Memory::range_in_work(std::string_view role, const void* address,
                                               std::int64_t length_bytes) {
  RangePtr range = find(address);
  if (range == nullptr) return range;
  const auto offset = static_cast<std::int64_t>(number_of(address) - range->begin);
  if (length_bytes <= range->length_bytes - offset) return range;
  return make_error(
      ErrorClass::kValue,
      {role, bytes_text(length_bytes) + " from byte " + std::to_string(offset),
       "within its allocation, " + text_of(*range), "check pointer, shape and strides"});
}

absl::StatusOr<std::byte*> Memory::translate(std::string_view role, const Range& range,
                                             const void* address) {
  // Memory that the host shares with the device stays until work no longer holds it.
  const RangeState now = range.kind == MemoryKind::kDevice ? state(range) : RangeState::kLive;
  if (now == RangeState::kOrdered) {
    return make_error(ErrorClass::kInternal,
                      std::string(role) + " is " + text_of(range) +
                          ", used before its allocation ran on the stream that made it; order the "
                          "stream that uses it after that stream");
  }
  if (now == RangeState::kGone) {
    return make_error(
        ErrorClass::kInternal,
        std::string(role) + " is " + text_of(range) +
            ", used after it was freed; order the stream that frees it after the stream "
            "that uses it, or keep the array until then");
  }
  return range.bytes + (number_of(address) - range.begin);
}

MemoryStatistics Memory::statistics() {
  const std::lock_guard lock(mutex_);
  return statistics_;
}

}  // namespace gridbuf::emulated
