// One pass over up to kFewGroups groups: a thread finds the rows of one, all threads write the descriptors. Arithmetic of 32
// bits wherever rows are meant, and no division (tile_rule.h). NOTE: latency and nothing else, as the routing in one block.
#include "cuda/gemm/few_groups.h"

#include "cuda/device/ptx/dependent.cuh"
#include "cuda/device/schedule/write_words.cuh"
#include "cuda/gemm/group_rows.cuh"
#include "cuda/runtime/block_scan.cuh"
#include "cuda/runtime/faults.cuh"
#include "cuda/runtime/launch.cuh"

namespace ggm::cuda {
namespace {

constexpr int kFewWarps = kFewGroups / 32;
constexpr int kLeastThreads = 256;  // a thread writes every 23rd descriptor, or closer ones

struct FewParams {
  const void* sizes;
  const void* offsets;
  std::uint32_t* faults;
  const std::int32_t* skip_without;
  RowSource source;
  IndexType index_type;
  std::uint32_t rows;
  std::uint32_t long_group;  // rows are the inner dimension: longer groups come first; else not read
  int group_warps;
  TableRecipe recipe;
};

// Sums that stop at the bound on the rows, which is below 2^31.
struct AddUpTo {
  std::uint32_t most;
  __device__ std::uint32_t operator()(std::uint32_t a, std::uint32_t b) const { return min(a + b, most); }
};
struct Largest {
  __device__ std::uint32_t operator()(std::uint32_t a, std::uint32_t b) const { return max(a, b); }
};
struct Sum {
  __device__ std::int64_t operator()(std::int64_t a, std::int64_t b) const { return a + b; }
};

// The join of the values of all lower threads, 0 for the first; 0 joined with x is x. The threads are those of the first
// `warps` warps; one barrier among them where they are several.
template <typename T, typename Join>
__device__ __forceinline__ T join_lower(T value, Join join, int warps, T* totals) {
  const int lane = threadIdx.x % 32, warp = static_cast<int>(threadIdx.x) / 32;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const T lower = __shfl_up_sync(0xffffffffu, value, step);
    if (lane >= step) value = join(lower, value);
  }
  T before = __shfl_up_sync(0xffffffffu, value, 1);
  if (lane == 0) before = 0;
  if (warps == 1) return before;
  if (lane == 31) totals[warp] = value;
  sync_first(warps);
  T lower = lane < warp ? totals[lane] : T{0};
#pragma unroll
  for (int step = 16; step > 0; step /= 2) lower = join(lower, __shfl_xor_sync(0xffffffffu, lower, step));
  return join(lower, before);
}

struct FewShared {
  std::uint32_t row_totals[kFewWarps];
  std::int64_t tile_totals[kFewWarps];
  std::uint32_t longs[kFewWarps], used_shorts[kFewWarps];
  // By place in the table.
  std::uint32_t start[kFewGroups], size[kFewGroups];
  std::int32_t group[kFewGroups];  // ~group: not used
};

struct Rows {
  std::uint32_t start = 0, size = 0;
};

__device__ __forceinline__ std::uint32_t cut(std::int64_t value, std::uint32_t most) {
  return static_cast<std::uint32_t>(clamp_between(value, 0, most));
}

// Rows of the group of this thread's number, by the threads that have groups; *bad counts values that were changed.
__device__ __forceinline__ Rows find_rows(const FewParams& p, bool active, FewShared& shared, std::uint32_t* bad) {
  const int group = static_cast<int>(threadIdx.x);
  Rows found;
  if (p.source == RowSource::row_offsets) {
    if (!active) return found;
    const auto* offsets = static_cast<const std::int32_t*>(p.offsets);
    found.start = static_cast<std::uint32_t>(offsets[group]);
    found.size = static_cast<std::uint32_t>(offsets[group + 1]) - found.start;
    return found;
  }
  if (p.source == RowSource::offsets || p.source == RowSource::ends) {
    const bool whole = p.source == RowSource::offsets;
    const std::int64_t end = active ? read_index(p.offsets, p.index_type, group + whole) : 0;
    const std::int64_t first = active && whole ? read_index(p.offsets, p.index_type, 0) : 0;
    const std::uint32_t begin = cut(first, p.rows), limited = cut(end, p.rows);
    found.start = max(begin, join_lower(limited, Largest{}, p.group_warps, shared.row_totals));
    found.size = max(found.start, limited) - found.start;
    *bad += active && found.start + found.size != end;
    *bad += group == 0 && begin != first;
    return found;
  }
  const std::int64_t size = active ? read_index(p.sizes, p.index_type, group) : 0;
  if (p.source == RowSource::sizes) {
    found.start = join_lower(cut(size, p.rows), AddUpTo{p.rows}, p.group_warps, shared.row_totals);
  } else if (p.source == RowSource::starts_sizes && active) {
    const std::int64_t start = read_index(p.offsets, p.index_type, group);
    found.start = cut(start, p.rows);
    *bad += found.start != start || cut(size, p.rows - found.start) != size;
    found.size = cut(size, p.rows - found.start);
    return found;
  }
  found.size = cut(size, p.rows - found.start);
  *bad += found.size != size;
  return found;
}

struct Place {
  int place;
  std::int64_t tiles_before, tiles;  // of this group and of all
};

// Where K runs over the rows, a tile takes as long as its group has rows. So groups of more than twice the average come first
// in the table: one of them that began last would keep the others waiting. Every used group has the same number of tiles.
__device__ __forceinline__ Place place_long_first(const FewParams& p, bool active, bool used, std::uint32_t size,
                                                  FewShared& shared) {
  const int group = static_cast<int>(threadIdx.x), lane = group % 32, warp = group / 32;
  const bool is_long = active && size > p.long_group;
  const std::uint32_t lower_lanes = (1u << lane) - 1u;
  const std::uint32_t longs = __ballot_sync(0xffffffffu, is_long), users = __ballot_sync(0xffffffffu, used);
  if (lane == 0) {
    shared.longs[warp] = static_cast<std::uint32_t>(__popc(longs) | __popc(longs & users) << 16);
    shared.used_shorts[warp] = static_cast<std::uint32_t>(__popc(users & ~longs));
  }
  sync_first(p.group_warps);
  const std::uint32_t other_longs = lane < p.group_warps ? shared.longs[lane] : 0;
  const std::uint32_t other_shorts = lane < p.group_warps ? shared.used_shorts[lane] : 0;
  const std::uint32_t all_longs = __reduce_add_sync(0xffffffffu, other_longs);
  const std::uint32_t all_shorts = __reduce_add_sync(0xffffffffu, other_shorts);
  const std::uint32_t lower_longs = __reduce_add_sync(0xffffffffu, lane < warp ? other_longs : 0u);
  const std::uint32_t lower_shorts = __reduce_add_sync(0xffffffffu, lane < warp ? other_shorts : 0u);
  const int longs_before = static_cast<int>(lower_longs & 0xffff) + __popc(longs & lower_lanes);
  const std::uint32_t used_before = is_long ? (lower_longs >> 16) + __popc(longs & users & lower_lanes)
                                            : (all_longs >> 16) + lower_shorts + __popc(users & ~longs & lower_lanes);
  return {is_long ? longs_before : static_cast<int>(all_longs & 0xffff) + group - longs_before,
          used_before * p.recipe.rule.whole, ((all_longs >> 16) + all_shorts) * p.recipe.rule.whole};
}

__device__ __forceinline__ void find_groups(const FewParams& p, FewShared& shared) {
  const int group = static_cast<int>(threadIdx.x), count = p.recipe.group_count;
  const bool active = group < count;
  std::uint32_t bad = 0;
  const Rows rows = find_rows(p, active, shared, &bad);
  bool used = active;
  if (p.skip_without != nullptr) used = any_valid(p.skip_without, {std::int64_t{rows.start}, std::int64_t{rows.size}, false});
  Place at{group, 0, 0};
  if (p.recipe.rule.whole > 0) {
    at = place_long_first(p, active, used, rows.size, shared);
  } else {
    const std::int64_t tiles = used ? p.recipe.rule.count(rows.size) : 0;
    at.tiles_before = join_lower(tiles, Sum{}, p.group_warps, shared.tile_totals);
    at.tiles = at.tiles_before + tiles;  // of all in the last thread with a group, and in all behind it
  }
  if (active) {
    shared.start[at.place] = rows.start;
    shared.size[at.place] = rows.size;
    shared.group[at.place] = used ? group : ~group;
    p.recipe.table.tile_offsets[at.place] = at.tiles_before;
  }
  if (group == max(count, 1) - 1) {
    p.recipe.table.tile_offsets[count] = at.tiles;
    *p.recipe.table.tile_counter = 0;
  }
  const bool offsets = p.source == RowSource::offsets || p.source == RowSource::ends;
  count_faults_of_warp(p.faults, offsets ? GGM_FAULT_BAD_ROUTING : GGM_FAULT_SIZE_CLAMPED, bad);
}

__global__ void __launch_bounds__(kFewGroups, 1) build_few(const __grid_constant__ FewParams p) {
  ptx::begin_dependent();
  __shared__ FewShared shared;
  if (static_cast<int>(threadIdx.x) / 32 < p.group_warps) find_groups(p, shared);
  const WordWriter writer(p.recipe);
  __syncthreads();
  writer.write(p.recipe.table, p.recipe.group_count, [&](int place) {
    const std::int32_t group = shared.group[place];
    return FoundGroup{shared.start[place], shared.size[place], group < 0 ? ~group : group, true, group >= 0};
  });
}

}  // namespace

ggm_status_t build_few_groups(const GroupBuild& build, const TableRecipe& recipe, const Launch& launch) {
  FewParams p{};
  p.sizes = build.sizes;
  p.offsets = build.offsets;
  p.faults = build.faults;
  p.skip_without = build.skip_without;
  p.source = build.source;
  p.index_type = build.index_type;
  p.rows = static_cast<std::uint32_t>(build.rows);
  p.group_warps = static_cast<int>(max64(1, ceil_div(build.group_count, 32)));
  if (build.rows_are_k)
    p.long_group =
        static_cast<std::uint32_t>(min64(2 * ceil_div(build.rows, max64(1, build.group_count)), std::int64_t{0xffffffff}));
  p.recipe = recipe;
  const int threads = static_cast<int>(min64(kFewGroups, max64(kLeastThreads, 4 * 32 * p.group_warps)));
  return launch_kernel("build_groups", build_few, 1, threads, 0, launch, p);
}

ggm_status_t load_few_group_kernels() { return load_kernel("build_groups", build_few); }

}  // namespace ggm::cuda
