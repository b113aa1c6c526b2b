// gridbuf.alloc.emulated.memory: memory that behaves as a device's although it is the host's.
//
// Device memory is two mappings of equal length. The public one is where the addresses point that
// users get: nobody may read or write there (PROT_NONE), so a host that touches device memory is
// ended by a segmentation fault at the very instruction. The bytes are in the other one, the alias,
// whose address never leaves the emulated device; copies and kernels translate to it. No window is
// ever opened in the public mapping, so what one thread's kernel does never makes another thread's
// wrong access pass.
//
// Managed and pinned memory is one ordinary mapping that the device knows.
//
// Every range is known by its address for as long as possible: released memory becomes unreadable
// and its addresses are kept out of use for a while (kQuarantineBytes, kQuarantineRanges), so that
// a stale pointer faults on the host, and on the device is named for what it is.
module;

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

export module gridbuf.alloc.emulated.memory;

import gridbuf.alloc.device;

export namespace gridbuf::emulated {

enum class RangeState : std::uint8_t {
  kOrdered,   // its allocation is enqueued on a stream and has not run
  kLive,      // usable
  kReleased,  // its owner gave it back; work enqueued before may still use it
  kGone,      // no work may use it any more
};

/// One allocation. Its bytes live while a pointer to it does.
struct Range {
  MemoryKind kind = MemoryKind::kDevice;
  std::uintptr_t begin = 0;  // the public address …
  std::int64_t length_bytes = 0;
  std::byte* bytes = nullptr;  // … and where its bytes are
};
using RangePtr = std::shared_ptr<const Range>;

struct MemoryStatistics {
  std::int64_t live_blocks = 0;  // not yet released by their owner
  std::int64_t live_bytes = 0;   // of those, what placement costs included
  std::int64_t held_bytes = 0;   // not yet given back: live, or waiting for a stream
  std::int64_t peak_live_bytes = 0;

  friend bool operator==(const MemoryStatistics&, const MemoryStatistics&) = default;
};

class Memory {
 public:
  /// What a fresh byte holds unless zeros were asked for; of larger ranges the first kFreshBytes.
  static constexpr std::byte kFresh{0xCB};
  static constexpr std::int64_t kFreshBytes = std::int64_t{16} << 20;
  /// Device and managed addresses are multiples of this and of no more, as CUDA promises no more.
  static constexpr std::int64_t kAlignmentBytes = 256;
  /// How much address space of released ranges is kept out of use, and how many of them.
  static constexpr std::int64_t kQuarantineBytes = std::int64_t{1} << 32;
  static constexpr std::size_t kQuarantineRanges = 4096;

  Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  /// A new range of `length_bytes` > 0. With `populate` its pages are committed. Errors: kMemory if
  /// the machine has none, or beyond the capacity.
  absl::StatusOr<RangePtr> map(MemoryKind kind, std::int64_t length_bytes, RangeState state,
                               bool zeroed, bool populate);

  /// What all ranges together may hold; kMemory beyond it. Default: what the machine has.
  void set_capacity(std::int64_t capacity_bytes);

  void set_state(const Range& range, RangeState state);
  RangeState state(const Range& range);

  /// The range around the address in any state but given back; null if there is none.
  RangePtr find(const void* address);
  /// Whether released memory was at this address lately.
  bool was_released(const void* address);

  /// The range that holds [address, address + length_bytes). kValue, naming `role` ("copy source"),
  /// if it reaches beyond the range or its owner has released it. Null for addresses that are not
  /// of this memory: ordinary memory of the host.
  absl::StatusOr<RangePtr> range_of(std::string_view role, const void* address,
                                    std::int64_t length_bytes);

  /// The same for work that runs now, which may use what its owner has released meanwhile.
  absl::StatusOr<RangePtr> range_in_work(std::string_view role, const void* address,
                                         std::int64_t length_bytes);

  /// Where work of the device finds the bytes of `address` now. kInternal if the range may not be
  /// used at this moment: its allocation has not run yet, or it is gone.
  absl::StatusOr<std::byte*> translate(std::string_view role, const Range& range,
                                       const void* address);

  MemoryStatistics statistics();

 private:
  struct Record {
    std::weak_ptr<const Range> range;
    std::int64_t length_bytes;
    RangeState state;
  };
  struct Quarantined {
    std::uintptr_t begin;
    std::int64_t mapped_bytes;
  };
  absl::Status check_room(std::int64_t length_bytes, bool populate);
  void enter(const RangePtr& range, RangeState state);
  const Record* record_around(std::uintptr_t address) const;
  void give_back(const Range& range, std::uintptr_t mapping, std::int64_t mapped_bytes) noexcept;

  std::mutex mutex_;
  std::map<std::uintptr_t, Record> records_;  // by begin
  std::deque<Quarantined> quarantine_;        // oldest first
  std::int64_t quarantine_bytes_ = 0;
  std::int64_t capacity_bytes_ = INT64_MAX;
  MemoryStatistics statistics_;
};

/// "device memory at 0x7f… (4096 bytes)".
std::string text_of(const Range& range);

}  // namespace gridbuf::emulated
