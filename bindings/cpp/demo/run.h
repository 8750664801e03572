// The part that shows the library in use: one layer, forward and backward, through ggm.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ggm/ggm.hpp"
#include "layer.h"
#include "memory.h"

namespace demo {

struct RunResult {
  double forward_seconds = 0, backward_seconds = 0;  // the fastest of a few calls
  // Of the default combine, and of the ordered one, which keeps no tensor of expert rows.
  std::size_t forward_workspace = 0, backward_workspace = 0;
  std::size_t ordered_forward_workspace = 0, ordered_backward_workspace = 0;
  bool repeat_same_bits = false;   // every call gave the bits of the first, forward and backward
  bool combine_same_bits = false;  // ordered and two-step combine gave the bits of the default
  bool alone_same_bits = false;    // the first tokens as a batch of their own gave the bits they had in the whole batch
  std::int64_t alone_tokens = 0;
  std::uint32_t faults = 0;  // sum of the fault words: the routing here is sound, so 0
};

// Fills the outputs of `layer`. Throws ggm::error, or std::runtime_error from the memory.
RunResult run_layer(const ggm::handle& handle, Memory& memory, Layer& layer);

}  // namespace demo
