#include "device.h"
#include "element.cuh"
#include "fill.h"
#include "random.cuh"

namespace ggm_bench {

namespace {

template <typename T>
__global__ void normal_kernel(T* to, std::int64_t count, float scale, std::uint64_t seed) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t pair = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; 2 * pair < count; pair += step) {
    const float2 value = two_normals(random_bits(seed, static_cast<std::uint64_t>(pair)));
    from_float(value.x * scale, to[2 * pair]);
    if (2 * pair + 1 < count) from_float(value.y * scale, to[2 * pair + 1]);
  }
}

// One block a padded row.
template <typename T>
__global__ void pad_kernel(const T* from, T* to, const std::int32_t* offsets, std::int64_t capacity, std::int64_t length) {
  const std::int64_t group = blockIdx.x / capacity;
  const std::int64_t row = offsets[group] + blockIdx.x % capacity;
  const bool real = row < offsets[group + 1];
  for (std::int64_t c = threadIdx.x; c < length; c += blockDim.x) {
    T value{};
    if (real) value = from[row * length + c];
    to[blockIdx.x * length + c] = value;
  }
}

}  // namespace

void fill_normal(void* to, Dtype type, std::int64_t count, float scale, std::uint64_t seed, cudaStream_t stream) {
  if (count == 0) return;
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    normal_kernel<T><<<132 * 8, 256, 0, stream>>>(static_cast<T*>(to), count, scale, seed);
  });
  check(cudaGetLastError(), "fill_normal");
}

void pad_groups(const void* from, void* to, Dtype type, const std::int32_t* offsets, std::int64_t groups, std::int64_t capacity,
                std::int64_t length, cudaStream_t stream) {
  if (groups * capacity == 0) return;
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    pad_kernel<T><<<static_cast<unsigned>(groups * capacity), 256, 0, stream>>>(static_cast<const T*>(from),
                                                                                static_cast<T*>(to), offsets, capacity, length);
  });
  check(cudaGetLastError(), "pad_groups");
}

}  // namespace ggm_bench
