// Ids to rows by a stable counting sort of many blocks: for each digit a count and a move. Few ids take one_block.cu instead.
// The digits, the chunks and the scratch are decided in plan/route_sort.h.
#include "cuda/device/ptx/dependent.cuh"
#include "cuda/routing/kernels.h"
#include "cuda/routing/routing.h"
#include "cuda/routing/sort_source.cuh"
#include "cuda/routing/tile_sort.cuh"
#include "cuda/runtime/launch.cuh"

namespace ggm::cuda {
namespace {

// The routing arrays. Position p of the sorted order is row p, as long as it lies below max_rows.
struct RowOutputs {
  std::int32_t* group_offsets;
  std::int32_t* row_assignment;
  std::int32_t* assignment_row;
  std::uint32_t* sorted_keys;  // experts of the rows, for find_offsets; nullptr when the starts of the digit are the offsets
  std::uint32_t* faults;
  std::int64_t experts, max_rows;

  __device__ void put(std::uint32_t position, std::int32_t expert, std::int32_t assignment) const {
    if (position >= max_rows) return skip(assignment);
    row_assignment[position] = assignment;
    assignment_row[assignment] = static_cast<std::int32_t>(position);
    if (sorted_keys != nullptr) sorted_keys[position] = static_cast<std::uint32_t>(expert);
  }
  __device__ void skip(std::int32_t assignment) const { assignment_row[assignment] = -1; }

  // Group offsets from the starts of all digits, by one block.
  __device__ void set_offsets(const DigitStarts& starts) const {
    if (threadIdx.x < experts) group_offsets[threadIdx.x] = row_of(starts.start);
    if (threadIdx.x == 0) group_offsets[experts] = row_of(starts.total);
  }

  // Rows that no assignment has, by the whole grid; and the count of those that did not fit.
  __device__ void finish(std::uint32_t total) const {
    const std::int64_t step = std::int64_t{gridDim.x} * kSortThreads;
    for (std::int64_t r = total + std::int64_t{blockIdx.x} * kSortThreads + threadIdx.x; r < max_rows; r += step)
      row_assignment[r] = -1;
    if (blockIdx.x == 0 && threadIdx.x == 0 && total > max_rows)
      count_faults(faults, GGM_FAULT_ROWS_DROPPED, static_cast<std::uint32_t>(total - max_rows));
  }

 private:
  __device__ std::int32_t row_of(std::uint32_t position) const {
    return static_cast<std::int32_t>(clamp_between(position, 0, max_rows));
  }
};

// One digit of a sort by several blocks.
template <typename Source>
struct PassParams {
  Source source;
  Digit digit;
  std::int64_t chunk;
  std::uint32_t* counts;  // [blocks, bins]
};

struct Range {
  std::uint32_t begin, end;
};
__device__ Range chunk_of_block(std::int64_t chunk, std::uint32_t items) {
  return {static_cast<std::uint32_t>(chunk_begin(chunk, items, blockIdx.x)),
          static_cast<std::uint32_t>(chunk_begin(chunk, items, std::int64_t{blockIdx.x} + 1))};
}

__device__ int items_of_tile(std::uint32_t tile, const Range& range) {
  return static_cast<int>(min(range.end - tile, static_cast<std::uint32_t>(kSortTile)));
}

// How many items of each digit the block's chunk has.
template <typename Source>
__global__ void __launch_bounds__(kSortThreads) count_digits(const PassParams<Source> p) {
  ptx::begin_dependent();
  __shared__ std::uint32_t counts[kDigitBins];
  counts[threadIdx.x] = 0;
  __syncthreads();
  Reader<Source, kSortItems> reader(p.source);
  const Range range = chunk_of_block(p.chunk, reader.items());
#pragma unroll 1
  for (std::uint32_t tile = range.begin; tile < range.end; tile += kSortTile) {
    reader.fetch(tile, items_of_tile(tile, range));
    TileItems<kSortItems> items;
    reader.take(items);
#pragma unroll
    for (int i = 0; i < kSortItems; ++i)
      if (items.key[i] >= 0) atomicAdd(&counts[p.digit.of(items.key[i])], 1u);
  }
  reader.report();
  __syncthreads();
  const int bins = p.digit.bins();
  if (threadIdx.x < bins) p.counts[std::int64_t{blockIdx.x} * bins + threadIdx.x] = counts[threadIdx.x];
}

// Adds up the counts of all blocks. Gives the start of this thread's digit, and in *next where this block's own items of it go:
// behind those of the blocks before. The blocks are divided among groups of threads, so that few digits still keep many loads
// in flight; integer sums do not depend on the order of the additions.
__device__ DigitStarts add_counts(const std::uint32_t* counts, Digit digit, TileShared& shared, std::uint32_t* next) {
  const int thread = static_cast<int>(threadIdx.x);
  std::uint32_t* all = shared.first;
  all[thread] = shared.before[thread] = 0;
  __syncthreads();
  const int pairs = digit.bins() / 2, pair = thread & (pairs - 1), blocks = static_cast<int>(gridDim.x);
  const int groups = kSortThreads >> (digit.bits - 1), group = thread >> (digit.bits - 1);
  uint2 sum = make_uint2(0, 0), sum_before = make_uint2(0, 0);
#pragma unroll 4
  for (int block = group; block < blocks; block += groups) {
    const uint2 c = reinterpret_cast<const uint2*>(counts)[std::int64_t{block} * pairs + pair];
    const bool earlier = block < static_cast<int>(blockIdx.x);
    sum.x += c.x;
    sum.y += c.y;
    sum_before.x += earlier ? c.x : 0u;
    sum_before.y += earlier ? c.y : 0u;
  }
  if (group < blocks) {
    atomicAdd(&all[2 * pair], sum.x);
    atomicAdd(&all[2 * pair + 1], sum.y);
    atomicAdd(&shared.before[2 * pair], sum_before.x);
    atomicAdd(&shared.before[2 * pair + 1], sum_before.y);
  }
  __syncthreads();
  const DigitStarts starts = scan_digits(all[thread], shared);
  *next = starts.start + shared.before[thread];
  return starts;
}

// Moves the items of the block's chunk into the sink, tile by tile. The ids of a tile are fetched before they are needed: those
// of the first under the counts of all blocks, the others under the tile before.
template <typename Source, typename Sink>
__device__ DigitStarts move_items(const PassParams<Source>& p, TileShared& shared, const Sink& sink) {
  extern __shared__ std::uint32_t entries[];
  const WarpCounts warp_counts(entries, p.digit);
  Reader<Source, kSortItems> reader(p.source);
  const Range range = chunk_of_block(p.chunk, reader.items());
  std::uint32_t tile = range.begin;
  if (tile < range.end) reader.fetch(tile, items_of_tile(tile, range));
  std::uint32_t next;
  const DigitStarts starts = add_counts(p.counts, p.digit, shared, &next);
#pragma unroll 1
  while (tile < range.end) {
    TileItems<kSortItems> items;
    reader.take(items);
    tile += kSortTile;
    if (tile < range.end) reader.fetch(tile, items_of_tile(tile, range));
    clear_counts(p.digit, warp_counts);
    rank_in_warp(items, p.digit, warp_counts);
    __syncthreads();  // also: the last tile has been placed
    shared.first[threadIdx.x] = next;
    scan_warps(p.digit, warp_counts, shared);
    __syncthreads();
    next += tile_total(p.digit, shared);
    place_items(items, p.digit, warp_counts, shared, sink);
  }
  return starts;
}

template <typename Source>
struct RowPassParams {
  PassParams<Source> pass;
  RowOutputs rows;
};

// Last digit: straight into the routing arrays.
template <typename Source>
__global__ void __launch_bounds__(kSortThreads, 1) move_to_rows(const RowPassParams<Source> p) {
  ptx::begin_dependent();
  __shared__ TileShared shared;
  const DigitStarts starts = move_items(p.pass, shared, p.rows);
  if (blockIdx.x == 0 && p.rows.sorted_keys == nullptr) p.rows.set_offsets(starts);
  p.rows.finish(starts.total);
}

struct PairSink {
  Pair* pairs;
  std::int32_t* assignment_row;

  __device__ void put(std::uint32_t position, std::int32_t expert, std::int32_t assignment) const {
    pairs[position] = Pair{expert, assignment};
  }
  __device__ void skip(std::int32_t assignment) const { assignment_row[assignment] = -1; }
};

template <typename Source>
struct PairPassParams {
  PassParams<Source> pass;
  PairSink sink;
  std::uint32_t* local_count;
};

// First of two digits.
template <typename Source>
__global__ void __launch_bounds__(kSortThreads, 1) move_to_pairs(const PairPassParams<Source> p) {
  ptx::begin_dependent();
  __shared__ TileShared shared;
  const DigitStarts starts = move_items(p.pass, shared, p.sink);
  if (blockIdx.x == 0 && threadIdx.x == 0) *p.local_count = starts.total;
}

struct FindParams {
  const std::uint32_t* sorted_keys;
  const std::uint32_t* local_count;
  std::int32_t* group_offsets;
  std::int64_t experts, max_rows;
};

// Offsets after two digits: the first row whose expert is not below e.
__global__ void __launch_bounds__(kThreads) find_offsets(const FindParams p) {
  ptx::begin_dependent();
  const std::int64_t rows = min64(*p.local_count, p.max_rows);
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
  for (std::int64_t e = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; e <= p.experts; e += step) {
    std::int64_t low = 0, high = rows;
    while (low < high) {
      const std::int64_t middle = low + (high - low) / 2;
      if (p.sorted_keys[middle] < e)
        low = middle + 1;
      else
        high = middle;
    }
    p.group_offsets[e] = static_cast<std::int32_t>(low);
  }
}

template <typename Id>
ggm_status_t sort_in_one_digit(const PassParams<IdSource<Id>>& pass, int blocks, const RowOutputs& rows, const Launch& launch) {
  GGM_TRY(launch_kernel("count_digits", count_digits<IdSource<Id>>, blocks, kSortThreads, 0, launch, pass));
  RowPassParams<IdSource<Id>> params{pass, rows};
  params.pass.source.faults = nullptr;  // counted once
  return launch_kernel("move_to_rows", move_to_rows<IdSource<Id>>, blocks, kSortThreads, sort_shared_bytes(pass.digit), launch,
                       params);
}

template <typename Id>
ggm_status_t sort_in_two_digits(const PassParams<IdSource<Id>>& low, Digit high, int blocks, const RouteScratch& scratch,
                                void* workspace, RowOutputs rows, const Launch& launch) {
  GGM_TRY(launch_kernel("count_digits", count_digits<IdSource<Id>>, blocks, kSortThreads, 0, launch, low));
  Pair* pairs = scratch.pairs.at<Pair>(workspace);
  std::uint32_t* local_count = scratch.local_count.at<std::uint32_t>(workspace);
  PairPassParams<IdSource<Id>> move{low, {pairs, rows.assignment_row}, local_count};
  move.pass.source.faults = nullptr;  // counted once
  GGM_TRY(launch_kernel("move_to_pairs", move_to_pairs<IdSource<Id>>, blocks, kSortThreads, sort_shared_bytes(low.digit),
                        launch, move));

  const PassParams<PairSource> pass{{pairs, local_count}, high, low.chunk, low.counts};
  GGM_TRY(launch_kernel("count_digits", count_digits<PairSource>, blocks, kSortThreads, 0, launch, pass));
  rows.sorted_keys = scratch.sorted_keys.at<std::uint32_t>(workspace);
  const RowPassParams<PairSource> last{pass, rows};
  GGM_TRY(launch_kernel("move_to_rows", move_to_rows<PairSource>, blocks, kSortThreads, sort_shared_bytes(high), launch, last));

  const FindParams find{rows.sorted_keys, local_count, rows.group_offsets, rows.experts, rows.max_rows};
  return launch_kernel("find_offsets", find_offsets, grid_size(launch, rows.experts + 1, kThreads), kThreads, 0, launch, find);
}

template <typename Id>
ggm_status_t sort_ids(const IdSource<Id>& source, const RouteScratch& scratch, void* workspace, const RowOutputs& rows,
                      const Launch& launch) {
  const DigitPlan plan = digit_plan(source.experts);
  const SortGrid grid = sort_grid(source.assignments, launch.multiprocessors);
  const PassParams<IdSource<Id>> pass{source, plan.digit[0], grid.chunk, scratch.digit_counts.at<std::uint32_t>(workspace)};
  if (plan.passes == 1) return sort_in_one_digit(pass, grid.blocks, rows, launch);
  return sort_in_two_digits(pass, plan.digit[1], grid.blocks, scratch, workspace, rows, launch);
}

RowOutputs row_outputs(const RowPointers& out, std::uint32_t* faults, std::int64_t experts, std::int64_t max_rows) {
  return {out.group_offsets, out.row_assignment, out.assignment_row, nullptr, faults, experts, max_rows};
}

template <typename Id>
ggm_status_t route_ids(const RouteProblem& problem, const RouteScratch& scratch, void* workspace, const RouteInputs& inputs,
                       const RowPointers& out, const Launch& launch) {
  IdSource<Id> source{};
  source.ids = static_cast<const Id*>(inputs.ids);
  source.expert_map = inputs.expert_map;
  source.num_tokens = inputs.num_tokens;
  source.faults = inputs.faults;
  source.tokens = problem.tokens;
  source.assignments = problem.assignments;
  source.ids_ld = problem.ids_ld;
  source.experts = problem.experts;
  source.experts_total = problem.experts_total;
  source.first_expert = problem.first_expert;
  source.top_k = static_cast<std::uint32_t>(problem.top_k);
  return sort_ids(source, scratch, workspace, row_outputs(out, inputs.faults, problem.experts, problem.max_rows), launch);
}

// Loads a kernel and lets it take the counts of the widest digit.
template <typename Params>
ggm_status_t load_sort_kernel(const char* name, void (*kernel)(Params)) {
  GGM_TRY(load_kernel(name, kernel));
  return cuda_status(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), cudaFuncAttributeMaxDynamicSharedMemorySize,
                                          static_cast<int>(kMostSortSharedBytes)),
                     name);
}

template <typename Id>
ggm_status_t load_id_kernels() {
  using Source = IdSource<Id>;
  GGM_TRY(load_kernel("count_digits", count_digits<Source>));
  GGM_TRY(load_sort_kernel("move_to_rows", move_to_rows<Source>));
  return load_sort_kernel("move_to_pairs", move_to_pairs<Source>);
}

}  // namespace

ggm_status_t route_rows(const RouteProblem& problem, const RouteScratch& scratch, void* workspace, const RouteInputs& inputs,
                        const RowPointers& out, const Launch& launch) {
  RowPointers sorted;  // the three arrays alone
  sorted.group_offsets = out.group_offsets;
  sorted.row_assignment = out.row_assignment;
  sorted.assignment_row = out.assignment_row;
  if (sort_in_one_block(problem.assignments, problem.experts))
    return route_in_one_launch(problem, inputs, RowWeights{}, nullptr, sorted, launch);
  if (problem.id_type == IndexType::int64) return route_ids<std::int64_t>(problem, scratch, workspace, inputs, out, launch);
  return route_ids<std::int32_t>(problem, scratch, workspace, inputs, out, launch);
}

ggm_status_t route_and_prepare(const RouteProblem& problem, const RouteScratch& scratch, void* workspace,
                               const RouteInputs& inputs, const RowWeights& weights, const TableRecipe* table,
                               const RowPointers& out, bool* table_made, const Launch& launch) {
  *table_made = false;
  const bool many_turns = out.row_turn != nullptr && problem.top_k > kMostTurnSlots;
  if (sort_in_one_block(problem.assignments, problem.experts) && !many_turns) {
    *table_made = table != nullptr;
    return route_in_one_launch(problem, inputs, weights, table, out, launch);
  }
  GGM_TRY(route_rows(problem, scratch, workspace, inputs, out, launch));
  return out.row_token != nullptr ? prepare_rows(problem, out, weights, launch) : GGM_STATUS_SUCCESS;
}

ggm_status_t load_route_kernels() {
  GGM_TRY(load_id_kernels<std::int32_t>());
  GGM_TRY(load_id_kernels<std::int64_t>());
  GGM_TRY(load_kernel("count_digits", count_digits<PairSource>));
  GGM_TRY(load_sort_kernel("move_to_rows", move_to_rows<PairSource>));
  return load_kernel("find_offsets", find_offsets);
}

}  // namespace ggm::cuda
