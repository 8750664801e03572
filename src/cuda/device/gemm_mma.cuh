// bfloat16 and float16 products on tensor cores of capability 8.0 and up: mma.sync fed by a cp.async pipeline, persistent,
// tiles claimed one by one. This file only wires the parts; launched by src/cuda/gemm.
//
// What a block does, in time: the main loop of a tile; the first copies of the next one and the search for the one after; then
// the results of the first, while the copies are under way, and what the search has found.
#pragma once

#include "cuda/device/epilogue/direct_rows.cuh"
#include "cuda/device/epilogue/epilogue.cuh"
#include "cuda/device/epilogue/plain_rows.cuh"
#include "cuda/device/load/mma_loader.cuh"
#include "cuda/device/load/pipeline.cuh"
#include "cuda/device/mma/warp_tile.cuh"
#include "cuda/device/ptx/dependent.cuh"

namespace ggm::cuda {

// Which main loop a tile takes. none: no tiles are left. listed: rows of K are gathered, left out or scaled, as a weight
// gradient has them; both operands are strided then. fast, in the kernel for unaligned rows alone: they lie in order.
enum class TileKind { none, general, fast, listed };

struct TileSlot {
  Tile tile;
  TileInputs inputs;
  TileKind kind;
};

template <int kernel>
struct MmaShared : PipelineShared<kernel> {
  TileSlot slots[3];  // a tile whose results are on their way, the one in the main loop, and the next
};

// The copies of a tile's steps.
template <TileKind kind, bool alone, int kernel, typename Element, Order a_order, Order b_order>
struct MmaSteps {
  static constexpr TileShape shape = kShape<kernel>;
  static constexpr bool kFast = kind != TileKind::general;
  static constexpr bool kListed = kind == TileKind::listed;
  static constexpr bool kScaled = kind != TileKind::fast && a_order == Order::inner_strided && b_order == Order::inner_strided;
  using A = MmaCopies<shape.m, shape.k, shape.threads(), a_order>;
  using B = MmaCopies<shape.n, shape.k, shape.threads(), b_order>;
  template <typename Copies>
  struct Shifted {
    using type = ShiftedOrderedLoader<Copies>;
  };
  template <typename Copies>
  using Loader = typename std::conditional_t<alone && kFast, Shifted<Copies>, MmaLoaderOf<kFast, kListed, Copies>>::type;
  using type = Pipeline<MmaShared<kernel>, Element, A, B, Loader<A>, Loader<B>, !kFast, kScaled, alone ? 2 : 0>;
};

template <int kernel>
using MmaClaim = TileClaim<kShape<kernel>.m, kShape<kernel>.n>;

// Takes the next tile into `slot`, in three parts (TileClaim); the work of warp 0. A barrier must pass before others read it.
template <int kernel>
__device__ __forceinline__ TileTaken take_tile(const GemmCall& call, std::int32_t place) {
  return threadIdx.x < 32 ? MmaClaim<kernel>(call).take(place) : TileTaken{};
}

template <int kernel>
__device__ __forceinline__ TileFound look_for_tile(const GemmCall& call, const TileTaken& taken, std::int32_t place) {
  return threadIdx.x < 32 ? MmaClaim<kernel>(call).look(taken, place) : TileFound{};
}

template <int kernel, bool alone, Order a_order, Order b_order>
__device__ __forceinline__ void finish_tile(const GemmCall& call, const TileFound& found, TileSlot& slot) {
  constexpr TileShape shape = kShape<kernel>;
  if (threadIdx.x >= 32) return;
  MmaClaim<kernel>(call).finish(found, slot.tile);
  __syncwarp();  // the lanes wrote it together
  if (threadIdx.x != 0) return;
  slot.kind = TileKind::none;
  if (slot.tile.group < 0) return;
  find_inputs<a_order, b_order>(call, slot.tile, 2, shape.m, shape.n, slot.inputs);
  const TileInputs& inputs = slot.inputs;
  constexpr bool a_strided = a_order == Order::inner_strided, b_strided = b_order == Order::inner_strided;
  const bool listed =
      (a_strided && inputs.a.list != nullptr) || (b_strided && inputs.b.list != nullptr) || inputs.scale.scale != nullptr;
  if constexpr (alone) {
    using Steps = MmaSteps<TileKind::fast, alone, kernel, void, a_order, b_order>;
    const bool suit =
        ShiftedOrderedLoader<typename Steps::A>::suits(inputs.a) && ShiftedOrderedLoader<typename Steps::B>::suits(inputs.b);
    slot.kind = suit ? TileKind::fast : TileKind::general;
  } else if (!inputs.a.fast || !inputs.b.fast)
    slot.kind = TileKind::general;
  else if (!listed)
    slot.kind = TileKind::fast;
  else
    slot.kind = a_strided && b_strided ? TileKind::listed : TileKind::general;
}

// f(i) for the share of place `place`, of `places`, in `count` pieces of work.
template <int places, int count, typename F>
__device__ __forceinline__ void share(int place, const F& f) {
  constexpr int kShare = (count + places - 1) / places;
#pragma unroll
  for (int i = 0; i < kShare; ++i)
    if (place * kShare + i < count) f(place * kShare + i);
}

// All steps of K of one tile, whose first are under way. The barrier of each stage lies inside its last k16 step, whose
// products hide it (WarpTile::step). `claim`, which takes a tile, is called where the first copies are put under way here.
template <TileKind kind, bool alone, int kernel, typename Element, Order a_order, Order b_order, typename Claim>
__device__ __forceinline__ void mma_main_loop(const GemmCall& call, const TileSlot& slot, MmaShared<kernel>& shared,
                                              WarpTile<kernel, Element, a_order, b_order>& sums, const Claim& claim) {
  constexpr TileShape shape = kShape<kernel>;
  constexpr int kSteps = shape.k / 16, kPlaces = WarpTile<kernel, Element, a_order, b_order>::kBetween;
  // Made anew: kept from the first copies on, its registers would be alive together with the sums of the tile before.
  using Steps = typename MmaSteps<kind, alone, kernel, Element, a_order, b_order>::type;
  constexpr int kIssuePlaces = Steps::kShiftParts > 0 ? kPlaces / 2 : kPlaces;  // shifts come behind the copies
  Steps steps(call, slot.inputs, shared);
  if constexpr (kind == TileKind::general) {
    steps.fill();
    claim();
  } else {
    steps.skip_fill();
  }
  const int tile_k = slot.tile.desc.k;

  steps.begin();
  sums.begin(steps.a(0), steps.b(0));
  // One step for each stage in turn, unrolled: all addresses in shared memory differ from each other by constants then.
  constexpr int kUnrolled = kind == TileKind::general || alone ? 1 : shape.stages;
  int stage = 0, left = tile_k / shape.k;
#pragma unroll 1
  while (left > 0) {
#pragma unroll kUnrolled
    for (int u = 0; u < shape.stages; ++u) {
      if (left == 0) {
        stage = u;
        break;
      }
      const int next = (u + 1) % shape.stages, free = (u + shape.stages - 1) % shape.stages;
      steps.own_arrived();
      steps.begin_issue(free);
      constexpr int kShiftPlaces = kPlaces - kIssuePlaces + (alone ? 1 : 0);  // the last one is before the barrier
      const auto shift = [&](int place) {
        if constexpr (Steps::kShiftParts > 0)
          share<kShiftPlaces, Steps::kShiftParts>(place,
                                                  [&](int part) { steps.shift_part(next, (u + 2) % shape.stages, part); });
      };
      const auto between = [&](int place) {
        share<kIssuePlaces, Steps::kIssueParts>(place, [&](int part) { steps.issue_part(free, part, u); });
        share<kPlaces, Steps::kScaleParts>(place, [&](int part) { steps.scale_part(next, part); });
        if constexpr (Steps::kShiftParts > 0)
          if (place >= kIssuePlaces) shift(place - kIssuePlaces);
      };
#pragma unroll
      for (int s = 0; s < kSteps; ++s)
        sums.step(
            steps.a(u), steps.b(u), steps.a(next), steps.b(next), s,
            [&] {
              if constexpr (alone) shift(kPlaces - kIssuePlaces);
              steps.publish();
            },
            between);
      --left;
    }
    steps.end_round(shape.stages);
  }
  // Steps of 16 that lie behind K are left out, not multiplied as zeros: adding +0 could turn a -0 into +0, and other tile
  // shapes pad otherwise.
  const int live = (tile_k % shape.k + 15) / 16;
  const std::uint32_t a = steps.a(stage), b = steps.b(stage);
#pragma unroll
  for (int s = 0; s < kSteps; ++s)
    if (s < live)
      sums.step(
          a, b, a, b, s, [] {}, [](int) {});
  ptx::cp_async_wait<0>();
}

// `alone`: rows along K of all tiles are taken for ones that may start anywhere. Their main loops have the registers of the
// kernel for themselves then.
template <int kernel, typename Element, Order a_order, Order b_order, bool alone = false>
__global__ void __launch_bounds__(kShape<kernel>.threads(), kShape<kernel>.blocks)
    gemm_mma(const __grid_constant__ GemmCall call) {
  ptx::begin_dependent();
  constexpr TileShape shape = kShape<kernel>;
  constexpr bool kMayList = a_order == Order::inner_strided && b_order == Order::inner_strided;
  using Sums = WarpTile<kernel, Element, a_order, b_order>;
  using Direct = DirectRows<Element, Sums, alone>;
  extern __shared__ __align__(128) char raw[];
  auto& shared = *reinterpret_cast<MmaShared<kernel>*>(raw);
  // No first copy goes there: it is free for results until the barrier in front of a main loop.
  const std::uint32_t last_stage = ptx::shared_address(&shared.stages[shape.stages - 1]);
  static_assert(Direct::kFreeBytes <= sizeof(shared.stages[0]), "results fit a stage");
  // Puts a tile's first copies under way. The object that does it ends here, and the main loop makes its own and lets it skip
  // these steps (mma_main_loop): one object for both would keep its registers beside the sums of the tile before, and spill.
  // The tile after it is claimed under those copies, and what is known of it comes while the results go; a general tile has its
  // first copies and that claim in the main loop.
  int at = 0;
  const auto finish = [&](const TileFound& found, TileSlot& to) {
    finish_tile<kernel, alone, a_order, b_order>(call, found, to);
  };
  const auto claim = [&] {
    const std::int32_t place = shared.slots[at].tile.place;
    finish(look_for_tile<kernel>(call, take_tile<kernel>(call, place), place), shared.slots[next_slot(at)]);
  };
  const auto begin = [&](const TileSlot& slot) {
    // Rows that may start anywhere have no loader for their first steps but the general one.
    constexpr TileKind kFill = alone ? TileKind::general : TileKind::fast;
    const std::int32_t place = slot.tile.place;
    const TileTaken taken = take_tile<kernel>(call, place);
    constexpr TileKind kListed = kMayList ? TileKind::listed : kFill;
    if (kMayList && slot.kind == TileKind::listed)
      typename MmaSteps<kListed, alone, kernel, Element, a_order, b_order>::type(call, slot.inputs, shared).fill();
    else
      typename MmaSteps<kFill, alone, kernel, Element, a_order, b_order>::type(call, slot.inputs, shared).fill();
    return look_for_tile<kernel>(call, taken, place);
  };

  finish(look_for_tile<kernel>(call, take_tile<kernel>(call, 0), 0), shared.slots[at]);
  __syncthreads();
  if (shared.slots[at].kind == TileKind::none) return;
  if (shared.slots[at].kind != TileKind::general) finish(begin(shared.slots[at]), shared.slots[next_slot(at)]);
  for (;;) {
    const TileSlot& slot = shared.slots[at];
    Sums sums;
    if (slot.kind == TileKind::general)
      mma_main_loop<TileKind::general, alone>(call, slot, shared, sums, claim);
    else if (kMayList && slot.kind == TileKind::listed)
      mma_main_loop<kMayList ? TileKind::listed : TileKind::fast, alone>(call, slot, shared, sums, claim);
    else
      mma_main_loop<TileKind::fast, alone>(call, slot, shared, sums, claim);
    __syncthreads();  // the stages are free, and the next tile is known
    const bool direct = goes_direct<Element, Sums::kN, alone>(call, slot.tile);
    if (!direct) {
      sums.template stage<kStagingPitch>(shared.staging);
      __syncthreads();
      if (goes_plain<Element>(call))
        store_plain_rows<Element, shape.m, shape.warps()>(call, slot.tile, shared.staging);
      else
        run_epilogue<float, shape.m, shape.warps()>(call, slot.tile, shared.staging);
      __syncthreads();  // the staging is free
    }
    at = next_slot(at);
    const TileKind kind = shared.slots[at].kind;
    const bool begins = kind != TileKind::none && kind != TileKind::general;
    TileFound found{};
    if (begins) found = begin(shared.slots[at]);
    if (direct) Direct(call, slot.tile, sums, last_stage).run();
    if (begins) finish(found, shared.slots[next_slot(at)]);
    if (kind == TileKind::none) return;
  }
}

}  // namespace ggm::cuda
