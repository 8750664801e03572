// Sums over the rows of an expert, for the gradient of the bias.
#include "cuda/device/ptx/dependent.cuh"
#include "cuda/rows/element.cuh"
#include "cuda/rows/kernels.h"
#include "cuda/rows/rows.h"
#include "cuda/runtime/launch.cuh"

namespace ggm::cuda {
namespace {

inline constexpr int kColumns = 128;  // of a block, one a thread
inline constexpr int kBatch = 8;      // rows whose loads are under way together

struct SumParams {
  SumRows call;
};

// One thread adds one column of one expert, rows ascending: the order is the contract, so rows are not divided among threads.
template <typename T, typename Out>
__global__ void __launch_bounds__(kColumns) sum(const SumParams p) {
  ptx::begin_dependent();
  using Acc = Accumulator<T>;
  const SumRows& call = p.call;
  const T* dy = static_cast<const T*>(call.dy);
  const Acc* weights = static_cast<const Acc*>(call.weight);
  const std::int64_t tiles = ceil_div(call.features, kColumns);
  for (std::int64_t unit = blockIdx.x; unit < call.experts * tiles; unit += gridDim.x) {
    const std::int64_t expert = unit / tiles;
    const std::int64_t column = (unit - expert * tiles) * kColumns + threadIdx.x;
    if (column >= call.features) continue;
    const std::int64_t begin = call.group_offsets[expert], end = call.group_offsets[expert + 1];
    Acc total = 0;
    bool any = false;
    for (std::int64_t base = begin; base < end; base += kBatch) {
      T value[kBatch];
      Acc weight[kBatch];
      bool counts[kBatch];
#pragma unroll
      for (int b = 0; b < kBatch; ++b) {
        const std::int64_t r = base + b;
        const std::int32_t token = r < end ? __ldg(call.row_token + r) : -1;
        counts[b] = token >= 0;
        if (!counts[b]) continue;
        value[b] = __ldg(dy + (call.by_token ? token : r) * call.dy_ld + column);
        if (weights != nullptr) weight[b] = __ldg(weights + r);
      }
#pragma unroll
      for (int b = 0; b < kBatch; ++b) {
        if (!counts[b]) continue;
        any = true;
        const T term = weights != nullptr ? round_to<T>(weight[b] * to_accumulator(value[b])) : value[b];
        total += to_accumulator(term);
      }
    }
    Out* to = static_cast<Out*>(call.out) + expert * call.out_stride + column;
    if (call.add) {
      if (any) *to = round_to<Out>(to_accumulator(*to) + total);
    } else {
      *to = round_to<Out>(total);
    }
  }
}

using Kernel = void (*)(SumParams);
// The sums are of the rows' own type or, of 16-bit rows, float32: what d_bias_type may be.
Kernel kernel_for(Type in, Type out) {
  return visit_type(in, [out](auto tag) -> Kernel {
    using T = typename decltype(tag)::type;
    if constexpr (sizeof(T) == 2) {
      if (out == Type::float32) return sum<T, float>;
    }
    return sum<T, T>;
  });
}

}  // namespace

ggm_status_t sum_rows(const SumRows& call, const Launch& launch) {
  if (call.experts == 0 || call.features == 0) return GGM_STATUS_SUCCESS;
  return launch_kernel("sum_rows", kernel_for(call.dy_type, call.out_type),
                       grid_size(launch, call.experts * ceil_div(call.features, kColumns), 1), kColumns, 0, launch,
                       SumParams{call});
}

ggm_status_t load_sum_kernels() {
  for (const TypeRow& row : kTypes) {
    GGM_TRY(load_kernel("sum_rows", kernel_for(row.type, row.type)));
    if (is_16bit(row.type)) GGM_TRY(load_kernel("sum_rows", kernel_for(row.type, Type::float32)));
  }
  return GGM_STATUS_SUCCESS;
}

}  // namespace ggm::cuda
