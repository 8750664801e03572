// The current device of a thread, and the guards that ggm_create needs.
#pragma once

#include <cuda_runtime_api.h>

#include "cuda/runtime/status.h"
#include "problem/device.h"

namespace ggm::cuda {

// Success when `ordinal` is the calling thread's current device, else GGM_STATUS_WRONG_DEVICE. Costs one query of thread-local
// state.
ggm_status_t check_current_device(int ordinal);

// Makes a device current and lets this thread allocate while another thread captures a stream; puts both back when it ends.
class CreateScope {
 public:
  CreateScope() = default;
  CreateScope(const CreateScope&) = delete;
  CreateScope& operator=(const CreateScope&) = delete;
  ~CreateScope();

  ggm_status_t enter(int ordinal);

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
  bool mode_changed_ = false;
  int previous_ = -1;  // -1: nothing to put back
};

}  // namespace ggm::cuda
