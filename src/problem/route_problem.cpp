// Sizes of a routing, and the problems of the permutations.
#include "problem/route_problem.h"

#include "problem/check.h"

namespace ggm {

ggm_status_t make_routing_sizes(const RoutingSizes& in, RouteProblem* out) {
  GGM_TRY(check::at_least("tokens", in.tokens, 0));
  GGM_TRY(check::at_least("top_k", in.top_k, 1));
  if (in.top_k > GGM_MAX_TOP_K)
    return fail(GGM_STATUS_LIMIT_EXCEEDED, "top_k = %lld; this version's limit is %d", static_cast<long long>(in.top_k),
                GGM_MAX_TOP_K);
  GGM_TRY(check::at_least("experts", in.experts, 1));
  if (in.experts > GGM_MAX_EXPERTS)
    return fail(GGM_STATUS_LIMIT_EXCEEDED, "experts = %lld; this version's limit is %d", static_cast<long long>(in.experts),
                GGM_MAX_EXPERTS);
  const Checked assignments = Checked(in.tokens) * Checked(in.top_k);
  if (assignments.overflow)
    return fail(GGM_STATUS_OVERFLOW, "tokens * top_k = %lld * %lld exceeds 64 bits", static_cast<long long>(in.tokens),
                static_cast<long long>(in.top_k));
  if (assignments.value > GGM_MAX_ROWS)
    return fail(GGM_STATUS_LIMIT_EXCEEDED, "tokens * top_k = %lld * %lld = %lld; this version's limit is %d",
                static_cast<long long>(in.tokens), static_cast<long long>(in.top_k), static_cast<long long>(assignments.value),
                GGM_MAX_ROWS);
  GGM_TRY(check::at_least("max_rows", in.max_rows, 0));
  GGM_TRY(check::at_least("sm_limit", in.sm_limit, 0));
  *out = RouteProblem{};
  out->tokens = in.tokens;
  out->top_k = in.top_k;
  out->experts = in.experts;
  out->experts_total = in.experts;
  out->assignments = assignments.value;
  out->max_rows = in.max_rows == 0 ? assignments.value : min64(in.max_rows, assignments.value);
  out->ids_ld = in.top_k;
  out->sm_limit = in.sm_limit;
  return GGM_STATUS_SUCCESS;
}

ggm_status_t resolve_ids(std::int64_t experts_total, std::int64_t first_expert, std::int64_t ids_ld, std::int32_t id_type,
                         RouteProblem* problem) {
  GGM_TRY(check::index_type("id_type", id_type, true, &problem->id_type));
  GGM_TRY(check::range("first_expert", first_expert, 0, GGM_MAX_ROWS));
  GGM_TRY(check::range("experts_total", experts_total, 0, GGM_MAX_ROWS));
  problem->first_expert = first_expert;
  problem->experts_total = experts_total == 0 ? first_expert + problem->experts : experts_total;
  if (problem->experts_total > GGM_MAX_ROWS)
    return fail(GGM_STATUS_INVALID_VALUE, "first_expert + experts = %lld + %lld; must be at most %d",
                static_cast<long long>(first_expert), static_cast<long long>(problem->experts), GGM_MAX_ROWS);
  if (first_expert + problem->experts > problem->experts_total)
    return fail(GGM_STATUS_INVALID_VALUE, "first_expert + experts = %lld + %lld; must be at most experts_total = %lld",
                static_cast<long long>(first_expert), static_cast<long long>(problem->experts),
                static_cast<long long>(problem->experts_total));
  GGM_TRY(check::leading_dimension("ids_ld", ids_ld, problem->top_k, &problem->ids_ld));
  return check::extent("ids", 1, 0, problem->tokens, problem->ids_ld, problem->top_k, bytes_of(problem->id_type));
}

ggm_status_t resolve_routing_weights(std::int32_t type, std::int64_t ld, Type data_type, const RouteProblem& routing,
                                     Type* out_type, std::int64_t* out_ld) {
  GGM_TRY(check::type("routing_weight_type", type, false, out_type));
  if (*out_type == Type::none)
    GGM_TRY(check::unused("routing_weights_ld", ld, "there are no routing weights (routing_weight_type is 0)"));
  if ((*out_type == Type::float64) != (data_type == Type::float64) && *out_type != Type::none)
    return check::unsupported("routing_weight_type", *out_type,
                              "float64 tensors take float64 weights, and others take none of them");
  GGM_TRY(check::leading_dimension("routing_weights_ld", ld, routing.top_k, out_ld));
  return check::extent("routing_weights", 1, 0, routing.tokens, *out_ld, routing.top_k, bytes_of(*out_type));
}

ggm_status_t make_problem(const ggm_route_problem_t& in, RouteProblem* out) {
  GGM_TRY(check::flags("flags", in.flags, 0));
  GGM_TRY(make_routing_sizes({in.tokens, in.top_k, in.experts, in.max_rows, in.sm_limit}, out));
  return resolve_ids(in.experts_total, in.first_expert, in.ids_ld, in.id_type, out);
}

ggm_status_t make_problem(PermuteKind kind, const ggm_permute_problem_t& in, PermuteProblem* out) {
  *out = PermuteProblem{};
  const bool unpermute = kind == PermuteKind::unpermute;
  GGM_TRY(check::flags("flags", in.flags, GGM_FLAG_KEEP_UNUSED_ROWS | (unpermute ? GGM_FLAG_ADD_TO_Y : 0)));
  GGM_TRY(make_routing_sizes({in.tokens, in.top_k, in.experts, in.max_rows, in.sm_limit}, &out->routing));
  out->sm_limit = in.sm_limit;
  out->keep_unused_rows = (in.flags & GGM_FLAG_KEEP_UNUSED_ROWS) != 0;
  out->add_to_output = (in.flags & GGM_FLAG_ADD_TO_Y) != 0;
  GGM_TRY(check::size("features", in.features, GGM_MAX_ROWS));
  out->features = in.features;
  GGM_TRY(check::type("token_type", in.token_type, true, &out->token_type));
  GGM_TRY(check::type("row_type", in.row_type, false, &out->row_type));
  if (out->row_type == Type::none) out->row_type = out->token_type;
  if ((out->row_type == Type::float64) != (out->token_type == Type::float64))
    return check::unsupported("row_type", out->row_type, "float64 rows go with float64 tokens and with them alone");
  GGM_TRY(check::leading_dimension("token_ld", in.token_ld, in.features, &out->token_ld));
  GGM_TRY(check::leading_dimension("row_ld", in.row_ld, in.features, &out->row_ld));
  if (kind == PermuteKind::permute) {
    GGM_TRY(check::enumeration("routing_weight_type", in.routing_weight_type, GGM_TYPE_FLOAT64));
    GGM_TRY(check::unused("routing_weight_type", in.routing_weight_type, "ggm_permute takes no routing weights"));
  }
  GGM_TRY(resolve_routing_weights(in.routing_weight_type, in.routing_weights_ld, out->token_type, out->routing,
                                  &out->routing_weight_type, &out->routing_weights_ld));
  GGM_TRY(check::extent("tokens", 1, 0, in.tokens, out->token_ld, in.features, bytes_of(out->token_type)));
  return check::extent("rows", 1, 0, out->routing.max_rows, out->row_ld, in.features, bytes_of(out->row_type));
}

}  // namespace ggm
