// A word for each thread.
//
// Not a thread_local variable: in a shared library its first use in a thread allocates, and without
// memory the C library ends the process. The first 32 keys of a process need no memory.
#ifndef GRIDBUF_MODULES_BASE_THREAD_WORD_H_
#define GRIDBUF_MODULES_BASE_THREAD_WORD_H_

#include <pthread.h>

#include <cstdint>

namespace gridbuf {

/// 0 in each thread until it is set there. For objects that live as long as the process. Where no
/// key is left, each thread has 0 for good.
class ThreadWord {
 public:
  /// At the end of a thread whose word is not 0, `destroy` gets it.
  explicit ThreadWord(void (*destroy)(void*) = nullptr) noexcept
      : exists_(pthread_key_create(&key_, destroy) == 0) {}
  ThreadWord(const ThreadWord&) = delete;
  ThreadWord& operator=(const ThreadWord&) = delete;

  std::uintptr_t get() const noexcept {
    return exists_ ? reinterpret_cast<std::uintptr_t>(pthread_getspecific(key_)) : 0;
  }
  /// False, without a change, where memory is missing.
  bool set(std::uintptr_t word) const noexcept {
    return exists_ && pthread_setspecific(key_, reinterpret_cast<void*>(word)) == 0;
  }

 private:
  pthread_key_t key_ = 0;
  bool exists_;
};

}  // namespace gridbuf

#endif  // GRIDBUF_MODULES_BASE_THREAD_WORD_H_
