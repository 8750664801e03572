// One call of ggm_grouped_gemm, as data, like moe_case.h.
#pragma once

#include "cases/case.h"
#include "support/reference_gemm.h"

namespace ggm_test::cases {

struct GemmCase {
  std::int32_t layout = GGM_LAYOUT_CONTIGUOUS, group_form = GGM_GROUPS_SIZES, index_type = GGM_INDEX_INT32;
  std::int32_t b_order = GGM_ORDER_NK;  // ignored by variable K
  std::int32_t type = F32, d_type = 0, c_type = 0;
  std::uint32_t flags = 0;
  std::int64_t groups = 0, m = 0, n = 0, k = 0;
  std::int64_t lda = 0, ldb = 0, ldc = 0, ldd = 0, stride_a = 0, stride_b = 0, stride_c = 0, stride_d = 0;
  double alpha = 0, beta = 0;
  Ids sizes, offsets, row_group;  // as group_form asks
  Values a;                       // contiguous [m,k], masked [groups,m,k] (shared: [1,m,k]), variable K [k,m]
  Values b;                       // [groups,n,k] whatever b_order is (shared: [1,n,k]); variable K [k,n]
  Values c;                       // shaped as D; empty: none
  bool c_is_d = false;            // C and D are one buffer

  std::int32_t type_of_d() const { return d_type ? d_type : type; }
};

// A = P, B = Q (variable K: B = P2). `rows` may exceed the sum of the sizes.
GemmCase contiguous(std::int32_t type, const Ids& sizes, std::int64_t rows, std::int64_t n, std::int64_t k);
GemmCase masked(std::int32_t type, const Ids& sizes, std::int64_t max_m, std::int64_t n, std::int64_t k);
GemmCase variable_k(std::int32_t type, const Ids& sizes, std::int64_t rows, std::int64_t m, std::int64_t n);
GemmCase tag_contiguous(std::int32_t type, const Ids& sizes, std::int64_t features);

// The tensors of one case on a backend, like MoeCall. `gemm` must outlive it.
class GemmCall {
 public:
  GemmCall(const Handle& handle, const GemmCase& gemm, const CallOptions& options = {});

  Values run();
  void upload();

  ggm_grouped_gemm_problem_t problem;
  ggm_grouped_gemm_tensors_t tensors = GGM_GROUPED_GEMM_TENSORS_INIT;
  Tensor* d = nullptr;

 private:
  CallOptions options_;
  Scene scene_;
  std::vector<Tensor*> all_;
};

Values grouped_gemm(const Handle& handle, const GemmCase& gemm, const CallOptions& options = {});

// Elements that the library must leave alone are NaN, as the poison that a run starts with decodes.
Values expected_gemm(const GemmCase& gemm, Rounding rounding = Rounding::contract);
void require_gemm(const Handle& handle, const GemmCase& gemm, const CallOptions& options = {});

std::int64_t sum_of(const Ids& sizes);

}  // namespace ggm_test::cases
