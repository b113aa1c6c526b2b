// A field on the host and on a device. The host writes the halo. gridbuf copies only the halo to
// the device.
#include <cstdint>
#include <cstdlib>
#include <iostream>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

import gridbuf.device.registry;
import gridbuf.storage;

namespace {

using gridbuf::Side;
using gridbuf::Storage;

// Writes `value` to the first and the last `width` planes of the first dimension, on the host.
absl::Status write_halo(const Storage& field, std::int64_t width, double value) {
  const std::int64_t extent = field.shape()[0];
  for (const std::int64_t start : {std::int64_t{0}, extent - width}) {
    gridbuf::IndexMap planes(field.shape());
    planes.keep(0, gridbuf::slice_points({start, start + width}, extent));
    const auto halo = gridbuf::WriteAccess<double>::begin(field.view(planes), Side::kHost,
                                                          gridbuf::Coverage::kAll);
    if (!halo.ok()) return halo.status();
    for (std::int64_t i = 0; i < halo->shape()[0]; ++i) {
      for (std::int64_t j = 0; j < halo->shape()[1]; ++j) (*halo)(i, j) = value;
    }
  }
  return absl::OkStatus();
}

absl::Status run() {
  if (!gridbuf::device_driver().ok()) gridbuf::switch_emulated_device(true);
  const absl::StatusOr<gridbuf::Layout> plan = gridbuf::make_plan(
      {.shape = {20, 10}, .itemsize_bytes = 8, .alignment_bytes = 64, .halo = {{3, 3}, {0, 0}}});
  if (!plan.ok()) return plan.status();
  const absl::StatusOr<Storage> field = Storage::allocate(
      {.layout = *plan, .kind = gridbuf::StorageKind::kSoftwareManaged, .zeroed = true});
  if (!field.ok()) return field.status();
  if (absl::Status status = write_halo(*field, 3, 1.5); !status.ok()) return status;
  std::cout << (field->is_emulated() ? "emulated device" : "CUDA device") << ", host dirty in "
            << field->sync_state()->plan(Side::kDevice, field->hull()).boxes.size() << " boxes\n";

  // A kernel takes this address. The memory there is up to date.
  const auto on_device = gridbuf::ReadAccess<double>::begin(*field, Side::kDevice);
  if (!on_device.ok()) return on_device.status();
  std::cout << "state after the device's read: " << field->sync_state()->state() << ", strides "
            << gridbuf::to_string(on_device->strides_bytes()) << " bytes on both sides\n";

  const auto on_host = gridbuf::ReadAccess<double>::begin(field->domain_view());
  if (!on_host.ok()) return on_host.status();
  std::cout << "first element of the domain: " << (*on_host)(0, 0) << "\n";
  return absl::OkStatus();
}

}  // namespace

int main() {
  const absl::Status status = run();
  if (status.ok()) return EXIT_SUCCESS;
  std::cerr << status.message() << "\n";
  return EXIT_FAILURE;
}
