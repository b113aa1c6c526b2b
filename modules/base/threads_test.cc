#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <mutex>
#include <new>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"

import gridbuf.base;

namespace gridbuf {
namespace {

// Every test starts with four threads on every machine.
class Threads : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(set_thread_count(4).ok()); }
};

using Chunk = std::pair<std::int64_t, std::int64_t>;

std::vector<Chunk> chunks_of(std::int64_t total, std::int64_t chunk) {
  std::mutex mutex;
  std::vector<Chunk> found;
  parallel_for(total, chunk, [&](std::int64_t begin, std::int64_t end) {
    const std::lock_guard lock(mutex);
    found.emplace_back(begin, end);
  });
  std::sort(found.begin(), found.end());
  return found;
}

TEST_F(Threads, PassAnExceptionOnToTheCaller) {
  for (const int threads : {1, 4}) {
    ASSERT_TRUE(set_thread_count(threads).ok());
    for (const std::int64_t bad : {0, 500, 999}) {
      const auto work = [bad](std::int64_t begin, std::int64_t /*end*/) {
        if (begin == bad) throw std::bad_alloc();
      };
      EXPECT_THROW(parallel_for(1000, 1, work), std::bad_alloc);
    }
    EXPECT_EQ(chunks_of(1000, 10).size(), 100U);  // The threads go on working.
  }
}

TEST_F(Threads, VisitEveryChunkOnce) {
  for (const int threads : {1, 2, 3, 7, kMaxThreadCount}) {
    ASSERT_TRUE(set_thread_count(threads).ok());
    for (const std::int64_t total : {1, 5, 63, 64, 65, 1000}) {
      for (const std::int64_t chunk : {1, 2, 64, 999, 5000}) {
        const std::vector<Chunk> chunks = chunks_of(total, chunk);
        std::int64_t at = 0;
        for (const auto& [begin, end] : chunks) {
          EXPECT_EQ(begin, at);
          EXPECT_EQ(end, std::min(total, at + chunk));
          at = end;
        }
        EXPECT_EQ(at, total) << threads << " threads, chunks of " << chunk;
      }
    }
  }
}

TEST_F(Threads, DoNothingForNothing) {
  EXPECT_TRUE(chunks_of(0, 8).empty());
  EXPECT_TRUE(chunks_of(-5, 8).empty());
}

TEST_F(Threads, ReachTheEndOfTheLongestRange) {
  constexpr std::int64_t kTotal = INT64_MAX;
  const std::vector<Chunk> chunks = chunks_of(kTotal, std::int64_t{1} << 58);
  EXPECT_EQ(chunks.size(), 32U);
  EXPECT_EQ(chunks.back().second, kTotal);
}

// Writes of helpers are visible when the loop returns; ThreadSanitizer checks the order.
TEST_F(Threads, MakeTheirWritesVisible) {
  std::vector<std::int64_t> values(1 << 16);
  parallel_for(std::ssize(values), 100, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) values[static_cast<std::size_t>(i)] = i;
  });
  for (std::int64_t i = 0; i < std::ssize(values); ++i) {
    ASSERT_EQ(values[static_cast<std::size_t>(i)], i);
  }
}

// With one chunk per thread that waits for the others, the loop ends only if all run at once.
TEST_F(Threads, RunAtTheSameTime) {
  std::atomic<int> arrived = 0;
  parallel_for(4, 1, [&](std::int64_t, std::int64_t) {
    ++arrived;
    while (arrived < 4) std::this_thread::yield();
  });
  EXPECT_EQ(arrived, 4);
}

TEST_F(Threads, StayWithinTheirNumber) {
  for (const int threads : {1, 2, 3}) {
    ASSERT_TRUE(set_thread_count(threads).ok());
    std::mutex mutex;
    std::set<std::thread::id> ids;
    parallel_for(100, 1, [&](std::int64_t, std::int64_t) {
      const std::lock_guard lock(mutex);
      ids.insert(std::this_thread::get_id());
    });
    EXPECT_LE(ids.size(), static_cast<std::size_t>(threads));
  }
}

TEST_F(Threads, StartNoFurtherOnesFromWithinAJob) {
  std::atomic<int> wrong = 0;
  parallel_for(8, 1, [&](std::int64_t, std::int64_t) {
    const std::thread::id own = std::this_thread::get_id();
    parallel_for(8, 1, [&](std::int64_t, std::int64_t) {
      if (std::this_thread::get_id() != own) ++wrong;
    });
  });
  EXPECT_EQ(wrong, 0);
}

// If a thread stalls, the other threads take over its share.
TEST_F(Threads, HelpOneAnother) {
  ASSERT_TRUE(set_thread_count(2).ok());
  std::atomic<int> done = 0;
  parallel_for(100, 1, [&](std::int64_t begin, std::int64_t) {
    if (begin == 0) {
      while (done < 99) std::this_thread::yield();
    }
    ++done;
  });
  EXPECT_EQ(done, 100);
}

TEST_F(Threads, TakeNoSignals) {
  std::atomic<int> open = 0;
  const std::thread::id caller = std::this_thread::get_id();
  parallel_for(4, 1, [&](std::int64_t, std::int64_t) {
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    const bool masked = sigismember(&mask, SIGTERM) == 1;
    if (!masked && std::this_thread::get_id() != caller) ++open;
  });
  EXPECT_EQ(open, 0);
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  EXPECT_EQ(sigismember(&mask, SIGTERM), 0);
}

using ThreadsDeathTest = Threads;

// In a child that cannot map memory for the stack of a thread, the caller does all the work.
int loop_without_threads() {
  const rlimit none{1, 1};
  if (setrlimit(RLIMIT_AS, &none) != 0) return 2;
  std::atomic<std::int64_t> sum = 0;
  std::atomic<int> elsewhere = 0;
  const pthread_t caller = pthread_self();
  parallel_for(100, 1, [&](std::int64_t begin, std::int64_t) {
    sum += begin;
    if (pthread_equal(pthread_self(), caller) == 0) ++elsewhere;
  });
  if (elsewhere != 0) return 3;
  return sum == 4950 ? 0 : 4;
}

TEST_F(ThreadsDeathTest, AreNotNeededWhereTheSystemGivesNone) {
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  GTEST_SKIP() << "a sanitizer maps memory for itself, and ends without";
#endif
  if (std::getenv("GRIDBUF_EMULATED") != nullptr) {
    GTEST_SKIP() << "the emulator does not limit the memory of its program";
  }
  // In a separate process, because the C library keeps stacks of ended threads.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(std::_Exit(loop_without_threads()), ::testing::ExitedWithCode(0), "");
}

TEST_F(Threads, WorkInAChildWhileTheParentIsInAJob) {
#if __has_feature(thread_sanitizer)
  GTEST_SKIP() << "ThreadSanitizer allows no new threads in a child of a process with threads";
#endif
  std::atomic<int> failures = 0;
  parallel_for(4, 1, [&](std::int64_t begin, std::int64_t) {
    if (begin != 0) return;
    const pid_t child = fork();
    if (child == 0) {
      std::atomic<int> visits = 0;
      // The forking thread is inside a job, and so is its copy. A new thread is not.
      std::thread([&] {
        parallel_for(10, 1, [&](std::int64_t, std::int64_t) { ++visits; });
      }).join();
      std::_Exit(visits == 10 ? 0 : 1);
    }
    int status = -1;
    if (waitpid(child, &status, 0) != child || status != 0) ++failures;
  });
  EXPECT_EQ(failures, 0);
}

// The number of threads of this process.
std::int64_t threads_alive() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return std::distance(begin(tasks), end(tasks));
}

// Python warns of other threads at a fork.
TEST_F(Threads, EndBeforeAFork) {
  const auto all_at_once = [] {
    std::atomic<int> arrived = 0;
    parallel_for(4, 1, [&](std::int64_t, std::int64_t) {
      ++arrived;
      while (arrived < 4) std::this_thread::yield();
    });
  };
  all_at_once();
  const std::int64_t kept = threads_alive();
  EXPECT_GE(kept, 4);
  const pid_t child = fork();
  if (child == 0) {
#if !__has_feature(thread_sanitizer)  // allows no new threads there
    all_at_once();
#endif
    std::_Exit(0);
  }
  EXPECT_LE(threads_alive(), kept - 3);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  all_at_once();
}

// Each caller gets its helpers, and a helper of one job can go on with another.
TEST_F(Threads, HelpSeveralCallers) {
  std::atomic<std::int64_t> sum = 0;
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 3; ++caller) {
    callers.emplace_back([&] {
      for (int job = 0; job < 200; ++job) {
        parallel_for(50, 1, [&](std::int64_t begin, std::int64_t) { sum += begin; });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum, 3 * 200 * 1225);
}

// A child may be forked at any time.
TEST_F(Threads, ForkWhileOthersWork) {
#if __has_feature(thread_sanitizer)
  GTEST_SKIP() << "ThreadSanitizer allows no new threads in a child of a process with threads";
#endif
  std::atomic<bool> stop = false;
  std::thread worker([&] {
    while (!stop) parallel_for(50, 1, [](std::int64_t, std::int64_t) {});
  });
  for (int round = 0; round < 20; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      std::atomic<int> visits = 0;
      parallel_for(10, 1, [&](std::int64_t, std::int64_t) { ++visits; });
      std::_Exit(visits == 10 ? 0 : 1);
    }
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  stop = true;
  worker.join();
}

TEST_F(Threads, AreSetWithinBounds) {
  EXPECT_EQ(thread_count(), 4);
  EXPECT_EQ(thread_count_origin(), "set by the program");
  for (const int count : {0, -1, kMaxThreadCount + 1}) {
    const absl::Status status = set_thread_count(count);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(error_class_of(status), ErrorClass::kValue);
    EXPECT_NE(status.message().find("from 1 to 256"), std::string::npos) << status;
  }
  EXPECT_EQ(thread_count(), 4);
}

// The default is found out at load, so each case has a new process, which inherits the variable.
void expect_in_child(const char* value, const std::string& wanted) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  if (value == nullptr) {
    unsetenv(kThreadCountVariable);
  } else {
    setenv(kThreadCountVariable, value, 1);
  }
  EXPECT_EXIT(
      {
        const std::string found = std::to_string(thread_count()) + " " + thread_count_origin();
        std::fprintf(stderr, "%s", found.c_str());
        std::_Exit(found == wanted ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "")
      << (value == nullptr ? "unset" : value);
}

TEST(ThreadCountDeathTest, IsSetByTheEnvironmentOrTheMachine) {
  const std::string cpus = std::to_string(std::min(system::usable_cpu_count(), kMaxThreadCount));
  expect_in_child(nullptr, cpus + " processors of this process");
  expect_in_child("3", "3 GRIDBUF_NUM_THREADS");
  for (const char* const value : {"0", "-2", "257", "two", "3 ", "", "99999999999"}) {
    expect_in_child(value, cpus + " processors of this process (GRIDBUF_NUM_THREADS is '" +
                               std::string(value) + "', not an integer from 1 to 256)");
  }
}

// [example]
// The sum of 64-bit numbers. Each thread adds its pieces first.
std::int64_t sum_of(const std::vector<std::int64_t>& numbers) {
  std::atomic<std::int64_t> sum = 0;
  parallel_for(std::ssize(numbers), 1 << 20, [&](std::int64_t begin, std::int64_t end) {
    std::int64_t part = 0;
    for (std::int64_t i = begin; i < end; ++i) part += numbers[static_cast<std::size_t>(i)];
    sum += part;
  });
  return sum;
}
// [/example]

TEST(ThreadsExample, OfTheReadme) {
  EXPECT_EQ(sum_of(std::vector<std::int64_t>(3 << 20, 2)), 6 << 20);
}

}  // namespace
}  // namespace gridbuf
