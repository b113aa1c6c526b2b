// A small library: a row of doubles with a DLPack export. It does not depend on gridbuf; the
// declarations of dlpack.h are repeated here.
#ifndef ROW_H_
#define ROW_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

struct DLDevice {
  std::int32_t device_type;
  std::int32_t device_id;
};
struct DLDataType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  std::int32_t ndim;
  DLDataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;
  std::uint64_t byte_offset;
};
struct DLPackVersion {
  std::uint32_t major;
  std::uint32_t minor;
};
struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* manager_ctx;
  void (*deleter)(DLManagedTensorVersioned* self);
  std::uint64_t flags;
  DLTensor dl_tensor;
};

class Row {
 public:
  explicit Row(std::int64_t length) : values_(static_cast<std::size_t>(length)) {}
  double* data() { return values_.data(); }

  // Moves the row into the tensor, which owns it.
  static DLManagedTensorVersioned* to_dlpack(Row row);

 private:
  struct Exported;
  std::vector<double> values_;
};

struct Row::Exported {
  DLManagedTensorVersioned managed;
  Row row;
  std::int64_t shape;
  std::int64_t stride;
};

inline DLManagedTensorVersioned* Row::to_dlpack(Row row) {
  auto* tensor = new Exported{.managed = {}, .row = std::move(row), .shape = 0, .stride = 1};
  tensor->shape = static_cast<std::int64_t>(tensor->row.values_.size());
  tensor->managed = {
      .version = {1, 1},
      .manager_ctx = tensor,
      .deleter =
          [](DLManagedTensorVersioned* self) { delete static_cast<Exported*>(self->manager_ctx); },
      .flags = 0,
      .dl_tensor = {.data = tensor->shape == 0 ? nullptr : tensor->row.data(),
                    .device = {1, 0},
                    .ndim = 1,
                    .dtype = {2, 64, 1},
                    .shape = &tensor->shape,
                    .strides = &tensor->stride,
                    .byte_offset = 0}};
  return &tensor->managed;
}

#endif  // ROW_H_
