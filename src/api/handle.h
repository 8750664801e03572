// The handle behind ggm_handle_t. Immutable after create, so any number of threads may read it.
#pragma once

#include <cstdint>

#include "base/log.h"
#include "host/host_backend.h"
#include "plan/backend.h"

struct ggm_handle {
  static constexpr std::uint64_t kAlive = 0x67676d2068616e64u;  // "ggm hand": tells a handle from a stray pointer

  std::uint64_t alive = kAlive;
  ggm::Device device;
  ggm::Log log;
  ggm::host::Allocator allocator{};
  ggm::Backend* backend = nullptr;
  void* backend_storage = nullptr;  // memory of a CUDA backend
  std::size_t backend_storage_bytes = 0;
};

namespace ggm::api {

// GGM_STATUS_INVALID_HANDLE unless `handle` is one of ggm_create.
ggm_status_t check_handle(ggm_handle_t handle);

}  // namespace ggm::api
