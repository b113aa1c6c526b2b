#include "modules/base/fork.h"

#include <pthread.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "modules/base/process_wide.h"

namespace gridbuf {
namespace {

class ForkLocks {
 public:
  // Not destroyed, because locks may outlive main(). Made when gridbuf is loaded, so a fork cannot
  // find it half made.
  static ForkLocks& get() {
    static ForkLocks& locks = process_wide<ForkLocks>("fork", &make);
    return locks;
  }

  void add(ForkLock* lock) {
    const std::lock_guard guard(mutex_);
    locks_.push_back(lock);
  }

  void remove(ForkLock* lock) {
    const std::lock_guard guard(mutex_);
    std::erase(locks_, lock);
  }

  int generation() const { return generation_.load(std::memory_order_relaxed); }

 private:
  static void* make() {
    pthread_atfork([] { get().before_fork(); }, [] { get().in_parent(); },
                   [] { get().in_child(); });
    return new ForkLocks;
  }

  void before_fork() {
    mutex_.lock();
    for (ForkLock* lock : locks_) lock->hold();
  }
  void in_parent() {
    for (ForkLock* lock : locks_) lock->let_go();
    mutex_.unlock();
  }
  void in_child() {
    for (ForkLock* lock : locks_) lock->renew();
    std::construct_at(&mutex_);
    // Relaxed: the child has one thread, and the start of another one orders it.
    generation_.fetch_add(1, std::memory_order_relaxed);
  }

  std::mutex mutex_;
  std::vector<ForkLock*> locks_;
  std::atomic<int> generation_ = 0;
};

[[maybe_unused]] const ForkLocks& made_at_load = ForkLocks::get();

}  // namespace

ForkLock::ForkLock() { ForkLocks::get().add(this); }
ForkLock::~ForkLock() { ForkLocks::get().remove(this); }

int fork_generation() noexcept { return ForkLocks::get().generation(); }

}  // namespace gridbuf
