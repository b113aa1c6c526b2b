#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "gtest/gtest.h"

import gridbuf.base;

namespace gridbuf::system {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

// A folder with reports that the tests write.
class ReportsOfOurOwn : public ::testing::Test {
 protected:
  ReportsOfOurOwn() {
    std::filesystem::remove_all(root_);
    reports_ = {root_ + "/meminfo", root_ + "/cgroup", root_ + "/groups",
                root_ + "/thp",     root_ + "/smaps",  root_ + "/caches"};
  }

  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path file(root_ + "/" + path);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

  const std::string root_ = ::testing::TempDir() + "/reports_" +
                            ::testing::UnitTest::GetInstance()->current_test_info()->name();
  Reports reports_;
};

TEST_F(ReportsOfOurOwn, NothingReadableLimitsNothing) {
  EXPECT_EQ(committable_bytes(reports_), kUnlimitedBytes);
}

TEST_F(ReportsOfOurOwn, CountsAvailableMemoryAndSwap) {
  write("meminfo", "MemTotal: 9999 kB\nMemFree: 1 kB\nMemAvailable: 300 kB\nSwapFree: 50 kB\n");
  EXPECT_EQ(committable_bytes(reports_), 350 * 1024);
}

TEST_F(ReportsOfOurOwn, TakesTheTightestCgroupOnTheWayUp) {
  write("meminfo", "MemAvailable: 1000000 kB\nSwapFree: 0 kB\n");
  write("cgroup", "0::/outer/inner\n");
  write("groups/outer/inner/memory.max", "max\n");
  write("groups/outer/inner/memory.current", "5\n");
  write("groups/outer/memory.max", std::to_string(8 * kMiB));
  write("groups/outer/memory.current", std::to_string(3 * kMiB));
  EXPECT_EQ(committable_bytes(reports_), 5 * kMiB);
}

TEST_F(ReportsOfOurOwn, CountsFilePagesOfACgroupAsFree) {
  write("cgroup", "0::/\n");
  write("groups/memory.max", std::to_string(8 * kMiB));
  write("groups/memory.current", std::to_string(8 * kMiB));
  write("groups/memory.stat", "anon 77\ninactive_file 4096\nactive_file 1024\n");
  EXPECT_EQ(committable_bytes(reports_), 5120);
}

TEST_F(ReportsOfOurOwn, ReadsFirstVersionCgroups) {
  write("cgroup", "9:cpu,cpuacct:/x\n4:memory:/job\n");
  write("groups/memory/job/memory.limit_in_bytes", std::to_string(4 * kMiB));
  write("groups/memory/job/memory.usage_in_bytes", std::to_string(kMiB));
  write("groups/memory/job/memory.stat", "total_inactive_file 10\n");
  write("groups/memory/memory.limit_in_bytes", "9223372036854771712");
  write("groups/memory/memory.usage_in_bytes", "0");
  EXPECT_EQ(committable_bytes(reports_), 3 * kMiB + 10);
}

TEST_F(ReportsOfOurOwn, NeverGoesBelowZero) {
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

int affinity() {
  cpu_set_t mask;
  return sched_getaffinity(0, sizeof(mask), &mask) == 0 ? CPU_COUNT(&mask) : 1;
}

TEST_F(ReportsOfOurOwn, ANoQuotaLeavesTheAffinity) {
  write("cgroup", "0::/job\n");
  write("groups/job/cpu.max", "max 100000\n");
  EXPECT_EQ(usable_cpu_count(reports_), affinity());
}

TEST_F(ReportsOfOurOwn, AQuotaOfProcessorTimeIsRoundedUp) {
  write("cgroup", "0::/job/step\n");
  write("groups/job/cpu.max", "50000 100000\n");
  write("groups/job/step/cpu.max", "max 100000\n");
  EXPECT_EQ(usable_cpu_count(reports_), 1);
  write("groups/job/cpu.max", "100001 100000\n");
  EXPECT_EQ(usable_cpu_count(reports_), std::min(2, affinity()));
}

TEST_F(ReportsOfOurOwn, ReadsFirstVersionQuotas) {
  write("cgroup", "3:cpu,cpuacct:/x\n");
  write("groups/cpu/x/cpu.cfs_quota_us", "20000\n");
  write("groups/cpu/x/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(usable_cpu_count(reports_), 1);
  write("groups/cpu/x/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(usable_cpu_count(reports_), affinity());
}

TEST(UsableCpuCount, FollowsTheAffinityOfThisProcess) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  EXPECT_EQ(usable_cpu_count(), 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
}

TEST_F(ReportsOfOurOwn, WithoutAReportTheLastCacheHasTheUsualLength) {
  EXPECT_EQ(last_cache_bytes(reports_), 32 * kMiB);
}

TEST_F(ReportsOfOurOwn, TheLastCacheIsTheLargest) {
  write("caches/index0/size", "48K\n");
  write("caches/index1/size", "32K\n");
  write("caches/index2/size", "1024K\n");
  EXPECT_EQ(last_cache_bytes(reports_), kMiB);
  write("caches/index3/size", "98304K\n");
  EXPECT_EQ(last_cache_bytes(reports_), 96 * kMiB);
}

TEST_F(ReportsOfOurOwn, WithoutAReportThereAreNoHugePages) {
  EXPECT_EQ(huge_pages(reports_), (HugePageReport{HugePageMode::kAbsent, 2 * kMiB}));
}

TEST_F(ReportsOfOurOwn, ReadsTheSettingInBrackets) {
  write("thp/hpage_pmd_size", "536870912\n");  // with pages of 64 KiB
  EXPECT_EQ(huge_pages(reports_), (HugePageReport{HugePageMode::kAbsent, 512 * kMiB}));
  write("thp/hpage_pmd_size", "33554432\n");
  write("thp/enabled", "always [madvise] never\n");
  EXPECT_EQ(huge_pages(reports_), (HugePageReport{HugePageMode::kMadvise, 32 * kMiB}));
  write("thp/enabled", "[always] madvise never\n");
  EXPECT_EQ(huge_pages(reports_).mode, HugePageMode::kAlways);
  write("thp/enabled", "always madvise [never]\n");
  EXPECT_EQ(huge_pages(reports_).mode, HugePageMode::kNever);
}

TEST_F(ReportsOfOurOwn, AddsUpTheMappingsOfARange) {
  write("smaps",
        "10000-20000 rw-p 00000000 00:00 0 \nSize: 64 kB\nRss: 8 kB\nAnonHugePages: 0 kB\n"
        "20000-30000 rw-p 00000000 00:00 0 \nRss: 4 kB\nAnonHugePages: 2 kB\n"
        "30000-40000 r--p 00000000 00:00 0 [vdso]\nRss: 99 kB\n");
  const auto* begin = reinterpret_cast<const void*>(0x18000);
  EXPECT_EQ(mapped_pages(begin, 0x10000, reports_),
            (MappedPages{.mapped_bytes = 0x20000, .resident_bytes = 12288, .huge_bytes = 2048}));
  // Numbers of a long mapping are cut to the range.
  EXPECT_EQ(mapped_pages(begin, 16, reports_),
            (MappedPages{.mapped_bytes = 0x10000, .resident_bytes = 16, .huge_bytes = 0}));
}

TEST_F(ReportsOfOurOwn, KnowsNothingOfWhatIsNotMapped) {
  EXPECT_EQ(mapped_pages(reinterpret_cast<const void*>(0x18000), 16, reports_), std::nullopt);
  write("smaps", "10000-20000 rw-p 00000000 00:00 0 \nRss: 8 kB\n");
  EXPECT_EQ(mapped_pages(reinterpret_cast<const void*>(0x20000), 16, reports_), std::nullopt);
}

TEST(MappedPagesOfThisProcess, CountWhatWasTouched) {
  const auto length = static_cast<std::size_t>(64 * page_bytes());
  void* const address =
      mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(address, MAP_FAILED);
  std::memset(address, 1, length);
  const std::optional<MappedPages> pages = mapped_pages(address, 64 * page_bytes());
  munmap(address, length);
  ASSERT_TRUE(pages);
  EXPECT_GE(pages->mapped_bytes, 64 * page_bytes());
  EXPECT_EQ(pages->resident_bytes, 64 * page_bytes());
}

// [example]
// The number of threads that could each have a field of this length in memory now.
std::int64_t workers_for(std::int64_t field_bytes) {
  return std::min<std::int64_t>(system::usable_cpu_count(),
                                system::committable_bytes() / field_bytes);
}
// [/example]

TEST(SystemExample, OfTheReadme) {
  EXPECT_GE(workers_for(kMiB), 1);
  EXPECT_EQ(workers_for(kUnlimitedBytes), 0);
}

}  // namespace
}  // namespace gridbuf::system
