#include "plan/gpu.h"

#include <cstring>
#include <initializer_list>

#include "base/status.h"

namespace ggm {
namespace {

constexpr int kLeastCapability = 80;

// The errors of a machine on which no GPU is to be had for this build. All others, such as a GPU that is busy, a driver that
// does not start or memory that is short, are failures of one that is there.
bool means_no_gpu(const char* failure) {
  for (const char* name : {"cudaErrorNoDevice", "cudaErrorInsufficientDriver",  // no driver at all counts as an old one
                           "cudaErrorStubLibrary", "cudaErrorSystemDriverMismatch", "cudaErrorCompatNotSupportedOnDevice"})
    if (std::strcmp(failure, name) == 0) return true;
  return false;
}

}  // namespace

ggm_status_t accept_gpu(const FoundGpu& gpu, std::int32_t kernel_family, Device* device) {
  if (means_no_gpu(gpu.failure)) return fail(GGM_STATUS_UNSUPPORTED_DEVICE, "no usable CUDA device: %s", gpu.failure);
  if (gpu.failure[0] != 0) return fail(GGM_STATUS_CUDA_ERROR, "looking for CUDA devices failed: %s", gpu.failure);
  if (gpu.count == 0) return fail(GGM_STATUS_UNSUPPORTED_DEVICE, "no usable CUDA device: the driver shows none");
  if (!gpu.exists()) return fail(GGM_STATUS_UNSUPPORTED_DEVICE, "device = %d; the driver shows %d", gpu.ordinal, gpu.count);
  if (gpu.capability < kLeastCapability)
    return fail(GGM_STATUS_UNSUPPORTED_DEVICE, "device %d has capability %d.%d; 8.0 is the lowest", gpu.ordinal,
                gpu.capability / 10, gpu.capability % 10);
  const bool hopper = kernel_family == GGM_KERNELS_CUDA_HOPPER;
  if (kernel_family != GGM_KERNELS_AUTO && kernel_family != GGM_KERNELS_CUDA_PORTABLE && !hopper)
    return fail(
        GGM_STATUS_UNSUPPORTED,
        "kernel_family = %d cannot run on a CUDA device; it takes GGM_KERNELS_AUTO = %d, GGM_KERNELS_CUDA_PORTABLE = %d "
        "and GGM_KERNELS_CUDA_HOPPER = %d",
        kernel_family, GGM_KERNELS_AUTO, GGM_KERNELS_CUDA_PORTABLE, GGM_KERNELS_CUDA_HOPPER);
  if (hopper && !gpu.wgmma)
    return fail(GGM_STATUS_UNSUPPORTED,
                "kernel_family = %d (GGM_KERNELS_CUDA_HOPPER) cannot run on device %d of capability %d.%d: it needs 9.0 and a "
                "library built for 90a",
                kernel_family, gpu.ordinal, gpu.capability / 10, gpu.capability % 10);
  *device = Device{};
  device->backend = BackendKind::cuda;
  device->ordinal = gpu.ordinal;
  device->capability = gpu.capability;
  device->multiprocessors = gpu.multiprocessors;
  device->shared_memory_bytes = gpu.shared_memory_bytes;
  device->kernel_family =
      gpu.wgmma && kernel_family != GGM_KERNELS_CUDA_PORTABLE ? GGM_KERNELS_CUDA_HOPPER : GGM_KERNELS_CUDA_PORTABLE;
  return GGM_STATUS_SUCCESS;
}

bool host_takes_over(const FoundGpu& gpu, ggm_status_t status) {
  if (status != GGM_STATUS_UNSUPPORTED_DEVICE) return false;
  return gpu.count == 0 || gpu.exists();
}

}  // namespace ggm
