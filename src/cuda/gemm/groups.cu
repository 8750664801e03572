// One block builds the whole table, kScanThreads groups at a time: rows of each group, its descriptor, and the running number
// of tiles. Up to kFewGroups of them that are not general take few_groups.cu instead.
#include "cuda/gemm/groups.h"

#include "base/status.h"
#include "cuda/device/ptx/dependent.cuh"
#include "cuda/gemm/few_groups.h"
#include "cuda/gemm/group_rows.cuh"
#include "cuda/runtime/block_scan.cuh"
#include "cuda/runtime/faults.cuh"
#include "cuda/runtime/launch.cuh"

namespace ggm::cuda {
namespace {

struct Tiles {
  TablePointers table;
  TileGrid grid;
};

__device__ std::int64_t count_tiles(const TileGrid& grid, const GroupDesc& desc) {
  return cuda::count_tiles(grid, desc.m, desc.n);
}

struct BuildParams {
  GroupBuild build;
  Tiles tiles;
};

struct ArrayParams {
  ArrayBuild build;
  Tiles tiles;
};

struct RowFaults {
  std::uint32_t sizes = 0;    // GGM_FAULT_SIZE_CLAMPED
  std::uint32_t offsets = 0;  // GGM_FAULT_BAD_ROUTING
};

// First row and number of rows of the groups of one chunk; every thread of the block calls it. `carry` is what the earlier
// chunks sum up to: rows before this chunk, or the largest offset so far.
__device__ ClampedRange rows_of_group(const GroupBuild& build, std::int64_t group, bool active, std::int64_t* carry,
                                      ScanShared& shared, std::int64_t (&ends)[kScanThreads + 1], RowFaults* faults) {
  ClampedRange range{0, 0, false};
  switch (build.source) {
    case RowSource::sizes: {
      const std::int64_t size = active ? read_index(build.sizes, build.index_type, group) : 0;
      const std::int64_t wanted = clamp_between(size, 0, build.rows);
      std::int64_t total;
      const std::int64_t after = *carry + block_scan(wanted, Add{}, 0, shared, &total);
      range = clamp_size(size, after - wanted, build.rows);
      *carry += total;
      faults->sizes += active && range.changed;
      break;
    }
    case RowSource::offsets:
    case RowSource::ends: {
      // Ends of the groups; the first entry of `offsets` is the carry that the caller starts with.
      const std::int64_t value =
          active ? read_index(build.offsets, build.index_type, group + (build.source == RowSource::offsets)) : 0;
      std::int64_t largest;
      const std::int64_t scanned = block_scan(clamp_between(value, 0, build.rows), Max{}, 0, shared, &largest);
      const std::int64_t end = Max{}(*carry, scanned);
      ends[threadIdx.x + 1] = end;
      if (threadIdx.x == 0) ends[0] = *carry;
      __syncthreads();
      range.start = ends[threadIdx.x];
      range.size = end - range.start;
      __syncthreads();
      *carry = Max{}(*carry, largest);
      faults->offsets += active && end != value;
      break;
    }
    case RowSource::starts_sizes:
      if (active)
        range = clamp_range(read_index(build.offsets, build.index_type, group),
                            read_index(build.sizes, build.index_type, group), build.rows);
      faults->sizes += range.changed;
      break;
    case RowSource::masked:
      if (active) {
        const Clamped size = clamp_count(read_index(build.sizes, build.index_type, group), build.rows);
        range = {0, size.value, size.changed};
      }
      faults->sizes += range.changed;
      break;
    case RowSource::row_offsets:
      if (active) {
        const auto* offsets = static_cast<const std::int32_t*>(build.offsets);
        range.start = offsets[group];
        range.size = offsets[group + 1] - range.start;
      }
      break;
  }
  return range;
}

__device__ const char* operand_at(const GroupOperand& operand, std::int64_t group, std::int64_t first_row) {
  if (operand.base == nullptr) return nullptr;
  return static_cast<const char*>(operand.base) + first_row * operand.row_bytes + group * operand.group_bytes;
}

__device__ GroupDesc describe(const GroupBuild& build, std::int64_t group, const ClampedRange& range) {
  GroupDesc desc{};
  desc.a = operand_at(build.a, group, range.start);
  desc.b = operand_at(build.b, group, range.start);
  desc.c = operand_at(build.c, group, range.start);
  desc.d = const_cast<char*>(operand_at(build.d, group, range.start));
  desc.lda = build.a.ld;
  desc.ldb = build.b.ld;
  desc.ldc = build.c.ld;
  desc.ldd = build.d.ld;
  desc.m = static_cast<std::int32_t>(build.rows_are_k ? build.m : range.size);
  desc.n = static_cast<std::int32_t>(build.n);
  desc.k = static_cast<std::int32_t>(build.rows_are_k ? range.size : build.k);
  desc.first_row = static_cast<std::int32_t>(range.start);
  desc.group = group;
  return desc;
}

// The groups of a chunk, those without tiles with m = 0; every thread of the block calls it.
__device__ GroupDesc describe_used(const GroupBuild& build, std::int64_t group, bool active, const ClampedRange& range) {
  GroupDesc desc = active ? describe(build, group, range) : GroupDesc{};
  if (build.skip_without != nullptr && !any_valid(build.skip_without, range)) desc.m = 0;
  return desc;
}

// Stores the tiles before each group of one chunk of the table; every thread of the block calls it.
__device__ void number_tiles(const Tiles& tiles, const GroupDesc& desc, std::int64_t place, bool active,
                             std::int64_t* tiles_before, ScanShared& shared) {
  const std::int64_t count = active ? count_tiles(tiles.grid, desc) : 0;
  std::int64_t total;
  const std::int64_t after = *tiles_before + block_scan(count, Add{}, 0, shared, &total);
  if (active) tiles.table.tile_offsets[place] = after - count;
  *tiles_before += total;
}

// The same with their descriptors.
__device__ void store_chunk_of_groups(const Tiles& tiles, const GroupDesc& desc, std::int64_t group, bool active,
                                      std::int64_t* tiles_before, ScanShared& shared) {
  if (active) tiles.table.groups[group] = desc;
  number_tiles(tiles, desc, group, active, tiles_before, shared);
}

__device__ void close_table(const Tiles& tiles, std::int64_t groups, std::int64_t tile_count) {
  if (threadIdx.x != 0) return;
  tiles.table.tile_offsets[groups] = tile_count;
  *tiles.table.tile_counter = 0;
}

// visit(group, active, range) for all groups, a chunk at a time; every thread of the block calls it.
template <typename Visit>
__device__ void visit_groups(const GroupBuild& build, ScanShared& shared, std::int64_t (&ends)[kScanThreads + 1],
                             RowFaults* faults, const Visit& visit) {
  std::int64_t carry = 0;
  if (build.source == RowSource::offsets && build.group_count > 0) {
    const Clamped first = clamp_offset(read_index(build.offsets, build.index_type, 0), 0, build.rows);
    carry = first.value;
    faults->offsets += threadIdx.x == 0 && first.changed;
  }
  for (std::int64_t base = 0; base < build.group_count; base += kScanThreads) {
    const std::int64_t group = base + threadIdx.x;
    const bool active = group < build.group_count;
    visit(group, active, rows_of_group(build, group, active, &carry, shared, ends, faults));
  }
}

// Where K runs over the rows, a tile takes as long as its group has rows. So groups of more than twice the average come first
// in the table: one of them that began last would keep the others waiting.
__device__ std::int64_t store_long_groups_first(const BuildParams& p, ScanShared& shared,
                                                std::int64_t (&ends)[kScanThreads + 1], RowFaults* faults) {
  const GroupBuild& build = p.build;
  const auto is_long = [&](const ClampedRange& range) { return range.size > 2 * ceil_div(build.rows, build.group_count); };
  RowFaults counted_later;
  std::int64_t longs = 0;  // in all
  visit_groups(build, shared, ends, &counted_later, [&](std::int64_t, bool active, const ClampedRange& range) {
    std::int64_t here;
    block_scan(std::int64_t{active && is_long(range)}, Add{}, 0, shared, &here);
    longs += here;
  });
  std::int64_t longs_before = 0;  // this chunk
  visit_groups(build, shared, ends, faults, [&](std::int64_t group, bool active, const ClampedRange& range) {
    const bool first = active && is_long(range);
    std::int64_t here;
    const std::int64_t longs_up_to = longs_before + block_scan(std::int64_t{first}, Add{}, 0, shared, &here);
    longs_before += here;
    const GroupDesc desc = describe_used(build, group, active, range);
    if (active) p.tiles.table.groups[first ? longs_up_to - 1 : longs + group - longs_up_to] = desc;
  });
  __syncthreads();
  std::int64_t tile_count = 0;
  for (std::int64_t base = 0; base < build.group_count; base += kScanThreads) {
    const std::int64_t place = base + threadIdx.x;
    const bool active = place < build.group_count;
    number_tiles(p.tiles, active ? p.tiles.table.groups[place] : GroupDesc{}, place, active, &tile_count, shared);
  }
  return tile_count;
}

__global__ void __launch_bounds__(kScanThreads) build_table(const BuildParams p) {
  ptx::begin_dependent();
  __shared__ ScanShared shared;
  __shared__ std::int64_t ends[kScanThreads + 1];
  const GroupBuild& build = p.build;
  RowFaults faults;
  std::int64_t tile_count = 0;
  if (build.rows_are_k) {
    tile_count = store_long_groups_first(p, shared, ends, &faults);
  } else {
    visit_groups(build, shared, ends, &faults, [&](std::int64_t group, bool active, const ClampedRange& range) {
      store_chunk_of_groups(p.tiles, describe_used(build, group, active, range), group, active, &tile_count, shared);
    });
  }
  close_table(p.tiles, build.group_count, tile_count);
  count_faults_of_warp(build.faults, GGM_FAULT_SIZE_CLAMPED, faults.sizes);
  count_faults_of_warp(build.faults, GGM_FAULT_BAD_ROUTING, faults.offsets);
}

__device__ Clamped bounded(const void* values, IndexType type, std::int64_t group, std::int64_t bound) {
  return values == nullptr ? Clamped{bound, false} : clamp_count(read_index(values, type, group), bound);
}

__device__ std::int64_t leading_dimension(const void* values, IndexType type, std::int64_t group, std::int64_t packed) {
  return values == nullptr ? packed : read_index(values, type, group);
}

// Pointer and leading dimension keep the promised alignment, and the pointer that of its element.
__device__ bool keeps(const void* pointer, std::int64_t ld, int element_bytes, int promised) {
  const std::uint64_t address = reinterpret_cast<std::uint64_t>(pointer);
  if (address % element_bytes != 0) return false;
  return promised == 0 || (address % promised == 0 && static_cast<std::uint64_t>(ld) * element_bytes % promised == 0);
}

struct ArrayFaults {
  std::uint32_t sizes = 0, misaligned = 0;
};

__device__ GroupDesc describe_array_group(const ArrayBuild& build, std::int64_t g, ArrayFaults* faults) {
  const Clamped m = bounded(build.m, build.index_type, g, build.max_m);
  const Clamped n = bounded(build.n, build.index_type, g, build.max_n);
  const Clamped k = bounded(build.k, build.index_type, g, build.max_k);
  faults->sizes += m.changed || n.changed || k.changed;
  GroupDesc desc{};
  desc.group = g;
  if (m.value == 0 || n.value == 0) return desc;  // empty: no pointer is looked at
  desc.n = static_cast<std::int32_t>(n.value);
  desc.k = static_cast<std::int32_t>(k.value);
  const bool a_contiguous = build.a_order == Order::inner_contiguous, b_contiguous = build.b_order == Order::inner_contiguous;
  desc.lda = leading_dimension(build.lda, build.index_type, g, a_contiguous ? k.value : m.value);
  desc.ldb = leading_dimension(build.ldb, build.index_type, g, b_contiguous ? k.value : n.value);
  desc.ldc = leading_dimension(build.ldc, build.index_type, g, n.value);
  desc.ldd = leading_dimension(build.ldd, build.index_type, g, n.value);
  desc.d = build.d[g];
  bool aligned = keeps(desc.d, desc.ldd, build.d_bytes, build.min_alignment);
  if (build.c != nullptr) {
    desc.c = build.c[g];
    aligned &= keeps(desc.c, desc.ldc, build.c_bytes, build.min_alignment);
  }
  if (k.value > 0) {
    desc.a = build.a[g];
    desc.b = build.b[g];
    aligned &= keeps(desc.a, desc.lda, build.input_bytes, build.min_alignment);
    aligned &= keeps(desc.b, desc.ldb, build.input_bytes, build.min_alignment);
  }
  faults->misaligned += !aligned;
  desc.m = aligned ? static_cast<std::int32_t>(m.value) : 0;
  return desc;
}

__global__ void __launch_bounds__(kScanThreads) build_array_table(const ArrayParams p) {
  ptx::begin_dependent();
  __shared__ ScanShared shared;
  const ArrayBuild& build = p.build;
  ArrayFaults faults;
  std::int64_t tile_count = 0;
  for (std::int64_t base = 0; base < build.group_count; base += kScanThreads) {
    const std::int64_t group = base + threadIdx.x;
    const bool active = group < build.group_count;
    const GroupDesc desc = active ? describe_array_group(build, group, &faults) : GroupDesc{};
    store_chunk_of_groups(p.tiles, desc, group, active, &tile_count, shared);
  }
  close_table(p.tiles, build.group_count, tile_count);
  count_faults_of_warp(build.faults, GGM_FAULT_SIZE_CLAMPED, faults.sizes);
  count_faults_of_warp(build.faults, GGM_FAULT_MISALIGNED_GROUP, faults.misaligned);
}

}  // namespace

TablePointers table_pointers(const GroupTable& table, void* workspace) {
  return {table.groups.at<GroupDesc>(workspace), table.tile_offsets.at<std::int64_t>(workspace),
          table.tile_counter.at<unsigned long long>(workspace)};
}

namespace {

// A word of the first address and what a row and a group add.
void set_operand(DescriptorWords* words, std::size_t offset, const GroupOperand& operand) {
  if (operand.base == nullptr) return;
  words->base[offset / 8] = reinterpret_cast<std::uint64_t>(operand.base);
  words->by_row[offset / 8] = static_cast<std::uint64_t>(operand.row_bytes);
  words->by_group[offset / 8] = static_cast<std::uint64_t>(operand.group_bytes);
}

std::uint64_t two_halves(std::int64_t low, std::int64_t high) {
  return static_cast<std::uint64_t>(high) << 32 | static_cast<std::uint64_t>(low);
}

}  // namespace

TableRecipe recipe_of(const GroupBuild& build, const TileGrid& grid, const TablePointers& table) {
  TableRecipe recipe;
  recipe.table = table;
  recipe.group_count = static_cast<std::int32_t>(build.group_count);
  if (build.rows_are_k)
    recipe.rule.whole = count_tiles(grid, build.m, build.n);
  else
    recipe.rule = rule_of_rows(grid, build.n);
  DescriptorWords& words = recipe.words;
  set_operand(&words, offsetof(GroupDesc, a), build.a);
  set_operand(&words, offsetof(GroupDesc, b), build.b);
  set_operand(&words, offsetof(GroupDesc, c), build.c);
  set_operand(&words, offsetof(GroupDesc, d), build.d);
  words.base[offsetof(GroupDesc, lda) / 8] = static_cast<std::uint64_t>(build.a.ld);
  words.base[offsetof(GroupDesc, ldb) / 8] = static_cast<std::uint64_t>(build.b.ld);
  words.base[offsetof(GroupDesc, ldc) / 8] = static_cast<std::uint64_t>(build.c.ld);
  words.base[offsetof(GroupDesc, ldd) / 8] = static_cast<std::uint64_t>(build.d.ld);
  words.base[kWordOfM] = two_halves(build.rows_are_k ? build.m : 0, build.n);
  words.base[kWordOfK] = two_halves(build.rows_are_k ? 0 : build.k, 0);
  words.by_row[kWordOfK] = two_halves(0, 1);  // first_row
  words.by_group[offsetof(GroupDesc, group) / 8] = 1;
  words.size_word = build.rows_are_k ? kWordOfK : kWordOfM;
  return recipe;
}

ggm_status_t build_groups(const GroupBuild& build, const TileGrid& grid, const TablePointers& table, const Launch& launch) {
  if (build.group_count <= kFewGroups) return build_few_groups(build, recipe_of(build, grid, table), launch);
  return launch_kernel("build_groups", build_table, 1, kScanThreads, 0, launch, BuildParams{build, {table, grid}});
}

ggm_status_t build_array_groups(const ArrayBuild& build, const TileGrid& grid, const TablePointers& table,
                                const Launch& launch) {
  return launch_kernel("build_array_groups", build_array_table, 1, kScanThreads, 0, launch, ArrayParams{build, {table, grid}});
}

ggm_status_t load_group_kernels() {
  GGM_TRY(load_few_group_kernels());
  GGM_TRY(load_kernel("build_groups", build_table));
  return load_kernel("build_array_groups", build_array_table);
}

ggm_status_t kernels_wait(bool* wait) {
  cudaFuncAttributes attributes;
  GGM_TRY(cuda_status(cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(build_table)), "build_groups"));
  *wait = attributes.ptxVersion >= 90;
  return GGM_STATUS_SUCCESS;
}

}  // namespace ggm::cuda
