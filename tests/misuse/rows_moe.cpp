// Misuse of the problem of moe_forward and moe_backward.
#include "misuse.h"

namespace misuse {
namespace {

void append(std::vector<Row>& rows, const std::vector<Row>& table) { rows.insert(rows.end(), table.begin(), table.end()); }

const std::int32_t* array() { return static_cast<const std::int32_t*>(some_pointer()); }

// Wrong in both directions.
void add_sizes(std::vector<Row>& rows, Base b) {
  append(rows, {
                   SET(b, moe, flags, GGM_FLAG_ALPHA, GGM_STATUS_INVALID_FLAGS, "0x2"),
                   SET(b, moe, flags, 0x40, GGM_STATUS_INVALID_FLAGS, "0x40"),
                   SET(b, moe, tokens, -1, GGM_STATUS_INVALID_VALUE, "0"),
                   SET(b, moe, tokens, INT64_C(1073741824), GGM_STATUS_LIMIT_EXCEEDED, "2147483647"),
                   SET(b, moe, tokens, INT64_MAX, GGM_STATUS_OVERFLOW, "top_k"),
                   SET(b, moe, top_k, 0, GGM_STATUS_INVALID_VALUE, "1"),
                   SET(b, moe, top_k, 4097, GGM_STATUS_LIMIT_EXCEEDED, "4096"),
                   SET(b, moe, experts, 0, GGM_STATUS_INVALID_VALUE, "1"),
                   SET(b, moe, experts, 65537, GGM_STATUS_LIMIT_EXCEEDED, "65536"),
                   SET(b, moe, experts_total, -1, GGM_STATUS_INVALID_VALUE, "0"),
                   SET(b, moe, experts_total, 2, GGM_STATUS_INVALID_VALUE, "first_expert"),
                   SET(b, moe, first_expert, -1, GGM_STATUS_INVALID_VALUE, "0"),
                   problem_row(b, "first_expert", "beyond experts_total",
                               [](Call& c) {
                                 c.moe.experts_total = 4;
                                 c.moe.first_expert = 2;
                               },
                               GGM_STATUS_INVALID_VALUE, {"first_expert", "2", "experts_total", "4"}),
                   SET(b, moe, max_rows, -1, GGM_STATUS_INVALID_VALUE, "0"),
                   SET(b, moe, in_features, -1, GGM_STATUS_INVALID_VALUE, "0"),
                   SET(b, moe, in_features, INT64_C(2147483648), GGM_STATUS_LIMIT_EXCEEDED, "2147483647"),
                   SET(b, moe, out_features, -1, GGM_STATUS_INVALID_VALUE, "0"),
                   SET(b, moe, out_features, INT64_C(2147483648), GGM_STATUS_LIMIT_EXCEEDED, "2147483647"),
                   problem_row(b, "out_features", "packed weights overflow",
                               [](Call& c) {
                                 c.moe.experts = 4096;
                                 c.moe.in_features = c.moe.out_features = INT64_C(2147483647);
                               },
                               GGM_STATUS_OVERFLOW, {"weight", "4096", "2147483647"}),
                   SET(b, moe, sm_limit, -1, GGM_STATUS_INVALID_VALUE, "0"),
               });
}

void add_strides(std::vector<Row>& rows, Base b) {
  const std::string huge = std::to_string(kHuge);
  append(rows,
         {
             SET(b, moe, ids_ld, 1, GGM_STATUS_INVALID_VALUE, "2"),
             SET(b, moe, ids_ld, -1, GGM_STATUS_INVALID_VALUE, "2"),
             problem_row(b, "ids_ld", "overflow", [](Call& c) { c.moe.ids_ld = kHuge; }, GGM_STATUS_OVERFLOW, {"ids", huge}),
             SET(b, moe, routing_weights_ld, 1, GGM_STATUS_INVALID_VALUE, "2"),
             problem_row(b, "routing_weights_ld", "overflow", [](Call& c) { c.moe.routing_weights_ld = kHuge; },
                         GGM_STATUS_OVERFLOW, {"routing_weights", huge}),
             SET(b, moe, x_ld, 7, GGM_STATUS_INVALID_VALUE, "8"),
             problem_row(b, "x_ld", "overflow", [](Call& c) { c.moe.x_ld = kHuge; }, GGM_STATUS_OVERFLOW, {"x", huge}),
             SET(b, moe, y_ld, 7, GGM_STATUS_INVALID_VALUE, "8"),
             problem_row(b, "y_ld", "overflow", [](Call& c) { c.moe.y_ld = kHuge; }, GGM_STATUS_OVERFLOW, {"y", huge}),
             SET(b, moe, weight_ld, 7, GGM_STATUS_INVALID_VALUE, "8"),
             problem_row(b, "weight_ld", "overflow", [](Call& c) { c.moe.weight_ld = kHuge; }, GGM_STATUS_OVERFLOW, {"weight"}),
             SET(b, moe, weight_stride, 7, GGM_STATUS_INVALID_VALUE, "8"),
             SET(b, moe, weight_stride, -2, GGM_STATUS_INVALID_VALUE, "8"),
             problem_row(b, "weight_stride", "overflow", [](Call& c) { c.moe.weight_stride = kHuge; }, GGM_STATUS_OVERFLOW,
                         {"weight", huge}),
             SET(b, moe, bias_stride, 7, GGM_STATUS_INVALID_VALUE, "8"),
             SET(b, moe, bias_stride, -2, GGM_STATUS_INVALID_VALUE, "8"),
             problem_row(b, "bias_stride", "overflow", [](Call& c) { c.moe.bias_stride = kHuge; }, GGM_STATUS_OVERFLOW,
                         {"bias", huge}),
             problem_row(b, "bias_stride", "without a bias",
                         [](Call& c) {
                           c.moe.bias_type = 0;
                           c.moe.bias_stride = 8;
                           c.moe.gradients = GGM_GRADIENT_X;
                         },
                         GGM_STATUS_RESERVED_NOT_ZERO, {"bias_stride", "8", "bias_type"}),
             problem_row(b, "routing_weights_ld", "without weights",
                         [](Call& c) {
                           c.moe.routing_weight_type = 0;
                           c.moe.routing_weights_ld = 2;
                         },
                         GGM_STATUS_RESERVED_NOT_ZERO, {"routing_weights_ld", "2", "routing_weight_type"}),
         });
}

void add_types(std::vector<Row>& rows, Base b) {
  append(rows, {
                   SET(b, moe, id_type, 3, GGM_STATUS_INVALID_ENUM, "2"),
                   SET(b, moe, id_type, -1, GGM_STATUS_INVALID_ENUM, "2"),
                   SET(b, moe, routing_weight_type, 5, GGM_STATUS_INVALID_ENUM, "4"),
                   SET(b, moe, routing_weight_type, GGM_TYPE_FLOAT64, GGM_STATUS_UNSUPPORTED, "float64"),
                   SET(b, moe, x_type, 0, GGM_STATUS_INVALID_ENUM, "required"),
                   SET(b, moe, x_type, 5, GGM_STATUS_INVALID_ENUM, "4"),
                   SET(b, moe, weight_type, 0, GGM_STATUS_INVALID_ENUM, "required"),
                   SET(b, moe, weight_type, 5, GGM_STATUS_INVALID_ENUM, "4"),
                   SET(b, moe, weight_type, GGM_TYPE_BFLOAT16, GGM_STATUS_UNSUPPORTED, "bfloat16", "x_type"),
                   SET(b, moe, bias_type, 5, GGM_STATUS_INVALID_ENUM, "4"),
                   SET(b, moe, bias_type, GGM_TYPE_FLOAT16, GGM_STATUS_UNSUPPORTED, "float16"),
                   SET(b, moe, y_type, 5, GGM_STATUS_INVALID_ENUM, "4"),
                   SET(b, moe, y_type, GGM_TYPE_BFLOAT16, GGM_STATUS_UNSUPPORTED, "bfloat16"),
                   SET(b, moe, product_type, 5, GGM_STATUS_INVALID_ENUM, "4"),
                   SET(b, moe, product_type, GGM_TYPE_BFLOAT16, GGM_STATUS_UNSUPPORTED, "bfloat16"),
                   SET(b, moe, compute_type, GGM_COMPUTE_TF32, GGM_STATUS_UNSUPPORTED, "TF32"),
                   SET(b, moe, compute_type, GGM_COMPUTE_TF32X3, GGM_STATUS_UNSUPPORTED, "TF32"),
                   SET(b, moe, compute_type, 3, GGM_STATUS_INVALID_ENUM, "2"),
                   SET(b, moe, weight_order, 0, GGM_STATUS_INVALID_ENUM, "required"),
                   SET(b, moe, weight_order, 3, GGM_STATUS_INVALID_ENUM, "2"),
                   SET(b, moe, input_rows, 2, GGM_STATUS_INVALID_ENUM, "1"),
                   SET(b, moe, output_rows, 2, GGM_STATUS_INVALID_ENUM, "1"),
                   SET(b, moe, output_rows, -1, GGM_STATUS_INVALID_ENUM, "1"),
                   SET(b, moe, combine, 3, GGM_STATUS_INVALID_ENUM, "2"),
                   SET(b, moe, gradients, 0x10, GGM_STATUS_INVALID_FLAGS, "0x10"),
                   SET(b, moe, dy_type, 5, GGM_STATUS_INVALID_ENUM, "4"),
                   SET(b, moe, dx_type, 5, GGM_STATUS_INVALID_ENUM, "4"),
                   SET(b, moe, d_weight_type, 5, GGM_STATUS_INVALID_ENUM, "4"),
                   SET(b, moe, d_bias_type, 5, GGM_STATUS_INVALID_ENUM, "4"),
               });
}

// Fields of ids, where the routing arrays are given.
void add_given(std::vector<Row>& rows, Base b) {
  append(rows, {
                   SET(b, moe, experts_total, 3, GGM_STATUS_RESERVED_NOT_ZERO, "id_type"),
                   SET(b, moe, first_expert, 1, GGM_STATUS_RESERVED_NOT_ZERO, "id_type"),
                   SET(b, moe, ids_ld, 2, GGM_STATUS_RESERVED_NOT_ZERO, "id_type"),
               });
}

void add_backward(std::vector<Row>& rows) {
  constexpr Base b = Base::backward;
  const std::string huge = std::to_string(kHuge);
  append(rows, {
                   SET(b, moe, gradients, 0, GGM_STATUS_INVALID_VALUE, "0xf"),
                   SET(b, moe, dy_ld, 7, GGM_STATUS_INVALID_VALUE, "8"),
                   problem_row(b, "dy_ld", "overflow", [](Call& c) { c.moe.dy_ld = kHuge; }, GGM_STATUS_OVERFLOW, {"dy", huge}),
                   SET(b, moe, dx_ld, 7, GGM_STATUS_INVALID_VALUE, "8"),
                   problem_row(b, "dx_ld", "overflow", [](Call& c) { c.moe.dx_ld = kHuge; }, GGM_STATUS_OVERFLOW, {"dx", huge}),
                   SET(b, moe, d_weight_ld, 7, GGM_STATUS_INVALID_VALUE, "8"),
                   problem_row(b, "d_weight_ld", "overflow", [](Call& c) { c.moe.d_weight_ld = kHuge; }, GGM_STATUS_OVERFLOW,
                               {"d_weight"}),
                   SET(b, moe, d_weight_stride, GGM_STRIDE_SHARED, GGM_STATUS_INVALID_VALUE, "8"),
                   SET(b, moe, d_weight_stride, 7, GGM_STATUS_INVALID_VALUE, "8"),
                   problem_row(b, "d_weight_stride", "overflow", [](Call& c) { c.moe.d_weight_stride = kHuge; },
                               GGM_STATUS_OVERFLOW, {"d_weight", huge}),
                   SET(b, moe, d_bias_stride, GGM_STRIDE_SHARED, GGM_STATUS_INVALID_VALUE, "8"),
                   SET(b, moe, d_bias_stride, 7, GGM_STATUS_INVALID_VALUE, "8"),
                   problem_row(b, "d_bias_stride", "overflow", [](Call& c) { c.moe.d_bias_stride = kHuge; },
                               GGM_STATUS_OVERFLOW, {"d_bias", huge}),
                   SET(b, moe, dy_type, GGM_TYPE_BFLOAT16, GGM_STATUS_UNSUPPORTED, "bfloat16", "x_type"),
                   problem_row(b, "dy_type", "float32 with bfloat16 x",
                               [](Call& c) {
                                 c.moe.x_type = c.moe.weight_type = c.moe.bias_type = GGM_TYPE_BFLOAT16;
                                 c.moe.dy_type = GGM_TYPE_FLOAT32;
                               },
                               GGM_STATUS_UNSUPPORTED, {"dy_type", "float32", "x_type"}),
                   SET(b, moe, dx_type, GGM_TYPE_FLOAT64, GGM_STATUS_UNSUPPORTED, "float64"),
                   SET(b, moe, d_weight_type, GGM_TYPE_BFLOAT16, GGM_STATUS_UNSUPPORTED, "bfloat16"),
                   SET(b, moe, d_bias_type, GGM_TYPE_FLOAT64, GGM_STATUS_UNSUPPORTED, "float64"),
                   problem_row(b, "d_bias_type", "neither bias_type nor d_bias_type", [](Call& c) { c.moe.bias_type = 0; },
                               GGM_STATUS_TYPE_MISMATCH, {"d_bias_type", "bias_type", "GGM_GRADIENT_BIAS"}),
               });
}

// Pointers that the problem says are absent.
template <class Tensors>
void add_absent_inputs(std::vector<Row>& rows, Base ids, Base given, Tensors Call::*tensors) {
  append(
      rows,
      {
          tensors_row(ids, "group_offsets", "given with ids", [=](Call& c) { (c.*tensors).group_offsets = array(); },
                      GGM_STATUS_TYPE_MISMATCH, {"group_offsets", "id_type"}),
          tensors_row(ids, "row_assignment", "given with ids", [=](Call& c) { (c.*tensors).row_assignment = array(); },
                      GGM_STATUS_TYPE_MISMATCH, {"row_assignment", "id_type"}),
          tensors_row(ids, "assignment_row", "given with ids", [=](Call& c) { (c.*tensors).assignment_row = array(); },
                      GGM_STATUS_TYPE_MISMATCH, {"assignment_row", "id_type"}),
          tensors_row(given, "ids", "given with the routing arrays", [=](Call& c) { (c.*tensors).ids = some_pointer(); },
                      GGM_STATUS_TYPE_MISMATCH, {"ids", "id_type"}),
          tensors_row(given, "expert_map", "given with the routing arrays", [=](Call& c) { (c.*tensors).expert_map = array(); },
                      GGM_STATUS_TYPE_MISMATCH, {"expert_map", "id_type"}),
          tensors_row(ids, "expert_map", "with first_expert",
                      [](Call& c) {
                        c.moe.experts_total = 8;
                        c.moe.first_expert = 2;
                      },
                      GGM_STATUS_INVALID_VALUE, {"first_expert", "2", "expert_map"}),
          tensors_row(ids, "routing_weights", "given without a type", [](Call& c) { c.moe.routing_weight_type = 0; },
                      GGM_STATUS_TYPE_MISMATCH, {"routing_weights", "routing_weight_type"}),
          tensors_row(ids, "bias", "given without a type",
                      [](Call& c) {
                        c.moe.bias_type = 0;
                        c.moe.d_bias_type = GGM_TYPE_FLOAT32;
                      },
                      GGM_STATUS_TYPE_MISMATCH, {"bias", "bias_type"}),
      });
}

// An output whose bit of `gradients` is not set.
template <std::int32_t bit>
Row unwanted(const char* field) {
  return tensors_row(Base::backward, field, "given without its bit", [](Call& c) { c.moe.gradients &= ~bit; },
                     GGM_STATUS_TYPE_MISMATCH, {field, "gradients"});
}

}  // namespace

std::vector<Row> moe_rows() {
  std::vector<Row> rows;
  for (Base b : {Base::forward, Base::backward}) {
    add_sizes(rows, b);
    add_strides(rows, b);
    add_types(rows, b);
  }
  for (Base b : {Base::forward_given, Base::backward_given}) add_given(rows, b);
  add_backward(rows);
  add_absent_inputs(rows, Base::forward, Base::forward_given, &Call::forward_tensors);
  add_absent_inputs(rows, Base::backward, Base::backward_given, &Call::backward_tensors);
  append(rows, {unwanted<GGM_GRADIENT_X>("dx"), unwanted<GGM_GRADIENT_WEIGHT>("d_weight"),
                unwanted<GGM_GRADIENT_BIAS>("d_bias"), unwanted<GGM_GRADIENT_ROUTING_WEIGHTS>("d_routing_weights")});
  return rows;
}

}  // namespace misuse
