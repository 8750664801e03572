// The kernels for few rows that find their groups themselves, each by its name: against the references, and with the bits of a
// tile kernel of the portable family, whatever the groups, the ids, the layout and the operands' alignment. Then what the plan
// launches without a name.
#include <numeric>
#include <string>
#include <type_traits>
#include <utility>

#include "conformance/gemm_case.h"
#include "conformance/graph.h"
#include "conformance/moe_case.h"
#include "plan/tableless_table.h"
#include "support/forced.h"
#include "support/inputs.h"

using namespace ggm_test;

namespace {

using Index = std::int64_t;
using Bits = std::vector<std::uint64_t>;

constexpr std::int32_t kTypes[] = {GGM_TYPE_BFLOAT16, GGM_TYPE_FLOAT16};
constexpr std::int32_t kForms[] = {GGM_GROUPS_SIZES, GGM_GROUPS_OFFSETS, GGM_GROUPS_ENDS};

class Draw {
 public:
  explicit Draw(std::uint32_t seed) : seed_(seed) {}
  std::uint32_t number(std::uint32_t below) { return mix(seed_, count_++, 91) % below; }
  template <typename T, std::size_t size>
  T of(const T (&list)[size]) {
    return list[number(size)];
  }
  bool one_in(std::uint32_t n) { return number(n) == 0; }

 private:
  std::uint32_t seed_, count_ = 0;
};

constexpr Index kInner[] = {8, 16, 56, 64, 72, 200, 520, 1032};  // the last two pass the stages more than once
constexpr Index kColumns[] = {8, 24, 32, 37, 40, 64, 200};
constexpr Index kGroups[] = {1, 2, 7, 32, 33, 100, 255, 256};
constexpr int kStrides[] = {0, 0, 2, 3};
constexpr std::int32_t kWeightTypes[] = {0, GGM_TYPE_FLOAT32, GGM_TYPE_FLOAT32, GGM_TYPE_BFLOAT16, GGM_TYPE_FLOAT16};
constexpr Index kMostElements = 1 << 20;  // of the weights

// ---- what these kernels serve, from the case alone: elsewhere their names are refused ----

bool few_enough(Index groups, Index rows, std::int32_t sm_limit) {
  return groups >= 1 && groups <= ggm::kTablelessGroups && rows >= 1 && rows <= ggm::kTablelessMostRows && sm_limit == 0;
}

bool serves(const GemmCase& c) {
  const bool in_order = c.form == GGM_GROUPS_SIZES || c.form == GGM_GROUPS_OFFSETS || c.form == GGM_GROUPS_ENDS;
  const Index rows = std::accumulate(c.own_sizes.begin(), c.own_sizes.end(), c.tail);
  return c.layout == GGM_LAYOUT_CONTIGUOUS && in_order && c.scale == Scale::plain && few_enough(c.groups, rows, c.sm_limit);
}

// Rows by tokens add in turn under the ordered combine, unless what all of them have fits into the bytes of their float32 sum.
bool adds_in_turn(const MoeCase& c, Index rows) {
  if (c.combine != GGM_COMBINE_ORDERED) return false;
  return c.wide_output || rows * (c.wide_product ? 4 : 2) > c.routing.tokens * 4;
}

bool serves(const MoeCase& c) {
  const Index rows = c.routing.input().row_bound();
  const bool backward = c.gradients != 0;
  const bool by_tokens = (backward ? c.input_rows : c.output_rows) == GGM_ROWS_TOKENS;
  const bool plain = backward ? c.gradients == GGM_GRADIENT_X : c.bias_type == 0;
  return by_tokens && plain && !adds_in_turn(c, rows) && few_enough(c.routing.experts, rows, c.sm_limit);
}

// ---- drawn cases ----

// Few rows a group and empty ones anywhere; or some of several tiles; or all rows in one.
std::vector<Index> draw_sizes(Draw* draw, Index groups) {
  std::vector<Index> sizes(static_cast<std::size_t>(groups), 0);
  const std::uint32_t pattern = draw->number(3);
  if (pattern == 0) {
    sizes[draw->number(static_cast<std::uint32_t>(groups))] = 1 + draw->number(70);
    return sizes;
  }
  for (Index& size : sizes)
    if (!draw->one_in(3)) size = draw->number(pattern == 1 && groups < 50 ? 40 : 5);
  sizes[draw->number(static_cast<std::uint32_t>(groups))] = 3;  // without any row nothing is launched, and no name served
  return sizes;
}

GemmCase draw_product(std::int32_t type, std::int32_t form, std::int32_t order, std::uint32_t seed) {
  Draw draw(seed * 64 + static_cast<std::uint32_t>(form * 8 + order * 4 + type));
  GemmCase c;
  c.type = type;
  c.data = draw.one_in(2) ? Data::random : Data::integers;
  c.form = form;
  c.order = order;
  c.n = draw.of(kColumns);
  c.inner = draw.of(kInner);
  c.groups = draw.of(kGroups);
  while (c.groups > 1 && c.groups * c.n * c.inner > kMostElements) c.groups /= 2;
  c.own_sizes = draw_sizes(&draw, c.groups);
  c.tail = draw.of({Index{0}, Index{0}, Index{5}});
  c.index_type = draw.one_in(2) ? GGM_INDEX_INT64 : GGM_INDEX_INT32;
  c.gap_a = draw.of({Index{0}, Index{8}});
  c.gap_b = draw.of({Index{0}, Index{8}});
  c.gap_d = draw.of({Index{0}, Index{1}, Index{8}});
  if (draw.one_in(8)) c.misalign = 1;  // these take another kernel, silently
  c.wide_output = draw.one_in(4);
  c.keep = draw.one_in(2);
  if (draw.one_in(3)) c.hostile = seed + 1;
  c.strides = draw.of(kStrides);
  if (draw.one_in(12)) c.scale = static_cast<Scale>(1 + draw.number(4));
  return c;
}

// The choices that every layer has.
void draw_options(Draw* draw, MoeCase* c) {
  c->data = Data::random;
  c->order = draw->one_in(2) ? GGM_ORDER_KN : GGM_ORDER_NK;
  c->input_rows = draw->one_in(3) ? GGM_ROWS_GROUPED : GGM_ROWS_TOKENS;
  c->routing_weight_type = draw->of(kWeightTypes);
  c->wide_product = draw->one_in(4);
  c->wide_output = draw->one_in(4);
  c->add = draw->one_in(4);
  c->keep = draw->one_in(2);
  c->gap = draw->of({Index{0}, Index{8}});
  c->strides = draw->of(kStrides);
}

// K and N of the product, which the backward has the other way round.
void draw_features(Draw* draw, bool backward, Index most_elements, MoeCase* c) {
  Index& inner = backward ? c->out_features : c->in_features;
  Index& columns = backward ? c->in_features : c->out_features;
  inner = draw->of(kInner);
  columns = draw->of(kColumns);
  while (c->routing.experts * inner * columns > most_elements) inner = inner / 16 * 8;
}

MoeCase draw_layer(std::int32_t type, bool backward, std::uint32_t seed) {
  constexpr Index shapes[][3] = {{1, 8, 64},   {1, 1, 1},  {3, 2, 4},   {16, 8, 128},
                                 {17, 4, 256}, {40, 2, 8}, {25, 8, 16}, {5, 3, 40}};
  constexpr std::int32_t ids[] = {GGM_INDEX_INT32, GGM_INDEX_INT64, 0};
  Draw draw(seed + (backward ? 9000u : 7000u) + static_cast<std::uint32_t>(type) * 100);
  MoeCase c;
  c.type = type;
  const Index* shape = shapes[seed % std::size(shapes)];
  c.routing = {
      shape[0], shape[1], shape[2], static_cast<Locality>(draw.number(kLocalities)), static_cast<Ids>(draw.number(kIdPatterns)),
      seed};
  draw_features(&draw, backward, 2 * kMostElements, &c);
  draw_options(&draw, &c);
  c.output_rows = draw.one_in(4) ? GGM_ROWS_GROUPED : GGM_ROWS_TOKENS;
  c.combine = draw.one_in(3) ? GGM_COMBINE_ORDERED : GGM_COMBINE_TWO_STEP;
  c.id_type = draw.of(ids);
  if (c.id_type == 0 && draw.one_in(2)) c.hostile = seed + 1;  // rows that no slot claims, inside a group
  if (!backward) {
    if (draw.one_in(12)) c.bias_type = type;
    return c;
  }
  c.gradients = GGM_GRADIENT_X;
  if (draw.one_in(12)) c.gradients |= GGM_GRADIENT_WEIGHT;
  if (c.routing_weight_type != 0 && draw.one_in(12)) c.gradients |= GGM_GRADIENT_ROUTING_WEIGHTS;
  return c;
}

// At most 64 ids, which the kernel reads itself where each may have a row: of one expert each or many, some bad or of other
// devices, of tokens that are not real.
MoeCase draw_few_ids(std::int32_t type, std::uint32_t seed) {
  constexpr Index shapes[][2] = {{1, 1}, {1, 8}, {4, 8}, {8, 8}, {16, 4}, {32, 2}, {64, 1}, {7, 9}, {1, 64}, {13, 5}};
  constexpr Index experts[] = {1, 2, 5, 16, 64, 129, 256};  // with the first ones more rows of an expert than a tile has
  constexpr std::int32_t ids[] = {GGM_INDEX_INT32, GGM_INDEX_INT64};
  Draw draw(seed + 8000 + static_cast<std::uint32_t>(type) * 100);
  MoeCase c;
  c.type = type;
  const Index* shape = shapes[seed % std::size(shapes)];
  c.routing = {shape[0],
               shape[1],
               experts[seed / std::size(shapes) % std::size(experts)],
               static_cast<Locality>(draw.number(kLocalities)),
               static_cast<Ids>(draw.number(kIdPatterns + 1)),
               seed};
  draw_features(&draw, false, kMostElements, &c);
  draw_options(&draw, &c);
  c.combine = draw.one_in(8) ? GGM_COMBINE_ORDERED : GGM_COMBINE_TWO_STEP;
  c.id_type = c.routing.ids == Ids::extreme64 ? GGM_INDEX_INT64 : draw.of(ids);
  if (draw.one_in(10)) c.misalign = 1;  // routed, and another kernel
  return c;
}

// ---- each kernel ----

// visit() with a tile kernel of the portable family, then with every tableless one.
template <typename Visit>
void each_kernel(const Visit& visit) {
  {
    const Forced forced(kTileKernel);
    visit(false);
  }
  for (const ggm::TablelessKernel& kernel : ggm::kTablelessKernels) {
    INFO("forced: " << kernel.name);
    const Forced forced(kernel.name);
    visit(true);
  }
}

// One case of any operation: refused by a tableless name where that serves nothing, else with the bits of the tile kernel.
template <typename Run, typename Operation, typename Case, typename BitsOf>
void require_same(const Handle& handle, const Operation& operation, const Case& line, const BitsOf& bits_of) {
  const std::string text = handle.backend().name + " " + operation.name + " " + line.text();
  if (!case_selected(text)) return;
  GGM_CASE(text);
  Bits want;
  each_kernel([&](bool tableless) {
    Run call(handle, line);
    const bool refused = tableless && !serves(line);
    std::size_t bytes = 0;
    GGM_REQUIRE_STATUS(refused ? GGM_STATUS_UNSUPPORTED : GGM_STATUS_SUCCESS,
                       operation.workspace_size(handle, &call.problem(), &bytes));
    if (refused) return;
    call.run_twice();
    call.check();
    if (!tableless)
      want = bits_of(call);
    else
      REQUIRE((bits_of(call) == want));
  });
}

void require_product(const Handle& handle, const GemmCase& line) {
  require_same<GemmRun>(handle, op::grouped_gemm, line, [](const GemmRun& run) { return run.d().all_bits(); });
}
void require_layer(const Handle& handle, const MoeCase& line) {
  const auto bits_of = [](const MoeRun& run) { return run.output_bits(); };
  if (line.gradients != 0) return require_same<MoeBackwardRun>(handle, op::moe_backward, line, bits_of);
  require_same<MoeForwardRun>(handle, op::moe_forward, line, bits_of);
}

void sweep_products(std::int32_t type, std::uint32_t seeds) {
  for (const Backend& backend : cuda_backends()) {
    const Handle handle(backend);
    for (std::uint32_t seed = 0; seed < seeds; ++seed)
      for (const std::int32_t form : kForms)
        for (const std::int32_t order : {GGM_ORDER_NK, GGM_ORDER_KN})
          require_product(handle, draw_product(type, form, order, seed));
  }
}

// `draw`: a case of a type and a seed.
template <typename DrawCase>
void sweep_layers(std::uint32_t seeds, const DrawCase& draw) {
  for (const Backend& backend : cuda_backends()) {
    const Handle handle(backend);
    for (const std::int32_t type : kTypes)
      for (std::uint32_t seed = 0; seed < seeds; ++seed) require_layer(handle, draw(type, seed));
  }
}

GemmCase few_rows(std::int32_t order) {
  GemmCase c;
  c.type = GGM_TYPE_BFLOAT16;
  c.data = Data::random;
  c.order = order;
  c.n = 200;
  c.inner = 1032;
  c.groups = 19;
  for (Index g = 0; g < c.groups; ++g) c.own_sizes.push_back(g % 3 == 0 ? 0 : g % 7 == 0 ? 21 : g % 5);
  c.tail = 3;
  return c;
}

// Two-step, gathered; 64 assignments of 16 experts, or 96.
MoeCase layer_of_few_rows(std::int32_t order, bool few_ids) {
  MoeCase c;
  c.type = GGM_TYPE_BFLOAT16;
  c.data = Data::random;
  c.routing = {few_ids ? 16 : 24, 4, 16, Locality::all_local, Ids::some_none, 3u};
  c.in_features = 1032;
  c.out_features = 200;
  c.order = order;
  c.combine = GGM_COMBINE_TWO_STEP;
  c.routing_weight_type = GGM_TYPE_FLOAT32;
  return c;
}

template <typename Run, typename Case>
void repeat(const Handle& handle, const Case& line) {
  INFO(line.text());
  Run run(handle, line);
  run.run();
  run.check();
  REQUIRE(differences_of_runs(handle.backend(), run.call(), 1000) == 0);
}

// ---- without a name ----

// Rows of a group on average, and the K, for which the plan takes each kernel: 2 + 3 * 1.4 + 1 fit the first tile, and
// 8 + 2 * 2.8 the second (suits_groups in plan/choose.cpp).
constexpr Index kAverage[] = {2, 8}, kProductK[] = {72, 2056};
static_assert(std::size(kAverage) == ggm::kTablelessKernelCount, "one for each kernel");

// Runs the case in a captured graph, and says what was launched.
template <typename Run, typename Case>
void capture(const Handle& handle, const Case& line, CaptureGraph* graph) {
  Run run(handle, line);
  run.scene().set_observer(graph);
  run.scene().set_stream(graph->stream());
  run.run();
  run.check();
  REQUIRE(graph->failures == 0);
}

// By the template argument in its mangled name.
bool launched(const CaptureGraph& graph, int kernel) {
  return graph.kernels_named("gemm_tablelessILi" + std::to_string(kernel) + "E") == 1 &&
         graph.kernels_named("gemm_tableless") == 1;
}

struct Kind {
  std::int32_t type, order;
};

void require_launched_for_product(const Handle& handle, const Kind& kind, int kernel) {
  GemmCase c;
  c.type = kind.type;
  c.order = kind.order;
  c.n = 200;
  c.inner = kProductK[kernel];
  c.groups = 16;
  c.own_sizes.assign(16, kAverage[kernel]);
  c.own_sizes[3] = 0;
  c.own_sizes[7] += kAverage[kernel] - 1;
  c.tail = 1;  // an unused row, which is cleared by the way
  CaptureGraph graph;
  capture<GemmRun>(handle, c, &graph);
  CHECK(launched(graph, kernel));
  CHECK(graph.kernels == 1);
}

void require_launched_for_layers(const Handle& handle, const Kind& kind, int kernel) {
  for (const Index assignments : {64, 68}) {
    INFO(assignments << " assignments");
    MoeCase c;
    c.type = kind.type;
    c.routing = {assignments / 4, 4, assignments / kAverage[kernel], Locality::all_local, Ids::uniform, 3u};
    c.in_features = kProductK[kernel];
    c.out_features = 64;
    c.order = kind.order;
    c.combine = GGM_COMBINE_TWO_STEP;
    c.routing_weight_type = GGM_TYPE_FLOAT32;
    for (const std::int32_t input_rows : {GGM_ROWS_TOKENS, GGM_ROWS_GROUPED}) {
      INFO("input_rows " << input_rows);
      c.input_rows = input_rows;
      CaptureGraph graph;
      capture<MoeForwardRun>(handle, c, &graph);
      CHECK(launched(graph, kernel));
      CHECK(graph.kernels == (assignments <= 64 ? 2 : 3));  // up to 64 ids are read by the product itself
    }
    c.input_rows = GGM_ROWS_TOKENS;
    c.gradients = GGM_GRADIENT_X;
    std::swap(c.in_features, c.out_features);
    CaptureGraph graph;
    capture<MoeBackwardRun>(handle, c, &graph);
    CHECK(launched(graph, kernel));
  }
}

}  // namespace

TEST_CASE("tableless kernels: products have the reference and the bits of a tile kernel, bfloat16, GPU", "[gpu]") {
  sweep_products(GGM_TYPE_BFLOAT16, 40);
}
TEST_CASE("tableless kernels: products have the reference and the bits of a tile kernel, float16, GPU", "[gpu]") {
  sweep_products(GGM_TYPE_FLOAT16, 25);
}
TEST_CASE("tableless kernels: layers have the reference and the bits of a tile kernel, GPU", "[gpu]") {
  sweep_layers(48, [](std::int32_t type, std::uint32_t seed) { return draw_layer(type, false, seed); });
}
TEST_CASE("tableless kernels: dx has the reference and the bits of a tile kernel, GPU", "[gpu]") {
  sweep_layers(48, [](std::int32_t type, std::uint32_t seed) { return draw_layer(type, true, seed); });
}
TEST_CASE("tableless kernels: layers of at most 64 ids have the reference and the bits of a tile kernel, GPU", "[gpu]") {
  sweep_layers(70, draw_few_ids);
}

TEST_CASE("tableless kernels: a name is refused for what they do not serve, GPU", "[gpu]") {
  const Handle handle(cuda_backends().front());
  const GemmCase product = few_rows(GGM_ORDER_NK);
  const MoeCase layer = layer_of_few_rows(GGM_ORDER_NK, true);
  const auto refused = [&](const auto& base, const auto& change) {
    auto line = base;
    REQUIRE(serves(line));
    change(&line);
    REQUIRE_FALSE(serves(line));
    if constexpr (std::is_same_v<decltype(line), GemmCase>)
      require_product(handle, line);
    else
      require_layer(handle, line);
  };
  refused(product, [](GemmCase* c) { c->layout = GGM_LAYOUT_MASKED; });
  for (const std::int32_t form : {GGM_GROUPS_STARTS_SIZES, GGM_GROUPS_ROW_GROUP})
    refused(product, [&](GemmCase* c) { c->form = form; });
  for (const Scale scale : {Scale::alpha, Scale::add, Scale::add_in_place, Scale::alpha_add_other_type})
    refused(product, [&](GemmCase* c) { c->scale = scale; });
  refused(product, [](GemmCase* c) { c->sm_limit = 1; });
  refused(product, [](GemmCase* c) {
    c->n = c->inner = 8;
    c->own_sizes[4] += ggm::kTablelessMostRows;
  });
  refused(product, [](GemmCase* c) {
    c->n = c->inner = 8;
    c->groups = ggm::kTablelessGroups + 1;
    c->own_sizes.assign(static_cast<std::size_t>(c->groups), 1);
  });
  refused(layer, [](MoeCase* c) { c->bias_type = c->type; });
  refused(layer, [](MoeCase* c) { c->output_rows = GGM_ROWS_GROUPED; });
  refused(layer, [](MoeCase* c) { c->combine = GGM_COMBINE_ORDERED; });
  refused(layer, [](MoeCase* c) {
    c->gradients = GGM_GRADIENT_X;
    c->input_rows = GGM_ROWS_GROUPED;
  });
  for (const std::uint32_t also : {GGM_GRADIENT_WEIGHT, GGM_GRADIENT_ROUTING_WEIGHTS})
    refused(layer, [&](MoeCase* c) { c->gradients = GGM_GRADIENT_X | also; });
}

TEST_CASE("tableless kernels: the same bits 1,000 times, GPU", "[gpu]") {
  const Handle handle(cuda_backends().front());
  for (const std::int32_t order : {GGM_ORDER_NK, GGM_ORDER_KN})
    for (const ggm::TablelessKernel& kernel : ggm::kTablelessKernels) {
      INFO(kernel.name);
      const Forced forced(kernel.name);
      repeat<GemmRun>(handle, few_rows(order));
      for (const bool few_ids : {false, true}) repeat<MoeForwardRun>(handle, layer_of_few_rows(order, few_ids));
    }
}

TEST_CASE("tableless kernels: the plan launches each for few rows, and nothing that they spare, GPU", "[gpu]") {
  for (const Backend& backend : cuda_backends()) {
    const Handle handle(backend);
    for (const std::int32_t type : kTypes)
      for (const std::int32_t order : {GGM_ORDER_NK, GGM_ORDER_KN})
        for (int kernel = 0; kernel < ggm::kTablelessKernelCount; ++kernel) {
          INFO(backend.name << ", type " << type << ", order " << order << ", " << ggm::kTablelessKernels[kernel].name);
          require_launched_for_product(handle, {type, order}, kernel);
          require_launched_for_layers(handle, {type, order}, kernel);
        }
  }
}
