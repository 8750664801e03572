// What this folder's files offer each other: the loading functions, joined by load_routing_kernels, and the sort of few ids.
#pragma once

#include "cuda/routing/routing.h"
#include "ggm/ggm.h"

namespace ggm::cuda {

ggm_status_t load_route_kernels();
ggm_status_t load_one_block_kernels();
ggm_status_t load_check_kernels();

// route_rows, prepare_rows and, with a recipe, the table of a product over the rows, all in one launch: for few ids, as
// sort_in_one_block says. Arrays of `out` that are nullptr are left out.
ggm_status_t route_in_one_launch(const RouteProblem& problem, const RouteInputs& inputs, const RowWeights& weights,
                                 const TableRecipe* table, const RowPointers& out, const Launch& launch);

}  // namespace ggm::cuda
