#include "conformance/moe_case.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "conformance/pairwise.h"
#include "support/compare.h"
#include "support/inputs.h"

namespace ggm_test {
namespace {

using Index = std::int64_t;
std::size_t at(Index i) { return static_cast<std::size_t>(i); }

constexpr Index kExtents[] = {1, 2, 3, 7, 8, 15, 17, 24, 64, 65, 128, 129, 200};
constexpr std::uint32_t kGradientMasks[] = {
    GGM_GRADIENT_X,
    GGM_GRADIENT_WEIGHT,
    GGM_GRADIENT_ROUTING_WEIGHTS,
    GGM_GRADIENT_BIAS,
    GGM_GRADIENT_X | GGM_GRADIENT_ROUTING_WEIGHTS,
    GGM_GRADIENT_WEIGHT | GGM_GRADIENT_BIAS,
    GGM_GRADIENT_X | GGM_GRADIENT_WEIGHT | GGM_GRADIENT_ROUTING_WEIGHTS | GGM_GRADIENT_BIAS};

// Lines that are there for one kind of kernel each, beside those of all pairs.
struct Lines {
  std::int32_t type;
  Data data;
  bool backward;

  // A layer whose product, y's or that of dx, has `columns` columns of `inner` terms.
  MoeCase line(const RoutingCase& routing, Index columns, Index inner, std::int32_t order, std::int32_t combine,
               std::uint32_t gradients) const {
    MoeCase c;
    c.type = type;
    c.data = data;
    c.routing = routing;
    c.in_features = backward ? columns : inner;
    c.out_features = backward ? inner : columns;
    c.order = order;
    c.combine = combine;
    if (backward) c.gradients = gradients;
    return c;
  }
  std::int32_t weights() const { return type == GGM_TYPE_FLOAT64 ? type : GGM_TYPE_FLOAT32; }

  // For each height of row tiles: few, some and many rows an expert.
  void add_heights(std::int32_t order, std::int32_t combine, std::vector<MoeCase>* cases) const {
    struct Height {
      Index tokens, experts, in_features, out_features;
    };
    for (const Height& height : {Height{9, 5, 24, 17}, Height{50, 3, 70, 65}, Height{150, 2, 200, 129}}) {
      MoeCase c = line({height.tokens, 3, height.experts, Locality::all_local, Ids::uniform, 1u}, 0, 0, order, combine,
                       kGradientMasks[6]);
      c.in_features = height.in_features;
      c.out_features = height.out_features;
      c.routing_weight_type = weights();
      cases->push_back(c);
    }
  }
  // Rows that come in order instead of through a list: few, and many with a long K.
  void add_in_order(std::int32_t order, std::int32_t combine, std::vector<MoeCase>* cases) const {
    for (const bool many : {false, true}) {
      MoeCase c = line({many ? 170 : 30, 3, many ? 1 : 3, Locality::all_local, Ids::uniform, 2u}, 40, many ? 1032 : 72, order,
                       combine, GGM_GRADIENT_X | GGM_GRADIENT_WEIGHT);
      (backward ? c.output_rows : c.input_rows) = GGM_ROWS_GROUPED;
      cases->push_back(c);
    }
  }
  // Rows of tokens that the forward relays: many an expert, and many columns.
  void add_relayed(std::int32_t order, std::vector<MoeCase>* cases) const {
    for (const std::int32_t output_rows : {GGM_ROWS_TOKENS, GGM_ROWS_GROUPED}) {
      MoeCase c = line({260, 3, 3, Locality::all_local, Ids::uniform, 6u}, 1544, 40, order, GGM_COMBINE_TWO_STEP, 0);
      c.output_rows = output_rows;
      c.routing_weight_type = weights();
      cases->push_back(c);
    }
  }
  // Few rows an expert and no more than a product: two on average, of at most 64 ids; and eight, of more ids, with a long K.
  void add_few(std::int32_t order, std::vector<MoeCase>* cases) const {
    for (const bool more : {false, true}) {
      MoeCase c = line({more ? 20 : 8, 4, more ? 10 : 16, Locality::all_local, Ids::uniform, 5u}, 40, more ? 2056 : 72, order,
                       GGM_COMBINE_TWO_STEP, GGM_GRADIENT_X);
      c.routing_weight_type = weights();
      cases->push_back(c);
    }
  }
};

}  // namespace

std::string MoeCase::text() const {
  std::ostringstream out;
  out << name_of(type) << (wide_output ? "->f32 " : " ") << routing.text() << " K=" << in_features << " N=" << out_features
      << (order == GGM_ORDER_NK ? " nk" : " kn") << (input_rows ? " grouped->" : " tokens->")
      << (output_rows ? "grouped" : "tokens") << " combine=" << combine << " w=" << name_of(routing_weight_type)
      << " bias=" << name_of(bias_type) << (wide_product ? " product=f32" : "") << (add ? " add" : "") << (keep ? " keep" : "")
      << (id_type == 0                 ? " arrays"
          : id_type == GGM_INDEX_INT64 ? " i64"
                                       : " i32")
      << " gap=" << gap << " misalign=" << misalign << " strides=" << strides << " sm=" << sm_limit;
  if (gradients) out << " gradients=" << gradients;
  if (hostile) out << " hostile=" << hostile;
  if (x_gap) out << " x_gap=" << x_gap;
  if (infinite_dy) out << " infinite_dy";
  if (data == Data::random) out << " random";
  return out.str();
}

std::vector<MoeCase> moe_cases(std::int32_t type, Data data, bool backward) {
  const bool wide = type == GGM_TYPE_FLOAT64;
  const std::int32_t weight_types[] = {0, wide ? type : GGM_TYPE_FLOAT32, wide ? type : GGM_TYPE_BFLOAT16,
                                       wide ? type : GGM_TYPE_FLOAT16};
  const std::int32_t bias_types[] = {0, type, GGM_TYPE_FLOAT32};
  const std::int32_t id_types[] = {GGM_INDEX_INT32, GGM_INDEX_INT64, 0};
  constexpr Index gaps[] = {0, 1, 8}, misaligns[] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
  std::vector<MoeCase> cases;
  for (const std::vector<int>& row : all_pairs(
           {13, 13, kRoutingShapeCount, kLocalities, kIdPatterns, 2, 4, 3, 4, 3, 2, 2, 2, 2, 3, 3, 9, 3, 3, backward ? 7 : 1},
           static_cast<std::uint32_t>(type) + (backward ? 100u : 50u))) {
    MoeCase c;
    c.type = type;
    c.data = data;
    c.in_features = kExtents[row[0]];
    c.out_features = kExtents[row[1]];
    c.routing.tokens = kRoutingShapes[row[2]][0];
    c.routing.top_k = kRoutingShapes[row[2]][1];
    c.routing.experts = kRoutingShapes[row[2]][2];
    c.routing.locality = static_cast<Locality>(row[3]);
    c.routing.ids = static_cast<Ids>(row[4]);
    c.routing.seed = static_cast<std::uint32_t>(cases.size());
    c.order = row[5] ? GGM_ORDER_KN : GGM_ORDER_NK;
    c.input_rows = row[6] & 1;
    c.output_rows = row[6] >> 1;
    c.combine = row[7];
    c.routing_weight_type = weight_types[row[8]];
    c.bias_type = bias_types[row[9]];
    if (wide && c.bias_type == GGM_TYPE_FLOAT32) c.bias_type = type;
    c.wide_product = row[10];
    c.wide_output = is_16bit(type) && row[11];
    c.add = row[12];
    c.keep = row[13];
    c.id_type = id_types[row[14]];
    c.gap = gaps[row[15]];
    c.misalign = misaligns[row[16]];
    c.strides = row[17];
    c.sm_limit = row[18] == 2 ? 3 : row[18];
    if (backward) c.gradients = kGradientMasks[row[19]];
    cases.push_back(c);
  }
  const Lines lines{type, data, backward};
  for (const std::int32_t order : {GGM_ORDER_NK, GGM_ORDER_KN}) {
    for (const std::int32_t combine : {GGM_COMBINE_ORDERED, GGM_COMBINE_TWO_STEP}) {
      lines.add_heights(order, combine, &cases);
      if (is_16bit(type)) lines.add_in_order(order, combine, &cases);
    }
    if (!is_16bit(type)) continue;
    if (!backward) lines.add_relayed(order, &cases);
    lines.add_few(order, &cases);
  }
  return cases;
}

MoeRun::MoeRun(const Handle& handle, const MoeCase& line) : line_(line), scene_(handle) {
  make_problem();
  make_routing();
  make_operands();
}

void MoeRun::make_problem() {
  ggm_moe_problem_t& p = problem_;
  const std::int32_t wide = line_.type == GGM_TYPE_FLOAT64 ? GGM_TYPE_FLOAT64 : GGM_TYPE_FLOAT32;
  p.tokens = line_.routing.tokens;
  p.top_k = line_.routing.top_k;
  p.experts = line_.routing.experts;
  p.in_features = line_.in_features;
  p.out_features = line_.out_features;
  p.routing_weight_type = line_.routing_weight_type;
  p.x_type = p.weight_type = line_.type;
  p.bias_type = line_.bias_type;
  if (line_.wide_output) {
    p.y_type = p.dx_type = p.d_weight_type = p.d_bias_type = GGM_TYPE_FLOAT32;
    p.dy_type = line_.type;
  }
  if (line_.wide_product) p.product_type = wide;
  p.weight_order = line_.order;
  p.input_rows = line_.input_rows;
  p.output_rows = line_.output_rows;
  p.combine = line_.combine;
  p.sm_limit = line_.sm_limit;
  p.gradients = static_cast<std::int32_t>(line_.gradients);
  if (line_.keep) p.flags |= GGM_FLAG_KEEP_UNUSED_ROWS;
  if (line_.add) p.flags |= GGM_FLAG_ADD_TO_Y | GGM_FLAG_ADD_TO_DX | GGM_FLAG_ADD_TO_DWEIGHT | GGM_FLAG_ADD_TO_DBIAS;
}

void MoeRun::make_routing() {
  const RouteInput in = line_.routing.input();
  const Routing made = route_reference(in);
  problem_.max_rows = in.max_rows;
  input_.num_tokens = real_tokens(in);
  input_.routing = made;
  faults_want_ = made.faults;
  problem_.id_type = line_.id_type;
  const bool given = line_.id_type == 0;
  if (!given) {
    problem_.experts_total = in.experts_total;
    problem_.first_expert = in.first_expert;
    if (line_.gap) problem_.ids_ld = in.top_k + line_.gap;
  } else {
    Routing spoilt = made;
    if (line_.hostile) spoil(&spoilt, line_.hostile);
    input_.routing = check_routing(spoilt, in.tokens, in.top_k, in.row_bound(), in.has_num_tokens, in.num_tokens);
    faults_want_ = input_.routing.faults;
    const std::vector<Index>* content[] = {&spoilt.group_offsets, &spoilt.row_assignment, &spoilt.assignment_row};
    const char* names[] = {"group_offsets", "row_assignment", "assignment_row"};
    for (std::size_t i = 0; i < 3; ++i)
      arrays_[i] = &scene_.input(names[i], kInt32, {1, 1, static_cast<Index>(content[i]->size())}, 1).assign(*content[i]);
  }
  routing_ = routing_tensors(&scene_, in, line_.id_type, problem_.ids_ld, !given);
}

double MoeRun::row_value(std::uint32_t stream, Index row, Index column) const {
  return line_.data == Data::random ? uniform(stream, row, column) : P(row + stream * 5000, column);
}

void MoeRun::make_operands() {
  ggm_moe_problem_t& p = problem_;
  const Routing& routing = input_.routing;
  const Index K = p.in_features, N = p.out_features, rows = static_cast<Index>(routing.row_assignment.size());
  const bool shared = line_.strides == 2, spaced = line_.strides % 2 == 1, grouped = p.input_rows == GGM_ROWS_GROUPED;

  if (p.routing_weight_type) {
    if (line_.gap) p.routing_weights_ld = p.top_k + line_.gap;
    weights_ =
        &scene_.input("routing_weights", p.routing_weight_type, {1, p.tokens, p.top_k, p.routing_weights_ld}, line_.misalign);
    // Weights of slots without a row are never read.
    weights_->fill([&](Index, Index t, Index j) -> double {
      if (routing.assignment_row[at(t * p.top_k + j)] < 0) return NAN;
      return line_.data == Data::random ? uniform(6, t, j) : power_weight(t, j);
    });
    input_.routing_weights = weights_->initial_values();
  }
  if (line_.gap + line_.x_gap) p.x_ld = K + line_.gap + line_.x_gap;
  x_ = &scene_.input("x", p.x_type, {1, grouped ? rows : p.tokens, K, p.x_ld}, line_.misalign);
  std::vector<bool> token_used(at(p.tokens), false);
  for (Index a : routing.row_assignment)
    if (a >= 0) token_used[at(a / p.top_k)] = true;
  x_->fill([&](Index, Index r, Index c) {
    return (grouped ? routing.row_assignment[at(r)] >= 0 : token_used[at(r)]) ? row_value(1, r, c) : NAN;
  });

  const bool nk = p.weight_order == GGM_ORDER_NK;
  const Index w_rows = nk ? N : K, w_columns = nk ? K : N, ld = w_columns + line_.gap;
  if (line_.gap) p.weight_ld = ld;
  if (shared) p.weight_stride = GGM_STRIDE_SHARED;
  if (spaced) p.weight_stride = std::max<Index>(w_rows, 1) * ld + (line_.strides == 3 ? 8 : 3);
  weight_ =
      &scene_.input("weight", p.weight_type, {shared ? 1 : p.experts, w_rows, w_columns, ld, spaced ? p.weight_stride : 0},
                    (line_.misalign + 1) / 2);
  weight_->fill([&](Index e, Index r, Index c) {
    const bool used = shared || routing.group_offsets[at(e)] < routing.group_offsets[at(e + 1)];
    const Index n = nk ? r : c, k = nk ? c : r;
    return !used ? NAN : line_.data == Data::random ? uniform(2, e * 1000 + n, k) : Q(e, n, k);
  });
  if (p.bias_type) {
    if (shared) p.bias_stride = GGM_STRIDE_SHARED;
    if (spaced) p.bias_stride = N + 3;
    bias_ = &scene_.input("bias", p.bias_type, {1, shared ? 1 : p.experts, N, spaced ? p.bias_stride : 0}, line_.misalign);
    bias_->fill([&](Index, Index e, Index n) { return line_.data == Data::random ? uniform(3, e, n) : bias_rule(e, n); });
    input_.bias = bias_->initial_values();
  }
  faults_ = &scene_.faults();
  input_.x = x_->initial_values();
  input_.weight = weight_->initial_values();
}

template <typename T>
void MoeRun::set_common(T* tensors) const {
  tensors->ids = routing_.ids_data();
  tensors->expert_map = routing_.expert_map_data();
  tensors->group_offsets = static_cast<const std::int32_t*>(routing_array(0));
  tensors->row_assignment = static_cast<const std::int32_t*>(routing_array(1));
  tensors->assignment_row = static_cast<const std::int32_t*>(routing_array(2));
  tensors->routing_weights = weights_ ? weights_->data() : nullptr;
  tensors->x = x_->data();
  tensors->weight = weight_->data();
  tensors->bias = bias_ ? bias_->data() : nullptr;
  tensors->num_tokens = routing_.num_tokens_data();
  tensors->faults = static_cast<std::uint32_t*>(faults_->data());
}

Tensor* MoeRun::make_output(const char* name, std::int32_t type, Shape shape, bool always_whole) {
  Tensor& tensor = scene_.output(name, type, shape, line_.misalign);
  if (line_.add || (line_.keep && !always_whole))
    tensor.fill([&](Index b, Index r, Index c) { return row_value(4, b * 1000 + r, c + 3); });
  return &tensor;
}

void MoeRun::check_faults() const {
  for (Index i = 0; i < GGM_FAULT_WORDS; ++i) {
    INFO("fault word " << i);
    CHECK(faults_->integer(i) == faults_want_[at(i)]);
  }
}

MoeInput MoeRun::absolute() const {
  MoeInput out = input_;
  for (std::vector<double>* values :
       {&out.routing_weights, &out.x, &out.weight, &out.bias, &out.dy, &out.y, &out.dx, &out.d_weight, &out.d_bias})
    for (double& v : *values) v = std::fabs(v);
  return out;
}

void MoeRun::require_bits(const Tensor& tensor, const std::vector<double>& want) const {
  const std::string wrong = difference(tensor, want);
  INFO(wrong);
  REQUIRE(wrong.empty());
}

void MoeRun::require_bound(const Tensor& tensor, const std::vector<double>& want, const std::vector<double>& magnitude,
                           Index length) const {
  const std::string wrong =
      beyond_bound(tensor, want, magnitude, rounding_bound(line_.type, tensor.type(), length), absolute_floor(tensor.type()));
  INFO(wrong);
  REQUIRE(wrong.empty());
  // Two roundings to bfloat16 leave 2.3e-3 of the norm on the average, so the limit of 2.6e-3 needs many elements.
  if (want.size() >= 10000) REQUIRE(relative_error(tensor.values(), want) <= fused_limit(line_.type, tensor.type(), length));
}

MoeForwardRun::MoeForwardRun(const Handle& handle, const MoeCase& line) : MoeRun(handle, line) {
  const Index N = problem_.out_features, rows = static_cast<Index>(input_.routing.row_assignment.size());
  if (line_.gap) problem_.y_ld = N + line_.gap;
  y_ = make_output("y", problem_.y_type ? problem_.y_type : problem_.x_type,
                   {1, problem_.output_rows == GGM_ROWS_GROUPED ? rows : problem_.tokens, N, problem_.y_ld}, false);
  set_common(&tensors_);
  tensors_.y = y_->data();
  input_.y = y_->initial_values();
  input_.problem = problem_;
}

void MoeForwardRun::check() const {
  check_faults();
  if (line_.data == Data::integers) return require_bits(*y_, moe_forward_reference(input_, Rounding::contract));
  require_bound(*y_, moe_forward_reference(input_, Rounding::none), moe_forward_reference(absolute(), Rounding::none),
                problem_.in_features + problem_.top_k);
}

MoeBackwardRun::MoeBackwardRun(const Handle& handle, const MoeCase& line) : MoeRun(handle, line) {
  ggm_moe_problem_t& p = problem_;
  const Index K = p.in_features, N = p.out_features, rows = static_cast<Index>(input_.routing.row_assignment.size());
  const bool y_grouped = p.output_rows == GGM_ROWS_GROUPED, x_grouped = p.input_rows == GGM_ROWS_GROUPED;
  const std::uint32_t wants = line.gradients;
  if (line.gap) p.dy_ld = N + line.gap;
  dy_ = &scene_.input("dy", p.x_type, {1, y_grouped ? rows : p.tokens, N, p.dy_ld}, line.misalign);
  dy_->fill([&](Index, Index r, Index c) {
    const bool used = y_grouped ? input_.routing.row_assignment[at(r)] >= 0 : r < input_.num_tokens;
    if (used && line.infinite_dy && (r + c) % 61 == 0) return double{INFINITY};
    return used ? row_value(7, r, c) : NAN;
  });
  set_common(&tensors_);
  tensors_.dy = dy_->data();
  if (wants & GGM_GRADIENT_X) {
    if (line.gap) p.dx_ld = K + line.gap;
    dx_ = make_output("dx", p.dx_type ? p.dx_type : p.x_type, {1, x_grouped ? rows : p.tokens, K, p.dx_ld}, false);
    tensors_.dx = dx_->data();
    input_.dx = dx_->initial_values();
  }
  if (wants & GGM_GRADIENT_WEIGHT) {
    const bool nk = p.weight_order == GGM_ORDER_NK;
    const Index w_rows = nk ? N : K, w_columns = nk ? K : N, ld = w_columns + line.gap;
    if (line.gap) p.d_weight_ld = ld;
    if (line.strides == 1) p.d_weight_stride = std::max<Index>(w_rows, 1) * ld + 3;
    d_weight_ = make_output("d_weight", p.d_weight_type ? p.d_weight_type : p.weight_type,
                            {p.experts, w_rows, w_columns, ld, line.strides == 1 ? p.d_weight_stride : 0}, true);
    tensors_.d_weight = d_weight_->data();
    input_.d_weight = d_weight_->initial_values();
  }
  if (wants & GGM_GRADIENT_BIAS) {
    if (!p.bias_type && !p.d_bias_type) p.d_bias_type = p.x_type;
    if (line.strides == 1) p.d_bias_stride = N + 3;
    d_bias_ = make_output("d_bias", p.d_bias_type ? p.d_bias_type : p.bias_type, {1, p.experts, N, p.d_bias_stride}, true);
    tensors_.d_bias = d_bias_->data();
    input_.d_bias = d_bias_->initial_values();
  }
  if (wants & GGM_GRADIENT_ROUTING_WEIGHTS) {
    d_routing_weights_ = &scene_.output("d_routing_weights", GGM_TYPE_FLOAT32, {1, p.tokens, p.top_k});
    tensors_.d_routing_weights = static_cast<float*>(d_routing_weights_->data());
  }
  input_.dy = dy_->initial_values();
  input_.problem = p;
}

void MoeBackwardRun::check() const {
  check_faults();
  if (line_.data == Data::integers) {
    const MoeGradients want = moe_backward_reference(input_, Rounding::contract);
    if (dx_) require_bits(*dx_, want.dx);
    if (d_weight_) require_bits(*d_weight_, want.d_weight);
    if (d_bias_) require_bits(*d_bias_, want.d_bias);
    if (d_routing_weights_) require_bits(*d_routing_weights_, want.d_routing_weights);
    return;
  }
  const MoeGradients want = moe_backward_reference(input_, Rounding::none, true);
  const MoeGradients magnitude = moe_backward_reference(absolute(), Rounding::none, true);
  const Index rows = static_cast<Index>(input_.routing.row_assignment.size()),
              sizes = problem_.in_features + problem_.out_features;
  if (dx_) require_bound(*dx_, want.dx, magnitude.dx, problem_.out_features + problem_.top_k);
  if (d_weight_) require_bound(*d_weight_, want.d_weight, magnitude.d_weight, rows);
  if (d_bias_) require_bound(*d_bias_, want.d_bias, magnitude.d_bias, rows);
  // float32 also for float64 problems: one rounding at the end.
  if (d_routing_weights_) {
    const std::string wrong = beyond_bound(*d_routing_weights_, want.d_routing_weights, magnitude.d_routing_weights,
                                           rounding_bound(line_.type, GGM_TYPE_FLOAT32, sizes) + 6e-8, 0);
    INFO(wrong);
    REQUIRE(wrong.empty());
  }
}

std::vector<std::uint64_t> MoeBackwardRun::output_bits() const {
  std::vector<std::uint64_t> bits;
  for (const Tensor* tensor : {dx_, d_weight_, d_bias_, d_routing_weights_}) {
    if (!tensor) continue;
    const std::vector<std::uint64_t> part = tensor->all_bits();
    bits.insert(bits.end(), part.begin(), part.end());
  }
  return bits;
}

}  // namespace ggm_test
