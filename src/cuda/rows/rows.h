// Kernels over rows of features: tokens to rows, the weighted sum of a token's rows, inner products of rows, sums over an
// expert's rows, zeros. They are memory-bound: 16-byte accesses where base and leading dimension allow, elements elsewhere, the
// same bits. All pointers are device pointers and all row indices have been checked (src/cuda/routing).
#pragma once

#include <cstdint>

#include "base/types.h"
#include "cuda/runtime/launch.h"
#include "ggm/ggm.h"
#include "plan/group.h"

namespace ggm::cuda {

// out[r] = round(weight[r] * in[t]) for each row r of a token t; without weights a conversion. Rows of no token: zero, or kept.
struct CopyRows {
  const void* in;
  void* out;
  Type in_type, out_type;
  std::int64_t tokens, top_k, rows, features, in_ld, out_ld;
  const std::int32_t* assignment_row;  // [tokens*top_k]: every row of a token is here once
  const std::int32_t* row_assignment;  // negative: a row of no token
  const void* weight;                  // accumulator type [rows], or nullptr
  bool keep_unused;
};
ggm_status_t copy_rows(const CopyRows& call, const Launch& launch);

// out[t] = sum over the rows r of token t, ascending, of weight[r] * in[r]: each product and each sum rounded to the
// accumulator type, one rounding at the end; the first term, or the old out[t], starts the sum.
struct CombineRows {
  const void* in;
  void* out;
  Type in_type, out_type;
  std::int64_t tokens, top_k, features, in_ld, out_ld;
  const std::int32_t* assignment_row;  // [tokens*top_k]
  const void* weight;                  // accumulator type [rows], or nullptr
  const std::int32_t* num_tokens;      // nullptr: tokens
  bool keep_unused;                    // rows of tokens beyond num_tokens
  bool add;
};
ggm_status_t combine_rows(const CombineRows& call, const Launch& launch);

// The end of the ordered combine: out[t] = round(sums[t]), and zeros where a token has no row. sums == out: zeros only.
struct FinishSums {
  const void* sums;  // accumulator type
  void* out;
  Type out_type;
  std::int64_t tokens, top_k, features, sums_ld, out_ld;
  const std::int32_t* assignment_row;
  const std::int32_t* num_tokens;
  bool keep_unused, add;
};
ggm_status_t finish_sums(const FinishSums& call, const Launch& launch);

// result[a] = sum of dots[r] ascending + <u[u_row], v[v_row]> for each assignment a with row r, else 0. Either part may be
// absent. Inner products in the order of section 8 of ggm.h.
struct DotRows {
  enum class Index : std::int32_t { row, token, expert };  // which row of the matrix belongs to sorted row r
  float* result;
  std::int64_t assignments, top_k, experts;
  const std::int32_t* assignment_row;
  const std::int32_t* group_offsets;  // needed by Index::expert
  const void* dots;                   // accumulator type [rows, dot_blocks]; nullptr: none
  std::int64_t dot_blocks;
  const void* u;  // nullptr: no inner product
  const void* v;
  Type u_type, v_type;
  Index u_index, v_index;
  std::int64_t features, u_ld, v_ld;
};
ggm_status_t dot_rows(const DotRows& call, const Launch& launch);

// d_bias[e] = sum over the rows of expert e, ascending, of round_to(dy_type, weight[r] * dy[r]), one rounding; an expert
// without rows gets zeros, or keeps its old values when adding.
struct SumRows {
  const void* dy;
  void* out;
  Type dy_type, out_type;
  std::int64_t experts, features, dy_ld, out_stride;
  const std::int32_t* group_offsets;
  const std::int32_t* row_token;  // negative: the row does not count
  bool by_token;                  // dy is addressed by token, else by row
  const void* weight;             // accumulator type, or nullptr
  bool add;
};
ggm_status_t sum_rows(const SumRows& call, const Launch& launch);

// Zeroes the rows of an output that nobody uses.
struct ZeroRows {
  enum class Unused : std::int32_t {
    negative,  // index[r] < 0
    unmarked,  // used[r] == 0
    outside,   // before the first group or from the end of the last on; groups follow each other
    masked,    // behind the size of its group; `rows` counts the rows of all groups
  };
  void* out;
  std::int64_t rows, row_bytes, ld_bytes;
  Unused unused;
  const std::int32_t* index;
  const std::uint8_t* used;
  const GroupDesc* groups;
  std::int64_t group_count, rows_per_group, group_bytes;
};
ggm_status_t zero_rows(const ZeroRows& call, const Launch& launch);

// used[r] = whether some group covers row r, from the groups' descriptors.
ggm_status_t mark_used_rows(std::uint8_t* used, std::int64_t rows, const GroupDesc* groups, std::int64_t group_count,
                            const Launch& launch);

// Zeroes a region of the workspace.
ggm_status_t clear(void* memory, std::int64_t bytes, const Launch& launch);

ggm_status_t load_row_kernels();

}  // namespace ggm::cuda
