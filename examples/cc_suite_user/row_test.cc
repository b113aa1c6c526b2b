// [suite]
#include <cstring>

#include "gridbuf_conformance.h"
#include "row.h"

struct Rows {
  static constexpr gridbuf::conformance::Declares kDeclares = {
      .dtypes = "float64", .min_ndim = 1, .max_ndim = 1};
  static gridbuf::conformance::Answer make(const gridbuf::conformance::Plan& plan) {
    if (plan.swapped || plan.readonly) {
      return gridbuf::conformance::Unsupported{"rows are writable, in native byte order"};
    }
    Row row(plan.shape[0]);
    const auto content = plan.content();
    if (!content.empty()) std::memcpy(row.data(), content.data(), content.size());
    return Row::to_dlpack(std::move(row));
  }
};

GRIDBUF_CONFORMANCE_SUITE(row, Rows);
// [/suite]
