#include "host/host_backend.h"

#include <sched.h>
#include <unistd.h>

#include <initializer_list>
#include <new>

#include "base/status.h"
#include "host/backend.h"

namespace ggm::host {
namespace {

bool processor_has(std::int32_t kernel_family) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  if (kernel_family == GGM_KERNELS_HOST_AVX2) return avx2;
  if (kernel_family == GGM_KERNELS_HOST_AVX512)
    return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#endif
  return kernel_family == GGM_KERNELS_HOST_PLAIN;
}

// Cores that this process may run on.
int usable_cores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0) return CPU_COUNT(&set);
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  return online > 0 ? static_cast<int>(online) : 1;
}

constexpr std::int32_t kMaxThreads = 1024;

// Where the thread ids follow the object in its one piece of memory.
constexpr std::size_t kObjectBytes = (sizeof(HostBackend) + 63) / 64 * 64;
std::size_t backend_bytes(const Device& device) { return kObjectBytes + sizeof(pthread_t) * device.multiprocessors; }

}  // namespace

ggm_status_t describe_device(std::int32_t kernel_family, std::int32_t threads, Device* device) {
  *device = Device{};
  device->backend = BackendKind::host;
  if (kernel_family == GGM_KERNELS_AUTO) {
    kernel_family = GGM_KERNELS_HOST_PLAIN;
    for (std::int32_t better : {GGM_KERNELS_HOST_AVX2, GGM_KERNELS_HOST_AVX512})
      if (processor_has(better)) kernel_family = better;
  } else if (kernel_family != GGM_KERNELS_HOST_PLAIN && kernel_family != GGM_KERNELS_HOST_AVX2 &&
             kernel_family != GGM_KERNELS_HOST_AVX512) {
    return fail(GGM_STATUS_UNSUPPORTED, "kernel_family = %d; the host backend has 16 (plain), 17 (AVX2) and 18 (AVX-512)",
                kernel_family);
  } else if (!processor_has(kernel_family)) {
    return fail(GGM_STATUS_UNSUPPORTED, "kernel_family = %d (%s); this processor lacks its instructions", kernel_family,
                family(kernel_family).name);
  }
  device->kernel_family = kernel_family;
  const int wanted = threads > 0 ? threads : usable_cores();
  device->multiprocessors = wanted < kMaxThreads ? wanted : kMaxThreads;
  return GGM_STATUS_SUCCESS;
}

ggm_status_t make_backend(const Device& device, const Allocator& allocator, Backend** backend) {
  *backend = nullptr;
  const std::size_t bytes = backend_bytes(device);
  void* memory = allocator.allocate(allocator.user, bytes, 64);
  if (memory == nullptr)
    return fail(GGM_STATUS_OUT_OF_MEMORY, "the host backend needs %zu bytes; the allocator gave none", bytes);
  auto* made = new (memory) HostBackend(device);
  const ggm_status_t status = made->start(reinterpret_cast<pthread_t*>(static_cast<char*>(memory) + kObjectBytes));
  if (status != GGM_STATUS_SUCCESS) {
    destroy_backend(made, allocator);
    return status;
  }
  *backend = made;
  return GGM_STATUS_SUCCESS;
}

void destroy_backend(Backend* backend, const Allocator& allocator) {
  if (backend == nullptr) return;
  const std::size_t bytes = backend_bytes(backend->device());
  auto* made = static_cast<HostBackend*>(backend);
  made->~HostBackend();
  allocator.deallocate(allocator.user, made, bytes);
}

ggm_status_t HostBackend::check_call(ggm_stream_t stream) const {
  if (stream == nullptr) return GGM_STATUS_SUCCESS;
  return fail(GGM_STATUS_INVALID_STREAM, "stream = %p; the host backend takes NULL only", static_cast<void*>(stream));
}

}  // namespace ggm::host
