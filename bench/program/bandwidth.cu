#include "bandwidth.h"
#include "fill.h"

namespace ggm_bench {

namespace {

constexpr std::int64_t kBytes = std::int64_t{4096} << 20;
constexpr int kUnroll = 8;

// Eight independent 16-byte loads a thread in flight; the sum is stored only when it has a value that random data never has.
__global__ void read_kernel(const uint4* from, std::int64_t count, unsigned* never) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  unsigned sum = 0;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += kUnroll * step) {
    uint4 value[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) value[u] = i + u * step < count ? __ldcs(from + i + u * step) : uint4{0, 0, 0, 0};
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) sum |= value[u].x ^ value[u].y ^ value[u].z ^ value[u].w;
  }
  if (sum == 0x13579bdfu) *never = sum;
}

// The same with stores: a plain kernel beside the driver's copy, which as a node of a graph has been seen far below it.
__global__ void copy_kernel(const uint4* from, uint4* to, std::int64_t count) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += kUnroll * step) {
    uint4 value[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) value[u] = i + u * step < count ? __ldcs(from + i + u * step) : uint4{0, 0, 0, 0};
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      if (i + u * step < count) __stcs(to + i + u * step, value[u]);
    }
  }
}

}  // namespace

std::vector<Bandwidth> bandwidth_contenders(Buffers& buffers, cudaStream_t stream) {
  buffers.weights.reserve(kBytes);
  buffers.output.reserve(kBytes);
  buffers.workspace.reserve(256);
  fill_normal(buffers.weights.data(), Dtype::bf16, kBytes / 2, 1.0f, 5, stream);
  buffers.weights_content.clear();
  Contender copy, plain_copy, read;
  copy.name = "copy";
  copy.enqueue = [&buffers](int, cudaStream_t s) {
    check(cudaMemcpyAsync(buffers.output.data(), buffers.weights.data(), kBytes, cudaMemcpyDeviceToDevice, s), "copy");
  };
  plain_copy.name = "copy kernel";
  plain_copy.enqueue = [&buffers](int, cudaStream_t s) {
    copy_kernel<<<132 * 8, 256, 0, s>>>(buffers.weights.as<uint4>(), buffers.output.as<uint4>(), kBytes / 16);
    check(cudaGetLastError(), "copy kernel");
  };
  read.name = "read";
  read.enqueue = [&buffers](int, cudaStream_t s) {
    read_kernel<<<132 * 8, 256, 0, s>>>(buffers.weights.as<uint4>(), kBytes / 16, buffers.workspace.as<unsigned>());
    check(cudaGetLastError(), "read");
  };
  const double bytes = static_cast<double>(kBytes);
  return {{copy, 2 * bytes}, {plain_copy, 2 * bytes}, {read, bytes}};
}

}  // namespace ggm_bench
