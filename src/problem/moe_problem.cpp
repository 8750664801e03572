// The fused operations: one struct, filled once, serves forward and backward.
#include "problem/check.h"
#include "problem/problem.h"
#include "problem/route_problem.h"

namespace ggm {
namespace {

constexpr std::uint32_t kFlags =
    GGM_FLAG_KEEP_UNUSED_ROWS | GGM_FLAG_ADD_TO_Y | GGM_FLAG_ADD_TO_DX | GGM_FLAG_ADD_TO_DWEIGHT | GGM_FLAG_ADD_TO_DBIAS;
constexpr std::uint32_t kGradients = GGM_GRADIENT_X | GGM_GRADIENT_WEIGHT | GGM_GRADIENT_ROUTING_WEIGHTS | GGM_GRADIENT_BIAS;

ggm_status_t resolve_routing(const ggm_moe_problem_t& in, MoeProblem* out) {
  GGM_TRY(make_routing_sizes({in.tokens, in.top_k, in.experts, in.max_rows, in.sm_limit}, &out->routing));
  if (in.id_type != 0) return resolve_ids(in.experts_total, in.first_expert, in.ids_ld, in.id_type, &out->routing);
  const char* given = "the routing arrays are given (id_type is 0)";
  GGM_TRY(check::unused("experts_total", in.experts_total, given));
  GGM_TRY(check::unused("first_expert", in.first_expert, given));
  return check::unused("ids_ld", in.ids_ld, given);
}

// An output of the type of the inputs, or float32 when those are 16-bit.
ggm_status_t resolve_output_type(const char* field, std::int32_t value, Type fallback, Type input, Type* out) {
  GGM_TRY(check::type(field, value, false, out));
  if (*out == Type::none) *out = fallback;
  if (*out == input || (is_16bit(input) && *out == Type::float32)) return GGM_STATUS_SUCCESS;
  return check::unsupported(field, *out, "it must be the type of x, or float32 with 16-bit x");
}

ggm_status_t resolve_forward_types(const ggm_moe_problem_t& in, MoeProblem* out) {
  GGM_TRY(check::type("x_type", in.x_type, true, &out->x_type));
  GGM_TRY(check::type("weight_type", in.weight_type, true, &out->weight_type));
  const Type x = out->x_type;
  if (out->weight_type != x)
    return check::unsupported("weight_type", out->weight_type, "no kernel multiplies two types; it must equal x_type");
  GGM_TRY(check::type("bias_type", in.bias_type, false, &out->bias_type));
  if (out->bias_type != Type::none && out->bias_type != x && !(out->bias_type == Type::float32 && x != Type::float64))
    return check::unsupported("bias_type", out->bias_type, "it must be x_type, or float32 when that is not float64");
  GGM_TRY(resolve_output_type("y_type", in.y_type, x, x, &out->y_type));
  Type product;
  GGM_TRY(check::type("product_type", in.product_type, false, &product));
  if (product != Type::none && product != accumulator_of(x))
    return check::unsupported("product_type", product,
                              "it must be 0 (the type of the result), or float32 (float64 with float64 tensors)");
  out->forward_product_type = product == Type::none ? out->y_type : product;
  out->backward_product_type = product;  // resolved with dx_type
  return GGM_STATUS_SUCCESS;
}

// Enum values are checked for every kind, support for the backward alone: a forward ignores these fields.
ggm_status_t resolve_gradient_types(MoeKind kind, const ggm_moe_problem_t& in, MoeProblem* out) {
  GGM_TRY(check::type("dy_type", in.dy_type, false, &out->dy_type));
  GGM_TRY(check::type("dx_type", in.dx_type, false, &out->dx_type));
  GGM_TRY(check::type("d_weight_type", in.d_weight_type, false, &out->d_weight_type));
  GGM_TRY(check::type("d_bias_type", in.d_bias_type, false, &out->d_bias_type));
  GGM_TRY(check::flags("gradients", static_cast<std::uint32_t>(in.gradients), kGradients));
  out->gradients = static_cast<std::uint32_t>(in.gradients);
  if (kind == MoeKind::forward) return GGM_STATUS_SUCCESS;

  if (out->gradients == 0)
    return fail(GGM_STATUS_INVALID_VALUE, "gradients = 0; the backward needs at least one of the GGM_GRADIENT_* bits, 0x%x",
                kGradients);
  const Type x = out->x_type;
  if (out->dy_type == Type::none) out->dy_type = out->y_type;
  if (out->dy_type != x)
    return check::unsupported("dy_type", out->dy_type, "it must be x_type: no kernel multiplies two types");
  GGM_TRY(resolve_output_type("dx_type", in.dx_type, x, x, &out->dx_type));
  GGM_TRY(resolve_output_type("d_weight_type", in.d_weight_type, x, x, &out->d_weight_type));
  if (out->wants(GGM_GRADIENT_BIAS)) {
    if (out->d_bias_type == Type::none && out->bias_type == Type::none)
      return fail(GGM_STATUS_TYPE_MISMATCH, "d_bias_type = 0 with bias_type = 0; GGM_GRADIENT_BIAS needs one of them named");
    GGM_TRY(resolve_output_type("d_bias_type", in.d_bias_type, out->bias_type, x, &out->d_bias_type));
  }
  if (out->backward_product_type == Type::none) out->backward_product_type = out->dx_type;
  return GGM_STATUS_SUCCESS;
}

ggm_status_t resolve_strides(MoeKind kind, const ggm_moe_problem_t& in, MoeProblem* out) {
  const std::int64_t k = in.in_features, n = in.out_features, experts = in.experts;
  const std::int64_t rows = out->routing.max_rows;
  const bool nk = out->weight_order == Order::inner_contiguous;
  const std::int64_t w_rows = nk ? n : k, w_columns = nk ? k : n;
  const auto shared = check::Shared::yes;
  const auto own = check::Shared::no;
  GGM_TRY(check::leading_dimension("x_ld", in.x_ld, k, &out->x_ld));
  GGM_TRY(check::leading_dimension("y_ld", in.y_ld, n, &out->y_ld));
  GGM_TRY(check::leading_dimension("weight_ld", in.weight_ld, w_columns, &out->weight_ld));
  GGM_TRY(check::stride("weight_stride", in.weight_stride, Checked(w_rows) * Checked(out->weight_ld), w_columns, shared,
                        &out->weight_stride));
  if (out->bias_type == Type::none) GGM_TRY(check::unused("bias_stride", in.bias_stride, "there is no bias (bias_type is 0)"));
  GGM_TRY(check::stride("bias_stride", in.bias_stride, n, n, shared, &out->bias_stride));
  GGM_TRY(check::leading_dimension("dy_ld", in.dy_ld, n, &out->dy_ld));
  GGM_TRY(check::leading_dimension("dx_ld", in.dx_ld, k, &out->dx_ld));
  GGM_TRY(check::leading_dimension("d_weight_ld", in.d_weight_ld, w_columns, &out->d_weight_ld));
  GGM_TRY(check::stride("d_weight_stride", in.d_weight_stride, Checked(w_rows) * Checked(out->d_weight_ld), w_columns, own,
                        &out->d_weight_stride));
  GGM_TRY(check::stride("d_bias_stride", in.d_bias_stride, n, n, own, &out->d_bias_stride));

  const std::int64_t in_rows = out->input_grouped ? rows : in.tokens;
  const std::int64_t out_rows = out->output_grouped ? rows : in.tokens;
  GGM_TRY(check::extent("x", 1, 0, in_rows, out->x_ld, k, bytes_of(out->x_type)));
  GGM_TRY(check::extent("y", 1, 0, out_rows, out->y_ld, n, bytes_of(out->y_type)));
  GGM_TRY(check::extent("weight", experts, out->weight_stride, w_rows, out->weight_ld, w_columns, bytes_of(out->weight_type)));
  GGM_TRY(check::extent("bias", experts, out->bias_stride, 1, n, n, bytes_of(out->bias_type)));
  if (kind == MoeKind::forward) return GGM_STATUS_SUCCESS;
  GGM_TRY(check::extent("dy", 1, 0, out_rows, out->dy_ld, n, bytes_of(out->dy_type)));
  GGM_TRY(check::extent("dx", 1, 0, in_rows, out->dx_ld, k, bytes_of(out->dx_type)));
  GGM_TRY(check::extent("d_weight", experts, out->d_weight_stride, w_rows, out->d_weight_ld, w_columns,
                        bytes_of(out->d_weight_type)));
  return check::extent("d_bias", experts, out->d_bias_stride, 1, n, n, bytes_of(out->d_bias_type));
}

}  // namespace

ggm_status_t make_problem(MoeKind kind, const ggm_moe_problem_t& in, MoeProblem* out) {
  *out = MoeProblem{};
  GGM_TRY(check::flags("flags", in.flags, kFlags));
  out->keep_unused_rows = (in.flags & GGM_FLAG_KEEP_UNUSED_ROWS) != 0;
  out->add_to_y = (in.flags & GGM_FLAG_ADD_TO_Y) != 0;
  out->add_to_dx = (in.flags & GGM_FLAG_ADD_TO_DX) != 0;
  out->add_to_d_weight = (in.flags & GGM_FLAG_ADD_TO_DWEIGHT) != 0;
  out->add_to_d_bias = (in.flags & GGM_FLAG_ADD_TO_DBIAS) != 0;
  GGM_TRY(resolve_routing(in, out));
  out->sm_limit = in.sm_limit;
  GGM_TRY(check::size("in_features", in.in_features, GGM_MAX_ROWS));
  GGM_TRY(check::size("out_features", in.out_features, GGM_MAX_ROWS));
  out->in_features = in.in_features;
  out->out_features = in.out_features;
  GGM_TRY(resolve_forward_types(in, out));
  GGM_TRY(resolve_routing_weights(in.routing_weight_type, in.routing_weights_ld, out->x_type, out->routing,
                                  &out->routing_weight_type, &out->routing_weights_ld));
  GGM_TRY(resolve_gradient_types(kind, in, out));
  GGM_TRY(check::compute_type(in.compute_type));
  GGM_TRY(check::enumeration("weight_order", in.weight_order, GGM_ORDER_KN, true));
  out->weight_order = static_cast<Order>(in.weight_order);
  GGM_TRY(check::enumeration("input_rows", in.input_rows, GGM_ROWS_GROUPED));
  GGM_TRY(check::enumeration("output_rows", in.output_rows, GGM_ROWS_GROUPED));
  GGM_TRY(check::enumeration("combine", in.combine, GGM_COMBINE_TWO_STEP));
  out->input_grouped = in.input_rows == GGM_ROWS_GROUPED;
  out->output_grouped = in.output_rows == GGM_ROWS_GROUPED;
  out->combine = in.combine;
  return resolve_strides(kind, in, out);
}

}  // namespace ggm
