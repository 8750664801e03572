// Ranks of one tile's items by one digit, equal digits in their old order: the inner step of the counting sort of route.cu.
// Each warp counts on its own with votes (Ashkiani, Davidson, Meyer and Owens, "GPU Multisplit", 2016); the counts of the warps
// and of the digits are then scanned (Merrill and Grimshaw, "High performance and scalable radix sorting", 2011), the latter by
// CUB. This is the only file that sees CUB, in a namespace of our own: symbols of two CUB versions in one process would
// otherwise be merged.
//
// NOTE: a small sort runs every instruction about once, so it waits for instructions more than for anything else. Code is kept
// short: loops stay loops where they cost no registers.
#pragma once

#define THRUST_CUB_WRAPPED_NAMESPACE ggm_wrapped
#define CCCL_DISABLE_NVTX
#include <cub/warp/warp_scan.cuh>

#include <cstdint>

#include "plan/route_sort.h"

namespace ggm::cuda {

// Keys of items that are not sorted: assignments without a local expert, and places behind the end of the tile.
inline constexpr std::int32_t kSkipped = -1, kOutside = -2;

// The items of a thread; item i is number tile_item(thread, i, rounds) of the tile.
template <int rounds>
struct TileItems {
  std::int32_t key[rounds];    // local expert, kSkipped or kOutside
  std::int32_t value[rounds];  // assignment
  std::uint32_t rank[rounds];  // among the items of the same warp and digit
};

struct TileShared {
  std::uint32_t first[kDigitBins];       // where the tile's first item of each digit goes
  std::uint32_t before[kDigitBins];      // items of each digit in earlier blocks
  std::uint32_t totals[kDigitBins / 2];  // items of each digit in the tile, two digits an entry as in WarpCounts
  std::uint32_t warp_sums[kSortWarps];
};

// Items of each warp and digit, sort_shared_bytes(digit) of shared memory. Two digits an entry, the even one in the low half:
// sums of entries are sums of both, as no count of a tile exceeds 16 bits.
class WarpCounts {
 public:
  __device__ WarpCounts(std::uint32_t* entries, Digit digit) : entries_(entries), row_(count_entries(digit)) {}

  __device__ std::uint32_t* row(int warp) const { return entries_ + warp * row_; }
  __device__ unsigned short* counts_of_this_warp() const {
    return reinterpret_cast<unsigned short*>(row(static_cast<int>(threadIdx.x) / 32));
  }

 private:
  std::uint32_t* entries_;
  int row_;
};

// For each item the lanes whose item is sorted and has the same digit; without meaning for an item that is not sorted. One vote
// a bit: cheaper than match_any, which costs one step for each distinct value.
template <int rounds>
__device__ void find_equal(const TileItems<rounds>& items, Digit digit, std::uint32_t (&equal)[rounds]) {
#pragma unroll
  for (int i = 0; i < rounds; ++i) equal[i] = __ballot_sync(0xffffffffu, items.key[i] >= 0);
#pragma unroll 1
  for (std::uint32_t bit = 1u << digit.shift, end = bit << digit.bits; bit < end; bit <<= 1) {
#pragma unroll
    for (int i = 0; i < rounds; ++i) {
      const bool set = (static_cast<std::uint32_t>(items.key[i]) & bit) != 0;
      const std::uint32_t with = __ballot_sync(0xffffffffu, set);
      equal[i] &= set ? with : ~with;
    }
  }
}

// Clears the counts of this warp, whose last readers were its own.
__device__ inline void clear_counts(Digit digit, const WarpCounts& warp_counts) {
  auto* counts = reinterpret_cast<std::uint32_t*>(warp_counts.counts_of_this_warp());
  __syncwarp();
#pragma unroll 1
  for (int pair = threadIdx.x % 32; pair < digit.bins() / 2; pair += 32) counts[pair] = 0;
}

// Fills items.rank, and the counts of this warp, which are cleared. Each warp touches its own row only.
template <int rounds>
__device__ void rank_in_warp(TileItems<rounds>& items, Digit digit, const WarpCounts& warp_counts) {
  const int lane = threadIdx.x % 32;
  unsigned short* counts = warp_counts.counts_of_this_warp();
  std::uint32_t equal[rounds];
  find_equal(items, digit, equal);
  const std::uint32_t lower_lanes = (1u << lane) - 1u;
#pragma unroll
  for (int i = 0; i < rounds; ++i) {
    __syncwarp();
    unsigned short& count = counts[digit.of(items.key[i])];
    const std::uint32_t earlier = count;
    items.rank[i] = earlier + __popc(equal[i] & lower_lanes);
    __syncwarp();
    if (items.key[i] >= 0 && (equal[i] & lower_lanes) == 0) count = static_cast<unsigned short>(earlier + __popc(equal[i]));
  }
}

// Turns the counts of each warp into those of all earlier warps, and fills shared.totals. Barriers before and behind it are the
// caller's. Eight lanes share a column, each with the counts of four warps; a warp has four neighbouring columns.
__device__ inline void scan_warps(Digit digit, const WarpCounts& warp_counts, TileShared& shared) {
  constexpr int kColumns = 4, kLanes = 32 / kColumns, kWarps = kSortWarps / kLanes;
  static_assert((1 << kLeastDigitBits) / 2 >= kColumns, "no warp has fewer columns");
  const int lane = threadIdx.x % 32;
  const int row = lane / kColumns * kWarps;
#pragma unroll 1
  for (int column = static_cast<int>(threadIdx.x) / 32 * kColumns; column < digit.bins() / 2; column += kSortWarps * kColumns) {
    const int pair = column + lane % kColumns;
    std::uint32_t counts[kWarps], sum = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) counts[w] = warp_counts.row(row + w)[pair];
#pragma unroll
    for (int w = 0; w < kWarps; ++w) sum += counts[w];
    std::uint32_t through = sum;  // and the lower lanes of the column
#pragma unroll
    for (int step = kColumns; step < 32; step *= 2) {
      const std::uint32_t lower = __shfl_up_sync(0xffffffffu, through, step);
      if (lane >= step) through += lower;
    }
    std::uint32_t before = through - sum;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      warp_counts.row(row + w)[pair] = before;
      before += counts[w];
    }
    if (lane >= 32 - kColumns) shared.totals[pair] = through;
  }
}

// How many items of the tile have this thread's digit.
__device__ inline std::uint32_t tile_total(Digit digit, const TileShared& shared) {
  const int value = static_cast<int>(threadIdx.x);
  return value < digit.bins() ? reinterpret_cast<const unsigned short*>(shared.totals)[value] : 0;
}

// Items of all lower digits, for the digit of this thread's number, from how many items it has. One barrier inside.
struct DigitStarts {
  std::uint32_t start;
  std::uint32_t total;  // of all digits
};
__device__ inline DigitStarts scan_digits(std::uint32_t count, TileShared& shared) {
  using Scan = ::ggm_wrapped::cub::WarpScan<std::uint32_t>;
  typename Scan::TempStorage none;  // empty: the scan of a whole warp shuffles
  const int lane = threadIdx.x % 32, warp = static_cast<int>(threadIdx.x) / 32;
  std::uint32_t lower, sum, lower_warps, total;
  Scan(none).ExclusiveSum(count, lower, sum);
  if (lane == 0) shared.warp_sums[warp] = sum;
  __syncthreads();
  Scan(none).ExclusiveSum(shared.warp_sums[lane], lower_warps, total);
  return {__shfl_sync(0xffffffffu, lower_warps, warp) + lower, total};
}

// Hands every item to the sink: put(position, expert, assignment), or skip(assignment) for one without a local expert.
template <int rounds, typename Sink>
__device__ void place_items(const TileItems<rounds>& items, Digit digit, const WarpCounts& warp_counts,
                            const TileShared& shared, const Sink& sink) {
  const unsigned short* earlier_warps = warp_counts.counts_of_this_warp();
#pragma unroll
  for (int i = 0; i < rounds; ++i) {
    if (items.key[i] >= 0) {
      const std::uint32_t value = digit.of(items.key[i]);
      sink.put(shared.first[value] + earlier_warps[value] + items.rank[i], items.key[i], items.value[i]);
    } else if (items.key[i] == kSkipped) {
      sink.skip(items.value[i]);
    }
  }
}

}  // namespace ggm::cuda
