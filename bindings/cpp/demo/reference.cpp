#include "reference.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "ggm/ggm.h"
#include "progress.h"

namespace demo {
namespace {

// Multiply-adds that one of the two checks may cost; layers within it are checked whole.
constexpr double kBudget = 1e9;
constexpr std::int64_t kFewest = 16;

struct Sums {
  double difference = 0, reference = 0;

  void add(double got, double want) {
    difference += (got - want) * (got - want);
    reference += want * want;
  }
};

double relative(const std::vector<Sums>& parts) {
  Sums total;
  for (const Sums& part : parts) {
    total.difference += part.difference;
    total.reference += part.reference;
  }
  if (total.difference == 0) return 0;
  return std::sqrt(total.difference / total.reference);
}

// `wanted` evenly spaced numbers below `count`.
std::vector<std::int64_t> spread(std::int64_t count, double wanted) {
  const std::int64_t taken = std::min(count, std::max(kFewest, static_cast<std::int64_t>(wanted)));
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0; i < taken; ++i) indices.push_back(i * count / taken);
  return indices;
}

template <typename Element>
const Element* elements(const Tensor& tensor) {
  return static_cast<const Element*>(tensor.data());
}

// One expert's part of a token: its product row p = W x and the row q = dy W of the backward.
template <typename Element>
void expert_rows(const Layer& layer, std::int64_t expert, const double* x, const double* dy, double* p, double* q) {
  const Element* weight = elements<Element>(layer.weight) + expert * layer.out_features * layer.hidden;
  std::fill(q, q + layer.hidden, 0.0);
  for (std::int64_t n = 0; n < layer.out_features; ++n, weight += layer.hidden) {
    double lanes[4] = {0, 0, 0, 0};
    for (std::int64_t k = 0; k < layer.hidden; ++k) {
      const auto w = static_cast<double>(to_float(weight[k]));
      lanes[k & 3] += w * x[k];
      q[k] += w * dy[n];
    }
    p[n] = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
  }
}

template <typename Element>
void check_token(const Layer& layer, std::int64_t t, Sums& y_sums, Sums& dx_sums, Sums& dw_sums) {
  const auto hidden = static_cast<std::size_t>(layer.hidden), out = static_cast<std::size_t>(layer.out_features);
  std::vector<double> x(hidden), dy(out), p(out), q(hidden), y(out, 0.0), dx(hidden, 0.0), got(std::max(hidden, out));
  layer.x.read(t * layer.hidden, layer.hidden, x.data());
  layer.dy.read(t * layer.out_features, layer.out_features, dy.data());
  for (std::int64_t a = t * layer.top_k; a < (t + 1) * layer.top_k; ++a) {
    const auto slot = static_cast<std::size_t>(a);
    const auto w = static_cast<double>(layer.routing_weights[slot]);
    expert_rows<Element>(layer, layer.ids[slot], x.data(), dy.data(), p.data(), q.data());
    double dw = 0;
    for (std::size_t n = 0; n < out; ++n) y[n] += w * p[n];
    for (std::size_t k = 0; k < hidden; ++k) {
      dx[k] += w * q[k];
      dw += q[k] * x[k];
    }
    dw_sums.add(static_cast<double>(layer.d_routing_weights[slot]), dw);
  }
  layer.y.read(t * layer.out_features, layer.out_features, got.data());
  for (std::size_t n = 0; n < out; ++n) y_sums.add(got[n], y[n]);
  layer.dx.read(t * layer.hidden, layer.hidden, got.data());
  for (std::size_t k = 0; k < hidden; ++k) dx_sums.add(got[k], dx[k]);
}

// Row n of one expert's weight gradient: the sum of w * dy[t,n] * x[t] over its slots.
template <typename Element>
Sums check_d_weight_row(const Layer& layer, std::int64_t expert, std::int64_t n, const std::vector<std::int64_t>& slots) {
  std::vector<double> want(static_cast<std::size_t>(layer.hidden), 0.0), got(want.size());
  for (std::int64_t a : slots) {
    const std::int64_t t = a / layer.top_k;
    const Element* x = elements<Element>(layer.x) + t * layer.hidden;
    const double factor = static_cast<double>(layer.routing_weights[static_cast<std::size_t>(a)]) *
                          static_cast<double>(to_float(elements<Element>(layer.dy)[t * layer.out_features + n]));
    for (std::size_t k = 0; k < want.size(); ++k) want[k] += factor * static_cast<double>(to_float(x[k]));
  }
  layer.d_weight.read((expert * layer.out_features + n) * layer.hidden, layer.hidden, got.data());
  Sums sums;
  for (std::size_t k = 0; k < want.size(); ++k) sums.add(got[k], want[k]);
  return sums;
}

// Limits on the relative error: float32 grows with the root of the inner length; bfloat16 results carry their own rounding,
// and float32 results of bfloat16 inputs the rounding of a float32 sum.
double float32_limit(std::int64_t inner) { return 2e-6 * std::sqrt(std::max(1.0, static_cast<double>(inner) / 4096)); }
// The error of a rounding is an average over the elements checked; over few of them it scatters.
double rounding_limit(std::int64_t checked) {
  return checked >= 10000 ? 2.6e-3 : 2.6e-3 * (1 + 4 / std::sqrt(static_cast<double>(std::max<std::int64_t>(1, checked))));
}
double result_limit(const Layer& layer, std::int64_t inner, std::int64_t checked) {
  return layer.type == GGM_TYPE_FLOAT32 ? float32_limit(inner) : rounding_limit(checked);
}
double sum_limit(const Layer& layer, std::int64_t inner) {
  return layer.type == GGM_TYPE_FLOAT32 ? float32_limit(inner) : 2e-5 * std::max(1.0, static_cast<double>(inner) / 16384);
}

template <typename Element>
std::vector<Check> check_all(const Layer& layer) {
  const std::vector<std::int64_t> tokens =
      spread(layer.tokens, kBudget / (2.0 * layer.products() / static_cast<double>(layer.tokens)));
  const auto checked_tokens = static_cast<std::int64_t>(tokens.size());
  std::vector<Sums> y(tokens.size()), dx(tokens.size()), dw(tokens.size());
  {
    Step step("checking y, dx and d_routing_weights against float64");
    parallel_for(checked_tokens, step, [&](std::int64_t i) {
      const auto at = static_cast<std::size_t>(i);
      check_token<Element>(layer, tokens[at], y[at], dx[at], dw[at]);
    });
  }

  const std::vector<std::int64_t> features =
      spread(layer.out_features, kBudget / (layer.products() / static_cast<double>(layer.out_features)));
  const auto checked_features = static_cast<std::int64_t>(features.size());
  const std::vector<std::vector<std::int64_t>> slots = layer.slots_of_experts();
  std::int64_t most_rows = 0;
  for (const auto& s : slots) most_rows = std::max(most_rows, static_cast<std::int64_t>(s.size()));
  std::vector<Sums> d_weight(static_cast<std::size_t>(layer.experts * checked_features));
  {
    Step step("checking d_weight against float64");
    parallel_for(layer.experts * checked_features, step, [&](std::int64_t i) {
      const std::int64_t expert = i / checked_features;
      const std::int64_t n = features[static_cast<std::size_t>(i % checked_features)];
      d_weight[static_cast<std::size_t>(i)] =
          check_d_weight_row<Element>(layer, expert, n, slots[static_cast<std::size_t>(expert)]);
    });
  }

  const std::int64_t longer = std::max(layer.hidden, layer.out_features);
  const std::int64_t y_checked = checked_tokens * layer.out_features, dx_checked = checked_tokens * layer.hidden;
  const std::int64_t d_weight_checked = layer.experts * checked_features * layer.hidden;
  return {
      {"y", relative(y), result_limit(layer, layer.hidden, y_checked), y_checked, layer.y.count()},
      {"dx", relative(dx), result_limit(layer, layer.out_features, dx_checked), dx_checked, layer.dx.count()},
      {"d_weight", relative(d_weight), result_limit(layer, most_rows, d_weight_checked), d_weight_checked,
       layer.d_weight.count()},
      {"d_routing_weights", relative(dw), sum_limit(layer, longer), checked_tokens * layer.top_k, layer.rows()},
  };
}

}  // namespace

std::vector<Check> check_layer(const Layer& layer) {
  return layer.type == GGM_TYPE_FLOAT32 ? check_all<float>(layer) : check_all<Bfloat16>(layer);
}

}  // namespace demo
