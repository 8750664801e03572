// The facts about a GPU that ggm_create judges by.
#include <cuda_runtime_api.h>

#include <initializer_list>

#include "cuda/cuda_backend.h"
#include "cuda/gemm/wgmma.h"
#include "cuda/runtime/device.h"

namespace ggm::cuda {
namespace {

struct Attribute {
  cudaDeviceAttr attribute;
  int* value;
};

cudaError_t find(FoundGpu* gpu) {
  // Without a driver, with one that is too old, or without a GPU this fails, and accept_gpu tells these errors from others;
  // libcuda is looked for at run time only.
  if (const cudaError_t error = cudaGetDeviceCount(&gpu->count)) {
    gpu->count = 0;
    return error;
  }
  if (gpu->ordinal < 0)
    if (const cudaError_t error = cudaGetDevice(&gpu->ordinal)) return error;
  if (!gpu->exists()) return cudaSuccess;
  int major = 0, minor = 0;
  for (const Attribute& a :
       {Attribute{cudaDevAttrComputeCapabilityMajor, &major}, Attribute{cudaDevAttrComputeCapabilityMinor, &minor},
        Attribute{cudaDevAttrMultiProcessorCount, &gpu->multiprocessors},
        Attribute{cudaDevAttrMaxSharedMemoryPerBlockOptin, &gpu->shared_memory_bytes}})
    if (const cudaError_t error = cudaDeviceGetAttribute(a.value, a.attribute, gpu->ordinal)) return error;
  gpu->capability = 10 * major + minor;
  return cudaSuccess;
}

}  // namespace

FoundGpu find_gpu(int ordinal) {
  FoundGpu gpu;
  gpu.ordinal = ordinal;
  if (const cudaError_t error = find(&gpu)) {
    (void)cudaGetLastError();
    gpu.failure = cudaGetErrorName(error);
    return gpu;
  }
  if (gpu.exists() && gpu.capability == 90) {
    // A failure here is not said: making the backend meets it again, and says so.
    CreateScope scope;
    if (scope.enter(gpu.ordinal) != GGM_STATUS_SUCCESS || load_wgmma_kernels(&gpu.wgmma) != GGM_STATUS_SUCCESS)
      (void)cudaGetLastError();
  }
  return gpu;
}

}  // namespace ggm::cuda
