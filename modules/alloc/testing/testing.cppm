// gridbuf.alloc.testing: the contract of every source of memory, and resources that count or fail,
// and a guard for padding. For the tests of all code that allocates.
//
// The contract has one check for each promise of a MemoryResource (gridbuf.alloc). So a new source
// (a pool, pinned memory, a device) has its tests before it has its code. A check is a plain
// function that returns the violations that it found, not a GoogleTest body. It serves any test
// framework, and a test can give it broken resources. The checks access a block's bytes through a
// `ByteAccess`, so that they also work for memory that the host cannot access.
//
// Each adaptor wraps any MemoryResource and is a MemoryResource, so adaptors stack: a failing,
// counted host. They keep the contract. Each answers one question:
//
//   CountingResource   was all memory released, and how much was in use at most?
//   FailingResource    what happens if the n-th allocation fails? Run an operation for n = 1, 2, …
//                      until it succeeds: each time it must report kMemory and leave nothing
//                      behind.
//   PaddingGuard       is the padding between the rows of a view touched?
//
// The patterns of PaddingGuard are checked in every build. With AddressSanitizer padding is
// poisoned as well, so that a single stray read ends the test.
module;

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

export module gridbuf.alloc.testing;

import gridbuf.alloc;
import gridbuf.layout.view;

export namespace gridbuf::testing {

// ---- The contract ----

/// Access of the checks to the bytes of a block. Memory that the host cannot access has another
/// implementation.
class ByteAccess {
 public:
  virtual ~ByteAccess() = default;
  /// Writes `value` to every byte; done at return.
  virtual void fill(std::byte* begin, std::int64_t length_bytes, std::byte value) = 0;
  /// Whether every byte is `value`, after all enqueued work.
  virtual bool holds(const std::byte* begin, std::int64_t length_bytes, std::byte value) = 0;
};

/// Plain loads and stores.
ByteAccess& host_access();

struct ContractCheck {
  std::string_view name;     // an identifier, to name a test after
  std::string_view promise;  // the sentence that is checked
  std::vector<std::string> (*check)(MemoryResource& resource, ByteAccess& bytes);

  /// Runs the check. Each string is a violation, with the request and the value found. Uses `bytes`
  /// from several threads at once.
  std::vector<std::string> run(MemoryResource& resource, ByteAccess& bytes = host_access()) const {
    return check(resource, bytes);
  }
};

/// All checks. Together they take some tens of milliseconds and at most about 100 MiB. They need a
/// resource without injected failures and, with AddressSanitizer, allocator_may_return_null=1.
std::span<const ContractCheck> resource_contract();

// ---- Adaptors ----

struct AllocationCounts {
  std::int64_t allocations = 0;  // that succeeded
  std::int64_t failures = 0;
  std::int64_t live_blocks = 0;
  std::int64_t live_bytes = 0;  // sum of total_bytes, without placement
  std::int64_t peak_live_bytes = 0;

  friend bool operator==(const AllocationCounts&, const AllocationCounts&) = default;
};

/// Counts its allocations. Exact after the threads that used it are joined.
class CountingResource final : public MemoryResource {
 public:
  explicit CountingResource(MemoryResource& upstream);
  absl::StatusOr<Block> allocate(const AllocationRequest& request) override;
  std::string_view name() const noexcept override { return name_; }
  AllocationCounts counts() const;

 private:
  struct Counted;
  static void release(void* context, void* allocation) noexcept;

  MemoryResource& upstream_;
  std::string name_;
  std::atomic<std::int64_t> allocations_ = 0;
  std::atomic<std::int64_t> failures_ = 0;
  std::atomic<std::int64_t> live_blocks_ = 0;
  std::atomic<std::int64_t> live_bytes_ = 0;
  std::atomic<std::int64_t> peak_live_bytes_ = 0;
};

/// Returns kMemory for calls number `first_failing_call` … `last_failing_call` (from 1), and passes
/// on all other calls. Bad requests are always kValue. By default one call fails; 0 never fails.
class FailingResource final : public MemoryResource {
 public:
  FailingResource(MemoryResource& upstream, std::int64_t failing_call)
      : FailingResource(upstream, failing_call, failing_call) {}
  FailingResource(MemoryResource& upstream, std::int64_t first_failing_call,
                  std::int64_t last_failing_call);
  absl::StatusOr<Block> allocate(const AllocationRequest& request) override;
  std::string_view name() const noexcept override { return name_; }
  std::int64_t calls() const { return calls_; }

 private:
  MemoryResource& upstream_;
  std::string name_;
  std::int64_t first_failing_call_;
  std::int64_t last_failing_call_;
  std::atomic<std::int64_t> calls_ = 0;
};

/// Guards the bytes of [block, block + total_bytes) outside the elements of `view` by a pattern
/// and, with AddressSanitizer, by poison. (AddressSanitizer cannot poison the first bytes of an
/// 8-byte granule with used last bytes; the pattern still catches writes there.) The hull of `view`
/// must be in that range. Slow, because it walks every element.
class PaddingGuard {
 public:
  PaddingGuard(std::byte* block, std::int64_t total_bytes, const StridedView& view);
  PaddingGuard(const PaddingGuard&) = delete;
  PaddingGuard& operator=(const PaddingGuard&) = delete;
  ~PaddingGuard();  // removes the poison; the pattern stays

  /// The number of guarded bytes.
  std::int64_t padding_bytes() const;
  /// Whether every guarded byte still holds the pattern.
  bool intact() const;

 private:
  struct Run {
    std::byte* begin;
    std::int64_t length_bytes;
  };
  std::byte* block_;
  std::vector<Run> runs_;
};

}  // namespace gridbuf::testing
