#include "layer.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ggm/ggm.h"
#include "progress.h"

namespace demo {
namespace {

// One salt a tensor, so that equal indices in two tensors are unrelated numbers.
enum Salt : std::uint64_t { kToken = 1, kContext = 16, kShared = 32, kGradient = 64, kRouter, kWeight };

// A row is its word's vector, half of the previous word's, and half of a vector that all rows share. So routing is as skewed as
// that of a trained layer: the shared part makes some experts popular with everyone, frequent words go to their experts again
// and again, and yet one word is not always routed alike.
void fill_token(const Text& text, std::int64_t t, std::int64_t features, std::uint64_t salt, Tensor& out) {
  const auto count = static_cast<std::int64_t>(text.tokens.size());
  const std::uint64_t word = mix(text.tokens[static_cast<std::size_t>(t % count)], salt);
  const std::uint64_t before = mix(text.tokens[static_cast<std::size_t>((t + count - 1) % count)], salt + kContext);
  const std::uint64_t common = mix(salt + kShared);
  for (std::int64_t c = 0; c < features; ++c) {
    const auto column = static_cast<std::uint64_t>(c);
    out.set(t * features + c, unit(mix(word, column)) + 0.5f * unit(mix(before, column)) + 0.5f * unit(mix(common, column)));
  }
}

// Softmax over all experts of a fixed random linear router, then the top_k largest probabilities, as OLMoE does.
void gate_token(const Layer& layer, const std::vector<float>& router, std::int64_t t, std::int32_t* ids, float* weights) {
  // 4 / sqrt(hidden) spreads the logits with a standard deviation of about 1.5.
  const double gain = 4.0 / std::sqrt(static_cast<double>(layer.hidden));
  const auto hidden = static_cast<std::size_t>(layer.hidden);
  std::vector<double> x(hidden);
  layer.x.read(t * layer.hidden, layer.hidden, x.data());
  std::vector<double> logit(static_cast<std::size_t>(layer.experts));
  for (std::size_t e = 0; e < logit.size(); ++e) {
    double sum = 0;
    for (std::size_t c = 0; c < hidden; ++c) sum += x[c] * static_cast<double>(router[e * hidden + c]);
    logit[e] = gain * sum;
  }
  std::vector<std::int32_t> order(logit.size());
  std::iota(order.begin(), order.end(), 0);
  std::partial_sort(order.begin(), order.begin() + layer.top_k, order.end(), [&](std::int32_t a, std::int32_t b) {
    const double la = logit[static_cast<std::size_t>(a)], lb = logit[static_cast<std::size_t>(b)];
    return la != lb ? la > lb : a < b;
  });
  const double largest = logit[static_cast<std::size_t>(order[0])];
  double total = 0;
  for (double l : logit) total += std::exp(l - largest);
  for (std::int64_t j = 0; j < layer.top_k; ++j) {
    ids[j] = order[static_cast<std::size_t>(j)];
    weights[j] = static_cast<float>(std::exp(logit[static_cast<std::size_t>(ids[j])] - largest) / total);
  }
}

void fill_weights(const Options& options, Layer& layer) {
  Step step("making the experts' weights");
  // Variance 1/hidden, so that results are about as large as inputs.
  const auto scale = static_cast<float>(std::sqrt(3.0 / static_cast<double>(layer.hidden)));
  const std::uint64_t seed = mix(options.seed, kWeight);
  parallel_for(layer.experts * layer.out_features, step, [&](std::int64_t row) {
    const std::uint64_t hash = mix(seed, static_cast<std::uint64_t>(row));
    // Two numbers a hash: this is the largest tensor of the demo.
    for (std::int64_t c = 0; c < layer.hidden; c += 2) {
      const std::uint64_t pair = mix(hash, static_cast<std::uint64_t>(c));
      layer.weight.set(row * layer.hidden + c, scale * unit(pair));
      if (c + 1 < layer.hidden) layer.weight.set(row * layer.hidden + c + 1, scale * unit(pair << 32));
    }
  });
}

}  // namespace

Tensor::Tensor(std::int32_t type, std::int64_t count) : type_(type), count_(count) {
  memory_.reset(new unsigned char[bytes()]);
}

std::size_t Tensor::bytes() const { return static_cast<std::size_t>(count_) * (type_ == GGM_TYPE_FLOAT32 ? 4 : 2); }

void Tensor::read(std::int64_t first, std::int64_t count, double* out) const {
  if (type_ == GGM_TYPE_FLOAT32) {
    const auto* in = reinterpret_cast<const float*>(memory_.get()) + first;
    for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<double>(in[i]);
  } else {
    const auto* in = reinterpret_cast<const Bfloat16*>(memory_.get()) + first;
    for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<double>(to_float(in[i]));
  }
}

std::vector<std::vector<std::int64_t>> Layer::slots_of_experts() const {
  std::vector<std::vector<std::int64_t>> slots(static_cast<std::size_t>(experts));
  for (std::int64_t a = 0; a < rows(); ++a) slots[static_cast<std::size_t>(ids[static_cast<std::size_t>(a)])].push_back(a);
  return slots;
}

Layer make_layer(const Options& o, const Text& text) {
  Layer layer;
  layer.tokens = o.tokens;
  layer.top_k = o.top_k;
  layer.experts = o.experts;
  layer.hidden = o.hidden;
  layer.out_features = o.out_features;
  layer.type = o.type;
  layer.ids.resize(static_cast<std::size_t>(layer.rows()));
  layer.routing_weights.resize(layer.ids.size());
  layer.d_routing_weights.resize(layer.ids.size());
  layer.x = Tensor(o.type, o.tokens * o.hidden);
  layer.dx = Tensor(o.type, o.tokens * o.hidden);
  layer.dy = Tensor(o.type, o.tokens * o.out_features);
  layer.y = Tensor(o.type, o.tokens * o.out_features);
  layer.weight = Tensor(o.type, o.experts * o.out_features * o.hidden);
  layer.d_weight = Tensor(o.type, o.experts * o.out_features * o.hidden);

  {
    Step step("turning tokens into vectors");
    parallel_for(o.tokens, step, [&](std::int64_t t) {
      fill_token(text, t, o.hidden, kToken, layer.x);
      fill_token(text, t, o.out_features, mix(kGradient), layer.dy);
    });
  }
  std::vector<float> router(static_cast<std::size_t>(o.experts * o.hidden));
  for (std::size_t i = 0; i < router.size(); ++i) router[i] = unit(mix(mix(o.seed, kRouter), i));
  {
    Step step("gating the tokens");
    parallel_for(o.tokens, step, [&](std::int64_t t) {
      gate_token(layer, router, t, layer.ids.data() + t * o.top_k, layer.routing_weights.data() + t * o.top_k);
    });
  }
  fill_weights(o, layer);
  return layer;
}

}  // namespace demo
