#include "cases/device_tools.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "ggm/ggm.h"

namespace ggm_test::cases {
namespace {

constexpr int kThreads = 256;
constexpr unsigned kBlocks = 2048;  // grid-stride loops, so any count works

// The rules of tests/support/inputs.h again, for the device.
__device__ std::uint32_t mix(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  std::uint32_t h = a * 2971215073u + b * 1405695061u + c * 3141592653u + 2718281829u;
  h ^= h >> 15;
  h *= 1597334677u;
  h ^= h >> 13;
  h *= 3812015801u;
  h ^= h >> 16;
  return h;
}
__device__ int rule_p(std::int64_t row, std::int64_t column) {
  return static_cast<int>(mix(static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(column), 0) % 7) - 3;
}
__device__ int rule_q(std::int64_t expert, std::int64_t n, std::int64_t k) {
  return static_cast<int>(
             mix(static_cast<std::uint32_t>(expert), static_cast<std::uint32_t>(n), static_cast<std::uint32_t>(k + 1)) % 5) -
         2;
}

__device__ float load(const void* data, std::int32_t type, std::int64_t at) {
  if (type == GGM_TYPE_BFLOAT16) return __bfloat162float(static_cast<const __nv_bfloat16*>(data)[at]);
  if (type == GGM_TYPE_FLOAT16) return __half2float(static_cast<const __half*>(data)[at]);
  return static_cast<const float*>(data)[at];
}
__device__ void store(void* data, std::int32_t type, std::int64_t at, float value) {
  if (type == GGM_TYPE_BFLOAT16) {
    static_cast<__nv_bfloat16*>(data)[at] = __float2bfloat16_rn(value);
  } else if (type == GGM_TYPE_FLOAT16) {
    static_cast<__half*>(data)[at] = __float2half_rn(value);
  } else {
    static_cast<float*>(data)[at] = value;
  }
}
// True when the element is `sum` rounded once to its type, bit for bit (a sum of 0 is +0.0).
__device__ bool holds(const void* data, std::int32_t type, std::int64_t at, long long sum) {
  const float want = static_cast<float>(sum);
  if (type == GGM_TYPE_BFLOAT16)
    return static_cast<const std::uint16_t*>(data)[at] == __bfloat16_as_ushort(__float2bfloat16_rn(want));
  if (type == GGM_TYPE_FLOAT16) return static_cast<const std::uint16_t*>(data)[at] == __half_as_ushort(__float2half_rn(want));
  return static_cast<const std::uint32_t*>(data)[at] == __float_as_uint(want);
}

__device__ std::int64_t first_index() { return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ std::int64_t stride() { return static_cast<std::int64_t>(gridDim.x) * blockDim.x; }

__device__ void wait_ns(unsigned long long ns) {
  unsigned long long start, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - start < ns);
}

__global__ void spin_kernel(unsigned long long ns) { wait_ns(ns); }

__global__ void rows_kernel(void* to, std::int32_t type, std::int64_t rows, std::int64_t cols, std::int64_t ld,
                            std::int64_t first_row) {
  for (std::int64_t i = first_index(); i < rows * cols; i += stride())
    store(to, type, i / cols * ld + i % cols, static_cast<float>(rule_p(first_row + i / cols, i % cols)));
}

__global__ void weights_kernel(void* to, std::int32_t type, std::int64_t experts, std::int64_t n, std::int64_t k,
                               std::int64_t expert_stride, bool sign_only) {
  for (std::int64_t i = first_index(); i < experts * n * k; i += stride()) {
    const std::int64_t e = i / (n * k), row = i / k % n, column = i % k;
    int value = rule_q(e, row, column);
    if (sign_only) value = (value > 0) - (value < 0);
    store(to, type, e * expert_stride + row * k + column, static_cast<float>(value));
  }
}

__global__ void points_kernel(void* to, std::int32_t type, std::int64_t rows, std::int64_t ld, std::int64_t period,
                              float value) {
  for (std::int64_t r = first_index(); r < rows; r += stride()) store(to, type, r * ld + (period ? r % period : 0), value);
}

__global__ void negate_kernel(void* data, std::int32_t type, std::int64_t count) {
  for (std::int64_t i = first_index(); i < count; i += stride()) store(data, type, i, -load(data, type, i));
}

__global__ void compare_kernel(const std::uint32_t* got, const std::uint32_t* want, std::int64_t words, std::int64_t bytes,
                               unsigned long long* wrong) {
  unsigned long long mine = 0;
  for (std::int64_t i = first_index(); i < words; i += stride()) mine += got[i] != want[i];
  if (first_index() == 0)
    for (std::int64_t i = words * 4; i < bytes; ++i)
      mine += reinterpret_cast<const std::uint8_t*>(got)[i] != reinterpret_cast<const std::uint8_t*>(want)[i];
  if (mine) atomicAdd(wrong, mine);
}

__global__ void contiguous_kernel(ProductCheck check, unsigned long long* wrong) {
  unsigned long long mine = 0;
  for (std::int64_t i = first_index(); i < check.rows * check.n; i += stride()) {
    const std::int64_t row = i / check.n, column = i % check.n;
    std::int64_t group = 0;
    while (group < check.groups && check.offsets[group + 1] <= row) ++group;
    long long sum = 0;
    if (group < check.groups && row >= check.offsets[0])
      for (std::int64_t k = 0; k < check.k; ++k)
        sum += static_cast<long long>(load(check.a, check.type, row * check.k + k)) *
               static_cast<long long>(load(check.b, check.type, (group * check.n + column) * check.k + k));
    mine += !holds(check.d, check.d_type, row * check.ldd + column, sum);
  }
  if (mine) atomicAdd(wrong, mine);
}

__global__ void variable_k_kernel(ProductCheck check, unsigned long long* wrong) {
  unsigned long long mine = 0;
  for (std::int64_t i = first_index(); i < check.groups * check.m * check.n; i += stride()) {
    const std::int64_t group = i / (check.m * check.n), row = i / check.n % check.m, column = i % check.n;
    long long sum = 0;
    for (std::int64_t r = check.offsets[group]; r < check.offsets[group + 1]; ++r)
      sum += static_cast<long long>(load(check.a, check.type, r * check.m + row)) *
             static_cast<long long>(load(check.b, check.type, r * check.n + column));
    mine += !holds(check.d, check.d_type, i, sum);
  }
  if (mine) atomicAdd(wrong, mine);
}

__global__ void column_sums_kernel(const void* data, std::int32_t type, std::int64_t rows, std::int64_t cols, long long* sums) {
  // One thread a column and slice of rows: neighbouring threads read neighbouring columns.
  const std::int64_t column = first_index();
  if (column >= cols) return;
  long long sum = 0;
  for (std::int64_t r = blockIdx.y; r < rows; r += gridDim.y)
    sum += static_cast<long long>(load(data, type, r * cols + column));
  atomicAdd(reinterpret_cast<unsigned long long*>(sums) + column, static_cast<unsigned long long>(sum));
}

__global__ void late_copy_kernel(std::uint32_t* to, const std::uint32_t* from, std::int64_t words, unsigned long long ns) {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
  wait_ns(ns);
  for (std::int64_t i = first_index(); i < words; i += stride()) to[i] = from[i];
}

}  // namespace

void enqueue_spin(double milliseconds, cudaStream_t stream) {
  spin_kernel<<<1, 1, 0, stream>>>(static_cast<unsigned long long>(milliseconds * 1e6));
}

void enqueue_rows(void* to, std::int32_t type, std::int64_t rows, std::int64_t cols, std::int64_t ld, std::int64_t first_row,
                  cudaStream_t stream) {
  rows_kernel<<<kBlocks, kThreads, 0, stream>>>(to, type, rows, cols, ld, first_row);
}

void enqueue_weights(void* to, std::int32_t type, std::int64_t experts, std::int64_t n, std::int64_t k,
                     std::int64_t expert_stride, bool sign_only, cudaStream_t stream) {
  weights_kernel<<<kBlocks, kThreads, 0, stream>>>(to, type, experts, n, k, expert_stride, sign_only);
}

void enqueue_points(void* to, std::int32_t type, std::int64_t rows, std::int64_t ld, std::int64_t period, float value,
                    cudaStream_t stream) {
  points_kernel<<<kBlocks, kThreads, 0, stream>>>(to, type, rows, ld, period, value);
}

void enqueue_negate(void* data, std::int32_t type, std::int64_t count, cudaStream_t stream) {
  negate_kernel<<<kBlocks, kThreads, 0, stream>>>(data, type, count);
}

void enqueue_compare(const void* got, const void* want, std::int64_t bytes, unsigned long long* wrong, cudaStream_t stream) {
  compare_kernel<<<kBlocks, kThreads, 0, stream>>>(static_cast<const std::uint32_t*>(got),
                                                   static_cast<const std::uint32_t*>(want), bytes / 4, bytes, wrong);
}

void enqueue_check_contiguous(const ProductCheck& check, unsigned long long* wrong, cudaStream_t stream) {
  contiguous_kernel<<<kBlocks, kThreads, 0, stream>>>(check, wrong);
}

void enqueue_check_variable_k(const ProductCheck& check, unsigned long long* wrong, cudaStream_t stream) {
  variable_k_kernel<<<kBlocks, kThreads, 0, stream>>>(check, wrong);
}

void enqueue_column_sums(const void* data, std::int32_t type, std::int64_t rows, std::int64_t cols, long long* sums,
                         cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((cols + kThreads - 1) / kThreads), 256);
  column_sums_kernel<<<grid, kThreads, 0, stream>>>(data, type, rows, cols, sums);
}

void enqueue_late_copy(std::uint32_t* to, const std::uint32_t* from, std::int64_t words, double wait_ms, cudaStream_t stream) {
  late_copy_kernel<<<1, kThreads, 0, stream>>>(to, from, words, static_cast<unsigned long long>(wait_ms * 1e6));
}

}  // namespace ggm_test::cases
