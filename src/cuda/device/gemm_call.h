// One launch of a product kernel, as plain data: what the MoE steps (src/cuda/moe) and the grouped products (src/cuda/gemm)
// fill in and every product kernel reads. All pointers are device pointers. Passed to kernels by value as a __grid_constant__.
//
// For each group g with descriptor d = groups[g] a kernel computes, for i < d.m and j < d.n,
//
//     acc(i,j) = sum over kk = 0 .. d.k-1, ascending, of  A(i,kk) * B(j,kk)        one float32 (float64) accumulator
//
// and hands acc to the epilogue. Rows are addressed so:
//   A inner_contiguous:  A(i,kk) = a[row_a(i) * lda + kk]       row_a(i)  = a_rows ? a_rows[first_row + i]  : i
//   A inner_strided:     A(i,kk) = a[row_a(kk) * lda + i]       row_a(kk) = a_rows ? a_rows[first_row + kk] : kk
// and the same for B with j, b_rows, ldb. A row whose index is negative reads as zeros; without a_rows (b_rows) so does a row r
// for which row_valid[r] is negative (r = first_row + i, or first_row + kk for the strided form). Portable kernels never
// touch memory of such rows. A list that is given must be negative wherever row_valid is.
#pragma once

#include <cstdint>

#include "base/types.h"
#include "plan/group.h"
#include "problem/problem.h"

namespace ggm::cuda {

enum class EpilogueKind : std::int32_t {
  store,    // D(i,j): alpha, beta*C, bias, product rounding, weight; row d_rows ? d_rows[first_row+i] : i
  ordered,  // add weight * product into sums[token], rows of a token in ascending order
  none,     // no D: dots only
};

struct Epilogue {
  EpilogueKind kind = EpilogueKind::store;

  // v = acc;  if (bias) v = v + bias[g, j];  if (use_alpha) v = alpha * v  -- each step rounded to the accumulator type.
  // Without a bias alpha is left out where the group's k is 0: that sum is +0, while alpha * 0 could be -0 or NaN.
  const void* bias = nullptr;
  std::int64_t bias_stride = 0;
  Type bias_type = Type::none;
  bool use_alpha = false;
  bool use_beta = false;  // v = v + round(beta * C)
  double alpha = 1, beta = 0;

  // p = round(v) to product_type (none: not rounded), then with row_weight: p = round(row_weight[r] * p) in the accumulator
  // type.
  Type product_type = Type::none;
  const void* row_weight = nullptr;  // accumulator type, [rows]

  // store: rows with row_valid[r] < 0 are stored as +0 (or left alone when keep_invalid). With drop_invalid nobody reads them,
  // and anything may be stored.
  Type c_type = Type::none, d_type = Type::none;
  const std::int32_t* d_rows = nullptr;  // memory row of D for each sorted row; negative: not stored
  bool keep_invalid = false;
  bool drop_invalid = false;

  // ordered: sums [tokens, sums_ld] in the accumulator type; a token's turn t has come in column tile c when
  // turns[token * turn_tiles + c] == t. Turn 0 stores (or adds to the old value, read from add_to when set); later turns add.
  const std::int32_t* row_token = nullptr;  // [rows], -1: skip the row
  const std::int32_t* row_turn = nullptr;   // [rows]
  void* sums = nullptr;
  std::int64_t sums_ld = 0;
  std::uint16_t* turns = nullptr;  // all zero before the launch
  std::int64_t turn_tiles = 0;
  // store, with sorted rows in D: the old value of row first_row + i, added to p before the last rounding; may be D itself.
  const void* add_to = nullptr;  // ordered: old y [tokens, add_to_ld] of add_to_type; may be `sums` itself
  std::int64_t add_to_ld = 0;
  Type add_to_type = Type::none;

  // dots (with any kind): dots[r * dot_blocks + j/64] = inner product of acc with x over 64 columns, in the order of ggm.h
  // section 8.
  void* dots = nullptr;  // accumulator type
  std::int64_t dot_blocks = 0;
  const void* dot_x = nullptr;  // [., dot_x_ld] of the input type; its row is dot_rows ? dot_rows[r] : r; where that or
                                // row_valid[r] < 0 nothing is stored, or anything
  std::int64_t dot_x_ld = 0;
  const std::int32_t* dot_rows = nullptr;

  // Whether a value is stored with no more than a rounding to `type`, if any, and a weight.
  constexpr GGM_HD bool only_rounds(Type type) const {
    return bias == nullptr && !use_alpha && !use_beta && add_to == nullptr &&
           (product_type == Type::none || product_type == type);
  }
};

struct GemmCall {
  const GroupDesc* groups = nullptr;
  const std::int64_t* tile_offsets = nullptr;  // [group_count+1], tiles of the kernel's tile_m x tile_n before each group
  unsigned long long* tile_counter = nullptr;  // zero before the launch; tiles are claimed from it in order
  std::int32_t group_count = 0;

  Type type = Type::none;  // of A and B
  Order a_order = Order::inner_contiguous, b_order = Order::inner_contiguous;
  const std::int32_t* a_rows = nullptr;
  const std::int32_t* b_rows = nullptr;
  const std::int32_t* row_valid = nullptr;

  // variable K: the k-row kk of A (or of B) is multiplied by scale[first_row + kk], rounded to `type`, before the product.
  enum class Scale : std::int32_t { none, a, b } scaled = Scale::none;
  const float* scale = nullptr;  // double for float64

  Epilogue epilogue;

  // Whether a row of D may be stored without a look at row_valid.
  constexpr GGM_HD bool all_rows_stored() const {
    return row_valid == nullptr || a_order != Order::inner_contiguous || epilogue.drop_invalid;
  }
};

}  // namespace ggm::cuda
