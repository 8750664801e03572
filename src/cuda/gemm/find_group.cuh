// Finding a tile without a table: one warp reads the sizes (or offsets, or ends) of all groups and knows the rows of each, by
// the rules of plan/clamp.h. Every warp that needs a tile does that by itself: no barrier, no memory, about the time of one
// load.
#pragma once

#include "cuda/gemm/group_rows.cuh"

namespace ggm::cuda {

// Groups that follow each other in the rows of one matrix.
struct GroupBounds {
  RowSource source;  // sizes, offsets, ends or row_offsets
  IndexType index_type;
  const void* values;
  std::int32_t groups, rows;
  std::int32_t a_lane;  // groups of each lane: lane l has those from l * a_lane on
};

// Rows of a group, from row0 of the group on.
struct GroupTile {
  std::int32_t group, start, size;  // of the group. size 0: there is no such tile
  std::int32_t row0;
};

// For all lanes of a warp what one of them has found; no tile if none has.
__device__ __forceinline__ GroupTile from_holder(const GroupTile& found) {
  constexpr unsigned kWarp = 0xffffffffu;
  const unsigned holders = __ballot_sync(kWarp, found.size > 0);
  const int holder = holders != 0 ? __ffs(static_cast<int>(holders)) - 1 : 0;
  return {__shfl_sync(kWarp, found.group, holder), __shfl_sync(kWarp, found.start, holder),
          __shfl_sync(kWarp, found.size, holder), __shfl_sync(kWarp, found.row0, holder)};
}

// All threads of a warp make one, and call its functions together.
class LaneGroups {
 public:
  static constexpr int kMost = 8;  // of a lane

  __device__ __forceinline__ explicit LaneGroups(const GroupBounds& bounds) : first_(lane() * bounds.a_lane) {
    const bool sizes = bounds.source == RowSource::sizes;
    const int behind = bounds.source == RowSource::offsets || bounds.source == RowSource::row_offsets;  // entries before ends
    std::int64_t said[kMost];
#pragma unroll
    for (int i = 0; i < kMost; ++i)
      said[i] = exists(bounds, i) ? read_index(bounds.values, bounds.index_type, first_ + i + behind) : 0;
    const std::int64_t said_begin = behind ? read_index(bounds.values, bounds.index_type, 0) : 0;
    const auto rows = static_cast<std::uint32_t>(bounds.rows);
    begin_ = cut(said_begin, rows);
    // Where the groups before the lane's end. Sums cannot overflow: at most 256 sizes of at most `rows`.
    std::uint32_t own = sizes ? 0 : begin_;
#pragma unroll
    for (int i = 0; i < kMost; ++i) own = sizes ? own + cut(said[i], rows) : max(own, cut(said[i], rows));
    const std::uint32_t through = join_lanes(own, sizes);
    const std::uint32_t lower = __shfl_up_sync(kWarp, through, 1);
    std::uint32_t before = lane() == 0 ? begin_ : lower;
    end_ = min(__shfl_sync(kWarp, through, 31), rows);
    bad_ = lane() == 0 && begin_ != said_begin;
#pragma unroll
    for (int i = 0; i < kMost; ++i) {
      start_[i] = min(before, rows);
      const std::uint32_t end = sizes ? min(before + cut(said[i], rows), rows) : max(before, cut(said[i], rows));
      size_[i] = exists(bounds, i) ? end - start_[i] : 0;
      bad_ += exists(bounds, i) && (sizes ? size_[i] : end) != said[i];
      before = sizes ? before + cut(said[i], rows) : end;
    }
  }

  // The n-th tile of `rows` rows, from 0, in the order of the groups.
  template <int rows>
  __device__ __forceinline__ GroupTile tile(int n) const {
    const auto tiles = [&](int i) { return static_cast<int>((size_[i] + rows - 1) / rows); };
    int own = 0;
#pragma unroll
    for (int i = 0; i < kMost; ++i) own += tiles(i);
    int left =
        n - (static_cast<int>(join_lanes(static_cast<std::uint32_t>(own), true)) - own);  // tiles of this lane to pass over
    GroupTile found{0, 0, 0, 0};
#pragma unroll
    for (int i = 0; i < kMost; ++i) {
      if (left >= 0 && left < tiles(i))
        found = {first_ + i, static_cast<std::int32_t>(start_[i]), static_cast<std::int32_t>(size_[i]), left * rows};
      left -= tiles(i);
    }
    return from_holder(found);
  }

  // Whether the row lies before the first group or behind the last.
  __device__ __forceinline__ bool outside(std::uint32_t row) const { return row < begin_ || row >= end_; }
  // Values of this lane that were changed.
  __device__ __forceinline__ std::uint32_t bad() const { return bad_; }

 private:
  static constexpr unsigned kWarp = 0xffffffffu;

  static __device__ __forceinline__ int lane() { return static_cast<int>(threadIdx.x) % 32; }
  static __device__ __forceinline__ std::uint32_t cut(std::int64_t value, std::uint32_t rows) {
    return static_cast<std::uint32_t>(clamp_between(value, 0, rows));
  }
  __device__ __forceinline__ bool exists(const GroupBounds& bounds, int i) const {
    return i < bounds.a_lane && first_ + i < bounds.groups;
  }
  // Of this lane and all lower ones: the sum, or the largest.
  static __device__ __forceinline__ std::uint32_t join_lanes(std::uint32_t value, bool sum) {
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
      const std::uint32_t lower = __shfl_up_sync(kWarp, value, step);
      if (lane() >= step) value = sum ? value + lower : max(value, lower);
    }
    return value;
  }

  std::int32_t first_;
  std::uint32_t start_[kMost], size_[kMost];
  std::uint32_t begin_, end_, bad_;
};

}  // namespace ggm::cuda
