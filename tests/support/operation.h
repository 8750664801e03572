// The operations of the ABI as values: the query, the call and the name, so that one function of a test serves all of them.
#pragma once

#include <cstddef>

#include "ggm/ggm.h"

namespace ggm_test {

template <typename P, typename T>
struct Operation {
  using Problem = P;
  using Tensors = T;
  ggm_status_t (*workspace_size)(ggm_handle_t, const P*, std::size_t*);
  ggm_status_t (*call)(ggm_handle_t, const P*, const T*, void*, std::size_t, ggm_stream_t);
  const char* name;
};

namespace op {

inline const Operation<ggm_route_problem_t, ggm_route_tensors_t> route{ggm_route_workspace_size, ggm_route, "ggm_route"};
inline const Operation<ggm_permute_problem_t, ggm_permute_tensors_t> permute{ggm_permute_workspace_size, ggm_permute,
                                                                             "ggm_permute"};
inline const Operation<ggm_permute_problem_t, ggm_permute_tensors_t> unpermute{ggm_unpermute_workspace_size, ggm_unpermute,
                                                                               "ggm_unpermute"};
inline const Operation<ggm_permute_problem_t, ggm_unpermute_backward_tensors_t> unpermute_backward{
    ggm_unpermute_backward_workspace_size, ggm_unpermute_backward, "ggm_unpermute_backward"};
inline const Operation<ggm_grouped_gemm_problem_t, ggm_grouped_gemm_tensors_t> grouped_gemm{
    ggm_grouped_gemm_workspace_size, ggm_grouped_gemm, "ggm_grouped_gemm"};
inline const Operation<ggm_grouped_gemm_array_problem_t, ggm_grouped_gemm_array_tensors_t> grouped_gemm_array{
    ggm_grouped_gemm_array_workspace_size, ggm_grouped_gemm_array, "ggm_grouped_gemm_array"};
inline const Operation<ggm_moe_problem_t, ggm_moe_forward_tensors_t> moe_forward{ggm_moe_forward_workspace_size,
                                                                                 ggm_moe_forward, "ggm_moe_forward"};
inline const Operation<ggm_moe_problem_t, ggm_moe_backward_tensors_t> moe_backward{ggm_moe_backward_workspace_size,
                                                                                   ggm_moe_backward, "ggm_moe_backward"};

}  // namespace op

// The backward of a forward: the same inputs. dy and the gradients are the caller's to set.
inline ggm_moe_backward_tensors_t backward_of(const ggm_moe_forward_tensors_t& forward) {
  ggm_moe_backward_tensors_t b = GGM_MOE_BACKWARD_TENSORS_INIT;
  b.ids = forward.ids;
  b.expert_map = forward.expert_map;
  b.group_offsets = forward.group_offsets;
  b.row_assignment = forward.row_assignment;
  b.assignment_row = forward.assignment_row;
  b.routing_weights = forward.routing_weights;
  b.x = forward.x;
  b.weight = forward.weight;
  b.bias = forward.bias;
  b.num_tokens = forward.num_tokens;
  b.faults = forward.faults;
  return b;
}

}  // namespace ggm_test
