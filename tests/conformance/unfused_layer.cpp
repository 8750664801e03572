// A layer step by step, by the operations of their own: what the fused ones must equal bit for bit.
#include "conformance/layer.h"
#include "support/reference_gemm.h"

namespace ggm_test {
namespace {

using Index = std::int64_t;

// Makes the result of one step the input of the next.
void keep(Tensor* tensor) {
  const std::vector<std::uint64_t> bits = tensor->all_bits();
  const Shape& s = tensor->shape();
  for (Index b = 0, i = 0; b < s.batches; ++b)
    for (Index r = 0; r < s.rows; ++r)
      for (Index c = 0; c < s.columns; ++c, ++i) tensor->set_bits(b, r, c, bits[static_cast<std::size_t>(i)]);
}

// The operations on the sorted rows of one routing.
class Steps {
 public:
  Steps(Scene* scene, const ggm_moe_problem_t& layer, const ggm_moe_forward_tensors_t& tensors)
      : scene_(*scene),
        layer_(layer),
        routing_weights_(tensors.routing_weights),
        offsets_(scene->output("group_offsets", kInt32, {1, 1, layer.experts + 1})),
        assignments_(scene->output("row_assignment", kInt32, {1, 1, row_count()})),
        rows_(scene->output("assignment_row", kInt32, {1, 1, row_count()})) {
    ggm_route_problem_t p = GGM_ROUTE_PROBLEM_INIT;
    p.tokens = layer.tokens;
    p.top_k = layer.top_k;
    p.experts = layer.experts;
    p.id_type = layer.id_type;
    ggm_route_tensors_t t = GGM_ROUTE_TENSORS_INIT;
    t.ids = tensors.ids;
    t.group_offsets = static_cast<std::int32_t*>(offsets_.data());
    t.row_assignment = static_cast<std::int32_t*>(assignments_.data());
    t.assignment_row = static_cast<std::int32_t*>(rows_.data());
    scene_.run(op::route, p, t);
    for (Tensor* made : {&offsets_, &assignments_, &rows_}) keep(made);
  }

  Index row_count() const { return layer_.tokens * layer_.top_k; }
  Index row_of(Index assignment) const { return rows_.integer(assignment); }

  // Rows of tokens in sorted order.
  Tensor& gather(const Tensor& from, const char* name) {
    Tensor& to = scene_.output(name, from.type(), {1, row_count(), from.shape().columns});
    ggm_permute_problem_t p = permute_problem(from.shape().columns, from.type(), to.type());
    p.routing_weight_type = 0;
    run_permute(op::permute, p, nullptr, from, &to);
    return to;
  }

  // The weighted sum of each token's rows.
  Tensor& scatter(const Tensor& from, const char* name, std::int32_t type) {
    Tensor& to = scene_.output(name, type, {1, layer_.tokens, from.shape().columns});
    run_permute(op::unpermute, permute_problem(from.shape().columns, type, from.type()), routing_weights_, from, &to);
    return to;
  }

  // round(w * dy) in sorted order.
  Tensor& weigh(const Tensor& dy, const char* name) {
    Tensor& to = scene_.output(name, dy.type(), {1, row_count(), dy.shape().columns});
    ggm_unpermute_backward_tensors_t t = GGM_UNPERMUTE_BACKWARD_TENSORS_INIT;
    set_routing(&t);
    t.routing_weights = routing_weights_;
    t.dy = dy.data();
    t.d_rows = to.data();
    scene_.run(op::unpermute_backward, permute_problem(dy.shape().columns, dy.type(), to.type()), t);
    keep(&to);
    return to;
  }

  // Rows times the matrix of their expert.
  Tensor& multiply(const Tensor& a, const Tensor& b, std::int32_t b_order, std::int32_t type, const char* name) {
    const Index n = b_order == GGM_ORDER_NK ? b.shape().rows : b.shape().columns;
    ggm_grouped_gemm_problem_t p = GGM_GROUPED_GEMM_PROBLEM_INIT;
    p.m = row_count();
    p.n = n;
    p.k = a.shape().columns;
    p.b_order = b_order;
    return run_gemm(p, a, b, scene_.output(name, type, {1, row_count(), n}));
  }

  // The product over the rows of each expert.
  Tensor& multiply_over_rows(const Tensor& a, const Tensor& b, std::int32_t type, const char* name) {
    ggm_grouped_gemm_problem_t p = GGM_GROUPED_GEMM_PROBLEM_INIT;
    p.layout = GGM_LAYOUT_VARIABLE_K;
    p.m = a.shape().columns;
    p.n = b.shape().columns;
    p.k = row_count();
    return run_gemm(p, a, b, scene_.output(name, type, {layer_.experts, p.m, p.n}));
  }

 private:
  ggm_permute_problem_t permute_problem(Index features, std::int32_t token_type, std::int32_t row_type) const {
    ggm_permute_problem_t p = GGM_PERMUTE_PROBLEM_INIT;
    p.tokens = layer_.tokens;
    p.top_k = layer_.top_k;
    p.experts = layer_.experts;
    p.features = features;
    p.token_type = token_type;
    p.row_type = row_type;
    p.routing_weight_type = layer_.routing_weight_type;
    return p;
  }

  template <typename Tensors>
  void set_routing(Tensors* t) const {
    t->group_offsets = static_cast<const std::int32_t*>(offsets_.data());
    t->row_assignment = static_cast<const std::int32_t*>(assignments_.data());
    t->assignment_row = static_cast<const std::int32_t*>(rows_.data());
  }

  template <typename Operation>
  void run_permute(const Operation& operation, const ggm_permute_problem_t& p, const void* weights, const Tensor& from,
                   Tensor* to) {
    ggm_permute_tensors_t t = GGM_PERMUTE_TENSORS_INIT;
    set_routing(&t);
    t.routing_weights = weights;
    t.input = from.data();
    t.output = to->data();
    scene_.run(operation, p, t);
    keep(to);
  }

  Tensor& run_gemm(ggm_grouped_gemm_problem_t p, const Tensor& a, const Tensor& b, Tensor& d) {
    p.group_form = GGM_GROUPS_OFFSETS;
    p.groups = layer_.experts;
    p.a_type = p.b_type = a.type();
    p.d_type = d.type();
    ggm_grouped_gemm_tensors_t t = GGM_GROUPED_GEMM_TENSORS_INIT;
    t.group_offsets = offsets_.data();
    t.a = a.data();
    t.b = b.data();
    t.d = d.data();
    scene_.run(op::grouped_gemm, p, t);
    keep(&d);
    return d;
  }

  Scene& scene_;
  const ggm_moe_problem_t& layer_;
  const void* routing_weights_;
  Tensor &offsets_, &assignments_, &rows_;
};

// The routing gradient has no operation of its own for unrounded q: its documented order of partial sums, done here.
std::vector<std::uint64_t> routing_gradient(const Steps& steps, const Tensor& q, const Tensor& x_rows) {
  const Index features = x_rows.shape().columns;
  const std::vector<double> q_values = q.values(), x_values = x_rows.values();
  std::vector<std::uint64_t> out(static_cast<std::size_t>(steps.row_count()), 0);
  for (Index a = 0; a < steps.row_count(); ++a) {
    if (steps.row_of(a) < 0) continue;
    const Index first = steps.row_of(a) * features;
    const double sum =
        blocked_dot(q_values.data() + first, x_values.data() + first, features, x_rows.type() == GGM_TYPE_FLOAT64);
    out[static_cast<std::size_t>(a)] = encode(GGM_TYPE_FLOAT32, sum);
  }
  return out;
}

}  // namespace

Layer::Unfused Layer::unfused() {
  const bool nk = spec_.order == GGM_ORDER_NK;
  const std::int32_t result = spec_.y_type(), product = spec_.product_type();
  Unfused out;
  Steps steps(&scene_, problem_, forward_);
  Tensor& x_rows = steps.gather(*x_, "x rows");
  Tensor& products = steps.multiply(x_rows, *weight_, spec_.order, product, "products");
  out.y = steps.scatter(products, "unfused y", result).all_bits();
  if (!dy_) return out;

  Tensor& dy_rows = steps.gather(*dy_, "dy rows");
  const std::int32_t turned = nk ? GGM_ORDER_KN : GGM_ORDER_NK;
  const Tensor& q = steps.multiply(dy_rows, *weight_, turned, spec_.accumulator_type(), "q");
  const Tensor& rounded = steps.multiply(dy_rows, *weight_, turned, product, "rounded q");
  out.dx = steps.scatter(rounded, "unfused dx", result).all_bits();
  const Tensor& weighted = steps.weigh(*dy_, "w*dy rows");
  out.d_weight = (nk ? steps.multiply_over_rows(weighted, x_rows, result, "unfused d_weight")
                     : steps.multiply_over_rows(x_rows, weighted, result, "unfused d_weight"))
                     .all_bits();
  out.d_routing_weights = routing_gradient(steps, q, x_rows);
  return out;
}

}  // namespace ggm_test
