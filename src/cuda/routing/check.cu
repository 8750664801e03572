// A caller's routing arrays, checked into the workspace, and the per-row arrays that the products read.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "cuda/device/ptx/dependent.cuh"
#include "cuda/routing/kernels.h"
#include "cuda/routing/routing.h"
#include "cuda/runtime/block_scan.cuh"
#include "cuda/runtime/faults.cuh"
#include "cuda/runtime/launch.cuh"

namespace ggm::cuda {
namespace {

struct OffsetParams {
  const std::int32_t* given;
  std::int32_t* offsets;
  std::uint32_t* faults;
  std::int64_t count, limit;
};

// One block: a running maximum of the clamped offsets, kScanThreads at a time.
__global__ void __launch_bounds__(kScanThreads) check_offsets(const OffsetParams p) {
  ptx::begin_dependent();
  __shared__ ScanShared shared;
  std::int64_t carry = 0;
  std::uint32_t changed = 0;
  for (std::int64_t base = 0; base < p.count; base += kScanThreads) {
    const std::int64_t i = base + threadIdx.x;
    const std::int64_t value = i < p.count && p.given != nullptr ? p.given[i] : 0;
    std::int64_t largest;
    const std::int64_t kept = Max{}(carry, block_scan(clamp_between(value, 0, p.limit), Max{}, 0, shared, &largest));
    if (i < p.count) {
      p.offsets[i] = static_cast<std::int32_t>(kept);
      changed += kept != value && p.given != nullptr;
    }
    carry = Max{}(carry, largest);
  }
  count_faults_of_warp(p.faults, GGM_FAULT_BAD_ROUTING, changed);
}

struct CheckParams {
  const std::int32_t* row_assignment;
  const std::int32_t* assignment_row;
  const std::int32_t* num_tokens;
  const std::int32_t* offsets;  // checked
  std::uint32_t* faults;
  std::int32_t* checked_assignment;
  std::int32_t* checked_row;
  std::int64_t tokens, top_k, experts, assignments, max_rows;
};

// Both maps from the caller's two, each entry on its own: a pair survives on both sides or on none.
__global__ void __launch_bounds__(kThreads) check_maps(const CheckParams p) {
  ptx::begin_dependent();
  const std::int64_t tokens = real_tokens(p.num_tokens, p.tokens, p.faults);
  const std::int64_t real_assignments = tokens * p.top_k;
  const std::int64_t begin = p.offsets[0], end = p.offsets[p.experts];
  std::uint32_t bad = 0;
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
  const std::int64_t first = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  for (std::int64_t r = first; r < p.max_rows; r += step) {
    std::int32_t kept = -1;
    if (r >= begin && r < end) {
      const std::int64_t a = p.row_assignment[r];
      if (a >= 0 && a < real_assignments && p.assignment_row[a] == r) kept = static_cast<std::int32_t>(a);
      bad += kept < 0;
    }
    p.checked_assignment[r] = kept;
  }
  for (std::int64_t a = first; a < p.assignments; a += step) {
    std::int32_t kept = -1;
    if (a < real_assignments) {
      const std::int64_t r = p.assignment_row[a];
      if (r >= begin && r < end && p.row_assignment[r] == a) kept = static_cast<std::int32_t>(r);
    }
    p.checked_row[a] = kept;
  }
  count_faults_of_warp(p.faults, GGM_FAULT_BAD_ROUTING, bad);
}

struct PrepareParams {
  const std::int32_t* row_assignment;
  const std::int32_t* assignment_row;
  const void* weights;
  std::int32_t* row_token;
  void* row_weight;
  std::int32_t* row_turn;
  std::int64_t max_rows, weights_ld;
  std::uint32_t top_k;
  Type weight_type;
};

// Exact in every type.
__device__ double weight_at(const void* weights, Type type, std::int64_t i) {
  switch (type) {
    case Type::float32: return static_cast<const float*>(weights)[i];
    case Type::bfloat16: return __bfloat162float(static_cast<const __nv_bfloat16*>(weights)[i]);
    case Type::float16: return __half2float(static_cast<const __half*>(weights)[i]);
    default: return static_cast<const double*>(weights)[i];
  }
}

// How many rows of a token lie before row r. Costs top_k reads a row.
__device__ std::int32_t turn_of(const std::int32_t* rows_of_token, std::uint32_t top_k, std::int64_t r) {
  std::int32_t turn = 0;
  for (std::uint32_t j = 0; j < top_k; ++j) {
    const std::int32_t other = rows_of_token[j];
    turn += other >= 0 && other < r;
  }
  return turn;
}

__global__ void __launch_bounds__(kThreads) prepare(const PrepareParams p) {
  ptx::begin_dependent();
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
  for (std::int64_t r = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; r < p.max_rows; r += step) {
    const std::int32_t assignment = p.row_assignment[r];
    const bool used = assignment >= 0;
    const std::uint32_t token = used ? static_cast<std::uint32_t>(assignment) / p.top_k : 0;
    const std::uint32_t slot = used ? static_cast<std::uint32_t>(assignment) - token * p.top_k : 0;
    p.row_token[r] = used ? static_cast<std::int32_t>(token) : -1;
    if (p.row_weight != nullptr) {
      const double weight = used ? weight_at(p.weights, p.weight_type, token * p.weights_ld + slot) : 0.0;
      if (p.weight_type == Type::float64)
        static_cast<double*>(p.row_weight)[r] = weight;
      else
        static_cast<float*>(p.row_weight)[r] = static_cast<float>(weight);
    }
    if (p.row_turn != nullptr) p.row_turn[r] = used ? turn_of(p.assignment_row + std::int64_t{token} * p.top_k, p.top_k, r) : 0;
  }
}

}  // namespace

RowPointers row_pointers(const RowArrays& rows, void* workspace) {
  RowPointers p;
  p.group_offsets = rows.group_offsets.at<std::int32_t>(workspace);
  p.row_assignment = rows.row_assignment.at<std::int32_t>(workspace);
  p.assignment_row = rows.assignment_row.at<std::int32_t>(workspace);
  p.row_token = rows.row_token.at<std::int32_t>(workspace);
  p.row_weight = rows.row_weight.at<void>(workspace);
  p.row_turn = rows.row_turn.at<std::int32_t>(workspace);
  return p;
}

ggm_status_t check_rows(const RouteProblem& problem, const GivenRows& given, const RowPointers& out, const Launch& launch) {
  const OffsetParams offsets{given.group_offsets, out.group_offsets, given.faults, problem.experts + 1, problem.max_rows};
  GGM_TRY(launch_kernel("check_offsets", check_offsets, 1, kScanThreads, 0, launch, offsets));
  const CheckParams maps{.row_assignment = given.row_assignment,
                         .assignment_row = given.assignment_row,
                         .num_tokens = given.num_tokens,
                         .offsets = out.group_offsets,
                         .faults = given.faults,
                         .checked_assignment = out.row_assignment,
                         .checked_row = out.assignment_row,
                         .tokens = problem.tokens,
                         .top_k = problem.top_k,
                         .experts = problem.experts,
                         .assignments = problem.assignments,
                         .max_rows = problem.max_rows};
  // Also without rows: a bad num_tokens is counted all the same.
  return launch_kernel("check_maps", check_maps, grid_size(launch, problem.assignments, kThreads), kThreads, 0, launch, maps);
}

ggm_status_t prepare_rows(const RouteProblem& problem, const RowPointers& rows, const RowWeights& weights,
                          const Launch& launch) {
  if (problem.max_rows == 0) return GGM_STATUS_SUCCESS;
  const PrepareParams params{.row_assignment = rows.row_assignment,
                             .assignment_row = rows.assignment_row,
                             .weights = weights.data,
                             .row_token = rows.row_token,
                             .row_weight = rows.row_weight,
                             .row_turn = rows.row_turn,
                             .max_rows = problem.max_rows,
                             .weights_ld = weights.ld,
                             .top_k = static_cast<std::uint32_t>(problem.top_k),
                             .weight_type = weights.type};
  return launch_kernel("prepare", prepare, grid_size(launch, problem.max_rows, kThreads), kThreads, 0, launch, params);
}

ggm_status_t load_check_kernels() {
  GGM_TRY(load_kernel("check_offsets", check_offsets));
  GGM_TRY(load_kernel("check_maps", check_maps));
  return load_kernel("prepare", prepare);
}

ggm_status_t load_routing_kernels() {
  GGM_TRY(load_route_kernels());
  GGM_TRY(load_one_block_kernels());
  return load_check_kernels();
}

}  // namespace ggm::cuda
