// The weighted sum of a token's rows, and inner products of rows: what unpermute, the two-step combine and the routing gradient
// share.
#pragma once

#include "host/rows.h"

namespace ggm::host {

struct CombineJob {
  std::int64_t tokens = 0, top_k = 0, features = 0;
  const void* rows = nullptr;  // [max_rows, features]
  Type row_type = Type::none;
  std::int64_t row_ld = 0;
  void* output = nullptr;  // [tokens, features]
  Type output_type = Type::none;
  std::int64_t output_ld = 0;
  bool keep_unused = false, add = false;
  int threads = 1;
};

// output[t] = sum over the rows r of t, ascending, of weight[r] * rows[r], in T, rounded once. T is the accumulator type.
template <typename T>
void combine_rows(const Engine& engine, const Rows& rows, const CombineJob& job);

// <u, v> over n columns: blocks of 64 in the order of section 8 of ggm.h, added in ascending order.
struct Vector {
  const void* base;
  Type type;
  std::int64_t index;
};
template <typename T>
T inner_product(const Family& family, const Vector& u, const Vector& v, std::int64_t n);

}  // namespace ggm::host
