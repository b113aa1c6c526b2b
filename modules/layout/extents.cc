module;

#include <cstdint>
#include <span>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

module gridbuf.layout;

namespace gridbuf {

absl::StatusOr<Extents> make_extents(std::span<const std::int64_t> values, std::string_view what) {
  if (values.size() > static_cast<std::size_t>(kMaxNdim)) {
    return make_error(ErrorClass::kValue, {.name = absl::StrCat("the number of entries of ", what),
                                           .found = absl::StrCat(values.size()),
                                           .bound = absl::StrCat("at most ", kMaxNdim),
                                           .advice = "use fewer dimensions"});
  }
  return Extents(values);
}

}  // namespace gridbuf
