// A device as plain data: everything the plan may know about it. Tests fake devices of every capability with it.
#pragma once

#include <cstdint>

#include "ggm/ggm.h"

namespace ggm {

enum class BackendKind : std::int32_t { cuda = GGM_BACKEND_CUDA, host = GGM_BACKEND_HOST };

struct Device {
  BackendKind backend = BackendKind::host;
  int ordinal = 0;                                // CUDA ordinal
  int capability = 0;                             // 10 * major + minor; 0 on the host
  int multiprocessors = 1;                        // or worker threads on the host
  int shared_memory_bytes = 0;                    // largest dynamic shared memory of a block (opt-in)
  std::int32_t kernel_family = GGM_KERNELS_AUTO;  // resolved: never AUTO in a handle
};

}  // namespace ggm
