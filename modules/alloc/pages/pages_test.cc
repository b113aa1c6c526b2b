#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"

import gridbuf.alloc.pages;
import gridbuf.error;

namespace gridbuf::pages {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

// A folder with reports of our own making.
class Reports : public ::testing::Test {
 protected:
  Reports() {
    std::filesystem::remove_all(root_);
    reports_ = {root_ + "/meminfo", root_ + "/cgroup", root_ + "/groups"};
  }

  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path file(root_ + "/" + path);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

  const std::string root_ = ::testing::TempDir() + "/reports_" +
                            ::testing::UnitTest::GetInstance()->current_test_info()->name();
  MemoryReports reports_;
};

TEST_F(Reports, NothingReadableLimitsNothing) {
  EXPECT_EQ(committable_bytes(reports_), kUnlimitedBytes);
}

TEST_F(Reports, CountsAvailableMemoryAndSwap) {
  write("meminfo", "MemTotal: 9999 kB\nMemFree: 1 kB\nMemAvailable: 300 kB\nSwapFree: 50 kB\n");
  EXPECT_EQ(committable_bytes(reports_), 350 * 1024);
}

TEST_F(Reports, TakesTheTightestCgroupOnTheWayUp) {
  write("meminfo", "MemAvailable: 1000000 kB\nSwapFree: 0 kB\n");
  write("cgroup", "0::/outer/inner\n");
  write("groups/outer/inner/memory.max", "max\n");
  write("groups/outer/inner/memory.current", "5\n");
  write("groups/outer/memory.max", std::to_string(8 * kMiB));
  write("groups/outer/memory.current", std::to_string(3 * kMiB));
  EXPECT_EQ(committable_bytes(reports_), 5 * kMiB);
}

TEST_F(Reports, CountsFilePagesOfACgroupAsFree) {
  write("cgroup", "0::/\n");
  write("groups/memory.max", std::to_string(8 * kMiB));
  write("groups/memory.current", std::to_string(8 * kMiB));
  write("groups/memory.stat", "anon 77\ninactive_file 4096\nactive_file 1024\n");
  EXPECT_EQ(committable_bytes(reports_), 5120);
}

TEST_F(Reports, ReadsFirstVersionCgroups) {
  write("cgroup", "9:cpu,cpuacct:/x\n4:memory:/job\n");
  write("groups/memory/job/memory.limit_in_bytes", std::to_string(4 * kMiB));
  write("groups/memory/job/memory.usage_in_bytes", std::to_string(kMiB));
  write("groups/memory/job/memory.stat", "total_inactive_file 10\n");
  write("groups/memory/memory.limit_in_bytes", "9223372036854771712");
  write("groups/memory/memory.usage_in_bytes", "0");
  EXPECT_EQ(committable_bytes(reports_), 3 * kMiB + 10);
}

TEST_F(Reports, NeverGoesBelowZero) {
  write("cgroup", "0::/\n");
  write("groups/memory.max", "100");
  write("groups/memory.current", "200");
  EXPECT_EQ(committable_bytes(reports_), 0);
}

TEST(CommittableBytes, AnswersForThisMachine) {
  const std::int64_t bytes = committable_bytes();
  EXPECT_GT(bytes, kMiB);
  EXPECT_LT(bytes, kUnlimitedBytes);
}

// An anonymous mapping that knows which of its pages are present.
class Mapping {
 public:
  explicit Mapping(std::int64_t pages)
      : length_(static_cast<std::size_t>(pages * sysconf(_SC_PAGESIZE))),
        data_(static_cast<std::byte*>(
            mmap(nullptr, length_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    madvise(data_, length_, MADV_NOHUGEPAGE);
  }
  ~Mapping() { munmap(data_, length_); }

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
  const Mapping mapping(16);
  ASSERT_EQ(mapping.present_pages(), 0);
  // From the last byte of page 2 to the first of page 5.
  ASSERT_TRUE(
      commit(mapping.data() + 3 * mapping.page_bytes() - 1, 2 * mapping.page_bytes() + 2).ok());
  EXPECT_EQ(mapping.present_pages(), 4);
}

TEST(Commit, KeepsTheBytes) {
  const Mapping mapping(3);
  mapping.data()[5000] = std::byte{42};
  ASSERT_TRUE(commit(mapping.data(), 3 * mapping.page_bytes()).ok());
  EXPECT_EQ(mapping.data()[5000], std::byte{42});
  EXPECT_EQ(mapping.data()[5001], std::byte{0});
}

TEST(Commit, DoesNothingForNoBytes) { EXPECT_TRUE(commit(nullptr, 0).ok()); }

TEST(Commit, ReportsWhatTheKernelRefuses) {
  const Mapping mapping(4);
  // A page that may not be written cannot be populated for writing.
  ASSERT_EQ(mprotect(mapping.data(), static_cast<std::size_t>(mapping.page_bytes()), PROT_NONE), 0);
  const absl::Status status = commit(mapping.data(), 2 * mapping.page_bytes());
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(error_class_of(status), ErrorClass::kMemory);
  EXPECT_NE(status.message().find("8.0 KiB"), std::string::npos) << status.message();
}

TEST(Touch, MakesEveryPagePresentAndKeepsTheBytes) {
  const Mapping mapping(8);
  mapping.data()[mapping.page_bytes()] = std::byte{7};
  ASSERT_EQ(mapping.present_pages(), 1);
  touch(mapping.data() + 10, 3 * mapping.page_bytes());
  EXPECT_EQ(mapping.present_pages(), 4);
  EXPECT_EQ(mapping.data()[mapping.page_bytes()], std::byte{7});
}

}  // namespace
}  // namespace gridbuf::pages
