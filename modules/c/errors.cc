// Status, texts, handles, and structs that grow.
module;

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "modules/base/status_macros.h"
#include "modules/base/thread_word.h"
#include "modules/c/gridbuf.h"

module gridbuf.c;

namespace gridbuf::c {
namespace {

// This thread's last text, on the heap.
const ThreadWord last_text(std::free);  // NOLINT(cert-err58-cpp)
constexpr char kNoText[] = "an error; memory for its text is missing";

// A struct that is longer is not one of this interface.
constexpr std::size_t kLongestStruct = std::size_t{1} << 16;

}  // namespace

absl::Status bad(const Problem& problem) { return make_error(ErrorClass::kValue, problem); }

absl::Status require(const void* pointer, std::string_view name) {
  if (pointer != nullptr) return absl::OkStatus();
  return bad({name, "NULL", "an address", "pass the address of an object"});
}

absl::Status bad_handle(const void* handle, std::string_view kind) {
  const std::string name(kind);
  return bad({name, handle == nullptr ? "NULL" : "not a handle of a live " + name,
              "a handle of a live " + name + " of this build of gridbuf",
              "pass what a function of this library has given, before its release"});
}

absl::Status Handle<Storage>::allocate() const {
  GRIDBUF_ASSIGN_OR_RETURN(auto& storage, Storage::allocate(*delayed));
  auto fresh = std::make_unique<Made>(std::move(storage));
  Made* none = nullptr;
  if (made.compare_exchange_strong(none, fresh.get(), std::memory_order_acq_rel)) fresh.release();
  return absl::OkStatus();
}

gridbuf_status fail(ErrorClass error_class, const char* text) noexcept {
  void* before = reinterpret_cast<void*>(last_text.get());
  char* copy = strdup(text);
  const bool kept = last_text.set(reinterpret_cast<std::uintptr_t>(copy));
  std::free(kept ? before : copy);
  return static_cast<gridbuf_status>(error_class) + 1;
}

gridbuf_status fail(const absl::Status& status) noexcept {
  try {
    return fail(error_class_of(status), std::string(status.message()).c_str());
  } catch (...) {
    return fail(error_class_of(status), kNoText);
  }
}

absl::Status check_struct(std::string_view name, std::size_t given, std::size_t first) {
  if (given >= first && given <= kLongestStruct) return absl::OkStatus();
  return bad({std::string(name) + "->struct_bytes", std::to_string(given),
              "at least " + std::to_string(first),
              "set it to the size of the struct, as the macros _INIT do"});
}

absl::Status check_unknown(std::string_view name, const void* given, std::size_t given_bytes,
                           std::size_t known_bytes) {
  const auto* bytes = static_cast<const unsigned char*>(given);
  for (std::size_t i = known_bytes; i < given_bytes; ++i) {
    if (bytes[i] == 0) continue;
    return bad({"byte " + std::to_string(i) + " of " + std::string(name), std::to_string(bytes[i]),
                "0, because this libgridbuf does not know the field",
                "use a newer libgridbuf, or leave the field out"});
  }
  return absl::OkStatus();
}

const char* last_error() noexcept {
  const auto* text = reinterpret_cast<const char*>(last_text.get());
  return text == nullptr ? "" : text;
}

}  // namespace gridbuf::c
