// Launching one kernel with its error checked, and touching kernels at create.
#pragma once

#include <cuda_runtime.h>

#include "cuda/runtime/launch.h"
#include "cuda/runtime/status.h"

namespace ggm::cuda {

// Lets a kernel be launched under the work before it, if it may be: fills one attribute and returns how many there are now.
inline unsigned add_dependent(const Launch& launch, unsigned count, cudaLaunchAttribute* attributes) {
  if (!launch.dependent) return count;
  attributes[count].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[count].val.programmaticStreamSerializationAllowed = 1;
  return count + 1;
}

// The launch's own error is returned at once; an asynchronous error of earlier work may surface here too and is passed on.
template <typename Params>
ggm_status_t launch_kernel(const char* name, void (*kernel)(Params), int blocks, int threads, std::size_t shared_bytes,
                           const Launch& launch, const Params& params) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.dynamicSmemBytes = shared_bytes;
  config.stream = launch.stream;
  cudaLaunchAttribute attribute{};
  config.numAttrs = add_dependent(launch, 0, &attribute);
  config.attrs = &attribute;
  void* arguments[] = {const_cast<Params*>(&params)};
  return cuda_status(cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(kernel), arguments), name);
}

// Loads the kernel's module now: with lazy loading the first launch would load it, which a stream capture forbids.
template <typename Params>
ggm_status_t load_kernel(const char* name, void (*kernel)(Params)) {
  cudaFuncAttributes attributes;
  return cuda_status(cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(kernel)), name);
}

}  // namespace ggm::cuda
