// What ggm_create makes of the GPU that was asked for. Pure: src/cuda finds the facts, tests fake them.
#pragma once

#include "problem/device.h"

namespace ggm {

struct FoundGpu {
  int count = 0;             // GPUs that the driver shows; 0 without a driver
  const char* failure = "";  // name of the CUDA error instead of a count, or of an answer about the GPU; empty: none
  int ordinal = 0;           // the one asked for; what follows holds when it exists
  int capability = 0;        // 10 * major + minor
  int multiprocessors = 0;
  int shared_memory_bytes = 0;
  bool wgmma = false;  // the wgmma kernels can run: native code of capability 9.0, and a driver that serves them

  bool exists() const { return ordinal < count; }
};

// Fills `device`, or says why this GPU cannot be used: GGM_STATUS_UNSUPPORTED_DEVICE when it is not there or too old,
// GGM_STATUS_CUDA_ERROR when asking for it failed in another way, GGM_STATUS_UNSUPPORTED when kernel_family cannot run on it.
ggm_status_t accept_gpu(const FoundGpu& gpu, std::int32_t kernel_family, Device* device);

// GGM_BACKEND_AUTO: whether the host takes over after creating the CUDA backend ended with `status`. It does for a GPU that is
// not there or not usable. A number that no GPU has while others are there is a mistake, and a failure of a driver or GPU that
// is there must be seen: both stay errors.
bool host_takes_over(const FoundGpu& gpu, ggm_status_t status);

}  // namespace ggm
