// Test data on the device: never zeros, since a product of zeros draws less power and runs faster than a real one.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "types.h"

namespace ggm_bench {

// count normal values times scale, element i a function of (seed, i).
void fill_normal(void* to, Dtype type, std::int64_t count, float scale, std::uint64_t seed, cudaStream_t stream);

// Rows of group e, from offsets[e] on in `from` [.., length], to row e * capacity on in `to`; the rest of the capacity is zero.
void pad_groups(const void* from, void* to, Dtype type, const std::int32_t* offsets, std::int64_t groups, std::int64_t capacity,
                std::int64_t length, cudaStream_t stream);

}  // namespace ggm_bench
