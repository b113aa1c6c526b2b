// The rules that the C++ suite judges, in the words of the Python suite's catalogue.
#ifndef GRIDBUF_CONFORMANCE_CC_CATALOGUE_H_
#define GRIDBUF_CONFORMANCE_CC_CATALOGUE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "conformance/cc/producer.h"

namespace gridbuf::conformance {

struct Rule {
  std::string id;
  bool is_must = true;  // else a SHOULD: breaking it is an advisory
  std::string requirement;
  std::string fix;
  std::vector<std::string> preconditions;  // ids, of rules of this list
};

/// In the order of the catalogue.
const std::vector<Rule>& rules();

/// The device types that DLPack defines.
const std::vector<std::int32_t>& device_types();
/// How many type codes DLPack defines: those from 0 on.
int type_code_count();

/// The checksum (zlib's) that the vectors give for the content of a plan.
std::uint32_t expected_crc32(const Plan& plan);

}  // namespace gridbuf::conformance

#endif  // GRIDBUF_CONFORMANCE_CC_CATALOGUE_H_
