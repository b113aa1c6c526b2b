// gridbuf.interface.fuzz: descriptors written as text, and what must hold of a view that a reader
// lets pass.
//
// Fuzz targets get bytes. Here bytes are lines of words, such as "shape 3 4" or "data 4096 ro", so
// that the saved inputs of a corpus can be read, written and reviewed, and mutations of a seed stay
// near the interesting borders. Each target turns lines into the fields that its reader takes; what
// no line says is absent.
//
// `check` is the oracle of all of them. It knows nothing of how the readers work: it computes with
// 128-bit integers, in which nothing here can overflow, whether the view stays where it may be, and
// ends the program if not.
module;

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

export module gridbuf.interface.fuzz;

export import gridbuf.interface.numpy;

export namespace gridbuf::fuzz {

/// Lines of words, by their first word.
class Lines {
 public:
  explicit Lines(std::string_view text);

  /// The words after `key` of its first line; nothing if there is none.
  std::optional<std::vector<std::string>> words(std::string_view key) const;

  // A field of that name. "none" gives None, "bad" a wrong kind, a number too large for 64 bits
  // kOutOfRange.
  Found<std::int64_t> number(std::string_view key) const;
  Found<std::string> text(std::string_view key) const;
  Found<RawExtents> extents(std::string_view key) const;
  Found<RawPointer> pointer(std::string_view key) const;  // "data ADDRESS [ro]"
  Found<RawDescr> descr(std::string_view key) const;      // "descr a <f4 ( b <i2*3 )"
  bool has(std::string_view key) const { return words(key).has_value(); }

  /// The numbers of a line, with a default for what is no number; empty without such a line.
  std::vector<std::int64_t> numbers(std::string_view key) const;
  std::int64_t number_or(std::string_view key, std::int64_t fallback) const;

 private:
  std::vector<std::vector<std::string>> lines_;
};

// ---- What several targets read. ----

RawArrayInterface array_fields(const Lines& lines);
RawCudaArrayInterface cuda_fields(const Lines& lines);

/// "info 4096 100": what a driver says of the address; "unreachable": that devices are not there.
std::optional<AddressInfo> address_info(const Lines& lines);

/// The numbers of a line if there are `count` of them, else null: exactly as many entries, so that
/// reading one more is seen.
std::unique_ptr<std::int64_t[]> entries(const Lines& lines, std::string_view key,
                                        std::size_t count);

/// How many dimensions a struct claims that has `count` of them: that, or what no reader may
/// believe.
int claimed_ndim(const Lines& lines, std::size_t count);

// ---- What must hold; the program ends if it does not. ----

void require(bool condition);

/// Every element of `view` lies in the address space (and in `memory` if that is known), its counts
/// agree, and its address is not 0 where there are elements.
void check(const ImportedView& view, const std::optional<KnownMemory>& memory = {});

/// An error's message begins with a rule's id, a colon and a space.
void check(const absl::Status& error);

/// Whichever it is.
void check(const absl::StatusOr<ImportedView>& result,
           const std::optional<KnownMemory>& memory = {});

}  // namespace gridbuf::fuzz
