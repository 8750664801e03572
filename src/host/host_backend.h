// The host backend: every operation behind the same ABI, for machines without a GPU and as a contender in every test.
#pragma once

#include "plan/backend.h"

namespace ggm::host {

// Memory of the backend object and its threads' bookkeeping, from the handle's allocator hook.
struct Allocator {
  void* (*allocate)(void* user, std::size_t bytes, std::size_t alignment);
  void (*deallocate)(void* user, void* pointer, std::size_t bytes);
  void* user;
};

// Fills `device` for this machine: `threads` workers (0: one a core), the best instruction set that `kernel_family` allows
// (GGM_KERNELS_AUTO: the best of all). GGM_STATUS_UNSUPPORTED when the processor lacks the one that was asked for.
ggm_status_t describe_device(std::int32_t kernel_family, std::int32_t threads, Device* device);

// Makes the backend with its thread pool. GGM_STATUS_OUT_OF_MEMORY when memory or threads cannot be had.
ggm_status_t make_backend(const Device& device, const Allocator& allocator, Backend** backend);
void destroy_backend(Backend* backend, const Allocator& allocator);

}  // namespace ggm::host
