// One group of a grouped product as the kernels see it, whatever layout it came from: contiguous, masked, variable K, general.
// Descriptors are built on the device by a small kernel (src/cuda/gemm, or src/cuda/routing by the way) or by the host backend,
// then only read.
#pragma once

#include <cstdint>

namespace ggm {

struct GroupDesc {
  const void* a;  // element (0,0) of this group's operand, or the whole tensor's base when its rows are gathered
  const void* b;
  const void* c;  // nullptr: beta is 0
  void* d;
  std::int64_t lda, ldb, ldc, ldd;  // elements
  std::int32_t m, n, k;             // 0 is legal anywhere; a skipped group has m = 0
  std::int32_t first_row;           // where the group starts in the sorted rows: index into every per-row array
  std::int64_t group;               // its number; the table may have groups in another order
};
static_assert(sizeof(GroupDesc) == 88, "GroupDesc is booked per group in the workspace; keep it without padding");

}  // namespace ggm
