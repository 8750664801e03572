// The library's products over groups: contiguous, masked, general, variable K.
#include "contender.h"

namespace ggm_bench {

namespace {

// Fields that the layouts share. Decode cells keep unused rows, as the targets say.
ggm_grouped_gemm_problem_t base_problem(const CellData& d) {
  ggm_grouped_gemm_problem_t p = GGM_GROUPED_GEMM_PROBLEM_INIT;
  p.groups = d.experts;
  p.index_type = GGM_INDEX_INT32;
  p.a_type = p.b_type = ggm_type(d.cell->dtype);
  p.d_type = ggm_type(d.cell->output_dtype());
  return p;
}

ggm_grouped_gemm_problem_t contiguous_problem(const CellData& d) {
  ggm_grouped_gemm_problem_t p = base_problem(d);
  p.layout = GGM_LAYOUT_CONTIGUOUS;
  p.group_form = GGM_GROUPS_OFFSETS;
  p.flags = d.tokens <= 256 ? GGM_FLAG_KEEP_UNUSED_ROWS : 0;
  p.m = d.rows;
  p.n = d.n;
  p.k = d.k;
  p.lda = d.cell->pitch(d.k);
  p.ldb = d.weight_ld();
  p.stride_b = d.weight_stride();
  p.ldd = d.cell->pitch(d.n);
  p.b_order = d.cell->kn() ? GGM_ORDER_KN : GGM_ORDER_NK;
  return p;
}

ggm_grouped_gemm_problem_t masked_problem(const CellData& d) {
  ggm_grouped_gemm_problem_t p = contiguous_problem(d);
  p.layout = GGM_LAYOUT_MASKED;
  p.group_form = GGM_GROUPS_SIZES;
  p.flags = GGM_FLAG_KEEP_UNUSED_ROWS;
  p.m = d.capacity;
  return p;
}

ggm_grouped_gemm_problem_t variable_k_problem(const CellData& d) {
  ggm_grouped_gemm_problem_t p = base_problem(d);
  p.layout = GGM_LAYOUT_VARIABLE_K;
  p.group_form = GGM_GROUPS_OFFSETS;
  p.m = d.n;
  p.n = d.k;
  p.k = d.rows;
  return p;
}

Contender grouped_gemm(const Context& context, const ggm_grouped_gemm_problem_t& problem) {
  const CellData d = context.data;
  std::size_t bytes = 0;
  check_ggm(ggm_grouped_gemm_workspace_size(context.ggm, &problem, &bytes), "ggm_grouped_gemm_workspace_size");
  d.buffers->workspace.reserve(static_cast<std::int64_t>(bytes));
  Contender c;
  c.name = "ggm";
  c.baseline = false;
  c.workspace_bytes = static_cast<std::int64_t>(bytes);
  c.enqueue = [d, problem, bytes, handle = context.ggm](int set, cudaStream_t stream) {
    ggm_grouped_gemm_tensors_t t = GGM_GROUPED_GEMM_TENSORS_INIT;
    const bool gradient = problem.layout == GGM_LAYOUT_VARIABLE_K;
    if (problem.group_form == GGM_GROUPS_SIZES) {
      t.group_sizes = d.routing(set).sizes;
    } else {
      t.group_offsets = d.routing(set).offsets;
    }
    t.a = gradient ? d.gradient(set) : d.input(set);
    t.b = gradient ? d.input(set) : d.weights();
    t.d = d.output();
    check_ggm(ggm_grouped_gemm(handle, &problem, &t, d.buffers->workspace.data(), bytes, stream), "ggm_grouped_gemm");
  };
  return c;
}

// Sizes and pointers of the general form as device arrays, one set after the other.
struct GeneralArrays {
  DeviceBuffer memory;
  std::vector<const void*> host;
  std::int64_t groups = 0;
  const void* const* a(int set) const { return memory.as<const void*>() + (3 * set) * groups; }
  const void* const* b(int set) const { return memory.as<const void*>() + (3 * set + 1) * groups; }
  void* const* d(int set) const { return memory.as<void*>() + (3 * set + 2) * groups; }
};

std::shared_ptr<GeneralArrays> general_arrays(const CellData& d) {
  auto arrays = std::make_shared<GeneralArrays>();
  arrays->groups = d.experts;
  for (int set = 0; set < d.sets(); ++set) {
    const auto& offsets = d.routing(set).host_offsets;
    for (std::int64_t e = 0; e < d.experts; ++e) arrays->host.push_back(d.input(set) + offsets[e] * d.k * d.bytes_in());
    for (std::int64_t e = 0; e < d.experts; ++e) arrays->host.push_back(d.weights() + e * d.weight_stride() * d.bytes_in());
    for (std::int64_t e = 0; e < d.experts; ++e) {
      arrays->host.push_back(d.output() + offsets[e] * d.n * size_of(d.cell->output_dtype()));
    }
  }
  const std::size_t bytes = arrays->host.size() * sizeof(void*);
  arrays->memory.reserve(static_cast<std::int64_t>(bytes));
  // On the bench's stream, which does not wait for the default one.
  check(cudaMemcpyAsync(arrays->memory.data(), arrays->host.data(), bytes, cudaMemcpyHostToDevice, d.stream),
        "copy of pointers");
  return arrays;
}

Contender general(const Context& context) {
  const CellData d = context.data;
  ggm_grouped_gemm_array_problem_t p = GGM_GROUPED_GEMM_ARRAY_PROBLEM_INIT;
  p.groups = d.experts;
  // A host that knows nothing of the routing can only say that an expert has at most every token.
  p.max_m = d.cell->routing == "equal" ? d.rows / d.experts : d.tokens;
  p.max_n = d.n;
  p.max_k = d.k;
  p.index_type = GGM_INDEX_INT32;
  p.a_order = GGM_ORDER_MK;
  p.b_order = GGM_ORDER_NK;
  p.a_type = p.b_type = ggm_type(d.cell->dtype);
  // All pointers and rows of the workloads keep 16 bytes; a shape that does not must not be refused for the promise.
  p.min_alignment = d.k * d.bytes_in() % 16 == 0 && d.n * d.bytes_in() % 16 == 0 ? 16 : 0;
  std::size_t bytes = 0;
  check_ggm(ggm_grouped_gemm_array_workspace_size(context.ggm, &p, &bytes), "ggm_grouped_gemm_array_workspace_size");
  d.buffers->workspace.reserve(static_cast<std::int64_t>(bytes));
  Contender c;
  c.name = "ggm";
  c.baseline = false;
  c.workspace_bytes = static_cast<std::int64_t>(bytes);
  c.enqueue = [d, p, bytes, arrays = general_arrays(d), handle = context.ggm](int set, cudaStream_t stream) {
    ggm_grouped_gemm_array_tensors_t t = GGM_GROUPED_GEMM_ARRAY_TENSORS_INIT;
    t.m = d.routing(set).sizes;
    t.a = arrays->a(set);
    t.b = arrays->b(set);
    t.d = arrays->d(set);
    check_ggm(ggm_grouped_gemm_array(handle, &p, &t, d.buffers->workspace.data(), bytes, stream), "ggm_grouped_gemm_array");
  };
  return c;
}

}  // namespace

std::vector<Contender> ggm_products(const Context& context) {
  const CellData& d = context.data;
  const std::string& operation = d.cell->operation;
  Contender c;
  std::int64_t ld = d.cell->pitch(d.n), bytes = d.rows * ld;
  if (operation == "grouped") {
    c = grouped_gemm(context, contiguous_problem(d));
  } else if (operation == "grouped_masked") {
    c = grouped_gemm(context, masked_problem(d));
    bytes = d.experts * d.capacity * ld;
  } else if (operation == "grouped_general") {
    c = general(context);
  } else if (operation == "grouped_k") {
    c = grouped_gemm(context, variable_k_problem(d));
    ld = d.k;
    bytes = d.experts * d.n * ld;
  } else {
    return {};
  }
  const Dtype type = d.cell->output_dtype();
  c.outputs = {{"d", d.output(), bytes * size_of(type), type,
                [ld](std::int64_t row, std::int64_t column) { return row * ld + column; }}};
  return {c};
}

}  // namespace ggm_bench
