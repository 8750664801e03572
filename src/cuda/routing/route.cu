// Ids to rows: keys, sort, then offsets and both maps from the sorted pairs.
#include "cuda/routing/kernels.h"
#include "cuda/routing/routing.h"
#include "cuda/routing/sort.h"
#include "cuda/runtime/faults.cuh"
#include "cuda/runtime/launch.cuh"

namespace ggm::cuda {
namespace {

struct KeyParams {
  const void* ids;
  const std::int32_t* expert_map;
  const std::int32_t* num_tokens;
  std::uint32_t* faults;
  std::uint32_t* keys;
  std::int32_t* values;
  std::int64_t tokens, assignments, ids_ld, experts, experts_total, first_expert;
  std::uint32_t top_k;
};

// Key of each assignment: its local expert, or `experts`, which sorts behind every row.
template <typename Id>
__global__ void __launch_bounds__(kThreads) make_keys(const KeyParams p) {
  const std::int64_t tokens = real_tokens(p.num_tokens, p.tokens, p.faults);
  const Id* ids = static_cast<const Id*>(p.ids);
  std::uint32_t bad = 0;
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
  for (std::int64_t a = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; a < p.assignments; a += step) {
    const std::uint32_t token = static_cast<std::uint32_t>(a) / p.top_k;
    const std::uint32_t slot = static_cast<std::uint32_t>(a) - token * p.top_k;
    LocalExpert found{-1, IdKind::skipped};
    if (token < tokens) {
      const std::int64_t id = ids[token * p.ids_ld + slot];
      if (!id_in_range(id, p.experts_total))
        found = outside_id(id);
      else if (p.expert_map != nullptr)
        found = expert_by_map(p.expert_map[id], p.experts);
      else
        found = expert_by_range(id, p.first_expert, p.experts);
    }
    bad += found.kind == IdKind::bad;
    p.keys[a] = static_cast<std::uint32_t>(found.kind == IdKind::local ? found.expert : p.experts);
    p.values[a] = static_cast<std::int32_t>(a);
  }
  count_faults_of_warp(p.faults, GGM_FAULT_BAD_ID, bad);
}

struct FinishParams {
  const std::uint32_t* sorted_keys;
  const std::int32_t* sorted_values;
  std::uint32_t* faults;
  std::int32_t* group_offsets;
  std::int32_t* row_assignment;
  std::int32_t* assignment_row;
  std::int64_t assignments, experts, max_rows;
};

// First position whose key is at least `key`.
__device__ std::int64_t lower_bound(const std::uint32_t* keys, std::int64_t count, std::uint32_t key) {
  std::int64_t low = 0, high = count;
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (keys[middle] < key)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

// Position i of the sorted order is row i, as long as it has an expert and lies below max_rows.
__global__ void __launch_bounds__(kThreads) finish_route(const FinishParams p) {
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
  const std::int64_t first = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  for (std::int64_t e = first; e <= p.experts; e += step) {
    const std::int64_t begin = lower_bound(p.sorted_keys, p.assignments, static_cast<std::uint32_t>(e));
    p.group_offsets[e] = static_cast<std::int32_t>(clamp_between(begin, 0, p.max_rows));
    if (e == p.experts && begin > p.max_rows)
      count_faults(p.faults, GGM_FAULT_ROWS_DROPPED, static_cast<std::uint32_t>(begin - p.max_rows));
  }
  for (std::int64_t i = first; i < p.assignments; i += step) {
    const std::int32_t assignment = p.sorted_values[i];
    const bool row = p.sorted_keys[i] < p.experts && i < p.max_rows;
    if (i < p.max_rows) p.row_assignment[i] = row ? assignment : -1;
    p.assignment_row[assignment] = row ? static_cast<std::int32_t>(i) : -1;
  }
}

int bits_of(std::int64_t largest) {
  int bits = 1;
  while (largest >> bits != 0) ++bits;
  return bits;
}

ggm_status_t sort_keys(KeyParams keys, IndexType type, std::int64_t max_rows, const RouteScratch& scratch, void* workspace,
                       const RowPointers& out, const Launch& launch) {
  SortBuffers buffers{scratch.keys.at<std::uint32_t>(workspace),  scratch.sorted_keys.at<std::uint32_t>(workspace),
                      scratch.values.at<std::int32_t>(workspace), scratch.sorted_values.at<std::int32_t>(workspace),
                      scratch.sort_temp.at<void>(workspace),      scratch.sort_temp.bytes};
  keys.keys = buffers.keys;
  keys.values = buffers.values;
  const std::int64_t assignments = keys.assignments;
  // Also without assignments: a bad num_tokens is counted all the same.
  GGM_TRY(launch_kernel("make_keys", type == IndexType::int64 ? make_keys<std::int64_t> : make_keys<std::int32_t>,
                        grid_size(launch, assignments, kThreads), kThreads, 0, launch, keys));
  if (assignments > 0) GGM_TRY(sort_pairs(&buffers, assignments, bits_of(keys.experts), launch.stream));
  const FinishParams finish{buffers.keys,       buffers.values,   keys.faults,  out.group_offsets, out.row_assignment,
                            out.assignment_row, keys.assignments, keys.experts, max_rows};
  return launch_kernel("finish_route", finish_route, grid_size(launch, max64(assignments, keys.experts + 1), kThreads),
                       kThreads, 0, launch, finish);
}

}  // namespace

ggm_status_t route_rows(const RouteProblem& problem, const RouteScratch& scratch, void* workspace, const RouteInputs& inputs,
                        const RowPointers& out, const Launch& launch) {
  KeyParams keys{};
  keys.ids = inputs.ids;
  keys.expert_map = inputs.expert_map;
  keys.num_tokens = inputs.num_tokens;
  keys.faults = inputs.faults;
  keys.tokens = problem.tokens;
  keys.assignments = problem.assignments;
  keys.ids_ld = problem.ids_ld;
  keys.experts = problem.experts;
  keys.experts_total = problem.experts_total;
  keys.first_expert = problem.first_expert;
  keys.top_k = static_cast<std::uint32_t>(problem.top_k);
  return sort_keys(keys, problem.id_type, problem.max_rows, scratch, workspace, out, launch);
}

ggm_status_t sort_row_groups(const void* row_group, IndexType type, std::int64_t rows, std::int64_t groups,
                             const RouteScratch& scratch, void* workspace, std::uint32_t* faults, const RowPointers& out,
                             const Launch& launch) {
  KeyParams keys{};
  keys.ids = row_group;
  keys.faults = faults;
  keys.tokens = keys.assignments = rows;
  keys.ids_ld = 1;
  keys.experts = keys.experts_total = groups;
  keys.top_k = 1;
  return sort_keys(keys, type, rows, scratch, workspace, out, launch);
}

ggm_status_t load_route_kernels() {
  GGM_TRY(load_kernel("make_keys", make_keys<std::int32_t>));
  GGM_TRY(load_kernel("make_keys", make_keys<std::int64_t>));
  GGM_TRY(load_kernel("finish_route", finish_route));
  GGM_TRY(verify_sort_bound());
  return warm_up_sort();
}

}  // namespace ggm::cuda
