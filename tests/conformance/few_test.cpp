// Few ids and few groups, where each kernel does the work of several: sizes around every limit of the sort in one block and of
// the table in one pass, with each option that changes what a row or a group is. References as everywhere: plain loops.
#include "conformance/gemm_case.h"
#include "conformance/graph.h"
#include "conformance/layer.h"
#include "conformance/moe_case.h"

using namespace ggm_test;

namespace {

using Index = std::int64_t;

// One item a thread up to 512 ids, four warps of counts at once, 128 ids a warp beyond, one block up to 4,096 and 1,024
// experts; two experts a thread, 64 a warp. Slots up to 64 have their turns counted by the block.
struct Size {
  Index tokens, top_k, experts;
};
constexpr Size kSizes[] = {{1, 1, 1},    {1, 8, 64},     {16, 8, 128},   {17, 8, 129},    {64, 8, 256},  {511, 1, 3},
                           {512, 1, 63}, {513, 1, 65},   {57, 9, 1},     {100, 10, 1000}, {128, 8, 8},   {1024, 1, 512},
                           {341, 3, 7},  {250, 8, 1023}, {512, 4, 1024}, {32, 64, 100},   {31, 65, 100}, {2, 2048, 17},
                           {1, 4096, 5}, {4095, 1, 33},  {512, 8, 1024}, {4097, 1, 9},    {64, 8, 1025}};

void run(const Handle& handle, const MoeCase& line, bool backward) {
  const std::string text = handle.backend().name + (backward ? " backward " : " forward ") + line.text();
  if (!case_selected(text)) return;
  GGM_CASE(text);
  if (backward) {
    MoeBackwardRun call(handle, line);
    call.run_twice();
    return call.check();
  }
  MoeForwardRun call(handle, line);
  call.run_twice();
  call.check();
}

// What decides which ids have rows, in turn with the other options, so that each meets each within a few sizes.
void each_size(const Backend& backend, std::int32_t type) {
  const bool wide = type == GGM_TYPE_FLOAT64;
  const Handle handle(backend);
  std::uint32_t turn = 0;
  for (const Size& size : kSizes)
    for (int locality = 0; locality < kLocalities; ++locality)
      for (const bool backward : {false, true}) {
        ++turn;
        if (is_16bit(type) && size.top_k > 10) continue;  // sums of so many are not exact
        MoeCase line;
        line.type = type;
        line.routing = {size.tokens,
                        size.top_k,
                        size.experts,
                        static_cast<Locality>(locality),
                        static_cast<Ids>((turn + turn / 6) % kIdPatterns),
                        turn};
        line.in_features = turn % 3 == 0 ? 16 : 8;
        line.out_features = turn % 2 == 0 ? 24 : 8;
        line.order = turn % 5 < 2 ? GGM_ORDER_KN : GGM_ORDER_NK;
        line.combine = turn % 3 == 1 ? GGM_COMBINE_ORDERED : GGM_COMBINE_TWO_STEP;
        line.id_type = turn % 4 < 2 ? GGM_INDEX_INT32 : GGM_INDEX_INT64;
        const std::int32_t weights[] = {0, GGM_TYPE_FLOAT32, GGM_TYPE_BFLOAT16, GGM_TYPE_FLOAT16};
        line.routing_weight_type = weights[(turn + turn / 4) % 4];
        if (wide && line.routing_weight_type != 0) line.routing_weight_type = GGM_TYPE_FLOAT64;
        line.bias_type = turn % 5 == 0 ? type : 0;
        line.gap = turn % 3 == 2 ? 8 : 0;
        line.input_rows = turn % 7 == 3 ? GGM_ROWS_GROUPED : GGM_ROWS_TOKENS;
        line.output_rows = turn % 7 == 5 ? GGM_ROWS_GROUPED : GGM_ROWS_TOKENS;
        if (backward) line.gradients = GGM_GRADIENT_X | GGM_GRADIENT_WEIGHT | GGM_GRADIENT_ROUTING_WEIGHTS | GGM_GRADIENT_BIAS;
        if (line.routing_weight_type == 0) line.gradients &= ~std::uint32_t{GGM_GRADIENT_ROUTING_WEIGHTS};
        if (line.bias_type == 0) line.gradients &= ~std::uint32_t{GGM_GRADIENT_BIAS};
        run(handle, line, backward);
      }
}

// Groups around the threads of a warp, the limit of one pass, and what lies beyond.
void each_group_count(const Backend& backend) {
  const Handle handle(backend);
  std::uint32_t turn = 0;
  for (const Index groups : {1, 31, 32, 33, 64, 255, 256, 257, 1023, 1024, 1025})
    for (const std::int32_t layout : {GGM_LAYOUT_CONTIGUOUS, GGM_LAYOUT_MASKED, GGM_LAYOUT_VARIABLE_K})
      for (std::int32_t form = GGM_GROUPS_SIZES; form <= GGM_GROUPS_ROW_GROUP; ++form)
        for (const std::uint32_t hostile : {0u, 1u}) {
          if (layout == GGM_LAYOUT_MASKED && form != GGM_GROUPS_SIZES) continue;
          // Groups that overlap write the same rows in any order.
          if (layout == GGM_LAYOUT_CONTIGUOUS && form == GGM_GROUPS_STARTS_SIZES && hostile != 0) continue;
          ++turn;
          GemmCase line;
          line.type = turn % 2 ? GGM_TYPE_BFLOAT16 : GGM_TYPE_FLOAT32;
          line.layout = layout;
          line.form = form;
          if (layout == GGM_LAYOUT_VARIABLE_K) line.order = 0;
          line.n = 8;
          line.inner = 16;
          line.groups = groups;
          line.sizes = layout == GGM_LAYOUT_MASKED ? 2 : turn % 3 == 0 ? 5 : turn % 3 == 1 ? 2 : 4;
          line.tail = turn % 2 * 5;
          line.index_type = turn % 4 < 2 ? GGM_INDEX_INT32 : GGM_INDEX_INT64;
          line.hostile = hostile * turn;
          const std::string text = backend.name + " " + line.text();
          if (!case_selected(text)) continue;
          GGM_CASE(text);
          GemmRun call(handle, line);
          call.run_twice();
          call.check();
        }
}

void each_type(bool cuda, std::int32_t type) {
  for (const Backend& backend : backends(cuda)) each_size(backend, type);
}

// Kernels of one captured forward.
int kernels_of_forward(const Handle& handle, Index tokens, std::int32_t combine, bool grouped) {
  MoeCase line;
  line.type = GGM_TYPE_BFLOAT16;
  line.routing = {tokens, 4, 16, Locality::all_local, Ids::uniform, 3u};
  line.in_features = line.out_features = 64;
  line.combine = combine;
  line.output_rows = grouped ? GGM_ROWS_GROUPED : GGM_ROWS_TOKENS;
  line.routing_weight_type = GGM_TYPE_FLOAT32;
  CaptureGraph graph;
  MoeForwardRun call(handle, line);
  call.scene().set_observer(&graph);
  call.scene().set_stream(graph.stream());
  call.run();
  call.check();
  REQUIRE(graph.failures == 0);
  return graph.kernels;
}

}  // namespace

TEST_CASE("few ids: every limit of the sort in one block, float32", "[host]") { each_type(false, GGM_TYPE_FLOAT32); }
TEST_CASE("few ids: every limit of the sort in one block, bfloat16", "[host]") { each_type(false, GGM_TYPE_BFLOAT16); }
TEST_CASE("few ids: every limit of the sort in one block, float64", "[host]") { each_type(false, GGM_TYPE_FLOAT64); }
TEST_CASE("few ids: every limit of the sort in one block, float32, GPU", "[gpu]") { each_type(true, GGM_TYPE_FLOAT32); }
TEST_CASE("few ids: every limit of the sort in one block, bfloat16, GPU", "[gpu]") { each_type(true, GGM_TYPE_BFLOAT16); }
TEST_CASE("few ids: every limit of the sort in one block, float64, GPU", "[gpu]") { each_type(true, GGM_TYPE_FLOAT64); }

TEST_CASE("few groups: every limit of the table in one pass", "[host]") {
  for (const Backend& backend : backends(false)) each_group_count(backend);
}
TEST_CASE("few groups: every limit of the table in one pass, GPU", "[gpu]") {
  for (const Backend& backend : backends(true)) each_group_count(backend);
}

TEST_CASE("few ids: a forward is three kernels, or two where the product finds its rows by at most 64 ids, GPU", "[gpu]") {
  for (const Backend& backend : cuda_backends()) {
    INFO(backend.name);
    const Handle handle(backend);
    for (const Index tokens : {1, 16, 17, 128, 1024}) {  // four ids each
      INFO(tokens << " tokens");
      CHECK(kernels_of_forward(handle, tokens, GGM_COMBINE_TWO_STEP, false) == (tokens <= 16 ? 2 : 3));
      CHECK(kernels_of_forward(handle, tokens, GGM_COMBINE_ORDERED, false) == 4);  // turns are cleared first
    }
    for (const Index tokens : {16, 128}) CHECK(kernels_of_forward(handle, tokens, GGM_COMBINE_TWO_STEP, true) == 3);
  }
}
