// One call of ggm_grouped_gemm_array, as data: the groups with their sizes, leading dimensions and values. All inputs lie in
// one guarded piece of memory and all outputs in another, each where the case puts it; every byte of the output piece that is
// no element of a D is checked.
#pragma once

#include "cases/case.h"
#include "support/reference_gemm.h"

namespace ggm_test::cases {

struct ArrayGroup {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t lda = 0, ldb = 0, ldc = 0, ldd = 0;  // 0: packed
  Values a, b, c;                                   // [m,k], [n,k], [m,n] whatever the orders are; c as the case's beta asks
  int same_a = -1, same_b = -1;                     // index of an earlier group whose operand this one uses
  enum Pointers { placed, null, one_past_the_end, inside_another } pointers = placed;  // for groups that have no elements
};

struct ArrayCase {
  std::int32_t type = F32, d_type = 0, index_type = GGM_INDEX_INT32;
  std::int32_t a_order = GGM_ORDER_MK, b_order = GGM_ORDER_NK;
  double alpha = 0, beta = 0;
  std::uint32_t flags = 0;
  std::vector<ArrayGroup> groups;
  std::vector<std::size_t> order;  // in which the groups lie in memory; empty: as they come
  std::int64_t gap = 0;            // elements between two operands; the first one lies `gap` elements behind a 4096-byte border

  std::int32_t type_of_d() const { return d_type ? d_type : type; }
};

// A = P and B = Q of the group's number.
ArrayGroup integer_group(std::int64_t number, std::int64_t m, std::int64_t n, std::int64_t k);

// D of each group, dense. Groups with a C must not have beta = 0.
std::vector<Values> grouped_gemm_array(const Handle& handle, const ArrayCase& array, const CallOptions& options = {});
std::vector<Values> expected_array(const ArrayCase& array);
void require_array(const Handle& handle, const ArrayCase& array, const CallOptions& options = {});

}  // namespace ggm_test::cases
