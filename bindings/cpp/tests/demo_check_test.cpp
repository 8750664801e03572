// The demo's own check must be able to fail: one wrong element in each result of a layer that was right.
#include <cmath>
#include <memory>

#include "ggm/ggm.hpp"
#include "layer.h"
#include "memory.h"
#include "reference.h"
#include "run.h"
#include "support/test.h"

namespace {

bool passes(const demo::Layer& layer) {
  bool all = true;
  for (const demo::Check& check : demo::check_layer(layer)) all = all && check.passed();
  return all;
}

demo::Layer small_layer(std::int32_t type) {
  demo::Options options;
  options.type = type;
  options.tokens = 20;
  options.hidden = 33;
  options.out_features = 17;
  options.experts = 7;
  options.top_k = 3;
  demo::Text text;
  for (std::uint64_t i = 0; i < 9; ++i) text.tokens.push_back(demo::mix(i * i % 5));
  return demo::make_layer(options, text);
}

}  // namespace

TEST_CASE("demo: results of the host backend pass its check and one wrong element fails it", "[host]") {
  const ggm::handle handle = ggm::handle::on(GGM_BACKEND_HOST);
  for (const std::int32_t type : {GGM_TYPE_FLOAT32, GGM_TYPE_BFLOAT16}) {
    const std::unique_ptr<demo::Memory> memory = demo::Memory::make(handle.info());
    demo::Layer layer = small_layer(type);
    const demo::RunResult run = demo::run_layer(handle, *memory, layer);
    CHECK(run.repeat_same_bits);
    CHECK(run.combine_same_bits);
    CHECK(run.alone_same_bits);
    CHECK(run.faults == 0);
    REQUIRE(passes(layer));

    for (demo::Tensor* tensor : {&layer.y, &layer.dx, &layer.d_weight}) {
      for (const float wrong : {25.0f, std::nanf("")}) {
        double old = 0;
        tensor->read(5, 1, &old);
        tensor->set(5, wrong);
        CHECK(!passes(layer));
        tensor->set(5, static_cast<float>(old));
        CHECK(passes(layer));
      }
    }
    layer.d_routing_weights[4] += 1.0f;
    CHECK(!passes(layer));
  }
}
