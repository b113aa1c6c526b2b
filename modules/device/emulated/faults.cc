module;

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.device.emulated;

import gridbuf.base;

namespace gridbuf::emulated {
namespace {

std::string all_names() {
  std::string text;
  for (const std::string_view name : kOperationNames) {
    text.append(text.empty() ? "" : ", ").append(name);
  }
  return text;
}

}  // namespace

absl::StatusOr<Operation> operation(std::string_view name) {
  const auto* found = std::find(kOperationNames.begin(), kOperationNames.end(), name);
  if (found != kOperationNames.end()) {
    return static_cast<Operation>(found - kOperationNames.begin());
  }
  return make_error(ErrorClass::kValue, {"operation", "'" + std::string(name) + "'",
                                         "one of " + all_names(), "or None for any"});
}

std::int64_t Faults::inject(const Fault& fault) {
  const std::lock_guard lock(mutex_);
  armed_.push_back({++last_number_, fault});
  return last_number_;
}

void Faults::remove(std::int64_t number) {
  const std::lock_guard lock(mutex_);
  std::erase_if(armed_, [number](const Armed& armed) { return armed.number == number; });
}

void Faults::clear() {
  const std::lock_guard lock(mutex_);
  armed_.clear();
}

Verdict Faults::judge(Operation operation) {
  const std::lock_guard lock(mutex_);
  ++calls_[static_cast<std::size_t>(operation)];
  Verdict verdict;
  for (Armed& armed : armed_) {
    const Fault& fault = armed.fault;
    if (fault.operation && *fault.operation != operation) continue;
    ++armed.seen;
    const bool strikes =
        armed.seen >= fault.first_call && armed.seen - fault.first_call < fault.call_count;
    if (!strikes) continue;
    verdict.delay_milliseconds += fault.delay_milliseconds;
    absl::Status& error = fault.when_run ? verdict.when_run : verdict.at_call;
    if (error.ok()) error = fault.error;
  }
  return verdict;
}

std::int64_t Faults::calls(std::optional<Operation> operation) {
  const std::lock_guard lock(mutex_);
  if (operation) return calls_[static_cast<std::size_t>(*operation)];
  return std::accumulate(calls_.begin(), calls_.end(), std::int64_t{0});
}

}  // namespace gridbuf::emulated
