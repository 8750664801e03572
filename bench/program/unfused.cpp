// moe_forward done step by step: gather the rows, one cuBLAS product an expert, weighted scatter. The row movement is the
// library's own; routing is given, sorted and counted beforehand, which flatters this baseline.
#include <algorithm>

#include "contender.h"
#include "expert_products.h"

namespace ggm_bench {

namespace {

// A struct for permute (features K) or unpermute (features N, weighted).
ggm_permute_problem_t move_problem(const CellData& d, bool back) {
  ggm_permute_problem_t p = GGM_PERMUTE_PROBLEM_INIT;
  p.tokens = d.tokens;
  p.top_k = d.top_k;
  p.experts = d.experts;
  p.features = back ? d.n : d.k;
  p.token_type = ggm_type(d.cell->dtype);
  if (back) p.routing_weight_type = GGM_TYPE_FLOAT32;
  return p;
}

ggm_permute_tensors_t move_tensors(const CellData& d, int set) {
  ggm_permute_tensors_t t = GGM_PERMUTE_TENSORS_INIT;
  t.group_offsets = d.routing(set).offsets;
  t.row_assignment = d.routing(set).row_assignment;
  t.assignment_row = d.routing(set).assignment_row;
  return t;
}

}  // namespace

std::vector<Contender> unfused(const Context& context) {
  const CellData d = context.data;
  if (d.cell->operation != "moe_forward") return {};
  const auto gather = move_problem(d, false), scatter = move_problem(d, true);
  std::size_t gather_bytes = 0, scatter_bytes = 0;
  check_ggm(ggm_permute_workspace_size(context.ggm, &gather, &gather_bytes), "ggm_permute_workspace_size");
  check_ggm(ggm_unpermute_workspace_size(context.ggm, &scatter, &scatter_bytes), "ggm_unpermute_workspace_size");
  const std::int64_t in_bytes = d.rows * d.k * d.bytes_in(), out_bytes = d.rows * d.n * d.bytes_in();
  d.buffers->workspace.reserve(static_cast<std::int64_t>(std::max(gather_bytes, scatter_bytes)));
  d.buffers->rows_in.reserve(in_bytes);
  d.buffers->rows_out.reserve(out_bytes);
  Contender c;
  c.name = "permute, cuBLAS loop, unpermute";
  c.workspace_bytes = in_bytes + out_bytes + context.cublas.workspace_bytes();
  c.enqueue = [=, handle = context.ggm, &cublas = context.cublas](int set, cudaStream_t stream) {
    const Buffers& b = *d.buffers;
    ggm_permute_tensors_t t = move_tensors(d, set);
    t.input = d.input(set);
    t.output = b.rows_in.data();
    check_ggm(ggm_permute(handle, &gather, &t, b.workspace.data(), gather_bytes, stream), "ggm_permute");
    for (const ExpertProduct& p : expert_products(d, set, b.rows_in.data(), b.rows_out.data())) {
      cublas.gemm(p.shape, d.cell->dtype, d.cell->dtype, p.pointers);
    }
    t.routing_weights = d.routing(set).weights;
    t.input = b.rows_out.data();
    t.output = d.output();
    check_ggm(ggm_unpermute(handle, &scatter, &t, b.workspace.data(), scatter_bytes, stream), "ggm_unpermute");
  };
  const std::int64_t n = d.n;
  c.outputs = {{"d", d.output(), d.tokens * n * d.bytes_in(), d.cell->dtype,
                [n](std::int64_t row, std::int64_t column) { return row * n + column; }}};
  return {c};
}

}  // namespace ggm_bench
