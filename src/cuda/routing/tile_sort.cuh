// Ranks of one tile's items by one digit, equal digits in their old order: the inner step of the counting sort of route.cu.
// Each warp counts on its own with votes (Ashkiani, Davidson, Meyer and Owens, "GPU Multisplit", 2016); the counts of the warps
// and of the digits are then scanned (Merrill and Grimshaw, "High performance and scalable radix sorting", 2011), the latter by
// CUB. This is the only file that sees CUB, in a namespace of our own: symbols of two CUB versions in one process would
// otherwise be merged.
#pragma once

#define THRUST_CUB_WRAPPED_NAMESPACE ggm_wrapped
#define CCCL_DISABLE_NVTX
#include <cub/block/block_scan.cuh>

#include <cstdint>

#include "plan/route_sort.h"

namespace ggm::cuda {

// Keys of items that are not sorted: assignments without a local expert, and places behind the end of the tile.
inline constexpr std::int32_t kSkipped = -1, kOutside = -2;

// The items of a thread; item i is number tile_item(thread, i, rounds) of the tile.
struct TileItems {
  std::int32_t key[kSortItems];    // local expert, kSkipped or kOutside
  std::int32_t value[kSortItems];  // assignment
  std::uint32_t rank[kSortItems];  // among the items of the same warp and digit
};

using DigitScan = ::ggm_wrapped::cub::BlockScan<std::uint32_t, kSortThreads>;

struct TileShared {
  ushort2 warp_counts[kSortWarps][kDigitBins / 2];  // two digits an entry; a row belongs to a warp
  std::uint32_t first[kDigitBins];                  // where the tile's first item of each digit goes
  std::uint32_t before[kDigitBins];                 // items of each digit in earlier blocks
  DigitScan::TempStorage scan;
};

// The lanes whose item is sorted and has this digit; without meaning for a lane whose item is not sorted. One vote a bit:
// cheaper than match_any, which costs one step for each distinct value.
__device__ inline std::uint32_t lanes_of_digit(std::uint32_t digit, bool sorted, int bits) {
  std::uint32_t lanes = __ballot_sync(0xffffffffu, sorted);
  for (int bit = 0; bit < bits; ++bit) {
    const bool set = (digit >> bit & 1u) != 0;
    const std::uint32_t with = __ballot_sync(0xffffffffu, set);
    lanes &= set ? with : ~with;
  }
  return lanes;
}

// Fills items.rank, and the counts of this warp in shared memory. Each warp touches its own row only.
__device__ inline void rank_in_warp(TileItems& items, int rounds, Digit digit, TileShared& shared) {
  const int lane = threadIdx.x % 32;
  ushort2* row = shared.warp_counts[threadIdx.x / 32];
  __syncwarp();  // the row's last readers
  for (int pair = lane; pair < digit.bins() / 2; pair += 32) row[pair] = make_ushort2(0, 0);
  __syncwarp();
  unsigned short* counts = &row->x;
  const std::uint32_t lower_lanes = (1u << lane) - 1u;
#pragma unroll
  for (int i = 0; i < kSortItems; ++i) {
    if (i >= rounds) break;
    const bool sorted = items.key[i] >= 0;
    const std::uint32_t mine = sorted ? digit.of(items.key[i]) : 0u;
    const std::uint32_t lanes = lanes_of_digit(mine, sorted, digit.bits);
    const std::uint32_t earlier = counts[mine];
    items.rank[i] = earlier + __popc(lanes & lower_lanes);
    __syncwarp();
    if (sorted && (lanes & lower_lanes) == 0) counts[mine] = static_cast<unsigned short>(earlier + __popc(lanes));
    __syncwarp();
  }
}

// Turns the counts of each warp into those of all earlier warps. Gives the tile's counts of digits 2*thread and 2*thread + 1.
__device__ inline uint2 scan_warps(Digit digit, TileShared& shared) {
  uint2 sum = make_uint2(0, 0);
  const int thread = threadIdx.x;
  if (2 * thread >= digit.bins()) return sum;
  ushort2 counts[kSortWarps];
#pragma unroll
  for (int warp = 0; warp < kSortWarps; ++warp) counts[warp] = shared.warp_counts[warp][thread];
#pragma unroll
  for (int warp = 0; warp < kSortWarps; ++warp) {
    shared.warp_counts[warp][thread] = make_ushort2(static_cast<unsigned short>(sum.x), static_cast<unsigned short>(sum.y));
    sum.x += counts[warp].x;
    sum.y += counts[warp].y;
  }
  return sum;
}

// Items of all lower digits, for the digits 2*thread and 2*thread + 1, from how many items these two have.
struct DigitStarts {
  uint2 start;
  std::uint32_t total;  // of all digits
};
__device__ inline DigitStarts scan_digits(uint2 counts, TileShared& shared) {
  std::uint32_t lower, total;
  DigitScan(shared.scan).ExclusiveSum(counts.x + counts.y, lower, total);
  return {make_uint2(lower, lower + counts.x), total};
}

// Stores where the tile's first items of this thread's two digits go.
__device__ inline void set_first(uint2 first, TileShared& shared) {
  shared.first[2 * threadIdx.x] = first.x;
  shared.first[2 * threadIdx.x + 1] = first.y;
}

// Hands every item to the sink: put(position, expert, assignment), or skip(assignment) for one without a local expert.
template <typename Sink>
__device__ void place_items(const TileItems& items, int rounds, Digit digit, const TileShared& shared, const Sink& sink) {
  const unsigned short* earlier_warps = &shared.warp_counts[threadIdx.x / 32]->x;
#pragma unroll
  for (int i = 0; i < kSortItems; ++i) {
    if (i >= rounds) break;
    if (items.key[i] >= 0) {
      const std::uint32_t mine = digit.of(items.key[i]);
      sink.put(shared.first[mine] + earlier_warps[mine] + items.rank[i], items.key[i], items.value[i]);
    } else if (items.key[i] == kSkipped) {
      sink.skip(items.value[i]);
    }
  }
}

}  // namespace ggm::cuda
