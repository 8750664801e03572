// What ggm_create makes of the GPU that was asked for. Pure: src/cuda finds the facts, tests fake them.
#pragma once

#include "problem/device.h"

namespace ggm {

struct FoundGpu {
  int count = 0;             // GPUs that the driver shows; 0 without a driver
  const char* failure = "";  // why there is no count, or no answer about the GPU; empty: none
  int ordinal = 0;           // the one asked for; what follows holds when it exists
  int capability = 0;        // 10 * major + minor
  int multiprocessors = 0;
  int shared_memory_bytes = 0;

  bool exists() const { return ordinal < count; }
};

// Fills `device`, or says why this GPU cannot be used: GGM_STATUS_UNSUPPORTED_DEVICE, or GGM_STATUS_UNSUPPORTED when
// kernel_family cannot run on it.
ggm_status_t accept_gpu(const FoundGpu& gpu, std::int32_t kernel_family, Device* device);

// GGM_BACKEND_AUTO: whether the host takes over after creating the CUDA backend ended with `status`. It does for a GPU that is
// not there or not usable. A number that no GPU has while others are there is a mistake, and a failure of a usable GPU must be
// seen: both stay errors.
bool host_takes_over(const FoundGpu& gpu, ggm_status_t status);

}  // namespace ggm
