// launch_gemm and load_gemm_kernels: from a row of the kernel table and the operand types to one launch.
#include "cuda/gemm/launch.h"

#include <cuda_runtime.h>

#include "base/status.h"
#include "cuda/device/tile_shape.h"
#include "cuda/gemm/gemm.h"
#include "cuda/runtime/launch.cuh"
#include "cuda/runtime/status.h"

namespace ggm::cuda {
namespace {

// nullptr: there is none for unaligned tiles alone.
const void* find_unaligned_kernel(int kernel, Type type, Order a_order, Order b_order) {
  const bool rows = a_order == Order::inner_contiguous && b_order == Order::inner_contiguous;
  return rows && kGemmKernels[kernel].math == KernelMath::mma16 ? mma_kernel_unaligned(kernel, type) : nullptr;
}

const void* find_kernel(int kernel, Type type, Order a_order, Order b_order) {
  const bool a_contiguous = a_order == Order::inner_contiguous, b_contiguous = b_order == Order::inner_contiguous;
  switch (kGemmKernels[kernel].math) {
    case KernelMath::mma16:
      if (a_contiguous)
        return b_contiguous ? mma_kernel_contiguous_contiguous(kernel, type) : mma_kernel_contiguous_strided(kernel, type);
      return b_contiguous ? mma_kernel_strided_contiguous(kernel, type) : mma_kernel_strided_strided(kernel, type);
    case KernelMath::simt32: return simt_kernel(kernel, a_order, b_order);
    case KernelMath::simple64: return simple64_kernel(kernel);
  }
  return nullptr;
}

// Loads the function now (modules load lazily) and lets it take its shared memory.
ggm_status_t load_kernel(const void* function, const GemmKernel& row) {
  cudaFuncAttributes attributes;
  GGM_TRY(cuda_status(cudaFuncGetAttributes(&attributes, function), row.name));
  return cuda_status(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, row.shared_bytes), row.name);
}

}  // namespace

ggm_status_t launch_gemm(int kernel, const GemmCall& call, bool unaligned, const Launch& launch) {
  if (kernel < 0 || kernel >= kGemmKernelCount)
    return fail(GGM_STATUS_INTERNAL_ERROR, "kernel = %d; the table has %d", kernel, kGemmKernelCount);
  if (call.group_count == 0) return GGM_STATUS_SUCCESS;
  const GemmKernel& row = kGemmKernels[kernel];
  if (math_of(call.type) != row.math)
    return fail(GGM_STATUS_INTERNAL_ERROR, "kernel %s does not take %s", row.name, name_of(call.type));

  // The number of tiles lives on the device, so the grid is what the multiprocessors hold at once. Under a limit one block
  // each: the hardware spreads blocks over the device, so more blocks than the limit would take more multiprocessors.
  int device = 0, available = 0;
  GGM_TRY(cuda_status(cudaGetDevice(&device), "cudaGetDevice"));
  GGM_TRY(cuda_status(cudaDeviceGetAttribute(&available, cudaDevAttrMultiProcessorCount, device), "cudaDeviceGetAttribute"));
  const int blocks = launch.multiprocessors < available ? launch.multiprocessors : available * row.blocks;

  const void* function = unaligned ? find_unaligned_kernel(kernel, call.type, call.a_order, call.b_order) : nullptr;
  if (function == nullptr) function = find_kernel(kernel, call.type, call.a_order, call.b_order);
  GemmCall copy = call;
  void* arguments[] = {&copy};
  cudaLaunchAttribute attribute{};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(static_cast<unsigned>(shape_of(row).threads()));
  config.dynamicSmemBytes = static_cast<std::size_t>(row.shared_bytes);
  config.stream = launch.stream;
  config.attrs = &attribute;
  config.numAttrs = add_dependent(launch, 0, &attribute);
  return cuda_status(cudaLaunchKernelExC(&config, function, arguments), row.name);
}

ggm_status_t load_gemm_kernels(const Device& device) {
  constexpr Order kOrders[] = {Order::inner_contiguous, Order::inner_strided};
  for (int kernel = 0; kernel < kGemmKernelCount; ++kernel) {
    const GemmKernel& row = kGemmKernels[kernel];
    if (device.capability < row.min_capability || device.shared_memory_bytes < row.shared_bytes) continue;
    for (const TypeRow& type : kTypes) {
      if (math_of(type.type) != row.math) continue;
      for (Order a_order : kOrders)
        for (Order b_order : kOrders) {
          GGM_TRY(load_kernel(find_kernel(kernel, type.type, a_order, b_order), row));
          const void* unaligned = find_unaligned_kernel(kernel, type.type, a_order, b_order);
          if (unaligned != nullptr) GGM_TRY(load_kernel(unaligned, row));
        }
    }
  }
  return GGM_STATUS_SUCCESS;
}

}  // namespace ggm::cuda
