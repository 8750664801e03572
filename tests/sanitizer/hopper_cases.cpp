#include "hopper_cases.h"

#include "calls.h"
#include "gemm_case.h"
#include "moe_case.h"

namespace ggm_test {
namespace {

constexpr std::int32_t kOneCluster = 2;  // multiprocessors: two blocks, which take one pair of tiles after the other

// Products over rows. Groups of `rows / (groups + 1)`: fewer than a tile's rows, so that the blocks of the cluster have columns
// of their own, and more, so that they share them. Results that are only rounded, and others.
void products_over_rows(std::int32_t type, std::int32_t order) {
  const bool nk = order == GGM_ORDER_NK;
  const auto contiguous = [&](std::int32_t form, std::int64_t groups, std::int64_t rows, std::int64_t n, std::int64_t k,
                              bool add) {
    gemm({type, GGM_LAYOUT_CONTIGUOUS, form, GGM_INDEX_INT32, order, groups, rows, n, k, add, kOneCluster});
  };
  contiguous(GGM_GROUPS_SIZES, 5, 700, 264, 200, false);
  contiguous(GGM_GROUPS_SIZES, 2, 900, nk ? 137 : 136, 72, true);
  contiguous(GGM_GROUPS_OFFSETS, 1, 1040, 136, 1032, false);  // a long K: every stage is filled several times
  contiguous(GGM_GROUPS_SIZES, 7, 240, 264, 136, false);      // few rows
  contiguous(GGM_GROUPS_OFFSETS, 2, 90, nk ? 137 : 136, 72, true);
  contiguous(GGM_GROUPS_ROW_GROUP, 7, 240, 264, 136, false);
  contiguous(GGM_GROUPS_ROW_GROUP, 2, 90, nk ? 137 : 136, 72, true);
  contiguous(GGM_GROUPS_ROW_GROUP, 5, 700, 264, 200, false);
  contiguous(GGM_GROUPS_ROW_GROUP, 2, 900, nk ? 137 : 136, 72, true);
  gemm({type, GGM_LAYOUT_MASKED, GGM_GROUPS_SIZES, GGM_INDEX_INT64, order, 3, 350, 40, 72, false});
}

void products_over_k(std::int32_t type) {
  gemm({type, GGM_LAYOUT_VARIABLE_K, GGM_GROUPS_SIZES, GGM_INDEX_INT32, 0, 5, 600, 392, 264, false, kOneCluster});
  gemm({type, GGM_LAYOUT_VARIABLE_K, GGM_GROUPS_SIZES, GGM_INDEX_INT32, 0, 3, 90, 24, 136, true, kOneCluster});
}

// About 170 rows an expert, or few. Inner products, the ordered combine, rows added to, and copies of sorted rows for the
// gradient. Three slots a token: with two the ordered combine stores all rows in the bytes of its sum, and none waits.
void layer(std::int32_t type, std::int32_t order, std::int32_t combine, std::int32_t input_rows, bool wide,
           std::int64_t experts = 4) {
  MoeCase c{type, order, combine, 232, 3};
  c.experts = experts;
  c.in = 136;
  c.out = 264;
  c.input_rows = input_rows;
  c.wide = wide;
  c.sm_limit = kOneCluster;
  moe(c);
}

// A forward of so many rows an expert and so many columns that the rows are relayed.
void relayed(std::int32_t type, std::int32_t order) {
  MoeCase c{type, order, GGM_COMBINE_TWO_STEP, 260, 3};
  c.experts = 3;
  c.in = 72;
  c.out = 1544;
  c.bias = false;
  c.backward = false;
  c.sm_limit = kOneCluster;
  moe(c);
}

void layers(std::int32_t combine) {
  for (std::int32_t order : {GGM_ORDER_NK, GGM_ORDER_KN})
    layer(GGM_TYPE_BFLOAT16, order, combine, GGM_ROWS_TOKENS, order == GGM_ORDER_KN);
  layer(GGM_TYPE_BFLOAT16, GGM_ORDER_NK, combine, GGM_ROWS_TOKENS, false, 24);
}

}  // namespace

void hopper_calls(const std::function<bool(const std::string&)>& selected) {
  DeviceMemory::clears = true;
  for (std::int32_t type : {GGM_TYPE_BFLOAT16, GGM_TYPE_FLOAT16}) {
    if (selected("hopper_rows_nk")) products_over_rows(type, GGM_ORDER_NK);
    if (selected("hopper_rows_kn")) products_over_rows(type, GGM_ORDER_KN);
    if (selected("hopper_k")) products_over_k(type);
  }
  if (selected("hopper_layers_ordered")) {
    layers(GGM_COMBINE_ORDERED);
    layer(GGM_TYPE_BFLOAT16, GGM_ORDER_NK, GGM_COMBINE_ORDERED, GGM_ROWS_GROUPED, false);
  }
  if (selected("hopper_layers_two_step")) {
    layers(GGM_COMBINE_TWO_STEP);
    layer(GGM_TYPE_FLOAT16, GGM_ORDER_NK, GGM_COMBINE_TWO_STEP, GGM_ROWS_GROUPED, true);
    for (std::int32_t type : {GGM_TYPE_BFLOAT16, GGM_TYPE_FLOAT16})
      for (std::int32_t order : {GGM_ORDER_NK, GGM_ORDER_KN}) relayed(type, order);
  }
  DeviceMemory::clears = false;
}

}  // namespace ggm_test
