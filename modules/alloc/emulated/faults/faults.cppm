// gridbuf.alloc.emulated.faults: failures and delays on demand.
//
// What a program does when the device fails is seldom tried, because devices seldom fail. Here any
// operation can: "the third copy from now fails". A loop over n = 1, 2, … that ends with the first
// run without a failure visits every place where the operation is used, and shows that each leaves
// nothing behind.
//
// A failure is either *at the call*, as when a stream is invalid, or *when run*: the call succeeds
// and the next synchronisation reports it, as CUDA reports the failures of kernels. A delay makes
// the work of an operation take that long when it runs.
module;

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

export module gridbuf.alloc.emulated.faults;

export namespace gridbuf::emulated {

/// The operations that can be made to fail, as tests name them.
enum class Operation : std::uint8_t {
  kAllocate,
  kCopy,
  kFill,
  kLaunch,
  kSynchronize,
  kOrder,
  kStream,  // create, destroy and query a stream
  kPointerInfo,
};
inline constexpr std::array<std::string_view, 8> kOperationNames{
    "allocate", "copy", "fill", "launch", "synchronize", "order", "stream", "pointer_info"};

/// The operation of that name. Error: kValue, listing the names.
absl::StatusOr<Operation> operation(std::string_view name);

struct Fault {
  std::optional<Operation> operation = {};  // none: any
  std::int64_t first_call = 1;              // counted from the injection
  std::int64_t call_count = 1;
  absl::Status error = {};  // what the call, or the work, answers; OK: it only dawdles
  bool when_run = false;    // for copy, fill and launch: the work fails, not the call
  std::int64_t delay_milliseconds = 0;
};

/// What an operation has to do besides: nothing in ordinary life.
struct Verdict {
  absl::Status at_call = {};
  absl::Status when_run = {};
  std::int64_t delay_milliseconds = 0;  // after the call, at least, before the work runs
};

class Faults {
 public:
  /// Returns a number for `remove`.
  std::int64_t inject(const Fault& fault);
  void remove(std::int64_t number);
  void clear();

  /// Counts the call and says what is to happen. Of several failures the first one injected counts,
  /// of several delays their sum.
  Verdict judge(Operation operation);
  /// How often an operation (none: any) was called.
  std::int64_t calls(std::optional<Operation> operation);

 private:
  struct Armed {
    std::int64_t number;
    Fault fault;
    std::int64_t seen = 0;
  };
  std::mutex mutex_;
  std::int64_t last_number_ = 0;
  std::vector<Armed> armed_;
  std::array<std::int64_t, kOperationNames.size()> calls_{};
};

}  // namespace gridbuf::emulated
