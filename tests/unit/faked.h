// Faked devices, and a layer to plan on them.
#pragma once

#include "plan/plan.h"
#include "support/test.h"

namespace ggm {

// Capability and the largest dynamic shared memory of a block, CUDA C++ Programming Guide, table of technical specifications.
struct Card {
  int capability, shared_kib;
};
inline constexpr Card kCards[] = {{80, 163},  {86, 99},   {87, 163}, {89, 99}, {90, 227},
                                  {100, 227}, {103, 227}, {120, 99}, {121, 99}};

inline Device card(const Card& c, int multiprocessors = 132) {
  Device d;
  d.backend = BackendKind::cuda;
  d.capability = c.capability;
  d.shared_memory_bytes = c.shared_kib * 1024;
  d.multiprocessors = multiprocessors;
  d.kernel_family = GGM_KERNELS_CUDA_PORTABLE;
  return d;
}

// With the wgmma kernels.
inline Device hopper(int multiprocessors = 132) {
  Device d = card({90, 227}, multiprocessors);
  d.kernel_family = GGM_KERNELS_CUDA_HOPPER;
  return d;
}

inline Device host(int threads = 2) {
  Device d;
  d.multiprocessors = threads;
  d.kernel_family = GGM_KERNELS_HOST_PLAIN;
  return d;
}

inline ggm_moe_problem_t moe(std::int64_t tokens, std::int32_t type = GGM_TYPE_BFLOAT16) {
  ggm_moe_problem_t p = GGM_MOE_PROBLEM_INIT;
  p.tokens = tokens;
  p.top_k = 8;
  p.experts = 64;
  p.in_features = 2048;
  p.out_features = 1024;
  p.id_type = GGM_INDEX_INT32;
  p.routing_weight_type = GGM_TYPE_FLOAT32;
  p.x_type = p.weight_type = type;
  p.weight_order = GGM_ORDER_NK;
  p.gradients = GGM_GRADIENT_X | GGM_GRADIENT_WEIGHT | GGM_GRADIENT_ROUTING_WEIGHTS;
  return p;
}

template <typename Plan>
Plan plan_moe(MoeKind kind, const ggm_moe_problem_t& in, const Device& device) {
  MoeProblem problem;
  GGM_REQUIRE_OK(make_problem(kind, in, &problem));
  Plan plan;
  GGM_REQUIRE_OK(make_plan(problem, device, &plan));
  return plan;
}

}  // namespace ggm
