// Device data is never trusted: wrong ids, sizes, offsets, counts and contradictory routing arrays never touch anything else,
// never hang (the watchdog would say so), are counted exactly, and leave the good part of the result right.
#include "conformance/gemm_case.h"
#include "conformance/moe_case.h"

using namespace ggm_test;

namespace {

void moe(bool cuda, std::int32_t type, bool backward, std::uint32_t seeds) {
  for (const Backend& backend : backends(cuda)) {
    const Handle handle(backend);
    for (std::uint32_t seed = 1; seed <= seeds; ++seed) {
      MoeCase line;
      line.type = type;
      line.routing = {static_cast<std::int64_t>(seed * 13 % 90),           1 + seed % 5,   1 + seed % 9,
                      seed % 4 ? Locality::all_local : Locality::max_rows, Ids::some_none, seed};
      if (seed % 6 == 5) line.routing.locality = Locality::clamped_num_tokens;
      line.in_features = 40 + seed % 3;
      line.out_features = 24 + seed % 5;
      line.id_type = 0;
      line.hostile = seed;
      line.combine = static_cast<std::int32_t>(seed % 3);
      line.input_rows = seed / 3 % 2;
      line.output_rows = seed / 6 % 2;
      line.routing_weight_type = type == GGM_TYPE_FLOAT64 ? type : GGM_TYPE_FLOAT32;
      line.bias_type = seed % 2 ? type : 0;
      line.wide_output = type == GGM_TYPE_BFLOAT16 && seed % 4 == 1;
      line.keep = seed % 5 == 0;
      line.add = seed / 2 % 2;
      if (backward) line.gradients = GGM_GRADIENT_X | GGM_GRADIENT_WEIGHT | GGM_GRADIENT_ROUTING_WEIGHTS | GGM_GRADIENT_BIAS;
      const std::string text = backend.name + " " + line.text();
      if (!case_selected(text)) continue;
      GGM_CASE(text);
      std::unique_ptr<MoeRun> run;
      if (backward) {
        run = std::make_unique<MoeBackwardRun>(handle, line);
      } else {
        run = std::make_unique<MoeForwardRun>(handle, line);
      }
      run->run_twice();
      run->check();
    }
  }
}

void gemm(bool cuda, std::int32_t type, std::uint32_t seeds) {
  for (const Backend& backend : backends(cuda)) {
    const Handle handle(backend);
    for (std::uint32_t seed = 1; seed <= seeds; ++seed)
      for (const std::int32_t layout : {GGM_LAYOUT_CONTIGUOUS, GGM_LAYOUT_MASKED, GGM_LAYOUT_VARIABLE_K})
        for (std::int32_t form = GGM_GROUPS_SIZES; form <= GGM_GROUPS_ROW_GROUP; ++form) {
          if (layout == GGM_LAYOUT_MASKED && form != GGM_GROUPS_SIZES) continue;
          GemmCase line;
          line.type = type;
          line.layout = layout;
          line.form = form;
          line.order = layout == GGM_LAYOUT_VARIABLE_K ? 0 : seed % 2 ? GGM_ORDER_NK : GGM_ORDER_KN;
          line.n = 17 + seed % 3;
          line.inner = 40 + seed % 5;
          line.groups = 1 + seed * 3 % 12;
          line.sizes = 2 + static_cast<int>(seed % 4);
          line.tail = seed % 7;
          line.index_type = seed % 3 ? GGM_INDEX_INT64 : GGM_INDEX_INT32;
          line.scale = seed % 4 == 2 ? Scale::add : Scale::plain;
          line.hostile = seed;
          const std::string text = backend.name + " " + line.text();
          if (!case_selected(text)) continue;
          GGM_CASE(text);
          GemmRun run(handle, line);
          // Overlapping groups may write one row in any order, so equal bits are asked of the other forms alone.
          form == GGM_GROUPS_STARTS_SIZES ? run.run() : run.run_twice();
          run.check();
        }
  }
}

void ids(bool cuda) {
  for (const Backend& backend : backends(cuda)) {
    const Handle handle(backend);
    for (std::uint32_t seed = 1; seed <= 12; ++seed) {
      MoeCase line;
      line.routing = {50 + seed,
                      1 + seed % 4,
                      1 + seed % 6,
                      static_cast<Locality>(seed % kLocalities),
                      seed % 2 ? Ids::extreme64 : Ids::extreme,
                      seed};
      line.in_features = 24;
      line.out_features = 17;
      line.id_type = seed % 2 ? GGM_INDEX_INT64 : GGM_INDEX_INT32;
      line.combine = static_cast<std::int32_t>(seed % 3);
      line.routing_weight_type = GGM_TYPE_FLOAT32;
      const std::string text = backend.name + " " + line.text();
      if (!case_selected(text)) continue;
      GGM_CASE(text);
      MoeForwardRun run(handle, line);
      run.run_twice();
      run.check();
    }
  }
}

}  // namespace

TEST_CASE("hostile: contradictory routing arrays, moe_forward", "[host]") {
  for (const std::int32_t type : {GGM_TYPE_FLOAT32, GGM_TYPE_BFLOAT16}) moe(false, type, false, 60);
}
TEST_CASE("hostile: contradictory routing arrays, moe_forward, GPU", "[gpu]") {
  for (const std::int32_t type : kFloatTypes) moe(true, type, false, 60);
}
TEST_CASE("hostile: contradictory routing arrays, moe_backward", "[host]") {
  for (const std::int32_t type : {GGM_TYPE_FLOAT32, GGM_TYPE_BFLOAT16}) moe(false, type, true, 60);
}
TEST_CASE("hostile: contradictory routing arrays, moe_backward, GPU", "[gpu]") {
  for (const std::int32_t type : kFloatTypes) moe(true, type, true, 60);
}
TEST_CASE("hostile: sizes, offsets, ends, starts and row groups of grouped_gemm", "[host]") {
  for (const std::int32_t type : {GGM_TYPE_FLOAT32, GGM_TYPE_FLOAT16}) gemm(false, type, 24);
}
TEST_CASE("hostile: sizes, offsets, ends, starts and row groups of grouped_gemm, GPU", "[gpu]") {
  for (const std::int32_t type : kFloatTypes) gemm(true, type, 24);
}
TEST_CASE("hostile: ids at the ends of their type, moe_forward", "[host]") { ids(false); }
TEST_CASE("hostile: ids at the ends of their type, moe_forward, GPU", "[gpu]") { ids(true); }
