// What the plan of a forward books where rows are relayed, and that its tiles never wait for each other in a circle. On faked
// devices.
#include <algorithm>
#include <vector>

#include "cuda/device/schedule/tile_pairs.h"
#include "plan/wgmma_table.h"
#include "support/forced.h"
#include "unit/faked.h"

using namespace ggm;

TEST_CASE("workspace: where rows of x are relayed, a window of at most 32 MiB and its tail", "[host]") {
  const auto forward = [](const ggm_moe_problem_t& p, const Device& device = hopper()) {
    return plan_moe<MoeForwardPlan>(MoeKind::forward, p, device);
  };
  ggm_moe_problem_t p = moe(32768);
  p.out_features = 2048;
  const auto relayed = forward(p);
  CHECK(kWgmmaKernels[relayed.kernels.wgmma].relayed);
  CHECK(relayed.relay.window_rows == 8192);  // of 4 KiB
  CHECK(relayed.relay.window.bytes == (8192 + kRelayTail) * 4096);
  CHECK(relayed.relay.chunks == 32768 * 8 / kRelayChunk);
  CHECK(relayed.relay.counts.bytes == 8 * (relayed.relay.chunks + 1));
  CHECK(relayed.relay.pieces * kRelayPieceBytes >= 4096);
  CHECK(kRelayChunk % relayed.relay.batch_rows == 0);

  ggm_moe_problem_t enough = p;
  enough.tokens = 8192;  // 1,024 rows an expert
  CHECK(kWgmmaKernels[forward(enough).kernels.wgmma].relayed);
  // No more rows than there are.
  ggm_moe_problem_t fewer = p;
  fewer.tokens = 1100;
  fewer.experts = 8;
  CHECK(kWgmmaKernels[forward(fewer).kernels.wgmma].relayed);
  CHECK(forward(fewer).relay.window_rows == 8192);

  // Not few rows a group, long rows, rows that the copy engine cannot read, sorted rows, the ordered combine, other kernels.
  const auto has_none = [&](const ggm_moe_problem_t& other, const Device& device = hopper()) {
    const auto plan = forward(other, device);
    CHECK((plan.kernels.wgmma < 0 || !kWgmmaKernels[plan.kernels.wgmma].relayed));
    CHECK(plan.relay.window.bytes == 0);
    CHECK(plan.relay.counts.bytes == 0);
  };
  has_none(p, card({90, 227}));
  const auto changed = [&](auto change) {
    ggm_moe_problem_t other = p;
    change(other);
    has_none(other);
  };
  changed([](auto& o) { o.tokens = 8191; });
  changed([](auto& o) { o.out_features = 1528; });
  changed([](auto& o) { o.in_features = 4104; });
  changed([](auto& o) { o.in_features += 4; });
  changed([](auto& o) { o.input_rows = GGM_ROWS_GROUPED; });
  changed([](auto& o) { o.combine = GGM_COMBINE_ORDERED; });
  changed([](auto& o) { o.sm_limit = 1; });
  changed([](auto& o) { o.x_type = o.weight_type = GGM_TYPE_FLOAT32; });
  // Nor in the backward, which needs rows in sorted order anyway.
  CHECK_FALSE(kWgmmaKernels[plan_moe<MoeBackwardPlan>(MoeKind::backward, p, hopper()).dx_kernels.wgmma].relayed);
}

// Tiles wait for chunks of rows, and a chunk for all tiles that read the rows a window before it. A tile must never wait, by
// that, for one with a higher number, which may not be claimed while it waits.
TEST_CASE("relay: what a tile waits for belongs to tiles with lower numbers", "[host]") {
  using cuda::TilePairs;
  int waited = 0;
  for (const std::int64_t in_features : {520, 2880, 4096, 16376}) {
    ggm_moe_problem_t p = moe(90000);
    p.top_k = 1;
    p.experts = 6;
    p.in_features = in_features;
    p.out_features = 4104;
    const ggm_test::Forced forced("wgmma_144x128_relay");
    const auto plan = plan_moe<MoeForwardPlan>(MoeKind::forward, p, hopper());
    const std::int64_t window = plan.relay.window_rows;
    REQUIRE(window % kRelayChunk == 0);
    REQUIRE(window < 90000);
    const WgmmaKernel& kernel = kWgmmaKernels[plan.kernels.wgmma];
    for (const std::vector<std::int64_t>& sizes :
         {std::vector<std::int64_t>{90000}, {1, 0, 300, 40000, 145, 40000}, {7777, 288, 289, 287, 1}}) {
      struct Rows {
        std::int64_t begin, end;
      };
      std::vector<Rows> pairs;
      std::int64_t first = 0;
      for (const std::int64_t size : sizes) {
        const TilePairs tiles(p.out_features, size, kernel.left_tile(), kernel.max_right, false);
        for (std::int64_t index = 0; index < tiles.count(); ++index) {
          Rows rows{first + size, first};
          for (const int block : {0, 1}) {
            const std::int64_t right = tiles.corner(index, block, static_cast<std::uint32_t>(plan.relay.part_rows)).right;
            if (right >= size) continue;
            rows.begin = std::min(rows.begin, first + right);
            rows.end = std::max(rows.end, first + std::min(right + tiles.width, size));
          }
          pairs.push_back(rows);
        }
        first += size;
      }
      std::int64_t lowest = first;  // row of this pair and all behind it
      for (std::size_t i = pairs.size(); i-- > 0;) {
        lowest = std::min(lowest, pairs[i].begin);
        const std::int64_t chunks_end = (pairs[i].end + kRelayChunk - 1) / kRelayChunk * kRelayChunk;
        REQUIRE(chunks_end - window <= lowest / kRelayChunk * kRelayChunk);
        waited += chunks_end > window;
      }
    }
  }
  CHECK(waited > 1000);
}
