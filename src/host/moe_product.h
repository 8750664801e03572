// The product over sorted rows that the fused forward (x @ W^T) and backward (dy @ W) share, with its three ways to hand rows
// on: into a [rows, n] tensor for the two-step combine, weighted into a grouped output, or added at once into the tokens' sums.
#pragma once

#include "host/product.h"
#include "host/rows.h"

namespace ggm::host {

enum class RowOutput {
  none,      // inner products only
  products,  // output[r] = round(product_type, v); output_type is product_type
  grouped,   // output[r] = round(weight * round(product_type, v)) [+ old]; unused rows zero unless kept
  ordered,   // output[t] = rounded sum of weight * round(product_type, v) over the rows of t, ascending
};

struct RowProduct {
  std::int64_t experts = 0, max_rows = 0, tokens = 0, top_k = 0;
  std::int64_t n = 0, k = 0;

  // A: [tokens or max_rows, k].
  const void* a = nullptr;
  Type a_type = Type::none;
  std::int64_t a_ld = 0;
  bool a_grouped = false;

  // B of each expert; order as in Operand.
  const void* b = nullptr;
  Type b_type = Type::none;
  std::int64_t b_ld = 0, b_stride = 0;
  Order b_order = Order::inner_contiguous;

  const void* bias = nullptr;  // [experts, n]
  Type bias_type = Type::none;
  std::int64_t bias_stride = 0;

  RowOutput kind = RowOutput::none;
  Type product_type = Type::none;  // none: not rounded
  void* output = nullptr;
  Type output_type = Type::none;
  std::int64_t output_ld = 0;
  bool add = false, keep_unused = false;
  void* sums = nullptr;  // ordered: [tokens, n] of the accumulator type, or nullptr when output is of that type itself

  // With any kind: dots[r, j / 64] = inner product of the unrounded 64 columns with row r of x.
  void* dots = nullptr;
  const void* x = nullptr;  // [tokens or max_rows, n]
  Type x_type = Type::none;
  std::int64_t x_ld = 0;
  bool x_grouped = false;

  int threads = 1;
  void* scratch = nullptr;
};

template <typename T>
void run_row_product(const Engine& engine, const Rows& rows, const RowProduct& product);

// An operand of which each sorted row from `first` on is one row: by token, or the sorted rows themselves.
Operand row_operand(const Rows& rows, const void* base, Type type, std::int64_t ld, bool grouped, std::int64_t first);

}  // namespace ggm::host
