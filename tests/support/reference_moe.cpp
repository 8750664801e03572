#include "support/reference_moe.h"

#include <algorithm>

namespace ggm_test {
namespace {

using Index = std::int64_t;

std::size_t at(Index i) { return static_cast<std::size_t>(i); }

// Arithmetic of one problem: float32 with the roundings of the contract, or float64 without any.
struct Arithmetic {
  bool wide;  // float64 problem, or Rounding::none
  bool exact;

  Arithmetic(Rounding rounding, std::int32_t type)
      : wide(rounding == Rounding::none || type == GGM_TYPE_FLOAT64), exact(rounding == Rounding::none) {}
  double narrow(double v) const { return wide ? v : f32(v); }
  double store(std::int32_t type, double v) const { return exact ? v : round_to(type, narrow(v)); }
};

// The rows of each token, ascending.
std::vector<std::vector<Index>> rows_of_tokens(const Routing& routing, Index tokens, Index top_k) {
  std::vector<std::vector<Index>> rows(at(tokens));
  for (std::size_t r = 0; r < routing.row_assignment.size(); ++r)
    if (routing.row_assignment[r] >= 0) rows[at(routing.row_assignment[r] / top_k)].push_back(static_cast<Index>(r));
  return rows;
}

// out[t] = sum over the rows of t of w * p[r], n columns: shared by unpermute, y and dx.
struct Combine {
  const Routing& routing;
  const std::vector<double>& weights;  // empty: none
  Index tokens, top_k, num_tokens, columns;
  std::int32_t type;
  bool add, keep;
  Arithmetic math;

  void run(const std::vector<double>& products, std::vector<double>* out) const {
    const std::vector<std::vector<Index>> rows = rows_of_tokens(routing, tokens, top_k);
    for (Index t = 0; t < tokens; ++t)
      for (Index c = 0; c < columns; ++c) {
        double& element = (*out)[at(t * columns + c)];
        if (t >= num_tokens) {
          if (!keep) element = 0;
          continue;
        }
        bool first = !add;
        double sum = add ? element : 0.0;
        for (Index r : rows[at(t)]) {
          double term = products[at(r * columns + c)];
          if (!weights.empty()) term = math.narrow(weights[at(routing.row_assignment[at(r)])] * term);
          sum = first ? term : math.narrow(sum + term);
          first = false;
        }
        element = math.store(type, sum);
      }
  }
};

void clear_unused_rows(const Routing& routing, Index columns, std::vector<double>* rows) {
  for (std::size_t r = 0; r < routing.row_assignment.size(); ++r)
    if (routing.row_assignment[r] < 0) std::fill_n(rows->begin() + static_cast<Index>(r) * columns, columns, 0.0);
}

}  // namespace

std::vector<double> permute_reference(const PermuteInput& in) {
  const ggm_permute_problem_t& p = in.problem;
  std::vector<double> out = in.rows;
  if (!(p.flags & GGM_FLAG_KEEP_UNUSED_ROWS)) clear_unused_rows(in.routing, p.features, &out);
  for (std::size_t r = 0; r < in.routing.row_assignment.size(); ++r) {
    const Index a = in.routing.row_assignment[r];
    for (Index c = 0; a >= 0 && c < p.features; ++c)
      out[r * at(p.features) + at(c)] =
          round_to(p.row_type ? p.row_type : p.token_type, in.tokens[at(a / p.top_k * p.features + c)]);
  }
  return out;
}

std::vector<double> unpermute_reference(const PermuteInput& in, Rounding rounding) {
  const ggm_permute_problem_t& p = in.problem;
  std::vector<double> out = in.tokens;
  Combine{in.routing,
          in.weights,
          p.tokens,
          p.top_k,
          in.num_tokens,
          p.features,
          p.token_type,
          (p.flags & GGM_FLAG_ADD_TO_Y) != 0,
          (p.flags & GGM_FLAG_KEEP_UNUSED_ROWS) != 0,
          Arithmetic(rounding, p.token_type)}
      .run(in.rows, &out);
  return out;
}

UnpermuteBackward unpermute_backward_reference(const PermuteInput& in, const std::vector<double>& d_rows) {
  const ggm_permute_problem_t& p = in.problem;
  const Arithmetic math(Rounding::contract, p.token_type);
  UnpermuteBackward out{d_rows, std::vector<double>(at(p.tokens * p.top_k), 0.0)};
  if (!(p.flags & GGM_FLAG_KEEP_UNUSED_ROWS) && !d_rows.empty()) clear_unused_rows(in.routing, p.features, &out.d_rows);
  for (std::size_t r = 0; r < in.routing.row_assignment.size(); ++r) {
    const Index a = in.routing.row_assignment[r];
    if (a < 0) continue;
    const double* dy = in.tokens.data() + a / p.top_k * p.features;
    for (Index c = 0; !d_rows.empty() && c < p.features; ++c)
      out.d_rows[r * at(p.features) + at(c)] =
          math.store(p.row_type ? p.row_type : p.token_type, in.weights.empty() ? dy[c] : in.weights[at(a)] * dy[c]);
    if (!in.rows.empty())
      out.d_weights[at(a)] = f32(blocked_dot(dy, in.rows.data() + static_cast<Index>(r) * p.features, p.features, math.wide));
  }
  return out;
}

namespace {

// What both directions read of a problem.
struct Moe {
  const MoeInput& in;
  const ggm_moe_problem_t& p;
  Arithmetic math;
  Index K, N, rows;

  Moe(const MoeInput& input, Rounding rounding)
      : in(input),
        p(input.problem),
        math(rounding, p.x_type),
        K(p.in_features),
        N(p.out_features),
        rows(static_cast<Index>(input.routing.row_assignment.size())) {}

  Index token(Index r) const { return in.routing.row_assignment[at(r)] / p.top_k; }
  bool used(Index r) const { return in.routing.row_assignment[at(r)] >= 0; }
  const double* x(Index r) const { return in.x.data() + (p.input_rows == GGM_ROWS_GROUPED ? r : token(r)) * K; }
  const double* dy(Index r) const { return in.dy.data() + (p.output_rows == GGM_ROWS_GROUPED ? r : token(r)) * N; }
  const double* weight(Index e) const { return in.weight.data() + (p.weight_stride == GGM_STRIDE_SHARED ? 0 : e * N * K); }
  const double* bias(Index e) const { return in.bias.data() + (p.bias_stride == GGM_STRIDE_SHARED ? 0 : e * N); }
  double factor(Index r) const {
    return in.routing_weights.empty() ? 1.0 : in.routing_weights[at(in.routing.row_assignment[at(r)])];
  }
  double weighted(Index r, double v) const { return in.routing_weights.empty() ? v : math.narrow(factor(r) * v); }

  // [rows, columns]: each used row's left operand times the weight of its expert; `left` gives a row of `inner` elements.
  template <typename Left>
  std::vector<double> product_rows(Left left, Index inner, Index columns, std::int32_t order) const {
    std::vector<double> out(at(rows * columns), 0.0), gathered;
    for (Index e = 0; e < p.experts; ++e) {
      const Index begin = in.routing.group_offsets[at(e)], end = in.routing.group_offsets[at(e + 1)];
      gathered.assign(at((end - begin) * inner), 0.0);
      for (Index r = begin; r < end; ++r)
        if (used(r)) std::copy_n(left(r), inner, gathered.begin() + (r - begin) * inner);
      const std::vector<double> part = product(end - begin, columns, inner, gathered.data(), GGM_ORDER_MK, weight(e), order);
      std::copy(part.begin(), part.end(), out.begin() + begin * columns);
    }
    return out;
  }

  Index expert(Index r) const {
    Index e = 0;
    while (in.routing.group_offsets[at(e + 1)] <= r) ++e;
    return e;
  }
};

void rows_or_tokens(const Moe& moe, bool grouped, Index columns, std::int32_t type, std::int32_t add_flag,
                    const std::vector<double>& products, std::vector<double>* out) {
  const bool add = (moe.p.flags & static_cast<std::uint32_t>(add_flag)) != 0,
             keep = (moe.p.flags & GGM_FLAG_KEEP_UNUSED_ROWS) != 0;
  if (!grouped) {
    Combine{moe.in.routing, moe.in.routing_weights, moe.p.tokens, moe.p.top_k, moe.in.num_tokens, columns, type, add, keep,
            moe.math}
        .run(products, out);
    return;
  }
  if (!keep) clear_unused_rows(moe.in.routing, columns, out);
  for (Index r = 0; r < moe.rows; ++r)
    for (Index c = 0; moe.used(r) && c < columns; ++c) {
      double& element = (*out)[at(r * columns + c)];
      const double value = moe.weighted(r, products[at(r * columns + c)]);
      element = moe.math.store(type, add ? moe.math.narrow(element + value) : value);
    }
}

// d_weight and d_bias of one expert; terms are round(w * dy) of its rows.
void expert_gradients(const Moe& moe, Index e, bool round_terms, MoeGradients* out) {
  const ggm_moe_problem_t& p = moe.p;
  const Index begin = moe.in.routing.group_offsets[at(e)], end = moe.in.routing.group_offsets[at(e + 1)];
  std::vector<double> terms, inputs;
  Index count = 0;
  for (Index r = begin; r < end; ++r) {
    if (!moe.used(r)) continue;
    for (Index n = 0; n < moe.N; ++n) {
      const double term = moe.weighted(r, moe.dy(r)[n]);
      terms.push_back(round_terms ? round_to(p.x_type, p.x_type == GGM_TYPE_FLOAT64 ? term : f32(term)) : term);
    }
    if (!moe.in.x.empty()) inputs.insert(inputs.end(), moe.x(r), moe.x(r) + moe.K);
    ++count;
  }
  const auto finish = [&](std::int32_t type, bool add, double sum, double* element) {
    *element = moe.math.store(type, add ? moe.math.narrow(*element + moe.math.narrow(sum)) : sum);
  };
  const std::int32_t weight_type = p.d_weight_type ? p.d_weight_type : p.weight_type;
  const std::int32_t bias_type = p.d_bias_type ? p.d_bias_type : p.bias_type ? p.bias_type : p.x_type;
  if (p.gradients & GGM_GRADIENT_WEIGHT) {
    const bool nk = p.weight_order == GGM_ORDER_NK, add = (p.flags & GGM_FLAG_ADD_TO_DWEIGHT) != 0;
    const std::vector<double> sums = nk ? product(moe.N, moe.K, count, terms.data(), GGM_ORDER_KM, inputs.data(), GGM_ORDER_KN)
                                        : product(moe.K, moe.N, count, inputs.data(), GGM_ORDER_KM, terms.data(), GGM_ORDER_KN);
    for (std::size_t i = 0; i < sums.size(); ++i)
      if (count > 0 || !add) finish(weight_type, add, sums[i], &out->d_weight[at(e) * sums.size() + i]);
  }
  if (p.gradients & GGM_GRADIENT_BIAS) {
    const bool add = (p.flags & GGM_FLAG_ADD_TO_DBIAS) != 0;
    for (Index n = 0; n < moe.N; ++n) {
      double sum = 0;
      for (Index i = 0; i < count; ++i) sum += terms[at(i * moe.N + n)];
      if (count > 0 || !add) finish(bias_type, add, sum, &out->d_bias[at(e * moe.N + n)]);
    }
  }
}

}  // namespace

std::vector<double> moe_forward_reference(const MoeInput& in, Rounding rounding) {
  const Moe moe(in, rounding);
  const ggm_moe_problem_t& p = in.problem;
  const std::int32_t y_type = p.y_type ? p.y_type : p.x_type, product_type = p.product_type ? p.product_type : y_type;
  std::vector<double> products = moe.product_rows([&](Index r) { return moe.x(r); }, moe.K, moe.N, p.weight_order);
  for (Index e = 0; e < p.experts; ++e)
    for (Index r = in.routing.group_offsets[at(e)]; r < in.routing.group_offsets[at(e + 1)]; ++r)
      for (Index n = 0; n < moe.N; ++n) {
        double& v = products[at(r * moe.N + n)];
        v = moe.math.narrow(v);
        if (!in.bias.empty()) v = moe.math.narrow(v + moe.bias(e)[n]);
        v = moe.math.store(product_type, v);
      }
  std::vector<double> y = in.y;
  rows_or_tokens(moe, p.output_rows == GGM_ROWS_GROUPED, moe.N, y_type, GGM_FLAG_ADD_TO_Y, products, &y);
  return y;
}

MoeGradients moe_backward_reference(const MoeInput& in, Rounding rounding, bool round_d_weight_terms) {
  const Moe moe(in, rounding);
  const ggm_moe_problem_t& p = in.problem;
  MoeGradients out{in.dx, in.d_weight, in.d_bias, {}};
  if (p.gradients & (GGM_GRADIENT_X | GGM_GRADIENT_ROUTING_WEIGHTS)) {
    const std::int32_t turned = p.weight_order == GGM_ORDER_NK ? GGM_ORDER_KN : GGM_ORDER_NK;
    std::vector<double> q = moe.product_rows([&](Index r) { return moe.dy(r); }, moe.N, moe.K, turned);
    for (double& v : q) v = moe.math.narrow(v);
    if (p.gradients & GGM_GRADIENT_ROUTING_WEIGHTS) {
      out.d_routing_weights.assign(at(p.tokens * p.top_k), 0.0);
      for (Index r = 0; r < moe.rows; ++r) {
        if (!moe.used(r)) continue;
        double dot = blocked_dot(q.data() + r * moe.K, moe.x(r), moe.K, moe.math.wide);
        if (!in.bias.empty())
          dot = moe.math.narrow(dot + blocked_dot(moe.dy(r), moe.bias(moe.expert(r)), moe.N, moe.math.wide));
        out.d_routing_weights[at(in.routing.row_assignment[at(r)])] = moe.math.exact ? dot : f32(dot);
      }
    }
    if (p.gradients & GGM_GRADIENT_X) {
      const std::int32_t dx_type = p.dx_type ? p.dx_type : p.x_type;
      const bool grouped = p.input_rows == GGM_ROWS_GROUPED;
      for (double& v : q) v = moe.math.store(p.product_type ? p.product_type : dx_type, v);
      rows_or_tokens(moe, grouped, moe.K, dx_type, GGM_FLAG_ADD_TO_DX, q, &out.dx);
    }
  }
  if (p.gradients & (GGM_GRADIENT_WEIGHT | GGM_GRADIENT_BIAS))
    for (Index e = 0; e < p.experts; ++e)
      expert_gradients(moe, e, rounding == Rounding::contract || round_d_weight_terms, &out);
  return out;
}

}  // namespace ggm_test
