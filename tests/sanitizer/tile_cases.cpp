#include "tile_cases.h"

#include <iterator>
#include <vector>

#include "calls.h"
#include "moe_case.h"

namespace ggm_test {
namespace {

// What a group of an array of products makes of its tiles in a kernel of 16-bit types. In every kernel the loaders differ.
struct TileForm {
  bool aligned;  // operands: whole 16-byte chunks, or rows that start between them
  bool direct;   // results: from registers, or through shared memory
};
// Every kind of tile follows every other, and itself: a group has two tiles or more.
constexpr TileForm kForms[] = {{true, true}, {false, true}, {true, false}, {true, true}, {false, false}, {true, false}};

// All groups but one have one row tile of the kernel that the bound max_m chooses, and two column tiles, the second of 8
// columns.
void array_of_forms(std::int32_t type, std::int32_t a_order, std::int32_t b_order, std::int64_t max_m, bool wide) {
  constexpr std::int64_t max_n = 136, max_k = 408;  // K: twice all stages of every kernel
  DeviceMemory memory;
  ggm_grouped_gemm_array_problem_t p = GGM_GROUPED_GEMM_ARRAY_PROBLEM_INIT;
  p.groups = std::size(kForms);
  p.max_m = max_m;
  p.max_n = max_n;
  p.max_k = max_k;
  p.a_order = a_order;
  p.b_order = b_order;
  p.a_type = p.b_type = type;
  p.d_type = wide ? GGM_TYPE_FLOAT32 : type;
  p.sm_limit = 1;
  std::vector<std::int64_t> m, k, lda, ldb, ldd;
  std::vector<const void*> a, b;
  std::vector<void*> d;
  for (const TileForm& form : kForms) {
    const std::int64_t odd = form.aligned ? 0 : 1;
    m.push_back(m.size() == 2 ? max_m : max_m / 16 * 8);
    k.push_back(max_k - 3 * odd);
    lda.push_back((a_order == GGM_ORDER_MK ? max_k : max_m) + odd);
    ldb.push_back((b_order == GGM_ORDER_NK ? max_k : max_n) + odd);
    ldd.push_back(max_n + (form.direct ? 0 : 1));
    a.push_back(memory.numbers(type, (a_order == GGM_ORDER_MK ? max_m : max_k) * lda.back()));
    b.push_back(memory.numbers(type, (b_order == GGM_ORDER_NK ? max_n : max_k) * ldb.back()));
    d.push_back(memory.fresh(static_cast<std::size_t>(max_m * ldd.back() * type_bytes(p.d_type))));
  }
  ggm_grouped_gemm_array_tensors_t t = GGM_GROUPED_GEMM_ARRAY_TENSORS_INIT;
  t.m = memory.integers(GGM_INDEX_INT32, m);
  t.k = memory.integers(GGM_INDEX_INT32, k);
  t.lda = memory.integers(GGM_INDEX_INT32, lda);
  t.ldb = memory.integers(GGM_INDEX_INT32, ldb);
  t.ldd = memory.integers(GGM_INDEX_INT32, ldd);
  t.a = memory.put(a);
  t.b = memory.put(b);
  t.d = memory.put(d);
  t.faults = memory.put(std::vector<std::uint32_t>(GGM_FAULT_WORDS, 0));
  run("grouped_gemm_array", ggm_grouped_gemm_array_workspace_size, ggm_grouped_gemm_array, p, t);
}

// Two of three experts have about 321 rows each: three row tiles of 128 in the forward, and weight gradients that pass the
// stages twice, from gathered rows. Under the ordered combine the products add to sums (with three slots a token; with two all
// rows would fit into the bytes of the sum) and scale the rows of K themselves. Rows and features fill tiles of 128 well enough
// for the plan to take the kernels with these in every product.
MoeCase layer(std::int32_t type, std::int32_t order, std::int32_t combine) {
  MoeCase c{type, order, combine, 232, 3};
  c.experts = 3;
  c.in = c.out = is_16bit(type) ? 264 : 256;
  c.sm_limit = 1;
  return c;
}

void layers(std::int32_t type) {
  const bool short_list = type == GGM_TYPE_FLOAT32;  // its kernels have one way for results, and the tools are slow on them
  for (std::int32_t order : {GGM_ORDER_NK, GGM_ORDER_KN})
    for (std::int32_t combine : {GGM_COMBINE_ORDERED, GGM_COMBINE_TWO_STEP})
      for (bool whole : {true, false}) {
        if (short_list && whole != (order == GGM_ORDER_NK)) continue;
        MoeCase c = layer(type, order, combine);
        // Aligned rows whose last chunk is not whole: the last tile of a gradient's columns is general, those before are not.
        c.pad = whole ? 0 : 8 / type_bytes(type);  // half a chunk
        c.in -= c.pad, c.out -= c.pad;
        c.wide = order == GGM_ORDER_KN;
        c.bias = !whole;
        moe(c);
      }
  // The kernels of fewer rows: forward and dx by few rows an expert, weight gradients by few features.
  for (std::int64_t experts : {4, 16}) {
    MoeCase c = layer(type, GGM_ORDER_NK, GGM_COMBINE_ORDERED);
    c.tokens = 67;
    c.experts = experts;
    c.in = 408;
    c.out = 136;
    moe(c);
  }
  for (std::int64_t out : {24, 56}) {
    MoeCase c = layer(type, GGM_ORDER_NK, GGM_COMBINE_ORDERED);
    c.tokens = 300;
    c.in = 392;
    c.out = out;
    moe(c);
  }
}

}  // namespace

void many_tiles() {
  for (std::int32_t type : {GGM_TYPE_FLOAT32, GGM_TYPE_BFLOAT16}) {
    for (std::int32_t a_order : {GGM_ORDER_MK, GGM_ORDER_KM})
      for (std::int32_t b_order : {GGM_ORDER_NK, GGM_ORDER_KN})
        for (std::int64_t max_m : {24, 56, 248})  // each row tile
          array_of_forms(type, a_order, b_order, max_m, is_16bit(type) && a_order == GGM_ORDER_KM);
    layers(type);
  }
}

}  // namespace ggm_test
