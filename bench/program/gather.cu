#include "element.cuh"
#include "gather.h"

namespace ggm_bench {

namespace {

template <typename T>
__global__ void vectors_kernel(const T* base, const std::int64_t* starts, std::int64_t stride, std::int64_t length,
                               std::int64_t total, float* result) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < total; i += step) {
    result[i] = to_float(base[starts[i / length] + i % length * stride]);
  }
}

// One warp a product.
template <typename T>
__global__ void dot_kernel(const T* x, const std::int64_t* x_starts, const T* w, const std::int64_t* w_starts,
                           std::int64_t w_step, std::int64_t each, std::int64_t count, std::int64_t length, double* result) {
  const std::int64_t i = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
  if (i >= count) return;
  const T* left = x + x_starts[i / each];
  const T* right = w + w_starts[i];
  double sum = 0;
  for (std::int64_t k = threadIdx.x % 32; k < length; k += 32) {
    sum += static_cast<double>(to_float(left[k])) * static_cast<double>(to_float(right[k * w_step]));
  }
  for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffffu, sum, step);
  if (threadIdx.x % 32 == 0) result[i] = sum;
}

template <typename T>
__global__ void row_times_weight_kernel(const T* dy, const T* weights, const std::int64_t* row_starts,
                                        const std::int64_t* weight_starts, std::int64_t n, std::int64_t k, double* result) {
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (column >= k) return;
  const T* row = dy + row_starts[blockIdx.y];
  const T* weight = weights + weight_starts[blockIdx.y];
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    sum += static_cast<double>(to_float(row[i])) * static_cast<double>(to_float(weight[i * k + column]));
  }
  result[blockIdx.y * k + column] = sum;
}

}  // namespace

std::vector<float> Gather::vectors(const void* base, Dtype type, const std::vector<std::int64_t>& starts, std::int64_t stride,
                                   std::int64_t length) {
  const std::int64_t total = static_cast<std::int64_t>(starts.size()) * length;
  std::vector<float> result(total);
  if (total == 0) return result;
  starts_.reserve(static_cast<std::int64_t>(8 * starts.size()));
  result_.reserve(4 * total);
  check(cudaMemcpyAsync(starts_.data(), starts.data(), 8 * starts.size(), cudaMemcpyHostToDevice, stream_), "gather");
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    vectors_kernel<T><<<1056, 256, 0, stream_>>>(static_cast<const T*>(base), starts_.as<std::int64_t>(), stride, length, total,
                                                 result_.as<float>());
  });
  check(cudaGetLastError(), "gather");
  check(cudaMemcpyAsync(result.data(), result_.data(), 4 * total, cudaMemcpyDeviceToHost, stream_), "gather");
  check(cudaStreamSynchronize(stream_), "gather");
  return result;
}

std::vector<double> Gather::dots(const void* x, const std::vector<std::int64_t>& x_starts, const void* w,
                                 const std::vector<std::int64_t>& w_starts, std::int64_t w_step, Dtype type,
                                 std::int64_t length) {
  const std::int64_t count = static_cast<std::int64_t>(w_starts.size()), rows = static_cast<std::int64_t>(x_starts.size());
  std::vector<double> result(count);
  if (count == 0) return result;
  starts_.reserve(8 * (count + rows));
  result_.reserve(8 * count);
  std::int64_t* starts = starts_.as<std::int64_t>();
  check(cudaMemcpyAsync(starts, x_starts.data(), 8 * rows, cudaMemcpyHostToDevice, stream_), "gather");
  check(cudaMemcpyAsync(starts + rows, w_starts.data(), 8 * count, cudaMemcpyHostToDevice, stream_), "gather");
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    dot_kernel<T><<<static_cast<unsigned>((count + 7) / 8), 256, 0, stream_>>>(
        static_cast<const T*>(x), starts, static_cast<const T*>(w), starts + rows, w_step, count / rows, count, length,
        result_.as<double>());
  });
  check(cudaGetLastError(), "gather");
  check(cudaMemcpyAsync(result.data(), result_.data(), 8 * count, cudaMemcpyDeviceToHost, stream_), "gather");
  check(cudaStreamSynchronize(stream_), "gather");
  return result;
}

std::vector<std::int32_t> Gather::integers(const std::int32_t* base, std::int64_t count) {
  std::vector<std::int32_t> result(count);
  check(cudaMemcpyAsync(result.data(), base, 4 * count, cudaMemcpyDeviceToHost, stream_), "gather");
  check(cudaStreamSynchronize(stream_), "gather");
  return result;
}

std::vector<double> Gather::rows_times_weights(const void* dy, const void* weights, Dtype type,
                                               const std::vector<std::int64_t>& row_starts,
                                               const std::vector<std::int64_t>& weight_starts, std::int64_t n, std::int64_t k) {
  const std::int64_t count = static_cast<std::int64_t>(row_starts.size());
  std::vector<double> result(count * k);
  starts_.reserve(16 * count);
  result_.reserve(8 * count * k);
  std::int64_t* starts = starts_.as<std::int64_t>();
  check(cudaMemcpyAsync(starts, row_starts.data(), 8 * count, cudaMemcpyHostToDevice, stream_), "gather");
  check(cudaMemcpyAsync(starts + count, weight_starts.data(), 8 * count, cudaMemcpyHostToDevice, stream_), "gather");
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    const dim3 grid(static_cast<unsigned>((k + 127) / 128), static_cast<unsigned>(count));
    row_times_weight_kernel<T><<<grid, 128, 0, stream_>>>(static_cast<const T*>(dy), static_cast<const T*>(weights), starts,
                                                          starts + count, n, k, result_.as<double>());
  });
  check(cudaGetLastError(), "gather");
  check(cudaMemcpyAsync(result.data(), result_.data(), 8 * count * k, cudaMemcpyDeviceToHost, stream_), "gather");
  check(cudaStreamSynchronize(stream_), "gather");
  return result;
}

}  // namespace ggm_bench
