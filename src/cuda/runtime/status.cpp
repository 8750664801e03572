#include "cuda/runtime/status.h"

namespace ggm::cuda {

ggm_status_t cuda_status(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return GGM_STATUS_SUCCESS;
  (void)cudaGetLastError();
  const char* name = cudaGetErrorName(error);
  const char* text = cudaGetErrorString(error);
  // Every kernel here exists, so an invalid device function is one that was not built for this device.
  if (error == cudaErrorNoKernelImageForDevice || error == cudaErrorInvalidDeviceFunction ||
      error == cudaErrorUnsupportedPtxVersion)
    return fail(GGM_STATUS_UNSUPPORTED_DEVICE, "%s: %s; this build has no code that the device can run (%s)", what, name, text);
  return fail(GGM_STATUS_CUDA_ERROR, "%s: %s (%s)", what, name, text);
}

}  // namespace ggm::cuda
