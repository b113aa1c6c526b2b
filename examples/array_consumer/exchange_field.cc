// [program]
// Makes a field with a halo, exports it as a DLPack tensor and imports the tensor. Needs one import
// and no Python.
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

import gridbuf.array;

namespace {

using gridbuf::Array;

// A field of 3 x 4 doubles, 42 everywhere, in rows of 64 bytes.
absl::StatusOr<gridbuf::dlpack::VersionedExport> make_tensor() {
  const auto field =
      Array::full({.shape = {3, 4}, .alignment_bytes = 64, .halo = {{1, 1}, {1, 1}}}, 42.0);
  if (!field.ok()) return field.status();
  return gridbuf::dlpack::export_versioned(field->memory());  // The export keeps the memory alive.
}

// Imports a tensor. gridbuf checks every field before it reads an element.
absl::Status print_element(gridbuf::dlpack::DLManagedTensorVersioned* tensor) {
  absl::StatusOr<gridbuf::ImportedView> taken = gridbuf::dlpack::take(tensor);
  if (!taken.ok()) return taken.status();
  const absl::StatusOr<Array> array = Array::from(std::move(taken->memory));
  if (!array.ok()) return array.status();
  const auto elements = array->elements<const double>();
  if (!elements.ok()) return elements.status();
  std::cout << array->memory().dtype.name() << " " << gridbuf::to_string(array->shape())
            << ", element (1, 1) is " << (*elements)(1, 1) << "\n";
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

  // gridbuf releases an invalid tensor and returns an error that names the rule.
  tensor = make_tensor();
  (*tensor)->dl_tensor.strides[0] = std::int64_t{1} << 62;
  std::cout << print_element(tensor->release()).message() << "\n";
  return EXIT_SUCCESS;
}
// [/program]
