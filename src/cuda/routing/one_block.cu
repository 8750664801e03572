// Few ids, one block, one launch: the rows, what is known of each row, and the table of the product that follows. A stable
// counting sort by the whole expert (tile_sort.cuh), all between the ids and the last stores in shared memory.
//
// NOTE: this kernel is latency and nothing else. Loads start together, before anything waits; the block has three barriers;
// what is a quotient became a multiplication on the host; the parameters that are needed late are read early. And as each
// instruction runs about once, short code counts more than few steps.
#include <cuda_fp16.h>

#include "base/status.h"
#include "cuda/device/ptx/dependent.cuh"
#include "cuda/device/schedule/write_words.cuh"
#include "cuda/routing/kernels.h"
#include "cuda/routing/tile_sort.cuh"
#include "cuda/runtime/faults.cuh"
#include "cuda/runtime/launch.cuh"
#include "plan/clamp.h"

namespace ggm::cuda {
namespace {

struct OneBlockParams {
  const void* ids;
  const std::int32_t* expert_map;
  const std::int32_t* num_tokens;
  std::uint32_t* faults;
  const void* weights;
  std::int64_t ids_gap, weights_gap;  // elements between two tokens
  std::int32_t tokens, assignments, experts, experts_total, first_expert, max_rows, top_k;
  std::uint32_t token_factor;  // token of an assignment: see token_of
  Type weight_type;
  OneBlock block;
  RowPointers out;
  TableRecipe recipe;  // without pointers: no table
};

// assignment / top_k for both up to 4,096: the factor is floor(2^31 / top_k) + 1.
constexpr std::uint32_t token_factor(std::int64_t top_k) {
  return static_cast<std::uint32_t>((std::int64_t{1} << 31) / top_k + 1);
}
__device__ __forceinline__ std::uint32_t token_of(const OneBlockParams& p, std::uint32_t assignment) {
  return __umulhi(2 * assignment, p.token_factor);
}

// Arrays in shared memory, at the places of plan/route_sort.h.
struct OneBlockShared {
  std::uint32_t* entries;
  unsigned short *first, *assignment_of_row, *row_of_assignment;
  std::uint32_t* weight_of_row;  // bits of float

  __device__ OneBlockShared(std::uint32_t* words, const OneBlock& block)
      : entries(words),
        first(at<unsigned short>(words, block.first)),
        assignment_of_row(at<unsigned short>(words, block.assignment_of_row)),
        row_of_assignment(at<unsigned short>(words, block.row_of_assignment)),
        weight_of_row(at<std::uint32_t>(words, block.weight_of_row)) {}

 private:
  template <typename T>
  static __device__ T* at(std::uint32_t* words, int offset) {
    return reinterpret_cast<T*>(reinterpret_cast<char*>(words) + offset);
  }
};

__device__ __forceinline__ bool is_8_bytes(Type type) { return type == Type::float64; }

// The ids of this thread's items, and their routing weights as they lie in memory (those of 8 bytes are read by the row).
template <typename Id, int rounds>
__device__ __forceinline__ void load_items(const OneBlockParams& p, std::uint32_t real, Id (&ids)[rounds],
                                           std::uint32_t (&weights)[rounds]) {
  const bool weighted = p.out.row_weight != nullptr && !is_8_bytes(p.weight_type);
#pragma unroll
  for (int i = 0; i < rounds; ++i) {
    const auto at = static_cast<std::uint32_t>(tile_item(threadIdx.x, i, rounds));
    ids[i] = -1;
    weights[i] = 0;
    if (at >= real) continue;
    const std::int64_t token = token_of(p, at);
    ids[i] = static_cast<const Id*>(p.ids)[at + token * p.ids_gap];
    if (!weighted) continue;
    const std::int64_t place = at + token * p.weights_gap;
    if (p.weight_type == Type::float32)
      weights[i] = static_cast<const std::uint32_t*>(p.weights)[place];
    else
      weights[i] = static_cast<const unsigned short*>(p.weights)[place];
  }
}

// Exact.
__device__ __forceinline__ std::uint32_t float_bits(std::uint32_t weight, Type type) {
  if (type == Type::bfloat16) return weight << 16;
  if (type == Type::float16) return __float_as_uint(__half2float(__ushort_as_half(static_cast<unsigned short>(weight))));
  return weight;
}

// Local experts of the items; gives the number of bad ids.
template <typename Id, int rounds>
__device__ __forceinline__ std::uint32_t find_experts(const OneBlockParams& p, const Id (&ids)[rounds],
                                                      TileItems<rounds>& items) {
  constexpr std::int32_t kNone = -1, kBad = -2;
  const auto total = static_cast<std::uint32_t>(p.experts_total), experts = static_cast<std::uint32_t>(p.experts);
  std::int32_t found[rounds];
#pragma unroll
  for (int i = 0; i < rounds; ++i) {
    const std::int32_t id = narrow_id(ids[i]);
    if (static_cast<std::uint32_t>(id) >= total)
      found[i] = id == -1 ? kNone : kBad;
    else if (p.expert_map != nullptr)
      found[i] = p.expert_map[id];
    else
      found[i] = static_cast<std::uint32_t>(id - p.first_expert) < experts ? id - p.first_expert : kNone;
  }
  std::uint32_t bad = 0;
#pragma unroll
  for (int i = 0; i < rounds; ++i) {
    const int at = tile_item(threadIdx.x, i, rounds);
    const bool local = static_cast<std::uint32_t>(found[i]) < experts;
    bad += !local && found[i] != kNone;
    items.value[i] = at;
    items.key[i] = at >= p.assignments ? kOutside : local ? found[i] : kSkipped;
  }
  return bad;
}

// Rows, and tiles as units and ones (TileRule) in the high and the low half: sums of either stay in 16 bits, as there are at
// most 4,096 rows.
struct RowsAndTiles {
  std::uint32_t rows, tiles;
};
__device__ __forceinline__ std::uint32_t packed_tiles(const TileRule& rule, std::uint32_t rows) {
  const std::uint32_t tiles = rule.tiles(rows);
  return rule.units(tiles) << 16 | rule.ones(tiles);
}
__device__ __forceinline__ std::int64_t unpacked_tiles(const TileRule& rule, std::uint32_t tiles) {
  return std::int64_t{tiles >> 16} * rule.many + std::int64_t{tiles & 0xffff} * rule.one;
}

// A warp with experts knows where they begin among its own. What it has in all it adds here for each higher warp, so that no
// warp waits for another before the barrier that all pass. Integers: the order of the additions does not show.
constexpr int kExpertsOfWarp = 64, kMostExpertWarps = kDigitBins / kExpertsOfWarp;
struct ExpertSums {
  std::uint32_t rows[kMostExpertWarps + 1], tiles[kMostExpertWarps + 1];  // of lower warps; behind the last warp those of all
  std::uint32_t tiles_that_fit;                                           // where max_rows ends inside of an expert
};

// Before the barrier that is before place_experts.
__device__ __forceinline__ void clear_sums(const OneBlockParams& p, const OneBlockShared& shared, ExpertSums& sums) {
  const int thread = static_cast<int>(threadIdx.x);
  if (thread <= kMostExpertWarps) sums.rows[thread] = sums.tiles[thread] = 0;
  if (thread == 0) shared.first[p.block.digit.bins()] = 0;
}

// Turns the counts of one pair of experts, a column, into those of all earlier warps. Gives their sum.
__device__ __forceinline__ std::uint32_t scan_column(std::uint32_t* column, int warps, int row) {
  std::uint32_t sum = 0;
#pragma unroll 1
  for (int warp = 0; warp < warps; warp += kCountsAtOnce) {
    std::uint32_t counts[kCountsAtOnce];
#pragma unroll
    for (int i = 0; i < kCountsAtOnce; ++i) counts[i] = column[i * row];
#pragma unroll
    for (int i = 0; i < kCountsAtOnce; ++i) {
      column[i * row] = sum;
      sum += counts[i];
    }
    column += kCountsAtOnce * row;
  }
  return sum;
}

// Of the two experts of a thread.
struct TwoExperts {
  RowsAndTiles before;       // of all lower experts of the warp
  std::uint32_t even, odd;   // rows
  std::uint32_t even_tiles;  // packed
};

// By the warps that have experts: where the rows and tiles of each begin among those of the warp.
__device__ __forceinline__ TwoExperts place_experts(const OneBlockParams& p, const OneBlockShared& shared, ExpertSums& sums) {
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  const int pairs = p.block.digit.bins() / 2;
  const std::uint32_t counts =
      thread < pairs ? scan_column(shared.entries + thread, p.block.item_warps, count_entries(p.block.digit)) : 0;
  TwoExperts two;
  two.even = counts & 0xffff;
  two.odd = counts >> 16;
  two.even_tiles = packed_tiles(p.recipe.rule, two.even);
  const RowsAndTiles own = {two.even + two.odd, two.even_tiles + packed_tiles(p.recipe.rule, two.odd)};
  RowsAndTiles through = own;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const std::uint32_t rows = __shfl_up_sync(0xffffffffu, through.rows, step);
    const std::uint32_t tiles = __shfl_up_sync(0xffffffffu, through.tiles, step);
    through.rows += lane >= step ? rows : 0;
    through.tiles += lane >= step ? tiles : 0;
  }
  two.before = {through.rows - own.rows, through.tiles - own.tiles};
  const std::uint32_t all_rows = __shfl_sync(0xffffffffu, through.rows, 31);
  const std::uint32_t all_tiles = __shfl_sync(0xffffffffu, through.tiles, 31);
  if (lane > warp && lane <= p.block.expert_warps) {
    atomicAdd(&sums.rows[lane], all_rows);
    atomicAdd(&sums.tiles[lane], all_tiles);
  }
  // The second start lies at an odd expert, behind the experts where their number is odd. The pair behind the last is there
  // where one warp has more threads than pairs; else the start behind the experts is the one behind all warps, and 0 in
  // `first`.
  if (thread <= pairs)
    reinterpret_cast<std::uint32_t*>(shared.first)[thread] = two.before.rows | (two.before.rows + two.even) << 16;
  return two;
}

// From here on: behind the barrier after place_experts. Rows of lower experts, those that do not fit included.
__device__ __forceinline__ std::uint32_t rows_before(const OneBlockShared& shared, const ExpertSums& sums, int expert) {
  return shared.first[expert] + sums.rows[expert / kExpertsOfWarp];
}
__device__ __forceinline__ std::uint32_t used_rows(const OneBlockParams& p, const ExpertSums& sums) {
  return min(sums.rows[p.block.expert_warps], static_cast<std::uint32_t>(p.max_rows));
}
__device__ __forceinline__ RowsAndTiles add_lower_warps(const RowsAndTiles& before, const ExpertSums& sums) {
  const int warp = static_cast<int>(threadIdx.x) / 32;
  return {before.rows + sums.rows[warp], before.tiles + sums.tiles[warp]};
}

// Where rows are dropped: all tiles, which the one thread finds in whose experts the rows that fit end.
__device__ __forceinline__ void find_tiles_that_fit(const OneBlockParams& p, const TwoExperts& two, ExpertSums& sums) {
  const TileRule& rule = p.recipe.rule;
  const auto most = static_cast<std::uint32_t>(p.max_rows);
  const RowsAndTiles before = add_lower_warps(two.before, sums);
  const std::uint32_t middle = before.rows + two.even;
  if (before.rows > most || middle + two.odd <= most) return;
  sums.tiles_that_fit = before.tiles + (middle > most ? packed_tiles(rule, most - before.rows)
                                                      : two.even_tiles + packed_tiles(rule, most - middle));
}

// What the caller and the product read of the experts, and of the end behind them; behind the barrier after
// find_tiles_that_fit. By one warp more than there are with experts, because the end may lie behind the last of those.
__device__ __forceinline__ void store_experts(const OneBlockParams& p, const TwoExperts& two, const ExpertSums& sums) {
  const auto most = static_cast<std::uint32_t>(p.max_rows);
  const TableRecipe& recipe = p.recipe;
  RowsAndTiles before = add_lower_warps(two.before, sums);
  int place = 2 * static_cast<int>(threadIdx.x);
#pragma unroll 1
  for (const int behind = place + 2; place < behind && place <= p.experts; ++place) {
    const bool table = recipe.table.tile_offsets != nullptr, cut = before.rows > most;
    p.out.group_offsets[place] = static_cast<std::int32_t>(min(before.rows, most));
    if (table) recipe.table.tile_offsets[place] = unpacked_tiles(recipe.rule, cut ? sums.tiles_that_fit : before.tiles);
    if (place == p.experts) {
      if (table) *recipe.table.tile_counter = 0;
      if (cut) count_faults(p.faults, GGM_FAULT_ROWS_DROPPED, before.rows - most);
    }
    before.rows += two.even;
    before.tiles += two.even_tiles;
  }
}

// The items into their rows, which lie in shared memory until all are known: stores from place to place cost one multiprocessor
// a cycle for each item.
template <int rounds>
__device__ __forceinline__ void place_rows(const OneBlockParams& p, const OneBlockShared& shared, const ExpertSums& sums,
                                           const TileItems<rounds>& items, const std::uint32_t (&weights)[rounds]) {
  const unsigned short* earlier_warps = WarpCounts(shared.entries, p.block.digit).counts_of_this_warp();
#pragma unroll
  for (int i = 0; i < rounds; ++i) {
    const std::int32_t key = items.key[i], assignment = items.value[i];
    if (key == kOutside) continue;
    std::int32_t row = -1;
    if (key >= 0) {
      const std::uint32_t position = rows_before(shared, sums, key) + earlier_warps[key] + items.rank[i];
      if (position < static_cast<std::uint32_t>(p.max_rows)) {
        row = static_cast<std::int32_t>(position);
        shared.assignment_of_row[row] = static_cast<unsigned short>(assignment);
        if (p.out.row_weight != nullptr && !is_8_bytes(p.weight_type))
          shared.weight_of_row[row] = float_bits(weights[i], p.weight_type);
      }
    }
    p.out.assignment_row[assignment] = row;
    if (p.out.row_turn != nullptr) shared.row_of_assignment[assignment] = static_cast<unsigned short>(row);
  }
}

// How many rows of the token lie before the row; an assignment without a row has the largest number.
__device__ __forceinline__ std::int32_t turn_of(const unsigned short* rows_of_token, int top_k, int row) {
  std::int32_t turn = 0;
#pragma unroll 1
  for (int j = 0; j < top_k; ++j) turn += rows_of_token[j] < row;
  return turn;
}

__device__ __forceinline__ void write_rows(const OneBlockParams& p, const OneBlockShared& shared, const ExpertSums& sums) {
  const RowPointers& out = p.out;
  const int rows = static_cast<int>(used_rows(p, sums));
#pragma unroll 1
  for (int r = static_cast<int>(threadIdx.x); r < p.max_rows; r += static_cast<int>(blockDim.x)) {
    const bool used = r < rows;
    const std::int32_t assignment = used ? shared.assignment_of_row[r] : -1;
    out.row_assignment[r] = assignment;
    if (out.row_token == nullptr) continue;
    const std::uint32_t token = token_of(p, static_cast<std::uint32_t>(used ? assignment : 0));
    out.row_token[r] = used ? static_cast<std::int32_t>(token) : -1;
    if (out.row_turn != nullptr) out.row_turn[r] = used ? turn_of(shared.row_of_assignment + token * p.top_k, p.top_k, r) : 0;
    if (out.row_weight == nullptr) continue;
    if (is_8_bytes(p.weight_type))
      static_cast<double*>(out.row_weight)[r] =
          used ? static_cast<const double*>(p.weights)[assignment + std::int64_t{token} * p.weights_gap] : 0.0;
    else
      static_cast<std::uint32_t*>(out.row_weight)[r] = used ? shared.weight_of_row[r] : 0;
  }
}

template <typename Id, int rounds>
__global__ void __launch_bounds__(kSortThreads, 1) route_in_one_block(const __grid_constant__ OneBlockParams p) {
  ptx::begin_dependent();
  extern __shared__ std::uint32_t words[];
  __shared__ ExpertSums sums;
  const OneBlockShared shared(words, p.block);
  const WarpCounts warp_counts(words, p.block.digit);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const bool has_items = warp < p.block.item_warps, has_experts = warp < p.block.expert_warps;
  TileItems<rounds> items;
  std::uint32_t weights[rounds], bad = 0;
  TwoExperts two{};
  // Every thread, so that a bad num_tokens is counted also without assignments.
  const auto real = static_cast<std::uint32_t>(real_tokens(p.num_tokens, p.tokens, p.faults)) * p.top_k;
  if (has_items) {
    Id ids[rounds];
    load_items(p, real, ids, weights);
    clear_counts(p.block.digit, warp_counts);
    bad = find_experts(p, ids, items);
    rank_in_warp(items, p.block.digit, warp_counts);
  }
  clear_sums(p, shared, sums);
  const WordWriter writer(p.recipe);
  __syncthreads();
  if (has_experts) two = place_experts(p, shared, sums);
  __syncthreads();
  if (has_items) place_rows(p, shared, sums, items, weights);
  if (has_experts && p.max_rows < p.assignments) find_tiles_that_fit(p, two, sums);
  writer.write(p.recipe.table, p.recipe.group_count, [&](int expert) {
    const auto most = static_cast<std::uint32_t>(p.max_rows);
    const std::uint32_t start = min(rows_before(shared, sums, expert), most);
    const std::uint32_t size = min(rows_before(shared, sums, expert + 1), most) - start;
    return FoundGroup{start, size, expert, size > 0, true};
  });
  __syncthreads();
  if (warp <= p.block.expert_warps) store_experts(p, two, sums);
  write_rows(p, shared, sums);
  count_faults_of_warp(p.faults, GGM_FAULT_BAD_ID, bad);
}

using OneBlockKernel = void (*)(OneBlockParams);
template <typename Id>
OneBlockKernel kernel_for(int rounds) {
  return rounds == 1 ? route_in_one_block<Id, 1> : route_in_one_block<Id, kSortItems>;
}

}  // namespace

ggm_status_t route_in_one_launch(const RouteProblem& problem, const RouteInputs& inputs, const RowWeights& weights,
                                 const TableRecipe* table, const RowPointers& out, const Launch& launch) {
  OneBlockParams p{};
  p.ids = inputs.ids;
  p.expert_map = inputs.expert_map;
  p.num_tokens = inputs.num_tokens;
  p.faults = inputs.faults;
  p.weights = weights.data;
  p.ids_gap = problem.ids_ld - problem.top_k;
  p.weights_gap = weights.ld - problem.top_k;
  p.tokens = static_cast<std::int32_t>(problem.tokens);
  p.assignments = static_cast<std::int32_t>(problem.assignments);
  p.experts = static_cast<std::int32_t>(problem.experts);
  p.experts_total = static_cast<std::int32_t>(problem.experts_total);
  p.first_expert = static_cast<std::int32_t>(problem.first_expert);
  p.max_rows = static_cast<std::int32_t>(problem.max_rows);
  p.top_k = static_cast<std::int32_t>(problem.top_k);
  p.token_factor = token_factor(problem.top_k);
  p.weight_type = weights.type;
  p.block = one_block(problem.assignments, problem.experts, out.row_weight != nullptr && weights.type != Type::float64,
                      out.row_turn != nullptr);
  p.out = out;
  if (table != nullptr) p.recipe = *table;
  const OneBlockKernel kernel =
      problem.id_type == IndexType::int64 ? kernel_for<std::int64_t>(p.block.rounds) : kernel_for<std::int32_t>(p.block.rounds);
  return launch_kernel("route_in_one_block", kernel, 1, p.block.threads, static_cast<std::size_t>(p.block.shared_bytes), launch,
                       p);
}

ggm_status_t load_one_block_kernels() {
  for (const int rounds : {1, kSortItems})
    for (const OneBlockKernel kernel : {kernel_for<std::int32_t>(rounds), kernel_for<std::int64_t>(rounds)}) {
      GGM_TRY(load_kernel("route_in_one_block", kernel));
      GGM_TRY(cuda_status(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                               cudaFuncAttributeMaxDynamicSharedMemorySize, kMostOneBlockBytes),
                          "route_in_one_block"));
    }
  return GGM_STATUS_SUCCESS;
}

}  // namespace ggm::cuda
