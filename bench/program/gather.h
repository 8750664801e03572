// Pieces of large device tensors as float32 on the host, for the float64 references. Written apart from the library.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

#include "device.h"
#include "types.h"

namespace ggm_bench {

class Gather {
 public:
  explicit Gather(cudaStream_t stream) : stream_(stream) {}

  // Vector v has `length` elements from element starts[v] on, `stride` apart; result [starts.size(), length].
  std::vector<float> vectors(const void* base, Dtype type, const std::vector<std::int64_t>& starts, std::int64_t stride,
                             std::int64_t length);
  std::vector<float> elements(const void* base, Dtype type, const std::vector<std::int64_t>& offsets) {
    return vectors(base, type, offsets, 1, 1);
  }
  std::vector<std::int32_t> integers(const std::int32_t* base, std::int64_t count);

  // Products of vectors in float64, by a plain kernel: <x from x_starts[i / each] on, w from w_starts[i] on>, where `each` is
  // w_starts.size() / x_starts.size() and the elements of w lie w_step apart. Their copies would be half a gigabyte.
  std::vector<double> dots(const void* x, const std::vector<std::int64_t>& x_starts, const void* w,
                           const std::vector<std::int64_t>& w_starts, std::int64_t w_step, Dtype type, std::int64_t length);

  // q[i] = dy[row_starts[i] ..] [n] @ W[weight_starts[i] ..] [n, k], in float64 too. Result [row_starts.size(), k].
  std::vector<double> rows_times_weights(const void* dy, const void* weights, Dtype type,
                                         const std::vector<std::int64_t>& row_starts,
                                         const std::vector<std::int64_t>& weight_starts, std::int64_t n, std::int64_t k);

 private:
  cudaStream_t stream_;
  DeviceBuffer starts_, result_;
};

}  // namespace ggm_bench
