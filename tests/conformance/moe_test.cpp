// ggm_moe_forward and ggm_moe_backward over their tables. The operations are multilinear, so on small integers every gradient
// of the reference is exact; moe_gradient_test.cpp checks that reference once more by differences with step 1.
#include "conformance/families.h"
#include "conformance/moe_case.h"

using namespace ggm_test;

namespace {

template <typename Run>
void integers(bool cuda, std::int32_t type, bool backward) {
  for (const Backend& backend : backends(cuda)) {
    const Handle handle(backend);
    for (const MoeCase& line : moe_cases(type, Data::integers, backward)) {
      const std::string text = backend.name + " " + line.text();
      if (!case_selected(text)) continue;
      GGM_CASE(text);
      Run run(handle, line);
      run.run_twice();
      run.check();
    }
  }
}
void forward(bool cuda, std::int32_t type) { integers<MoeForwardRun>(cuda, type, false); }
void backward(bool cuda, std::int32_t type) { integers<MoeBackwardRun>(cuda, type, true); }

template <typename Run>
void random(bool cuda, bool is_backward) {
  for (const std::int32_t type : kFloatTypes)
    each_family<Run>(cuda, moe_cases(type, Data::random, is_backward), [](const Run& run) { return run.output_bits(); });
}

// Sizes at which the ordered combine makes 256 of its 1104 columns at a time (plan_test.cpp: "ordered combine: so many columns
// at a time as the bytes of its sums hold"); the last part is narrower. Both combines promise the same bits.
template <typename Run>
void ordered_in_parts(bool backward) {
  MoeCase line;
  line.data = Data::random;
  line.routing = {2048, 8, 2, Locality::num_tokens, Ids::some_none, 5};
  std::int64_t& inner = backward ? line.out_features : line.in_features;
  inner = 4096;
  (backward ? line.in_features : line.out_features) = 1104;
  line.routing_weight_type = GGM_TYPE_FLOAT32;
  line.bias_type = GGM_TYPE_FLOAT32;
  if (backward) line.gradients = GGM_GRADIENT_X | GGM_GRADIENT_ROUTING_WEIGHTS;
  struct Variant {
    std::int32_t type, order, id_type;
    bool add, keep;
    std::int64_t gap;
  };
  constexpr Variant kVariants[] = {{GGM_TYPE_BFLOAT16, GGM_ORDER_NK, GGM_INDEX_INT32, false, false, 0},
                                   {GGM_TYPE_FLOAT16, GGM_ORDER_NK, GGM_INDEX_INT64, true, true, 8},
                                   {GGM_TYPE_BFLOAT16, GGM_ORDER_KN, 0, true, false, 0},
                                   {GGM_TYPE_FLOAT16, GGM_ORDER_KN, GGM_INDEX_INT32, false, true, 1}};
  std::vector<Handle> handles;
  for (const Backend& backend : backends(true)) handles.emplace_back(backend);
  for (const Variant& variant : kVariants) {
    line.type = variant.type;
    line.order = variant.order;
    line.id_type = variant.id_type;
    line.add = variant.add;
    line.keep = variant.keep;
    line.gap = variant.gap;
    GGM_CASE(line.text());
    line.combine = GGM_COMBINE_TWO_STEP;
    Run whole(handles.back(), line);
    whole.run();
    const std::vector<std::uint64_t> want = whole.output_bits();
    line.combine = GGM_COMBINE_ORDERED;
    for (const Handle& handle : handles) {
      INFO(handle.backend().name);
      Run parts(handle, line);
      parts.run_twice();
      REQUIRE((parts.output_bits() == want));
    }
  }
}

}  // namespace

TEST_CASE("moe_forward: integers bit for bit, float32", "[host]") { forward(false, GGM_TYPE_FLOAT32); }
TEST_CASE("moe_forward: integers bit for bit, bfloat16", "[host]") { forward(false, GGM_TYPE_BFLOAT16); }
TEST_CASE("moe_forward: integers bit for bit, float16", "[host]") { forward(false, GGM_TYPE_FLOAT16); }
TEST_CASE("moe_forward: integers bit for bit, float64", "[host]") { forward(false, GGM_TYPE_FLOAT64); }
TEST_CASE("moe_forward: integers bit for bit, float32, GPU", "[gpu]") { forward(true, GGM_TYPE_FLOAT32); }
TEST_CASE("moe_forward: integers bit for bit, bfloat16, GPU", "[gpu]") { forward(true, GGM_TYPE_BFLOAT16); }
TEST_CASE("moe_forward: integers bit for bit, float16, GPU", "[gpu]") { forward(true, GGM_TYPE_FLOAT16); }
TEST_CASE("moe_forward: integers bit for bit, float64, GPU", "[gpu]") { forward(true, GGM_TYPE_FLOAT64); }

TEST_CASE("moe_backward: integers bit for bit, float32", "[host]") { backward(false, GGM_TYPE_FLOAT32); }
TEST_CASE("moe_backward: integers bit for bit, bfloat16", "[host]") { backward(false, GGM_TYPE_BFLOAT16); }
TEST_CASE("moe_backward: integers bit for bit, float16", "[host]") { backward(false, GGM_TYPE_FLOAT16); }
TEST_CASE("moe_backward: integers bit for bit, float64", "[host]") { backward(false, GGM_TYPE_FLOAT64); }
TEST_CASE("moe_backward: integers bit for bit, float32, GPU", "[gpu]") { backward(true, GGM_TYPE_FLOAT32); }
TEST_CASE("moe_backward: integers bit for bit, bfloat16, GPU", "[gpu]") { backward(true, GGM_TYPE_BFLOAT16); }
TEST_CASE("moe_backward: integers bit for bit, float16, GPU", "[gpu]") { backward(true, GGM_TYPE_FLOAT16); }
TEST_CASE("moe_backward: integers bit for bit, float64, GPU", "[gpu]") { backward(true, GGM_TYPE_FLOAT64); }

TEST_CASE("moe_forward: random data within the limits, all families the same bits", "[host]") {
  random<MoeForwardRun>(false, false);
}
TEST_CASE("moe_backward: random data within the limits, all families the same bits", "[host]") {
  random<MoeBackwardRun>(false, true);
}
TEST_CASE("moe_forward: random data within the limits, all families the same bits, GPU", "[gpu]") {
  random<MoeForwardRun>(true, false);
}
TEST_CASE("moe_backward: random data within the limits, all families the same bits, GPU", "[gpu]") {
  random<MoeBackwardRun>(true, true);
}

TEST_CASE("moe_forward: ordered combine of some columns at a time has the bits of two-step, GPU", "[gpu]") {
  ordered_in_parts<MoeForwardRun>(false);
}
TEST_CASE("moe_backward: ordered combine of some columns at a time has the bits of two-step, GPU", "[gpu]") {
  ordered_in_parts<MoeBackwardRun>(true);
}
