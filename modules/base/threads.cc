module;

#include <pthread.h>
#include <signal.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

module gridbuf.base;

namespace gridbuf {
namespace {

// ---- The setting. ----

std::atomic<int> chosen_count = 0;  // 0: nobody has chosen

// The number in the environment; 0 if there is none, or no sound one.
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

// ---- The loop. ----

thread_local bool inside_a_job = false;

// A thread's share of the range: the next chunk to take, and where the share ends. Chunks of a
// share are taken by its owner and by helpers alike. Apart by cache lines, so that takers do not
// disturb one another.
struct alignas(64) Share {
  std::atomic<std::int64_t> next = 0;
  std::int64_t end = 0;
};

// Signals are for the program's own threads: those that start while this lives have none.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

class Job {
 public:
  Job(std::int64_t total, std::int64_t chunk, int thread_count, ChunkFunction work)
      : total_(total), chunk_(chunk), thread_count_(thread_count), work_(work) {
    const std::int64_t chunks = (total - 1) / chunk + 1;
    std::int64_t first = 0;
    for (int i = 0; i < thread_count; ++i) {
      shares_[static_cast<std::size_t>(i)].next.store(first, std::memory_order_relaxed);
      first += chunks / thread_count + (i < chunks % thread_count ? 1 : 0);
      shares_[static_cast<std::size_t>(i)].end = first;
    }
  }

  void run() {
    start_helpers();
    work_from(0);
    for (int i = 0; i < helpers_; ++i) pthread_join(threads_[static_cast<std::size_t>(i)], nullptr);
  }

 private:
  // Works through the own share, then through what is left of the others'.
  void work_from(int own) {
    inside_a_job = true;
    for (int i = 0; i < thread_count_; ++i) {
      Share& share = shares_[static_cast<std::size_t>((own + i) % thread_count_)];
      while (true) {
        const std::int64_t taken = share.next.fetch_add(1, std::memory_order_relaxed);
        if (taken >= share.end) break;
        const std::int64_t begin = taken * chunk_;
        work_(begin, begin + std::min(chunk_, total_ - begin));
      }
    }
    inside_a_job = false;
  }

  static void* run_helper(void* argument) {
    Job& job = *static_cast<Job*>(argument);
    job.work_from(1 + job.started_.fetch_add(1, std::memory_order_relaxed));
    return nullptr;
  }

  // Starts what the system allows; the rest of the shares is worked through by those there are.
  // (pthread_create and not std::thread: it allocates nothing of ours and cannot throw.)
  void start_helpers() {
    const SignalsBlocked blocked;
    while (helpers_ < thread_count_ - 1) {
      pthread_t& thread = threads_[static_cast<std::size_t>(helpers_)];
      if (pthread_create(&thread, nullptr, &run_helper, this) != 0) break;
      ++helpers_;
    }
  }

  const std::int64_t total_;
  const std::int64_t chunk_;
  const int thread_count_;
  const ChunkFunction work_;
  int helpers_ = 0;
  std::atomic<int> started_ = 0;
  std::array<Share, kMaxThreadCount> shares_;
  std::array<pthread_t, kMaxThreadCount> threads_;
};

}  // namespace

int thread_count() {
  const int chosen = chosen_count.load(std::memory_order_relaxed);
  return chosen > 0 ? chosen : default_count();
}

absl::Status set_thread_count(int count) {
  if (count < 1 || count > kMaxThreadCount) {
    return make_error(ErrorClass::kValue,
                      {"the number of threads", std::to_string(count),
                       "an integer from 1 to " + std::to_string(kMaxThreadCount),
                       "pass 1 to do all work on the calling thread"});
  }
  chosen_count.store(count, std::memory_order_relaxed);
  return absl::OkStatus();
}

std::string thread_count_origin() {
  if (chosen_count.load(std::memory_order_relaxed) > 0) return "set by the program";
  const char* const text = std::getenv(kThreadCountVariable);
  if (text == nullptr) return "processors of this process";
  if (count_of_environment() > 0) return kThreadCountVariable;
  return "processors of this process (" + std::string(kThreadCountVariable) + " is '" + text +
         "', no integer from 1 to " + std::to_string(kMaxThreadCount) + ")";
}

void parallel_for(std::int64_t total, std::int64_t chunk, ChunkFunction work) {
  if (total <= 0) return;
  const std::int64_t chunks = (total - 1) / chunk + 1;
  const int most = inside_a_job ? 1 : thread_count();
  const int count = static_cast<int>(std::min<std::int64_t>(most, chunks));
  if (count > 1) return Job(total, chunk, count, work).run();
  for (std::int64_t begin = 0; begin < total;) {
    const std::int64_t end = begin + std::min(chunk, total - begin);
    work(begin, end);
    begin = end;
  }
}

// ---- The loop in the background. ----

BackgroundLoop::BackgroundLoop(std::int64_t total, std::int64_t chunk, Work work, int most_threads)
    : total_(total), chunk_(chunk), work_(std::move(work)), process_(getpid()) {
  threads_.reserve(static_cast<std::size_t>(most_threads));
}

std::unique_ptr<BackgroundLoop> BackgroundLoop::start_threads(std::int64_t total,
                                                              std::int64_t chunk, Work work) {
  const std::int64_t chunks = (total - 1) / chunk + 1;
  const int count = static_cast<int>(std::min<std::int64_t>(thread_count() - 1, chunks));
  if (count < 1) return nullptr;
  std::unique_ptr<BackgroundLoop> loop(new BackgroundLoop(total, chunk, std::move(work), count));
  const SignalsBlocked blocked;
  for (int i = 0; i < count; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, nullptr, &run, loop.get()) != 0) break;
    loop->threads_.push_back(thread);
  }
  return loop->threads_.empty() ? nullptr : std::move(loop);
}

void* BackgroundLoop::run(void* self) {
  BackgroundLoop& loop = *static_cast<BackgroundLoop*>(self);
  inside_a_job = true;
  while (true) {
    const std::int64_t begin = loop.next_.fetch_add(loop.chunk_, std::memory_order_relaxed);
    if (begin >= loop.total_) return nullptr;
    loop.work_(begin, begin + std::min(loop.chunk_, loop.total_ - begin));
  }
}

void BackgroundLoop::wait() {
  // In a child after fork the threads are not there.
  if (getpid() == process_) {
    for (const pthread_t thread : threads_) pthread_join(thread, nullptr);
  }
  threads_.clear();
}

BackgroundLoop::~BackgroundLoop() {
  next_.store(total_, std::memory_order_relaxed);
  wait();
}

}  // namespace gridbuf
