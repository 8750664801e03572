#include "conformance/one_of_each.h"

#include "support/inputs.h"

namespace ggm_test {

OneOfEach::OneOfEach(const Handle& handle, std::int32_t type, const EachSize& size)
    : handle_(handle), type_(type), size_(size), rows_(size.tokens * size.top_k), scene_(handle) {
  RouteInput in;
  in.tokens = size.tokens;
  in.top_k = size.top_k;
  in.experts = size.experts;
  for (Index a = 0; a < rows_; ++a)  // skewed, and -1 here and there
    in.ids.push_back(static_cast<Index>(mix(static_cast<std::uint32_t>(a), a % 3 ? 1 : 2, 3) %
                                        static_cast<std::uint32_t>(a % 3 ? size.experts + 1 : 2)) -
                     1);
  ids_ = in.ids;
  const Routing routing = route_reference(in);
  const auto array = [&](const char* name, const std::vector<Index>& content) {
    return &scene_.input(name, kInt32, {1, 1, static_cast<Index>(content.size())}).assign(content);
  };
  group_offsets_ = array("group_offsets", routing.group_offsets);
  row_assignment_ = array("row_assignment", routing.row_assignment);
  assignment_row_ = array("assignment_row", routing.assignment_row);
  std::vector<Index> sizes;
  for (Index e = 0; e < size.experts; ++e)
    sizes.push_back(routing.group_offsets[array_at(e + 1)] - routing.group_offsets[array_at(e)]);
  group_sizes_ = array("group_sizes", sizes);
  add_route();
  add_permutations();
  add_products();
  add_array();
  for (const ReadyCall& call : calls_) make_once(handle.backend(), call);  // the last run of a scene poisoned earlier outputs
}

Tensor& OneOfEach::random(const char* name, std::int32_t type, Shape shape, std::uint32_t stream) {
  return scene_.input(name, type, shape).fill([=](Index b, Index r, Index c) { return uniform(stream, b * 100000 + r, c); });
}

void OneOfEach::add_route() {
  ggm_route_problem_t p = GGM_ROUTE_PROBLEM_INIT;
  p.tokens = size_.tokens;
  p.top_k = size_.top_k;
  p.experts = size_.experts;
  p.id_type = GGM_INDEX_INT32;
  Tensor& offsets = result("route offsets", kInt32, {1, 1, size_.experts + 1});
  Tensor& assignments = result("route assignments", kInt32, {1, 1, rows_});
  Tensor& rows = result("route rows", kInt32, {1, 1, rows_});
  ggm_route_tensors_t t = GGM_ROUTE_TENSORS_INIT;
  t.ids = scene_.input("ids", kInt32, {1, size_.tokens, size_.top_k}).assign(ids_).data();
  t.group_offsets = static_cast<std::int32_t*>(offsets.data());
  t.row_assignment = static_cast<std::int32_t*>(assignments.data());
  t.assignment_row = static_cast<std::int32_t*>(rows.data());
  add(&scene_, op::route, p, t, {&offsets, &assignments, &rows});
}

void OneOfEach::add_permutations() {
  const Shape by_token{1, size_.tokens, size_.features}, by_row{1, rows_, size_.features};
  const Tensor& tokens = random("tokens", type_, by_token, 1);
  const Tensor& rows = random("rows", type_, by_row, 2);
  const Tensor& weights = random("routing_weights", accumulator(type_), {1, size_.tokens, size_.top_k}, 3);
  ggm_permute_problem_t p = GGM_PERMUTE_PROBLEM_INIT;
  p.tokens = size_.tokens;
  p.top_k = size_.top_k;
  p.experts = size_.experts;
  p.features = size_.features;
  p.token_type = type_;
  ggm_permute_tensors_t t = GGM_PERMUTE_TENSORS_INIT;
  set_routing(&t);
  Tensor& permuted = result("permuted", type_, by_row);
  t.input = tokens.data();
  t.output = permuted.data();
  add(&scene_, op::permute, p, t, {&permuted});

  p.routing_weight_type = weights.type();
  t.routing_weights = weights.data();
  Tensor& unpermuted = result("unpermuted", type_, by_token);
  t.input = rows.data();
  t.output = unpermuted.data();
  add(&scene_, op::unpermute, p, t, {&unpermuted});

  ggm_unpermute_backward_tensors_t b = GGM_UNPERMUTE_BACKWARD_TENSORS_INIT;
  set_routing(&b);
  Tensor& d_rows = result("d_rows", type_, by_row);
  Tensor& d_weights = result("d_routing_weights", GGM_TYPE_FLOAT32, {1, size_.tokens, size_.top_k});
  b.routing_weights = weights.data();
  b.rows = rows.data();
  b.dy = tokens.data();
  b.d_rows = d_rows.data();
  b.d_routing_weights = static_cast<float*>(d_weights.data());
  add(&scene_, op::unpermute_backward, p, b, {&d_rows, &d_weights});
}

// The product of the forward, and the one of a weight gradient.
void OneOfEach::add_products() {
  const Tensor& a = random("a", type_, {1, rows_, size_.features}, 4);
  const Tensor& weight = random("weight", type_, {size_.experts, size_.columns, size_.features}, 5);
  Tensor& product = result("product", type_, {1, rows_, size_.columns});
  ggm_grouped_gemm_problem_t p = GGM_GROUPED_GEMM_PROBLEM_INIT;
  p.groups = size_.experts;
  p.m = rows_;
  p.n = size_.columns;
  p.k = size_.features;
  p.b_order = GGM_ORDER_NK;
  p.a_type = p.b_type = type_;
  ggm_grouped_gemm_tensors_t t = GGM_GROUPED_GEMM_TENSORS_INIT;
  t.group_sizes = group_sizes_->data();
  t.a = a.data();
  t.b = weight.data();
  t.d = product.data();
  add(&scene_, op::grouped_gemm, p, t, {&product});

  const Tensor& dy = random("dy", type_, {1, rows_, size_.columns}, 6);
  Tensor& gradient = result("gradient", type_, {size_.experts, size_.columns, size_.features});
  p.layout = GGM_LAYOUT_VARIABLE_K;
  p.b_order = 0;
  p.m = size_.columns;
  p.n = size_.features;
  p.k = rows_;
  t.a = dy.data();
  t.b = a.data();
  t.d = gradient.data();
  add(&scene_, op::grouped_gemm, p, t, {&gradient});
}

void OneOfEach::add_array() {
  array_case_.type = type_;
  array_case_.groups = size_.array_groups;
  array_ = std::make_unique<ArrayRun>(handle_, array_case_);
  for (std::size_t g = 0; g < array_->a.size(); ++g) {
    const Index first = static_cast<Index>(g) * 1000;
    array_->a[g]->fill([&](Index, Index r, Index c) { return uniform(7, first + r, c); });
    array_->b[g]->fill([&](Index, Index r, Index c) { return uniform(8, first + r, c); });
  }
  add(&array_->scene, op::grouped_gemm_array, array_->problem, array_->tensors, array_->d);
}

}  // namespace ggm_test
