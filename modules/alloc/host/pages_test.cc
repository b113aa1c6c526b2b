#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"

import gridbuf.alloc;
import gridbuf.alloc.host;
import gridbuf.base;

namespace gridbuf::pages {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr std::int64_t kLongBytes = 8 * kMiB;  // committed by several threads

// An anonymous mapping that knows which of its pages are present.
class SmallPages {
 public:
  explicit SmallPages(std::int64_t pages)
      : length_(static_cast<std::size_t>(pages * sysconf(_SC_PAGESIZE))),
        data_(static_cast<std::byte*>(
            mmap(nullptr, length_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    madvise(data_, length_, MADV_NOHUGEPAGE);
  }
  ~SmallPages() { munmap(data_, length_); }

  std::byte* data() const { return data_; }
  std::int64_t page_bytes() const { return sysconf(_SC_PAGESIZE); }
  std::int64_t present_pages() const {
    std::vector<unsigned char> present(length_ / static_cast<std::size_t>(page_bytes()));
    if (mincore(data_, length_, present.data()) != 0) return -1;
    return std::count_if(present.begin(), present.end(),
                         [](unsigned char flags) { return (flags & 1) != 0; });
  }

 private:
  std::size_t length_;
  std::byte* data_;
};

TEST(Commit, MakesExactlyThePagesOfTheRangePresent) {
  const SmallPages mapping(16);
  ASSERT_EQ(mapping.present_pages(), 0);
  // From the last byte of page 2 to the first of page 5.
  ASSERT_TRUE(
      commit(mapping.data() + 3 * mapping.page_bytes() - 1, 2 * mapping.page_bytes() + 2).ok());
  EXPECT_EQ(mapping.present_pages(), 4);
}

TEST(Commit, KeepsTheBytes) {
  const SmallPages mapping(3);
  mapping.data()[5000] = std::byte{42};
  ASSERT_TRUE(commit(mapping.data(), 3 * mapping.page_bytes()).ok());
  EXPECT_EQ(mapping.data()[5000], std::byte{42});
  EXPECT_EQ(mapping.data()[5001], std::byte{0});
}

TEST(Commit, DoesNothingForNoBytes) { EXPECT_TRUE(commit(nullptr, 0).ok()); }

TEST(Commit, ReportsWhatTheKernelRefuses) {
  if (std::getenv("GRIDBUF_EMULATED") != nullptr) {
    GTEST_SKIP() << "the emulator ignores advice on memory";
  }
  const SmallPages mapping(4);
  // A page that may not be written cannot be populated for writing.
  ASSERT_EQ(mprotect(mapping.data(), static_cast<std::size_t>(mapping.page_bytes()), PROT_NONE), 0);
  const absl::Status status = commit(mapping.data(), 2 * mapping.page_bytes());
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(error_class_of(status), ErrorClass::kMemory);
  EXPECT_NE(status.message().find("8.0 KiB"), std::string::npos) << status.message();
}

TEST(Touch, MakesEveryPagePresentAndKeepsTheBytes) {
  const SmallPages mapping(8);
  mapping.data()[mapping.page_bytes()] = std::byte{7};
  ASSERT_EQ(mapping.present_pages(), 1);
  touch(mapping.data() + 10, 3 * mapping.page_bytes());
  EXPECT_EQ(mapping.present_pages(), 4);
  EXPECT_EQ(mapping.data()[mapping.page_bytes()], std::byte{7});
}

TEST(Commit, UsesThreadsForLongRangesAndCommitsThemWhole) {
  for (const int threads : {1, 3}) {
    ASSERT_TRUE(set_thread_count(threads).ok());
    const SmallPages mapping(3 * kLongBytes / system::page_bytes());
    const std::int64_t skipped = 5 * mapping.page_bytes();
    ASSERT_TRUE(commit(mapping.data() + skipped, 2 * kLongBytes + 1).ok());
    EXPECT_EQ(mapping.present_pages(), 2 * kLongBytes / system::page_bytes() + 1);
  }
}

TEST(Commit, ReportsARefusalAnywhereInALongRange) {
  if (std::getenv("GRIDBUF_EMULATED") != nullptr) {
    GTEST_SKIP() << "the emulator ignores advice on memory";
  }
  const SmallPages mapping(2 * kLongBytes / system::page_bytes());
  ASSERT_EQ(mprotect(mapping.data() + kLongBytes, static_cast<std::size_t>(mapping.page_bytes()),
                     PROT_NONE),
            0);
  EXPECT_EQ(error_class_of(commit(mapping.data(), 2 * kLongBytes)), ErrorClass::kMemory);
}

constexpr std::int64_t kHugeBytes = 2 * kMiB;

TEST(MapPages, GivesZeroedWritableMemory) {
  for (const PageKind pages : {PageKind::kSmall, PageKind::kHuge}) {
    const absl::StatusOr<Mapping> mapping = map_pages(3 * kMiB + 1, pages);
    ASSERT_TRUE(mapping.ok()) << mapping.status();
    EXPECT_EQ(mapping->pages, pages);
    EXPECT_EQ(mapping->length_bytes, mapped_length(3 * kMiB + 1, pages));
    EXPECT_EQ(mapping->address[mapping->length_bytes - 1], std::byte{0});
    mapping->address[0] = std::byte{1};
    mapping->address[mapping->length_bytes - 1] = std::byte{2};
    unmap_pages(*mapping);
  }
}

TEST(MapPages, StartsHugePagesOnTheirBorder) {
  const std::int64_t huge = system::huge_pages().page_bytes;
  for (int i = 0; i < 8; ++i) {
    const absl::StatusOr<Mapping> mapping =
        map_pages(huge + i * system::page_bytes(), PageKind::kHuge);
    ASSERT_TRUE(mapping.ok());
    EXPECT_EQ(
        reinterpret_cast<std::uintptr_t>(mapping->address) % static_cast<std::uintptr_t>(huge), 0U);
    unmap_pages(*mapping);
  }
}

TEST(MapPages, ReallyGetsHugePagesWhereTheSystemHasThem) {
  const system::HugePageMode mode = system::huge_pages().mode;
  if (mode != system::HugePageMode::kMadvise && mode != system::HugePageMode::kAlways) {
    GTEST_SKIP() << "transparent huge pages are " << system::to_string(mode) << " here";
  }
  if (std::getenv("GRIDBUF_EMULATED") != nullptr) {
    GTEST_SKIP() << "the emulator ignores advice on memory";
  }
  const absl::StatusOr<Mapping> huge = map_pages(4 * kHugeBytes, PageKind::kHuge);
  ASSERT_TRUE(huge.ok());
  ASSERT_TRUE(commit(huge->address, huge->length_bytes).ok());
  const auto found = system::mapped_pages(huge->address, huge->length_bytes);
  ASSERT_TRUE(found);
  EXPECT_GT(found->huge_bytes, 0);  // as many as the kernel had
  unmap_pages(*huge);
}

TEST(MapPages, GetsNoHugePagesWhereTheyAreNotWanted) {
  const absl::StatusOr<Mapping> small = map_pages(4 * kHugeBytes, PageKind::kSmall);
  ASSERT_TRUE(small.ok());
  ASSERT_TRUE(commit(small->address, small->length_bytes).ok());
  const auto found = system::mapped_pages(small->address, small->length_bytes);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->huge_bytes, 0);
  unmap_pages(*small);
}

TEST(MapPages, ReportsThatThereIsNoRoom) {
  const absl::StatusOr<Mapping> mapping = map_pages(std::int64_t{1} << 60, PageKind::kHuge);
  ASSERT_FALSE(mapping.ok());
  EXPECT_EQ(error_class_of(mapping.status()), ErrorClass::kMemory);
  EXPECT_NE(mapping.status().message().find("1.0 EiB"), std::string::npos) << mapping.status();
}

// ---- Which pages. ----

PageKind kind_in(system::HugePageMode mode, std::int64_t length_bytes, bool wanted = true) {
  return kind_for(length_bytes, wanted, system::HugePageReport{mode, 2 * kMiB});
}

// Shorter, longer in place, and longer behind a neighbour, of both kinds.
TEST(ResizePages, KeepsBytesAndPlace) {
  for (const PageKind kind : {PageKind::kHuge, PageKind::kSmall}) {
    const std::int64_t modulus =
        kind == PageKind::kHuge ? page_lengths().huge_page_bytes : kMaxAlignmentBytes;
    std::optional<Mapping> mapping = *map_pages(6 * kMiB, kind);
    const auto place = [&] {
      return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(mapping->address)) %
             modulus;
    };
    const std::int64_t expected = place();
    std::memset(mapping->address, 9, 5 * kMiB);
    std::vector<Mapping> neighbours;
    for (const std::int64_t length : {5, 6, 20, 21, 5, 40}) {
      neighbours.push_back(*map_pages(2 * kMiB, kind));
      mapping = resize_pages(*mapping, length * kMiB);
      ASSERT_TRUE(mapping);
      EXPECT_EQ(mapping->length_bytes, length * kMiB);
      EXPECT_EQ(mapping->pages, kind);
      EXPECT_EQ(place(), expected);
      std::byte* const end = mapping->address + mapping->length_bytes;
      EXPECT_EQ(std::count(mapping->address, mapping->address + 5 * kMiB, std::byte{9}), 5 * kMiB);
      EXPECT_EQ(std::count(mapping->address + 5 * kMiB, end, std::byte{0}), (length - 5) * kMiB);
    }
    EXPECT_FALSE(resize_pages(*mapping, std::int64_t{1} << 60));
    EXPECT_EQ(mapping->address[5 * kMiB - 1], std::byte{9});
    unmap_pages(*mapping);
    for (const Mapping& neighbour : neighbours) unmap_pages(neighbour);
  }
}

TEST(KindFor, TheSystemsNeverIsNever) {
  for (const auto mode : {system::HugePageMode::kNever, system::HugePageMode::kAbsent}) {
    for (const bool wanted : {false, true}) {
      EXPECT_EQ(kind_in(mode, 1024 * kMiB, wanted), PageKind::kSmall);
    }
  }
}

TEST(KindFor, TakesHugePagesFromOneWholeOneOn) {
  for (const auto mode : {system::HugePageMode::kMadvise, system::HugePageMode::kAlways}) {
    EXPECT_EQ(kind_in(mode, 2 * kMiB - 1), PageKind::kSmall);
    EXPECT_EQ(kind_in(mode, 2 * kMiB), PageKind::kHuge);
    EXPECT_EQ(kind_in(mode, 2 * kMiB, false), PageKind::kSmall);
  }
}

TEST(MappedLength, IsWholePagesAndHugeOnesWhereTheLastIsUsed) {
  const PageLengths lengths{4 << 10, 2 * kMiB};
  const std::int64_t page = lengths.page_bytes;
  EXPECT_EQ(mapped_length(1, PageKind::kSmall, lengths), page);
  EXPECT_EQ(mapped_length(page, PageKind::kSmall, lengths), page);
  EXPECT_EQ(mapped_length(page + 1, PageKind::kSmall, lengths), 2 * page);
  const std::int64_t huge = lengths.huge_page_bytes;
  EXPECT_EQ(mapped_length(huge, PageKind::kHuge, lengths), huge);
  EXPECT_EQ(mapped_length(huge + 1, PageKind::kHuge, lengths), huge + page);
  EXPECT_EQ(mapped_length(huge + huge / 4 - page, PageKind::kHuge, lengths),
            huge + huge / 4 - page);
  EXPECT_EQ(mapped_length(huge + huge / 4, PageKind::kHuge, lengths), 2 * huge);
  for (std::int64_t length = 1; length < 5 * huge; length += 12345) {
    for (const PageKind pages : {PageKind::kSmall, PageKind::kHuge}) {
      const std::int64_t mapped = mapped_length(length, pages, lengths);
      EXPECT_GE(mapped, length);
      EXPECT_LT(mapped - length, pages == PageKind::kHuge ? huge : page);
      EXPECT_EQ(mapped % page, 0);
    }
  }
}

// The lengths of x86-64 and of kernels for aarch64.
TEST(MappedLength, FollowsThePagesOfTheMachine) {
  for (const PageLengths& lengths :
       {PageLengths{4 << 10, 2 * kMiB}, PageLengths{16 << 10, 32 * kMiB},
        PageLengths{64 << 10, 2 * kMiB}, PageLengths{64 << 10, 512 * kMiB}}) {
    const auto [page, huge] = lengths;
    EXPECT_EQ(mapped_length(1, PageKind::kSmall, lengths), page);
    EXPECT_EQ(mapped_length(page + 1, PageKind::kSmall, lengths), 2 * page);
    EXPECT_EQ(mapped_length(huge, PageKind::kHuge, lengths), huge);
    EXPECT_EQ(mapped_length(huge + 1, PageKind::kHuge, lengths), huge + page);
    EXPECT_EQ(mapped_length(10 * huge - page, PageKind::kHuge, lengths), 10 * huge);
    for (std::int64_t length = 1; length < 12 * huge; length += huge / 7 + 12345) {
      const std::int64_t mapped = mapped_length(length, PageKind::kHuge, lengths);
      EXPECT_GE(mapped, length);
      EXPECT_EQ(mapped % page, 0);
      EXPECT_LE(mapped - length, std::max(2 * kMiB, length / 8 + page));
    }
  }
}

TEST(PartLength, IsWholePagesAndShortHugeOnes) {
  const PageLengths usual{4096, 2 * kMiB};
  EXPECT_EQ(part_length(1, PageKind::kSmall, usual), 4096);
  EXPECT_EQ(part_length(2 * kMiB + 1, PageKind::kHuge, usual), 4 * kMiB);
  const PageLengths long_ones{65536, 512 * kMiB};
  EXPECT_EQ(part_length(513 * kMiB, PageKind::kHuge, long_ones), 514 * kMiB);
  EXPECT_EQ(part_length(4 * kMiB, PageKind::kSmall, long_ones), 4 * kMiB);
}

TEST(CommitChunk, FollowsThePagesOfTheMachine) {
  const PageLengths usual{4 << 10, 2 * kMiB};
  const PageLengths large{64 << 10, 512 * kMiB};
  EXPECT_EQ(commit_chunk_bytes(8 * kMiB, usual), 2 * kMiB);
  EXPECT_EQ(commit_chunk_bytes(1 << 30, usual), 2 * kMiB);
  EXPECT_EQ(commit_chunk_bytes(8 * kMiB, large), 2 * kMiB);
  EXPECT_EQ(commit_chunk_bytes(1 << 30, large), 512 * kMiB);
}

// The kernel may keep the bytes or take them. Only the use of the pages is promised.
TEST(OfferPages, LeavesMemoryThatCanBeWritten) {
  const absl::StatusOr<Mapping> mapping = map_pages(2 * kHugeBytes, PageKind::kHuge);
  ASSERT_TRUE(mapping.ok());
  std::fill_n(mapping->address, mapping->length_bytes, std::byte{1});
  offer_pages(mapping->address + 100, mapping->length_bytes - 100);
  EXPECT_EQ(mapping->address[99], std::byte{1});  // its page was offered only in part
  std::fill_n(mapping->address, mapping->length_bytes, std::byte{2});
  for (std::int64_t at = 0; at < mapping->length_bytes; at += 4096) {
    ASSERT_EQ(mapping->address[at], std::byte{2});
  }
  offer_pages(mapping->address + 1, 10);  // less than a page: no effect
  EXPECT_EQ(mapping->address[1], std::byte{2});
  unmap_pages(*mapping);
}

TEST(SealPagesDeathTest, MakesEveryAccessFatalAndTakesTheMemory) {
  const absl::StatusOr<Mapping> mapping = map_pages(kHugeBytes, PageKind::kHuge);
  ASSERT_TRUE(mapping.ok());
  std::fill_n(mapping->address, mapping->length_bytes, std::byte{1});
  ASSERT_TRUE(seal_pages(*mapping));
  volatile std::byte* const byte = mapping->address + kMiB;
  EXPECT_DEATH(*byte = std::byte{0}, "");
  EXPECT_DEATH(std::_Exit(static_cast<int>(*byte)), "");
  const auto found = system::mapped_pages(mapping->address, mapping->length_bytes);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->resident_bytes, 0);
  unmap_pages(*mapping);
}

// Present memory on huge pages, or the reason why the system lacks it.
absl::StatusOr<Mapping> present_pages(std::int64_t length_bytes) {
  absl::StatusOr<Mapping> mapping = map_pages(length_bytes, PageKind::kHuge);
  if (!mapping.ok()) return mapping;
  absl::Status status = commit(mapping->address, mapping->length_bytes);
  if (status.ok()) return mapping;
  unmap_pages(*mapping);
  return status;
}

TEST(Commit, GivesPagesThatArePresentOrTheReason) {
  const absl::StatusOr<Mapping> mapping = present_pages(kMiB);
  ASSERT_TRUE(mapping.ok());
  unmap_pages(*mapping);
}

}  // namespace
}  // namespace gridbuf::pages
