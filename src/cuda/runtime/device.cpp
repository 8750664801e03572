#include "cuda/runtime/device.h"

namespace ggm::cuda {

ggm_status_t check_current_device(int ordinal) {
  int current = -1;
  GGM_TRY(cuda_status(cudaGetDevice(&current), "current device"));
  if (current != ordinal)
    return fail(GGM_STATUS_WRONG_DEVICE, "the current CUDA device is %d; the handle's is %d", current, ordinal);
  return GGM_STATUS_SUCCESS;
}

ggm_status_t CreateScope::enter(int ordinal) {
  GGM_TRY(cuda_status(cudaThreadExchangeStreamCaptureMode(&mode_), "capture mode of the thread"));
  mode_changed_ = true;
  int current = -1;
  GGM_TRY(cuda_status(cudaGetDevice(&current), "current device"));
  if (current == ordinal) return GGM_STATUS_SUCCESS;
  GGM_TRY(cuda_status(cudaSetDevice(ordinal), "device of the handle"));
  previous_ = current;
  return GGM_STATUS_SUCCESS;
}

CreateScope::~CreateScope() {
  if (previous_ >= 0) (void)cudaSetDevice(previous_);
  if (mode_changed_) (void)cudaThreadExchangeStreamCaptureMode(&mode_);
}

}  // namespace ggm::cuda
