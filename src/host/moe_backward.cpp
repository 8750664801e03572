// The gradients, each on its own: one product dy W for dx and the routing weights, one over the rows of each expert for the
// weights, one sum of rows for the bias.
#include <algorithm>

#include "host/backend.h"
#include "host/moe.h"

namespace ggm::host {
namespace {

struct BackwardCall {
  const Engine& engine;
  const MoeProblem& problem;
  const MoeBackwardPlan& plan;
  const ggm_moe_backward_tensors_t& tensors;
  void* workspace;
  const Rows& rows;

  std::int64_t first_row(std::int64_t e) const { return rows.group_offsets[e]; }
  std::int64_t row_count(std::int64_t e) const { return rows.group_offsets[e + 1] - rows.group_offsets[e]; }
  bool any_valid_row(std::int64_t e) const {
    for (std::int64_t r = first_row(e); r < rows.group_offsets[e + 1]; ++r)
      if (rows.row_token[r] >= 0) return true;
    return false;
  }
};

// Products dy @ W: dx, and the partial inner products with x.
template <typename T>
void run_dx(const BackwardCall& c) {
  const MoeProblem& problem = c.problem;
  RowProduct p = row_product(problem, c.plan.multiprocessors, c.plan.host_scratch.at<void>(c.workspace));
  p.n = problem.in_features;
  p.k = problem.out_features;
  p.a = c.tensors.dy;
  p.a_type = problem.dy_type;
  p.a_ld = problem.dy_ld;
  p.a_grouped = problem.output_grouped;
  p.b = c.tensors.weight;
  p.b_order = problem.weight_order == Order::inner_contiguous ? Order::inner_strided : Order::inner_contiguous;
  p.dots = c.plan.dots.at<void>(c.workspace);
  p.x = c.tensors.x;
  p.x_type = problem.x_type;
  p.x_ld = problem.x_ld;
  p.x_grouped = problem.input_grouped;
  const bool wanted = problem.wants(GGM_GRADIENT_X);
  const CombinedOutput dx{.data = c.tensors.dx,
                          .type = problem.dx_type,
                          .product_type = problem.backward_product_type,
                          .ld = problem.dx_ld,
                          .grouped = problem.input_grouped,
                          .ordered = c.plan.combine.ordered,
                          .add = problem.add_to_dx,
                          .keep_unused = problem.keep_unused_rows,
                          .products = c.plan.combine.products.at<void>(c.workspace),
                          .sums = c.plan.combine.sums.at<void>(c.workspace)};
  if (wanted) set_output(dx, &p);
  run_row_product<T>(c.engine, c.rows, p);
  if (wanted) combine_products<T>(c.engine, c.rows, dx, p);
}

// d_routing_weights of each row: its partial sums in ascending order, then <dy, bias>.
template <typename T>
void run_d_routing_weights(const BackwardCall& c) {
  const MoeProblem& problem = c.problem;
  float* out = c.tensors.d_routing_weights;
  if (problem.routing.assignments > 0) std::memset(out, 0, problem.routing.assignments * sizeof(float));
  const std::int64_t blocks = ceil_div(problem.in_features, kDotColumns);
  const T* dots = c.plan.dots.at<T>(c.workspace);
  const std::int32_t* offsets = c.rows.group_offsets;
  const std::int64_t begin_row = offsets[0], count = offsets[problem.routing.experts] - begin_row;
  const bool biased = problem.bias_type != Type::none;
  const int threads = threads_for(work_of(count, blocks + (biased ? problem.out_features : 0)), c.plan.multiprocessors);
  c.engine.pool.for_ranges(threads, count, 64, [&](std::int64_t begin, std::int64_t end, int) {
    std::int64_t e = std::upper_bound(offsets, offsets + problem.routing.experts, begin_row + begin) - offsets - 1;
    for (std::int64_t r = begin_row + begin; r < begin_row + end; ++r) {
      while (offsets[e + 1] <= r) ++e;
      const std::int64_t token = c.rows.row_token[r];
      if (token < 0) continue;
      T sum = 0;
      for (std::int64_t b = 0; b < blocks; ++b) sum = b == 0 ? dots[r * blocks] : sum + dots[r * blocks + b];
      if (biased) {
        const Vector dy{c.tensors.dy, problem.dy_type, (problem.output_grouped ? r : token) * problem.dy_ld};
        const Vector bias{c.tensors.bias, problem.bias_type, e * problem.bias_stride};
        sum = sum + inner_product<T>(c.engine.family, dy, bias, problem.out_features);
      }
      out[c.rows.row_assignment[r]] = static_cast<float>(sum);
    }
  });
}

// Weight gradients as products over the rows of each expert: the rows of dy, weighted and rounded to their type, times those of
// x.
struct WeightGradientWalk {
  const BackwardCall& c;
  std::int64_t expert = 0;

  bool next(Product* product) {
    const MoeProblem& problem = c.problem;
    if (expert == problem.routing.experts) return false;
    const std::int64_t e = expert++;
    *product = Product{};
    const bool valid = c.any_valid_row(e);
    if (!valid && problem.add_to_d_weight) return true;  // untouched: an empty product
    Operand dy, x;
    if (valid) {
      product->k = c.row_count(e);
      dy = operand(c.tensors.dy, problem.dy_type, problem.dy_ld, problem.output_grouped, c.first_row(e));
      x = operand(c.tensors.x, problem.x_type, problem.x_ld, problem.input_grouped, c.first_row(e));
      if (c.rows.row_weight != nullptr)
        dy.scale = static_cast<const char*>(c.rows.row_weight) + c.first_row(e) * bytes_of(accumulator_of(problem.x_type));
    }
    const bool nk = problem.weight_order == Order::inner_contiguous;
    product->a = nk ? dy : x;
    product->b = nk ? x : dy;
    product->m = nk ? problem.out_features : problem.in_features;
    product->n = nk ? problem.in_features : problem.out_features;
    if (product->m == 0 || product->n == 0) return true;
    product->c = product->d = element(c.tensors.d_weight, problem.d_weight_type, e * problem.d_weight_stride);
    product->ldc = product->ldd = problem.d_weight_ld;
    return true;
  }

 private:
  Operand operand(const void* base, Type type, std::int64_t ld, bool grouped, std::int64_t first) const {
    Operand x;
    if (base == nullptr) return x;  // a tensor without columns
    x = row_operand(c.rows, base, type, ld, grouped, first);
    x.order = Order::inner_strided;
    return x;
  }
};

template <typename T>
void run_d_weight(const BackwardCall& c) {
  const Type type = c.problem.d_weight_type;
  run_products<T>(c.engine, c.plan.multiprocessors, c.plan.host_scratch.at<void>(c.workspace), WeightGradientWalk{c},
                  StoreEpilogue{1, c.problem.add_to_d_weight ? 1.0 : 0.0, type, type});
}

// d_bias of one expert, columns j0 .. j0 + n - 1: rows ascending.
template <typename T>
void sum_bias(const BackwardCall& c, std::int64_t e, std::int64_t j0, std::int64_t n) {
  const MoeProblem& problem = c.problem;
  const Family& family = c.engine.family;
  const T* weights = c.rows.weights<T>();
  T sum[kRun] = {}, buffer[kRun];
  bool any = false;
  for (std::int64_t r = c.first_row(e); r < c.rows.group_offsets[e + 1]; ++r) {
    const std::int64_t token = c.rows.row_token[r];
    if (token < 0) continue;
    any = true;
    const std::int64_t dy_row = problem.output_grouped ? r : token;
    const T* dy = view(family, problem.dy_type, c.tensors.dy, dy_row * problem.dy_ld + j0, n, buffer);
    if (weights != nullptr) {
      for (std::int64_t j = 0; j < n; ++j) buffer[j] = weights[r] * dy[j];
      round_to(family, problem.x_type, n, buffer);
      dy = buffer;
    }
    for (std::int64_t j = 0; j < n; ++j) sum[j] = sum[j] + dy[j];
  }
  const std::int64_t at = e * problem.d_bias_stride + j0;
  if (problem.add_to_d_bias) {
    if (!any) return;
    const T* old = view(family, problem.d_bias_type, c.tensors.d_bias, at, n, buffer);
    for (std::int64_t j = 0; j < n; ++j) sum[j] = old[j] + sum[j];
  }
  store(family, problem.d_bias_type, c.tensors.d_bias, at, n, sum);
}

template <typename T>
void run_d_bias(const BackwardCall& c) {
  const std::int64_t n = c.problem.out_features, experts = c.problem.routing.experts;
  const std::int64_t blocks = ceil_div(n, kRun);
  const int threads = threads_for(work_of(c.problem.routing.max_rows + experts, n), c.plan.multiprocessors);
  c.engine.pool.for_ranges(threads, experts * blocks, 1, [&](std::int64_t piece, std::int64_t, int) {
    const std::int64_t j0 = piece % blocks * kRun;
    sum_bias<T>(c, piece / blocks, j0, min64(n - j0, kRun));
  });
}

template <typename T>
void run_backward(const Engine& engine, const MoeProblem& problem, const MoeBackwardPlan& plan,
                  const ggm_moe_backward_tensors_t& tensors, void* workspace) {
  const Rows rows = make_moe_rows(engine, problem, plan.rows, plan.scratch, tensors, workspace);
  const BackwardCall call{engine, problem, plan, tensors, workspace, rows};
  const bool dw = problem.wants(GGM_GRADIENT_ROUTING_WEIGHTS);
  if (problem.wants(GGM_GRADIENT_X) || dw) run_dx<T>(call);
  if (dw) run_d_routing_weights<T>(call);
  if (problem.wants(GGM_GRADIENT_WEIGHT)) run_d_weight<T>(call);
  if (problem.wants(GGM_GRADIENT_BIAS)) run_d_bias<T>(call);
}

}  // namespace

ggm_status_t HostBackend::moe_backward(const MoeProblem& problem, const MoeBackwardPlan& plan,
                                       const ggm_moe_backward_tensors_t& tensors, void* workspace, ggm_stream_t) {
  if (problem.x_type == Type::float64)
    run_backward<double>(engine_, problem, plan, tensors, workspace);
  else
    run_backward<float>(engine_, problem, plan, tensors, workspace);
  return GGM_STATUS_SUCCESS;
}

}  // namespace ggm::host
