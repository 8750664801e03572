// Tokens to rows: every row is a copy of its token's, converted and perhaps weighted.
//
// The walk is over tokens, not over rows: rows of one token lie far apart, so a walk over rows would read each token from
// memory top_k times. Rows are stored as data that L2 gives up first: 262,144 rows of 4 KB took 0.33 ms so, and 0.39 without
// (H200).
#include "cuda/device/ptx/dependent.cuh"
#include "cuda/rows/element.cuh"
#include "cuda/rows/kernels.h"
#include "cuda/rows/rows.h"
#include "cuda/runtime/launch.cuh"

namespace ggm::cuda {
namespace {

inline constexpr int kPiecesEach = 4;  // of a token for each of its threads, when there are many tokens

struct CopyParams {
  CopyRows call;
  int threads_per_token;  // a multiple of 32
  int parts;              // a token's slots are dealt out to this many walkers
  bool vectors;
};

// What becomes of an element. `plain`: nothing, because the types are the same and there are no weights; NaNs stay as they are.
template <typename In, typename Out, bool plain>
struct Conversion {
  using Weight = Accumulator<In>;
  static constexpr int kHeld = plain ? 4 : 2;  // pieces that a thread reads before it writes

  bool weighted;

  __device__ Out operator()(In v, Weight weight) const {
    if constexpr (plain) {
      return v;
    } else {
      const Weight wide = to_accumulator(v);
      return round_to<Out>(weighted ? weight * wide : wide);
    }
  }

  template <int N>
  __device__ void store(Out* to, const PackedChunk<In, N>& packed, Weight weight) const {
    if constexpr (plain) {
#pragma unroll
      for (int i = 0; i < static_cast<int>(sizeof(packed) / 16); ++i) __stcs(reinterpret_cast<uint4*>(to) + i, packed.part[i]);
    } else {
      const Chunk<In, N> chunk = packed.unpack();
      Chunk<Out, N> result;
#pragma unroll
      for (int i = 0; i < N; ++i) result.v[i] = (*this)(chunk.v[i], weight);
      store_streaming(to, result);
    }
  }
};

// The rows of up to 32 slots of one token: lane j has that of slot j, negative without one.
template <typename In>
struct SlotRows {
  std::int32_t row;
  Accumulator<In> weight;
  std::uint32_t live;  // lanes with a row
};

// Copies the first pieces * kPiece columns of a token to these rows. All lanes of the warp take part in every step.
template <typename In, typename Out, bool plain>
__device__ void copy_pieces(const CopyRows& call, const In* from, const SlotRows<In>& slots, std::int64_t pieces, int lane,
                            int threads) {
  constexpr int kPiece = kChunk<In, Out>, kHeld = Conversion<In, Out, plain>::kHeld;
  const Conversion<In, Out, plain> convert{call.weight != nullptr};
  for (std::int64_t base = lane; base - lane < pieces; base += kHeld * threads) {
    PackedChunk<In, kPiece> held[kHeld];
#pragma unroll
    for (int h = 0; h < kHeld; ++h)
      if (base + h * threads < pieces) held[h] = load_packed<In, kPiece>(from + (base + h * threads) * kPiece);
#pragma unroll 1
    for (std::uint32_t left = slots.live; left != 0; left &= left - 1) {
      const int slot = __ffs(static_cast<int>(left)) - 1;
      Out* to = static_cast<Out*>(call.out) + __shfl_sync(0xffffffffu, slots.row, slot) * call.out_ld + base * kPiece;
      const Accumulator<In> weight = plain ? Accumulator<In>(1) : __shfl_sync(0xffffffffu, slots.weight, slot);
#pragma unroll
      for (int h = 0; h < kHeld; ++h)
        if (base + h * threads < pieces) convert.store(to + h * threads * kPiece, held[h], weight);
    }
  }
}

// The columns from `first` on, one by one.
template <typename In, typename Out, bool plain>
__device__ void copy_elements(const CopyRows& call, const In* from, const SlotRows<In>& slots, std::int64_t first, int lane,
                              int threads) {
  const Conversion<In, Out, plain> convert{call.weight != nullptr};
  for (std::int64_t i = first + lane; i - lane < call.features; i += threads) {
    const In element = i < call.features ? __ldg(from + i) : In{};
#pragma unroll 1
    for (std::uint32_t left = slots.live; left != 0; left &= left - 1) {
      const int slot = __ffs(static_cast<int>(left)) - 1;
      Out* to = static_cast<Out*>(call.out) + __shfl_sync(0xffffffffu, slots.row, slot) * call.out_ld;
      const Accumulator<In> weight = __shfl_sync(0xffffffffu, slots.weight, slot);
      if (i < call.features) to[i] = convert(element, weight);
    }
  }
}

// Rows that no assignment has: each warp looks at 32 of them at once, mostly in vain.
template <typename Out>
__device__ void zero_unused(const CopyRows& call, std::int64_t pieces) {
  constexpr int kPiece = 16 / sizeof(Out);
  const int lane = threadIdx.x % 32;
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
  for (std::int64_t base = std::int64_t{blockIdx.x} * kThreads + threadIdx.x / 32 * 32; base < call.rows; base += step) {
    const bool unused = base + lane < call.rows && call.row_assignment[base + lane] < 0;
    for (std::uint32_t left = __ballot_sync(0xffffffffu, unused); left != 0; left &= left - 1) {
      Out* to = static_cast<Out*>(call.out) + (base + __ffs(static_cast<int>(left)) - 1) * call.out_ld;
      for (std::int64_t c = lane; c < pieces; c += 32) store_chunk(to + c * kPiece, zero_chunk<Out, kPiece>());
      for (std::int64_t i = pieces * kPiece + lane; i < call.features; i += 32) to[i] = round_to<Out>(0);
    }
  }
}

template <typename In, typename Out, bool plain>
__global__ void __launch_bounds__(kThreads) copy(const CopyParams p) {
  ptx::begin_dependent();
  constexpr int kPiece = kChunk<In, Out>;
  const CopyRows& call = p.call;
  const auto* weights = static_cast<const Accumulator<In>*>(call.weight);
  const int threads = p.threads_per_token, warp_lane = threadIdx.x % 32, lane = threadIdx.x % threads;
  const std::int64_t pieces = p.vectors ? call.features / kPiece : 0;
  const std::int64_t walkers = call.tokens * p.parts, step = std::int64_t{gridDim.x} * (kThreads / threads);

  // The row of this lane's slot from slot `base` on, if it is one of the walker's.
  const auto row_of_lane = [&](std::int64_t walker, std::int64_t base) {
    const std::int64_t token = p.parts == 1 ? walker : walker / p.parts, slot = base + warp_lane;
    const bool own = walker < walkers && slot < call.top_k && (p.parts == 1 || slot % p.parts == walker - token * p.parts);
    return own ? call.assignment_row[token * call.top_k + slot] : -1;
  };
  std::int64_t walker = std::int64_t{blockIdx.x} * (kThreads / threads) + threadIdx.x / threads;
  for (std::int32_t next = row_of_lane(walker, 0); walker < walkers; walker += step) {
    const std::int64_t token = p.parts == 1 ? walker : walker / p.parts;
    const In* from = static_cast<const In*>(call.in) + token * call.in_ld;
    SlotRows<In> slots;
    slots.row = next;
    next = row_of_lane(walker + step, 0);  // under the copies of this one
    for (std::int64_t base = 0; base < call.top_k; base += 32) {
      if (base != 0) slots.row = row_of_lane(walker, base);
      slots.weight = Accumulator<In>(1);
      if (!plain && weights != nullptr && slots.row >= 0) slots.weight = weights[slots.row];
      slots.live = __ballot_sync(0xffffffffu, slots.row >= 0);
      if (slots.live == 0) continue;
      copy_pieces<In, Out, plain>(call, from, slots, pieces, lane, threads);
      copy_elements<In, Out, plain>(call, from, slots, pieces * kPiece, lane, threads);
    }
  }
  if (!call.keep_unused) zero_unused<Out>(call, p.vectors ? call.features / (16 / static_cast<int>(sizeof(Out))) : 0);
}

using Kernel = void (*)(CopyParams);
Kernel kernel_for(Type in, Type out, bool weighted) {
  return visit_types(in, out, [&](auto a, auto b) -> Kernel {
    using In = typename decltype(a)::type;
    using Out = typename decltype(b)::type;
    if constexpr (std::is_same_v<In, Out>)
      if (!weighted) return copy<In, Out, true>;
    return copy<In, Out, false>;
  });
}

}  // namespace

ggm_status_t copy_rows(const CopyRows& call, const Launch& launch) {
  if (call.rows == 0 || call.features == 0) return GGM_STATUS_SUCCESS;
  CopyParams params{call, kThreads, 1, false};
  // Without tokens the input may be NULL: then only zeros are written.
  params.vectors = vector_aligned(call.in, call.in_ld, bytes_of(call.in_type)) &&
                   vector_aligned(call.out, call.out_ld, bytes_of(call.out_type));
  const int narrow = static_cast<int>(min64(bytes_of(call.in_type), bytes_of(call.out_type)));
  const std::int64_t pieces = params.vectors ? ceil_div(call.features * narrow, 16) : call.features;
  // Few tokens: many threads for each, and its slots shared out.
  const std::int64_t wanted = std::int64_t{8} * launch.multiprocessors;
  params.threads_per_token = threads_for(pieces, call.tokens < wanted ? 1 : kPiecesEach, 32, kThreads);
  params.parts = static_cast<int>(max64(1, min64(call.top_k, ceil_div(wanted, max64(1, call.tokens)))));
  const std::int64_t walkers_a_block = kThreads / params.threads_per_token;
  const int blocks = static_cast<int>(
      max64(grid_size(launch, call.tokens * params.parts, walkers_a_block), grid_size(launch, call.rows, kThreads)));
  return launch_kernel("copy_rows", kernel_for(call.in_type, call.out_type, call.weight != nullptr), blocks, kThreads, 0,
                       launch, params);
}

ggm_status_t load_copy_kernels() {
  return for_all_types([](Type in, Type out) {
    GGM_TRY(load_kernel("copy_rows", kernel_for(in, out, true)));
    return load_kernel("copy_rows", kernel_for(in, out, false));
  });
}

}  // namespace ggm::cuda
