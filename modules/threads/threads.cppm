// gridbuf.threads: one number of threads, and two loops that use them.
//
// Touching the pages of a large block and filling it are the only work of this project that is
// worth more than one thread. Both are the same loop: a range of bytes, cut into chunks, in any
// order. `parallel_for` is that loop, `BackgroundLoop` the same for work that nobody has to wait
// for, and `thread_count` the one setting that all of their users share.
//
// The key choice: threads are started for each job and joined at its end; there is no pool. A start
// costs some 20 µs, and no job is worth splitting that is not a hundred times longer. In return
// there is nothing that a fork could break (a child has no threads but its own, and no lock that
// another thread held), nothing that must be shut down at the exit, and no thread that an
// unsuspecting program finds in itself while it does nothing with gridbuf. (A background loop's
// threads are there for the milliseconds that it lasts; a child after fork has a loop without
// threads, which knows that and waits for none.)
//
// Each thread of `parallel_for` owns one contiguous share of the range and works through it from
// its begin; who is done helps the others. On a quiet machine the shares stay whole, and memory
// that is touched for the first time lies in large pieces near the processors that touched it
// (first touch decides the NUMA node); on a busy one nobody waits for a thread that lost its
// processor.
module;

#include <pthread.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

export module gridbuf.threads;

export namespace gridbuf {

/// The most threads that a setting may ask for. More do not make memory faster.
inline constexpr int kMaxThreadCount = 256;

/// The variable that sets the number of threads at the start of the process.
inline constexpr const char* kThreadCountVariable = "GRIDBUF_NUM_THREADS";

/// How many threads a large job may use, the caller's included; at least 1. What was set last; else
/// GRIDBUF_NUM_THREADS if it is an integer from 1 to kMaxThreadCount; else the processors that this
/// process may use (its affinity and the quotas of its cgroups), read at the first call.
int thread_count();

/// Sets it for the whole process, from the next job on. Error: kValue unless 1 to kMaxThreadCount.
absl::Status set_thread_count(int count);

/// Where the number comes from, for people: "set by the program",
/// "GRIDBUF_NUM_THREADS", "processors of this process"; says so if the variable was no such number.
std::string thread_count_origin();

/// Work on the bytes [begin, end) of a job. Must not throw. Called from several threads at once.
using ChunkFunction = absl::FunctionRef<void(std::int64_t begin, std::int64_t end)>;

/// Calls `work` for consecutive chunks that together are [0, total), each once: `chunk` long but
/// for the last. Uses the caller's thread and at most thread_count() - 1 others, fewer if the
/// system gives none; in a call from within `work`, none. Returns when all is done; what `work`
/// wrote is then visible to the caller. Nothing happens for total ≤ 0. Requires chunk ≥ 1.
void parallel_for(std::int64_t total, std::int64_t chunk, ChunkFunction work);

/// Work that goes on while the caller does something else: chunks as above, in order from 0. Only
/// for work that may as well be left undone.
class BackgroundLoop {
 public:
  using Work = std::function<void(std::int64_t begin, std::int64_t end)>;

  /// Starts at most thread_count() - 1 threads. Null if none can be started, or if there is no
  /// memory: then `work`, a copyable function like Work, is never called. `work` must not throw.
  /// Requires total ≥ 1, chunk ≥ 1.
  template <class Function>
  static std::unique_ptr<BackgroundLoop> start(std::int64_t total, std::int64_t chunk,
                                               const Function& work) noexcept {
    try {
      return start_threads(total, chunk, Work(work));
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  }

  /// Begins no further chunk, and waits for those that are being worked on.
  ~BackgroundLoop();
  BackgroundLoop(const BackgroundLoop&) = delete;
  BackgroundLoop& operator=(const BackgroundLoop&) = delete;

  /// Waits until all is done. What `work` wrote is then visible to the caller.
  void wait();

 private:
  BackgroundLoop(std::int64_t total, std::int64_t chunk, Work work, int most_threads);
  static std::unique_ptr<BackgroundLoop> start_threads(std::int64_t total, std::int64_t chunk,
                                                       Work work);
  static void* run(void* self);

  const std::int64_t total_;
  const std::int64_t chunk_;
  const Work work_;
  std::atomic<std::int64_t> next_ = 0;
  pid_t process_;  // whose threads they are
  std::vector<pthread_t> threads_;
};

}  // namespace gridbuf
