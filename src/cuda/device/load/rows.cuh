// Which memory row an operand's row is, and how its memory is aligned. Shared by all loaders.
#pragma once

#include "cuda/device/schedule/tile_claim.cuh"

namespace ggm::cuda {

// An operand of one tile as the loaders see it. It lives in shared memory: the registers of the main loop belong to the sums.
struct Operand {
  const char* base;  // element (0,0), or the whole tensor when rows are gathered
  std::int64_t ld_bytes;
  const std::int32_t* rows;          // memory row of each row of the group, negative: zeros. nullptr: rows lie in order
  const std::int32_t* valid;         // negative: the row reads as zeros. nullptr: all valid
  std::int32_t row0, row_end;        // rows of the tile, and the end of the group's rows
  std::int32_t column0, column_end;  // likewise along the contiguous direction
  std::int32_t alignment;            // bytes of the largest copy that every row allows: 16, 4 or the element's
  bool fast;                         // every chunk of 16 bytes is aligned and exists whole or not at all; ld_bytes < 2^31

  // Memory row of row `row` of the group (64 bits: a tile may reach beyond 2^31); -1 when it reads as zeros or lies behind the
  // group's end.
  __device__ __forceinline__ std::int32_t memory_row(std::int64_t row) const {
    if (row >= row_end) return -1;
    const bool invalid = valid != nullptr && __ldg(valid + row) < 0;
    const std::int32_t at = rows != nullptr ? __ldg(rows + row) : static_cast<std::int32_t>(row);
    return invalid || at < 0 ? -1 : at;
  }

  // `extent`: elements of the tile along the contiguous direction, 0 when that is K.
  __device__ __forceinline__ void find_alignment(int element_bytes, int extent) {
    const std::uint64_t bits = reinterpret_cast<std::uint64_t>(base) | static_cast<std::uint64_t>(ld_bytes);
    alignment = (bits & 15) == 0 ? 16 : (bits & 3) == 0 ? 4 : element_bytes;
    const std::int32_t left = column_end - column0;
    const bool whole = left % (16 / element_bytes) == 0 || (extent != 0 && left >= extent);
    fast = alignment == 16 && whole && ld_bytes <= 0x7fffffff;
  }
};

// row_valid speaks of A's sorted rows: the rows i of a contiguous A, the rows kk of a strided one. With a strided A the rows kk
// of a strided B are the same sorted rows; a B with an A of the other order is a weight and has no such rows.
template <Order a_order>
__device__ __forceinline__ Operand operand_a(const GemmCall& call, const Tile& tile, int element_bytes, int tile_m) {
  const GroupDesc& d = tile.desc;
  Operand o;
  o.base = static_cast<const char*>(d.a);
  o.ld_bytes = d.lda * element_bytes;
  o.rows = call.a_rows != nullptr ? call.a_rows + d.first_row : nullptr;
  o.valid = call.row_valid != nullptr ? call.row_valid + d.first_row : nullptr;
  constexpr bool contiguous = a_order == Order::inner_contiguous;
  o.row0 = contiguous ? tile.m0 : 0;
  o.row_end = contiguous ? d.m : d.k;
  o.column0 = contiguous ? 0 : tile.m0;
  o.column_end = contiguous ? d.k : d.m;
  o.find_alignment(element_bytes, contiguous ? 0 : tile_m);
  return o;
}

template <Order a_order, Order b_order>
__device__ __forceinline__ Operand operand_b(const GemmCall& call, const Tile& tile, int element_bytes, int tile_n) {
  const GroupDesc& d = tile.desc;
  Operand o;
  o.base = static_cast<const char*>(d.b);
  o.ld_bytes = d.ldb * element_bytes;
  o.rows = call.b_rows != nullptr ? call.b_rows + d.first_row : nullptr;
  constexpr bool contiguous = b_order == Order::inner_contiguous;
  constexpr bool sorted = !contiguous && a_order == Order::inner_strided;
  o.valid = sorted && call.row_valid != nullptr ? call.row_valid + d.first_row : nullptr;
  o.row0 = contiguous ? tile.n0 : 0;
  o.row_end = contiguous ? d.n : d.k;
  o.column0 = contiguous ? 0 : tile.n0;
  o.column_end = contiguous ? d.k : d.n;
  o.find_alignment(element_bytes, contiguous ? 0 : tile_n);
  return o;
}

// Factors of the rows kk of K in a weight gradient. A row that reads as zeros has factor 0 whatever memory says, else a NaN
// there would spoil the zeros.
struct ScaleRows {
  const float* scale;         // of the group's rows; nullptr: no scaling
  const std::int32_t* rows;   // of the operand that is scaled, as in Operand
  const std::int32_t* valid;  // likewise
  std::int32_t k;             // rows of the group

  __device__ __forceinline__ float factor(std::uint32_t row) const {
    const bool live = scale != nullptr && row < static_cast<std::uint32_t>(k) &&
                      (valid == nullptr || __ldg(valid + row) >= 0) && (rows == nullptr || __ldg(rows + row) >= 0);
    return live ? __ldg(scale + row) : 0.0f;
  }
};

// What the loaders of one tile read. In shared memory, at one fixed place: addresses of it cost no registers.
struct TileInputs {
  Operand a, b;
  ScaleRows scale;
};

// Makes the tile that was resolved into `next` the current one. Between two barriers; the work of thread 0.
template <Order a_order, Order b_order>
__device__ __forceinline__ void begin_tile(const GemmCall& call, const Tile& next, Tile& tile, int element_bytes, int tile_m,
                                           int tile_n, TileInputs& inputs) {
  if (threadIdx.x >= 32) return;
  __syncwarp();  // all lanes have written their part of `next`
  if (threadIdx.x != 0) return;
  tile = next;
  if (tile.group < 0) return;
  inputs.a = operand_a<a_order>(call, tile, element_bytes, tile_m);
  inputs.b = operand_b<a_order, b_order>(call, tile, element_bytes, tile_n);
  const Operand& scaled = call.scaled == GemmCall::Scale::b ? inputs.b : inputs.a;
  const float* scale = call.scaled != GemmCall::Scale::none ? call.scale + tile.desc.first_row : nullptr;
  inputs.scale = {scale, scaled.rows, scaled.valid, tile.desc.k};
}

}  // namespace ggm::cuda
