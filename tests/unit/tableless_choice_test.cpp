// Choice of the kernels for few rows (src/plan/choose.h) on faked devices, and what GGM_KERNELS makes of their table.
#include <algorithm>
#include <cstdlib>
#include <string>

#include "base/checked.h"
#include "base/status.h"
#include "plan/choose.h"
#include "plan/plan.h"
#include "plan/tableless_table.h"
#include "support/test.h"

using namespace ggm;

namespace {

Device card(int capability = 90, int shared_bytes = 227 * 1024) {
  Device d;
  d.backend = BackendKind::cuda;
  d.capability = capability;
  d.multiprocessors = 132;
  d.shared_memory_bytes = shared_bytes;
  d.kernel_family = GGM_KERNELS_CUDA_PORTABLE;
  return d;
}

ProductShape rows_of(std::int64_t groups, std::int64_t rows) {
  ProductShape shape{};
  shape.type = Type::bfloat16;
  shape.groups = groups;
  shape.rows = shape.max_rows = rows;
  shape.columns = shape.inner = 2048;
  return shape;
}

std::string choice_of(const ProductShape& shape, const Device& device = card(), int multiprocessors = 132) {
  int kernel = 12345;  // must be overwritten
  GGM_REQUIRE_OK(choose_tableless(shape, device, multiprocessors, &kernel));
  REQUIRE(kernel < kTablelessKernelCount);
  return kernel < 0 ? "none" : kTablelessKernels[kernel].name;
}

// The variable for the length of a test.
class Forced {
 public:
  explicit Forced(const char* value) { setenv("GGM_KERNELS", value, 1); }
  Forced(const Forced&) = delete;
  ~Forced() { unsetenv("GGM_KERNELS"); }
};

// The most tiles of all ways to give some of the rows to the groups, way by way.
std::int64_t tiles_of_worst_way(int tile_rows, std::int64_t groups, std::int64_t rows) {
  if (groups == 0) return 0;
  std::int64_t most = 0;
  for (std::int64_t size = 0; size <= rows; ++size)
    most = std::max(most, ceil_div(size, tile_rows) + tiles_of_worst_way(tile_rows, groups - 1, rows - size));
  return most;
}

template <typename Plan>
Plan plan_of(MoeKind kind, const ggm_moe_problem_t& in) {
  MoeProblem problem;
  GGM_REQUIRE_OK(make_problem(kind, in, &problem));
  Plan plan;
  GGM_REQUIRE_OK(make_plan(problem, card(), &plan));
  return plan;
}

}  // namespace

static_assert(most_tiles(kTablelessKernels[0], 256, 2048) == 256 + (2048 - 256) / 8, "the grid of the largest call");

TEST_CASE("tableless kernels: most_tiles is what the worst sizes of groups need", "[host]") {
  TablelessKernel low = kTablelessKernels[0];
  low.rows = 3;  // several tiles of a group already with few rows
  for (const TablelessKernel& kernel : {low, kTablelessKernels[0], kTablelessKernels[1]})
    for (std::int64_t groups = 1; groups <= 4; ++groups)
      for (std::int64_t rows = 1; rows <= 36; ++rows) {
        INFO(kernel.rows << " rows a tile, " << groups << " groups, " << rows << " rows");
        REQUIRE(most_tiles(kernel, groups, rows) == tiles_of_worst_way(kernel.rows, groups, rows));
      }
}

TEST_CASE("tableless choice: by the rows that hardly a group exceeds, three standard deviations above the average", "[host]") {
  for (const std::int64_t rows : {1, 8, 32, 128, 256}) CHECK(choice_of(rows_of(128, rows)) == "mma_32x8_tableless");
  CHECK(choice_of(rows_of(128, 304)) == "mma_32x8_tableless");   // 2.375 + 3 * 1.5411 + 1 = 7.998
  CHECK(choice_of(rows_of(128, 305)) == "mma_32x16_tableless");  // 2.383 + 3 * 1.5436 + 1 = 8.01
  CHECK(choice_of(rows_of(128, 512)) == "mma_32x16_tableless");  // 4 + 3 * 2 + 1 = 11
  CHECK(choice_of(rows_of(128, 901)) == "mma_32x16_tableless");  // 7.039 + 3 * 2.6531 + 1 = 15.998
  CHECK(choice_of(rows_of(128, 902)) == "none");                 // 7.047 + 3 * 2.6546 + 1 = 16.01
  for (const std::int64_t rows : {1024, 2048, 4096}) CHECK(choice_of(rows_of(128, rows)) == "none");
  CHECK(choice_of(rows_of(256, 513)) == "mma_32x8_tableless");  // 2.004 + 3 * 1.4156 + 1 = 7.25
  // However many on average, no group can have more than there are.
  CHECK(choice_of(rows_of(1, 8)) == "mma_32x8_tableless");
  CHECK(choice_of(rows_of(1, 9)) == "mma_32x16_tableless");
  CHECK(choice_of(rows_of(1, 16)) == "mma_32x16_tableless");
  CHECK(choice_of(rows_of(1, 17)) == "none");
}

TEST_CASE("tableless choice: of at most 512 rows two standard deviations, for the tile that the length of K is right for",
          "[host]") {
  CHECK(choice_of(rows_of(64, 512)) == "mma_32x16_tableless");  // 8 + 2 * 2.828 = 13.66
  CHECK(choice_of(rows_of(53, 512)) == "mma_32x16_tableless");  // 9.660 + 2 * 3.1081 = 15.88
  CHECK(choice_of(rows_of(52, 512)) == "none");                 // 9.846 + 2 * 3.1379 = 16.12
  CHECK(choice_of(rows_of(64, 513)) == "none");
  CHECK(choice_of(rows_of(2, 18)) == "mma_32x16_tableless");  // 9 + 2 * 3 = 15
  CHECK(choice_of(rows_of(2, 20)) == "none");                 // 10 + 2 * 3.162 = 16.3
}

TEST_CASE("tableless choice: the taller tile not with a short K, and the lower one for more rows instead", "[host]") {
  const auto short_choice = [](std::int64_t groups, std::int64_t rows) {
    ProductShape shape = rows_of(groups, rows);
    shape.inner = 2047;
    return choice_of(shape);
  };
  CHECK(short_choice(128, 128) == "mma_32x8_tableless");
  CHECK(short_choice(128, 512) == "mma_32x8_tableless");  // 4 + 2 * 2 = 8
  CHECK(short_choice(127, 512) == "none");                // 4.031 + 2 * 2.0079 = 8.05
  CHECK(short_choice(128, 513) == "none");
  CHECK(short_choice(1, 8) == "mma_32x8_tableless");
  CHECK(short_choice(1, 9) == "none");
}

TEST_CASE("tableless choice: not for more rows than kTablelessMostRows, few as each group has", "[host]") {
  REQUIRE(kTablelessMostRows == 2048);
  ProductShape shape = rows_of(256, 2048);
  shape.max_rows = 16;  // no group exceeds the taller tile
  CHECK(choice_of(shape) == "mma_32x16_tableless");
  shape.rows = 2049;
  CHECK(choice_of(shape) == "none");
}

TEST_CASE("tableless choice: not for more columns than kTablelessMostColumns", "[host]") {
  ProductShape shape = rows_of(128, 8);
  shape.columns = kTablelessMostColumns;
  CHECK(choice_of(shape) == "mma_32x8_tableless");
  shape.columns = kTablelessMostColumns + 1;
  CHECK(choice_of(shape) == "none");
}

TEST_CASE("tableless choice: none for what these kernels do not serve", "[host]") {
  for (const Type type : {Type::float32, Type::float64}) {
    ProductShape shape = rows_of(128, 8);
    shape.type = type;
    CHECK(choice_of(shape) == "none");
  }
  for (bool ProductShape::*field : {&ProductShape::variable_k, &ProductShape::ordered, &ProductShape::portable}) {
    ProductShape shape = rows_of(128, 8);
    shape.*field = true;
    CHECK(choice_of(shape) == "none");
  }
  ProductShape more_than_rounded = rows_of(128, 8);
  more_than_rounded.plain = false;
  CHECK(choice_of(more_than_rounded) == "none");
  CHECK(choice_of(rows_of(0, 8)) == "none");
  CHECK(choice_of(rows_of(8, 0)) == "none");
  CHECK(choice_of(rows_of(256, 8)) != "none");
  CHECK(choice_of(rows_of(257, 8)) == "none");
  for (const int few : {1, 2, 131}) CHECK(choice_of(rows_of(128, 8), card(), few) == "none");
  CHECK(choice_of(rows_of(128, 8), card(75)) == "none");
  CHECK(choice_of(rows_of(128, 8), card(80, kTablelessKernels[0].shared_bytes - 1)) == "none");
  for (const int capability : {80, 86, 89, 90, 100, 120})
    CHECK(choice_of(rows_of(128, 8), card(capability, 99 * 1024)) != "none");
}

TEST_CASE("tableless choice: not where a long K fills the multiprocessors a little more than once", "[host]") {
  // 8 of 256 groups have rows, 128 tiles of columns each: 1.28 times what 132 multiprocessors hold.
  ProductShape shape = rows_of(256, 8);
  shape.columns = 4096;
  shape.inner = 7168;
  CHECK(choice_of(shape) == "none");
  shape.inner = 4096;
  CHECK(choice_of(shape) != "none");
  shape.inner = 7168;
  shape.columns = 2048;  // less than once
  CHECK(choice_of(shape) != "none");
  shape.columns = 7168;  // more than twice
  CHECK(choice_of(shape) != "none");
}

// ---- what the plans of the operations ask for ----

TEST_CASE("tableless choice: bare products whose groups follow each other and whose results are only rounded", "[host]") {
  ggm_grouped_gemm_problem_t plain = GGM_GROUPED_GEMM_PROBLEM_INIT;
  plain.groups = 16;
  plain.m = 32;
  plain.n = plain.k = 64;
  plain.a_type = plain.b_type = GGM_TYPE_BFLOAT16;
  plain.b_order = GGM_ORDER_NK;
  const auto served = [](const ggm_grouped_gemm_problem_t& in) {
    GemmProblem problem;
    GGM_REQUIRE_OK(make_problem(in, &problem));
    GemmPlan plan;
    GGM_REQUIRE_OK(make_plan(problem, card(), &plan));
    return plan.kernels.tableless >= 0;
  };
  for (const std::int32_t form : {GGM_GROUPS_SIZES, GGM_GROUPS_OFFSETS, GGM_GROUPS_ENDS}) {
    ggm_grouped_gemm_problem_t p = plain;
    p.group_form = form;
    CHECK(served(p));
  }
  for (const std::int32_t form : {GGM_GROUPS_STARTS_SIZES, GGM_GROUPS_ROW_GROUP}) {
    ggm_grouped_gemm_problem_t p = plain;
    p.group_form = form;
    CHECK_FALSE(served(p));
  }
  ggm_grouped_gemm_problem_t masked = plain, scaled = plain, added = plain, limited = plain;
  masked.layout = GGM_LAYOUT_MASKED;
  masked.m = 2;
  CHECK_FALSE(served(masked));
  scaled.flags |= GGM_FLAG_ALPHA;
  scaled.alpha = 1;
  CHECK(served(scaled));
  scaled.alpha = 2;
  CHECK_FALSE(served(scaled));
  added.beta = 1;
  added.c_type = GGM_TYPE_BFLOAT16;
  CHECK_FALSE(served(added));
  limited.sm_limit = 131;
  CHECK_FALSE(served(limited));
}

TEST_CASE("tableless choice: layers whose rows are summed behind the product, without a bias or inner products", "[host]") {
  ggm_moe_problem_t plain = GGM_MOE_PROBLEM_INIT;
  plain.tokens = 8;
  plain.top_k = 4;
  plain.experts = 16;
  plain.in_features = plain.out_features = 64;
  plain.id_type = GGM_INDEX_INT32;
  plain.routing_weight_type = GGM_TYPE_FLOAT32;
  plain.x_type = plain.weight_type = GGM_TYPE_BFLOAT16;
  plain.weight_order = GGM_ORDER_NK;
  plain.gradients = GGM_GRADIENT_X;
  const auto forward = [](const ggm_moe_problem_t& in) {
    return plan_of<MoeForwardPlan>(MoeKind::forward, in).kernels.tableless >= 0;
  };
  const auto dx = [](const ggm_moe_problem_t& in) {
    return plan_of<MoeBackwardPlan>(MoeKind::backward, in).dx_kernels.tableless >= 0;
  };
  CHECK(forward(plain));
  CHECK(dx(plain));
  ggm_moe_problem_t p = plain;
  p.output_rows = GGM_ROWS_GROUPED;
  CHECK_FALSE(forward(p));
  CHECK(dx(p));  // reads dy in sorted rows, and sums by tokens
  p = plain;
  p.input_rows = GGM_ROWS_GROUPED;
  CHECK(forward(p));
  CHECK_FALSE(dx(p));
  p = plain;
  p.bias_type = GGM_TYPE_BFLOAT16;
  CHECK_FALSE(forward(p));
  CHECK(dx(p));
  p = plain;
  p.combine = GGM_COMBINE_ORDERED;  // four rows of a token do not fit into the bytes of its sum
  CHECK_FALSE(forward(p));
  CHECK_FALSE(dx(p));
  p.top_k = 2;  // two do
  CHECK(forward(p));
  CHECK(dx(p));
  p = plain;
  p.gradients = GGM_GRADIENT_X | GGM_GRADIENT_ROUTING_WEIGHTS;
  CHECK_FALSE(dx(p));
}

TEST_CASE("GGM_KERNELS: the name of a tableless kernel leaves that one, beside a portable one", "[host]") {
  Device hopper = card();
  hopper.kernel_family = GGM_KERNELS_CUDA_HOPPER;
  for (int kernel = 0; kernel < kTablelessKernelCount; ++kernel) {
    const Forced forced(kTablelessKernels[kernel].name);
    for (const std::int64_t rows : {1, 8, 2048}) {
      ProductKernels kernels;
      GGM_REQUIRE_OK(choose_kernels(rows_of(128, rows), hopper, 132, &kernels));
      CHECK(kernels.tableless == kernel);
      CHECK(kernels.wgmma == -1);
      CHECK(kernels.portable >= 0);
    }
    ProductKernels kernels;
    REQUIRE(choose_kernels(rows_of(128, 2049), hopper, 132, &kernels) == GGM_STATUS_UNSUPPORTED);
    const std::string text = last_error();
    CHECK(text.find("GGM_KERNELS") != std::string::npos);
    CHECK(text.find(kTablelessKernels[kernel].name) != std::string::npos);
  }
}

TEST_CASE("GGM_KERNELS: the name of a tableless kernel is refused where results need more than a rounding", "[host]") {
  for (const TablelessKernel& kernel : kTablelessKernels) {
    const Forced forced(kernel.name);
    ProductShape shape = rows_of(128, 8);
    shape.plain = false;
    ProductKernels kernels;
    CHECK(choose_kernels(shape, card(), 132, &kernels) == GGM_STATUS_UNSUPPORTED);
  }
}

TEST_CASE("GGM_KERNELS: the name of another kernel leaves no tableless one", "[host]") {
  for (const char* name : {"mma_32x128x64", "wgmma_64x128"}) {
    const Forced forced(name);
    CHECK(choice_of(rows_of(128, 8)) == "none");
  }
}
