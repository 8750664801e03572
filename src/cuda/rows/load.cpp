#include "base/status.h"
#include "cuda/rows/kernels.h"
#include "cuda/rows/rows.h"

namespace ggm::cuda {

ggm_status_t load_row_kernels() {
  GGM_TRY(load_copy_kernels());
  GGM_TRY(load_combine_kernels());
  GGM_TRY(load_dot_kernels());
  GGM_TRY(load_sum_kernels());
  return load_zero_kernels();
}

}  // namespace ggm::cuda
