// gridbuf.alloc.emulated.streams: streams whose work runs as late as CUDA's rules allow.
//
// On a GPU work usually runs soon after it was enqueued, so a program that forgets to wait for it
// reads the right bytes nearly always. Here nothing runs until somebody waits: every stream is a
// queue, and the thread that synchronises runs what it waits for, and nothing else. A missing wait
// is then a wrong result every time.
//
// What must have run before what is CUDA's model, as one rule: an operation runs when those before
// it in its own queue have run and those it is *after*. After what it is:
//   * of an event wait: all that the producer had pending at the time of the record;
//   * on the legacy default stream: all that blocking streams (the per-thread default streams too)
//     had pending; and an operation on one of those is after all that the legacy stream had.
// These only point to operations enqueued before, so there are no circles.
//
// The key choice: work runs on the thread that waits and no thread of our own exists. What runs
// when is then decided by the program under test alone, and a run can be repeated. Locks are not
// held while work runs, so work may take a lock (Python's, for NumPy in a kernel) that a thread
// which only enqueues holds.
//
// Lateness is bounded in two places, where CUDA bounds it as well: a queue that has grown to
// kMostPending runs its oldest operations, and polling makes progress.
module;

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

export module gridbuf.alloc.emulated.streams;

import gridbuf.alloc.device;

namespace gridbuf::emulated {
struct Queue;
}

export namespace gridbuf::emulated {

/// A piece of work. A failure is kept and reported by the next synchronisation.
using Work = std::function<absl::Status()>;

/// A position in a queue: everything enqueued there so far.
struct Point {
  std::shared_ptr<Queue> queue;
  std::uint64_t position = 0;
};
using Points = std::vector<Point>;

class LateStreams {
 public:
  /// A queue runs its oldest operations when it holds more than this.
  static constexpr std::size_t kMostPending = 4096;
  /// A stream that is asked this often whether it is idle, with nothing in between, is run.
  static constexpr int kPatience = 16;

  LateStreams();

  StreamHandle create(StreamKind kind);
  /// kValue for what `create` did not give. Pending work stays, and runs when something waits for
  /// it.
  absl::Status destroy(StreamHandle stream);
  /// kValue for 0 and for what is no live stream.
  absl::Status check(StreamHandle stream);

  /// Adds work, after `points` too. Does not wait.
  absl::Status enqueue(StreamHandle stream, Work work, Points points = {});
  absl::Status order_after(StreamHandle producer, StreamHandle consumer);
  /// What the stream has pending now, for enqueue.
  absl::StatusOr<Points> pending_now(StreamHandle stream);
  /// The same queues, with all that they have pending now.
  Points refreshed(const Points& points);
  /// Adds work to a queue that may have lost its stream, for memory outlives streams. Where there
  /// is nothing that it would have to wait for, it runs at once.
  void enqueue_last(const Point& point, Work work, Points points);
  /// Runs what the queue has pending as far as that needs no other thread's work.
  void run_without_waiting(const Point& point);

  /// Runs what is pending and returns the first failure since the last synchronisation.
  absl::Status synchronize(StreamHandle stream);
  absl::Status synchronize_device();
  /// The same without the report: a failure stays for the next synchronisation. If it may not wait,
  /// as far as that needs no other thread's work.
  void run_device(bool may_wait);
  absl::StatusOr<bool> is_idle(StreamHandle stream);

  std::int64_t pending_operations();
  std::int64_t live_streams();

 private:
  using Lock = std::unique_lock<std::mutex>;
  absl::StatusOr<std::shared_ptr<Queue>> find(StreamHandle stream);
  std::shared_ptr<Queue> this_threads_queue();
  Points tails_of_blocking_queues();
  Points what_it_waits_for(const std::shared_ptr<Queue>& queue);
  void add(const std::shared_ptr<Queue>& queue, Work work, Points points);
  void forget_drained_queues();
  void run(Lock& lock, Points wanted, bool may_wait);
  void run_front(Lock& lock, Queue& queue);
  void bound_lateness(Lock& lock, const std::shared_ptr<Queue>& queue);
  absl::Status take_error();

  std::mutex mutex_;
  std::condition_variable progress_;
  std::uint64_t id_;  // of this object, for queues kept by threads
  StreamHandle next_handle_;
  std::shared_ptr<Queue> legacy_;
  std::unordered_map<StreamHandle, std::shared_ptr<Queue>> streams_;
  std::vector<std::shared_ptr<Queue>> queues_;  // all that may have work, legacy_ first
  absl::Status first_error_;
};

/// Whether this thread is running work of a stream just now: it must not wait for streams then.
bool inside_work() noexcept;

}  // namespace gridbuf::emulated
