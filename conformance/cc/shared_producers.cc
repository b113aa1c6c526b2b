// The wrong producers as a shared library, from which the Python suite takes tensors: a small C
// ABI.
#include <algorithm>
#include <cstddef>
#include <exception>
#include <string>

#include "conformance/cc/producer.h"
#include "conformance/cc/wrong_producers.h"
#include "nlohmann/json.hpp"

namespace gc = gridbuf::conformance;

extern "C" {

// JSON: the name of each producer, and the rules that it breaks and does not meet.
const char* gridbuf_producers() {
  static const std::string kText = [] {
    nlohmann::ordered_json list;
    for (const gc::WrongProducer& wrong : gc::wrong_producers()) {
      const gc::Declares& can = wrong.producer.declares;
      list.push_back({{"name", wrong.producer.name},
                      {"declares", {{"layout", can.layout}, {"alignment_size", can.alignment}}},
                      {"breaks", wrong.breaks},
                      {"advises", wrong.advises}});
    }
    return list.dump();
  }();
  return kText.c_str();
}

// Makes the tensor of a plan. The result is 0 for a legacy tensor, 1 for a versioned one, -1 for a
// plan that is declined, -2 for an exception; `text` gets the reason, valid until the next call.
int gridbuf_make(std::size_t producer, const char* plan, void** tensor, const char** text) {
  static std::string reason;
  try {
    const gc::Plan& asked = *std::ranges::find(gc::plans(), plan, &gc::Plan::name);
    const gc::Answer answer = gc::wrong_producers()[producer].producer.make(asked);
    reason = answer.reason();
    *text = reason.c_str();
    *tensor = answer.tensor();
    return answer.is_unsupported() ? -1 : static_cast<int>(answer.is_versioned());
  } catch (const std::exception& error) {
    *text = (reason = error.what()).c_str();
    return -2;
  }
}

}  // extern "C"
