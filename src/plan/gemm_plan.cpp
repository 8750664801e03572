// Plans of the bare grouped products.
#include "base/status.h"
#include "plan/book.h"
#include "plan/choose.h"

namespace ggm {

RouteProblem routing_of_rows(const GemmProblem& problem) {
  RouteProblem routing{};
  routing.max_rows = routing.assignments = problem.rows();
  routing.tokens = problem.groups > 0 ? problem.rows() : 0;
  routing.top_k = 1;
  routing.experts = routing.experts_total = problem.groups;
  routing.ids_ld = 1;
  routing.id_type = problem.index_type;
  routing.sm_limit = problem.sm_limit;
  return routing;
}

ggm_status_t make_plan(const GemmProblem& problem, const Device& device, GemmPlan* plan) {
  *plan = GemmPlan{};
  Ledger ledger;
  if (device.backend == BackendKind::cuda) {
    ProductShape shape{};
    shape.type = problem.a_type;
    shape.groups = problem.groups;
    shape.max_rows = problem.m;
    // Groups of a contiguous layout share m; each masked or variable-K group has m rows of its own.
    shape.rows = problem.layout == Layout::contiguous ? problem.m : (Checked(problem.m) * Checked(problem.groups)).value;
    shape.columns = problem.n;
    shape.inner = problem.k;
    shape.variable_k = problem.layout == Layout::variable_k;
    shape.gathered = problem.group_form == GroupForm::row_group;
    shape.portable = shape.gathered && shape.variable_k;
    shape.plain = problem.layout == Layout::contiguous && problem.group_form != GroupForm::starts_sizes && !shape.gathered &&
                  problem.alpha == 1 && problem.beta == 0;
    GGM_TRY(choose_kernels(shape, device, limited_multiprocessors(device, problem.sm_limit), &plan->kernels));
  }
  if (problem.group_form == GroupForm::row_group) {
    const RouteProblem routing = routing_of_rows(problem);
    plan->rows = book_rows(routing, Type::none, false, &ledger);
    plan->scratch = book_sort(routing, device, &ledger);
  }
  if (problem.group_form == GroupForm::starts_sizes && problem.layout == Layout::contiguous)
    plan->row_used = ledger.book(problem.m, 1);
  plan->table = book_groups(problem.groups, device, &ledger);
  plan->host_scratch = book_host_scratch(problem.a_type, device, &ledger);
  plan->multiprocessors = limited_multiprocessors(device, problem.sm_limit);
  return close_ledger(ledger, &plan->workspace_bytes);
}

ggm_status_t make_plan(const GemmArrayProblem& problem, const Device& device, GemmPlan* plan) {
  *plan = GemmPlan{};
  Ledger ledger;
  if (device.backend == BackendKind::cuda) {
    ProductShape shape{};
    shape.type = problem.a_type;
    shape.groups = problem.groups;
    shape.max_rows = problem.max_m;
    shape.rows = (Checked(problem.max_m) * Checked(problem.groups)).value;
    shape.portable = true;  // pointers are on the device
    GGM_TRY(choose_kernels(shape, device, limited_multiprocessors(device, problem.sm_limit), &plan->kernels));
  }
  plan->table = book_groups(problem.groups, device, &ledger);
  plan->host_scratch = book_host_scratch(problem.a_type, device, &ledger);
  plan->multiprocessors = limited_multiprocessors(device, problem.sm_limit);
  return close_ledger(ledger, &plan->workspace_bytes);
}

}  // namespace ggm
