// The CUDA backend. Creating it loads every kernel, so that the first call of a process may already be inside a capture.
#pragma once

#include "plan/backend.h"

namespace ggm::cuda {

// Fills `device` from the CUDA ordinal (-1: the calling thread's current device). GGM_STATUS_UNSUPPORTED_DEVICE without a
// driver, without that device, or below capability 8.0; GGM_STATUS_UNSUPPORTED when kernel_family cannot run on it.
ggm_status_t describe_device(std::int32_t kernel_family, int ordinal, Device* device);

// Loads every kernel for that device. The object lives in `storage` (backend_bytes() bytes, aligned to 64) that the handle
// owns; destroying it makes no CUDA call.
std::size_t backend_bytes();
ggm_status_t make_backend(const Device& device, void* storage, Backend** backend);
void destroy_backend(Backend* backend);

// For ggm_build_info: "13.0" and "80;90a".
const char* toolkit_version();
const char* architectures();

}  // namespace ggm::cuda
