// Misuse of the problems of grouped_gemm and grouped_gemm_array.
#include "misuse.h"

namespace misuse {
namespace {

void append(std::vector<Row>& rows, const std::vector<Row>& table) { rows.insert(rows.end(), table.begin(), table.end()); }

void add_sizes(std::vector<Row>& rows) {
  constexpr Base b = Base::gemm, masked = Base::gemm_masked, variable = Base::gemm_variable;
  append(rows, {
                   SET(b, gemm, flags, 4, GGM_STATUS_INVALID_FLAGS, "0x4"),
                   SET(variable, gemm, flags, GGM_FLAG_KEEP_UNUSED_ROWS, GGM_STATUS_INVALID_FLAGS, "0x1"),
                   SET(b, gemm, groups, -1, GGM_STATUS_INVALID_VALUE, "0"),
                   SET(b, gemm, groups, 1048577, GGM_STATUS_LIMIT_EXCEEDED, "1048576"),
                   SET(Base::gemm_rows, gemm, groups, 65537, GGM_STATUS_LIMIT_EXCEEDED, "65536"),
                   SET(b, gemm, m, -1, GGM_STATUS_INVALID_VALUE, "0"),
                   SET(b, gemm, m, INT64_C(2147483648), GGM_STATUS_LIMIT_EXCEEDED, "2147483647"),
                   SET(masked, gemm, m, INT64_C(2147483648), GGM_STATUS_LIMIT_EXCEEDED, "2147483647"),
                   SET(b, gemm, n, -1, GGM_STATUS_INVALID_VALUE, "0"),
                   SET(b, gemm, n, INT64_C(2147483648), GGM_STATUS_LIMIT_EXCEEDED, "2147483647"),
                   SET(b, gemm, k, -1, GGM_STATUS_INVALID_VALUE, "0"),
                   SET(b, gemm, k, INT64_C(2147483648), GGM_STATUS_LIMIT_EXCEEDED, "2147483647"),
                   SET(variable, gemm, k, INT64_C(2147483648), GGM_STATUS_LIMIT_EXCEEDED, "2147483647"),
                   problem_row(b, "n", "packed weights overflow",
                               [](Call& c) {
                                 c.gemm.groups = 4096;
                                 c.gemm.n = c.gemm.k = INT64_C(2147483647);
                               },
                               GGM_STATUS_OVERFLOW, {"b", "4096", "2147483647"}),
               });
}

void add_strides(std::vector<Row>& rows) {
  constexpr Base b = Base::gemm, masked = Base::gemm_masked, variable = Base::gemm_variable;
  const std::string huge = std::to_string(kHuge);
  append(rows,
         {
             SET(b, gemm, lda, 7, GGM_STATUS_INVALID_VALUE, "8"),
             SET(b, gemm, lda, -1, GGM_STATUS_INVALID_VALUE, "8"),
             problem_row(b, "lda", "overflow", [](Call& c) { c.gemm.lda = kHuge; }, GGM_STATUS_OVERFLOW, {"a", huge}),
             SET(b, gemm, ldb, 7, GGM_STATUS_INVALID_VALUE, "8"),
             SET(variable, gemm, ldb, 7, GGM_STATUS_INVALID_VALUE, "8"),
             SET(b, gemm, ldb, -1, GGM_STATUS_INVALID_VALUE, "8"),
             problem_row(b, "ldb", "overflow", [](Call& c) { c.gemm.ldb = kHuge; }, GGM_STATUS_OVERFLOW, {"b"}),
             SET(b, gemm, ldc, 7, GGM_STATUS_INVALID_VALUE, "8"),
             SET(b, gemm, ldc, -1, GGM_STATUS_INVALID_VALUE, "8"),
             SET(Base::gemm_offsets, gemm, ldc, 8, GGM_STATUS_RESERVED_NOT_ZERO, "c_type"),
             problem_row(b, "ldc", "overflow", [](Call& c) { c.gemm.ldc = kHuge; }, GGM_STATUS_OVERFLOW, {"c", huge}),
             SET(b, gemm, ldd, 7, GGM_STATUS_INVALID_VALUE, "8"),
             SET(b, gemm, ldd, -1, GGM_STATUS_INVALID_VALUE, "8"),
             problem_row(b, "ldd", "overflow", [](Call& c) { c.gemm.ldd = kHuge; }, GGM_STATUS_OVERFLOW, {"d", huge}),
             SET(b, gemm, stride_a, 64, GGM_STATUS_RESERVED_NOT_ZERO, "masked"),
             SET(variable, gemm, stride_a, 64, GGM_STATUS_RESERVED_NOT_ZERO, "masked"),
             SET(masked, gemm, stride_a, -2, GGM_STATUS_INVALID_VALUE, "8"),
             SET(masked, gemm, stride_a, 7, GGM_STATUS_INVALID_VALUE, "8"),
             problem_row(masked, "stride_a", "overflow", [](Call& c) { c.gemm.stride_a = kHuge; }, GGM_STATUS_OVERFLOW,
                         {"a", huge}),
             SET(variable, gemm, stride_b, 64, GGM_STATUS_RESERVED_NOT_ZERO, "variable"),
             SET(b, gemm, stride_b, -2, GGM_STATUS_INVALID_VALUE, "8"),
             SET(b, gemm, stride_b, 7, GGM_STATUS_INVALID_VALUE, "8"),
             problem_row(b, "stride_b", "overflow", [](Call& c) { c.gemm.stride_b = kHuge; }, GGM_STATUS_OVERFLOW, {"b", huge}),
             SET(b, gemm, stride_c, 64, GGM_STATUS_RESERVED_NOT_ZERO, "contiguous"),
             SET(masked, gemm, stride_c, -2, GGM_STATUS_INVALID_VALUE, "8"),
             SET(masked, gemm, stride_c, 7, GGM_STATUS_INVALID_VALUE, "8"),
             problem_row(masked, "stride_c", "overflow", [](Call& c) { c.gemm.stride_c = kHuge; }, GGM_STATUS_OVERFLOW,
                         {"c", huge}),
             SET(b, gemm, stride_d, 64, GGM_STATUS_RESERVED_NOT_ZERO, "contiguous"),
             SET(masked, gemm, stride_d, GGM_STRIDE_SHARED, GGM_STATUS_INVALID_VALUE, "8"),
             SET(variable, gemm, stride_d, 7, GGM_STATUS_INVALID_VALUE, "8"),
             problem_row(masked, "stride_d", "overflow", [](Call& c) { c.gemm.stride_d = kHuge; }, GGM_STATUS_OVERFLOW,
                         {"d", huge}),
         });
}

void add_modes(std::vector<Row>& rows) {
  constexpr Base b = Base::gemm, masked = Base::gemm_masked, variable = Base::gemm_variable;
  append(rows, {
                   problem_row(b, "alpha", "given without its flag", [](Call& c) { c.gemm.alpha = 2.5; },
                               GGM_STATUS_RESERVED_NOT_ZERO, {"alpha", "2.5", "GGM_FLAG_ALPHA"}),
                   problem_row(Base::gemm_offsets, "beta", "without c_type", [](Call& c) { c.gemm.beta = 0.5; },
                               GGM_STATUS_TYPE_MISMATCH, {"beta", "0.5", "c_type"}),
                   SET(b, gemm, layout, 3, GGM_STATUS_INVALID_ENUM, "2"),
                   SET(b, gemm, layout, -1, GGM_STATUS_INVALID_ENUM),
                   SET(b, gemm, group_form, 5, GGM_STATUS_INVALID_ENUM, "4"),
                   SET(b, gemm, group_form, -1, GGM_STATUS_INVALID_ENUM),
                   SET(masked, gemm, group_form, GGM_GROUPS_OFFSETS, GGM_STATUS_UNSUPPORTED, "masked"),
                   SET(masked, gemm, group_form, GGM_GROUPS_ROW_GROUP, GGM_STATUS_UNSUPPORTED, "masked"),
                   SET(b, gemm, index_type, 3, GGM_STATUS_INVALID_ENUM, "2"),
                   SET(b, gemm, index_type, -1, GGM_STATUS_INVALID_ENUM),
                   SET(b, gemm, b_order, 0, GGM_STATUS_INVALID_ENUM, "required"),
                   SET(b, gemm, b_order, 3, GGM_STATUS_INVALID_ENUM, "2"),
                   SET(variable, gemm, b_order, GGM_ORDER_NK, GGM_STATUS_RESERVED_NOT_ZERO, "variable"),
                   SET(b, gemm, a_type, 0, GGM_STATUS_INVALID_ENUM, "required"),
                   SET(b, gemm, a_type, 5, GGM_STATUS_INVALID_ENUM, "4"),
                   SET(b, gemm, b_type, 0, GGM_STATUS_INVALID_ENUM, "required"),
                   SET(b, gemm, b_type, 5, GGM_STATUS_INVALID_ENUM, "4"),
                   SET(b, gemm, b_type, GGM_TYPE_BFLOAT16, GGM_STATUS_UNSUPPORTED, "bfloat16", "a_type"),
                   SET(b, gemm, c_type, 5, GGM_STATUS_INVALID_ENUM, "4"),
                   SET(b, gemm, c_type, GGM_TYPE_FLOAT64, GGM_STATUS_UNSUPPORTED, "float64"),
                   SET(b, gemm, d_type, 5, GGM_STATUS_INVALID_ENUM, "4"),
                   SET(b, gemm, d_type, GGM_TYPE_FLOAT64, GGM_STATUS_UNSUPPORTED, "float64"),
                   SET(b, gemm, d_type, GGM_TYPE_BFLOAT16, GGM_STATUS_UNSUPPORTED, "bfloat16"),
                   SET(b, gemm, compute_type, GGM_COMPUTE_TF32, GGM_STATUS_UNSUPPORTED, "TF32"),
                   SET(b, gemm, compute_type, GGM_COMPUTE_TF32X3, GGM_STATUS_UNSUPPORTED, "TF32"),
                   SET(b, gemm, compute_type, 3, GGM_STATUS_INVALID_ENUM, "2"),
                   SET(b, gemm, sm_limit, -1, GGM_STATUS_INVALID_VALUE, "0"),
               });
}

// Arrays that the group form does not use, and C.
void add_tensors(std::vector<Row>& rows) {
  append(rows, {
                   tensors_row(Base::gemm_offsets, "group_sizes", "given with offsets",
                               [](Call& c) { c.gemm_tensors.group_sizes = some_pointer(); }, GGM_STATUS_TYPE_MISMATCH,
                               {"group_sizes", "group_form"}),
                   tensors_row(Base::gemm, "group_offsets", "given with sizes",
                               [](Call& c) { c.gemm_tensors.group_offsets = some_pointer(); }, GGM_STATUS_TYPE_MISMATCH,
                               {"group_offsets", "group_form"}),
                   tensors_row(Base::gemm_masked, "row_group", "given with the masked layout",
                               [](Call& c) { c.gemm_tensors.row_group = some_pointer(); }, GGM_STATUS_TYPE_MISMATCH,
                               {"row_group", "group_form"}),
                   tensors_row(Base::gemm_offsets, "c", "given without a type",
                               [](Call& c) { c.gemm_tensors.c = some_pointer(); }, GGM_STATUS_TYPE_MISMATCH, {"c", "c_type"}),
                   tensors_row(Base::gemm, "c", "d shifted by one element",
                               [](Call& c) { c.gemm_tensors.c = static_cast<const float*>(c.gemm_tensors.d) + 1; },
                               GGM_STATUS_ALIASING, {"c", "d"}),
                   tensors_row(Base::gemm, "c", "d with another leading dimension",
                               [](Call& c) {
                                 c.gemm.ldd = 12;
                                 c.gemm_tensors.c = c.gemm_tensors.d;
                               },
                               GGM_STATUS_ALIASING, {"c", "d"}),
                   tensors_row(Base::gemm_masked, "c", "d with another stride",
                               [](Call& c) {
                                 c.gemm.stride_c = GGM_STRIDE_SHARED;
                                 c.gemm_tensors.c = c.gemm_tensors.d;
                               },
                               GGM_STATUS_ALIASING, {"c", "d"}),
               });
}

void add_array(std::vector<Row>& rows) {
  constexpr Base b = Base::gemm_array;
  append(rows, {
                   SET(b, array, flags, GGM_FLAG_KEEP_UNUSED_ROWS, GGM_STATUS_INVALID_FLAGS, "0x1"),
                   SET(b, array, groups, -1, GGM_STATUS_INVALID_VALUE, "0"),
                   SET(b, array, groups, 1048577, GGM_STATUS_LIMIT_EXCEEDED, "1048576"),
                   SET(b, array, max_m, -1, GGM_STATUS_INVALID_VALUE, "0"),
                   SET(b, array, max_m, INT64_C(2147483648), GGM_STATUS_LIMIT_EXCEEDED, "2147483647"),
                   SET(b, array, max_n, -1, GGM_STATUS_INVALID_VALUE, "0"),
                   SET(b, array, max_n, INT64_C(2147483648), GGM_STATUS_LIMIT_EXCEEDED, "2147483647"),
                   SET(b, array, max_k, -1, GGM_STATUS_INVALID_VALUE, "0"),
                   SET(b, array, max_k, INT64_C(2147483648), GGM_STATUS_LIMIT_EXCEEDED, "2147483647"),
                   problem_row(b, "alpha", "given without its flag", [](Call& c) { c.array.alpha = -1; },
                               GGM_STATUS_RESERVED_NOT_ZERO, {"alpha", "-1", "GGM_FLAG_ALPHA"}),
                   problem_row(b, "beta", "without c_type", [](Call& c) { c.array.c_type = 0; }, GGM_STATUS_TYPE_MISMATCH,
                               {"beta", "1", "c_type"}),
                   SET(b, array, index_type, 3, GGM_STATUS_INVALID_ENUM, "2"),
                   SET(b, array, a_order, 0, GGM_STATUS_INVALID_ENUM, "required"),
                   SET(b, array, a_order, 3, GGM_STATUS_INVALID_ENUM, "2"),
                   SET(b, array, b_order, 0, GGM_STATUS_INVALID_ENUM, "required"),
                   SET(b, array, b_order, -1, GGM_STATUS_INVALID_ENUM, "2"),
                   SET(b, array, a_type, 0, GGM_STATUS_INVALID_ENUM, "required"),
                   SET(b, array, a_type, 5, GGM_STATUS_INVALID_ENUM, "4"),
                   SET(b, array, b_type, 0, GGM_STATUS_INVALID_ENUM, "required"),
                   SET(b, array, b_type, GGM_TYPE_FLOAT16, GGM_STATUS_UNSUPPORTED, "float16", "a_type"),
                   SET(b, array, c_type, 5, GGM_STATUS_INVALID_ENUM, "4"),
                   SET(b, array, c_type, GGM_TYPE_FLOAT16, GGM_STATUS_UNSUPPORTED, "float16"),
                   SET(b, array, d_type, 5, GGM_STATUS_INVALID_ENUM, "4"),
                   SET(b, array, d_type, GGM_TYPE_FLOAT64, GGM_STATUS_UNSUPPORTED, "float64"),
                   SET(b, array, compute_type, GGM_COMPUTE_TF32, GGM_STATUS_UNSUPPORTED, "TF32"),
                   SET(b, array, compute_type, -1, GGM_STATUS_INVALID_ENUM, "2"),
                   SET(b, array, min_alignment, -1, GGM_STATUS_INVALID_VALUE, "256"),
                   SET(b, array, min_alignment, 24, GGM_STATUS_INVALID_VALUE, "power of two"),
                   SET(b, array, min_alignment, 512, GGM_STATUS_INVALID_VALUE, "256"),
                   SET(b, array, sm_limit, -1, GGM_STATUS_INVALID_VALUE, "0"),
                   tensors_row(b, "c", "given without a type",
                               [](Call& c) {
                                 c.array.c_type = 0;
                                 c.array.beta = 0;
                               },
                               GGM_STATUS_TYPE_MISMATCH, {"c", "c_type"}),
               });
}

}  // namespace

std::vector<Row> gemm_rows() {
  std::vector<Row> rows;
  add_sizes(rows);
  add_strides(rows);
  add_modes(rows);
  add_tensors(rows);
  add_array(rows);
  return rows;
}

}  // namespace misuse
