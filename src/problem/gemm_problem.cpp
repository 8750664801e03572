// The bare grouped products.
#include "problem/check.h"
#include "problem/problem.h"

namespace ggm {
namespace {

// The types of both operations. `in` is either ABI struct.
template <typename In, typename Problem>
ggm_status_t resolve_types(const In& in, Problem* out) {
  GGM_TRY(check::type("a_type", in.a_type, true, &out->a_type));
  GGM_TRY(check::type("b_type", in.b_type, true, &out->b_type));
  GGM_TRY(check::type("c_type", in.c_type, false, &out->c_type));
  GGM_TRY(check::type("d_type", in.d_type, false, &out->d_type));
  const Type a = out->a_type;
  if (out->b_type != a)
    return check::unsupported("b_type", out->b_type, "no kernel multiplies two types; it must equal a_type");
  if (out->d_type == Type::none) out->d_type = a;
  const auto allowed = [a](Type t) { return t == a || (is_16bit(a) && t == Type::float32); };
  const char* rule = "it must be a_type, or float32 with 16-bit inputs";
  if (!allowed(out->d_type)) return check::unsupported("d_type", out->d_type, rule);
  if (out->c_type != Type::none && !allowed(out->c_type)) return check::unsupported("c_type", out->c_type, rule);
  if (in.beta != 0 && out->c_type == Type::none)
    return fail(GGM_STATUS_TYPE_MISMATCH, "beta = %g with c_type = 0; beta other than 0 needs c_type and c", in.beta);
  return check::compute_type(in.compute_type);
}

// 0 means int32 here.
ggm_status_t resolve_index_type(std::int32_t value, IndexType* out) {
  GGM_TRY(check::index_type("index_type", value, false, out));
  if (*out == IndexType::none) *out = IndexType::int32;
  return GGM_STATUS_SUCCESS;
}

ggm_status_t resolve_alpha(std::uint32_t flags, double alpha, double* out) {
  if (flags & GGM_FLAG_ALPHA) {
    *out = alpha;
    return GGM_STATUS_SUCCESS;
  }
  if (alpha != 0) return fail(GGM_STATUS_RESERVED_NOT_ZERO, "alpha = %g; must be 0 without GGM_FLAG_ALPHA", alpha);
  *out = 1;
  return GGM_STATUS_SUCCESS;
}

// Shapes as stored: rows and columns of each operand for one group.
struct Shape {
  std::int64_t rows, columns;
};

ggm_status_t resolve_strides(const ggm_grouped_gemm_problem_t& in, GemmProblem* out) {
  const bool variable_k = out->layout == Layout::variable_k;
  const bool masked = out->layout == Layout::masked;
  const bool kn = out->b_order == Order::inner_strided;
  const Shape a = variable_k ? Shape{in.k, in.m} : Shape{in.m, in.k};
  const Shape b = kn ? Shape{in.k, in.n} : Shape{in.n, in.k};
  const Shape d{in.m, in.n};
  GGM_TRY(check::leading_dimension("lda", in.lda, a.columns, &out->lda));
  GGM_TRY(check::leading_dimension("ldb", in.ldb, b.columns, &out->ldb));
  if (out->c_type == Type::none) GGM_TRY(check::unused("ldc", in.ldc, "there is no C (c_type is 0)"));
  GGM_TRY(check::leading_dimension("ldc", in.ldc, d.columns, &out->ldc));
  GGM_TRY(check::leading_dimension("ldd", in.ldd, d.columns, &out->ldd));

  const auto packed = [](Shape s, std::int64_t ld) { return Checked(s.rows) * Checked(ld); };
  if (masked) {
    GGM_TRY(check::stride("stride_a", in.stride_a, packed(a, out->lda), a.columns, check::Shared::yes, &out->stride_a));
  } else {
    GGM_TRY(check::unused("stride_a", in.stride_a, "only the masked layout has groups of A"));
  }
  if (variable_k) {
    GGM_TRY(check::unused("stride_b", in.stride_b, "B of the variable-K layout is one matrix"));
  } else {
    GGM_TRY(check::stride("stride_b", in.stride_b, packed(b, out->ldb), b.columns, check::Shared::yes, &out->stride_b));
  }
  if (out->layout == Layout::contiguous) {
    GGM_TRY(check::unused("stride_c", in.stride_c, "C of the contiguous layout is one matrix"));
    GGM_TRY(check::unused("stride_d", in.stride_d, "D of the contiguous layout is one matrix"));
  } else {
    if (out->c_type == Type::none) GGM_TRY(check::unused("stride_c", in.stride_c, "there is no C (c_type is 0)"));
    GGM_TRY(check::stride("stride_c", in.stride_c, packed(d, out->ldc), d.columns, check::Shared::yes, &out->stride_c));
    GGM_TRY(check::stride("stride_d", in.stride_d, packed(d, out->ldd), d.columns, check::Shared::no, &out->stride_d));
  }
  GGM_TRY(check::extent("a", masked ? in.groups : 1, out->stride_a, a.rows, out->lda, a.columns, bytes_of(out->a_type)));
  GGM_TRY(check::extent("b", variable_k ? 1 : in.groups, out->stride_b, b.rows, out->ldb, b.columns, bytes_of(out->b_type)));
  const std::int64_t d_groups = out->layout == Layout::contiguous ? 1 : in.groups;
  if (out->c_type != Type::none)
    GGM_TRY(check::extent("c", d_groups, out->stride_c, d.rows, out->ldc, d.columns, bytes_of(out->c_type)));
  return check::extent("d", d_groups, out->stride_d, d.rows, out->ldd, d.columns, bytes_of(out->d_type));
}

}  // namespace

ggm_status_t make_problem(const ggm_grouped_gemm_problem_t& in, GemmProblem* out) {
  *out = GemmProblem{};
  GGM_TRY(check::enumeration("layout", in.layout, GGM_LAYOUT_VARIABLE_K));
  out->layout = static_cast<Layout>(in.layout);
  const bool variable_k = out->layout == Layout::variable_k;
  GGM_TRY(check::flags("flags", in.flags, GGM_FLAG_ALPHA | (variable_k ? 0 : GGM_FLAG_KEEP_UNUSED_ROWS)));
  GGM_TRY(check::enumeration("group_form", in.group_form, GGM_GROUPS_ROW_GROUP));
  out->group_form = static_cast<GroupForm>(in.group_form);
  if (out->layout == Layout::masked && out->group_form != GroupForm::sizes)
    return fail(GGM_STATUS_UNSUPPORTED, "group_form = %d; the masked layout takes GGM_GROUPS_SIZES = 0 only", in.group_form);
  GGM_TRY(check::size("groups", in.groups, out->group_form == GroupForm::row_group ? GGM_MAX_EXPERTS : GGM_MAX_GROUPS));
  GGM_TRY(check::size("m", in.m, GGM_MAX_ROWS));
  GGM_TRY(check::size("n", in.n, GGM_MAX_ROWS));
  GGM_TRY(check::size("k", in.k, GGM_MAX_ROWS));
  out->groups = in.groups;
  out->m = in.m;
  out->n = in.n;
  out->k = in.k;
  GGM_TRY(resolve_index_type(in.index_type, &out->index_type));
  if (variable_k) {
    GGM_TRY(check::enumeration("b_order", in.b_order, GGM_ORDER_KN));
    GGM_TRY(check::unused("b_order", in.b_order, "both operands of the variable-K layout are stored by rows"));
    out->b_order = Order::inner_strided;
  } else {
    GGM_TRY(check::enumeration("b_order", in.b_order, GGM_ORDER_KN, true));
    out->b_order = static_cast<Order>(in.b_order);
  }
  GGM_TRY(resolve_types(in, out));
  GGM_TRY(check::at_least("sm_limit", in.sm_limit, 0));
  out->sm_limit = in.sm_limit;
  GGM_TRY(resolve_alpha(in.flags, in.alpha, &out->alpha));
  out->beta = in.beta;
  out->keep_unused_rows = (in.flags & GGM_FLAG_KEEP_UNUSED_ROWS) != 0 || in.beta != 0;
  return resolve_strides(in, out);
}

ggm_status_t make_problem(const ggm_grouped_gemm_array_problem_t& in, GemmArrayProblem* out) {
  *out = GemmArrayProblem{};
  GGM_TRY(check::flags("flags", in.flags, GGM_FLAG_ALPHA));
  GGM_TRY(check::size("groups", in.groups, GGM_MAX_GROUPS));
  GGM_TRY(check::size("max_m", in.max_m, GGM_MAX_ROWS));
  GGM_TRY(check::size("max_n", in.max_n, GGM_MAX_ROWS));
  GGM_TRY(check::size("max_k", in.max_k, GGM_MAX_ROWS));
  out->groups = in.groups;
  out->max_m = in.max_m;
  out->max_n = in.max_n;
  out->max_k = in.max_k;
  GGM_TRY(resolve_index_type(in.index_type, &out->index_type));
  GGM_TRY(check::enumeration("a_order", in.a_order, GGM_ORDER_KM, true));
  GGM_TRY(check::enumeration("b_order", in.b_order, GGM_ORDER_KN, true));
  out->a_order = static_cast<Order>(in.a_order);
  out->b_order = static_cast<Order>(in.b_order);
  GGM_TRY(resolve_types(in, out));
  const int a = in.min_alignment;
  if (a < 0 || a > 256 || (a & (a - 1)) != 0)
    return fail(GGM_STATUS_INVALID_VALUE, "min_alignment = %d; must be 0 or a power of two up to 256", a);
  // Every pointer keeps at least its own element's alignment; the kernels check that per operand.
  out->min_alignment = a;
  GGM_TRY(check::at_least("sm_limit", in.sm_limit, 0));
  out->sm_limit = in.sm_limit;
  GGM_TRY(resolve_alpha(in.flags, in.alpha, &out->alpha));
  out->beta = in.beta;
  return GGM_STATUS_SUCCESS;
}

}  // namespace ggm
