#include "plan/gpu.h"

#include "base/status.h"

namespace ggm {
namespace {

constexpr int kLeastCapability = 80;

}  // namespace

ggm_status_t accept_gpu(const FoundGpu& gpu, std::int32_t kernel_family, Device* device) {
  if (gpu.failure[0] != 0) return fail(GGM_STATUS_UNSUPPORTED_DEVICE, "no usable CUDA device: %s", gpu.failure);
  if (gpu.count == 0) return fail(GGM_STATUS_UNSUPPORTED_DEVICE, "no usable CUDA device: the driver shows none");
  if (!gpu.exists()) return fail(GGM_STATUS_UNSUPPORTED_DEVICE, "device = %d; the driver shows %d", gpu.ordinal, gpu.count);
  if (gpu.capability < kLeastCapability)
    return fail(GGM_STATUS_UNSUPPORTED_DEVICE, "device %d has capability %d.%d; 8.0 is the lowest", gpu.ordinal,
                gpu.capability / 10, gpu.capability % 10);
  if (kernel_family != GGM_KERNELS_AUTO && kernel_family != GGM_KERNELS_CUDA_PORTABLE)
    return fail(
        GGM_STATUS_UNSUPPORTED,
        "kernel_family = %d cannot run on a CUDA device; it takes GGM_KERNELS_AUTO = %d and GGM_KERNELS_CUDA_PORTABLE = %d",
        kernel_family, GGM_KERNELS_AUTO, GGM_KERNELS_CUDA_PORTABLE);
  *device = Device{};
  device->backend = BackendKind::cuda;
  device->ordinal = gpu.ordinal;
  device->capability = gpu.capability;
  device->multiprocessors = gpu.multiprocessors;
  device->shared_memory_bytes = gpu.shared_memory_bytes;
  device->kernel_family = GGM_KERNELS_CUDA_PORTABLE;
  return GGM_STATUS_SUCCESS;
}

bool host_takes_over(const FoundGpu& gpu, ggm_status_t status) {
  if (status != GGM_STATUS_UNSUPPORTED_DEVICE) return false;
  return gpu.count == 0 || gpu.exists();
}

}  // namespace ggm
