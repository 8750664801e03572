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
#include "cuda/gemm/find_group.cuh"
#include "cuda/gemm/tableless.h"
#include "cuda/runtime/faults.cuh"
#include "cuda/runtime/launch.cuh"
#include "plan/tableless_table.h"

namespace ggm::cuda {
namespace {

constexpr int kStep = kTablelessStep;
static_assert(kTablelessGroups == 32 * LaneGroups::kMost, "every lane of a warp has some groups");

struct TablelessCall {
  GroupBounds bounds;
  std::int32_t tiles;  // blocks along y that multiply: the most tiles of rows that there can be. One more has the rest
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

template <int kernel, typename Element, Order order>
__device__ __forceinline__ void multiply(const TablelessCall& call, const GroupTile& tile, int column, std::uint32_t stages) {
  using Of = Shape<kernel>;
  using Weights = MmaCopies<Of::columns, kStep, Of::threads, order>;
  using Rows = MmaCopies<Of::rows, kStep, Of::threads, Order::inner_contiguous>;
  MmaLoader<true, false, Weights> weights(weights_of<order>(call, tile.group, column), nullptr, nullptr);
  MmaLoader<true, false, Rows> rows(rows_of(call, tile), nullptr, nullptr);
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
  if (blockIdx.x == 0 && threadIdx.x < 32)
    count_faults_of_warp(call.faults, call.bounds.source == RowSource::sizes ? GGM_FAULT_SIZE_CLAMPED : GGM_FAULT_BAD_ROUTING,
                         groups.bad());
  if (!call.clear_unused) return;
  const int column = column0 + static_cast<int>(threadIdx.x) % columns;
  if (column >= call.n) return;
  for (int row = static_cast<int>(threadIdx.x) / columns; row < call.bounds.rows; row += static_cast<int>(blockDim.x) / columns)
    if (groups.outside(static_cast<std::uint32_t>(row)))
      store_value(call.d, std::int64_t{row} * call.ldd + column, call.d_type, 0.0f);
}

template <int kernel, typename Element, Order order>
__global__ void __launch_bounds__(Shape<kernel>::threads, Shape<kernel>::row.blocks)
    gemm_tableless(const __grid_constant__ TablelessCall call) {
  ptx::begin_dependent();
  extern __shared__ __align__(128) char stages[];
  const int column = static_cast<int>(blockIdx.x) * Shape<kernel>::columns, number = static_cast<int>(blockIdx.y);
  const LaneGroups groups(call.bounds);
  if (number == call.tiles) return finish_rest<Shape<kernel>::columns>(call, groups, column);
  const GroupTile tile = groups.tile<Shape<kernel>::rows>(number);
  if (tile.size > 0) multiply<kernel, Element, order>(call, tile, column, ptx::shared_address(stages));
}

using Kernel = void (*)(TablelessCall);
template <int kernel, typename Element>
Kernel kernel_of(Order order) {
  return order == Order::inner_contiguous ? gemm_tableless<kernel, Element, Order::inner_contiguous>
                                          : gemm_tableless<kernel, Element, Order::inner_strided>;
}
template <int kernel = 0>
Kernel find_kernel(int wanted, Type type, Order order) {
  if constexpr (kernel < kTablelessKernelCount) {
    if (wanted != kernel) return find_kernel<kernel + 1>(wanted, type, order);
    return type == Type::bfloat16 ? kernel_of<kernel, __nv_bfloat16>(order) : kernel_of<kernel, __half>(order);
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
  // A group of r > 0 rows has 1 + (r - 1) / row.rows tiles, rounded down.
  const std::int64_t used = min64(build.rows, build.group_count);
  c.tiles = static_cast<std::int32_t>(used + (build.rows - used) / row.rows);
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
  const bool rest = build.faults != nullptr || build.clear_unused;
  cudaLaunchAttribute attribute{};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(ceil_div(build.n, row.columns)), static_cast<unsigned>(c.tiles + (rest ? 1 : 0)));
  config.blockDim = dim3(static_cast<unsigned>(32 * row.warps));
  config.dynamicSmemBytes = static_cast<std::size_t>(row.shared_bytes);
  config.stream = launch.stream;
  config.attrs = &attribute;
  config.numAttrs = add_dependent(launch, 0, &attribute);
  void* arguments[] = {&c};
  const auto* function = reinterpret_cast<const void*>(find_kernel(kernel, call.type, call.b_order));
  return cuda_status(cudaLaunchKernelExC(&config, function, arguments), row.name);
}

ggm_status_t load_tableless_kernels(const Device& device) {
  if (device.capability < kTablelessCapability) return GGM_STATUS_SUCCESS;
  for (int i = 0; i < kTablelessKernelCount; ++i)
    for (const Type type : {Type::bfloat16, Type::float16})
      for (const Order order : {Order::inner_contiguous, Order::inner_strided}) {
        const TablelessKernel& row = kTablelessKernels[i];
        if (device.shared_memory_bytes < row.shared_bytes) continue;
        const Kernel kernel = find_kernel(i, type, order);
        GGM_TRY(load_kernel(row.name, kernel));
        GGM_TRY(cuda_status(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                                 cudaFuncAttributeMaxDynamicSharedMemorySize, row.shared_bytes),
                            row.name));
      }
  return GGM_STATUS_SUCCESS;
}

}  // namespace ggm::cuda
