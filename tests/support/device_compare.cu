#include "support/device_compare.h"

namespace ggm_test {
namespace {

// Buffers may be aligned to two bytes only, so 16-bit words are compared; speed does not matter beside the products.
__global__ void count_kernel(const unsigned short* a, const unsigned short* b, std::size_t words, unsigned long long* count) {
  unsigned long long different = 0;
  for (std::size_t i = blockIdx.x * static_cast<std::size_t>(blockDim.x) + threadIdx.x; i < words;
       i += static_cast<std::size_t>(gridDim.x) * blockDim.x)
    different += a[i] != b[i];
  if (different) atomicAdd(count, different);
}

}  // namespace

void count_differences(const void* a, const void* b, std::size_t bytes, unsigned long long* count) {
  count_kernel<<<256, 256>>>(static_cast<const unsigned short*>(a), static_cast<const unsigned short*>(b), bytes / 2, count);
}

}  // namespace ggm_test
