// bfloat16 and float16 products on capability 9.0: wgmma fed by the copy engine, persistent, in clusters of two blocks. This
// file only wires the parts; launched by src/cuda/gemm.
//
// One warpgroup feeds: a warp claims tiles, two others put the copies of an operand each under way. Two warpgroups multiply,
// each a tile of its own, taking turns: the results of one are stored while the other multiplies ("ping-pong", as CUTLASS calls
// it). The blocks of a cluster work on neighbouring tiles and bring each other one half of what both need (tile_pairs.h).
//
// Rows that come through a list are either gathered by four more warps, where groups with many rows have both warpgroups
// multiply the same tile (storage.cuh); or relayed: one warp copies each once, to where the rows of a tile follow each other
// (relay_feed.cuh).
//
// The left operand is B and the right one A, so that the sums have D turned: the rows of a group, or those of a weight
// gradient's result, can be cut into tiles of any multiple of 8 then, and the columns of a tile begin at whole lines of memory.
#pragma once

#include "cuda/device/epilogue/turned_rows.cuh"
#include "cuda/device/hopper/gather_feed.cuh"
#include "cuda/device/hopper/mapped_rows.cuh"
#include "cuda/device/hopper/relay_feed.cuh"
#include "cuda/device/hopper/straight_rows.cuh"
#include "cuda/device/hopper/tile_feed.cuh"
#include "cuda/device/hopper/wgmma_tile.cuh"
#include "cuda/device/ptx/dependent.cuh"

namespace ggm::cuda {

template <typename Shared>
__device__ __forceinline__ void init_barriers(Shared& shared) {
  if (threadIdx.x == 0) {
    constexpr unsigned kMultiply = Shared::kTogether ? kConsumers : 1;  // warpgroups that multiply one tile
    for (int i = 0; i < Shared::kStages; ++i) {
      // Who brings the left operand, and the right one.
      ptx::init_barrier(ptx::shared_address(shared.stage_full + i), 1 + (Shared::kGathered ? kGatherThreads : 1));
      ptx::init_barrier(ptx::shared_address(shared.stage_empty + i), 2 * kMultiply * kWarpgroup / 32);  // warps of both blocks
    }
    for (int i = 0; i < Shared::kSlots; ++i) {
      ptx::init_barrier(ptx::shared_address(shared.notice_full + i), 32);
      // Warps that feed, and warpgroups that multiply the tile.
      ptx::init_barrier(ptx::shared_address(shared.notice_empty + i),
                        32 + (Shared::kGathered ? kWarpgroup : 32) + kMultiply * kWarpgroup);
    }
    for (int i = 0; i < kClaimSlots; ++i) {
      ptx::init_barrier(ptx::shared_address(shared.claim_full + i), 1);
      ptx::init_barrier(ptx::shared_address(shared.claim_empty + i), 2 * 32);  // the schedulers of both blocks
    }
    for (int i = 0; i < kConsumers; ++i) {
      ptx::init_barrier(ptx::shared_address(shared.staging_turn + i), kWarpgroup);
      ptx::init_barrier(ptx::shared_address(shared.dots_read + i), kWarpgroup);
    }
    if constexpr (Shared::kRelayed) ptx::init_barrier(ptx::shared_address(&shared.pieces_full), 32);
    ptx::fence_barrier_init();
  }
  ptx::cluster_sync();
}

// The copy engine fetches maps before it needs them, as they come with the launch.
template <typename Shared, bool right_outer>
__device__ __forceinline__ void fetch_maps(const HopperCall& call) {
  constexpr int kBoxes = right_outer ? 2 : kRightBoxes;
  const int thread = static_cast<int>(threadIdx.x);
  if (thread == 0) ptx::prefetch_map(&call.left_map.boxes[0]);
  if (!Shared::kGathered && thread >= 32 && thread < 32 + kBoxes) ptx::prefetch_map(&call.right_map.boxes[thread - 32]);
  if (thread == 64 && call.result.used) ptx::prefetch_map(&call.result.box);
  if (!right_outer && !Shared::kGathered && call.dots_by_stages && thread >= 96 && thread < 96 + kRightBoxes)
    ptx::prefetch_map(&call.dots_map.boxes[thread - 96]);
}

// The inner products of one tile, some of which the warpgroup may have.
template <typename Rows, typename Shared>
__device__ __forceinline__ void store_dots(const HopperCall& call, const TileNotice& notice, Rows rows, bool some,
                                           Shared& shared, int group) {
  if (!call.dots_by_stages) {
    if (some) rows.store_dots();
    return;
  }
  const DotStages<Shared> x(shared, notice, group);
  x.begin();
  if (some) rows.sum_staged_dots(x.half(0), x.half(1));
  x.end();
  if (some) rows.store_staged_dots();
}

// The results of one tile, the work of one warpgroup.
template <typename Element, typename Sums, typename Shared>
__device__ __forceinline__ void store_tile(const HopperCall& call, const TileNotice& notice, const Sums& sums, Shared& shared) {
  const int group = ptx::fresh_thread() / kWarpgroup - Shared::kFirstConsumer;
  const Tile& tile = notice.tiles[Shared::kTogether ? group : 0];
  char* staging = shared.staging[Shared::kOneStaging ? 0 : group];
  const int barrier = kGroupBarrier + group;
  // A tile behind the group's end, which evens out a pair, has no results; the ordered combine has no turns for it either.
  const bool some = tile.m_left > 0 && tile.n_left > 0;
  using Mapped = MappedRows<Element, Sums, Shared::kStaging>;
  using Turned = TurnedRows<Element, Sums, Shared::kStaging>;
  if (call.result.used || call.dots_by_stages) {  // these write to the staging at once; the other ways come together first
    ptx::wait_boxes_read<0>();
    ptx::named_sync(barrier, kWarpgroup);
  }
  if constexpr (Sums::kOverRows)
    if (call.gemm.epilogue.dots != nullptr) {
      store_dots(call, notice, Turned(call.gemm, tile, sums, staging, barrier), some, shared, group);
      if (call.result.used) ptx::named_sync(barrier, kWarpgroup);  // the staging has been read
    }
  if (!some) return;
  if (call.result.used)
    Mapped(call, tile, sums, staging, barrier).store();
  else
    Turned(call.gemm, tile, sums, staging, barrier).store();
}

// A warpgroup that multiplies: every second tile of the block, or its half of every tile.
template <typename Element, bool left_outer, bool right_outer, typename Shared>
__device__ __forceinline__ void multiply_tiles(const HopperCall& call, Shared& shared, int group) {
  using Sums = WgmmaTile<Element, Shared::kMaxRight, left_outer, right_outer>;
  constexpr bool kTurns = !Shared::kTogether;
  constexpr int kBoth = kConsumers * kWarpgroup;
  const bool may_straight = Shared::kFew && may_go_straight(call);  // found once: a parameter read for each tile is waited for
  if (kTurns && group == 1) ptx::named_arrive(kOrderBarrier, kBoth);
  for (std::uint32_t n = kTurns ? group : 0;; n += kTurns ? kConsumers : 1) {
    const RingPlace<Shared::kSlots> place(n);
    ptx::wait(ptx::shared_address(shared.notice_full) + place.at * 8, place.parity);
    const TileNotice& notice = shared.notices[place.at];
    if (ptx::uniform(notice.tiles[0].group) < 0) break;
    Sums sums;
    // NOTE: the turns are needed, not only good: a warpgroup that waited for a stage which the other has not used yet would
    // take the end of the phase before for its own.
    if constexpr (kTurns) ptx::named_sync(kOrderBarrier + group, kBoth);
    sums.multiply(notice, kTurns ? 0 : group * 128, shared, [&] {
      if constexpr (kTurns && !right_outer)
        if (call.dots_by_stages) DotStages<Shared>(shared, notice, group).begin();  // the same holds for these stages
      if constexpr (kTurns) ptx::named_arrive(kOrderBarrier + 1 - group, kBoth);
    });
    if constexpr (Shared::kRelayed)
      if (ptx::fresh_thread() % kWarpgroup == 0) count_used(call.relay, notice.tiles[0]);
    const bool straight = may_straight && notice.tiles[0].m_left <= kStraightRows;
    if (straight) store_straight<Element>(notice.tiles[0], sums);
    // The first warpgroup's turn comes after the second one's last tile, the second one's after the first one's of this round.
    if constexpr (Shared::kOneStaging)
      ptx::wait(ptx::shared_address(shared.staging_turn + group), (n / kConsumers & 1) ^ (group == 0));
    if (!straight) store_tile<Element>(call, notice, sums, shared);
    if constexpr (Shared::kOneStaging) {
      ptx::wait_boxes_read<0>();
      const int other = Shared::kFirstConsumer + 1 - ptx::fresh_thread() / kWarpgroup;
      ptx::arrive(ptx::shared_address(shared.staging_turn + other));
    }
    ptx::arrive(ptx::shared_address(shared.notice_empty) + place.at * 8);
  }
  ptx::wait_boxes_read<0>();  // shared memory must last as long as that
}

template <typename Shared, typename Element, bool left_outer, bool right_outer>
__global__ void __launch_bounds__(Shared::kThreads, 1) gemm_wgmma(const __grid_constant__ HopperCall call) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) char raw[];
  auto& shared = *reinterpret_cast<Shared*>(raw);
  if (ptx::shared_address(raw) % 1024 != 0) __trap();  // the swizzle goes by address bits
  fetch_maps<Shared, right_outer>(call);
  init_barriers(shared);
  ptx::begin_dependent();
  const int role = ptx::uniform(static_cast<int>(threadIdx.x) / kWarpgroup);
  const int warp = ptx::uniform(static_cast<int>(threadIdx.x) / 32 % 4);
  // The registers of a multiprocessor, divided among the warpgroups.
  constexpr bool kGathered = Shared::kGathered;
  constexpr int kFeeding = kGathered ? 32 : 40, kGathering = 48, kMultiplying = kGathered ? 216 : 232;
  if (role == 0) {
    ptx::shrink_registers<kFeeding>();
    if (warp == 0) schedule_tiles(call, shared);
    const int dot_stages = call.dots_by_stages ? DotStages<Shared>::kCount : 0;
    if (warp == 1) feed_operand(shared, LeftFeed<Shared, left_outer>(call.left_map, shared), dot_stages);
    if constexpr (Shared::kRelayed) {
      if (warp == 2) feed_operand(shared, RelayedFeed<Shared>(call, shared), dot_stages);
      if (warp == 3) copy_to_window(call, shared);
    } else if constexpr (!kGathered) {
      if (warp == 2) feed_operand(shared, RightFeed<Shared, right_outer>(call.right_map, call.dots_map, shared), dot_stages);
    }
  } else if (kGathered && role == 1) {
    ptx::shrink_registers<kGathering>();
    if constexpr (kGathered) gather_right(call, shared);
  } else {
    ptx::grow_registers<kMultiplying>();
    multiply_tiles<Element, left_outer, right_outer>(call, shared, role - Shared::kFirstConsumer);
  }
  __syncwarp();
  ptx::cluster_sync_diverged();  // nobody leaves while the other block may still copy to it or tell it something
#endif
}

}  // namespace ggm::cuda
