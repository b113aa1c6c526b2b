module;

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "modules/base/fork.h"
#include "modules/base/process_wide.h"

module gridbuf.alloc.host;

import gridbuf.alloc;
import gridbuf.base;

// A segment is an anonymous file of the kernel that cannot shrink: a process that has checked its
// length never touches a page that is not there. It is mapped at a boundary of huge pages, so that
// an offset has the same alignment in each process.

namespace gridbuf {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW;

struct Segment {
  std::int64_t length_bytes;
  std::uint64_t inode;
  std::int32_t descriptor;
};

// Those of this process, by address.
struct Segments {
  ForkSafe<std::mutex> mutex;
  std::map<std::uintptr_t, Segment> by_address;
};

Segments& segments() {
  static Segments& all = process_wide<Segments>("shared memory");
  return all;
}
// Before any thread: see modules/base/fork.h.
[[maybe_unused]] const Segments& segments_at_load = segments();

std::uintptr_t number_of(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

void release(void* /*context*/, void* address) noexcept {
  Segments& all = segments();
  Segment ended{};
  {
    const std::lock_guard lock(all.mutex);
    const auto found = all.by_address.find(number_of(address));
    ended = found->second;
    all.by_address.erase(found);
  }
  pages::unmap_pages({static_cast<std::byte*>(address),
                      pages::mapped_length(ended.length_bytes, PageKind::kHuge), PageKind::kHuge});
  close(ended.descriptor);
}

absl::Status no_memory(std::string_view what, std::int64_t length_bytes) {
  return make_error(ErrorClass::kMemory, "the kernel could not " + std::string(what) + " " +
                                             bytes_text(length_bytes) + " of shared memory (" +
                                             std::strerror(errno) + "); free some memory");
}

// Maps a file, which it closes after an error.
absl::StatusOr<Block> map(int descriptor, std::uint64_t inode, std::int64_t length_bytes,
                          std::int64_t offset_bytes, std::int64_t total_bytes) {
  const auto length = static_cast<std::size_t>(length_bytes);
  const auto range = pages::map_pages(length_bytes, PageKind::kHuge, true);
  if (!range.ok() || mmap(range->address, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                          descriptor, 0) == MAP_FAILED) {
    const absl::Status status = no_memory("map", length_bytes);
    if (range.ok()) pages::unmap_pages(*range);
    close(descriptor);
    return status;
  }
  std::byte* const segment = range->address;
  const bool huge = host_resource().options().huge_pages;
  if (huge) madvise(segment, length, MADV_HUGEPAGE);
  {
    const std::lock_guard lock(segments().mutex);
    segments().by_address.emplace(number_of(segment), Segment{length_bytes, inode, descriptor});
  }
  return absl::StatusOr<Block>(
      absl::in_place, segment + offset_bytes, total_bytes,
      Block::Allocation{
          .address = segment,
          .allocation_bytes = length_bytes,
          .release = &release,
          .info = {.resource_name = "shared", .pages = huge ? PageKind::kHuge : PageKind::kSmall}});
}

class NewSegments final : public MemoryResource {
 public:
  absl::StatusOr<Block> allocate(const AllocationRequest& request) override {
    const absl::StatusOr<Placement> placement = place(request);
    if (!placement.ok()) return placement.status();
    const std::int64_t modulus = placement->modulus_bytes;
    if ((modulus & (modulus - 1)) != 0) {
      return make_error(ErrorClass::kValue,
                        {"the alignment of shared memory", std::to_string(request.alignment_bytes),
                         "a power of two", "pass a power of two, for example 64"});
    }
    const std::int64_t page_bytes = system::page_bytes();
    const std::int64_t offset = placement->remainder_bytes;
    const std::int64_t used = std::max<std::int64_t>(1, offset + request.total_bytes);
    const std::int64_t length = (used + page_bytes - 1) / page_bytes * page_bytes;
    const int descriptor = memfd_create("gridbuf", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (descriptor < 0) return no_memory("make", length);
    struct stat found = {};
    if (ftruncate(descriptor, length) != 0 || fcntl(descriptor, F_ADD_SEALS, kSeals) != 0 ||
        fstat(descriptor, &found) != 0) {
      const absl::Status status = no_memory("make", length);
      close(descriptor);
      return status;
    }
    absl::StatusOr<Block> made = map(descriptor, found.st_ino, length, offset, request.total_bytes);
    if (made.ok() && request.populate) {
      const absl::Status status = pages::commit(made->data(), made->total_bytes());
      if (!status.ok()) return status;
    }
    return made;
  }
  std::string_view name() const noexcept override { return "shared"; }
};

}  // namespace

MemoryResource& shared_resource() {
  static NewSegments& resource = *new NewSegments;
  return resource;
}
[[maybe_unused]] const MemoryResource& shared_at_load = shared_resource();

std::optional<SharedPlace> shared_place(const void* address) {
  Segments& all = segments();
  const std::lock_guard lock(all.mutex);
  auto after = all.by_address.upper_bound(number_of(address));
  if (after == all.by_address.begin()) return std::nullopt;
  const auto& [begin, segment] = *std::prev(after);
  const auto offset = static_cast<std::int64_t>(number_of(address) - begin);
  if (offset >= segment.length_bytes) return std::nullopt;
  return SharedPlace{{getpid(), segment.descriptor, segment.inode, segment.length_bytes}, offset};
}

std::int64_t shared_bytes() {
  Segments& all = segments();
  std::int64_t found = 0;
  const std::lock_guard lock(all.mutex);
  for (const auto& [address, segment] : all.by_address) found += segment.length_bytes;
  return found;
}

absl::StatusOr<Block> attach_shared(const SharedHandle& handle) {
  const std::string path =
      "/proc/" + std::to_string(handle.process_id) + "/fd/" + std::to_string(handle.descriptor);
  const int descriptor = open(path.c_str(), O_RDWR | O_CLOEXEC);
  std::string why = descriptor < 0 ? std::strerror(errno) : "";
  if (descriptor >= 0) {
    struct stat found = {};
    const bool is_it = fstat(descriptor, &found) == 0 && found.st_ino == handle.inode &&
                       (fcntl(descriptor, F_GET_SEALS) & kSeals) == kSeals &&
                       found.st_size == handle.length_bytes;
    if (is_it) return map(descriptor, handle.inode, found.st_size, 0, found.st_size);
    close(descriptor);
    why = "freed";
  }
  return make_error(ErrorClass::kBuffer,
                    {"the shared memory of process " + std::to_string(handle.process_id), why,
                     "kept by that process, of the same user and host",
                     "keep the array there until it has arrived here"});
}

}  // namespace gridbuf
