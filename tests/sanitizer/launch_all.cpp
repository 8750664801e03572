// Launches every kernel of the library through the C ABI on small shapes, and fails when one was not launched. It checks no
// results (the conformance suite does): it is what compute-sanitizer runs on, and it prints the kernels that each tool so saw.
//
//   ggm_launch_all [--only PREFIX]     of the names of groups of calls. Exit 0: all launched; 1: a call failed or a kernel was
//   not launched; 77: no GPU here
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "calls.h"
#include "gemm_case.h"
#include "hopper_cases.h"
#include "kernels_seen.h"
#include "moe_case.h"
#include "tile_cases.h"

namespace {

using namespace ggm_test;

std::string g_only;

bool selected(const std::string& name) { return g_only.empty() || name.rfind(g_only, 0) == 0; }

void routes() {
  for (std::int64_t tokens : {3, 300, 1000, 20000})
    for (std::int64_t experts : {3, 200, 1000, 4096, 65536})
      for (std::int32_t id_type : {GGM_INDEX_INT32, GGM_INDEX_INT64}) {
        DeviceMemory memory;
        make_routing(memory, tokens, 3, experts, id_type, id_type == GGM_INDEX_INT64);
      }
}

void permutes_of(std::int32_t token_type, std::int32_t row_type, std::int32_t weight_type, std::int64_t top_k,
                 std::int64_t features, std::uint32_t flags) {
  DeviceMemory memory;
  const Routing r = make_routing(memory, 40, top_k, 5, GGM_INDEX_INT32);
  const std::size_t skew = features % 2 ? static_cast<std::size_t>(type_bytes(token_type)) : 0;
  const std::size_t row_bytes = static_cast<std::size_t>(r.rows() * features * type_bytes(row_type));
  ggm_permute_problem_t p = GGM_PERMUTE_PROBLEM_INIT;
  p.tokens = r.tokens;
  p.top_k = r.top_k;
  p.experts = r.experts;
  p.features = features;
  p.token_type = token_type;
  p.row_type = row_type;
  p.flags = flags & GGM_FLAG_KEEP_UNUSED_ROWS;
  ggm_permute_tensors_t t = GGM_PERMUTE_TENSORS_INIT;
  t.group_offsets = r.offsets;
  t.row_assignment = r.row_assignment;
  t.assignment_row = r.assignment_row;
  t.num_tokens = r.num_tokens;
  t.faults = r.faults;
  t.input = memory.numbers(token_type, r.tokens * features, skew);
  t.output = memory.fresh(row_bytes);
  run("permute", ggm_permute_workspace_size, ggm_permute, p, t);

  p.flags = flags;
  p.routing_weight_type = weight_type;
  void* weights = weight_type ? memory.numbers(weight_type, r.rows()) : nullptr;
  t.routing_weights = weights;
  t.input = memory.numbers(row_type, r.rows() * features);
  t.output = memory.numbers(token_type, r.tokens * features, skew);  // read when adding
  run("unpermute", ggm_unpermute_workspace_size, ggm_unpermute, p, t);

  p.flags = flags & GGM_FLAG_KEEP_UNUSED_ROWS;
  ggm_unpermute_backward_tensors_t b = GGM_UNPERMUTE_BACKWARD_TENSORS_INIT;
  b.group_offsets = r.offsets;
  b.row_assignment = r.row_assignment;
  b.assignment_row = r.assignment_row;
  b.num_tokens = r.num_tokens;
  b.faults = r.faults;
  b.routing_weights = weights;
  b.rows = t.input;
  b.dy = memory.numbers(token_type, r.tokens * features, skew);
  b.d_rows = memory.fresh(row_bytes);
  b.d_routing_weights = static_cast<float*>(memory.fresh(static_cast<std::size_t>(r.rows()) * 4));
  run("unpermute_backward", ggm_unpermute_backward_workspace_size, ggm_unpermute_backward, p, b);
}

// Every pair of types that the copies, sums and inner products of rows are compiled for.
void permutes() {
  for (std::int32_t token_type : kTypes)
    for (std::int32_t row_type : kTypes) {
      const bool wide = token_type == GGM_TYPE_FLOAT64;
      if (wide != (row_type == GGM_TYPE_FLOAT64)) continue;
      const std::int32_t weight_type = wide ? GGM_TYPE_FLOAT64 : GGM_TYPE_FLOAT32;
      permutes_of(token_type, row_type, weight_type, 2, 72, 0);
      permutes_of(token_type, row_type, 0, 40, 37, GGM_FLAG_ADD_TO_Y | GGM_FLAG_KEEP_UNUSED_ROWS);
    }
  for (std::int32_t weight_type : {GGM_TYPE_BFLOAT16, GGM_TYPE_FLOAT16})
    permutes_of(GGM_TYPE_BFLOAT16, GGM_TYPE_BFLOAT16, weight_type, 40, 72, 0);
}

void gemms() {
  for (std::int32_t type : kTypes)
    for (std::int64_t rows : {60, 700}) {
      const bool add = rows == 60;
      for (std::int32_t order : {GGM_ORDER_NK, GGM_ORDER_KN}) {
        gemm({type, GGM_LAYOUT_CONTIGUOUS, GGM_GROUPS_SIZES, GGM_INDEX_INT32, order, 3, rows, 136, add ? 72 : 75, add});
        gemm({type, GGM_LAYOUT_MASKED, GGM_GROUPS_SIZES, GGM_INDEX_INT64, order, 3, rows / 2, 40, 72, !add});
      }
      gemm({type, GGM_LAYOUT_VARIABLE_K, GGM_GROUPS_SIZES, GGM_INDEX_INT32, 0, 3, 90, add ? 24 : 250, rows / 4, add});
    }
  // One block for all tiles: rows that start anywhere, in tiles of 32, 64 and 128 rows; last tiles of a group of 20, 50 and 80.
  for (std::int32_t type : {GGM_TYPE_BFLOAT16, GGM_TYPE_FLOAT16})
    for (std::int64_t rows : {80, 192, 700})
      gemm({type, GGM_LAYOUT_CONTIGUOUS, GGM_GROUPS_SIZES, GGM_INDEX_INT32, GGM_ORDER_NK, 4, rows, 136, 75, false, 1});
  for (std::int64_t tail : {20, 50, 80})
    gemm({GGM_TYPE_FLOAT32, GGM_LAYOUT_CONTIGUOUS, GGM_GROUPS_SIZES, GGM_INDEX_INT32, GGM_ORDER_NK, 1, 2 * (128 + tail), 136,
          72, false, 1});
  for (std::int32_t form :
       {GGM_GROUPS_SIZES, GGM_GROUPS_OFFSETS, GGM_GROUPS_ENDS, GGM_GROUPS_STARTS_SIZES, GGM_GROUPS_ROW_GROUP})
    for (std::int32_t index_type : {GGM_INDEX_INT32, GGM_INDEX_INT64})
      for (std::int32_t type : {GGM_TYPE_FLOAT32, GGM_TYPE_BFLOAT16}) {
        gemm({type, GGM_LAYOUT_CONTIGUOUS, form, index_type, GGM_ORDER_NK, 4, 50, 33, 40, index_type == GGM_INDEX_INT64});
        gemm({type, GGM_LAYOUT_VARIABLE_K, form, index_type, 0, 4, 50, 33, 40, index_type == GGM_INDEX_INT64});
      }
  // More groups than one pass over them takes.
  for (std::int32_t form :
       {GGM_GROUPS_SIZES, GGM_GROUPS_OFFSETS, GGM_GROUPS_ENDS, GGM_GROUPS_STARTS_SIZES, GGM_GROUPS_ROW_GROUP}) {
    gemm({GGM_TYPE_FLOAT32, GGM_LAYOUT_CONTIGUOUS, form, GGM_INDEX_INT32, GGM_ORDER_NK, 1100, 2300, 8, 8, false});
    gemm({GGM_TYPE_FLOAT32, GGM_LAYOUT_VARIABLE_K, form, GGM_INDEX_INT32, 0, 1100, 2300, 8, 8, false});
  }
}

// The kernels that find their groups themselves: each height of a tile, the second with more rows a group and a K as long as it
// wants; a K that passes the stages several times; unused rows. And by ids: two rows an expert on average, and eight.
void few_rows() {
  for (std::int32_t type : {GGM_TYPE_BFLOAT16, GGM_TYPE_FLOAT16})
    for (std::int32_t order : {GGM_ORDER_NK, GGM_ORDER_KN}) {
      for (std::int32_t form : {GGM_GROUPS_SIZES, GGM_GROUPS_OFFSETS, GGM_GROUPS_ENDS})
        for (std::int64_t rows : {9, 50})
          gemm({type, GGM_LAYOUT_CONTIGUOUS, form, form == GGM_GROUPS_SIZES ? GGM_INDEX_INT32 : GGM_INDEX_INT64, order, 7, rows,
                72, rows == 9 ? 1000 : 2056, false});
      for (std::int64_t experts : {16, 4}) {
        MoeCase c{type, order, GGM_COMBINE_TWO_STEP, 8, 4};
        c.experts = experts;
        c.in = experts == 16 ? 72 : 2056;
        c.bias = false;
        moe(c);
      }
    }
}

void gemm_array(std::int32_t type, std::int32_t a_order, std::int32_t b_order, std::int64_t max_m, bool lists) {
  DeviceMemory memory;
  constexpr std::int64_t groups = 3, n = 136, k = 75;
  ggm_grouped_gemm_array_problem_t p = GGM_GROUPED_GEMM_ARRAY_PROBLEM_INIT;
  p.groups = groups;
  p.max_m = max_m;
  p.max_n = n;
  p.max_k = k;
  p.a_order = a_order;
  p.b_order = b_order;
  p.a_type = p.b_type = type;
  ggm_grouped_gemm_array_tensors_t t = GGM_GROUPED_GEMM_ARRAY_TENSORS_INIT;
  if (lists) {
    t.m = memory.integers(GGM_INDEX_INT32, {max_m, 0, max_m / 2});
    t.n = memory.integers(GGM_INDEX_INT32, {n, n, 9});
    t.k = memory.integers(GGM_INDEX_INT32, {k, k, 0});
  }
  std::vector<const void*> a, b;
  std::vector<void*> d;
  for (std::int64_t i = 0; i < groups; ++i) {
    a.push_back(memory.numbers(type, max_m * k));
    b.push_back(memory.numbers(type, n * k));
    d.push_back(memory.fresh(static_cast<std::size_t>(max_m * n) * static_cast<std::size_t>(type_bytes(type))));
  }
  t.a = memory.put(a);
  t.b = memory.put(b);
  t.d = memory.put(d);
  t.faults = memory.put(std::vector<std::uint32_t>(GGM_FAULT_WORDS, 0));
  run("grouped_gemm_array", ggm_grouped_gemm_array_workspace_size, ggm_grouped_gemm_array, p, t);
}

void gemm_arrays() {
  for (std::int32_t type : kTypes)
    for (std::int32_t a_order : {GGM_ORDER_MK, GGM_ORDER_KM})
      for (std::int32_t b_order : {GGM_ORDER_NK, GGM_ORDER_KN})
        for (std::int64_t max_m : {20, 50, 250}) gemm_array(type, a_order, b_order, max_m, max_m == 20);  // each row tile
}

void moes() {
  for (std::int32_t type : kTypes)
    for (std::int32_t order : {GGM_ORDER_NK, GGM_ORDER_KN})
      for (std::int32_t combine : {GGM_COMBINE_ORDERED, GGM_COMBINE_TWO_STEP})
        for (std::int64_t tokens : {20, 300})
          moe({type, order, combine, tokens, 3, GGM_ROWS_TOKENS, GGM_ROWS_TOKENS, tokens == 20, order == GGM_ORDER_KN});
  for (std::int32_t type : {GGM_TYPE_FLOAT32, GGM_TYPE_BFLOAT16})
    for (std::int32_t input_rows : {GGM_ROWS_TOKENS, GGM_ROWS_GROUPED})
      for (std::int32_t output_rows : {GGM_ROWS_TOKENS, GGM_ROWS_GROUPED})
        moe({type, GGM_ORDER_NK, GGM_COMBINE_AUTO, 40, 2, input_rows, output_rows, false, false});
  for (std::int32_t combine : {GGM_COMBINE_ORDERED, GGM_COMBINE_TWO_STEP})
    moe({GGM_TYPE_BFLOAT16, GGM_ORDER_NK, combine, 10, 40});
  MoeCase plain{GGM_TYPE_FLOAT64, GGM_ORDER_NK, GGM_COMBINE_TWO_STEP, 20, 3};
  plain.bias = false;
  moe(plain);
}

void products() {
  if (selected("gemm")) gemms();
  if (selected("few")) few_rows();
  if (selected("array")) gemm_arrays();
  if (selected("moe")) moes();
  if (selected("tiles")) many_tiles();
}

// Makes the calls, given the family in use, on a handle of a family; returns the one in use.
template <typename Calls>
std::int32_t with_handle(std::int32_t family, Calls calls) {
  ggm_create_params_t params = GGM_CREATE_PARAMS_INIT;
  params.backend = GGM_BACKEND_CUDA;
  params.kernel_family = family;
  require(ggm_create(&params, &session().handle), "create");
  ggm_info_t info = GGM_INFO_INIT;
  require(ggm_get_info(session().handle, &info), "info");
  calls(info.kernel_family);
  require(ggm_destroy(session().handle), "destroy");
  return info.kernel_family;
}

// `hopper`: the wgmma kernels run here; on other cards they are registered all the same.
int report(bool hopper) {
  int missing = 0, launched = 0;
  for (const auto& [name, seen] : ggm_test::kernels_seen()) {
    if (seen.launches > 0) {
      std::printf("kernel %s %lld\n", name.c_str(), seen.launches);
      ++launched;
    } else if (seen.own && g_only.empty() && (hopper || name.find("gemm_wgmma<") == std::string::npos)) {
      std::printf("NOT LAUNCHED %s\n", name.c_str());
      ++missing;
    }
  }
  std::printf("%d calls, %d kernels launched, %d not launched\n", session().calls, launched, missing);
  return missing == 0 && launched > 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "--only") == 0) g_only = argv[2];
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    const char* needed = std::getenv("GGM_REQUIRE_GPU");
    const bool fails = needed && *needed && std::strcmp(needed, "0") != 0;
    std::printf("%s: there is no GPU here\n", fails ? "FAILED" : "skipped");
    return fails ? 1 : 77;
  }
  bool hopper = false;
  try {
    const std::int32_t taken = with_handle(GGM_KERNELS_AUTO, [](std::int32_t family) {
      if (selected("route")) routes();
      if (selected("permute")) permutes();
      if (family == GGM_KERNELS_CUDA_HOPPER) hopper_calls(selected);
    });
    hopper = taken == GGM_KERNELS_CUDA_HOPPER;
    if (g_only.rfind("hopper", 0) == 0 && !hopper) {
      std::printf("0 calls: the wgmma kernels do not run on this card\n");
      return 0;
    }
    with_handle(GGM_KERNELS_CUDA_PORTABLE, [](std::int32_t) { products(); });
  } catch (const std::exception& e) {
    std::printf("FAILED: %s\n", e.what());
    return 1;
  }
  return report(hopper);
}
