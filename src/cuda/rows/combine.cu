// The weighted sum of a token's rows (two-step combine, unpermute), and the end of the ordered combine.
//
// A token's rows must be added in ascending order, but its slots name them in any order: the threads of a token first sort the
// few row numbers in shared memory by counting, for each, how many are smaller.

#include "cuda/device/ptx/dependent.cuh"
#include "cuda/rows/element.cuh"
#include "cuda/rows/kernels.h"
#include "cuda/rows/rows.h"
#include "cuda/runtime/faults.cuh"
#include "cuda/runtime/launch.cuh"

namespace ggm::cuda {
namespace {

inline constexpr int kWarpSlots = 32;  // top_k that one warp sorts in registers
inline constexpr int kResident = 2;    // blocks of a multiprocessor

struct CombineParams {
  CombineRows call;
  int threads_per_token;  // of a block, a multiple of 32; kThreads in the form for many slots
  int blocks_per_token;   // more than one only where all threads of a block have the same token
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
  static constexpr int kPiece = kChunk<In, Out>;
  // Pieces that a thread has under way: as many as 32 registers hold.
  static constexpr int kUnderWay = sizeof(In) * kPiece > 16 ? 4 : 8;

  const In* in;
  std::int64_t in_ld;
  TokenRows<In> rows;
  bool add;
  Out* to;

  // Sums one piece of the token's rows.
  __device__ void sum_piece(int piece) const {
    const In* from = in + std::int64_t{piece} * kPiece;
    Accumulator<In> total[kPiece];
    if (add) load_old(piece, total);
    for (int base = 0; base < rows.count; base += kUnderWay) {
      PackedChunk<In, kPiece> value[kUnderWay];
#pragma unroll
      for (int b = 0; b < kUnderWay; ++b) {
        if (base + b >= rows.count) break;
        value[b] = load_packed<In, kPiece>(from + rows.row[base + b] * in_ld);
      }
#pragma unroll
      for (int b = 0; b < kUnderWay; ++b) {
        if (base + b >= rows.count) break;
        add_row(base + b, value[b].unpack().v, total);
      }
    }
    store(piece, total);
  }

  // The same for `columns` pieces `pitch` apart, of those before `pieces`, when there are at most kUnderWay / columns rows: few
  // rows leave a thread little to wait for at a time, so it takes several pieces of each.
  template <int columns>
  __device__ void sum_pieces(int piece, int pitch, int pieces) const {
    constexpr int kRows = kUnderWay / columns;
    PackedChunk<In, kPiece> value[columns][kRows];
#pragma unroll
    for (int b = 0; b < kRows; ++b) {
      // No branch between the loads: what does not exist is another load of what does.
      const In* from = in + rows.row[min(b, rows.count - 1)] * in_ld;
#pragma unroll
      for (int c = 0; c < columns; ++c) {
        const int at = piece + c * pitch;
        value[c][b] = load_packed<In, kPiece>(from + (at < pieces ? at : piece) * std::int64_t{kPiece});
      }
    }
#pragma unroll
    for (int c = 0; c < columns; ++c) {
      if (piece + c * pitch >= pieces) break;
      Accumulator<In> total[kPiece];
      if (add) load_old(piece + c * pitch, total);
#pragma unroll
      for (int b = 0; b < kRows; ++b)
        if (b < rows.count) add_row(b, value[c][b].unpack().v, total);
      store(piece + c * pitch, total);
    }
  }

  __device__ void sum_element(std::int64_t column) const {
    Accumulator<In> total[1];
    if (add) total[0] = to_accumulator(to[column]);
    for (int base = 0; base < rows.count; base += kUnderWay) {
      In value[kUnderWay][1];
#pragma unroll
      for (int b = 0; b < kUnderWay; ++b)
        if (base + b < rows.count) value[b][0] = __ldg(in + rows.row[base + b] * in_ld + column);
#pragma unroll
      for (int b = 0; b < kUnderWay; ++b)
        if (base + b < rows.count) add_row(base + b, value[b], total);
    }
    to[column] = round_to<Out>(total[0]);
  }

 private:
  template <int N>
  __device__ void add_row(int i, const In (&elements)[N], Accumulator<In> (&total)[N]) const {
    const bool starts = i == 0 && !add;
    const Accumulator<In> weight = rows.weight != nullptr ? rows.weight[i] : Accumulator<In>(1);
#pragma unroll
    for (int e = 0; e < N; ++e) {
      const Accumulator<In> wide = to_accumulator(elements[e]);
      const Accumulator<In> term = rows.weight != nullptr ? weight * wide : wide;
      total[e] = starts ? term : total[e] + term;
    }
  }

  __device__ void load_old(int piece, Accumulator<In> (&total)[kPiece]) const {
    const Chunk<Out, kPiece> chunk = load_own_chunk<Out, kPiece>(to + std::int64_t{piece} * kPiece);
#pragma unroll
    for (int e = 0; e < kPiece; ++e) total[e] = to_accumulator(chunk.v[e]);
  }

  __device__ void store(int piece, const Accumulator<In> (&total)[kPiece]) const {
    Chunk<Out, kPiece> chunk;
#pragma unroll
    for (int e = 0; e < kPiece; ++e) chunk.v[e] = round_to<Out>(total[e]);
    store_chunk(to + std::int64_t{piece} * kPiece, chunk);
  }
};

// Writes one token's result with the `threads` threads that share it.
template <typename In, typename Out>
__device__ void write_token(const CombineParams& p, std::int64_t token, bool real, const TokenRows<In>& rows, int lane,
                            int threads) {
  constexpr int kPiece = kChunk<In, Out>;
  const CombineRows& call = p.call;
  Out* to = static_cast<Out*>(call.out) + token * call.out_ld;
  const int pieces = p.vectors ? static_cast<int>(call.features / kPiece) : 0;
  const std::int64_t first_element = std::int64_t{pieces} * kPiece + lane;
  if (rows.count == 0) {
    if (real ? call.add : call.keep_unused) return;
    for (std::int64_t c = lane; c < pieces; c += threads) store_chunk(to + c * kPiece, zero_chunk<Out, kPiece>());
    for (std::int64_t i = first_element; i < call.features; i += threads) to[i] = round_to<Out>(0);
    return;
  }
  const TokenSum<In, Out> sum{static_cast<const In*>(call.in), call.in_ld, rows, call.add, to};
  constexpr int kUnderWay = TokenSum<In, Out>::kUnderWay;
  if (rows.count > kUnderWay / 2) {
#pragma unroll 1
    for (int c = lane; c < pieces; c += threads) sum.sum_piece(c);
  } else if (rows.count > kUnderWay / 4) {
#pragma unroll 1
    for (int c = lane; c < pieces; c += 2 * threads) sum.template sum_pieces<2>(c, threads, pieces);
  } else {
#pragma unroll 1
    for (int c = lane; c < pieces; c += 4 * threads) sum.template sum_pieces<4>(c, threads, pieces);
  }
  for (std::int64_t i = first_element; i < call.features; i += threads) sum.sum_element(i);
}

// By one lane of each warp, before the kernel waits.
__device__ __forceinline__ void prefetch_lines(const CombineRows& call) {
  if (threadIdx.x % 32 != 0) return;
  ptx::prefetch_line(call.assignment_row);
  ptx::prefetch_line(call.weight);
  ptx::prefetch_line(call.in);
  ptx::prefetch_line(call.out);
}

// top_k up to kWarpSlots: each warp sorts the rows of its token by itself; several warps may share a token. Row numbers are
// loaded two tokens ahead and weights one, so that only the rows themselves are waited for.
// NOTE: registers for two blocks a multiprocessor. With three the numbers that were loaded ahead are spilled, and so waited
// for.
template <typename In, typename Out>
__global__ void __launch_bounds__(kThreads, kResident) combine_few(const CombineParams p) {
  prefetch_lines(p.call);
  ptx::begin_dependent();
  using Weight = Accumulator<In>;
  __shared__ std::int32_t sorted[kThreads / 32][kWarpSlots];
  __shared__ Weight sorted_weights[kThreads / 32][kWarpSlots];
  const CombineRows& call = p.call;
  // NOTE: there are fewer than 2^31 tokens, and two steps more stay below 2^32.
  const auto tokens = static_cast<std::uint32_t>(call.tokens);
  const auto real = static_cast<std::uint32_t>(real_tokens(call.num_tokens, call.tokens));
  const int threads = p.threads_per_token, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int top_k = static_cast<int>(call.top_k);
  const auto blocks = static_cast<std::uint32_t>(p.blocks_per_token), first = blockIdx.x / blocks;
  const std::uint32_t step = gridDim.x / blocks * (kThreads / threads);
  const int sharers = threads * p.blocks_per_token;
  const int sharer = static_cast<int>(threadIdx.x) % threads + static_cast<int>(blockIdx.x - first * blocks) * threads;
  const bool weighted = call.weight != nullptr;
  const auto row_of_lane = [&](std::uint32_t t) {
    return t < real && lane < top_k ? call.assignment_row[t * static_cast<std::uint32_t>(top_k) + lane] : -1;
  };
  const auto weight_of = [&](std::int32_t row) {
    return weighted && row >= 0 ? __ldg(static_cast<const Weight*>(call.weight) + row) : Weight(1);
  };
  std::uint32_t t = first * (kThreads / threads) + threadIdx.x / threads;
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
    write_token<In, Out>(p, t, t < real, rows, sharer, sharers);
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
__global__ void __launch_bounds__(kThreads, kResident) combine_many(const CombineParams p) {
  prefetch_lines(p.call);
  ptx::begin_dependent();
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
  ptx::begin_dependent();
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
  CombineParams params{call, kThreads, 1, false};
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
  // As many blocks as are resident. Few threads for a token, so that each has many loads under way, but four tokens for each of
  // the groups of threads or more, so that they end at about the same time.
  const std::int64_t threads = std::int64_t{kThreads} * kResident * launch.multiprocessors;
  const int most = threads_for(ceil_div(4 * threads, call.tokens), 1, 64, kThreads);
  params.threads_per_token = threads_for(pieces, most == kThreads ? 1 : 4, 32, most);
  // Of few tokens several blocks each, so that no thread goes through more than one piece while multiprocessors are idle.
  const std::int64_t resident = grid_size(launch, GGM_MAX_ROWS, 1, kResident);
  if (params.threads_per_token == kThreads)
    params.blocks_per_token = static_cast<int>(max64(1, min64(ceil_div(pieces, kThreads), resident / call.tokens)));
  const std::int64_t blocks = params.blocks_per_token;
  return launch_kernel("combine_rows", few_for(call.in_type, call.out_type),
                       grid_size(launch, call.tokens * blocks, kThreads / params.threads_per_token, kResident), kThreads, 0,
                       launch, params);
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
