// bfloat16 and float16 products on capability 9.0: wgmma fed by the copy engine, persistent, in clusters of two blocks. This
// file only wires the parts; launched by src/cuda/gemm.
//
// One warpgroup feeds: a warp claims tiles, two others put the copies of an operand each under way. Two warpgroups multiply,
// each a tile of its own, taking turns: the results of one are stored while the other multiplies ("ping-pong", as CUTLASS calls
// it). The blocks of a cluster work on tiles with the same rows of the left operand and bring each other one half of them.
//
// Rows that come through a list are fetched by four more warps, and both warpgroups multiply the same tile then (storage.cuh).
//
// With `turned` the left operand is B, the weights, and the right one A: the rows of a group can be cut into tiles of any
// multiple of 8 then. Without it A is on the left.
#pragma once

#include "cuda/device/epilogue/direct_rows.cuh"
#include "cuda/device/epilogue/general_rows.cuh"
#include "cuda/device/epilogue/staged_rows.cuh"
#include "cuda/device/epilogue/turned_rows.cuh"
#include "cuda/device/hopper/gather_feed.cuh"
#include "cuda/device/hopper/tile_feed.cuh"
#include "cuda/device/hopper/wgmma_tile.cuh"

namespace ggm::cuda {

template <typename Shared>
__device__ __forceinline__ void init_barriers(Shared& shared) {
  if (threadIdx.x == 0) {
    constexpr unsigned kWarps = kWarpgroup / 32, kTogether = Shared::kGathered ? kConsumers : 1;
    for (int i = 0; i < Shared::kStages; ++i) {
      // Who brings the left operand, and the right one.
      ptx::init_barrier(ptx::shared_address(shared.stage_full + i), 1 + (Shared::kGathered ? kGatherThreads : 1));
      ptx::init_barrier(ptx::shared_address(shared.stage_empty + i), 2 * kTogether * kWarps);  // warps of both blocks
    }
    for (int i = 0; i < kTileSlots; ++i) {
      ptx::init_barrier(ptx::shared_address(shared.notice_full + i), 1);
      // Feeding warps, and warpgroups that multiply the tile.
      ptx::init_barrier(ptx::shared_address(shared.notice_empty + i), (Shared::kGathered ? 1 + kWarps : 2) + kTogether);
      ptx::init_barrier(ptx::shared_address(shared.claim_full + i), 1);
      ptx::init_barrier(ptx::shared_address(shared.claim_empty + i), 2);  // the schedulers of both blocks
    }
    for (int i = 0; i < kConsumers; ++i) ptx::init_barrier(ptx::shared_address(shared.staging_turn + i), 1);
    ptx::fence_barrier_init();
  }
  ptx::cluster_sync();
}

// A warpgroup that multiplies: every second tile of the block, or its half of every tile.
template <typename Element, bool turned, bool left_outer, bool right_outer, typename Shared>
__device__ __forceinline__ void multiply_tiles(const GemmCall& call, Shared& shared, int group) {
  using Sums = WgmmaTile<Element, Shared::kMaxRight, left_outer, right_outer>;
  constexpr bool kTurns = !Shared::kGathered;
  constexpr int kBoth = kConsumers * kWarpgroup;
  if (kTurns && group == 1) ptx::named_arrive(kOrderBarrier, kBoth);
  for (std::uint32_t n = kTurns ? group : 0;; n += kTurns ? kConsumers : 1) {
    const RingPlace<kTileSlots> place(n);
    ptx::wait(ptx::shared_address(shared.notice_full) + place.at * 8, place.parity);
    const TileNotice& notice = shared.notices[place.at];
    if (ptx::uniform(notice.tiles[0].group) < 0) return;
    Sums sums;
    // NOTE: the turns are needed, not only good: a warpgroup that waited for a stage which the other has not used yet would
    // take the end of the phase before for its own.
    if constexpr (kTurns) ptx::named_sync(kOrderBarrier + group, kBoth);
    sums.multiply(notice, kTurns ? 0 : group * 128, shared, [&] {
      if constexpr (kTurns) ptx::named_arrive(kOrderBarrier + 1 - group, kBoth);
    });
    const Tile& tile = notice.tiles[kTurns ? 0 : group];
    // The first warpgroup's turn comes after the second one's last tile, the second one's after the first one's of this round.
    if constexpr (Shared::kOneStaging)
      ptx::wait(ptx::shared_address(shared.staging_turn + group), (n / kConsumers & 1) ^ (group == 0));
    // A tile behind the group's end, which evens out a pair, has no results; the ordered combine has no turns for it either.
    if (tile.m_left <= 0 || tile.n_left <= 0) {
    } else if constexpr (turned)
      TurnedRows<Element, Sums, Shared::kStaging>(call, tile, sums, shared.staging[Shared::kOneStaging ? 0 : group],
                                                  kGroupBarrier + group)
          .run();
    else if (const bool direct = goes_direct<Element, Sums::kN>(call, tile); direct && goes_staged<Element>(call))
      store_staged<Element>(tile, sums, ptx::shared_address(shared.staging[group]));
    else if (direct)
      DirectRows<Element, Sums>(call, tile, sums).run();
    else
      GeneralRows<Sums>(call, tile, sums).run();
    ptx::named_sync(kGroupBarrier + group, kWarpgroup);  // all have read the notice, and the staging
    if (threadIdx.x % kWarpgroup == 0) {
      if constexpr (Shared::kOneStaging) ptx::arrive(ptx::shared_address(shared.staging_turn + 1 - group));
      ptx::arrive(ptx::shared_address(shared.notice_empty) + place.at * 8);
    }
  }
}

template <typename Shared, typename Element, bool turned, bool left_outer, bool right_outer>
__global__ void __launch_bounds__(Shared::kThreads, 1) gemm_wgmma(const __grid_constant__ HopperCall call) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) char raw[];
  auto& shared = *reinterpret_cast<Shared*>(raw);
  init_barriers(shared);
  const int role = ptx::uniform(static_cast<int>(threadIdx.x) / kWarpgroup);
  const int warp = ptx::uniform(static_cast<int>(threadIdx.x) / 32 % 4);
  // The registers of a multiprocessor, divided among the warpgroups.
  constexpr bool kGathered = Shared::kGathered, kMany = Shared::kMaxRight > 144;
  constexpr int kFeeding = kMany ? 24 : 40, kMultiplying = kGathered ? 216 : kMany ? 240 : 232;
  if (role == 0) {
    ptx::shrink_registers<kFeeding>();
    if (warp == 0) schedule_tiles<turned>(call.gemm, shared);
    if (warp == 1) feed_operand(shared, LeftFeed<Shared, left_outer>(call.left_map, shared));
    if constexpr (!kGathered)
      if (warp == 2) feed_operand(shared, RightFeed<Shared, right_outer>(call.right_map, shared));
  } else if (kGathered && role == 1) {
    ptx::shrink_registers<40>();
    if constexpr (kGathered) gather_right(call.gemm, shared, warp);
  } else {
    ptx::grow_registers<kMultiplying>();
    multiply_tiles<Element, turned, left_outer, right_outer>(call.gemm, shared, role - 1 - kGathered);
  }
  __syncwarp();
  ptx::cluster_sync_diverged();  // nobody leaves while the other block may still copy to it or tell it something
#endif
}

}  // namespace ggm::cuda
