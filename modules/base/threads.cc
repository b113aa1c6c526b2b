module;

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <system_error>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

module gridbuf.base;

namespace gridbuf {
namespace {

// ---- The setting. ----

std::atomic<int> chosen_count = 0;  // 0: not set

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

// ---- The loop. ----

thread_local bool inside_a_job = false;

// A thread's part of the range: its end, and the next chunk, which its thread or other threads
// take. Each share has a separate cache line, because threads that share a line slow each other.
struct alignas(64) Share {
  std::atomic<std::int64_t> next = 0;
  std::int64_t end = 0;
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
  // Works through this thread's share, then through the rest of the other shares.
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

  // Starts as many threads as the system allows; they also do the shares of threads that did not
  // start. The program's threads handle signals, so helpers start with all signals blocked.
  // (pthread_create, because std::thread allocates and throws.)
  void start_helpers() {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (helpers_ < thread_count_ - 1) {
      pthread_t& thread = threads_[static_cast<std::size_t>(helpers_)];
      if (pthread_create(&thread, nullptr, &run_helper, this) != 0) break;
      ++helpers_;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
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
  return absl::StrCat("processors of this process (", kThreadCountVariable, " is '", text,
                      "', not an integer from 1 to ", kMaxThreadCount, ")");
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

}  // namespace gridbuf
