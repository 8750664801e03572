// src/plan on faked devices of every capability: kernel choice, workspace, limits. Pure, so no GPU is needed.
#include "plan/plan.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "plan/choose.h"
#include "plan/wgmma_table.h"
#include "support/test.h"
#include "unit/faked.h"

using namespace ggm;

namespace {

struct Booked {
  std::int64_t begin, end;
};

void add(const Region& r, std::vector<Booked>* all) {
  if (r.bytes > 0) all->push_back({r.offset, r.offset + r.bytes});
}
void add(const RowArrays& r, std::vector<Booked>* all) {
  for (const Region& x : {r.group_offsets, r.row_assignment, r.assignment_row, r.row_token, r.row_weight, r.row_turn})
    add(x, all);
}
void add(const RouteScratch& s, std::vector<Booked>* all) {
  for (const Region& x : {s.digit_counts, s.pairs, s.sorted_keys, s.local_count, s.counts}) add(x, all);
}
void add(const GroupTable& t, std::vector<Booked>* all) {
  for (const Region& x : {t.groups, t.tile_offsets, t.tile_counter}) add(x, all);
}
std::vector<Booked> regions(const MoeForwardPlan& p) {
  std::vector<Booked> all;
  add(p.rows, &all), add(p.scratch, &all), add(p.table, &all);
  for (const Region& x : {p.combine.products, p.combine.sums, p.combine.turns, p.relay.window, p.relay.counts, p.host_scratch})
    add(x, &all);
  return all;
}
std::vector<Booked> regions(const MoeBackwardPlan& p) {
  std::vector<Booked> all;
  add(p.rows, &all), add(p.scratch, &all), add(p.dx_table, &all), add(p.d_weight_table, &all);
  for (const Region& x : {p.sorted_dy, p.combine.products, p.combine.sums, p.combine.turns, p.dots, p.host_scratch})
    add(x, &all);
  // Rows of dy are scaled where they were sorted, when dx is done. One of them may take turns with the products, not both: the
  // weight gradient reads them together.
  int shared = 0;
  for (const Region* at : {&p.scaled_dy, &p.sorted_x}) {
    const Region& copy = *at;
    if (copy.bytes == 0) continue;
    if (at == &p.scaled_dy && p.sorted_dy.bytes > 0) {
      REQUIRE(copy.offset == p.sorted_dy.offset);
      REQUIRE(copy.bytes <= p.sorted_dy.bytes);
      continue;
    }
    if (copy.offset != p.combine.products.offset || p.combine.products.bytes == 0) {
      add(copy, &all);
      continue;
    }
    REQUIRE(copy.bytes <= p.combine.products.bytes);
    REQUIRE(++shared == 1);
  }
  return all;
}

void require_apart(std::vector<Booked> all, std::int64_t total) {
  std::sort(all.begin(), all.end(), [](const Booked& a, const Booked& b) { return a.begin < b.begin; });
  std::int64_t end = 0;
  for (const Booked& b : all) {
    REQUIRE(b.begin >= end);
    REQUIRE(b.begin % GGM_WORKSPACE_ALIGNMENT == 0);
    end = b.end;
  }
  REQUIRE(end <= total);
  REQUIRE(total - end < GGM_WORKSPACE_ALIGNMENT);
}

}  // namespace

TEST_CASE("kernel table: every card from 8.0 on has a kernel for every type, and only kernels that fit", "[host]") {
  for (const Card& c : kCards) {
    for (const TypeRow& type : kTypes) {
      for (std::int64_t rows : {0, 1, 16, 100, 1000, 1000000}) {
        for (bool ordered : {false, true}) {
          INFO("capability " << c.capability << ", " << type.name << ", " << rows << " rows, ordered " << ordered);
          int kernel = -1;
          GGM_REQUIRE_OK(choose_kernel({type.type, 8, rows, rows, ordered}, card(c), &kernel));
          const GemmKernel& k = kGemmKernels[kernel];
          CHECK(k.shared_bytes <= c.shared_kib * 1024);
          CHECK(k.min_capability <= c.capability);
          CHECK(k.math == math_of(type.type));
          if (ordered) CHECK(k.tile_n == kTurnColumns);
        }
      }
    }
  }
}

TEST_CASE("kernel choice: small groups take small row tiles, large groups the largest", "[host]") {
  for (Type type : {Type::float32, Type::bfloat16, Type::float16}) {
    int few = -1, many = -1;
    GGM_REQUIRE_OK(choose_kernel({type, 64, 512, 512, false}, card({90, 227}), &few));
    GGM_REQUIRE_OK(choose_kernel({type, 64, 262144, 262144, false}, card({90, 227}), &many));
    CHECK(kGemmKernels[few].tile_m >= 8);
    CHECK(kGemmKernels[few].tile_m < kGemmKernels[many].tile_m);
    for (const GemmKernel& k : kGemmKernels)
      if (k.math == math_of(type)) CHECK(k.tile_m <= kGemmKernels[many].tile_m);
  }
}

TEST_CASE("kernel choice: expected row tiles count partly filled tiles, and none beyond the largest group", "[host]") {
  CHECK(expected_row_tiles(0, 0, 128) == 1);
  CHECK(expected_row_tiles(2, 16, 32) == 1);
  CHECK(expected_row_tiles(128, 128, 128) == 1);       // groups of one size, as max_rows says
  CHECK(expected_row_tiles(128, 100000, 128) == 1.5);  // half of the groups have a row too many
  CHECK(expected_row_tiles(256, 100000, 128) == 2.5);
  CHECK(expected_row_tiles(10000, 100000, 128) >= 10000 / 128.0);
  CHECK(expected_row_tiles(10000, 100000, 128) <= 10000 / 128.0 + 1);
}

TEST_CASE("kernel choice: uneven groups take a smaller tile than groups that fill it", "[host]") {
  int even = -1, uneven = -1;
  GGM_REQUIRE_OK(choose_kernel({Type::bfloat16, 64, 64 * 64, 64, false}, card({90, 227}), &even));
  GGM_REQUIRE_OK(choose_kernel({Type::bfloat16, 64, 64 * 32, 64 * 32, false}, card({90, 227}), &uneven));
  CHECK(kGemmKernels[even].tile_m == 64);
  CHECK(kGemmKernels[uneven].tile_m == 32);
  // Two tiles of 128 rows for 130 rows cost more than three of 64.
  GGM_REQUIRE_OK(choose_kernel({Type::bfloat16, 64, 64 * 130, 130, false}, card({90, 227}), &even));
  CHECK(kGemmKernels[even].tile_m < 128);
}

TEST_CASE("kernel choice: a card without enough shared memory or capability is refused, every kernel with its reason",
          "[host]") {
  int kernel = -1;
  Device small = card({90, 227});
  small.shared_memory_bytes = 1024;
  REQUIRE(choose_kernel({Type::bfloat16, 8, 100, 100, false}, small, &kernel) == GGM_STATUS_UNSUPPORTED);
  const std::string text = last_error();
  for (const GemmKernel& k : kGemmKernels) CHECK(text.find(k.name) != std::string::npos);
  CHECK(text.find("shared memory") != std::string::npos);
  REQUIRE(choose_kernel({Type::float32, 8, 100, 100, false}, card({75, 64}), &kernel) == GGM_STATUS_UNSUPPORTED);
  CHECK(std::string(last_error()).find("capability too low") != std::string::npos);
}

TEST_CASE("workspace: regions are aligned, apart and fill the ledger, for both directions, combines and backends", "[host]") {
  for (const Device& device : {host(), card({80, 163}), card({90, 227}), hopper()}) {
    for (std::int32_t combine : {GGM_COMBINE_AUTO, GGM_COMBINE_ORDERED, GGM_COMBINE_TWO_STEP}) {
      for (std::int32_t rows : {GGM_ROWS_TOKENS, GGM_ROWS_GROUPED}) {
        ggm_moe_problem_t p = moe(777);
        p.combine = combine;
        p.input_rows = p.output_rows = rows;
        const auto forward = plan_moe<MoeForwardPlan>(MoeKind::forward, p, device);
        require_apart(regions(forward), forward.workspace_bytes);
        const auto backward = plan_moe<MoeBackwardPlan>(MoeKind::backward, p, device);
        require_apart(regions(backward), backward.workspace_bytes);
      }
    }
  }
}

TEST_CASE("workspace: monotone in tokens, rows and max_rows", "[host]") {
  for (const Device& device : {host(), card({86, 99}), card({90, 227}), hopper()}) {
    for (std::int32_t combine : {GGM_COMBINE_AUTO, GGM_COMBINE_ORDERED, GGM_COMBINE_TWO_STEP}) {
      std::int64_t forward_before = 0, backward_before = 0;
      for (std::int64_t tokens : {0, 1, 2, 3, 7, 16, 33, 64, 127, 128, 129, 500, 1000, 4096, 5000, 32768, 100000}) {
        ggm_moe_problem_t p = moe(tokens);
        p.combine = combine;
        const std::int64_t forward = plan_moe<MoeForwardPlan>(MoeKind::forward, p, device).workspace_bytes;
        const std::int64_t backward = plan_moe<MoeBackwardPlan>(MoeKind::backward, p, device).workspace_bytes;
        INFO("tokens " << tokens << ", combine " << combine);
        CHECK(forward >= forward_before);
        CHECK(backward >= backward_before);
        forward_before = forward, backward_before = backward;
        p.max_rows = tokens * 4 + 1;
        CHECK(plan_moe<MoeForwardPlan>(MoeKind::forward, p, device).workspace_bytes <= forward);
      }
    }
  }
}

TEST_CASE("workspace: ordered forward stays within its bound on CUDA", "[host]") {
  for (std::int64_t tokens : {1, 64, 4096, 32768}) {
    for (std::int32_t y : {GGM_TYPE_BFLOAT16, GGM_TYPE_FLOAT32}) {
      ggm_moe_problem_t p = moe(tokens);
      p.combine = GGM_COMBINE_ORDERED;
      p.y_type = y;
      const std::int64_t bytes = plan_moe<MoeForwardPlan>(MoeKind::forward, p, card({90, 227})).workspace_bytes;
      CHECK(plan_moe<MoeForwardPlan>(MoeKind::forward, p, hopper()).workspace_bytes == bytes);
      const std::int64_t bound = 64 * tokens * p.top_k + tokens * ((p.out_features + 63) / 64) + (1 << 20) +
                                 (y == GGM_TYPE_BFLOAT16 ? 4 * tokens * p.out_features : 0);
      CHECK(bytes <= bound);
    }
  }
}

TEST_CASE("ordered combine: so many columns at a time as the bytes of its sums hold", "[host]") {
  // Rows of a token: 4 * tokens * columns bytes hold 2 * columns / top_k of their columns in 16 bits.
  const auto columns = [](std::int64_t tokens, std::int64_t top_k, std::int64_t in, std::int64_t out, std::int32_t y,
                          Device on) {
    ggm_moe_problem_t p = moe(tokens);
    p.top_k = top_k;
    p.experts = top_k > 4 ? top_k : 4;
    p.in_features = in;
    p.out_features = out;
    p.combine = GGM_COMBINE_ORDERED;
    p.y_type = y;
    const auto forward = plan_moe<MoeForwardPlan>(MoeKind::forward, p, on);
    CHECK(forward.combine.ordered);
    CHECK(forward.combine.products.bytes == 0);
    CHECK(forward.combine.sums.bytes == (y == GGM_TYPE_FLOAT32 ? 0 : 4 * tokens * out));
    std::swap(p.in_features, p.out_features);
    p.dy_type = p.x_type;
    p.y_type = p.dx_type = y;
    p.gradients = GGM_GRADIENT_X | GGM_GRADIENT_ROUTING_WEIGHTS;
    CHECK(plan_moe<MoeBackwardPlan>(MoeKind::backward, p, on).combine.part_columns == forward.combine.part_columns);
    return forward.combine.part_columns;
  };
  constexpr std::int32_t kBf16 = GGM_TYPE_BFLOAT16;
  for (const Device& device : {card({90, 227}), hopper()}) {
    CHECK(columns(2048, 8, 4096, 1000, kBf16, device) == 0);    // 250: less than a tile's
    CHECK(columns(2048, 8, 4096, 1104, kBf16, device) == 256);  // whole tiles of 276
    CHECK(columns(32768, 8, 2048, 4096, kBf16, device) == 1024);
    CHECK(columns(32768, 4, 2880, 5760, kBf16, device) == 2816);
    CHECK(columns(4096, 2, 64, 1000, kBf16, device) == 1000);  // all of them
    CHECK(columns(1, 1, 8, 8, kBf16, device) == 8);
    CHECK(columns(64, 8, 2048, 4096, kBf16, device) == 0);                // too little work for so many launches
    CHECK(columns(32768, 8, 2048, 4096, GGM_TYPE_FLOAT32, device) == 0);  // y holds the sum itself
  }
  CHECK(columns(32768, 8, 2048, 4096, kBf16, host()) == 0);
}

TEST_CASE("workspace: the forward never holds rows of K, and grouped output needs no rows of N", "[host]") {
  for (const Device& device : {card({90, 227}), hopper()}) {
    ggm_moe_problem_t p = moe(4096);
    p.in_features = 1 << 20;
    p.out_features = 8;
    CHECK(plan_moe<MoeForwardPlan>(MoeKind::forward, p, device).workspace_bytes < 64 * p.tokens * p.top_k + (1 << 20));
    p.in_features = 8;
    p.out_features = 1 << 20;
    p.output_rows = GGM_ROWS_GROUPED;
    CHECK(plan_moe<MoeForwardPlan>(MoeKind::forward, p, device).workspace_bytes < 64 * p.tokens * p.top_k + (1 << 20));
  }
}

TEST_CASE("workspace: the scaled rows of dy take out_features each", "[host]") {
  for (const std::int64_t out_features : {1, 8, 100, 2048, 2051}) {
    INFO("out_features " << out_features);
    ggm_moe_problem_t p = moe(300);
    p.out_features = out_features;
    const auto plan = plan_moe<MoeBackwardPlan>(MoeKind::backward, p, card({90, 227}));
    CHECK(plan.scaled_dy.bytes == p.tokens * p.top_k * out_features * 2);
  }
}

TEST_CASE(
    "workspace: rows of x and dy are sorted for the weight gradient of a wgmma kernel alone, and only where they lie by tokens",
    "[host]") {
  const auto backward = [](const ggm_moe_problem_t& p, const Device& device = hopper()) {
    return plan_moe<MoeBackwardPlan>(MoeKind::backward, p, device);
  };
  ggm_moe_problem_t p = moe(300);
  p.in_features = 1008;
  p.out_features = 2056;
  const std::int64_t rows = p.tokens * p.top_k;
  const auto both = backward(p);
  CHECK(both.d_weight_kernels.wgmma >= 0);
  CHECK(both.sorted_x.bytes == rows * 1008 * 2);
  CHECK(both.scaled_dy.bytes == rows * 2056 * 2);
  // Nor for rows that are no multiple of 16 bytes, which the copy engine cannot read.
  for (std::int64_t ggm_moe_problem_t::*features : {&ggm_moe_problem_t::in_features, &ggm_moe_problem_t::out_features}) {
    ggm_moe_problem_t odd = p;
    odd.*features += 4;
    CHECK(backward(odd).d_weight_kernels.wgmma < 0);
    CHECK(backward(odd).sorted_x.bytes == 0);
  }

  // Without the kernel, by family, by limit or by type, there is no copy of x.
  CHECK(backward(p, card({90, 227})).sorted_x.bytes == 0);
  ggm_moe_problem_t limited = p;
  limited.sm_limit = 1;
  CHECK(backward(limited).sorted_x.bytes == 0);
  CHECK(backward(limited).workspace_bytes == backward(limited, card({90, 227})).workspace_bytes);
  CHECK(backward(moe(300, GGM_TYPE_FLOAT32)).sorted_x.bytes == 0);
  // Nor without a weight gradient.
  ggm_moe_problem_t no_weight = p;
  no_weight.gradients = GGM_GRADIENT_X;
  CHECK(backward(no_weight).sorted_x.bytes == 0);
  CHECK(backward(no_weight).scaled_dy.bytes == 0);

  // The ordered combine holds no tensor of rows.
  ggm_moe_problem_t ordered = p;
  ordered.combine = GGM_COMBINE_ORDERED;
  CHECK(backward(ordered).d_weight_kernels.wgmma < 0);
  CHECK(backward(ordered).sorted_x.bytes == 0);
  CHECK(backward(ordered).scaled_dy.bytes == 0);

  // Rows of the caller's own are read where they lie; dy with weights cannot be.
  ggm_moe_problem_t sorted = p;
  sorted.input_rows = GGM_ROWS_GROUPED;
  CHECK(backward(sorted).d_weight_kernels.wgmma >= 0);
  CHECK(backward(sorted).sorted_x.bytes == 0);
  CHECK(backward(sorted).scaled_dy.bytes > 0);
  sorted.output_rows = GGM_ROWS_GROUPED;
  CHECK(backward(sorted).d_weight_kernels.wgmma < 0);
  sorted.routing_weight_type = 0;
  CHECK(backward(sorted).d_weight_kernels.wgmma >= 0);
  CHECK(backward(sorted).scaled_dy.bytes == 0);
  // Nor those of a caller's own routing, which may have unused rows inside a group.
  sorted.id_type = 0;
  CHECK(backward(sorted).d_weight_kernels.wgmma < 0);
  // Without routing weights rows of dy are copied as they are.
  p.routing_weight_type = 0;
  p.gradients = GGM_GRADIENT_X | GGM_GRADIENT_WEIGHT;
  CHECK(backward(p).scaled_dy.bytes == rows * 2056 * 2);
  CHECK(backward(p, card({90, 227})).scaled_dy.bytes == 0);
}

TEST_CASE("workspace: rows of x and dy are sorted before dx of wgmma kernels where inner products are wanted and long",
          "[host]") {
  const auto backward = [](const ggm_moe_problem_t& p, const Device& device = hopper()) {
    return plan_moe<MoeBackwardPlan>(MoeKind::backward, p, device);
  };
  ggm_moe_problem_t p = moe(512);  // eight experts a token
  p.experts = 16;
  p.in_features = 1008;
  p.out_features = 2056;
  p.gradients = GGM_GRADIENT_X | GGM_GRADIENT_WEIGHT | GGM_GRADIENT_ROUTING_WEIGHTS;
  const std::int64_t rows = p.tokens * p.top_k;
  REQUIRE(rows == 4096);
  const auto sorted = backward(p);
  CHECK(sorted.sorted_dy.bytes == rows * 2056 * 2);
  CHECK(sorted.scaled_dy.offset == sorted.sorted_dy.offset);
  CHECK(sorted.dots_of_sorted_x);
  CHECK(sorted.sorted_x.bytes == rows * 1008 * 2);
  CHECK(sorted.sorted_x.offset != sorted.combine.products.offset);
  CHECK_FALSE(kWgmmaKernels[sorted.dx_kernels.wgmma].gathered);

  // No inner products, fewer rows in all or in a group, a long inner sum, rows or weights that the copy engine cannot read, the
  // ordered combine and other kernels have no copies.
  const auto has_none = [&](const ggm_moe_problem_t& other, const Device& device = hopper()) {
    const auto plan = backward(other, device);
    CHECK(plan.sorted_dy.bytes == 0);
    CHECK_FALSE(plan.dots_of_sorted_x);
    CHECK((plan.dx_kernels.wgmma < 0 || kWgmmaKernels[plan.dx_kernels.wgmma].gathered));
  };
  has_none(p, card({90, 227}));
  const auto changed = [&](auto change) {
    ggm_moe_problem_t other = p;
    change(other);
    has_none(other);
  };
  changed([](auto& o) { o.gradients = GGM_GRADIENT_X | GGM_GRADIENT_WEIGHT; });
  changed([](auto& o) { o.tokens = 511; });
  changed([](auto& o) { o.experts = 17; });
  changed([](auto& o) { o.out_features = 4104; });
  changed([](auto& o) { o.in_features += 4; });
  changed([](auto& o) { o.out_features += 4; });
  changed([](auto& o) { o.weight_ld = o.in_features + 4; });
  changed([](auto& o) { o.combine = GGM_COMBINE_ORDERED; });
  changed([](auto& o) { o.sm_limit = 1; });

  // Sorted rows of the caller's own are taken as they lie; x is sorted for them whatever the shape, and without a dx.
  ggm_moe_problem_t grouped = p;
  grouped.output_rows = GGM_ROWS_GROUPED;
  grouped.experts = 64;
  grouped.out_features = 4104;
  grouped.gradients = GGM_GRADIENT_ROUTING_WEIGHTS;
  CHECK(backward(grouped).sorted_dy.bytes == 0);
  CHECK(backward(grouped).dots_of_sorted_x);
  CHECK(backward(grouped).sorted_x.bytes == rows * 1008 * 2);
  grouped.input_rows = GGM_ROWS_GROUPED;
  CHECK_FALSE(backward(grouped).dots_of_sorted_x);
  CHECK(backward(grouped).sorted_x.bytes == 0);
}

TEST_CASE("workspace: a size beyond 64 bits is an overflow, not a wrap", "[host]") {
  ggm_moe_problem_t p = moe(GGM_MAX_ROWS / 8, GGM_TYPE_FLOAT32);
  p.in_features = 1;
  p.out_features = GGM_MAX_ROWS;
  MoeProblem problem;
  GGM_REQUIRE_OK(make_problem(MoeKind::forward, p, &problem));
  MoeForwardPlan plan;
  // [2^31, 2^31] float32 is 2^64 bytes.
  REQUIRE(make_plan(problem, card({90, 227}), &plan) == GGM_STATUS_OVERFLOW);
}

TEST_CASE("workspace: a region of exactly 2^63 bytes is an overflow", "[host]") {
  ggm_moe_problem_t p = moe(std::int64_t{1} << 29, GGM_TYPE_FLOAT64);
  p.top_k = 2;
  p.routing_weight_type = 0;
  p.in_features = 1;
  p.out_features = std::int64_t{1} << 30;
  MoeProblem problem;
  GGM_REQUIRE_OK(make_problem(MoeKind::forward, p, &problem));
  MoeForwardPlan plan;
  REQUIRE(make_plan(problem, card({90, 227}), &plan) == GGM_STATUS_OVERFLOW);
}

TEST_CASE("plan: one multiprocessor is no cluster, two are", "[host]") {
  for (const std::int32_t limit : {1, 2, 3, 132}) {
    ggm_moe_problem_t p = moe(64);
    p.sm_limit = limit;
    INFO("sm_limit " << limit);
    CHECK((plan_moe<MoeForwardPlan>(MoeKind::forward, p, hopper()).kernels.wgmma >= 0) == (limit >= 2));
    CHECK((plan_moe<MoeBackwardPlan>(MoeKind::backward, p, hopper()).dx_kernels.wgmma >= 0) == (limit >= 2));
  }
}

TEST_CASE("plan: the multiprocessors of a call are the limit or the card", "[host]") {
  for (std::int32_t limit : {0, 1, 16, 132, 1000}) {
    ggm_moe_problem_t p = moe(64);
    p.sm_limit = limit;
    const auto plan = plan_moe<MoeForwardPlan>(MoeKind::forward, p, card({90, 227}));
    CHECK(plan.multiprocessors == (limit == 0 || limit > 132 ? 132 : limit));
    const auto unlimited = plan_moe<MoeForwardPlan>(MoeKind::forward, moe(64), card({90, 227}));
    CHECK(plan.kernels.portable == unlimited.kernels.portable);
    CHECK(plan.workspace_bytes == unlimited.workspace_bytes);
  }
}
