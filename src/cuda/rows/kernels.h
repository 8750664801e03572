// The loading functions of this folder's files, joined by load_row_kernels.
#pragma once

#include "ggm/ggm.h"

namespace ggm::cuda {

ggm_status_t load_copy_kernels();
ggm_status_t load_combine_kernels();
ggm_status_t load_dot_kernels();
ggm_status_t load_sum_kernels();
ggm_status_t load_zero_kernels();

}  // namespace ggm::cuda
