#include "cases/route_case.h"

namespace ggm_test::cases {
namespace {

std::vector<std::int64_t> integers(const Tensor& tensor) {
  std::vector<std::int64_t> out;
  for (std::int64_t i = 0; i < tensor.size(); ++i) out.push_back(tensor.integer(i));
  return out;
}

void require_equal(const std::vector<std::int64_t>& got, const std::vector<std::int64_t>& want, const char* what) {
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    if (got[i] != want[i]) FAIL(what << "[" << i << "] = " << got[i] << ", expected " << want[i]);
}

}  // namespace

Routing route(const Handle& handle, const RouteInput& in, std::int32_t id_type, const CallOptions& options) {
  Scene scene(handle);
  ggm_route_problem_t p = GGM_ROUTE_PROBLEM_INIT;
  p.tokens = in.tokens;
  p.top_k = in.top_k;
  p.experts = in.experts;
  p.experts_total = in.experts_total;
  p.first_expert = in.first_expert;
  p.max_rows = in.max_rows;
  p.id_type = id_type;
  Tensor& ids = scene.input("ids", index_element(id_type), {1, in.tokens, in.top_k}).assign(in.ids);
  Tensor& offsets = scene.output("group_offsets", kInt32, {1, 1, in.experts + 1});
  Tensor& rows = scene.output("row_assignment", kInt32, {1, 1, in.row_bound()});
  Tensor& slots = scene.output("assignment_row", kInt32, {1, in.tokens, in.top_k});
  Tensor& faults = scene.faults();
  ggm_route_tensors_t t = GGM_ROUTE_TENSORS_INIT;
  t.ids = pointer(ids);
  t.group_offsets = static_cast<std::int32_t*>(offsets.data());
  t.row_assignment = static_cast<std::int32_t*>(pointer(rows));
  t.assignment_row = static_cast<std::int32_t*>(pointer(slots));
  t.faults = static_cast<std::uint32_t*>(faults.data());
  scene.run_twice(as_called(op::route, options), p, t);
  Routing out;
  out.group_offsets = integers(offsets);
  out.row_assignment = integers(rows);
  out.assignment_row = integers(slots);
  for (std::size_t i = 0; i < out.faults.size(); ++i)
    out.faults[i] = static_cast<std::uint32_t>(faults.integer(static_cast<std::int64_t>(i)));
  return out;
}

Routing require_route(const Handle& handle, const RouteInput& in, std::int32_t id_type, const CallOptions& options) {
  const Routing got = route(handle, in, id_type, options), want = route_reference(in);
  require_equal(got.group_offsets, want.group_offsets, "group_offsets");
  require_equal(got.row_assignment, want.row_assignment, "row_assignment");
  require_equal(got.assignment_row, want.assignment_row, "assignment_row");
  REQUIRE(got.faults == want.faults);
  return got;
}

}  // namespace ggm_test::cases
