// One pass over up to kFewGroups groups: a thread finds the rows of one, all threads write the descriptors. Arithmetic of 32
// bits wherever rows are meant, and no division (tile_rule.h). NOTE: latency and nothing else, as the routing in one block: one
// barrier, one more where rows follow from those of lower groups, and one where long groups come first.
#include "cuda/gemm/few_groups.h"

#include "cuda/device/ptx/dependent.cuh"
#include "cuda/device/schedule/write_words.cuh"
#include "cuda/gemm/group_rows.cuh"
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

// How the values of groups are joined: of two, and of all lanes of a warp in fewer steps than by twos.

// Sums that stop at the bound on the rows, which is below 2^31.
struct AddUpTo {
  std::uint32_t most;
  __device__ std::uint32_t operator()(std::uint32_t a, std::uint32_t b) const { return min(a + b, most); }
  __device__ std::uint32_t of_lanes(std::uint32_t value) const {
    const std::uint32_t low = __reduce_add_sync(0xffffffffu, value & 0xffff);
    const std::uint32_t high = __reduce_add_sync(0xffffffffu, value >> 16);
    const std::uint64_t sum = (std::uint64_t{high} << 16) + low;
    return sum < most ? static_cast<std::uint32_t>(sum) : most;
  }
};
struct Largest {
  __device__ std::uint32_t operator()(std::uint32_t a, std::uint32_t b) const { return max(a, b); }
  __device__ std::uint32_t of_lanes(std::uint32_t value) const { return __reduce_max_sync(0xffffffffu, value); }
};
struct Sum {
  __device__ std::int64_t operator()(std::int64_t a, std::int64_t b) const { return a + b; }
  // In parts whose sums fit 32 bits.
  __device__ std::int64_t of_lanes(std::int64_t value) const {
    constexpr int kBits = 27;
    constexpr std::uint32_t kMask = (1u << kBits) - 1u;
    const auto bits = static_cast<std::uint64_t>(value);
    const std::uint64_t low = __reduce_add_sync(0xffffffffu, static_cast<std::uint32_t>(bits) & kMask);
    const std::uint64_t middle = __reduce_add_sync(0xffffffffu, static_cast<std::uint32_t>(bits >> kBits) & kMask);
    const std::uint64_t high = __reduce_add_sync(0xffffffffu, static_cast<std::uint32_t>(bits >> 2 * kBits));
    return static_cast<std::int64_t>(low + (middle << kBits) + (high << 2 * kBits));
  }
};

// The join of the values of all lower groups, 0 for the first; 0 joined with x is x. In two steps, by all threads of the warps
// that have groups: first that of the lower lanes, and between the two steps a barrier of the block where the warps are
// several.
template <typename T, typename Join>
__device__ __forceinline__ T join_lower_lanes(T value, Join join, T* totals) {
  const int lane = threadIdx.x % 32, warp = static_cast<int>(threadIdx.x) / 32;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const T lower = __shfl_up_sync(0xffffffffu, value, step);
    if (lane >= step) value = join(lower, value);
  }
  if (lane == 31) totals[warp] = value;
  const T before = __shfl_up_sync(0xffffffffu, value, 1);
  return lane == 0 ? T{0} : before;
}
template <typename T, typename Join>
__device__ __forceinline__ T join_lower_warps(T before, Join join, int warps, const T* totals) {
  if (warps == 1) return before;
  const int lane = threadIdx.x % 32, warp = static_cast<int>(threadIdx.x) / 32;
  return join(join.of_lanes(lane < warp ? totals[lane] : T{0}), before);
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

constexpr GGM_HD bool have_ends(RowSource source) { return source == RowSource::offsets || source == RowSource::ends; }
// Whether the rows of a group follow from those of the groups before.
constexpr GGM_HD bool follow_each_other(RowSource source) { return have_ends(source) || source == RowSource::sizes; }

// What the arrays say of the group of this thread's number.
struct Said {
  std::int64_t start = 0, size_or_end = 0;  // the start where each group has one, or the first has
  std::uint32_t before = 0;                 // of the lower lanes, where rows follow each other
};

__device__ __forceinline__ Said read_group(const FewParams& p, bool active, FewShared& shared) {
  const int group = static_cast<int>(threadIdx.x);
  Said said;
  if (p.source == RowSource::row_offsets) {
    if (!active) return said;
    const auto* offsets = static_cast<const std::int32_t*>(p.offsets);
    said.start = offsets[group];
    said.size_or_end = offsets[group + 1];
    return said;
  }
  if (have_ends(p.source)) {
    const bool whole = p.source == RowSource::offsets;
    said.size_or_end = active ? read_index(p.offsets, p.index_type, group + whole) : 0;
    said.start = active && whole ? read_index(p.offsets, p.index_type, 0) : 0;
    said.before = join_lower_lanes(cut(said.size_or_end, p.rows), Largest{}, shared.row_totals);
    return said;
  }
  said.size_or_end = active ? read_index(p.sizes, p.index_type, group) : 0;
  if (p.source == RowSource::starts_sizes && active) said.start = read_index(p.offsets, p.index_type, group);
  if (p.source == RowSource::sizes)
    said.before = join_lower_lanes(cut(said.size_or_end, p.rows), AddUpTo{p.rows}, shared.row_totals);
  return said;
}

// Rows of that group; *bad counts values that were changed.
__device__ __forceinline__ Rows find_rows(const FewParams& p, bool active, const Said& said, const FewShared& shared,
                                          std::uint32_t* bad) {
  Rows found;
  if (p.source == RowSource::row_offsets) {
    found.start = static_cast<std::uint32_t>(said.start);
    found.size = static_cast<std::uint32_t>(said.size_or_end) - found.start;
    return found;
  }
  if (have_ends(p.source)) {
    const std::int64_t end = said.size_or_end;
    const std::uint32_t begin = cut(said.start, p.rows), limited = cut(end, p.rows);
    found.start = max(begin, join_lower_warps(said.before, Largest{}, p.group_warps, shared.row_totals));
    found.size = max(found.start, limited) - found.start;
    *bad += active && found.start + found.size != end;
    *bad += threadIdx.x == 0 && begin != said.start;
    return found;
  }
  const std::int64_t size = said.size_or_end;
  if (p.source == RowSource::sizes)
    found.start = join_lower_warps(said.before, AddUpTo{p.rows}, p.group_warps, shared.row_totals);
  else
    found.start = cut(said.start, p.rows);
  found.size = cut(size, p.rows - found.start);
  *bad += found.size != size || (p.source == RowSource::starts_sizes && found.start != said.start);
  return found;
}

// Where K runs over the rows, a tile takes as long as its group has rows. So groups of more than twice the average come first
// in the table: one of them that began last would keep the others waiting. Every used group has the same number of tiles.
// In two steps as well.
struct LongAndUsed {
  std::uint32_t longs = 0, users = 0;  // lanes
};
__device__ __forceinline__ LongAndUsed find_long(bool is_long, bool used, FewShared& shared) {
  const LongAndUsed lanes{__ballot_sync(0xffffffffu, is_long), __ballot_sync(0xffffffffu, used)};
  if (threadIdx.x % 32 == 0) {
    const int warp = static_cast<int>(threadIdx.x) / 32;
    shared.longs[warp] = static_cast<std::uint32_t>(__popc(lanes.longs) | __popc(lanes.longs & lanes.users) << 16);
    shared.used_shorts[warp] = static_cast<std::uint32_t>(__popc(lanes.users & ~lanes.longs));
  }
  return lanes;
}

struct Place {
  int place;
  std::int64_t tiles_before, tiles;  // of this group and of all
};
__device__ __forceinline__ Place place_long_first(const FewParams& p, const LongAndUsed& lanes, const FewShared& shared) {
  const int group = static_cast<int>(threadIdx.x), lane = group % 32, warp = group / 32;
  const std::uint32_t longs = lanes.longs, users = lanes.users, lower_lanes = (1u << lane) - 1u;
  const bool is_long = (longs >> lane & 1u) != 0;
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

// The offsets of the tiles, which no descriptor needs: behind the last barrier.
__device__ __forceinline__ void store_tiles(const FewParams& p, bool active, const Place& at) {
  const int group = static_cast<int>(threadIdx.x), count = p.recipe.group_count;
  if (active) p.recipe.table.tile_offsets[at.place] = at.tiles_before;
  if (group != max(count, 1) - 1) return;
  p.recipe.table.tile_offsets[count] = at.tiles;
  *p.recipe.table.tile_counter = 0;
}

// NOTE: all barriers are of the whole block and stand between the steps, so each warp goes through the same ones; what warps
// without groups would only wait for is theirs all the same.
__global__ void __launch_bounds__(kFewGroups, 1) build_few(const __grid_constant__ FewParams p) {
  ptx::begin_dependent();
  __shared__ FewShared shared;
  const int group = static_cast<int>(threadIdx.x);
  const bool finds = group / 32 < p.group_warps, active = group < p.recipe.group_count;
  const bool long_first = p.recipe.rule.whole > 0;
  std::uint32_t bad = 0;
  Said said;
  Rows rows;
  Place at{group, 0, 0};
  LongAndUsed lanes;
  bool used = active;
  if (finds) said = read_group(p, active, shared);
  if (follow_each_other(p.source) && p.group_warps > 1) __syncthreads();
  if (finds) {
    rows = find_rows(p, active, said, shared, &bad);
    if (p.skip_without != nullptr) used = any_valid(p.skip_without, {std::int64_t{rows.start}, std::int64_t{rows.size}, false});
    if (long_first) lanes = find_long(active && rows.size > p.long_group, used, shared);
  }
  if (long_first) __syncthreads();
  if (finds) {
    if (long_first) {
      at = place_long_first(p, lanes, shared);
    } else {
      at.tiles = used ? p.recipe.rule.count(rows.size) : 0;
      at.tiles_before = join_lower_lanes(at.tiles, Sum{}, shared.tile_totals);
    }
    if (active) {
      shared.start[at.place] = rows.start;
      shared.size[at.place] = rows.size;
      shared.group[at.place] = used ? group : ~group;
    }
  }
  const WordWriter writer(p.recipe);
  __syncthreads();
  if (finds) {
    if (!long_first) {
      at.tiles_before = join_lower_warps(at.tiles_before, Sum{}, p.group_warps, shared.tile_totals);
      at.tiles += at.tiles_before;  // of all in the last thread with a group, and in all behind it
    }
    store_tiles(p, active, at);
    count_faults_of_warp(p.faults, have_ends(p.source) ? GGM_FAULT_BAD_ROUTING : GGM_FAULT_SIZE_CLAMPED, bad);
  }
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
