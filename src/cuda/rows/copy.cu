// The gather: rows of one tensor to rows of another, converted and perhaps weighted.
#include "cuda/rows/element.cuh"
#include "cuda/rows/kernels.h"
#include "cuda/rows/rows.h"
#include "cuda/runtime/launch.cuh"

namespace ggm::cuda {
namespace {

struct CopyParams {
  CopyRows call;
  int threads_per_row;  // a power of two that divides kThreads
  bool vectors;
};

// `threads_per_row` neighbouring threads share a row, so its index and weight are read once for many pieces.
template <typename In, typename Out>
__global__ void __launch_bounds__(kThreads) copy(const CopyParams p) {
  constexpr int kPiece = kChunk<In, Out>;
  const CopyRows& call = p.call;
  const In* in = static_cast<const In*>(call.in);
  Out* out = static_cast<Out*>(call.out);
  const auto* weights = static_cast<const Accumulator<In>*>(call.weight);
  const int threads = p.threads_per_row;
  const int lane = threadIdx.x % threads;
  const std::int64_t step = std::int64_t{gridDim.x} * (kThreads / threads);
  const std::int64_t pieces = p.vectors ? call.features / kPiece : 0;

  for (std::int64_t r = std::int64_t{blockIdx.x} * (kThreads / threads) + threadIdx.x / threads; r < call.rows; r += step) {
    const std::int32_t source = call.source[r];
    if (source < 0 && call.keep_unused) continue;
    Out* to = out + r * call.out_ld;
    if (source < 0) {
      for (std::int64_t c = lane; c < pieces; c += threads) store_chunk(to + c * kPiece, zero_chunk<Out, kPiece>());
      for (std::int64_t i = pieces * kPiece + lane; i < call.features; i += threads) to[i] = round_to<Out>(0);
      continue;
    }
    const In* from = in + source * call.in_ld;
    const bool weighted = weights != nullptr;
    const Accumulator<In> weight = weighted ? weights[r] : Accumulator<In>(1);
    // Without weights nothing is multiplied, and a row of the same type is copied as it is, NaNs included.
    const auto element = [&](In v) -> Out {
      if constexpr (std::is_same_v<In, Out>)
        if (!weighted) return v;
      const Accumulator<In> wide = to_accumulator(v);
      return round_to<Out>(weighted ? weight * wide : wide);
    };
#pragma unroll 4
    for (std::int64_t c = lane; c < pieces; c += threads) {
      const Chunk<In, kPiece> chunk = load_chunk<In, kPiece>(from + c * kPiece);
      Chunk<Out, kPiece> result;
#pragma unroll
      for (int i = 0; i < kPiece; ++i) result.v[i] = element(chunk.v[i]);
      store_chunk(to + c * kPiece, result);
    }
    for (std::int64_t i = pieces * kPiece + lane; i < call.features; i += threads) to[i] = element(__ldg(from + i));
  }
}

using Kernel = void (*)(CopyParams);
Kernel kernel_for(Type in, Type out) {
  return visit_types(in, out,
                     [](auto a, auto b) -> Kernel { return copy<typename decltype(a)::type, typename decltype(b)::type>; });
}

}  // namespace

ggm_status_t copy_rows(const CopyRows& call, const Launch& launch) {
  if (call.rows == 0 || call.features == 0) return GGM_STATUS_SUCCESS;
  CopyParams params{call, 1, false};
  params.vectors = vector_aligned(call.in, call.in_ld, bytes_of(call.in_type)) &&
                   vector_aligned(call.out, call.out_ld, bytes_of(call.out_type));
  const int narrow = static_cast<int>(min64(bytes_of(call.in_type), bytes_of(call.out_type)));
  const std::int64_t pieces = params.vectors ? ceil_div(call.features * narrow, 16) : call.features;
  params.threads_per_row = threads_for(pieces, call.rows < 8 * launch.multiprocessors ? 1 : 4, 4, kThreads);
  return launch_kernel("copy_rows", kernel_for(call.in_type, call.out_type),
                       grid_size(launch, call.rows, kThreads / params.threads_per_row), kThreads, 0, launch, params);
}

ggm_status_t load_copy_kernels() {
  return for_all_types([](Type in, Type out) { return load_kernel("copy_rows", kernel_for(in, out)); });
}

}  // namespace ggm::cuda
