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
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.alloc.host;

import gridbuf.alloc;
import gridbuf.base;

// A segment is an anonymous file of the kernel, which cannot shrink: a process that has checked its
// length never touches a page that is not there. It is mapped at a multiple of the largest
// alignment, after a part that only this process has, with the record.

namespace gridbuf {
namespace {

constexpr std::int64_t kBoundaryBytes = kMaxAlignmentBytes;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW;

struct Record {
  std::int64_t length_bytes;
  std::uint64_t inode;
  std::int32_t descriptor;
};

std::uintptr_t number_of(const std::byte* address) {
  return reinterpret_cast<std::uintptr_t>(address);
}

// data() is less than an alignment after the begin of the segment.
std::byte* segment_of(const std::byte* data) {
  return reinterpret_cast<std::byte*>(number_of(data) / kBoundaryBytes * kBoundaryBytes);
}

Record& record_of(std::byte* segment) {
  return *reinterpret_cast<Record*>(segment - sizeof(Record) - sizeof(Record) % alignof(Record));
}

void release(void* /*context*/, void* address) noexcept {
  auto* const segment = static_cast<std::byte*>(address);
  const Record record = record_of(segment);
  munmap(segment - kBoundaryBytes, static_cast<std::size_t>(kBoundaryBytes + record.length_bytes));
  close(record.descriptor);
}

absl::Status no_memory(std::string_view what, std::int64_t length_bytes) {
  return make_error(ErrorClass::kMemory, "the kernel could not " + std::string(what) + " " +
                                             bytes_text(length_bytes) + " of shared memory (" +
                                             std::strerror(errno) + "); free some memory");
}

// Maps a file, which it closes after an error.
absl::StatusOr<Block> map(int descriptor, std::int64_t length_bytes, std::int64_t offset_bytes,
                          std::int64_t total_bytes) {
  struct stat found = {};
  fstat(descriptor, &found);
  const auto fail = [&] {
    const absl::Status status = no_memory("map", length_bytes);
    close(descriptor);
    return status;
  };
  const auto wide = static_cast<std::size_t>(length_bytes + 3 * kBoundaryBytes);
  void* const range =
      mmap(nullptr, wide, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) return fail();
  auto* const first = static_cast<std::byte*>(range);
  std::byte* const segment = segment_of(first + 2 * kBoundaryBytes - 1);
  std::byte* const own = segment - system::page_bytes();
  const auto own_bytes = static_cast<std::size_t>(system::page_bytes());
  const bool is_mapped =
      mprotect(own, own_bytes, PROT_READ | PROT_WRITE) == 0 &&
      mmap(segment, static_cast<std::size_t>(length_bytes), PROT_READ | PROT_WRITE,
           MAP_SHARED | MAP_FIXED, descriptor, 0) != MAP_FAILED;
  if (!is_mapped) {
    const absl::Status status = fail();
    munmap(range, wide);
    return status;
  }
  munmap(first, static_cast<std::size_t>(segment - kBoundaryBytes - first));
  std::byte* const end = segment + length_bytes;
  munmap(end, static_cast<std::size_t>(first + wide - end));
  if (host_resource().options().huge_pages) {
    madvise(segment, static_cast<std::size_t>(length_bytes), MADV_HUGEPAGE);
  }
  record_of(segment) = {length_bytes, static_cast<std::uint64_t>(found.st_ino), descriptor};
  return absl::StatusOr<Block>(absl::in_place, segment + offset_bytes, total_bytes,
                               Block::Allocation{.address = segment,
                                                 .allocation_bytes = length_bytes,
                                                 .release = &release,
                                                 .info = {.resource_name = "shared",
                                                          .pages = PageKind::kSmall}});
}

struct Place {
  std::int64_t offset_bytes;
  std::int64_t length_bytes;
};

// Where the block of a request is in its segment, the same in each process.
absl::StatusOr<Place> place_shared(const AllocationRequest& request) {
  const absl::StatusOr<Placement> placement = place(request);
  if (!placement.ok()) return placement.status();
  const std::int64_t alignment = request.alignment_bytes;
  if ((alignment & (alignment - 1)) != 0) {
    return make_error(ErrorClass::kValue,
                      {"the alignment of shared memory", std::to_string(alignment),
                       "a power of two", "pass a power of two, for example 64"});
  }
  const std::int64_t modulus = placement->modulus_bytes;
  const std::int64_t offset = placement->remainder_bytes % modulus;
  const std::int64_t page_bytes = system::page_bytes();
  const std::int64_t used = std::max<std::int64_t>(1, offset + request.total_bytes);
  return Place{offset, (used + page_bytes - 1) / page_bytes * page_bytes};
}

class NewSegments final : public MemoryResource {
 public:
  absl::StatusOr<Block> allocate(const AllocationRequest& request) override {
    const absl::StatusOr<Place> placed = place_shared(request);
    if (!placed.ok()) return placed.status();
    const int descriptor = memfd_create("gridbuf", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (descriptor < 0) return no_memory("make", placed->length_bytes);
    if (ftruncate(descriptor, placed->length_bytes) != 0 ||
        fcntl(descriptor, F_ADD_SEALS, kSeals) != 0) {
      const absl::Status status = no_memory("make", placed->length_bytes);
      close(descriptor);
      return status;
    }
    absl::StatusOr<Block> made =
        map(descriptor, placed->length_bytes, placed->offset_bytes, request.total_bytes);
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

SharedHandle shared_handle(const std::byte* data) {
  const Record& record = record_of(segment_of(data));
  return {getpid(), record.descriptor, record.inode, record.length_bytes};
}

absl::StatusOr<Block> SharedMemory::allocate(const AllocationRequest& request) {
  const absl::StatusOr<Place> placed = place_shared(request);
  if (!placed.ok()) return placed.status();
  const std::string path = "/proc/" + std::to_string(handle_.process_id) + "/fd/" +
                           std::to_string(handle_.descriptor);
  const int descriptor = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) {
    return make_error(ErrorClass::kBuffer,
                      {"the shared memory of process " + std::to_string(handle_.process_id),
                       std::strerror(errno), "kept by that process, of the same user and host",
                       "keep the array there until it has arrived here"});
  }
  struct stat found = {};
  const bool is_it = fstat(descriptor, &found) == 0 &&
                     static_cast<std::uint64_t>(found.st_ino) == handle_.inode &&
                     (fcntl(descriptor, F_GET_SEALS) & kSeals) == kSeals;
  const bool fits = is_it && found.st_size == placed->length_bytes;
  if (fits) return map(descriptor, placed->length_bytes, placed->offset_bytes, request.total_bytes);
  close(descriptor);
  if (!is_it) {
    return make_error(ErrorClass::kBuffer,
                      {"the shared memory of process " + std::to_string(handle_.process_id),
                       "no longer there", "kept by that process",
                       "keep the array there until it has arrived here"});
  }
  return make_error(ErrorClass::kValue,
                    {"the shared memory's length", bytes_text(found.st_size),
                     bytes_text(placed->length_bytes) + " for this request",
                     "attach it with the parameters that it was made with"});
}

}  // namespace gridbuf
