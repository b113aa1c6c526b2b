// Locks that a child after fork finds free, with what they guard whole.
//
// The handlers of fork (fork.cc) take every ForkSafe lock before a fork. So the thread that forks
// waits until no other thread is in the middle of a change. They free the locks in the parent, and
// make them again in the child. A thread that holds such a lock must not wait for anything: not for
// another lock, Python's lock, or work. So the order in which the handlers take them is free. A
// lock that is held for longer compares `fork_generation` instead, as gridbuf.storage.sync does.
//
// The guard of a local static variable is such a lock, too, and no handler can take it: a child
// that was forked while another thread initialised the variable never ends. So a value that is
// found out once is found out when gridbuf is loaded, by a variable `at_load` next to it.
#ifndef GRIDBUF_MODULES_BASE_FORK_H_
#define GRIDBUF_MODULES_BASE_FORK_H_

#include <memory>

#if __has_feature(thread_sanitizer)
#include <sanitizer/tsan_interface.h>
#endif

namespace gridbuf {

/// The number of forks between this process and the one that loaded gridbuf. If two numbers differ,
/// the threads and locks of the earlier one do not exist.
int fork_generation() noexcept;

/// A lock in the list of the handlers.
class ForkLock {
 public:
  ForkLock(const ForkLock&) = delete;
  ForkLock& operator=(const ForkLock&) = delete;
  virtual void hold() = 0;
  virtual void let_go() = 0;
  virtual void renew() = 0;

 protected:
  ForkLock();
  ~ForkLock();
};

/// A std::mutex or std::shared_mutex, or an object that begins with one, for objects that live
/// long: it costs an entry in the list.
template <class Mutex>
class ForkSafe final : public Mutex, private ForkLock {
  void hold() override { this->lock(); }
  void let_go() override { this->unlock(); }
  // Without unlock: a lock may know its owner by the thread's number, which a fork changes.
  void renew() override {
#if __has_feature(thread_sanitizer)
    // It would take the lock, which is at the beginning of the object, for one that is still held.
    __tsan_mutex_pre_unlock(static_cast<Mutex*>(this), 0);
    __tsan_mutex_post_unlock(static_cast<Mutex*>(this), 0);
#endif
    std::construct_at(static_cast<Mutex*>(this));
  }
};

}  // namespace gridbuf

#endif  // GRIDBUF_MODULES_BASE_FORK_H_
