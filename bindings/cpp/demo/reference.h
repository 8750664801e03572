// The layer again, as plain loops in float64 that share no code with the library: what its results are held against.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "layer.h"

namespace demo {

struct Check {
  std::string name;
  double error = 0;  // relative: root of the summed squared differences over that of the summed squared references
  double limit = 0;
  std::int64_t checked = 0, of = 0;  // elements

  // Written so that NaN fails.
  bool passed() const { return error <= limit; }
};

// y, dx, d_weight and d_routing_weights. Checks every element of small layers; of big ones, evenly spaced tokens, and evenly
// spaced output features of every expert's weight gradient.
std::vector<Check> check_layer(const Layer& layer);

}  // namespace demo
