#include <stdexcept>

#include "device.h"
#include "random.cuh"
#include "routing.h"

namespace ggm_bench {

namespace {

constexpr int kWarp = 32;
constexpr int kKeysPerLane = 10;
constexpr int kMaxExperts = kWarp * kKeysPerLane;

// One warp a token. The top_k largest of score + Gumbel noise are a draw without replacement with weights exp(score) (the
// Gumbel top-k trick), so equal scores give distinct experts, all alike.
__global__ void top_k_kernel(std::int32_t* ids, const float* scores, std::int64_t tokens, int experts, int top_k,
                             std::uint64_t seed) {
  const std::int64_t token = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / kWarp;
  const int lane = threadIdx.x % kWarp;
  if (token >= tokens) return;
  float key[kKeysPerLane];
#pragma unroll
  for (int i = 0; i < kKeysPerLane; ++i) {
    const int expert = i * kWarp + lane;
    key[i] = -1e30f;
    if (expert < experts) {
      key[i] =
          gumbel(random_bits(seed, static_cast<std::uint64_t>(token * experts + expert))) + (scores ? scores[expert] : 0.0f);
    }
  }
  for (int slot = 0; slot < top_k; ++slot) {
    float best = -2e30f;
    int who = 0;
#pragma unroll
    for (int i = 0; i < kKeysPerLane; ++i) {
      if (key[i] > best) {
        best = key[i];
        who = i * kWarp + lane;
      }
    }
    for (int step = kWarp / 2; step > 0; step /= 2) {
      const float other = __shfl_xor_sync(0xffffffffu, best, step);
      const int other_who = __shfl_xor_sync(0xffffffffu, who, step);
      if (other > best || (other == best && other_who < who)) {
        best = other;
        who = other_who;
      }
    }
#pragma unroll
    for (int i = 0; i < kKeysPerLane; ++i) {
      if (i * kWarp + lane == who) key[i] = -3e30f;
    }
    if (lane == 0) ids[token * top_k + slot] = who;
  }
}

__global__ void equal_kernel(std::int32_t* ids, std::int64_t rows, int experts) {
  const std::int64_t a = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (a < rows) ids[a] = static_cast<std::int32_t>(a % experts);
}

__global__ void softmax_kernel(float* weights, std::int64_t tokens, int top_k, std::uint64_t seed) {
  const std::int64_t token = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (token >= tokens) return;
  float sum = 0;
  for (int j = 0; j < top_k; ++j) {
    const float e = expf(two_normals(random_bits(seed, static_cast<std::uint64_t>(token * top_k + j))).x);
    weights[token * top_k + j] = e;
    sum += e;
  }
  for (int j = 0; j < top_k; ++j) weights[token * top_k + j] /= sum;
}

unsigned blocks(std::int64_t threads, int per_block) { return static_cast<unsigned>((threads + per_block - 1) / per_block); }

}  // namespace

void draw_ids(std::int32_t* ids, float* weights, const float* scores, bool equal, std::int64_t tokens, std::int64_t experts,
              std::int64_t top_k, std::uint64_t seed, cudaStream_t stream) {
  if (experts > kMaxExperts)
    throw std::runtime_error("experts = " + std::to_string(experts) + ": the bench draws among at most " +
                             std::to_string(kMaxExperts));
  const int e = static_cast<int>(experts), k = static_cast<int>(top_k);
  if (equal) {
    equal_kernel<<<blocks(tokens * top_k, 256), 256, 0, stream>>>(ids, tokens * top_k, e);
  } else {
    top_k_kernel<<<blocks(tokens * kWarp, 256), 256, 0, stream>>>(ids, scores, tokens, e, k, seed);
  }
  check(cudaGetLastError(), "draw_ids");
  softmax_kernel<<<blocks(tokens, 256), 256, 0, stream>>>(weights, tokens, k, mix(seed));
  check(cudaGetLastError(), "draw_ids");
}

}  // namespace ggm_bench
