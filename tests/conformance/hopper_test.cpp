// The wgmma kernels against the portable ones: the same bits on random data, whatever the shape, from every operation that has
// a product. The portable kernels are held to their references by the tables; here two families run the same call, with shapes
// drawn from what a tile, a stage, a cluster and a map of the copy engine may get wrong.
#include <algorithm>

#include "conformance/hopper_runs.h"
#include "support/inputs.h"

using namespace ggm_test;

namespace {

constexpr std::int32_t kTypes[] = {GGM_TYPE_BFLOAT16, GGM_TYPE_FLOAT16};

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

TEST_CASE("hopper: two products on two streams at once, GPU", "[gpu][hopper]") {
  two_products(many_groups(kVariableK, 392, 264), many_groups(kList, 520, 72));
  two_products(many_groups(kInOrder, 520, 200), many_groups(kInOrder, 136, 72));
}
