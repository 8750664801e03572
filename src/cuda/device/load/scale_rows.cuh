// Variable K: the rows of K of one operand times their routing weights, each product rounded to the operand's type. Done in
// shared memory, once an element: every thread scales the chunks that it has copied itself, before the barrier that shows them
// to the others. So the fragment loads know nothing of it.
#pragma once

#include "cuda/device/load/rows.cuh"
#include "cuda/device/pair.cuh"
#include "cuda/device/ptx/cp_async.cuh"

namespace ggm::cuda {

// The thread's chunk i of a stage that has arrived. `factors` [tile_k], in shared memory.
template <typename Copies, typename Element>
__device__ __forceinline__ void scale_chunk(std::uint32_t stage, const float* factors, int i) {
  const std::uint32_t at = stage + Copies::offset() + i * Copies::kPassBytes;
  const float factor = factors[Copies::row(i)];
  std::uint32_t words[4];
  ptx::load_shared_16(words, at);
#pragma unroll
  for (int w = 0; w < 4; ++w) {
    const float2 v = unpack(words[w], Element{});
    words[w] = pack(__fmul_rn(factor, v.x), __fmul_rn(factor, v.y), Element{});
  }
  ptx::store_shared_16(at, words);
}

// The factors of one step of K, into shared memory beside the operands: plain stores of values fetched a step before. A barrier
// must pass before they are used.
template <int tile_k>
class ScaleLoader {
 public:
  __device__ __forceinline__ explicit ScaleLoader(const ScaleRows& rows) : rows_(&rows), next_(threadIdx.x) { fetch(); }

  __device__ __forceinline__ void skip(int steps) {
    next_ = threadIdx.x + steps * tile_k;
    fetch();
  }

  // Steps must come in ascending order, from 0 or from the one that skip() names.
  __device__ __forceinline__ void issue(float* stage) {
    if (threadIdx.x < tile_k) stage[threadIdx.x] = factor_;
    fetch();
  }

 private:
  __device__ __forceinline__ void fetch() {
    if (threadIdx.x < tile_k) factor_ = rows_->factor(next_);
    next_ += tile_k;
  }

  const ScaleRows* rows_;
  std::uint32_t next_;
  float factor_ = 0;
};

}  // namespace ggm::cuda
