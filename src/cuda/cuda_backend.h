// The CUDA backend. Creating it loads every kernel, so that the first call of a process may already be inside a capture.
#pragma once

#include "plan/backend.h"
#include "plan/gpu.h"

namespace ggm::cuda {

// What the driver says about a CUDA ordinal (-1: the calling thread's current device).
FoundGpu find_gpu(int ordinal);

// Loads every kernel for that device; GGM_STATUS_UNSUPPORTED_DEVICE when this build has no code for it. The object lives in
// `storage` (backend_bytes() bytes, aligned to 64) that the handle owns; destroying it makes no CUDA call.
std::size_t backend_bytes();
ggm_status_t make_backend(const Device& device, void* storage, Backend** backend);
void destroy_backend(Backend* backend);

// For ggm_build_info: "13.0" and "80;90a".
const char* toolkit_version();
const char* architectures();

}  // namespace ggm::cuda
