// The table of up to kFewGroups groups, one a thread: what build_groups takes for them.
#pragma once

#include "cuda/gemm/groups.h"

namespace ggm::cuda {

inline constexpr int kFewGroups = 1024;

ggm_status_t build_few_groups(const GroupBuild& build, const TableRecipe& recipe, const Launch& launch);

ggm_status_t load_few_group_kernels();

}  // namespace ggm::cuda
