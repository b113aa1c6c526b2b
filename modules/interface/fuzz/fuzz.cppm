// gridbuf.interface.fuzz: descriptors written as text, and the invariants of imported views.
//
// The bytes of a fuzz input are lines of words, such as "shape 3 4" or "data 4096 ro". So a person
// can read, write and review the inputs of a corpus, and mutations of a seed stay near the
// interesting borders. Each target turns lines into the fields that its reader takes. A field
// without a line is absent.
//
// `check` is the oracle of all targets. It does not share code with the readers. It computes with
// 128-bit integers, which cannot overflow here, whether the view stays inside its memory. If not,
// it ends the program.
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

  /// The words after `key` in its first line; nothing without such a line.
  std::optional<std::vector<std::string>> words(std::string_view key) const;

  // A field of that name. "none" gives None, "bad" kWrongKind, a number beyond 64 bits kOutOfRange.
  Found<std::int64_t> number(std::string_view key) const;
  Found<std::string> text(std::string_view key) const;
  Found<RawExtents> extents(std::string_view key) const;
  Found<RawPointer> pointer(std::string_view key) const;  // "data ADDRESS [ro]"
  Found<RawDescr> descr(std::string_view key) const;      // "descr a <f4 ( b <i2*3 )"
  bool has(std::string_view key) const { return words(key).has_value(); }

  /// The numbers of a line, with a default for other words; empty without such a line.
  std::vector<std::int64_t> numbers(std::string_view key) const;
  std::int64_t number_or(std::string_view key, std::int64_t fallback) const;

 private:
  std::vector<std::vector<std::string>> lines_;
};

// ---- Fields of several targets. ----

RawArrayInterface array_fields(const Lines& lines);
RawCudaArrayInterface cuda_fields(const Lines& lines);

/// "info 4096 100": the driver's report on the address; "unreachable": devices cannot access it.
std::optional<PointerInfo> pointer_info(const Lines& lines);

/// The numbers of a line if there are `count`, else null. The array has exactly `count` entries, so
/// that a sanitizer sees a read beyond them.
std::unique_ptr<std::int64_t[]> entries(const Lines& lines, std::string_view key,
                                        std::size_t count);

/// The number of dimensions that a struct with `count` dimensions claims: `count`, or a number that
/// a reader must refuse.
std::int32_t claimed_ndim(const Lines& lines, std::size_t count);

// ---- Invariants; a violation ends the program. ----

void require(bool condition);

/// Every element of `view` is in the address space, and in `memory` if that is known. Its counts
/// agree. Its address is not 0 if it has elements.
void check(const ImportedView& view, const std::optional<KnownMemory>& memory = {});

/// The message of an error begins with a rule's id, a colon and a space.
void check(const absl::Status& error);

/// Checks the view or the error.
void check(const absl::StatusOr<ImportedView>& result,
           const std::optional<KnownMemory>& memory = {});

}  // namespace gridbuf::fuzz
