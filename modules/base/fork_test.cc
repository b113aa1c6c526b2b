#include "modules/base/fork.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <shared_mutex>
#include <thread>

namespace gridbuf {
namespace {

// The exit status of a child that runs `work`.
template <class Work>
int status_of_child(const Work& work) {
  const pid_t child = fork();
  if (child == 0) std::_Exit(work());
  int status = -1;
  if (waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

template <class Lock>
void check_forks_while_another_thread_changes_something() {
  Lock lock;
  int first = 0;
  int second = 0;
  std::atomic<bool> stop = false;
  std::thread changes([&] {
    while (!stop) {
      const std::lock_guard held(lock);
      ++first;
      std::this_thread::yield();
      ++second;
    }
  });
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(status_of_child([&] {
                if (!lock.try_lock()) return 1;
                lock.unlock();
                return first == second ? 0 : 2;
              }),
              0);
  }
  stop = true;
  changes.join();
}

TEST(ForkSafe, AChildFindsTheLockFreeAndWhatItGuardsWhole) {
  check_forks_while_another_thread_changes_something<ForkSafe<std::mutex>>();
  check_forks_while_another_thread_changes_something<ForkSafe<std::shared_mutex>>();
}

TEST(ForkSafe, LocksComeAndGo) {
  for (int i = 0; i < 3; ++i) {
    const ForkSafe<std::mutex> first;
    {
      const ForkSafe<std::mutex> second;
    }
    EXPECT_EQ(status_of_child([] { return 0; }), 0);
  }
}

TEST(ForkGeneration, CountsTheForksToThisProcess) {
  const int here = fork_generation();
  EXPECT_EQ(status_of_child([here] {
              if (fork_generation() != here + 1) return 1;
              return status_of_child([here] { return fork_generation() == here + 2 ? 0 : 1; });
            }),
            0);
  EXPECT_EQ(fork_generation(), here);
}

}  // namespace
}  // namespace gridbuf
