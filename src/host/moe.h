// Steps that the fused forward and backward share.
#pragma once

#include "host/combine.h"
#include "host/moe_product.h"

namespace ggm::host {

// Routes by ids, or checks the caller's arrays, into the workspace, with token and weight of each row.
template <typename Tensors>
Rows make_moe_rows(const Engine& engine, const MoeProblem& problem, const RowArrays& arrays, const RouteScratch& scratch,
                   const Tensors& tensors, void* workspace) {
  Rows rows(arrays, workspace);
  Faults faults;
  rows.real_tokens = clamp_tokens(tensors.num_tokens, problem.routing.tokens, &faults);
  if (problem.routing.id_type == IndexType::none)
    check_rows(problem.routing, {tensors.group_offsets, tensors.row_assignment, tensors.assignment_row}, rows, &faults);
  else
    route_rows(problem.routing, {tensors.ids, tensors.expert_map}, scratch.counts.at<std::int32_t>(workspace), rows, &faults);
  prepare_rows(engine, problem.routing, {tensors.routing_weights, problem.routing_weight_type, problem.routing_weights_ld},
               rows);
  faults.deliver(tensors.faults);
  return rows;
}

inline RowProduct row_product(const MoeProblem& problem, int threads, void* scratch) {
  RowProduct p;
  p.experts = problem.routing.experts;
  p.max_rows = problem.routing.max_rows;
  p.tokens = problem.routing.tokens;
  p.top_k = problem.routing.top_k;
  p.b_type = problem.weight_type;
  p.b_ld = problem.weight_ld;
  p.b_stride = problem.weight_stride;
  p.threads = threads;
  p.scratch = scratch;
  return p;
}

// Where a combined result goes.
struct CombinedOutput {
  void* data;
  Type type, product_type;
  std::int64_t ld;
  bool grouped, ordered, add, keep_unused;
  void* products;
  void* sums;
};

// Points the product's rows at their place: output, products or sums.
inline void set_output(const CombinedOutput& to, RowProduct* p) {
  p->product_type = to.product_type;
  p->add = to.add;
  p->keep_unused = to.keep_unused;
  p->output = to.data;
  p->output_type = to.type;
  p->output_ld = to.ld;
  p->kind = to.grouped ? RowOutput::grouped : to.ordered ? RowOutput::ordered : RowOutput::products;
  p->sums = to.sums;
  if (p->kind != RowOutput::products) return;
  p->output = to.products;
  p->output_type = to.product_type;
  p->output_ld = p->n;
}

// The second step of the two-step combine; nothing for the other kinds.
template <typename T>
void combine_products(const Engine& engine, const Rows& rows, const CombinedOutput& to, const RowProduct& p) {
  if (p.kind != RowOutput::products) return;
  CombineJob job;
  job.tokens = p.tokens;
  job.top_k = p.top_k;
  job.features = p.n;
  job.rows = p.output;
  job.row_type = p.output_type;
  job.row_ld = p.output_ld;
  job.output = to.data;
  job.output_type = to.type;
  job.output_ld = to.ld;
  job.keep_unused = to.keep_unused;
  job.add = to.add;
  job.threads = p.threads;
  combine_rows<T>(engine, rows, job);
}

}  // namespace ggm::host
