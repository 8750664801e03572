// Random numbers by counter: element i of stream s is a function of (s, i) alone, so any part can be made at any time.
// Mixing: the finaliser of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014) with
// David Stafford's constants (variant 13), applied twice. Normals by Box and Muller (1958).
#pragma once

#include <cstdint>

namespace ggm_bench {

__host__ __device__ inline std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

__host__ __device__ inline std::uint64_t random_bits(std::uint64_t stream, std::uint64_t index) {
  return mix(mix(stream + 0x9e3779b97f4a7c15ull) + index * 0x9e3779b97f4a7c15ull);
}

// In (0, 1): 24 bits and half a step, so that its logarithm is finite.
__device__ inline float open_unit(std::uint32_t bits) { return (static_cast<float>(bits >> 8) + 0.5f) * (1.0f / 16777216.0f); }

__device__ inline float2 two_normals(std::uint64_t bits) {
  const float radius = sqrtf(-2.0f * __logf(open_unit(static_cast<std::uint32_t>(bits))));
  float sine, cosine;
  __sincosf(6.2831853f * open_unit(static_cast<std::uint32_t>(bits >> 32)), &sine, &cosine);
  return {radius * cosine, radius * sine};
}

__device__ inline float gumbel(std::uint64_t bits) { return -logf(-logf(open_unit(static_cast<std::uint32_t>(bits)))); }

}  // namespace ggm_bench
