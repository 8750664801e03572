// Plans of the routing and of the permutations.
#include "plan/book.h"

namespace ggm {

ggm_status_t make_plan(const RouteProblem& problem, const Device& device, RoutePlan* plan) {
  *plan = RoutePlan{};
  Ledger ledger;
  plan->scratch = book_sort(problem, device, &ledger);
  plan->multiprocessors = limited_multiprocessors(device, problem.sm_limit);
  return close_ledger(ledger, &plan->workspace_bytes);
}

ggm_status_t make_plan(const PermuteProblem& problem, const Device& device, PermutePlan* plan) {
  *plan = PermutePlan{};
  Ledger ledger;
  plan->rows = book_rows(problem.routing, problem.routing_weight_type, false, &ledger);
  plan->multiprocessors = limited_multiprocessors(device, problem.sm_limit);
  return close_ledger(ledger, &plan->workspace_bytes);
}

}  // namespace ggm
