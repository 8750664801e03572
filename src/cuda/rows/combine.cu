// The weighted sum of a token's rows (two-step combine, unpermute), and the end of the ordered combine.
//
// A token's rows must be added in ascending order, but its slots name them in any order: the threads of a token first sort the
// few row numbers in shared memory by counting, for each, how many are smaller.
#include <type_traits>

#include "cuda/rows/element.cuh"
#include "cuda/rows/kernels.h"
#include "cuda/rows/rows.h"
#include "cuda/runtime/faults.cuh"
#include "cuda/runtime/launch.cuh"

namespace ggm::cuda {
namespace {

inline constexpr int kWarpSlots = 32;  // top_k that one warp sorts in registers

struct CombineParams {
  CombineRows call;
  int threads_per_token;  // a multiple of 32; kThreads in the form for many slots
  bool vectors;
};

// The rows of one token, ascending, and their weights; both in shared memory.
template <typename In>
struct TokenRows {
  const std::int32_t* row;
  const Accumulator<In>* weight;  // nullptr: none
  int count;
};

// The sum of a token's rows and where it goes.
template <typename In, typename Out>
struct TokenSum {
  const In* in;
  std::int64_t in_ld;
  TokenRows<In> rows;
  bool add;
  Out* to;

  // Sums N neighbouring elements, from column `column` on. Several rows are under way together: as many as 32 registers hold.
  template <int N, typename Load, typename LoadOld, typename Store>
  __device__ void sum(std::int64_t column, Load load, LoadOld load_old, Store store) const {
    constexpr int kBatch = sizeof(In) * N > 16 ? 4 : 8;
    Accumulator<In> total[N];
    if (add) load_old(to + column, total);
    for (int base = 0; base < rows.count; base += kBatch) {
      Elements<N> value[kBatch];
#pragma unroll
      for (int b = 0; b < kBatch; ++b) {
        if (base + b >= rows.count) break;
        value[b] = load(in + rows.row[base + b] * in_ld + column);
      }
#pragma unroll
      for (int b = 0; b < kBatch; ++b) {
        if (base + b >= rows.count) break;
        const bool starts = base + b == 0 && !add;
        const auto elements = value[b].unpack();
        const Accumulator<In> weight = rows.weight != nullptr ? rows.weight[base + b] : Accumulator<In>(1);
#pragma unroll
        for (int i = 0; i < N; ++i) {
          const Accumulator<In> wide = to_accumulator(elements.v[i]);
          const Accumulator<In> term = rows.weight != nullptr ? weight * wide : wide;
          total[i] = starts ? term : total[i] + term;
        }
      }
    }
    store(to + column, total);
  }

  template <int N>
  __device__ void sum_chunk(std::int64_t column) const {
    sum<N>(
        column, [](const In* p) { return load_packed<In, N>(p); },
        [](const Out* p, Accumulator<In>(&v)[N]) {
          const Chunk<Out, N> chunk = load_own_chunk<Out, N>(p);
#pragma unroll
          for (int i = 0; i < N; ++i) v[i] = to_accumulator(chunk.v[i]);
        },
        [](Out* p, const Accumulator<In>(&v)[N]) {
          Chunk<Out, N> chunk;
#pragma unroll
          for (int i = 0; i < N; ++i) chunk.v[i] = round_to<Out>(v[i]);
          store_chunk(p, chunk);
        });
  }

  __device__ void sum_element(std::int64_t column) const {
    sum<1>(
        column, [](const In* p) { return Single{{__ldg(p)}}; },
        [](const Out* p, Accumulator<In>(&v)[1]) { v[0] = to_accumulator(*p); },
        [](Out* p, const Accumulator<In>(&v)[1]) { *p = round_to<Out>(v[0]); });
  }

 private:
  struct Single {
    In v[1];
    __device__ Single unpack() const { return *this; }
  };
  template <int N>
  using Elements = std::conditional_t<N == 1, Single, PackedChunk<In, N>>;
};

// Writes one token's result with the `threads` threads that share it.
template <typename In, typename Out>
__device__ void write_token(const CombineParams& p, std::int64_t token, bool real, const TokenRows<In>& rows, int lane,
                            int threads) {
  constexpr int kPiece = kChunk<In, Out>;
  const CombineRows& call = p.call;
  Out* to = static_cast<Out*>(call.out) + token * call.out_ld;
  const std::int64_t pieces = p.vectors ? call.features / kPiece : 0;
  if (rows.count == 0) {
    if (real ? call.add : call.keep_unused) return;
    for (std::int64_t c = lane; c < pieces; c += threads) store_chunk(to + c * kPiece, zero_chunk<Out, kPiece>());
    for (std::int64_t i = pieces * kPiece + lane; i < call.features; i += threads) to[i] = round_to<Out>(0);
    return;
  }
  const TokenSum<In, Out> sum{static_cast<const In*>(call.in), call.in_ld, rows, call.add, to};
  for (std::int64_t c = lane; c < pieces; c += threads) sum.template sum_chunk<kPiece>(c * kPiece);
  for (std::int64_t i = pieces * kPiece + lane; i < call.features; i += threads) sum.sum_element(i);
}

// top_k up to kWarpSlots: each warp sorts the rows of its token by itself; several warps may share a token. Row numbers are
// loaded two tokens ahead and weights one, so that only the rows themselves are waited for.
// NOTE: registers for two blocks a multiprocessor. With three the numbers that were loaded ahead are spilled, and so waited
// for.
template <typename In, typename Out>
__global__ void __launch_bounds__(kThreads, 2) combine_few(const CombineParams p) {
  using Weight = Accumulator<In>;
  __shared__ std::int32_t sorted[kThreads / 32][kWarpSlots];
  __shared__ Weight sorted_weights[kThreads / 32][kWarpSlots];
  const CombineRows& call = p.call;
  // NOTE: there are fewer than 2^31 tokens, and two steps more stay below 2^32.
  const auto tokens = static_cast<std::uint32_t>(call.tokens);
  const auto real = static_cast<std::uint32_t>(real_tokens(call.num_tokens, call.tokens));
  const int threads = p.threads_per_token, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int top_k = static_cast<int>(call.top_k);
  const std::uint32_t step = gridDim.x * (kThreads / threads);
  const bool weighted = call.weight != nullptr;
  const auto row_of_lane = [&](std::uint32_t t) {
    return t < real && lane < top_k ? call.assignment_row[t * static_cast<std::uint32_t>(top_k) + lane] : -1;
  };
  const auto weight_of = [&](std::int32_t row) {
    return weighted && row >= 0 ? __ldg(static_cast<const Weight*>(call.weight) + row) : Weight(1);
  };
  std::uint32_t t = blockIdx.x * (kThreads / threads) + threadIdx.x / threads;
  std::int32_t row = row_of_lane(t), next_row = row_of_lane(t + step);
  Weight weight = weight_of(row);
  for (; t < tokens; t += step) {
    const Weight next_weight = weight_of(next_row);
    const std::int32_t row_after = row_of_lane(t + 2 * step);
    const int count = __popc(__ballot_sync(0xffffffffu, row >= 0));
    int rank = 0;
    for (int j = 0; j < top_k; ++j) {
      const std::int32_t other = __shfl_sync(0xffffffffu, row, j);
      rank += other >= 0 && other < row;
    }
    if (row >= 0) {
      sorted[warp][rank] = row;
      sorted_weights[warp][rank] = weight;
    }
    __syncwarp();
    const TokenRows<In> rows{sorted[warp], weighted ? sorted_weights[warp] : nullptr, count};
    write_token<In, Out>(p, t, t < real, rows, threadIdx.x % threads, threads);
    __syncwarp();  // the list is read to its end before the next token overwrites it
    row = next_row;
    weight = next_weight;
    next_row = row_after;
  }
}

// Bytes of a slot in shared memory: its row and weight.
template <typename In>
inline constexpr int kSlotBytes = sizeof(std::int32_t) + sizeof(Accumulator<In>);
static_assert(GGM_MAX_TOP_K * kSlotBytes<double> <= 48 * 1024, "a block has so much without asking");

// Any top_k: one block a token.
template <typename In, typename Out>
__global__ void __launch_bounds__(kThreads) combine_many(const CombineParams p) {
  using Weight = Accumulator<In>;
  extern __shared__ double lists[];
  const CombineRows& call = p.call;
  const std::int64_t real = real_tokens(call.num_tokens, call.tokens);
  const int top_k = static_cast<int>(call.top_k);
  Weight* sorted_weights = reinterpret_cast<Weight*>(lists);
  std::int32_t* sorted = reinterpret_cast<std::int32_t*>(sorted_weights + top_k);
  const auto* weights = static_cast<const Weight*>(call.weight);
  for (std::int64_t t = blockIdx.x; t < call.tokens; t += gridDim.x) {
    const std::int32_t* slots = call.assignment_row + t * top_k;
    int count = 0;
    for (int base = 0; base < top_k; base += kThreads) {
      const int j = base + threadIdx.x;
      const std::int32_t row = t < real && j < top_k ? __ldg(slots + j) : -1;
      count += __syncthreads_count(row >= 0);
      if (row < 0) continue;
      int rank = 0;
      for (int i = 0; i < top_k; ++i) {
        const std::int32_t other = __ldg(slots + i);
        rank += other >= 0 && other < row;
      }
      sorted[rank] = row;
      if (weights != nullptr) sorted_weights[rank] = __ldg(weights + row);
    }
    __syncthreads();
    const TokenRows<In> rows{sorted, weights != nullptr ? sorted_weights : nullptr, count};
    write_token<In, Out>(p, t, t < real, rows, threadIdx.x, kThreads);
    __syncthreads();
  }
}

using CombineKernel = void (*)(CombineParams);
CombineKernel few_for(Type in, Type out) {
  return visit_types(in, out, [](auto a, auto b) -> CombineKernel {
    return combine_few<typename decltype(a)::type, typename decltype(b)::type>;
  });
}
CombineKernel many_for(Type in, Type out) {
  return visit_types(in, out, [](auto a, auto b) -> CombineKernel {
    return combine_many<typename decltype(a)::type, typename decltype(b)::type>;
  });
}

struct FinishParams {
  FinishSums call;
  int threads_per_token;
  bool vectors;
};

// Rounds the finished sums of one token, or writes its zeros.
template <typename Out>
__global__ void __launch_bounds__(kThreads) finish(const FinishParams p) {
  using Sum = Accumulator<Out>;
  constexpr int kPiece = kChunk<Sum, Out>;
  const FinishSums& call = p.call;
  const std::int64_t real = real_tokens(call.num_tokens, call.tokens);
  const int threads = p.threads_per_token, warp_lane = threadIdx.x % 32, lane = threadIdx.x % threads;
  const std::int64_t step = std::int64_t{gridDim.x} * (kThreads / threads);
  const std::int64_t pieces = p.vectors ? call.features / kPiece : 0;
  for (std::int64_t t = std::int64_t{blockIdx.x} * (kThreads / threads) + threadIdx.x / threads; t < call.tokens; t += step) {
    bool found = false;
    if (t < real)
      for (std::int64_t j = warp_lane; j < call.top_k; j += 32) found |= call.assignment_row[t * call.top_k + j] >= 0;
    const bool has_row = __any_sync(0xffffffffu, found);
    Out* to = static_cast<Out*>(call.out) + t * call.out_ld;
    if (!has_row) {
      if (t < real ? call.add : call.keep_unused) continue;
      for (std::int64_t c = lane; c < pieces; c += threads) store_chunk(to + c * kPiece, zero_chunk<Out, kPiece>());
      for (std::int64_t i = pieces * kPiece + lane; i < call.features; i += threads) to[i] = round_to<Out>(0);
      continue;
    }
    if (call.sums == call.out) continue;
    const Sum* from = static_cast<const Sum*>(call.sums) + t * call.sums_ld;
#pragma unroll 2
    for (std::int64_t c = lane; c < pieces; c += threads) {
      const Chunk<Sum, kPiece> sums = load_chunk<Sum, kPiece>(from + c * kPiece);
      Chunk<Out, kPiece> rounded;
#pragma unroll
      for (int i = 0; i < kPiece; ++i) rounded.v[i] = round_to<Out>(sums.v[i]);
      store_chunk(to + c * kPiece, rounded);
    }
    for (std::int64_t i = pieces * kPiece + lane; i < call.features; i += threads) to[i] = round_to<Out>(__ldg(from + i));
  }
}

using FinishKernel = void (*)(FinishParams);
FinishKernel finish_for(Type out) {
  return visit_type(out, [](auto tag) -> FinishKernel { return finish<typename decltype(tag)::type>; });
}

}  // namespace

ggm_status_t combine_rows(const CombineRows& call, const Launch& launch) {
  if (call.tokens == 0 || call.features == 0) return GGM_STATUS_SUCCESS;
  CombineParams params{call, kThreads, false};
  // Without rows the input may be NULL: then only zeros are written.
  params.vectors = vector_aligned(call.in, call.in_ld, bytes_of(call.in_type)) &&
                   vector_aligned(call.out, call.out_ld, bytes_of(call.out_type));
  if (call.top_k > kWarpSlots) {
    const std::size_t shared_bytes =
        static_cast<std::size_t>(call.top_k * (call.in_type == Type::float64 ? kSlotBytes<double> : kSlotBytes<float>));
    return launch_kernel("combine_rows", many_for(call.in_type, call.out_type), grid_size(launch, call.tokens, 1), kThreads,
                         shared_bytes, launch, params);
  }
  const int narrow = static_cast<int>(min64(bytes_of(call.in_type), bytes_of(call.out_type)));
  const std::int64_t pieces = params.vectors ? ceil_div(call.features * narrow, 16) : call.features;
  params.threads_per_token = threads_for(pieces, call.tokens < 8 * launch.multiprocessors ? 1 : 2, 32, kThreads);
  return launch_kernel("combine_rows", few_for(call.in_type, call.out_type),
                       grid_size(launch, call.tokens, kThreads / params.threads_per_token), kThreads, 0, launch, params);
}

ggm_status_t finish_sums(const FinishSums& call, const Launch& launch) {
  if (call.tokens == 0 || call.features == 0) return GGM_STATUS_SUCCESS;
  const Type sum_type = accumulator_of(call.out_type);
  FinishParams params{call, kThreads, false};
  params.vectors = vector_aligned(call.sums, call.sums_ld, bytes_of(sum_type)) &&
                   vector_aligned(call.out, call.out_ld, bytes_of(call.out_type));
  const std::int64_t pieces = params.vectors ? ceil_div(call.features * bytes_of(call.out_type), 16) : call.features;
  params.threads_per_token = threads_for(pieces, call.tokens < 8 * launch.multiprocessors ? 1 : 4, 32, kThreads);
  return launch_kernel("finish_sums", finish_for(call.out_type),
                       grid_size(launch, call.tokens, kThreads / params.threads_per_token), kThreads, 0, launch, params);
}

ggm_status_t load_combine_kernels() {
  GGM_TRY(for_all_types([](Type in, Type out) {
    GGM_TRY(load_kernel("combine_rows", few_for(in, out)));
    return load_kernel("combine_rows", many_for(in, out));
  }));
  for (const TypeRow& row : kTypes) GGM_TRY(load_kernel("finish_sums", finish_for(row.type)));
  return GGM_STATUS_SUCCESS;
}

}  // namespace ggm::cuda
