// gridbuf.threads: one number of threads, and a loop that uses them.
//
// Touching the pages of a large block and filling it are the only work of this project that is
// worth more than one thread. Both are the same loop: a range of bytes, cut into chunks, in any
// order. `parallel_for` is that loop, and `thread_count` the one setting that all of its users
// share.
//
// The key choice: threads are started for each job and joined at its end; there is no pool. A start
// costs some 20 µs, and no job is worth splitting that is not a hundred times longer. In return
// there is nothing that a fork could break (a child has no threads but its own, and no lock that
// another thread held), nothing that must be shut down at the exit, and no thread that an
// unsuspecting program finds in itself while it does nothing with gridbuf.
//
// Each thread owns one contiguous share of the range and works through it from its begin; who is
// done helps the others. On a quiet machine the shares stay whole, and memory that is touched for
// the first time lies in large pieces near the processors that touched it (first touch decides the
// NUMA node); on a busy one nobody waits for a thread that lost its processor.
module;

#include <cstdint>
#include <string>

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

}  // namespace gridbuf
