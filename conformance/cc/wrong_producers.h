// Producers with one defect each, and right producers that are unusual. suite_test judges them with
// the rules of this suite, verdicts_test also with the rules of the Python suite.
#ifndef GRIDBUF_CONFORMANCE_CC_WRONG_PRODUCERS_H_
#define GRIDBUF_CONFORMANCE_CC_WRONG_PRODUCERS_H_

#include <string>
#include <vector>

#include "conformance/cc/producer.h"

namespace gridbuf::conformance {

struct WrongProducer {
  Producer producer;
  std::vector<std::string> breaks;        // ids of the rules that it breaks
  std::vector<std::string> advises = {};  // ids of the SHOULD rules that it does not meet
};

const std::vector<WrongProducer>& wrong_producers();

}  // namespace gridbuf::conformance

#endif  // GRIDBUF_CONFORMANCE_CC_WRONG_PRODUCERS_H_
