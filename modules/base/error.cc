module;

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

module gridbuf.base;

namespace gridbuf {

ErrorClass error_class_of(const absl::Status& status) {
  for (const ErrorRow& row : kErrorTable) {
    if (row.code == status.code()) return row.error_class;
  }
  return ErrorClass::kInternal;
}

std::string problem_text(const Problem& problem) {
  return absl::StrCat(problem.name, " is ", problem.found, ", but must be ", problem.bound, "; ",
                      problem.advice);
}

absl::Status make_error(ErrorClass error_class, std::string_view message) {
  return absl::Status(error_row(error_class).code, message);
}

absl::Status make_error(ErrorClass error_class, const Problem& problem) {
  return make_error(error_class, std::string_view(problem_text(problem)));
}

absl::Status with_context(const absl::Status& status, std::string_view context) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(context, ": ", status.message()));
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

std::string_view to_string(MemoryKind kind) {
  static constexpr std::array<std::string_view, 4> kNames{"host", "pinned", "managed", "device"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string_view to_string(Side side) { return side == Side::kHost ? "host" : "device"; }

}  // namespace gridbuf
