#include "gemm_case.h"

#include <vector>

#include "calls.h"

namespace ggm_test {

void gemm(const GemmCase& c) {
  const bool variable = c.layout == GGM_LAYOUT_VARIABLE_K, masked = c.layout == GGM_LAYOUT_MASKED;
  DeviceMemory memory;
  const std::size_t skew = c.k % 2 ? static_cast<std::size_t>(type_bytes(c.type)) : 0;
  ggm_grouped_gemm_problem_t p = GGM_GROUPED_GEMM_PROBLEM_INIT;
  p.groups = c.groups;
  p.m = variable ? c.k : c.rows;
  p.n = c.n;
  p.k = variable ? c.rows : c.k;
  p.layout = c.layout;
  p.group_form = c.form;
  p.index_type = c.index_type;
  p.b_order = variable ? 0 : c.order;
  p.a_type = p.b_type = c.type;
  p.sm_limit = c.sm_limit;
  p.d_type = is_16bit(c.type) && c.add ? GGM_TYPE_FLOAT32 : 0;
  const std::int32_t d_type = p.d_type ? p.d_type : c.type;
  ggm_grouped_gemm_tensors_t t = GGM_GROUPED_GEMM_TENSORS_INIT;
  const std::int64_t share = masked ? c.rows / 2 : c.rows / (c.groups + 1);  // some rows belong to no group
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(c.groups), share), ends(sizes), starts(sizes);
  for (std::size_t e = 0; e < sizes.size(); ++e) {
    starts[e] = static_cast<std::int64_t>(e) * share;
    ends[e] = starts[e] + share;
  }
  std::vector<std::int64_t> offsets(starts), row_group(static_cast<std::size_t>(c.rows));
  offsets.push_back(ends.back());
  for (std::size_t r = 0; r < row_group.size(); ++r)
    row_group[r] = static_cast<std::int64_t>(r * 5 % static_cast<std::size_t>(c.groups + 1)) - 1;
  if (c.form == GGM_GROUPS_SIZES || c.form == GGM_GROUPS_STARTS_SIZES) t.group_sizes = memory.integers(c.index_type, sizes);
  if (c.form == GGM_GROUPS_OFFSETS) t.group_offsets = memory.integers(c.index_type, offsets);
  if (c.form == GGM_GROUPS_ENDS) t.group_offsets = memory.integers(c.index_type, ends);
  if (c.form == GGM_GROUPS_STARTS_SIZES) t.group_offsets = memory.integers(c.index_type, starts);
  if (c.form == GGM_GROUPS_ROW_GROUP) t.row_group = memory.integers(c.index_type, row_group);
  const std::int64_t a_rows = masked ? c.groups * c.rows : c.rows;
  const std::int64_t d_count = (variable ? c.groups * c.k : a_rows) * c.n;
  t.a = memory.numbers(c.type, a_rows * c.k, skew);
  t.b = memory.numbers(c.type, (variable ? c.rows : c.groups * c.k) * c.n);
  t.d = memory.fresh(static_cast<std::size_t>(d_count) * static_cast<std::size_t>(type_bytes(d_type)));
  if (c.add) {
    p.beta = 1;
    p.c_type = d_type;
    t.c = memory.numbers(d_type, d_count);
    p.flags = GGM_FLAG_ALPHA;
    p.alpha = 0.5;
  }
  t.faults = memory.put(std::vector<std::uint32_t>(GGM_FAULT_WORDS, 0));
  run("grouped_gemm", ggm_grouped_gemm_workspace_size, ggm_grouped_gemm, p, t);
}

}  // namespace ggm_test
