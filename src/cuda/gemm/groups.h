// Group descriptors and tile offsets of one product, built on the device from sizes that only the device knows.
// Called by run_product before the launch of the kernel: one small launch, unless the routing made the table by the way.
#pragma once

#include <cstdint>

#include "base/types.h"
#include "cuda/device/schedule/group_table.h"
#include "cuda/runtime/launch.h"
#include "plan/plan.h"

namespace ggm::cuda {

TablePointers table_pointers(const GroupTable& table, void* workspace);

// How the rows of group g are found.
enum class RowSource : std::int32_t {
  sizes,         // one after the other from row 0
  offsets,       // [groups+1]
  ends,          // [groups], the first group from row 0
  starts_sizes,  // first rows and sizes
  masked,        // sizes; every group has rows of its own
  row_offsets,   // int32 [groups+1] that the library itself made: trusted
};

// One operand: element (0,0) of group g lies at base + first row of g * row_bytes + g * group_bytes.
struct GroupOperand {
  const void* base = nullptr;
  std::int64_t row_bytes = 0;    // 0: gathered, or no rows of its own
  std::int64_t group_bytes = 0;  // 0: shared
  std::int64_t ld = 0;
};

// The ids of a routing so small that a product finds its rows itself, every one of which may have a row. What the sum of each
// token's rows reads is made by the way.
struct FewIds {
  static constexpr int kMost = 64;

  const void* ids = nullptr;  // [tokens, top_k], rows ids_ld elements apart; nullptr: no such ids
  IndexType id_type = IndexType::int32;
  const std::int32_t* expert_map = nullptr;
  const std::int32_t* num_tokens = nullptr;
  std::uint32_t* faults = nullptr;
  std::int64_t ids_ld = 0;
  std::int32_t tokens = 0, top_k = 1, experts = 0, experts_total = 0, first_expert = 0;

  std::int32_t* assignment_row = nullptr;  // [tokens * top_k]
  float* row_weight = nullptr;             // [tokens * top_k]; nullptr: there are no weights
  const void* weights = nullptr;           // [tokens, top_k], rows weights_ld elements apart
  Type weight_type = Type::none;
  std::int64_t weights_ld = 0;
};

struct GroupBuild {
  RowSource source = RowSource::sizes;
  IndexType index_type = IndexType::int32;
  const void* sizes = nullptr;
  const void* offsets = nullptr;
  std::uint32_t* faults = nullptr;
  std::int64_t group_count = 0;
  std::int64_t rows = 0;             // bound on the rows
  bool rows_are_k = false;           // the rows are the inner dimension; else m
  std::int64_t m = 0, n = 0, k = 0;  // those that are not the rows
  GroupOperand a, b, c, d;
  bool clear_unused = false;  // rows of D that no group has are to be zeros; done by the product if it needs no table
  FewIds ids;                 // in place of the offsets, where the product's kernel can find its rows by ids
  // When set, a group none of whose rows r has row_valid[r] >= 0 gets no tile at all: its D stays as it is.
  const std::int32_t* skip_without = nullptr;
};

// What a writer of the table needs of the groups, but for their rows and what skip_without says.
TableRecipe recipe_of(const GroupBuild& build, const TileGrid& grid, const TablePointers& table);

// Fills the table for a kernel and zeroes its tile counter.
ggm_status_t build_groups(const GroupBuild& build, const TileGrid& grid, const TablePointers& table, const Launch& launch);

// The general groups of ggm_grouped_gemm_array.
struct ArrayBuild {
  IndexType index_type = IndexType::int32;
  const void *m = nullptr, *n = nullptr, *k = nullptr;                        // nullptr: the bound
  const void *lda = nullptr, *ldb = nullptr, *ldc = nullptr, *ldd = nullptr;  // nullptr: packed
  const void* const* a = nullptr;
  const void* const* b = nullptr;
  const void* const* c = nullptr;  // nullptr: C is not read
  void* const* d = nullptr;
  std::uint32_t* faults = nullptr;
  std::int64_t group_count = 0, max_m = 0, max_n = 0, max_k = 0;
  Order a_order = Order::inner_contiguous, b_order = Order::inner_contiguous;
  int input_bytes = 0, c_bytes = 0, d_bytes = 0;
  int min_alignment = 0;
};
ggm_status_t build_array_groups(const ArrayBuild& build, const TileGrid& grid, const TablePointers& table,
                                const Launch& launch);

ggm_status_t load_group_kernels();

// Whether the kernels of this process wait themselves for the work before them (device/ptx/dependent.cuh), which code for
// architectures before 9.0 does not, also when a newer card runs it. All of them are compiled for the same ones; this asks one.
ggm_status_t kernels_wait(bool* wait);

}  // namespace ggm::cuda
