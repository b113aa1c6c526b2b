// [suite]
#include <cstring>

#include "conformance/cc/suite.h"
#include "row.h"

struct Rows {
  static gridbuf::conformance::Answer make(const gridbuf::conformance::Plan& plan) {
    if (plan.shape.size() != 1 || plan.dtype != "float64" || plan.swapped || plan.readonly) {
      return gridbuf::conformance::Unsupported{"rows are one-dimensional, writable doubles"};
    }
    Row row(plan.shape[0]);
    const auto content = plan.content();
    if (!content.empty()) std::memcpy(row.data(), content.data(), content.size());
    return Row::to_dlpack(std::move(row));
  }
};

GRIDBUF_CONFORMANCE_SUITE(row, Rows);
// [/suite]
