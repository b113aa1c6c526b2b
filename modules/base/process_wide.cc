#include "modules/base/process_wide.h"

extern "C" {
// In the extension and in libgridbuf, made by the rule build_number.
[[gnu::weak, gnu::visibility("hidden")]] extern const std::uint64_t gridbuf_build_number;
// Of libgridbuf. Null if `build` is not that of libgridbuf.
[[gnu::weak]] void* gridbuf_private_object(std::uint64_t build, const char* name, void* (*make)());
}

namespace gridbuf {

std::uint64_t build_number() noexcept {
  return &gridbuf_build_number == nullptr ? 0 : gridbuf_build_number;
}

void* process_wide_object(const char* name, void* (*make)()) {
  if (&gridbuf_private_object != nullptr && build_number() != 0) {
    if (void* const shared = gridbuf_private_object(build_number(), name, make)) return shared;
  }
  return make();
}

}  // namespace gridbuf
