// Which memory row an operand's row is, and how its memory is aligned. Shared by all loaders.
#pragma once

#include <cstddef>

#include "cuda/device/ptx/cp_async.cuh"
#include "cuda/device/schedule/tile_claim.cuh"

namespace ggm::cuda {

// An operand of one tile as the loaders see it. It lives in shared memory: the registers of the main loop belong to the sums.
struct alignas(16) Operand {
  const char* base;  // element (0,0), or the whole tensor when rows are gathered
  std::int64_t ld_bytes;
  const std::int32_t* list;          // of each row of the group, negative: it reads as zeros. nullptr: all rows exist
  std::int32_t gathered;             // 1: the list has the memory rows; 0: rows lie in order
  std::int32_t row_end;              // end of the group's rows
  std::int32_t row0;                 // of the tile
  std::int32_t column0, column_end;  // likewise along the contiguous direction
  std::int32_t alignment;            // bytes of the largest copy that every row allows: 16, 4 or the element's
  bool fast;                         // every chunk of 16 bytes is aligned and exists whole or not at all; ld_bytes < 2^31

  // Memory row of row `row` of the group (64 bits: a tile may reach beyond 2^31); -1 when it reads as zeros or lies behind the
  // group's end.
  __device__ __forceinline__ std::int32_t memory_row(std::int64_t row) const {
    if (row >= row_end) return -1;
    const std::int32_t here = static_cast<std::int32_t>(row), entry = list != nullptr ? __ldg(list + row) : here;
    return entry >= 0 && gathered == 0 ? here : entry;
  }

  __device__ __forceinline__ void set_rows(const std::int32_t* rows, const std::int32_t* valid, std::int32_t first_row) {
    gathered = rows != nullptr;
    list = gathered ? rows : valid;
    if (list != nullptr) list += first_row;
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

// The parts of a fast operand that a loader needs in every step, by the operand's shared-memory address: one load each.
struct OperandRows {
  const std::int32_t* list;
  std::uint32_t gathered, end;
};

__device__ __forceinline__ std::uint32_t load_pitch(std::uint32_t operand) {
  return ptx::load_shared_word(operand + offsetof(Operand, ld_bytes));
}

__device__ __forceinline__ OperandRows load_rows(std::uint32_t operand) {
  static_assert(offsetof(Operand, list) == 16 && offsetof(Operand, gathered) == 24 && offsetof(Operand, row_end) == 28,
                "all come in one load");
  std::uint32_t words[4];
  ptx::load_shared_16(words, operand + 16);
  return {reinterpret_cast<const std::int32_t*>(std::uint64_t{words[1]} << 32 | words[0]), words[2], words[3]};
}

// row_valid speaks of A's sorted rows: the rows i of a contiguous A, the rows kk of a strided one. With a strided A the rows kk
// of a strided B are the same sorted rows; a B with an A of the other order is a weight and has no such rows.
template <Order a_order>
__device__ __forceinline__ Operand operand_a(const GemmCall& call, const Tile& tile, int element_bytes, int tile_m) {
  const GroupDesc& d = tile.desc;
  Operand o;
  o.base = static_cast<const char*>(d.a);
  o.ld_bytes = d.lda * element_bytes;
  o.set_rows(call.a_rows, call.row_valid, d.first_row);
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
  constexpr bool contiguous = b_order == Order::inner_contiguous;
  constexpr bool sorted = !contiguous && a_order == Order::inner_strided;
  o.set_rows(call.b_rows, sorted ? call.row_valid : nullptr, d.first_row);
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
  const float* scale;        // of the group's rows; nullptr: no scaling
  const std::int32_t* list;  // of the operand that is scaled, as in Operand
  std::int32_t k;            // rows of the group

  __device__ __forceinline__ float factor(std::uint32_t row) const {
    const bool live = scale != nullptr && row < static_cast<std::uint32_t>(k) && (list == nullptr || __ldg(list + row) >= 0);
    return live ? __ldg(scale + row) : 0.0f;
  }
};

// What the loaders of one tile read. In shared memory, at one fixed place: addresses of it cost no registers.
struct TileInputs {
  Operand a, b;
  ScaleRows scale;
};

// The inputs of a tile that exists; the work of one thread.
template <Order a_order, Order b_order>
__device__ __forceinline__ void find_inputs(const GemmCall& call, const Tile& tile, int element_bytes, int tile_m, int tile_n,
                                            TileInputs& inputs) {
  inputs.a = operand_a<a_order>(call, tile, element_bytes, tile_m);
  inputs.b = operand_b<a_order, b_order>(call, tile, element_bytes, tile_n);
  const Operand& scaled = call.scaled == GemmCall::Scale::b ? inputs.b : inputs.a;
  const float* scale = call.scaled != GemmCall::Scale::none ? call.scale + tile.desc.first_row : nullptr;
  inputs.scale = {scale, scaled.list, tile.desc.k};
}

}  // namespace ggm::cuda
