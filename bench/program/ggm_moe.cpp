// The library's fused operations, routing included.
#include "contender.h"

namespace ggm_bench {

namespace {

ggm_moe_problem_t base_problem(const CellData& d) {
  ggm_moe_problem_t p = GGM_MOE_PROBLEM_INIT;
  p.flags = d.tokens <= 256 ? GGM_FLAG_KEEP_UNUSED_ROWS : 0;
  p.tokens = d.tokens;
  p.top_k = d.top_k;
  p.experts = d.experts;
  p.in_features = d.k;
  p.out_features = d.n;
  p.id_type = GGM_INDEX_INT32;
  p.routing_weight_type = GGM_TYPE_FLOAT32;
  p.x_type = p.weight_type = ggm_type(d.cell->dtype);
  p.weight_order = GGM_ORDER_NK;
  return p;
}

Contender forward(const Context& context, std::int32_t combine, const char* name) {
  const CellData d = context.data;
  ggm_moe_problem_t p = base_problem(d);
  p.combine = combine;
  std::size_t bytes = 0;
  check_ggm(ggm_moe_forward_workspace_size(context.ggm, &p, &bytes), "ggm_moe_forward_workspace_size");
  d.buffers->workspace.reserve(static_cast<std::int64_t>(bytes));
  Contender c;
  c.name = "ggm";
  c.combine = name;
  c.baseline = false;
  c.workspace_bytes = static_cast<std::int64_t>(bytes);
  c.enqueue = [d, p, bytes, handle = context.ggm](int set, cudaStream_t stream) {
    ggm_moe_forward_tensors_t t = GGM_MOE_FORWARD_TENSORS_INIT;
    t.ids = d.routing(set).ids;
    t.routing_weights = d.routing(set).weights;
    t.x = d.input(set);
    t.weight = d.weights();
    t.y = d.output();
    check_ggm(ggm_moe_forward(handle, &p, &t, d.buffers->workspace.data(), bytes, stream), "ggm_moe_forward");
  };
  const std::int64_t n = d.n;
  c.outputs = {{"d", d.output(), d.tokens * n * d.bytes_in(), d.cell->dtype,
                [n](std::int64_t row, std::int64_t column) { return row * n + column; }}};
  return c;
}

Contender backward(const Context& context) {
  const CellData d = context.data;
  ggm_moe_problem_t p = base_problem(d);
  p.gradients = GGM_GRADIENT_X | GGM_GRADIENT_WEIGHT | GGM_GRADIENT_ROUTING_WEIGHTS;
  std::size_t bytes = 0;
  check_ggm(ggm_moe_backward_workspace_size(context.ggm, &p, &bytes), "ggm_moe_backward_workspace_size");
  d.buffers->workspace.reserve(static_cast<std::int64_t>(bytes));
  const std::int64_t in = d.bytes_in(), dx_bytes = d.tokens * d.k * in, dw_bytes = d.experts * d.n * d.k * in;
  char* dx = d.output();
  char* d_weight = dx + round_up(dx_bytes, 256);
  char* d_factors = d_weight + round_up(dw_bytes, 256);
  Contender c;
  c.name = "ggm";
  c.baseline = false;
  c.workspace_bytes = static_cast<std::int64_t>(bytes);
  c.enqueue = [d, p, bytes, dx, d_weight, d_factors, handle = context.ggm](int set, cudaStream_t stream) {
    ggm_moe_backward_tensors_t t = GGM_MOE_BACKWARD_TENSORS_INIT;
    t.ids = d.routing(set).ids;
    t.routing_weights = d.routing(set).weights;
    t.x = d.input(set);
    t.weight = d.weights();
    t.dy = d.gradient(set);
    t.dx = dx;
    t.d_weight = d_weight;
    t.d_routing_weights = reinterpret_cast<float*>(d_factors);
    check_ggm(ggm_moe_backward(handle, &p, &t, d.buffers->workspace.data(), bytes, stream), "ggm_moe_backward");
  };
  const auto packed = [](std::int64_t ld) { return [ld](std::int64_t row, std::int64_t column) { return row * ld + column; }; };
  c.outputs = {{"dx", dx, dx_bytes, d.cell->dtype, packed(d.k)},
               {"d_weight", d_weight, dw_bytes, d.cell->dtype, packed(d.k)},
               {"d_routing_weights", d_factors, 4 * d.rows, Dtype::float32, packed(d.top_k)}};
  return c;
}

}  // namespace

std::vector<Contender> ggm_moe(const Context& context) {
  const std::string& operation = context.data.cell->operation;
  if (operation == "moe_forward") {
    return {forward(context, GGM_COMBINE_AUTO, "auto"), forward(context, GGM_COMBINE_ORDERED, "ordered")};
  }
  if (operation == "moe_backward") return {backward(context)};
  return {};
}

}  // namespace ggm_bench
