module;

#include <cstddef>
#include <cstdint>

#if __has_feature(address_sanitizer)
#include <sanitizer/asan_interface.h>
#define GRIDBUF_ASAN 1
#endif

module gridbuf.alloc.host;

namespace gridbuf {

bool poison_is_fatal() {
#ifdef GRIDBUF_ASAN
  return true;
#else
  return false;
#endif
}

void poison_bytes([[maybe_unused]] const std::byte* begin,
                  [[maybe_unused]] std::int64_t length_bytes) noexcept {
#ifdef GRIDBUF_ASAN
  __asan_poison_memory_region(begin, static_cast<std::size_t>(length_bytes));
#endif
}

void unpoison_bytes([[maybe_unused]] const std::byte* begin,
                    [[maybe_unused]] std::int64_t length_bytes) noexcept {
#ifdef GRIDBUF_ASAN
  __asan_unpoison_memory_region(begin, static_cast<std::size_t>(length_bytes));
#endif
}

void poison_row_padding(const std::byte* begin, std::int64_t total_bytes, std::int64_t row_bytes,
                        std::int64_t used_bytes) noexcept {
  if (used_bytes >= row_bytes) return;
  for (std::int64_t row = 0; row < total_bytes; row += row_bytes) {
    poison_bytes(begin + row + used_bytes, row_bytes - used_bytes);
  }
}

}  // namespace gridbuf
