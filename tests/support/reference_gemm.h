// Plain references of ggm_grouped_gemm and of one general product. Operands are packed float64 vectors of already rounded
// values.
#pragma once

#include <cstdint>
#include <vector>

#include "support/reference_route.h"
#include "support/types.h"

namespace ggm_test {

// contract: rounds wherever ggm.h rounds; sums are taken exactly (float64), so with integers every bit is the library's.
// none: float64 throughout, what random data is measured against.
enum class Rounding { contract, none };

// out[m,n] = sum over k of a[m,k] * b[n,k], k ascending in float64. KM and KN read the operand as [k,m] and [k,n].
std::vector<double> product(std::int64_t m, std::int64_t n, std::int64_t k, const double* a, std::int32_t a_order,
                            const double* b, std::int32_t b_order);

// alpha * sum + beta * c as ggm.h rounds it; `in` decides the arithmetic (float64 or float32).
double scale_and_add(Rounding rounding, std::int32_t in, std::int32_t out, double alpha, double sum, double beta, double c);

// Inner product in the documented order of float32 partial sums (section 8 of ggm.h), or in float64 when `wide`.
double blocked_dot(const double* u, const double* v, std::int64_t n, bool wide);

struct GemmInput {
  ggm_grouped_gemm_problem_t problem = GGM_GROUPED_GEMM_PROBLEM_INIT;  // leading dimensions and strides are not looked at
  std::vector<std::int64_t> sizes, offsets, row_group;                 // those that the form has
  std::vector<double> a, b, c;  // packed; one matrix alone when the stride is GGM_STRIDE_SHARED
  std::vector<double> d;        // what was there before, for rows that stay
};

struct GemmResult {
  std::vector<double> d;  // packed, rounded to d_type under Rounding::contract
  Faults faults{};
};
GemmResult gemm_reference(const GemmInput& in, Rounding rounding);

// The groups of a contiguous or variable-K problem as ranges of rows, after clamping.
struct RowRange {
  std::int64_t begin = 0, end = 0;
};
std::vector<RowRange> group_ranges(const GemmInput& in, std::int64_t rows, Faults* faults);

}  // namespace ggm_test
