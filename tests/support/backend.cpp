#include "support/backend.h"

#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "support/test.h"
#if defined(GGM_TEST_CUDA)
#include <cuda_runtime_api.h>
#endif

namespace ggm_test {
namespace {

#if defined(GGM_TEST_CUDA)
void cuda_check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorName(error));
}

Gpu find_gpu() {
  Gpu gpu;
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess || count == 0) {
    (void)cudaGetLastError();
    gpu.reason = std::string("no usable GPU: ") + (error == cudaSuccess ? "no device" : cudaGetErrorName(error));
    return gpu;
  }
  cudaDeviceProp properties;
  cuda_check(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  gpu.present = true;
  gpu.capability = 10 * properties.major + properties.minor;
  gpu.multiprocessors = properties.multiProcessorCount;
  gpu.memory_bytes = properties.totalGlobalMem;
  gpu.name = std::string(properties.name) + " (" + std::to_string(properties.major) + "." + std::to_string(properties.minor) +
             ", " + std::to_string(properties.multiProcessorCount) + " multiprocessors)";
  return gpu;
}
#else
Gpu find_gpu() {
  Gpu gpu;
  gpu.reason = "this build has no CUDA backend";
  return gpu;
}
#endif

// A family that this machine cannot run is refused by ggm_create; those rows are left out.
bool can_create(const Backend& backend) {
  ggm_create_params_t params = GGM_CREATE_PARAMS_INIT;
  params.backend = backend.cuda ? GGM_BACKEND_CUDA : GGM_BACKEND_HOST;
  params.kernel_family = backend.kernel_family;
  params.host_threads = backend.cuda ? 0 : 1;
  ggm_handle_t handle = nullptr;
  const ggm_status_t status = ggm_create(&params, &handle);
  ggm_destroy(handle);
  return status != GGM_STATUS_UNSUPPORTED;
}

}  // namespace

const Gpu& gpu() {
  static const Gpu found = find_gpu();
  return found;
}

const std::vector<Backend>& host_backends() {
  static const std::vector<Backend> rows = [] {
    std::vector<Backend> list;
    for (const Backend& row :
         {Backend{"host-auto", false, GGM_KERNELS_AUTO, 2}, Backend{"host-plain", false, GGM_KERNELS_HOST_PLAIN, 2},
          Backend{"host-avx2", false, GGM_KERNELS_HOST_AVX2, 2}, Backend{"host-avx512", false, GGM_KERNELS_HOST_AVX512, 2}})
      if (can_create(row)) list.push_back(row);
    return list;
  }();
  return rows;
}

const std::vector<Backend>& cuda_backends() {
  static const std::vector<Backend> rows = [] {
    if (!gpu().present) return std::vector<Backend>{};
    return std::vector<Backend>{{"cuda-auto", true, GGM_KERNELS_AUTO, 0},
                                {"cuda-portable", true, GGM_KERNELS_CUDA_PORTABLE, 0}};
  }();
  return rows;
}

Backend hopper_backend() { return {"cuda-hopper", true, GGM_KERNELS_CUDA_HOPPER, 0}; }

std::string hopper_obstacle() {
  if (!gpu().present) return gpu().reason;
  if (can_create(hopper_backend())) return "";
  return "no wgmma kernels on " + gpu().name + ": " + ggm_last_error();
}

void* allocate(const Backend& backend, std::size_t bytes) {
  void* pointer = nullptr;
#if defined(GGM_TEST_CUDA)
  if (backend.cuda) {
    cuda_check(cudaMalloc(&pointer, bytes), "cudaMalloc");
    return pointer;
  }
#endif
  if (backend.cuda) throw std::runtime_error("this build has no CUDA backend");
  pointer = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (!pointer) throw std::bad_alloc();
  return pointer;
}

void release(const Backend& backend, void* pointer) {
#if defined(GGM_TEST_CUDA)
  if (backend.cuda) {
    (void)cudaFree(pointer);
    return;
  }
#endif
  (void)backend;
  std::free(pointer);
}

void copy_in(const Backend& backend, void* to, const void* from, std::size_t bytes) {
#if defined(GGM_TEST_CUDA)
  if (backend.cuda) {
    cuda_check(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice), "cudaMemcpy to the device");
    return synchronize(backend);  // from pageable memory it may return early, and a non-blocking stream would not wait for it
  }
#endif
  (void)backend;
  if (bytes) std::memcpy(to, from, bytes);
}

void copy_out(const Backend& backend, void* to, const void* from, std::size_t bytes) {
  synchronize(backend);
#if defined(GGM_TEST_CUDA)
  if (backend.cuda) return cuda_check(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost), "cudaMemcpy from the device");
#endif
  if (bytes) std::memcpy(to, from, bytes);
}

void set_bytes(const Backend& backend, void* to, int byte, std::size_t bytes) {
#if defined(GGM_TEST_CUDA)
  if (backend.cuda) {
    cuda_check(cudaMemset(to, byte, bytes), "cudaMemset");
    return synchronize(backend);
  }
#endif
  (void)backend;
  if (bytes) std::memset(to, byte, bytes);
}

void synchronize(const Backend& backend) {
#if defined(GGM_TEST_CUDA)
  if (backend.cuda) cuda_check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
#endif
  (void)backend;
}

Handle::Handle(const Backend& backend) : Handle(backend, ggm_create_params_t GGM_CREATE_PARAMS_INIT) {}

Handle::Handle(const Backend& backend, ggm_create_params_t params) : backend_(backend) {
  params.backend = backend.cuda ? GGM_BACKEND_CUDA : GGM_BACKEND_HOST;
  params.kernel_family = backend.kernel_family;
  if (!backend.cuda && params.host_threads == 0) params.host_threads = backend.host_threads;
  GGM_REQUIRE_OK(ggm_create(&params, &handle_));
}

Handle::Handle(Handle&& other) noexcept : backend_(other.backend_), handle_(other.handle_) { other.handle_ = nullptr; }

Handle::~Handle() { ggm_destroy(handle_); }

}  // namespace ggm_test
