#include "memory.h"

#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#if GGM_DEMO_CUDA
#include <cuda_runtime_api.h>
#endif

namespace demo {
namespace {

class HostMemory : public Memory {
 public:
  ~HostMemory() override {
    for (void* p : owned_) std::free(p);
  }
  const void* input(const void* host, std::size_t) override { return host; }
  void* output(void* host, std::size_t) override { return host; }
  void poison(void* output, std::size_t bytes) override { std::memset(output, 0xff, bytes); }
  void fetch(void*, const void*, std::size_t) override {}
  void* scratch(std::size_t bytes) override {
    if (bytes == 0) return nullptr;
    constexpr std::size_t kAlignment = GGM_WORKSPACE_ALIGNMENT;
    void* p = std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
    if (p == nullptr) throw std::bad_alloc();
    owned_.push_back(p);
    return p;
  }
  void synchronize() override {}
  const char* device_name() const override { return "this machine's cores"; }

 private:
  std::vector<void*> owned_;
};

#if GGM_DEMO_CUDA
void require(cudaError_t result, const char* what) {
  if (result != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(result));
}

class CudaMemory : public Memory {
 public:
  explicit CudaMemory(int device) {
    require(cudaSetDevice(device), "cudaSetDevice");
    cudaDeviceProp properties;
    require(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
    name_ = properties.name;
  }
  ~CudaMemory() override {
    for (void* p : owned_) cudaFree(p);
  }
  const void* input(const void* host, std::size_t bytes) override {
    void* device = scratch(bytes);
    require(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice), "copying to the GPU");
    return device;
  }
  void* output(void*, std::size_t bytes) override { return scratch(bytes); }
  void poison(void* output, std::size_t bytes) override {
    if (bytes != 0) require(cudaMemset(output, 0xff, bytes), "cudaMemset");
  }
  void fetch(void* host, const void* output, std::size_t bytes) override {
    require(cudaMemcpy(host, output, bytes, cudaMemcpyDeviceToHost), "copying from the GPU");
  }
  void* scratch(std::size_t bytes) override {
    if (bytes == 0) return nullptr;
    void* device = nullptr;
    require(cudaMalloc(&device, bytes), "cudaMalloc");
    owned_.push_back(device);
    return device;
  }
  void synchronize() override { require(cudaDeviceSynchronize(), "running on the GPU"); }
  const char* device_name() const override { return name_.c_str(); }

 private:
  std::vector<void*> owned_;
  std::string name_;
};
#endif

}  // namespace

std::unique_ptr<Memory> Memory::make(const ggm_info_t& info) {
  if (info.backend == GGM_BACKEND_HOST) return std::make_unique<HostMemory>();
#if GGM_DEMO_CUDA
  return std::make_unique<CudaMemory>(info.device);
#else
  throw std::runtime_error("this demo was built without CUDA: build it with a CUDA toolkit, or use --backend host");
#endif
}

}  // namespace demo
