// A CUDA device as the plain data that the plan reads.
#include <cuda_runtime_api.h>

#include <initializer_list>

#include "base/status.h"
#include "cuda/cuda_backend.h"

namespace ggm::cuda {
namespace {

// Without a driver, with one that is too old, or without a GPU the first query fails; libcuda is looked for at run time only.
ggm_status_t unusable(cudaError_t error, const char* what) {
  (void)cudaGetLastError();
  return fail(GGM_STATUS_UNSUPPORTED_DEVICE, "%s: %s (%s)", what, cudaGetErrorName(error), cudaGetErrorString(error));
}

struct Attribute {
  cudaDeviceAttr attribute;
  int* value;
};

}  // namespace

ggm_status_t describe_device(std::int32_t kernel_family, int ordinal, Device* device) {
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count)) return unusable(error, "no usable CUDA device");
  if (count == 0) return fail(GGM_STATUS_UNSUPPORTED_DEVICE, "no usable CUDA device: the driver shows none");
  if (ordinal < 0)
    if (const cudaError_t error = cudaGetDevice(&ordinal)) return unusable(error, "current CUDA device");
  if (ordinal >= count) return fail(GGM_STATUS_UNSUPPORTED_DEVICE, "device = %d; the driver shows %d", ordinal, count);

  int major = 0, minor = 0, multiprocessors = 0, shared_memory = 0;
  for (const Attribute& a :
       {Attribute{cudaDevAttrComputeCapabilityMajor, &major}, Attribute{cudaDevAttrComputeCapabilityMinor, &minor},
        Attribute{cudaDevAttrMultiProcessorCount, &multiprocessors},
        Attribute{cudaDevAttrMaxSharedMemoryPerBlockOptin, &shared_memory}})
    if (const cudaError_t error = cudaDeviceGetAttribute(a.value, a.attribute, ordinal))
      return unusable(error, "attributes of the device");
  if (major < 8)
    return fail(GGM_STATUS_UNSUPPORTED_DEVICE, "device %d has capability %d.%d; 8.0 is the lowest", ordinal, major, minor);
  if (kernel_family != GGM_KERNELS_AUTO && kernel_family != GGM_KERNELS_CUDA_PORTABLE)
    return fail(
        GGM_STATUS_UNSUPPORTED,
        "kernel_family = %d cannot run on a CUDA device; it takes GGM_KERNELS_AUTO = %d and GGM_KERNELS_CUDA_PORTABLE = %d",
        kernel_family, GGM_KERNELS_AUTO, GGM_KERNELS_CUDA_PORTABLE);
  *device = Device{};
  device->backend = BackendKind::cuda;
  device->ordinal = ordinal;
  device->capability = 10 * major + minor;
  device->multiprocessors = multiprocessors;
  device->shared_memory_bytes = shared_memory;
  device->kernel_family = GGM_KERNELS_CUDA_PORTABLE;
  return GGM_STATUS_SUCCESS;
}

}  // namespace ggm::cuda
