module;

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

module gridbuf.base;

namespace gridbuf {
namespace {

// The payload is the decimal index of the class in kErrorTable. Within one process and one version
// only: a status is never stored or sent.
constexpr absl::string_view kPayloadUrl = "gridbuf/error-class";

absl::string_view to_absl(std::string_view text) {
  return absl::string_view(text.data(), text.size());
}

ErrorClass class_of_code(absl::StatusCode code) {
  for (const ErrorRow& row : kErrorTable) {
    if (row.code == code) return row.error_class;
  }
  return ErrorClass::kInternal;
}

}  // namespace

ErrorClass error_class_of(const absl::Status& status) {
  const auto payload = status.GetPayload(kPayloadUrl);
  if (!payload.has_value()) return class_of_code(status.code());
  const std::size_t row = std::string(*payload)[0] - '0';
  return kErrorTable.at(row).error_class;
}

std::string problem_text(const Problem& problem) {
  std::string text;
  text.append(problem.name).append(" is ").append(problem.found);
  text.append(", but must be ").append(problem.bound);
  return text.append("; ").append(problem.advice);
}

absl::Status make_error(ErrorClass error_class, std::string_view message) {
  absl::Status status(error_row(error_class).code, to_absl(message));
  const char digit = static_cast<char>('0' + static_cast<int>(error_class));
  status.SetPayload(kPayloadUrl, absl::Cord(absl::string_view(&digit, 1)));
  return status;
}

absl::Status make_error(ErrorClass error_class, const Problem& problem) {
  return make_error(error_class, std::string_view(problem_text(problem)));
}

absl::Status with_context(const absl::Status& status, std::string_view context) {
  if (status.ok()) return status;
  std::string message(context);
  message.append(": ").append(std::string(status.message()));
  absl::Status result(status.code(), message);
  status.ForEachPayload([&result](absl::string_view url, const absl::Cord& payload) {
    result.SetPayload(url, payload);
  });
  return result;
}

std::string bytes_text(std::int64_t bytes) {
  static constexpr std::array<const char*, 6> kUnits{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  const std::string exact = std::to_string(bytes) + " bytes";
  if (bytes < 1024) return exact;
  double scaled = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  for (; scaled >= 1024 && unit + 1 < kUnits.size(); ++unit) scaled /= 1024;
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.1f %s (%s)", scaled, kUnits[unit], exact.c_str());
  return text.data();
}

}  // namespace gridbuf
