#include "plan/book.h"

#include "base/status.h"
#include "plan/host_config.h"
#include "plan/route_sort.h"

namespace ggm {

RowArrays book_rows(const RouteProblem& routing, Type weight, bool turns, Ledger* ledger) {
  RowArrays rows;
  rows.group_offsets = ledger->book(routing.experts + 1, 4);
  rows.row_assignment = ledger->book(routing.max_rows, 4);
  rows.assignment_row = ledger->book(routing.assignments, 4);
  rows.row_token = ledger->book(routing.max_rows, 4);
  if (weight != Type::none) rows.row_weight = ledger->book(routing.max_rows, bytes_of(accumulator_of(weight)));
  if (turns) rows.row_turn = ledger->book(routing.max_rows, 4);
  return rows;
}

RouteScratch book_sort(const RouteProblem& routing, const Device& device, Ledger* ledger) {
  RouteScratch scratch;
  if (device.backend == BackendKind::host) {
    scratch.counts = ledger->book(routing.experts + 1, 4);
    return scratch;
  }
  const SortScratch sort = sort_scratch(routing.assignments, routing.max_rows, routing.experts, device.multiprocessors);
  scratch.digit_counts = ledger->book(sort.digit_counts, 4);
  scratch.pairs = ledger->book(sort.pairs, 8);
  scratch.sorted_keys = ledger->book(sort.sorted_keys, 4);
  scratch.local_count = ledger->book(sort.local_count, 4);
  return scratch;
}

GroupTable book_groups(std::int64_t groups, const Device& device, Ledger* ledger) {
  GroupTable table;
  if (device.backend == BackendKind::host) return table;
  table.groups = ledger->book(groups, sizeof(GroupDesc));
  table.tile_offsets = ledger->book(groups + 1, 8);
  table.tile_counter = ledger->book(1, 8);
  return table;
}

Region book_host_scratch(Type input, const Device& device, Ledger* ledger) {
  if (device.backend != BackendKind::host) return {};
  return ledger->book(device.multiprocessors, host_scratch_bytes(bytes_of(accumulator_of(input))));
}

int limited_multiprocessors(const Device& device, int sm_limit) {
  return sm_limit > 0 && sm_limit < device.multiprocessors ? sm_limit : device.multiprocessors;
}

ggm_status_t close_ledger(const Ledger& ledger, std::int64_t* workspace_bytes) {
  if (ledger.overflow()) return fail(GGM_STATUS_OVERFLOW, "the workspace of this problem exceeds 2^63-1 bytes");
  *workspace_bytes = ledger.total();
  return GGM_STATUS_SUCCESS;
}

}  // namespace ggm
