// Misuse of the problems of route, permute, unpermute and unpermute_backward.
#include "misuse.h"

namespace misuse {
namespace {

void add_route(std::vector<Row>& rows) {
  constexpr Base b = Base::route;
  const std::vector<Row> table{
      SET(b, route, flags, 1, GGM_STATUS_INVALID_FLAGS, "0x1"),
      SET(b, route, tokens, -1, GGM_STATUS_INVALID_VALUE, "0"),
      SET(b, route, tokens, INT64_C(1073741824), GGM_STATUS_LIMIT_EXCEEDED, "2147483647"),
      SET(b, route, tokens, INT64_MAX, GGM_STATUS_OVERFLOW, "top_k"),
      SET(b, route, top_k, 0, GGM_STATUS_INVALID_VALUE, "1"),
      SET(b, route, top_k, -2, GGM_STATUS_INVALID_VALUE, "1"),
      SET(b, route, top_k, 4097, GGM_STATUS_LIMIT_EXCEEDED, "4096"),
      SET(b, route, experts, 0, GGM_STATUS_INVALID_VALUE, "1"),
      SET(b, route, experts, -5, GGM_STATUS_INVALID_VALUE, "1"),
      SET(b, route, experts, 65537, GGM_STATUS_LIMIT_EXCEEDED, "65536"),
      SET(b, route, experts_total, -1, GGM_STATUS_INVALID_VALUE, "0"),
      SET(b, route, experts_total, 2, GGM_STATUS_INVALID_VALUE, "first_expert"),
      SET(b, route, experts_total, INT64_C(2147483648), GGM_STATUS_INVALID_VALUE, "2147483647"),
      SET(b, route, first_expert, -1, GGM_STATUS_INVALID_VALUE, "0"),
      SET(b, route, first_expert, INT64_MAX, GGM_STATUS_INVALID_VALUE, "2147483647"),
      problem_row(b, "first_expert", "beyond experts_total",
                  [](Call& c) {
                    c.route.experts_total = 4;
                    c.route.first_expert = 2;
                  },
                  GGM_STATUS_INVALID_VALUE, {"first_expert", "2", "experts_total", "4"}),
      SET(b, route, first_expert, INT64_C(2147483647), GGM_STATUS_INVALID_VALUE, "first_expert + experts",
          "at most 2147483647"),
      SET(b, route, max_rows, -1, GGM_STATUS_INVALID_VALUE, "0"),
      SET(b, route, ids_ld, 1, GGM_STATUS_INVALID_VALUE, "2"),
      SET(b, route, ids_ld, -2, GGM_STATUS_INVALID_VALUE, "2"),
      problem_row(b, "ids_ld", "overflow", [](Call& c) { c.route.ids_ld = kHuge; }, GGM_STATUS_OVERFLOW,
                  {"ids", std::to_string(kHuge)}),
      SET(b, route, id_type, 0, GGM_STATUS_INVALID_ENUM, "required"),
      SET(b, route, id_type, 3, GGM_STATUS_INVALID_ENUM, "2"),
      SET(b, route, id_type, -1, GGM_STATUS_INVALID_ENUM),
      SET(b, route, sm_limit, -1, GGM_STATUS_INVALID_VALUE, "0"),
  };
  rows.insert(rows.end(), table.begin(), table.end());

  Row map = tensors_row(b, "expert_map", "with first_expert",
                        [](Call& c) {
                          c.route.experts_total = 8;
                          c.route.first_expert = 2;
                        },
                        GGM_STATUS_INVALID_VALUE, {"first_expert", "2", "expert_map"});
  rows.push_back(std::move(map));
}

// What the three operations share.
void add_permute(std::vector<Row>& rows, Base b) {
  const std::vector<Row> table{
      SET(b, permute, flags, 0x80, GGM_STATUS_INVALID_FLAGS, "0x80"),
      SET(b, permute, tokens, -1, GGM_STATUS_INVALID_VALUE, "0"),
      SET(b, permute, tokens, INT64_C(1073741824), GGM_STATUS_LIMIT_EXCEEDED, "2147483647"),
      SET(b, permute, tokens, INT64_MAX, GGM_STATUS_OVERFLOW, "top_k"),
      SET(b, permute, top_k, 0, GGM_STATUS_INVALID_VALUE, "1"),
      SET(b, permute, top_k, 4097, GGM_STATUS_LIMIT_EXCEEDED, "4096"),
      SET(b, permute, experts, 0, GGM_STATUS_INVALID_VALUE, "1"),
      SET(b, permute, experts, 65537, GGM_STATUS_LIMIT_EXCEEDED, "65536"),
      SET(b, permute, max_rows, -1, GGM_STATUS_INVALID_VALUE, "0"),
      SET(b, permute, features, -1, GGM_STATUS_INVALID_VALUE, "0"),
      SET(b, permute, features, INT64_C(2147483648), GGM_STATUS_LIMIT_EXCEEDED, "2147483647"),
      SET(b, permute, token_ld, 7, GGM_STATUS_INVALID_VALUE, "8"),
      SET(b, permute, token_ld, -8, GGM_STATUS_INVALID_VALUE, "8"),
      problem_row(b, "token_ld", "overflow", [](Call& c) { c.permute.token_ld = kHuge; }, GGM_STATUS_OVERFLOW,
                  {"token", std::to_string(kHuge)}),
      SET(b, permute, row_ld, 7, GGM_STATUS_INVALID_VALUE, "8"),
      SET(b, permute, row_ld, -1, GGM_STATUS_INVALID_VALUE, "8"),
      problem_row(b, "row_ld", "overflow", [](Call& c) { c.permute.row_ld = kHuge; }, GGM_STATUS_OVERFLOW,
                  {"row", std::to_string(kHuge)}),
      SET(b, permute, token_type, 0, GGM_STATUS_INVALID_ENUM, "required"),
      SET(b, permute, token_type, 5, GGM_STATUS_INVALID_ENUM, "4"),
      SET(b, permute, token_type, -1, GGM_STATUS_INVALID_ENUM),
      problem_row(b, "token_type", "float64 with float32 rows",
                  [](Call& c) {
                    c.permute.token_type = GGM_TYPE_FLOAT64;
                    c.permute.row_type = GGM_TYPE_FLOAT32;
                  },
                  GGM_STATUS_UNSUPPORTED, {"row_type", "float32", "float64"}),
      SET(b, permute, row_type, 5, GGM_STATUS_INVALID_ENUM, "4"),
      SET(b, permute, row_type, GGM_TYPE_FLOAT64, GGM_STATUS_UNSUPPORTED, "float64"),
      SET(b, permute, routing_weight_type, 5, GGM_STATUS_INVALID_ENUM, "4"),
      SET(b, permute, sm_limit, -1, GGM_STATUS_INVALID_VALUE, "0"),
  };
  rows.insert(rows.end(), table.begin(), table.end());
}

void add_permute_alone(std::vector<Row>& rows) {
  constexpr Base b = Base::permute;
  const std::vector<Row> table{
      SET(b, permute, flags, GGM_FLAG_ADD_TO_Y, GGM_STATUS_INVALID_FLAGS, "0x4"),
      SET(b, permute, routing_weight_type, GGM_TYPE_FLOAT32, GGM_STATUS_RESERVED_NOT_ZERO, "permute"),
      SET(b, permute, routing_weights_ld, 2, GGM_STATUS_RESERVED_NOT_ZERO, "routing_weight_type"),
      tensors_row(b, "routing_weights", "given without a type",
                  [](Call& c) { c.permute_tensors.routing_weights = some_pointer(); }, GGM_STATUS_TYPE_MISMATCH,
                  {"routing_weights", "routing_weight_type"}),
  };
  rows.insert(rows.end(), table.begin(), table.end());
}

// Unpermute and its backward have routing weights.
void add_weighted(std::vector<Row>& rows, Base b) {
  const std::vector<Row> table{
      SET(b, permute, routing_weights_ld, 1, GGM_STATUS_INVALID_VALUE, "2"),
      SET(b, permute, routing_weights_ld, -1, GGM_STATUS_INVALID_VALUE, "2"),
      problem_row(b, "routing_weights_ld", "overflow", [](Call& c) { c.permute.routing_weights_ld = kHuge; },
                  GGM_STATUS_OVERFLOW, {"routing_weights", std::to_string(kHuge)}),
      SET(b, permute, routing_weight_type, GGM_TYPE_FLOAT64, GGM_STATUS_UNSUPPORTED, "float64"),
  };
  rows.insert(rows.end(), table.begin(), table.end());
}

void add_unpermute_backward(std::vector<Row>& rows) {
  constexpr Base b = Base::unpermute_backward;
  const std::vector<Row> table{
      SET(b, permute, flags, GGM_FLAG_ADD_TO_Y, GGM_STATUS_INVALID_FLAGS, "0x4"),
      tensors_row(b, "d_rows", "no output wanted",
                  [](Call& c) {
                    c.unpermute_backward_tensors.d_rows = nullptr;
                    c.unpermute_backward_tensors.d_routing_weights = nullptr;
                  },
                  GGM_STATUS_NULL_POINTER, {"d_rows", "d_routing_weights"}),
      tensors_row(b, "routing_weights", "given without a type", [](Call& c) { c.permute.routing_weight_type = 0; },
                  GGM_STATUS_TYPE_MISMATCH, {"routing_weights", "routing_weight_type"}),
  };
  rows.insert(rows.end(), table.begin(), table.end());
}

}  // namespace

std::vector<Row> route_rows() {
  std::vector<Row> rows;
  add_route(rows);
  for (Base b : {Base::permute, Base::unpermute, Base::unpermute_backward}) add_permute(rows, b);
  add_permute_alone(rows);
  for (Base b : {Base::unpermute, Base::unpermute_backward}) add_weighted(rows, b);
  rows.push_back(tensors_row(Base::unpermute, "routing_weights", "given without a type",
                             [](Call& c) { c.permute.routing_weight_type = 0; }, GGM_STATUS_TYPE_MISMATCH,
                             {"routing_weights", "routing_weight_type"}));
  add_unpermute_backward(rows);
  return rows;
}

}  // namespace misuse
