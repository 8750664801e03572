// Rows of tokens that the forward relays through a window of memory (src/cuda/device/hopper/relay_feed.cuh), more of them than
// it holds: the bits of the portable kernels, again and again, in graphs and on streams.
#include "conformance/hopper_runs.h"

using namespace ggm_test;

namespace {

const char* const kRelay = "wgmma_144x128_relay";
// So long that the window of relayed rows holds 1,024 of them, which then pass through it several times.
constexpr Index kLongRow = 16376;

LayerSpec long_rows(Index experts) {
  LayerSpec spec;
  spec.type = GGM_TYPE_BFLOAT16;
  spec.top_k = 6;
  spec.experts = experts;
  spec.in_features = kLongRow;
  spec.out_features = 40;
  return spec;
}

}  // namespace

TEST_CASE("hopper: relayed rows have the bits of the portable kernels, however often they pass the window, GPU",
          "[gpu][hopper]") {
  Families families;
  struct Shape {
    Index tokens, top_k, experts, in_features, out_features;
    Ids ids;
  };
  int lines = 0;
  for (const Shape& shape : {Shape{300, 8, 1, kLongRow, 264, Ids::uniform}, Shape{200, 8, 30, kLongRow, 8, Ids::skewed},
                             Shape{400, 6, 3, 8200, 136, Ids::some_none}, Shape{1200, 8, 1, 4096, 2100, Ids::uniform},
                             Shape{900, 4, 60, 136, 264, Ids::skewed}}) {
    MoeCase c;
    c.type = GGM_TYPE_BFLOAT16;
    c.data = Data::random;
    c.routing = {shape.tokens, shape.top_k, shape.experts, Locality::all_local, shape.ids, 9u};
    c.in_features = shape.in_features;
    c.out_features = shape.out_features;
    c.combine = GGM_COMBINE_TWO_STEP;
    c.routing_weight_type = GGM_TYPE_FLOAT32;
    if (lines++ % 2 == 1) {  // the routing arrays are given, with rows that nobody has, and one cluster does it all
      c.id_type = 0;
      c.routing.locality = Locality::max_rows;
      c.sm_limit = 2;
    }
    require_same_layer<MoeForwardRun>(families, c);
  }
}

TEST_CASE("hopper: 1000 runs of relayed rows, GPU", "[gpu][hopper]") {
  const Forced forced(kRelay);
  Families families;
  for (const Index experts : {6, 20}) {
    INFO(experts << " experts");
    Layer layer(families.hopper, long_rows(experts), first_tokens(300));
    layer.forward();
    REQUIRE(families.plan.has(kRelay));
    CHECK(differences_of_runs(families.hopper.backend(), layer.forward_call(), 1000) == 0);
  }
}

TEST_CASE("hopper: a captured layer of relayed rows replayed with other routing and with no rows, GPU", "[gpu][hopper]") {
  const Forced forced(kRelay);
  replay(long_rows(8), 500, false);
}

TEST_CASE("hopper: layers of relayed rows on two streams at once, GPU", "[gpu][hopper]") {
  const Forced forced(kRelay);
  Families families;
  Layer first(families.hopper, long_rows(8), first_tokens(500)), second(families.hopper, long_rows(20), first_tokens(300));
  first.forward();
  second.forward();
  two_streams(families.hopper.backend(), first.forward_call(), second.forward_call());
}
