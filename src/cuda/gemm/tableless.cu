// 16-bit products of few rows in one launch. A block has some columns of the weights of one group and all of K: it finds its
// group from the sizes, streams the weights through shared memory, and stores. So nothing is launched before it, and nothing
// is waited for but one load of the sizes and the weights themselves.
//
// The weights are the 16 rows of mma.sync, rows of the group its 8 columns, or several times 8. Each sum is one chain of k16
// steps in ascending order, as in every other kernel, so the bits are the same.
#include <cuda_runtime.h>

#include "base/status.h"
#include "cuda/device/epilogue/values.cuh"
#include "cuda/device/load/mma_loader.cuh"
#include "cuda/device/mma/warp_tile.cuh"
#include "cuda/device/ptx/dependent.cuh"
#include "cuda/gemm/few_ids.cuh"
#include "cuda/gemm/tableless.h"
#include "cuda/runtime/faults.cuh"
#include "cuda/runtime/launch.cuh"
#include "plan/tableless_table.h"

namespace ggm::cuda {
namespace {

constexpr int kStep = kTablelessStep;
constexpr std::int64_t kChunk = 2;  // columns of blocks side by side: measured, docs/kernels-tried.md
static_assert(kTablelessGroups == 32 * LaneGroups::kMost, "every lane of a warp has some groups");

struct TablelessCall {
  GroupBounds bounds;
  FewIds ids;           // in place of the bounds, if any
  std::int32_t tiles;   // the most tiles of rows that there can be
  std::int32_t chunks;  // of columns, along z; blocks behind them have the rest
  bool clear_unused;
  std::uint32_t* faults;
  const char *a, *b;
  std::int64_t lda_bytes, ldb_bytes, group_bytes;
  const std::int32_t *a_rows, *row_valid;  // as in GemmCall
  void* d;
  std::int64_t ldd;
  Type d_type, product_type;  // a sum is rounded to the second, if any, then to the first
  std::int32_t n, k;
};

template <int kernel>
struct Shape {
  static constexpr TablelessKernel row = kTablelessKernels[kernel];
  static constexpr int columns = row.columns, rows = row.rows, stages = row.stages, threads = 32 * row.warps;
  struct Stage {
    alignas(128) char weights[columns * kStep * 2];
    alignas(128) char rows[Shape::rows * kStep * 2];
  };
  static constexpr std::uint32_t stage_bytes = sizeof(Stage), rows_at = offsetof(Stage, rows);
  static_assert(columns == 16 * row.warps, "a warp has one row tile of mma.sync");
  static_assert(sizeof(Stage) * stages == row.shared_bytes, "shared_bytes of the table");
};

// An aligned operand whose rows end with a whole chunk.
__device__ __forceinline__ Operand operand(const char* base, std::int64_t ld_bytes) {
  Operand o{};
  o.base = base;
  o.ld_bytes = ld_bytes;
  o.alignment = kChunkBytes;
  o.fast = true;
  return o;
}

template <Order order>
__device__ __forceinline__ Operand weights_of(const TablelessCall& call, int group, int column) {
  constexpr bool contiguous = order == Order::inner_contiguous;
  Operand o = operand(call.b + group * call.group_bytes, call.ldb_bytes);
  o.row0 = contiguous ? column : 0;
  o.row_end = contiguous ? call.n : call.k;
  o.column0 = contiguous ? 0 : column;
  o.column_end = contiguous ? call.k : call.n;
  return o;
}

__device__ __forceinline__ Operand rows_of(const TablelessCall& call, const GroupTile& tile) {
  Operand o = operand(call.a + (call.a_rows != nullptr ? 0 : tile.start * call.lda_bytes), call.lda_bytes);
  o.set_rows(call.a_rows, call.row_valid, tile.start);
  o.row0 = tile.row0;
  o.row_end = tile.size;
  o.column_end = call.k;
  return o;
}

// 16 columns of the weights times the rows of a tile.
template <int kernel, typename Element, Order order>
class Sums {
 public:
  // One step; `live`: its steps of 16 that lie before the end of K. Those behind are left out, as everywhere.
  __device__ __forceinline__ void add(std::uint32_t stage, int live) {
    std::uint32_t weights[kSteps][4];
#pragma unroll
    for (int s = 0; s < kSteps; ++s) ptx::ldmatrix_x4<order == Order::inner_strided>(weights[s], weights_.at(stage, s, 0));
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
      std::uint32_t rows[kSteps / 2][4];  // of two steps of 16
#pragma unroll
      for (int s = 0; s < kSteps / 2; ++s)
        ptx::ldmatrix_x4<false>(rows[s], (stage + Of::rows_at + part * kPartBytes + rows_) ^ s * 4 * kChunkBytes);
#pragma unroll
      for (int s = 0; s < kSteps; ++s)
        if (s < live) ptx::mma_16x8x16<Element>(values_[part], weights[s], rows[s / 2][s % 2 * 2], rows[s / 2][s % 2 * 2 + 1]);
    }
  }

  __device__ __forceinline__ void store(const TablelessCall& call, const GroupTile& tile, int column0) const {
#pragma unroll
    for (int part = 0; part < kParts; ++part)
#pragma unroll
      for (int e = 0; e < 4; ++e) {  // ptx/mma.cuh has the places
        const int row = tile.row0 + part * 8 + lane() % 4 * 2 + e % 2, column = column0 + warp() * 16 + lane() / 4 + e / 2 * 8;
        if (row < tile.size && column < call.n)
          store_value(call.d, std::int64_t{tile.start + row} * call.ldd + column, call.d_type,
                      round_value(values_[part][e], call.product_type));
      }
  }

 private:
  using Of = Shape<kernel>;
  static constexpr int kSteps = kStep / 16, kParts = Of::rows / 8, kChunksARow = kStep / 8;
  static constexpr int kPartBytes = 8 * kStep * 2;

  static __device__ __forceinline__ int lane() { return static_cast<int>(threadIdx.x) % 32; }
  static __device__ __forceinline__ int warp() { return static_cast<int>(threadIdx.x) / 32; }

  FragmentAddress<Of::columns, kStep, order> weights_{warp() * 16, lane() / 8 % 2, lane() / 16};
  std::uint32_t rows_ = static_cast<std::uint32_t>(swizzled_offset<kChunksARow>(lane() % 8, lane() / 8));
  float values_[kParts][4] = {};
};

// `tokens`: of the tile's rows, where they were found by ids.
template <int kernel, typename Element, Order order, bool by_ids>
__device__ __forceinline__ void multiply(const TablelessCall& call, const GroupTile& tile, int column, std::uint32_t stages,
                                         const std::int32_t* tokens) {
  using Of = Shape<kernel>;
  using Weights = MmaCopies<Of::columns, kStep, Of::threads, order, true>;
  using Rows = MmaCopies<Of::rows, kStep, Of::threads, Order::inner_contiguous>;
  MmaLoader<true, false, Weights> weights(weights_of<order>(call, tile.group, column), nullptr, nullptr);
  const Operand tile_rows = rows_of(call, tile);
  MmaLoader<true, false, Rows> rows(tile_rows, [&](int row) {
    const int in_group = tile.row0 + row;
    if (!by_ids) return tile_rows.memory_row(in_group);
    if (in_group >= tile.size) return -1;
    return call.a_rows != nullptr ? tokens[row] : in_group;
  });
  const auto copy = [](auto& loader, std::uint32_t to, int count) {
    loader.begin_step();
#pragma unroll
    for (int i = 0; i < count; ++i) loader.copy(to, i, 0);
    loader.end_step();
    loader.end_round(1);
  };
  const auto issue = [&](int stage) {
    const std::uint32_t to = stages + stage * Of::stage_bytes;
    copy(weights, to, Weights::kCount);
    copy(rows, to + Of::rows_at, Rows::kCount);
    ptx::cp_async_commit();
  };

#pragma unroll 1
  for (int s = 0; s < Of::stages - 1; ++s) issue(s);
  Sums<kernel, Element, order> sums;
  int stage = 0;
#pragma unroll 1
  for (int k = 0; k < call.k; k += kStep) {
    ptx::cp_async_wait<Of::stages - 2>();
    __syncthreads();  // this stage is there for all, and all have read the one before
    issue(stage == 0 ? Of::stages - 1 : stage - 1);
    sums.add(stages + stage * Of::stage_bytes, (call.k - k + 15) / 16);
    stage = stage + 1 == Of::stages ? 0 : stage + 1;
  }
  ptx::cp_async_wait<0>();  // of zeros behind the end of K: none may come into the memory of the next block
  sums.store(call, tile, column);
}

// What belongs to no group: faults in what the groups say, and zeros.
template <int columns>
__device__ __forceinline__ void finish_rest(const TablelessCall& call, const LaneGroups& groups, int column0) {
  if (column0 == 0 && threadIdx.x < 32)
    count_faults_of_warp(call.faults, call.bounds.source == RowSource::sizes ? GGM_FAULT_SIZE_CLAMPED : GGM_FAULT_BAD_ROUTING,
                         groups.bad());
  if (!call.clear_unused) return;
  const int column = column0 + static_cast<int>(threadIdx.x) % columns;
  if (column >= call.n) return;
  for (int row = static_cast<int>(threadIdx.x) / columns; row < call.bounds.rows; row += static_cast<int>(blockDim.x) / columns)
    if (groups.outside(static_cast<std::uint32_t>(row)))
      store_value(call.d, std::int64_t{row} * call.ldd + column, call.d_type, 0.0f);
}

template <int kernel, typename Element, Order order, bool by_ids>
__global__ void __launch_bounds__(Shape<kernel>::threads, Shape<kernel>::row.blocks)
    gemm_tableless(const __grid_constant__ TablelessCall call) {
  ptx::begin_dependent();
  using Of = Shape<kernel>;
  extern __shared__ __align__(128) char stages[];
  // Blocks come to the card along x first, then y, then z: a chunk of columns of one tile of rows, the same of the next tile,
  // and the next chunk. So tiles of one group share its weights in L2, and numbers without a tile lie among those that have
  // one.
  const int chunk = static_cast<int>(blockIdx.z), number = static_cast<int>(blockIdx.y);
  const auto column_of = [](int chunk) { return static_cast<int>(chunk * gridDim.x + blockIdx.x) * Of::columns; };
  const int column = column_of(chunk);
  const std::uint32_t to = ptx::shared_address(stages);
  if constexpr (by_ids) {
    __shared__ std::int32_t tokens_of_warps[Of::row.warps][Of::rows];
    std::int32_t* tokens = tokens_of_warps[threadIdx.x / 32];
    const LaneIds ids(call.ids);
    if (threadIdx.x < 32 && (blockIdx.x | blockIdx.y | blockIdx.z) == 0) ids.store_rows(call.ids);
    const GroupTile tile = ids.tile<Of::rows>(number, tokens);
    if (tile.size > 0 && column < call.n) multiply<kernel, Element, order, by_ids>(call, tile, column, to, tokens);
  } else {
    const LaneGroups groups(call.bounds);
    if (chunk >= call.chunks)
      return finish_rest<Of::columns>(call, groups, column_of((chunk - call.chunks) * call.tiles + number));
    const GroupTile tile = groups.tile<Of::rows>(number);
    if (tile.size > 0 && column < call.n) multiply<kernel, Element, order, by_ids>(call, tile, column, to, nullptr);
  }
}

using Kernel = void (*)(TablelessCall);
template <int kernel, typename Element, bool by_ids>
Kernel kernel_of(Order order) {
  return order == Order::inner_contiguous ? gemm_tableless<kernel, Element, Order::inner_contiguous, by_ids>
                                          : gemm_tableless<kernel, Element, Order::inner_strided, by_ids>;
}
template <int kernel, typename Element>
Kernel kernel_of(Order order, bool by_ids) {
  return by_ids ? kernel_of<kernel, Element, true>(order) : kernel_of<kernel, Element, false>(order);
}
template <int kernel = 0>
Kernel find_kernel(int wanted, Type type, Order order, bool by_ids) {
  if constexpr (kernel < kTablelessKernelCount) {
    if (wanted != kernel) return find_kernel<kernel + 1>(wanted, type, order, by_ids);
    return type == Type::bfloat16 ? kernel_of<kernel, __nv_bfloat16>(order, by_ids) : kernel_of<kernel, __half>(order, by_ids);
  } else {
    return nullptr;
  }
}

}  // namespace

const char* tableless_obstacle(const GroupBuild& build, const GemmCall& call) {
  const Epilogue& e = call.epilogue;
  if (build.source == RowSource::masked || build.source == RowSource::starts_sizes) return "groups do not follow each other";
  if (build.rows_are_k || build.skip_without != nullptr) return "K runs over the rows";
  if (e.kind != EpilogueKind::store || e.bias != nullptr || e.use_alpha || e.use_beta || e.add_to != nullptr ||
      e.row_weight != nullptr || e.dots != nullptr)
    return "results need more than roundings";
  if (e.d_rows != nullptr || !call.all_rows_stored()) return "rows of the result are listed";
  const std::int64_t bytes = bytes_of(call.type);
  if (build.k > kTablelessMostInner || build.a.ld * bytes > kTablelessMostInner || build.b.ld * bytes > kTablelessMostInner)
    return "more than 32 bits hold";
  return nullptr;
}

ggm_status_t launch_tableless(int kernel, const GroupBuild& build, const GemmCall& call, const Launch& launch) {
  const TablelessKernel& row = kTablelessKernels[kernel];
  const bool sizes = build.source == RowSource::sizes;
  TablelessCall c{};
  c.bounds.source = build.source;
  c.bounds.index_type = build.source == RowSource::row_offsets ? IndexType::int32 : build.index_type;
  c.bounds.values = sizes ? build.sizes : build.offsets;
  c.bounds.groups = static_cast<std::int32_t>(build.group_count);
  c.bounds.rows = static_cast<std::int32_t>(build.rows);
  c.bounds.a_lane = static_cast<std::int32_t>(ceil_div(build.group_count, 32));
  c.ids = build.ids;
  const std::int64_t tiles = most_tiles(row, build.group_count, build.rows), columns = ceil_div(build.n, row.columns);
  const std::int64_t chunk = min64(columns, kChunk), chunks = ceil_div(columns, chunk);
  c.tiles = static_cast<std::int32_t>(tiles);
  c.chunks = static_cast<std::int32_t>(chunks);
  c.clear_unused = build.clear_unused;
  c.faults = build.faults;
  c.a = static_cast<const char*>(build.a.base);
  c.b = static_cast<const char*>(build.b.base);
  c.lda_bytes = build.a.ld * bytes_of(call.type);
  c.ldb_bytes = build.b.ld * bytes_of(call.type);
  c.group_bytes = build.b.group_bytes;
  c.a_rows = call.a_rows;
  c.row_valid = call.row_valid;
  c.d = const_cast<void*>(build.d.base);
  c.ldd = build.d.ld;
  c.d_type = call.epilogue.d_type;
  c.product_type = call.epilogue.product_type;
  c.n = static_cast<std::int32_t>(build.n);
  c.k = static_cast<std::int32_t>(build.k);
  const bool by_ids = build.ids.ids != nullptr, rest = !by_ids && (build.faults != nullptr || build.clear_unused);
  const std::int64_t rest_chunks = rest ? ceil_div(columns, chunk * tiles) : 0;
  cudaLaunchAttribute attribute{};
  cudaLaunchConfig_t config{};
  config.gridDim =
      dim3(static_cast<unsigned>(chunk), static_cast<unsigned>(tiles), static_cast<unsigned>(chunks + rest_chunks));
  config.blockDim = dim3(static_cast<unsigned>(32 * row.warps));
  config.dynamicSmemBytes = static_cast<std::size_t>(row.shared_bytes);
  config.stream = launch.stream;
  config.attrs = &attribute;
  config.numAttrs = add_dependent(launch, 0, &attribute);
  void* arguments[] = {&c};
  const auto* function = reinterpret_cast<const void*>(find_kernel(kernel, call.type, call.b_order, by_ids));
  return cuda_status(cudaLaunchKernelExC(&config, function, arguments), row.name);
}

ggm_status_t load_tableless_kernels(const Device& device) {
  if (device.capability < kTablelessCapability) return GGM_STATUS_SUCCESS;
  for (int i = 0; i < kTablelessKernelCount; ++i)
    for (const Type type : {Type::bfloat16, Type::float16})
      for (const Order order : {Order::inner_contiguous, Order::inner_strided})
        for (const bool by_ids : {false, true}) {
          const TablelessKernel& row = kTablelessKernels[i];
          if (device.shared_memory_bytes < row.shared_bytes) continue;
          const Kernel kernel = find_kernel(i, type, order, by_ids);
          GGM_TRY(load_kernel(row.name, kernel));
          GGM_TRY(cuda_status(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                                   cudaFuncAttributeMaxDynamicSharedMemorySize, row.shared_bytes),
                              row.name));
        }
  return GGM_STATUS_SUCCESS;
}

}  // namespace ggm::cuda
