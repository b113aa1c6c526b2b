module;

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bitset>
#include <charconv>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "modules/base/fork.h"
#include "modules/base/process_wide.h"

module gridbuf.base;

namespace gridbuf {
namespace {

// ---- The setting. ----

// 0: not set. Relaxed: the number is all that is published.
std::atomic<int>& chosen_count() {
  static auto& count = process_wide<std::atomic<int>>("thread count");
  return count;
}
// Before any thread: see fork.h.
[[maybe_unused]] const std::atomic<int>& chosen_at_load = chosen_count();

// The number in the environment; 0 if it is absent or not valid.
int count_of_environment() {
  const char* const text = std::getenv(kThreadCountVariable);
  if (text == nullptr) return 0;
  int count = 0;
  const char* const end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, count);
  const bool sound = error == std::errc() && stop == end && count >= 1 && count <= kMaxThreadCount;
  return sound ? count : 0;
}

int default_count() {
  static const int count = [] {
    const int environment = count_of_environment();
    return environment > 0 ? environment : std::min(system::usable_cpu_count(), kMaxThreadCount);
  }();
  return count;
}
// Before any thread: see fork.h.
[[maybe_unused]] const int count_at_load = default_count();

// ---- The loop. ----

// A thread's part of the range: its end, and the next chunk, which its thread or other threads
// take. Each share has a separate cache line, because threads that share a line slow each other.
struct alignas(64) Share {
  // Relaxed: it hands out numbers. The mutex of `Helpers` publishes the job to its helpers, and
  // their writes to the caller.
  std::atomic<std::int64_t> next = 0;
  std::int64_t end = 0;
};

class Job {
 public:
  // The shares are not in the object, which is on the caller's stack: that may be small.
  Job(std::int64_t total, std::int64_t chunk, std::span<Share> shares, ChunkFunction work)
      : total_(total), chunk_(chunk), shares_(shares), work_(work) {
    const std::int64_t chunks = (total - 1) / chunk + 1;
    const auto count = std::ssize(shares);
    std::int64_t first = 0;
    for (std::ptrdiff_t i = 0; i < count; ++i) {
      Share& share = shares[static_cast<std::size_t>(i)];
      share.next.store(first, std::memory_order_relaxed);
      first += chunks / count + (i < chunks % count ? 1 : 0);
      share.end = first;
    }
  }

  int helper_count() const { return static_cast<int>(shares_.size()) - 1; }

  // Works through the thread's share, then through the rest of the other shares.
  void work_from(std::size_t own) {
    try {
      for (std::size_t i = 0; i < shares_.size(); ++i) {
        work_through(shares_[(own + i) % shares_.size()]);
      }
    } catch (...) {
      if (!failed_.test_and_set()) failure_ = std::current_exception();
    }
  }

  // Throws what a chunk threw, if one did. Requires that no helper is inside.
  void rethrow_failure() const {
    if (failure_) std::rethrow_exception(failure_);
  }

  // Of `Helpers`, which guards them.
  Job* next = nullptr;
  const pthread_t caller = pthread_self();
  std::bitset<kMaxThreadCount> joined;  // helpers that take or took part
  // Relaxed: changed with the mutex held. The caller spins on it, then reads it with the mutex.
  std::atomic<int> helpers_inside = 0;

 private:
  void work_through(Share& share) const {
    while (true) {
      const std::int64_t taken = share.next.fetch_add(1, std::memory_order_relaxed);
      if (taken >= share.end) return;
      const std::int64_t begin = taken * chunk_;
      work_(begin, begin + std::min(chunk_, total_ - begin));
    }
  }

  std::atomic_flag failed_;
  std::exception_ptr failure_;  // the first one; published to the caller by the mutex of `Helpers`
  const std::int64_t total_;
  const std::int64_t chunk_;
  const std::span<Share> shares_;  // one for each thread
  const ChunkFunction work_;
};

// The threads that help callers. They are kept: a start takes some 30 µs and an end 20 µs, and in
// that time one thread copies a mebibyte. Each helper takes the share of its number in every job,
// so that an array which is copied again is in its caches.
//
// Idle helpers end before a fork, because Python warns of other threads at a fork. A child starts
// separate ones.
class Helpers {
 public:
  static Helpers& get() {
    // Not destroyed, because helpers may outlive main(). In a child no helper exists.
    static Helpers& helpers = process_wide<ForkSafe<Helpers>>("helpers");
    return helpers;
  }

  // Runs the job on the caller's thread and on helpers. Does not wait for helpers that have not
  // begun. False, without work, if the caller is inside a job.
  bool run(Job& job) {
    {
      const std::lock_guard lock(mutex_);
      if (is_inside(job.caller)) return false;
      start(job.helper_count());
      job.next = jobs_;
      jobs_ = &job;
    }
    wake_.notify_all();
    job.work_from(0);
    // The last chunks of the helpers take less time than a sleep.
    constexpr int kSpins = 2000;
    for (int i = 0; i < kSpins && job.helpers_inside.load(std::memory_order_relaxed) > 0; ++i) {
      pause();
    }
    std::unique_lock lock(mutex_);
    Job** at = &jobs_;
    while (*at != &job) at = &(*at)->next;
    *at = job.next;
    left_.wait(lock, [&] { return job.helpers_inside.load(std::memory_order_relaxed) == 0; });
    lock.unlock();
    job.rethrow_failure();
    return true;
  }

  // For a fork (fork.h): ends the idle helpers, which need no other lock, and keeps the mutex.
  void lock() {
    std::unique_lock held(mutex_);
    ends_ = true;
    wake_.notify_all();
    left_.wait(held, [&] { return idle_ == 0; });
    for (Helper& helper : helpers_) {
      if (std::exchange(helper.ended, false)) pthread_join(helper.thread, nullptr);
    }
    held.release();
  }
  void unlock() {
    ends_ = false;
    mutex_.unlock();
  }

 private:
  static void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("isb");  // `yield` does nothing on most processors
#endif
  }

  struct Helper {
    Helpers* crew;
    int number;
    pthread_t thread;
    bool runs = false;   // or is about to
    bool ended = false;  // and was not joined
  };

  // Whether the thread works in a job. (A thread-local variable of a loaded library takes memory at
  // its first use in a thread. The C library ends the process if there is none.)
  bool is_inside(pthread_t thread) const {
    for (const Job* job = jobs_; job != nullptr; job = job->next) {
      if (pthread_equal(job->caller, thread) != 0) return true;
    }
    for (const Helper& helper : helpers_) {
      if (helper.crew == nullptr) return false;  // not started yet, nor those after it
      if (helper.runs && pthread_equal(helper.thread, thread) != 0) return true;
    }
    return false;
  }

  // Starts as many as the system allows. The program's threads handle signals, so helpers start
  // with all signals blocked. (pthread_create, because std::thread allocates and throws.)
  void start(int count) {
    for (int i = 0; i < count; ++i) {
      Helper& helper = helpers_[static_cast<std::size_t>(i)];
      if (helper.runs) continue;
      if (std::exchange(helper.ended, false)) pthread_join(helper.thread, nullptr);
      helper = {.crew = this, .number = i, .thread = {}};
      sigset_t all;
      sigset_t before;
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, &before);
      helper.runs = pthread_create(&helper.thread, nullptr, &Helpers::run_helper, &helper) == 0;
      pthread_sigmask(SIG_SETMASK, &before, nullptr);
      if (!helper.runs) return;
      ++idle_;
    }
  }

  // A job that the helper may take part in, once.
  Job* job_for(int number) const {
    Job* job = jobs_;
    while (job != nullptr &&
           (number >= job->helper_count() || job->joined[static_cast<std::size_t>(number)])) {
      job = job->next;
    }
    return job;
  }

  static void* run_helper(void* argument) {
    Helper& helper = *static_cast<Helper*>(argument);
    helper.crew->help(helper);
    return nullptr;
  }

  void help(Helper& helper) {
    std::unique_lock lock(mutex_);
    while (true) {
      Job* job = nullptr;
      wake_.wait(lock, [&] { return ends_ || (job = job_for(helper.number)) != nullptr; });
      --idle_;
      if (job == nullptr) break;
      job->joined.set(static_cast<std::size_t>(helper.number));
      job->helpers_inside.fetch_add(1, std::memory_order_relaxed);
      lock.unlock();
      job->work_from(1 + static_cast<std::size_t>(helper.number));
      lock.lock();
      ++idle_;
      // With the mutex held, so the caller has not yet left.
      if (job->helpers_inside.fetch_sub(1, std::memory_order_relaxed) == 1) left_.notify_all();
    }
    helper.runs = false;
    helper.ended = true;
    left_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable wake_;  // for helpers: a job, or the end
  std::condition_variable left_;  // for callers: a helper has left a job, or has ended
  Job* jobs_ = nullptr;
  int idle_ = 0;
  bool ends_ = false;
  std::array<Helper, kMaxThreadCount> helpers_ = {};
};

[[maybe_unused]] const Helpers& helpers_at_load = Helpers::get();

}  // namespace

int thread_count() {
  const int chosen = chosen_count().load(std::memory_order_relaxed);
  return chosen > 0 ? chosen : default_count();
}

absl::Status set_thread_count(int count) {
  if (count < 1 || count > kMaxThreadCount) {
    return make_error(ErrorClass::kValue,
                      {"the number of threads", std::to_string(count),
                       "an integer from 1 to " + std::to_string(kMaxThreadCount),
                       "pass 1 to do all work on the calling thread"});
  }
  chosen_count().store(count, std::memory_order_relaxed);
  return absl::OkStatus();
}

std::string thread_count_origin() {
  if (chosen_count().load(std::memory_order_relaxed) > 0) return "set by the program";
  const char* const text = std::getenv(kThreadCountVariable);
  if (text == nullptr) return "processors of this process";
  if (count_of_environment() > 0) return kThreadCountVariable;
  return absl::StrCat("processors of this process (", kThreadCountVariable, " is '", text,
                      "', not an integer from 1 to ", kMaxThreadCount, ")");
}

void parallel_for(std::int64_t total, std::int64_t chunk, ChunkFunction work) {
  if (total <= 0) return;
  const std::int64_t chunks = (total - 1) / chunk + 1;
  const auto count = static_cast<std::size_t>(std::min<std::int64_t>(thread_count(), chunks));
  if (count > 1) {
    const std::unique_ptr<Share[]> shares(new (std::nothrow) Share[count]);
    if (shares != nullptr) {
      Job job(total, chunk, {shares.get(), count}, work);
      if (Helpers::get().run(job)) return;
    }
  }
  for (std::int64_t begin = 0; begin < total;) {
    const std::int64_t end = begin + std::min(chunk, total - begin);
    work(begin, end);
    begin = end;
  }
}

}  // namespace gridbuf
