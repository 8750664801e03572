// ggm_create, ggm_destroy, ggm_get_info.
#include "api/handle.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "api/call.h"
#include "api/read_struct.h"
#include "problem/check.h"
#ifdef GGM_WITH_CUDA
#include "cuda/cuda_backend.h"
#endif

namespace ggm::api {

ggm_status_t check_handle(ggm_handle_t handle) {
  if (handle == nullptr) return fail(GGM_STATUS_INVALID_HANDLE, "handle is NULL");
  if (handle->alive != ggm_handle::kAlive)
    return fail(GGM_STATUS_INVALID_HANDLE, "handle = %p is not a live handle of ggm_create", static_cast<void*>(handle));
  return GGM_STATUS_SUCCESS;
}

namespace {

void* default_allocate(void*, std::size_t bytes, std::size_t alignment) {
  return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}
void default_deallocate(void*, void* pointer, std::size_t) { std::free(pointer); }

bool is_cuda_family(std::int32_t family) { return family == GGM_KERNELS_CUDA_PORTABLE || family == GGM_KERNELS_CUDA_HOPPER; }
bool is_host_family(std::int32_t family) { return family >= GGM_KERNELS_HOST_PLAIN && family <= GGM_KERNELS_HOST_AVX512; }

ggm_status_t check_params(const ggm_create_params_t& params) {
  GGM_TRY(check::flags("params.flags", params.flags, GGM_CREATE_CURRENT_DEVICE));
  GGM_TRY(check::enumeration("params.backend", params.backend, GGM_BACKEND_HOST));
  GGM_TRY(check::at_least("params.device", params.device, 0));
  if (params.flags & GGM_CREATE_CURRENT_DEVICE)
    GGM_TRY(check::unused("params.device", params.device, "GGM_CREATE_CURRENT_DEVICE is set"));
  if (params.backend == GGM_BACKEND_HOST)
    GGM_TRY(check::unused("params.device", params.device, "the host backend has no devices"));
  const std::int32_t family = params.kernel_family;
  if (family != GGM_KERNELS_AUTO && !is_cuda_family(family) && !is_host_family(family))
    return fail(GGM_STATUS_INVALID_ENUM, "params.kernel_family = %d; known values are 0, 1, 2 and 16 .. 18 (GGM_KERNELS_*)",
                family);
  if ((params.backend == GGM_BACKEND_HOST && is_cuda_family(family)) ||
      (params.backend == GGM_BACKEND_CUDA && is_host_family(family)))
    return fail(GGM_STATUS_INVALID_VALUE, "params.kernel_family = %d does not belong to params.backend = %d", family,
                params.backend);
  GGM_TRY(check::enumeration("params.log_level", params.log_level, GGM_LOG_TRACE));
  GGM_TRY(check::range("params.host_threads", params.host_threads, 0, 1024));
  GGM_TRY(check::unused("params.reserved", params.reserved, "it is reserved"));
  if ((params.allocate == nullptr) != (params.deallocate == nullptr))
    return fail(GGM_STATUS_NULL_POINTER, "params.%s is NULL; allocate and deallocate are given together or not at all",
                params.allocate ? "deallocate" : "allocate");
  return GGM_STATUS_SUCCESS;
}

// Two variables of the environment, for debugging; they never override a value that the program gave. GGM_LOG:
std::int32_t log_level_of(const ggm_create_params_t& params) {
  static constexpr const char* kLevels[] = {"off", "error", "plan", "trace"};
  const char* level = std::getenv("GGM_LOG");
  if (level == nullptr || params.log_level != GGM_LOG_OFF) return params.log_level;
  for (std::int32_t i = 0; i < 4; ++i)
    if (std::strcmp(level, kLevels[i]) == 0) return i;
  return GGM_LOG_OFF;
}

// And GGM_FORCE_KERNEL: its value where it sets params->kernel_family, else nullptr.
const char* force_family(ggm_create_params_t* params) {
  struct Name {
    const char* text;
    std::int32_t family;
  };
  static constexpr Name kNames[] = {{"portable", GGM_KERNELS_CUDA_PORTABLE},
                                    {"hopper", GGM_KERNELS_CUDA_HOPPER},
                                    {"plain", GGM_KERNELS_HOST_PLAIN},
                                    {"avx2", GGM_KERNELS_HOST_AVX2},
                                    {"avx512", GGM_KERNELS_HOST_AVX512}};
  const char* kernel = std::getenv("GGM_FORCE_KERNEL");
  if (kernel == nullptr || params->kernel_family != GGM_KERNELS_AUTO) return nullptr;
  for (const Name& name : kNames) {
    const bool fits =
        params->backend == GGM_BACKEND_AUTO || (params->backend == GGM_BACKEND_HOST) == is_host_family(name.family);
    if (!fits || std::strcmp(kernel, name.text) != 0) continue;
    params->kernel_family = name.family;
    return name.text;
  }
  return nullptr;
}

// The same failure, with where the family comes from, as the caller gave none.
ggm_status_t blame_environment(ggm_status_t status, const char* forced) {
  if (status == GGM_STATUS_SUCCESS || forced == nullptr) return status;
  char text[kErrorTextBytes];
  std::snprintf(text, sizeof text, "%s", last_error());
  return fail(status, "%s (kernel_family is that of the environment's GGM_FORCE_KERNEL = %s)", text, forced);
}

#ifdef GGM_WITH_CUDA

void release_storage(ggm_handle* handle) {
  if (handle->backend_storage == nullptr) return;
  handle->allocator.deallocate(handle->allocator.user, handle->backend_storage, handle->backend_storage_bytes);
  handle->backend_storage = nullptr;
}

FoundGpu gpu_of(const ggm_create_params_t& params) {
  return cuda::find_gpu(params.flags & GGM_CREATE_CURRENT_DEVICE ? -1 : params.device);
}

ggm_status_t create_cuda(const FoundGpu& gpu, std::int32_t kernel_family, ggm_handle* handle) {
  GGM_TRY(accept_gpu(gpu, kernel_family, &handle->device));
  handle->backend_storage_bytes = cuda::backend_bytes();
  handle->backend_storage = handle->allocator.allocate(handle->allocator.user, handle->backend_storage_bytes, 64);
  if (handle->backend_storage == nullptr)
    return fail(GGM_STATUS_OUT_OF_MEMORY, "the allocator gave no %zu bytes for the backend", handle->backend_storage_bytes);
  return cuda::make_backend(handle->device, handle->backend_storage, &handle->backend);
}

#endif

ggm_status_t create_host(const ggm_create_params_t& params, ggm_handle* handle) {
  GGM_TRY(host::describe_device(params.kernel_family, params.host_threads, &handle->device));
  return host::make_backend(handle->device, handle->allocator, &handle->backend);
}

// A family pins its own backend. AUTO: CUDA where this build and this machine have it, else the host (host_takes_over).
ggm_status_t create_backend(const ggm_create_params_t& params, ggm_handle* handle) {
  const bool only_cuda = params.backend == GGM_BACKEND_CUDA || is_cuda_family(params.kernel_family);
  const bool only_host = params.backend == GGM_BACKEND_HOST || is_host_family(params.kernel_family);
  if (only_host) return create_host(params, handle);
#ifdef GGM_WITH_CUDA
  const KeptError before;
  const FoundGpu gpu = gpu_of(params);
  const ggm_status_t status = create_cuda(gpu, params.kernel_family, handle);
  if (only_cuda || !host_takes_over(gpu, status)) return status;
  release_storage(handle);
  handle->log.line(GGM_LOG_PLAN, "create: host backend: %s", last_error());
  before.put_back();
#else
  if (only_cuda)
    return params.backend == GGM_BACKEND_CUDA
               ? fail(GGM_STATUS_BACKEND_UNAVAILABLE,
                      "params.backend = GGM_BACKEND_CUDA, but this library was built without CUDA (GGM_CUDA=OFF)")
               : fail(GGM_STATUS_BACKEND_UNAVAILABLE,
                      "params.kernel_family = %d is of CUDA, but this library was built without CUDA (GGM_CUDA=OFF)",
                      params.kernel_family);
#endif
  return create_host(params, handle);
}

void release(ggm_handle* handle) {
  const host::Allocator allocator = handle->allocator;
  if (handle->backend != nullptr) {
    if (handle->device.backend == BackendKind::host) host::destroy_backend(handle->backend, allocator);
#ifdef GGM_WITH_CUDA
    if (handle->device.backend == BackendKind::cuda) cuda::destroy_backend(handle->backend);
#endif
  }
#ifdef GGM_WITH_CUDA
  release_storage(handle);
#endif
  handle->alive = 0;
  handle->~ggm_handle();
  allocator.deallocate(allocator.user, handle, sizeof(ggm_handle));
}

ggm_status_t create(const ggm_create_params_t* user_params, ggm_handle_t* out) {
  if (out == nullptr) return fail(GGM_STATUS_NULL_POINTER, "handle is NULL");
  *out = nullptr;
  ggm_create_params_t params = GGM_CREATE_PARAMS_INIT;
  if (user_params != nullptr) GGM_TRY(read_struct("params", user_params, sizeof(ggm_create_params_t), &params));
  const Log log{log_level_of(params), params.log, params.log_user};
  const auto refused = [&log](ggm_status_t status) {
    log.line(GGM_LOG_ERROR, "create: %s: %s", status_name(status), last_error());
    return status;
  };
  if (const ggm_status_t status = check_params(params)) return refused(status);
  const char* const forced = force_family(&params);

  host::Allocator allocator{params.allocate, params.deallocate, params.allocator_user};
  if (allocator.allocate == nullptr || allocator.deallocate == nullptr)
    allocator = {default_allocate, default_deallocate, nullptr};
  void* memory = allocator.allocate(allocator.user, sizeof(ggm_handle), alignof(ggm_handle) < 64 ? 64 : alignof(ggm_handle));
  if (memory == nullptr)
    return refused(fail(GGM_STATUS_OUT_OF_MEMORY, "the allocator gave no %zu bytes for the handle", sizeof(ggm_handle)));
  auto* handle = new (memory) ggm_handle;
  handle->allocator = allocator;
  handle->log = log;
  if (const ggm_status_t status = blame_environment(create_backend(params, handle), forced)) {
    release(handle);
    return refused(status);
  }
  *out = handle;
  return GGM_STATUS_SUCCESS;
}

ggm_status_t get_info(ggm_handle_t handle, ggm_info_t* info) {
  GGM_TRY(check_handle(handle));
  ggm_info_t known;
  GGM_TRY(read_struct("info", static_cast<const ggm_info_t*>(info), sizeof(ggm_info_t), &known));
  const Device& device = handle->device;
  const std::uint32_t size = info->struct_size;
  known = ggm_info_t{size,
                     static_cast<std::int32_t>(device.backend),
                     device.ordinal,
                     device.kernel_family,
                     device.capability,
                     device.multiprocessors,
                     device.shared_memory_bytes,
                     GGM_WORKSPACE_ALIGNMENT};
  std::memcpy(info, &known, sizeof known);
  return GGM_STATUS_SUCCESS;
}

}  // namespace
}  // namespace ggm::api

extern "C" {

GGM_API ggm_status_t ggm_create(const ggm_create_params_t* params, ggm_handle_t* handle) {
  return ggm::api::guard("ggm_create", [&] { return ggm::api::create(params, handle); });
}

GGM_API ggm_status_t ggm_destroy(ggm_handle_t handle) {
  if (handle == nullptr) return GGM_STATUS_SUCCESS;
  return ggm::api::guard("ggm_destroy", [&]() -> ggm_status_t {
    GGM_TRY(ggm::api::check_handle(handle));
    ggm::api::release(handle);
    return GGM_STATUS_SUCCESS;
  });
}

GGM_API ggm_status_t ggm_get_info(ggm_handle_t handle, ggm_info_t* info) {
  return ggm::api::guard_call(handle, "ggm_get_info", [&] { return ggm::api::get_info(handle, info); });
}

}  // extern "C"
