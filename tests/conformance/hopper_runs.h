// Running a call on the wgmma kernels and on the portable ones, whose bits it must have: both families of one card, every
// kernel of the table in turn, graphs and streams.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "conformance/layer.h"
#include "conformance/moe_case.h"
#include "plan/wgmma_table.h"
#include "support/forced.h"

namespace ggm_test {

using Index = std::int64_t;
using Bits = std::vector<std::uint64_t>;

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

std::vector<Bits> results_of(Layer& layer, bool backward);
void call_layer(Layer& layer, bool backward);

// A graph of one captured call, replayed with other ids in the same memory: another batch, all of its rows of the experts of
// one token, and none at all.
void replay(const LayerSpec& spec, Index count, bool backward);

// Two calls on a stream each, several times back to back, in workspaces of their own.
void two_streams(const Backend& backend, const ReadyCall& first, const ReadyCall& second);

}  // namespace ggm_test
