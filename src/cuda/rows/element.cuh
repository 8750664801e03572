// Elements of the row kernels: conversion to and from the accumulator type, loads of 16-byte pieces, and the choice of a kernel
// instance by run-time types. Conversions to 16 bits round to nearest even.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <cstring>

#include "base/types.h"

namespace ggm::cuda {

template <typename T>
struct AccumulatorOf {
  using type = float;
};
template <>
struct AccumulatorOf<double> {
  using type = double;
};
template <typename T>
using Accumulator = typename AccumulatorOf<T>::type;

__device__ inline float to_accumulator(float v) { return v; }
__device__ inline float to_accumulator(__nv_bfloat16 v) { return __bfloat162float(v); }
__device__ inline float to_accumulator(__half v) { return __half2float(v); }
__device__ inline double to_accumulator(double v) { return v; }

template <typename T>
__device__ T round_to(Accumulator<T> v) {
  if constexpr (sizeof(T) == sizeof(Accumulator<T>))
    return v;
  else if constexpr (std::is_same_v<T, __half>)
    return __float2half_rn(v);
  else
    return __float2bfloat16_rn(v);
}

__device__ inline float fused(float a, float b, float c) { return __fmaf_rn(a, b, c); }
__device__ inline double fused(double a, double b, double c) { return __fma_rn(a, b, c); }

// Elements that a thread of a kernel from In to Out handles at a time: 16 bytes of the narrower type.
template <typename In, typename Out>
inline constexpr int kChunk = 16 / (sizeof(In) < sizeof(Out) ? sizeof(In) : sizeof(Out));

template <typename T, int N>
struct alignas(16) Chunk {
  T v[N];
  static_assert(sizeof(T) * N % 16 == 0, "a chunk is moved in 16-byte pieces");
};

// Read-only memory, aligned to 16 bytes.
template <typename T, int N>
__device__ Chunk<T, N> load_chunk(const T* p) {
  Chunk<T, N> chunk;
#pragma unroll
  for (int i = 0; i < static_cast<int>(sizeof(chunk) / 16); ++i)
    reinterpret_cast<uint4*>(&chunk)[i] = __ldg(reinterpret_cast<const uint4*>(p) + i);
  return chunk;
}
// The same, as it lies in memory. Elements of 16 bits take a register each once they are named, so a chunk that waits for its
// use is kept in this form.
template <typename T, int N>
struct PackedChunk {
  uint4 part[sizeof(T) * N / 16];

  __device__ Chunk<T, N> unpack() const {
    Chunk<T, N> chunk;
#pragma unroll
    for (int i = 0; i < static_cast<int>(sizeof(chunk) / 16); ++i) reinterpret_cast<uint4*>(&chunk)[i] = part[i];
    return chunk;
  }
};
template <typename T, int N>
__device__ PackedChunk<T, N> load_packed(const T* p) {
  PackedChunk<T, N> chunk;
#pragma unroll
  for (int i = 0; i < static_cast<int>(sizeof(chunk) / 16); ++i) chunk.part[i] = __ldg(reinterpret_cast<const uint4*>(p) + i);
  return chunk;
}
// Memory that this kernel also writes.
template <typename T, int N>
__device__ Chunk<T, N> load_own_chunk(const T* p) {
  Chunk<T, N> chunk;
#pragma unroll
  for (int i = 0; i < static_cast<int>(sizeof(chunk) / 16); ++i)
    reinterpret_cast<uint4*>(&chunk)[i] = reinterpret_cast<const uint4*>(p)[i];
  return chunk;
}
template <typename T, int N>
__device__ void store_chunk(T* p, const Chunk<T, N>& chunk) {
#pragma unroll
  for (int i = 0; i < static_cast<int>(sizeof(chunk) / 16); ++i)
    reinterpret_cast<uint4*>(p)[i] = reinterpret_cast<const uint4*>(&chunk)[i];
}

// Gone from L2 before other data.
template <typename T, int N>
__device__ void store_streaming(T* p, const Chunk<T, N>& chunk) {
#pragma unroll
  for (int i = 0; i < static_cast<int>(sizeof(chunk) / 16); ++i)
    __stcs(reinterpret_cast<uint4*>(p) + i, reinterpret_cast<const uint4*>(&chunk)[i]);
}

template <typename T, int N>
__device__ Chunk<T, N> zero_chunk() {
  Chunk<T, N> chunk;
#pragma unroll
  for (int i = 0; i < static_cast<int>(sizeof(chunk) / 16); ++i) reinterpret_cast<uint4*>(&chunk)[i] = uint4{0, 0, 0, 0};
  return chunk;
}

// Host side.

template <typename T>
struct Tag {
  using type = T;
};

// f(Tag<float>{}) and so on for the type at hand.
template <typename F>
auto visit_type(Type type, F&& f) {
  switch (type) {
    case Type::bfloat16: return f(Tag<__nv_bfloat16>{});
    case Type::float16: return f(Tag<__half>{});
    case Type::float64: return f(Tag<double>{});
    default: return f(Tag<float>{});
  }
}

// The same for two types: float64 goes with float64 alone, every other pair is served.
template <typename F>
auto visit_types(Type first, Type second, F&& f) {
  return visit_type(first, [&](auto a) {
    using A = typename decltype(a)::type;
    if constexpr (std::is_same_v<A, double>) {
      return f(a, Tag<double>{});
    } else {
      switch (second) {
        case Type::bfloat16: return f(a, Tag<__nv_bfloat16>{});
        case Type::float16: return f(a, Tag<__half>{});
        default: return f(a, Tag<float>{});
      }
    }
  });
}

// Calls f(first, second) for every pair that visit_types serves, until one fails.
template <typename F>
ggm_status_t for_all_types(F&& f) {
  for (const TypeRow& a : kTypes)
    for (const TypeRow& b : kTypes)
      if ((a.type == Type::float64) == (b.type == Type::float64))
        if (const ggm_status_t status = f(a.type, b.type)) return status;
  return GGM_STATUS_SUCCESS;
}

// Whether rows that start at `base` and are `ld` elements apart can be read in 16-byte pieces.
inline bool vector_aligned(const void* base, std::int64_t ld, int element_bytes) {
  return reinterpret_cast<std::uintptr_t>(base) % 16 == 0 && ld * element_bytes % 16 == 0;
}

// Threads that share one row: a power of two, from `least` to `most`, so that each has about `pieces_each` of its pieces.
inline int threads_for(std::int64_t pieces, std::int64_t pieces_each, int least, int most) {
  int threads = least;
  while (threads < most && threads * pieces_each < pieces) threads *= 2;
  return threads;
}

}  // namespace ggm::cuda
