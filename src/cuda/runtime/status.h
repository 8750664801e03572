// CUDA errors as statuses of the library. Called after every CUDA call and launch of the backend.
#pragma once

#include <cuda_runtime_api.h>

#include "base/status.h"

namespace ggm::cuda {

// GGM_STATUS_CUDA_ERROR with the error's name, or success. A failure is taken out of the runtime's last-error slot, which is
// private to this library (its runtime is linked statically): a later launch must not find it there.
ggm_status_t cuda_status(cudaError_t error, const char* what);

}  // namespace ggm::cuda
