// The products of a cell one expert at a time, as the baselines with sizes on the host see them.
#pragma once

#include <vector>

#include "cell_data.h"
#include "cublas.h"

namespace ggm_bench {

struct ExpertProduct {
  GemmShape shape;
  GemmPointers pointers;
};

// Experts with rows only, for grouped and grouped_k cells. For any others `rows_in` and `rows_out` are the sorted rows.
std::vector<ExpertProduct> expert_products(const CellData& data, int set, const void* rows_in, void* rows_out);

// Whether those baselines can take the cell.
bool has_expert_products(const CellData& data);

}  // namespace ggm_bench
