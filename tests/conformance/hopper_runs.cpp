#include "conformance/hopper_runs.h"

#include <cstring>

#include "conformance/graph.h"
#include "support/busy_stream.h"

namespace ggm_test {

std::vector<Bits> results_of(Layer& layer, bool backward) {
  if (!backward) return {layer.y().all_bits()};
  return {layer.dx().all_bits(), layer.d_weight().all_bits(), layer.d_bias().all_bits(), layer.d_routing_weights().all_bits()};
}
void call_layer(Layer& layer, bool backward) { backward ? layer.backward() : layer.forward(); }

void replay(const LayerSpec& spec, Index count, bool backward) {
  INFO("combine " << spec.combine << ", backward " << backward << ", K " << spec.in_features);
  Families families;
  CaptureGraph graph;
  graph.keep_graph = true;
  Layer layer(families.hopper, spec, first_tokens(count));
  layer.scene().set_observer(&graph);
  layer.scene().set_stream(graph.stream());
  Buffer workspace(families.hopper.backend(), std::size_t{64} << 20);  // lives as long as the graph
  layer.scene().set_workspace(&workspace);
  call_layer(layer, backward);
  REQUIRE(graph.failures == 0);
  REQUIRE(families.plan.has_wgmma());
  for (const char* routing : {"other tokens", "one token's experts", "no rows", "other tokens again"}) {
    INFO("replayed with " << routing);
    std::vector<Index> tokens = first_tokens(count);
    for (Index& token : tokens) token = std::strcmp(routing, "one token's experts") == 0 ? 7 : token * 3 + 9000;
    Layer plain(families.portable, spec, tokens);
    if (std::strcmp(routing, "no rows") == 0) plain.ids().fill([](Index, Index, Index) { return -1; });
    call_layer(plain, backward);
    layer.take_inputs(plain);
    REQUIRE(graph.replay());
    std::vector<Tensor*> outputs{&layer.y()};
    if (backward) outputs = {&layer.dx(), &layer.d_weight(), &layer.d_bias(), &layer.d_routing_weights()};
    for (Tensor* output : outputs) output->download();
    CHECK((results_of(layer, backward) == results_of(plain, backward)));
  }
}

void two_streams(const Backend& backend, const ReadyCall& first, const ReadyCall& second) {
  const ReadyCall calls[] = {first, second};
  Repeated outputs[] = {{backend, calls[0].outputs}, {backend, calls[1].outputs}};
  Buffer workspaces[] = {{backend, calls[0].workspace_bytes}, {backend, calls[1].workspace_bytes}};
  BusyStream streams[] = {BusyStream(backend), BusyStream(backend)};
  for (int round = 0; round < 30; ++round) {
    for (Repeated& output : outputs) output.poison();
    synchronize(backend);
    for (int repeat = 0; repeat < 8; ++repeat)
      for (int i = 0; i < 2; ++i)
        GGM_REQUIRE_OK(calls[i].make(workspaces[i].data(), workspaces[i].bytes(), streams[i].stream()));
    synchronize(backend);
    for (Repeated& output : outputs) output.compare();
  }
  for (Repeated& output : outputs) CHECK(output.differences() == 0);
}

}  // namespace ggm_test
