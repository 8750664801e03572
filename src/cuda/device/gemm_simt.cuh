// Exact float32 products: fused multiply-adds on the CUDA cores, never TF32. Persistent, tiles claimed one by one, cp.async
// pipeline. This file only wires the parts; launched by src/cuda/gemm.
//
// What a block does, in time: the main loop of a tile; the first copies of the next one and the search for the one after; then
// the results of the first, while the copies are under way.
#pragma once

#include <utility>

#include "cuda/device/epilogue/epilogue.cuh"
#include "cuda/device/epilogue/fours_out.cuh"
#include "cuda/device/load/simt_pipeline.cuh"
#include "cuda/device/mma/simt_tile.cuh"
#include "cuda/device/ptx/dependent.cuh"

namespace ggm::cuda {

// Which main loops a kernel has besides the general and the fast one.
template <Order a_order, Order b_order>
inline constexpr bool kMayScale = a_order == Order::inner_strided&& b_order == Order::inner_strided;
template <int kernel, Order a_order, Order b_order>
inline constexpr bool kMayBeFew =
    a_order == Order::inner_contiguous&& kShape<kernel>.warps_m == 1 && SimtTile<kernel, a_order, b_order>::Rows::kFours > 1;
template <int kernel, Order a_order, Order b_order>
inline constexpr bool kMayBePart = a_order == Order::inner_contiguous&& kShape<kernel>.warps_m > 1;

// Rows of a tile that are one four of each thread; so many fours of each thread have rows that exist.
template <int kernel, Order a_order, Order b_order>
inline constexpr int kFourRows = 4 * SimtTile<kernel, a_order, b_order>::kLanesM* kShape<kernel>.warps_m;

// Takes the next tile, into `slot`; the work of warp 0. A barrier must pass before others read it.
template <int kernel, Order a_order, Order b_order>
__device__ __forceinline__ void claim_simt_tile(const GemmCall& call, SimtSlot& slot) {
  constexpr TileShape shape = kShape<kernel>;
  if (threadIdx.x >= 32) return;
  TileClaim<shape.m, shape.n>(call).next(slot.tile);
  __syncwarp();  // the lanes wrote it together
  if (threadIdx.x != 0) return;
  slot.kind = SimtKind::none;
  if (slot.tile.group < 0) return;
  find_inputs<a_order, b_order>(call, slot.tile, 4, shape.m, shape.n, slot.inputs);
  if (!slot.inputs.a.fast || !slot.inputs.b.fast)
    slot.kind = SimtKind::general;
  else if (kMayScale<a_order, b_order> && slot.inputs.scale.scale != nullptr)
    slot.kind = SimtKind::scaled;
  else if (kMayBeFew<kernel, a_order, b_order> && slot.tile.m_left <= kFourRows<kernel, a_order, b_order>)
    slot.kind = SimtKind::few;
  else if (kMayBePart<kernel, a_order, b_order> && slot.tile.m_left <= shape.m - kFourRows<kernel, a_order, b_order>)
    slot.kind = SimtKind::part;
  else
    slot.kind = SimtKind::fast;
}

// The copies of a tile's steps.
template <SimtKind kind, int kernel, Order a_order, Order b_order>
using SimtSteps = SimtPipeline<kind != SimtKind::general,
                               (kind == SimtKind::general || kind == SimtKind::scaled) && kMayScale<a_order, b_order>,
                               kind == SimtKind::part, kernel, a_order, b_order>;

// Whether the main loop puts the first copies under way itself.
inline constexpr bool fills_itself(SimtKind kind) { return kind == SimtKind::general || kind == SimtKind::part; }

// f(0), f(1) and so on, each with code of its own.
template <typename F, int... k>
__device__ __forceinline__ void call_each(const F& f, std::integer_sequence<int, k...>) {
  (f(k), ...);
}

// All steps of K of one tile. The work that makes the next step ready lies between the products of this one, and the barrier
// before the last k, whose values are in registers by then. `fours` as in SimtTile.
//
// NOTE: the instructions of one step should stay below 32 KB, 2,048 of them: a loop of nothing but multiply-adds issued 1.00 a
// cycle with 18 KB and 0.95 with 37 KB (H200, two warps a scheduler). Here steps of 16 are as fast as steps of 8, because they
// have half as many barriers, but leave no register free.
template <SimtKind kind, int fours, int kernel, Order a_order, Order b_order, bool spread>
__device__ __forceinline__ void simt_main_loop(const GemmCall& call, const SimtSlot& slot, SimtShared<kernel>& shared,
                                               SimtTile<kernel, a_order, b_order, spread>& thread_tile) {
  constexpr TileShape shape = kShape<kernel>;
  // Made anew: kept from the first copies on, its registers would be alive together with the sums of the tile before.
  using Steps = SimtSteps<kind, kernel, a_order, b_order>;
  constexpr int kIssue = shape.k - 2;  // before the k that this is
  static_assert(Steps::kParts <= kIssue, "copies of another step overwrite chunks that are not arranged yet");
  Steps steps(call, slot.inputs, shared);
  if constexpr (fills_itself(kind))
    steps.fill();
  else
    steps.skip_fill();

  steps.start();
  thread_tile.template begin<fours>(steps.a(0), steps.b(0));
  unsigned step = 0;  // modulo the stages
  const std::int64_t padded = (std::int64_t{slot.tile.desc.k} + kSimtPadding - 1) / kSimtPadding * kSimtPadding;
#pragma unroll 1
  for (int left = static_cast<int>(padded / shape.k); left > 0; --left) {
    const unsigned next = (step + 1) % Steps::kStages;
    steps.arrive();
    const auto multiply = [&](int k) {
      const bool last = k + 1 == shape.k;
      if (k > 0 && k <= Steps::kParts) steps.arrange(next, k - 1);
      if (k == kIssue) steps.issue((step + Steps::kAhead) % Steps::kStages);
      if (last) __syncthreads();
      const unsigned from = last ? next : step;
      thread_tile.template multiply<fours>(steps.a(from), steps.b(from), k, last ? 0 : k + 1);
    };
    if constexpr (kind == SimtKind::part && fours == 1) {  // nvcc leaves this loop as it is otherwise, with the sums in memory
      call_each(multiply, std::make_integer_sequence<int, shape.k>{});
    } else {
#pragma unroll
      for (int k = 0; k < shape.k; ++k) multiply(k);
    }
    step = next;
  }
  ptx::cp_async_wait<0>();
}

// Puts a tile's first copies under way. The object that does it ends here, and the main loop makes its own (simt_main_loop).
template <int kernel, Order a_order, Order b_order>
__device__ __forceinline__ void begin_simt_tile(const GemmCall& call, const SimtSlot& slot, SimtShared<kernel>& shared) {
  if (fills_itself(slot.kind)) return;
  if (kMayScale<a_order, b_order> && slot.kind == SimtKind::scaled)
    SimtSteps<SimtKind::scaled, kernel, a_order, b_order>(call, slot.inputs, shared).fill();
  else
    SimtSteps<SimtKind::fast, kernel, a_order, b_order>(call, slot.inputs, shared).fill();
}

// The tile in slot `at`: its main loop, the first copies of the next tile, its results. `Sums` is a SimtTile, of which the loop
// fills the first `fours` fours of rows.
template <int kernel, Order a_order, Order b_order, typename Sums, int fours, typename MainLoop>
__device__ __forceinline__ void finish_simt_tile(const GemmCall& call, SimtShared<kernel>& shared, int at,
                                                 const MainLoop& main_loop) {
  constexpr TileShape shape = kShape<kernel>;
  const auto go_on = [&] {
    const SimtSlot& next = shared.slots[next_slot(at)];
    if (next.kind == SimtKind::none) return;
    begin_simt_tile<kernel, a_order, b_order>(call, next, shared);
    claim_simt_tile<kernel, a_order, b_order>(call, shared.slots[next_slot(next_slot(at))]);
  };
  const SimtSlot& slot = shared.slots[at];
  Sums sums;
  main_loop(slot, sums);
  __syncthreads();  // the stages are free, and the next tile is known
  const bool direct = goes_direct_in_fours(call, slot.tile);
  if (direct) go_on();
  FoursOut<Sums, fours>(call, slot.tile, sums, direct ? nullptr : shared.staging).run();
  if (direct) return;
  __syncthreads();
  run_epilogue<float, shape.m, shape.warps()>(call, slot.tile, shared.staging);
  __syncthreads();  // the staging is free
  go_on();
}

// A tile of kind part. Not inlined: main loops in one function take each other's registers, and that of whole tiles must have
// its sums in the right banks (SimtTile).
template <int fours, int kernel, Order a_order, Order b_order>
__device__ __noinline__ void finish_part(const GemmCall& call, SimtShared<kernel>& shared, int at) {
  using Sums = SimtTile<kernel, a_order, b_order, true>;
  finish_simt_tile<kernel, a_order, b_order, Sums, fours>(call, shared, at, [&](const SimtSlot& slot, Sums& sums) {
    simt_main_loop<SimtKind::part, fours>(call, slot, shared, sums);
  });
}

template <int kernel, Order a_order, Order b_order>
__global__ void __launch_bounds__(kShape<kernel>.threads(), kShape<kernel>.blocks)
    gemm_simt(const __grid_constant__ GemmCall call) {
  ptx::begin_dependent();
  using Sums = SimtTile<kernel, a_order, b_order>;
  constexpr bool kScales = kMayScale<a_order, b_order>, kFew = kMayBeFew<kernel, a_order, b_order>;
  constexpr int kFours = Sums::Rows::kFours;
  extern __shared__ __align__(128) char raw[];
  auto& shared = *reinterpret_cast<SimtShared<kernel>*>(raw);
  int at = 0;
  const auto finish = [&](const auto& main_loop) {
    finish_simt_tile<kernel, a_order, b_order, Sums, kFours>(call, shared, at, main_loop);
  };
  const auto general = [&](const SimtSlot& slot, Sums& sums) {
    simt_main_loop<SimtKind::general, kFours>(call, slot, shared, sums);
  };
  const auto scaled = [&](const SimtSlot& slot, Sums& sums) {
    simt_main_loop<kScales ? SimtKind::scaled : SimtKind::fast, kFours>(call, slot, shared, sums);
  };
  const auto few = [&](const SimtSlot& slot, Sums& sums) {
    simt_main_loop<kFew ? SimtKind::few : SimtKind::fast, kFew ? 1 : kFours>(call, slot, shared, sums);
  };
  const auto fast = [&](const SimtSlot& slot, Sums& sums) { simt_main_loop<SimtKind::fast, kFours>(call, slot, shared, sums); };
  // A tile of kind part with so many fours of rows, or fewer.
  const auto part = [&] {
    if constexpr (kMayBePart<kernel, a_order, b_order>) {
      constexpr int kFourRows = 4 * Sums::kLanesM * kShape<kernel>.warps_m;
      static_assert(kFours == 4, "the calls below are for one, two and three");
      const int left = shared.slots[at].tile.m_left;
      if (left <= kFourRows)
        finish_part<1, kernel, a_order, b_order>(call, shared, at);
      else if (left <= 2 * kFourRows)
        finish_part<2, kernel, a_order, b_order>(call, shared, at);
      else
        finish_part<3, kernel, a_order, b_order>(call, shared, at);
    }
  };

  claim_simt_tile<kernel, a_order, b_order>(call, shared.slots[at]);
  __syncthreads();
  if (shared.slots[at].kind == SimtKind::none) return;
  begin_simt_tile<kernel, a_order, b_order>(call, shared.slots[at], shared);
  claim_simt_tile<kernel, a_order, b_order>(call, shared.slots[next_slot(at)]);
  for (;;) {
    const SimtKind kind = shared.slots[at].kind;
    if (kind == SimtKind::none) return;
    // NOTE: sums of two main loops that meet must lie in the same registers, and one of the loops suffers. So each has its own
    // way out, but for weight gradients: there the sums of three apart are spilled.
    if constexpr (kScales)
      finish([&](const SimtSlot& slot, Sums& sums) {
        if (kind == SimtKind::general)
          general(slot, sums);
        else if (kind == SimtKind::scaled)
          scaled(slot, sums);
        else
          fast(slot, sums);
      });
    else if (kind == SimtKind::general)
      finish(general);
    else if (kFew && kind == SimtKind::few)
      finish(few);
    else if (kMayBePart<kernel, a_order, b_order> && kind == SimtKind::part)
      part();
    else
      finish(fast);
    at = next_slot(at);
  }
}

}  // namespace ggm::cuda
