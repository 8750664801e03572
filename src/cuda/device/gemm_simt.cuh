// Exact float32 products: fused multiply-adds on the CUDA cores, never TF32. Persistent, tiles claimed one by one, cp.async
// pipeline. This file only wires the parts; launched by src/cuda/gemm.
//
// What a block does, in time: the main loop of a tile; the first copies of the next one and the search for the one after; then
// the results of the first, while the copies are under way.
#pragma once

#include "cuda/device/epilogue/epilogue.cuh"
#include "cuda/device/epilogue/fours_out.cuh"
#include "cuda/device/load/simt_pipeline.cuh"
#include "cuda/device/mma/simt_tile.cuh"

namespace ggm::cuda {

// Which main loops a kernel has besides the general and the fast one.
template <Order a_order, Order b_order>
inline constexpr bool kMayScale = a_order == Order::inner_strided&& b_order == Order::inner_strided;
template <int kernel, Order a_order, Order b_order>
inline constexpr bool kMayBeFew =
    a_order == Order::inner_contiguous&& kShape<kernel>.warps_m == 1 && SimtTile<kernel, a_order, b_order>::Rows::kFours > 1;

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
  else if (kMayBeFew<kernel, a_order, b_order> && slot.tile.m_left <= 4 * SimtTile<kernel, a_order, b_order>::kLanesM)
    slot.kind = SimtKind::few;
  else
    slot.kind = SimtKind::fast;
}

// The copies of a tile's steps.
template <SimtKind kind, int kernel, Order a_order, Order b_order>
using SimtSteps = SimtPipeline<kind != SimtKind::general,
                               (kind == SimtKind::general || kind == SimtKind::scaled) && kMayScale<a_order, b_order>, kernel,
                               a_order, b_order>;

// All steps of K of one tile. The work that makes the next step ready lies between the products of this one, and the barrier
// before the last k, whose values are in registers by then. `fours` as in SimtTile.
//
// NOTE: the instructions of one step should stay below 32 KB, 2,048 of them: a loop of nothing but multiply-adds issued 1.00 a
// cycle with 18 KB and 0.95 with 37 KB (H200, two warps a scheduler). Here steps of 16 are as fast as steps of 8, because they
// have half as many barriers, but leave no register free.
template <SimtKind kind, int kernel, Order a_order, Order b_order>
__device__ __forceinline__ void simt_main_loop(const GemmCall& call, const SimtSlot& slot, SimtShared<kernel>& shared,
                                               SimtTile<kernel, a_order, b_order>& thread_tile) {
  constexpr TileShape shape = kShape<kernel>;
  // Made anew: kept from the first copies on, its registers would be alive together with the sums of the tile before.
  using Steps = SimtSteps<kind, kernel, a_order, b_order>;
  constexpr int fours = kind == SimtKind::few ? 1 : SimtTile<kernel, a_order, b_order>::Rows::kFours;
  constexpr int kIssue = shape.k - 2;  // before the k that this is
  static_assert(Steps::kParts <= kIssue, "copies of another step overwrite chunks that are not arranged yet");
  Steps steps(call, slot.inputs, shared);
  if constexpr (kind == SimtKind::general)
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
#pragma unroll
    for (int k = 0; k < shape.k; ++k) {
      const bool last = k + 1 == shape.k;
      if (k > 0 && k <= Steps::kParts) steps.arrange(next, k - 1);
      if (k == kIssue) steps.issue((step + Steps::kAhead) % Steps::kStages);
      if (last) __syncthreads();
      const unsigned from = last ? next : step;
      thread_tile.template multiply<fours>(steps.a(from), steps.b(from), k, last ? 0 : k + 1);
    }
    step = next;
  }
  ptx::cp_async_wait<0>();
}

template <int kernel, Order a_order, Order b_order>
__global__ void __launch_bounds__(kShape<kernel>.threads(), kShape<kernel>.blocks)
    gemm_simt(const __grid_constant__ GemmCall call) {
  constexpr TileShape shape = kShape<kernel>;
  using ThreadTile = SimtTile<kernel, a_order, b_order>;
  constexpr bool kScales = kMayScale<a_order, b_order>, kFew = kMayBeFew<kernel, a_order, b_order>;
  extern __shared__ __align__(128) char raw[];
  auto& shared = *reinterpret_cast<SimtShared<kernel>*>(raw);
  // Puts a tile's first copies under way. The object that does it ends here, and the main loop makes its own (simt_main_loop).
  const auto begin = [&](const SimtSlot& slot) {
    if (slot.kind == SimtKind::general) return;
    if (kScales && slot.kind == SimtKind::scaled)
      SimtSteps<SimtKind::scaled, kernel, a_order, b_order>(call, slot.inputs, shared).fill();
    else
      SimtSteps<SimtKind::fast, kernel, a_order, b_order>(call, slot.inputs, shared).fill();
  };

  int at = 0;
  const auto go_on = [&] {
    const SimtSlot& next = shared.slots[next_slot(at)];
    if (next.kind == SimtKind::none) return;
    begin(next);
    claim_simt_tile<kernel, a_order, b_order>(call, shared.slots[next_slot(next_slot(at))]);
  };
  // A tile from its main loop on.
  const auto finish = [&](const auto& main_loop) {
    const SimtSlot& slot = shared.slots[at];
    ThreadTile thread_tile;
    main_loop(slot, thread_tile);
    __syncthreads();  // the stages are free, and the next tile is known
    const bool direct = goes_direct_in_fours(call, slot.tile);
    if (direct) go_on();
    FoursOut<ThreadTile>(call, slot.tile, thread_tile, direct ? nullptr : shared.staging).run();
    if (direct) return;
    __syncthreads();
    run_epilogue<float, shape.m, shape.warps()>(call, slot.tile, shared.staging);
    __syncthreads();  // the staging is free
    go_on();
  };
  const auto general = [&](const SimtSlot& slot, ThreadTile& sums) {
    simt_main_loop<SimtKind::general>(call, slot, shared, sums);
  };
  const auto scaled = [&](const SimtSlot& slot, ThreadTile& sums) {
    simt_main_loop<kScales ? SimtKind::scaled : SimtKind::fast>(call, slot, shared, sums);
  };
  const auto few = [&](const SimtSlot& slot, ThreadTile& sums) {
    simt_main_loop<kFew ? SimtKind::few : SimtKind::fast>(call, slot, shared, sums);
  };
  const auto fast = [&](const SimtSlot& slot, ThreadTile& sums) { simt_main_loop<SimtKind::fast>(call, slot, shared, sums); };

  claim_simt_tile<kernel, a_order, b_order>(call, shared.slots[at]);
  __syncthreads();
  if (shared.slots[at].kind == SimtKind::none) return;
  begin(shared.slots[at]);
  claim_simt_tile<kernel, a_order, b_order>(call, shared.slots[next_slot(at)]);
  for (;;) {
    const SimtKind kind = shared.slots[at].kind;
    if (kind == SimtKind::none) return;
    // NOTE: sums of two main loops that meet must lie in the same registers, and one of the loops suffers. So each has its own
    // way out, but for weight gradients: there the sums of three apart are spilled.
    if constexpr (kScales)
      finish([&](const SimtSlot& slot, ThreadTile& sums) {
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
    else
      finish(fast);
    at = next_slot(at);
  }
}

}  // namespace ggm::cuda
