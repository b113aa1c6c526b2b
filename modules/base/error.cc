module;

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

module gridbuf.base;

namespace gridbuf {
namespace {

// The payload is the decimal index of the class in kErrorTable. A status never leaves the process,
// so the index is always from this version.
constexpr absl::string_view kPayloadUrl = "gridbuf/error-class";

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
  return absl::StrCat(problem.name, " is ", problem.found, ", but must be ", problem.bound, "; ",
                      problem.advice);
}

absl::Status make_error(ErrorClass error_class, std::string_view message) {
  absl::Status status(error_row(error_class).code, message);
  const char digit = static_cast<char>('0' + static_cast<int>(error_class));
  status.SetPayload(kPayloadUrl, absl::Cord(absl::string_view(&digit, 1)));
  return status;
}

absl::Status make_error(ErrorClass error_class, const Problem& problem) {
  return make_error(error_class, std::string_view(problem_text(problem)));
}

absl::Status with_context(const absl::Status& status, std::string_view context) {
  if (status.ok()) return status;
  absl::Status result(status.code(), absl::StrCat(context, ": ", status.message()));
  status.ForEachPayload([&result](absl::string_view url, const absl::Cord& payload) {
    result.SetPayload(url, payload);
  });
  return result;
}

std::string bytes_text(std::int64_t bytes) {
  static constexpr std::array<const char*, 6> kUnits{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  const std::string exact = absl::StrCat(bytes, " bytes");
  if (bytes < 1024) return exact;
  double scaled = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  for (; scaled >= 1024 && unit + 1 < kUnits.size(); ++unit) scaled /= 1024;
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.1f %s (%s)", scaled, kUnits[unit], exact.c_str());
  return text.data();
}

std::string to_string(const Device& device) {
  switch (device.type) {
    case DeviceType::kHost:
      return "host";
    case DeviceType::kCuda:
      return absl::StrCat("cuda:", device.id);
    case DeviceType::kCudaHost:
      return "pinned host (CUDA)";
    case DeviceType::kRocm:
      return absl::StrCat("rocm:", device.id);
    case DeviceType::kRocmHost:
      return "pinned host (ROCm)";
    case DeviceType::kCudaManaged:
      return "managed (CUDA)";
  }
  return absl::StrCat("device type ", static_cast<std::int32_t>(device.type), ":", device.id);
}

}  // namespace gridbuf
