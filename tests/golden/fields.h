// Fields of the structs of ggm.h by their names, those that the golden file sets. A name that is missing here fails the test.
#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "ggm/ggm.h"

namespace golden {

template <typename Struct>
using Setters = std::map<std::string, void (*)(Struct&, std::int64_t)>;
template <typename Struct>
using Pointers = std::map<std::string, void (*)(Struct&, void*)>;

#define GGM_SET(field)                                                                                         \
  {                                                                                                            \
#field, [](auto& s, std::int64_t value) { s.field = static_cast<std::decay_t<decltype(s.field)>>(value); } \
  }
// A C cast: it takes const away and makes the pointer of the field's type, whatever that is.
#define GGM_POINT(field)                                                                       \
  {                                                                                            \
#field, [](auto& s, void* address) { s.field = (std::decay_t<decltype(s.field)>)address; } \
  }

inline const Setters<ggm_route_problem_t>& setters(const ggm_route_problem_t&) {
  static const Setters<ggm_route_problem_t> table{GGM_SET(tokens),        GGM_SET(top_k),        GGM_SET(experts),
                                                  GGM_SET(experts_total), GGM_SET(first_expert), GGM_SET(max_rows),
                                                  GGM_SET(id_type)};
  return table;
}
inline const Setters<ggm_permute_problem_t>& setters(const ggm_permute_problem_t&) {
  static const Setters<ggm_permute_problem_t> table{
      GGM_SET(flags),    GGM_SET(tokens),     GGM_SET(top_k),    GGM_SET(experts),
      GGM_SET(features), GGM_SET(token_type), GGM_SET(row_type), GGM_SET(routing_weight_type)};
  return table;
}
inline const Setters<ggm_grouped_gemm_problem_t>& setters(const ggm_grouped_gemm_problem_t&) {
  static const Setters<ggm_grouped_gemm_problem_t> table{
      GGM_SET(flags),   GGM_SET(groups), GGM_SET(m),      GGM_SET(n),          GGM_SET(k),
      GGM_SET(alpha),   GGM_SET(beta),   GGM_SET(layout), GGM_SET(group_form), GGM_SET(index_type),
      GGM_SET(b_order), GGM_SET(a_type), GGM_SET(b_type), GGM_SET(c_type),     GGM_SET(d_type)};
  return table;
}
inline const Setters<ggm_grouped_gemm_array_problem_t>& setters(const ggm_grouped_gemm_array_problem_t&) {
  static const Setters<ggm_grouped_gemm_array_problem_t> table{
      GGM_SET(flags),  GGM_SET(groups), GGM_SET(max_m),      GGM_SET(max_n),   GGM_SET(max_k),
      GGM_SET(alpha),  GGM_SET(beta),   GGM_SET(index_type), GGM_SET(a_order), GGM_SET(b_order),
      GGM_SET(a_type), GGM_SET(b_type), GGM_SET(c_type),     GGM_SET(d_type)};
  return table;
}
inline const Setters<ggm_moe_problem_t>& setters(const ggm_moe_problem_t&) {
  static const Setters<ggm_moe_problem_t> table{
      GGM_SET(flags),        GGM_SET(tokens),    GGM_SET(top_k),   GGM_SET(experts),       GGM_SET(in_features),
      GGM_SET(out_features), GGM_SET(id_type),   GGM_SET(x_type),  GGM_SET(weight_type),   GGM_SET(routing_weight_type),
      GGM_SET(bias_type),    GGM_SET(y_type),    GGM_SET(combine), GGM_SET(weight_order),  GGM_SET(input_rows),
      GGM_SET(output_rows),  GGM_SET(gradients), GGM_SET(dx_type), GGM_SET(d_weight_type), GGM_SET(d_bias_type)};
  return table;
}

inline const Pointers<ggm_route_tensors_t>& pointers(const ggm_route_tensors_t&) {
  static const Pointers<ggm_route_tensors_t> table{
      GGM_POINT(ids),           GGM_POINT(expert_map),     GGM_POINT(num_tokens),    GGM_POINT(faults),
      GGM_POINT(group_offsets), GGM_POINT(row_assignment), GGM_POINT(assignment_row)};
  return table;
}
inline const Pointers<ggm_permute_tensors_t>& pointers(const ggm_permute_tensors_t&) {
  static const Pointers<ggm_permute_tensors_t> table{GGM_POINT(group_offsets),  GGM_POINT(row_assignment),
                                                     GGM_POINT(assignment_row), GGM_POINT(routing_weights),
                                                     GGM_POINT(input),          GGM_POINT(output)};
  return table;
}
inline const Pointers<ggm_unpermute_backward_tensors_t>& pointers(const ggm_unpermute_backward_tensors_t&) {
  static const Pointers<ggm_unpermute_backward_tensors_t> table{GGM_POINT(group_offsets),  GGM_POINT(row_assignment),
                                                                GGM_POINT(assignment_row), GGM_POINT(routing_weights),
                                                                GGM_POINT(rows),           GGM_POINT(dy),
                                                                GGM_POINT(d_rows),         GGM_POINT(d_routing_weights)};
  return table;
}
inline const Pointers<ggm_grouped_gemm_tensors_t>& pointers(const ggm_grouped_gemm_tensors_t&) {
  static const Pointers<ggm_grouped_gemm_tensors_t> table{GGM_POINT(group_sizes),
                                                          GGM_POINT(group_offsets),
                                                          GGM_POINT(row_group),
                                                          GGM_POINT(a),
                                                          GGM_POINT(b),
                                                          GGM_POINT(c),
                                                          GGM_POINT(d)};
  return table;
}
inline const Pointers<ggm_grouped_gemm_array_tensors_t>& pointers(const ggm_grouped_gemm_array_tensors_t&) {
  static const Pointers<ggm_grouped_gemm_array_tensors_t> table{GGM_POINT(m), GGM_POINT(n), GGM_POINT(k), GGM_POINT(a),
                                                                GGM_POINT(b), GGM_POINT(c), GGM_POINT(d)};
  return table;
}
inline const Pointers<ggm_moe_forward_tensors_t>& pointers(const ggm_moe_forward_tensors_t&) {
  static const Pointers<ggm_moe_forward_tensors_t> table{GGM_POINT(ids),
                                                         GGM_POINT(group_offsets),
                                                         GGM_POINT(row_assignment),
                                                         GGM_POINT(assignment_row),
                                                         GGM_POINT(routing_weights),
                                                         GGM_POINT(x),
                                                         GGM_POINT(weight),
                                                         GGM_POINT(bias),
                                                         GGM_POINT(y)};
  return table;
}
inline const Pointers<ggm_moe_backward_tensors_t>& pointers(const ggm_moe_backward_tensors_t&) {
  static const Pointers<ggm_moe_backward_tensors_t> table{GGM_POINT(ids),
                                                          GGM_POINT(group_offsets),
                                                          GGM_POINT(row_assignment),
                                                          GGM_POINT(assignment_row),
                                                          GGM_POINT(routing_weights),
                                                          GGM_POINT(x),
                                                          GGM_POINT(weight),
                                                          GGM_POINT(bias),
                                                          GGM_POINT(dy),
                                                          GGM_POINT(dx),
                                                          GGM_POINT(d_weight),
                                                          GGM_POINT(d_bias),
                                                          GGM_POINT(d_routing_weights)};
  return table;
}

#undef GGM_SET
#undef GGM_POINT

// The entry of a name. Throws when there is none.
template <typename Table>
auto named(const Table& table, const std::string& name) {
  const auto found = table.find(name);
  if (found == table.end()) throw std::runtime_error("the field " + name + " is not in tests/golden/fields.h");
  return found->second;
}

}  // namespace golden
