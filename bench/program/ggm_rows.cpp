// The library's routing and row movement as operations of their own.
#include <algorithm>

#include "contender.h"

namespace ggm_bench {

namespace {

double fraction_wrong(const std::vector<std::int32_t>& got, const std::vector<std::int32_t>& want) {
  std::int64_t wrong = 0;
  for (std::size_t i = 0; i < want.size(); ++i) wrong += got[i] != want[i];
  return static_cast<double>(wrong) / static_cast<double>(want.size());
}

Contender route(const Context& context) {
  const CellData d = context.data;
  ggm_route_problem_t p = GGM_ROUTE_PROBLEM_INIT;
  p.tokens = d.tokens;
  p.top_k = d.top_k;
  p.experts = d.experts;
  p.id_type = GGM_INDEX_INT32;
  std::size_t bytes = 0;
  check_ggm(ggm_route_workspace_size(context.ggm, &p, &bytes), "ggm_route_workspace_size");
  d.buffers->workspace.reserve(static_cast<std::int64_t>(bytes));
  auto* offsets = reinterpret_cast<std::int32_t*>(d.output());
  auto* row_assignment = reinterpret_cast<std::int32_t*>(d.output() + round_up(4 * (d.experts + 1), 256));
  auto* assignment_row = row_assignment + round_up(4 * d.rows, 256) / 4;
  Contender c;
  c.name = "ggm";
  c.baseline = false;
  c.workspace_bytes = static_cast<std::int64_t>(bytes);
  c.enqueue = [=, handle = context.ggm](int set, cudaStream_t stream) {
    ggm_route_tensors_t t = GGM_ROUTE_TENSORS_INIT;
    t.ids = d.routing(set).ids;
    t.group_offsets = offsets;
    t.row_assignment = row_assignment;
    t.assignment_row = assignment_row;
    check_ggm(ggm_route(handle, &p, &t, d.buffers->workspace.data(), bytes, stream), "ggm_route");
  };
  c.exact_error = [=](Gather& gather) {
    const Routing& r = d.routing(0);
    return std::max({fraction_wrong(gather.integers(offsets, d.experts + 1), r.host_offsets),
                     fraction_wrong(gather.integers(row_assignment, d.rows), r.host_row_assignment),
                     fraction_wrong(gather.integers(assignment_row, d.rows), r.host_assignment_row)});
  };
  return c;
}

Contender move_rows(const Context& context, bool back) {
  const CellData d = context.data;
  ggm_permute_problem_t p = GGM_PERMUTE_PROBLEM_INIT;
  p.tokens = d.tokens;
  p.top_k = d.top_k;
  p.experts = d.experts;
  p.features = d.k;
  p.token_type = ggm_type(d.cell->dtype);
  if (back) p.routing_weight_type = GGM_TYPE_FLOAT32;
  const auto query = back ? ggm_unpermute_workspace_size : ggm_permute_workspace_size;
  const auto call = back ? ggm_unpermute : ggm_permute;
  const char* name = back ? "ggm_unpermute" : "ggm_permute";
  std::size_t bytes = 0;
  check_ggm(query(context.ggm, &p, &bytes), name);
  d.buffers->workspace.reserve(static_cast<std::int64_t>(bytes));
  Contender c;
  c.name = "ggm";
  c.baseline = false;
  c.workspace_bytes = static_cast<std::int64_t>(bytes);
  c.enqueue = [=, handle = context.ggm](int set, cudaStream_t stream) {
    ggm_permute_tensors_t t = GGM_PERMUTE_TENSORS_INIT;
    t.group_offsets = d.routing(set).offsets;
    t.row_assignment = d.routing(set).row_assignment;
    t.assignment_row = d.routing(set).assignment_row;
    t.routing_weights = back ? d.routing(set).weights : nullptr;
    t.input = d.input(set);
    t.output = d.output();
    check_ggm(call(handle, &p, &t, d.buffers->workspace.data(), bytes, stream), name);
  };
  const std::int64_t k = d.k, out_rows = back ? d.tokens : d.rows;
  c.outputs = {{"d", d.output(), out_rows * k * d.bytes_in(), d.cell->dtype,
                [k](std::int64_t row, std::int64_t column) { return row * k + column; }}};
  return c;
}

}  // namespace

std::vector<Contender> ggm_rows(const Context& context) {
  const std::string& operation = context.data.cell->operation;
  if (operation == "route") return {route(context)};
  if (operation == "permute") return {move_rows(context, false)};
  if (operation == "unpermute") return {move_rows(context, true)};
  return {};
}

}  // namespace ggm_bench
