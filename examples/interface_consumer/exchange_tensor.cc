// A C++ program hands its own memory to another library as a DLPack tensor, and takes one back: no
// Python.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

import gridbuf.alloc;
import gridbuf.interface;
import gridbuf.interface.dlpack;
import gridbuf.layout;
import gridbuf.layout.view;

namespace {

// 3 x 4 doubles that the tensor keeps alive.
absl::StatusOr<gridbuf::dlpack::VersionedExport> make_tensor() {
  auto values = std::make_shared<std::array<double, 12>>();
  values->at(5) = 42.0;
  const auto described = gridbuf::describe({
      .block = reinterpret_cast<std::byte*>(values->data()),
      .view = {.shape = {3, 4}, .strides_bytes = {32, 8}, .offset_bytes = 0, .itemsize_bytes = 8},
      .dtype = gridbuf::DType(),
      .readonly = false,
      .device = {},
      .owner = values,
  });
  if (!described.ok()) return described.status();
  return gridbuf::dlpack::export_versioned(*described);
}

// What a library does with a tensor from elsewhere: every field is checked before anything is read.
absl::Status print_element(gridbuf::dlpack::DLManagedTensorVersioned* tensor) {
  const absl::StatusOr<gridbuf::ImportedView> taken = gridbuf::dlpack::take(tensor);
  if (!taken.ok()) return taken.status();
  const gridbuf::BufferDescriptor& memory = taken->memory;
  const std::int64_t offset_bytes = gridbuf::byte_offset(memory.view, {1, 1});
  std::cout << memory.dtype.name() << " " << gridbuf::to_string(memory.view.shape)
            << ", element (1, 1) is "
            << *reinterpret_cast<const double*>(memory.block + offset_bytes) << "\n";
  return absl::OkStatus();
}

}  // namespace

int main() {
  absl::StatusOr<gridbuf::dlpack::VersionedExport> tensor = make_tensor();
  if (!tensor.ok()) {
    std::cerr << tensor.status().message() << "\n";
    return EXIT_FAILURE;
  }
  if (const absl::Status status = print_element(tensor->release()); !status.ok()) {
    std::cerr << status.message() << "\n";
    return EXIT_FAILURE;
  }

  // A tensor that cannot be right is given back and refused, with the rule that it breaks.
  tensor = make_tensor();
  (*tensor)->dl_tensor.strides[0] = std::int64_t{1} << 62;
  std::cout << print_element(tensor->release()).message() << "\n";
  return EXIT_SUCCESS;
}
