// gridbuf.alloc.testing.contract: what every source of memory must do, written once.
//
// A MemoryResource promises a handful of things (gridbuf.alloc says which). Each promise is one
// check here, and every resource and adaptor is put through all of them, so that a new one (a pool,
// pinned memory, a device) has its tests before it has its code.
//
// A check is a plain function that returns what it found wrong, and not a GoogleTest body: the same
// checks then serve any test framework, and they can be tested themselves. Broken resources are put
// through them, and each must be caught by the check that names its fault; a check that cannot fail
// would be found there.
//
// The checks write to blocks and read them by way of a `ByteAccess`, so that memory which the host
// cannot touch keeps the same contract, and not a shorter one.
module;

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

export module gridbuf.alloc.testing.contract;

import gridbuf.alloc;

export namespace gridbuf::testing {

/// How the checks reach the bytes of a block. Memory that the host cannot touch brings its own.
class ByteAccess {
 public:
  virtual ~ByteAccess() = default;
  /// Writes `value` to every byte; done at return.
  virtual void fill(std::byte* begin, std::int64_t length_bytes, std::byte value) = 0;
  /// Whether every byte is `value`, after all that was enqueued before.
  virtual bool holds(const std::byte* begin, std::int64_t length_bytes, std::byte value) = 0;
};

/// Plain loads and stores.
ByteAccess& host_access();

struct ContractCheck {
  std::string_view name;     // an identifier, to name a test after
  std::string_view promise;  // the sentence that is checked
  std::vector<std::string> (*check)(MemoryResource& resource, ByteAccess& bytes);

  /// Runs the check; each string is a violation, with the request and the value found. Empty: the
  /// promise holds. `bytes` is used from several threads at once.
  std::vector<std::string> run(MemoryResource& resource, ByteAccess& bytes = host_access()) const {
    return check(resource, bytes);
  }
};

/// All checks. Together they take some tens of milliseconds and at most about 100 MiB. They need a
/// resource that does not fail by itself, and, under AddressSanitizer, allocator_may_return_null=1.
std::span<const ContractCheck> resource_contract();

}  // namespace gridbuf::testing
