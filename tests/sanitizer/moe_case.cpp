#include "moe_case.h"

#include "calls.h"
#include "support/operation.h"

namespace ggm_test {

bool MoeCase::wide_output() const { return wide && is_16bit(type); }

ggm_moe_problem_t MoeCase::problem() const {
  ggm_moe_problem_t p = GGM_MOE_PROBLEM_INIT;
  p.tokens = tokens;
  p.top_k = top_k;
  p.experts = experts;
  p.in_features = in;
  p.out_features = out;
  p.id_type = given ? 0 : GGM_INDEX_INT32;
  p.routing_weight_type = type == GGM_TYPE_FLOAT64 ? GGM_TYPE_FLOAT64 : GGM_TYPE_FLOAT32;
  p.x_type = p.weight_type = p.dy_type = type;
  p.y_type = p.dx_type = p.d_weight_type = out_type();
  p.bias_type = p.d_bias_type = bias ? out_type() : 0;
  p.product_type = wide_output() ? GGM_TYPE_FLOAT32 : 0;
  p.weight_order = order;
  p.input_rows = input_rows;
  p.output_rows = output_rows;
  p.combine = combine;
  p.sm_limit = sm_limit;
  if (pad > 0) {
    p.x_ld = p.dx_ld = in + pad;
    p.y_ld = p.dy_ld = out + pad;
    p.weight_ld = p.d_weight_ld = (order == GGM_ORDER_NK ? in : out) + pad;
  }
  p.gradients = GGM_GRADIENT_X | GGM_GRADIENT_WEIGHT | GGM_GRADIENT_ROUTING_WEIGHTS | (bias ? GGM_GRADIENT_BIAS : 0);
  if (wide) p.flags = GGM_FLAG_ADD_TO_Y | GGM_FLAG_ADD_TO_DX | GGM_FLAG_ADD_TO_DWEIGHT | (bias ? GGM_FLAG_ADD_TO_DBIAS : 0);
  return p;
}

void moe(const MoeCase& c) {
  DeviceMemory memory;
  const std::int64_t experts = c.experts, k = c.in + c.pad, n = c.out + c.pad;  // with the padding of rows
  const Routing r = make_routing(memory, c.tokens, c.top_k, experts, GGM_INDEX_INT32);
  const std::int32_t out_type = c.out_type();
  const ggm_moe_problem_t p = c.problem();
  const std::int64_t x_rows = c.input_rows == GGM_ROWS_GROUPED ? r.rows() : c.tokens;
  const std::int64_t y_rows = c.output_rows == GGM_ROWS_GROUPED ? r.rows() : c.tokens;
  // An output that is added to holds numbers; any other is fresh.
  const auto output = [&](std::int64_t count) {
    return c.wide ? memory.numbers(out_type, count) : memory.fresh(static_cast<std::size_t>(count * type_bytes(out_type)));
  };
  ggm_moe_forward_tensors_t f = GGM_MOE_FORWARD_TENSORS_INIT;
  if (c.given) {
    f.group_offsets = r.offsets;
    f.row_assignment = r.row_assignment;
    f.assignment_row = r.assignment_row;
  } else {
    f.ids = r.ids;
  }
  f.routing_weights = memory.numbers(p.routing_weight_type, r.rows());
  f.x = memory.numbers(c.type, x_rows * k);
  f.weight = memory.numbers(c.type, experts * k * n);
  if (c.bias) f.bias = memory.numbers(out_type, experts * n);
  f.y = output(y_rows * n);
  f.num_tokens = r.num_tokens;
  f.faults = r.faults;
  run("moe_forward", ggm_moe_forward_workspace_size, ggm_moe_forward, p, f);

  if (!c.backward) return;
  ggm_moe_backward_tensors_t b = backward_of(f);
  b.dy = memory.numbers(c.type, y_rows * n);
  b.dx = output(x_rows * k);
  b.d_weight = output(experts * k * n);
  if (c.bias) b.d_bias = output(experts * n);
  b.d_routing_weights = static_cast<float*>(memory.fresh(static_cast<std::size_t>(r.rows()) * 4));
  run("moe_backward", ggm_moe_backward_workspace_size, ggm_moe_backward, p, b);
}

}  // namespace ggm_test
