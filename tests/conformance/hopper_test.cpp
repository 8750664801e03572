// The wgmma kernels against the portable ones: the same bits on random data, whatever the shape, from every operation that has
// a product. The portable kernels are held to their references by the tables; here two families run the same call, with shapes
// drawn from what a tile, a stage, a cluster and a map of the copy engine may get wrong.
#include <algorithm>
#include <cstring>
#include <optional>

#include "conformance/graph.h"
#include "conformance/layer.h"
#include "conformance/moe_case.h"
#include "plan/wgmma_table.h"
#include "support/forced.h"
#include "support/inputs.h"

using namespace ggm_test;

namespace {

using Index = std::int64_t;
using Bits = std::vector<std::uint64_t>;

constexpr std::int32_t kTypes[] = {GGM_TYPE_BFLOAT16, GGM_TYPE_FLOAT16};

// Keeps the last plan line of a handle.
struct PlanLine {
  std::string line;
  static void take(void* user, std::int32_t level, const char* message) {
    if (level == GGM_LOG_PLAN) static_cast<PlanLine*>(user)->line = message;
  }
  bool has(const std::string& text) const { return line.find(text) != std::string::npos; }
  // A kernel of capability 9.0, or one for few rows that goes before it.
  bool has_wgmma() const { return has(" kernel=wgmma_") || has("_tableless "); }
};

// Both families of one card.
struct Families {
  PlanLine plan;  // of `hopper`
  Handle hopper, portable;

  Families() : hopper(hopper_backend(), logging(&plan)), portable({"cuda-portable", true, GGM_KERNELS_CUDA_PORTABLE, 0}) {}
  Families(const Families&) = delete;

  static ggm_create_params_t logging(PlanLine* plan) {
    ggm_create_params_t params = GGM_CREATE_PARAMS_INIT;
    params.log_level = GGM_LOG_PLAN;
    params.log = PlanLine::take;
    params.log_user = plan;
    return params;
  }
};

// Runs on the portable family what the other has just run. Both have the kernels for few rows, so where those were taken a tile
// kernel makes what they must equal.
template <typename Run>
void run_tiles(const Families& families, Run* portable) {
  std::optional<Forced> forced;
  if (families.plan.has("_tableless ")) forced.emplace(kTileKernel);
  portable->run();
}

// visit() with every kernel for rows in order, or through a list, in turn: the plan takes one of them by how many rows a group
// has, but each must serve any number. `relay`: those that relay rows too.
template <typename Visit>
void each_kernel_for_rows(bool list, bool relay, const Visit& visit) {
  int count = 0;
  for (const ggm::WgmmaKernel& kernel : ggm::kWgmmaKernels) {
    if (kernel.over_k || kernel.takes_list() != list || (kernel.relayed && !relay)) continue;
    INFO("forced: " << kernel.name);
    const Forced forced(kernel.name);
    visit();
    ++count;
  }
  REQUIRE(count >= 2);
}

// Draws from lists, each call another number of the seed's sequence.
class Draw {
 public:
  explicit Draw(std::uint32_t seed) : seed_(seed) {}
  std::uint32_t number(std::uint32_t below) { return mix(seed_, count_++, 90) % below; }
  template <typename T, std::size_t size>
  T of(const T (&list)[size]) {
    return list[number(size)];
  }
  bool one_in(std::uint32_t n) { return number(n) == 0; }

 private:
  std::uint32_t seed_, count_ = 0;
};

constexpr Index kInner[] = {0, 1, 8, 63, 64, 65, 200, 1024};
constexpr Index kColumns[] = {8, 64, 120, 128, 136, 192, 520};
constexpr Index kGroups[] = {1, 2, 3, 7, 40};
constexpr Index kGaps[] = {0, 0, 0, 8, 1};       // the last leaves rows that the copy engine cannot read
constexpr Index kMisaligns[] = {0, 0, 0, 8, 1};  // likewise
constexpr std::int32_t kLimits[] = {0, 0, 0, 1, 2, 3, 132};
constexpr Index kMostElements = 1 << 20;  // of an operand, so that a case takes a fraction of a second

// Sizes of groups: uneven with empty ones anywhere, everything in one, a few rows each, or none at either end.
std::vector<Index> draw_sizes(Draw* draw, Index groups, Index largest) {
  std::vector<Index> sizes(static_cast<std::size_t>(groups), 0);
  const std::uint32_t pattern = draw->number(4);
  if (pattern == 0) {
    sizes[draw->number(static_cast<std::uint32_t>(groups))] = largest;
    return sizes;
  }
  for (Index& size : sizes) {
    if (draw->one_in(4)) continue;
    size = 1 + draw->number(static_cast<std::uint32_t>(pattern == 1 ? std::min<Index>(largest, 9) : largest));
  }
  if (pattern == 2) sizes.front() = sizes.back() = 0;
  return sizes;
}

struct Kind {
  std::int32_t layout, form, order;
};

GemmCase draw_product(const Kind& kind, std::int32_t type, std::uint32_t seed) {
  Draw draw(seed * 64 + static_cast<std::uint32_t>(kind.layout * 20 + kind.form * 3 + kind.order));
  const bool variable = kind.layout == GGM_LAYOUT_VARIABLE_K;
  GemmCase c;
  c.type = type;
  c.data = Data::random;
  c.layout = kind.layout;
  c.form = kind.form;
  c.order = kind.order;
  c.n = draw.of(kColumns);
  c.inner = variable ? draw.of(kColumns) : draw.of(kInner);
  c.groups = draw.of(kGroups);
  while (c.groups > 1 && c.groups * c.n * c.inner > kMostElements) c.groups /= 2;
  const Index sharing = kind.layout == GGM_LAYOUT_CONTIGUOUS || variable ? c.groups : 1;
  const Index most =
      kMostElements / std::max<Index>({c.n, c.inner, 1}) / (sharing > 1 ? std::max<Index>(c.groups / 2, 1) : c.groups);
  c.own_sizes = draw_sizes(&draw, c.groups, std::min<Index>(most, 400));
  if (variable && draw.one_in(2))  // ends of groups at and around ends of stages and of steps of 16
    for (Index& size : c.own_sizes)
      if (size > 0) size = std::min(draw.of(kInner), most);
  c.tail = draw.of({Index{0}, Index{5}, Index{70}});
  c.index_type = draw.one_in(2) ? GGM_INDEX_INT64 : GGM_INDEX_INT32;
  c.gap_a = draw.of(kGaps);
  c.gap_b = draw.of(kGaps);
  c.gap_d = draw.of(kGaps);
  c.strides = static_cast<int>(draw.number(3));
  c.misalign = draw.of(kMisaligns);
  c.wide_output = draw.one_in(4);
  c.scale = draw.one_in(2) ? Scale::plain : static_cast<Scale>(draw.number(5));
  c.keep = draw.one_in(4) && !variable;
  c.sm_limit = draw.of(kLimits);
  return c;
}

void require_same_product(Families& families, const GemmCase& line) {
  const std::string text = line.text();
  if (!case_selected(text)) return;
  GGM_CASE(text);
  const bool list = line.form == GGM_GROUPS_ROW_GROUP, variable = line.layout == GGM_LAYOUT_VARIABLE_K;
  GemmRun portable(families.portable, line), hopper(families.hopper, line);
  hopper.run_twice();
  run_tiles(families, &portable);
  const Bits want = portable.d().all_bits();
  const bool has_kernel = line.sm_limit != 1 && !(list && variable);
  REQUIRE(families.plan.has_wgmma() == has_kernel);
  REQUIRE((hopper.d().all_bits() == want));
  if (!has_kernel || variable) return;
  each_kernel_for_rows(list, false, [&] {
    GemmRun forced(families.hopper, line);
    forced.run();
    REQUIRE((forced.d().all_bits() == want));
  });
}

void sweep_products(const std::vector<Kind>& kinds, std::uint32_t seeds) {
  Families families;
  for (const std::int32_t type : kTypes)
    for (const Kind& kind : kinds)
      for (std::uint32_t seed = 0; seed < seeds; ++seed) require_same_product(families, draw_product(kind, type, seed));
}

MoeCase draw_layer(std::int32_t type, bool backward, std::uint32_t seed) {
  constexpr Index shapes[][3] = {
      {0, 1, 1},   {17, 8, 8},  {33, 2, 4},  {129, 1, 1},  {257, 2, 16}, {300, 8, 40}, {400, 1, 1},
      {500, 3, 8}, {700, 2, 3}, {90, 1, 40}, {600, 8, 24}, {2200, 2, 5}};  // rows enough to be sorted before the product
  constexpr Ids ids[] = {Ids::uniform, Ids::uniform, Ids::skewed, Ids::some_none, Ids::none_at_all};
  constexpr std::int32_t combines[] = {GGM_COMBINE_ORDERED, GGM_COMBINE_TWO_STEP};
  const std::int32_t weight_types[] = {0, GGM_TYPE_FLOAT32, GGM_TYPE_FLOAT32, type};
  const std::int32_t bias_types[] = {0, 0, type, GGM_TYPE_FLOAT32};
  constexpr std::int32_t id_types[] = {GGM_INDEX_INT32, GGM_INDEX_INT64, 0};
  constexpr std::uint32_t gradients[] = {
      GGM_GRADIENT_X | GGM_GRADIENT_WEIGHT | GGM_GRADIENT_ROUTING_WEIGHTS | GGM_GRADIENT_BIAS, GGM_GRADIENT_X,
      GGM_GRADIENT_WEIGHT, GGM_GRADIENT_ROUTING_WEIGHTS, GGM_GRADIENT_X | GGM_GRADIENT_WEIGHT};
  Draw draw(seed + 100000u * backward);
  MoeCase c;
  c.type = type;
  c.data = Data::random;
  const Index* shape = shapes[draw.number(static_cast<std::uint32_t>(std::size(shapes)))];
  c.routing = {shape[0], shape[1], shape[2], static_cast<Locality>(draw.number(kLocalities)), draw.of(ids), seed};
  // K of the forward product, and of the one that makes dx.
  Index& inner = backward ? c.out_features : c.in_features;
  inner = draw.of(kInner);
  (backward ? c.in_features : c.out_features) = draw.of(kColumns);
  while (shape[2] * c.in_features * c.out_features > 2 * kMostElements) inner = inner / 16 * 8;
  c.order = draw.one_in(2) ? GGM_ORDER_KN : GGM_ORDER_NK;
  c.input_rows = draw.one_in(3) ? GGM_ROWS_GROUPED : GGM_ROWS_TOKENS;
  c.output_rows = draw.one_in(3) ? GGM_ROWS_GROUPED : GGM_ROWS_TOKENS;
  c.combine = draw.of(combines);
  c.routing_weight_type = draw.of(weight_types);
  c.bias_type = draw.of(bias_types);
  c.wide_product = draw.one_in(4);
  c.wide_output = draw.one_in(4);
  c.add = draw.one_in(4);
  c.keep = draw.one_in(4);
  c.id_type = draw.of(id_types);
  c.gap = draw.of(kGaps);
  c.misalign = draw.of(kMisaligns);
  c.strides = static_cast<int>(draw.number(3));
  c.sm_limit = draw.of(kLimits);
  if (backward) c.gradients = draw.one_in(2) ? gradients[0] : draw.of(gradients);
  return c;
}

template <typename Run>
void require_same_layer(Families& families, const MoeCase& line) {
  const std::string text = line.text();
  if (!case_selected(text)) return;
  GGM_CASE(text);
  Run portable(families.portable, line), hopper(families.hopper, line);
  hopper.run_twice();
  run_tiles(families, &portable);
  const Bits want = portable.output_bits();
  const bool has_product = line.gradients == 0 || (line.gradients & (GGM_GRADIENT_X | GGM_GRADIENT_ROUTING_WEIGHTS)) != 0;
  if (has_product) REQUIRE(families.plan.has_wgmma() == (line.sm_limit != 1));
  REQUIRE((hopper.output_bits() == want));
  if (line.gradients != 0 || line.sm_limit == 1) return;  // a backward has products of several kinds
  // Not under the ordered combine, and not rows that the copy engine never reads.
  const bool relay = line.combine != GGM_COMBINE_ORDERED && line.in_features >= 8 && line.in_features % 8 == 0;
  each_kernel_for_rows(line.input_rows == GGM_ROWS_TOKENS, relay, [&] {
    Run forced(families.hopper, line);
    forced.run();
    REQUIRE((forced.output_bits() == want));
  });
}

template <typename Run>
void sweep_layers(bool backward, std::uint32_t seeds) {
  Families families;
  for (const std::int32_t type : kTypes)
    for (std::uint32_t seed = 0; seed < seeds; ++seed) require_same_layer<Run>(families, draw_layer(type, backward, seed));
}

// ---- the same call again and again ----

// Dozens of uneven groups, some empty: clusters change the group with nearly every pair of tiles, and every main loop is short.
GemmCase many_groups(const Kind& kind, Index n, Index inner) {
  GemmCase c;
  c.type = GGM_TYPE_BFLOAT16;
  c.data = Data::random;
  c.layout = kind.layout;
  c.form = kind.form;
  c.order = kind.order;
  c.n = n;
  c.inner = inner;
  c.groups = 61;
  Draw draw(7);
  for (Index g = 0; g < c.groups; ++g) c.own_sizes.push_back(draw.one_in(5) ? 0 : draw.number(g % 7 == 0 ? 200 : 60));
  return c;
}
const Kind kVariableK{GGM_LAYOUT_VARIABLE_K, GGM_GROUPS_SIZES, 0};
const Kind kList{GGM_LAYOUT_CONTIGUOUS, GGM_GROUPS_ROW_GROUP, GGM_ORDER_NK};
const Kind kInOrder{GGM_LAYOUT_CONTIGUOUS, GGM_GROUPS_OFFSETS, GGM_ORDER_KN};

void repeat_product(const GemmCase& line, int times) {
  const std::string text = line.text();
  if (!case_selected(text)) return;
  GGM_CASE(text);
  Families families;
  require_same_product(families, line);
  const auto repeat = [&] {
    GemmRun run(families.hopper, line);
    run.run();
    CHECK(differences_of_runs(families.hopper.backend(), run.call(), times) == 0);
  };
  if (line.layout == GGM_LAYOUT_VARIABLE_K) return repeat();
  each_kernel_for_rows(line.form == GGM_GROUPS_ROW_GROUP, false, repeat);
}

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

LayerSpec layer_spec(std::int32_t combine, Index experts) {
  LayerSpec spec;
  spec.type = GGM_TYPE_BFLOAT16;
  spec.combine = combine;
  spec.top_k = 3;  // with two the ordered combine stores all rows in the bytes of its sum
  spec.experts = experts;
  spec.in_features = 136;
  spec.out_features = 200;
  return spec;
}

std::vector<Bits> results_of(Layer& layer, bool backward) {
  if (!backward) return {layer.y().all_bits()};
  return {layer.dx().all_bits(), layer.d_weight().all_bits(), layer.d_bias().all_bits(), layer.d_routing_weights().all_bits()};
}
void call_layer(Layer& layer, bool backward) { backward ? layer.backward() : layer.forward(); }

void repeat_layer(std::int32_t combine, bool backward, Index tokens, int times) {
  INFO("combine " << combine << ", backward " << backward << ", " << tokens << " tokens");
  Families families;
  Layer layer(families.hopper, layer_spec(combine, 61), first_tokens(tokens)),
      portable(families.portable, layer_spec(combine, 61), first_tokens(tokens));
  call_layer(layer, backward);
  REQUIRE(families.plan.has_wgmma());
  REQUIRE(families.plan.has(" combine=ordered ") == (combine == GGM_COMBINE_ORDERED));
  call_layer(portable, backward);
  REQUIRE((results_of(layer, backward) == results_of(portable, backward)));
  const ReadyCall call = backward ? layer.backward_call() : layer.forward_call();
  CHECK(differences_of_runs(families.hopper.backend(), call, times) == 0);
}

// ---- graphs, streams and limits ----

// A graph of one captured call, replayed with other ids in the same memory: another batch, all of its rows of the experts of
// one token, and none at all. Three slots a token.
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

// Two calls on a stream each, several times back to back, in workspaces of their own.
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

void two_products(const GemmCase& first_line, const GemmCase& second_line) {
  Families families;
  require_same_product(families, first_line);
  require_same_product(families, second_line);
  GemmRun first(families.hopper, first_line), second(families.hopper, second_line);
  first.run();
  second.run();
  two_streams(families.hopper.backend(), first.call(), second.call());
}

}  // namespace

TEST_CASE("hopper: products of groups in order have the bits of the portable kernels, GPU", "[gpu][hopper]") {
  sweep_products({{GGM_LAYOUT_CONTIGUOUS, GGM_GROUPS_SIZES, GGM_ORDER_NK},
                  {GGM_LAYOUT_CONTIGUOUS, GGM_GROUPS_OFFSETS, GGM_ORDER_KN},
                  {GGM_LAYOUT_CONTIGUOUS, GGM_GROUPS_STARTS_SIZES, GGM_ORDER_NK}},
                 40);
}
TEST_CASE("hopper: masked products have the bits of the portable kernels, GPU", "[gpu][hopper]") {
  sweep_products({{GGM_LAYOUT_MASKED, GGM_GROUPS_SIZES, GGM_ORDER_NK}, {GGM_LAYOUT_MASKED, GGM_GROUPS_SIZES, GGM_ORDER_KN}},
                 40);
}
TEST_CASE("hopper: products of gathered rows have the bits of the portable kernels, GPU", "[gpu][hopper]") {
  sweep_products({{GGM_LAYOUT_CONTIGUOUS, GGM_GROUPS_ROW_GROUP, GGM_ORDER_NK},
                  {GGM_LAYOUT_CONTIGUOUS, GGM_GROUPS_ROW_GROUP, GGM_ORDER_KN}},
                 60);
}
TEST_CASE("hopper: products over K of groups have the bits of the portable kernels, GPU", "[gpu][hopper]") {
  sweep_products({{GGM_LAYOUT_VARIABLE_K, GGM_GROUPS_SIZES, 0},
                  {GGM_LAYOUT_VARIABLE_K, GGM_GROUPS_ENDS, 0},
                  {GGM_LAYOUT_VARIABLE_K, GGM_GROUPS_STARTS_SIZES, 0},
                  {GGM_LAYOUT_VARIABLE_K, GGM_GROUPS_ROW_GROUP, 0}},
                 50);
}
TEST_CASE("hopper: products over K of more groups than one pass makes the table of, some of them long, GPU", "[gpu][hopper]") {
  GemmCase c;
  c.type = GGM_TYPE_BFLOAT16;
  c.data = Data::random;
  c.layout = GGM_LAYOUT_VARIABLE_K;
  c.form = GGM_GROUPS_SIZES;
  c.n = 136;
  c.inner = 72;
  c.groups = 1100;
  c.order = 0;
  Draw draw(11);
  for (Index g = 0; g < c.groups; ++g) c.own_sizes.push_back(g % 173 == 100 ? 300 : draw.number(9));
  Families families;
  require_same_product(families, c);
}
TEST_CASE("hopper: moe_forward has the bits of the portable kernels, GPU", "[gpu][hopper]") {
  sweep_layers<MoeForwardRun>(false, 160);
}
TEST_CASE("hopper: moe_backward has the bits of the portable kernels, GPU", "[gpu][hopper]") {
  sweep_layers<MoeBackwardRun>(true, 160);
}

// Behind the last column the sums of a tile are not numbers where dy is infinite: they must be left out, not multiplied by
// zeros.
TEST_CASE("hopper: inner products of rows of no multiple of eight columns, with infinities, GPU", "[gpu][hopper]") {
  Families families;
  for (const Index in_features : {1, 2, 12, 68, 133})
    for (const std::uint32_t gradients : {GGM_GRADIENT_X | GGM_GRADIENT_ROUTING_WEIGHTS, +GGM_GRADIENT_ROUTING_WEIGHTS})
      for (const std::int32_t combine : {GGM_COMBINE_ORDERED, GGM_COMBINE_TWO_STEP}) {
        MoeCase c;
        c.type = GGM_TYPE_BFLOAT16;
        c.data = Data::random;
        c.routing = {300, 4, 6, Locality::all_local, Ids::uniform, 5};
        c.in_features = in_features;
        c.out_features = 64;
        c.order = GGM_ORDER_KN;
        c.combine = combine;
        c.routing_weight_type = GGM_TYPE_FLOAT32;
        c.x_gap = (8 - in_features % 8) % 8;
        c.infinite_dy = true;
        c.gradients = gradients;
        require_same_layer<MoeBackwardRun>(families, c);
      }
}

TEST_CASE("hopper: limits of one, two and three multiprocessors, GPU", "[gpu][hopper]") {
  for (const std::int32_t limit : {1, 2, 3}) {  // one is no cluster: the portable kernels
    Families families;
    for (const Kind& kind : {kInOrder, kList, kVariableK}) {
      GemmCase c = many_groups(kind, 136, 72);
      c.sm_limit = limit;
      require_same_product(families, c);
    }
    for (const std::int32_t combine : {GGM_COMBINE_ORDERED, GGM_COMBINE_TWO_STEP}) {
      MoeCase c = draw_layer(GGM_TYPE_BFLOAT16, false, 0);
      c.routing = {300, 8, 40, Locality::all_local, Ids::uniform, 3};
      c.in_features = 72;
      c.out_features = 136;
      c.combine = combine;
      c.input_rows = c.output_rows = GGM_ROWS_TOKENS;
      c.gap = c.misalign = 0;
      c.sm_limit = limit;
      require_same_layer<MoeForwardRun>(families, c);
    }
  }
}

TEST_CASE("hopper: 1000 runs of products over K of dozens of uneven groups, GPU", "[gpu][hopper]") {
  repeat_product(many_groups(kVariableK, 392, 264), 1000);
}
TEST_CASE("hopper: 1000 runs of gathered products of dozens of uneven groups, GPU", "[gpu][hopper]") {
  repeat_product(many_groups(kList, 520, 72), 1000);
}
TEST_CASE("hopper: 1000 runs of products in order of dozens of uneven groups, GPU", "[gpu][hopper]") {
  repeat_product(many_groups(kInOrder, 520, 72), 1000);
}
TEST_CASE("hopper: 1000 runs of layers of dozens of experts, GPU", "[gpu][hopper]") {
  for (const std::int32_t combine : {GGM_COMBINE_ORDERED, GGM_COMBINE_TWO_STEP})
    for (const bool backward : {false, true})
      for (const Index tokens : {900, 4000}) repeat_layer(combine, backward, tokens, 1000);
}

TEST_CASE("hopper: a captured layer replayed with other routing and with no rows, GPU", "[gpu][hopper]") {
  for (const std::int32_t combine : {GGM_COMBINE_ORDERED, GGM_COMBINE_TWO_STEP})
    for (const bool backward : {false, true}) replay(layer_spec(combine, 24), 1700, backward);
}

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
