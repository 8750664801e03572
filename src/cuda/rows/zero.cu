// Zeros: unused rows of an output, and regions of the workspace.
#include "cuda/device/ptx/dependent.cuh"
#include "cuda/rows/element.cuh"
#include "cuda/rows/kernels.h"
#include "cuda/rows/rows.h"
#include "cuda/runtime/launch.cuh"

namespace ggm::cuda {
namespace {

struct ZeroParams {
  ZeroRows call;
  int threads_per_row;
  bool vectors;
};

// Zeroes one row with the threads that share it. Every element type is a multiple of two bytes.
__device__ void zero_row(char* row, std::int64_t bytes, bool vectors, int lane, int threads) {
  const std::int64_t pieces = vectors ? bytes / 16 : 0;
  for (std::int64_t c = lane; c < pieces; c += threads) reinterpret_cast<uint4*>(row)[c] = uint4{0, 0, 0, 0};
  for (std::int64_t i = pieces * 8 + lane; i < bytes / 2; i += threads) reinterpret_cast<std::uint16_t*>(row)[i] = 0;
}

__global__ void __launch_bounds__(kThreads) zero(const ZeroParams p) {
  ptx::begin_dependent();
  using Unused = ZeroRows::Unused;
  const ZeroRows& call = p.call;
  const int threads = p.threads_per_row, lane = threadIdx.x % threads;
  // Groups that follow each other use one range of rows: walk what is outside of it.
  std::int64_t begin = 0, end = 0;
  if (call.unused == Unused::outside && call.group_count > 0) {
    const GroupDesc& last = call.groups[call.group_count - 1];
    begin = call.groups[0].first_row;
    end = std::int64_t{last.first_row} + last.m;
  }
  const std::int64_t rows = call.rows - (end - begin);
  const std::int64_t step = std::int64_t{gridDim.x} * (kThreads / threads);
  for (std::int64_t i = std::int64_t{blockIdx.x} * (kThreads / threads) + threadIdx.x / threads; i < rows; i += step) {
    char* row = static_cast<char*>(call.out) + i * call.ld_bytes;
    bool unused = true;
    switch (call.unused) {
      case Unused::negative: unused = call.index[i] < 0; break;
      case Unused::unmarked: unused = call.used[i] == 0; break;
      case Unused::outside: row += i < begin ? 0 : (end - begin) * call.ld_bytes; break;
      case Unused::masked: {
        const std::int64_t group = i / call.rows_per_group, inside = i - group * call.rows_per_group;
        unused = inside >= call.groups[group].m;
        row = static_cast<char*>(call.out) + group * call.group_bytes + inside * call.ld_bytes;
        break;
      }
    }
    if (unused) zero_row(row, call.row_bytes, p.vectors, lane, threads);
  }
}

struct MarkParams {
  std::uint8_t* used;
  const GroupDesc* groups;
  std::int64_t group_count;
};

// One block a group. Groups may overlap: all write the same value.
__global__ void __launch_bounds__(kThreads) mark(const MarkParams p) {
  ptx::begin_dependent();
  for (std::int64_t g = blockIdx.x; g < p.group_count; g += gridDim.x) {
    std::uint8_t* used = p.used + p.groups[g].first_row;
    const std::int64_t rows = p.groups[g].m;
    for (std::int64_t i = threadIdx.x; i < rows; i += kThreads) used[i] = 1;
  }
}

struct ClearParams {
  uint4* memory;
  std::int64_t pieces;
};

__global__ void __launch_bounds__(kThreads) clear_pieces(const ClearParams p) {
  ptx::begin_dependent();
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < p.pieces; i += step)
    p.memory[i] = uint4{0, 0, 0, 0};
}

}  // namespace

ggm_status_t zero_rows(const ZeroRows& call, const Launch& launch) {
  if (call.rows == 0 || call.row_bytes == 0) return GGM_STATUS_SUCCESS;
  ZeroParams params{call, 1, false};
  params.vectors = vector_aligned(call.out, call.ld_bytes, 1) && call.group_bytes % 16 == 0;
  params.threads_per_row = threads_for(ceil_div(call.row_bytes, params.vectors ? 16 : 2), 4, 4, kThreads);
  return launch_kernel("zero_rows", zero, grid_size(launch, call.rows, kThreads / params.threads_per_row), kThreads, 0, launch,
                       params);
}

ggm_status_t mark_used_rows(std::uint8_t* used, std::int64_t rows, const GroupDesc* groups, std::int64_t group_count,
                            const Launch& launch) {
  if (rows == 0) return GGM_STATUS_SUCCESS;
  GGM_TRY(clear(used, rows, launch));
  if (group_count == 0) return GGM_STATUS_SUCCESS;
  return launch_kernel("mark_used_rows", mark, grid_size(launch, group_count, 1), kThreads, 0, launch,
                       MarkParams{used, groups, group_count});
}

// Regions begin at and are padded to GGM_WORKSPACE_ALIGNMENT, so whole pieces may be written.
ggm_status_t clear(void* memory, std::int64_t bytes, const Launch& launch) {
  if (bytes == 0) return GGM_STATUS_SUCCESS;
  const ClearParams params{static_cast<uint4*>(memory), ceil_div(bytes, 16)};
  return launch_kernel("clear", clear_pieces, grid_size(launch, params.pieces, kThreads), kThreads, 0, launch, params);
}

ggm_status_t load_zero_kernels() {
  GGM_TRY(load_kernel("zero_rows", zero));
  GGM_TRY(load_kernel("mark_used_rows", mark));
  return load_kernel("clear", clear_pieces);
}

}  // namespace ggm::cuda
