// The stable device-wide sort of (key, value) pairs. CUB is seen by sort.cu alone.
#pragma once

#include <cstdint>

#include "cuda/runtime/launch.h"
#include "ggm/ggm.h"

namespace ggm::cuda {

// Two buffers each; the sort moves between them and leaves its result in `keys` and `values` as they are afterwards.
struct SortBuffers {
  std::uint32_t* keys;
  std::uint32_t* other_keys;
  std::int32_t* values;
  std::int32_t* other_values;
  void* temp;
  std::int64_t temp_bytes;
};

// Sorts `items` (at least 1) pairs by the low `bits` of their keys, equal keys in their old order. NOTE: CUB sizes its own
// grids, so sm_limit does not bound these kernels.
ggm_status_t sort_pairs(SortBuffers* buffers, std::int64_t items, int bits, cudaStream_t stream);

// Compares sort_temp_bound with what CUB asks for, over sizes and key widths; GGM_STATUS_INTERNAL_ERROR when it is too small.
ggm_status_t verify_sort_bound();

// Runs sorts that reach every kernel of CUB on a stream and memory of their own, so that all are loaded. Waits for them.
ggm_status_t warm_up_sort();

}  // namespace ggm::cuda
