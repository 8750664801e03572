// Bookings that several plans share.
#pragma once

#include "plan/plan.h"

namespace ggm {

// The arrays of a routing that the library made or checked. `weights`: a routing weight a row; `turns`: a turn a row.
RowArrays book_rows(const RouteProblem& routing, Type weight, bool turns, Ledger* ledger);

// Scratch of the sort that makes routing arrays.
RouteScratch book_sort(const RouteProblem& routing, const Device& device, Ledger* ledger);

// Descriptors, tile offsets and the tile counter; nothing on the host.
GroupTable book_groups(std::int64_t groups, const Device& device, Ledger* ledger);

// Packing buffers of the host's threads; nothing on CUDA.
Region book_host_scratch(Type input, const Device& device, Ledger* ledger);

// Multiprocessors (threads) that a call with this limit may use.
int limited_multiprocessors(const Device& device, int sm_limit);

// GGM_STATUS_OVERFLOW when the ledger's total does not fit, else stores it.
ggm_status_t close_ledger(const Ledger& ledger, std::int64_t* workspace_bytes);

}  // namespace ggm
