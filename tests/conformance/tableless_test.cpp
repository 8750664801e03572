// The kernels for few rows that find their groups themselves, each by its name: against the references, and with the bits of a
// tile kernel of the portable family, whatever the groups, the layout and the operands' alignment.
#include <cstdlib>

#include "conformance/gemm_case.h"
#include "conformance/graph.h"
#include "conformance/moe_case.h"
#include "plan/tableless_table.h"
#include "support/inputs.h"

using namespace ggm_test;

namespace {

using Index = std::int64_t;
using Bits = std::vector<std::uint64_t>;

constexpr std::int32_t kTypes[] = {GGM_TYPE_BFLOAT16, GGM_TYPE_FLOAT16};
constexpr std::int32_t kForms[] = {GGM_GROUPS_SIZES, GGM_GROUPS_OFFSETS, GGM_GROUPS_ENDS};

// The one kernel that products may take, while this lives.
class Forced {
 public:
  explicit Forced(const char* kernel) { setenv("GGM_KERNELS", kernel, 1); }
  Forced(const Forced&) = delete;
  ~Forced() { unsetenv("GGM_KERNELS"); }
};

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
constexpr Index kColumns[] = {8, 24, 32, 40, 64, 200};
constexpr Index kGroups[] = {1, 2, 7, 32, 33, 100, 255, 256};
constexpr Index kMostElements = 1 << 20;  // of the weights

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
  return c;
}

// visit() with a tile kernel of the portable family, then with every tableless one.
template <typename Visit>
void each_kernel(const Visit& visit) {
  {
    const Forced forced("mma_32x128x64");
    visit(false);
  }
  for (const ggm::TablelessKernel& kernel : ggm::kTablelessKernels) {
    INFO("forced: " << kernel.name);
    const Forced forced(kernel.name);
    visit(true);
  }
}

void require_product(const Handle& handle, const GemmCase& line) {
  const std::string text = handle.backend().name + " " + line.text();
  if (!case_selected(text)) return;
  GGM_CASE(text);
  Bits want;
  each_kernel([&](bool tableless) {
    GemmRun call(handle, line);
    call.run_twice();
    call.check();
    if (!tableless)
      want = call.d().all_bits();
    else
      REQUIRE((call.d().all_bits() == want));
  });
}

MoeCase draw_layer(std::int32_t type, std::uint32_t seed) {
  constexpr Index shapes[][3] = {{1, 8, 64},   {1, 1, 1},  {3, 2, 4},   {16, 8, 128},
                                 {17, 4, 256}, {40, 2, 8}, {25, 8, 16}, {5, 3, 40}};
  constexpr std::int32_t ids[] = {GGM_INDEX_INT32, GGM_INDEX_INT64, 0};
  Draw draw(seed + 7000);
  MoeCase c;
  c.type = type;
  c.data = Data::random;
  const Index* shape = shapes[seed % std::size(shapes)];
  c.routing = {
      shape[0], shape[1], shape[2], static_cast<Locality>(draw.number(kLocalities)), static_cast<Ids>(draw.number(kIdPatterns)),
      seed};
  c.in_features = draw.of(kInner);
  c.out_features = draw.of(kColumns);
  while (shape[2] * c.in_features * c.out_features > 2 * kMostElements) c.in_features = c.in_features / 16 * 8;
  c.order = draw.one_in(2) ? GGM_ORDER_KN : GGM_ORDER_NK;
  c.input_rows = draw.one_in(3) ? GGM_ROWS_GROUPED : GGM_ROWS_TOKENS;
  c.output_rows = draw.one_in(4) ? GGM_ROWS_GROUPED : GGM_ROWS_TOKENS;
  c.combine = draw.one_in(3) ? GGM_COMBINE_ORDERED : GGM_COMBINE_TWO_STEP;
  c.routing_weight_type = draw.one_in(4) ? 0 : GGM_TYPE_FLOAT32;
  c.wide_product = draw.one_in(4);
  c.wide_output = draw.one_in(4);
  c.add = draw.one_in(4);
  c.keep = draw.one_in(2);
  c.id_type = draw.of(ids);
  c.gap = draw.of({Index{0}, Index{8}});
  return c;
}

// Under the ordered combine with turns no tableless kernel serves, and the name is refused.
void require_layer(const Handle& handle, const MoeCase& line) {
  const std::string text = handle.backend().name + " " + line.text();
  if (!case_selected(text)) return;
  GGM_CASE(text);
  Bits want;
  each_kernel([&](bool tableless) {
    MoeForwardRun call(handle, line);
    std::size_t bytes = 0;
    const ggm_status_t status = ggm_moe_forward_workspace_size(handle, &call.problem(), &bytes);
    if (tableless && status == GGM_STATUS_UNSUPPORTED) {
      REQUIRE(line.combine == GGM_COMBINE_ORDERED);
      return;
    }
    call.run_twice();
    call.check();
    if (!tableless)
      want = call.output_bits();
    else
      REQUIRE((call.output_bits() == want));
  });
}

void sweep(std::int32_t type, std::uint32_t seeds) {
  for (const Backend& backend : cuda_backends()) {
    const Handle handle(backend);
    for (std::uint32_t seed = 0; seed < seeds; ++seed) {
      for (const std::int32_t form : kForms)
        for (const std::int32_t order : {GGM_ORDER_NK, GGM_ORDER_KN})
          require_product(handle, draw_product(type, form, order, seed));
      require_layer(handle, draw_layer(type, seed));
    }
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

}  // namespace

TEST_CASE("tableless kernels: references and the bits of a tile kernel, bfloat16, GPU", "[gpu]") {
  sweep(GGM_TYPE_BFLOAT16, 40);
}
TEST_CASE("tableless kernels: references and the bits of a tile kernel, float16, GPU", "[gpu]") { sweep(GGM_TYPE_FLOAT16, 25); }

TEST_CASE("tableless kernels: the same bits 1,000 times, GPU", "[gpu]") {
  const Backend backend = cuda_backends().front();
  const Handle handle(backend);
  for (const std::int32_t order : {GGM_ORDER_NK, GGM_ORDER_KN})
    for (const ggm::TablelessKernel& kernel : ggm::kTablelessKernels) {
      INFO(kernel.name << ", order " << order);
      const Forced forced(kernel.name);
      const GemmCase line = few_rows(order);
      GemmRun run(handle, line);
      run.run();
      run.check();
      REQUIRE(differences_of_runs(backend, run.call(), 1000) == 0);
    }
}

// By the plan, without a name: a bare product of few rows is one kernel, with its unused rows cleared, and a forward three.
TEST_CASE("tableless kernels: a product of few rows is one kernel, GPU", "[gpu]") {
  for (const Backend& backend : cuda_backends()) {
    INFO(backend.name);
    const Handle handle(backend);
    GemmCase line = few_rows(GGM_ORDER_NK);
    line.own_sizes.assign(19, 0);
    line.own_sizes[4] = 2, line.own_sizes[11] = 1;
    CaptureGraph graph;
    GemmRun run(handle, line);
    run.scene().set_observer(&graph);
    run.scene().set_stream(graph.stream());
    run.run();
    run.check();
    REQUIRE(graph.failures == 0);
    CHECK(graph.kernels == 1);
  }
}
