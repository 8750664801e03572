// One layer, forward and, mostly, backward with all gradients.
#pragma once

#include <cstdint>

#include "ggm/ggm.h"

namespace ggm_test {

struct MoeCase {
  std::int32_t type, order, combine;
  std::int64_t tokens, top_k;
  std::int32_t input_rows = GGM_ROWS_TOKENS, output_rows = GGM_ROWS_TOKENS;
  bool given = false, wide = false;  // routing arrays given; float32 outputs, products and bias, adding to them
  std::int64_t experts = 4, in = 72, out = 136;
  std::int64_t pad = 0;  // elements behind each row of x, y, dy, dx, weight and d_weight
  bool bias = true, backward = true;
  std::int32_t sm_limit = 0;

  bool wide_output() const;
  std::int32_t out_type() const { return wide_output() ? GGM_TYPE_FLOAT32 : type; }
  ggm_moe_problem_t problem() const;
};

void moe(const MoeCase& c);

}  // namespace ggm_test
