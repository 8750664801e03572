// Random layers of random data: every kernel family, number of threads, form of the combine and alignment gives the same bits.
#include <memory>

#include "conformance/moe_case.h"
#include "fuzz/fuzz.h"

namespace ggm_test::fuzz {
namespace {

MoeCase draw_case(Draw& draw) {
  MoeCase line;
  line.data = Data::random;
  line.type = draw.float_type();
  const bool wide = line.type == GGM_TYPE_FLOAT64, narrow = is_16bit(line.type);
  line.routing = {draw.between(1, 40), draw.between(1, 4),
                  draw.between(1, 6),  static_cast<Locality>(draw.choice(0, kLocalities - 1)),
                  Ids::some_none,      static_cast<std::uint32_t>(draw.bits())};
  line.in_features = draw.between(1, 200);
  line.out_features = draw.between(1, 200);
  line.order = draw.choice(GGM_ORDER_NK, GGM_ORDER_KN);
  line.input_rows = draw.choice(GGM_ROWS_TOKENS, GGM_ROWS_GROUPED);
  line.output_rows = draw.choice(GGM_ROWS_TOKENS, GGM_ROWS_GROUPED);
  if (draw.chance(70)) line.routing_weight_type = wide ? line.type : draw.choice(GGM_TYPE_FLOAT32, GGM_TYPE_FLOAT16);
  if (draw.chance(50)) line.bias_type = line.type;
  line.wide_product = draw.chance(50);
  line.wide_output = narrow && draw.chance(50);
  line.add = draw.chance(30);
  line.keep = draw.chance(30);
  line.id_type = draw.choice(0, GGM_INDEX_INT64);
  line.gap = draw.between(0, 3);
  line.strides = draw.choice(0, 2);
  return line;
}

// The bits of one form of the call.
std::vector<std::uint64_t> bits_of(const Handle& handle, const MoeCase& line) {
  std::unique_ptr<MoeRun> run;
  if (line.gradients) {
    run = std::make_unique<MoeBackwardRun>(handle, line);
  } else {
    run = std::make_unique<MoeForwardRun>(handle, line);
  }
  run->run();
  return run->output_bits();
}

void same_bits(const std::vector<Handle>& handles, std::uint64_t seed) {
  Draw draw(seed);
  MoeCase line = draw_case(draw);
  if (draw.chance(50)) line.gradients = static_cast<std::uint32_t>(draw.choice(1, 15));
  std::vector<std::uint64_t> want;
  for (const Handle& handle : handles)
    for (const std::int32_t combine : {GGM_COMBINE_ORDERED, GGM_COMBINE_TWO_STEP}) {
      line.combine = combine;
      line.misalign = draw.between(0, 8);
      line.sm_limit = draw.choice(0, 2);
      INFO(handle.backend().name << ", " << handle.backend().host_threads << " threads: " << line.text());
      const std::vector<std::uint64_t> got = bits_of(handle, line);
      if (want.empty()) want = got;
      REQUIRE((got == want));
    }
}

void every_form(bool cuda) {
  std::vector<Handle> handles;
  for (Backend backend : backends(cuda))
    for (const std::int32_t threads : {1, 3}) {
      if (cuda && threads > 1) continue;
      backend.host_threads = threads;
      handles.emplace_back(backend);
    }
  each_seed([&](std::uint64_t seed) { same_bits(handles, seed); });
}

}  // namespace
}  // namespace ggm_test::fuzz

TEST_CASE("fuzz: the same bits in every form of a layer", "[host]") { ggm_test::fuzz::every_form(false); }
TEST_CASE("fuzz: the same bits in every form of a layer, GPU", "[gpu]") { ggm_test::fuzz::every_form(true); }
