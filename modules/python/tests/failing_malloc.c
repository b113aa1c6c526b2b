/* A malloc whose calls from one library fail on demand, that knows which of its blocks live, and that sees the functions that write to one
   that does not: freed blocks are filled and kept for a while.

   Preloaded (LD_PRELOAD) into a process whose extension is to be tested without memory. Calls from everywhere else,
   Python's own allocator included, pass untouched. Only the calling address counts: the extension's C++ runtime is linked
   into it, so `new` calls malloc from there. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

extern void* __libc_malloc(size_t);
extern void* __libc_calloc(size_t, size_t);
extern void __libc_free(void*);

enum { kSlots = 1 << 16 };
static void* live[kSlots]; /* Open addressing; a freed slot holds `gone`. */
static char gone_mark;
#define GONE ((void*)&gone_mark)
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
  uintptr_t first, last;
} watched[2]; /* Libraries; 0: none. */
static int64_t live_count, calls, failing_call, failures, written;

enum { kKept = 1 << 12, kFilling = 0xDD };
static struct {
  unsigned char* bytes;
  size_t length;
} kept[kKept]; /* A ring of freed blocks. */
static size_t next_kept;

static size_t slot_of(void* block) { return ((uintptr_t)block >> 4) * 0x9E3779B97F4A7C15u >> 48; }

static void remember(void* block) {
  pthread_mutex_lock(&lock);
  size_t slot = slot_of(block);
  while (live[slot] != NULL && live[slot] != GONE) slot = (slot + 1) % kSlots;
  live[slot] = block;
  ++live_count;
  pthread_mutex_unlock(&lock);
}

/* Whether the block was one of the library's. */
static int forget(void* block) {
  int found = 0;
  pthread_mutex_lock(&lock);
  for (size_t slot = slot_of(block); live[slot] != NULL; slot = (slot + 1) % kSlots) {
    if (live[slot] != block) continue;
    live[slot] = GONE;
    --live_count;
    found = 1;
    break;
  }
  pthread_mutex_unlock(&lock);
  return found;
}

static int is_written(size_t at) {
  for (size_t i = 0; i < kept[at].length; ++i) {
    if (kept[at].bytes[i] != kFilling) return 1;
  }
  return 0;
}

/* In place of freeing it. */
static void keep(void* block) {
  size_t length = malloc_usable_size(block);
  memset(block, kFilling, length);
  pthread_mutex_lock(&lock);
  written += is_written(next_kept);
  void* oldest = kept[next_kept].bytes;
  kept[next_kept].bytes = block;
  kept[next_kept].length = length;
  next_kept = (next_kept + 1) % kKept;
  pthread_mutex_unlock(&lock);
  __libc_free(oldest);
}

static int is_watched(void* caller) {
  for (int i = 0; i < 2; ++i) {
    if ((uintptr_t)caller >= watched[i].first && (uintptr_t)caller < watched[i].last) return 1;
  }
  return 0;
}

static int must_fail(void) {
  int64_t call = __atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST);
  if (call != failing_call) return 0;
  ++failures;
  errno = ENOMEM;
  return 1;
}

void* malloc(size_t length) {
  if (!is_watched(__builtin_return_address(0))) return __libc_malloc(length);
  if (must_fail()) return NULL;
  void* block = __libc_malloc(length);
  if (block != NULL) remember(block);
  return block;
}

void* calloc(size_t count, size_t length) {
  if (!is_watched(__builtin_return_address(0))) return __libc_calloc(count, length);
  if (must_fail()) return NULL;
  void* block = __libc_calloc(count, length);
  if (block != NULL) remember(block);
  return block;
}

void free(void* block) {
  if (block != NULL && watched[0].first != 0 && forget(block)) return keep(block);
  __libc_free(block);
}

/* Watches the library at [first, last) as number 0 or 1. */
void failing_malloc_watch(int number, uintptr_t first, uintptr_t last) {
  watched[number].first = first;
  watched[number].last = last;
}

/* Call number `call` from now on fails; 0: none. */
void failing_malloc_arm(int64_t call) {
  calls = 0;
  failures = 0;
  failing_call = call;
}

int64_t failing_malloc_failures(void) { return failures; }

/* Freed blocks that were written to. */
int64_t failing_malloc_written(void) {
  pthread_mutex_lock(&lock);
  int64_t found = written;
  for (size_t at = 0; at < kKept; ++at) found += is_written(at);
  pthread_mutex_unlock(&lock);
  return found;
}
int64_t failing_malloc_live(void) { return live_count; }
