// Dynamic schedule: blocks claim tiles one by one from a counter in memory, so that unequal tiles never leave a block waiting,
// and neighbours in the order run at the same time (L2). The kernels make one claim ahead, most of them under the
// first copies of the current tile; only the float64 one does not.
//
// NOTE: the ordered combine relies on this: tiles are claimed in ascending order and only by blocks that are running, and a
// block works on its tiles in that order. So whoever waits for the lowest unfinished tile waits for a block that is at work on
// it.
#pragma once

#include <cstddef>

#include "cuda/device/gemm_call.h"
#include "cuda/device/ptx/thread.cuh"
#include "cuda/device/schedule/tile_order.h"

namespace ggm::cuda {

// One tile, in shared memory: written by warp 0, read by all.
struct Tile {
  GroupDesc desc;
  std::int32_t group;           // -1: no tiles are left
  std::int32_t m0, n0;          // first row and column, within the group
  std::int32_t m_left, n_left;  // rows and columns of the group from there on: 1 or more; of a wgmma kernel, see TileNotice
  std::int32_t place;           // of the group in the table, where look() and finish() were used
};

// A claim in the lanes of a warp whose number is on its way, and with it where the search for its group begins.
struct TileTaken {
  unsigned long long number;  // lane 0
  std::int64_t first;         // first tile of the lane's group
};

// A claimed tile in the lanes of a warp, the description of whose group is on its way.
struct TileFound {
  std::int64_t index;       // in its group
  std::int32_t place;       // of the group in the table; -1: no tiles are left
  unsigned long long word;  // of the description, a lane
};

// Kernels that claim ahead have three places for tiles: one whose results are on their way, the one in the main loop, the next.
__device__ __forceinline__ int next_slot(int at) { return at == 2 ? 0 : at + 1; }

// The place in the table of the group whose tiles hold `number`, -1 behind the last. Called by a whole warp.
__device__ __forceinline__ std::int64_t find_group(const GemmCall& call, std::int64_t number) {
  const std::int64_t* offsets = call.tile_offsets;
  const int groups = call.group_count, lane = static_cast<int>(threadIdx.x % 32);
  if (groups <= 0 || number >= __ldg(reinterpret_cast<const long long*>(offsets + groups))) return -1;
  GroupSearch search{0, groups};
  while (!search.done()) {
    const bool below = __ldg(reinterpret_cast<const long long*>(offsets + search.probe(lane))) <= number;
    search.narrow(__popc(__ballot_sync(0xffffffffu, below)));
  }
  return search.low;
}

inline constexpr int kDescriptorWords = sizeof(GroupDesc) / 8;

// The work of a warp, a word a lane.
__device__ __forceinline__ void copy_descriptor(const GroupDesc& from, GroupDesc& to) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  if (lane < kDescriptorWords)
    reinterpret_cast<unsigned long long*>(&to)[lane] = reinterpret_cast<const unsigned long long*>(&from)[lane];
}

// Used by warp 0 alone, all lanes together.
template <int tile_m, int tile_n>
class TileClaim {
 public:
  __device__ __forceinline__ explicit TileClaim(const GemmCall& call) : call_(call) {}

  // Takes the next number and finds its tile.
  __device__ __forceinline__ void next(Tile& tile) const { find(take(), tile); }

  // The next number, in lane 0. On its way when this returns.
  __device__ __forceinline__ unsigned long long take() const {
    return threadIdx.x == 0 ? atomicAdd(call_.tile_counter, 1ull) : 0;
  }

  // take() and find() in three parts, so that other work can lie between a load and its use. `place`: of the group of an
  // earlier tile of this block; later ones are in that group or behind it.
  __device__ __forceinline__ TileTaken take(std::int32_t place) const {
    const auto* offsets = reinterpret_cast<const long long*>(call_.tile_offsets);
    const int groups = call_.group_count, lane = ptx::fresh_thread() % 32;
    return {take(), groups > 0 ? __ldg(offsets + min(place + lane, groups)) : 0};
  }

  __device__ __forceinline__ TileFound look(const TileTaken& taken, std::int32_t place) const {
    const int lane = ptx::fresh_thread() % 32;
    const std::int64_t number = static_cast<std::int64_t>(__shfl_sync(0xffffffffu, taken.number, 0));
    const int below = __popc(__ballot_sync(0xffffffffu, taken.first <= number));
    TileFound found{number - __shfl_sync(0xffffffffu, taken.first, below - 1), place + below - 1, 0};
    if (below == 32) {  // no tiles are left, or 31 groups were passed by
      found.place = static_cast<std::int32_t>(find_group(call_, number));
      if (found.place >= 0) found.index = number - call_.tile_offsets[found.place];
    }
    if (found.place >= 0 && lane < kDescriptorWords)
      found.word = reinterpret_cast<const unsigned long long*>(call_.groups + found.place)[lane];
    return found;
  }

  __device__ __forceinline__ void finish(const TileFound& found, Tile& tile) const {
    if (found.place < 0) {
      if (threadIdx.x == 0) tile.group = -1;
      return;
    }
    const int lane = ptx::fresh_thread() % 32;
    if (lane < kDescriptorWords) reinterpret_cast<unsigned long long*>(&tile.desc)[lane] = found.word;
    static_assert(offsetof(GroupDesc, m) % 8 == 0 && offsetof(GroupDesc, n) == offsetof(GroupDesc, m) + 4, "one word has both");
    const unsigned long long extents = __shfl_sync(0xffffffffu, found.word, offsetof(GroupDesc, m) / 8);
    const unsigned long long group = __shfl_sync(0xffffffffu, found.word, offsetof(GroupDesc, group) / 8);
    if (threadIdx.x != 0) return;
    const int m = static_cast<int>(extents), n = static_cast<int>(extents >> 32);
    const TileCoordinate at = find_tile(found.index, (m - 1) / tile_m + 1, (n - 1) / tile_n + 1);
    tile.m0 = static_cast<std::int32_t>(at.row * tile_m);
    tile.n0 = static_cast<std::int32_t>(at.column * tile_n);
    tile.m_left = m - tile.m0;
    tile.n_left = n - tile.n0;
    tile.group = static_cast<std::int32_t>(group);
    tile.place = found.place;
  }

  __device__ __forceinline__ void find(unsigned long long claimed, Tile& tile) const {
    const std::int64_t number = static_cast<std::int64_t>(__shfl_sync(0xffffffffu, claimed, 0));
    const std::int64_t group = find_group(call_, number);
    if (group < 0) {
      if (threadIdx.x == 0) tile.group = -1;
      return;
    }
    copy_descriptor(call_.groups[group], tile.desc);
    if (threadIdx.x != 0) return;
    const int m = call_.groups[group].m, n = call_.groups[group].n;
    const TileCoordinate at = find_tile(number - call_.tile_offsets[group], (m - 1) / tile_m + 1, (n - 1) / tile_n + 1);
    tile.m0 = static_cast<std::int32_t>(at.row * tile_m);
    tile.n0 = static_cast<std::int32_t>(at.column * tile_n);
    tile.m_left = m - tile.m0;
    tile.n_left = n - tile.n0;
    tile.group = static_cast<std::int32_t>(call_.groups[group].group);
  }

 private:
  static __device__ __forceinline__ TileCoordinate find_tile(std::int64_t index, std::uint32_t tiles_m, std::uint32_t tiles_n) {
    static_assert(tile_m >= kChunkColumns, "the tiles of a chunk are counted in 32 bits");
    if (index <= 0xffffffff) return tile_at(static_cast<std::uint32_t>(index), tiles_m, tiles_n);
    return tile_at(index, std::int64_t{tiles_m}, std::int64_t{tiles_n});
  }

  const GemmCall& call_;
};

}  // namespace ggm::cuda
