module;

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "modules/base/process_wide.h"
#include "modules/base/status_macros.h"
#include "modules/base/thread_word.h"

module gridbuf.device.emulated;

import gridbuf.base;

namespace gridbuf::emulated {

struct Enqueued {
  Work work;  // none: an event is recorded or waited for
  Points after;
};

// The mutex of the LateStreams guards all fields except `abandoned`.
struct Queue {
  bool blocking = true;                 // ordered with the legacy default stream
  std::atomic<bool> abandoned = false;  // its stream was destroyed, or its thread has ended
  bool running = false;                 // a thread is at its front operation
  int queries = 0;                      // consecutive queries whether it is idle
  std::uint64_t enqueued = 0;
  std::uint64_t done = 0;
  std::deque<Enqueued> pending;
};

namespace {

// Handles look like addresses, as in CUDA, and are unique.
constexpr StreamHandle kFirstHandle = 0x5EED0000;
constexpr StreamHandle kHandleStep = 0x100;

std::atomic<std::uint64_t>& last_id = process_wide<std::atomic<std::uint64_t>>("last queues");

// The default streams of one thread, by LateStreams; abandoned when the thread ends.
struct ThreadQueues {
  std::unordered_map<std::uint64_t, std::shared_ptr<Queue>> queues;
  ~ThreadQueues() {
    for (const auto& [id, queue] : queues) queue->abandoned = true;
  }
};
// ThreadQueues*
const ThreadWord& thread_queues = process_wide<ThreadWord>("thread queues", []() -> void* {
  return new ThreadWord([](void* queues) { delete static_cast<ThreadQueues*>(queues); });
});
const ThreadWord& work_depth = process_wide<ThreadWord>("work depth");

// Throws std::bad_alloc.
ThreadQueues& this_threads_queues() {
  auto* queues = reinterpret_cast<ThreadQueues*>(thread_queues.get());
  if (queues != nullptr) return *queues;
  auto made = std::make_unique<ThreadQueues>();
  if (!thread_queues.set(reinterpret_cast<std::uintptr_t>(made.get()))) throw std::bad_alloc();
  return *made.release();
}

Point tail_of(const std::shared_ptr<Queue>& queue) { return {queue, queue->enqueued}; }

bool is_met(const Point& point) { return point.queue->done >= point.position; }

std::string handle_text(StreamHandle stream) { return std::to_string(stream); }

}  // namespace

bool inside_work() noexcept { return work_depth.get() > 0; }

LateStreams::LateStreams()
    : id_(++last_id), next_handle_(kFirstHandle), legacy_(std::make_shared<Queue>()) {
  queues_.push_back(legacy_);
}

// --- Streams and their queues --------------------------------------------------------------------

StreamHandle LateStreams::create(StreamKind kind) {
  const Lock lock(mutex_);
  auto queue = std::make_shared<Queue>();
  queue->blocking = kind == StreamKind::kBlocking;
  next_handle_ += kHandleStep;
  streams_.emplace(next_handle_, queue);
  queues_.push_back(std::move(queue));
  return next_handle_;
}

absl::Status LateStreams::destroy(StreamHandle stream) {
  const Lock lock(mutex_);
  const auto found = streams_.find(stream);
  if (found == streams_.end()) {
    return make_error(ErrorClass::kValue,
                      {"stream", handle_text(stream), "one that create_stream gave",
                       "destroy each stream once, and no default stream"});
  }
  found->second->abandoned = true;
  streams_.erase(found);
  forget_drained_queues();
  return absl::OkStatus();
}

absl::Status LateStreams::check(StreamHandle stream) {
  const Lock lock(mutex_);
  return find(stream).status();
}

absl::StatusOr<std::shared_ptr<Queue>> LateStreams::find(StreamHandle stream) {
  GRIDBUF_RETURN_IF_ERROR(check_stream_number(stream));
  if (stream == kLegacyDefaultStream) return legacy_;
  if (stream == kPerThreadDefaultStream) return this_threads_queue();
  const auto found = streams_.find(stream);
  if (found != streams_.end()) return found->second;
  return make_error(ErrorClass::kValue,
                    {"stream", handle_text(stream), "a live stream of the emulated device",
                     "pass 1, 2 or a handle that was not destroyed"});
}

std::shared_ptr<Queue> LateStreams::this_threads_queue() {
  std::shared_ptr<Queue>& queue = this_threads_queues().queues[id_];
  if (queue == nullptr) {
    queue = std::make_shared<Queue>();
    queues_.push_back(queue);
  }
  return queue;
}

// Removes queues of destroyed streams without pending work.
void LateStreams::forget_drained_queues() {
  std::erase_if(queues_, [](const std::shared_ptr<Queue>& queue) {
    return queue->abandoned && queue->pending.empty();
  });
}

std::int64_t LateStreams::pending_operations() {
  const Lock lock(mutex_);
  std::int64_t count = 0;
  for (const auto& queue : queues_) count += std::ssize(queue->pending);
  return count;
}

std::int64_t LateStreams::live_streams() {
  const Lock lock(mutex_);
  return std::ssize(streams_);
}

// --- Order ---------------------------------------------------------------------------------------

Points LateStreams::tails_of_blocking_queues() {
  Points points;
  for (const auto& queue : queues_) {
    if (queue->blocking && !queue->pending.empty()) points.push_back(tail_of(queue));
  }
  return points;
}

// The points in other queues that an operation enqueued now waits for.
Points LateStreams::what_it_waits_for(const std::shared_ptr<Queue>& queue) {
  if (queue == legacy_) return tails_of_blocking_queues();
  if (!queue->blocking || legacy_->pending.empty()) return {};
  return {tail_of(legacy_)};
}

void LateStreams::add(const std::shared_ptr<Queue>& queue, Work work, Points points) {
  for (Point& point : what_it_waits_for(queue)) points.push_back(std::move(point));
  std::erase_if(points,
                [&queue](const Point& point) { return point.queue == queue || is_met(point); });
  queue->pending.push_back({std::move(work), std::move(points)});
  ++queue->enqueued;
  queue->queries = 0;
}

absl::Status LateStreams::enqueue(StreamHandle stream, Work work, Points points) {
  Lock lock(mutex_);
  GRIDBUF_ASSIGN_OR_RETURN(const auto& queue, find(stream));
  add(queue, std::move(work), std::move(points));
  bound_lateness(lock, queue);
  return absl::OkStatus();
}

void LateStreams::enqueue_last(const Point& point, Work work, Points points) {
  Lock lock(mutex_);
  // A queue without a stream may have been removed from the list. Adds it again, so that its work
  // runs.
  if (std::find(queues_.begin(), queues_.end(), point.queue) == queues_.end()) {
    queues_.push_back(point.queue);
  }
  const bool was_empty = point.queue->pending.empty();
  add(point.queue, std::move(work), std::move(points));
  if (was_empty && point.queue->pending.front().after.empty()) {
    run_front(lock, *point.queue);
  } else {
    bound_lateness(lock, point.queue);
  }
}

void LateStreams::run_without_waiting(const Point& point) {
  if (inside_work()) return;
  Lock lock(mutex_);
  run(lock, {tail_of(point.queue)}, /*may_wait=*/false);
}

Points LateStreams::refreshed(const Points& points) {
  const Lock lock(mutex_);
  Points now;
  for (const Point& point : points) {
    now.push_back(tail_of(point.queue));
    if (point.queue != legacy_) continue;
    for (Point& tail : tails_of_blocking_queues()) now.push_back(std::move(tail));
  }
  return now;
}

absl::StatusOr<Points> LateStreams::pending_now(StreamHandle stream) {
  const Lock lock(mutex_);
  GRIDBUF_ASSIGN_OR_RETURN(const auto& queue, find(stream));
  if (queue == legacy_) {
    Points points = tails_of_blocking_queues();
    points.push_back(tail_of(legacy_));
    return points;
  }
  return Points{tail_of(queue)};
}

absl::Status LateStreams::order_after(StreamHandle producer, StreamHandle consumer) {
  Lock lock(mutex_);
  GRIDBUF_ASSIGN_OR_RETURN(const auto& from, find(producer));
  GRIDBUF_ASSIGN_OR_RETURN(const auto& to, find(consumer));
  // The record is an operation of the producer. On the legacy stream it waits for all blocking
  // streams.
  add(from, nullptr, {});
  add(to, nullptr, {tail_of(from)});
  bound_lateness(lock, to);
  return absl::OkStatus();
}

// --- Running -------------------------------------------------------------------------------------

// Runs the operation at the front, without the lock. Requires that it may run.
void LateStreams::run_front(Lock& lock, Queue& queue) {
  queue.running = true;
  Work work = std::move(queue.pending.front().work);
  absl::Status status;
  if (work != nullptr) {
    lock.unlock();
    const std::uintptr_t depth = work_depth.get();
    try {
      if (!work_depth.set(depth + 1)) throw std::bad_alloc();
      status = work();
    } catch (const std::bad_alloc&) {
      status = absl::Status(absl::StatusCode::kResourceExhausted, "");
    }
    work = nullptr;  // destroys its captures without the lock
    work_depth.set(depth);
    lock.lock();
  }
  if (!status.ok() && first_error_.ok()) first_error_ = status;
  queue.pending.pop_front();
  ++queue.done;
  queue.queries = 0;
  queue.running = false;
  progress_.notify_all();
}

// Runs all work that the wanted points need. If a point needs other points first, they go on top of
// the stack. If another thread runs one of them, waits for it, or gives up if it may not wait.
void LateStreams::run(Lock& lock, Points wanted, bool may_wait) {
  while (!wanted.empty()) {
    const Point point = wanted.back();
    if (is_met(point)) {
      wanted.pop_back();
      continue;
    }
    if (point.queue->running) {
      if (!may_wait) return;
      progress_.wait(lock);
      continue;
    }
    const Points& after = point.queue->pending.front().after;
    const auto unmet = std::find_if_not(after.begin(), after.end(), &is_met);
    if (unmet != after.end()) {
      wanted.push_back(*unmet);
    } else {
      run_front(lock, *point.queue);
    }
  }
}

// Runs half of a long queue. The calling thread only enqueues, so this never waits.
void LateStreams::bound_lateness(Lock& lock, const std::shared_ptr<Queue>& queue) {
  if (queue->pending.size() <= kMostPending || inside_work()) return;
  run(lock, {{queue, queue->done + kMostPending / 2}}, /*may_wait=*/false);
}

absl::Status LateStreams::take_error() { return std::exchange(first_error_, absl::OkStatus()); }

absl::Status LateStreams::synchronize(StreamHandle stream) {
  GRIDBUF_ASSIGN_OR_RETURN(auto& points, pending_now(stream));
  Lock lock(mutex_);
  run(lock, std::move(points), /*may_wait=*/true);
  forget_drained_queues();
  return take_error();
}

absl::Status LateStreams::synchronize_device() {
  run_device(/*may_wait=*/true);
  const Lock lock(mutex_);
  return take_error();
}

void LateStreams::run_device(bool may_wait) {
  Lock lock(mutex_);
  Points points;
  for (const auto& queue : queues_) points.push_back(tail_of(queue));
  run(lock, std::move(points), may_wait);
  forget_drained_queues();
}

absl::StatusOr<bool> LateStreams::is_idle(StreamHandle stream) {
  GRIDBUF_ASSIGN_OR_RETURN(auto& points, pending_now(stream));
  Lock lock(mutex_);
  if (std::all_of(points.begin(), points.end(), &is_met)) return true;
  Queue& queue = **find(stream);
  if (++queue.queries >= kPatience) run(lock, std::move(points), /*may_wait=*/false);
  return false;
}

}  // namespace gridbuf::emulated
