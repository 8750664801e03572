// Promises about bits: determinism, batch invariance, fused equals unfused, what never changes a bit, and real sizes within the
// limits.
#include <algorithm>
#include <optional>
#include <random>

#include "conformance/layer.h"
#include "support/busy_stream.h"
#include "support/compare.h"
#include "support/inputs.h"
#include "support/reference_gemm.h"
#include "support/repeat.h"

using namespace ggm_test;

namespace {

using Index = std::int64_t;

std::string text_of(const Backend& backend, const LayerSpec& s) {
  return backend.name + " " + name_of(s.type) + (s.wide_output ? "->f32" : "") + (s.order == GGM_ORDER_NK ? " nk" : " kn") +
         " combine=" + std::to_string(s.combine) + (s.weights ? " w" : "") + (s.bias ? " bias" : "") +
         (s.wide_product ? " product=f32" : "");
}

// The layer in float32 and bfloat16, ordered and two-step; each is a case of its own.
template <typename Body>
void each_form(const Backend& backend, LayerSpec spec, Body body) {
  for (const std::int32_t type : {GGM_TYPE_FLOAT32, GGM_TYPE_BFLOAT16})
    for (const std::int32_t combine : {GGM_COMBINE_ORDERED, GGM_COMBINE_TWO_STEP}) {
      spec.type = type;
      spec.combine = combine;
      const std::string text = text_of(backend, spec);
      if (!case_selected(text)) continue;
      GGM_CASE(text);
      body(spec);
    }
}

// ---- determinism ----

void determinism(bool cuda, Index tokens, const LayerSpec& base, int runs) {
  for (const Backend& backend : backends(cuda)) {
    // Another family of one backend has the same kernels or the same bits; a tenth of the runs is enough there.
    const int times = &backend == &backends(cuda).front() ? runs : std::max(1, runs / 10);
    const Handle handle(backend);
    each_form(backend, base, [&](const LayerSpec& spec) {
      Layer layer(handle, spec, first_tokens(tokens));
      layer.forward();
      CHECK(differences_of_runs(backend, layer.forward_call(), times) == 0);
      layer.backward();
      CHECK(differences_of_runs(backend, layer.backward_call(), times) == 0);
    });
  }
}

// Route, permute, unpermute, unpermute_backward and grouped products, from new memory in each run.
void determinism_of_steps(bool cuda, Index tokens, const LayerSpec& base, int runs) {
  for (const Backend& backend : backends(cuda)) {
    const Handle handle(backend);
    for (const std::int32_t type : {GGM_TYPE_FLOAT32, GGM_TYPE_BFLOAT16}) {
      LayerSpec spec = base;
      spec.type = type;
      GGM_CASE(text_of(backend, spec));
      std::optional<Layer::Unfused> first;
      for (int run = 0; run < runs; ++run) {
        BusyStream stream(backend);
        Layer layer(handle, spec, first_tokens(tokens));
        layer.scene().set_stream(stream.stream());
        layer.backward();  // with dy, so that the steps go through both directions
        const Layer::Unfused result = layer.unfused();
        if (!first) first = result;
        REQUIRE((result.y == first->y));
        REQUIRE(!result.dx.empty());
        REQUIRE((result.dx == first->dx));
        REQUIRE((result.d_weight == first->d_weight));
        REQUIRE((result.d_routing_weights == first->d_routing_weights));
      }
    }
  }
}

// ---- batch invariance ----

// y of 64 tokens, one row of bits after another, from batches in which they are spread among others.
std::vector<std::uint64_t> rows_in_batches(const Handle& handle, const LayerSpec& spec, Index batch) {
  constexpr Index kTokens = 64;
  std::vector<std::uint64_t> out(static_cast<std::size_t>(kTokens * spec.out_features));
  const Index mine = std::max<Index>(1, std::min<Index>(kTokens, batch / 2));
  for (Index first = 0; first < kTokens; first += mine) {
    std::vector<Index> tokens;
    for (Index t = first; t < std::min(kTokens, first + mine); ++t) tokens.push_back(t);
    const Index count = static_cast<Index>(tokens.size());
    for (Index t = count; t < batch; ++t) tokens.push_back(1000 + first * 7 + t);
    std::mt19937 shuffle(static_cast<unsigned>(batch + first));
    for (std::size_t i = tokens.size(); i > 1; --i) std::swap(tokens[i - 1], tokens[shuffle() % i]);
    Layer layer(handle, spec, tokens);
    layer.forward();
    for (Index t = 0; t < layer.size(); ++t) {
      const Index token = tokens[static_cast<std::size_t>(t)];
      for (Index n = 0; token < kTokens && n < spec.out_features; ++n)
        out[static_cast<std::size_t>(token * spec.out_features + n)] = layer.y().bits(0, t, n);
    }
  }
  return out;
}

void batch_invariance(bool cuda, const std::vector<Index>& batches, LayerSpec spec) {
  for (const Backend& backend : backends(cuda)) {
    if (!cuda && &backend != &backends(cuda).front()) break;  // the families give the same bits: moe_test.cpp
    const Handle handle(backend);
    for (const std::int32_t type : {GGM_TYPE_FLOAT32, GGM_TYPE_BFLOAT16, GGM_TYPE_FLOAT16}) {
      std::vector<std::uint64_t> first;
      for (const std::int32_t combine : {GGM_COMBINE_ORDERED, GGM_COMBINE_TWO_STEP}) {
        spec.type = type;
        spec.combine = combine;
        const std::string text = text_of(backend, spec);
        if (!case_selected(text)) continue;
        GGM_CASE(text);
        Layer alone(handle, spec, first_tokens(64));
        alone.forward();
        const std::vector<std::uint64_t> want = alone.y().all_bits();
        if (first.empty()) first = want;
        CHECK((want == first));  // both combines
        for (const Index batch : batches) {
          INFO("batch of " << batch);
          REQUIRE((rows_in_batches(handle, spec, batch) == want));
        }
      }
    }
  }
}

// ---- fused equals unfused ----

void fused_equals_unfused(bool cuda, Index tokens, LayerSpec spec) {
  for (const Backend& backend : backends(cuda)) {
    const Handle handle(backend);
    for (const std::int32_t type : kFloatTypes)
      for (int variant = 0; variant < 8; ++variant) {
        spec.type = type;
        spec.order = variant & 1 ? GGM_ORDER_KN : GGM_ORDER_NK;
        spec.weights = (variant & 2) == 0;
        spec.wide_product = variant & 4;
        spec.wide_output = is_16bit(type) && variant == 3;
        spec.combine = GGM_COMBINE_TWO_STEP;
        const std::string text = text_of(backend, spec);
        if (!case_selected(text)) continue;
        GGM_CASE(text);
        Layer layer(handle, spec, first_tokens(tokens));
        layer.backward();
        const std::vector<std::uint64_t> dx = layer.dx().all_bits(), dw = layer.d_weight().all_bits(),
                                         dr = layer.d_routing_weights().all_bits();
        layer.forward();
        const std::vector<std::uint64_t> y = layer.y().all_bits();
        const Layer::Unfused want = layer.unfused();
        CHECK((y == want.y));
        CHECK((dx == want.dx));
        CHECK((dw == want.d_weight));
        CHECK((dr == want.d_routing_weights));
        for (const std::int32_t combine : {GGM_COMBINE_ORDERED, GGM_COMBINE_AUTO}) {
          spec.combine = combine;
          INFO("combine " << combine);
          Layer other(handle, spec, first_tokens(tokens));
          other.backward();
          CHECK((other.dx().all_bits() == want.dx));
          // Two-step scales dy beforehand, ordered in the product.
          CHECK((other.d_weight().all_bits() == want.d_weight));
          CHECK((other.d_routing_weights().all_bits() == want.d_routing_weights));
          other.forward();
          CHECK((other.y().all_bits() == want.y));
        }
      }
  }
}

// ---- what never changes a bit ----

// Bits of y and of every gradient of a layer, on a stream that is not the default one.
std::vector<std::uint64_t> all_bits(const Handle& handle, const LayerSpec& spec, Index tokens, std::size_t extra_workspace) {
  Layer layer(handle, spec, first_tokens(tokens));
  layer.scene().set_extra_workspace(extra_workspace);
  BusyStream stream(handle.backend());
  layer.scene().set_stream(stream.stream());
  std::vector<std::uint64_t> all;
  const auto take = [&all](const Tensor& tensor) {
    const std::vector<std::uint64_t> bits = tensor.all_bits();
    all.insert(all.end(), bits.begin(), bits.end());
  };
  layer.backward();
  for (const Tensor* t : {&layer.dx(), &layer.d_weight(), &layer.d_bias(), &layer.d_routing_weights()}) take(*t);
  layer.forward();
  take(layer.y());
  return all;
}

void unchanged_bits(bool cuda, Index tokens, LayerSpec base) {
  const Handle handle(backends(cuda).front());
  base.bias = true;
  each_form(handle.backend(), base, [&](const LayerSpec& spec) {
    const std::vector<std::uint64_t> want = all_bits(handle, spec, tokens, 0);
    for (const std::int32_t sm_limit : {1, 2, 7, 1000}) {
      LayerSpec limited = spec;
      limited.sm_limit = sm_limit;
      INFO("sm_limit " << sm_limit);
      CHECK((all_bits(handle, limited, tokens, 0) == want));
    }
    for (const Index misalign : {1, 2, 3, 4, 5, 8}) {
      LayerSpec shifted = spec;
      shifted.misalign = misalign;
      INFO("misaligned by " << misalign << " elements");
      CHECK((all_bits(handle, shifted, tokens, 0) == want));
    }
    CHECK((all_bits(handle, spec, tokens, 1 << 20) == want));
  });
}

void separate_calls(bool cuda, Index tokens, LayerSpec base) {
  const Handle handle(backends(cuda).front());
  base.bias = true;
  each_form(handle.backend(), base, [&](const LayerSpec& spec) {
    Layer together(handle, spec, first_tokens(tokens)), apart(handle, spec, first_tokens(tokens));
    together.backward();
    apart.backward(GGM_GRADIENT_X);
    CHECK((apart.dx().all_bits() == together.dx().all_bits()));
    apart.backward(GGM_GRADIENT_WEIGHT);
    CHECK((apart.d_weight().all_bits() == together.d_weight().all_bits()));
    apart.backward(GGM_GRADIENT_BIAS);
    CHECK((apart.d_bias().all_bits() == together.d_bias().all_bits()));
    apart.backward(GGM_GRADIENT_ROUTING_WEIGHTS);
    CHECK((apart.d_routing_weights().all_bits() == together.d_routing_weights().all_bits()));
  });
}

// ---- limits at real sizes ----

void real_sizes(bool cuda, Index rows, Index n, Index k) {
  for (const Backend& backend : backends(cuda)) {
    if (!cuda && &backend != &backends(cuda).front()) break;
    const Handle handle(backend);
    for (const std::int32_t type : {GGM_TYPE_FLOAT32, GGM_TYPE_BFLOAT16, GGM_TYPE_FLOAT16})
      for (const std::int32_t out : {type, std::int32_t{GGM_TYPE_FLOAT32}}) {
        const std::string text = backend.name + " " + name_of(type) + "->" + name_of(out);
        if (!case_selected(text)) continue;
        GGM_CASE(text);
        Scene scene(handle);
        ggm_grouped_gemm_problem_t p = GGM_GROUPED_GEMM_PROBLEM_INIT;
        p.groups = 1;
        p.m = rows;
        p.n = n;
        p.k = k;
        p.b_order = GGM_ORDER_NK;
        p.a_type = p.b_type = type;
        p.d_type = out;
        Tensor& a = scene.input("a", type, {1, rows, k}).fill([](Index, Index r, Index c) { return uniform(1, r, c); });
        Tensor& b = scene.input("b", type, {1, n, k}).fill([](Index, Index r, Index c) { return uniform(2, r, c); });
        Tensor& d = scene.output("d", out, {1, rows, n});
        ggm_grouped_gemm_tensors_t t = GGM_GROUPED_GEMM_TENSORS_INIT;
        t.group_sizes = scene.input("group_sizes", kInt32, {1, 1, 1}).fill([&](auto, auto, auto) { return rows; }).data();
        t.a = a.data();
        t.b = b.data();
        t.d = d.data();
        scene.run(op::grouped_gemm, p, t);
        const double error = relative_error(
            d.values(), product(rows, n, k, a.initial_values().data(), GGM_ORDER_MK, b.initial_values().data(), GGM_ORDER_NK));
        CHECK(error <= product_limit(type, out, k));
      }
  }
}

LayerSpec small() {
  LayerSpec spec;
  spec.top_k = 3;
  spec.experts = 7;
  spec.in_features = 72;
  spec.out_features = 136;
  return spec;
}
// At least four waves of 128x128 tiles, two blocks on each of 132 multiprocessors, in every product: 32,768 rows x 768 or 640
// columns, and 40 gradients of 768 x 640.
LayerSpec waves() {
  LayerSpec spec;
  spec.top_k = 8;
  spec.experts = 40;
  spec.in_features = 640;
  spec.out_features = 768;
  spec.bias = true;
  return spec;
}

}  // namespace

TEST_CASE("promise: determinism, 20 runs", "[host]") { determinism(false, 150, small(), 20); }
TEST_CASE("promise: determinism, 1000 runs of four waves of tiles beside a busy stream, GPU", "[gpu]") {
  determinism(true, 4096, waves(), 1000);
}
TEST_CASE("promise: determinism of the separate operations", "[host]") { determinism_of_steps(false, 150, small(), 5); }
TEST_CASE("promise: determinism of the separate operations, GPU", "[gpu]") { determinism_of_steps(true, 700, small(), 30); }
TEST_CASE("promise: batch invariance of 64 tokens in batches of 2 to 4096", "[host]") {
  batch_invariance(false, {2, 17, 256, 4096}, small());
}
TEST_CASE("promise: batch invariance of 64 tokens in batches of 2 to 32768, GPU", "[gpu]") {
  LayerSpec spec = small();
  spec.in_features = 200;
  spec.out_features = 136;
  batch_invariance(true, {2, 17, 256, 4096, 32768}, spec);
}
TEST_CASE("promise: fused equals unfused bit for bit on random data", "[host]") { fused_equals_unfused(false, 65, small()); }
TEST_CASE("promise: fused equals unfused bit for bit on random data, GPU", "[gpu]") {
  fused_equals_unfused(true, 700, small());
}
TEST_CASE("promise: sm_limit, alignment, stream and a larger workspace never change a bit", "[host]") {
  unchanged_bits(false, 60, small());
}
TEST_CASE("promise: sm_limit, alignment, stream and a larger workspace never change a bit, GPU", "[gpu]") {
  unchanged_bits(true, 700, small());
}
TEST_CASE("promise: gradients asked for apart have the bits of one call", "[host]") { separate_calls(false, 60, small()); }
TEST_CASE("promise: gradients asked for apart have the bits of one call, GPU", "[gpu]") { separate_calls(true, 700, small()); }
TEST_CASE("promise: products of long sums keep the limits", "[host]") { real_sizes(false, 64, 96, 5000); }
TEST_CASE("promise: products of long sums keep the limits, GPU", "[gpu]") { real_sizes(true, 128, 128, 20000); }
