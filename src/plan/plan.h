// What will be done: kernel choice, combine, workspace regions. Pure: problem and device in, plan out; tested on faked devices.
// A plan is a plain value of fixed size, cheap to make, so nothing is cached and no call allocates.
// Regions that a backend does not use are not booked (bytes == 0).
#pragma once

#include "plan/group.h"
#include "plan/kernel_table.h"
#include "plan/ledger.h"
#include "problem/device.h"
#include "problem/problem.h"

namespace ggm {

// Column width of a turn counter of the ordered combine: a tile of that many columns of one token.
inline constexpr int kTurnColumns = 128;
// Columns of one partial sum of an inner product (section 8 of ggm.h).
inline constexpr int kDotColumns = 64;

// Scratch of the sort that makes routing arrays; on CUDA see plan/route_sort.h.
struct RouteScratch {
  Region digit_counts;  // uint32 [blocks, bins] (CUDA; nothing when one block does it all)
  Region pairs;         // expert and assignment, int32 each [assignments]: between the two digits (CUDA, with two digits)
  Region sorted_keys;   // uint32 [max_rows]: expert of each row (likewise)
  Region local_count;   // uint32 [1]: assignments that have a local expert (likewise)
  Region counts;        // int32 [experts + 1] (host)
};

// Routing arrays that the library itself made or has checked: everything downstream may trust them.
struct RowArrays {
  Region group_offsets;   // int32 [experts+1], monotone, 0 .. max_rows
  Region row_assignment;  // int32 [max_rows], -1: unused row
  Region assignment_row;  // int32 [assignments], -1: no row
  Region row_token;       // int32 [max_rows], -1: unused row
  Region row_weight;      // float or double [max_rows]: the row's routing weight; not booked without weights
  Region row_turn;        // int32 [max_rows]: how many earlier rows its token has; booked for the ordered combine
};

// Group descriptors and tiles of one product on CUDA.
struct GroupTable {
  Region groups;        // GroupDesc [groups]
  Region tile_offsets;  // int64 [groups+1]: tiles before each group
  Region tile_counter;  // uint64 [1]: next tile to claim
};

// The kernels of one product; -1 on the host. Which of them runs depends on what a call asks of its results and on how the
// operands are aligned; all give the same bits.
struct ProductKernels {
  int portable = -1;   // index into kGemmKernels: serves always
  int wgmma = -1;      // index into kWgmmaKernels: where the copy engine can read the operands; -1: none
  int tableless = -1;  // index into kTablelessKernels, before both: where besides results are only rounded; -1: none
};

struct RoutePlan {
  std::int64_t workspace_bytes = 0;
  RouteScratch scratch;
  int multiprocessors = 0;  // that the call may use
};

struct PermutePlan {
  std::int64_t workspace_bytes = 0;
  RowArrays rows;
  int multiprocessors = 0;
};

struct GemmPlan {
  std::int64_t workspace_bytes = 0;
  ProductKernels kernels;
  GroupTable table;
  RowArrays rows;        // row_group form only: rows sorted by group, one assignment a row
  RouteScratch scratch;  // likewise
  Region row_used;       // uint8 [rows], starts_sizes form of a contiguous layout: rows that some group covers
  Region host_scratch;   // packing buffers of the host's threads
  int multiprocessors = 0;
};

// How the rows of each token are summed into a result [tokens, columns], and what that needs. Nothing where the result is
// grouped.
struct CombinePlan {
  bool ordered = false;  // as the caller asked, resolved
  // Ordered, CUDA: rows of so many columns at a time are stored in the bytes of `sums` and summed; 0: rows add in turn.
  std::int64_t part_columns = 0;
  Region products;  // [max_rows, columns] of the product type: two-step
  Region sums;      // accumulator type [tokens, columns]: ordered, where the result is of another type
  Region turns;     // uint16 [tokens, ceil(columns / kTurnColumns)]: ordered (CUDA)

  bool in_turn() const { return ordered && part_columns == 0; }
  std::int64_t columns_at_a_time(std::int64_t all) const { return part_columns > 0 ? part_columns : all; }
};

// What a kernel needs that relays rows of x through a window of memory (CUDA, capability 9.0); nothing is booked for others.
struct RelayPlan {
  Region window;  // [window_rows + kRelayTail, ld_bytes]
  Region counts;  // uint32 [2][chunks], zeroed by each call, and the uint64 [1] that goes before them
  std::int64_t window_rows = 0, ld_bytes = 0;
  std::int64_t chunks = 0;     // of kRelayChunk rows each, of max_rows
  int pieces = 1;              // that a row is copied in
  int batch_rows = 1;          // that a block copies at a time
  std::int64_t part_rows = 0;  // of a group, that go through all of its columns before the next ones
};

struct MoeForwardPlan {
  std::int64_t workspace_bytes = 0;
  ProductKernels kernels;
  CombinePlan combine;  // of y
  RowArrays rows;
  RouteScratch scratch;
  GroupTable table;
  RelayPlan relay;
  Region host_scratch;
  int multiprocessors = 0;
};

struct MoeBackwardPlan {
  std::int64_t workspace_bytes = 0;
  ProductKernels dx_kernels;        // product dy @ W, for dx and d_routing_weights
  ProductKernels d_weight_kernels;  // product over rows
  CombinePlan combine;              // of dx
  RowArrays rows;
  RouteScratch scratch;
  GroupTable dx_table, d_weight_table;
  Region dots;       // accumulator type [max_rows, ceil(in_features / kDotColumns)]: partial sums of d_routing_weights
  Region sorted_dy;  // [max_rows, out_features] of dy_type: rows of dy in sorted order. Empty: the product dy @ W gathers them
  // [max_rows, out_features] of dy_type: rows of dy times their routing weights, for d_weight. May share the bytes of
  // `combine.products` or `sorted_dy`, which are done with by then. Empty: the product scales the rows itself.
  Region scaled_dy;
  // [max_rows, in_features] of x_type: rows of x in sorted order, for a kernel that cannot gather rows of K, likewise; and with
  // dots_of_sorted_x for the inner products, in bytes of its own.
  Region sorted_x;
  bool dots_of_sorted_x = false;
  Region host_scratch;
  int multiprocessors = 0;
};

// The row_group form sorts rows by group: a routing of rows() tokens with one slot each. Without groups the array may be
// absent: then no token is real, so none of it is read.
RouteProblem routing_of_rows(const GemmProblem& problem);

// Each is the support check too: GGM_STATUS_UNSUPPORTED names every kernel that was considered and why it was rejected.
ggm_status_t make_plan(const RouteProblem& problem, const Device& device, RoutePlan* plan);
ggm_status_t make_plan(const PermuteProblem& problem, const Device& device, PermutePlan* plan);
ggm_status_t make_plan(const GemmProblem& problem, const Device& device, GemmPlan* plan);
ggm_status_t make_plan(const GemmArrayProblem& problem, const Device& device, GemmPlan* plan);
ggm_status_t make_plan(const MoeProblem& problem, const Device& device, MoeForwardPlan* plan);
ggm_status_t make_plan(const MoeProblem& problem, const Device& device, MoeBackwardPlan* plan);

}  // namespace ggm
