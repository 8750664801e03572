// Inner products of rows, for the gradient of the routing weights.
//
// The order is the contract (section 8 of ggm.h): a block of 64 columns is 32 sums of two terms, added in pairs five times
// over. A warp takes eight blocks at a time, four lanes each, two of every eight columns a lane, and adds the blocks one after
// the other.
#include "cuda/device/ptx/dependent.cuh"
#include "cuda/rows/element.cuh"
#include "cuda/rows/kernels.h"
#include "cuda/rows/rows.h"
#include "cuda/runtime/launch.cuh"
#include "plan/plan.h"

namespace ggm::cuda {
namespace {

static_assert(kDotColumns == 64, "eight pairs for each of four lanes make a block");

struct DotParams {
  DotRows call;
  bool pairs;  // both rows may be read two elements at a time
};

template <typename T>
struct alignas(2 * sizeof(T)) Pair {
  T v[2];
};

// <u, v> in every lane of the warp.
template <typename Acc, typename U, typename V>
__device__ Acc inner_product(const U* u, const V* v, std::int64_t features, bool pairs) {
  const int lane = threadIdx.x % 32;
  Acc total = 0;
  for (std::int64_t base = 0; base < features; base += 8 * kDotColumns) {
    const std::int64_t column = base + (lane / 4) * kDotColumns + 2 * (lane % 4);
    Acc sums[4][2] = {};  // of 16 columns each: the lane's two
#pragma unroll
    for (int b = 0; b < 8; ++b) {
      const std::int64_t c = column + 8 * b;
      Acc(&s)[2] = sums[b / 2];
      if (pairs && c + 1 < features) {
        const Pair<U> x = *reinterpret_cast<const Pair<U>*>(u + c);
        const Pair<V> y = *reinterpret_cast<const Pair<V>*>(v + c);
        s[0] = fused(Acc(to_accumulator(x.v[0])), Acc(to_accumulator(y.v[0])), s[0]);
        s[1] = fused(Acc(to_accumulator(x.v[1])), Acc(to_accumulator(y.v[1])), s[1]);
      } else {
        if (c < features) s[0] = fused(Acc(to_accumulator(u[c])), Acc(to_accumulator(v[c])), s[0]);
        if (c + 1 < features) s[1] = fused(Acc(to_accumulator(u[c + 1])), Acc(to_accumulator(v[c + 1])), s[1]);
      }
    }
    Acc quarters[4];
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      quarters[w] = sums[w][0] + sums[w][1];
      quarters[w] += __shfl_xor_sync(0xffffffffu, quarters[w], 1);
      quarters[w] += __shfl_xor_sync(0xffffffffu, quarters[w], 2);
    }
    const Acc sum = (quarters[0] + quarters[1]) + (quarters[2] + quarters[3]);
    const int blocks = static_cast<int>(min64(8, ceil_div(features - base, kDotColumns)));
    for (int i = 0; i < blocks; ++i) total += __shfl_sync(0xffffffffu, sum, 4 * i);
  }
  return total;
}

// Sum of the partial sums of row r, ascending.
template <typename Acc>
__device__ Acc sum_of_dots(const Acc* dots, std::int64_t blocks) {
  const int lane = threadIdx.x % 32;
  Acc total = 0;
  for (std::int64_t base = 0; base < blocks; base += 32) {
    const Acc mine = base + lane < blocks ? dots[base + lane] : Acc(0);
    const int here = static_cast<int>(min64(32, blocks - base));
    for (int i = 0; i < here; ++i) total += __shfl_sync(0xffffffffu, mine, i);
  }
  return total;
}

// The expert of a row: the last whose rows begin at or before it (experts without rows begin where the next one does).
__device__ std::int64_t expert_of(const std::int32_t* group_offsets, std::int64_t experts, std::int64_t row) {
  std::int64_t low = 0, high = experts;  // the answer is in low .. high-1
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    if (group_offsets[middle] <= row)
      low = middle;
    else
      high = middle;
  }
  return low;
}

__device__ std::int64_t matrix_row(const DotRows& call, DotRows::Index index, std::int64_t row, std::int64_t assignment) {
  switch (index) {
    case DotRows::Index::token: return static_cast<std::uint32_t>(assignment) / static_cast<std::uint32_t>(call.top_k);
    case DotRows::Index::expert: return expert_of(call.group_offsets, call.experts, row);
    default: return row;
  }
}

// One warp an assignment.
template <typename U, typename V>
__global__ void __launch_bounds__(kThreads) dot(const DotParams p) {
  ptx::begin_dependent();
  using Acc = Accumulator<U>;
  const DotRows& call = p.call;
  const std::int64_t step = std::int64_t{gridDim.x} * (kThreads / 32);
  for (std::int64_t a = std::int64_t{blockIdx.x} * (kThreads / 32) + threadIdx.x / 32; a < call.assignments; a += step) {
    const std::int64_t r = call.assignment_row[a];
    Acc total = 0;
    if (r >= 0) {
      if (call.dots != nullptr) total = sum_of_dots(static_cast<const Acc*>(call.dots) + r * call.dot_blocks, call.dot_blocks);
      if (call.u != nullptr) {
        const U* u = static_cast<const U*>(call.u) + matrix_row(call, call.u_index, r, a) * call.u_ld;
        const V* v = static_cast<const V*>(call.v) + matrix_row(call, call.v_index, r, a) * call.v_ld;
        total += inner_product<Acc>(u, v, call.features, p.pairs);
      }
    }
    if (threadIdx.x % 32 == 0) call.result[a] = static_cast<float>(total);
  }
}

// Partial sums alone: a thread an assignment, because they are added one after the other anyway.
template <typename Acc>
__global__ void __launch_bounds__(kThreads) add_dots(const DotParams p) {
  ptx::begin_dependent();
  const DotRows& call = p.call;
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
  for (std::int64_t a = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; a < call.assignments; a += step) {
    const std::int64_t r = call.assignment_row[a];
    Acc total = 0;
    if (r >= 0) {
      const Acc* dots = static_cast<const Acc*>(call.dots) + r * call.dot_blocks;
      std::int64_t b = 0;
      constexpr int kPiece = 16 / sizeof(Acc);
      if (call.dot_blocks % kPiece == 0) {
#pragma unroll 4
        for (; b < call.dot_blocks; b += kPiece) {
          const Chunk<Acc, kPiece> piece = load_chunk<Acc, kPiece>(dots + b);
#pragma unroll
          for (int i = 0; i < kPiece; ++i) total += piece.v[i];
        }
      }
      for (; b < call.dot_blocks; ++b) total += dots[b];
    }
    call.result[a] = static_cast<float>(total);
  }
}

using Kernel = void (*)(DotParams);
Kernel sums_kernel_for(Type type) { return type == Type::float64 ? add_dots<double> : add_dots<float>; }
Kernel kernel_for(Type u, Type v) {
  return visit_types(u, v,
                     [](auto a, auto b) -> Kernel { return dot<typename decltype(a)::type, typename decltype(b)::type>; });
}

bool pair_aligned(const void* base, std::int64_t ld, int element_bytes) {
  return reinterpret_cast<std::uintptr_t>(base) % (2 * element_bytes) == 0 && ld % 2 == 0;
}

}  // namespace

ggm_status_t dot_rows(const DotRows& call, const Launch& launch) {
  if (call.assignments == 0) return GGM_STATUS_SUCCESS;
  DotParams params{call, false};
  if (call.u == nullptr && call.dots != nullptr)
    return launch_kernel("dot_rows", sums_kernel_for(call.u_type), grid_size(launch, call.assignments, kThreads), kThreads, 0,
                         launch, params);
  params.pairs =
      pair_aligned(call.u, call.u_ld, bytes_of(call.u_type)) && pair_aligned(call.v, call.v_ld, bytes_of(call.v_type));
  return launch_kernel("dot_rows", kernel_for(call.u_type, call.v_type), grid_size(launch, call.assignments, kThreads / 32),
                       kThreads, 0, launch, params);
}

ggm_status_t load_dot_kernels() {
  for (Type type : {Type::float32, Type::float64}) GGM_TRY(load_kernel("dot_rows", sums_kernel_for(type)));
  return for_all_types([](Type u, Type v) { return load_kernel("dot_rows", kernel_for(u, v)); });
}

}  // namespace ggm::cuda
