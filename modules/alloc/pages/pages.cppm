// gridbuf.alloc.pages: pages of one's own, and whether they are really there.
//
// Large blocks do not come from the C library: it knows nothing of huge pages, returns every block
// beyond 32 MiB to the system when it is freed, and starts them all at the same place of a page.
// `map_pages` gets whole pages from the kernel instead, on a border of huge pages where those are
// wanted. Touching 1 GiB for the first time takes some 400 ms on pages of 4 KiB and 45 to 90 ms on
// transparent huge pages; who decides which of them is gridbuf.alloc.policy.
//
// Linux grants address space generously and finds the pages at the first touch; if there are none
// left then, it kills a process. Whoever asked for `populate` wants the answer at the allocation,
// as a status. Two steps give it: a request beyond system::committable_bytes is refused before a
// page is touched, because committing it would end in the out-of-memory killer, which no program
// survives to report; and `commit` makes the pages present: MADV_POPULATE_WRITE (Linux 5.14), which
// returns an error where touching would kill, else one write per page. The kernel zeroes pages on
// the processor that asks for them, so `commit` uses the threads of gridbuf.base for long
// ranges: it is twice as fast with two, and each thread's pages come to lie near its processor
// (NUMA).
//
// The first step is a snapshot: another process may take the memory in between. It turns the common
// accident (a shape with a zero too many) into an error; it is no guarantee against a machine that
// is full.
module;

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

export module gridbuf.alloc.pages;

import gridbuf.alloc;

export namespace gridbuf::pages {

/// Below this, `commit` works on the caller's thread: starting another costs more than it saves.
inline constexpr std::int64_t kParallelBytes = std::int64_t{1} << 23;

/// Whole pages from the kernel; their bytes are 0 until someone writes. A plain value: who has it
/// gives it back with `unmap_pages`, once, whole or in parts that together are the whole.
struct Mapping {
  std::byte* address = nullptr;
  std::int64_t length_bytes = 0;
  PageKind pages = PageKind::kSmall;  // kSmall or kHuge: what the kernel was asked for
};

/// The length that map_pages really maps for `length_bytes`: whole pages, and whole huge pages
/// where the last would be used by a quarter at least (a shorter rest stays on small pages; it
/// would cost a whole huge page of memory, and zeroing it). At most one huge page more than asked
/// for. Nothing about `length_bytes` > 2^62 is promised but that the result is larger than any
/// machine.
std::int64_t mapped_length(std::int64_t length_bytes, PageKind pages);

/// Maps mapped_length(length_bytes, pages) bytes, private and anonymous, readable and writable, on
/// a border of huge pages if `pages` is kHuge; nothing is committed. kHuge asks the kernel for
/// transparent huge pages (it may have none, and then gives small ones), kSmall forbids them; a
/// refusal of this advice is no error. Requires length_bytes ≥ 1 and pages kSmall or kHuge.
/// Error: kMemory if the kernel grants no address space.
absl::StatusOr<Mapping> map_pages(std::int64_t length_bytes, PageKind pages);

/// Gives pages back to the kernel.
void unmap_pages(const Mapping& mapping) noexcept;

/// Takes the memory of a mapping but keeps its addresses: whoever reads or writes there ends with a
/// segmentation fault. Until it is unmapped. Returns false, and leaves all as it was, if the kernel
/// refuses.
bool seal_pages(const Mapping& mapping) noexcept;

/// Lets the kernel take the pages of [address, address + length_bytes) when it runs short of
/// memory, until they are written again. Their bytes are then undefined: the old ones, or 0. Whole
/// pages inside the range only. A hint: where the kernel does not know it, nothing happens.
void offer_pages(std::byte* address, std::int64_t length_bytes) noexcept;

/// Makes every page of [data, data + total_bytes) present and writable, its bytes unchanged; with
/// several threads from kParallelBytes on. The memory must be writable and, unless
/// commits_beside_users(), must not be used by another thread meanwhile. 0 bytes: nothing happens.
/// Error: kMemory if the kernel has no pages for it. (Where it cannot say so, it may still kill:
/// see above.)
absl::Status commit(std::byte* data, std::int64_t total_bytes);

/// Whether `commit` may run while others write to the memory: the kernel commits pages, and nobody
/// reads or writes a byte for it.
bool commits_beside_users();

/// The fallback of `commit` on kernels without MADV_POPULATE_WRITE: rewrites one byte of each page.
void touch(std::byte* data, std::int64_t total_bytes);

}  // namespace gridbuf::pages
