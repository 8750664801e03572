// One grouped product.
#pragma once

#include <cstdint>

#include "ggm/ggm.h"

namespace ggm_test {

struct GemmCase {
  std::int32_t type, layout, form, index_type, order;
  std::int64_t groups, rows;  // rows of all groups; masked: of each
  std::int64_t n, k;          // variable K: n and m
  bool add;                   // beta = 1 with C, alpha, and float32 results of 16-bit operands
  std::int32_t sm_limit = 0;
};

void gemm(const GemmCase& c);

}  // namespace ggm_test
