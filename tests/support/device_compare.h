// Counting differing bytes of two device buffers on the default stream. CUDA builds only.
#pragma once

#include <cstddef>

namespace ggm_test {

// Adds the number of bytes that differ to *count (device memory). Asynchronous.
void count_differences(const void* a, const void* b, std::size_t bytes, unsigned long long* count);

}  // namespace ggm_test
