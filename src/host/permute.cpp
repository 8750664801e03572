// Routing and the permutations as operations of their own.
#include "host/backend.h"
#include "host/combine.h"

namespace ggm::host {
namespace {

template <typename Tensors>
GivenRows given_rows(const Tensors& t) {
  return {t.group_offsets, t.row_assignment, t.assignment_row};
}

// Checks the caller's routing arrays into the workspace.
template <typename Tensors>
Rows make_rows(const Engine& engine, const PermuteProblem& problem, const PermutePlan& plan, const Tensors& tensors,
               const RoutingWeights& weights, void* workspace) {
  Rows rows(plan.rows, workspace);
  Faults faults;
  rows.real_tokens = clamp_tokens(tensors.num_tokens, problem.routing.tokens, &faults);
  check_rows(problem.routing, given_rows(tensors), rows, &faults);
  prepare_rows(engine, problem.routing, weights, rows);
  faults.deliver(tensors.faults);
  return rows;
}

// Runs function(begin, end, thread) over all sorted rows.
template <typename Function>
void for_rows(const Engine& engine, const PermuteProblem& problem, int limit, Function&& function) {
  const std::int64_t count = problem.routing.max_rows;
  const int threads = threads_for(work_of(count, problem.features), limit);
  engine.pool.for_ranges(threads, count, max64(1, min64(256, count / (4 * threads))), function);
}

template <typename T>
void permute_rows(const Engine& engine, const PermuteProblem& problem, const Rows& rows, const void* input, void* output,
                  int limit) {
  for_rows(engine, problem, limit, [&](std::int64_t begin, std::int64_t end, int) {
    T buffer[kRun];
    for (std::int64_t r = begin; r < end; ++r) {
      const std::int64_t token = rows.row_token[r];
      if (token < 0) {
        if (!problem.keep_unused_rows) store_zeros(problem.row_type, output, r * problem.row_ld, problem.features);
        continue;
      }
      for (std::int64_t c = 0; c < problem.features; c += kRun) {
        const std::int64_t n = min64(problem.features - c, kRun);
        const T* values = view(engine.family, problem.token_type, input, token * problem.token_ld + c, n, buffer);
        store(engine.family, problem.row_type, output, r * problem.row_ld + c, n, values);
      }
    }
  });
}

// d_rows[r] = round(w * dy[t]).
template <typename T>
void spread_gradient(const Engine& engine, const PermuteProblem& problem, const Rows& rows,
                     const ggm_unpermute_backward_tensors_t& tensors, std::int64_t r) {
  const std::int64_t token = rows.row_token[r];
  T buffer[kRun];
  for (std::int64_t c = 0; c < problem.features; c += kRun) {
    const std::int64_t n = min64(problem.features - c, kRun);
    const T* dy = view(engine.family, problem.token_type, tensors.dy, token * problem.token_ld + c, n, buffer);
    if (const T* weights = rows.weights<T>(); weights != nullptr) {
      for (std::int64_t k = 0; k < n; ++k) buffer[k] = weights[r] * dy[k];
      dy = buffer;
    }
    store(engine.family, problem.row_type, tensors.d_rows, r * problem.row_ld + c, n, dy);
  }
}

template <typename T>
void unpermute_backward_rows(const Engine& engine, const PermuteProblem& problem, const Rows& rows,
                             const ggm_unpermute_backward_tensors_t& tensors, int limit) {
  if (tensors.d_routing_weights != nullptr)
    std::memset(tensors.d_routing_weights, 0, problem.routing.assignments * sizeof(float));
  for_rows(engine, problem, limit, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t r = begin; r < end; ++r) {
      const std::int64_t token = rows.row_token[r];
      if (tensors.d_rows != nullptr) {
        if (token >= 0)
          spread_gradient<T>(engine, problem, rows, tensors, r);
        else if (!problem.keep_unused_rows)
          store_zeros(problem.row_type, tensors.d_rows, r * problem.row_ld, problem.features);
      }
      if (tensors.d_routing_weights != nullptr && token >= 0) {
        const Vector dy{tensors.dy, problem.token_type, token * problem.token_ld};
        const Vector row{tensors.rows, problem.row_type, r * problem.row_ld};
        tensors.d_routing_weights[rows.row_assignment[r]] =
            static_cast<float>(inner_product<T>(engine.family, dy, row, problem.features));
      }
    }
  });
}

}  // namespace

ggm_status_t HostBackend::route(const RouteProblem& problem, const RoutePlan& plan, const ggm_route_tensors_t& tensors,
                                void* workspace, ggm_stream_t) {
  Faults faults;
  Rows rows;
  rows.group_offsets = tensors.group_offsets;
  rows.row_assignment = tensors.row_assignment;
  rows.assignment_row = tensors.assignment_row;
  rows.real_tokens = clamp_tokens(tensors.num_tokens, problem.tokens, &faults);
  route_rows(problem, {tensors.ids, tensors.expert_map}, plan.scratch.counts.at<std::int32_t>(workspace), rows, &faults);
  faults.deliver(tensors.faults);
  return GGM_STATUS_SUCCESS;
}

ggm_status_t HostBackend::permute(const PermuteProblem& problem, const PermutePlan& plan, const ggm_permute_tensors_t& tensors,
                                  void* workspace, ggm_stream_t) {
  const Rows rows = make_rows(engine_, problem, plan, tensors, {}, workspace);
  if (problem.token_type == Type::float64)
    permute_rows<double>(engine_, problem, rows, tensors.input, tensors.output, plan.multiprocessors);
  else
    permute_rows<float>(engine_, problem, rows, tensors.input, tensors.output, plan.multiprocessors);
  return GGM_STATUS_SUCCESS;
}

ggm_status_t HostBackend::unpermute(const PermuteProblem& problem, const PermutePlan& plan,
                                    const ggm_permute_tensors_t& tensors, void* workspace, ggm_stream_t) {
  const RoutingWeights weights{tensors.routing_weights, problem.routing_weight_type, problem.routing_weights_ld};
  const Rows rows = make_rows(engine_, problem, plan, tensors, weights, workspace);
  CombineJob job;
  job.tokens = problem.routing.tokens;
  job.top_k = problem.routing.top_k;
  job.features = problem.features;
  job.rows = tensors.input;
  job.row_type = problem.row_type;
  job.row_ld = problem.row_ld;
  job.output = tensors.output;
  job.output_type = problem.token_type;
  job.output_ld = problem.token_ld;
  job.keep_unused = problem.keep_unused_rows;
  job.add = problem.add_to_output;
  job.threads = plan.multiprocessors;
  if (problem.token_type == Type::float64)
    combine_rows<double>(engine_, rows, job);
  else
    combine_rows<float>(engine_, rows, job);
  return GGM_STATUS_SUCCESS;
}

ggm_status_t HostBackend::unpermute_backward(const PermuteProblem& problem, const PermutePlan& plan,
                                             const ggm_unpermute_backward_tensors_t& tensors, void* workspace, ggm_stream_t) {
  const RoutingWeights weights{tensors.routing_weights, problem.routing_weight_type, problem.routing_weights_ld};
  const Rows rows = make_rows(engine_, problem, plan, tensors, weights, workspace);
  if (problem.token_type == Type::float64)
    unpermute_backward_rows<double>(engine_, problem, rows, tensors, plan.multiprocessors);
  else
    unpermute_backward_rows<float>(engine_, problem, rows, tensors, plan.multiprocessors);
  return GGM_STATUS_SUCCESS;
}

}  // namespace ggm::host
