#include "kernels_seen.h"

#include <cuda_runtime_api.h>
#include <cxxabi.h>

#include <cstdlib>
#include <mutex>

namespace ggm_test {
namespace {

struct Entry {
  std::string symbol;
  long long launches = 0;
};

// Registrations run before main, in any order with other static objects.
struct Registry {
  std::mutex mutex;
  std::map<const void*, Entry> by_function;
  std::map<const void*, const void*> function_of_handle;
};
Registry& registry() {
  static Registry r;
  return r;
}

void add_function(const void* function, const char* symbol) {
  const std::lock_guard<std::mutex> lock(registry().mutex);
  registry().by_function[function].symbol = symbol;
}
void add_launch(const void* function) {
  const std::lock_guard<std::mutex> lock(registry().mutex);
  const auto alias = registry().function_of_handle.find(function);
  ++registry().by_function[alias == registry().function_of_handle.end() ? function : alias->second].launches;
}

std::string readable(const std::string& symbol) {
  int status = 0;
  char* text = abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status);
  std::string name = status == 0 && text ? text : symbol;
  std::free(text);
  // The parameter list ends the name; template arguments in front of it may hold parentheses of their own.
  if (!name.empty() && name.back() == ')') {
    int depth = 0;
    for (std::size_t i = name.size(); i-- > 0;) {
      depth += name[i] == ')' ? 1 : name[i] == '(' ? -1 : 0;
      if (depth == 0) {
        name.resize(i);
        break;
      }
    }
  }
  if (name.rfind("void ", 0) == 0) name.erase(0, 5);
  return name;
}

}  // namespace

std::map<std::string, KernelSeen> kernels_seen() {
  const std::lock_guard<std::mutex> lock(registry().mutex);
  std::map<std::string, KernelSeen> result;
  for (const auto& [function, entry] : registry().by_function) {
    KernelSeen& seen = result[readable(entry.symbol)];
    seen.own = entry.symbol.find("3cub") == std::string::npos;
    seen.launches += entry.launches;
  }
  return result;
}

}  // namespace ggm_test

extern "C" {

void __real___cudaRegisterFunction(void** binary, const char* host, char* device, const char* name, int limit, uint3* tid,
                                   uint3* bid, dim3* block, dim3* grid, int* warp);
void __wrap___cudaRegisterFunction(void** binary, const char* host, char* device, const char* name, int limit, uint3* tid,
                                   uint3* bid, dim3* block, dim3* grid, int* warp) {
  ggm_test::add_function(host, name);
  __real___cudaRegisterFunction(binary, host, device, name, limit, tid, bid, block, grid, warp);
}

cudaError_t __real_cudaLaunchKernel(const void* f, dim3 grid, dim3 block, void** arguments, size_t shared, cudaStream_t stream);
cudaError_t __wrap_cudaLaunchKernel(const void* f, dim3 grid, dim3 block, void** arguments, size_t shared,
                                    cudaStream_t stream) {
  ggm_test::add_launch(f);
  return __real_cudaLaunchKernel(f, grid, block, arguments, shared, stream);
}

cudaError_t __real_cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* f, void** arguments);
cudaError_t __wrap_cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* f, void** arguments) {
  ggm_test::add_launch(f);
  return __real_cudaLaunchKernelExC(config, f, arguments);
}

// What f<<<...>>> becomes: a handle of the function first, then a launch of the handle.
cudaError_t __real___cudaGetKernel(cudaKernel_t* handle, const void* f);
cudaError_t __wrap___cudaGetKernel(cudaKernel_t* handle, const void* f) {
  const cudaError_t error = __real___cudaGetKernel(handle, f);
  if (error == cudaSuccess) {
    const std::lock_guard<std::mutex> lock(ggm_test::registry().mutex);
    ggm_test::registry().function_of_handle[*handle] = f;
  }
  return error;
}

cudaError_t __real___cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t shared,
                                      cudaStream_t stream);
cudaError_t __wrap___cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t shared,
                                      cudaStream_t stream) {
  ggm_test::add_launch(kernel);
  return __real___cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
}

}  // extern "C"
